//! cuBLASLt. Source: cuBLAS manual, "Using the cuBLASLt API".

use core::ffi::{c_char, c_int, c_void};

use border::Out;

use crate::api::lifecycle;
use crate::hip::lt as hip;
use crate::log::{self, Level};
use crate::lt::algorithm;
use crate::lt::descriptor::{Descriptor, EMULATION, Kind, LAYOUT, MATMUL, PREFERENCE, TRANSFORM};
use crate::lt::handle::LtEngine;
use crate::lt::product::Operands;
use crate::lt::{handle, product, transform};
use crate::*;

pub fn cublasLtCreate(lightHandle: Out<'_, cublasLtHandle_t>) -> Result {
    lightHandle.write(handle::create()?);
    Ok(())
}

pub fn cublasLtDestroy(lightHandle: cublasLtHandle_t) -> Result {
    handle::destroy(lightHandle)
}

pub fn cublasLtGetStatusName(status: cublasStatus_t) -> *const c_char {
    lifecycle::cublasGetStatusName(status)
}

pub fn cublasLtGetStatusString(status: cublasStatus_t) -> *const c_char {
    lifecycle::cublasGetStatusString(status)
}

/// There is nothing to keep: one algorithm is the right one for every product.
pub fn cublasLtHeuristicsCacheGetCapacity(capacity: Out<'_, usize>) -> Result {
    capacity.write(0);
    Ok(())
}

pub fn cublasLtHeuristicsCacheSetCapacity(_capacity: usize) -> Result {
    Ok(())
}

/// # Safety
/// NULL, or a descriptor of that kind.
unsafe fn known<T>(at: *mut T, kind: &'static Kind) -> Result<Descriptor<'static>> {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::of(at, kind) }
}

fn layout(made: Descriptor<'_>, type_: cudaDataType, rows: u64, cols: u64, ld: i64) {
    for (number, value) in [(0, i64::from(type_.0)), (2, rows as i64), (3, cols as i64), (4, ld)] {
        made.put(number, value);
    }
}

fn matmul_desc(made: Descriptor<'_>, computeType: cublasComputeType_t, scaleType: cudaDataType_t) {
    made.put(0, computeType.0.into());
    made.put(1, scaleType.0.into());
}

fn transform_desc(made: Descriptor<'_>, scaleType: cudaDataType) {
    made.put(0, scaleType.0.into());
}

pub fn cublasLtMatrixLayoutCreate(
    matLayout: Out<'_, cublasLtMatrixLayout_t>,
    type_: cudaDataType,
    rows: u64,
    cols: u64,
    ld: i64,
) -> Result {
    let made = Descriptor::create(&LAYOUT);
    layout(made, type_, rows, cols, ld);
    matLayout.write(made.raw());
    Ok(())
}

/// # Safety
/// `matLayout` is NULL, or has `size` bytes that may be written.
pub unsafe fn cublasLtMatrixLayoutInit_internal(
    matLayout: cublasLtMatrixLayout_t,
    size: usize,
    type_: cudaDataType,
    rows: u64,
    cols: u64,
    ld: i64,
) -> Result {
    // SAFETY: the caller's promise.
    let made = unsafe { Descriptor::init(matLayout, size, &LAYOUT)? };
    layout(made, type_, rows, cols, ld);
    Ok(())
}

/// A matrix for each group, whose sizes the device's memory has when a product runs.
pub fn cublasLtGroupedMatrixLayoutCreate(
    matLayout: Out<'_, cublasLtMatrixLayout_t>,
    type_: cudaDataType,
    groupCount: c_int,
    rows_array: *const c_void,
    cols_array: *const c_void,
    ld_array: *const c_void,
) -> Result {
    let made = Descriptor::create(&LAYOUT);
    grouped_layout(made, type_, groupCount, [rows_array, cols_array, ld_array]);
    matLayout.write(made.raw());
    Ok(())
}

