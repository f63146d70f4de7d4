//! JIT options: what a program asks of a compilation, and the logs it gets back.

use core::ffi::{c_char, c_uint, c_void};
use std::time::Instant;

use cuda_abi::CUjit_option;

use crate::{Error, Result};

/// A log buffer of the program's, with the option value that receives how much was written.
#[derive(Clone, Copy)]
struct Buffer {
    at: *mut c_char,
    len_bytes: usize,
    size_value: *mut *mut c_void,
}

/// Options of one compile or link call; writes the logs once, at the end.
pub struct Options {
    error_log: Option<Buffer>,
    info_log: Option<Buffer>,
    wall_time: Option<*mut *mut c_void>,
    begun: Instant,
}

impl Options {
    #[must_use]
    pub fn none() -> Options {
        Options { error_log: None, info_log: None, wall_time: None, begun: Instant::now() }
    }

    /// Reads CUDA's two parallel arrays. Options that tune code we do not generate are accepted and have no effect.
    ///
    /// # Safety
    /// If `count` is not 0, both arrays hold that many entries that outlive the result, and the buffers they name are
    /// writable for the sizes they name.
    pub unsafe fn read(
        count: c_uint,
        options: *mut CUjit_option,
        values: *mut *mut c_void,
    ) -> Result<Options> {
        let mut read = Options::none();
        if count == 0 {
            return Ok(read);
        }
        if options.is_null() || values.is_null() {
            return Err(Error::InvalidValue("options"));
        }
        let mut error = (core::ptr::null_mut::<c_char>(), None);
        let mut info = (core::ptr::null_mut::<c_char>(), None);
        for index in 0..count as usize {
            // SAFETY: the caller promised `count` entries in both arrays.
            let (option, value) = unsafe { (*options.add(index), values.add(index)) };
            // SAFETY: as above; the value is read as the pointer-sized word it is.
            let word = unsafe { *value };
            match option {
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER => error.0 = word.cast(),
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES => {
                    error.1 = Some((word.addr() as u32, value))
                }
                CUjit_option::CU_JIT_INFO_LOG_BUFFER => info.0 = word.cast(),
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES => info.1 = Some((word.addr() as u32, value)),
                CUjit_option::CU_JIT_WALL_TIME => read.wall_time = Some(value),
                // CUDA: a number beyond its options is an invalid value.
                CUjit_option(number) if number >= CUjit_option::CU_JIT_NUM_OPTIONS.0 => {
                    return Err(Error::InvalidValue("options"));
                }
                _ => {}
            }
        }
        let buffer = |(at, size): (*mut c_char, Option<(u32, *mut *mut c_void)>)| {
            let (len_bytes, size_value) = size?;
            Some(Buffer { at, len_bytes: len_bytes as usize, size_value })
        };
        read.error_log = buffer(error);
        read.info_log = buffer(info);
        Ok(read)
    }

    /// Whether the program wants to read what is wrong.
    pub fn has_error_log(&self) -> bool {
        self.error_log.is_some_and(|log| !log.at.is_null() && log.len_bytes > 0)
    }

    /// Writes both logs, truncated to their buffers and NUL-terminated, and how much was written.
    pub fn finish(&self, errors: &str, infos: &str) {
        for (buffer, text) in [(self.error_log, errors), (self.info_log, infos)] {
            let Some(Buffer { at, len_bytes, size_value }) = buffer else { continue };
            let mut written = 0;
            if !at.is_null() && len_bytes > 0 {
                let mut end = text.len().min(len_bytes - 1);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                // SAFETY: the buffer is writable for `len_bytes`, and `end` plus the NUL fit.
                unsafe {
                    core::ptr::copy_nonoverlapping(text.as_ptr(), at.cast::<u8>(), end);
                    at.add(end).write(0);
                }
                written = if end == 0 { 0 } else { end + 1 };
            }
            // SAFETY: the option values outlive us; CUDA stores the size in the value itself.
            unsafe { size_value.write(core::ptr::without_provenance_mut(written)) };
        }
        if let Some(value) = self.wall_time {
            let ms = self.begun.elapsed().as_secs_f32() * 1000.0;
            // SAFETY: as above; CUDA stores a float in the first four bytes.
            unsafe { value.cast::<f32>().write(ms) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_cut_to_its_buffer_and_says_how_much_was_written() {
        let mut buffer = [0x7f as c_char; 8];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [buffer.as_mut_ptr().cast::<c_void>(), core::ptr::without_provenance_mut(6)];
        // SAFETY: two entries each; the buffer has the size named.
        let read = unsafe { Options::read(2, options.as_mut_ptr(), values.as_mut_ptr()) }.unwrap();
        read.finish("abcdefgh", "");
        assert_eq!(values[1].addr(), 6);
        let text: Vec<u8> = buffer.iter().map(|&c| c as u8).collect();
        assert_eq!(&text, b"abcde\0\x7f\x7f");
    }

    #[test]
    fn an_unknown_option_is_refused() {
        let mut options = [CUjit_option(999)];
        let mut values = [core::ptr::null_mut()];
        // SAFETY: one entry each.
        let read = unsafe { Options::read(1, options.as_mut_ptr(), values.as_mut_ptr()) };
        assert!(matches!(read, Err(Error::InvalidValue("options"))));
    }
}
