// cuRAND's generators as kernels: the words and numbers of crates/libraries/curand/cpu. rand.ptx beside this file is what nvcc makes
// of it (`cargo xtask test --only rand` makes it anew and compares).
//
// No product is fused with a sum unless it says so (-fmad=false): the host rounds each. No function of the toolchain's libraries
// is called: logarithms, exponentials and sines are those below and of crates/libraries/kit/kernels/functions.cuh.
//
// A state begins with a `Header`, whose place the first threads of a launch move on for the next launch. `Generator::image` of
// curand_cpu has what follows it.

#include "functions.cuh"

struct Header {
    // Blocks of this launch that have read the header.
    u32 ticket;
    // Recurrences side by side.
    u32 n;
    // Where the sequence has come to.
    u64 position;
    u64 seed;
    u64 unused;
};

// What a distribution needs besides words.
struct Draw {
    double mean;
    double deviation;
    // Of a Poisson distribution: `n` ends of bars or sums of probabilities, and behind them whose the rest of each bar is.
    const double *ends;
    u32 n;
    u32 first;
    u32 method;
    // Whether the exponentials of normal numbers are asked for.
    u32 exponential;
};

enum { HISTOGRAM, INVERSE, NORMAL };

// All threads have read the header; the last block that says so moves it on.
static __device__ void move_on(Header *header, u64 position)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(&header->ticket, 1) == gridDim.x * gridDim.y - 1) {
            header->ticket = 0;
            header->position = position;
        }
    }
}

template <class T> struct Two {
    T first, second;
};

// ---- Functions of floats, whose results are to the bit those of the C library that the host's numbers are made by, at every number
// and angle that a generator's words can make: all of 2^-34 to 1, and of 0 to 2 pi but 0.90634286, which none makes. glibc 2.28 and
// later round polynomials of doubles, and so do these, whose coefficients were found by linear programming from the intervals that
// the rounded results leave. Nothing of the order in which they are computed may change: some results lie that near to the middle
// of two floats.

// For each sixteenth of the mantissas from 0x3f330000 on: a place within, and the logarithm there in powers of the distance.
static __device__ const double LOGARITHMS[16][6] = {
    {0x1.6e00000000000p-1, -0x1.57bf753c8d1aep-2, 0x1.661ec6a512a87p+0, -0x1.f4fa06ccf21ddp-1, 0x1.d362ef5e16cafp-1, -0x1.ebf0c8e806060p-1},
    {0x1.7e00000000000p-1, -0x1.2bef07cdc9953p-2, 0x1.571ed3c4f8be7p+0, -0x1.cbe38feec3374p-1, 0x1.9b15358d8073ap-1, -0x1.9e9153732be3bp-1},
    {0x1.8e00000000000p-1, -0x1.01eae5626c16dp-2, 0x1.49539e3b2d11cp+0, -0x1.a7a7fa15c5a1dp-1, 0x1.6b78aacc1375ep-1, -0x1.5fceed45d3c47p-1},
    {0x1.9e00000000000p-1, -0x1.b31d8575be2d3p-3, 0x1.3c995a47cf9c5p+0, -0x1.878ae5b524af6p-1, 0x1.42eff58b7c45bp-1, -0x1.2c813488bacb1p-1},
    {0x1.ae00000000000p-1, -0x1.6574ebe8c061dp-3, 0x1.30d19013218f2p+0, -0x1.6af255d8ddb6ep-1, 0x1.20369854729e5p-1, -0x1.02339643a4d5cp-1},
    {0x1.be00000000000p-1, -0x1.1aa2b7e23eac8p-3, 0x1.25e2270804f3ep+0, -0x1.515f6a18c373ep-1, 0x1.024b58472076dp-1, -0x1.be2fbfbac8728p-2},
    {0x1.ce00000000000p-1, -0x1.a4e7640b1bc8ap-4, 0x1.1bb4a40470a8ep+0, -0x1.3a68d7bbfc8cep-1, 0x1.d0c118e4fd528p-2, -0x1.8385cf132abf0p-2},
    {0x1.de00000000000p-1, -0x1.1973bd1465509p-4, 0x1.12358e75dd939p+0, -0x1.25b6a672e8982p-1, 0x1.a3a10cc1e58d5p-2, -0x1.5230dbef2431fp-2},
    {0x1.ee00000000000p-1, -0x1.252f32f8d065ap-5, 0x1.0953f3900b923p+0, -0x1.12fee0bae7dadp-1, 0x1.7c29704c47db8p-2, -0x1.2874c12585601p-2},
    {0x1.0000000000000p+0, 0x0.0p+0, 0x1.0000000000000p+0, -0x1.ffffef1d522c5p-2, 0x1.5575b1779a61cp-2, -0x1.00ea50fe1e644p-2},
    {0x1.0e00000000000p+0, 0x1.b42dd711a5a5cp-5, 0x1.e573ac9932ccep-1, -0x1.cc479695eb12dp-2, 0x1.230b6237360b7p-2, -0x1.a143677c11246p-3},
    {0x1.1e00000000000p+0, 0x1.c5e548f5bba33p-4, 0x1.ca4b3055ecc6fp-1, -0x1.9a3881f975baep-2, 0x1.e9c4dcffc2e43p-3, -0x1.49d98931aa704p-3},
    {0x1.2e00000000000p+0, 0x1.526e5e3a1cf69p-3, 0x1.b2036406c79b0p-1, -0x1.6fe7b3acd9a3bp-2, 0x1.9ff9ee00f99cap-3, -0x1.094d1479ec1d2p-3},
    {0x1.3e00000000000p+0, 0x1.bc286742d8283p-3, 0x1.9c2d14ee4afe4p-1, -0x1.4bd086b25180bp-2, 0x1.644b282f15904p-3, -0x1.af9eadb5f7705p-4},
    {0x1.4e00000000000p+0, 0x1.1058bf9ae4078p-2, 0x1.886e5f0ab3269p-1, -0x1.2cc90f6015dfep-2, 0x1.3380e27264c69p-3, -0x1.62abda42804dap-4},
    {0x1.5e00000000000p+0, 0x1.404308686aeeep-2, 0x1.767dce4349430p-1, -0x1.11e9e13daa022p-2, 0x1.0b3ae2f75a0d3p-3, -0x1.2620af0ffdd40p-4},
};

