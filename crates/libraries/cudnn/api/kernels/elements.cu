// What is computed for each element by itself: the pointwise operations of graphs, activations and their gradients, sums and products
// of tensors, masks along a diagonal, and copies to other types and places. Names and meanings are those of
// crates/libraries/cudnn/cpu/src/pointwise.rs and activation.rs.

#include "angles.cuh"

// The most tensors that are taken.
const int TAKEN = 7;

struct Elements {
    // What is given, and the factor of what lay there before.
    Tensor to;
    Tensor from[TAKEN];
    Sizes sizes;
    u32 code;
    // Settings of the function.
    float numbers[4];
    u32 keeps_nan;
    // Of the first two that are taken.
    float alpha;
    float beta;
    // Of the result and of what lay there before.
    float by;
    float before;
};

enum Code {
    // Of one number, in the order of `One`.
    SQRT, ABS, CEIL, COS, EXP, FLOOR, LOG, NEG, RSQRT, SIN, TAN, ERF, IDENTITY, RECIPROCAL, NOT,
    // Of two, in the order of `Two`.
    ADD, MUL, MIN, MAX, ADD_SQUARE, DIV, MOD, POW, SUB, ATAN2, FLOOR_MOD, EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS,
    LESS_EQUAL, AND, OR,
    SELECT,
    // Activations; their gradients, of the argument, the result and the gradient.
    SIGMOID, RELU, TANH, CLIPPED_RELU, ELU, SWISH,
    SIGMOID_BACKWARD, RELU_BACKWARD, TANH_BACKWARD, CLIPPED_RELU_BACKWARD, ELU_BACKWARD, SWISH_BACKWARD, IDENTITY_BACKWARD,
    CLIP, CLIP_BACKWARD, SOFTPLUS, SOFTPLUS_BACKWARD, GELU, GELU_BACKWARD, GELU_BY_TANH, GELU_BY_TANH_BACKWARD,
    // Of two numbers, a NaN going on or giving way.
    LEAST, LARGEST,
    // A mask; the comparison is one of those above.
    BAND,
};

// ---- Functions of floats.

static __device__ float floor_of(float x)
{
    float whole;
    asm("cvt.rmi.f32.f32 %0, %1;" : "=f"(whole) : "f"(x));
    return whole;
}

static __device__ float power_less_one(float x)
{
    float near = x + x * x * curve(x);
    return absolute(x) < 0.346f ? with_sign_of(near, x) : power(x) - 1.0f;
}

// The error function of numbers up to 1. The polynomials of this one and the next were fitted for this file.
static __device__ float error_near_0(float x)
{
    float z = x * x, q = 7.875875e-05f;
    q = __fmaf_rn(q, z, -0.00080168643f);
    q = __fmaf_rn(q, z, 0.0051890872f);
    q = __fmaf_rn(q, z, -0.026854211f);
    q = __fmaf_rn(q, z, 0.11283594f);
    q = __fmaf_rn(q, z, -0.37612626f);
    return x * __fmaf_rn(q, z, 1.1283791f);
}

// What the error function lacks to 1, of numbers from 1 on, whose square and what its rounding lost are given.
static __device__ float lacks_to_one(float a, float square, float lost)
{
    if (a > 12.0f)
        return 0.0f;
    float t = 1.0f / (a + 1.0f), q = 0.7654998f;
    q = __fmaf_rn(q, t, -1.3249478f);
    q = __fmaf_rn(q, t, -0.3322978f);
    q = __fmaf_rn(q, t, 2.3755379f);
    q = __fmaf_rn(q, t, -1.8311791f);
    q = __fmaf_rn(q, t, 0.0020130149f);
    q = __fmaf_rn(q, t, 0.23817948f);
    q = __fmaf_rn(q, t, 0.56830347f);
    q = __fmaf_rn(q, t, 0.5639757f);
    q = __fmaf_rn(q, t, 4.7205349e-06f);
    float e = power(-square);
    return q * (e - e * lost);
}

static __device__ float error(float x)
{
    float a = absolute(x);
    float square = a * a, lost = __fmaf_rn(a, a, -square);
    return a >= 1.0f ? with_sign_of(1.0f - lacks_to_one(a, square, lost), x) : error_near_0(x);
}

// The part of a normal distribution that is below.
static __device__ float normal(float x)
{
    float a = absolute(x) * 0.70710678f;
    if (a < 1.0f || x != x)
        return 0.5f + 0.5f * error_near_0(x * 0.70710678f);
    float square = x * x, lost = __fmaf_rn(x, x, -square);
    float beyond = 0.5f * lacks_to_one(a, 0.5f * square, 0.5f * lost);
    return x < 0.0f ? beyond : 1.0f - beyond;
}

