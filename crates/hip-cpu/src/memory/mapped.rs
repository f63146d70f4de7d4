//! Virtual memory management: address ranges that are reserved, physical memory that is created, and views of the one at the other.
//!
//! Physical memory is a file without a name, so several ranges, and several processes, can see it. A reservation is an
//! inaccessible mapping; a view replaces a part of it, and nothing can be read there until access is set. Lock order: `SPACE`,
//! then the list of allocations.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use hip_sys::*;
use parking_lot::Mutex;

use super::{ALL, Allocation, Backing, Kind, NEXT_ID, USED, take_from_the_device, watched};
use crate::error::Result;

/// Sizes and addresses are multiples of it, as on NVIDIA's devices.
pub const GRANULARITY: usize = 2 << 20;

/// What may be done with a view, in the numbers of `hipMemAccessFlags`.
pub const ACCESS_NONE: u32 = 0;
pub const ACCESS_READ: u32 = 1;
pub const ACCESS_READ_WRITE: u32 = 3;

/// Memory that lies nowhere until it is mapped. It goes when neither a handle nor a view is left.
pub struct Physical {
    file: OwnedFd,
    pub bytes: usize,
    pub properties: hipMemAllocationProp,
    /// How often it was created, imported or retained, less the releases.
    pub handles: AtomicU32,
    /// Imported memory counts in the process that made it.
    is_own: bool,
}

// SAFETY: the pointer among the properties is kept for the program and never followed.
unsafe impl Send for Physical {}
// SAFETY: as above.
unsafe impl Sync for Physical {}

