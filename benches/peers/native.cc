// The rows in native code, called directly.
#include "native.h"

#include <sys/mman.h>

#include <cstring>

#include "bench.h"

namespace {

struct Native {
    struct Handle {
        void *at;
        operator float *() const { return static_cast<float *>(at); }
        operator uint32_t *() const { return static_cast<uint32_t *>(at); }
        operator uint64_t *() const { return static_cast<uint64_t *>(at); }
        operator uint8_t *() const { return static_cast<uint8_t *>(at); }
        operator int *() const { return static_cast<int *>(at); }
        operator _Float16 *() const { return static_cast<_Float16 *>(at); }
    };

    const char *refuses(const std::string &) { return nullptr; }

    Handle put(const std::vector<uint32_t> &words)
    {
        // Large pages, as our device has them: code is compared, not how the kernel hands out memory.
        const size_t page = 2 << 20, bytes = (words.size() * 4 + page - 1) / page * page;
        Handle made{std::aligned_alloc(page, bytes)};
        madvise(made.at, bytes, MADV_HUGEPAGE);
        std::memcpy(made.at, words.data(), words.size() * 4);
        return made;
    }

    void get(Handle from, std::vector<uint32_t> &words) { std::memcpy(words.data(), from.at, words.size() * 4); }

    void finish() {}

    void launch(const std::string &row, const std::vector<Handle> &a)
    {
        if (row == "vecadd") native_vecadd(a[0], a[1], a[2], STREAM_N);
        else if (row == "saxpy") native_saxpy(SAXPY_A, a[0], a[1], STREAM_N);
        else if (row == "sgemm_tiled" || row == "sgemm_blocked") native_sgemm(a[0], a[1], a[2], GEMM_N);
        else if (row == "reduce_barrier" || row == "reduce_shuffle") native_reduce(a[0], a[1], STREAM_N);
        else if (row == "nbody") native_nbody(a[0], a[1], BODIES);
        else if (row == "black_scholes") native_black_scholes(a[0], a[1], a[2], a[3], a[4], OPTIONS);
        else if (row == "stencil") native_stencil(a[0], a[1], GRID_N);
        else if (row == "histogram") native_histogram(a[0], a[1], HISTOGRAM_BYTES);
        else if (row == "mandelbrot") native_mandelbrot(a[0], MANDELBROT_N, MANDELBROT_LIMIT);
        else if (row == "transpose") native_transpose(a[0], a[1], GRID_N);
        else if (row == "scan") native_scan(a[0], a[1], STREAM_N);
        else if (row == "sort") native_sort(a[0], a[1], SORT_N);
        else if (row == "spmv") native_spmv(a[0], a[1], a[2], a[3], a[4], SPMV_ROWS);
        else if (row == "hgemm_mma") native_hgemm(a[0], a[1], a[2], GEMM_N);
        else if (row == "tex_bilinear") native_tex_bilinear(a[0], a[1], IMAGE_N);
        else if (row == "tex_point") native_tex_point(a[0], a[1], IMAGE_N);
        else if (row == "tex_trilinear") native_tex_trilinear(a[0], a[1], VOLUME_SAMPLES);
        else if (row == "md5") native_md5(a[0], MD5_N);
        else if (row == "sha256") native_sha256(a[0], SHA256_N);
        else if (row == "sha512") native_sha512(a[0], SHA512_N);
        else if (row == "matvec_half") native_matvec_half(a[0], a[1], a[2], MATVEC_N);
        else if (row == "matvec_q4") native_matvec_q4(a[0].at, a[1].at, a[2], MATVEC_N);
        else if (row == "matvec_q4k") native_matvec_q4k(a[0].at, a[1].at, a[2], MATVEC_N);
        else if (row == "softmax") native_softmax(a[0], a[1], SOFTMAX_ROWS, SOFTMAX_COLUMNS, SOFTMAX_SCALE);
        else if (row == "attention") native_attention(a[0], a[1], a[2], a[3]);
        else if (row == "segmented_sort") native_segmented_sort(a[0], a[2], a[1], SEGMENTS);
        else if (row == "sort_pairs") native_sort_pairs(a[0], a[1], a[2], a[3], PAIRS_N);
        else if (row == "histogram_even") native_histogram_even(a[0], a[1], STREAM_N);
        else if (row == "topk") native_topk(a[0], a[1], STREAM_N, TOP_K);
        else native_empty();
    }
};

}  // namespace

int main(int argc, char **argv)
{
    Native native;
    return bench::run(native, argc, argv);
}
