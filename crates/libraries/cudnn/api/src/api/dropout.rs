//! Dropout. Source: cuDNN manual, "cudnn_ops library", `cudnnDropoutForward` and so on.

use core::ffi::{c_ulonglong, c_void};

use border::{OptOut, Out};
use cudnn_cpu::Value;
use cudnn_cpu::dropout::{STATE, State, keeps};
use kit::Address;

use crate::descriptor::Descriptors;
use crate::error::require;
use crate::handle::{compute, computing};
use crate::tensor::{Tensor, at, is_double, tensor};
use crate::types::*;
use crate::{Result, memory};

#[derive(Clone, Copy)]
struct Dropout {
    dropped: f32,
    states: Address<*mut u8>,
    seed: c_ulonglong,
}

impl Default for Dropout {
    fn default() -> Dropout {
        Dropout { dropped: 0.0, states: Address(core::ptr::null_mut()), seed: 0 }
    }
}

static DROPOUTS: Descriptors<Dropout> = Descriptors::new();

/// What is dropped between layers: the probability and the states, with the program's own address of them.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    pub dropped: f64,
    pub states: Address<*mut u8>,
    pub own: Address<*mut u8>,
}

/// For layers that drop between others, whose call asks for it; `None` where nothing is dropped.
pub(crate) fn inside(of: cudnnDropoutDescriptor_t) -> Result<Option<Inside>> {
    if of.is_null() {
        return Ok(None);
    }
    let Dropout { dropped, states, .. } = DROPOUTS.get(of)?;
    require(dropped == 0.0 || !states.get().is_null(), "the dropout descriptor has no states")?;
    if dropped == 0.0 {
        return Ok(None);
    }
    Ok(Some(Inside { dropped: dropped.into(), states: memory::array(states.get(), STATE)?, own: states }))
}

pub fn cudnnCreateDropoutDescriptor(descriptor: Out<'_, cudnnDropoutDescriptor_t>) -> Result {
    descriptor.write(DROPOUTS.add());
    Ok(())
}

pub fn cudnnDestroyDropoutDescriptor(descriptor: cudnnDropoutDescriptor_t) -> Result {
    DROPOUTS.remove(descriptor)
}

pub fn cudnnDropoutGetStatesSize(handle: cudnnHandle_t, sizeInBytes: Out<'_, usize>) -> Result {
    computing(handle)?;
    sizeInBytes.write(STATE);
    Ok(())
}

/// A bit for each element.
pub fn cudnnDropoutGetReserveSpaceSize(
    xdesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    sizeInBytes.write(bytes(&tensor(xdesc)?));
    Ok(())
}

fn bytes(of: &Tensor) -> usize {
    of.count().div_ceil(8)
}

fn looked_at(dropout: f32, states: *mut c_void, bytes: usize) -> Result {
    require((0.0..=1.0).contains(&dropout), "a probability is between 0 and 1")?;
    require(states.is_null() || bytes >= STATE, "there is too little room for states")
}

/// The states begin with the seed, in stream order.
pub fn cudnnSetDropoutDescriptor(
    dropoutDesc: cudnnDropoutDescriptor_t,
    handle: cudnnHandle_t,
    dropout: f32,
    states: *mut c_void,
    stateSizeInBytes: usize,
    seed: c_ulonglong,
) -> Result {
    DROPOUTS.get(dropoutDesc)?;
    let context = computing(handle)?;
    looked_at(dropout, states, stateSizeInBytes)?;
    let states = Address(states.cast::<u8>());
    if !states.get().is_null() {
        let at = memory::array(states.get(), STATE)?;
        context.enqueue(move || {
            let bytes = State { seed, taken: 0 }.bytes();
            // SAFETY: cuDNN's contract: room for states, of the size that was looked at.
            unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at.get(), STATE) };
        })?;
    }
    DROPOUTS.set(dropoutDesc, Dropout { dropped: dropout, states, seed })
}

/// The states are as they were left.
pub fn cudnnRestoreDropoutDescriptor(
    dropoutDesc: cudnnDropoutDescriptor_t,
    handle: cudnnHandle_t,
    dropout: f32,
    states: *mut c_void,
    stateSizeInBytes: usize,
    seed: c_ulonglong,
) -> Result {
    DROPOUTS.get(dropoutDesc)?;
    computing(handle)?;
    looked_at(dropout, states, stateSizeInBytes)?;
    DROPOUTS.set(dropoutDesc, Dropout { dropped: dropout, states: Address(states.cast()), seed })
}