static __device__ float logarithm_f32(float x)
{
    u32 bits = __float_as_uint(x), above = bits - 0x3f330000u;
    int power = (int)above >> 23;
    const double *at = LOGARITHMS[above >> 19 & 15];
    double d = (double)__uint_as_float(bits - ((u32)power << 23)) - at[0];
    return (float)((at[1] + power * 0x1.62e42fefa39efp-1) + d * (at[2] + d * (at[3] + d * (at[4] + d * at[5]))));
}

static __device__ Two<float> sine_cosine_f32(float angle)
{
    double turns = nearest((double)angle * 0x1.45f306dc9c883p-1);
    double r = __fma_rn(-turns, 0x1.921fb54442d18p+0, (double)angle), z = r * r;
    double s = r + r * z * (-0x1.555545995aa20p-3 + z * (0x1.1107605236a5cp-7 + z * -0x1.994eb376f4994p-13));
    double c = 1.0 + z * (-0x1.ffffffd0c5c36p-2 + z * (0x1.55553e1048bbdp-5 + z * (-0x1.6c087e7cb4232p-10 + z * 0x1.99342d0264e9ap-16)));
    u32 quarter = (u32)turns & 3;
    double x = quarter & 1 ? c : s, y = quarter & 1 ? s : c;
    return {(float)(quarter & 2 ? -x : x), (float)(quarter == 1 || quarter == 2 ? -y : y)};
}

// ---- What distributions make of words: crates/libraries/curand/cpu/src/draw.rs, name by name.

static __device__ float uniform_f32(u32 x)
{
    return (float)x * 0x1p-32f + 0x1p-33f;
}

static __device__ double uniform_f64(u32 x)
{
    return (double)x * 0x1p-32 + 0x1p-32;
}

static __device__ double uniform_f64_middle(u32 x)
{
    return (double)x * 0x1p-32 + 0x1p-33;
}

static __device__ double uniform_f64_wide(u64 x)
{
    return (double)(x >> 11) * 0x1p-53 + 0x1p-54;
}

static __device__ double mixed(u32 x, u32 y)
{
    return (double)((u64)x ^ (u64)y << 21);
}

static __device__ double uniform_f64_pair(u32 x, u32 y)
{
    return mixed(x, y) * 0x1p-53 + 0x1p-54;
}

static __device__ Two<float> polar_f32(float u, float angle)
{
    float length = __fsqrt_rn(-2.0f * logarithm_f32(u));
    Two<float> both = sine_cosine_f32(angle);
    return {both.first * length, both.second * length};
}

static __device__ Two<double> polar_f64(double u, double half_turns)
{
    double length = __dsqrt_rn(-2.0 * logarithm(u));
    double sine, cosine;
    sine_cosine(half_turns * 0x1.921fb54442d18p+1, &sine, &cosine);
    return {sine * length, cosine * length};
}

static __device__ Two<float> normal_f32_pair(u32 x, u32 y)
{
    const float turn = 0x1p-32f * (2.0f * 0x1.921fb6p+1f);
    return polar_f32(uniform_f32(x), (float)y * turn + turn / 2.0f);
}

static __device__ Two<double> normal_f64_pair(u32 a, u32 b, u32 c, u32 d)
{
    return polar_f64(uniform_f64_pair(a, b), mixed(c, d) * 0x1p-52 + 0x1p-53);
}

