//! What a routine reads when it runs in stream order.

use kit::Address;

/// A factor: its value, or where in device memory it will be when the routine runs.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<T, D = T> {
    Host(T),
    Device(Address<*const D>),
}

impl<T: Copy, D> Scalar<T, D> {
    /// The value, at the time when the routine runs.
    pub fn get(&self) -> T {
        match *self {
            Scalar::Host(value) => value,
            // SAFETY: cuBLAS's contract: device memory, which on the CPU device is the host's, good until the routine has run.
            Scalar::Device(at) => unsafe { at.get().cast::<T>().read_unaligned() },
        }
    }

    pub fn map_host<U>(self, change: impl FnOnce(T) -> U) -> Scalar<U, D> {
        match self {
            Scalar::Host(value) => Scalar::Host(change(value)),
            Scalar::Device(at) => Scalar::Device(at),
        }
    }
}
