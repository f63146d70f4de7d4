// One planted bug per kernel, for CUDAWAY_SANITIZE=memcheck; the argument names it, and the line with that word after
// "BUG" is where the report must point. What the program's calls answered is printed. `clean` has none.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

__global__ void past_the_end(int *data, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        data[i] = i; // BUG past_the_end
}

__global__ void before_the_start(const int *data, int *out)
{
    const int i = threadIdx.x + threadIdx.y * blockDim.x;
    out[i] = data[i - 1]; // BUG before_the_start
}

__global__ void null_pointer(int *data)
{
    if (threadIdx.x == 3)
        *data = 1; // BUG null_pointer
}

__global__ void after_free(const float *data, float *out)
{
    if (threadIdx.x == 0)
        out[0] = data[7]; // BUG after_free
}

__global__ void misaligned_8(const char *data, long long *out)
{
    out[threadIdx.x] = *reinterpret_cast<const long long *>(data + 4 * threadIdx.x); // BUG misaligned_8
}

__global__ void misaligned_vector(char *data)
{
    *reinterpret_cast<int4 *>(data + 8) = make_int4(1, 2, 3, 4); // BUG misaligned_vector
}

__global__ void shared_static(int *out)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = 0;
    __syncthreads();
    tile[threadIdx.x + 1] = threadIdx.x; // BUG shared_static
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

extern __shared__ float dynamic[];

__global__ void shared_dynamic(float *out)
{
    dynamic[threadIdx.x * 4] = 1.0f; // BUG shared_dynamic
    __syncthreads();
    out[threadIdx.x] = dynamic[0];
}

__global__ void local_array(int *out, int n)
{
    int room[8];
    for (int i = 0; i < 8; i++)
        room[i ^ (n & 1)] = i;
    room[threadIdx.x + n] = 5; // BUG local_array
    out[threadIdx.x] = room[threadIdx.x & n];
}

__global__ void unwritten_shared(int *out)
{
    __shared__ int tile[64];
    if (threadIdx.x != 5)
        tile[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[63 - threadIdx.x]; // BUG unwritten_shared
}

__global__ void exit_before_barrier(int *out)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = out[threadIdx.x];
    if (threadIdx.x >= 40)
        return;
    __syncthreads(); // BUG exit_before_barrier
    out[threadIdx.x] = tile[39 - threadIdx.x];
}

__global__ void different_barriers(int *out)
{
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;" ::: "memory"); // BUG different_barriers
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}

__global__ void atomic_past(unsigned *data)
{
    atomicAdd(data + (threadIdx.x == 3 ? 100 : 0), 1u); // BUG atomic_past
}

__device__ int table[16];

__global__ void variable_past(int *out, int n)
{
    out[threadIdx.x] = table[threadIdx.x + n]; // BUG variable_past
}

__device__ __noinline__ void put(int *at, int value)
{
    *at = value; // BUG in_a_function
}

__global__ void in_a_function(int *data)
{
    put(threadIdx.x == 17 ? data + 1000 : data, 3);
}

__global__ void device_heap(int *out)
{
    int *own = static_cast<int *>(malloc(40));
    if (threadIdx.x == 2)
        own[10] = 1; // BUG device_heap
    out[threadIdx.x] = own != nullptr;
    free(own);
}

__global__ void copied_in(const int *data, int *out)
{
    __shared__ int tile[32];
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + threadIdx.x));
    // Thread 30 and 31 read behind the end.
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(data + threadIdx.x + 2) : "memory"); // BUG copied_in
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = tile[31 - threadIdx.x];
}

// ---- no bug ----

struct Padded {
    double value;
    char tag;
};

__device__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void everything(const int *data, int *out, const Padded padded, int n)
{
    __shared__ int sums[256];
    __shared__ Padded copies[4];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    sums[t] = i < n ? data[i] : 0;
    if (t < 4)
        copies[t] = padded;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (t < step)
            sums[t] += sums[t + step];
        __syncthreads();
    }
    int room[16];
    for (int k = 0; k < 16; k++)
        room[(k * 5 + n) & 15] = k;
    dynamic[t] = copies[t & 3].value + room[t & 15] + copies[t & 3].tag;
    __syncwarp();
    int lane = __shfl_xor_sync(0xffffffffu, t, 1);
    if (t == 0) {
        atomicAdd(out, sums[0]);
        int *own = static_cast<int *>(malloc(64));
        for (int k = 0; own && k < 16; k++)
            own[k] = table[k] + fibonacci(k & 7);
        if (own)
            atomicAdd(out + 1, own[15] + lane - 1);
        free(own);
        printf("block %d\n", static_cast<int>(blockIdx.x));
    }
}

