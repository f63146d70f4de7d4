// The part that is the same for both shells. Included by each shell's lib.rs, so that they share no state.

use trampoline::{Layers, Library};

trampoline::end_at_panic!();

static LIBRARY: Library = Library {
    slots: &generated::SLOTS,
    names: &generated::NAMES,
    implementation: c"libcudaway_nvjitlink.so",
    variable: c"CUDAWAY_NVJITLINK",
    not_supported,
    layers: Layers::new(),
};

/// `NVJITLINK_ERROR_INTERNAL`
extern "C" fn not_supported() -> usize {
    6
}

pub extern "C" fn fill() {
    LIBRARY.fill();
}
