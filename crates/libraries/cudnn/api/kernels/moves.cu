// What has to know where an element is: random numbers, rotations by position, rows that are gathered from pages. Meanings are those of
// crates/libraries/cudnn/api/src/graph/random.rs, rotation.rs and moves.rs.

#include "angles.cuh"

// The most tensors that are given and taken.
const int MOVED = 6;

// What stands in which tensor and number is each kernel's.
struct Moves {
    Tensor tensors[MOVED];
    Sizes sizes;
    i64 whole[4];
    double numbers[4];
};

// A whole number, as far as a double has it.
static __device__ i64 whole(const Tensor &tensor)
{
    switch (tensor.kind) {
    case F64:
        return (i64) * (const double *)tensor.at;
    case I32:
        return *(const int *)tensor.at;
    case I64:
        return (i64)(double)*(const i64 *)tensor.at;
    default:
        return (i64)load(tensor, 0);
    }
}

// The first word of Philox 4x32-10 at this counter.
static __device__ u32 philox(u64 seed, u64 subsequence, u64 offset)
{
    u32 a = (u32)offset, b = (u32)(offset >> 32), c = (u32)subsequence, d = (u32)(subsequence >> 32);
    u32 first = (u32)seed, second = (u32)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        u64 x = (u64)a * 0xd2511f53, y = (u64)c * 0xcd9e8d57;
        a = (u32)(y >> 32) ^ b ^ first;
        b = (u32)y;
        c = (u32)(x >> 32) ^ d ^ second;
        d = (u32)x;
        first += 0x9e3779b9;
        second += 0xbb67ae85;
    }
    return a;
}

// Tensor 0: what is given. Tensor 1: what it is multiplied by, if it is there. Tensor 2: strides that make an element's number, from the
// first on, which is the first whole number. 3 and 4: seed and offset, or the next whole numbers. The last whole number tells whether
// numbers 0 to 1 are a range; else 1 comes as often as the first says. The third is a factor.
extern "C" __global__ void draw(Moves how)
{
    const Tensor *t = how.tensors;
    i64 seed = t[3].kind == NONE ? how.whole[1] : whole(t[3]), offset = t[4].kind == NONE ? how.whole[2] : whole(t[4]);
    FOR_NUMBERS(how.sizes.count, number)
    {
        Offsets<3> at = offsets<3, false>(how.sizes, t, (u32)number);
        double unit = (double)philox(seed, how.whole[0] + at.of[2], offset) * 0x1p-32;
        double value = unit < how.numbers[0] ? 1.0 : 0.0;
        if (how.whole[3])
            value = how.numbers[0] + (how.numbers[1] - how.numbers[0]) * unit;
        value *= how.numbers[2];
        if (t[1].kind != NONE)
            // What is dropped is 0 whatever it was.
            value = value == 0.0 ? 0.0 : value * load(t[1], at.of[1]);
        store(t[0], at.of[0], (float)value);
    }
}

// Tensor 0 of tensor 1: the last elements of a row, so many as the second whole number says, turn by the angles of its position (tensor 2,
// whose inner stride goes along them), each of their first half with its like of the second. Tensor 3: strides that make the place in the
// row, whose length is the first whole number; inner strides of 1 go along the row. Numbers: a factor, and 1 or -1 for the direction.
extern "C" __global__ void rotate(Moves how)
{
    const Tensor *t = how.tensors;
    i64 first = how.whole[0] - how.whole[1], half = how.whole[1] / 2;
    FOR_NUMBERS(how.sizes.count, number)
    {
        Offsets<4> at = offsets<4, false>(how.sizes, t, (u32)number);
        i64 place = at.of[3] - first;
        double own = load(t[1], at.of[1]), value = how.numbers[0] * own;
        if (place >= 0) {
            bool is_low = place < half;
            i64 step = is_low ? half : -half;
            double sine, cosine, other = load(t[1], at.of[1] + step * t[1].inner[0]);
            float angle = load(t[2], at.of[2] + (is_low ? place : place - half) * t[2].inner[0]);
            sine_cosine_of_any(angle, &sine, &cosine);
            sine *= how.numbers[0] * how.numbers[1];
            cosine *= how.numbers[0];
            value = is_low ? own * cosine - other * sine : own * cosine + other * sine;
        }
        store(t[0], at.of[0], (float)value);
    }
}

// Tensor 0 of the pages in tensor 1, whose inner strides go along pages and rows; tensor 2: the table of pages, along which its inner
// stride goes. Tensor 3: a sequence's length, behind which rows are 0, as are those of a page that there is not. Tensor 4: strides that
// make the row. Whole numbers: how many pages there are, and how many rows each has.
extern "C" __global__ void gather(Moves how)
{
    const Tensor *t = how.tensors;
    FOR_NUMBERS(how.sizes.count, number)
    {
        Offsets<5> at = offsets<5, false>(how.sizes, t, (u32)number);
        i64 row = at.of[4], nth = row / how.whole[1];
        float value = 0.0f;
        if ((float)row < load(t[3], at.of[3])) {
            float page = load(t[2], at.of[2] + nth * t[2].inner[0]);
            if (page >= 0.0f && page < (float)how.whole[0])
                value = load(t[1], at.of[1] + (i64)page * t[1].inner[0] + (row - nth * how.whole[1]) * t[1].inner[1]);
        }
        store(t[0], at.of[0], value);
    }
}
