//! One error type for every call, and the only two translations: from `hipError_t`, and to `CUresult`.
//!
//! The strings are what NVIDIA's own runtime 13.5 answers for each number (measured); it has none for 47, 202 and 916.

use core::ffi::CStr;

use border::BadPointer;
use cuda_abi::CUresult;
use hip_sys::{self as hip, HipError};

pub type Result<T = ()> = core::result::Result<T, Error>;

macro_rules! errors {
    ($($code:ident => $variant:ident $(($detail:ty))?, $text:literal;)*) => {
        /// Why a call gave nothing. Details go to the log; the program sees the code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Error {
            $($variant $(($detail))?,)*
        }

        impl Error {
            /// The one way to C.
            #[must_use]
            pub fn result(self) -> CUresult {
                match self {
                    $(errors!(@pattern $variant $($detail)?) => CUresult::$code,)*
                }
            }
        }

        /// CUDA's name and description of a result, success included; `None` for a number CUDA does not have.
        #[must_use]
        pub fn describe(result: CUresult) -> Option<(&'static CStr, &'static CStr)> {
            const fn c(bytes: &'static [u8]) -> &'static CStr {
                match CStr::from_bytes_with_nul(bytes) {
                    Ok(text) => text,
                    Err(_) => panic!("no NUL inside"),
                }
            }
            Some(match result {
                CUresult::CUDA_SUCCESS => (c"CUDA_SUCCESS", c"no error"),
                $(CUresult::$code => const { (c(concat!(stringify!($code), "\0").as_bytes()), c(concat!($text, "\0").as_bytes())) },)*
                _ => return None,
            })
        }

        #[cfg(test)]
        const ALL: &[CUresult] = &[$(CUresult::$code),*];
    };
    (@pattern $variant:ident) => { Error::$variant };
    (@pattern $variant:ident $detail:ty) => { Error::$variant(_) };
}

