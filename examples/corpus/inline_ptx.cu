// Inline assembly as libraries write it: asm volatile with memory operands, predicates, labels of its own, carries, and
// vector loads with cache hints.
#include "example.h"

__device__ unsigned long long wide_sum(unsigned a_low, unsigned a_high, unsigned b_low, unsigned b_high)
{
    unsigned low, high;
    asm("add.cc.u32 %0, %2, %4;\n\taddc.u32 %1, %3, %5;" : "=r"(low), "=r"(high) : "r"(a_low), "r"(a_high), "r"(b_low), "r"(b_high));
    return (static_cast<unsigned long long>(high) << 32) | low;
}

__device__ int4 load_streaming(const int4 *at)
{
    int4 v;
    asm volatile("ld.global.L1::no_allocate.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at) : "memory");
    return v;
}

// Greatest common divisor by a loop inside the assembly.
__device__ unsigned gcd(unsigned a, unsigned b)
{
    unsigned result;
    asm("{\n\t"
        ".reg .pred p;\n\t"
        ".reg .u32 x, y, t;\n\t"
        "mov.u32 x, %1;\n\t"
        "mov.u32 y, %2;\n"
        "$again_%=:\n\t"
        "setp.eq.u32 p, y, 0;\n\t"
        "@p bra $done_%=;\n\t"
        "rem.u32 t, x, y;\n\t"
        "mov.u32 x, y;\n\t"
        "mov.u32 y, t;\n\t"
        "bra.uni $again_%=;\n"
        "$done_%=:\n\t"
        "mov.u32 %0, x;\n\t"
        "}"
        : "=r"(result)
        : "r"(a), "r"(b));
    return result;
}

__global__ void assembly(const int4 *in, long long *out)
{
    const unsigned i = threadIdx.x;
    const int4 v = load_streaming(in + i);
    unsigned lane, mask;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(mask) : "r"(i & 1));
    unsigned picked, dot;
    asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(picked) : "r"(v.x), "r"(v.y));
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(dot) : "r"(0x01020304u), "r"(0x01010101u), "r"(i));
    out[i * 6 + 0] = wide_sum(0xffffffffu - i, i, 2 * i + 1, 7);
    out[i * 6 + 1] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
    out[i * 6 + 2] = gcd(i * 12, 90);
    out[i * 6 + 3] = static_cast<long long>(mask) * 32 + lane;
    out[i * 6 + 4] = picked;
    out[i * 6 + 5] = dot;
}

int main()
{
    const int threads = 32;
    std::vector<int> in(threads * 4);
    std::vector<long long> got(threads * 6), wanted(threads * 6);
    for (size_t i = 0; i < in.size(); i++)
        in[i] = int(i * 3 + 1);
    int *device_in;
    long long *device_out;
    CHECK(cudaMalloc(&device_in, in.size() * sizeof(int)));
    CHECK(cudaMalloc(&device_out, got.size() * sizeof(long long)));
    CHECK(cudaMemcpy(device_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
    assembly<<<1, threads>>>(reinterpret_cast<const int4 *>(device_in), device_out);
    CHECK(cudaMemcpy(got.data(), device_out, got.size() * sizeof(long long), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++) {
        const int *v = &in[i * 4];
        int a = i * 12, b = 90;
        while (b) {
            const int t = a % b;
            a = b, b = t;
        }
        wanted[i * 6 + 0] = (long long)((uint64_t(i) << 32) + 0xffffffffu - i + (uint64_t(7) << 32) + 2 * i + 1);
        wanted[i * 6 + 1] = v[0] + 10 * v[1] + 100 * v[2] + 1000 * v[3];
        wanted[i * 6 + 2] = a;
        wanted[i * 6 + 3] = 0xaaaaaaaall * 32 + i;
        wanted[i * 6 + 4] = (v[0] & 0xffff) | ((v[1] & 0xffff) << 16);
        wanted[i * 6 + 5] = 10 + i;
    }
    expect_equal("assembly", got, wanted);
    return passed();
}
