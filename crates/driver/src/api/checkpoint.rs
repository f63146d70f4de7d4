//! Checkpoints of the CUDA state of a process.
//!
//! A CPU device's state is the process's own memory, which tools for processes (CRIU) save as it is; a provider for other devices
//! has no call for it.

use core::ffi::*;

use border::Out;
use cuda_abi::*;

use super::refuse;
use crate::Result;

// HIP differs: it has no checkpoints.
const WHY: &str = "checkpoints: no provider saves a device's state";

pub fn cuCheckpointOperationComplete(_handle: CUcheckpointOperationHandle) -> Result {
    refuse(WHY)
}

pub fn cuCheckpointProcessCheckpoint(_pid: c_int, _args: *mut CUcheckpointCheckpointArgs) -> Result {
    refuse(WHY)
}

pub fn cuCheckpointProcessGetRestoreThreadId(_pid: c_int, _tid: Out<'_, c_int>) -> Result {
    refuse(WHY)
}

pub fn cuCheckpointProcessGetState(_pid: c_int, _state: Out<'_, CUprocessState>) -> Result {
    refuse(WHY)
}

pub fn cuCheckpointProcessLock(_pid: c_int, _args: *mut CUcheckpointLockArgs) -> Result {
    refuse(WHY)
}

pub fn cuCheckpointProcessRestore(_pid: c_int, _args: *mut CUcheckpointRestoreArgs) -> Result {
    refuse(WHY)
}

pub fn cuCheckpointProcessUnlock(_pid: c_int, _args: *mut CUcheckpointUnlockArgs) -> Result {
    refuse(WHY)
}
