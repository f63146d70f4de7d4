//! The one device: this machine's CPU, described from what the system says, and its sticky error.

use std::cell::Cell;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hip_sys::*;
use parking_lot::Mutex;

use crate::error::Result;
use crate::exec::{Fault, pool};
use crate::memory::room;

/// What is told about the device. Everything is read once; identity is the same in every run on one machine.
pub struct Device {
    pub name: String,
    pub uuid: [u8; 16],
    pub n_cores: usize,
    pub memory_bytes: usize,
    pub clock_khz: i32,
    pub cache_bytes: i32,
}

pub const MAX_THREADS: u32 = 1024;
pub const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
pub const SHARED_PER_BLOCK: u32 = 48 << 10;
/// What a kernel may use when it asks (`hipFuncAttributeMaxDynamicSharedMemorySize`).
pub const SHARED_OPTIN: u32 = 227 << 10;
pub const SHARED_PER_CORE: u32 = 228 << 10;
pub const SHARED_RESERVED: u32 = 1 << 10;
pub const THREADS_PER_CORE: u32 = 2048;
pub const BLOCKS_PER_CORE: u32 = 32;
/// An H200's, the largest of its kind: programs that clear as many bytes before each of their measurements, as autotuners do, would wait for
/// the hundreds of MiB of a server's cache.
const MOST_L2: i32 = 60 << 20;
// CPU differs: registers are no limit; the numbers let occupancy calculations of programs come out.
pub const REGISTERS: i32 = 65536;
pub const CONSTANT_BYTES: usize = 64 << 10;
pub const PITCH_ALIGN: usize = 512;
pub const ARCH: &str = "cpu";
pub const HIP_VERSION: i32 = 60_443_484;
/// CPU differs: the first function of the host bridge stands for the CPU.
pub const PCI: (i32, i32, i32) = (0, 0, 0);

pub fn get() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(Device::read)
}

/// Only ordinal 0 exists.
pub fn check(ordinal: i32) -> Result {
    if ordinal == 0 { Ok(()) } else { Err(hipErrorInvalidDevice) }
}

impl Device {
    fn read() -> Device {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line =
                cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let khz = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .or_else(|| Some((field("cpu MHz")?.parse::<f64>().ok()? * 1000.0) as i32));
        Device {
            name: format!("CUDAway CPU ({model})"),
            uuid: uuid(&model),
            n_cores: pool::workers(),
            memory_bytes: memory_bytes(),
            clock_khz: khz.unwrap_or(0),
            cache_bytes: last_level_cache(),
        }
    }

    pub fn properties(&self) -> hipDeviceProp_tR0600 {
        let (major, minor) = config::get().compute_capability;
        // SAFETY: integers, arrays of them and raw pointers: all zero is a value.
        let mut p: hipDeviceProp_tR0600 = unsafe { std::mem::zeroed() };
        copy_text(&mut p.name, &self.name);
        p.uuid.bytes = self.uuid;
        p.totalGlobalMem = self.memory_bytes;
        p.sharedMemPerBlock = SHARED_PER_BLOCK as usize;
        p.regsPerBlock = REGISTERS;
        p.warpSize = 32;
        p.memPitch = i32::MAX as usize;
        p.maxThreadsPerBlock = MAX_THREADS as i32;
        p.maxThreadsDim = MAX_BLOCK.map(|n| n as i32);
        p.maxGridSize = MAX_GRID.map(|n| n as i32);
        p.clockRate = self.clock_khz;
        p.totalConstMem = CONSTANT_BYTES;
        p.major = major as i32;
        p.minor = minor as i32;
        p.textureAlignment = 512;
        p.texturePitchAlignment = 32;
        p.surfaceAlignment = 512;
        limit_images(&mut p);
        p.deviceOverlap = 1;
        p.multiProcessorCount = self.n_cores as i32;
        p.integrated = 1;
        p.canMapHostMemory = 1;
        p.concurrentKernels = 1;
        (p.pciDomainID, p.pciBusID, p.pciDeviceID) = PCI;
        p.asyncEngineCount = 2;
        p.unifiedAddressing = 1;
        p.l2CacheSize = self.cache_bytes.min(MOST_L2);
        p.maxThreadsPerMultiProcessor = THREADS_PER_CORE as i32;
        p.streamPrioritiesSupported = 0;
        p.globalL1CacheSupported = 1;
        p.localL1CacheSupported = 1;
        p.sharedMemPerMultiprocessor = SHARED_PER_CORE as usize;
        p.regsPerMultiprocessor = REGISTERS;
        p.managedMemory = 1;
        p.hostNativeAtomicSupported = 1;
        p.singleToDoublePrecisionPerfRatio = 2;
        // The sanitizer knows allocations only.
        p.pageableMemoryAccess = i32::from(!config::get().sanitize);
        p.concurrentManagedAccess = 1;
        p.canUseHostPointerForRegisteredMem = 1;
        p.sharedMemPerBlockOptin = SHARED_OPTIN as usize;
        p.pageableMemoryAccessUsesHostPageTables = p.pageableMemoryAccess;
        p.directManagedMemAccessFromHost = 1;
        p.maxBlocksPerMultiProcessor = BLOCKS_PER_CORE as i32;
        p.reservedSharedMemPerBlock = SHARED_RESERVED as usize;
        p.hostRegisterSupported = 1;
        p.memoryPoolsSupported = 1;
        p.unifiedFunctionPointers = 0;
        p.cooperativeLaunch = 1;
        p.clusterLaunch = 1;
        copy_text(&mut p.gcnArchName, ARCH);
        p.maxSharedMemoryPerMultiProcessor = SHARED_PER_CORE as usize;
        p.clockInstructionRate = self.clock_khz;
        p.isLargeBar = 1;
        p
    }

