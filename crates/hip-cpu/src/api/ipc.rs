//! Memory and events of other processes, and memory of other APIs.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use border::Out;
use hip_sys::*;
use parking_lot::Mutex;

use crate::device::healthy;
use crate::error::Result;
use crate::handle::Registry;
use crate::memory::{self, Kind, mapped, shared};
use crate::ticket::{self, Ticket};
use crate::{event, stream};

/// Work that was queued before comes first; a kernel that another thread launches meanwhile must not use the memory.
pub fn hipIpcGetMemHandle(handle: Out<'_, hipIpcMemHandle_t>, devPtr: *mut c_void) -> Result {
    healthy()?;
    // HIP: any address of a plain allocation stands for all of it.
    let found = memory::find(devPtr as usize).ok_or(hipErrorInvalidValue)?;
    if found.kind != Kind::Device || found.is_global || found.pool != 0 || shared::is_view(&found) {
        return Err(hipErrorInvalidValue);
    }
    stream::quiesce();
    let reserved = shared::share(&found)?.write().map(|byte| byte as _);
    handle.write(hipIpcMemHandle_t { reserved });
    Ok(())
}

pub fn hipIpcOpenMemHandle(devPtr: Out<'_, *mut c_void>, handle: hipIpcMemHandle_t, flags: c_uint) -> Result {
    healthy()?;
    // HIP: hipIpcMemLazyEnablePeerAccess is the one there is.
    if flags > 1 {
        return Err(hipErrorInvalidValue);
    }
    let ticket = Ticket::read(ticket::Kind::Memory, &handle.reserved.map(|byte| byte as u8))?;
    let opened = shared::open(&ticket.open()?, &ticket, 0)?;
    devPtr.write(opened.base as *mut c_void);
    Ok(())
}

pub fn hipIpcCloseMemHandle(devPtr: *mut c_void) -> Result {
    if !memory::at(devPtr as usize).is_some_and(|found| shared::is_view(&found) && found.pool == 0) {
        return Err(hipErrorInvalidValue);
    }
    // Work that uses it comes first.
    stream::quiesce();
    let taken = memory::take(devPtr as usize, &[Kind::Device]).ok_or(hipErrorInvalidValue)?;
    memory::release(&taken);
    Ok(())
}

pub fn hipIpcGetEventHandle(handle: Out<'_, hipIpcEventHandle_t>, event: hipEvent_t) -> Result {
    let ticket = event::of_handle(event)?.ticket()?;
    handle.write(hipIpcEventHandle_t { reserved: ticket.write().map(|byte| byte as _) });
    Ok(())
}

pub fn hipIpcOpenEventHandle(event: Out<'_, hipEvent_t>, handle: hipIpcEventHandle_t) -> Result {
    healthy()?;
    let ticket = Ticket::read(ticket::Kind::Event, &handle.reserved.map(|byte| byte as u8))?;
    event.write(event::open(ticket.open()?)?);
    Ok(())
}

/// Memory of another API, mapped as long as it is imported.
struct External {
    base: usize,
    bytes: usize,
    /// Buffers in it that are not freed yet keep nothing: HIP asks to free them first.
    _file: OwnedFd,
}

impl Drop for External {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(self.base as *mut _, self.bytes) };
    }
}

static EXTERNAL: Registry<External> = Registry::new();
/// Buffers handed out, by address, and how often: two of the same place are one allocation.
static LENT: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// The members of `hipExternalMemoryHandleDesc` that a descriptor needs.
#[repr(C)]
struct HandleDesc {
    r#type: c_int,
    handle: HandleUnion,
    size: u64,
    flags: c_uint,
}

#[repr(C)]
union HandleUnion {
    fd: c_int,
    _win32: [*mut c_void; 2],
}

/// `hipExternalMemoryHandleTypeOpaqueFd`
const OPAQUE_DESCRIPTOR: c_int = 1;

/// A file that can be mapped, as software drivers for graphics export theirs. HIP: the descriptor is ours from here on.
///
/// # Safety
/// `memHandleDesc` is NULL, or points to a `hipExternalMemoryHandleDesc`, whose descriptor is the caller's.
pub unsafe fn hipImportExternalMemory(
    extMem_out: Out<'_, hipExternalMemory_t>,
    memHandleDesc: *const c_void,
) -> Result {
    healthy()?;
    // SAFETY: the caller's promise.
    let description = unsafe { memHandleDesc.cast::<HandleDesc>().as_ref() }.ok_or(hipErrorInvalidValue)?;
    if description.r#type != OPAQUE_DESCRIPTOR {
        return Err(hipErrorNotSupported);
    }
    let bytes = usize::try_from(description.size).map_err(|_| hipErrorInvalidValue)?;
    // SAFETY: the type says which member is set.
    let descriptor = unsafe { description.handle.fd };
    if bytes == 0 || descriptor < 0 {
        return Err(hipErrorInvalidValue);
    }
    let file = mapped::duplicate(descriptor)?;
    if mapped::len_of(&file)? < bytes {
        return Err(hipErrorInvalidValue);
    }
    let base = mapped::view_anywhere(&file, 0, bytes)?;
    // SAFETY: HIP's contract hands the descriptor over when the import succeeds.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
    extMem_out.write(EXTERNAL.add(Arc::new(External { base, bytes, _file: file })) as hipExternalMemory_t);
    Ok(())
}

