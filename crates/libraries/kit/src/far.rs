//! Memory that the host cannot read, which an AMD GPU's is to us: our code for the CPU works on copies of it.
//!
//! A call names what its work follows ([`near`]). Each allocation that it names something of is shadowed: the host has a range of
//! addresses of the same size, in which everything lies as far apart as on the device, so that arguments that overlap or are one
//! do so in the copies. Only what is named is copied, what nobody named cannot be followed there, and only what the work
//! has changed goes back. Shadows last as long as the call ([`end`], at the border).
//!
//! The rule: all of this is the calling thread's; no other thread names anything.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use std::cell::RefCell;
use std::collections::BTreeMap;

use cuda_abi::{CUDA_MEMCPY2D, CUdeviceptr, CUmemorytype, CUpointer_attribute, CUresult, CUstream};

use crate::driver::{Driver, check, driver};
use crate::{Addresses, Error, Result, stream};

/// Bytes as a call names them: some behind each other, once, or again and again at a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    width: usize,
    pitch: usize,
    height: usize,
}

impl Extent {
    /// So many values behind each other.
    pub fn of<T>(count: usize) -> Extent {
        Extent::bytes(count.saturating_mul(size_of::<T>()))
    }

    pub fn bytes(width: usize) -> Extent {
        Extent { width, pitch: width, height: usize::from(width > 0) }
    }

    /// So many lines of so many values, from each of which to the next it is so many values.
    pub fn lines<T>(count: usize, width: usize, pitch: usize) -> Extent {
        Extent::lines_of(count, width, pitch, size_of::<T>())
    }

    /// The same of values of so many bytes.
    pub fn lines_of(count: usize, width: usize, pitch: usize, value_bytes: usize) -> Extent {
        let [width, pitch] = [width, pitch].map(|values| values.saturating_mul(value_bytes));
        match count {
            0 | 1 => Extent::bytes(if count == 0 { 0 } else { width }),
            // Lines that overlap are one.
            _ if pitch <= width => Extent::bytes(pitch.saturating_mul(count - 1).saturating_add(width)),
            _ => Extent { width, pitch, height: if width == 0 { 0 } else { count } },
        }
    }

    /// From the first byte to the last.
    fn span(&self) -> usize {
        self.pitch.saturating_mul(self.height.saturating_sub(1)).saturating_add(self.width)
    }

    /// Whether to copy what lies between the lines is less than to copy them one by one.
    fn is_dense(&self) -> bool {
        self.height == 1 || self.pitch / 2 <= self.width
    }
}

#[derive(Default)]
struct Call {
    shadows: Vec<Shadow>,
    /// While the work runs, whose stream has come to it: what is named then is copied at once.
    running: Option<CUstream>,
}

