//! `CUDAWAY_LEAKS`: what the program still had when the process ended.

use std::ffi::{c_int, c_void};
use std::sync::Once;

use crate::{array, at_exit, event, memory, module, stream, texture};

/// Called when the device is initialised.
pub fn watch() {
    static ONCE: Once = Once::new();
    if config::get().leaks {
        ONCE.call_once(|| at_exit::register(print));
    }
}

extern "C" fn print(_: c_int, _: *mut c_void) {
    let (n_allocations, bytes) = memory::left();
    let counted = [
        (n_allocations, "allocation"),
        (stream::left(), "stream"),
        (event::left(), "event"),
        (module::left(), "module"),
        (array::left(), "array"),
        (texture::left(), "texture or surface"),
    ];
    let left: Vec<String> = counted.iter().map(|(n, what)| format!("{n} of {what}")).collect();
    at_exit::say(&format!("cudaway: left at the end: {}; {bytes} bytes\n", left.join(", ")));
}
