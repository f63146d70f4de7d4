//! What client and helper say to each other: one request, one reply, both a frame of fields.
//!
//! A frame is a u32 with the bytes that follow; a field is a u32 with its length and then its bytes; all little-endian.
//! The helper is of the same build as its client, and says so in its first field.

use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Names this protocol; another build's helper is refused.
pub const VERSION: &str = concat!("cudaway-comgr 1 ", env!("CARGO_PKG_VERSION"));
/// The helper's only argument.
pub const ARGUMENT: &str = "--serve";
/// Seconds a request may take before the helper ends itself, if the client does not want less.
pub const LIMIT_S: u32 = 300;
/// Seconds without a request after which a helper ends itself.
pub const IDLE_S: u64 = 30;
/// Longest frame that is believed.
const MAX_BYTES: u32 = 1 << 30;

/// What compiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// A `libamd_comgr`, by path or by the name that the loader is to look for.
    Library(PathBuf),
    /// `clang` or `llc`, and `ld.lld`.
    Tools { compiler: PathBuf, linker: PathBuf },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub compiler: Compiler,
    pub target: String,
    pub text: String,
    /// Seconds that it may take.
    pub limit_s: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The code object, and what the compiler said.
    Done { code: Vec<u8>, log: String },
    /// This compiler cannot be had, or does not know the target; another may.
    Unavailable(String),
    /// The text is not to its liking.
    Refused(String),
}

/// A frame that is not what was expected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Form(&'static str),
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let (len, rest) = self.0.split_first_chunk().ok_or(Error::Form("a field is missing"))?;
        let len = u32::from_le_bytes(*len) as usize;
        let (field, rest) = rest.split_at_checked(len).ok_or(Error::Form("a field is cut off"))?;
        self.0 = rest;
        Ok(field)
    }

    fn text(&mut self) -> Result<&'a str, Error> {
        str::from_utf8(self.bytes()?).map_err(|_| Error::Form("a field is not text"))
    }
}

fn frame(fields: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let bytes: usize = fields.iter().map(|field| 4 + field.len()).sum();
    let len = u32::try_from(bytes).ok().filter(|&len| len <= MAX_BYTES);
    let len = len.ok_or(Error::Form("more than a frame holds"))?;
    let mut frame = Vec::with_capacity(4 + bytes);
    frame.extend(len.to_le_bytes());
    for field in fields {
        // Not longer than the frame.
        frame.extend((field.len() as u32).to_le_bytes());
        frame.extend(*field);
    }
    Ok(frame)
}

fn body(from: &mut impl Read) -> Result<Vec<u8>, Error> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len > MAX_BYTES {
        return Err(Error::Form("a frame longer than any"));
    }
    let mut body = Vec::new();
    from.take(u64::from(len)).read_to_end(&mut body)?;
    if body.len() < len as usize {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(body)
}

impl Request {
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        use std::os::unix::ffi::OsStrExt;
        let (kind, first, second) = match &self.compiler {
            Compiler::Library(path) => ("library", path.as_os_str().as_bytes(), &[][..]),
            Compiler::Tools { compiler, linker } => {
                ("tools", compiler.as_os_str().as_bytes(), linker.as_os_str().as_bytes())
            }
        };
        frame(&[
            VERSION.as_bytes(),
            kind.as_bytes(),
            first,
            second,
            self.target.as_bytes(),
            self.text.as_bytes(),
            &self.limit_s.to_le_bytes(),
        ])
    }

    pub fn read(from: &mut impl Read) -> Result<Request, Error> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let body = body(from)?;
        let mut fields = Fields(&body);
        if fields.text()? != VERSION {
            return Err(Error::Form("a request of another version"));
        }
        let kind = fields.text()?;
        let mut path = || fields.bytes().map(|bytes| PathBuf::from(OsStr::from_bytes(bytes)));
        let (first, second) = (path()?, path()?);
        let compiler = match kind {
            "library" => Compiler::Library(first),
            "tools" => Compiler::Tools { compiler: first, linker: second },
            _ => return Err(Error::Form("a compiler of no kind")),
        };
        let (target, text) = (fields.text()?.to_owned(), fields.text()?.to_owned());
        let limit = fields.bytes()?.try_into().map_err(|_| Error::Form("a limit that is no number"))?;
        Ok(Request { compiler, target, text, limit_s: u32::from_le_bytes(limit) })
    }
}

impl Reply {
    pub fn write(&self, to: &mut impl Write) -> Result<(), Error> {
        let fields: [&[u8]; 4] = match self {
            Reply::Done { code, log } => [VERSION.as_bytes(), b"done", log.as_bytes(), code],
            Reply::Unavailable(why) => [VERSION.as_bytes(), b"unavailable", why.as_bytes(), b""],
            Reply::Refused(log) => [VERSION.as_bytes(), b"refused", log.as_bytes(), b""],
        };
        Ok(to.write_all(&frame(&fields)?)?)
    }

    pub fn read(from: &mut impl Read) -> Result<Reply, Error> {
        let body = body(from)?;
        let mut fields = Fields(&body);
        if fields.text()? != VERSION {
            return Err(Error::Form("cudaway-comgr is of another version"));
        }
        let (kind, log) = (fields.text()?, fields.text()?.to_owned());
        match kind {
            "done" => Ok(Reply::Done { code: fields.bytes()?.to_vec(), log }),
            "unavailable" => Ok(Reply::Unavailable(log)),
            "refused" => Ok(Reply::Refused(log)),
            _ => Err(Error::Form("a reply of no kind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            compiler: Compiler::Tools { compiler: "/bin/clang".into(), linker: "/bin/ld.lld".into() },
            target: "gfx90a:xnack-".into(),
            text: "define void @f() { ret void }\n".into(),
            limit_s: 300,
        }
    }

    #[test]
    fn requests_and_replies_arrive_as_they_were_sent() {
        let sent = request().encode().unwrap();
        assert_eq!(Request::read(&mut &sent[..]).unwrap(), request());
        for reply in [
            Reply::Done { code: vec![0, 255, 10], log: "warning".into() },
            Reply::Unavailable("no such file".into()),
            Reply::Refused("error: expected type".into()),
        ] {
            let mut sent = Vec::new();
            reply.write(&mut sent).unwrap();
            assert_eq!(Reply::read(&mut &sent[..]).unwrap(), reply);
        }
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_an_error() {
        let sent = request().encode().unwrap();
        for len in 0..sent.len() {
            assert!(Request::read(&mut &sent[..len]).is_err(), "{len} bytes");
        }
        // A field that says to be longer than its frame, and a frame longer than any.
        let mut wrong = sent.clone();
        wrong[4] = 0xff;
        assert!(matches!(Request::read(&mut &wrong[..]), Err(Error::Form(_))));
        wrong[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(Request::read(&mut &wrong[..]), Err(Error::Form(_))));
    }
}