/// # Safety
/// `matLayout` is NULL, or has `size` bytes that may be written.
pub unsafe fn cublasLtGroupedMatrixLayoutInit_internal(
    matLayout: cublasLtMatrixLayout_t,
    size: usize,
    type_: cudaDataType,
    groupCount: c_int,
    rows_array: *const c_void,
    cols_array: *const c_void,
    ld_array: *const c_void,
) -> Result {
    require(size >= size_of::<cublasLtMatrixLayoutOpaque_t>(), "the layout is too small for groups")?;
    // SAFETY: the caller's promise.
    let made = unsafe { Descriptor::init(matLayout, size, &LAYOUT)? };
    grouped_layout(made, type_, groupCount, [rows_array, cols_array, ld_array]);
    Ok(())
}

fn grouped_layout(made: Descriptor<'_>, type_: cudaDataType, groups: c_int, arrays: [*const c_void; 3]) {
    layout(made, type_, 0, 0, 0);
    made.put(5, groups.into());
    made.put(8, cublasLtBatchMode_t::CUBLASLT_BATCH_MODE_GROUPED.0.into());
    for (number, array) in [9, 10, 11].into_iter().zip(arrays) {
        made.put(number, array.expose_provenance() as i64);
    }
}

/// # Safety
/// `matLayout` is NULL, or a descriptor that its `Create` made and that nobody uses any more.
pub unsafe fn cublasLtMatrixLayoutDestroy(matLayout: cublasLtMatrixLayout_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::destroy(matLayout) }
}

/// # Safety
/// `matLayout` is NULL, or a descriptor of its kind that nobody else uses meanwhile; `buf` is NULL, or has `sizeInBytes` that may be read.
pub unsafe fn cublasLtMatrixLayoutSetAttribute(
    matLayout: cublasLtMatrixLayout_t,
    attr: cublasLtMatrixLayoutAttribute_t,
    buf: *const c_void,
    sizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(matLayout, &LAYOUT)?.set(attr.0, buf, sizeInBytes) }
}

/// # Safety
/// `matLayout` is NULL, or a descriptor of its kind; `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtMatrixLayoutGetAttribute(
    matLayout: cublasLtMatrixLayout_t,
    attr: cublasLtMatrixLayoutAttribute_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(matLayout, &LAYOUT)?.get(attr.0, buf, sizeInBytes, sizeWritten) }
}

pub fn cublasLtMatmulDescCreate(
    matmulDesc: Out<'_, cublasLtMatmulDesc_t>,
    computeType: cublasComputeType_t,
    scaleType: cudaDataType_t,
) -> Result {
    let made = Descriptor::create(&MATMUL);
    matmul_desc(made, computeType, scaleType);
    matmulDesc.write(made.raw());
    Ok(())
}

/// # Safety
/// `matmulDesc` is NULL, or has `size` bytes that may be written.
pub unsafe fn cublasLtMatmulDescInit_internal(
    matmulDesc: cublasLtMatmulDesc_t,
    size: usize,
    computeType: cublasComputeType_t,
    scaleType: cudaDataType_t,
) -> Result {
    // SAFETY: the caller's promise.
    let made = unsafe { Descriptor::init(matmulDesc, size, &MATMUL)? };
    matmul_desc(made, computeType, scaleType);
    Ok(())
}

/// # Safety
/// `matmulDesc` is NULL, or a descriptor that its `Create` made and that nobody uses any more.
pub unsafe fn cublasLtMatmulDescDestroy(matmulDesc: cublasLtMatmulDesc_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::destroy(matmulDesc) }
}

/// # Safety
/// `matmulDesc` is NULL, or a descriptor of its kind that nobody else uses meanwhile; `buf` is NULL, or has `sizeInBytes` that may be read.
pub unsafe fn cublasLtMatmulDescSetAttribute(
    matmulDesc: cublasLtMatmulDesc_t,
    attr: cublasLtMatmulDescAttributes_t,
    buf: *const c_void,
    sizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(matmulDesc, &MATMUL)?.set(attr.0, buf, sizeInBytes) }
}

