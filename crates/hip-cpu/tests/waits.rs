//! Kernels that wait for what they have launched: `cudaDeviceSynchronize` of CUDA 11's device runtime, by the calls that the programming
//! guide documents for PTX.

use std::ffi::{CString, c_void};

use hip_cpu::api::*;
use hip_sys::*;

/// `out[node]` becomes the sum of the squares of `count` numbers from `from` on: of one number by itself, of more by two grids, whose
/// sums are read when they have ended. Node n's children are 2n + 1 and 2n + 2. What the wait answers stands in `answers[node]`.
const TREE: &str = "
.version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b64 r) cudaGetParameterBuffer(.param .b64 alignment, .param .b64 size);
.extern .func (.param .b32 r) cudaLaunchDevice(.param .b64 function, .param .b64 buffer, .param .align 4 .b8 grid[12],
    .param .align 4 .b8 block[12], .param .b32 shared, .param .b64 stream);
.extern .func (.param .b32 r) cudaDeviceSynchronize();
.func launch(.param .b64 out, .param .b64 answers, .param .b32 node, .param .b32 from, .param .b32 count);

.visible .entry tree(.param .u64 out, .param .u64 answers, .param .u32 node, .param .u32 from, .param .u32 count)
{
    .reg .pred %p;
    .reg .b32 %node, %from, %count, %half, %left, %right, %next, %answer, %x;
    .reg .b64 %out, %answers, %at;
    ld.param.u64 %out, [out];
    ld.param.u64 %answers, [answers];
    ld.param.u32 %node, [node];
    ld.param.u32 %from, [from];
    ld.param.u32 %count, [count];
    // The last thread of two works.
    mov.u32 %x, %tid.x;
    setp.eq.u32 %p, %x, 0;
    @%p ret;
    mad.wide.u32 %at, %node, 4, %out;
    setp.gt.u32 %p, %count, 1;
    @%p bra MORE;
    mul.lo.u32 %x, %from, %from;
    st.global.u32 [%at], %x;
    ret;
MORE:
    // What stands there before is no sum.
    ld.global.u32 %left, [%at];
    shr.u32 %half, %count, 1;
    shl.b32 %next, %node, 1;
    add.u32 %next, %next, 1;
    mad.wide.u32 %at, %next, 4, %out;
    ld.global.u32 %x, [%at];
    add.u32 %left, %left, %x;
    call.uni launch, (%out, %answers, %next, %from, %half);
    add.u32 %next, %next, 1;
    add.u32 %from, %from, %half;
    call.uni launch, (%out, %answers, %next, %from, %half);
    call.uni (%answer), cudaDeviceSynchronize, ();
    mad.wide.u32 %at, %node, 4, %answers;
    st.global.u32 [%at], %answer;
    mad.wide.u32 %at, %next, 4, %out;
    ld.global.u32 %right, [%at];
    ld.global.u32 %left, [%at+-4];
    add.u32 %x, %left, %right;
    mad.wide.u32 %at, %node, 4, %out;
    st.global.u32 [%at], %x;
    ret;
}

.func launch(.param .b64 out, .param .b64 answers, .param .b32 node, .param .b32 from, .param .b32 count)
{
    .reg .b32 %x, %two;
    .reg .b64 %buffer, %function, %l;
    mov.u64 %function, tree;
    {
        .param .b64 alignment;
        .param .b64 size;
        .param .b64 r;
        st.param.b64 [alignment], 8;
        st.param.b64 [size], 28;
        call.uni (r), cudaGetParameterBuffer, (alignment, size);
        ld.param.b64 %buffer, [r];
    }
    ld.param.b64 %l, [out];
    st.u64 [%buffer], %l;
    ld.param.b64 %l, [answers];
    st.u64 [%buffer+8], %l;
    ld.param.b32 %x, [node];
    st.u32 [%buffer+16], %x;
    ld.param.b32 %x, [from];
    st.u32 [%buffer+20], %x;
    ld.param.b32 %x, [count];
    st.u32 [%buffer+24], %x;
    {
        .param .b64 function;
        .param .b64 buffer;
        .param .align 4 .b8 grid[12];
        .param .align 4 .b8 block[12];
        .param .b32 shared;
        .param .b64 stream;
        .param .b32 r;
        st.param.b64 [function], %function;
        st.param.b64 [buffer], %buffer;
        st.param.b32 [grid], 1;
        st.param.b32 [grid+4], 1;
        st.param.b32 [grid+8], 1;
        st.param.b32 [block], 2;
        st.param.b32 [block+4], 1;
        st.param.b32 [block+8], 1;
        st.param.b32 [shared], 0;
        st.param.b64 [stream], 0;
        call.uni (r), cudaLaunchDevice, (function, buffer, grid, block, shared, stream);
    }
    ret;
}";

