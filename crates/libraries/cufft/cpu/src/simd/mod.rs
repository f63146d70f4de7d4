//! Vectors of complex numbers, neighbours in memory as they are there: real part, imaginary part, and so on.
//!
//! Every operation is inlined into a function that is compiled for the processor's vectors (`crate::isa`): the types
//! of `x86` are used nowhere else.

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

use num_complex::Complex;

pub(crate) use plain::Plain;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{D2, D4, S4, S8};

/// `LANES` complex numbers. Operations called after real numbers go over all `2 * LANES` of them.
pub(crate) trait Vector<T>: Copy {
    const LANES: usize;

    /// # Safety
    /// There are `LANES` numbers at `from`.
    unsafe fn load(from: *const Complex<T>) -> Self;

    /// # Safety
    /// There is room for `LANES` numbers at `to`.
    unsafe fn store(self, to: *mut Complex<T>);

    /// Every lane is `re + i im`.
    fn pairs(re: T, im: T) -> Self;
    fn splat(value: T) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// Real by real.
    fn scale(self, factors: Self) -> Self;
    /// `self * factors + more`, real by real, rounded once where the processor can.
    fn scale_add(self, factors: Self, more: Self) -> Self;
    /// `more - self * factors`, as above.
    fn scale_sub(self, factors: Self, more: Self) -> Self;
    /// `self * factors - more` in real parts, `+` in imaginary ones.
    fn scale_alternate(self, factors: Self, more: Self) -> Self;
    /// Imaginary parts change their signs.
    fn conjugate(self) -> Self;
    /// Real and imaginary parts change places.
    fn swap(self) -> Self;
    /// Each lane's real part, twice.
    fn real(self) -> Self;
    /// Each lane's imaginary part, twice.
    fn imaginary(self) -> Self;
    /// The last lane becomes the first one.
    fn reverse(self) -> Self;
    /// Lane `j` of row `i` becomes lane `i` of row `j`; there are `LANES` rows.
    fn transpose(rows: &mut [Self]);

    /// The product of complex numbers, lane by lane.
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.times_parts(other.real(), other.imaginary())
    }

    /// The same, where the other's parts are known apart.
    #[inline(always)]
    fn times_parts(self, re: Self, im: Self) -> Self {
        self.scale_alternate(re, self.swap().scale(im))
    }
}
