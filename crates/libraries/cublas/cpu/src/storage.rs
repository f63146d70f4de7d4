//! Matrices whose elements lie in memory as another type than the one that is computed in, chosen when the program runs.

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use crate::lanes::vectorized;
use crate::{Complex, E4M3, E5M2, Scalar, Stored, bf16};

/// How an element lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    F16,
    BF16,
    E4M3,
    E5M2,
    I8,
    I32,
    F32,
    F64,
    C8,
    C16,
    CB16,
    C32,
    C64,
}

impl Storage {
    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            Self::E4M3 | Self::E5M2 | Self::I8 => 1,
            Self::F16 | Self::BF16 | Self::C8 => 2,
            Self::F32 | Self::I32 | Self::C16 | Self::CB16 => 4,
            Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    pub fn is_complex(self) -> bool {
        matches!(self, Self::C8 | Self::C16 | Self::CB16 | Self::C32 | Self::C64)
    }
}

/// A number that sums are made in, and the elements that it can be read from and written to.
pub trait Compute: Scalar {
    /// How it lies in memory itself.
    const OWN: Storage;

    fn takes(storage: Storage) -> bool;

    /// Reads elements that follow each other.
    ///
    /// # Safety
    /// As many as `to` has are there; [`takes`](Self::takes) this storage.
    unsafe fn read(storage: Storage, from: *const u8, to: &mut [Self]);

    /// Writes elements that follow each other.
    ///
    /// # Safety
    /// There is room for as many as `from` has; [`takes`](Self::takes) this storage.
    unsafe fn write(storage: Storage, from: &[Self], to: *mut u8);
}

macro_rules! compute {
    ($($scalar:ty = $own:ident: $($storage:ident as $stored:ty),*;)*) => {$(
        impl Compute for $scalar {
            const OWN: Storage = Storage::$own;

            fn takes(storage: Storage) -> bool {
                matches!(storage, $(Storage::$storage)|*)
            }

            unsafe fn read(storage: Storage, from: *const u8, to: &mut [Self]) {
                match storage {
                    // SAFETY: the caller's word.
                    $(Storage::$storage => unsafe { load_all(from.cast::<$stored>(), to) },)*
                    _ => unreachable!("{storage:?} was not asked for"),
                }
            }

            unsafe fn write(storage: Storage, from: &[Self], to: *mut u8) {
                match storage {
                    // SAFETY: the caller's word.
                    $(Storage::$storage => unsafe { store_all(from, to.cast::<$stored>()) },)*
                    _ => unreachable!("{storage:?} was not asked for"),
                }
            }
        }
    )*};
}
compute! {
    f32 = F32: F32 as f32, F16 as f16, BF16 as bf16, E4M3 as E4M3, E5M2 as E5M2, I8 as i8, I32 as i32;
    f64 = F64: F64 as f64;
    Complex<f32> = C32: C32 as Complex<f32>, C16 as Complex<f16>, CB16 as Complex<bf16>, C8 as Complex<i8>;
    Complex<f64> = C64: C64 as Complex<f64>;
}

unsafe fn load_all<S: Scalar, T: Stored<S>>(from: *const T, to: &mut [S]) {
    // SAFETY: the caller's word.
    let from = unsafe { std::slice::from_raw_parts(from, to.len()) };
    if let (Some(from), Some(to)) = (same::<T, f16>(from), same_mut::<S, f32>(to)) {
        return from.convert_to_f32_slice(to);
    }
    vectorized(|| to.iter_mut().zip(from).for_each(|(to, from)| *to = from.load()));
}

unsafe fn store_all<S: Scalar, T: Stored<S>>(from: &[S], to: *mut T) {
    // SAFETY: the caller's word.
    let to = unsafe { std::slice::from_raw_parts_mut(to, from.len()) };
    if let (Some(from), Some(to)) = (same::<S, f32>(from), same_mut::<T, f16>(to)) {
        return to.convert_from_f32_slice(from);
    }
    vectorized(|| to.iter_mut().zip(from).for_each(|(to, from)| *to = T::store(*from)));
}

/// The slice as what it is: the processor converts whole slices of halves.
fn same<T: 'static, U: 'static>(slice: &[T]) -> Option<&[U]> {
    // SAFETY: the types are one.
    (std::any::TypeId::of::<T>() == std::any::TypeId::of::<U>())
        .then(|| unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), slice.len()) })
}

fn same_mut<T: 'static, U: 'static>(slice: &mut [T]) -> Option<&mut [U]> {
    // SAFETY: the types are one.
    (std::any::TypeId::of::<T>() == std::any::TypeId::of::<U>())
        .then(|| unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), slice.len()) })
}
