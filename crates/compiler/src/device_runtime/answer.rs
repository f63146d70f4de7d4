//! What calls of the device runtime answer, on every device.

use std::ffi::CStr;

/// CUDA's numbers.
pub type Code = u32;

macro_rules! answers {
    ($($name:ident = $number:literal, $c_name:literal, $text:literal;)*) => {
        $(pub const $name: Code = $number;)*

        /// Number, name and text of each, and of what is none of them in the end.
        pub const ALL: &[(Option<Code>, &CStr, &CStr)] = &[
            $((Some($name), $c_name, $text),)*
            (None, c"unrecognized error code", c"unrecognized error code"),
        ];
    };
}

answers! {
    SUCCESS = 0, c"cudaSuccess", c"no error";
    INVALID_VALUE = 1, c"cudaErrorInvalidValue", c"invalid argument";
    MEMORY_ALLOCATION = 2, c"cudaErrorMemoryAllocation", c"out of memory";
    INVALID_CONFIGURATION = 9, c"cudaErrorInvalidConfiguration", c"invalid configuration argument";
    SYNC_DEPTH_EXCEEDED = 68, c"cudaErrorSyncDepthExceeded", c"cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth";
    PENDING_COUNT_EXCEEDED = 69, c"cudaErrorLaunchPendingCountExceeded", c"launch would exceed maximum number of pending launches";
    INVALID_DEVICE_FUNCTION = 98, c"cudaErrorInvalidDeviceFunction", c"invalid device function";
    INVALID_DEVICE = 101, c"cudaErrorInvalidDevice", c"invalid device ordinal";
    INVALID_RESOURCE_HANDLE = 400, c"cudaErrorInvalidResourceHandle", c"invalid resource handle";
    LAUNCH_FAILURE = 719, c"cudaErrorLaunchFailure", c"unspecified launch failure";
    NOT_SUPPORTED = 801, c"cudaErrorNotSupported", c"operation not supported";
}

/// Name and text of a number.
#[must_use]
pub fn name(code: Code) -> (&'static CStr, &'static CStr) {
    let found = ALL.iter().find(|(number, ..)| number.is_none_or(|number| number == code));
    found.map_or((c"", c""), |&(_, name, text)| (name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_name_and_others_have_one_for_all() {
        assert_eq!(name(69).0, c"cudaErrorLaunchPendingCountExceeded");
        assert_eq!(name(0).1, c"no error");
        assert_eq!(name(3), (c"unrecognized error code", c"unrecognized error code"));
    }
}
