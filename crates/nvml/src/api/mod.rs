//! The bodies, by the manual's chapters. `cargo xtask codegen` finds them by name.

pub mod clock;
pub mod device;
pub mod event;
pub mod field;
pub mod lifecycle;
pub mod memory;
pub mod mode;
pub mod pcie;
pub mod power;
pub mod process;
pub mod system;
pub mod thermal;
pub mod topology;
pub mod video;

use core::ffi::{c_char, c_uint};

use crate::{Error, Result};

/// Writes `text` and a NUL into `length` bytes of the program's.
///
/// # Safety
/// `at` is NULL, or has `length` bytes that may be written.
unsafe fn write_text(text: &str, at: *mut c_char, length: c_uint, parameter: &'static str) -> Result {
    if at.is_null() {
        return Err(Error::InvalidArgument(parameter));
    }
    if usize::try_from(length).is_ok_and(|length| text.len() >= length) {
        return Err(Error::InsufficientSize);
    }
    // SAFETY: the caller's promise makes `length` bytes at `at` writable; the text and its NUL fit.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), at.cast::<u8>(), text.len());
        at.add(text.len()).write(0);
    }
    Ok(())
}

/// A field of a structure: `text`, cut to fit, and zeros.
fn text_field<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (to, from) in field.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from.cast_signed();
    }
    field
}

/// What a structure says its version is, when there is one of that size.
fn struct_version<T>(number: u32) -> c_uint {
    u32::try_from(size_of::<T>()).unwrap_or(0) | number << 24
}

/// Fills a list of the program's: `count` has its room and gets the number of elements. Too little room, or no list, is an
/// error that tells the room needed; an empty answer fits everywhere.
///
/// # Safety
/// `count` is NULL, or may be read and written; `list` is NULL, or has room for as many elements.
unsafe fn write_list<T>(elements: &[T], count: *mut c_uint, list: *mut T) -> Result
where
    T: Copy,
{
    if count.is_null() {
        return Err(Error::InvalidArgument("count"));
    }
    // SAFETY: not null; the caller's promise makes it readable and writable.
    let room = unsafe { count.replace(c_uint::try_from(elements.len()).unwrap_or(c_uint::MAX)) };
    if elements.is_empty() {
        return Ok(());
    }
    if list.is_null() || usize::try_from(room).is_ok_and(|room| room < elements.len()) {
        return Err(Error::InsufficientSize);
    }
    // SAFETY: the caller's promise makes `room` elements writable, and these are not more.
    unsafe { core::ptr::copy_nonoverlapping(elements.as_ptr(), list, elements.len()) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_needs_room_for_its_nul() {
        let mut buffer = [1; 4];
        // SAFETY: the buffer is as long as is told, or longer.
        assert_eq!(unsafe { write_text("abcd", buffer.as_mut_ptr(), 4, "x") }, Err(Error::InsufficientSize));
        assert_eq!(buffer, [1; 4]);
        // SAFETY: the buffer is as long as is told, or longer.
        unsafe { write_text("abc", buffer.as_mut_ptr(), 4, "x") }.unwrap();
        assert_eq!(buffer.map(c_char::cast_unsigned), *b"abc\0");
        // SAFETY: the buffer is as long as is told, or longer.
        let written = unsafe { write_text("a", core::ptr::null_mut(), 4, "x") };
        assert_eq!(written, Err(Error::InvalidArgument("x")));
    }

    #[test]
    fn a_list_without_room_tells_how_much_it_needs() {
        let mut count = 1;
        let mut room = [0u32; 2];
        // SAFETY: the buffer is as long as is told, or longer.
        let written = unsafe { write_list(&[7, 8], &mut count, room.as_mut_ptr()) };
        assert_eq!(written, Err(Error::InsufficientSize));
        assert_eq!((count, room), (2, [0, 0]));
        // SAFETY: the buffer is as long as is told, or longer.
        unsafe { write_list(&[7, 8], &mut count, room.as_mut_ptr()) }.unwrap();
        assert_eq!(room, [7, 8]);
        // SAFETY: the buffer is as long as is told, or longer.
        unsafe { write_list::<u32>(&[], &mut count, core::ptr::null_mut()) }.unwrap();
        assert_eq!(count, 0);
    }
}
