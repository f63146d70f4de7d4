//! The public names of each CUDA runtime major, sorted bytewise, made at compile time from the committed export lists.

/// One line of a list is `name@node`.
const LIST_11: &str = include_str!("../../../tools/data/cuda/cudart_exports_11.txt");
const LIST_12: &str = include_str!("../../../tools/data/cuda/cudart_exports_12.txt");
const LIST_13: &str = include_str!("../../../tools/data/cuda/cudart_exports_13.txt");

pub static V11: [&[u8]; count(LIST_11)] = names(LIST_11);
pub static V12: [&[u8]; count(LIST_12)] = names(LIST_12);
pub static V13: [&[u8]; count(LIST_13)] = names(LIST_13);

const fn count(list: &str) -> usize {
    let (bytes, mut n, mut at) = (list.as_bytes(), 0, 0);
    while at < bytes.len() {
        n += (bytes[at] == b'@') as usize;
        at += 1;
    }
    n
}

const fn names<const N: usize>(list: &'static str) -> [&'static [u8]; N] {
    let mut out: [&[u8]; N] = [b""; N];
    let (mut rest, mut n) = (list.as_bytes(), 0);
    while n < N {
        let mut end = 0;
        while rest[end] != b'@' {
            end += 1;
        }
        let (name, tail) = rest.split_at(end);
        // The lists are sorted with the node in the line, so a few names are out of place: let each sink to its own.
        let mut place = n;
        while place > 0 && less(name, out[place - 1]) {
            out[place] = out[place - 1];
            place -= 1;
        }
        out[place] = name;
        let mut next = 0;
        while next < tail.len() && tail[next] != b'\n' {
            next += 1;
        }
        rest = if next < tail.len() { tail.split_at(next + 1).1 } else { b"" };
        n += 1;
    }
    out
}

const fn less(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at < b.len() && (at == a.len() || a[at] < b[at])
}

/// Where these names, sorted as the list is, are in it. One that is not there stops the compiler.
pub const fn places<const N: usize>(list: &[&[u8]], names: [&str; N]) -> [u16; N] {
    let mut places = [0; N];
    let (mut at, mut n) = (0, 0);
    while n < N {
        let name = names[n].as_bytes();
        while at < list.len() && less(list[at], name) {
            at += 1;
        }
        assert!(at < list.len() && !less(name, list[at]), "no such name, or not in order");
        places[n] = at as u16;
        n += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_have_the_measured_lengths() {
        assert_eq!((V11.len(), V12.len(), V13.len()), (395, 435, 458));
        for list in [&V11[..], &V12, &V13] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|name| name.starts_with(b"cuda") || name.starts_with(b"__cuda")));
            assert!(list.binary_search(&&b"cudaMalloc"[..]).is_ok());
        }
    }
}
