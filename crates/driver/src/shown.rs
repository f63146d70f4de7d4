//! Values of a few numbers that several threads read and one changes without either waiting: each number in an atomic of
//! its own. Who reads finds out for himself whether he got the numbers of one value (`handle::Registry::peek`).

use core::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::object::{Context, Shared};

/// A number, or an address that stays valid for ever or is never followed.
pub trait Number: Copy {
    type Atomic: Default;
    fn put(self, at: &Self::Atomic);
    /// # Safety
    /// One was put there before.
    unsafe fn get(at: &Self::Atomic) -> Self;
}

macro_rules! number {
    ($($Type:ty: $Atomic:ty),*) => {$(
        impl Number for $Type {
            type Atomic = $Atomic;
            #[inline]
            fn put(self, at: &Self::Atomic) {
                at.store(self, Ordering::Relaxed);
            }
            #[inline]
            unsafe fn get(at: &Self::Atomic) -> Self {
                at.load(Ordering::Relaxed)
            }
        }
    )*};
}
number!(u32: AtomicU32, u64: AtomicU64, c_int: AtomicI32, bool: AtomicBool);

impl<T> Number for Shared<*mut T> {
    type Atomic = AtomicPtr<T>;
    #[inline]
    fn put(self, at: &Self::Atomic) {
        at.store(self.0, Ordering::Relaxed);
    }
    #[inline]
    unsafe fn get(at: &Self::Atomic) -> Self {
        Shared(at.load(Ordering::Relaxed))
    }
}

impl Number for &'static Context {
    type Atomic = AtomicPtr<Context>;
    #[inline]
    fn put(self, at: &Self::Atomic) {
        at.store(core::ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
    }
    #[inline]
    unsafe fn get(at: &Self::Atomic) -> Self {
        // SAFETY: the caller promised that `put` stored a reference there, and contexts are never given back.
        unsafe { &*at.load(Ordering::Relaxed) }
    }
}

macro_rules! array {
    ($($n:literal),*) => {$(
        impl<T: Number> Number for [T; $n] {
            type Atomic = [T::Atomic; $n];
            #[inline]
            fn put(self, at: &Self::Atomic) {
                for (one, at) in self.into_iter().zip(at) {
                    one.put(at);
                }
            }
            #[inline]
            unsafe fn get(at: &Self::Atomic) -> Self {
                // SAFETY: the caller's promise.
                at.each_ref().map(|at| unsafe { T::get(at) })
            }
        }
    )*};
}
array!(3, 4);

/// Makes a structure of [`Number`]s what a registry can show: its cells are a structure of the same fields in atomics.
macro_rules! shown {
    ($Part:ident in $Cells:ident { $($field:ident: $Type:ty),* $(,)? }) => {
        #[derive(Default)]
        pub struct $Cells {
            $($field: <$Type as $crate::shown::Number>::Atomic,)*
        }

        impl $crate::handle::Numbers for $Part {
            type Cells = $Cells;
            #[inline]
            fn write_numbers(self, cells: &$Cells) {
                $($crate::shown::Number::put(self.$field, &cells.$field);)*
            }
            #[inline]
            unsafe fn read_numbers(cells: &$Cells) -> Self {
                // SAFETY: the caller's promise.
                $Part { $($field: unsafe { <$Type as $crate::shown::Number>::get(&cells.$field) },)* }
            }
        }
    };
}
pub(crate) use shown;