// Coefficients of Blair, Edwards and Johnson, as in draw.rs.
static __device__ double inverse_erfc(double y)
{
    double x = 1.0 - y, over, under, t, value;
    if (x < 0.75) {
        t = x * x - 0.5625;
        over = -2.3886240104308755900e1;
        over = over * t + 4.5560204272689128170e2;
        over = over * t + -2.2977467176607144887e3;
        over = over * t + 4.6631433533434331287e3;
        over = over * t + -4.3799652308386926161e3;
        over = over * t + 1.9007153590528134753e3;
        over = over * t + -3.0786872642313695280e2;
        under = 1.0;
        under = under * t + -8.3288327901936570000e1;
        under = under * t + 9.2741319160935318800e2;
        under = under * t + -3.5088976383877264098e3;
        under = under * t + 5.9039348134843665626e3;
        under = under * t + -4.8481635430048872102e3;
        under = under * t + 1.8997769186453057810e3;
        under = under * t + -2.8386514725366621129e2;
        value = x * (over / under);
    } else if (x < 0.9375) {
        t = x * x - 0.87890625;
        over = 2.1489185007307062000e-1;
        over = over * t + -6.4200071507209448655;
        over = over * t + 2.9631331505876308123e1;
        over = over * t + -4.7644367129787181803e1;
        over = over * t + 3.4810057749357500873e1;
        over = over * t + -1.2954198980646771502e1;
        over = over * t + 2.5349389220714893917;
        over = over * t + -2.4758242362823355486e-1;
        over = over * t + 9.4897362808681080020e-3;
        under = 1.0;
        under = under * t + -1.2831383833953226499e1;
        under = under * t + 4.1409991778428888716e1;
        under = under * t + -5.3715373448862143349e1;
        under = under * t + 3.3880176779595142685e1;
        under = under * t + -1.1315360624238054876e1;
        under = under * t + 2.0369295047216351160;
        under = under * t + -1.8611650627372178511e-1;
        under = under * t + 6.7544512778850945940e-3;
        value = x * (over / under);
    } else {
        t = 1.0 / __dsqrt_rn(-logarithm(y));
        over = 2.7834010353747001060e-3;
        over = over * t + 8.6030097526280260580e-1;
        over = over * t + 2.1371214997265515515;
        over = over * t + 3.1598519601132090206;
        over = over * t + 3.5780402569085996758;
        over = over * t + 1.5335297523989890804;
        over = over * t + 3.4839207139657522572e-1;
        over = over * t + 5.3644861147153648366e-2;
        over = over * t + 4.3836709877126095665e-3;
        over = over * t + 1.3858518113496718808e-4;
        over = over * t + 1.1738352509991666680e-6;
        under = 1.0;
        under = under * t + 2.2859981272422905412;
        under = under * t + 4.3859045256449554654;
        under = under * t + 4.6632960348736635331;
        under = under * t + 3.9846608184671757296;
        under = under * t + 1.6068377709719017609;
        under = under * t + 3.5609087305900265560e-1;
        under = under * t + 5.3963550303200816744e-2;
        under = under * t + 4.3873424022706935023e-3;
        under = under * t + 1.3858762165532246059e-4;
        under = under * t + 1.1738313872397777529e-6;
        under = under * t + 0.0;
        value = over / under;
    }
    return value;
}

static __device__ float inverse_f32(u32 x)
{
    bool upper = x > 0x80000000u;
    float p = uniform_f32(upper ? ~x : x);
    float value = 0x1.6a09e6p+0f * (float)inverse_erfc((double)(2.0f * p));
    return upper ? value : -value;
}

static __device__ double inverse_f64(u32 x)
{
    bool upper = x > 0x80000000u;
    double value = 0x1.6a09e667f3bcdp+0 * inverse_erfc(2.0 * uniform_f64_middle(upper ? ~x : x));
    return upper ? value : -value;
}

static __device__ double inverse_f64_wide(u64 x)
{
    const u64 half = 1ull << 52;
    x >>= 11;
    bool upper = x > half;
    x = upper ? (half * 2 - 1) - x : x;
    double value = 0x1.6a09e667f3bcdp+0 * inverse_erfc(2.0 * ((double)x * 0x1p-53 + 0x1p-54));
    return upper ? value : -value;
}

static __device__ float finished(float x, const Draw &draw)
{
    float value = (float)draw.mean + (float)draw.deviation * x;
    return draw.exponential ? (float)exponential((double)value) : value;
}

static __device__ double finished(double x, const Draw &draw)
{
    double value = draw.mean + draw.deviation * x;
    return draw.exponential ? exponential(value) : value;
}

// ---- Poisson's values: crates/libraries/curand/cpu/src/poisson.rs.

static __device__ u32 rounded(float normal, const Draw &draw)
{
    return (u32)(draw.deviation * (double)normal + draw.mean + 0.5);
}

static __device__ u32 poisson(double uniform, const Draw &draw)
{
    if (draw.method == HISTOGRAM) {
        u64 bar = (u64)((double)draw.n * uniform);
        bar = bar < draw.n - 1 ? bar : draw.n - 1;
        const u32 *others = (const u32 *)(draw.ends + draw.n);
        return draw.first + (uniform < draw.ends[bar] ? (u32)bar : others[bar]);
    }
    // How many sums are smaller.
    u32 low = 0, high = draw.n;
    while (low < high) {
        u32 middle = (low + high) / 2;
        if (draw.ends[middle] < uniform)
            low = middle + 1;
        else
            high = middle;
    }
    return draw.first + (low < draw.n - 1 ? low : draw.n - 1);
}