/// # Safety
/// `matmulDesc` is NULL, or a descriptor of its kind; `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtMatmulDescGetAttribute(
    matmulDesc: cublasLtMatmulDesc_t,
    attr: cublasLtMatmulDescAttributes_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(matmulDesc, &MATMUL)?.get(attr.0, buf, sizeInBytes, sizeWritten) }
}

pub fn cublasLtMatmulPreferenceCreate(pref: Out<'_, cublasLtMatmulPreference_t>) -> Result {
    pref.write(Descriptor::create(&PREFERENCE).raw());
    Ok(())
}

/// # Safety
/// `pref` is NULL, or has `size` bytes that may be written.
pub unsafe fn cublasLtMatmulPreferenceInit_internal(pref: cublasLtMatmulPreference_t, size: usize) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::init(pref, size, &PREFERENCE)? };
    Ok(())
}

/// # Safety
/// `pref` is NULL, or a descriptor that its `Create` made and that nobody uses any more.
pub unsafe fn cublasLtMatmulPreferenceDestroy(pref: cublasLtMatmulPreference_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::destroy(pref) }
}

/// # Safety
/// `pref` is NULL, or a descriptor of its kind that nobody else uses meanwhile; `buf` is NULL, or has `sizeInBytes` that may be read.
pub unsafe fn cublasLtMatmulPreferenceSetAttribute(
    pref: cublasLtMatmulPreference_t,
    attr: cublasLtMatmulPreferenceAttributes_t,
    buf: *const c_void,
    sizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(pref, &PREFERENCE)?.set(attr.0, buf, sizeInBytes) }
}

/// # Safety
/// `pref` is NULL, or a descriptor of its kind; `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtMatmulPreferenceGetAttribute(
    pref: cublasLtMatmulPreference_t,
    attr: cublasLtMatmulPreferenceAttributes_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(pref, &PREFERENCE)?.get(attr.0, buf, sizeInBytes, sizeWritten) }
}

pub fn cublasLtEmulationDescCreate(emulationDesc: Out<'_, cublasLtEmulationDesc_t>) -> Result {
    emulationDesc.write(Descriptor::create(&EMULATION).raw());
    Ok(())
}

/// # Safety
/// `emulationDesc` is NULL, or has `size` bytes that may be written.
pub unsafe fn cublasLtEmulationDescInit_internal(
    emulationDesc: cublasLtEmulationDesc_t,
    size: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::init(emulationDesc, size, &EMULATION)? };
    Ok(())
}

/// # Safety
/// `emulationDesc` is NULL, or a descriptor that its `Create` made and that nobody uses any more.
pub unsafe fn cublasLtEmulationDescDestroy(emulationDesc: cublasLtEmulationDesc_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::destroy(emulationDesc) }
}

/// # Safety
/// `emulationDesc` is NULL, or a descriptor of its kind that nobody else uses meanwhile; `buf` is NULL, or has `sizeInBytes` that may be read.
pub unsafe fn cublasLtEmulationDescSetAttribute(
    emulationDesc: cublasLtEmulationDesc_t,
    attr: cublasLtEmulationDescAttributes_t,
    buf: *const c_void,
    sizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(emulationDesc, &EMULATION)?.set(attr.0, buf, sizeInBytes) }
}

/// # Safety
/// `emulationDesc` is NULL, or a descriptor of its kind; `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtEmulationDescGetAttribute(
    emulationDesc: cublasLtEmulationDesc_t,
    attr: cublasLtEmulationDescAttributes_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(emulationDesc, &EMULATION)?.get(attr.0, buf, sizeInBytes, sizeWritten) }
}

pub fn cublasLtMatrixTransformDescCreate(
    transformDesc: Out<'_, cublasLtMatrixTransformDesc_t>,
    scaleType: cudaDataType,
) -> Result {
    let made = Descriptor::create(&TRANSFORM);
    transform_desc(made, scaleType);
    transformDesc.write(made.raw());
    Ok(())
}

