"""NVRTC's PTX at many options and architectures, launched through libcuda.so.1 by ctypes; no other packages.

usage: nvrtc_check.py LIBNVRTC CUDA_INCLUDE
"""

import array
import ctypes
import sys

SOURCE = r"""
#include <cuda_fp16.h>

__constant__ float weights[4] = {0.5f, 1.5f, -2.0f, 4.0f};

template <int N> __device__ float weighted(const float *x)
{
    float sum = 0;
    for (int k = 0; k < N; k++)
        sum += x[k] * weights[k];
    return sum;
}

// Four numbers a thread; exact in float.
extern "C" __global__ void dots(const float4 *in, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float4 v = in[i];
    const float x[4] = {v.x, v.y, v.z, v.w};
    out[i] = weighted<4>(x);
}

// A histogram in shared memory; the half conversions are exact for these numbers.
extern "C" __global__ void histogram(const float4 *in, float *out, int n)
{
    __shared__ int bins[16];
    if (threadIdx.x < 16)
        bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[int(__half2float(__float2half(in[i].x))) & 15], 1);
    __syncthreads();
    if (threadIdx.x < 16)
        atomicAdd(&out[threadIdx.x], float(bins[threadIdx.x]));
}

// A warp's sum by shuffles, with early leavers outside the mask's warps.
extern "C" __global__ void sums(const float4 *in, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? in[i].y : 0.0f;
    for (int offset = 16; offset; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0)
        out[i / 32] = sum;
}
"""

OPTIONS = [
    [],
    ["-G", "-lineinfo"],
    ["--use_fast_math"],
    ["-lineinfo"],
    ["--dopt=on", "--extra-device-vectorization"],
    ["-Xptxas=-O1", "--fmad=false", "--ftz=true"],
    ["--std=c++20", "--maxrregcount=32", "--restrict"],
]
ARCHITECTURES = ["75", "80", "86", "89", "90"]
N = 1000


def must(result, what):
    if result != 0:
        raise SystemExit(f"FAILED: {what}: {result}")


def compile_ptx(nvrtc, options):
    program = ctypes.c_void_p()
    must(nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.encode(), b"check.cu", 0, None, None), "nvrtcCreateProgram")
    values = [option.encode() for option in options]
    result = nvrtc.nvrtcCompileProgram(program, len(values), (ctypes.c_char_p * len(values))(*values))
    size = ctypes.c_size_t()
    if result != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"FAILED: nvrtcCompileProgram {options}: {log.value.decode()}")
    must(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)), "nvrtcGetPTXSize")
    text = ctypes.create_string_buffer(size.value)
    must(nvrtc.nvrtcGetPTX(program, text), "nvrtcGetPTX")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return text


def main():
    nvrtc = ctypes.CDLL(sys.argv[1])
    include = sys.argv[2]
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    must(cuda.cuInit(0), "cuInit")
    must(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    numbers = [float((i * 29) % 40) for i in range(4 * N)]
    rows = [numbers[i : i + 4] for i in range(0, 4 * N, 4)]
    bins = [0.0] * 16
    for row in rows:
        bins[int(row[0]) & 15] += 1
    padded = rows + [[0.0] * 4] * 24
    expected = {
        "dots": [0.5 * a + 1.5 * b - 2.0 * c + 4.0 * d for a, b, c, d in rows],
        "histogram": bins,
        "sums": [sum(row[1] for row in padded[i : i + 32]) for i in range(0, 1024, 32)],
    }
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    must(cuda.cuMemAlloc_v2(ctypes.byref(source), ctypes.c_size_t(16 * N)), "cuMemAlloc")
    must(cuda.cuMemAlloc_v2(ctypes.byref(target), ctypes.c_size_t(4 * 1024)), "cuMemAlloc")
    data = array.array("f", numbers)
    must(cuda.cuMemcpyHtoD_v2(source, ctypes.c_void_p(data.buffer_info()[0]), ctypes.c_size_t(16 * N)), "cuMemcpyHtoD")
    for number, options in enumerate(OPTIONS):
        for architecture in ARCHITECTURES if number == 0 else ARCHITECTURES[number % 5 :][:1]:
            options_here = [f"--gpu-architecture=compute_{architecture}", f"-I{include}", *options]
            module = ctypes.c_void_p()
            must(cuda.cuModuleLoadData(ctypes.byref(module), compile_ptx(nvrtc, options_here)), f"cuModuleLoadData of {options_here}")
            for name, wanted in expected.items():
                function, n = ctypes.c_void_p(), ctypes.c_int(N)
                must(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), name)
                must(cuda.cuMemsetD8_v2(target, ctypes.c_ubyte(0), ctypes.c_size_t(4096)), "cuMemsetD8")
                values = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in (source, target, n)))
                must(cuda.cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, None, values, None), f"cuLaunchKernel {name}")
                got = array.array("f", bytes(4 * len(wanted)))
                must(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(got.buffer_info()[0]), target, ctypes.c_size_t(4 * len(wanted))), name)
                if list(got) != wanted:
                    at = next(i for i, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1])
                    raise SystemExit(f"FAILED: {name} with {options_here}: [{at}] is {got[at]}, expected {wanted[at]}")
            must(cuda.cuModuleUnload(module), "cuModuleUnload")
    print("PASSED")


main()
