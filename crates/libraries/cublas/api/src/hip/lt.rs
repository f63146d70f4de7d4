//! cuBLASLt on ROCm's hipBLASLt. Descriptors are ours until a product is asked for: what the program set in them is then set,
//! in hipBLASLt's numbers, in hipBLASLt's own, which last for the call.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::OsStr;
use std::sync::OnceLock;

use cuda_abi::CUstream;
use kit::hip::{Object, Wanted, stream as hip_stream};

use super::call::check;
use super::convert::{compute_type, hipDataType, hipblasComputeType_t, hipblasStatus_t, operation};

pub use crate::lt::product::Operands;
use crate::*;

const HIPBLASLT: Wanted = Wanted {
    names: &["libhipblaslt.so", "libhipblaslt.so.1", "libhipblaslt.so.0"],
    stands_for: "cuBLASLt",
    variable: "CUDAWAY_BLAS",
};

/// One of hipBLASLt's handles and descriptors.
type Opaque = *mut c_void;

macro_rules! functions {
    ($($name:ident($($ty:ty),*);)*) => {
        /// hipBLASLt from ROCm 6.0 on. Before, its numbers were others, and few GPUs had it.
        pub struct LtLibrary {
            $($name: unsafe extern "C" fn($($ty),*) -> hipblasStatus_t,)*
            _object: Object<0>,
        }

        impl LtLibrary {
            /// # Errors
            /// Why it is none, in words.
            pub fn open(path: &OsStr) -> core::result::Result<LtLibrary, String> {
                let object = Object::open(path)?;
                $(let $name = object
                    .find_other(
                        CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()).unwrap_or_default(),
                    )
                    .ok_or_else(|| format!("{} exports no {}", path.display(), stringify!($name)))?;)*
                // SAFETY: each has its name's type in tools/data/hip/hipblaslt.json.
                unsafe { Ok(LtLibrary { $($name: core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> hipblasStatus_t>($name),)* _object: object }) }
            }
        }
    };
}

functions! {
    hipblasLtCreate(*mut Opaque);
    hipblasLtDestroy(Opaque);
    hipblasLtMatrixLayoutCreate(*mut Opaque, hipDataType, u64, u64, i64);
    hipblasLtMatrixLayoutDestroy(Opaque);
    hipblasLtMatrixLayoutSetAttribute(Opaque, u32, *const c_void, usize);
    hipblasLtMatmulDescCreate(*mut Opaque, hipblasComputeType_t, hipDataType);
    hipblasLtMatmulDescDestroy(Opaque);
    hipblasLtMatmulDescSetAttribute(Opaque, u32, *const c_void, usize);
    hipblasLtMatmulPreferenceCreate(*mut Opaque);
    hipblasLtMatmulPreferenceDestroy(Opaque);
    hipblasLtMatmulPreferenceSetAttribute(Opaque, u32, *const c_void, usize);
    hipblasLtMatmulAlgoGetHeuristic(
        Opaque, Opaque, Opaque, Opaque, Opaque, Opaque, Opaque, c_int, *mut HeuristicResult, *mut c_int
    );
    hipblasLtMatmul(
        Opaque, Opaque, *const c_void, *const c_void, Opaque, *const c_void, Opaque, *const c_void, *const c_void, Opaque,
        *mut c_void, Opaque, *const Algorithm, *mut c_void, usize, *mut c_void
    );
    // ROCm 6.0 brought it, and the numbers that are used here.
    hipblasLtMatrixTransformDescCreate(*mut Opaque, hipDataType);
    hipblasLtMatrixTransformDescDestroy(Opaque);
    hipblasLtMatrixTransformDescSetAttribute(Opaque, u32, *const c_void, usize);
    hipblasLtMatrixTransform(
        Opaque, Opaque, *const c_void, *const c_void, Opaque, *const c_void, *const c_void, Opaque, *mut c_void, Opaque,
        *mut c_void
    );
}

