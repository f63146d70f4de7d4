//! `ar` archives, in which host objects with device code come (`libcudadevrt.a`).

use crate::elf;

/// First bytes of every archive.
pub const MAGIC: [u8; 8] = *b"!<arch>\n";
const HEADER_BYTES: usize = 60;

/// The containers of its host objects.
pub fn containers(archive: &[u8]) -> Vec<&[u8]> {
    members(archive).into_iter().flat_map(elf::containers).collect()
}

/// The files of an archive, without the linker's own tables; what is cut off is left out.
fn members(archive: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let Some(mut rest) = archive.strip_prefix(&MAGIC) else { return found };
    while let Some((header, body)) = rest.split_at_checked(HEADER_BYTES) {
        let size = str::from_utf8(&header[48..58]).ok().and_then(|text| text.trim().parse::<usize>().ok());
        let Some(member) = size.and_then(|size| body.get(..size)) else { break };
        // "/" is the symbol table, "//" the long names.
        let name = &header[..16];
        if !name.starts_with(b"/ ") && !name.starts_with(b"// ") && !name.starts_with(b"/SYM64/") {
            found.push(member);
        }
        rest = body.get(member.len().next_multiple_of(2)..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, body.len()).into_bytes();
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
        bytes
    }

    #[test]
    fn members_are_found_and_tables_are_not() {
        let archive =
            [&MAGIC[..], &member("/", b"abc"), &member("a.o/", b"one"), &member("/23", b"four")].concat();
        assert_eq!(members(&archive), [&b"one"[..], b"four"]);
        // A size beyond the end, and no archive at all.
        assert_eq!(members(&archive[..archive.len() - 2]), [&b"one"[..]]);
        assert!(members(b"\x7fELF").is_empty());
    }
}
