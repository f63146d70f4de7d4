//! Execution control: launches, host functions, kernel attributes.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaFuncAttribute, cudaFuncCache, cudaFunction_t, cudaHostFn_t, cudaKernel_t, cudaSharedMemConfig,
    cudaStream_t, dim3, v11, v12, v13,
};
use cuda_abi::{
    CUfunction, CUfunction_attribute, CUkernel, CUlaunchAttribute, CUlaunchConfig, CUresult, CUstream,
};

use crate::driver::Driver;
use crate::{Error, Result, device, registry, stream};

pub fn cudaLaunchKernel(
    func: *const c_void,
    gridDim: dim3,
    blockDim: dim3,
    args: *mut *mut c_void,
    sharedMem: usize,
    stream: cudaStream_t,
) -> Result {
    device::with_context(|driver| {
        let kernel = registry::kernel(func)?;
        let shared_bytes = u32::try_from(sharedMem).map_err(|_| Error::InvalidValue("sharedMem"))?;
        launch(driver, kernel, gridDim, blockDim, shared_bytes, stream::meant(stream), args)
    })
}

/// Runs a kernel. Bad dimensions are cudaErrorInvalidConfiguration up to CUDA 12 (the driver would say invalid value); see
/// [`check_dimensions`].
#[inline]
fn launch(
    driver: &Driver,
    kernel: CUkernel,
    grid: dim3,
    block: dim3,
    shared_bytes: u32,
    stream: CUstream,
    args: *mut *mut c_void,
) -> Result {
    let answer = driver.cuLaunchKernel(
        as_function(kernel),
        grid.x,
        grid.y,
        grid.z,
        block.x,
        block.y,
        block.z,
        shared_bytes,
        stream,
        args,
        ptr::null_mut(),
    );
    if answer == Err(Error::Driver(CUresult::CUDA_ERROR_INVALID_VALUE)) {
        check_dimensions(grid, block)?;
    }
    answer
}

pub fn cudaLaunchCooperativeKernel(
    func: *const c_void,
    gridDim: dim3,
    blockDim: dim3,
    args: *mut *mut c_void,
    sharedMem: usize,
    stream: cudaStream_t,
) -> Result {
    let driver = device::attach()?;
    let kernel = registry::kernel(func)?;
    check_dimensions(gridDim, blockDim)?;
    let shared_bytes = u32::try_from(sharedMem).map_err(|_| Error::InvalidValue("sharedMem"))?;
    let (grid, block) = (gridDim, blockDim);
    driver.cuLaunchCooperativeKernel(
        as_function(kernel),
        grid.x,
        grid.y,
        grid.z,
        block.x,
        block.y,
        block.z,
        shared_bytes,
        stream::meant(stream),
        args,
    )
}

/// What cudaLaunchKernelExC's configuration says, whatever the major: the layout is the same, the attributes' names grew.
struct Launch {
    grid: dim3,
    block: dim3,
    shared_bytes: usize,
    stream: cudaStream_t,
    attributes: *mut CUlaunchAttribute,
    n_attributes: u32,
}

impl Launch {
    fn run(self, func: *const c_void, args: *mut *mut c_void) -> Result {
        let driver = device::attach()?;
        let kernel = registry::kernel(func)?;
        let (grid, block) = (self.grid, self.block);
        if self.n_attributes > 0 {
            check_dimensions(grid, block)?;
            return driver.cuLaunchKernelEx(
                &self.driver_config()?,
                as_function(kernel),
                args,
                ptr::null_mut(),
            );
        }
        let config = self.driver_config()?;
        launch(driver, kernel, grid, block, config.sharedMemBytes, config.hStream, args)
    }

    fn driver_config(self) -> Result<CUlaunchConfig> {
        let (grid, block) = (self.grid, self.block);
        Ok(CUlaunchConfig {
            gridDimX: grid.x,
            gridDimY: grid.y,
            gridDimZ: grid.z,
            blockDimX: block.x,
            blockDimY: block.y,
            blockDimZ: block.z,
            sharedMemBytes: u32::try_from(self.shared_bytes)
                .map_err(|_| Error::InvalidValue("config.dynamicSmemBytes"))?,
            hStream: stream::meant(self.stream),
            attrs: self.attributes,
            numAttrs: self.n_attributes,
        })
    }

    /// A question about a launch that is not made: `cuOccupancyMax…Clusters…`.
    fn ask(
        self,
        func: *const c_void,
        question: impl FnOnce(&Driver, &mut c_int, CUfunction, &CUlaunchConfig) -> Result,
    ) -> Result<c_int> {
        let function = function(func)?;
        let mut answer = 0;
        question(crate::driver::get()?, &mut answer, function, &self.driver_config()?)?;
        Ok(answer)
    }
}