// ---- Recurrences side by side: number n comes from lane n mod lanes. Behind the header lie six columns of words, and one of
// numbers that lanes have kept of pairs.

struct Xorwow {
    u32 v[5], counter;

    __device__ void load(const u32 *at, u64 lanes)
    {
        for (int i = 0; i < 5; i++)
            v[i] = at[i * lanes];
        counter = at[5 * lanes];
    }
    __device__ void store(u32 *at, u64 lanes) const
    {
        for (int i = 0; i < 5; i++)
            at[i * lanes] = v[i];
        at[5 * lanes] = counter;
    }
    __device__ u32 next()
    {
        u32 t = v[0] ^ (v[0] >> 2);
        v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
        v[4] = v[4] ^ (v[4] << 4) ^ t ^ (t << 1);
        counter += 362437;
        return v[4] + counter;
    }
    __device__ u32 bits()
    {
        return next();
    }
    __device__ float single()
    {
        return uniform_f32(next());
    }
    __device__ double wide()
    {
        u32 x = next(), y = next();
        return uniform_f64_pair(x, y);
    }
    __device__ Two<float> normals(float)
    {
        u32 x = next(), y = next();
        return normal_f32_pair(x, y);
    }
    __device__ Two<double> normals(double)
    {
        u32 a = next(), b = next(), c = next(), d = next();
        return normal_f64_pair(a, b, c, d);
    }
};

// MRG32k3a.
struct Mrg {
    u32 a[3], b[3];

    __device__ void load(const u32 *at, u64 lanes)
    {
        for (int i = 0; i < 3; i++)
            a[i] = at[i * lanes], b[i] = at[(i + 3) * lanes];
    }
    __device__ void store(u32 *at, u64 lanes) const
    {
        for (int i = 0; i < 3; i++)
            at[i * lanes] = a[i], at[(i + 3) * lanes] = b[i];
    }
    // What is left of a number below 2^54 by 2^32 less `below`.
    static __device__ u32 reduced(u64 number, u32 below)
    {
        number = (number >> 32) * below + (u32)number;
        number = (number >> 32) * below + (u32)number;
        u64 modulus = (1ull << 32) - below;
        return (u32)(number >= modulus ? number - modulus : number);
    }
    __device__ u32 next()
    {
        u32 first = reduced((u64)1403580 * a[1] + (u64)810728 * (u32)(4294967087u - a[0]), 209);
        u32 second = reduced((u64)527612 * b[2] + (u64)1370589 * (u32)(4294944443u - b[0]), 22853);
        a[0] = a[1], a[1] = a[2], a[2] = first;
        b[0] = b[1], b[1] = b[2], b[2] = second;
        return first - second + (first <= second ? 4294967087u : 0);
    }
    static __device__ double value(u32 z)
    {
        return (double)z * 2.3283065498378288e-10;
    }
    __device__ u32 bits()
    {
        return (u32)(u64)((double)next() * 1.000000048662);
    }
    __device__ float single()
    {
        return (float)value(next());
    }
    __device__ double wide()
    {
        return value(next());
    }
    __device__ Two<float> normals(float)
    {
        u32 x = next(), y = next();
        return polar_f32((float)value(x), (float)value(y) * (2.0f * 0x1.921fb6p+1f));
    }
    __device__ Two<double> normals(double)
    {
        u32 x = next(), y = next();
        return polar_f64(value(x), value(y) * 2.0);
    }
};

// The lane has kept nothing.
static const u32 NONE = 0xffffffffu;

// Ways to draw: how many numbers at once, and which.
struct Bits {
    typedef u32 T;
    enum { OUTS = 1 };
    template <class R> static __device__ void put(R &r, u32 *, u32 *out, const Draw &)
    {
        *out = r.bits();
    }
};
struct Single {
    typedef float T;
    enum { OUTS = 1 };
    template <class R> static __device__ void put(R &r, u32 *, float *out, const Draw &)
    {
        *out = r.single();
    }
};
struct Wide {
    typedef double T;
    enum { OUTS = 1 };
    template <class R> static __device__ void put(R &r, u32 *, double *out, const Draw &)
    {
        *out = r.wide();
    }
};
template <class Number> struct Normal {
    typedef Number T;
    enum { OUTS = 2 };
    template <class R> static __device__ void put(R &r, u32 *, T *out, const Draw &draw)
    {
        Two<T> two = r.normals(T());
        out[0] = finished(two.first, draw);
        out[1] = finished(two.second, draw);
    }
};
struct Poisson {
    typedef u32 T;
    enum { OUTS = 1 };
    template <class R> static __device__ void put(R &r, u32 *half, u32 *out, const Draw &draw)
    {
        if (draw.method != NORMAL) {
            *out = poisson(uniform_f64(r.bits()), draw);
        } else if (*half != NONE) {
            *out = rounded(__uint_as_float(*half), draw);
            *half = NONE;
        } else {
            Two<float> two = r.normals(0.0f);
            *out = rounded(two.first, draw);
            *half = __float_as_uint(two.second);
        }
    }
};

