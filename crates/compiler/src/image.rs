//! The image that a `cpu` device's `hipModuleLoadData` takes: PTX sources that belong together.
//! The layout is in docs/architecture.md; [`decode`] trusts no length.

use crate::Source;

pub const MAGIC: [u8; 8] = *b"CUDAWAY\x01";
/// Bytes before the first source.
pub const HEADER_BYTES: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not a CUDAway image")]
    Magic,
    #[error("the image ends inside source {0}")]
    Truncated(u32),
    #[error("source {0} is not UTF-8")]
    Text(u32),
}

/// Packs `sources`.
pub fn encode(sources: &[Source]) -> Vec<u8> {
    let body: usize = sources.iter().map(|s| 8 + s.name.len() + s.text.len()).sum();
    let mut image = Vec::with_capacity(HEADER_BYTES + body);
    image.extend(MAGIC);
    image.extend(((HEADER_BYTES + body) as u64).to_le_bytes());
    image.extend((sources.len() as u32).to_le_bytes());
    image.extend(0u32.to_le_bytes());
    for source in sources {
        image.extend((source.name.len() as u32).to_le_bytes());
        image.extend((source.text.len() as u32).to_le_bytes());
        image.extend(source.name.as_bytes());
        image.extend(source.text.as_bytes());
    }
    image
}

/// Bytes of the image that starts with `header`, or `None` when that is no image of ours.
pub fn total_bytes(header: &[u8; HEADER_BYTES]) -> Option<usize> {
    if header[..8] != MAGIC {
        return None;
    }
    let bytes = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
    usize::try_from(bytes).ok().filter(|&bytes| bytes >= HEADER_BYTES)
}

/// Unpacks what [`encode`] packed.
pub fn decode(image: &[u8]) -> Result<Vec<Source>, Error> {
    let header: &[u8; HEADER_BYTES] = image.first_chunk().ok_or(Error::Magic)?;
    let total = total_bytes(header).ok_or(Error::Magic)?;
    let count = u32::from_le_bytes(header[16..20].try_into().expect("four bytes"));
    let mut rest = image.get(HEADER_BYTES..total).ok_or(Error::Truncated(0))?;
    let mut sources = Vec::new();
    for i in 0..count {
        let mut take = |bytes: usize| {
            let (head, tail) = rest.split_at_checked(bytes).ok_or(Error::Truncated(i))?;
            rest = tail;
            Ok(head)
        };
        let mut length = || take(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes")) as usize);
        let (name, text) = (length()?, length()?);
        let mut string =
            |bytes| Ok(std::str::from_utf8(take(bytes)?).map_err(|_| Error::Text(i))?.to_owned());
        sources.push(Source { name: string(name)?, text: string(text)? });
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<Source> {
        vec![
            Source { name: "a.ptx".into(), text: ".version 9.0\n".into() },
            Source { name: String::new(), text: ".version 8.0 // ä".into() },
        ]
    }

    #[test]
    fn what_is_packed_comes_back() {
        assert_eq!(decode(&encode(&sources())).unwrap(), sources());
    }

    #[test]
    fn every_truncation_is_an_error() {
        let image = encode(&sources());
        for end in 0..image.len() {
            assert!(decode(&image[..end]).is_err(), "{end} bytes were accepted");
        }
    }
}