thread_local! {
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// What the thread's call has named. None behind the thread's end, where a program's destructors still call libraries.
fn with<R>(body: impl FnOnce(&mut Option<Call>) -> R) -> Option<R> {
    CALL.try_with(|call| body(&mut call.borrow_mut())).ok()
}

/// From here on the thread's call names memory of a device that the host cannot read.
pub(crate) fn begin() {
    with(|call| {
        call.get_or_insert_default();
    });
}

/// The call is done. Where there is no device of the kind, nothing is.
pub fn end() {
    let ended = with(Option::take);
    drop(ended);
}

/// The host's address of what a call names: another one if it lies in memory that the host cannot read.
///
/// Known to all of them: what is named is copied before the work runs, and what the work has changed of it goes back.
pub fn near<T>(at: *mut T, extent: Extent) -> Result<*mut T> {
    let near = with(|call| match call {
        Some(call) if !at.is_null() && extent.height > 0 => call.near(at, |_| extent),
        _ => Ok(at),
    });
    near.unwrap_or(Ok(at))
}

/// As [`near`] where nobody says how much lies there: what the call has named already holds, else all to the allocation's end.
pub fn near_all<T>(at: *mut T) -> Result<*mut T> {
    let near = with(|call| match call {
        Some(call) if !at.is_null() => match call.known(at) {
            Some(known) => Ok(known),
            None => call.near(at, Extent::bytes),
        },
        _ => Ok(at),
    });
    near.unwrap_or(Ok(at))
}

/// As [`near`], within the work.
///
/// # Panics
/// With the [`Error`], which becomes the call's answer.
pub fn near_in_work<T>(at: *mut T, extent: Extent) -> *mut T {
    near(at, extent).unwrap_or_else(|error| std::panic::resume_unwind(Box::new(error)))
}

/// Writes values where the host may not be able to, with no regard to streams: they are there when this comes back.
///
/// # Safety
/// There is room for as many, which nobody else uses meanwhile.
pub unsafe fn write<T: Copy>(values: &[T], to: *mut T) -> Result {
    let is_far = with(|call| call.is_some()).unwrap_or(true) && allocation(to.addr() as u64)?.is_some();
    if !is_far {
        // SAFETY: the caller's word.
        unsafe { core::ptr::copy_nonoverlapping(values.as_ptr(), to, values.len()) };
        return Ok(());
    }
    let (extent, none) = (Extent::bytes(size_of_val(values)), CUstream::default());
    if extent.height > 0 {
        copy_there(to.addr() as u64, values.as_ptr().cast(), extent, none)?;
    }
    stream::synchronize(none)
}

/// As [`near_in_work`], of addresses that say how much lies there, which they may not have known before.
///
/// # Panics
/// As it does.
pub fn all_in_work<A: Addresses>(at: A) -> A {
    at.near().unwrap_or_else(|error| std::panic::resume_unwind(Box::new(error)))
}

/// Runs the work when the stream has come to it, on this thread: what it follows is here then, and what it has changed is
/// on the device when this comes back.
pub(crate) fn run<R>(stream: CUstream, work: impl FnOnce() -> R) -> Result<R> {
    if stream::is_capturing(stream)? {
        return Err(Error::NotSupported("our own code on copies of an AMD GPU's memory, in a graph"));
    }
    stream::synchronize(stream)?;
    with_call(|call| {
        call.fetch(stream)?;
        call.running = Some(stream);
        Ok(())
    })?;
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    with_call(|call| {
        call.running = None;
        match done {
            Ok(answer) => call.give_back(stream).map(|()| answer),
            Err(panic) => match panic.downcast::<Error>() {
                Ok(error) => Err(*error),
                // The border tells of it.
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    })
}

fn with_call<R>(body: impl FnOnce(&mut Call) -> Result<R>) -> Result<R> {
    let done = with(|call| body(call.get_or_insert_default()));
    done.unwrap_or(Err(Error::NotSupported(
        "our own code on copies of an AMD GPU's memory, behind a thread's end",
    )))
}

/// An allocation of a device that the host cannot read, if the address is in one.
fn allocation(at: CUdeviceptr) -> Result<Option<Range<u64>>> {
    let driver = driver()?;
    let mut kind = CUmemorytype::CU_MEMORYTYPE_HOST;
    if !ask(driver, &mut kind, CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at)
        || kind != CUmemorytype::CU_MEMORYTYPE_DEVICE
    {
        return Ok(None);
    }
    let mut is_managed: c_int = 0;
    ask(driver, &mut is_managed, CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, at);
    if is_managed != 0 {
        return Ok(None);
    }
    let (mut base, mut len_bytes) = (0u64, 0usize);
    if ask(driver, &mut base, CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at)
        && ask(driver, &mut len_bytes, CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE, at)
    {
        return Ok(Some(base..base + len_bytes as u64));
    }
    Err(Error::NotSupported("memory of a device of which the driver does not tell where it ends"))
}

/// Whether the driver knows the address; `T` is the attribute's type.
fn ask<T>(driver: &Driver, answer: &mut T, attribute: CUpointer_attribute, at: CUdeviceptr) -> bool {
    // SAFETY: a place for the answer.
    let code = unsafe { (driver.cuPointerGetAttribute)((&raw mut *answer).cast(), attribute, at) };
    code == CUresult::CUDA_SUCCESS
}

impl Call {
    /// The shadow that has the address, and how far in it lies.
    fn shadow(&mut self, at: u64) -> Option<(&mut Shadow, usize)> {
        let shadow = self.shadows.iter_mut().find(|shadow| shadow.device.contains(&at))?;
        let offset = (at - shadow.device.start) as usize;
        Some((shadow, offset))
    }

    fn known<T>(&mut self, at: *mut T) -> Option<*mut T> {
        let (shadow, offset) = self.shadow(at.addr() as u64)?;
        shadow.is_covered(offset).then(|| shadow.memory.at(offset).cast())
    }

    /// `extent` is told how many bytes are left of the allocation.
    fn near<T>(&mut self, at: *mut T, extent: impl FnOnce(usize) -> Extent) -> Result<*mut T> {
        let address = at.addr() as u64;
        let Some(range) = allocation(address)? else { return Ok(at) };
        let extent = extent((range.end - address) as usize);
        if self.shadow(address).is_none() {
            self.shadows.push(Shadow::of(range)?);
        }
        let running = self.running;
        let Some((shadow, offset)) = self.shadow(address) else { return Ok(at) };
        if extent.span() > shadow.device.len() - offset {
            return Err(Error::NotSupported("an argument that is longer than its allocation"));
        }
        shadow.name(offset, extent)?;
        if let Some(stream) = running {
            shadow.fetch(stream)?;
        }
        Ok(shadow.memory.at(offset).cast())
    }

    fn fetch(&mut self, stream: CUstream) -> Result {
        self.shadows.iter_mut().try_for_each(|shadow| shadow.fetch(stream))
    }

    fn give_back(&mut self, stream: CUstream) -> Result {
        self.shadows.iter_mut().try_for_each(|shadow| shadow.give_back(stream))?;
        stream::synchronize(stream)
    }
}

/// What one allocation has on the host.
struct Shadow {
    device: Device,
    /// What the work follows.
    memory: Mapping,
    /// The same bytes as they are on the device.
    came: Mapping,
    /// What has been copied or will be: ends by beginnings, apart from each other.
    covered: BTreeMap<usize, usize>,
    /// What is still to be copied.
    pending: Vec<(usize, Extent)>,
    named: Vec<(usize, Extent)>,
}

/// Addresses of the device's.
struct Device {
    start: u64,
    end: u64,
}

impl Device {
    fn contains(&self, at: &u64) -> bool {
        (self.start..self.end).contains(at)
    }

    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }
}

impl Shadow {
    /// Of an allocation, and of what lies beside it without a gap: mappings of virtual memory are one to who uses them.
    fn of(range: Range<u64>) -> Result<Shadow> {
        let (mut start, mut end) = (range.start, range.end);
        while let Some(next) = allocation(end)? {
            end = next.end;
        }
        while let Some(before) = allocation(start.wrapping_sub(1))? {
            start = before.start;
        }
        let device = Device { start, end };
        let (memory, came) = (Mapping::new(device.len())?, Mapping::new(device.len())?);
        let (covered, pending, named) = (BTreeMap::new(), vec![], vec![]);
        Ok(Shadow { device, memory, came, covered, pending, named })
    }

    fn is_covered(&self, offset: usize) -> bool {
        self.covered.range(..=offset).next_back().is_some_and(|(_, end)| offset < *end)
    }

    fn name(&mut self, offset: usize, extent: Extent) -> Result {
        if self.named.last() != Some(&(offset, extent)) {
            self.named.push((offset, extent));
        }
        if extent.is_dense() {
            return self.cover(offset..offset + extent.span());
        }
        let span = offset..offset + extent.span();
        let before = self.covered.range(..span.end).next_back();
        if before.is_some_and(|(_, end)| *end > span.start) {
            let line = |number| offset + number * extent.pitch;
            return (0..extent.height).try_for_each(|n| self.cover(line(n)..line(n) + extent.width));
        }
        for number in 0..extent.height {
            let start = offset + number * extent.pitch;
            self.open(start..start + extent.width)?;
            self.covered.insert(start, start + extent.width);
        }
        self.pending.push((offset, extent));
        Ok(())
    }

    /// Asks for what is not there of a range.
    fn cover(&mut self, range: Range<usize>) -> Result {
        let mut start = range.start;
        if let Some((_, end)) = self.covered.range(..=start).next_back() {
            start = start.max(*end);
        }
        if start >= range.end {
            return Ok(());
        }
        let mut missing = vec![];
        for (next, end) in self.covered.range(start..range.end) {
            if *next > start {
                missing.push(start..*next);
            }
            start = *end;
        }
        if start < range.end {
            missing.push(start..range.end);
        }
        for range in missing {
            self.open(range.clone())?;
            self.covered.insert(range.start, range.end);
            self.pending.push((range.start, Extent::bytes(range.len())));
        }
        Ok(())
    }

    fn open(&self, range: Range<usize>) -> Result {
        self.memory.open(range.clone())?;
        self.came.open(range)
    }

    fn fetch(&mut self, stream: CUstream) -> Result {
        if self.pending.is_empty() {
            return Ok(());
        }
        for (offset, extent) in &self.pending {
            let (to, from) = (self.memory.at(*offset), self.device.start + *offset as u64);
            copy_here(to, from, *extent, stream)?;
        }
        stream::synchronize(stream)?;
        for (offset, extent) in self.pending.drain(..) {
            for number in 0..extent.height {
                let at = offset + number * extent.pitch;
                // SAFETY: both are open there, and are two mappings.
                unsafe {
                    self.memory.at(at).copy_to_nonoverlapping(self.came.at(at), extent.width);
                }
            }
        }
        Ok(())
    }

    /// Hands back what was changed; [`Call::give_back`] waits for it.
    fn give_back(&mut self, stream: CUstream) -> Result {
        for (offset, extent) in &self.named {
            let line = |number: usize| {
                let at = offset + number * extent.pitch;
                // SAFETY: open since it was named; the work is done.
                unsafe { (self.memory.slice(at, extent.width), self.came.slice(at, extent.width)) }
            };
            let changed = if extent.height == 1 {
                let (memory, came) = line(0);
                runs(memory, came)
            } else {
                blocks(extent, line)
            };
            for (start, changed) in changed {
                let at = offset + start;
                copy_there(self.device.start + at as u64, self.memory.at(at), changed, stream)?;
                for number in 0..changed.height {
                    let at = at + number * changed.pitch;
                    // SAFETY: both are open there, and are two mappings.
                    unsafe {
                        self.memory.at(at).copy_to_nonoverlapping(self.came.at(at), changed.width);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Closer to each other than this, two changes are one copy.
const NEAR_BYTES: usize = 4096;

/// Where two slices differ.
fn difference(now: &[u8], before: &[u8]) -> Option<Range<usize>> {
    if now == before {
        return None;
    }
    let differ = |(now, before): (&u8, &u8)| now != before;
    let start = now.iter().zip(before).position(differ)?;
    let end = now.len() - now.iter().zip(before).rev().position(differ)?;
    Some(start..end)
}

/// What has changed of bytes behind each other.
fn runs(now: &[u8], before: &[u8]) -> Vec<(usize, Extent)> {
    let mut runs: Vec<Range<usize>> = vec![];
    for (number, (now, before)) in now.chunks(NEAR_BYTES).zip(before.chunks(NEAR_BYTES)).enumerate() {
        let Some(found) = difference(now, before) else { continue };
        let (start, end) = (number * NEAR_BYTES + found.start, number * NEAR_BYTES + found.end);
        match runs.last_mut() {
            Some(last) if start - last.end < NEAR_BYTES => last.end = end,
            _ => runs.push(start..end),
        }
    }
    runs.into_iter().map(|run| (run.start, Extent::bytes(run.len()))).collect()
}

/// What has changed of lines: those behind each other in which something has, as far as the widest of them has.
fn blocks<'a>(extent: &Extent, line: impl Fn(usize) -> (&'a [u8], &'a [u8])) -> Vec<(usize, Extent)> {
    let mut blocks: Vec<(usize, Extent)> = vec![];
    let mut open: Option<(Range<usize>, Range<usize>)> = None;
    let mut close = |open: Option<(Range<usize>, Range<usize>)>| {
        if let Some((lines, bytes)) = open {
            let block = Extent { width: bytes.len(), pitch: extent.pitch, height: lines.len() };
            blocks.push((lines.start * extent.pitch + bytes.start, block));
        }
    };
    for number in 0..extent.height {
        let (now, before) = line(number);
        match (difference(now, before), &mut open) {
            (Some(found), Some((lines, bytes))) => {
                lines.end = number + 1;
                *bytes = bytes.start.min(found.start)..bytes.end.max(found.end);
            }
            (Some(found), none) => *none = Some((number..number + 1, found)),
            (None, some) => close(some.take()),
        }
    }
    close(open);
    blocks
}

fn copy_here(to: *mut u8, from: CUdeviceptr, extent: Extent, stream: CUstream) -> Result {
    let driver = driver()?;
    if extent.height == 1 {
        // SAFETY: `to` is open for so many; the driver looks at the rest.
        let code = unsafe { (driver.cuMemcpyDtoHAsync_v2)(to.cast(), from, extent.width, stream) };
        return check("cuMemcpyDtoHAsync", code);
    }
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        srcPitch: extent.pitch,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        dstHost: to.cast(),
        dstPitch: extent.pitch,
        WidthInBytes: extent.width,
        Height: extent.height,
        ..CUDA_MEMCPY2D::default()
    };
    // SAFETY: as above, line by line.
    check("cuMemcpy2DAsync", unsafe { (driver.cuMemcpy2DAsync_v2)(&copy, stream) })
}

fn copy_there(to: CUdeviceptr, from: *const u8, extent: Extent, stream: CUstream) -> Result {
    let driver = driver()?;
    if extent.height == 1 {
        // SAFETY: `from` has so many, which nobody writes until the stream was waited for; the driver looks at the rest.
        let code = unsafe { (driver.cuMemcpyHtoDAsync_v2)(to, from.cast(), extent.width, stream) };
        return check("cuMemcpyHtoDAsync", code);
    }
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: from.cast(),
        srcPitch: extent.pitch,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        dstPitch: extent.pitch,
        WidthInBytes: extent.width,
        Height: extent.height,
        ..CUDA_MEMCPY2D::default()
    };
    // SAFETY: as above, line by line.
    check("cuMemcpy2DAsync", unsafe { (driver.cuMemcpy2DAsync_v2)(&copy, stream) })
}

/// Addresses of the host's of which nothing is memory until it is opened.
struct Mapping {
    start: *mut c_void,
    len_bytes: usize,
}

const PAGE: usize = 4096;

impl Mapping {
    fn new(len_bytes: usize) -> Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: new addresses, of the kernel's choice.
        let start = unsafe { libc::mmap(core::ptr::null_mut(), len_bytes, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(no_memory("mmap"));
        }
        Ok(Mapping { start, len_bytes })
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.start.cast::<u8>().wrapping_add(offset)
    }

    /// # Safety
    /// It is open there, and nobody writes it meanwhile.
    unsafe fn slice<'a>(&self, offset: usize, len_bytes: usize) -> &'a [u8] {
        // SAFETY: the caller's word.
        unsafe { core::slice::from_raw_parts(self.at(offset), len_bytes) }
    }

    fn open(&self, range: Range<usize>) -> Result {
        let start = range.start / PAGE * PAGE;
        let end = range.end.next_multiple_of(PAGE).min(self.len_bytes.next_multiple_of(PAGE));
        // SAFETY: pages of this mapping.
        let failed =
            unsafe { libc::mprotect(self.at(start).cast(), end - start, libc::PROT_READ | libc::PROT_WRITE) };
        if failed == 0 { Ok(()) } else { Err(no_memory("mprotect")) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping's own, which nobody follows any more.
        unsafe { libc::munmap(self.start, self.len_bytes) };
    }
}

fn no_memory(call: &'static str) -> Error {
    Error::Driver { call, code: CUresult::CUDA_ERROR_OUT_OF_MEMORY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_behind_its_threads_end_is_ended_and_runs_nothing() {
        struct Late(std::sync::mpsc::Sender<bool>);
        impl Drop for Late {
            fn drop(&mut self) {
                begin();
                end();
                let refused = matches!(with_call(|_| Ok(())), Err(Error::NotSupported(_)));
                self.0.send(refused).expect("the test waits");
            }
        }
        thread_local! {
            static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        }
        let (tell, told) = std::sync::mpsc::channel();
        // What a thread has used first goes last.
        let thread = std::thread::spawn(move || {
            LATE.set(Some(Late(tell)));
            begin();
        });
        thread.join().expect("the thread ends");
        assert!(told.recv().expect("its destructor ran"));
    }

    #[test]
    fn lines_that_touch_are_one_and_none_are_none() {
        assert_eq!(Extent::lines::<f64>(3, 4, 4), Extent::bytes(96));
        assert_eq!(Extent::lines::<f64>(1, 4, 9), Extent::bytes(32));
        assert_eq!(Extent::lines::<f64>(0, 4, 9).height, 0);
        assert_eq!(Extent::lines::<f64>(3, 0, 9).height, 0);
        assert_eq!(Extent::lines::<f64>(3, 4, 5).span(), 112);
    }

    #[test]
    fn what_changed_goes_back_and_nothing_far_from_it() {
        let before = vec![0u8; 5 * NEAR_BYTES];
        let mut now = before.clone();
        assert_eq!(runs(&now, &before), []);
        for at in [7, 9, 100, 3 * NEAR_BYTES, 5 * NEAR_BYTES - 1] {
            now[at] = 1;
        }
        let found: Vec<_> = runs(&now, &before).iter().map(|(at, run)| (*at, run.width)).collect();
        assert_eq!(found, [(7, 94), (3 * NEAR_BYTES, 1), (5 * NEAR_BYTES - 1, 1)]);
    }

    #[test]
    fn lines_go_back_as_far_as_something_changed_in_them() {
        let extent = Extent::lines::<u8>(5, 4, 6);
        let before = vec![0u8; 30];
        let mut now = before.clone();
        // Between lines, which is not looked at; in the lines 1, 2 and 4.
        for at in [4, 7, 14, 27] {
            now[at] = 1;
        }
        let line = |number: usize| (&now[number * 6..][..4], &before[number * 6..][..4]);
        let block = |width, height| Extent { width, pitch: 6, height };
        assert_eq!(blocks(&extent, line), [(7, block(2, 2)), (27, block(1, 1))]);
    }

    #[test]
    fn what_is_named_twice_is_copied_once() {
        let device = Device { start: 1 << 40, end: (1 << 40) + (1 << 20) };
        let (memory, came) = (Mapping::new(1 << 20).unwrap(), Mapping::new(1 << 20).unwrap());
        let (covered, pending, named) = (BTreeMap::new(), vec![], vec![]);
        let mut shadow = Shadow { device, memory, came, covered, pending, named };
        shadow.name(100, Extent::bytes(50)).unwrap();
        shadow.name(200, Extent::bytes(50)).unwrap();
        shadow.name(90, Extent::bytes(120)).unwrap();
        shadow.name(120, Extent::bytes(5)).unwrap();
        let asked: Vec<_> = shadow.pending.iter().map(|(at, extent)| (*at, extent.width)).collect();
        assert_eq!(asked, [(100, 50), (200, 50), (90, 10), (150, 50)]);
        assert!(shadow.is_covered(249) && !shadow.is_covered(250) && !shadow.is_covered(89));
        // Thin lines: apart from what is there they are one copy, over it those that are missing.
        shadow.pending.clear();
        shadow.name(1000, Extent::lines::<u8>(3, 1, 100)).unwrap();
        shadow.name(1100, Extent::lines::<u8>(2, 1, 200)).unwrap();
        let asked: Vec<_> = shadow.pending.iter().map(|(at, extent)| (*at, extent.height)).collect();
        assert_eq!(asked, [(1000, 3), (1300, 1)]);
    }
}
