//! The types of cufft.h, cufftXt.h and cudalibxt.h, 12.5.

use core::ffi::{c_int, c_void};

pub use cuda_abi::runtime::v13::{cudaDataType, cudaStream_t};
use cufft_cpu::Complex;

pub type cufftHandle = c_int;
pub type cufftComplex = Complex<f32>;
pub type cufftDoubleComplex = Complex<f64>;

pub const CUFFT_FORWARD: c_int = -1;
pub const CUFFT_INVERSE: c_int = 1;
/// What a program may give to `cufftDestroy` that never made a plan.
pub const CUFFT_PLAN_NULL: cufftHandle = -1;

/// cufftw.h
pub type fftw_complex = cufftDoubleComplex;
pub type fftwf_complex = cufftComplex;
pub type fftw_plan = *mut c_void;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct fftw_iodim {
    pub n: c_int,
    pub is: c_int,
    pub os: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct fftw_iodim64 {
    pub n: isize,
    pub is: isize,
    pub os: isize,
}

kit::numbers! {
    cufftResult {
        CUFFT_SUCCESS = 0,
        CUFFT_INVALID_PLAN = 1,
        CUFFT_ALLOC_FAILED = 2,
        CUFFT_INVALID_TYPE = 3,
        CUFFT_INVALID_VALUE = 4,
        CUFFT_INTERNAL_ERROR = 5,
        CUFFT_EXEC_FAILED = 6,
        CUFFT_INVALID_SIZE = 8,
        CUFFT_INVALID_DEVICE = 11,
        CUFFT_NOT_IMPLEMENTED = 14,
        CUFFT_NOT_SUPPORTED = 16,
    }
    cufftType {
        CUFFT_C2C = 0x29,
        CUFFT_R2C = 0x2a,
        CUFFT_C2R = 0x2c,
        CUFFT_Z2Z = 0x69,
        CUFFT_D2Z = 0x6a,
        CUFFT_Z2D = 0x6c,
    }
    cufftProperty {
        NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT = 1,
        NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS = 2,
        NVFFT_PLAN_PROPERTY_INT64_BLUESTEIN_ONLY = 3,
        NVFFT_PLAN_PROPERTY_INT64_DISABLE_FMA = 4,
    }
    cufftXtSubFormat {
        CUFFT_XT_FORMAT_INPUT = 0,
        CUFFT_XT_FORMAT_OUTPUT = 1,
        CUFFT_XT_FORMAT_INPLACE = 2,
        CUFFT_XT_FORMAT_INPLACE_SHUFFLED = 3,
        CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED = 4,
    }
    cufftXtCopyType {
        CUFFT_COPY_HOST_TO_DEVICE = 0,
        CUFFT_COPY_DEVICE_TO_HOST = 1,
        CUFFT_COPY_DEVICE_TO_DEVICE = 2,
    }
    cufftXtQueryType {
        CUFFT_QUERY_1D_FACTORS = 0,
    }
    cufftXtWorkAreaPolicy {
        CUFFT_WORKAREA_MINIMAL = 0,
        CUFFT_WORKAREA_USER = 1,
        CUFFT_WORKAREA_PERFORMANCE = 2,
    }
    cufftXtCallbackType {
        CUFFT_CB_LD_COMPLEX = 0,
    }
    libFormat {
        LIB_FORMAT_CUFFT = 0,
        LIB_FORMAT_UNDEFINED = 1,
    }
    /// library_types.h
    libraryPropertyType {
        MAJOR_VERSION = 0,
        MINOR_VERSION = 1,
        PATCH_LEVEL = 2,
    }
}

const MAX_CUDA_DESCRIPTOR_GPUS: usize = 64;

/// Memory on the devices of a plan.
#[repr(C)]
#[derive(Debug)]
pub struct cudaXtDesc {
    pub version: c_int,
    pub nGPUs: c_int,
    pub GPUs: [c_int; MAX_CUDA_DESCRIPTOR_GPUS],
    pub data: [*mut c_void; MAX_CUDA_DESCRIPTOR_GPUS],
    pub size: [usize; MAX_CUDA_DESCRIPTOR_GPUS],
    pub cudaXtState: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
pub struct cudaLibXtDesc {
    pub version: c_int,
    pub descriptor: *mut cudaXtDesc,
    pub library: libFormat,
    pub subFormat: c_int,
    pub libDescriptor: *mut c_void,
}