impl Physical {
    pub fn create(bytes: usize, properties: hipMemAllocationProp) -> Result<Physical> {
        take_from_the_device(bytes)?;
        match file(bytes) {
            Ok(file) => Ok(Physical { file, bytes, properties, handles: AtomicU32::new(1), is_own: true }),
            Err(error) => {
                USED.fetch_sub(bytes, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Another process's, by a descriptor that stays the program's.
    pub fn import(descriptor: c_int, properties: hipMemAllocationProp) -> Result<Physical> {
        let file = duplicate(descriptor)?;
        let bytes = len_of(&file)?;
        if bytes == 0 || bytes % GRANULARITY != 0 {
            return Err(hipErrorInvalidValue);
        }
        Ok(Physical { file, bytes, properties, handles: AtomicU32::new(1), is_own: false })
    }

    /// A new descriptor for the program to pass on and to close.
    pub fn export(&self) -> Result<c_int> {
        use std::os::fd::IntoRawFd;
        Ok(self.file.try_clone().map_err(|_| hipErrorOutOfMemory)?.into_raw_fd())
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        if self.is_own {
            USED.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

/// A file without a name that holds `bytes` zeros.
pub fn file(bytes: usize) -> Result<OwnedFd> {
    // SAFETY: a C string and flags; the result is checked.
    let descriptor = unsafe { libc::memfd_create(c"cudaway".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(hipErrorOutOfMemory);
    }
    // SAFETY: just made, and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
    grow(&file, bytes)?;
    Ok(file)
}

pub fn grow(file: &OwnedFd, bytes: usize) -> Result {
    let length = libc::off_t::try_from(bytes).map_err(|_| hipErrorOutOfMemory)?;
    // SAFETY: a descriptor of ours.
    match unsafe { libc::ftruncate(file.as_raw_fd(), length) } {
        0 => Ok(()),
        _ => Err(hipErrorOutOfMemory),
    }
}

/// A descriptor of our own for what a program's descriptor names.
pub fn duplicate(descriptor: c_int) -> Result<OwnedFd> {
    if descriptor < 0 {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: HIP's contract: an open descriptor; a closed one is an error of `dup`.
    unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned().map_err(|_| hipErrorInvalidValue)
}

pub fn len_of(file: &OwnedFd) -> Result<usize> {
    // SAFETY: all zeros is a value of the structure.
    let mut about: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a descriptor of ours and a writable structure.
    if unsafe { libc::fstat(file.as_raw_fd(), &mut about) } != 0 {
        return Err(hipErrorInvalidValue);
    }
    usize::try_from(about.st_size).map_err(|_| hipErrorInvalidValue)
}

/// A part of a file, where the kernel wants it.
pub fn view_anywhere(file: &OwnedFd, offset: usize, bytes: usize) -> Result<usize> {
    let offset = libc::off_t::try_from(offset).map_err(|_| hipErrorInvalidValue)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (nowhere, shared) = (std::ptr::null_mut(), libc::MAP_SHARED);
    // SAFETY: a fresh mapping; the result is checked.
    let at = unsafe { libc::mmap(nowhere, bytes, protection, shared, file.as_raw_fd(), offset) };
    if at == libc::MAP_FAILED { Err(hipErrorInvalidValue) } else { Ok(at as usize) }
}

struct View {
    bytes: usize,
    physical: Arc<Physical>,
}

#[derive(Default)]
struct Space {
    /// Bytes by start.
    reserved: BTreeMap<usize, usize>,
    views: BTreeMap<usize, View>,
}

/// How many reservations there are: programs without any pay nothing for them.
static N_RESERVED: AtomicUsize = AtomicUsize::new(0);

static SPACE: Mutex<Space> = Mutex::new(Space { reserved: BTreeMap::new(), views: BTreeMap::new() });

impl Space {
    /// The starts of the views of a range, which has to begin and end with views and have no hole.
    fn covering(&self, base: usize, bytes: usize) -> Result<Vec<usize>> {
        let end = base.checked_add(bytes).ok_or(hipErrorInvalidValue)?;
        let (mut starts, mut next) = (vec![], base);
        for (&start, view) in self.views.range(base..end) {
            if start != next {
                return Err(hipErrorInvalidValue);
            }
            starts.push(start);
            next = start + view.bytes;
        }
        if next == end && bytes > 0 { Ok(starts) } else { Err(hipErrorInvalidValue) }
    }
}

fn is_whole(value: usize) -> bool {
    value > 0 && value.is_multiple_of(GRANULARITY)
}

/// Reserves addresses, at `wanted` if nothing lies there.
pub fn reserve(bytes: usize, alignment: usize, wanted: usize) -> Result<usize> {
    if !is_whole(bytes) || (alignment != 0 && !alignment.is_power_of_two()) {
        return Err(hipErrorInvalidValue);
    }
    let alignment = alignment.max(GRANULARITY);
    let wanted = if wanted.is_multiple_of(alignment) { wanted } else { 0 };
    let at_wanted = (wanted != 0).then(|| inaccessible(wanted, bytes, libc::MAP_FIXED_NOREPLACE));
    let base = match at_wanted.flatten().or_else(|| with_room(bytes, alignment)) {
        Some(base) => base,
        None => aligned(bytes, alignment)?,
    };
    SPACE.lock().reserved.insert(base, bytes);
    N_RESERVED.fetch_add(1, Ordering::Release);
    Ok(base)
}

/// Addresses that Linux gives to nobody by itself, with room behind each reservation: programs that want to grow ask for the
/// addresses that follow theirs.
fn with_room(bytes: usize, alignment: usize) -> Option<usize> {
    const FIRST: usize = 1 << 44;
    const END: usize = 5 << 44;
    const ROOM: usize = 1 << 30;
    static NEXT: AtomicUsize = AtomicUsize::new(FIRST);
    let place = |next: usize| {
        let base = next.checked_next_multiple_of(alignment)?;
        let end = base.checked_add(bytes)?.checked_add(ROOM)?.checked_next_multiple_of(ROOM)?;
        (end <= END).then_some((base, end))
    };
    let before = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| Some(place(next)?.1)).ok()?;
    inaccessible(place(before)?.0, bytes, libc::MAP_FIXED_NOREPLACE)
}

/// More than is needed, and what is too much given back.
fn aligned(bytes: usize, alignment: usize) -> Result<usize> {
    let all = bytes.checked_add(alignment).ok_or(hipErrorOutOfMemory)?;
    let at = inaccessible(0, all, 0).ok_or(hipErrorOutOfMemory)?;
    let base = at.next_multiple_of(alignment);
    for (start, end) in [(at, base), (base + bytes, at + all)] {
        if start < end {
            // SAFETY: a part of the mapping just made.
            unsafe { libc::munmap(start as *mut _, end - start) };
        }
    }
    Ok(base)
}

fn inaccessible(at: usize, bytes: usize, flag: c_int) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flag;
    // SAFETY: fresh, or in place of a view that its caller owns; the result is checked.
    let found = unsafe { libc::mmap(at as *mut _, bytes, libc::PROT_NONE, flags, -1, 0) };
    (found != libc::MAP_FAILED && (at == 0 || found as usize == at)).then_some(found as usize)
}

/// Gives a whole reservation back, once nothing is mapped in it.
pub fn unreserve(base: usize, bytes: usize) -> Result {
    let mut space = SPACE.lock();
    if space.reserved.get(&base) != Some(&bytes) || space.views.range(base..base + bytes).next().is_some() {
        return Err(hipErrorInvalidValue);
    }
    space.reserved.remove(&base);
    N_RESERVED.fetch_sub(1, Ordering::Release);
    // SAFETY: exactly what was reserved; a refusal leaves addresses in use and nothing else.
    unsafe { libc::munmap(base as *mut _, bytes) };
    Ok(())
}

/// Whether an address is reserved: it is no memory of the program's, mapped or not.
pub fn is_reserved(address: usize) -> bool {
    N_RESERVED.load(Ordering::Acquire) > 0
        && SPACE
            .lock()
            .reserved
            .range(..=address)
            .next_back()
            .is_some_and(|(start, bytes)| address - start < *bytes)
}

/// Maps memory into a reservation, inaccessible.
pub fn map(base: usize, bytes: usize, physical: Arc<Physical>) -> Result {
    if !is_whole(bytes) || !base.is_multiple_of(GRANULARITY) || bytes > physical.bytes {
        return Err(hipErrorInvalidValue);
    }
    let end = base.checked_add(bytes).ok_or(hipErrorInvalidValue)?;
    let mut space = SPACE.lock();
    let inside = space.reserved.range(..=base).next_back().is_some_and(|(start, size)| end <= start + size);
    let before = space.views.range(..end).next_back();
    if !inside || before.is_some_and(|(start, view)| start + view.bytes > base) {
        return Err(hipErrorInvalidValue);
    }
    let (flags, file) = (libc::MAP_SHARED | libc::MAP_FIXED, physical.file.as_raw_fd());
    // SAFETY: inside a reservation of ours, in which nothing else is mapped.
    let at = unsafe { libc::mmap(base as *mut _, bytes, libc::PROT_NONE, flags, file, 0) };
    if at == libc::MAP_FAILED {
        return Err(hipErrorOutOfMemory);
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let (kind, flags, layout) = (Kind::Mapped, ACCESS_NONE, Backing::Foreign);
    ALL.write().insert(base, Allocation { base, bytes, kind, flags, id, pool: 0, is_global: false, layout });
    space.views.insert(base, View { bytes, physical });
    Ok(())
}

/// Takes whole views away. Work that uses them must be done.
pub fn unmap(base: usize, bytes: usize) -> Result {
    let gone: Vec<View> = {
        let mut space = SPACE.lock();
        let starts = space.covering(base, bytes)?;
        let mut all = ALL.write();
        for start in &starts {
            all.remove(start);
            watched::remove(*start);
        }
        inaccessible(base, bytes, libc::MAP_FIXED).ok_or(hipErrorOutOfMemory)?;
        starts.iter().filter_map(|start| space.views.remove(start)).collect()
    };
    // The last views of released memory give it back here, with no lock held.
    drop(gone);
    Ok(())
}

/// Sets what may be done with whole views.
pub fn set_access(base: usize, bytes: usize, access: u32) -> Result {
    let protection = match access {
        ACCESS_NONE => libc::PROT_NONE,
        ACCESS_READ => libc::PROT_READ,
        ACCESS_READ_WRITE => libc::PROT_READ | libc::PROT_WRITE,
        _ => return Err(hipErrorInvalidValue),
    };
    let space = SPACE.lock();
    let starts = space.covering(base, bytes)?;
    // SAFETY: views of ours, and nothing but views.
    if unsafe { libc::mprotect(base as *mut _, bytes, protection) } != 0 {
        return Err(hipErrorOutOfMemory);
    }
    let mut all = ALL.write();
    for start in starts {
        if let Some(view) = all.get_mut(&start) {
            view.flags = access;
            match access {
                ACCESS_NONE => watched::remove(start),
                _ => watched::add(start, view.bytes),
            }
        }
    }
    Ok(())
}

/// What is mapped at an address.
pub fn physical_at(address: usize) -> Option<Arc<Physical>> {
    let space = SPACE.lock();
    let (start, view) = space.views.range(..=address).next_back()?;
    (address - start < view.bytes).then(|| view.physical.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    fn memory_of(bytes: usize) -> Arc<Physical> {
        // SAFETY: numbers and a null pointer: all zeros is a value of the structure.
        Arc::new(Physical::create(bytes, unsafe { std::mem::zeroed() }).unwrap())
    }

    #[test]
    fn two_views_show_the_same_memory_and_neighbours_are_one_range() {
        let base = reserve(3 * GRANULARITY, 0, 0).unwrap();
        assert_eq!(base % GRANULARITY, 0);
        let physical = memory_of(GRANULARITY);
        map(base, GRANULARITY, physical.clone()).unwrap();
        map(base + GRANULARITY, GRANULARITY, physical).unwrap();
        assert_eq!(memory::range(base, 1).unwrap_err(), hipErrorInvalidValue, "no access yet");
        set_access(base, 2 * GRANULARITY, ACCESS_READ_WRITE).unwrap();
        // SAFETY: both views may be read and written.
        unsafe {
            (base as *mut u32).add(5).write(77);
            assert_eq!(((base + GRANULARITY) as *const u32).add(5).read(), 77);
        }
        assert!(memory::range(base + 8, 2 * GRANULARITY - 8).unwrap().is_some());
        assert_eq!(memory::range(base + 8, 2 * GRANULARITY).unwrap_err(), hipErrorInvalidValue);
        assert_eq!(unmap(base, GRANULARITY / 2), Err(hipErrorInvalidValue), "half a view");
        assert_eq!(unmap(base, 3 * GRANULARITY), Err(hipErrorInvalidValue), "a hole at the end");
        assert_eq!(unreserve(base, 3 * GRANULARITY), Err(hipErrorInvalidValue), "still in use");
        unmap(base, 2 * GRANULARITY).unwrap();
        assert_eq!(
            memory::range(base, 1).unwrap_err(),
            hipErrorInvalidValue,
            "reserved is not the program's"
        );
        unreserve(base, 3 * GRANULARITY).unwrap();
        assert!(memory::range(base, 1).unwrap().is_none());
    }

    #[test]
    fn the_addresses_behind_a_reservation_can_be_reserved_too() {
        let base = reserve(GRANULARITY, 0, 0).unwrap();
        let behind = reserve(3 * GRANULARITY, 0, base + GRANULARITY).unwrap();
        assert_eq!(behind, base + GRANULARITY);
        let elsewhere = reserve(GRANULARITY, 1 << 40, base).unwrap();
        assert!(elsewhere != base && elsewhere.is_multiple_of(1 << 40));
        for (at, n) in [(base, 1), (behind, 3), (elsewhere, 1)] {
            unreserve(at, n * GRANULARITY).unwrap();
        }
    }

    #[test]
    fn what_may_only_be_read_is_no_target() {
        let base = reserve(GRANULARITY, 0, 0).unwrap();
        map(base, GRANULARITY, memory_of(GRANULARITY)).unwrap();
        assert_eq!(map(base, GRANULARITY, memory_of(GRANULARITY)), Err(hipErrorInvalidValue), "taken");
        set_access(base, GRANULARITY, ACCESS_READ).unwrap();
        assert!(memory::range(base, 16).is_ok());
        assert_eq!(memory::target(base, 16).unwrap_err(), hipErrorInvalidValue);
        unmap(base, GRANULARITY).unwrap();
        unreserve(base, GRANULARITY).unwrap();
    }

    #[test]
    fn an_exported_descriptor_leads_to_the_same_bytes() {
        let physical = memory_of(GRANULARITY);
        let descriptor = physical.export().unwrap();
        // SAFETY: numbers and a null pointer.
        let again = Physical::import(descriptor, unsafe { std::mem::zeroed() }).unwrap();
        // SAFETY: the descriptor is ours; the import has its own.
        unsafe { libc::close(descriptor) };
        assert_eq!(again.bytes, GRANULARITY);
        let (a, b) =
            (view_anywhere(&physical.file, 0, 4096).unwrap(), view_anywhere(&again.file, 0, 4096).unwrap());
        // SAFETY: both views hold 4096 bytes; they go after this.
        unsafe {
            (a as *mut u64).write(0x1234_5678);
            assert_eq!((b as *const u64).read(), 0x1234_5678);
            libc::munmap(a as *mut _, 4096);
            libc::munmap(b as *mut _, 4096);
        }
    }
}
