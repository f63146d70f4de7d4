// What is made of many elements: reductions, softmax, normalizations and their gradients. Sums are in double precision, as those of
// crates/libraries/cudnn/cpu.

#include "rows.cuh"

// ---- Reductions: of tensor 0 to tensor 1.

// How elements are taken, put together and given: 4 bits each.
enum { VALUE, ABSOLUTE, SQUARE };
enum { SUM, PRODUCT, LEAST, MOST_OF, PRODUCT_WITHOUT_ZEROS };
enum { AS_IT_IS, ROOT, MEAN };

static __device__ double folded(u32 fold, double a, double b, bool keeps_nan)
{
    switch (fold) {
    case SUM:
        return a + b;
    case PRODUCT:
    case PRODUCT_WITHOUT_ZEROS:
        return a * b;
    default:
        if (a != a || b != b)
            return (a != a) == keeps_nan ? a : b;
        return (fold == LEAST) == (a < b) ? a : b;
    }
}

// The number that changes nothing.
static __device__ double nothing(u32 fold)
{
    switch (fold) {
    case SUM:
        return 0.0;
    case PRODUCT:
    case PRODUCT_WITHOUT_ZEROS:
        return 1.0;
    default:
        return fold == LEAST ? infinity() : -infinity();
    }
}

static __device__ double taken(const Tensor &tensor, i64 offset)
{
    return tensor.kind == F64 ? ((const double *)tensor.at)[offset] : (double)load(tensor, offset);
}

extern "C" __global__ void reduce(Rows how)
{
    __shared__ double all[THREADS];
    u32 take = how.code & 15, fold = how.code >> 4 & 15, give = how.code >> 8 & 15;
    // Where NaN give way, what is of them alone is one.
    bool keeps_nan = how.numbers[0] != 0.0;
    const Tensor &x = how.tensors[0], &y = how.tensors[1];
    FOR_RESULTS(how, number)
    {
        Offsets<2> first = offsets<2, false>(how.outer, how.tensors, (u32)number);
        double own = nothing(fold);
        bool is_number = false;
        FOR_ELEMENTS(how, place)
        {
            double value = taken(x, first.of[0] + offsets<1, true>(how.inner, &x, (u32)place).of[0]);
            value = take == ABSOLUTE && !(value > 0.0) ? -value : take == SQUARE ? value * value : value;
            if (fold == PRODUCT_WITHOUT_ZEROS && value == 0.0)
                continue;
            own = folded(fold, own, value, keeps_nan);
            is_number |= value == value;
        }
        bool has_number = __syncthreads_or(is_number);
        all[threadIdx.x] = own;
        for (int left = THREADS / 2; left > 0; left /= 2) {
            __syncthreads();
            if (threadIdx.x < left)
                all[threadIdx.x] = folded(fold, all[threadIdx.x], all[threadIdx.x + left], keeps_nan);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            double value = all[0];
            if ((fold == LEAST || fold == MOST_OF) && !has_number)
                value = infinity() - infinity();
            value = give == ROOT ? __dsqrt_rn(value) : give == MEAN ? value / how.numbers[1] : value;
            blend(how, y, first.of[1], value);
        }
        __syncthreads();
    }
}

// ---- Softmax: of tensor 0 to tensor 1; the logarithm of the sum, the largest and the sum to tensors 2, 3 and 4; tensor 5 is a score that
// has no place.

// The code: 1 for the logarithm of it; 2 where the largest is not taken off. The first number is a factor of the logarithm.
extern "C" __global__ void softmax(Rows how)
{
    bool is_log = how.code & 1, is_plain = how.code & 2;
    const Tensor *t = how.tensors;
    FOR_RESULTS(how, number)
    {
        Offsets<6> first = offsets<6, false>(how.outer, t, (u32)number);
        double sink = t[5].kind == NONE ? -infinity() : (double)load(t[5], first.of[5]), own = -infinity();
        if (!is_plain) {
            FOR_ELEMENTS(how, place)
            own = Largest::of(own, load(t[0], first.of[0] + offsets<1, true>(how.inner, t, (u32)place).of[0]));
        }
        double most = is_plain ? 0.0 : Largest::of(together<Largest>(own), sink);
        own = 0.0;
        FOR_ELEMENTS(how, place)
        own += power(load(t[0], first.of[0] + offsets<1, true>(how.inner, t, (u32)place).of[0]) - (float)most);
        double sum = together<Add>(own);
        if (t[5].kind != NONE)
            sum += power((float)(sink - most));
        double log = is_log || t[2].kind != NONE ? logarithm_of_any(sum) : 0.0;
        FOR_ELEMENTS(how, place)
        {
            Offsets<2> at = offsets<2, true>(how.inner, t, (u32)place);
            float far = load(t[0], first.of[0] + at.of[0]) - (float)most;
            blend(how, t[1], first.of[1] + at.of[1], is_log ? far - log : power(far) / sum);
        }
        if (threadIdx.x == 0) {
            if (t[2].kind != NONE)
                write(t[2], first.of[2], (most + log) * how.numbers[0]);
            if (t[3].kind != NONE)
                write(t[3], first.of[3], most);
            if (t[4].kind != NONE)
                write(t[4], first.of[4], sum);
        }
        __syncthreads();
    }
}