impl LtLibrary {
    /// The process's, opened when it is first needed.
    fn get() -> Result<&'static LtLibrary> {
        static LIBRARY: OnceLock<Option<LtLibrary>> = OnceLock::new();
        LIBRARY
            .get_or_init(|| HIPBLASLT.first(&config::get().blas, LtLibrary::open))
            .as_ref()
            .ok_or(Error::NotSupported("no libhipblaslt.so of ROCm 6 or later is found"))
    }
}

/// `hipblasLtMatmulAlgo_t`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Algorithm {
    data: [u8; 16],
    max_workspace_bytes: usize,
}

/// `hipblasLtMatmulHeuristicResult_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeuristicResult {
    algo: Algorithm,
    workspace_bytes: usize,
    state: hipblasStatus_t,
    waves_count: f32,
    reserved: [c_int; 4],
}

const _: () = assert!(size_of::<Algorithm>() == 24 && size_of::<HeuristicResult>() == 56);

/// Marks cuBLASLt's algorithms that hold one of hipBLASLt's.
const IS_HIP: u64 = u64::from_ne_bytes(*b"hipblas\0");

/// Whether it is one of hipBLASLt's.
pub fn is_algorithm(algo: &cublasLtMatmulAlgo_t) -> bool {
    algo.data[3] == IS_HIP
}

impl Algorithm {
    fn as_cublas(self) -> cublasLtMatmulAlgo_t {
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| self.data[at + byte]));
        let mut algo = cublasLtMatmulAlgo_t::default();
        algo.data[..4].copy_from_slice(&[word(0), word(8), self.max_workspace_bytes as u64, IS_HIP]);
        algo
    }

    fn from_cublas(algo: &cublasLtMatmulAlgo_t) -> Result<Algorithm> {
        let [low, high, bytes, mark, ..] = algo.data;
        if mark != IS_HIP {
            return Err(Error::InvalidValue(
                "algo is none that cublasLtMatmulAlgoGetHeuristic gave for this device",
            ));
        }
        let mut data = [0; 16];
        data[..8].copy_from_slice(&low.to_ne_bytes());
        data[8..].copy_from_slice(&high.to_ne_bytes());
        Ok(Algorithm { data, max_workspace_bytes: bytes as usize })
    }
}

/// What a program set in one of cuBLASLt's descriptors: numbers of the attributes, and their bytes.
pub type Attributes<'a> = &'a [(u32, &'a [u8])];

/// `cublasLtMatrixLayout_t`. Type and sizes are as they are now, whatever the attributes say of them.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    pub data: cudaDataType,
    pub rows: u64,
    pub cols: u64,
    pub ld: i64,
    pub attributes: Attributes<'a>,
}

/// `cublasLtMatmulDesc_t`. The types are as they are now.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    pub compute: cublasComputeType_t,
    pub scale: cudaDataType,
    pub attributes: Attributes<'a>,
}

/// The matrices of D = α·op(A)·op(B) + β·C, each with its layout.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    pub operation: Operation<'a>,
    pub a: Layout<'a>,
    pub b: Layout<'a>,
    pub c: Layout<'a>,
    pub d: Layout<'a>,
}

