//! The HIP table: each function of the ABI declared once, filled by name from a provider.
//!
//! `hip.hipMalloc(&mut p, n)` calls; a function that the provider lacks is `None` in the table and the call answers
//! `HipError::Missing`, logged once with its name.

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use core::fmt;

use crate::attribute::hipDeviceAttribute_t;
use crate::error::{hipError_t, hipSuccess};
use crate::texture::*;
use crate::types::*;

/// Why a call through the table gave nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HipError {
    /// The provider answered with an error.
    Code { call: &'static str, code: hipError_t },
    /// The provider has no such function.
    Missing(&'static str),
}

impl HipError {
    #[must_use]
    pub fn call(self) -> &'static str {
        match self {
            HipError::Code { call, .. } | HipError::Missing(call) => call,
        }
    }

    /// The code, where a missing function counts as `hipErrorNotSupported`.
    pub fn code(self) -> hipError_t {
        match self {
            HipError::Code { code, .. } => code,
            HipError::Missing(_) => crate::error::hipErrorNotSupported,
        }
    }
}

impl fmt::Display for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HipError::Code { call, code } => write!(f, "{call} answered {code}"),
            HipError::Missing(call) => write!(f, "the provider has no {call}"),
        }
    }
}

impl fmt::Debug for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for HipError {}

#[cold]
fn missing(call: &'static str) -> HipError {
    use std::sync::Mutex;
    static SEEN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !seen.contains(&call) {
        seen.push(call);
        tracing::warn!(target: "cudaway::hip", "the HIP provider has no {call}");
    }
    HipError::Missing(call)
}

#[cold]
fn failed(call: &'static str, code: hipError_t) -> HipError {
    tracing::debug!(target: "cudaway::hip", "{call} answered {code}");
    HipError::Code { call, code }
}

/// `cudaway_graph` of `libcudaway_cpu.so`: what is asked ([`graph`]), a graph's handle, a stream, another stream.
pub type Graph = unsafe extern "C" fn(c_uint, u64, hipStream_t, hipStream_t) -> hipError_t;

/// What [`Graph`] is asked for.
pub mod graph {
    use core::ffi::c_uint;

    /// What comes into the stream is kept as the steps of a graph, and not run.
    pub const RECORD: c_uint = 0;
    /// The steps kept in the stream become the graph's, at their turn in the other stream.
    pub const UPLOAD: c_uint = 1;
    /// What comes into the stream is a launch of the graph, or of none that kernels may launch (0).
    pub const BEGIN: c_uint = 2;
    /// The end of that.
    pub const END: c_uint = 3;
    /// The graph is destroyed.
    pub const FORGET: c_uint = 4;
    /// What the calling thread launches next is the kernel node of that handle, which kernels may change. No stream is named.
    pub const NODE: c_uint = 5;
    /// It was not launched after all.
    pub const NO_NODE: c_uint = 6;
    /// The node is gone.
    pub const FORGET_NODE: c_uint = 7;
    /// All of the above.
    pub const KINDS: c_uint = 0xff;
    /// With `NODE`: what the launch says takes the place of what kernels have set; the node does not run; the launch is taken at its
    /// turn, and not run.
    pub const NODE_NEW: c_uint = 0x100;
    pub const NODE_OFF: c_uint = 0x200;
    pub const NODE_UPLOAD: c_uint = 0x400;
}

/// `cudaway_prepare` of `libcudaway_cpu.so`.
pub type Prepare = unsafe extern "C" fn(hipFunction_t, c_uint, c_uint, c_uint, c_int) -> hipError_t;

/// `cudaway_work` of `libcudaway_cpu.so`: as `hipLaunchHostFunc`, for what is not the program's own code.
pub type Work = unsafe extern "C" fn(hipStream_t, hipHostFn_t, *mut c_void) -> hipError_t;