template <class R, class D> static __device__ void side_by_side(Header *header, typename D::T *out, u64 n, const Draw &draw)
{
    u32 lanes = header->n, at = (u32)header->position;
    u64 draws = n / D::OUTS;
    move_on(header, (at + draws) % lanes);
    u32 *states = (u32 *)(header + 1);
    for (u64 nth = blockIdx.x * blockDim.x + threadIdx.x; nth < lanes && nth < draws; nth += gridDim.x * blockDim.x) {
        u32 lane = (u32)((at + nth) % lanes);
        R r;
        r.load(states + lane, lanes);
        u32 *half = states + 6ull * lanes + lane;
        for (u64 i = nth; i < draws; i += lanes)
            D::put(r, half, out + i * D::OUTS, draw);
        r.store(states + lane, lanes);
    }
}

// ---- Philox4x32-10: 65,536 threads take blocks in turns. Behind the header lies each thread's next block.

static __device__ void ten_rounds(u64 seed, u64 block, u32 *words)
{
    u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
    u32 a = (u32)(block >> 16), b = (u32)(block >> 48), c = (u32)block & 0xffff, d = 0;
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 x = (u64)a * 0xd2511f53u, y = (u64)c * 0xcd9e8d57u;
        a = (u32)(y >> 32) ^ b ^ key0, b = (u32)y;
        c = (u32)(x >> 32) ^ d ^ key1, d = (u32)x;
        key0 += 0x9e3779b9u, key1 += 0xbb67ae85u;
    }
    words[0] = a, words[1] = b, words[2] = c, words[3] = d;
}

// Four numbers at once.
struct PhiloxBits {
    typedef u32 T;
    enum { BLOCKS = 1 };
    static __device__ void four(const u32 *w, u32 *to, const Draw &)
    {
        for (int i = 0; i < 4; i++)
            to[i] = w[i];
    }
};
struct PhiloxSingle {
    typedef float T;
    enum { BLOCKS = 1 };
    static __device__ void four(const u32 *w, float *to, const Draw &)
    {
        for (int i = 0; i < 4; i++)
            to[i] = uniform_f32(w[i]);
    }
};
struct PhiloxWide {
    typedef double T;
    enum { BLOCKS = 2 };
    static __device__ void four(const u32 *w, double *to, const Draw &)
    {
        for (int i = 0; i < 4; i++)
            to[i] = uniform_f64_pair(w[2 * i], w[2 * i + 1]);
    }
};
struct PhiloxNormal {
    typedef float T;
    enum { BLOCKS = 1 };
    static __device__ void four(const u32 *w, float *to, const Draw &draw)
    {
#pragma unroll 1
        for (int i = 0; i < 4; i += 2) {
            Two<float> two = normal_f32_pair(i ? w[2] : w[0], i ? w[3] : w[1]);
            float first = finished(two.first, draw), second = finished(two.second, draw);
            if (i)
                to[2] = first, to[3] = second;
            else
                to[0] = first, to[1] = second;
        }
    }
};
struct PhiloxNormalWide {
    typedef double T;
    enum { BLOCKS = 2 };
    static __device__ void four(const u32 *w, double *to, const Draw &draw)
    {
#pragma unroll 1
        for (int i = 0; i < 4; i += 2) {
            Two<double> two = i ? normal_f64_pair(w[4], w[5], w[6], w[7]) : normal_f64_pair(w[0], w[1], w[2], w[3]);
            double first = finished(two.first, draw), second = finished(two.second, draw);
            if (i)
                to[2] = first, to[3] = second;
            else
                to[0] = first, to[1] = second;
        }
    }
};
struct PhiloxPoisson {
    typedef u32 T;
    enum { BLOCKS = 1 };
    static __device__ void four(const u32 *w, u32 *to, const Draw &draw)
    {
        if (draw.method == NORMAL) {
            Two<float> low = normal_f32_pair(w[0], w[1]), high = normal_f32_pair(w[2], w[3]);
            to[0] = rounded(low.first, draw), to[1] = rounded(low.second, draw);
            to[2] = rounded(high.first, draw), to[3] = rounded(high.second, draw);
        } else {
            for (int i = 0; i < 4; i++)
                to[i] = poisson(uniform_f64(w[i]), draw);
        }
    }
};

template <class D> static __device__ void in_turns(Header *header, typename D::T *out, u64 n, const Draw &draw)
{
    const u32 threads = 65536;
    u32 position = (u32)header->position, given = position % 4;
    u64 seed = header->seed, last = given + n;
    move_on(header, (position + n) % (4 * threads));
    u64 *next = (u64 *)(header + 1);
    for (u32 nth = blockIdx.x * blockDim.x + threadIdx.x; nth < threads && 4ull * nth < last; nth += gridDim.x * blockDim.x) {
        u32 thread = (position / 4 + nth) % threads;
        u64 first = 4ull * nth;
        u64 block = next[thread];
        for (; first < last; first += 4 * threads) {
            u32 words[4 * D::BLOCKS];
            typename D::T four[4];
            for (int i = 0; i < D::BLOCKS; i++)
                ten_rounds(seed, block + i * (u64)threads, words + 4 * i);
            D::four(words, four, draw);
            for (int i = 0; i < 4; i++)
                if (first + i >= given && first + i < last)
                    out[first + i - given] = four[i];
            // Else the next call goes on within the four.
            if (first + 4 <= last)
                block += D::BLOCKS * (u64)threads;
        }
        next[thread] = block;
    }
}