errors! {
    CUDA_ERROR_INVALID_VALUE                  => InvalidValue(&'static str), "invalid argument";
    CUDA_ERROR_OUT_OF_MEMORY                  => OutOfMemory, "out of memory";
    CUDA_ERROR_NOT_INITIALIZED                => NotInitialized, "initialization error";
    CUDA_ERROR_DEINITIALIZED                  => Deinitialized, "driver shutting down";
    CUDA_ERROR_PROFILER_DISABLED              => ProfilerDisabled, "profiler disabled while using external profiling tool";
    CUDA_ERROR_PROFILER_NOT_INITIALIZED       => ProfilerNotInitialized, "profiler not initialized: call cudaProfilerInitialize()";
    CUDA_ERROR_PROFILER_ALREADY_STARTED       => ProfilerAlreadyStarted, "profiler already started";
    CUDA_ERROR_PROFILER_ALREADY_STOPPED       => ProfilerAlreadyStopped, "profiler already stopped";
    CUDA_ERROR_STUB_LIBRARY                   => StubLibrary, "CUDA driver is a stub library";
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER     => CallRequiresNewerDriver, "API call is not supported in the installed CUDA driver";
    CUDA_ERROR_DEVICE_UNAVAILABLE             => DeviceUnavailable, "CUDA-capable device(s) is/are busy or unavailable";
    CUDA_ERROR_MULTICAST_RESOURCE_FULL        => MulticastResourceFull, "multicast resources are full";
    CUDA_ERROR_NO_DEVICE                      => NoDevice, "no CUDA-capable device is detected";
    CUDA_ERROR_INVALID_DEVICE                 => InvalidDevice, "invalid device ordinal";
    CUDA_ERROR_DEVICE_NOT_LICENSED            => DeviceNotLicensed, "device doesn't have valid Grid license";
    CUDA_ERROR_INVALID_IMAGE                  => InvalidImage, "device kernel image is invalid";
    CUDA_ERROR_INVALID_CONTEXT                => InvalidContext, "invalid device context";
    CUDA_ERROR_CONTEXT_ALREADY_CURRENT        => ContextAlreadyCurrent, "context already current";
    CUDA_ERROR_MAP_FAILED                     => MapFailed, "mapping of buffer object failed";
    CUDA_ERROR_UNMAP_FAILED                   => UnmapFailed, "unmapping of buffer object failed";
    CUDA_ERROR_ARRAY_IS_MAPPED                => ArrayIsMapped, "array is mapped";
    CUDA_ERROR_ALREADY_MAPPED                 => AlreadyMapped, "resource already mapped";
    CUDA_ERROR_NO_BINARY_FOR_GPU              => NoBinaryForGpu, "no kernel image is available for execution on the device";
    CUDA_ERROR_ALREADY_ACQUIRED               => AlreadyAcquired, "resource already acquired";
    CUDA_ERROR_NOT_MAPPED                     => NotMapped, "resource not mapped";
    CUDA_ERROR_NOT_MAPPED_AS_ARRAY            => NotMappedAsArray, "resource not mapped as array";
    CUDA_ERROR_NOT_MAPPED_AS_POINTER          => NotMappedAsPointer, "resource not mapped as pointer";
    CUDA_ERROR_ECC_UNCORRECTABLE              => EccUncorrectable, "uncorrectable ECC error encountered";
    CUDA_ERROR_UNSUPPORTED_LIMIT              => UnsupportedLimit, "limit is not supported on this architecture";
    CUDA_ERROR_CONTEXT_ALREADY_IN_USE         => ContextAlreadyInUse, "exclusive-thread device already in use by a different thread";
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED        => PeerAccessUnsupported, "peer access is not supported between these two devices";
    CUDA_ERROR_INVALID_PTX                    => InvalidPtx, "a PTX JIT compilation failed";
    CUDA_ERROR_INVALID_GRAPHICS_CONTEXT       => InvalidGraphicsContext, "invalid OpenGL or DirectX context";
    CUDA_ERROR_NVLINK_UNCORRECTABLE           => NvlinkUncorrectable, "uncorrectable NVLink error detected during the execution";
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND         => JitCompilerNotFound, "PTX JIT compiler library not found";
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION        => UnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain.";
    CUDA_ERROR_JIT_COMPILATION_DISABLED       => JitCompilationDisabled, "PTX JIT compilation was disabled";
    CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY      => UnsupportedExecAffinity, "the provided execution affinity is not supported";
    CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC       => UnsupportedDevsideSync, "the provided PTX contains unsupported call to cudaDeviceSynchronize";
    CUDA_ERROR_CONTAINED                      => Contained, "Invalid access of peer GPU memory over nvlink or a hardware error";
    CUDA_ERROR_INSUFFICIENT_LOADER_VERSION    => InsufficientLoaderVersion, "Loader version is insufficient for fatbin";
    CUDA_ERROR_INVALID_SOURCE                 => InvalidSource, "device kernel image is invalid";
    CUDA_ERROR_FILE_NOT_FOUND                 => FileNotFound, "file not found";
    CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND => SharedObjectSymbolNotFound, "shared object symbol not found";
    CUDA_ERROR_SHARED_OBJECT_INIT_FAILED      => SharedObjectInitFailed, "shared object initialization failed";
    CUDA_ERROR_OPERATING_SYSTEM               => OperatingSystem, "OS call failed or operation not supported on this OS";
    CUDA_ERROR_INVALID_HANDLE                 => InvalidHandle(&'static str), "invalid resource handle";
    CUDA_ERROR_ILLEGAL_STATE                  => IllegalState, "the operation cannot be performed in the present state";
    CUDA_ERROR_LOSSY_QUERY                    => LossyQuery, "attempted introspection would be semantically lossy";
    CUDA_ERROR_NOT_FOUND                      => NotFound, "named symbol not found";
    CUDA_ERROR_NOT_READY                      => NotReady, "device not ready";
    CUDA_ERROR_ILLEGAL_ADDRESS                => IllegalAddress, "an illegal memory access was encountered";
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES        => LaunchOutOfResources, "too many resources requested for launch";
    CUDA_ERROR_LAUNCH_TIMEOUT                 => LaunchTimeout, "the launch timed out and was terminated";
    CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING  => LaunchIncompatibleTexturing, "launch uses incompatible texturing mode";
    CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED    => PeerAccessAlreadyEnabled, "peer access is already enabled";
    CUDA_ERROR_PEER_ACCESS_NOT_ENABLED        => PeerAccessNotEnabled, "peer access has not been enabled";
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE         => PrimaryContextActive, "cannot set while device is active in this process";
    CUDA_ERROR_CONTEXT_IS_DESTROYED           => ContextIsDestroyed, "context is destroyed";
    CUDA_ERROR_ASSERT                         => Assert, "device-side assert triggered";
    CUDA_ERROR_TOO_MANY_PEERS                 => TooManyPeers, "peer mapping resources exhausted";
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED => HostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped";
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED     => HostMemoryNotRegistered, "pointer does not correspond to a registered memory region";
    CUDA_ERROR_HARDWARE_STACK_ERROR           => HardwareStackError, "hardware stack error";
    CUDA_ERROR_ILLEGAL_INSTRUCTION            => IllegalInstruction, "an illegal instruction was encountered";
    CUDA_ERROR_MISALIGNED_ADDRESS             => MisalignedAddress, "misaligned address";
    CUDA_ERROR_INVALID_ADDRESS_SPACE          => InvalidAddressSpace, "operation not supported on global/shared address space";
    CUDA_ERROR_INVALID_PC                     => InvalidPc, "invalid program counter";
    CUDA_ERROR_LAUNCH_FAILED                  => LaunchFailed, "unspecified launch failure";
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE   => CooperativeLaunchTooLarge, "too many blocks in cooperative launch";
    CUDA_ERROR_TENSOR_MEMORY_LEAK             => TensorMemoryLeak, "tensor memory not completely freed";
    CUDA_ERROR_NOT_PERMITTED                  => NotPermitted, "operation not permitted";
    CUDA_ERROR_NOT_SUPPORTED                  => NotSupported(&'static str), "operation not supported";
    CUDA_ERROR_SYSTEM_NOT_READY               => SystemNotReady, "system not yet initialized";
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH         => SystemDriverMismatch, "system has unsupported display driver / cuda driver combination";
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => CompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW";
    CUDA_ERROR_MPS_CONNECTION_FAILED          => MpsConnectionFailed, "MPS client failed to connect to the MPS control daemon or the MPS server";
    CUDA_ERROR_MPS_RPC_FAILURE                => MpsRpcFailure, "the remote procedural call between the MPS server and the MPS client failed";
    CUDA_ERROR_MPS_SERVER_NOT_READY           => MpsServerNotReady, "MPS server is not ready to accept new MPS client requests";
    CUDA_ERROR_MPS_MAX_CLIENTS_REACHED        => MpsMaxClientsReached, "the hardware resources required to create MPS client have been exhausted";
    CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED    => MpsMaxConnectionsReached, "the hardware resources required to support device connections have been exhausted";
    CUDA_ERROR_MPS_CLIENT_TERMINATED          => MpsClientTerminated, "the MPS client has been terminated by the server";
    CUDA_ERROR_CDP_NOT_SUPPORTED              => CdpNotSupported, "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it";
    CUDA_ERROR_CDP_VERSION_MISMATCH           => CdpVersionMismatch, "unsupported interaction between different versions of CUDA Dynamic Parallelism";
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED     => StreamCaptureUnsupported, "operation not permitted when stream is capturing";
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED     => StreamCaptureInvalidated, "operation failed due to a previous error during capture";
    CUDA_ERROR_STREAM_CAPTURE_MERGE           => StreamCaptureMerge, "operation would result in a merge of separate capture sequences";
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED       => StreamCaptureUnmatched, "capture was not ended in the same stream as it began";
    CUDA_ERROR_STREAM_CAPTURE_UNJOINED        => StreamCaptureUnjoined, "capturing stream has unjoined work";
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION       => StreamCaptureIsolation, "dependency created on uncaptured work in another stream";
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT        => StreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream";
    CUDA_ERROR_CAPTURED_EVENT                 => CapturedEvent, "operation not permitted on an event last recorded in a capturing stream";
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD    => StreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread";
    CUDA_ERROR_TIMEOUT                        => Timeout, "wait operation timed out";
    CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE      => GraphExecUpdateFailure, "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update";
    CUDA_ERROR_EXTERNAL_DEVICE                => ExternalDevice, "an async error has occured in external entity outside of CUDA";
    CUDA_ERROR_INVALID_CLUSTER_SIZE           => InvalidClusterSize, "a kernel launch error has occurred due to cluster misconfiguration";
    CUDA_ERROR_FUNCTION_NOT_LOADED            => FunctionNotLoaded, "the function handle is not loaded when calling an API that requires a loaded function";
    CUDA_ERROR_INVALID_RESOURCE_TYPE          => InvalidResourceType, "one or more resources passed in are not valid resource types for the operation";
    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION => InvalidResourceConfiguration, "one or more resources are insufficient or non-applicable for the operation";
    CUDA_ERROR_KEY_ROTATION                   => KeyRotation, "protected contents are lost after a key rotation";
    CUDA_ERROR_STREAM_DETACHED                => StreamDetached, "API call not permitted since the green context associated with the stream has been destroyed";
    CUDA_ERROR_GRAPH_RECAPTURE_FAILURE        => GraphRecaptureFailure, "recapturing to the source graph failed and had to be terminated";
    CUDA_ERROR_FABRIC_NOT_READY               => FabricNotReady, "GPU fabric is not ready within the probe wait budget; application may retry (see CUDA_FABRIC_INIT_TIMEOUT_MS)";
    CUDA_ERROR_UNKNOWN                        => Unknown, "unknown error";
}

impl Error {
    /// CUDA: after it "any further CUDA work will return the same error" in that context.
    #[must_use]
    pub fn is_sticky(self) -> bool {
        matches!(
            self,
            Error::EccUncorrectable
                | Error::IllegalAddress
                | Error::LaunchTimeout
                | Error::Assert
                | Error::HardwareStackError
                | Error::IllegalInstruction
                | Error::MisalignedAddress
                | Error::InvalidAddressSpace
                | Error::InvalidPc
                | Error::LaunchFailed
                | Error::TensorMemoryLeak
        )
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, text) = describe(self.result()).unwrap_or((c"?", c"?"));
        write!(f, "{} ({}): {}", name.to_string_lossy(), self.result().0, text.to_string_lossy())?;
        match self {
            Error::InvalidValue(detail) | Error::NotSupported(detail) | Error::InvalidHandle(detail) => {
                write!(f, " [{detail}]")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<BadPointer> for Error {
    fn from(BadPointer(parameter): BadPointer) -> Error {
        Error::InvalidValue(parameter)
    }
}

/// The one way from HIP. Its numbers follow CUDA's, with these differences.
impl From<HipError> for Error {
    fn from(error: HipError) -> Error {
        let HipError::Code { call, code } = error else { return Error::NotSupported(error.call()) };
        match code {
            hip::hipErrorInvalidValue => Error::InvalidValue(call),
            hip::hipErrorOutOfMemory => Error::OutOfMemory,
            hip::hipErrorNotInitialized => Error::NotInitialized,
            hip::hipErrorDeinitialized => Error::Deinitialized,
            hip::hipErrorProfilerDisabled => Error::ProfilerDisabled,
            hip::hipErrorProfilerNotInitialized => Error::ProfilerNotInitialized,
            hip::hipErrorProfilerAlreadyStarted => Error::ProfilerAlreadyStarted,
            hip::hipErrorProfilerAlreadyStopped => Error::ProfilerAlreadyStopped,
            // HIP differs: 9, 12, 13, 17 and 21 are codes of the runtime API; CUDA's driver calls all of them 1.
            hip::hipErrorInvalidConfiguration
            | hip::hipErrorInvalidPitchValue
            | hip::hipErrorInvalidDevicePointer
            | hip::hipErrorInvalidMemcpyDirection => Error::InvalidValue(call),
            hip::hipErrorInvalidSymbol | hip::hipErrorSharedObjectSymbolNotFound | hip::hipErrorNotFound => {
                Error::NotFound
            }
            hip::hipErrorInsufficientDriver => Error::SystemDriverMismatch,
            // HIP differs: a function that is not one is 98 there, a runtime code; the driver's word is 400.
            hip::hipErrorInvalidDeviceFunction | hip::hipErrorInvalidHandle => Error::InvalidHandle(call),
            hip::hipErrorMissingConfiguration | hip::hipErrorPriorLaunchFailure => Error::LaunchFailed,
            hip::hipErrorNoDevice => Error::NoDevice,
            hip::hipErrorInvalidDevice => Error::InvalidDevice,
            hip::hipErrorInvalidImage => Error::InvalidImage,
            hip::hipErrorInvalidContext => Error::InvalidContext,
            hip::hipErrorContextAlreadyCurrent => Error::ContextAlreadyCurrent,
            hip::hipErrorMapFailed => Error::MapFailed,
            hip::hipErrorUnmapFailed => Error::UnmapFailed,
            hip::hipErrorArrayIsMapped => Error::ArrayIsMapped,
            hip::hipErrorAlreadyMapped => Error::AlreadyMapped,
            hip::hipErrorNoBinaryForGpu => Error::NoBinaryForGpu,
            hip::hipErrorAlreadyAcquired => Error::AlreadyAcquired,
            hip::hipErrorNotMapped => Error::NotMapped,
            hip::hipErrorNotMappedAsArray => Error::NotMappedAsArray,
            hip::hipErrorNotMappedAsPointer => Error::NotMappedAsPointer,
            hip::hipErrorECCNotCorrectable => Error::EccUncorrectable,
            hip::hipErrorUnsupportedLimit => Error::UnsupportedLimit,
            hip::hipErrorContextAlreadyInUse => Error::ContextAlreadyInUse,
            hip::hipErrorPeerAccessUnsupported => Error::PeerAccessUnsupported,
            hip::hipErrorInvalidKernelFile => Error::InvalidPtx,
            hip::hipErrorInvalidGraphicsContext => Error::InvalidGraphicsContext,
            hip::hipErrorInvalidSource => Error::InvalidSource,
            hip::hipErrorFileNotFound => Error::FileNotFound,
            hip::hipErrorSharedObjectInitFailed => Error::SharedObjectInitFailed,
            hip::hipErrorOperatingSystem => Error::OperatingSystem,
            hip::hipErrorIllegalState => Error::IllegalState,
            hip::hipErrorNotReady => Error::NotReady,
            hip::hipErrorIllegalAddress => Error::IllegalAddress,
            hip::hipErrorLaunchOutOfResources => Error::LaunchOutOfResources,
            hip::hipErrorLaunchTimeOut => Error::LaunchTimeout,
            hip::hipErrorPeerAccessAlreadyEnabled => Error::PeerAccessAlreadyEnabled,
            hip::hipErrorPeerAccessNotEnabled => Error::PeerAccessNotEnabled,
            hip::hipErrorSetOnActiveProcess => Error::PrimaryContextActive,
            hip::hipErrorContextIsDestroyed => Error::ContextIsDestroyed,
            hip::hipErrorAssert => Error::Assert,
            hip::hipErrorHostMemoryAlreadyRegistered => Error::HostMemoryAlreadyRegistered,
            hip::hipErrorHostMemoryNotRegistered => Error::HostMemoryNotRegistered,
            hip::hipErrorLaunchFailure => Error::LaunchFailed,
            hip::hipErrorCooperativeLaunchTooLarge => Error::CooperativeLaunchTooLarge,
            hip::hipErrorNotSupported => Error::NotSupported(call),
            hip::hipErrorStreamCaptureUnsupported => Error::StreamCaptureUnsupported,
            hip::hipErrorStreamCaptureInvalidated => Error::StreamCaptureInvalidated,
            hip::hipErrorStreamCaptureMerge => Error::StreamCaptureMerge,
            hip::hipErrorStreamCaptureUnmatched => Error::StreamCaptureUnmatched,
            hip::hipErrorStreamCaptureUnjoined => Error::StreamCaptureUnjoined,
            hip::hipErrorStreamCaptureIsolation => Error::StreamCaptureIsolation,
            hip::hipErrorStreamCaptureImplicit => Error::StreamCaptureImplicit,
            hip::hipErrorCapturedEvent => Error::CapturedEvent,
            hip::hipErrorStreamCaptureWrongThread => Error::StreamCaptureWrongThread,
            hip::hipErrorGraphExecUpdateFailure => Error::GraphExecUpdateFailure,
            // HIP differs: AMD's runtime reports the memory it could not get with a number of its own.
            hip::hipErrorRuntimeMemory => Error::OutOfMemory,
            // HIP differs: it has no number for these; the CPU device answers CUDA's.
            hip::hipError_t(714) => Error::HardwareStackError,
            hip::hipError_t(716) => Error::MisalignedAddress,
            hip::hipError_t(718) => Error::InvalidPc,
            hip::hipError_t(721) => Error::TensorMemoryLeak,
            _ => Error::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_result_has_its_c_name_and_a_description() {
        for &result in ALL {
            let (name, text) = describe(result).unwrap();
            assert!(name.to_bytes().starts_with(b"CUDA_ERROR_"));
            assert!(!text.to_bytes().is_empty());
        }
        assert_eq!(describe(CUresult(12345)), None);
    }

    #[test]
    fn hips_codes_become_the_code_cuda_documents() {
        let from = |code| Error::from(HipError::Code { call: "hipX", code }).result();
        assert_eq!(from(hip::hipErrorOutOfMemory), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        assert_eq!(from(hip::hipErrorInvalidKernelFile), CUresult::CUDA_ERROR_INVALID_PTX);
        assert_eq!(from(hip::hipErrorInvalidConfiguration), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(from(hip::hipError_t(424_242)), CUresult::CUDA_ERROR_UNKNOWN);
        assert_eq!(Error::from(HipError::Missing("hipX")), Error::NotSupported("hipX"));
    }
}