    /// `hipDeviceGetAttribute`: the same facts by number.
    pub fn attribute(&self, attribute: hipDeviceAttribute_t) -> Result<i32> {
        let p = self.properties();
        let saturate = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        Ok(match attribute {
            hipDeviceAttributeEccEnabled => p.ECCEnabled,
            hipDeviceAttributeAccessPolicyMaxWindowSize => p.accessPolicyMaxWindowSize,
            hipDeviceAttributeAsyncEngineCount => p.asyncEngineCount,
            hipDeviceAttributeCanMapHostMemory => p.canMapHostMemory,
            hipDeviceAttributeCanUseHostPointerForRegisteredMem => p.canUseHostPointerForRegisteredMem,
            hipDeviceAttributeClockRate => p.clockRate,
            hipDeviceAttributeComputeMode => p.computeMode,
            hipDeviceAttributeComputePreemptionSupported => p.computePreemptionSupported,
            hipDeviceAttributeConcurrentKernels => p.concurrentKernels,
            hipDeviceAttributeConcurrentManagedAccess => p.concurrentManagedAccess,
            hipDeviceAttributeCooperativeLaunch => p.cooperativeLaunch,
            hipDeviceAttributeCooperativeMultiDeviceLaunch => p.cooperativeMultiDeviceLaunch,
            hipDeviceAttributeDeviceOverlap => p.deviceOverlap,
            hipDeviceAttributeDirectManagedMemAccessFromHost => p.directManagedMemAccessFromHost,
            hipDeviceAttributeGlobalL1CacheSupported => p.globalL1CacheSupported,
            hipDeviceAttributeHostNativeAtomicSupported => p.hostNativeAtomicSupported,
            hipDeviceAttributeIntegrated => p.integrated,
            hipDeviceAttributeIsMultiGpuBoard => p.isMultiGpuBoard,
            hipDeviceAttributeKernelExecTimeout => p.kernelExecTimeoutEnabled,
            hipDeviceAttributeL2CacheSize => p.l2CacheSize,
            hipDeviceAttributeLocalL1CacheSupported => p.localL1CacheSupported,
            hipDeviceAttributeLuidDeviceNodeMask => p.luidDeviceNodeMask.cast_signed(),
            hipDeviceAttributeComputeCapabilityMajor => p.major,
            hipDeviceAttributeManagedMemory => p.managedMemory,
            hipDeviceAttributeMaxBlocksPerMultiProcessor => p.maxBlocksPerMultiProcessor,
            hipDeviceAttributeMaxBlockDimX | hipDeviceAttributeMaxThreadsDim => p.maxThreadsDim[0],
            hipDeviceAttributeMaxBlockDimY => p.maxThreadsDim[1],
            hipDeviceAttributeMaxBlockDimZ => p.maxThreadsDim[2],
            hipDeviceAttributeMaxGridDimX => p.maxGridSize[0],
            hipDeviceAttributeMaxGridDimY => p.maxGridSize[1],
            hipDeviceAttributeMaxGridDimZ => p.maxGridSize[2],
            hipDeviceAttributeMaxSurface1D => p.maxSurface1D,
            hipDeviceAttributeMaxSurface1DLayered => p.maxSurface1DLayered[0],
            hipDeviceAttributeMaxSurface2D => p.maxSurface2D[0],
            hipDeviceAttributeMaxSurface2DLayered => p.maxSurface2DLayered[0],
            hipDeviceAttributeMaxSurface3D => p.maxSurface3D[0],
            hipDeviceAttributeMaxSurfaceCubemap => p.maxSurfaceCubemap,
            hipDeviceAttributeMaxSurfaceCubemapLayered => p.maxSurfaceCubemapLayered[0],
            hipDeviceAttributeMaxTexture1DWidth => p.maxTexture1D,
            hipDeviceAttributeMaxTexture1DLayered => p.maxTexture1DLayered[0],
            hipDeviceAttributeMaxTexture1DLinear => p.maxTexture1DLinear,
            hipDeviceAttributeMaxTexture1DMipmap => p.maxTexture1DMipmap,
            hipDeviceAttributeMaxTexture2DWidth => p.maxTexture2D[0],
            hipDeviceAttributeMaxTexture2DHeight => p.maxTexture2D[1],
            hipDeviceAttributeMaxTexture2DGather => p.maxTexture2DGather[0],
            hipDeviceAttributeMaxTexture2DLayered => p.maxTexture2DLayered[0],
            hipDeviceAttributeMaxTexture2DLinear => p.maxTexture2DLinear[0],
            hipDeviceAttributeMaxTexture2DMipmap => p.maxTexture2DMipmap[0],
            hipDeviceAttributeMaxTexture3DWidth => p.maxTexture3D[0],
            hipDeviceAttributeMaxTexture3DHeight => p.maxTexture3D[1],
            hipDeviceAttributeMaxTexture3DDepth => p.maxTexture3D[2],
            hipDeviceAttributeMaxTexture3DAlt => p.maxTexture3DAlt[0],
            hipDeviceAttributeMaxTextureCubemap => p.maxTextureCubemap,
            hipDeviceAttributeMaxTextureCubemapLayered => p.maxTextureCubemapLayered[0],
            hipDeviceAttributeMaxThreadsPerBlock => p.maxThreadsPerBlock,
            hipDeviceAttributeMaxThreadsPerMultiProcessor => p.maxThreadsPerMultiProcessor,
            hipDeviceAttributeMaxPitch => saturate(p.memPitch),
            hipDeviceAttributeMemoryBusWidth => p.memoryBusWidth,
            hipDeviceAttributeMemoryClockRate => p.memoryClockRate,
            hipDeviceAttributeComputeCapabilityMinor => p.minor,
            hipDeviceAttributeMultiGpuBoardGroupID => p.multiGpuBoardGroupID,
            hipDeviceAttributeMultiprocessorCount => p.multiProcessorCount,
            hipDeviceAttributePageableMemoryAccess => p.pageableMemoryAccess,
            hipDeviceAttributePageableMemoryAccessUsesHostPageTables => {
                p.pageableMemoryAccessUsesHostPageTables
            }
            hipDeviceAttributePciBusId => p.pciBusID,
            hipDeviceAttributePciDeviceId => p.pciDeviceID,
            hipDeviceAttributePciDomainID => p.pciDomainID,
            hipDeviceAttributePersistingL2CacheMaxSize => p.persistingL2CacheMaxSize,
            hipDeviceAttributeMaxRegistersPerBlock => p.regsPerBlock,
            hipDeviceAttributeMaxRegistersPerMultiprocessor => p.regsPerMultiprocessor,
            hipDeviceAttributeReservedSharedMemPerBlock => saturate(p.reservedSharedMemPerBlock),
            hipDeviceAttributeMaxSharedMemoryPerBlock => saturate(p.sharedMemPerBlock),
            hipDeviceAttributeSharedMemPerBlockOptin => saturate(p.sharedMemPerBlockOptin),
            hipDeviceAttributeSharedMemPerMultiprocessor => saturate(p.sharedMemPerMultiprocessor),
            hipDeviceAttributeSingleToDoublePrecisionPerfRatio => p.singleToDoublePrecisionPerfRatio,
            hipDeviceAttributeStreamPrioritiesSupported => p.streamPrioritiesSupported,
            hipDeviceAttributeSurfaceAlignment => saturate(p.surfaceAlignment),
            hipDeviceAttributeTccDriver => p.tccDriver,
            hipDeviceAttributeTextureAlignment => saturate(p.textureAlignment),
            hipDeviceAttributeTexturePitchAlignment => saturate(p.texturePitchAlignment),
            hipDeviceAttributeTotalConstantMemory => saturate(p.totalConstMem),
            hipDeviceAttributeTotalGlobalMem => saturate(p.totalGlobalMem),
            hipDeviceAttributeUnifiedAddressing => p.unifiedAddressing,
            hipDeviceAttributeWarpSize => p.warpSize,
            hipDeviceAttributeMemoryPoolsSupported => p.memoryPoolsSupported,
            hipDeviceAttributeVirtualMemoryManagementSupported => 1,
            hipDeviceAttributeHostRegisterSupported => p.hostRegisterSupported,
            // POSIX file descriptors.
            hipDeviceAttributeMemoryPoolSupportedHandleTypes => 1,
            hipDeviceAttributeClockInstructionRate => p.clockInstructionRate,
            hipDeviceAttributeMaxSharedMemoryPerMultiprocessor => {
                saturate(p.maxSharedMemoryPerMultiProcessor)
            }
            hipDeviceAttributeIsLargeBar => p.isLargeBar,
            hipDeviceAttributeAsicRevision => p.asicRevision,
            hipDeviceAttributeCanUseStreamWaitValue => 1,
            hipDeviceAttributeImageSupport => 0,
            hipDeviceAttributePhysicalMultiProcessorCount => p.multiProcessorCount,
            hipDeviceAttributeFineGrainSupport => 1,
            // `%globaltimer` counts nanoseconds.
            hipDeviceAttributeWallClockRate => 1_000_000,
            _ => return Err(hipErrorInvalidValue),
        })
    }
}