/// # Safety
/// `transformDesc` is NULL, or has `size` bytes that may be written.
pub unsafe fn cublasLtMatrixTransformDescInit_internal(
    transformDesc: cublasLtMatrixTransformDesc_t,
    size: usize,
    scaleType: cudaDataType,
) -> Result {
    // SAFETY: the caller's promise.
    let made = unsafe { Descriptor::init(transformDesc, size, &TRANSFORM)? };
    transform_desc(made, scaleType);
    Ok(())
}

/// # Safety
/// `transformDesc` is NULL, or a descriptor that its `Create` made and that nobody uses any more.
pub unsafe fn cublasLtMatrixTransformDescDestroy(transformDesc: cublasLtMatrixTransformDesc_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { Descriptor::destroy(transformDesc) }
}

/// # Safety
/// `transformDesc` is NULL, or a descriptor of its kind that nobody else uses meanwhile; `buf` is NULL, or has `sizeInBytes` that may be read.
pub unsafe fn cublasLtMatrixTransformDescSetAttribute(
    transformDesc: cublasLtMatrixTransformDesc_t,
    attr: cublasLtMatrixTransformDescAttributes_t,
    buf: *const c_void,
    sizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(transformDesc, &TRANSFORM)?.set(attr.0, buf, sizeInBytes) }
}

/// # Safety
/// `transformDesc` is NULL, or a descriptor of its kind; `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtMatrixTransformDescGetAttribute(
    transformDesc: cublasLtMatrixTransformDesc_t,
    attr: cublasLtMatrixTransformDescAttributes_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { known(transformDesc, &TRANSFORM)?.get(attr.0, buf, sizeInBytes, sizeWritten) }
}

/// A layout for the log.
fn shown(layout: Descriptor<'_>) -> String {
    layout.shown(&[
        (0, "type"),
        (1, "order"),
        (2, "rows"),
        (3, "cols"),
        (4, "ld"),
        (5, "batchCount"),
        (6, "stride"),
    ])
}

fn shown_operation(operation: Descriptor<'_>) -> String {
    operation.shown(&[
        (0, "computeType"),
        (1, "scaleType"),
        (2, "pointerMode"),
        (3, "transa"),
        (4, "transb"),
        (7, "epilogue"),
    ])
}

/// A descriptor, and what the program has set in it: numbers and bytes.
type Described<'d> = (Descriptor<'d>, Vec<(u32, &'d [u8])>);

/// What the program hands a product, as hipBLASLt's side takes it.
struct OnHip<'d> {
    operation: Described<'d>,
    layouts: [Described<'d>; 4],
}

impl<'d> OnHip<'d> {
    fn of(operation: &'d Descriptor<'_>, layouts: &'d [Descriptor<'_>; 4]) -> OnHip<'d> {
        OnHip {
            operation: (*operation, operation.attributes()),
            layouts: std::array::from_fn(|i| (layouts[i], layouts[i].attributes())),
        }
    }

    fn product(&self) -> hip::Product<'_> {
        let [a, b, c, d] = std::array::from_fn(|i| hip_layout(&self.layouts[i]));
        let (operation, attributes) = &self.operation;
        let compute = cublasComputeType_t(operation.number(0) as u32);
        let scale = cudaDataType(operation.number(1) as u32);
        hip::Product { operation: hip::Operation { compute, scale, attributes }, a, b, c, d }
    }
}

fn hip_layout<'a>((layout, attributes): &'a (Descriptor<'_>, Vec<(u32, &'a [u8])>)) -> hip::Layout<'a> {
    hip::Layout {
        data: cudaDataType(layout.number(0) as u32),
        rows: layout.number(2) as u64,
        cols: layout.number(3) as u64,
        ld: layout.number(4),
        attributes,
    }
}

/// # Safety
/// NULL, or descriptors of their kinds.
unsafe fn descriptors(
    operation: cublasLtMatmulDesc_t,
    layouts: [cublasLtMatrixLayout_t; 4],
) -> Result<(Descriptor<'static>, [Descriptor<'static>; 4])> {
    // SAFETY: the caller's promise.
    unsafe {
        let operation = known(operation, &MATMUL)?;
        let [a, b, c, d] = layouts;
        Ok((operation, [known(a, &LAYOUT)?, known(b, &LAYOUT)?, known(c, &LAYOUT)?, known(d, &LAYOUT)?]))
    }
}

