//! libMIOpen.so, and which of its functions are there. Source of the signatures: miopen.h of ROCm 5.2 to 7.2 (tools/data/hip/miopen.json).

use core::ffi::{c_int, c_uint, c_void};
use std::ffi::OsStr;
use std::sync::OnceLock;

use kit::driver::Number;
use kit::hip::{Object, Wanted};

/// A handle or a descriptor.
pub type Raw = *mut c_void;
/// A tensor's memory.
pub type Memory = *mut c_void;
/// A number in the host's memory.
pub type Factor = *const f32;

/// Every ROCm from 2 to 7 has it.
pub const MIOPEN: Wanted =
    Wanted { names: &["libMIOpen.so", "libMIOpen.so.1"], stands_for: "cuDNN", variable: "CUDAWAY_DNN" };

/// One algorithm of a search.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Perf {
    pub algorithm: c_int,
    pub time: f32,
    pub memory: usize,
}

kit::hip_functions! {
    miopenCreate(*mut Raw);
    miopenDestroy(Raw);
    miopenSetStream(Raw, Number<*mut c_void>);
    miopenGetVersion(*mut usize, *mut usize, *mut usize);

    miopenCreateTensorDescriptor(*mut Raw);
    miopenSetTensorDescriptor(Raw, c_uint, c_int, *const c_int, *const c_int);
    miopenDestroyTensorDescriptor(Raw);
    miopenCreateConvolutionDescriptor(*mut Raw);
    miopenInitConvolutionNdDescriptor(Raw, c_int, *const c_int, *const c_int, *const c_int, c_uint);
    miopenSetConvolutionGroupCount(Raw, c_int);
    miopenSetConvolutionAttribute(Raw, c_uint, c_int);
    miopenDestroyConvolutionDescriptor(Raw);
    miopenCreateActivationDescriptor(*mut Raw);
    miopenSetActivationDescriptor(Raw, c_uint, f64, f64, f64);
    miopenDestroyActivationDescriptor(Raw);
    miopenCreatePoolingDescriptor(*mut Raw);
    miopenSetNdPoolingDescriptor(Raw, c_uint, c_int, *const c_int, *const c_int, *const c_int);
    miopenSetPoolingIndexType(Raw, c_uint);
    miopenSetPoolingWorkSpaceIndexMode(Raw, c_uint);
    miopenDestroyPoolingDescriptor(Raw);
    miopenCreateLRNDescriptor(*mut Raw);
    miopenSetLRNDescriptor(Raw, c_uint, c_uint, f64, f64, f64);
    miopenDestroyLRNDescriptor(Raw);
    miopenCreateReduceTensorDescriptor(*mut Raw);
    miopenSetReduceTensorDescriptor(Raw, c_uint, c_uint, c_uint, c_uint, c_uint);
    miopenDestroyReduceTensorDescriptor(Raw);

    miopenConvolutionForwardGetWorkSpaceSize(Raw, Raw, Raw, Raw, Raw, *mut usize);
    miopenConvolutionBackwardDataGetWorkSpaceSize(Raw, Raw, Raw, Raw, Raw, *mut usize);
    miopenConvolutionBackwardWeightsGetWorkSpaceSize(Raw, Raw, Raw, Raw, Raw, *mut usize);
    miopenFindConvolutionForwardAlgorithm(
        Raw, Raw, Memory, Raw, Memory, Raw, Raw, Memory, c_int, *mut c_int, *mut Perf, Memory, usize, bool
    );
    miopenFindConvolutionBackwardDataAlgorithm(
        Raw, Raw, Memory, Raw, Memory, Raw, Raw, Memory, c_int, *mut c_int, *mut Perf, Memory, usize, bool
    );
    miopenFindConvolutionBackwardWeightsAlgorithm(
        Raw, Raw, Memory, Raw, Memory, Raw, Raw, Memory, c_int, *mut c_int, *mut Perf, Memory, usize, bool
    );
    miopenConvolutionForward(
        Raw, Factor, Raw, Memory, Raw, Memory, Raw, c_int, Factor, Raw, Memory, Memory, usize
    );
    miopenConvolutionBackwardData(
        Raw, Factor, Raw, Memory, Raw, Memory, Raw, c_int, Factor, Raw, Memory, Memory, usize
    );
    miopenConvolutionBackwardWeights(
        Raw, Factor, Raw, Memory, Raw, Memory, Raw, c_int, Factor, Raw, Memory, Memory, usize
    );
    miopenConvolutionBackwardBias(Raw, Factor, Raw, Memory, Factor, Raw, Memory);

    miopenActivationForward(Raw, Raw, Factor, Raw, Memory, Factor, Raw, Memory);
    miopenActivationBackward(
        Raw, Raw, Factor, Raw, Memory, Raw, Memory, Raw, Memory, Factor, Raw, Memory
    );
    miopenSoftmaxForward_V2(Raw, Factor, Raw, Memory, Factor, Raw, Memory, c_uint, c_uint);
    miopenSoftmaxBackward_V2(Raw, Factor, Raw, Memory, Raw, Memory, Factor, Raw, Memory, c_uint, c_uint);
    miopenLRNGetWorkSpaceSize(Raw, *mut usize);
    miopenLRNForward(Raw, Raw, Factor, Raw, Memory, Factor, Raw, Memory, bool, Memory);
    miopenLRNBackward(
        Raw, Raw, Factor, Raw, Memory, Raw, Memory, Raw, Memory, Factor, Raw, Memory, Memory
    );
    miopenPoolingGetWorkSpaceSizeV2(Raw, Raw, *mut usize);
    miopenPoolingForward(Raw, Raw, Factor, Raw, Memory, Factor, Raw, Memory, bool, Memory, usize);
    miopenPoolingBackward(
        Raw, Raw, Factor, Raw, Memory, Raw, Memory, Raw, Memory, Factor, Raw, Memory, Memory
    );

    miopenBatchNormalizationForwardTraining(
        Raw, c_uint, Factor, Factor, Raw, Memory, Raw, Memory, Raw, Memory, Memory, f64, Memory, Memory, f64, Memory, Memory
    );
    miopenBatchNormalizationForwardInference(
        Raw, c_uint, Factor, Factor, Raw, Memory, Raw, Memory, Raw, Memory, Memory, Memory, Memory, f64
    );
    miopenBatchNormalizationBackward(
        Raw, c_uint, Factor, Factor, Factor, Factor, Raw, Memory, Raw, Memory, Raw, Memory, Raw, Memory, Memory, Memory, f64,
        Memory, Memory
    );

    miopenOpTensor(Raw, c_uint, Factor, Raw, Memory, Factor, Raw, Memory, Factor, Raw, Memory);
    miopenSetTensor(Raw, Raw, Memory, *const c_void);
    miopenScaleTensor(Raw, Raw, Memory, *const c_void);
    miopenGetReductionWorkspaceSize(Raw, Raw, Raw, Raw, *mut usize);
    miopenReduceTensor(
        Raw, Raw, Memory, usize, Memory, usize, Factor, Raw, Memory, Factor, Raw, Memory
    );
}

pub struct Library {
    /// Open as long as its functions are called.
    _object: Object<0>,
    pub functions: Functions,
}

impl Library {
    /// The process's, opened at the first call on an AMD GPU; none where it is not there, or where our own code is asked for.
    pub fn get() -> Option<&'static Library> {
        static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();
        LIBRARY.get_or_init(|| MIOPEN.unless_own(&config::get().dnn, Library::open)).as_ref()
    }

    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Library, String> {
        let object = Object::<0>::open(path)?;
        let functions = Functions::of(&object);
        if functions.miopenCreate.is_none() {
            return Err(format!("{} exports no miopenCreate", path.display()));
        }
        kit::hip_opened!("cudaway::dnn", "MIOpen", path, functions.lacks());
        Ok(Library { _object: object, functions })
    }
}
