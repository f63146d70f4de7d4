// The rows on a CUDA device, by the runtime API. An ordinary program: nothing here knows whose device it is.
#include "bench.h"
#include "cub.h"
#include "kernels.cuh"
#include "transformer.cuh"

namespace {

void must(cudaError_t error, const char *call)
{
    if (error != cudaSuccess)
        bench::fail(std::string(call) + ": " + cudaGetErrorName(error));
}
#define MUST(call) must((call), #call)

struct Cuda {
    struct Handle {
        void *at;
        size_t words;
        operator float *() const { return static_cast<float *>(at); }
        operator uint32_t *() const { return static_cast<uint32_t *>(at); }
        operator int *() const { return static_cast<int *>(at); }
        operator float4 *() const { return static_cast<float4 *>(at); }
        operator uchar4 *() const { return static_cast<uchar4 *>(at); }
        operator uint64_t *() const { return static_cast<uint64_t *>(at); }
        operator half2 *() const { return static_cast<half2 *>(at); }
        operator half *() const { return static_cast<half *>(at); }
        operator WeightsQ4 *() const { return static_cast<WeightsQ4 *>(at); }
        operator WeightsQ4K *() const { return static_cast<WeightsQ4K *>(at); }
        operator ValuesQ8 *() const { return static_cast<ValuesQ8 *>(at); }
        operator float2 *() const { return static_cast<float2 *>(at); }
        operator uint4 *() const { return static_cast<uint4 *>(at); }
        void clear() const { MUST(cudaMemsetAsync(at, 0, words * 4)); }
    };

    const char *refuses(const std::string &) { return nullptr; }

    Handle put(const std::vector<uint32_t> &words)
    {
        Handle made{nullptr, words.size()};
        MUST(cudaMalloc(&made.at, words.size() * 4));
        MUST(cudaMemcpy(made.at, words.data(), words.size() * 4, cudaMemcpyHostToDevice));
        return made;
    }

    void get(Handle from, std::vector<uint32_t> &words)
    {
        MUST(cudaMemcpy(words.data(), from.at, words.size() * 4, cudaMemcpyDeviceToHost));
    }

    cudaArray_t array(const Handle &from, const cudaChannelFormatDesc &element, const cudaExtent &extent)
    {
        cudaArray_t made;
        MUST(cudaMalloc3DArray(&made, &element, extent));
        cudaMemcpy3DParms copy = {};
        copy.srcPtr = make_cudaPitchedPtr(from.at, extent.width * 4, extent.width, extent.height);
        copy.dstArray = made;
        copy.extent = make_cudaExtent(extent.width, extent.height, extent.depth ? extent.depth : 1);
        copy.kind = cudaMemcpyDeviceToDevice;
        MUST(cudaMemcpy3D(&copy));
        return made;
    }

    // The texture of a row's first array, made at its first launch: arrays for what is filtered, pitched memory for the points.
    cudaTextureObject_t texture(const std::string &row, const Handle &from)
    {
        static cudaTextureObject_t made = 0;
        if (made)
            return made;
        cudaResourceDesc resource = {};
        cudaTextureDesc state = {};
        state.addressMode[0] = state.addressMode[1] = state.addressMode[2] = cudaAddressModeClamp;
        state.filterMode = row == "tex_point" ? cudaFilterModePoint : cudaFilterModeLinear;
        const cudaChannelFormatDesc element = row == "tex_point" ? cudaCreateChannelDesc<uchar4>() : cudaCreateChannelDesc<float>();
        state.normalizedCoords = row == "tex_trilinear";
        if (row == "tex_point") {
            resource.resType = cudaResourceTypePitch2D;
            resource.res.pitch2D = {from.at, element, IMAGE_N, IMAGE_N, IMAGE_N * 4};
        } else {
            const cudaExtent volume = make_cudaExtent(VOLUME_N, VOLUME_N, VOLUME_N), image = make_cudaExtent(IMAGE_N, IMAGE_N, 0);
            resource.resType = cudaResourceTypeArray;
            resource.res.array.array = array(from, element, row == "tex_trilinear" ? volume : image);
        }
        MUST(cudaCreateTextureObject(&made, &resource, &state, nullptr));
        return made;
    }

    void finish() { MUST(cudaDeviceSynchronize()); }