/// How an attribute is told.
enum Told {
    /// Under another number, with the same bytes.
    As(u32),
    /// An operation, whose numbers differ.
    Operation(u32),
    /// Not at all: it changes speed alone, or was told before.
    Hint,
    /// Not at all, and so it must be what it is in a new descriptor, all zeros.
    OnlyZero(&'static str),
    Never(&'static str),
}

fn of_operation(attribute: u32, bytes: &[u8]) -> Told {
    use cublasLtMatmulDescAttributes_t as Is;
    match cublasLtMatmulDescAttributes_t(attribute) {
        Is::CUBLASLT_MATMUL_DESC_POINTER_MODE => match number(bytes) {
            0 | 1 | 4 => Told::As(13),
            _ => Told::Never("hipBLASLt has no factors in vectors for this beta"),
        },
        Is::CUBLASLT_MATMUL_DESC_TRANSA => Told::Operation(0),
        Is::CUBLASLT_MATMUL_DESC_TRANSB => Told::Operation(1),
        Is::CUBLASLT_MATMUL_DESC_EPILOGUE => match cublasLtEpilogue_t(number(bytes)) {
            // HIP differs: it keeps the values before ReLU, where cuBLASLt keeps a bit for each.
            cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_AUX
            | cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_AUX_BIAS
            | cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DRELU
            | cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DRELU_BGRAD => {
                Told::Never("hipBLASLt has no mask of ReLU")
            }
            // The other epilogues have cuBLASLt's numbers.
            _ => Told::As(2),
        },
        // -1: the type follows from the others', which it does untold too.
        Is::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE | Is::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE
            if number(bytes) == u32::MAX =>
        {
            Told::Hint
        }
        Is::CUBLASLT_MATMUL_DESC_BIAS_POINTER => Told::As(3),
        Is::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE => Told::As(4),
        Is::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER => Told::As(5),
        Is::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER => Told::As(6),
        Is::CUBLASLT_MATMUL_DESC_C_SCALE_POINTER => Told::As(7),
        Is::CUBLASLT_MATMUL_DESC_D_SCALE_POINTER => Told::As(8),
        Is::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER => Told::As(9),
        Is::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER => Told::As(10),
        Is::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD => Told::As(11),
        Is::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE => Told::As(12),
        Is::CUBLASLT_MATMUL_DESC_AMAX_D_POINTER => Told::As(14),
        Is::CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE => Told::As(22),
        Is::CUBLASLT_MATMUL_DESC_A_SCALE_MODE => Told::As(31),
        Is::CUBLASLT_MATMUL_DESC_B_SCALE_MODE => Told::As(32),
        Is::CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET | Is::CUBLASLT_MATMUL_DESC_FAST_ACCUM => Told::Hint,
        // Nothing is emulated, which every setting allows.
        Is::CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR => Told::Hint,
        // The descriptor was created with them.
        Is::CUBLASLT_MATMUL_DESC_COMPUTE_TYPE | Is::CUBLASLT_MATMUL_DESC_SCALE_TYPE => Told::Hint,
        Is::CUBLASLT_MATMUL_DESC_FILL_MODE => match cublasFillMode_t(number(bytes)) {
            cublasFillMode_t::CUBLAS_FILL_MODE_FULL => Told::Hint,
            _ => Told::Never("hipBLASLt computes whole matrices"),
        },
        _ => Told::OnlyZero("an attribute of the product that hipBLASLt lacks"),
    }
}

fn of_layout(attribute: u32, bytes: &[u8]) -> Told {
    use cublasLtMatrixLayoutAttribute_t as Is;
    match cublasLtMatrixLayoutAttribute_t(attribute) {
        Is::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT => Told::As(0),
        Is::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET => Told::As(1),
        Is::CUBLASLT_MATRIX_LAYOUT_ORDER => match number(bytes) {
            0 | 1 => Told::As(3),
            _ => Told::Never("hipBLASLt has other tiled orders than cuBLASLt"),
        },
        // The layout was created with them.
        Is::CUBLASLT_MATRIX_LAYOUT_TYPE
        | Is::CUBLASLT_MATRIX_LAYOUT_ROWS
        | Is::CUBLASLT_MATRIX_LAYOUT_COLS
        | Is::CUBLASLT_MATRIX_LAYOUT_LD => Told::Hint,
        _ => Told::OnlyZero("an attribute of a layout that hipBLASLt lacks"),
    }
}

fn of_preference(attribute: u32, _: &[u8]) -> Told {
    match cublasLtMatmulPreferenceAttributes_t(attribute) {
        cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES => Told::As(1),
        // Which algorithms are looked at: all that hipBLASLt gives compute the same.
        _ => Told::Hint,
    }
}

fn of_transform(attribute: u32, _: &[u8]) -> Told {
    use cublasLtMatrixTransformDescAttributes_t as Is;
    match cublasLtMatrixTransformDescAttributes_t(attribute) {
        Is::CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE => Told::As(1),
        Is::CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA => Told::Operation(2),
        Is::CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB => Told::Operation(3),
        Is::CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE => Told::Hint,
        _ => Told::OnlyZero("an attribute of the transform that hipBLASLt lacks"),
    }
}

/// An attribute of 32 bits.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(u32::MAX, |bytes| u32::from_ne_bytes(*bytes))
}

/// One of hipBLASLt's descriptors, for the length of a call.
struct Descriptor {
    raw: Opaque,
    destroy: unsafe extern "C" fn(Opaque) -> hipblasStatus_t,
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by the function that belongs to this one, and nobody else has it.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

type SetAttribute = unsafe extern "C" fn(Opaque, u32, *const c_void, usize) -> hipblasStatus_t;

impl Descriptor {
    fn new(
        create: impl FnOnce(*mut Opaque) -> hipblasStatus_t,
        destroy: unsafe extern "C" fn(Opaque) -> hipblasStatus_t,
    ) -> Result<Descriptor> {
        let mut raw = core::ptr::null_mut();
        check(create(&mut raw))?;
        Ok(Descriptor { raw, destroy })
    }