/// The configuration of every major: the layouts are equal, the types are not.
macro_rules! launch_of {
    ($($config:ty),*) => {$(
        impl From<&$config> for Launch {
            fn from(config: &$config) -> Self {
                Launch {
                    grid: config.gridDim,
                    block: config.blockDim,
                    shared_bytes: config.dynamicSmemBytes,
                    stream: config.stream,
                    // The runtime's attribute is the driver's: same numbers, same 72 bytes.
                    attributes: config.attrs.cast(),
                    n_attributes: config.numAttrs,
                }
            }
        }
    )*};
}
launch_of!(v11::cudaLaunchConfig_t, v12::cudaLaunchConfig_t, v13::cudaLaunchConfig_t);

pub fn cudaLaunchKernelExC_v11(
    config: &v11::cudaLaunchConfig_t,
    func: *const c_void,
    args: *mut *mut c_void,
) -> Result {
    Launch::from(config).run(func, args)
}

pub fn cudaLaunchKernelExC_v12(
    config: &v12::cudaLaunchConfig_t,
    func: *const c_void,
    args: *mut *mut c_void,
) -> Result {
    Launch::from(config).run(func, args)
}

pub fn cudaLaunchKernelExC_v13(
    config: &v13::cudaLaunchConfig_t,
    func: *const c_void,
    args: *mut *mut c_void,
) -> Result {
    Launch::from(config).run(func, args)
}

pub fn cudaLaunchHostFunc(stream: cudaStream_t, fn_: cudaHostFn_t, userData: *mut c_void) -> Result {
    device::attach()?.cuLaunchHostFunc(stream::meant(stream), fn_, userData)
}

/// CUDA: zero or too large dimensions are an invalid configuration, for any kernel; to CUDA 13's runtime they are an invalid value (13.0 and
/// 13.5 on an H200).
pub fn check_dimensions(grid: dim3, block: dim3) -> Result {
    let limits = device::current()?.limits()?;
    for (what, size) in [("grid", grid), ("block", block)] {
        if size.x == 0 || size.y == 0 || size.z == 0 {
            return Err(Error::InvalidConfiguration(what));
        }
    }
    let within = |size: dim3, most: [u32; 3]| {
        [size.x, size.y, size.z].into_iter().zip(most).all(|(size, most)| size <= most)
    };
    if !within(grid, limits.grid) {
        return Err(Error::TooLarge("grid"));
    }
    let n_threads = u64::from(block.x) * u64::from(block.y) * u64::from(block.z);
    if !within(block, limits.block) || n_threads > u64::from(limits.threads_per_block) {
        return Err(Error::TooLarge("block"));
    }
    Ok(())
}

/// The driver's launch calls take a kernel in place of a function.
fn as_function(kernel: CUkernel) -> CUfunction {
    kernel.cast()
}

/// The kernel's function in the current context, for the calls that take nothing else.
pub fn function(func: *const c_void) -> Result<CUfunction> {
    let driver = device::attach()?;
    let kernel = registry::kernel(func)?;
    let mut function: CUfunction = ptr::null_mut();
    driver.cuKernelGetFunction(&mut function, kernel)?;
    Ok(function)
}

/// A kernel's attributes, read one by one from the driver.
struct Attributes {
    function: CUfunction,
}

impl Attributes {
    fn get(&self, attribute: CUfunction_attribute) -> Result<c_int> {
        let mut value = 0;
        crate::driver::get()?.cuFuncGetAttribute(&mut value, attribute, self.function)?;
        Ok(value)
    }

    fn bytes(&self, attribute: CUfunction_attribute) -> Result<usize> {
        Ok(usize::try_from(self.get(attribute)?).unwrap_or(0))
    }

    /// 0 on a driver that does not know the attribute yet.
    fn newer(&self, attribute: CUfunction_attribute) -> c_int {
        self.get(attribute).unwrap_or(0)
    }
}

