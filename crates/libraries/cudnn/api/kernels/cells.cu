// Recurrent networks between their products. Names and meanings are those of crates/libraries/cudnn/cpu/src/recurrent and dropout.rs.

#include "tensors.cuh"

const int CELL_TENSORS = 8;

// What stands in which tensor is each kernel's, floats if nothing else is said; their first outer strides are the distances of rows,
// whose numbers lie together.
struct Cells {
    Tensor tensors[CELL_TENSORS];
    u32 rows;
    u32 width;
    u32 cell;
    // Rows of which the first is another's, and so on.
    u32 count;
    u64 whole[5];
    double numbers[2];
    u32 keeps_nan;
};

enum Cell { RELU, TANH, LSTM, GRU };

// Words of a reserve space's header and of states.
enum Word { MARK, ROWS, WEIGHTS, DROPPED, SEED, TAKEN };
enum State { STATE_MARK, STATE_SEED, STATE_TAKEN };

#define FOR_EACH(how, row, column) \
    FOR_NUMBERS((u64)how.rows * how.width, number) \
        for (u32 row = (u32)number / how.width, column = (u32)number - row * how.width, once = 1; once; once = 0)

// Of floats, or 0 where there is no tensor.
static __device__ float read(const Tensor &tensor, u32 row, u32 column)
{
    return tensor.at ? ((const float *)tensor.at)[row * tensor.outer[0] + column] : 0.0f;
}

static __device__ void write(const Tensor &tensor, u32 row, u32 column, float value)
{
    if (tensor.at)
        ((float *)tensor.at)[row * tensor.outer[0] + column] = value;
}

// Of any types: rows of tensor 1, or zeros, become those of tensor 0. Tensor 2 has the numbers of rows, if it is there: of those that are taken, or, if
// the count is 1, of those that are given.
extern "C" __global__ void arrange(Cells how)
{
    const Tensor *t = how.tensors;
    FOR_EACH(how, row, column)
    {
        u32 other = t[2].kind == NONE ? row : ((const u32 *)t[2].at)[row];
        float value = load(t[1], (how.count ? row : other) * t[1].outer[0] + column);
        store(t[0], (how.count ? other : row) * t[0].outer[0] + column, value);
    }
}

// Tensor 0, gates, begin as the sums of both biases, tensors 1 and 2 of any types, but for the one that the GRU's reset gate is multiplied with, and of
// inputs that are not multiplied, tensor 3. The count is a gate's size, the first whole number that of gates which have such.
extern "C" __global__ void begin(Cells how)
{
    const Tensor *t = how.tensors;
    FOR_EACH(how, row, column)
    {
        u32 gate = column / how.count;
        float sum = 0.0f;
        if (gate < how.whole[0]) {
            sum = load(t[1], column);
            if (how.cell != GRU || gate != 2)
                sum += load(t[2], column);
            sum += read(t[3], row, column - gate * how.count);
        }
        write(t[0], row, column, sum);
    }
}

static __device__ float clipped(const Cells &how, float cell)
{
    float low = (float)how.numbers[0], high = (float)how.numbers[1];
    if (cell > high)
        return high;
    return cell < low || (cell != cell && !how.keeps_nan) ? low : cell;
}

// A step. Tensor 0: gates, which get their values; 1: the products of the state's, of the GRU alone, and 2, of any type, the bias that
// goes with the reset gate; 3: cells, which become new, and 4 where they are kept; 5: the state, or what is projected to it; 6: outputs, if those are it.
// The first whole number is 1 where cells have bounds.
extern "C" __global__ void step(Cells how)
{
    const Tensor *t = how.tensors;
    u32 n = how.width;
    FOR_EACH(how, row, column)
    {
        float first = read(t[0], row, column), state;
        if (how.cell == RELU || how.cell == TANH) {
            state = how.cell == TANH ? hyperbolic_tangent(first) : first > 0.0f ? first : 0.0f;
            write(t[0], row, column, state);
        } else if (how.cell == LSTM) {
            float i = sigmoid(first), f = sigmoid(read(t[0], row, n + column));
            float g = hyperbolic_tangent(read(t[0], row, 2 * n + column)), o = sigmoid(read(t[0], row, 3 * n + column));
            float cell = f * read(t[3], row, column) + i * g;
            if (how.whole[0])
                cell = clipped(how, cell);
            state = o * hyperbolic_tangent(cell);
            write(t[0], row, column, i);
            write(t[0], row, n + column, f);
            write(t[0], row, 2 * n + column, g);
            write(t[0], row, 3 * n + column, o);
            write(t[3], row, column, cell);
            write(t[4], row, column, cell);
        } else {
            float r = sigmoid(first + read(t[1], row, column));
            float z = sigmoid(read(t[0], row, n + column) + read(t[1], row, n + column));
            float share = read(t[1], row, 2 * n + column) + load(t[2], column);
            float memory = hyperbolic_tangent(read(t[0], row, 2 * n + column) + r * share);
            state = (1.0f - z) * memory + z * read(t[5], row, column);
            write(t[0], row, column, r);
            write(t[0], row, n + column, z);
            write(t[0], row, 2 * n + column, memory);
            write(t[0], row, 3 * n + column, share);
        }
        write(t[5], row, column, state);
        write(t[6], row, column, state);
    }
}

