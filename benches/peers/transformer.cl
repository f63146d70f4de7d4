// The rows of transformer.cuh in OpenCL C: sums over a work-group through local memory, products of four bytes by vectors of four.

#define MATVEC_THREADS (MATVEC_WARPS * 32)

#if defined(ROW_matvec_q4) || defined(ROW_matvec_q4k)
int dot4(uint quants, uint values, int sum)
{
    const int4 products = convert_int4(as_uchar4(quants)) * convert_int4(as_char4(values));
    return sum + products.x + products.y + products.z + products.w;
}

uint word_of(__global const uchar *bytes, int i) { return as_uint(vload4(i, bytes)); }
#endif

#if defined(ROW_matvec_q4) || defined(ROW_matvec_q4k) || defined(ROW_matvec_half)
// The sum of a row's work-items, `threads` of them.
void store_row(float value, __local float *part, int threads, __global float *y)
{
    const int thread = get_local_id(0);
    part[thread] = value;
    for (int n = threads / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < n)
            part[thread] += part[thread + n];
    }
    if (thread == 0)
        y[get_group_id(0)] = part[0];
}
#endif

#ifdef ROW_matvec_q4
__kernel void matvec_q4(__global const uchar *matrix, __global const uchar *x, __global float *y, int blocks)
{
    __local float part[MATVEC_THREADS];
    const int thread = get_local_id(0), first = thread % 2 * 2;
    float total = 0;
    for (int i = thread / 2; i < blocks; i += MATVEC_THREADS / 2) {
        __global const uchar *weights = matrix + (get_group_id(0) * blocks + i) * 18, *values = x + i * 36;
        int dot = 0;
        for (int k = first; k < first + 2; k++) {
            const uint quants = word_of(weights + 2, k);
            dot = dot4(quants & 0x0f0f0f0f, word_of(values + 4, k), dot);
            dot = dot4(quants >> 4 & 0x0f0f0f0f, word_of(values + 4, k + 4), dot);
        }
        const float2 scale_sum = vload_half2(0, (__global const half *)values);
        total += vload_half(0, (__global const half *)weights) * (dot * scale_sum.x - 4 * scale_sum.y);
    }
    store_row(total, part, MATVEC_THREADS, y);
}
#endif

#ifdef ROW_matvec_q4k
__kernel void matvec_q4k(__global const uchar *matrix, __global const uchar *x, __global float *y, int blocks)
{
    __local float part[MATVEC_THREADS];
    const int thread = get_local_id(0), pair = thread % 16 / 4, first = thread % 4;
    float total = 0;
    for (int i = thread / 16; i < blocks; i += MATVEC_THREADS / 16) {
        __global const uchar *weights = matrix + (get_group_id(0) * blocks + i) * 144;
        __global const ushort *packed = (__global const ushort *)(weights + 4);
        const uint low = word_of(weights + 16, pair * 8 + first), high = word_of(weights + 16, pair * 8 + first + 4);
        ushort scales, mins;  // two of each
        if (pair < 2) {
            scales = packed[pair] & 0x3f3f;
            mins = packed[pair + 2] & 0x3f3f;
        } else {
            scales = (packed[pair + 2] & 0x0f0f) | (packed[pair - 2] & 0xc0c0) >> 2;
            mins = (packed[pair + 2] >> 4 & 0x0f0f) | (packed[pair] & 0xc0c0) >> 2;
        }
        float products = 0, sums = 0;
        for (int run = 0; run < 2; run++) {
            __global const uchar *values = x + (i * 8 + pair * 2 + run) * 36;
            const uint left = word_of(values + 4, first), right = word_of(values + 4, first + 4);
            const float scale = vload_half(0, (__global const half *)values);
            const int dot = dot4(high >> 4 * run & 0x0f0f0f0f, right, dot4(low >> 4 * run & 0x0f0f0f0f, left, 0));
            products += scale * (dot * (scales >> 8 * run & 255));
            sums += scale * (dot4(0x01010101, right, dot4(0x01010101, left, 0)) * (mins >> 8 * run & 255));
        }
        const float2 d_dmin = vload_half2(0, (__global const half *)weights);
        total += d_dmin.x * products - d_dmin.y * sums;
    }
    store_row(total, part, MATVEC_THREADS, y);
}
#endif

#ifdef ROW_softmax
__kernel void softmax(__global const float *in, __global float *out, int columns, float scale)
{
    __local float values[SOFTMAX_COLUMNS], part[BLOCK];
    const int thread = get_local_id(0);
    __global const float *row = in + get_group_id(0) * columns;
    float most = -INFINITY, sum = 0;
    for (int i = thread; i < columns; i += BLOCK) {
        values[i] = row[i] * scale;
        most = fmax(most, values[i]);
    }
    part[thread] = most;
    for (int n = BLOCK / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < n)
            part[thread] = fmax(part[thread], part[thread + n]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    most = part[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = thread; i < columns; i += BLOCK) {
        values[i] = exp(values[i] - most);
        sum += values[i];
    }
    part[thread] = sum;
    for (int n = BLOCK / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < n)
            part[thread] += part[thread + n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float share = 1 / part[0];
    for (int i = thread; i < columns; i += BLOCK)
        out[get_group_id(0) * columns + i] = values[i] * share;
}
#endif

#ifdef ROW_attention
// A key by each work-item, then an element of the values; 128 keys at a time.
__kernel void attention(__global const float *queries, __global const half *keys, __global const half *values, __global float *out,
                        int count, float scale)
{
    __local float query[ATTENTION_WIDTH], weights[ATTENTION_WIDTH], part[ATTENTION_WIDTH];
    const int thread = get_local_id(0), head = get_group_id(0);
    __global const half *key = keys + head * count * ATTENTION_WIDTH, *value = values + head * count * ATTENTION_WIDTH;
    query[thread] = queries[head * ATTENTION_WIDTH + thread] * scale;
    float most = -INFINITY, total = 0, sum = 0;
    for (int start = 0; start < count; start += ATTENTION_WIDTH) {
        barrier(CLK_LOCAL_MEM_FENCE);
        float dot = 0;
        for (int i = 0; i < ATTENTION_WIDTH; i++)
            dot += query[i] * vload_half((start + thread) * ATTENTION_WIDTH + i, key);
        part[thread] = dot;
        for (int n = ATTENTION_WIDTH / 2; n > 0; n /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (thread < n)
                part[thread] = fmax(part[thread], part[thread + n]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const float now = fmax(most, part[0]), less = exp(most - now), weight = exp(dot - now);
        most = now;
        total = total * less + weight;
        sum *= less;
        weights[thread] = weight;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < ATTENTION_WIDTH; k++)
            sum += weights[k] * vload_half((start + k) * ATTENTION_WIDTH + thread, value);
    }
    part[thread] = total;
    for (int n = ATTENTION_WIDTH / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (thread < n)
            part[thread] += part[thread + n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[head * ATTENTION_WIDTH + thread] = sum / part[0];
}
#endif