/// # Safety
/// Descriptors and `preference` are NULL, or of their kinds; `heuristicResultsArray` is NULL, or has room for
/// `requestedAlgoCount` results.
pub unsafe fn cublasLtMatmulAlgoGetHeuristic(
    lightHandle: cublasLtHandle_t,
    operationDesc: cublasLtMatmulDesc_t,
    Adesc: cublasLtMatrixLayout_t,
    Bdesc: cublasLtMatrixLayout_t,
    Cdesc: cublasLtMatrixLayout_t,
    Ddesc: cublasLtMatrixLayout_t,
    preference: cublasLtMatmulPreference_t,
    requestedAlgoCount: c_int,
    heuristicResultsArray: *mut cublasLtMatmulHeuristicResult_t,
    returnAlgoCount: Out<'_, c_int>,
) -> Result {
    let engine = handle::get(lightHandle)?;
    // SAFETY: the caller's promise.
    let (operation, layouts) = unsafe { descriptors(operationDesc, [Adesc, Bdesc, Cdesc, Ddesc])? };
    require(requestedAlgoCount > 0 && !heuristicResultsArray.is_null(), "no algorithm is asked for")?;
    // SAFETY: as above; all-zero results are valid ones.
    let results = unsafe {
        heuristicResultsArray.write_bytes(0, requestedAlgoCount as usize);
        std::slice::from_raw_parts_mut(heuristicResultsArray, requestedAlgoCount as usize)
    };
    let found = match &*engine {
        LtEngine::Cpu => {
            results[0] = cublasLtMatmulHeuristicResult_t {
                algo: product::plan(operation, layouts)?.algorithm(),
                wavesCount: 1.0,
                ..Default::default()
            };
            1
        }
        LtEngine::Hip(engine) => {
            // SAFETY: as above.
            let preference = unsafe { known(preference, &PREFERENCE)? };
            engine.heuristics(
                &OnHip::of(&operation, &layouts).product(),
                &preference.attributes(),
                results,
            )?
        }
    };
    log::tell_lt(Level::Info, "cublasLtMatmulAlgoGetHeuristic", || {
        let [a, b, c, d] = layouts.map(shown);
        let operation = shown_operation(operation);
        format!("returnAlgoCount={found} operationDesc={operation} Adesc={a} Bdesc={b} Cdesc={c} Ddesc={d}")
    });
    returnAlgoCount.write(found as c_int);
    if found == 0 { Err(Error::NotSupported("there is no algorithm for this product")) } else { Ok(()) }
}

/// # Safety
/// Descriptors and `preference` are NULL, or of their kinds; `heuristicResultsArray` is NULL, or has room for
/// `requestedAlgoCount` results.
pub unsafe fn cublasLtMatmulAlgoGetHeuristicForStream(
    lightHandle: cublasLtHandle_t,
    operationDesc: cublasLtMatmulDesc_t,
    Adesc: cublasLtMatrixLayout_t,
    Bdesc: cublasLtMatrixLayout_t,
    Cdesc: cublasLtMatrixLayout_t,
    Ddesc: cublasLtMatrixLayout_t,
    preference: cublasLtMatmulPreference_t,
    requestedAlgoCount: c_int,
    heuristicResultsArray: *mut cublasLtMatmulHeuristicResult_t,
    returnAlgoCount: Out<'_, c_int>,
    _stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cublasLtMatmulAlgoGetHeuristic(
            lightHandle,
            operationDesc,
            Adesc,
            Bdesc,
            Cdesc,
            Ddesc,
            preference,
            requestedAlgoCount,
            heuristicResultsArray,
            returnAlgoCount,
        )
    }
}

