"""A kernel of PTX text through libcuda.so.1, as PyCUDA and others do it with ctypes, and its numbers checked."""

from __future__ import annotations

import ctypes
import sys

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry twice_and_one(.param .u64 data, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<4>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [data];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p, %r5, %r1;
    @%p bra done;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
    st.global.f32 [%rd3], %f2;
done:
    ret;
}
"""


def check(status: int) -> None:
    assert status == 0, f"CUDA error {status}"


def run(n: int = 1000) -> None:
    """Raises where there is no driver, or its numbers are wrong."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    data, length = ctypes.c_uint64(), ctypes.c_uint32(n)
    numbers = (ctypes.c_float * n)(*range(n))
    size_bytes = ctypes.c_size_t(ctypes.sizeof(numbers))
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(PTX)))
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"twice_and_one"))
    check(cuda.cuMemAlloc_v2(ctypes.byref(data), size_bytes))
    check(cuda.cuMemcpyHtoD_v2(data, numbers, size_bytes))
    arguments = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.byref(it), ctypes.c_void_p) for it in (data, length)))
    check(cuda.cuLaunchKernel(kernel, (n + 127) // 128, 1, 1, 128, 1, 1, 0, None, arguments, None))
    check(cuda.cuMemcpyDtoH_v2(numbers, data, size_bytes))
    check(cuda.cuMemFree_v2(data))
    assert list(numbers) == [2 * number + 1 for number in range(n)], "the kernel's numbers are wrong"


if __name__ == "__main__":
    run()
    print(*sys.argv[1:], "PASSED", sep="\n")
