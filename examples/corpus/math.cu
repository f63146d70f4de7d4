// libdevice, as nvcc puts it into PTX: the functions of <math.h> on a sweep, against the host's libm within the bounds
// that the CUDA C++ Programming Guide states for the device's (plus 1 ulp for the host's own error). -use_fast_math
// replaces some by their intrinsics; those are then held to absolute bounds.
#include <cmath>
#include <limits>

#include "example.h"

const int N = 1 << 12;

template <typename T> struct Functions;

#define UNARY(X) X(sin) X(cos) X(tan) X(exp) X(exp2) X(log) X(log2) X(log10) X(log1p) X(expm1) X(sqrt) X(cbrt) X(tanh) X(sinh) X(cosh) X(atan) X(asin) X(acos) X(erf) X(erfc) X(tgamma) X(lgamma) X(rint) X(floor) X(ceil) X(trunc) X(round)
#define BINARY(X) X(pow) X(atan2) X(fmod) X(hypot) X(fdim) X(fmax) X(fmin) X(copysign) X(remainder) X(nextafter)

enum Name {
#define NAME(f) F_##f,
    UNARY(NAME) BINARY(NAME) COUNT
#undef NAME
};

static const char *const names[COUNT] = {
#define TEXT(f) #f,
    UNARY(TEXT) BINARY(TEXT)
#undef TEXT
};

template <typename T>
__global__ void apply(const T *x, const T *y, T *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
#define ONE(f) out[F_##f * n + i] = f(x[i]);
    UNARY(ONE)
#undef ONE
#define TWO(f) out[F_##f * n + i] = f(x[i], y[i]);
    BINARY(TWO)
#undef TWO
}

template <typename T>
T host(int function, T x, T y)
{
    switch (function) {
#define ONE(f) case F_##f: return std::f(x);
        UNARY(ONE)
#undef ONE
#define TWO(f) case F_##f: return std::f(x, y);
        BINARY(TWO)
#undef TWO
    }
    return 0;
}

// Functions whose result is exact, whatever the options.
static bool is_exact(int f)
{
    return f == F_rint || f == F_floor || f == F_ceil || f == F_trunc || f == F_round || f == F_fmod || f == F_remainder || f == F_fmax || f == F_fmin || f == F_copysign || f == F_nextafter;
}

template <typename T>
void sweep(T ulp_of_one)
{
    std::vector<T> x(N), y(N), out(size_t(COUNT) * N);
    Numbers numbers{7};
    for (int i = 0; i < N; i++) {
        const T unit = T(numbers.next()) / T(1 << 24);
        x[i] = i % 4 == 0 ? unit : i % 4 == 1 ? unit * 20 - 10 : i % 4 == 2 ? unit * 2 - 1 : unit * 100;
        y[i] = T(numbers.next()) / T(1 << 24) * 8 - 4;
    }
    T *device_x, *device_y, *device_out;
    CHECK(cudaMalloc(&device_x, N * sizeof(T)));
    CHECK(cudaMalloc(&device_y, N * sizeof(T)));
    CHECK(cudaMalloc(&device_out, out.size() * sizeof(T)));
    CHECK(cudaMemcpy(device_x, x.data(), N * sizeof(T), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_y, y.data(), N * sizeof(T), cudaMemcpyHostToDevice));
    apply<T><<<N / 128, 128>>>(device_x, device_y, device_out, N);
    CHECK(cudaMemcpy(out.data(), device_out, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
    for (int f = 0; f < COUNT; f++)
        for (int i = 0; i < N; i++) {
            const T got = out[size_t(f) * N + i], wanted = host<T>(f, x[i], y[i]);
            if (std::isnan(wanted) ? std::isnan(got) : got == wanted)
                continue;
            // The guide's largest bound of these functions is 11 ulp (tgamma), and lgamma's 6 beside its zeros.
            T bound = std::fabs(wanted) * ulp_of_one * 12 + std::numeric_limits<T>::denorm_min() * 2;
#ifdef FAST_MATH
            // Intrinsics: 2^-21.41 of sin and cos within [-π, π] only, and powers lose what their exponent multiplies.
            if (sizeof(T) == 4) {
                bound = std::fmax(T(1e-5), std::fabs(wanted) * T(2e-4));
                if (f == F_tan || f == F_tgamma || (f <= F_tan && std::fabs(x[i]) > 10))
                    continue;
            }
#endif
            if (f == F_lgamma)
                bound = std::fmax(bound, ulp_of_one * 8);
            if (is_exact(f) || !(std::fabs(got - wanted) <= bound))
                fail("%s%s(%.9g, %.9g) is %.17g, expected %.17g", names[f], sizeof(T) == 4 ? "f" : "", double(x[i]), double(y[i]), double(got), double(wanted));
        }
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));
    CHECK(cudaFree(device_out));
}

int main()
{
    sweep<float>(1.1920929e-7f);
    sweep<double>(2.220446049250313e-16);
    return passed();
}