// ---- Generators of which each word is a number.

struct WordBits {
    typedef u32 T;
    static __device__ u32 value(u32 x, const Draw &)
    {
        return x;
    }
};
struct WordWideBits {
    typedef u64 T;
    static __device__ u64 value(u64 x, const Draw &)
    {
        return x;
    }
};
struct WordSingle {
    typedef float T;
    static __device__ float value(u32 x, const Draw &)
    {
        return uniform_f32(x);
    }
    static __device__ float value(u64 x, const Draw &)
    {
        return uniform_f32((u32)(x >> 32));
    }
};
struct WordWide {
    typedef double T;
    static __device__ double value(u32 x, const Draw &)
    {
        return uniform_f64(x);
    }
    static __device__ double value(u64 x, const Draw &)
    {
        return uniform_f64_wide(x);
    }
};
struct WordNormal {
    typedef float T;
    static __device__ float value(u32 x, const Draw &draw)
    {
        return finished(inverse_f32(x), draw);
    }
    static __device__ float value(u64 x, const Draw &draw)
    {
        return finished(inverse_f32((u32)(x >> 32)), draw);
    }
};
struct WordNormalWide {
    typedef double T;
    static __device__ double value(u32 x, const Draw &draw)
    {
        return finished(inverse_f64(x), draw);
    }
    static __device__ double value(u64 x, const Draw &draw)
    {
        return finished(inverse_f64_wide(x), draw);
    }
};
struct WordPoisson {
    typedef u32 T;
    static __device__ u32 value(u32 x, const Draw &draw)
    {
        return draw.method == NORMAL ? rounded(inverse_f32(x), draw) : poisson(uniform_f64(x), draw);
    }
    static __device__ u32 value(u64 x, const Draw &draw)
    {
        return draw.method == NORMAL ? rounded(inverse_f32((u32)(x >> 32)), draw) : poisson(uniform_f64_wide(x), draw);
    }
};

// Sobol's sequences: `points` numbers of each dimension, one after the other. A dimension's vectors lie behind each other, then
// its shift.
template <class W, class D>
static __device__ void points(Header *header, typename D::T *out, u64 n, const Draw &draw, const W *tables, u32 dimensions)
{
    const u32 bits = 8 * sizeof(W);
    u64 position = header->position, points = n / dimensions;
    move_on(header, position + points);
    for (u32 dimension = blockIdx.y; dimension < dimensions; dimension += gridDim.y) {
        const W *vectors = tables + (u64)dimension * (bits + 1);
        W shift = vectors[bits];
        for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < points; i += gridDim.x * (u64)blockDim.x) {
            // A sequence of 32-bit words begins again after 2^32 points.
            W number = (W)(position + i), gray = number ^ (number >> 1), point = shift;
            for (u32 bit = 0; gray; bit++, gray >>= 1)
                if (gray & 1)
                    point ^= vectors[bit];
            out[(u64)dimension * points + i] = D::value(point, draw);
        }
    }
}

// MTGP32: a block of 256 threads is a twister, which gives 256 words in its turn. Behind the header lie, for each, eleven
// parameters, 351 words of state and the words of its last turn.
enum { TURN = 256, STATE = 351, PARAMETERS = 11, TWISTER = PARAMETERS + STATE + TURN };

static __device__ u32 entry(const u32 *table, u32 index)
{
    u32 sum = 0;
    for (int bit = 0; bit < 4; bit++)
        sum ^= table[bit] & (0u - (index >> bit & 1));
    return sum;
}