/// Whether the algorithm is right for the product, and the workspace that it takes. The result's own algorithm stays as it is.
///
/// # Safety
/// Descriptors are NULL, or of their kinds; `result` is NULL or a result that may be written.
pub unsafe fn cublasLtMatmulAlgoCheck(
    lightHandle: cublasLtHandle_t,
    operationDesc: cublasLtMatmulDesc_t,
    Adesc: cublasLtMatrixLayout_t,
    Bdesc: cublasLtMatrixLayout_t,
    Cdesc: cublasLtMatrixLayout_t,
    Ddesc: cublasLtMatrixLayout_t,
    algo: &cublasLtMatmulAlgo_t,
    result: *mut cublasLtMatmulHeuristicResult_t,
) -> Result {
    // SAFETY: the caller's promise.
    let (operation, layouts) = unsafe { descriptors(operationDesc, [Adesc, Bdesc, Cdesc, Ddesc])? };
    require(!result.is_null(), "result")?;
    let found = match &*handle::get(lightHandle)? {
        LtEngine::Cpu => {
            algorithm::check_cpu(algo)?;
            require(
                product::plan(operation, layouts)?.algorithm().data[1] == algo.data[1],
                "algo is for other types",
            )?;
            cublasLtMatmulHeuristicResult_t { wavesCount: 1.0, ..Default::default() }
        }
        LtEngine::Hip(engine) => engine.check(&OnHip::of(&operation, &layouts).product(), algo)?,
    };
    // SAFETY: the caller's promise; only these fields are told.
    unsafe {
        (*result).workspaceSize = found.workspaceSize;
        (*result).state = found.state;
        (*result).wavesCount = found.wavesCount;
    }
    Ok(())
}

/// # Safety
/// Descriptors are NULL, or of their kinds; `result` is NULL or a result that may be written.
pub unsafe fn cublasLtMatmulAlgoCheckForStream(
    lightHandle: cublasLtHandle_t,
    operationDesc: cublasLtMatmulDesc_t,
    Adesc: cublasLtMatrixLayout_t,
    Bdesc: cublasLtMatrixLayout_t,
    Cdesc: cublasLtMatrixLayout_t,
    Ddesc: cublasLtMatrixLayout_t,
    algo: &cublasLtMatmulAlgo_t,
    result: *mut cublasLtMatmulHeuristicResult_t,
    _stream: cudaStream_t,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cublasLtMatmulAlgoCheck(lightHandle, operationDesc, Adesc, Bdesc, Cdesc, Ddesc, algo, result) }
}

/// The CPU's one algorithm, by its number; none of types that it does not take.
///
/// # Safety
/// `algoIdsArray` is NULL, or has room for `requestedAlgoCount` numbers.
pub unsafe fn cublasLtMatmulAlgoGetIds(
    lightHandle: cublasLtHandle_t,
    computeType: cublasComputeType_t,
    scaleType: cudaDataType_t,
    Atype: cudaDataType_t,
    Btype: cudaDataType_t,
    Ctype: cudaDataType_t,
    Dtype: cudaDataType_t,
    requestedAlgoCount: c_int,
    algoIdsArray: *mut c_int,
    returnAlgoCount: Out<'_, c_int>,
) -> Result {
    is_cpu(lightHandle)?;
    require(requestedAlgoCount > 0 && !algoIdsArray.is_null(), "no algorithm is asked for")?;
    let is_there = product::algorithm(computeType, scaleType, [Atype, Btype, Ctype, Dtype]).is_ok();
    if is_there {
        // SAFETY: not NULL; the caller's promise.
        unsafe { algoIdsArray.write(algorithm::CPU_ID) };
    }
    returnAlgoCount.write(is_there.into());
    Ok(())
}

pub fn cublasLtMatmulAlgoInit(
    lightHandle: cublasLtHandle_t,
    computeType: cublasComputeType_t,
    scaleType: cudaDataType_t,
    Atype: cudaDataType_t,
    Btype: cudaDataType_t,
    Ctype: cudaDataType_t,
    Dtype: cudaDataType_t,
    algoId: c_int,
    algo: Out<'_, cublasLtMatmulAlgo_t>,
) -> Result {
    is_cpu(lightHandle)?;
    require(algoId == algorithm::CPU_ID, "there is no such algorithm")?;
    algo.write(product::algorithm(computeType, scaleType, [Atype, Btype, Ctype, Dtype])?);
    Ok(())
}

