//! What is done to tensors element by element, and reductions.

use core::ffi::{c_uint, c_void};

use cudnn_cpu::Kind;

use super::call::{HipCall, call, done, settle};
use super::convert::{self, DATA_TYPES, number};
use super::objects::{self, Layout, are_there, by_channel};
use crate::Result;
use crate::tensor::{Argument, Tensor};
use crate::types::*;

/// Whether the factor is itself in the tensor's type, in which MIOpen multiplies by it.
fn is_exact(factor: f64, kind: cudnnDataType_t) -> bool {
    match kind {
        cudnnDataType_t::CUDNN_DATA_FLOAT => true,
        // Few of the others: whole multiples of 2^-10 that fit in eleven bits.
        _ => (factor * 1024.0).fract() == 0.0 && factor.abs() <= 2.0,
    }
}

/// A reduction that MIOpen has.
pub struct Reduction {
    pub op: cudnnReduceTensorOp_t,
    pub nan: cudnnNanPropagation_t,
}

impl HipCall {
    /// `c = op(alpha1·a, alpha2·b) + beta·c`, where a has c's sizes, and sizes of 1 of b are repeated. `apart`: it can be done again.
    pub fn mix(
        &self,
        op: c_uint,
        [(alpha1, a), (alpha2, b)]: [(f64, &Argument); 2],
        (beta, c): (f64, &Argument),
        apart: bool,
    ) -> Result<bool> {
        let all = [a, b, c];
        let Some(kind) = objects::plain_type(c.kind) else { return Ok(false) };
        let fits = all.iter().all(|tensor| tensor.kind == c.kind)
            && a.sizes == c.sizes
            && (4..=5).contains(&c.sizes.len())
            && by_channel(&[a, b, c])
            && [alpha1, alpha2, beta].iter().all(|&factor| is_exact(factor, c.kind))
            && are_there(&all);
        if !fits {
            return Ok(false);
        }
        let (alpha1, alpha2, beta) = (alpha1 as f32, alpha2 as f32, beta as f32);
        let run = || {
            let library = self.library();
            let tensor = |of: &Tensor| objects::tensor(library, kind, &of.sizes, Layout::ByChannel);
            let [a_is, b_is, c_is] = [tensor(a)?, tensor(b)?, tensor(c)?];
            call!(
                library,
                miopenOpTensor(
                    self.raw(),
                    op,
                    &alpha1,
                    a_is.raw(),
                    a.memory,
                    &alpha2,
                    b_is.raw(),
                    b.memory,
                    &beta,
                    c_is.raw(),
                    c.memory
                )
            )
        };
        done(run(), "a sum or product of tensors", apart)
    }

    /// Makes every element the value, which has the tensor's type.
    pub fn fill(&self, y: &Argument, value: *const c_void) -> Result<bool> {
        let Some(kind) = number(y.kind, &DATA_TYPES) else { return Ok(false) };
        self.with_scalar(y, kind, true, |y_is| {
            call!(self.library(), miopenSetTensor(self.raw(), y_is, y.memory, value))
        })
    }

    /// `y = alpha·y`, in single precision, in whose type alone MIOpen's factor is cuDNN's.
    pub fn scale(&self, y: &Argument, alpha: f64) -> Result<bool> {
        if y.element()? != Kind::F32 {
            return Ok(false);
        }
        let alpha = alpha as f32;
        self.with_scalar(y, convert::SINGLE, false, |y_is| {
            call!(self.library(), miopenScaleTensor(self.raw(), y_is, y.memory, (&raw const alpha).cast()))
        })
    }

    fn with_scalar(
        &self,
        y: &Argument,
        kind: c_uint,
        apart: bool,
        call: impl FnOnce(super::library::Raw) -> Result,
    ) -> Result<bool> {
        if !by_channel(&[y]) || y.sizes.len() > 5 || !are_there(&[y]) {
            return Ok(false);
        }
        let made = objects::tensor(self.library(), kind, &y.sizes, Layout::ByChannel);
        done(made.and_then(|y_is| call(y_is.raw())), "a tensor and a number", apart)
    }

    /// The work area of a reduction; 0 where our own code computes.
    pub fn reduction_workspace(&self, of: Option<&Reduction>, a: &Tensor, c: &Tensor) -> Result<usize> {
        let Some((of, kind)) = of.and_then(|of| Some((of, fitting(of, a, c)?))) else { return Ok(0) };
        let ask = || {
            let (library, mut bytes) = (self.library(), 0);
            let [of, a, c] = reduced(library, of, kind, a, c)?;
            call!(
                library,
                miopenGetReductionWorkspaceSize(self.raw(), of.raw(), a.raw(), c.raw(), &mut bytes)
            )?;
            Ok(bytes)
        };
        Ok(settle(ask(), "a reduction", true)?.unwrap_or(0))
    }

    /// `c = alpha·(the reduction of a) + beta·c`
    pub fn reduce(
        &self,
        of: &Reduction,
        (alpha, a): (f64, &Argument),
        (beta, c): (f64, &Argument),
        (area, bytes): (*mut c_void, usize),
    ) -> Result<bool> {
        let Some(kind) = fitting(of, a, c).filter(|_| are_there(&[a, c])) else { return Ok(false) };
        let (alpha, factor) = (alpha as f32, beta as f32);
        let run = || {
            let library = self.library();
            let [of, a_is, c_is] = reduced(library, of, kind, a, c)?;
            call!(
                library,
                miopenReduceTensor(
                    self.raw(),
                    of.raw(),
                    core::ptr::null_mut(),
                    0,
                    area,
                    if area.is_null() { 0 } else { bytes },
                    &alpha,
                    a_is.raw(),
                    a.memory,
                    &factor,
                    c_is.raw(),
                    c.memory
                )
            )
        };
        done(run(), "a reduction", beta == 0.0 && a.memory != c.memory)
    }
}

/// The tensors' type, if MIOpen has such a reduction of them.
fn fitting(of: &Reduction, a: &Tensor, c: &Tensor) -> Option<c_uint> {
    number(of.op, &convert::REDUCTIONS)?;
    let fits = a.kind == c.kind && a.sizes.len() <= 6 && c.sizes.contains(&1) && by_channel(&[a, c]);
    objects::plain_type(a.kind).filter(|_| fits)
}

fn reduced(
    library: &super::library::Library,
    of: &Reduction,
    kind: c_uint,
    a: &Tensor,
    c: &Tensor,
) -> Result<[objects::Made; 3]> {
    let lacks = crate::Error::NotSupported("MIOpen has no such reduction");
    let op = number(of.op, &convert::REDUCTIONS).ok_or(lacks)?;
    let nan = number(of.nan, &convert::PROPAGATIONS).ok_or(lacks)?;
    let tensor = |of: &Tensor| objects::tensor(library, kind, &of.sizes, Layout::ByChannel);
    Ok([objects::reduction(library, op, nan)?, tensor(a)?, tensor(c)?])
}