fn copy_text(to: &mut [std::ffi::c_char; 256], text: &str) {
    for (to, from) in to[..255].iter_mut().zip(text.bytes()) {
        *to = from.cast_signed();
    }
}

/// The machine's id and the CPU's name, hashed.
fn uuid(model: &str) -> [u8; 16] {
    let machine = ["/etc/machine-id", "/var/lib/dbus/machine-id", "/etc/hostname"]
        .iter()
        .find_map(|path| fs::read(path).ok().filter(|id| !id.is_empty()))
        .unwrap_or_default();
    let hash = cache::digest(&[b"cudaway cpu device", model.as_bytes(), &machine].concat());
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash[..16]);
    // A random UUID's version and variant bits (RFC 9562).
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// What the configuration says, else the machine's memory or the control group's limit, whichever is smaller.
fn memory_bytes() -> usize {
    let configured = config::get().cpu_memory_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    configured.unwrap_or_else(room::total)
}

fn last_level_cache() -> i32 {
    let size = |index: usize| -> Option<i32> {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let kind = fs::read_to_string(format!("{folder}/type")).ok()?;
        let size = fs::read_to_string(format!("{folder}/size")).ok()?;
        let kib = size.trim().strip_suffix('K')?.parse::<i32>().ok()?;
        (kind.trim() != "Instruction").then_some(kib << 10)
    };
    (0..8).filter_map(size).max().unwrap_or(0)
}

