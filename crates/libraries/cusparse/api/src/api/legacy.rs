//! `cusparseMatDescr_t`, which the typed calls take beside bare arrays.

use core::ffi::c_void;
use std::sync::Arc;

use border::Out;
use kit::Registry;
use parking_lot::{Mutex, MutexGuard};

use crate::Result;
use crate::error::require;
use crate::hip::library::Library;
use crate::hip::objects::KeptDescription;
use crate::types::*;

/// As the manual has a new one: general, lower, not unit, from 0.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Description {
    pub kind: cusparseMatrixType_t,
    pub fill: cusparseFillMode_t,
    pub diagonal: cusparseDiagType_t,
    pub base: cusparseIndexBase_t,
}

#[derive(Default)]
pub(crate) struct Entry {
    description: Mutex<Description>,
    hip: KeptDescription,
}

impl Entry {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Description> {
        self.description.lock()
    }
}

static DESCRIPTIONS: Registry<Entry> = Registry::new();

pub(crate) fn get(descr: cusparseMatDescr_t) -> Result<Arc<Entry>> {
    require(!descr.is_null(), "the matrix's descriptor is NULL")?;
    Ok(DESCRIPTIONS.get(descr)?)
}

/// hipSPARSE's for it.
pub(crate) fn on_hip(descr: cusparseMatDescr_t, library: &'static Library) -> Result<*mut c_void> {
    let entry = get(descr)?;
    let now = *entry.lock();
    entry.hip.tell(library, now)
}

pub fn cusparseCreateMatDescr(descrA: Out<'_, cusparseMatDescr_t>) -> Result {
    descrA.write(DESCRIPTIONS.add(Entry::default()));
    Ok(())
}

/// NULL is no error.
pub fn cusparseDestroyMatDescr(descrA: cusparseMatDescr_t) -> Result {
    if !descrA.is_null() {
        DESCRIPTIONS.remove(descrA)?;
    }
    Ok(())
}

pub fn cusparseSetMatType(descrA: cusparseMatDescr_t, type_: cusparseMatrixType_t) -> Result {
    let description = get(descrA)?;
    require(type_ <= cusparseMatrixType_t::CUSPARSE_MATRIX_TYPE_TRIANGULAR, "there is no such type")?;
    description.lock().kind = type_;
    Ok(())
}

pub fn cusparseGetMatType(descrA: cusparseMatDescr_t) -> cusparseMatrixType_t {
    get(descrA).map(|description| description.lock().kind).unwrap_or_default()
}

pub fn cusparseSetMatFillMode(descrA: cusparseMatDescr_t, fillMode: cusparseFillMode_t) -> Result {
    let description = get(descrA)?;
    require(fillMode <= cusparseFillMode_t::CUSPARSE_FILL_MODE_UPPER, "there is no such fill mode")?;
    description.lock().fill = fillMode;
    Ok(())
}

pub fn cusparseGetMatFillMode(descrA: cusparseMatDescr_t) -> cusparseFillMode_t {
    get(descrA).map(|description| description.lock().fill).unwrap_or_default()
}

pub fn cusparseSetMatDiagType(descrA: cusparseMatDescr_t, diagType: cusparseDiagType_t) -> Result {
    let description = get(descrA)?;
    require(diagType <= cusparseDiagType_t::CUSPARSE_DIAG_TYPE_UNIT, "there is no such type of diagonal")?;
    description.lock().diagonal = diagType;
    Ok(())
}

pub fn cusparseGetMatDiagType(descrA: cusparseMatDescr_t) -> cusparseDiagType_t {
    get(descrA).map(|description| description.lock().diagonal).unwrap_or_default()
}

pub fn cusparseSetMatIndexBase(descrA: cusparseMatDescr_t, base: cusparseIndexBase_t) -> Result {
    let description = get(descrA)?;
    require(base <= cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ONE, "there is no such base")?;
    description.lock().base = base;
    Ok(())
}

pub fn cusparseGetMatIndexBase(descrA: cusparseMatDescr_t) -> cusparseIndexBase_t {
    get(descrA).map(|description| description.lock().base).unwrap_or_default()
}