pub fn cudaFuncGetAttributes_v11(attr: Out<'_, v11::cudaFuncAttributes>, func: *const c_void) -> Result {
    let of = Attributes { function: function(func)? };
    attr.write(v11::cudaFuncAttributes {
        sharedSizeBytes: of.bytes(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        constSizeBytes: of.bytes(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        localSizeBytes: of.bytes(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        maxThreadsPerBlock: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        numRegs: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptxVersion: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binaryVersion: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        cacheModeCA: of.newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA),
        maxDynamicSharedSizeBytes: of
            .newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        preferredShmemCarveout: of
            .newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
    });
    Ok(())
}

pub fn cudaFuncGetAttributes_v12(attr: Out<'_, v12::cudaFuncAttributes>, func: *const c_void) -> Result {
    let of = Attributes { function: function(func)? };
    attr.write(v12::cudaFuncAttributes {
        sharedSizeBytes: of.bytes(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        constSizeBytes: of.bytes(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
        localSizeBytes: of.bytes(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
        maxThreadsPerBlock: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        numRegs: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
        ptxVersion: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION)?,
        binaryVersion: of.get(CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION)?,
        cacheModeCA: of.newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CACHE_MODE_CA),
        maxDynamicSharedSizeBytes: of
            .newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
        preferredShmemCarveout: of
            .newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT),
        clusterDimMustBeSet: of.newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET),
        requiredClusterWidth: of.newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
        requiredClusterHeight: of.newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT),
        requiredClusterDepth: of.newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH),
        clusterSchedulingPolicyPreference: of
            .newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE),
        nonPortableClusterSizeAllowed: of
            .newer(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
        ..Default::default()
    });
    Ok(())
}

pub fn cudaFuncGetAttributes_v13(attr: Out<'_, v13::cudaFuncAttributes>, func: *const c_void) -> Result {
    let mut shared_part = v12::cudaFuncAttributes::default();
    cudaFuncGetAttributes_v12((&mut shared_part).into(), func)?;
    attr.write(v13::cudaFuncAttributes {
        sharedSizeBytes: shared_part.sharedSizeBytes,
        constSizeBytes: shared_part.constSizeBytes,
        localSizeBytes: shared_part.localSizeBytes,
        maxThreadsPerBlock: shared_part.maxThreadsPerBlock,
        numRegs: shared_part.numRegs,
        ptxVersion: shared_part.ptxVersion,
        binaryVersion: shared_part.binaryVersion,
        cacheModeCA: shared_part.cacheModeCA,
        maxDynamicSharedSizeBytes: shared_part.maxDynamicSharedSizeBytes,
        preferredShmemCarveout: shared_part.preferredShmemCarveout,
        clusterDimMustBeSet: shared_part.clusterDimMustBeSet,
        requiredClusterWidth: shared_part.requiredClusterWidth,
        requiredClusterHeight: shared_part.requiredClusterHeight,
        requiredClusterDepth: shared_part.requiredClusterDepth,
        clusterSchedulingPolicyPreference: shared_part.clusterSchedulingPolicyPreference,
        nonPortableClusterSizeAllowed: shared_part.nonPortableClusterSizeAllowed,
        ..Default::default()
    });
    Ok(())
}

/// The runtime's attributes have the driver's numbers.
pub fn cudaFuncSetAttribute(func: *const c_void, attr: cudaFuncAttribute, value: c_int) -> Result {
    let function = function(func)?;
    crate::driver::get()?.cuFuncSetAttribute(function, CUfunction_attribute(attr.0), value)
}

pub fn cudaFuncSetCacheConfig(func: *const c_void, cacheConfig: cudaFuncCache) -> Result {
    let function = function(func)?;
    crate::driver::get()?.cuFuncSetCacheConfig(function, cuda_abi::CUfunc_cache(cacheConfig.0))
}

/// CUDA: shared memory has had one bank size for years; the call checks its function and changes nothing.
pub fn cudaFuncSetSharedMemConfig(func: *const c_void, _config: cudaSharedMemConfig) -> Result {
    function(func).map(|_| ())
}

pub fn cudaFuncGetName(name: Out<'_, *const c_char>, func: *const c_void) -> Result {
    let driver = device::attach()?;
    let kernel = registry::kernel(func)?;
    let mut found = ptr::null();
    driver.cuKernelGetName(&mut found, kernel)?;
    name.write(found);
    Ok(())
}

pub fn cudaFuncGetParamInfo(
    func: *const c_void,
    paramIndex: usize,
    paramOffset: Out<'_, usize>,
    paramSize: OptOut<'_, usize>,
) -> Result {
    let driver = device::attach()?;
    let kernel = registry::kernel(func)?;
    let (mut offset, mut size) = (0, 0);
    driver.cuKernelGetParamInfo(kernel, paramIndex, &mut offset, &mut size)?;
    paramOffset.write(offset);
    paramSize.write(size);
    Ok(())
}

