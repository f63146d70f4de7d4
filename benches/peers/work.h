// Every row's inputs, and what must come out: computed here in the plainest way, apart from all kernels.
// Inputs are small whole numbers wherever that makes every sum exact, so that the order of additions does not matter.
#pragma once

#include "transformer_work.h"
#include "work_tools.h"

namespace bench {

inline Work vecadd()
{
    const Words a = whole(STREAM_N, 1, -100, 100), b = whole(STREAM_N, 2, -100, 100);
    return {{a, b, Words(STREAM_N)}, [a, b](const Arrays &got, int) {
        return exact(got[2], [&](size_t i) { return word(real(a[i]) + real(b[i])); });
    }};
}

inline Work saxpy()
{
    const Words x = whole(STREAM_N, 1, -8, 7), y = whole(STREAM_N, 2, -100, 100);
    return {{x, y}, [x, y](const Arrays &got, int launches) {
        return exact(got[1], [&](size_t i) { return word(real(y[i]) + launches * SAXPY_A * real(x[i])); });
    }};
}

// c = a·b is checked through a vector: c·v must be a·(b·v), in whole numbers; a few elements are summed up outright.
// `b` is a row per k, or a row per column where `columns` says so.
template <typename Element>
std::string product(const Words &a, const Words &b, const Words &c, bool columns, Element element)
{
    const size_t n = GEMM_N;
    const auto at_b = [&](size_t k, size_t j) { return static_cast<int64_t>(element(b, columns ? j * n + k : k * n + j)); };
    Numbers numbers{77};
    std::vector<int64_t> v(n), bv(n);
    for (int64_t &each : v)
        each = numbers.below(1000);
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            bv[k] += at_b(k, j) * v[j];
    for (size_t i = 0; i < n; i++) {
        int64_t want = 0, got = 0, first = 0;
        const size_t column = numbers.below(n);
        for (size_t k = 0; k < n; k++) {
            const int64_t left = static_cast<int64_t>(element(a, i * n + k));
            want += left * bv[k];
            got += static_cast<int64_t>(real(c[i * n + k])) * v[k];
            first += left * at_b(k, column);
        }
        if (want != got || first != static_cast<int64_t>(real(c[i * n + column])))
            return "row " + std::to_string(i) + " of the product is not a·b";
    }
    return "";
}

inline Work sgemm()
{
    const Words a = whole(GEMM_N * GEMM_N, 1, -4, 4), b = whole(GEMM_N * GEMM_N, 2, -4, 4);
    return {{a, b, Words(GEMM_N * GEMM_N)}, [a, b](const Arrays &got, int) {
        return product(a, b, got[2], false, [](const Words &m, size_t i) { return real(m[i]); });
    }};
}

// Halves of whole numbers from -8 to 8; `b` is stored by columns, as mma's .col wants it.
inline Work hgemm()
{
    const auto halves = [](uint32_t seed, std::vector<int> &values) {
        Numbers numbers{seed};
        Words words(GEMM_N * GEMM_N / 2);
        for (uint32_t &each : words) {
            const int low = static_cast<int>(numbers.below(17)) - 8, high = static_cast<int>(numbers.below(17)) - 8;
            values.push_back(low);
            values.push_back(high);
            each = half_of(low) | half_of(high) << 16;
        }
        return words;
    };
    std::vector<int> left, right;
    const Words a = halves(1, left), b = halves(2, right);
    return {{a, b, Words(GEMM_N * GEMM_N)}, [a, left, right](const Arrays &got, int) {
        return product(a, Words(), got[2], true, [&](const Words &m, size_t i) { return m.empty() ? right[i] : left[i]; });
    }};
}

// One sum per block of 256.
inline Work reduce()
{
    const Words in = whole(STREAM_N, 1, -50, 100);
    return {{in, Words(STREAM_N / BLOCK)}, [in](const Arrays &got, int) {
        return exact(got[1], [&](size_t block) {
            float sum = 0;
            for (int i = 0; i < BLOCK; i++)
                sum += real(in[block * BLOCK + i]);
            return word(sum);
        });
    }};
}

inline Work nbody()
{
    Numbers numbers{1};
    const Words in = fill(BODIES * 4, [&] { return numbers.between(0.1f, 1.0f); });
    return {{in, Words(BODIES * 4)}, [in](const Arrays &got, int) {
        const auto at = [&](size_t body, int axis) { return static_cast<double>(real(in[body * 4 + axis])); };
        for (size_t i = 0; i < BODIES; i += 61) {
            double sum[3] = {0, 0, 0}, size = 0;
            for (size_t j = 0; j < BODIES; j++) {
                double d[3], square = SOFTENING;
                for (int axis = 0; axis < 3; axis++) {
                    d[axis] = at(j, axis) - at(i, axis);
                    square += d[axis] * d[axis];
                }
                const double pull = at(j, 3) / (square * std::sqrt(square));
                for (int axis = 0; axis < 3; axis++)
                    sum[axis] += d[axis] * pull;
                size += pull * std::sqrt(square);
            }
            for (int axis = 0; axis < 3; axis++) {
                const std::string wrong = near("body", i, real(got[1][i * 4 + axis]), sum[axis], 1e-5 * size);
                if (!wrong.empty())
                    return wrong;
            }
        }
        return std::string();
    }};
}

inline Work black_scholes()
{
    Numbers numbers{1};
    const Words price = fill(OPTIONS, [&] { return numbers.between(5, 30); });
    const Words strike = fill(OPTIONS, [&] { return numbers.between(1, 100); });
    const Words years = fill(OPTIONS, [&] { return numbers.between(0.25f, 10); });
    return {{price, strike, years, Words(OPTIONS), Words(OPTIONS)}, [=](const Arrays &got, int) {
        const auto below = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
        for (size_t i = 0; i < OPTIONS; i += 101) {
            const double s = real(price[i]), x = real(strike[i]), t = real(years[i]);
            const double spread = VOLATILITY * std::sqrt(t);
            const double d1 = (std::log(s / x) + (RISKFREE + 0.5 * VOLATILITY * VOLATILITY) * t) / spread;
            const double now = x * std::exp(-RISKFREE * t);
            const double call = s * below(d1) - now * below(d1 - spread);
            std::string wrong = near("call", i, real(got[3][i]), call, 1e-4);
            if (wrong.empty())
                wrong = near("put", i, real(got[4][i]), call - s + now, 1e-4);
            if (!wrong.empty())
                return wrong;
        }
        return std::string();
    }};
}

// The border is left as it is.
inline Work stencil()
{
    const Words in = whole(GRID_N * GRID_N, 1, -100, 100);
    return {{in, Words(GRID_N * GRID_N)}, [in](const Arrays &got, int) {
        return exact(got[1], [&](size_t i) {
            const size_t n = GRID_N, x = i % n, y = i / n;
            if (x == 0 || y == 0 || x == n - 1 || y == n - 1)
                return 0u;
            const float around = real(in[i - 1]) + real(in[i + 1]) + real(in[i - n]) + real(in[i + n]);
            return word(real(in[i]) + 0.25f * (around - 4 * real(in[i])));
        });
    }};
}

inline Work histogram()
{
    const Words in = random_words(HISTOGRAM_BYTES / 4, 1);
    return {{in, Words(256)}, [in](const Arrays &got, int) {
        Words bins(256);
        for (const uint32_t each : in)
            for (int shift = 0; shift < 32; shift += 8)
                bins[each >> shift & 255]++;
        return exact(got[1], [&](size_t i) { return bins[i]; });
    }};
}

// A point on the edge may be in or out by one rounding, and compilers fuse differently: one in a hundred may differ.
inline Work mandelbrot()
{
    return {{Words(MANDELBROT_N * MANDELBROT_N)}, [](const Arrays &got, int) {
        size_t differ = 0;
        for (int i = 0; i < MANDELBROT_N * MANDELBROT_N; i++) {
            const float cr = -2.0f + 3.0f / MANDELBROT_N * (i % MANDELBROT_N);
            const float ci = -1.5f + 3.0f / MANDELBROT_N * (i / MANDELBROT_N);
            float zr = 0, zi = 0;
            uint32_t count = 0;
            while (count < MANDELBROT_LIMIT && zr * zr + zi * zi <= 4.0f) {
                const float next = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci;
                zr = next;
                count++;
            }
            differ += count != got[0][i];
        }
        return differ <= got[0].size() / 100 ? std::string() : std::to_string(differ) + " points differ";
    }};
}

inline Work transpose()
{
    const Words in = whole(GRID_N * GRID_N, 1, -100000, 100000);
    return {{in, Words(GRID_N * GRID_N)}, [in](const Arrays &got, int) {
        return exact(got[1], [&](size_t i) { return in[i % GRID_N * GRID_N + i / GRID_N]; });
    }};
}

// Inclusive sums. The third array is the tiles' states, then the ticket.
inline Work scan()
{
    Numbers numbers{1};
    Words in(STREAM_N);
    for (uint32_t &each : in)
        each = numbers.below(16);
    return {{in, Words(STREAM_N), Words(SCAN_TILES + 1)}, [in](const Arrays &got, int) {
        uint32_t sum = 0;
        return exact(got[1], [&](size_t i) { return sum += in[i]; });
    }};
}

inline Work sort()
{
    Numbers numbers{1};
    Words in(SORT_N);
    for (uint32_t &each : in)
        each = numbers.next() << 16 ^ numbers.next();
    return {{in, Words(SORT_N)}, [in](const Arrays &got, int) {
        Words sorted = in;
        for (size_t at = 0; at < SORT_N; at += SORT_CHUNK)
            std::sort(sorted.begin() + at, sorted.begin() + at + SORT_CHUNK);
        return exact(got[1], [&](size_t i) { return sorted[i]; });
    }};
}

// Rows of 0 to 15 entries within a thousand columns of the diagonal: starts, columns, values, x, y.
inline Work spmv()
{
    Numbers numbers{1};
    Words starts{0}, columns;
    for (int row = 0; row < SPMV_ROWS; row++) {
        const int count = numbers.below(SPMV_MOST + 1);
        for (int i = 0; i < count; i++)
            columns.push_back(std::clamp(row + static_cast<int>(numbers.below(2001)) - 1000, 0, SPMV_ROWS - 1));
        starts.push_back(columns.size());
    }
    const Words values = whole(columns.size(), 2, -9, 9), x = whole(SPMV_ROWS, 3, -9, 9);
    return {{starts, columns, values, x, Words(SPMV_ROWS)}, [=](const Arrays &got, int) {
        return exact(got[4], [&](size_t row) {
            float sum = 0;
            for (uint32_t i = starts[row]; i < starts[row + 1]; i++)
                sum += real(values[i]) * real(x[columns[i]]);
            return word(sum);
        });
    }};
}

// Element at a place of an image or volume, the nearest one where there is none.
inline size_t held(int at, int n) { return std::clamp(at, 0, n - 1); }

// The linear filter of the CUDA C++ Programming Guide, along one axis: where it begins and the second element's weight.
inline int foot(float at, double &weight)
{
    weight = at - 0.5 - std::floor(at - 0.5);
    return static_cast<int>(std::floor(at - 0.5));
}

inline Work tex_bilinear()
{
    const Words in = whole(IMAGE_N * IMAGE_N, 1, -100, 100);
    return {{in, Words(IMAGE_N * IMAGE_N)}, [in](const Arrays &got, int) {
        return exact(got[1], [&](size_t i) {
            double sum = 0, a, b;
            const int x = foot(IMAGE_X(int(i % IMAGE_N), int(i / IMAGE_N)), a), y = foot(IMAGE_Y(int(i % IMAGE_N), int(i / IMAGE_N)), b);
            for (int corner = 0; corner < 4; corner++) {
                const int dx = corner & 1, dy = corner >> 1;
                sum += (dx ? a : 1 - a) * (dy ? b : 1 - b) * real(in[held(y + dy, IMAGE_N) * IMAGE_N + held(x + dx, IMAGE_N)]);
            }
            return word(static_cast<float>(sum));
        }, 7);
    }};
}

inline Work tex_point()
{
    const Words in = random_words(IMAGE_N * IMAGE_N, 1);
    return {{in, Words(IMAGE_N * IMAGE_N)}, [in](const Arrays &got, int) {
        return exact(got[1], [&](size_t i) {
            const int x = std::floor(IMAGE_X(int(i % IMAGE_N), int(i / IMAGE_N))), y = std::floor(IMAGE_Y(int(i % IMAGE_N), int(i / IMAGE_N)));
            return __builtin_bswap32(in[held(y, IMAGE_N) * IMAGE_N + held(x, IMAGE_N)]);
        }, 7);
    }};
}

// Sample number i of the volume lies at ((x + 1/4) / 256, (y + 1/4) / 256, (z + 1/4) / 64).
inline Work tex_trilinear()
{
    const Words in = whole(VOLUME_N * VOLUME_N * VOLUME_N, 1, -100, 100);
    return {{in, Words(VOLUME_SAMPLES)}, [in](const Arrays &got, int) {
        return exact(got[1], [&](size_t i) {
            double sum = 0, a, b, c;
            const int x = foot((i % 256 + 0.25f) / 256 * VOLUME_N, a), y = foot((i / 256 % 256 + 0.25f) / 256 * VOLUME_N, b);
            const int z = foot((i / 65536 + 0.25f) / 64 * VOLUME_N, c);
            for (int corner = 0; corner < 8; corner++) {
                const int dx = corner & 1, dy = corner >> 1 & 1, dz = corner >> 2;
                const size_t row = held(z + dz, VOLUME_N) * VOLUME_N + held(y + dy, VOLUME_N);
                sum += (dx ? a : 1 - a) * (dy ? b : 1 - b) * (dz ? c : 1 - c) * real(in[row * VOLUME_N + held(x + dx, VOLUME_N)]);
            }
            return word(static_cast<float>(sum));
        }, 7);
    }};
}

// One word for each message, or two, the low one first. All together are told by their exclusive or and their sum, which are those of
// Python's hashlib over the same messages.
inline Work hashes(int n, int words, uint64_t all, uint64_t sum)
{
    return {{Words(n * words)}, [=](const Arrays &got, int) {
        uint64_t got_all = 0, got_sum = 0;
        for (int i = 0; i < n; i++) {
            const uint64_t hash = words == 1 ? got[0][i] : got[0][2 * i] | uint64_t(got[0][2 * i + 1]) << 32;
            got_all ^= hash;
            got_sum += hash;
        }
        if (words == 1)
            got_sum = static_cast<uint32_t>(got_sum);
        return got_all == all && got_sum == sum ? std::string() : std::string("the hashes are not those of the messages");
    }};
}

// Halves by rows, a vector of floats: sums of whole numbers.
inline Work matvec_half()
{
    Numbers numbers{1};
    std::vector<int> values;
    Words matrix(MATVEC_N * MATVEC_N / 2);
    for (uint32_t &each : matrix) {
        const int low = static_cast<int>(numbers.below(17)) - 8, high = static_cast<int>(numbers.below(17)) - 8;
        values.push_back(low);
        values.push_back(high);
        each = half_of(low) | half_of(high) << 16;
    }
    const Words x = whole(MATVEC_N, 2, -9, 9);
    return {{matrix, x, Words(MATVEC_N)}, [values, x](const Arrays &got, int) {
        return exact(got[2], [&](size_t row) {
            float sum = 0;
            for (size_t i = 0; i < MATVEC_N; i++)
                sum += values[row * MATVEC_N + i] * real(x[i]);
            return word(sum);
        });
    }};
}

inline Work segmented_sort()
{
    Numbers numbers{1};
    Words starts(1, 0);
    for (int i = 0; i < SEGMENTS; i++)
        starts.push_back(starts.back() + numbers.below((i % 8 == 7 ? SEGMENT_LONG : SEGMENT_SHORT) + 1));
    const Words in = random_words(starts.back(), 2);
    return {{in, starts, Words(in.size())}, [=](const Arrays &got, int) {
        Words sorted = in;
        for (int i = 0; i < SEGMENTS; i++)
            std::sort(sorted.begin() + starts[i], sorted.begin() + starts[i + 1]);
        return exact(got[2], [&](size_t i) { return sorted[i]; });
    }};
}

// Some keys are equal: their values stay in order.
inline Work sort_pairs()
{
    Words keys = random_words(PAIRS_N, 1), values(PAIRS_N);
    for (size_t i = 0; i < keys.size(); i++) {
        values[i] = i;
        if (i % 16 == 15)
            keys[i] = keys[i / 2];
    }
    return {{keys, values, Words(PAIRS_N), Words(PAIRS_N)}, [=](const Arrays &got, int) {
        Words order = values;
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
        const std::string wrong = exact(got[3], [&](size_t i) { return order[i]; });
        return wrong.empty() ? exact(got[2], [&](size_t i) { return keys[order[i]]; }) : wrong;
    }};
}

// Multiples of 1/16, a few of them outside of all bins.
inline Work histogram_even()
{
    Numbers numbers{1};
    const Words in = fill(STREAM_N, [&] { return (static_cast<int>(numbers.below(16800)) - 200) / 16.0f; });
    return {{in, Words(EVEN_BINS)}, [in](const Arrays &got, int) {
        Words bins(EVEN_BINS);
        for (const uint32_t each : in)
            if (real(each) >= 0 && real(each) < EVEN_UPPER)
                bins[static_cast<int>(real(each)) / static_cast<int>(EVEN_UPPER / EVEN_BINS)]++;
        return exact(got[1], [&](size_t i) { return bins[i]; });
    }};
}

// In any order.
inline Work topk()
{
    Numbers numbers{1};
    const Words in = fill(STREAM_N, [&] { return numbers.between(-1000, 1000); });
    return {{in, Words(TOP_K)}, [in](const Arrays &got, int) {
        const auto larger = [](uint32_t a, uint32_t b) { return real(a) > real(b); };
        Words wanted = in, found = got[1];
        std::partial_sort(wanted.begin(), wanted.begin() + TOP_K, wanted.end(), larger);
        std::sort(found.begin(), found.end(), larger);
        return exact(found, [&](size_t i) { return wanted[i]; });
    }};
}

inline Work make_work(const std::string &row)
{
    if (row == "vecadd") return vecadd();
    if (row == "saxpy") return saxpy();
    if (row == "sgemm_tiled" || row == "sgemm_blocked") return sgemm();
    if (row == "reduce_barrier" || row == "reduce_shuffle") return reduce();
    if (row == "nbody") return nbody();
    if (row == "black_scholes") return black_scholes();
    if (row == "stencil") return stencil();
    if (row == "histogram") return histogram();
    if (row == "mandelbrot") return mandelbrot();
    if (row == "transpose") return transpose();
    if (row == "scan") return scan();
    if (row == "sort") return sort();
    if (row == "spmv") return spmv();
    if (row == "hgemm_mma") return hgemm();
    if (row == "tex_bilinear") return tex_bilinear();
    if (row == "tex_point") return tex_point();
    if (row == "tex_trilinear") return tex_trilinear();
    if (row == "md5") return hashes(MD5_N, 1, 0xf2c68e2f, 0xb4109b19);
    if (row == "sha256") return hashes(SHA256_N, 1, 0x37744fdf, 0xea359eaf);
    if (row == "sha512") return hashes(SHA512_N, 2, 0xab0e5d8f246723da, 0x2fc98a2900148b9a);
    if (row == "matvec_half") return matvec_half();
    if (row == "matvec_q4") return matvec_q4();
    if (row == "matvec_q4k") return matvec_q4k();
    if (row == "softmax") return softmax();
    if (row == "attention") return attention();
    if (row == "segmented_sort") return segmented_sort();
    if (row == "sort_pairs") return sort_pairs();
    if (row == "histogram_even") return histogram_even();
    if (row == "topk") return topk();
    if (row == "empty") return {{}, [](const Arrays &, int) { return std::string(); }};
    return {};
}

}  // namespace bench
