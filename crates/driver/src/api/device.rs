//! Device Management, Primary Context Management.

use core::ffi::{CStr, c_char, c_int, c_uint};

use border::{OptOut, Out};
use cuda_abi::{
    CUatomicOperation, CUatomicOperationCapability, CUcontext, CUdevice, CUdevice_P2PAttribute,
    CUdevice_attribute, CUdevprop, CUuuid,
};
use hip_sys as hip;

use crate::object::device::{Target, WARP_SIZE};
use crate::object::{Context, Device};
use crate::process::driver;
use crate::{Error, Result};

pub fn cuDeviceGetCount(count: Out<'_, c_int>) -> Result {
    count.write(c_int::try_from(driver()?.devices.len()).unwrap_or(c_int::MAX));
    Ok(())
}

pub fn cuDeviceGet(device: Out<'_, CUdevice>, ordinal: c_int) -> Result {
    device.write(Device::get(ordinal)?.ordinal);
    Ok(())
}

/// The device's name, cut to `len` bytes with its NUL.
///
/// # Safety
/// `name` is NULL, or has `len` bytes that may be written.
pub unsafe fn cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice) -> Result {
    let device = Device::get(dev)?;
    // SAFETY: the caller's promise.
    unsafe { write_text(&device.name, name, len, "name") }
}

/// Writes `text` and a NUL into a buffer of the program's.
///
/// # Safety
/// `at` is NULL, or has `len` bytes that may be written.
unsafe fn write_text(text: &str, at: *mut c_char, len: c_int, parameter: &'static str) -> Result {
    let len_bytes = usize::try_from(len).ok().filter(|&len| len > 0).ok_or(Error::InvalidValue("len"))?;
    if at.is_null() {
        return Err(Error::InvalidValue(parameter));
    }
    let n = text.len().min(len_bytes - 1);
    // SAFETY: the caller's promise makes `len` bytes at `at` writable, and `n + 1` fit.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), at.cast::<u8>(), n);
        at.add(n).write(0);
    }
    Ok(())
}

pub fn cuDeviceGetUuid(uuid: Out<'_, CUuuid>, dev: CUdevice) -> Result {
    uuid.write(CUuuid { bytes: Device::get(dev)?.uuid.map(|byte| byte as c_char) });
    Ok(())
}

/// As `cuDeviceGetUuid`: there are no MIG devices whose UUID would differ.
pub fn cuDeviceGetUuid_v2(uuid: Out<'_, CUuuid>, dev: CUdevice) -> Result {
    cuDeviceGetUuid(uuid, dev)
}

pub fn cuDeviceTotalMem_v2(bytes: Out<'_, usize>, dev: CUdevice) -> Result {
    bytes.write(Device::get(dev)?.total_memory);
    Ok(())
}

/// Before CUDA 3.2: 32-bit sizes.
pub fn cuDeviceTotalMem(bytes: Out<'_, c_uint>, dev: CUdevice) -> Result {
    bytes.write(c_uint::try_from(Device::get(dev)?.total_memory).unwrap_or(c_uint::MAX));
    Ok(())
}

pub fn cuDeviceComputeCapability(major: Out<'_, c_int>, minor: Out<'_, c_int>, dev: CUdevice) -> Result {
    let (x, y) = Device::get(dev)?.compute_capability;
    major.write(x as c_int);
    minor.write(y as c_int);
    Ok(())
}

pub fn cuDeviceGetAttribute(pi: Out<'_, c_int>, attrib: CUdevice_attribute, dev: CUdevice) -> Result {
    let device = Device::get(dev)?;
    pi.write(attribute(device, attrib).ok_or(Error::InvalidValue("attrib"))?);
    Ok(())
}

/// Where an attribute's value comes from.
enum Answer {
    /// The provider's attribute; what counts when the provider has none.
    Hip(hip::hipDeviceAttribute_t, c_int),
    Is(c_int),
}

