//! A call's parameters as text.

use core::ffi::c_char;
use core::fmt::{Debug, Write as _};

use crate::line;

/// Longer texts (PTX, options) are cut.
const TEXT_BYTES: usize = 200;

pub struct Arguments {
    /// Members of a JSON object, with commas between them, or what people read.
    text: String,
    has_returned: bool,
    is_plain: bool,
}

impl Arguments {
    pub(crate) fn before() -> Arguments {
        Arguments { text: String::new(), has_returned: false, is_plain: false }
    }

    pub(crate) fn after() -> Arguments {
        Arguments { has_returned: true, ..Arguments::before() }
    }

    /// For people, before the call.
    pub(crate) fn plain() -> Arguments {
        Arguments { is_plain: true, ..Arguments::before() }
    }

    pub(crate) fn text(self) -> String {
        self.text
    }

    fn member(&mut self, name: &str, value: &str) {
        if self.is_plain {
            let blank = if self.text.is_empty() { "" } else { " " };
            _ = write!(self.text, "{blank}{name}={value}");
            return;
        }
        if !self.text.is_empty() {
            self.text.push(',');
        }
        line::string(&mut self.text, name);
        self.text.push(':');
        line::string(&mut self.text, value);
    }

    pub fn value(&mut self, name: &'static str, value: &dyn Debug) {
        if !self.has_returned {
            let mut text = String::new();
            _ = write!(text, "{value:?}");
            self.member(name, &text);
        }
    }

    /// # Safety
    /// `at` is NULL or a C string.
    pub unsafe fn c_text(&mut self, name: &'static str, at: *const c_char) {
        if self.has_returned {
            return;
        }
        if at.is_null() {
            return self.member(name, "NULL");
        }
        // SAFETY: a C string by the caller's promise; no more than its bytes are read.
        let bytes = unsafe { core::slice::from_raw_parts(at.cast::<u8>(), libc::strnlen(at, TEXT_BYTES)) };
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.member(name, &text);
    }

    /// The address when the call begins, the value when it has succeeded.
    ///
    /// # Safety
    /// After a success `at` is NULL or holds a value.
    pub unsafe fn out<T: Debug>(&mut self, name: &'static str, at: *const T) {
        if !self.has_returned {
            return self.value(name, &at);
        }
        // SAFETY: the caller's promise.
        if let Some(value) = unsafe { at.as_ref() } {
            let mut text = String::new();
            _ = write!(text, "{value:?}");
            self.member(name, &text);
        }
    }
}
