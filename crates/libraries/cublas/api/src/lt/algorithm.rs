//! `cublasLtMatmulAlgo_t`: what an algorithm is for, can do and is set to. The CPU has one algorithm, and nothing of it can be
//! set; hipBLASLt tells nothing of its own.

use core::ffi::c_void;

use cublas_cpu::storage::Storage;

use crate::lt::descriptor::copy_out;
use crate::mixed::Sums;
use crate::*;

/// Marks the one algorithm of the CPU.
const IS_CPU: u64 = u64::from_ne_bytes(*b"blas-cpu");

/// Its number.
pub const CPU_ID: i32 = 0;

/// Where what a program sets lies, in bytes of the algorithm: (attribute, place, size).
const SETTINGS: [(u32, usize, usize); 8] =
    [(1, 32, 4), (2, 40, 4), (3, 44, 4), (4, 48, 4), (5, 52, 4), (6, 36, 4), (7, 56, 2), (8, 58, 2)];
const SPLIT_K: usize = 5;

/// The CPU's, for matrices stored so.
pub fn of_cpu(sums: Sums, matrices: [Storage; 4]) -> cublasLtMatmulAlgo_t {
    let mut algo = cublasLtMatmulAlgo_t::default();
    algo.data[0] = IS_CPU;
    algo.data[1] = flags(sums, matrices[0]);
    // What addresses are multiples of, 16 bits for each matrix, A's lowest.
    algo.data[2] = matrices.iter().rev().fold(0, |sizes, storage| sizes << 16 | storage.size() as u64);
    // The product is not split: in one part.
    algo.data[SPLIT_K] = 1;
    algo
}

/// `CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS`
fn flags(sums: Sums, a: Storage) -> u64 {
    let accumulator = match sums {
        Sums::F32 | Sums::C32 => CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F,
        Sums::F64 | Sums::C64 => CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F,
        Sums::I32 => CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I,
    };
    let input = match a {
        Storage::F16 | Storage::C16 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F,
        Storage::BF16 | Storage::CB16 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF,
        Storage::F32 | Storage::C32 | Storage::I32 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F,
        Storage::F64 | Storage::C64 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F,
        Storage::I8 | Storage::C8 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I,
        Storage::E4M3 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3,
        Storage::E5M2 => CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2,
    };
    u64::from(CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | accumulator | input)
}

/// Nothing, unless it is the CPU's, as it was made.
pub fn check_cpu(algo: &cublasLtMatmulAlgo_t) -> Result {
    is_cpu(algo)?;
    let [.., first, split, third, last] = algo.data;
    if first != 0 || split > 1 || third != 0 || last != 0 {
        return Err(Error::NotSupported("tiles, stages and splits of the CPU's algorithm"));
    }
    Ok(())
}

fn is_cpu(algo: &cublasLtMatmulAlgo_t) -> Result {
    match algo.data {
        [IS_CPU, ..] => Ok(()),
        _ if crate::hip::lt::is_algorithm(algo) => {
            Err(Error::NotSupported("hipBLASLt tells nothing of its algorithms"))
        }
        _ => Err(Error::InvalidValue("algo is none of this device's")),
    }
}