macro_rules! hip_functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        /// What a provider exports, by HIP's names; `None` where it has no such function.
        pub struct Hip {
            $($name: Option<unsafe extern "C" fn($($ty),*) -> hipError_t>,)*
            prepare: Option<Prepare>,
            graph: Option<Graph>,
            work: Option<Work>,
        }

        impl Hip {
            /// Every function name in the table.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Fills the table by name; `lookup` answers null for a name it does not have.
            ///
            /// # Safety
            /// A non-null answer is a function with the name's HIP signature, callable as long as the table is used.
            pub unsafe fn from_lookup(mut lookup: impl FnMut(&CStr) -> *mut c_void) -> Hip {
                const fn c_name(bytes: &'static [u8]) -> &'static CStr {
                    match CStr::from_bytes_with_nul(bytes) {
                        Ok(name) => name,
                        Err(_) => panic!("a function name holds no NUL"),
                    }
                }
                Hip {
                    $($name: {
                        let address = lookup(const { c_name(concat!(stringify!($name), "\0").as_bytes()) });
                        // SAFETY: the caller promised the signature; a null pointer is `None`.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "C" fn($($ty),*) -> hipError_t>,
                            >(address)
                        }
                    },)*
                    prepare: {
                        let address = lookup(c"cudaway_prepare");
                        // SAFETY: only a library of ours has the name, with this signature; a null pointer is `None`.
                        unsafe { core::mem::transmute::<*mut c_void, Option<Prepare>>(address) }
                    },
                    graph: {
                        let address = lookup(c"cudaway_graph");
                        // SAFETY: as above.
                        unsafe { core::mem::transmute::<*mut c_void, Option<Graph>>(address) }
                    },
                    work: {
                        let address = lookup(c"cudaway_work");
                        // SAFETY: as above.
                        unsafe { core::mem::transmute::<*mut c_void, Option<Work>>(address) }
                    },
                }
            }

            /// Tells a provider of ours that the function will be launched with such blocks, in clusters of several if
            /// `is_clustered`; it answers at once. Others are not told.
            ///
            /// # Safety
            /// A function of this provider's.
            pub unsafe fn prepare(&self, function: hipFunction_t, [x, y, z]: [c_uint; 3], is_clustered: bool) {
                if let Some(prepare) = self.prepare {
                    // SAFETY: the caller's promise. What cannot be prepared is told when it is launched.
                    let _ = unsafe { prepare(function, x, y, z, c_int::from(is_clustered)) };
                }
            }

            /// Whether kernels of this provider's may launch graphs.
            #[must_use]
            pub fn has_device_graphs(&self) -> bool {
                self.graph.is_some()
            }

            /// Asks a provider of ours for something of [`graph`] about graphs that kernels launch; others have none.
            ///
            /// # Safety
            /// Streams are this provider's, or null.
            pub unsafe fn graph(
                &self,
                what: c_uint,
                graph: u64,
                stream: hipStream_t,
                other: hipStream_t,
            ) -> Result<(), HipError> {
                let call = self.graph.ok_or_else(|| missing("cudaway_graph"))?;
                // SAFETY: the caller's promise.
                match unsafe { call(what, graph, stream, other) } {
                    hipSuccess => Ok(()),
                    code => Err(failed("cudaway_graph", code)),
                }
            }

            /// Has a provider of ours call `function` at its turn in the stream, on any thread, one that waits for the stream among them;
            /// others by `hipLaunchHostFunc`.
            ///
            /// # Safety
            /// A stream of this provider's, or null; the function may be called with `data`, once, on any thread.
            pub unsafe fn work(
                &self,
                stream: hipStream_t,
                function: hipHostFn_t,
                data: *mut c_void,
            ) -> Result<(), HipError> {
                // SAFETY: the caller's promise.
                unsafe {
                    let Some(work) = self.work else { return self.hipLaunchHostFunc(stream, function, data) };
                    match work(stream, function, data) {
                        hipSuccess => Ok(()),
                        code => Err(failed("cudaway_work", code)),
                    }
                }
            }

            /// Whether the provider exports `name`.
            #[must_use]
            pub fn has(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }

            /// Whether both have the same functions, all of one library.
            #[must_use]
            pub fn is_same(&self, other: &Hip) -> bool {
                self.hipInit.map(|it| it as usize) == other.hipInit.map(|it| it as usize)
            }

            /// How many functions of the table the provider has.
            #[must_use]
            pub fn n_present(&self) -> usize {
                0 $(+ usize::from(self.$name.is_some()))*
            }

            $(
                /// The provider's function of this name.
                ///
                /// # Safety
                /// What HIP's documentation asks of the arguments: pointers valid for what the call does with them.
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "the signature is HIP's")]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> Result<(), HipError> {
                    let Some(function) = self.$name else { return Err(missing(stringify!($name))) };
                    // SAFETY: the caller's promise is the function's.
                    let code = unsafe { function($($arg),*) };
                    if code == hipSuccess { Ok(()) } else { Err(failed(stringify!($name), code)) }
                }
            )*
        }
    };
}