/// What CUDA's devices of compute capability 7.x and 8.x allow.
fn limit_images(p: &mut hipDeviceProp_tR0600) {
    p.maxTexture1D = 131_072;
    p.maxTexture1DMipmap = 32_768;
    p.maxTexture1DLinear = 1 << 28;
    p.maxTexture2D = [131_072, 65_536];
    p.maxTexture2DMipmap = [32_768, 32_768];
    p.maxTexture2DLinear = [131_072, 65_000, 2_097_120];
    p.maxTexture2DGather = [32_768, 32_768];
    p.maxTexture3D = [16_384, 16_384, 16_384];
    p.maxTexture3DAlt = [8_192, 8_192, 32_768];
    p.maxTextureCubemap = 32_768;
    p.maxTexture1DLayered = [32_768, 2_048];
    p.maxTexture2DLayered = [32_768, 32_768, 2_048];
    p.maxTextureCubemapLayered = [32_768, 2_046];
    p.maxSurface1D = 32_768;
    p.maxSurface2D = [131_072, 65_536];
    p.maxSurface3D = [16_384, 16_384, 16_384];
    p.maxSurface1DLayered = [32_768, 2_048];
    p.maxSurface2DLayered = [32_768, 32_768, 2_048];
    p.maxSurfaceCubemap = 32_768;
    p.maxSurfaceCubemapLayered = [32_768, 2_046];
}