/// `cublasLtMatmulAlgoCapGetAttribute`
///
/// # Safety
/// `to` has `bytes` writable bytes; `written` is NULL or writable.
pub unsafe fn capability(
    algo: &cublasLtMatmulAlgo_t,
    attribute: cublasLtMatmulAlgoCapAttributes_t,
    to: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> Result {
    use cublasLtMatmulAlgoCapAttributes_t as Is;
    is_cpu(algo)?;
    let alignment = |matrix: u32| u32::from((algo.data[2] >> (16 * matrix)) as u16);
    /// Attributes that 13's header no longer has.
    const ATOMIC_SYNC: Is = Is(20);
    let value = match attribute {
        // Lists: there is nothing to choose from.
        Is::CUBLASLT_ALGO_CAP_TILE_IDS | Is::CUBLASLT_ALGO_CAP_STAGES_IDS => {
            require(bytes > 0 || !written.is_null(), "nothing is asked for")?;
            require(bytes == 0 || !to.is_null(), "there is no place to write to")?;
            if !written.is_null() {
                // SAFETY: the caller's promise.
                unsafe { written.write(0) };
            }
            return Ok(());
        }
        Is::CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS => {
            // SAFETY: the caller's promise.
            return unsafe { copy_out(&algo.data[1].to_ne_bytes(), to, bytes, written) };
        }
        Is::CUBLASLT_ALGO_CAP_STRIDED_BATCH_SUPPORT
        | Is::CUBLASLT_ALGO_CAP_OUT_OF_PLACE_RESULT_SUPPORT
        | Is::CUBLASLT_ALGO_CAP_POINTER_ARRAY_BATCH_SUPPORT
        | Is::CUBLASLT_ALGO_CAP_POINTER_ARRAY_GROUPED_SUPPORT => 1,
        Is::CUBLASLT_ALGO_CAP_SPLITK_SUPPORT
        | Is::CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK
        | Is::CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT
        | Is::CUBLASLT_ALGO_CAP_UPLO_SUPPORT
        | Is::CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX
        | Is::CUBLASLT_ALGO_CAP_CUSTOM_MEMORY_ORDER
        | Is::CUBLASLT_ALGO_CAP_LD_NEGATIVE
        | Is::CUBLASLT_ALGO_CAP_FLOATING_POINT_EMULATION_SUPPORT
        | ATOMIC_SYNC => 0,
        Is::CUBLASLT_ALGO_CAP_POINTER_MODE_MASK => pointer_modes(algo),
        Is::CUBLASLT_ALGO_CAP_EPILOGUE_MASK => epilogues(algo),
        Is::CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES => alignment(0),
        Is::CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES => alignment(1),
        Is::CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES => alignment(2),
        Is::CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES => alignment(3),
        _ => return Err(Error::InvalidValue("there is no such capability")),
    };
    // SAFETY: the caller's promise.
    unsafe { copy_out(&value.to_ne_bytes(), to, bytes, written) }
}

fn sums_integers(algo: &cublasLtMatmulAlgo_t) -> bool {
    algo.data[1] & u64::from(CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I) != 0
}

/// All but a vector of beta; products of integers have one factor each.
fn pointer_modes(algo: &cublasLtMatmulAlgo_t) -> u32 {
    use cublasLtPointerModeMask_t as M;
    let one = M::CUBLASLT_POINTER_MODE_MASK_HOST.0 | M::CUBLASLT_POINTER_MODE_MASK_DEVICE.0;
    let rows = M::CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_ZERO.0
        | M::CUBLASLT_POINTER_MODE_MASK_ALPHA_DEVICE_VECTOR_BETA_HOST.0;
    if sums_integers(algo) { one } else { one | rows }
}

/// All, which products of integers have none of.
fn epilogues(algo: &cublasLtMatmulAlgo_t) -> u32 {
    let all = super::epilogue::ALL;
    if sums_integers(algo) { cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT.0 } else { all }
}

/// `cublasLtMatmulAlgoConfigGetAttribute`
///
/// # Safety
/// As of [`capability`].
pub unsafe fn setting(
    algo: &cublasLtMatmulAlgo_t,
    attribute: cublasLtMatmulAlgoConfigAttributes_t,
    to: *mut c_void,
    bytes: usize,
    written: *mut usize,
) -> Result {
    is_cpu(algo)?;
    if attribute == cublasLtMatmulAlgoConfigAttributes_t::CUBLASLT_ALGO_CONFIG_ID {
        // SAFETY: the caller's promise.
        return unsafe { copy_out(&CPU_ID.to_ne_bytes(), to, bytes, written) };
    }
    let (at, size) = place(attribute)?;
    let all: Vec<u8> = algo.data.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // SAFETY: as above.
    unsafe { copy_out(&all[at..at + size], to, bytes, written) }
}

/// `cublasLtMatmulAlgoConfigSetAttribute`; whether a product can be made so is for its check.
///
/// # Safety
/// `from` has `bytes` bytes.
pub unsafe fn set(
    algo: &mut cublasLtMatmulAlgo_t,
    attribute: cublasLtMatmulAlgoConfigAttributes_t,
    from: *const c_void,
    bytes: usize,
) -> Result {
    is_cpu(algo)?;
    let (at, size) = place(attribute)?;
    require(bytes == size && !from.is_null(), "the attribute has another size")?;
    let mut value = [0; 4];
    // SAFETY: the caller's promise; a setting has at most four bytes.
    unsafe { from.cast::<u8>().copy_to(value.as_mut_ptr(), size) };
    let mut word = algo.data[at / 8].to_ne_bytes();
    word[at % 8..at % 8 + size].copy_from_slice(&value[..size]);
    algo.data[at / 8] = u64::from_ne_bytes(word);
    Ok(())
}

fn place(attribute: cublasLtMatmulAlgoConfigAttributes_t) -> Result<(usize, usize)> {
    let found = SETTINGS.iter().find(|setting| setting.0 == attribute.0);
    found
        .map(|&(_, at, size)| (at, size))
        .ok_or(Error::InvalidValue("there is no such setting, or it is read alone"))
}