// A step of the way back. Tensor 0: gates, 1: cells; 2: cells or states in front of the step, of so many rows as the count says, and 3 of
// the others; 4: the gradient of the state, or of what is projected to it; 5: that of cells; 6: those in front of the gates' functions.
extern "C" __global__ void step_backward(Cells how)
{
    const Tensor *t = how.tensors;
    u32 n = how.width;
    FOR_EACH(how, row, column)
    {
        float full = read(t[4], row, column), first = read(t[0], row, column);
        if (how.cell == RELU || how.cell == TANH) {
            write(t[6], row, column, full * (how.cell == TANH ? 1.0f - first * first : first > 0.0f ? 1.0f : 0.0f));
            continue;
        }
        float before = read(row < how.count ? t[2] : t[3], row, column), second = read(t[0], row, n + column);
        float third = read(t[0], row, 2 * n + column), fourth = read(t[0], row, 3 * n + column);
        if (how.cell == LSTM) {
            float i = first, f = second, g = third, o = fourth, bent = hyperbolic_tangent(read(t[1], row, column));
            float dcell = read(t[5], row, column) + full * o * (1.0f - bent * bent);
            float cell = f * before + i * g;
            if (how.whole[0] && (cell < (float)how.numbers[0] || cell > (float)how.numbers[1]))
                dcell = 0.0f;
            write(t[6], row, column, dcell * g * i * (1.0f - i));
            write(t[6], row, n + column, dcell * before * f * (1.0f - f));
            write(t[6], row, 2 * n + column, dcell * i * (1.0f - g * g));
            write(t[6], row, 3 * n + column, full * bent * o * (1.0f - o));
            write(t[5], row, column, dcell * f);
        } else {
            float r = first, z = second, memory = third, share = fourth, dmemory = full * (1.0f - z) * (1.0f - memory * memory);
            write(t[6], row, column, dmemory * share * r * (1.0f - r));
            write(t[6], row, n + column, full * (before - memory) * z * (1.0f - z));
            write(t[6], row, 2 * n + column, dmemory);
            write(t[6], row, 3 * n + column, dmemory * r);
            write(t[4], row, column, full * z);
        }
    }
}

// Tensor 0: an LSTM's outputs before they are projected, of its gates, tensor 1, and cells, tensor 2.
extern "C" __global__ void outputs(Cells how)
{
    const Tensor *t = how.tensors;
    FOR_EACH(how, row, column)
        write(t[0], row, column, read(t[1], row, 3 * how.width + column) * hyperbolic_tangent(read(t[2], row, column)));
}

// A random word by its place in a sequence.
static __device__ u64 mixed(u64 z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// Drops numbers of tensor 0, which lie together, by the header in tensor 1; the first whole number is that of the first word.
extern "C" __global__ void drop(Cells how)
{
    const u64 *header = (const u64 *)how.tensors[1].at;
    double dropped = __longlong_as_double(header[DROPPED]);
    if (dropped == 0.0)
        return;
    FOR_EACH(how, row, column)
    {
        u64 place = header[TAKEN] + how.whole[0] + number;
        u32 word = (u32)(mixed(mixed(header[SEED] + 0x9e3779b97f4a7c15ull) + place * 0x9e3779b97f4a7c15ull) >> 32);
        float value = (double)word >= dropped * 4294967296.0 ? read(how.tensors[0], row, column) * (float)(1.0 / (1.0 - dropped)) : 0.0f;
        write(how.tensors[0], row, column, value);
    }
}

// Writes a header, tensor 0, of the first three whole numbers and of what is dropped by states, tensor 1, which go on by the fourth; the
// fifth is in front of states.
extern "C" __global__ void header(Cells how)
{
    u64 *to = (u64 *)how.tensors[0].at, *states = (u64 *)how.tensors[1].at;
    bool drops = how.tensors[1].kind != NONE && states[STATE_MARK] == how.whole[4];
    to[MARK] = how.whole[0];
    to[ROWS] = how.whole[1];
    to[WEIGHTS] = how.whole[2];
    to[DROPPED] = drops ? __double_as_longlong(how.numbers[0]) : 0;
    to[SEED] = drops ? states[STATE_SEED] : 0;
    to[TAKEN] = drops ? states[STATE_TAKEN] : 0;
    if (drops)
        states[STATE_TAKEN] += how.whole[3];
}

const int TABLED = 960;

struct Table {
    u64 at;
    u32 count;
    u32 unused;
    u32 numbers[TABLED];
};

extern "C" __global__ void table(Table how)
{
    for (u32 number = threadIdx.x; number < how.count; number += blockDim.x)
        ((u32 *)how.at)[number] = how.numbers[number];
}