// ---- the sticky error ----

/// Numbers for which HIP has no name; they are CUDA's.
// CPU differs: a misaligned access works, where a GPU answers 716; CUDAWAY_SANITIZE=memcheck answers it.
// CPU differs: an address beside an allocation may be readable or writable, since pages protect memory here.
pub const HARDWARE_STACK_ERROR: hipError_t = hipError_t(714);
pub const INVALID_PC: hipError_t = hipError_t(718);
pub const MISALIGNED_ADDRESS: hipError_t = hipError_t(716);
pub const TENSOR_MEMORY_LEAK: hipError_t = hipError_t(721);

thread_local! {
    /// The CUDA context that this thread's calls, or the operation that it runs, belong to.
    static CONTEXT: Cell<usize> = const { Cell::new(0) };
}

/// Whether any context has a fault.
static ANY: AtomicBool = AtomicBool::new(false);
/// The first fault of each context that had one.
static FAULTS: Mutex<Vec<(usize, hipError_t)>> = Mutex::new(Vec::new());

/// The context that the calling thread works in.
pub fn context() -> usize {
    CONTEXT.try_with(Cell::get).unwrap_or(0)
}

/// From now on this thread works in that context; answers the one before.
pub fn enter(context: usize) -> usize {
    CONTEXT.try_with(|cell| cell.replace(context)).unwrap_or(0)
}

/// After a kernel's fault every call that needs the device answers with it in the kernel's context, until
/// `hipDeviceReset` there. Other contexts go on.
pub fn healthy() -> Result {
    if !ANY.load(Ordering::Acquire) {
        return Ok(());
    }
    let here = context();
    FAULTS.lock().iter().find(|(context, _)| *context == here).map_or(Ok(()), |(_, code)| Err(*code))
}

/// The first fault of the context stays.
pub fn fail(fault: Fault) {
    fail_with(match fault {
        Fault::Assert => hipErrorAssert,
        Fault::Address(_) => hipErrorIllegalAddress,
        Fault::Stack => HARDWARE_STACK_ERROR,
        Fault::InvalidPc => INVALID_PC,
        Fault::TensorMemoryLeak => TENSOR_MEMORY_LEAK,
        Fault::Memory(_) => hipErrorOutOfMemory,
        Fault::Trap | Fault::Collective | Fault::Arithmetic | Fault::Deadlock(_) | Fault::Status(_) => {
            hipErrorLaunchFailure
        }
    });
}

pub fn fail_with(code: hipError_t) {
    let here = context();
    let mut faults = FAULTS.lock();
    if !faults.iter().any(|(context, _)| *context == here) {
        faults.push((here, code));
    }
    ANY.store(true, Ordering::Release);
}

/// The context is as good as new.
pub fn forgive() {
    let here = context();
    let mut faults = FAULTS.lock();
    faults.retain(|(context, _)| *context != here);
    ANY.store(!faults.is_empty(), Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_and_attributes_say_the_same() {
        let device = get();
        let p = device.properties();
        assert_eq!(device.attribute(hipDeviceAttributeMultiprocessorCount), Ok(p.multiProcessorCount));
        assert_eq!(device.attribute(hipDeviceAttributeWarpSize), Ok(32));
        assert_eq!(device.attribute(424_242), Err(hipErrorInvalidValue));
        assert!(p.totalGlobalMem > 0 && p.multiProcessorCount > 0);
    }

    #[test]
    fn identity_is_stable() {
        assert_eq!(uuid("a"), uuid("a"));
        assert_ne!(uuid("a"), uuid("b"));
    }

    #[test]
    fn a_fault_is_its_own_contexts_and_the_first_stays() {
        let before = enter(41);
        fail(Fault::Assert);
        fail(Fault::Stack);
        assert_eq!(healthy(), Err(hipErrorAssert));
        enter(42);
        assert_eq!(healthy(), Ok(()));
        fail(Fault::Stack);
        assert_eq!(healthy(), Err(HARDWARE_STACK_ERROR));
        enter(41);
        forgive();
        assert_eq!(healthy(), Ok(()));
        enter(42);
        assert_eq!(healthy(), Err(HARDWARE_STACK_ERROR));
        forgive();
        enter(before);
    }
}