pub fn cudnnGetDropoutDescriptor(
    dropoutDesc: cudnnDropoutDescriptor_t,
    handle: cudnnHandle_t,
    dropout: OptOut<'_, f32>,
    states: OptOut<'_, *mut c_void>,
    seed: OptOut<'_, c_ulonglong>,
) -> Result {
    let known = DROPOUTS.get(dropoutDesc)?;
    computing(handle)?;
    dropout.write(known.dropped);
    states.write(known.states.get().cast());
    seed.write(known.seed);
    Ok(())
}

fn reserve(of: &Tensor, space: *mut c_void, size: usize) -> Result<Address<*mut u8>> {
    require(!space.is_null(), "reserveSpace")?;
    require(size >= bytes(of), "the reserve space is too small")?;
    Ok(memory::array(space.cast(), bytes(of))?)
}

fn same(a: &Tensor, b: &Tensor) -> Result {
    require(a.sizes == b.sizes && a.kind == b.kind, "the tensors' sizes or types differ")
}

/// What is kept is divided by the probability to be kept; the reserve space says what is.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnDropoutForward(
    handle: cudnnHandle_t,
    dropoutDesc: cudnnDropoutDescriptor_t,
    xdesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    ydesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    let context = computing(handle)?;
    let Dropout { dropped, states, .. } = DROPOUTS.get(dropoutDesc)?;
    require(!states.get().is_null(), "the descriptor has no states")?;
    // SAFETY: the caller's promise.
    let ((x, from), (y, to)) = (unsafe { at(xdesc, x) }?, unsafe { at(ydesc, y) }?);
    same(&x, &y)?;
    let states = memory::array(states.get(), STATE)?;
    let mask = reserve(&x, reserveSpace, reserveSpaceSizeInBytes)?;
    compute!(context, is_double(to.kind()), V => {
        let mut bytes = [0; STATE];
        // SAFETY: cuDNN's contract: the states of the descriptor.
        unsafe { core::ptr::copy_nonoverlapping(states.get().cast_const(), bytes.as_mut_ptr(), STATE) };
        let Some(mut state) = State::of_bytes(bytes) else {
            tracing::error!(target: "cudaway::dnn", "dropout: the states are none that cudnnSetDropoutDescriptor made");
            return;
        };
        // SAFETY: as above.
        let mut values = unsafe { from.load::<V>() };
        let (word, dropped) = (state.take(values.len()), f64::from(dropped));
        let factor = V::of(1.0 / (1.0 - dropped));
        // SAFETY: room was looked at.
        let mask = unsafe { core::slice::from_raw_parts_mut(mask.get(), values.len().div_ceil(8)) };
        for (number, (values, mask)) in values.chunks_mut(8).zip(mask).enumerate() {
            *mask = 0;
            for (bit, value) in values.iter_mut().enumerate() {
                let is_kept = keeps(word(8 * number + bit), dropped);
                *mask |= u8::from(is_kept) << bit;
                *value = if is_kept { *value * factor } else { V::of(0.0) };
            }
        }
        // SAFETY: as above.
        unsafe {
            to.store(&values, V::of(1.0), V::of(0.0));
            core::ptr::copy_nonoverlapping(state.bytes().as_ptr(), states.get(), STATE);
        }
    })
}

/// # Safety
/// As [`cudnnDropoutForward`].
pub unsafe fn cudnnDropoutBackward(
    handle: cudnnHandle_t,
    dropoutDesc: cudnnDropoutDescriptor_t,
    dydesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    dxdesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    let context = computing(handle)?;
    let dropped = f64::from(DROPOUTS.get(dropoutDesc)?.dropped);
    // SAFETY: the caller's promise.
    let ((dy, from), (dx, to)) = (unsafe { at(dydesc, dy) }?, unsafe { at(dxdesc, dx) }?);
    same(&dy, &dx)?;
    let mask = reserve(&dy, reserveSpace, reserveSpaceSizeInBytes)?;
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: as above.
        let mut values = unsafe { from.load::<V>() };
        let factor = V::of(1.0 / (1.0 - dropped));
        // SAFETY: room was looked at.
        let mask = unsafe { core::slice::from_raw_parts(mask.get().cast_const(), values.len().div_ceil(8)) };
        for (at, value) in values.iter_mut().enumerate() {
            let is_kept = mask[at / 8] >> (at % 8) & 1 != 0;
            *value = if is_kept { *value * factor } else { V::of(0.0) };
        }
        // SAFETY: as above.
        unsafe { to.store(&values, V::of(1.0), V::of(0.0)) };
    })
}