    fn with(
        self,
        set: SetAttribute,
        attributes: Attributes<'_>,
        told: fn(u32, &[u8]) -> Told,
    ) -> Result<Descriptor> {
        for &(attribute, bytes) in attributes {
            let (to, operation) = match told(attribute, bytes) {
                Told::As(to) => (to, None),
                Told::Operation(to) => (to, Some(operation(cublasOperation_t(number(bytes)))?.0)),
                Told::Hint => continue,
                Told::OnlyZero(_) if bytes.iter().all(|&byte| byte == 0) => continue,
                Told::OnlyZero(what) | Told::Never(what) => return Err(Error::NotSupported(what)),
            };
            let bytes =
                operation.as_ref().map_or((bytes.as_ptr(), bytes.len()), |hip| ((&raw const *hip).cast(), 4));
            // SAFETY: the bytes are as many as is said.
            check(unsafe { set(self.raw, to, bytes.0.cast(), bytes.1) })?;
        }
        Ok(self)
    }
}

/// hipBLASLt's handle of a device.
pub struct LtHandle {
    library: &'static LtLibrary,
    raw: Opaque,
}

// SAFETY: hipBLASLt's handles may be used by any thread.
unsafe impl Send for LtHandle {}
// SAFETY: as above.
unsafe impl Sync for LtHandle {}

/// The descriptors of a product.
struct Descriptors {
    operation: Descriptor,
    a: Descriptor,
    b: Descriptor,
    c: Descriptor,
    d: Descriptor,
}

impl LtHandle {
    /// For the calling thread's device.
    pub fn new() -> Result<LtHandle> {
        let library = LtLibrary::get()?;
        // hipBLASLt's handle is the current HIP device's.
        hip_stream(CUstream::default(), false)?;
        LtHandle::of(library)
    }

    /// For HIP's current device.
    pub fn of(library: &'static LtLibrary) -> Result<LtHandle> {
        let mut raw = core::ptr::null_mut();
        // SAFETY: `raw` is writable.
        check(unsafe { (library.hipblasLtCreate)(&mut raw) })?;
        Ok(LtHandle { library, raw })
    }

    /// `cublasLtMatmulAlgoGetHeuristic`: fills `results` from the start and says how many there are, the best first.
    pub fn heuristics(
        &self,
        product: &Product<'_>,
        preference: Attributes<'_>,
        results: &mut [cublasLtMatmulHeuristicResult_t],
    ) -> Result<usize> {
        let found = self.algorithms(&self.descriptors(product)?, preference, results.len())?;
        for (result, found) in results.iter_mut().zip(&found) {
            *result = cublasLtMatmulHeuristicResult_t {
                algo: found.algo.as_cublas(),
                workspaceSize: found.workspace_bytes,
                state: found.state.as_cublas(),
                wavesCount: found.waves_count,
                reserved: [0; 4],
            };
        }
        Ok(found.len())
    }