// Of the result and its gradient, tensors 0 and 1, to tensor 2. The code: 1 for the logarithm's.
extern "C" __global__ void softmax_backward(Rows how)
{
    bool is_log = how.code & 1;
    const Tensor *t = how.tensors;
    FOR_RESULTS(how, number)
    {
        Offsets<3> first = offsets<3, false>(how.outer, t, (u32)number);
        double own = 0.0;
        FOR_ELEMENTS(how, place)
        {
            Offsets<2> at = offsets<2, true>(how.inner, t, (u32)place);
            double dy = load(t[1], first.of[1] + at.of[1]);
            own += is_log ? dy : dy * (double)load(t[0], first.of[0] + at.of[0]);
        }
        double sum = together<Add>(own);
        FOR_ELEMENTS(how, place)
        {
            Offsets<3> at = offsets<3, true>(how.inner, t, (u32)place);
            float y = load(t[0], first.of[0] + at.of[0]);
            double dy = load(t[1], first.of[1] + at.of[1]);
            blend(how, t[2], first.of[2] + at.of[2], is_log ? dy - power(y) * sum : y * (dy - sum));
        }
        __syncthreads();
    }
}

// ---- Normalizations. The code: 1 where the mean is taken off; 2 where the second statistic is a variance, to which the first number is
// added, else one over the deviation; 4 where the statistics are given.

// x, y, scale, bias, mean, the second statistic; averages over runs so far and behind it, of means and of variances. Numbers: epsilon,
// the new averages' factor, how many elements variances are corrected for.
extern "C" __global__ void normalize(Rows how)
{
    bool is_centered = how.code & 1, is_variance = how.code & 2, is_given = how.code & 4;
    const Tensor *t = how.tensors;
    double count = how.inner.count, epsilon = how.numbers[0];
    FOR_RESULTS(how, number)
    {
        Offsets<10> first = offsets<10, false>(how.outer, t, (u32)number);
        double mean = 0.0, variance = 0.0, inverse;
        if (is_given) {
            mean = is_centered ? (double)load(t[4], first.of[4]) : 0.0;
            inverse = (double)load(t[5], first.of[5]);
            inverse = is_variance ? 1.0 / __dsqrt_rn(inverse + epsilon) : inverse;
        } else {
            double own = 0.0;
            if (is_centered) {
                FOR_ELEMENTS(how, place)
                own += (double)load(t[0], first.of[0] + offsets<1, true>(how.inner, t, (u32)place).of[0]);
                mean = together<Add>(own) / count;
            }
            own = 0.0;
            FOR_ELEMENTS(how, place)
            {
                double far = load(t[0], first.of[0] + offsets<1, true>(how.inner, t, (u32)place).of[0]) - mean;
                own += far * far;
            }
            variance = together<Add>(own) / count;
            inverse = 1.0 / __dsqrt_rn(variance + epsilon);
        }
        if (t[1].kind != NONE) {
            FOR_ELEMENTS(how, place)
            {
                Offsets<4> at = offsets<4, true>(how.inner, t, (u32)place);
                float hat = (float)((load(t[0], first.of[0] + at.of[0]) - mean) * inverse);
                float value = load(t[2], first.of[2] + at.of[2]) * hat + load(t[3], first.of[3] + at.of[3]);
                blend(how, t[1], first.of[1] + at.of[1], value);
            }
        }
        if (threadIdx.x == 0 && !is_given) {
            if (t[4].kind != NONE)
                write(t[4], first.of[4], mean);
            if (t[5].kind != NONE)
                write(t[5], first.of[5], inverse);
            if (t[7].kind != NONE) {
                double factor = how.numbers[1], corrected = count > 1.0 ? count / (count - 1.0) : 1.0;
                write(t[7], first.of[7], (1.0 - factor) * load(t[6], first.of[6]) + factor * mean);
                write(t[9], first.of[9], (1.0 - factor) * load(t[8], first.of[8]) + factor * variance * corrected);
            }
        }
        __syncthreads();
    }
}

