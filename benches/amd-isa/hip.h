// What CUDA C++ takes for granted, in clang's terms for AMD GPUs, so that AMD's compiler compiles the very kernels of
// ../peers/kernels.cuh. HIP's own headers and device libraries are not needed: clang's builtins are what those end in.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

#define INDEX(name, x_is, y_is, z_is)                                       \
    struct name##_t {                                                       \
        __declspec(property(get = get_x)) unsigned x;                       \
        __declspec(property(get = get_y)) unsigned y;                       \
        __declspec(property(get = get_z)) unsigned z;                       \
        __device__ unsigned get_x() const { return x_is; }                  \
        __device__ unsigned get_y() const { return y_is; }                  \
        __device__ unsigned get_z() const { return z_is; }                  \
    };                                                                      \
    static __device__ const name##_t name{};

INDEX(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
INDEX(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z())
INDEX(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z())
INDEX(gridDim, __builtin_amdgcn_grid_size_x() / blockDim.x, __builtin_amdgcn_grid_size_y() / blockDim.y,
      __builtin_amdgcn_grid_size_z() / blockDim.z)

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
inline __device__ float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline __device__ void __syncthreads()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

inline __device__ float rsqrtf(float x) { return __builtin_amdgcn_rsqf(x); }
inline __device__ float sqrtf(float x) { return __builtin_sqrtf(x); }
inline __device__ float fabsf(float x) { return __builtin_fabsf(x); }
inline __device__ float expf(float x) { return __builtin_expf(x); }
inline __device__ float logf(float x) { return __builtin_logf(x); }

inline __device__ unsigned atomicAdd(unsigned *at, unsigned value)
{
    return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Warps of 32 lanes, as CUDA's are.
inline __device__ unsigned lane_of_warp() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }

inline __device__ unsigned shuffle(unsigned value, unsigned from) { return __builtin_amdgcn_ds_bpermute(from * 4, value); }

template <typename T> inline __device__ T shuffled(T value, unsigned from)
{
    return __builtin_bit_cast(T, shuffle(__builtin_bit_cast(unsigned, value), from));
}

template <typename T> inline __device__ T __shfl_sync(unsigned, T value, int from)
{
    return shuffled(value, (lane_of_warp() & ~31u) | (from & 31));
}

template <typename T> inline __device__ T __shfl_down_sync(unsigned, T value, unsigned by)
{
    const unsigned lane = lane_of_warp();
    return shuffled(value, (lane & 31) + by < 32 ? lane + by : lane);
}

template <typename T> inline __device__ T __shfl_up_sync(unsigned, T value, unsigned by)
{
    const unsigned lane = lane_of_warp();
    return shuffled(value, (lane & 31) >= by ? lane - by : lane);
}

template <typename T> inline __device__ T __shfl_xor_sync(unsigned, T value, unsigned by)
{
    return shuffled(value, lane_of_warp() ^ by);
}

inline __device__ unsigned __ballot_sync(unsigned, int predicate)
{
#if __AMDGCN_WAVEFRONT_SIZE == 32
    return __builtin_amdgcn_ballot_w32(predicate);
#else
    const unsigned long long both = __builtin_amdgcn_ballot_w64(predicate);
    return lane_of_warp() & 32 ? both >> 32 : both;
#endif
}

inline __device__ int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline __device__ int __ffs(unsigned word) { return __builtin_ffs(word); }
