//! `hipError_t`: every code with its name. The values are equal in ROCm 5, 6 and 7.

use core::ffi::c_int;
use core::fmt;

/// What every `hip*` function returns.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "a HIP call's answer says whether it did anything"]
pub struct hipError_t(pub c_int);

macro_rules! errors {
    ($($name:ident = $value:expr;)*) => {
        $(pub const $name: hipError_t = hipError_t($value);)*

        /// The name HIP's header gives the code; `None` for a code it does not have.
        #[must_use]
        pub fn error_name(error: hipError_t) -> Option<&'static str> {
            // Old second names for the same number follow the first, which wins.
            const NAMES: &[(c_int, &str)] = &[$(($value, stringify!($name)),)*];
            NAMES.iter().find(|(value, _)| *value == error.0).map(|(_, name)| *name)
        }
    };
}

errors! {
    hipSuccess                          = 0;
    hipErrorInvalidValue                = 1;
    hipErrorOutOfMemory                 = 2;
    hipErrorMemoryAllocation            = 2;
    hipErrorNotInitialized              = 3;
    hipErrorInitializationError         = 3;
    hipErrorDeinitialized               = 4;
    hipErrorProfilerDisabled            = 5;
    hipErrorProfilerNotInitialized      = 6;
    hipErrorProfilerAlreadyStarted      = 7;
    hipErrorProfilerAlreadyStopped      = 8;
    hipErrorInvalidConfiguration        = 9;
    hipErrorInvalidPitchValue           = 12;
    hipErrorInvalidSymbol               = 13;
    hipErrorInvalidDevicePointer        = 17;
    hipErrorInvalidMemcpyDirection      = 21;
    hipErrorInsufficientDriver          = 35;
    hipErrorMissingConfiguration        = 52;
    hipErrorPriorLaunchFailure          = 53;
    hipErrorInvalidDeviceFunction       = 98;
    hipErrorNoDevice                    = 100;
    hipErrorInvalidDevice               = 101;
    hipErrorInvalidImage                = 200;
    hipErrorInvalidContext              = 201;
    hipErrorContextAlreadyCurrent       = 202;
    hipErrorMapFailed                   = 205;
    hipErrorMapBufferObjectFailed       = 205;
    hipErrorUnmapFailed                 = 206;
    hipErrorArrayIsMapped               = 207;
    hipErrorAlreadyMapped               = 208;
    hipErrorNoBinaryForGpu              = 209;
    hipErrorAlreadyAcquired             = 210;
    hipErrorNotMapped                   = 211;
    hipErrorNotMappedAsArray            = 212;
    hipErrorNotMappedAsPointer          = 213;
    hipErrorECCNotCorrectable           = 214;
    hipErrorUnsupportedLimit            = 215;
    hipErrorContextAlreadyInUse         = 216;
    hipErrorPeerAccessUnsupported       = 217;
    hipErrorInvalidKernelFile           = 218;
    hipErrorInvalidGraphicsContext      = 219;
    hipErrorInvalidSource               = 300;
    hipErrorFileNotFound                = 301;
    hipErrorSharedObjectSymbolNotFound  = 302;
    hipErrorSharedObjectInitFailed      = 303;
    hipErrorOperatingSystem             = 304;
    hipErrorInvalidHandle               = 400;
    hipErrorInvalidResourceHandle       = 400;
    hipErrorIllegalState                = 401;
    hipErrorNotFound                    = 500;
    hipErrorNotReady                    = 600;
    hipErrorIllegalAddress              = 700;
    hipErrorLaunchOutOfResources        = 701;
    hipErrorLaunchTimeOut               = 702;
    hipErrorPeerAccessAlreadyEnabled    = 704;
    hipErrorPeerAccessNotEnabled        = 705;
    hipErrorSetOnActiveProcess          = 708;
    hipErrorContextIsDestroyed          = 709;
    hipErrorAssert                      = 710;
    hipErrorHostMemoryAlreadyRegistered = 712;
    hipErrorHostMemoryNotRegistered     = 713;
    hipErrorLaunchFailure               = 719;
    hipErrorCooperativeLaunchTooLarge   = 720;
    hipErrorNotSupported                = 801;
    hipErrorStreamCaptureUnsupported    = 900;
    hipErrorStreamCaptureInvalidated    = 901;
    hipErrorStreamCaptureMerge          = 902;
    hipErrorStreamCaptureUnmatched      = 903;
    hipErrorStreamCaptureUnjoined       = 904;
    hipErrorStreamCaptureIsolation      = 905;
    hipErrorStreamCaptureImplicit       = 906;
    hipErrorCapturedEvent               = 907;
    hipErrorStreamCaptureWrongThread    = 908;
    hipErrorGraphExecUpdateFailure      = 910;
    hipErrorInvalidChannelDescriptor    = 911;
    hipErrorInvalidTexture              = 912;
    hipErrorUnknown                     = 999;
    hipErrorRuntimeMemory               = 1052;
    hipErrorRuntimeOther                = 1053;
    hipErrorTbd                         = 1054;
}

impl fmt::Debug for hipError_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match error_name(*self) {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "hipError_t({})", self.0),
        }
    }
}

impl fmt::Display for hipError_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_prints_its_first_name_and_number() {
        assert_eq!(hipErrorOutOfMemory.to_string(), "hipErrorOutOfMemory (2)");
        assert_eq!(hipError_t(31337).to_string(), "hipError_t(31337)");
    }
}
