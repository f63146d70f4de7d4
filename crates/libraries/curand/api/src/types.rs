//! The types of curand.h, 10.4.

use core::ffi::{c_uint, c_ulonglong};

use cuda_abi::CUdeviceptr;
pub use cuda_abi::runtime::v13::cudaStream_t;

kit::numbers! {
    curandStatus_t {
        CURAND_STATUS_SUCCESS = 0,
        CURAND_STATUS_NOT_INITIALIZED = 101,
        CURAND_STATUS_ALLOCATION_FAILED = 102,
        CURAND_STATUS_TYPE_ERROR = 103,
        CURAND_STATUS_OUT_OF_RANGE = 104,
        CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
        CURAND_STATUS_LAUNCH_FAILURE = 201,
        CURAND_STATUS_INITIALIZATION_FAILED = 203,
        CURAND_STATUS_INTERNAL_ERROR = 999,
    }
    curandRngType_t {
        CURAND_RNG_PSEUDO_DEFAULT = 100,
        CURAND_RNG_PSEUDO_XORWOW = 101,
        CURAND_RNG_PSEUDO_MRG32K3A = 121,
        CURAND_RNG_PSEUDO_MTGP32 = 141,
        CURAND_RNG_PSEUDO_MT19937 = 142,
        CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
        CURAND_RNG_QUASI_DEFAULT = 200,
        CURAND_RNG_QUASI_SOBOL32 = 201,
        CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 = 202,
        CURAND_RNG_QUASI_SOBOL64 = 203,
        CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 = 204,
    }
    curandOrdering_t {
        CURAND_ORDERING_PSEUDO_BEST = 100,
        CURAND_ORDERING_PSEUDO_DEFAULT = 101,
        CURAND_ORDERING_PSEUDO_SEEDED = 102,
        CURAND_ORDERING_PSEUDO_LEGACY = 103,
        CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
        CURAND_ORDERING_QUASI_DEFAULT = 201,
    }
    curandDirectionVectorSet_t {
        CURAND_DIRECTION_VECTORS_32_JOEKUO6 = 101,
        CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 = 102,
        CURAND_DIRECTION_VECTORS_64_JOEKUO6 = 103,
        CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6 = 104,
    }
    curandMethod_t {
        CURAND_CHOOSE_BEST = 0,
        CURAND_M2 = 5,
        CURAND_DISCRETE_GAUSS = 7,
    }
    /// library_types.h
    libraryPropertyType {
        MAJOR_VERSION = 0,
        MINOR_VERSION = 1,
        PATCH_LEVEL = 2,
    }
}

/// What the handle looks like: a pointer to something.
pub enum curandGenerator_st {}

/// curand_discrete.h: what kernels read in device memory. Fields with `host` in their names are the library's own.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct curandDiscreteDistribution_st {
    pub self_host_ptr: CUdeviceptr,
    /// A [`curandDistributionM2Shift_st`].
    pub M2: CUdeviceptr,
    pub host_M2: CUdeviceptr,
    pub stddev: f64,
    pub mean: f64,
    pub method: curandMethod_t,
    pub host_gen: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct curandDistributionM2Shift_st {
    /// A [`curandHistogramM2_st`].
    pub histogram: CUdeviceptr,
    pub host_histogram: CUdeviceptr,
    pub shift: c_uint,
    pub length: c_uint,
    pub host_gen: c_uint,
    pub padding: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct curandHistogramM2_st {
    /// Doubles, one for each bar.
    pub V: CUdeviceptr,
    pub host_V: CUdeviceptr,
    /// Words, one for each bar.
    pub K: CUdeviceptr,
    pub host_K: CUdeviceptr,
    pub host_gen: c_uint,
    pub padding: c_uint,
}

const _: () = assert!(size_of::<curandDiscreteDistribution_st>() == 48);
const _: () = assert!(size_of::<curandDistributionM2Shift_st>() == 32);
const _: () = assert!(size_of::<curandHistogramM2_st>() == 40);

pub type curandGenerator_t = *mut curandGenerator_st;
pub type curandDiscreteDistribution_t = *mut curandDiscreteDistribution_st;
pub type curandDirectionVectors32_t = [c_uint; 32];
pub type curandDirectionVectors64_t = [c_ulonglong; 64];