// The angle of a point, from 0 to 1 by its slope and beyond by symmetry.
static __device__ float angle_of(float y, float x)
{
    if (y != y || x != x)
        return no_number();
    float a = absolute(x), b = absolute(y), most = a > b ? a : b, least = a > b ? b : a;
    double slope = most == 0.0f ? 0.0 : least == infinity() ? 1.0 : (double)least / (double)most, near = 0.0;
    // From the angle of 1/2, or from that of 1, the rest is small.
    if (slope > 0.75) {
        near = 0x1.921fb54442d18p-1;
        slope = (slope - 1.0) / (slope + 1.0);
    } else if (slope > 0.25) {
        near = 0x1.dac670561bb4fp-2;
        slope = (slope - 0.5) / (1.0 + 0.5 * slope);
    }
    double z = slope * slope, sum = 1.0 / 15.0;
    for (int k = 13; k > 0; k -= 2)
        sum = 1.0 / (double)k - z * sum;
    double angle = near + slope * sum;
    angle = b > a ? 0x1.921fb54442d18p+0 - angle : angle;
    angle = __float_as_uint(x) >> 31 ? 0x1.921fb54442d18p+1 - angle : angle;
    return with_sign_of((float)angle, y);
}

static __device__ float power_of(float x, float y)
{
    if (x == 1.0f || y == 0.0f)
        return 1.0f;
    if (x != x || y != y)
        return no_number();
    float a = absolute(x);
    bool is_whole = floor_of(y) == y, is_odd = is_whole && absolute(y) < 16777216.0f && ((int)y & 1);
    if (a == 1.0f && absolute(y) == infinity())
        return 1.0f;
    if (x < 0.0f && a != infinity() && !is_whole)
        return no_number();
    float value = (float)exponential((double)y * logarithm_of_any(a));
    return is_odd ? with_sign_of(value, x) : value;
}

// What is left of x behind whole multiples of y, with the sign of x.
static __device__ float remainder_of(float x, float y)
{
    if (!(absolute(x) < infinity()) || y != y || y == 0.0f)
        return no_number();
    // All floats are normal numbers in double, where each difference is exact.
    double a = absolute(x), b = absolute(y);
    while (a >= b) {
        // b with the exponent of a, or the one below.
        u64 exponent = __double_as_longlong(a) & 0x7ff0000000000000ull;
        double step = __longlong_as_double(exponent | (__double_as_longlong(b) & 0x000fffffffffffffull));
        a -= step > a ? 0.5 * step : step;
    }
    return with_sign_of((float)a, x);
}

// ---- Operations.

static __device__ float rectified(float x, bool keeps_nan)
{
    return x > 0.0f || (keeps_nan && x != x) ? x : 0.0f;
}

static __device__ float bent(float x)
{
    return 0.7978846f * (x + 0.044715f * x * x * x);
}

// ln(1 + e^x), where e^x overflows too.
static __device__ float soft(float x)
{
    double e = exponential(-(double)absolute(x));
    double rest = e < 1e-5 ? e - 0.5 * e * e : logarithm(1.0 + e);
    return x != x ? x : (float)((x > 0.0f ? (double)x : 0.0) + rest);
}

static __device__ float extreme(float a, float b, bool is_first, bool keeps_nan)
{
    if (a != a || b != b)
        return (a != a) == keeps_nan ? a : b;
    return is_first ? a : b;
}

static __device__ bool compared(u32 code, float a, float b)
{
    switch (code) {
    case EQUAL:
        return a == b;
    case NOT_EQUAL:
        return a != b;
    case GREATER:
        return a > b;
    case GREATER_EQUAL:
        return a >= b;
    case LESS:
        return a < b;
    default:
        return a <= b;
    }
}

// Of one number.
static __device__ float of_one(u32 code, float x, const Elements &how)
{
    double sine, cosine;
    float setting = how.numbers[0];
    switch (code) {
    case SQRT:
        return __fsqrt_rn(x);
    case ABS:
        return absolute(x);
    case CEIL:
        return -floor_of(-x);
    case COS:
        sine_cosine_of_any(x, &sine, &cosine);
        return (float)cosine;
    case EXP:
        return power(x);
    case FLOOR:
        return floor_of(x);
    case LOG:
        return (float)logarithm_of_any(x);
    case NEG:
        return -x;
    case RSQRT:
        return 1.0f / __fsqrt_rn(x);
    case SIN:
        sine_cosine_of_any(x, &sine, &cosine);
        return (float)sine;
    case TAN:
        sine_cosine_of_any(x, &sine, &cosine);
        return (float)(sine / cosine);
    case ERF:
        return error(x);
    case RECIPROCAL:
        return 1.0f / x;
    case NOT:
        return x == 0.0f ? 1.0f : 0.0f;
    case SIGMOID:
        return sigmoid(x);
    case RELU:
        return rectified(x, how.keeps_nan);
    case TANH:
        return hyperbolic_tangent(x);
    case CLIPPED_RELU:
        x = rectified(x, how.keeps_nan);
        return x > setting ? setting : x;
    case ELU:
        return x > 0.0f ? x : setting * power_less_one(x);
    case SWISH:
        return x / (1.0f + power(-setting * x));
    case CLIP:
        if (x != x)
            return how.keeps_nan ? x : setting;
        if (x <= setting)
            return setting + how.numbers[2] * (x - setting);
        return x > how.numbers[1] ? how.numbers[1] : x;
    case SOFTPLUS:
        return soft(setting * x) / setting;
    case GELU:
        return x * normal(x);
    case GELU_BY_TANH:
        return 0.5f * x * (1.0f + hyperbolic_tangent(bent(x)));
    default:
        return x;
    }
}

