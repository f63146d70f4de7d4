//! The takeover in a shared object of its own, for tests/takeover.rs to preload in place of `libcuda.so.1`.

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn(i32, *const *const core::ffi::c_char, *const *const core::ffi::c_char) =
    interpose::at_load;

/// The name by which the takeover finds out whether its object was there from the start.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: u32) -> i32 {
    100
}

/// Prints what was found, for the tests' eyes.
#[unsafe(no_mangle)]
pub extern "C" fn takeover_report() {
    for record in interpose::records() {
        println!("{record}");
    }
}