// x, dx, scale, dy, mean, one over the deviation: the gradient of what a statistic is of.
extern "C" __global__ void normalize_backward(Rows how)
{
    bool is_centered = how.code & 1;
    const Tensor *t = how.tensors;
    double count = how.inner.count;
    FOR_RESULTS(how, number)
    {
        Offsets<6> first = offsets<6, false>(how.outer, t, (u32)number);
        double mean = is_centered ? (double)load(t[4], first.of[4]) : 0.0, inverse = load(t[5], first.of[5]);
        double of_hat = 0.0, of_mean = 0.0;
        FOR_ELEMENTS(how, place)
        {
            Offsets<4> at = offsets<4, true>(how.inner, t, (u32)place);
            double slope = (double)load(t[3], first.of[3] + at.of[3]) * load(t[2], first.of[2] + at.of[2]);
            of_hat += slope * ((load(t[0], first.of[0] + at.of[0]) - mean) * inverse);
            of_mean += slope;
        }
        of_hat = together<Add>(of_hat) / count;
        of_mean = is_centered ? together<Add>(of_mean) / count : 0.0;
        FOR_ELEMENTS(how, place)
        {
            Offsets<4> at = offsets<4, true>(how.inner, t, (u32)place);
            double slope = (double)load(t[3], first.of[3] + at.of[3]) * load(t[2], first.of[2] + at.of[2]);
            double hat = (load(t[0], first.of[0] + at.of[0]) - mean) * inverse;
            blend(how, t[1], first.of[1] + at.of[1], inverse * (slope - of_mean - hat * of_hat));
        }
        __syncthreads();
    }
}

// x, dy, mean, one over the deviation; the gradients of scale and bias: of what one scale is of.
extern "C" __global__ void scale_backward(Rows how)
{
    bool is_centered = how.code & 1;
    const Tensor *t = how.tensors;
    FOR_RESULTS(how, number)
    {
        Offsets<6> first = offsets<6, false>(how.outer, t, (u32)number);
        double of_scale = 0.0, of_bias = 0.0;
        FOR_ELEMENTS(how, place)
        {
            Offsets<4> at = offsets<4, true>(how.inner, t, (u32)place);
            double mean = is_centered ? (double)load(t[2], first.of[2] + at.of[2]) : 0.0;
            double inverse = load(t[3], first.of[3] + at.of[3]), dy = load(t[1], first.of[1] + at.of[1]);
            of_scale += dy * ((load(t[0], first.of[0] + at.of[0]) - mean) * inverse);
            of_bias += dy;
        }
        of_scale = together<Add>(of_scale);
        of_bias = together<Add>(of_bias);
        if (threadIdx.x == 0) {
            if (t[4].kind != NONE)
                blend(how, t[4], first.of[4], of_scale);
            if (t[5].kind != NONE)
                blend(how, t[5], first.of[5], of_bias);
        }
        __syncthreads();
    }
}

// ---- A batch norm in parts, each result a channel's.

// Tensors 0 to 5: sums and those of squares, the averages over runs before, scale and bias. 6 to 11: the factor and the bias that they
// make, the mean, one over the deviation, and the new averages. Numbers: epsilon, how much of new averages is this one's, and how many
// elements a sum is of. The code is 1 where the sums tell the mean.
extern "C" __global__ void finalize(Rows how)
{
    const Tensor *t = how.tensors;
    FOR_NUMBERS(how.outer.count, number) {
        Offsets<12> at = offsets<12, false>(how.outer, t, (u32)number);
        double count = how.numbers[2], share = how.numbers[1], corrected = count > 1.0 ? count / (count - 1.0) : 1.0;
        double mean_before = taken(t[2], at.of[2]), variance_before = taken(t[3], at.of[3]);
        double mean = mean_before, variance = variance_before;
        if (how.code) {
            mean = taken(t[0], at.of[0]) / count;
            variance = taken(t[1], at.of[1]) / count - mean * mean;
            variance = variance > 0.0 ? variance : 0.0;
        }
        double inverse = 1.0 / __dsqrt_rn(variance + how.numbers[0]), factor = taken(t[4], at.of[4]) * inverse;
        double results[6] = {factor, taken(t[5], at.of[5]) - mean * factor, mean, inverse,
                             (1.0 - share) * mean_before + share * mean,
                             (1.0 - share) * variance_before + share * variance * corrected};
#pragma unroll
        for (int k = 0; k < 6; k++)
            if (t[6 + k].kind != NONE)
                write(t[6 + k], at.of[6 + k], results[k]);
    }
}

// The factors of `a * dy + b * x + c`, the gradient of x, tensors 5 to 7: of the gradients of scale and bias, tensors 0 and 1, the mean,
// one over the deviation and the scale. The number says how many elements a channel has.
extern "C" __global__ void gradient_factors(Rows how)
{
    const Tensor *t = how.tensors;
    FOR_NUMBERS(how.outer.count, number) {
        Offsets<8> at = offsets<8, false>(how.outer, t, (u32)number);
        double inverse = taken(t[3], at.of[3]), a = taken(t[4], at.of[4]) * inverse;
        double b = -a * inverse * taken(t[0], at.of[0]) / how.numbers[0];
        write(t[5], at.of[5], a);
        write(t[6], at.of[6], b);
        write(t[7], at.of[7], -a * taken(t[1], at.of[1]) / how.numbers[0] - b * taken(t[2], at.of[2]));
    }
}