const SUCCESS: u32 = 0;
/// `cudaErrorSyncDepthExceeded`
const TOO_DEEP: u32 = 68;
/// In front of the launch in all words.
const BEFORE: u32 = 0xeeee_eeee;

struct Tree {
    function: hipFunction_t,
    words: *mut u32,
}

const N_NODES: usize = 1 << 7;

impl Tree {
    fn new() -> Tree {
        let text = CString::new(TREE).unwrap();
        let mut module: hipModule_t = std::ptr::null_mut();
        // SAFETY: PTX text that ends with a NUL.
        unsafe { hipModuleLoadData((&mut module).into(), text.as_ptr().cast()) }.unwrap();
        let mut function: hipFunction_t = std::ptr::null_mut();
        hipModuleGetFunction((&mut function).into(), module, c"tree").unwrap();
        let mut words: *mut c_void = std::ptr::null_mut();
        hipMalloc((&mut words).into(), 2 * N_NODES * 4).unwrap();
        Tree { function, words: words.cast() }
    }

    /// The sum of the squares of so many numbers from 3 on, and what the waits of all nodes answered.
    fn sum(&self, count: u32) -> (u32, Vec<u32>) {
        // SAFETY: the allocation has so many words, and nothing runs.
        let all = unsafe { std::slice::from_raw_parts_mut(self.words, 2 * N_NODES) };
        all.fill(BEFORE);
        let (mut out, mut answers) = (self.words, self.words.wrapping_add(N_NODES));
        let (mut node, mut from, mut count) = (0u32, 3u32, count);
        let mut params: [*mut c_void; 5] = [
            (&raw mut out).cast(),
            (&raw mut answers).cast(),
            (&raw mut node).cast(),
            (&raw mut from).cast(),
            (&raw mut count).cast(),
        ];
        let null = std::ptr::null_mut();
        hipModuleLaunchKernel(self.function, 1, 1, 1, 2, 1, 1, 0, null, params.as_mut_ptr(), null.cast())
            .unwrap();
        hipDeviceSynchronize().unwrap();
        (all[0], all[N_NODES..].to_vec())
    }
}

fn squares(count: u32) -> u32 {
    (3..3 + count).map(|n| n * n).sum()
}

/// How many nodes answered so, of those that wait for others.
fn answered(answers: &[u32], what: u32) -> usize {
    answers.iter().filter(|&&answer| answer == what).count()
}

#[test]
fn what_a_grid_has_launched_is_there_after_its_wait_as_deep_as_the_limit_says() {
    let tree = Tree::new();
    // Two grids inside of each other wait, as many as may unasked: those of four numbers and of two.
    for count in [1, 2, 4] {
        let (sum, answers) = tree.sum(count);
        assert_eq!(sum, squares(count));
        assert_eq!(answered(&answers, SUCCESS), count as usize - 1);
        assert_eq!(answered(&answers, BEFORE), N_NODES - (count as usize - 1));
    }
    // Of eight numbers, the four grids of two are the third.
    let (_, answers) = tree.sum(8);
    assert_eq!((answered(&answers, SUCCESS), answered(&answers, TOO_DEEP)), (3, 4));
    let mut limit = 0;
    hipDeviceGetLimit((&mut limit).into(), hipLimitDevRuntimeSyncDepth).unwrap();
    assert_eq!(limit, 2);
    hipDeviceSetLimit(hipLimitDevRuntimeSyncDepth, 6).unwrap();
    // All codes that a kernel runs in come by, and better ones.
    for _ in 0..20 {
        let (sum, answers) = tree.sum(64);
        assert_eq!(sum, squares(64));
        assert_eq!(answered(&answers, SUCCESS), 63);
    }
    hipDeviceSetLimit(hipLimitDevRuntimeSyncDepth, 2).unwrap();
}