static void ok(cudaError_t got, const char *call, int line)
{
    if (got == cudaSuccess)
        return;
    std::printf("line %d: %s gives %d\n", line, call, static_cast<int>(got));
    std::exit(1);
}
#define OK(call) ok((call), #call, __LINE__)

template <class T> static T *allocate(size_t count)
{
    T *data;
    OK(cudaMalloc(&data, count * sizeof(T)));
    OK(cudaMemset(data, 0, count * sizeof(T)));
    return data;
}

static void clean()
{
    const int n = 1000, blocks = 4;
    int *managed, *pinned, *pooled, sums[2] = {};
    OK(cudaMallocManaged(&managed, 2 * sizeof(int)));
    OK(cudaMallocHost(&pinned, n * sizeof(int)));
    managed[0] = managed[1] = 0;
    for (int i = 0; i < n; i++)
        pinned[i] = i;
    const Padded padded = {2.0, 'x'};
    everything<<<blocks, 256, 256 * sizeof(float)>>>(pinned, managed, padded, n);
    OK(cudaDeviceSynchronize());
    // Freed at the call, used by what was queued before.
    OK(cudaMallocAsync(&pooled, n * sizeof(int), nullptr));
    OK(cudaMemcpyAsync(pooled, pinned, n * sizeof(int), cudaMemcpyHostToDevice, nullptr));
    everything<<<blocks, 256, 256 * sizeof(float)>>>(pooled, managed, padded, n);
    OK(cudaFreeAsync(pooled, nullptr));
    OK(cudaMemcpy(sums, managed, sizeof sums, cudaMemcpyDefault));
    // fibonacci(15 & 7) is 13.
    if (sums[0] != 2 * 499500 || sums[1] != 2 * blocks * 13)
        std::printf("wrong: %d %d\n", sums[0], sums[1]);
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
}

int main(int argc, char **argv)
{
    const char *bug = argc == 2 ? argv[1] : "";
    const auto is = [bug](const char *name) { return std::strcmp(bug, name) == 0; };
    int *ints = allocate<int>(100), *out = allocate<int>(256);
    if (is("past_the_end")) {
        past_the_end<<<2, 64>>>(ints, 100);
    } else if (is("before_the_start")) {
        before_the_start<<<1, dim3(4, 4)>>>(ints, out);
    } else if (is("null_pointer")) {
        null_pointer<<<dim3(1, 1, 1), 32>>>(nullptr);
    } else if (is("after_free")) {
        float *data = allocate<float>(30);
        OK(cudaFree(data));
        allocate<float>(30);
        after_free<<<1, 32>>>(data, reinterpret_cast<float *>(out));
    } else if (is("misaligned_8")) {
        misaligned_8<<<1, 2>>>(reinterpret_cast<char *>(ints), reinterpret_cast<long long *>(out));
    } else if (is("misaligned_vector")) {
        misaligned_vector<<<1, 1>>>(reinterpret_cast<char *>(ints));
    } else if (is("shared_static")) {
        shared_static<<<1, 64>>>(out);
    } else if (is("shared_dynamic")) {
        shared_dynamic<<<1, 9, 128>>>(reinterpret_cast<float *>(out));
    } else if (is("local_array")) {
        local_array<<<1, 2>>>(out, 7);
    } else if (is("unwritten_shared")) {
        unwritten_shared<<<1, 64>>>(out);
    } else if (is("exit_before_barrier")) {
        exit_before_barrier<<<1, 64>>>(out);
    } else if (is("different_barriers")) {
        different_barriers<<<1, 64>>>(out);
    } else if (is("atomic_past")) {
        atomic_past<<<1, 4>>>(reinterpret_cast<unsigned *>(ints));
    } else if (is("variable_past")) {
        variable_past<<<1, 4>>>(out, 13);
    } else if (is("in_a_function")) {
        in_a_function<<<1, 32>>>(ints);
    } else if (is("device_heap")) {
        device_heap<<<1, 4>>>(out);
    } else if (is("copied_in")) {
        int *few = allocate<int>(32);
        copied_in<<<1, 32>>>(few, out);
    } else if (is("clean")) {
        clean();
    } else {
        return 2;
    }
    std::printf("launch %d\n", static_cast<int>(cudaGetLastError()));
    std::printf("synchronize %d\n", static_cast<int>(cudaDeviceSynchronize()));
    return 0;
}