/// Hands every function of the table to a macro: `fn name(argument: type, …);`, with this crate's and `core::ffi`'s types.
#[macro_export]
macro_rules! with_hip_functions {
    ($callback:ident) => {
        $callback! {
            fn hipGetDevicePropertiesR0600(prop: *mut c_void, deviceId: c_int);
            // In every ROCm the plain name fills the OLD layout, also in 6.x and 7.x: `negotiate` alone calls these two.
            fn hipGetDeviceProperties(prop: *mut c_void, deviceId: c_int);
            fn hipMemcpyPeer(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDeviceId: c_int, sizeBytes: usize);
            fn hipMemcpyPeerAsync(dst: *mut c_void, dstDeviceId: c_int, src: *const c_void, srcDevice: c_int, sizeBytes: usize, stream: hipStream_t);
            fn hipInit(flags: c_uint);
            fn hipDriverGetVersion(driverVersion: *mut c_int);
            fn hipRuntimeGetVersion(runtimeVersion: *mut c_int);
            fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int);
            fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t);
            fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t);
            fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t);
            fn hipDeviceGetP2PAttribute(value: *mut c_int, attr: hipDeviceP2PAttr, srcDevice: c_int, dstDevice: c_int);
            fn hipDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, device: c_int);
            fn hipDeviceGetByPCIBusId(device: *mut c_int, pciBusId: *const c_char);
            fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t);
            fn hipDeviceSynchronize();
            fn hipDeviceReset();
            fn hipCtxSetCurrent(ctx: hipCtx_t);
            fn hipSetDevice(deviceId: c_int);
            fn hipGetDevice(deviceId: *mut c_int);
            fn hipGetDeviceCount(count: *mut c_int);
            fn hipDeviceGetAttribute(pi: *mut c_int, attr: hipDeviceAttribute_t, deviceId: c_int);
            fn hipDeviceGetDefaultMemPool(mem_pool: *mut hipMemPool_t, device: c_int);
            fn hipDeviceSetMemPool(device: c_int, mem_pool: hipMemPool_t);
            fn hipDeviceGetMemPool(mem_pool: *mut hipMemPool_t, device: c_int);
            fn hipDeviceSetCacheConfig(cacheConfig: hipFuncCache_t);
            fn hipDeviceGetCacheConfig(cacheConfig: *mut hipFuncCache_t);
            fn hipDeviceGetLimit(pValue: *mut usize, limit: hipLimit_t);
            fn hipDeviceSetLimit(limit: hipLimit_t, value: usize);
            fn hipDeviceGetSharedMemConfig(pConfig: *mut hipSharedMemConfig);
            fn hipGetDeviceFlags(flags: *mut c_uint);
            fn hipDeviceSetSharedMemConfig(config: hipSharedMemConfig);
            fn hipSetDeviceFlags(flags: c_uint);
            fn hipExtGetLinkTypeAndHopCount(device1: c_int, device2: c_int, linktype: *mut u32, hopcount: *mut u32);
            fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, devPtr: *mut c_void);
            fn hipIpcOpenMemHandle(devPtr: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint);
            fn hipIpcCloseMemHandle(devPtr: *mut c_void);
            fn hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t);
            fn hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t);
            fn hipGetLastError();
            fn hipPeekAtLastError();
            fn hipDrvGetErrorName(hipError: hipError_t, errorString: *mut *const c_char);
            fn hipDrvGetErrorString(hipError: hipError_t, errorString: *mut *const c_char);
            fn hipStreamCreate(stream: *mut hipStream_t);
            fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint);
            fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int);
            fn hipDeviceGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int);
            fn hipStreamDestroy(stream: hipStream_t);
            fn hipStreamQuery(stream: hipStream_t);
            fn hipStreamSynchronize(stream: hipStream_t);
            fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint);
            fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint);
            fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int);
            fn hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t);
            fn hipExtStreamCreateWithCUMask(stream: *mut hipStream_t, cuMaskSize: u32, cuMask: *const u32);
            fn hipExtStreamGetCUMask(stream: hipStream_t, cuMaskSize: u32, cuMask: *mut u32);
            fn hipStreamAddCallback(stream: hipStream_t, callback: hipStreamCallback_t, userData: *mut c_void, flags: c_uint);
            fn hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32);
            fn hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64);
            fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint);
            fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint);
            fn hipStreamBatchMemOp(stream: hipStream_t, count: c_uint, paramArray: *mut c_void, flags: c_uint);
            fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint);
            fn hipEventCreate(event: *mut hipEvent_t);
            fn hipEventRecord(event: hipEvent_t, stream: hipStream_t);
            fn hipEventDestroy(event: hipEvent_t);
            fn hipEventSynchronize(event: hipEvent_t);
            fn hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t);
            fn hipEventQuery(event: hipEvent_t);
            fn hipPointerSetAttribute(value: *const c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t);
            fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void);
            fn hipPointerGetAttribute(data: *mut c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t);
            fn hipDrvPointerGetAttributes(numAttributes: c_uint, attributes: *mut hipPointer_attribute, data: *mut *mut c_void, ptr: hipDeviceptr_t);
            fn hipImportExternalSemaphore(extSem_out: *mut hipExternalSemaphore_t, semHandleDesc: *const c_void);
            fn hipDestroyExternalSemaphore(extSem: hipExternalSemaphore_t);
            fn hipSignalExternalSemaphoresAsync(extSemArray: *const hipExternalSemaphore_t, paramsArray: *const c_void, numExtSems: c_uint, stream: hipStream_t);
            fn hipWaitExternalSemaphoresAsync(extSemArray: *const hipExternalSemaphore_t, paramsArray: *const c_void, numExtSems: c_uint, stream: hipStream_t);
            fn hipImportExternalMemory(extMem_out: *mut hipExternalMemory_t, memHandleDesc: *const c_void);
            fn hipExternalMemoryGetMappedBuffer(devPtr: *mut *mut c_void, extMem: hipExternalMemory_t, bufferDesc: *const c_void);
            fn hipDestroyExternalMemory(extMem: hipExternalMemory_t);
            fn hipExternalMemoryGetMappedMipmappedArray(mipmap: *mut hipMipmappedArray_t, extMem: hipExternalMemory_t, mipmapDesc: *const c_void);
            fn hipMalloc(ptr: *mut *mut c_void, size: usize);
            fn hipExtMallocWithFlags(ptr: *mut *mut c_void, sizeBytes: usize, flags: c_uint);
            fn hipMallocHost(ptr: *mut *mut c_void, size: usize);
            fn hipMemAllocHost(ptr: *mut *mut c_void, size: usize);
            fn hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
            fn hipExtHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
            fn hipMallocManaged(dev_ptr: *mut *mut c_void, size: usize, flags: c_uint);
            fn hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t);
            fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int);
            fn hipMemRangeGetAttribute(data: *mut c_void, data_size: usize, attribute: hipMemRangeAttribute, dev_ptr: *const c_void, count: usize);
            fn hipMemRangeGetAttributes(data: *mut *mut c_void, data_sizes: *mut usize, attributes: *mut hipMemRangeAttribute, num_attributes: usize, dev_ptr: *const c_void, count: usize);
            fn hipStreamAttachMemAsync(stream: hipStream_t, dev_ptr: *mut c_void, length: usize, flags: c_uint);
            fn hipMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: hipStream_t);
            fn hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t);
            fn hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize);
            fn hipMemPoolSetAttribute(mem_pool: hipMemPool_t, attr: hipMemPoolAttr, value: *mut c_void);
            fn hipMemPoolGetAttribute(mem_pool: hipMemPool_t, attr: hipMemPoolAttr, value: *mut c_void);
            fn hipMemPoolSetAccess(mem_pool: hipMemPool_t, desc_list: *const hipMemAccessDesc, count: usize);
            fn hipMemPoolGetAccess(flags: *mut hipMemAccessFlags, mem_pool: hipMemPool_t, location: *mut hipMemLocation);
            fn hipMemPoolCreate(mem_pool: *mut hipMemPool_t, pool_props: *const hipMemPoolProps);
            fn hipMemPoolDestroy(mem_pool: hipMemPool_t);
            fn hipMallocFromPoolAsync(dev_ptr: *mut *mut c_void, size: usize, mem_pool: hipMemPool_t, stream: hipStream_t);
            fn hipMemPoolExportToShareableHandle(shared_handle: *mut c_void, mem_pool: hipMemPool_t, handle_type: hipMemAllocationHandleType, flags: c_uint);
            fn hipMemPoolImportFromShareableHandle(mem_pool: *mut hipMemPool_t, shared_handle: *mut c_void, handle_type: hipMemAllocationHandleType, flags: c_uint);
            fn hipMemPoolExportPointer(export_data: *mut hipMemPoolPtrExportData, dev_ptr: *mut c_void);
            fn hipMemPoolImportPointer(dev_ptr: *mut *mut c_void, mem_pool: hipMemPool_t, export_data: *mut hipMemPoolPtrExportData);
            fn hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
            fn hipHostGetDevicePointer(devPtr: *mut *mut c_void, hstPtr: *mut c_void, flags: c_uint);
            fn hipHostGetFlags(flagsPtr: *mut c_uint, hostPtr: *mut c_void);
            fn hipHostRegister(hostPtr: *mut c_void, sizeBytes: usize, flags: c_uint);
            fn hipHostUnregister(hostPtr: *mut c_void);
            fn hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize);
            fn hipMemAllocPitch(dptr: *mut hipDeviceptr_t, pitch: *mut usize, widthInBytes: usize, height: usize, elementSizeBytes: c_uint);
            fn hipFree(ptr: *mut c_void);
            fn hipFreeHost(ptr: *mut c_void);
            fn hipHostFree(ptr: *mut c_void);
            fn hipMemcpy(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind);
            fn hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t);
            fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, sizeBytes: usize);
            fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize);
            fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize);
            fn hipMemcpyAtoD(dstDevice: hipDeviceptr_t, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize);
            fn hipMemcpyDtoA(dstArray: hipArray_t, dstOffset: usize, srcDevice: hipDeviceptr_t, ByteCount: usize);
            fn hipMemcpyAtoA(dstArray: hipArray_t, dstOffset: usize, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize);
            fn hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *mut c_void, sizeBytes: usize, stream: hipStream_t);
            fn hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t);
            fn hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t);
            fn hipMemcpyAtoHAsync(dstHost: *mut c_void, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize, stream: hipStream_t);
            fn hipMemcpyHtoAAsync(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, ByteCount: usize, stream: hipStream_t);
            fn hipModuleGetGlobal(dptr: *mut hipDeviceptr_t, bytes: *mut usize, hmod: hipModule_t, name: *const c_char);
            fn hipGetProcAddress(symbol: *const c_char, pfn: *mut *mut c_void, hipVersion: c_int, flags: u64, symbolStatus: *mut hipDriverProcAddressQueryResult);
            fn hipMemcpyAsync(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t);
            fn hipMemset(dst: *mut c_void, value: c_int, sizeBytes: usize);
            fn hipMemsetD8(dest: hipDeviceptr_t, value: c_uchar, count: usize);
            fn hipMemsetD8Async(dest: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t);
            fn hipMemsetD16(dest: hipDeviceptr_t, value: c_ushort, count: usize);
            fn hipMemsetD16Async(dest: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t);
            fn hipMemsetD32(dest: hipDeviceptr_t, value: c_int, count: usize);
            fn hipMemsetAsync(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t);
            fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t);
            fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize);
            fn hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t);
            fn hipMemset3D(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent);
            fn hipMemset3DAsync(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t);
            fn hipMemGetInfo(free: *mut usize, total: *mut usize);
            fn hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize);
            fn hipMallocArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, width: usize, height: usize, flags: c_uint);
            fn hipArrayCreate(pHandle: *mut hipArray_t, pAllocateArray: *const HIP_ARRAY_DESCRIPTOR);
            fn hipArrayDestroy(array: hipArray_t);
            fn hipArray3DCreate(array: *mut hipArray_t, pAllocateArray: *const HIP_ARRAY3D_DESCRIPTOR);
            fn hipMalloc3D(pitchedDevPtr: *mut hipPitchedPtr, extent: hipExtent);
            fn hipFreeArray(array: hipArray_t);
            fn hipMalloc3DArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, flags: c_uint);
            fn hipArrayGetInfo(desc: *mut hipChannelFormatDesc, extent: *mut hipExtent, flags: *mut c_uint, array: hipArray_t);
            fn hipArrayGetDescriptor(pArrayDescriptor: *mut HIP_ARRAY_DESCRIPTOR, array: hipArray_t);
            fn hipArray3DGetDescriptor(pArrayDescriptor: *mut HIP_ARRAY3D_DESCRIPTOR, array: hipArray_t);
            fn hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind);
            fn hipMemcpyParam2D(pCopy: *const hip_Memcpy2D);
            fn hipMemcpyParam2DAsync(pCopy: *const hip_Memcpy2D, stream: hipStream_t);
            fn hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t);
            fn hipMemcpy2DToArray(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind);
            fn hipMemcpy2DToArrayAsync(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t);
            fn hipMemcpy2DArrayToArray(dst: hipArray_t, wOffsetDst: usize, hOffsetDst: usize, src: hipArray_const_t, wOffsetSrc: usize, hOffsetSrc: usize, width: usize, height: usize, kind: hipMemcpyKind);
            fn hipMemcpy2DFromArray(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind);
            fn hipMemcpy2DFromArrayAsync(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t);
            fn hipMemcpyAtoH(dst: *mut c_void, srcArray: hipArray_t, srcOffset: usize, count: usize);
            fn hipMemcpyHtoA(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, count: usize);
            fn hipMemcpy3D(p: *const c_void);
            fn hipMemcpy3DAsync(p: *const c_void, stream: hipStream_t);
            fn hipDrvMemcpy3D(pCopy: *const HIP_MEMCPY3D);
            fn hipDrvMemcpy3DAsync(pCopy: *const HIP_MEMCPY3D, stream: hipStream_t);
            fn hipDeviceCanAccessPeer(canAccessPeer: *mut c_int, deviceId: c_int, peerDeviceId: c_int);
            fn hipDeviceEnablePeerAccess(peerDeviceId: c_int, flags: c_uint);
            fn hipDeviceDisablePeerAccess(peerDeviceId: c_int);
            fn hipMemGetAddressRange(pbase: *mut hipDeviceptr_t, psize: *mut usize, dptr: hipDeviceptr_t);
            fn hipModuleLoad(module: *mut hipModule_t, fname: *const c_char);
            fn hipModuleUnload(module: hipModule_t);
            fn hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, kname: *const c_char);
            fn hipFuncGetAttribute(value: *mut c_int, attrib: hipFunction_attribute, hfunc: hipFunction_t);
            fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void);
            fn hipModuleLoadDataEx(module: *mut hipModule_t, image: *const c_void, numOptions: c_uint, options: *mut hipJitOption, optionValues: *mut *mut c_void);
            fn hipModuleLaunchKernel(f: hipFunction_t, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, stream: hipStream_t, kernelParams: *mut *mut c_void, extra: *mut *mut c_void);
            fn hipFuncSetAttribute(func: *const c_void, attr: hipFuncAttribute, value: c_int);
            fn hipModuleLaunchCooperativeKernel(f: hipFunction_t, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, stream: hipStream_t, kernelParams: *mut *mut c_void);
            fn hipDrvLaunchKernelEx(config: *const HIP_LAUNCH_CONFIG, f: hipFunction_t, params: *mut *mut c_void, extra: *mut *mut c_void);
            fn hipModuleOccupancyMaxPotentialBlockSize(gridSize: *mut c_int, blockSize: *mut c_int, f: hipFunction_t, dynSharedMemPerBlk: usize, blockSizeLimit: c_int);
            fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(gridSize: *mut c_int, blockSize: *mut c_int, f: hipFunction_t, dynSharedMemPerBlk: usize, blockSizeLimit: c_int, flags: c_uint);
            fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks: *mut c_int, f: hipFunction_t, blockSize: c_int, dynSharedMemPerBlk: usize);
            fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks: *mut c_int, f: hipFunction_t, blockSize: c_int, dynSharedMemPerBlk: usize, flags: c_uint);
            fn hipProfilerStart();
            fn hipProfilerStop();
            fn hipLaunchHostFunc(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void);
            fn hipDrvMemcpy2DUnaligned(pCopy: *const hip_Memcpy2D);
            fn hipCreateTextureObject(pTexObject: *mut hipTextureObject_t, pResDesc: *const hipResourceDesc, pTexDesc: *const hipTextureDesc, pResViewDesc: *const hipResourceViewDesc);
            fn hipGetTextureObjectResourceDesc(pResDesc: *mut hipResourceDesc, textureObject: hipTextureObject_t);
            fn hipGetTextureObjectResourceViewDesc(pResViewDesc: *mut hipResourceViewDesc, textureObject: hipTextureObject_t);
            fn hipGetTextureObjectTextureDesc(pTexDesc: *mut hipTextureDesc, textureObject: hipTextureObject_t);
            fn hipTexObjectCreate(pTexObject: *mut hipTextureObject_t, pResDesc: *const HIP_RESOURCE_DESC, pTexDesc: *const HIP_TEXTURE_DESC, pResViewDesc: *const HIP_RESOURCE_VIEW_DESC);
            fn hipTexObjectDestroy(texObject: hipTextureObject_t);
            fn hipTexObjectGetResourceDesc(pResDesc: *mut HIP_RESOURCE_DESC, texObject: hipTextureObject_t);
            fn hipTexObjectGetResourceViewDesc(pResViewDesc: *mut HIP_RESOURCE_VIEW_DESC, texObject: hipTextureObject_t);
            fn hipTexObjectGetTextureDesc(pTexDesc: *mut HIP_TEXTURE_DESC, texObject: hipTextureObject_t);
            fn hipGetChannelDesc(desc: *mut hipChannelFormatDesc, array: hipArray_const_t);
            fn hipModuleGetTexRef(texRef: *mut *mut textureReference, hmod: hipModule_t, name: *const c_char);
            fn hipTexRefSetArray(tex: *mut textureReference, array: hipArray_const_t, flags: c_uint);
            fn hipTexRefSetMipmappedArray(texRef: *mut textureReference, mipmappedArray: hipMipmappedArray_t, Flags: c_uint);
            fn hipTexRefSetAddress(ByteOffset: *mut usize, texRef: *mut textureReference, dptr: hipDeviceptr_t, bytes: usize);
            fn hipTexRefSetAddress2D(texRef: *mut textureReference, desc: *const HIP_ARRAY_DESCRIPTOR, dptr: hipDeviceptr_t, Pitch: usize);
            fn hipTexRefSetFormat(texRef: *mut textureReference, fmt: hipArray_Format, NumPackedComponents: c_int);
            fn hipTexRefSetAddressMode(texRef: *mut textureReference, dim: c_int, am: hipTextureAddressMode);
            fn hipTexRefSetFilterMode(texRef: *mut textureReference, fm: hipTextureFilterMode);
            fn hipTexRefSetFlags(texRef: *mut textureReference, Flags: c_uint);
            fn hipTexRefSetBorderColor(texRef: *mut textureReference, pBorderColor: *mut f32);
            fn hipTexRefSetMaxAnisotropy(texRef: *mut textureReference, maxAniso: c_uint);
            fn hipTexRefSetMipmapFilterMode(texRef: *mut textureReference, fm: hipTextureFilterMode);
            fn hipTexRefSetMipmapLevelBias(texRef: *mut textureReference, bias: f32);
            fn hipTexRefSetMipmapLevelClamp(texRef: *mut textureReference, minMipMapLevelClamp: f32, maxMipMapLevelClamp: f32);
            fn hipTexRefGetArray(pArray: *mut hipArray_t, texRef: *const textureReference);
            fn hipTexRefGetMipMappedArray(pArray: *mut hipMipmappedArray_t, texRef: *const textureReference);
            fn hipTexRefGetAddress(dev_ptr: *mut hipDeviceptr_t, texRef: *const textureReference);
            fn hipTexRefGetFormat(pFormat: *mut hipArray_Format, pNumChannels: *mut c_int, texRef: *const textureReference);
            fn hipTexRefGetAddressMode(pam: *mut hipTextureAddressMode, texRef: *const textureReference, dim: c_int);
            fn hipTexRefGetFilterMode(pfm: *mut hipTextureFilterMode, texRef: *const textureReference);
            fn hipTexRefGetFlags(pFlags: *mut c_uint, texRef: *const textureReference);
            fn hipTexRefGetBorderColor(pBorderColor: *mut f32, texRef: *const textureReference);
            fn hipTexRefGetMaxAnisotropy(pmaxAnsio: *mut c_int, texRef: *const textureReference);
            fn hipTexRefGetMipmapFilterMode(pfm: *mut hipTextureFilterMode, texRef: *const textureReference);
            fn hipTexRefGetMipmapLevelBias(pbias: *mut f32, texRef: *const textureReference);
            fn hipTexRefGetMipmapLevelClamp(pminMipmapLevelClamp: *mut f32, pmaxMipmapLevelClamp: *mut f32, texRef: *const textureReference);
            fn hipDestroyTextureObject(textureObject: hipTextureObject_t);
            fn hipMallocMipmappedArray(mipmappedArray: *mut hipMipmappedArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, numLevels: c_uint, flags: c_uint);
            fn hipFreeMipmappedArray(mipmappedArray: hipMipmappedArray_t);
            fn hipGetMipmappedArrayLevel(levelArray: *mut hipArray_t, mipmappedArray: hipMipmappedArray_const_t, level: c_uint);
            fn hipMipmappedArrayCreate(pHandle: *mut hipMipmappedArray_t, pMipmappedArrayDesc: *mut HIP_ARRAY3D_DESCRIPTOR, numMipmapLevels: c_uint);
            fn hipMipmappedArrayDestroy(hMipmappedArray: hipMipmappedArray_t);
            fn hipMipmappedArrayGetLevel(pLevelArray: *mut hipArray_t, hMipMappedArray: hipMipmappedArray_t, level: c_uint);
            fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode);
            fn hipStreamBeginCaptureToGraph(stream: hipStream_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, dependencyData: *const c_void, numDependencies: usize, mode: hipStreamCaptureMode);
            fn hipStreamEndCapture(stream: hipStream_t, pGraph: *mut hipGraph_t);
            fn hipStreamGetCaptureInfo(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus, pId: *mut u64);
            fn hipStreamGetCaptureInfo_v2(stream: hipStream_t, captureStatus_out: *mut hipStreamCaptureStatus, id_out: *mut u64, graph_out: *mut hipGraph_t, dependencies_out: *mut *const hipGraphNode_t, numDependencies_out: *mut usize);
            fn hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus);
            fn hipStreamUpdateCaptureDependencies(stream: hipStream_t, dependencies: *mut hipGraphNode_t, numDependencies: usize, flags: c_uint);
            fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode);
            fn hipGraphCreate(pGraph: *mut hipGraph_t, flags: c_uint);
            fn hipGraphDestroy(graph: hipGraph_t);
            fn hipGraphAddDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, numDependencies: usize);
            fn hipGraphRemoveDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, numDependencies: usize);
            fn hipGraphGetEdges(graph: hipGraph_t, from: *mut hipGraphNode_t, to: *mut hipGraphNode_t, numEdges: *mut usize);
            fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, numNodes: *mut usize);
            fn hipGraphGetRootNodes(graph: hipGraph_t, pRootNodes: *mut hipGraphNode_t, pNumRootNodes: *mut usize);
            fn hipGraphNodeGetDependencies(node: hipGraphNode_t, pDependencies: *mut hipGraphNode_t, pNumDependencies: *mut usize);
            fn hipGraphNodeGetDependentNodes(node: hipGraphNode_t, pDependentNodes: *mut hipGraphNode_t, pNumDependentNodes: *mut usize);
            fn hipGraphNodeGetType(node: hipGraphNode_t, pType: *mut hipGraphNodeType);
            fn hipGraphDestroyNode(node: hipGraphNode_t);
            fn hipGraphClone(pGraphClone: *mut hipGraph_t, originalGraph: hipGraph_t);
            fn hipGraphNodeFindInClone(pNode: *mut hipGraphNode_t, originalNode: hipGraphNode_t, clonedGraph: hipGraph_t);
            fn hipGraphInstantiate(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, pErrorNode: *mut hipGraphNode_t, pLogBuffer: *mut c_char, bufferSize: usize);
            fn hipGraphInstantiateWithFlags(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, flags: u64);
            fn hipGraphInstantiateWithParams(pGraphExec: *mut hipGraphExec_t, graph: hipGraph_t, instantiateParams: *mut hipGraphInstantiateParams);
            fn hipGraphLaunch(graphExec: hipGraphExec_t, stream: hipStream_t);
            fn hipGraphUpload(graphExec: hipGraphExec_t, stream: hipStream_t);
            fn hipGraphExecGetFlags(graphExec: hipGraphExec_t, flags: *mut u64);
            fn hipGraphExecDestroy(graphExec: hipGraphExec_t);
            fn hipGraphExecUpdate(hGraphExec: hipGraphExec_t, hGraph: hipGraph_t, hErrorNode_out: *mut hipGraphNode_t, updateResult_out: *mut hipGraphExecUpdateResult);
            fn hipGraphAddKernelNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, pNodeParams: *const hipKernelNodeParams);
            fn hipGraphKernelNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipKernelNodeParams);
            fn hipGraphKernelNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipKernelNodeParams);
            fn hipGraphExecKernelNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipKernelNodeParams);
            fn hipDrvGraphAddMemcpyNode(phGraphNode: *mut hipGraphNode_t, hGraph: hipGraph_t, dependencies: *const hipGraphNode_t, numDependencies: usize, copyParams: *const HIP_MEMCPY3D, ctx: hipCtx_t);
            fn hipGraphAddMemcpyNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, pCopyParams: *const c_void);
            fn hipGraphMemcpyNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut c_void);
            fn hipGraphMemcpyNodeSetParams(node: hipGraphNode_t, pNodeParams: *const c_void);
            fn hipGraphExecMemcpyNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *mut c_void);
            fn hipGraphAddMemcpyNode1D(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind);
            fn hipGraphMemcpyNodeSetParams1D(node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind);
            fn hipGraphExecMemcpyNodeSetParams1D(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind);
            fn hipGraphAddMemsetNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, pMemsetParams: *const hipMemsetParams);
            fn hipGraphMemsetNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipMemsetParams);
            fn hipGraphMemsetNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipMemsetParams);
            fn hipGraphExecMemsetNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipMemsetParams);
            fn hipGraphAddHostNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, pNodeParams: *const hipHostNodeParams);
            fn hipGraphHostNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipHostNodeParams);
            fn hipGraphHostNodeSetParams(node: hipGraphNode_t, pNodeParams: *const hipHostNodeParams);
            fn hipGraphExecHostNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, pNodeParams: *const hipHostNodeParams);
            fn hipGraphAddChildGraphNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, childGraph: hipGraph_t);
            fn hipGraphChildGraphNodeGetGraph(node: hipGraphNode_t, pGraph: *mut hipGraph_t);
            fn hipGraphExecChildGraphNodeSetParams(hGraphExec: hipGraphExec_t, node: hipGraphNode_t, childGraph: hipGraph_t);
            fn hipGraphAddEmptyNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize);
            fn hipGraphAddEventRecordNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, event: hipEvent_t);
            fn hipGraphEventRecordNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t);
            fn hipGraphEventRecordNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t);
            fn hipGraphExecEventRecordNodeSetEvent(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, event: hipEvent_t);
            fn hipGraphAddEventWaitNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, event: hipEvent_t);
            fn hipGraphEventWaitNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t);
            fn hipGraphEventWaitNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t);
            fn hipGraphExecEventWaitNodeSetEvent(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, event: hipEvent_t);
            fn hipGraphAddMemAllocNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, pNodeParams: *mut hipMemAllocNodeParams);
            fn hipGraphMemAllocNodeGetParams(node: hipGraphNode_t, pNodeParams: *mut hipMemAllocNodeParams);
            fn hipGraphAddMemFreeNode(pGraphNode: *mut hipGraphNode_t, graph: hipGraph_t, pDependencies: *const hipGraphNode_t, numDependencies: usize, dev_ptr: *mut c_void);
            fn hipGraphMemFreeNodeGetParams(node: hipGraphNode_t, dev_ptr: *mut c_void);
            fn hipDeviceGetGraphMemAttribute(device: c_int, attr: hipGraphMemAttributeType, value: *mut c_void);
            fn hipDeviceSetGraphMemAttribute(device: c_int, attr: hipGraphMemAttributeType, value: *mut c_void);
            fn hipDeviceGraphMemTrim(device: c_int);
            fn hipUserObjectCreate(object_out: *mut hipUserObject_t, ptr: *mut c_void, destroy: hipHostFn_t, initialRefcount: c_uint, flags: c_uint);
            fn hipUserObjectRelease(object: hipUserObject_t, count: c_uint);
            fn hipUserObjectRetain(object: hipUserObject_t, count: c_uint);
            fn hipGraphRetainUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint, flags: c_uint);
            fn hipGraphReleaseUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint);
            fn hipGraphDebugDotPrint(graph: hipGraph_t, path: *const c_char, flags: c_uint);
            fn hipGraphNodeSetEnabled(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, isEnabled: c_uint);
            fn hipGraphNodeGetEnabled(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, isEnabled: *mut c_uint);
            fn hipDrvGraphMemcpyNodeGetParams(hNode: hipGraphNode_t, nodeParams: *mut HIP_MEMCPY3D);
            fn hipDrvGraphMemcpyNodeSetParams(hNode: hipGraphNode_t, nodeParams: *const HIP_MEMCPY3D);
            fn hipDrvGraphAddMemsetNode(phGraphNode: *mut hipGraphNode_t, hGraph: hipGraph_t, dependencies: *const hipGraphNode_t, numDependencies: usize, memsetParams: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t);
            fn hipDrvGraphAddMemFreeNode(phGraphNode: *mut hipGraphNode_t, hGraph: hipGraph_t, dependencies: *const hipGraphNode_t, numDependencies: usize, dptr: hipDeviceptr_t);
            fn hipDrvGraphExecMemcpyNodeSetParams(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, copyParams: *const HIP_MEMCPY3D, ctx: hipCtx_t);
            fn hipDrvGraphExecMemsetNodeSetParams(hGraphExec: hipGraphExec_t, hNode: hipGraphNode_t, memsetParams: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t);
            fn hipMemAddressFree(devPtr: *mut c_void, size: usize);
            fn hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, addr: *mut c_void, flags: u64);
            fn hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, prop: *const hipMemAllocationProp, flags: u64);
            fn hipMemExportToShareableHandle(shareableHandle: *mut c_void, handle: hipMemGenericAllocationHandle_t, handleType: hipMemAllocationHandleType, flags: u64);
            fn hipMemGetAccess(flags: *mut u64, location: *const hipMemLocation, ptr: *mut c_void);
            fn hipMemGetAllocationGranularity(granularity: *mut usize, prop: *const hipMemAllocationProp, option: hipMemAllocationGranularity_flags);
            fn hipMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t);
            fn hipMemImportFromShareableHandle(handle: *mut hipMemGenericAllocationHandle_t, osHandle: *mut c_void, shHandleType: hipMemAllocationHandleType);
            fn hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: u64);
            fn hipMemRelease(handle: hipMemGenericAllocationHandle_t);
            fn hipMemRetainAllocationHandle(handle: *mut hipMemGenericAllocationHandle_t, addr: *mut c_void);
            fn hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize);
            fn hipMemUnmap(ptr: *mut c_void, size: usize);
            fn hipCreateSurfaceObject(pSurfObject: *mut hipSurfaceObject_t, pResDesc: *const hipResourceDesc);
            fn hipDestroySurfaceObject(surfaceObject: hipSurfaceObject_t);

            // Newer than the header the list was read from: ROCm 6.5 to 7.2.
            fn hipMemsetD2D8(dst: hipDeviceptr_t, dstPitch: usize, value: c_uchar, width: usize, height: usize);
            fn hipMemsetD2D8Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_uchar, width: usize, height: usize, stream: hipStream_t);
            fn hipMemsetD2D16(dst: hipDeviceptr_t, dstPitch: usize, value: c_ushort, width: usize, height: usize);
            fn hipMemsetD2D16Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_ushort, width: usize, height: usize, stream: hipStream_t);
            fn hipMemsetD2D32(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize);
            fn hipMemsetD2D32Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t);
        }
    };
}

with_hip_functions!(hip_functions);