    /// `cublasLtMatmulAlgoCheck`: hipBLASLt has no check in C, but its heuristics give what is right for a product.
    pub fn check(
        &self,
        product: &Product<'_>,
        algo: &cublasLtMatmulAlgo_t,
    ) -> Result<cublasLtMatmulHeuristicResult_t> {
        let wanted = Algorithm::from_cublas(algo)?;
        let limit = wanted.max_workspace_bytes.to_ne_bytes();
        let key = cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES.0;
        let mut found = [cublasLtMatmulHeuristicResult_t::default(); 64];
        let count = self.heuristics(product, &[(key, &limit)], &mut found)?;
        found[..count]
            .iter()
            .find(|result| result.algo.data[..2] == algo.data[..2])
            .copied()
            .ok_or(Error::NotSupported("hipBLASLt does not name this algorithm for this product"))
    }

    /// `cublasLtMatmul`. Without `algo` hipBLASLt's first choice within the workspace.
    ///
    /// # Safety
    /// cuBLASLt's contract for the pointers.
    pub unsafe fn matmul(
        &self,
        product: &Product<'_>,
        at: &Operands,
        algo: Option<&cublasLtMatmulAlgo_t>,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: CUstream,
    ) -> Result {
        let stream = hip_stream(stream, true)?.stream;
        // SAFETY: the caller's promise.
        unsafe { self.matmul_on(product, at, algo, workspace, workspace_bytes, stream) }
    }

    /// As [`Self::matmul`], on a stream of HIP's.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn matmul_on(
        &self,
        product: &Product<'_>,
        at: &Operands,
        algo: Option<&cublasLtMatmulAlgo_t>,
        workspace: *mut c_void,
        workspace_bytes: usize,
        stream: *mut c_void,
    ) -> Result {
        let made = self.descriptors(product)?;
        let algo = match algo {
            Some(algo) => Algorithm::from_cublas(algo)?,
            None => {
                let limit = (workspace_bytes as u64).to_ne_bytes();
                let key = cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES.0;
                let found = self.algorithms(&made, &[(key, &limit)], 1)?;
                found.first().ok_or(Error::NotSupported("hipBLASLt has no algorithm for this product"))?.algo
            }
        };
        // SAFETY: the caller's promise; the descriptors are alive.
        check(unsafe {
            (self.library.hipblasLtMatmul)(
                self.raw,
                made.operation.raw,
                at.alpha,
                at.a,
                made.a.raw,
                at.b,
                made.b.raw,
                at.beta,
                at.c,
                made.c.raw,
                at.d,
                made.d.raw,
                &algo,
                workspace,
                workspace_bytes,
                stream,
            )
        })
    }

