//! What becomes of a product before it is stored: cuBLASLt's epilogues.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Real;
use crate::storage::{Compute, Storage};

/// An address in memory and what lies there; rows of a matrix follow each other, columns are `ld` elements apart.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub storage: Storage,
    pub at: *mut u8,
    pub ld: i64,
}

// SAFETY: an address; who makes threads of it gives each its own columns.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    pub fn new<T>(storage: Storage, at: *const T, ld: i64) -> Self {
        Self { storage, at: at.cast_mut().cast(), ld }
    }

    pub fn address(self, row: i64, column: i64) -> *mut u8 {
        self.at.wrapping_offset((row + column * self.ld) as isize * self.storage.size() as isize)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    #[default]
    None,
    Relu,
    /// The form with tanh.
    Gelu,
    /// Times the derivative of [`Relu`](Self::Relu), which the auxiliary bits are.
    ReluGradient,
    /// Times the derivative of [`Gelu`](Self::Gelu) at the auxiliary values.
    GeluGradient,
}

/// Of which matrix the sums are that a bias's gradient is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BiasGradient {
    /// Of the result's rows.
    Result,
    /// Of the rows of `op(A)`.
    A,
    /// Of the columns of `op(B)`.
    B,
}

/// The steps in the order in which they are done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue {
    /// One for each row is added.
    pub bias: Option<Place>,
    pub activation: Activation,
    /// What a forward activation saves and a gradient reads: of relu a bit for each element, set where it let the value
    /// through, rows of a column in order, `ld` bits to a column; of gelu the value before it.
    pub auxiliary: Option<Place>,
    /// The saved values are multiplied with it.
    pub auxiliary_scale: Option<f32>,
    /// What is raised to the largest saved value's size, before that.
    pub auxiliary_largest: Option<*mut f32>,
    pub bias_gradient: Option<(BiasGradient, Place)>,
    /// What is raised to the largest result's size, before it is scaled; products of a batch share it.
    pub largest: Option<*mut f32>,
    /// The result is multiplied with it at the end.
    pub scale: Option<f32>,
}

// SAFETY: addresses, each written by one thread.
unsafe impl Send for Epilogue {}
// SAFETY: as above.
unsafe impl Sync for Epilogue {}

impl Epilogue {
    pub fn is_none(&self) -> bool {
        self.bias.is_none()
            && self.activation == Activation::None
            && self.bias_gradient.is_none()
            && self.largest.is_none()
            && self.scale.is_none()
    }

    /// Bias and activation of the part of a column that starts at `row`, which must be a multiple of eight.
    ///
    /// # Safety
    /// What the epilogue points to is there.
    pub(crate) unsafe fn activate<S: Compute>(
        &self,
        row: i64,
        column: i64,
        values: &mut [S],
        room: &mut Vec<S>,
    ) {
        if let Some(bias) = self.bias {
            room.resize(values.len(), S::zero());
            // SAFETY: the caller's word.
            unsafe { S::read(bias.storage, bias.address(row, 0), room) };
            values.iter_mut().zip(room.iter()).for_each(|(value, bias)| *value += *bias);
        }
        // SAFETY: the caller's word.
        unsafe {
            match self.activation {
                Activation::None => {}
                Activation::Relu => self.relu(row, column, values),
                Activation::Gelu => self.gelu(row, column, values, room),
                Activation::ReluGradient => self.relu_gradient(row, column, values),
                Activation::GeluGradient => self.gelu_gradient(row, column, values, room),
            }
        }
    }

    unsafe fn relu<S: Compute>(&self, row: i64, column: i64, values: &mut [S]) {
        let zero = S::Real::rounded(0.0);
        if let Some(auxiliary) = self.auxiliary {
            for (byte, eight) in values.chunks(8).enumerate() {
                let bits = eight.iter().enumerate();
                let bits =
                    bits.fold(0_u8, |bits, (bit, value)| bits | (u8::from(value.real() > zero) << bit));
                // SAFETY: the caller's word.
                unsafe { *bit_address(auxiliary, row, column).add(byte) = bits };
            }
        }
        // A NaN stays one, as it does in every framework.
        values.iter_mut().filter(|value| value.real() <= zero).for_each(|value| *value = S::zero());
    }

