// Attention in one pass over the keys, as an H100 has it: a warp group that asks the copy engine for swizzled tiles of keys
// and values, two that multiply them by `wgmma` and keep their rows' softmax up to date. For compute_90a.
#include "example.h"

#include <cmath>
#include <cuda.h>
#include <cuda_fp16.h>

const int DEPTH = 64, TILE = 64, STAGES = 2, CONSUMERS = 2, HEADS = 2, LENGTH = 200;

// Tiles lie at multiples of 1,024 bytes, which the pattern of the swizzle counts from.
struct Shared {
    __half q[CONSUMERS][TILE * DEPTH];
    __half k[STAGES][TILE * DEPTH];
    __half v[STAGES][TILE * DEPTH];
    unsigned long long q_full, k_full[STAGES], v_full[STAGES], empty[STAGES];
};

__device__ unsigned shared_address(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
__device__ void init(unsigned long long *bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

__device__ void expect(unsigned long long *bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory");
}

__device__ void arrive(unsigned long long *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ void wait(unsigned long long *bar, unsigned parity)
{
    unsigned over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(shared_address(bar)), "r"(parity) : "memory");
}

__device__ void load(void *to, const CUtensorMap *map, int row, int head, unsigned long long *bar)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 ::"r"(shared_address(to)), "l"(map), "r"(0), "r"(row), "r"(head), "r"(shared_address(bar)) : "memory");
}

// A tile whose rows are 128 bytes, in groups of eight rows, swizzled by 128 bytes.
__device__ unsigned long long described(const void *tile)
{
    const unsigned long long group = 8 * 128;
    return (shared_address(tile) & 0x3ffff) >> 4 | 1ull << 16 | group >> 4 << 32 | 1ull << 62;
}

#define EIGHT(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS                                                                                                                    \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, " \
    "%26, %27, %28, %29, %30, %31}"

// d = a * b + (adds ? d : 0): 64 rows by 16 deep, b's rows are d's columns.
__device__ void multiply(float (&d)[32], unsigned long long a, unsigned long long b, int adds)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SUMS
                 ", %32, %33, p, 1, 1, 0, 0; }"
                 : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24) : "l"(a), "l"(b), "r"(adds));
}

// d += a * b: a in registers, b's columns are d's.
__device__ void multiply(float (&d)[32], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " SUMS ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

__device__ void begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ void finish(float (&d)[32])
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24)::"memory");
}

__device__ unsigned packed(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

__device__ void produce(Shared &shared, const CUtensorMap &q, const CUtensorMap &k, const CUtensorMap &v, int first, int n_tiles)
{
    const unsigned bytes = TILE * DEPTH * sizeof(__half);
    const int head = blockIdx.y;
    expect(&shared.q_full, CONSUMERS * bytes);
    for (int i = 0; i < CONSUMERS; i++)
        load(shared.q[i], &q, first + i * TILE, head, &shared.q_full);
    for (int tile = 0; tile < n_tiles; tile++) {
        const int stage = tile % STAGES;
        // The first round finds all stages empty.
        wait(&shared.empty[stage], (tile / STAGES & 1) ^ 1);
        expect(&shared.k_full[stage], bytes);
        load(shared.k[stage], &k, tile * TILE, head, &shared.k_full[stage]);
        expect(&shared.v_full[stage], bytes);
        load(shared.v[stage], &v, tile * TILE, head, &shared.v_full[stage]);
    }
}

// A thread has 16 pairs of neighbours of two rows, eight rows apart.
__device__ void consume(Shared &shared, float *out, int first, int n_tiles, bool is_causal)
{
    const int group = threadIdx.x / 128 - 1, lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int row = first + group * TILE + warp * 16 + lane / 4;
    const float scale = 1.44269504f / 8;  // log2(e) / sqrt(DEPTH)
    float sums[32] = {}, most[2] = {-INFINITY, -INFINITY}, weight[2] = {};
    wait(&shared.q_full, 0);
    for (int tile = 0; tile < n_tiles; tile++) {
        const int stage = tile % STAGES;
        const unsigned parity = tile / STAGES & 1;
        float scores[32];
        wait(&shared.k_full[stage], parity);
        begin();
        for (int k = 0; k < DEPTH; k += 16)
            multiply(scores, described(shared.q[group] + k), described(shared.k[stage] + k), k > 0);
        finish(scores);
        for (int i = 0; i < 32; i++) {
            const int key = tile * TILE + i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (key >= LENGTH || (is_causal && key > row + (i / 2 % 2) * 8))
                scores[i] = -INFINITY;
        }
        for (int half = 0; half < 2; half++) {
            float higher = most[half];
            for (int i = 0; i < 32; i++)
                if (i / 2 % 2 == half)
                    higher = fmaxf(higher, scores[i] * scale);
            higher = fmaxf(higher, __shfl_xor_sync(~0u, higher, 1));
            higher = fmaxf(higher, __shfl_xor_sync(~0u, higher, 2));
            const float shrink = exp2f(most[half] - higher);
            most[half] = higher;
            weight[half] *= shrink;
            for (int i = 0; i < 32; i++)
                if (i / 2 % 2 == half) {
                    scores[i] = exp2f(scores[i] * scale - higher);
                    weight[half] += scores[i];
                    sums[i] *= shrink;
                }
        }
        unsigned powers[TILE / 16][4];
        for (int k = 0; k < TILE / 16; k++)
            for (int i = 0; i < 4; i++)
                powers[k][i] = packed(scores[8 * k + 2 * i], scores[8 * k + 2 * i + 1]);
        wait(&shared.v_full[stage], parity);
        begin();
        for (int k = 0; k < TILE / 16; k++)
            multiply(sums, powers[k], described(shared.v[stage] + k * 16 * DEPTH));
        finish(sums);
        __syncwarp();
        if (lane == 0)
            arrive(&shared.empty[stage]);
    }
    for (int half = 0; half < 2; half++) {
        weight[half] += __shfl_xor_sync(~0u, weight[half], 1);
        weight[half] += __shfl_xor_sync(~0u, weight[half], 2);
    }
    for (int i = 0; i < 32; i++) {
        const int half = i / 2 % 2, to = row + half * 8;
        if (to < LENGTH)
            out[(blockIdx.y * LENGTH + to) * DEPTH + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums[i] / weight[half];
    }
}
#endif

__global__ void __launch_bounds__(128 * (1 + CONSUMERS), 1)
    attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v,
              float *out, bool is_causal)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char raw[];
    Shared &shared = *reinterpret_cast<Shared *>(raw + (-shared_address(raw) & 1023));
    if (threadIdx.x == 0) {
        init(&shared.q_full, 1);
        for (int stage = 0; stage < STAGES; stage++) {
            init(&shared.k_full[stage], 1);
            init(&shared.v_full[stage], 1);
            init(&shared.empty[stage], 4 * CONSUMERS);
        }
        // For the copy engine.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    const int first = blockIdx.x * CONSUMERS * TILE, keys = is_causal ? min(LENGTH, first + CONSUMERS * TILE) : LENGTH;
    const int n_tiles = (keys + TILE - 1) / TILE;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            produce(shared, q, k, v, first, n_tiles);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        consume(shared, out, first, n_tiles, is_causal);
    }
#endif
}

typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                           const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// A row of the definition, in double precision.
static void expected_row(const std::vector<__half> (&host)[3], int head, int row, bool is_causal, double *out)
{
    const int keys = is_causal ? row + 1 : LENGTH;
    const auto at = [&](int which, int r, int d) { return static_cast<double>(__half2float(host[which][(head * LENGTH + r) * DEPTH + d])); };
    std::vector<double> powers(keys);
    double most = -INFINITY, weight = 0;
    for (int key = 0; key < keys; key++) {
        for (int d = 0; d < DEPTH; d++)
            powers[key] += at(0, row, d) * at(1, key, d) / 8;
        most = std::fmax(most, powers[key]);
    }
    for (double &power : powers)
        weight += power = std::exp(power - most);
    for (int d = 0; d < DEPTH; d++) {
        out[d] = 0;
        for (int key = 0; key < keys; key++)
            out[d] += powers[key] / weight * at(2, key, d);
    }
}

int main()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 13000
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
#else
    CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status));
#endif
    expect_equal("entry point", status, cudaDriverEntryPointSuccess);
    const Encode encode = reinterpret_cast<Encode>(found);

    const size_t count = static_cast<size_t>(HEADS) * LENGTH * DEPTH;
    std::vector<__half> host[3];
    __half *device[3];
    CUtensorMap maps[3];
    unsigned state = 1;
    for (int i = 0; i < 3; i++) {
        for (size_t at = 0; at < count; at++) {
            state = state * 1664525 + 1013904223;
            host[i].push_back(__float2half(static_cast<int>(state >> 16) / 16384.0f - 2));
        }
        CHECK(cudaMalloc(&device[i], count * sizeof(__half)));
        CHECK(cudaMemcpy(device[i], host[i].data(), count * sizeof(__half), cudaMemcpyHostToDevice));
        const cuuint64_t sizes[] = {DEPTH, LENGTH, HEADS}, strides[] = {DEPTH * 2, LENGTH * DEPTH * 2};
        const cuuint32_t box[] = {DEPTH, TILE, 1}, steps[] = {1, 1, 1};
        expect_equal("encode", encode(&maps[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3, device[i], sizes, strides, box, steps,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                     CUDA_SUCCESS);
    }
    float *out;
    CHECK(cudaMalloc(&out, count * sizeof(float)));
    const int bytes = sizeof(Shared) + 1024;
    CHECK(cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    for (bool is_causal : {false, true}) {
        CHECK(cudaMemset(out, 0xff, count * sizeof(float)));
        const dim3 grid((LENGTH + CONSUMERS * TILE - 1) / (CONSUMERS * TILE), HEADS);
        attention<<<grid, 128 * (1 + CONSUMERS), bytes>>>(maps[0], maps[1], maps[2], out, is_causal);
        CHECK(cudaGetLastError());
        std::vector<float> got(count);
        CHECK(cudaMemcpy(got.data(), out, count * sizeof(float), cudaMemcpyDeviceToHost));
        for (int head = 0; head < HEADS; head++)
            for (int row = 0; row < LENGTH; row++) {
                double expected[DEPTH];
                expected_row(host, head, row, is_causal, expected);
                for (int d = 0; d < DEPTH; d++) {
                    const float value = got[(head * LENGTH + row) * DEPTH + d];
                    // The powers are halves: 11 bits, of values up to 2.
                    if (!(std::fabs(value - expected[d]) <= 2e-3))
                        fail("head %d, row %d, column %d: %g, expected %g", head, row, d, value, expected[d]);
                }
            }
    }
    for (__half *pointer : device)
        CHECK(cudaFree(pointer));
    CHECK(cudaFree(out));
    std::printf("flash_attention: %d heads of %d rows, full and causal\n", HEADS, LENGTH);
    return passed();
}
