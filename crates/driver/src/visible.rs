//! `CUDA_VISIBLE_DEVICES` (CUDA C++ Programming Guide, "CUDA Environment Variables"): which devices the process sees, and
//! in which order.

/// The places of the visible devices in the list of all, whose UUIDs these are.
///
/// CUDA: an entry is a number or `GPU-` and the beginning of one device's UUID; from the first entry that names no device on,
/// or that names one again, nothing is visible.
pub fn places(list: &str, uuids: &[[u8; 16]]) -> Vec<usize> {
    let mut places = Vec::new();
    for entry in list.split(',') {
        match place(entry.trim(), uuids) {
            Some(place) if !places.contains(&place) => places.push(place),
            _ => break,
        }
    }
    places
}

fn place(entry: &str, uuids: &[[u8; 16]]) -> Option<usize> {
    if let Some(start) = entry.strip_prefix("GPU-") {
        let start = start.replace('-', "").to_lowercase();
        let begins = |uuid: &[u8; 16]| -> bool {
            let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
            digits.starts_with(&start)
        };
        let mut found = (0..uuids.len()).filter(|&place| begins(&uuids[place]));
        let first = found.next()?;
        return found.next().is_none().then_some(first);
    }
    entry.parse().ok().filter(|&place| place < uuids.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: [[u8; 16]; 2] = [[0x1a; 16], [0x1b; 16]];

    #[test]
    fn numbers_choose_and_order() {
        assert_eq!(places("1", &TWO), [1]);
        assert_eq!(places("1, 0", &TWO), [1, 0]);
    }

    #[test]
    fn what_follows_an_entry_without_a_device_is_hidden() {
        assert_eq!(places("1,2,0", &TWO), [1]);
        assert_eq!(places("0,0,1", &TWO), [0]);
        for none in ["", "-1", "none", "NoDevFiles", "2"] {
            assert_eq!(places(none, &TWO), [0usize; 0], "{none:?}");
        }
    }

    #[test]
    fn the_beginning_of_one_uuid_is_enough() {
        assert_eq!(places("GPU-1b1b1b1b-1b1b-1b1b-1b1b-1b1b1b1b1b1b,GPU-1A1A", &TWO), [1, 0]);
        assert_eq!(places("GPU-1", &TWO), [0usize; 0], "two devices' begin so");
    }
}