// Of two numbers.
static __device__ float of_two(u32 code, float a, float b, const Elements &how)
{
    switch (code) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MIN:
        return a < b || a != a ? a : b;
    case MAX:
        return a > b || a != a ? a : b;
    case ADD_SQUARE:
        return a + b * b;
    case DIV:
        return a / b;
    case MOD:
        return remainder_of(a, b);
    case POW:
        return power_of(a, b);
    case SUB:
        return a - b;
    case ATAN2:
        return angle_of(a, b);
    case FLOOR_MOD:
        return a - floor_of(a / b) * b;
    case AND:
        return a != 0.0f && b != 0.0f ? 1.0f : 0.0f;
    case OR:
        return a != 0.0f || b != 0.0f ? 1.0f : 0.0f;
    case LEAST:
        return extreme(a, b, a < b, how.keeps_nan);
    case LARGEST:
        return extreme(a, b, a > b, how.keeps_nan);
    default:
        return compared(code, a, b) ? 1.0f : 0.0f;
    }
}

// The gradient at x, where the function is y, or what the last setting asks to make again.
static __device__ float gradient(u32 code, float x, float y, float dy, const Elements &how)
{
    float setting = how.numbers[0], s;
    if (how.numbers[3] != 0.0f)
        y = of_one(code - SIGMOID_BACKWARD + SIGMOID, x, how);
    switch (code) {
    case SIGMOID_BACKWARD:
        return dy * y * (1.0f - y);
    case RELU_BACKWARD:
        return x > 0.0f ? dy : 0.0f;
    case TANH_BACKWARD:
        return dy * (1.0f - y * y);
    case CLIPPED_RELU_BACKWARD:
        return x > 0.0f && x < setting ? dy : 0.0f;
    case ELU_BACKWARD:
        return x > 0.0f ? dy : dy * setting * power(x);
    case SWISH_BACKWARD:
        s = sigmoid(setting * x);
        return dy * (s + setting * x * s * (1.0f - s));
    case CLIP_BACKWARD:
        s = x > setting && x < how.numbers[1] ? 1.0f : x <= setting ? how.numbers[2] : 0.0f;
        return s * dy;
    case SOFTPLUS_BACKWARD:
        return dy * sigmoid(setting * x);
    case GELU_BACKWARD:
        return dy * (normal(x) + x * (power(-x * x / 2.0f) / 2.5066283f));
    case GELU_BY_TANH_BACKWARD:
        s = hyperbolic_tangent(bent(x));
        return dy * 0.5f * (1.0f + s + x * (1.0f - s * s) * (0.7978846f * (1.0f + 0.134145f * x * x)));
    default:
        return dy;
    }
}

// Whether an element stays: what is taken is it, the other number, lengths of queries and keys, what is added to rows (or, with the
// setting, to columns, which are compared with rows then), the row and the column.
static __device__ bool stays(const Elements &how, const Offsets<TAKEN> &at)
{
    float ends = load(how.from[3], at.of[3]) - load(how.from[2], at.of[2]), shift = load(how.from[4], at.of[4]);
    float row = load(how.from[5], at.of[5]), column = load(how.from[6], at.of[6]);
    bool is_left = how.numbers[0] != 0.0f;
    float a = is_left ? column + shift - ends : row + ends + shift;
    return compared((u32)how.numbers[1], a, is_left ? row : column);
}

extern "C" __global__ void elements(Elements how)
{
    FOR_NUMBERS(how.sizes.count, number) {
        Offsets<TAKEN> at = offsets<TAKEN, false>(how.sizes, how.from, (u32)number);
        i64 to = offsets<1, false>(how.sizes, &how.to, (u32)number).of[0];
        float a = how.alpha * load(how.from[0], at.of[0]), value;
        if (how.code >= SIGMOID_BACKWARD && how.code <= IDENTITY_BACKWARD || how.code == CLIP_BACKWARD ||
            how.code == SOFTPLUS_BACKWARD || how.code == GELU_BACKWARD || how.code == GELU_BY_TANH_BACKWARD)
            value = gradient(how.code, a, load(how.from[1], at.of[1]), load(how.from[2], at.of[2]), how);
        else if (how.code == SELECT)
            value = load(how.from[2], at.of[2]) == 0.0f ? how.beta * load(how.from[1], at.of[1]) : a;
        else if (how.code == BAND)
            value = stays(how, at) ? a : load(how.from[1], at.of[1]);
        else if (how.code >= ADD && how.code <= OR || how.code == LEAST || how.code == LARGEST)
            value = of_two(how.code, a, how.beta * load(how.from[1], at.of[1]), how);
        else
            value = of_one(how.code, a, how);
        value *= how.by;
        if (how.before != 0.0f)
            value += how.before * load(how.to, to);
        store(how.to, to, value);
    }
}
