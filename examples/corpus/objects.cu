// C++ on the device: virtual functions, function pointers, recursion, templates, lambdas, placement new, local arrays
// with dynamic indices, switch tables, structures by value.
#include <new>

#include "example.h"

struct Shape {
    __device__ virtual int area() const = 0;
    __device__ virtual int twice(int depth) const { return depth ? twice(depth - 1) + area() : area(); }
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int side) : side(side) {}
    __device__ int area() const override { return side * side; }
};
struct Box : Square {
    int height;
    __device__ Box(int side, int height) : Square(side), height(height) {}
    __device__ int area() const override { return 2 * Square::area() + 4 * side * height; }
    // Every lane meets the others inside a function that the compiler cannot inline.
    __device__ int twice(int depth) const override
    {
        __syncwarp();
        return depth ? 1 + twice(depth - 1) : __shfl_sync(0xffffffffu, side, 3);
    }
};

__device__ int plus(int a, int b) { return a + b; }
__device__ int times(int a, int b) { return a * b; }
__device__ int minus(int a, int b) { return a - b; }
typedef int (*Binary)(int, int);
__device__ Binary table[3] = {plus, times, minus};

struct Pair {
    int a, b, c;
};

__device__ __noinline__ Pair turned(Pair p) { return Pair{p.b, p.c, p.a}; }

__device__ int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

template <typename F> __device__ int fold(int n, F f)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum = f(sum, i);
    return sum;
}

__global__ void objects(int *out)
{
    const int i = threadIdx.x;
    alignas(16) char room[sizeof(Box)];
    Shape *shape = i < 32 ? static_cast<Shape *>(new (room) Square(i)) : new (room) Box(i, 2);
    out[i * 8 + 0] = shape->area();
    out[i * 8 + 1] = shape->twice(3);
    shape->~Shape();
    out[i * 8 + 2] = table[i % 3](i, 5);
    const Pair p = turned(turned(Pair{i, i + 1, i + 2}));
    out[i * 8 + 3] = p.a * 10000 + p.b * 100 + p.c;
    out[i * 8 + 4] = ackermann(2, i % 4);
    out[i * 8 + 5] = fold(i, [=](int sum, int k) { return sum + k * i; });
    int local[16];
    for (int k = 0; k < 16; k++)
        local[k] = (k * 7 + i) % 16;
    out[i * 8 + 6] = local[local[i % 16]];
    int switched = 0;
    switch (i % 9) {
    case 0: switched = 11; break;
    case 1: switched = i * 3;
    case 2: switched += 5; break;
    case 3: switched = -i; break;
    case 4: switched = i << 4; break;
    case 5: switched = i ^ 0x55; break;
    case 7: return;
    default: switched = 99;
    }
    out[i * 8 + 7] = switched;
}

static int host_ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? host_ackermann(m - 1, 1) : host_ackermann(m - 1, host_ackermann(m, n - 1));
}

int main()
{
    const int threads = 64;
    int *device;
    std::vector<int> got(threads * 8), wanted(threads * 8, -1);
    CHECK(cudaMalloc(&device, got.size() * sizeof(int)));
    CHECK(cudaMemset(device, 0xff, got.size() * sizeof(int)));
    objects<<<1, threads>>>(device);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), device, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++) {
        const bool box = i >= 32;
        const int area = box ? 2 * i * i + 8 * i : i * i;
        wanted[i * 8 + 0] = area;
        wanted[i * 8 + 1] = box ? 3 + 35 : 4 * area;
        wanted[i * 8 + 2] = i % 3 == 0 ? i + 5 : i % 3 == 1 ? i * 5 : i - 5;
        wanted[i * 8 + 3] = (i + 2) * 10000 + i * 100 + i + 1;
        wanted[i * 8 + 4] = host_ackermann(2, i % 4);
        wanted[i * 8 + 5] = i * (i * (i - 1) / 2);
        wanted[i * 8 + 6] = (((i % 16) * 7 + i) % 16 * 7 + i) % 16;
        const int cases[9] = {11, i * 3 + 5, 5, -i, i << 4, i ^ 0x55, 99, -1, 99};
        wanted[i * 8 + 7] = cases[i % 9];
    }
    expect_equal("objects", got, wanted);
    return passed();
}