template <class D> __device__ void twisters(Header *header, typename D::T *out, u64 n, const Draw &draw)
{
    __shared__ u32 state[STATE + TURN];
    u32 count = header->n, i = threadIdx.x;
    u64 position = header->position, last = position + n;
    move_on(header, last % ((u64)count * TURN));
    if (blockIdx.x >= count)
        return;
    // Where in the sequence its first turn begins.
    u64 turn = position - position % TURN + (u64)blockIdx.x * TURN;
    u32 own = (u32)(turn / TURN % count);
    u32 *twister = (u32 *)(header + 1) + (u64)own * TWISTER, *words = twister + PARAMETERS + STATE;
    u32 set[PARAMETERS];
    for (int nth = 0; nth < PARAMETERS; nth++)
        set[nth] = twister[nth];
    for (u32 at = i; at < STATE; at += TURN)
        state[at] = twister[PARAMETERS + at];
    u32 word = words[i];
    __syncthreads();
    if (turn < position) {
        // It is begun: what is left of it was made by the last launch.
        u64 at = turn + i;
        if (at >= position && at < last)
            out[at - position] = D::value(word, draw);
        turn += (u64)count * TURN;
    }
    for (; turn < last; turn += (u64)count * TURN) {
        u32 position_of_far = set[0];
        u32 x = (state[i] & 0xfff80000u) ^ state[i + 1];
        u32 y = (x ^ (x << set[1])) ^ (state[i + position_of_far] >> set[2]);
        u32 made = y ^ entry(set + 3, y);
        u32 t = state[i + position_of_far - 1];
        t ^= t >> 16;
        word = made ^ entry(set + 7, t ^ (t >> 8));
        state[STATE + i] = made;
        if (turn + i < last)
            out[turn + i - position] = D::value(word, draw);
        // The last words are the next turn's first.
        __syncthreads();
        u32 low = state[i + TURN], high = i + 2 * TURN < STATE + TURN ? state[i + 2 * TURN] : 0;
        __syncthreads();
        state[i] = low;
        if (i + TURN < STATE)
            state[i + TURN] = high;
        __syncthreads();
    }
    words[i] = word;
    for (u32 at = i; at < STATE; at += TURN)
        twister[PARAMETERS + at] = state[at];
}

// ---- MT19937: 8,192 generators side by side, whose words are interleaved by eights. A block has some of them in shared memory, 16
// threads for each. Behind the header lie their states, twisted: crates/libraries/curand/cpu/src/mt19937/mod.rs.