    unsafe fn relu_gradient<S: Compute>(&self, row: i64, column: i64, values: &mut [S]) {
        let Some(auxiliary) = self.auxiliary else { return };
        for (index, value) in values.iter_mut().enumerate() {
            // SAFETY: the caller's word.
            let byte = unsafe { *bit_address(auxiliary, row, column).add(index / 8) };
            if byte >> (index % 8) & 1 == 0 {
                *value = S::zero();
            }
        }
    }

    unsafe fn gelu<S: Compute>(&self, row: i64, column: i64, values: &mut [S], room: &mut Vec<S>) {
        if let Some(auxiliary) = self.auxiliary {
            let scale = S::Real::rounded(self.auxiliary_scale.unwrap_or(1.0).into());
            room.clear();
            room.extend(values.iter().map(|value| value.times_real(scale)));
            // SAFETY: the caller's word.
            unsafe { S::write(auxiliary.storage, room, auxiliary.address(row, column)) };
        }
        if let Some(at) = self.auxiliary_largest {
            // SAFETY: the caller's word.
            unsafe { raise(at, largest(values)) };
        }
        values.iter_mut().for_each(|value| *value = S::from_real(gelu(value.real())));
    }

    unsafe fn gelu_gradient<S: Compute>(&self, row: i64, column: i64, values: &mut [S], room: &mut Vec<S>) {
        let Some(auxiliary) = self.auxiliary else { return };
        room.resize(values.len(), S::zero());
        // SAFETY: the caller's word.
        unsafe { S::read(auxiliary.storage, auxiliary.address(row, column), room) };
        let gradients = room.iter().map(|saved| gelu_gradient(saved.real()));
        values.iter_mut().zip(gradients).for_each(|(value, gradient)| *value = value.times_real(gradient));
    }
}

pub(crate) fn largest<S: Compute>(values: &[S]) -> f32 {
    let size = |value: &S| num_traits::ToPrimitive::to_f32(&value.modulus()).unwrap_or(f32::NAN);
    values.iter().map(size).fold(0.0, f32::max)
}

/// Makes a number in memory at least `size`, whoever else does so.
///
/// # Safety
/// A number that is not negative is there.
pub(crate) unsafe fn raise(at: *mut f32, size: f32) {
    // SAFETY: the caller's word. Bits of such numbers are in the numbers' order.
    unsafe { AtomicU32::from_ptr(at.cast()) }.fetch_max(size.to_bits(), Ordering::Relaxed);
}

fn bit_address(bits: Place, row: i64, column: i64) -> *mut u8 {
    bits.at.wrapping_offset(((row + column * bits.ld) / 8) as isize)
}

/// √(2/π) and the cube's factor of the form with tanh.
const GELU: (f64, f64) = (0.797_884_560_802_865_4, 0.044_715);

/// `x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))`
fn gelu<R: Real>(x: R) -> R {
    let (root, cube) = (R::rounded(GELU.0), R::rounded(GELU.1));
    let tanh = (root * (x + cube * x * x * x)).tanh();
    R::rounded(0.5) * x * (R::rounded(1.0) + tanh)
}

fn gelu_gradient<R: Real>(x: R) -> R {
    let (root, cube, half, one) = (R::rounded(GELU.0), R::rounded(GELU.1), R::rounded(0.5), R::rounded(1.0));
    let tanh = (root * (x + cube * x * x * x)).tanh();
    let inner = root * (one + R::rounded(3.0) * cube * x * x);
    half * (one + tanh) + half * x * (one - tanh * tanh) * inner
}