    /// `cublasLtMatrixTransform`: C = α·op(A) + β·op(B).
    ///
    /// # Safety
    /// cuBLASLt's contract for the pointers.
    pub unsafe fn transform(
        &self,
        scale: cudaDataType,
        attributes: Attributes<'_>,
        [a, b, c]: [Layout<'_>; 3],
        at: &Operands,
        stream: CUstream,
    ) -> Result {
        let stream = hip_stream(stream, true)?.stream;
        // SAFETY: the caller's promise.
        unsafe { self.transform_on(scale, attributes, [a, b, c], at, stream) }
    }

    /// As [`Self::transform`], on a stream of HIP's.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn transform_on(
        &self,
        scale: cudaDataType,
        attributes: Attributes<'_>,
        [a, b, c]: [Layout<'_>; 3],
        at: &Operands,
        stream: *mut c_void,
    ) -> Result {
        let library = self.library;
        // SAFETY: the place is writable.
        let create = |made| unsafe { (library.hipblasLtMatrixTransformDescCreate)(made, scale) };
        let transform = Descriptor::new(create, library.hipblasLtMatrixTransformDescDestroy)?.with(
            library.hipblasLtMatrixTransformDescSetAttribute,
            attributes,
            of_transform,
        )?;
        let (a, b, c) = (self.layout(&a)?, self.layout(&b)?, self.layout(&c)?);
        // SAFETY: the caller's promise; the descriptors are alive.
        check(unsafe {
            (library.hipblasLtMatrixTransform)(
                self.raw,
                transform.raw,
                at.alpha,
                at.a,
                a.raw,
                at.beta,
                at.b,
                b.raw,
                at.d,
                c.raw,
                stream,
            )
        })
    }

    fn algorithms(
        &self,
        made: &Descriptors,
        preference: Attributes<'_>,
        n_wanted: usize,
    ) -> Result<Vec<HeuristicResult>> {
        let library = self.library;
        // SAFETY: the place is writable.
        let create = |made| unsafe { (library.hipblasLtMatmulPreferenceCreate)(made) };
        let preference = Descriptor::new(create, library.hipblasLtMatmulPreferenceDestroy)?.with(
            library.hipblasLtMatmulPreferenceSetAttribute,
            preference,
            of_preference,
        )?;
        let none = HeuristicResult {
            algo: Algorithm::default(),
            workspace_bytes: 0,
            state: hipblasStatus_t::HIPBLAS_STATUS_SUCCESS,
            waves_count: 0.,
            reserved: [0; 4],
        };
        let mut found = vec![none; n_wanted];
        let mut n_found = 0;
        let n_wanted = c_int::try_from(n_wanted).map_err(|_| Error::InvalidValue("requestedAlgoCount"))?;
        // SAFETY: there is room for as many as are wanted; the descriptors are alive.
        check(unsafe {
            (library.hipblasLtMatmulAlgoGetHeuristic)(
                self.raw,
                made.operation.raw,
                made.a.raw,
                made.b.raw,
                made.c.raw,
                made.d.raw,
                preference.raw,
                n_wanted,
                found.as_mut_ptr(),
                &mut n_found,
            )
        })?;
        found.truncate(usize::try_from(n_found).unwrap_or(0));
        Ok(found)
    }

    fn descriptors(&self, product: &Product<'_>) -> Result<Descriptors> {
        let (library, operation) = (self.library, &product.operation);
        let compute = compute_type(operation.compute)?;
        // SAFETY: the place is writable.
        let create = |made| unsafe { (library.hipblasLtMatmulDescCreate)(made, compute, operation.scale) };
        let operation = Descriptor::new(create, library.hipblasLtMatmulDescDestroy)?.with(
            library.hipblasLtMatmulDescSetAttribute,
            operation.attributes,
            of_operation,
        )?;
        Ok(Descriptors {
            operation,
            a: self.layout(&product.a)?,
            b: self.layout(&product.b)?,
            c: self.layout(&product.c)?,
            d: self.layout(&product.d)?,
        })
    }

    fn layout(&self, layout: &Layout<'_>) -> Result<Descriptor> {
        let library = self.library;
        let create = |made| {
            // SAFETY: the place is writable.
            unsafe {
                (library.hipblasLtMatrixLayoutCreate)(made, layout.data, layout.rows, layout.cols, layout.ld)
            }
        };
        Descriptor::new(create, library.hipblasLtMatrixLayoutDestroy)?.with(
            library.hipblasLtMatrixLayoutSetAttribute,
            layout.attributes,
            of_layout,
        )
    }
}

impl Drop for LtHandle {
    fn drop(&mut self) {
        // SAFETY: made by hipblasLtCreate, and nobody else has it.
        let _ = unsafe { (self.library.hipblasLtDestroy)(self.raw) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_goes_through_the_program_and_another_is_refused() {
        let algo = Algorithm { data: core::array::from_fn(|at| at as u8 + 1), max_workspace_bytes: 1 << 40 };
        assert_eq!(Algorithm::from_cublas(&algo.as_cublas()), Ok(algo));
        assert!(Algorithm::from_cublas(&cublasLtMatmulAlgo_t::default()).is_err());
    }
}