namespace mt {
enum {
    WORDS = 624,
    MIDDLE = 397,
    // So many words back is the middle one of those behind.
    STEP = WORDS - MIDDLE,
    GENERATORS = 8192,
    EACH = 8,
    ROW = GENERATORS * EACH,
    ROWS = WORDS / EACH,
    // Of a block.
    OWN = 16,
    THREADS = 256,
    LANES = THREADS / OWN,
    OWN_WORDS = OWN * EACH,
    // Generators lie in different banks.
    PITCH = WORDS + 1
};

static __device__ u32 mixed(u32 own, u32 next, u32 middle)
{
    u32 y = (own & 0x80000000u) | (next & 0x7fffffffu);
    return middle ^ (y >> 1) ^ (0x9908b0dfu & (0u - (y & 1)));
}

static __device__ u32 tempered(u32 y)
{
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

// The first row's places in a state. Of external linkage: else its name in PTX follows the folder that this is compiled in.
extern __device__ const u32 FIRST[EACH];
__device__ const u32 FIRST[EACH] = {0, 113, 170, 283, 340, 397, 510, 567};

// Where in its state a generator has word `nth` of a row: of what the first row leaves of the others, in order, each of seven rows
// takes every seventh.
static __device__ u32 place(u32 row, u32 nth)
{
    if (row == 0)
        return FIRST[nth];
    u32 at = (row - 1) / 7 * 56 + (row - 1) % 7 + 7 * nth, before = 1;
#pragma unroll 1
    while (before < EACH && FIRST[before] <= at + before)
        before++;
    return at + before;
}

// The next words of a state, by the lanes of half a warp: none of as many words depends on another of them, but on what was in the
// place behind it.
static __device__ void twist(u32 *state, u32 lane)
{
#pragma unroll 1
    for (u32 i = lane; i < WORDS; i += LANES) {
        u32 made = mixed(state[i], state[i + 1 < WORDS ? i + 1 : 0], state[i < STEP ? i + MIDDLE : i - STEP]);
        __syncwarp();
        state[i] = made;
        __syncwarp();
    }
}
} // namespace mt

template <class D> __device__ void mt_generators(Header *header, typename D::T *out, u64 n, const Draw &draw)
{
    __shared__ u32 states[mt::OWN * mt::PITCH];
    __shared__ unsigned short places[mt::WORDS];
    // Of all states, until they are twisted.
    const u64 all = (u64)mt::ROWS * mt::ROW;
    u64 position = header->position, last = position + n, base = 0;
    move_on(header, last % all);
    // Where a row has this block's words, and whether any of them are asked for.
    u32 own = blockIdx.x * mt::OWN_WORDS, from = (u32)(position % mt::ROW);
    bool meets = n >= mt::ROW || (from < own + mt::OWN_WORDS && from + n > own) || from + n > own + mt::ROW;
    if (last < all && !meets)
        return;
    u32 *kept = (u32 *)(header + 1) + (u64)blockIdx.x * (mt::OWN * mt::WORDS);
    for (u32 i = threadIdx.x; i < mt::OWN * mt::WORDS; i += mt::THREADS)
        states[i / mt::WORDS * mt::PITCH + i % mt::WORDS] = kept[i];
    for (u32 i = threadIdx.x; i < mt::WORDS; i += mt::THREADS)
        places[i] = (unsigned short)mt::place(i / mt::EACH, i % mt::EACH);
    __syncthreads();
    for (;;) {
        u64 begin = position > base ? position - base : 0, end = last - base < all ? last - base : all;
        // Two rows at a time.
        u32 word = threadIdx.x % mt::OWN_WORDS, odd = threadIdx.x / mt::OWN_WORDS;
        for (u32 row = (u32)(begin / mt::ROW) + odd; row * (u64)mt::ROW < end; row += mt::THREADS / mt::OWN_WORDS) {
            u64 at = row * (u64)mt::ROW + own + word;
            if (at >= begin && at < end) {
                u32 place = places[row * mt::EACH + word % mt::EACH];
                out[base + at - position] = D::value(mt::tempered(states[word / mt::EACH * mt::PITCH + place]), draw);
            }
        }
        if (last - base < all)
            break;
        base += all;
        __syncthreads();
        mt::twist(states + threadIdx.x / mt::LANES * mt::PITCH, threadIdx.x % mt::LANES);
        __syncthreads();
    }
    if (base == 0)
        return;
    for (u32 i = threadIdx.x; i < mt::OWN * mt::WORDS; i += mt::THREADS)
        kept[i] = states[i / mt::WORDS * mt::PITCH + i % mt::WORDS];
}

// MT19937's own ways to draw.
struct MtSingle {
    typedef float T;
    static __device__ float value(u32 x, const Draw &)
    {
        return (float)uniform_f64_middle(x);
    }
};
struct MtWide {
    typedef double T;
    static __device__ double value(u32 x, const Draw &)
    {
        return uniform_f64_middle(x);
    }
};
struct MtPoisson {
    typedef u32 T;
    static __device__ u32 value(u32 x, const Draw &draw)
    {
        if (draw.method == NORMAL)
            return (u32)((float)draw.deviation * inverse_f32(x) + (float)draw.mean + 0.5f);
        return poisson(uniform_f64(x), draw);
    }
};

// ---- The kernels: a family's name, then the distribution's.

#define KERNEL(name, T, ...)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) name(Header *header, T *out, u64 n, Draw draw)                                                  \
    {                                                                                                                          \
        __VA_ARGS__(header, out, n, draw);                                                                                     \
    }

#define SIDE_BY_SIDE(name, R)                                                                                                   \
    KERNEL(name##_bits, u32, side_by_side<R, Bits>)                                                                            \
    KERNEL(name##_uniform_f32, float, side_by_side<R, Single>)                                                                 \
    KERNEL(name##_uniform_f64, double, side_by_side<R, Wide>)                                                                  \
    KERNEL(name##_normal_f32, float, side_by_side<R, Normal<float>>)                                                           \
    KERNEL(name##_normal_f64, double, side_by_side<R, Normal<double>>)                                                         \
    KERNEL(name##_poisson, u32, side_by_side<R, Poisson>)

SIDE_BY_SIDE(xorwow, Xorwow)
SIDE_BY_SIDE(mrg, Mrg)

KERNEL(philox_bits, u32, in_turns<PhiloxBits>)
KERNEL(philox_uniform_f32, float, in_turns<PhiloxSingle>)
KERNEL(philox_uniform_f64, double, in_turns<PhiloxWide>)
KERNEL(philox_normal_f32, float, in_turns<PhiloxNormal>)
KERNEL(philox_normal_f64, double, in_turns<PhiloxNormalWide>)
KERNEL(philox_poisson, u32, in_turns<PhiloxPoisson>)

KERNEL(mtgp_bits, u32, twisters<WordBits>)
KERNEL(mtgp_uniform_f32, float, twisters<WordSingle>)
KERNEL(mtgp_uniform_f64, double, twisters<WordWide>)
KERNEL(mtgp_normal_f32, float, twisters<WordNormal>)
KERNEL(mtgp_normal_f64, double, twisters<WordNormalWide>)
KERNEL(mtgp_poisson, u32, twisters<WordPoisson>)

KERNEL(mt_bits, u32, mt_generators<WordBits>)
KERNEL(mt_uniform_f32, float, mt_generators<MtSingle>)
KERNEL(mt_uniform_f64, double, mt_generators<MtWide>)
KERNEL(mt_normal_f32, float, mt_generators<WordNormal>)
KERNEL(mt_normal_f64, double, mt_generators<WordNormalWide>)
KERNEL(mt_poisson, u32, mt_generators<MtPoisson>)

#define POINTS(name, W, D)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) name(Header *header, D::T *out, u64 n, Draw draw, const W *tables, u32 dimensions)              \
    {                                                                                                                          \
        points<W, D>(header, out, n, draw, tables, dimensions);                                                                \
    }

POINTS(sobol32_bits, u32, WordBits)
POINTS(sobol32_uniform_f32, u32, WordSingle)
POINTS(sobol32_uniform_f64, u32, WordWide)
POINTS(sobol32_normal_f32, u32, WordNormal)
POINTS(sobol32_normal_f64, u32, WordNormalWide)
POINTS(sobol32_poisson, u32, WordPoisson)

POINTS(sobol64_bits, u64, WordWideBits)
POINTS(sobol64_uniform_f32, u64, WordSingle)
POINTS(sobol64_uniform_f64, u64, WordWide)
POINTS(sobol64_normal_f32, u64, WordNormal)
POINTS(sobol64_normal_f64, u64, WordNormalWide)
POINTS(sobol64_poisson, u64, WordPoisson)