/// The driver's kernel handle, which may be given to driver calls.
pub fn cudaGetKernel(kernelPtr: Out<'_, cudaKernel_t>, entryFuncAddr: *const c_void) -> Result {
    device::attach()?;
    let kernel = registry::kernel(entryFuncAddr)?;
    super::library::remember_kernel(kernel);
    kernelPtr.write(kernel);
    Ok(())
}

pub fn cudaGetFuncBySymbol(functionPtr: Out<'_, cudaFunction_t>, symbolPtr: *const c_void) -> Result {
    functionPtr.write(function(symbolPtr)?);
    Ok(())
}

/// Removed from use long ago: rounds to what a device without doubles would see; ours has them.
pub fn cudaSetDoubleForDevice(_d: *mut f64) -> Result {
    Ok(())
}

pub fn cudaSetDoubleForHost(_d: *mut f64) -> Result {
    Ok(())
}

macro_rules! clusters_of {
    ($launch:expr, $func:expr, $call:ident) => {
        Launch::from($launch)
            .ask($func, |driver, answer, function, config| driver.$call(answer, function, config))?
    };
}

pub fn cudaOccupancyMaxActiveClusters_v11(
    numClusters: Out<'_, c_int>,
    func: *const c_void,
    launchConfig: &v11::cudaLaunchConfig_t,
) -> Result {
    numClusters.write(clusters_of!(launchConfig, func, cuOccupancyMaxActiveClusters));
    Ok(())
}

pub fn cudaOccupancyMaxActiveClusters_v12(
    numClusters: Out<'_, c_int>,
    func: *const c_void,
    launchConfig: &v12::cudaLaunchConfig_t,
) -> Result {
    numClusters.write(clusters_of!(launchConfig, func, cuOccupancyMaxActiveClusters));
    Ok(())
}

pub fn cudaOccupancyMaxActiveClusters_v13(
    numClusters: Out<'_, c_int>,
    func: *const c_void,
    launchConfig: &v13::cudaLaunchConfig_t,
) -> Result {
    numClusters.write(clusters_of!(launchConfig, func, cuOccupancyMaxActiveClusters));
    Ok(())
}

pub fn cudaOccupancyMaxPotentialClusterSize_v11(
    clusterSize: Out<'_, c_int>,
    func: *const c_void,
    launchConfig: &v11::cudaLaunchConfig_t,
) -> Result {
    clusterSize.write(clusters_of!(launchConfig, func, cuOccupancyMaxPotentialClusterSize));
    Ok(())
}

pub fn cudaOccupancyMaxPotentialClusterSize_v12(
    clusterSize: Out<'_, c_int>,
    func: *const c_void,
    launchConfig: &v12::cudaLaunchConfig_t,
) -> Result {
    clusterSize.write(clusters_of!(launchConfig, func, cuOccupancyMaxPotentialClusterSize));
    Ok(())
}

pub fn cudaOccupancyMaxPotentialClusterSize_v13(
    clusterSize: Out<'_, c_int>,
    func: *const c_void,
    launchConfig: &v13::cudaLaunchConfig_t,
) -> Result {
    clusterSize.write(clusters_of!(launchConfig, func, cuOccupancyMaxPotentialClusterSize));
    Ok(())
}

/// `syncMode` has the driver's numbers.
pub fn cudaLaunchHostFunc_v2(
    stream: cudaStream_t,
    fn_: cudaHostFn_t,
    userData: *mut c_void,
    syncMode: c_uint,
) -> Result {
    device::attach()?.cuLaunchHostFunc_v2(stream::meant(stream), fn_, userData, syncMode)
}

pub fn cudaFuncGetParamCount(func: *const c_void, paramCount: Out<'_, usize>) -> Result {
    let driver = device::attach()?;
    let mut count = 0;
    driver.cuKernelGetParamCount(registry::kernel(func)?, &mut count)?;
    paramCount.write(count);
    Ok(())
}

/// CUDA: only on devices that have cudaDevAttrCooperativeMultiDeviceLaunch, which none has any more; deprecated since CUDA 11.3.
pub fn cudaLaunchCooperativeKernelMultiDevice<Params>(
    launchParamsList: *mut Params,
    numDevices: c_uint,
    flags: c_uint,
) -> Result {
    device::attach()?;
    if launchParamsList.is_null() || numDevices == 0 || flags & !3 != 0 {
        return Err(Error::InvalidValue("launchParamsList, numDevices or flags"));
    }
    Err(Error::NotSupported("grids of several devices cannot meet"))
}