/// The value of a device attribute; `None` for a number CUDA does not have.
pub(crate) fn attribute(device: &Device, attrib: CUdevice_attribute) -> Option<c_int> {
    use Answer::{Hip, Is};
    let yes = |answer: bool| Is(c_int::from(answer));
    let saturated = |value: u32| Is(c_int::try_from(value).unwrap_or(c_int::MAX));
    let provider = device.hip();
    let answer = match attrib {
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => {
            saturated(device.bounds.threads_per_block)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X => saturated(device.bounds.block[0]),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => saturated(device.bounds.block[1]),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => saturated(device.bounds.block[2]),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => saturated(device.bounds.grid[0]),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y => saturated(device.bounds.grid[1]),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => saturated(device.bounds.grid[2]),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => {
            saturated(device.bounds.shared_per_block)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => {
            saturated(device.bounds.shared_per_block_optin)
        }
        // PTX's constant bank is 64 KiB whatever the machine could address.
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => Is(65536),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE => Is(WARP_SIZE),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH => Hip(hip::hipDeviceAttributeMaxPitch, c_int::MAX),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK => {
            Hip(hip::hipDeviceAttributeMaxRegistersPerBlock, 65536)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE => Hip(hip::hipDeviceAttributeClockRate, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT => {
            Hip(hip::hipDeviceAttributeTextureAlignment, 512)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP => {
            yes(device.hip_attribute(hip::hipDeviceAttributeAsyncEngineCount).unwrap_or(0) > 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT => {
            Hip(hip::hipDeviceAttributeMultiprocessorCount, 1)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT => {
            Hip(hip::hipDeviceAttributeKernelExecTimeout, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED => Hip(hip::hipDeviceAttributeIntegrated, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY => {
            Hip(hip::hipDeviceAttributeCanMapHostMemory, 1)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE => Hip(hip::hipDeviceAttributeComputeMode, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxTexture1DWidth, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxTexture2DWidth, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT => {
            Hip(hip::hipDeviceAttributeMaxTexture2DHeight, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxTexture3DWidth, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT => {
            Hip(hip::hipDeviceAttributeMaxTexture3DHeight, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH => {
            Hip(hip::hipDeviceAttributeMaxTexture3DDepth, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT => {
            Hip(hip::hipDeviceAttributeSurfaceAlignment, 512)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS => {
            Hip(hip::hipDeviceAttributeConcurrentKernels, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED => Hip(hip::hipDeviceAttributeEccEnabled, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => Hip(hip::hipDeviceAttributePciBusId, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID => Hip(hip::hipDeviceAttributePciDeviceId, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => Hip(hip::hipDeviceAttributePciDomainID, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => {
            Hip(hip::hipDeviceAttributeMemoryClockRate, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => {
            Hip(hip::hipDeviceAttributeMemoryBusWidth, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => Hip(hip::hipDeviceAttributeL2CacheSize, 0),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => {
            Hip(hip::hipDeviceAttributeMaxThreadsPerMultiProcessor, 1024)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT => {
            Hip(hip::hipDeviceAttributeAsyncEngineCount, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING => Is(1),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxTexture1DLinear, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxTexture1DMipmap, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT => {
            Hip(hip::hipDeviceAttributeTexturePitchAlignment, 32)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxTextureCubemap, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH => {
            Hip(hip::hipDeviceAttributeMaxSurface1D, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => {
            saturated(device.compute_capability.0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => {
            saturated(device.compute_capability.1)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED => {
            Hip(hip::hipDeviceAttributeStreamPrioritiesSupported, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED => {
            Hip(hip::hipDeviceAttributeGlobalL1CacheSupported, 1)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED => {
            Hip(hip::hipDeviceAttributeLocalL1CacheSupported, 1)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => Hip(
            hip::hipDeviceAttributeSharedMemPerMultiprocessor,
            c_int::try_from(device.bounds.shared_per_block).unwrap_or(c_int::MAX),
        ),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => {
            Hip(hip::hipDeviceAttributeMaxRegistersPerMultiprocessor, 65536)
        }
        // With 0 here NVIDIA's runtime does not look managed variables up at all (measured).
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => yes(provider.has("hipMallocManaged")),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD => {
            Hip(hip::hipDeviceAttributeIsMultiGpuBoard, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID => {
            Hip(hip::hipDeviceAttributeMultiGpuBoardGroupID, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED => {
            Hip(hip::hipDeviceAttributeHostNativeAtomicSupported, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => {
            Hip(hip::hipDeviceAttributeSingleToDoublePrecisionPerfRatio, 2)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS => {
            Hip(hip::hipDeviceAttributePageableMemoryAccess, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS => {
            Hip(hip::hipDeviceAttributeConcurrentManagedAccess, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED => {
            Hip(hip::hipDeviceAttributeComputePreemptionSupported, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM => {
            Hip(hip::hipDeviceAttributeCanUseHostPointerForRegisteredMem, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1 => {
            Hip(hip::hipDeviceAttributeCanUseStreamWaitValue, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH => Hip(
            hip::hipDeviceAttributeCooperativeLaunch,
            c_int::from(provider.has("hipModuleLaunchCooperativeKernel")),
        ),
        _ if let Some(limit) = image_limit(device, attrib) => Is(limit),
        // Both came with compute capability 9.0.
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED => yes(has_clusters(device)),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED => {
            yes(provider.has("hipHostRegister"))
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES => {
            Hip(hip::hipDeviceAttributePageableMemoryAccessUsesHostPageTables, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST => {
            Hip(hip::hipDeviceAttributeDirectManagedMemAccessFromHost, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => {
            Hip(hip::hipDeviceAttributeMaxBlocksPerMultiProcessor, 32)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => {
            Hip(hip::hipDeviceAttributeReservedSharedMemPerBlock, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => {
            Hip(hip::hipDeviceAttributeVirtualMemoryManagementSupported, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED => {
            yes(provider.has("hipMemExportToShareableHandle"))
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES => {
            Hip(hip::hipDeviceAttributeMemoryPoolSupportedHandleTypes, 0)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED => {
            yes(provider.has("hipIpcGetEventHandle"))
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => Is(1),
        // On the CPU the host's memory is the device's.
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => {
            yes(device.target == Target::Cpu)
        }
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID => Is(-1),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_NUMA_ID => Is(-1),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT
        | CUdevice_attribute::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT => Is(1),
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE => Is(c_int::MAX),
        // Everything else is something NVIDIA hardware or another operating system has: 0 says "not here".
        CUdevice_attribute(1..=161) => Is(0),
        _ => return None,
    };
    Some(match answer {
        Is(value) => value,
        Hip(attribute, otherwise) => device.hip_attribute(attribute).unwrap_or(otherwise),
    })
}

/// The sizes of textures and surfaces for which HIP has no attribute, only a property.
fn image_limit(device: &Device, attrib: CUdevice_attribute) -> Option<c_int> {
    type A = CUdevice_attribute;
    let pick: fn(&hip::hipDeviceProp_tR0600) -> c_int = match attrib {
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH => |p| p.maxTexture2DLayered[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT => |p| p.maxTexture2DLayered[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS => |p| p.maxTexture2DLayered[2],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH => |p| p.maxTexture1DLayered[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS => |p| p.maxTexture1DLayered[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH => |p| p.maxTexture2DGather[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT => |p| p.maxTexture2DGather[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE => |p| p.maxTexture3DAlt[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE => |p| p.maxTexture3DAlt[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE => |p| p.maxTexture3DAlt[2],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH => |p| p.maxTextureCubemapLayered[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS => |p| p.maxTextureCubemapLayered[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH => |p| p.maxTexture2DLinear[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT => |p| p.maxTexture2DLinear[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH => |p| p.maxTexture2DLinear[2],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH => |p| p.maxTexture2DMipmap[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT => |p| p.maxTexture2DMipmap[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH => |p| p.maxSurface2D[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT => |p| p.maxSurface2D[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH => |p| p.maxSurface3D[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT => |p| p.maxSurface3D[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH => |p| p.maxSurface3D[2],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH => |p| p.maxSurface1DLayered[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS => |p| p.maxSurface1DLayered[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH => |p| p.maxSurface2DLayered[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT => |p| p.maxSurface2DLayered[1],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS => |p| p.maxSurface2DLayered[2],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH => |p| p.maxSurfaceCubemap,
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH => |p| p.maxSurfaceCubemapLayered[0],
        A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS => |p| p.maxSurfaceCubemapLayered[1],
        _ => return None,
    };
    // HIP differs: before ROCm 6 the properties have another layout; 0 says nothing is promised.
    Some(hip::Layout::properties(device.hip(), device.hip_ordinal).as_ref().map_or(0, pick))
}

/// CUDA: clusters exist from compute capability 9.0 on.
///
/// HIP differs: providers before HIP 7.1 have no call that takes them, and AMD's devices say in their properties whether
/// they do; the CPU device always does.
pub(crate) fn has_clusters(device: &Device) -> bool {
    device.target == Target::Cpu
        && device.hip().has("hipDrvLaunchKernelEx")
        && config::get().compute_capability >= (9, 0)
}

/// Deprecated since CUDA 5.
pub fn cuDeviceGetProperties(prop: Out<'_, CUdevprop>, dev: CUdevice) -> Result {
    let device = Device::get(dev)?;
    let value = |attrib| attribute(device, attrib).unwrap_or(0);
    prop.write(CUdevprop {
        maxThreadsPerBlock: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        maxThreadsDim: [
            value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
            value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
            value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
        ],
        maxGridSize: [
            value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
            value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
        ],
        sharedMemPerBlock: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        totalConstantMemory: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        SIMDWidth: WARP_SIZE,
        memPitch: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        regsPerBlock: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        clockRate: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        textureAlign: value(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    });
    Ok(())
}

/// # Safety
/// `pciBusId` is NULL, or has `len` bytes that may be written.
pub unsafe fn cuDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, dev: CUdevice) -> Result {
    let device = Device::get(dev)?;
    // SAFETY: the caller's promise.
    unsafe { write_text(&device.pci_bus_id(), pciBusId, len, "pciBusId") }
}

/// # Safety
/// `pciBusId` is NULL or a C string.
pub unsafe fn cuDeviceGetByPCIBusId(dev: Out<'_, CUdevice>, pciBusId: *const c_char) -> Result {
    let devices = &driver()?.devices;
    if pciBusId.is_null() {
        return Err(Error::InvalidValue("pciBusId"));
    }
    // SAFETY: the caller's promise: a C string.
    let wanted = unsafe { CStr::from_ptr(pciBusId) }.to_string_lossy();
    let wanted = parse_bus_id(&wanted).ok_or(Error::InvalidValue("pciBusId"))?;
    let found = devices.iter().find(|device| parse_bus_id(&device.pci_bus_id()) == Some(wanted));
    dev.write(found.ok_or(Error::InvalidDevice)?.ordinal);
    Ok(())
}

/// `[domain]:[bus]:[device].[function]`, `[domain]:[bus]:[device]` or `[bus]:[device].[function]`, all hexadecimal.
fn parse_bus_id(text: &str) -> Option<(u32, u32, u32)> {
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let (head, function) =
        text.split_once('.').map_or((text, None), |(head, function)| (head, Some(function)));
    if function.is_some_and(|function| number(function) != Some(0)) {
        return None;
    }
    let parts: Vec<&str> = head.split(':').collect();
    match parts.as_slice() {
        [domain, bus, device] => Some((number(domain)?, number(bus)?, number(device)?)),
        [bus, device] if function.is_some() => Some((0, number(bus)?, number(device)?)),
        _ => None,
    }
}

/// Linux has no LUIDs.
pub fn cuDeviceGetLuid(_luid: *mut c_char, _deviceNodeMask: OptOut<'_, c_uint>, dev: CUdevice) -> Result {
    Device::get(dev)?;
    Err(Error::NotSupported("cuDeviceGetLuid: Windows only"))
}

pub fn cuDeviceCanAccessPeer(canAccessPeer: Out<'_, c_int>, dev: CUdevice, peerDev: CUdevice) -> Result {
    let (device, peer) = (Device::get(dev)?, Device::get(peerDev)?);
    let mut answer = 0;
    // CUDA: a device is no peer of itself. Devices of two providers share no addresses.
    if dev != peerDev && core::ptr::eq(device.provider, peer.provider) {
        // SAFETY: `answer` is a writable int.
        unsafe { device.hip().hipDeviceCanAccessPeer(&mut answer, device.hip_ordinal, peer.hip_ordinal) }?;
    }
    canAccessPeer.write(answer);
    Ok(())
}

pub fn cuDeviceGetP2PAttribute(
    value: Out<'_, c_int>,
    attrib: CUdevice_P2PAttribute,
    srcDevice: CUdevice,
    dstDevice: CUdevice,
) -> Result {
    let (source, target) = (Device::get(srcDevice)?, Device::get(dstDevice)?);
    // CUDA: both devices must differ.
    if srcDevice == dstDevice {
        return Err(Error::InvalidDevice);
    }
    // CUDA counts from 1 (performance rank), HIP from 0 in the same order.
    let attribute = match attrib.0 {
        number @ 1..=4 => number as c_int - 1,
        _ => return Err(Error::InvalidValue("attrib")),
    };
    let mut answer = 0;
    if core::ptr::eq(source.provider, target.provider) {
        // SAFETY: `answer` is a writable int.
        unsafe {
            source.hip().hipDeviceGetP2PAttribute(
                &mut answer,
                attribute,
                source.hip_ordinal,
                target.hip_ordinal,
            )
        }?;
    }
    value.write(answer);
    Ok(())
}

/// No execution affinity: kernels use the whole device.
pub fn cuDeviceGetExecAffinitySupport(
    pi: Out<'_, c_int>,
    _type: cuda_abi::CUexecAffinityType,
    dev: CUdevice,
) -> Result {
    Device::get(dev)?;
    pi.write(0);
    Ok(())
}

pub fn cuDevicePrimaryCtxRetain(pctx: Out<'_, CUcontext>, dev: CUdevice) -> Result {
    pctx.write(Context::retain_primary(Device::get(dev)?)?.handle());
    Ok(())
}

pub fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice) -> Result {
    Context::release_primary(Device::get(dev)?)
}

pub fn cuDevicePrimaryCtxRelease(dev: CUdevice) -> Result {
    cuDevicePrimaryCtxRelease_v2(dev)
}

pub fn cuDevicePrimaryCtxReset_v2(dev: CUdevice) -> Result {
    Context::reset_primary(Device::get(dev)?)
}

pub fn cuDevicePrimaryCtxReset(dev: CUdevice) -> Result {
    cuDevicePrimaryCtxReset_v2(dev)
}

pub fn cuDevicePrimaryCtxGetState(dev: CUdevice, flags: Out<'_, c_uint>, active: Out<'_, c_int>) -> Result {
    let primary = &Device::get(dev)?.primary;
    flags.write(primary.flags());
    active.write(c_int::from(primary.is_active()));
    Ok(())
}

pub fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: c_uint) -> Result {
    let device = Device::get(dev)?;
    crate::object::context::check_flags(flags)?;
    device.primary.set_flags(flags);
    Ok(())
}

/// Before CUDA 11: refused while the context is active.
pub fn cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: c_uint) -> Result {
    if Device::get(dev)?.primary.is_active() {
        return Err(Error::PrimaryContextActive);
    }
    cuDevicePrimaryCtxSetFlags_v2(dev, flags)
}

/// Bits of `CUatomicOperationCapability` that hold for an operation on memory which the host's own instructions reach.
fn native_atomics(operation: CUatomicOperation) -> Result<c_uint> {
    type C = CUatomicOperationCapability;
    type O = CUatomicOperation;
    let words = C::CU_ATOMIC_CAPABILITY_SCALAR_32.0 | C::CU_ATOMIC_CAPABILITY_SCALAR_64.0;
    let both = C::CU_ATOMIC_CAPABILITY_SIGNED.0 | C::CU_ATOMIC_CAPABILITY_UNSIGNED.0;
    let reduction = C::CU_ATOMIC_CAPABILITY_REDUCTION.0;
    Ok(match operation {
        O::CU_ATOMIC_OPERATION_INTEGER_ADD
        | O::CU_ATOMIC_OPERATION_INTEGER_MIN
        | O::CU_ATOMIC_OPERATION_INTEGER_MAX => both | reduction | words,
        // PTX has these for 32 bits without a sign.
        O::CU_ATOMIC_OPERATION_INTEGER_INCREMENT | O::CU_ATOMIC_OPERATION_INTEGER_DECREMENT => {
            C::CU_ATOMIC_CAPABILITY_UNSIGNED.0 | reduction | C::CU_ATOMIC_CAPABILITY_SCALAR_32.0
        }
        O::CU_ATOMIC_OPERATION_AND | O::CU_ATOMIC_OPERATION_OR | O::CU_ATOMIC_OPERATION_XOR => {
            both | reduction | words
        }
        O::CU_ATOMIC_OPERATION_EXCHANGE | O::CU_ATOMIC_OPERATION_CAS => both | words,
        O::CU_ATOMIC_OPERATION_FLOAT_ADD => C::CU_ATOMIC_CAPABILITY_SIGNED.0 | reduction | words,
        O::CU_ATOMIC_OPERATION_FLOAT_MIN | O::CU_ATOMIC_OPERATION_FLOAT_MAX => 0,
        _ => return Err(Error::InvalidValue("operations")),
    })
}

/// Answers for each operation; all are checked before anything is written.
///
/// # Safety
/// `operations` is NULL, or has `count` elements; `capabilities` is NULL, or has room for as many.
unsafe fn atomics(
    capabilities: *mut c_uint,
    operations: *const CUatomicOperation,
    count: c_uint,
    are_native: bool,
) -> Result {
    if capabilities.is_null() || operations.is_null() || count == 0 {
        return Err(Error::InvalidValue("capabilities, operations or count"));
    }
    // SAFETY: the caller's promise: `count` operations.
    let operations = unsafe { core::slice::from_raw_parts(operations, count as usize) };
    let native = operations.iter().map(|operation| native_atomics(*operation)).collect::<Result<Vec<_>>>()?;
    for (index, bits) in native.into_iter().enumerate() {
        // SAFETY: the caller's promise: room for `count` answers.
        unsafe { capabilities.add(index).write(if are_native { bits } else { 0 }) };
    }
    Ok(())
}

/// A CPU device and the host are one, so what is atomic for the one is for the other.
///
/// # Safety
/// `operations` is NULL, or has `count` elements; `capabilities` is NULL, or has room for as many.
pub unsafe fn cuDeviceGetHostAtomicCapabilities(
    capabilities: *mut c_uint,
    operations: *const CUatomicOperation,
    count: c_uint,
    dev: CUdevice,
) -> Result {
    let device = Device::get(dev)?;
    // SAFETY: the caller's promise.
    unsafe { atomics(capabilities, operations, count, device.target == Target::Cpu) }
}

/// Two CPU devices of one provider are the same memory; what a link between others can do HIP does not say.
///
/// # Safety
/// `operations` is NULL, or has `count` elements; `capabilities` is NULL, or has room for as many.
pub unsafe fn cuDeviceGetP2PAtomicCapabilities(
    capabilities: *mut c_uint,
    operations: *const CUatomicOperation,
    count: c_uint,
    srcDevice: CUdevice,
    dstDevice: CUdevice,
) -> Result {
    let (source, target) = (Device::get(srcDevice)?, Device::get(dstDevice)?);
    if core::ptr::eq(source, target) {
        return Err(Error::InvalidDevice);
    }
    let are_one = source.target == Target::Cpu && core::ptr::eq(source.provider, target.provider);
    // SAFETY: the caller's promise.
    unsafe { atomics(capabilities, operations, count, are_one) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_id_may_be_written_in_three_ways() {
        assert_eq!(parse_bus_id("0001:0a:1f.0"), Some((1, 10, 31)));
        assert_eq!(parse_bus_id("0001:0A:1F"), Some((1, 10, 31)));
        assert_eq!(parse_bus_id("0a:1f.0"), Some((0, 10, 31)));
        assert_eq!(parse_bus_id("0a"), None);
        assert_eq!(parse_bus_id("0a:1f.1"), None);
    }
}
