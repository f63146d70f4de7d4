//! Libraries loaded by the program itself, and the kernel handles that come from the driver.

use std::collections::HashSet;
use std::sync::LazyLock;

use cuda_abi::CUkernel;
use parking_lot::RwLock;

/// Kernel handles that the program got from this runtime: they may be launched like functions.
static KNOWN: LazyLock<RwLock<HashSet<usize>>> = LazyLock::new(Default::default);

pub fn remember_kernel(kernel: CUkernel) {
    KNOWN.write().insert(kernel.addr());
}

pub fn known_kernel(kernel: CUkernel) -> Option<CUkernel> {
    KNOWN.read().contains(&kernel.addr()).then_some(kernel)
}