/// The members of `hipExternalMemoryBufferDesc`.
#[repr(C)]
struct BufferDesc {
    offset: u64,
    size: u64,
    flags: c_uint,
}

/// The buffer is given back by `hipFree`.
///
/// # Safety
/// `bufferDesc` is NULL, or points to a `hipExternalMemoryBufferDesc`.
pub unsafe fn hipExternalMemoryGetMappedBuffer(
    devPtr: Out<'_, *mut c_void>,
    extMem: hipExternalMemory_t,
    bufferDesc: *const c_void,
) -> Result {
    let external = EXTERNAL.get(extMem as usize).map_err(|_| hipErrorInvalidValue)?;
    // SAFETY: the caller's promise.
    let description = unsafe { bufferDesc.cast::<BufferDesc>().as_ref() }.ok_or(hipErrorInvalidValue)?;
    let end = description.offset.checked_add(description.size);
    let is_inside = end.is_some_and(|end| end <= external.bytes as u64);
    if description.flags != 0 || description.size == 0 || !is_inside {
        return Err(hipErrorInvalidValue);
    }
    let at = external.base + description.offset as usize;
    if memory::at(at).is_some() {
        return Err(hipErrorNotSupported);
    }
    shared::lend(at, description.size as usize);
    LENT.lock().insert(at, extMem as usize);
    devPtr.write(at as *mut c_void);
    Ok(())
}

/// Buffers that were not freed are gone with it.
pub fn hipDestroyExternalMemory(extMem: hipExternalMemory_t) -> Result {
    EXTERNAL.get(extMem as usize).map_err(|_| hipErrorInvalidValue)?;
    stream::quiesce();
    let lent: Vec<usize> = {
        let mut lent = LENT.lock();
        let own = lent.iter().filter(|(_, owner)| **owner == extMem as usize).map(|(at, _)| *at);
        let own: Vec<usize> = own.collect();
        lent.retain(|_, owner| *owner != extMem as usize);
        own
    };
    for at in lent {
        if let Some(taken) = memory::take(at, &[Kind::Device]) {
            memory::release(&taken);
        }
    }
    EXTERNAL.remove(extMem as usize).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, IntoRawFd};

    /// What the two structures look like in C.
    fn import(descriptor: c_int, bytes: u64) -> (hipExternalMemory_t, Result) {
        let mut handle: hipExternalMemory_t = std::ptr::null_mut();
        let handle_desc = HandleDesc {
            r#type: OPAQUE_DESCRIPTOR,
            handle: HandleUnion { fd: descriptor },
            size: bytes,
            flags: 0,
        };
        // SAFETY: a description of ours.
        let answer =
            unsafe { hipImportExternalMemory((&mut handle).into(), (&raw const handle_desc).cast()) };
        (handle, answer)
    }

    #[test]
    fn a_buffer_in_external_memory_shows_the_file_until_it_is_destroyed() {
        let file = mapped::file(8192).unwrap();
        let other = mapped::view_anywhere(&file, 0, 8192).unwrap();
        assert_eq!(import(file.as_raw_fd(), 8193).1, Err(hipErrorInvalidValue), "more than the file has");
        let (memory, answer) = import(file.into_raw_fd(), 8192);
        answer.unwrap();
        let buffer = |offset: u64, size: u64| {
            let mut at: *mut c_void = std::ptr::null_mut();
            let description = BufferDesc { offset, size, flags: 0 };
            // SAFETY: a description of ours.
            unsafe {
                hipExternalMemoryGetMappedBuffer((&mut at).into(), memory, (&raw const description).cast())
            }
            .map(|()| at)
        };
        assert_eq!(buffer(4096, 4097), Err(hipErrorInvalidValue));
        let at = buffer(4096, 4096).unwrap();
        // SAFETY: both show the second page of the file.
        unsafe {
            at.cast::<u32>().write(0xabcd);
            assert_eq!(((other + 4096) as *const u32).read(), 0xabcd);
        }
        assert_eq!(crate::memory::find(at as usize).map(|found| found.bytes), Some(4096));
        crate::api::hipFree(at).unwrap();
        let again = buffer(4096, 16).unwrap();
        let id = crate::memory::find(again as usize).unwrap().id;
        hipDestroyExternalMemory(memory).unwrap();
        let there = crate::memory::find(again as usize);
        assert!(there.is_none_or(|other| other.id != id), "a buffer goes with its memory");
        assert_eq!(hipDestroyExternalMemory(memory), Err(hipErrorInvalidValue));
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(other as *mut _, 8192) };
    }
}