fn is_cpu(lightHandle: cublasLtHandle_t) -> Result {
    match &*handle::get(lightHandle)? {
        LtEngine::Cpu => Ok(()),
        LtEngine::Hip(_) => Err(Error::NotSupported("hipBLASLt gives algorithms by its heuristics alone")),
    }
}

/// # Safety
/// `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtMatmulAlgoCapGetAttribute(
    algo: &cublasLtMatmulAlgo_t,
    attr: cublasLtMatmulAlgoCapAttributes_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { algorithm::capability(algo, attr, buf, sizeInBytes, sizeWritten) }
}

/// # Safety
/// `buf` is NULL, or has `sizeInBytes` that may be written; `sizeWritten` is NULL or writable.
pub unsafe fn cublasLtMatmulAlgoConfigGetAttribute(
    algo: &cublasLtMatmulAlgo_t,
    attr: cublasLtMatmulAlgoConfigAttributes_t,
    buf: *mut c_void,
    sizeInBytes: usize,
    sizeWritten: *mut usize,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { algorithm::setting(algo, attr, buf, sizeInBytes, sizeWritten) }
}

/// # Safety
/// `algo` is NULL, or an algorithm that may be written; `buf` is NULL, or has `sizeInBytes` that may be read.
pub unsafe fn cublasLtMatmulAlgoConfigSetAttribute(
    algo: *mut cublasLtMatmulAlgo_t,
    attr: cublasLtMatmulAlgoConfigAttributes_t,
    buf: *const c_void,
    sizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    let algo = unsafe { algo.as_mut() }.ok_or(Error::InvalidValue("algo"))?;
    // SAFETY: as above.
    unsafe { algorithm::set(algo, attr, buf, sizeInBytes) }
}

/// # Safety
/// Descriptors are NULL, or of their kinds, and what they and the arguments point to is as they say until the stream has done the
/// work.
pub unsafe fn cublasLtMatmul(
    lightHandle: cublasLtHandle_t,
    computeDesc: cublasLtMatmulDesc_t,
    alpha: *const c_void,
    A: *const c_void,
    Adesc: cublasLtMatrixLayout_t,
    B: *const c_void,
    Bdesc: cublasLtMatrixLayout_t,
    beta: *const c_void,
    C: *const c_void,
    Cdesc: cublasLtMatrixLayout_t,
    D: *mut c_void,
    Ddesc: cublasLtMatrixLayout_t,
    algo: Option<&cublasLtMatmulAlgo_t>,
    workspace: *mut c_void,
    workspaceSizeInBytes: usize,
    stream: cudaStream_t,
) -> Result {
    let engine = handle::get(lightHandle)?;
    // SAFETY: the caller's promise.
    let (operation, layouts) = unsafe { descriptors(computeDesc, [Adesc, Bdesc, Cdesc, Ddesc])? };
    log::tell_lt(Level::Trace, "cublasLtMatmul", || {
        let [a, b, c, d] = layouts.map(shown);
        format!(
            "A={A:?} Adesc={a} B={B:?} Bdesc={b} C={C:?} Cdesc={c} D={D:?} Ddesc={d} computeDesc={} \
             workspace={workspace:?} workspaceSizeInBytes={workspaceSizeInBytes} stream={stream:?}",
            shown_operation(operation)
        )
    });
    if algo.is_none() {
        log::tell_lt(Level::Hint, "cublasLtMatmul", || {
            "algo is NULL: each call looks for an algorithm anew; cublasLtMatmulAlgoGetHeuristic finds one for many".to_owned()
        });
    }
    not_emulated(operation, stream)?;
    let at = Operands { alpha, a: A, b: B, beta, c: C, d: D };
    match &*engine {
        LtEngine::Cpu => {
            algo.map_or(Ok(()), algorithm::check_cpu)?;
            // SAFETY: as above.
            on_stream(stream, unsafe { product::plan(operation, layouts)?.work(at)? })
        }
        LtEngine::Hip(engine) => {
            let made = OnHip::of(&operation, &layouts);
            // SAFETY: as above.
            unsafe { engine.matmul(&made.product(), &at, algo, workspace, workspaceSizeInBytes, stream) }
        }
    }
}