    void launch(const std::string &row, const std::vector<Handle> &a)
    {
        const dim3 tile(16, 16), flat(32, 8), warps(32, MATVEC_WARPS);
        const dim3 image(IMAGE_N / 32, IMAGE_N / 8);
        const dim3 square(GRID_N / 32, GRID_N / 8);
        if (row == "vecadd") vecadd<<<STREAM_N / BLOCK, BLOCK>>>(a[0], a[1], a[2], STREAM_N);
        else if (row == "saxpy") saxpy<<<STREAM_N / BLOCK, BLOCK>>>(SAXPY_A, a[0], a[1], STREAM_N);
        else if (row == "sgemm_tiled") sgemm_tiled<<<dim3(GEMM_N / 16, GEMM_N / 16), tile>>>(a[0], a[1], a[2], GEMM_N);
        else if (row == "sgemm_blocked") sgemm_blocked<<<dim3(GEMM_N / 64, GEMM_N / 64), tile>>>(a[0], a[1], a[2], GEMM_N);
        else if (row == "reduce_barrier") reduce_barrier<<<STREAM_N / BLOCK, BLOCK>>>(a[0], a[1], STREAM_N);
        else if (row == "reduce_shuffle") reduce_shuffle<<<STREAM_N / BLOCK, BLOCK>>>(a[0], a[1], STREAM_N);
        else if (row == "nbody") nbody<<<BODIES / BLOCK, BLOCK>>>(a[0], a[1], BODIES);
        else if (row == "black_scholes") black_scholes<<<OPTIONS / BLOCK, BLOCK>>>(a[0], a[1], a[2], a[3], a[4], OPTIONS);
        else if (row == "stencil") stencil<<<square, flat>>>(a[0], a[1], GRID_N);
        else if (row == "histogram") {
            a[1].clear();
            histogram<<<HISTOGRAM_BLOCKS, 256>>>(a[0], a[1], HISTOGRAM_BYTES / 4);
        }
        else if (row == "mandelbrot") mandelbrot<<<dim3(MANDELBROT_N / 16, MANDELBROT_N / 16), tile>>>(a[0], MANDELBROT_N, MANDELBROT_LIMIT);
        else if (row == "transpose") transpose<<<dim3(GRID_N / 32, GRID_N / 32), flat>>>(a[0], a[1], GRID_N);
        else if (row == "scan") {
            a[2].clear();
            scan<<<SCAN_TILES, BLOCK>>>(a[0], a[1], a[2]);
        }
        else if (row == "sort") sort<<<SORT_N / SORT_CHUNK, SORT_CHUNK / 2>>>(a[0], a[1]);
        else if (row == "spmv") spmv<<<SPMV_ROWS / BLOCK, BLOCK>>>(a[0], a[1], a[2], a[3], a[4], SPMV_ROWS);
        else if (row == "hgemm_mma") hgemm_mma<<<dim3(GEMM_N / 64, GEMM_N / 64), 128>>>(a[0], a[1], a[2], GEMM_N);
        else if (row == "tex_bilinear") tex_bilinear<<<image, flat>>>(texture(row, a[0]), a[1], IMAGE_N);
        else if (row == "tex_point") tex_point<<<image, flat>>>(texture(row, a[0]), a[1], IMAGE_N);
        else if (row == "tex_trilinear") tex_trilinear<<<VOLUME_SAMPLES / BLOCK, BLOCK>>>(texture(row, a[0]), a[1], VOLUME_SAMPLES);
        else if (row == "md5") md5<<<MD5_N / BLOCK, BLOCK>>>(a[0], MD5_N);
        else if (row == "sha256") sha256<<<SHA256_N / BLOCK, BLOCK>>>(a[0], SHA256_N);
        else if (row == "sha512") sha512<<<SHA512_N / BLOCK, BLOCK>>>(a[0], SHA512_N);
        else if (row == "matvec_half") matvec_half<<<MATVEC_N, BLOCK>>>(a[0], a[1], a[2], MATVEC_N / 2);
        else if (row == "matvec_q4") matvec_q4<<<MATVEC_N, warps>>>(a[0], a[1], a[2], MATVEC_N / 32);
        else if (row == "matvec_q4k") matvec_q4k<<<MATVEC_N, warps>>>(a[0], a[1], a[2], MATVEC_N / 256);
        else if (row == "softmax") softmax<<<SOFTMAX_ROWS, BLOCK, SOFTMAX_COLUMNS * 4>>>(a[0], a[1], SOFTMAX_COLUMNS, SOFTMAX_SCALE);
        else if (row == "attention")
            attention<<<ATTENTION_HEADS, ATTENTION_WIDTH>>>(a[0], a[1], a[2], a[3], ATTENTION_KEYS, ATTENTION_SCALE);
        else if (row == "segmented_sort") MUST(cub_segmented_sort(a[0], a[2], static_cast<int>(a[0].words), a[1], SEGMENTS));
        else if (row == "sort_pairs") MUST(cub_sort_pairs(a[0], a[1], a[2], a[3], PAIRS_N));
        else if (row == "histogram_even") MUST(cub_histogram_even(a[0], a[1], STREAM_N));
        else if (row == "topk") MUST(cub_topk(a[0], a[1], STREAM_N, TOP_K));
        else empty<<<1, 32>>>();
        MUST(cudaGetLastError());
    }
};

}  // namespace

int main(int argc, char **argv)
{
    Cuda cuda;
    return bench::run(cuda, argc, argv);
}
