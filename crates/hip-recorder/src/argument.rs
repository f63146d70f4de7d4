//! What an argument must be, whatever the call: pointers lie in memory and where their type may lie.

use core::ffi::{c_int, c_uchar, c_ushort};

use hip_sys::*;

use crate::far;

/// One argument of a call.
pub trait Argument {
    /// Why no caller may pass it.
    fn fault(&self) -> Option<String> {
        None
    }

    /// The same for the CPU device.
    fn near(self) -> Self
    where
        Self: Sized,
    {
        self
    }
}

macro_rules! any_value_will_do {
    ($($ty:ty),* $(,)?) => { $(impl Argument for $ty {})* };
}

any_value_will_do!(c_int, u32, u64, usize, c_uchar, c_ushort, f32, hipError_t);
// By value, or functions.
any_value_will_do!(
    hipIpcMemHandle_t,
    hipIpcEventHandle_t,
    hipPitchedPtr,
    hipExtent,
    hipStreamCallback_t,
    hipHostFn_t,
);

impl<T> Argument for *mut T {
    fn fault(&self) -> Option<String> {
        self.cast_const().fault()
    }

    fn near(self) -> Self {
        if size_of::<T>() <= 1 { far::near(self) } else { self }
    }
}

impl<T> Argument for *const T {
    /// Handles have no size, and memory of the device's or of any type (`void`, bytes) is looked at by whoever uses it.
    fn fault(&self) -> Option<String> {
        if self.is_null() || size_of::<T>() <= 1 {
            return None;
        }
        if !self.is_aligned() {
            return Some(format!("is {self:p}, not aligned to {}", align_of::<T>()));
        }
        (!is_mapped(self.addr())).then(|| format!("is {self:p}, where no memory is"))
    }

    fn near(self) -> Self {
        self.cast_mut().near().cast_const()
    }
}

fn is_mapped(address: usize) -> bool {
    const PAGE: usize = 4096;
    let mut resident = 0u8;
    // SAFETY: asks about one page and changes nothing.
    unsafe { libc::mincore((address & !(PAGE - 1)) as *mut _, PAGE, &raw mut resident) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_to_nowhere_and_a_crooked_one_are_found() {
        let number = 5u32;
        let at = &raw const number;
        assert_eq!(at.fault(), None);
        assert!(at.wrapping_byte_add(1).fault().is_some_and(|why| why.contains("not aligned to 4")));
        assert!((0x1000 as *const u32).fault().is_some_and(|why| why.contains("no memory")));
        assert_eq!(core::ptr::null::<u32>().fault(), None);
    }
}
