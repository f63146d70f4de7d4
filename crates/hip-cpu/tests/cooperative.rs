//! Cooperative grids and clusters as the HIP calls launch them: what is refused, and what a grid that may wait for itself
//! does.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use border::Out;
use hip_cpu::api::*;
use hip_cpu::error::Result;
use hip_sys::*;

const KERNELS: &str = include_str!("run/cooperative/grid_sync.ptx");

const CLUSTERS: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry anything(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    mov.pred %p, %is_explicit_cluster;
    selp.b32 %r4, 256, 0, %p;
    mad.lo.u32 %r5, %r3, 16, %r2;
    add.u32 %r5, %r5, %r4;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}
.visible .entry pairs(.param .u64 out) .reqnctapercluster 2, 1, 1 .explicitcluster { trap; }
.visible .entry told(.param .u64 out) .explicitcluster { ret; }
.visible .entry few(.param .u64 out) .maxclusterrank 4 { ret; }
";

fn function(text: &str, name: &str) -> hipFunction_t {
    let (text, name) = (CString::new(text).unwrap(), CString::new(name).unwrap());
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: PTX text that ends with a NUL.
    unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
    hipModuleGetFunction(Out::from(&mut function), module, &name).unwrap();
    function
}

fn words(n: usize) -> *mut c_void {
    let mut memory = null_mut();
    hipMalloc(Out::from(&mut memory), 4 * n).unwrap();
    hipMemset(memory, 0, 4 * n).unwrap();
    memory
}

fn download(memory: *mut c_void, n: usize) -> Vec<u32> {
    hipDeviceSynchronize().unwrap();
    let mut out = vec![0u32; n];
    hipMemcpyDtoH(out.as_mut_ptr().cast(), memory, 4 * n).unwrap();
    out
}

/// Launches `grid` blocks of `block` threads with attributes.
fn launch(
    f: hipFunction_t,
    grid: u32,
    block: u32,
    cluster: Option<[u32; 3]>,
    cooperative: bool,
    out: *mut c_void,
) -> Result {
    let mut attributes = vec![];
    let zero = hipLaunchAttributeValue { pad: [0; 8] };
    let mut attribute = |id, change: &dyn Fn(&mut hipLaunchAttributeValue)| {
        let mut value = zero;
        change(&mut value);
        attributes.push(hipLaunchAttribute { id, pad: 0, value });
    };
    attribute(hipLaunchAttributeIgnore, &|_| {});
    if let Some(cluster) = cluster {
        attribute(hipLaunchAttributeClusterDimension, &|value| value.clusterDim = cluster);
    }
    attribute(hipLaunchAttributeCooperative, &|value| value.cooperative = cooperative.into());
    let config = HIP_LAUNCH_CONFIG {
        gridDimX: grid,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: block,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: null_mut(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    };
    let mut out = out;
    let mut arguments = [(&raw mut out).cast()];
    // SAFETY: the attributes and the argument are there.
    unsafe { hipDrvLaunchKernelEx(&config, f, arguments.as_mut_ptr(), null_mut()) }
}

/// Blocks of so many threads that the device holds at once.
fn most(f: hipFunction_t, block: i32) -> u32 {
    let (mut per_core, mut n_cores) = (0, 0);
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(Out::from(&mut per_core), f, block, 0).unwrap();
    hipDeviceGetAttribute(Out::from(&mut n_cores), hipDeviceAttributeMultiprocessorCount, 0).unwrap();
    per_core as u32 * n_cores as u32
}

#[test]
fn a_cooperative_grid_of_as_many_blocks_as_fit_meets_and_one_more_is_refused() {
    let f = function(KERNELS, "phases");
    let n = most(f, 32);
    let out = words(n as usize + 1);
    let (mut to, mut rounds) = (out, 2u32);
    let mut arguments: [*mut c_void; 2] = [(&raw mut to).cast(), (&raw mut rounds).cast()];
    let mut launch = |grid: u32| {
        hipModuleLaunchCooperativeKernel(f, grid, 1, 1, 32, 1, 1, 0, null_mut(), arguments.as_mut_ptr())
    };
    assert_eq!(launch(n + 1), Err(hipErrorCooperativeLaunchTooLarge));
    launch(n).unwrap();
    assert_eq!(download(out, n as usize), vec![0; n as usize], "mistakes per block");
}

#[test]
fn the_workspace_is_there_for_cooperative_grids_only() {
    let f = function(KERNELS, "size");
    let out = words(1);
    launch(f, 1, 1, None, false, out).unwrap();
    assert_eq!(download(out, 1), [0]);
    launch(f, 1, 1, None, true, out).unwrap();
    assert_eq!(download(out, 1), [8]);
}

#[test]
fn the_launch_says_how_large_a_cluster_is() {
    let f = function(CLUSTERS, "anything");
    let out = words(16);
    // Rank + 16 × size, and 256 where somebody said the size.
    for (cluster, wanted) in [
        (None, vec![16; 4]),
        (Some([1, 1, 1]), vec![256 + 16; 4]),
        (Some([2, 1, 1]), vec![256 + 32, 256 + 33, 256 + 32, 256 + 33]),
        (Some([4, 1, 1]), vec![256 + 64, 256 + 65, 256 + 66, 256 + 67]),
    ] {
        launch(f, 4, 1, cluster, false, out).unwrap();
        assert_eq!(download(out, 4), wanted, "{cluster:?}");
    }
    launch(f, 16, 1, Some([16, 1, 1]), true, out).unwrap();
    assert_eq!(download(out, 16), (0..16).map(|rank| 512 + rank).collect::<Vec<u32>>());
}

#[test]
fn clusters_that_do_not_fit_the_grid_the_device_or_the_kernel_are_refused() {
    let wrong = Err(hipErrorInvalidConfiguration);
    let out = words(32);
    let anything = function(CLUSTERS, "anything");
    assert_eq!(
        launch(anything, 6, 1, Some([4, 1, 1]), false, out),
        wrong,
        "the grid is not made of clusters"
    );
    assert_eq!(launch(anything, 4, 1, Some([2, 2, 1]), false, out), wrong, "nor in this direction");
    assert_eq!(launch(anything, 32, 1, Some([32, 1, 1]), false, out), wrong, "more than 16 blocks");
    assert_eq!(launch(anything, 4, 1, Some([0, 1, 1]), false, out), wrong, "no block");
    let few = function(CLUSTERS, "few");
    assert_eq!(launch(few, 8, 1, Some([8, 1, 1]), false, out), wrong, ".maxclusterrank 4");
    launch(few, 8, 1, Some([4, 1, 1]), false, out).unwrap();
    let told = function(CLUSTERS, "told");
    assert_eq!(launch(told, 4, 1, None, false, out), wrong, ".explicitcluster, and nobody says a size");
    launch(told, 4, 1, Some([2, 1, 1]), false, out).unwrap();
    let pairs = function(CLUSTERS, "pairs");
    assert_eq!(launch(pairs, 4, 1, Some([4, 1, 1]), false, out), wrong, ".reqnctapercluster 2");
    assert_eq!(launch(pairs, 3, 1, None, false, out), wrong, "three blocks are not pairs");
    hipDeviceSynchronize().unwrap();
}
