//! Memory for code: whole pages out of large mappings, so that a process with a hundred thousand kernels has a few hundred
//! mappings more (Linux allows 65,530), and a kernel takes as many pages as its code has.
//!
//! Rule: no page is ever writable and executable at once.

use std::collections::BTreeMap;
use std::io;
use std::ptr;
use std::slice;

use parking_lot::Mutex;

const PAGE: usize = 4096;

/// What is mapped at once; longer code gets a mapping of its own.
const SLAB: usize = 4 << 20;

static SLABS: Mutex<Vec<Slab>> = Mutex::new(Vec::new());

/// A mapping, of which pages that nobody has cannot be touched.
struct Slab {
    start: usize,
    len: usize,
    /// Where free pages begin, and how many bytes they have.
    free: BTreeMap<usize, usize>,
}

/// Pages that can be written to until they are sealed, and executed from then on; unmapped at the end.
pub struct Pages {
    start: usize,
    len: usize,
}

impl Pages {
    /// Room for `len` bytes, all 0, at the start of a page.
    pub fn new(len: usize) -> io::Result<Pages> {
        let len = len.max(1).checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut slabs = SLABS.lock();
        let start = match slabs.iter_mut().find_map(|slab| slab.take(len)) {
            Some(start) => start,
            None => {
                let mut slab = Slab::map(len.max(SLAB))?;
                let start = slab.take(len).ok_or(io::ErrorKind::OutOfMemory)?;
                slabs.push(slab);
                start
            }
        };
        drop(slabs);
        let pages = Pages { start, len };
        pages.protect(libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(pages)
    }

    pub fn address(&self) -> usize {
        self.start
    }

    /// What `write` puts there is executable from now on, and can be read but not written to any more.
    pub fn seal<E>(self, write: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Sealed, E>
    where
        E: From<io::Error>,
    {
        // SAFETY: these pages are ours alone, and writable since `new`.
        write(unsafe { slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut(self.start), self.len) })?;
        self.protect(libc::PROT_READ | libc::PROT_EXEC)?;
        Ok(Sealed(self))
    }

    fn protect(&self, protection: i32) -> io::Result<()> {
        // SAFETY: pages of our own mapping.
        let rc =
            unsafe { libc::mprotect(ptr::with_exposed_provenance_mut(self.start), self.len, protection) };
        if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let at = ptr::with_exposed_provenance_mut(self.start);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let mut slabs = SLABS.lock();
        // SAFETY: pages of our own mapping, which nobody has from here on: what was in them is gone.
        let mapped = unsafe { libc::mmap(at, self.len, libc::PROT_NONE, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            // Out of mappings: the pages stay as they are, and nobody gets them.
            return;
        }
        let nth = slabs.iter().position(|slab| (slab.start..slab.start + slab.len).contains(&self.start));
        let Some(nth) = nth else { return };
        slabs[nth].give_back(self.start, self.len);
        if slabs[nth].is_free() {
            slabs.swap_remove(nth).unmap();
        }
    }
}

/// Pages that are executed.
pub struct Sealed(Pages);

impl Sealed {
    pub fn address(&self) -> usize {
        self.0.start
    }
}

impl Slab {
    fn map(len: usize) -> io::Result<Slab> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.expose_provenance();
        Ok(Slab { start, len, free: BTreeMap::from([(start, len)]) })
    }

    fn unmap(self) {
        // SAFETY: nobody has a page of it.
        unsafe { libc::munmap(ptr::with_exposed_provenance_mut(self.start), self.len) };
    }

    /// The first that fits.
    fn take(&mut self, len: usize) -> Option<usize> {
        let (start, free) =
            self.free.iter().find(|(_, free)| **free >= len).map(|(start, free)| (*start, *free))?;
        self.free.remove(&start);
        if free > len {
            self.free.insert(start + len, free - len);
        }
        Some(start)
    }

    fn give_back(&mut self, start: usize, len: usize) {
        let (mut start, mut len) = (start, len);
        if let Some((&before, &free)) = self.free.range(..start).next_back()
            && before + free == start
        {
            self.free.remove(&before);
            (start, len) = (before, free + len);
        }
        if let Some(free) = self.free.remove(&(start + len)) {
            len += free;
        }
        self.free.insert(start, len);
    }

    fn is_free(&self) -> bool {
        self.free.get(&self.start) == Some(&self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(len: usize, byte: u8) -> Sealed {
        let pages = Pages::new(len).unwrap();
        let write = |bytes: &mut [u8]| {
            assert!(bytes.iter().all(|it| *it == 0), "pages of others are not seen");
            bytes.fill(byte);
            Ok::<(), io::Error>(())
        };
        pages.seal(write).unwrap()
    }

    /// Protections of the pages of `sealed`, by the kernel's list, and how many mappings the process has.
    fn mapped(sealed: &Sealed) -> (String, usize) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = |line: &str| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
        };
        let own = maps.lines().find(|line| range(line).is_some_and(|it| it.contains(&sealed.address())));
        (own.unwrap().split(' ').nth(1).unwrap().to_owned(), maps.lines().count())
    }

    #[test]
    fn sealed_pages_are_executable_and_not_writable() {
        assert_eq!(mapped(&filled(100, 1)).0, "r-xp");
    }

    #[test]
    fn many_pages_take_few_mappings_and_freed_ones_are_given_again() {
        let first = filled(1, 1);
        let before = mapped(&first).1;
        let many: Vec<Sealed> = (0..3000u32).map(|nth| filled(PAGE, nth as u8)).collect();
        // Other tests map too.
        assert!(mapped(&first).1 < before + 1500);
        for (nth, pages) in many.iter().enumerate() {
            // SAFETY: sealed pages can be read.
            assert_eq!(unsafe { *ptr::with_exposed_provenance::<u8>(pages.address() + 7) }, nth as u8);
        }
        drop(many);
        let again = filled(3 * PAGE, 9);
        assert_eq!(mapped(&again).0, "r-xp");
    }

    #[test]
    fn freed_neighbours_become_one() {
        let mut slab = Slab { start: PAGE, len: 8 * PAGE, free: BTreeMap::from([(PAGE, 8 * PAGE)]) };
        let taken: Vec<usize> = (0..4).map(|_| slab.take(2 * PAGE).unwrap()).collect();
        assert_eq!(slab.take(PAGE), None);
        slab.give_back(taken[0], 2 * PAGE);
        slab.give_back(taken[2], 2 * PAGE);
        assert_eq!(slab.take(4 * PAGE), None);
        slab.give_back(taken[1], 2 * PAGE);
        assert_eq!(slab.take(6 * PAGE), Some(PAGE));
        slab.give_back(PAGE, 6 * PAGE);
        slab.give_back(taken[3], 2 * PAGE);
        assert!(slab.is_free());
    }

    #[test]
    fn long_code_has_a_mapping_of_its_own_and_no_length_overflows() {
        assert_eq!(mapped(&filled(SLAB + 1, 3)).0, "r-xp");
        assert!(Pages::new(usize::MAX).is_err());
    }
}