/// Says that a product keeps the mantissa of its type, where its descriptor of emulation asks how many bits were kept.
fn not_emulated(operation: Descriptor<'_>, stream: cudaStream_t) -> Result {
    let emulation: cublasLtEmulationDesc_t = operation.pointer(38);
    if emulation.is_null() {
        return Ok(());
    }
    // SAFETY: cuBLASLt's contract: the program keeps the descriptor.
    let place = unsafe { known(emulation, &EMULATION)? }.number(5);
    if place == 0 {
        return Ok(());
    }
    static NOT_EMULATED: c_int = -1;
    kit::driver::context(None)?;
    let driver = kit::driver::driver()?;
    let from = (&raw const NOT_EMULATED).cast();
    // SAFETY: device memory by cuBLASLt's contract.
    let code = unsafe { (driver.cuMemcpyHtoDAsync_v2)(place as u64, from, size_of::<c_int>(), stream) };
    Ok(kit::driver::check("cuMemcpyHtoDAsync", code)?)
}

/// A NULL `B` is no term.
///
/// # Safety
/// As [`cublasLtMatmul`].
pub unsafe fn cublasLtMatrixTransform(
    lightHandle: cublasLtHandle_t,
    transformDesc: cublasLtMatrixTransformDesc_t,
    alpha: *const c_void,
    A: *const c_void,
    Adesc: cublasLtMatrixLayout_t,
    beta: *const c_void,
    B: *const c_void,
    Bdesc: cublasLtMatrixLayout_t,
    C: *mut c_void,
    Cdesc: cublasLtMatrixLayout_t,
    stream: cudaStream_t,
) -> Result {
    let engine = handle::get(lightHandle)?;
    // SAFETY: the caller's promise.
    let (description, a, c) =
        unsafe { (known(transformDesc, &TRANSFORM)?, known(Adesc, &LAYOUT)?, known(Cdesc, &LAYOUT)?) };
    // SAFETY: as above.
    let b = (!Bdesc.is_null()).then(|| unsafe { known(Bdesc, &LAYOUT) }).transpose()?;
    log::tell_lt(Level::Trace, "cublasLtMatrixTransform", || {
        let of_b = b.map_or_else(|| "NULL".to_owned(), shown);
        format!(
            "A={A:?} Adesc={} B={B:?} Bdesc={of_b} C={C:?} Cdesc={} transformDesc={} stream={stream:?}",
            shown(a),
            shown(c),
            description.shown(&[(0, "scaleType"), (1, "pointerMode"), (2, "transa"), (3, "transb")])
        )
    });
    match &*engine {
        LtEngine::Cpu => {
            let matrices = [(Some(a), A), (b, B)];
            // SAFETY: as above.
            let work = unsafe { transform::work(description, [alpha, beta], matrices, (c, C))? };
            on_stream(stream, work)
        }
        LtEngine::Hip(engine) => {
            let b = b.unwrap_or(a);
            let made = [(a, a.attributes()), (b, b.attributes()), (c, c.attributes())];
            let layouts = std::array::from_fn(|i| hip_layout(&made[i]));
            let at = Operands { alpha, a: A, b: B, beta, c: core::ptr::null(), d: C };
            let scale = cudaDataType(description.number(0) as u32);
            // SAFETY: as above.
            unsafe { engine.transform(scale, &description.attributes(), layouts, &at, stream) }
        }
    }
}

fn on_stream(stream: cudaStream_t, work: impl Fn() + Send + Sync + 'static) -> Result {
    kit::driver::context(None)?;
    Ok(kit::stream::enqueue(stream, (), move |()| work())?)
}
