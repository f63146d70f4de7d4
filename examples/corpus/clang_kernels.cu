// Device code as clang makes PTX of it, without CUDA's headers: attributes and built-ins only. run_ptx.cu launches it.
#define GLOBAL extern "C" __attribute__((global)) void
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

static DEVICE inline unsigned thread() { return __nvvm_read_ptx_sreg_tid_x(); }
static DEVICE inline unsigned index() { return __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + thread(); }

static DEVICE __attribute__((noinline)) float horner(const float *coefficients, int n, float x)
{
    float sum = 0;
    for (int i = n; i-- > 0;)
        sum = __builtin_fmaf(sum, x, coefficients[i]);
    return sum;
}

// 1 + 2x + 3x² + 4x³
GLOBAL polynomial(const float *in, float *out, int n)
{
    const unsigned i = index();
    float coefficients[4];
    for (int k = 0; k < 4; k++)
        coefficients[k] = k + 1;
    if (i < n)
        out[i] = horner(coefficients, 4, in[i]);
}

// The sum of each block of 128, with a division and a square root on the way (both exact).
GLOBAL block_sums(const float *in, float *out, int n)
{
    SHARED static float sums[128];
    const unsigned i = index(), t = thread();
    const float value = i < n ? in[i] : 0;
    sums[t] = __builtin_sqrtf(value * value) / 2 * 2;
    __syncthreads();
    for (unsigned half = 64; half > 0; half /= 2) {
        if (t < half)
            sums[t] += sums[t + half];
        __syncthreads();
    }
    if (t == 0)
        out[i / 128] = sums[0];
}

// Each lane adds its neighbour's number to its own bucket, by an atomic on a generic address.
GLOBAL exchange(const float *in, float *out, int n)
{
    const unsigned i = index();
    const float mine = i < n ? in[i] : 0;
    const float other = __nvvm_shfl_sync_bfly_f32(0xffffffffu, mine, 1, 31);
    __nvvm_atom_add_gen_f(out + unsigned(mine) % 16, other);
}
