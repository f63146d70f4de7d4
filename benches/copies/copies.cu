// Copies of every kind and launches, each beside what it is at best: memcpy (or memset) of the same bytes by one thread.
// A line for each row: name, milliseconds on the clock and of CPU, the same of memcpy. What was copied is compared.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <cuda_runtime.h>

#include "../cpu_time.h"

static void check(cudaError_t error, int line)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

static double wall_milliseconds()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec * 1e-6;
}

struct Took {
    double wall, cpu;
};

/// Memory of the host that begins with a page: how fast two addresses are for memcpy depends on their last bits.
template <class T> struct Pages {
    T *at;
    size_t n;
    explicit Pages(size_t n) : at((T *)aligned_alloc(4096, (n * sizeof(T) + 4095) / 4096 * 4096)), n(n)
    {
        memset(at, 0, n * sizeof(T));
    }
    ~Pages() { free(at); }
    Pages(const Pages &) = delete;
    T *data() const { return at; }
    size_t size() const { return n; }
    T &operator[](size_t i) const { return at[i]; }
};

/// The least of several runs, each after one that does not count.
template <class Work> static Took least(Work work, int rounds = 9)
{
    Took best = {1e30, 1e30};
    work();
    for (int round = 0; round < rounds; round++) {
        const double cpu = cpu_milliseconds(), wall = wall_milliseconds();
        work();
        const double took = wall_milliseconds() - wall, busy = cpu_milliseconds() - cpu;
        best.wall = took < best.wall ? took : best.wall;
        best.cpu = busy < best.cpu ? busy : best.cpu;
    }
    return best;
}

static void row(const char *name, Took ours, Took plain)
{
    printf("%s\t%.4f\t%.4f\t%.4f\t%.4f\n", name, ours.wall, ours.cpu, plain.wall, plain.cpu);
}

static void same(const char *name, const void *a, const void *b, size_t bytes)
{
    if (memcmp(a, b, bytes) != 0) {
        fprintf(stderr, "%s: not what was copied\n", name);
        exit(1);
    }
}

// Rows of a picture; PITCH has room behind each.
const size_t WIDTH = 4096, HEIGHT = 4096, PITCH = WIDTH + 256, BYTES = WIDTH * HEIGHT;

static void flat()
{
    Pages<uint8_t> from(BYTES), to(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        from[i] = i * 7 + (i >> 9);
    uint8_t *a, *b, *pinned;
    CHECK(cudaMalloc(&a, BYTES));
    CHECK(cudaMalloc(&b, BYTES));
    CHECK(cudaMallocHost(&pinned, BYTES));
    const Took plain = least([&] { memcpy(to.data(), from.data(), BYTES); });
    row("host to device, 16 MB", least([&] { CHECK(cudaMemcpy(a, from.data(), BYTES, cudaMemcpyHostToDevice)); }), plain);
    row("device to device, 16 MB", least([&] {
            CHECK(cudaMemcpy(b, a, BYTES, cudaMemcpyDeviceToDevice));
            CHECK(cudaDeviceSynchronize());
        }), plain);
    memset(to.data(), 0, BYTES);
    row("device to host, 16 MB", least([&] { CHECK(cudaMemcpy(to.data(), b, BYTES, cudaMemcpyDeviceToHost)); }), plain);
    same("flat", to.data(), from.data(), BYTES);
    row("device to pinned, asynchronous, 16 MB", least([&] {
            CHECK(cudaMemcpyAsync(pinned, b, BYTES, cudaMemcpyDeviceToHost));
            CHECK(cudaStreamSynchronize(0));
        }), plain);
    const Took set = least([&] { memset(to.data(), 3, BYTES); });
    row("memset, 16 MB", least([&] {
            CHECK(cudaMemset(a, 3, BYTES));
            CHECK(cudaDeviceSynchronize());
        }), set);
    row("memset of rows, 16 MB", least([&] {
            CHECK(cudaMemset2D(a, WIDTH / 2, 3, WIDTH / 2, 2 * HEIGHT));
            CHECK(cudaDeviceSynchronize());
        }), set);
    // Four streams that each copy a quarter.
    cudaStream_t streams[4];
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamCreate(&stream));
    row("four streams, a quarter each, 16 MB", least([&] {
            for (int i = 0; i < 4; i++)
                CHECK(cudaMemcpyAsync(pinned + i * (BYTES / 4), b + i * (BYTES / 4), BYTES / 4, cudaMemcpyDeviceToHost,
                                      streams[i]));
            CHECK(cudaDeviceSynchronize());
        }), plain);
    same("streams", pinned, from.data(), BYTES);
    // Small ones, one after the other.
    const int n = 1000;
    const Took small = least([&] {
        for (int i = 0; i < n; i++)
            memcpy(to.data() + i * 4096, from.data() + i * 4096, 4096);
    });
    row("1,000 of 4 KB, host to device", least([&] {
            for (int i = 0; i < n; i++)
                CHECK(cudaMemcpy(a + i * 4096, from.data() + i * 4096, 4096, cudaMemcpyHostToDevice));
        }), small);
    row("1,000 of 4 KB, asynchronous", least([&] {
            for (int i = 0; i < n; i++)
                CHECK(cudaMemcpyAsync(b + i * 4096, a + i * 4096, 4096, cudaMemcpyDeviceToDevice));
            CHECK(cudaDeviceSynchronize());
        }), small);
    for (cudaStream_t &stream : streams)
        CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFreeHost(pinned));
}

static void rows()
{
    Pages<uint8_t> from(PITCH * HEIGHT), to(PITCH * HEIGHT);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = i * 5 + (i >> 11);
    uint8_t *a, *b;
    size_t pitch;
    CHECK(cudaMallocPitch(&a, &pitch, WIDTH, HEIGHT));
    CHECK(cudaMalloc(&b, PITCH * HEIGHT));
    const Took plain = least([&] {
        for (size_t y = 0; y < HEIGHT; y++)
            memcpy(&to[y * PITCH], &from[y * PITCH], WIDTH);
    });
    row("2D, host to device", least([&] {
            CHECK(cudaMemcpy2D(a, pitch, from.data(), PITCH, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
        }), plain);
    row("2D, device to device", least([&] {
            CHECK(cudaMemcpy2D(b, PITCH, a, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice));
            CHECK(cudaDeviceSynchronize());
        }), plain);
    for (size_t y = 0; y < HEIGHT; y++)
        memset(&to[y * PITCH], 0, WIDTH);
    row("2D, device to host", least([&] {
            CHECK(cudaMemcpy2D(to.data(), PITCH, b, PITCH, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
        }), plain);
    for (size_t y = 0; y < HEIGHT; y++)
        same("2D", &to[y * PITCH], &from[y * PITCH], WIDTH);
    // Columns: rows of 64 bytes.
    const Took narrow = least([&] {
        for (size_t y = 0; y < HEIGHT; y++)
            memcpy(&to[y * PITCH], &from[y * PITCH], 64);
    });
    row("2D, rows of 64 bytes", least([&] {
            CHECK(cudaMemcpy2D(a, pitch, from.data(), PITCH, 64, HEIGHT, cudaMemcpyHostToDevice));
        }), narrow);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
}

static void volumes()
{
    const size_t x = 1024, y = 128, z = 128;
    Pages<uint8_t> from(x * y * z), to(x * y * z);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = i * 3 + (i >> 10);
    cudaPitchedPtr device;
    const cudaExtent extent = make_cudaExtent(x, y, z);
    CHECK(cudaMalloc3D(&device, extent));
    const Took plain = least([&] { memcpy(to.data(), from.data(), from.size()); });
    cudaMemcpy3DParms up = {}, down = {};
    up.srcPtr = make_cudaPitchedPtr(from.data(), x, x, y);
    up.dstPtr = device;
    up.extent = extent;
    up.kind = cudaMemcpyHostToDevice;
    down.srcPtr = device;
    down.dstPtr = make_cudaPitchedPtr(to.data(), x, x, y);
    down.extent = extent;
    down.kind = cudaMemcpyDeviceToHost;
    row("3D, host to device, 16 MB", least([&] { CHECK(cudaMemcpy3D(&up)); }), plain);
    memset(to.data(), 0, to.size());
    row("3D, device to host, 16 MB", least([&] { CHECK(cudaMemcpy3D(&down)); }), plain);
    same("3D", to.data(), from.data(), from.size());
    CHECK(cudaFree(device.ptr));
}

static void arrays()
{
    const size_t x = 1024, y = 1024;
    Pages<float> from(x * y * 4), to(x * y * 4);
    for (size_t i = 0; i < from.size(); i++)
        from[i] = i;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
    cudaArray_t flat, cube;
    CHECK(cudaMallocArray(&flat, &format, x, y));
    CHECK(cudaMalloc3DArray(&cube, &format, make_cudaExtent(128, 128, 64)));
    const size_t bytes = from.size() * 4;
    const Took plain = least([&] { memcpy(to.data(), from.data(), bytes); });
    row("to an array, 16 MB", least([&] {
            CHECK(cudaMemcpy2DToArray(flat, 0, 0, from.data(), x * 16, x * 16, y, cudaMemcpyHostToDevice));
        }), plain);
    memset(to.data(), 0, bytes);
    row("from an array, 16 MB", least([&] {
            CHECK(cudaMemcpy2DFromArray(to.data(), x * 16, flat, 0, 0, x * 16, y, cudaMemcpyDeviceToHost));
        }), plain);
    same("array", to.data(), from.data(), bytes);
    cudaMemcpy3DParms up = {};
    up.srcPtr = make_cudaPitchedPtr(from.data(), 128 * 16, 128, 128);
    up.dstArray = cube;
    up.extent = make_cudaExtent(128, 128, 64);
    up.kind = cudaMemcpyHostToDevice;
    row("to a 3D array, 16 MB", least([&] { CHECK(cudaMemcpy3D(&up)); }), plain);
    CHECK(cudaFreeArray(flat));
    CHECK(cudaFreeArray(cube));
}

__global__ void add(float *data, float x)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] += x;
}

/// Kernels of 4,096 threads; the same additions in a loop on the host are what they are at best.
static void launches()
{
    const int n = 1000, size = 4096;
    float *data[4];
    cudaStream_t streams[4];
    for (int i = 0; i < 4; i++) {
        CHECK(cudaMalloc(&data[i], size * 4));
        CHECK(cudaMemset(data[i], 0, size * 4));
        CHECK(cudaStreamCreate(&streams[i]));
    }
    Pages<float> host(size);
    const Took plain = least([&] {
        for (int k = 0; k < n; k++) {
            for (int i = 0; i < size; i++)
                host[i] += 1;
            asm volatile("" : : "r"(host.data()) : "memory");
        }
    });
    row("1,000 small kernels, one stream", least([&] {
            for (int k = 0; k < n; k++)
                add<<<size / 256, 256, 0, streams[0]>>>(data[0], 1);
            CHECK(cudaDeviceSynchronize());
        }), plain);
    row("1,000 small kernels, four streams by turns", least([&] {
            for (int k = 0; k < n; k++)
                add<<<size / 256, 256, 0, streams[k % 4]>>>(data[k % 4], 1);
            CHECK(cudaDeviceSynchronize());
        }), plain);
    row("1,000 small kernels, each waited for", least([&] {
            for (int k = 0; k < n; k++) {
                add<<<size / 256, 256, 0, streams[0]>>>(data[0], 1);
                CHECK(cudaStreamSynchronize(streams[0]));
            }
        }), plain);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
    for (int k = 0; k < n; k++)
        add<<<size / 256, 256, 0, streams[0]>>>(data[0], 1);
    CHECK(cudaStreamEndCapture(streams[0], &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    row("1,000 small kernels, one graph", least([&] {
            CHECK(cudaGraphLaunch(exec, streams[0]));
            CHECK(cudaStreamSynchronize(streams[0]));
        }), plain);
    float last[2];
    CHECK(cudaMemcpy(last, data[0], 8, cudaMemcpyDeviceToHost));
    // Ten runs each of 1,000, of a quarter of them, of 1,000 and of 1,000.
    if (last[0] != 10 * 3250 || last[1] != last[0]) {
        fprintf(stderr, "launches: %g, not %d\n", last[0], 10 * 3250);
        exit(1);
    }
}

int main()
{
    flat();
    rows();
    volumes();
    arrays();
    launches();
}
