// cuFFTW as FFTW's programs use it, built against NVIDIA's cufftw.h: `fftw SEED COUNT`. Drawn transforms by all planners, on the host's
// memory and on the device's, beside the definition.
#include "reference.h"

#include <algorithm>
#include <cufftw.h>

struct Double {
    typedef double Real;
    typedef fftw_complex Complex;
    static const int index = 3;
#define WITH(name, result) \
    template <typename... A> static result name(A... a) { return fftw_##name(a...); }
    WITH(plan_dft_1d, fftw_plan) WITH(plan_dft_2d, fftw_plan) WITH(plan_dft_3d, fftw_plan) WITH(plan_dft, fftw_plan)
    WITH(plan_dft_r2c_1d, fftw_plan) WITH(plan_dft_r2c_2d, fftw_plan) WITH(plan_dft_r2c_3d, fftw_plan) WITH(plan_dft_r2c, fftw_plan)
    WITH(plan_dft_c2r_1d, fftw_plan) WITH(plan_dft_c2r_2d, fftw_plan) WITH(plan_dft_c2r_3d, fftw_plan) WITH(plan_dft_c2r, fftw_plan)
    WITH(plan_many_dft, fftw_plan) WITH(plan_many_dft_r2c, fftw_plan) WITH(plan_many_dft_c2r, fftw_plan)
    WITH(plan_guru_dft, fftw_plan) WITH(plan_guru_dft_r2c, fftw_plan) WITH(plan_guru_dft_c2r, fftw_plan)
    WITH(plan_guru64_dft, fftw_plan) WITH(plan_guru64_dft_r2c, fftw_plan) WITH(plan_guru64_dft_c2r, fftw_plan)
    WITH(execute, void) WITH(execute_dft, void) WITH(execute_dft_r2c, void) WITH(execute_dft_c2r, void)
    WITH(destroy_plan, void) WITH(malloc, void *) WITH(free, void) WITH(cost, double) WITH(flops, void)
#undef WITH
};

struct Single {
    typedef float Real;
    typedef fftwf_complex Complex;
    static const int index = 2;
#define WITH(name, result) \
    template <typename... A> static result name(A... a) { return fftwf_##name(a...); }
    WITH(plan_dft_1d, fftw_plan) WITH(plan_dft_2d, fftw_plan) WITH(plan_dft_3d, fftw_plan) WITH(plan_dft, fftw_plan)
    WITH(plan_dft_r2c_1d, fftw_plan) WITH(plan_dft_r2c_2d, fftw_plan) WITH(plan_dft_r2c_3d, fftw_plan) WITH(plan_dft_r2c, fftw_plan)
    WITH(plan_dft_c2r_1d, fftw_plan) WITH(plan_dft_c2r_2d, fftw_plan) WITH(plan_dft_c2r_3d, fftw_plan) WITH(plan_dft_c2r, fftw_plan)
    WITH(plan_many_dft, fftw_plan) WITH(plan_many_dft_r2c, fftw_plan) WITH(plan_many_dft_c2r, fftw_plan)
    WITH(plan_guru_dft, fftw_plan) WITH(plan_guru_dft_r2c, fftw_plan) WITH(plan_guru_dft_c2r, fftw_plan)
    WITH(plan_guru64_dft, fftw_plan) WITH(plan_guru64_dft_r2c, fftw_plan) WITH(plan_guru64_dft_c2r, fftw_plan)
    WITH(execute, void) WITH(execute_dft, void) WITH(execute_dft_r2c, void) WITH(execute_dft_c2r, void)
    WITH(destroy_plan, void) WITH(malloc, void *) WITH(free, void) WITH(cost, double) WITH(flops, void)
#undef WITH
};

// An axis or an index of batches, with its strides on both sides.
struct Index {
    long long n, from, to;
};

// Axes and batches in any order of memory: the strides of one side.
static void drawn_strides(std::vector<Index *> indices, bool input, const std::vector<long long> &counts, Dice &dice)
{
    std::vector<size_t> order(indices.size());
    for (size_t i = 0; i < order.size(); i++)
        order[i] = i;
    for (size_t i = order.size(); i > 1; i--)
        std::swap(order[i - 1], order[dice.below(static_cast<long long>(i))]);
    long long step = dice.between(1, 2);
    for (size_t i : order) {
        (input ? indices[i]->from : indices[i]->to) = step;
        step *= counts[i] + dice.below(2);
    }
}

static long long place(const std::vector<Index> &axes, const std::vector<Index> &batches, const std::vector<long long> &counts, bool input,
                       long long b, long long i)
{
    long long at = 0;
    for (int axis = static_cast<int>(batches.size()) - 1; axis >= 0; b /= batches[axis].n, axis--)
        at += b % batches[axis].n * (input ? batches[axis].from : batches[axis].to);
    for (int axis = static_cast<int>(axes.size()) - 1; axis >= 0; i /= counts[axis], axis--)
        at += i % counts[axis] * (input ? axes[axis].from : axes[axis].to);
    return at;
}

template <typename P>
static double one(Dice &dice)
{
    typedef typename P::Real Real;
    typedef typename P::Complex Complex;
    const Precision &precision = PRECISIONS[P::index];
    const Kind kind = static_cast<Kind>(dice.below(3));
    const int rank = static_cast<int>(dice.between(1, 3)), sign = kind == R2C ? -1 : kind == C2R ? 1 : dice.below(2) ? 1 : -1;
    std::vector<Index> axes(rank), batches;
    std::vector<long long> n, half;
    for (Index &axis : axes)
        n.push_back(axis.n = drawn_length(rank, dice) % 100 + 1);
    half = n;
    half.back() = n.back() / 2 + 1;
    const std::vector<long long> &from = kind == C2R ? half : n, &to = kind == R2C ? half : n;
    // 0: arrays without gaps; 1: embeddings; 2 and 3: the guru's two forms.
    const int form = static_cast<int>(dice.below(4));
    const bool in_place = form < 2 && dice.below(3) == 0;
    const bool from_complex = kind != R2C, to_complex = kind != C2R;
    std::vector<int> ie, oe, n32(n.begin(), n.end());
    const bool without = form == 1 && dice.below(2);
    if (form < 2) {
        auto dense = [&](bool input) {
            const std::vector<long long> &counts = input ? from : to;
            const bool complex = input ? from_complex : to_complex;
            std::vector<int> embed(counts.begin(), counts.end());
            if (!complex && in_place)
                embed.back() = static_cast<int>(2 * half.back());
            return embed;
        };
        ie = dense(true), oe = dense(false);
        long long more = form == 1 && !without ? dice.below(3) : 0;
        ie.back() += static_cast<int>(more * (from_complex || !in_place ? 1 : 2));
        oe.back() += static_cast<int>(more * (to_complex || !in_place ? 1 : 2));
        const long long stride = form == 1 && !(in_place && kind != C2C) ? dice.between(1, 2) : 1;
        long long is = stride, os = stride;
        for (int axis = rank - 1; axis >= 0; axis--) {
            axes[axis].from = is, axes[axis].to = os;
            is *= ie[axis], os *= oe[axis];
        }
        if (form == 1)
            batches.push_back({dice.between(1, 4), is, os});
    } else {
        for (long long count = dice.below(3); count > 0; count--)
            batches.push_back({dice.between(1, 3), 0, 0});
        for (bool input : {true, false}) {
            std::vector<Index *> all;
            std::vector<long long> counts = input ? from : to;
            for (Index &axis : axes)
                all.push_back(&axis);
            for (Index &batch : batches)
                all.push_back(&batch), counts.push_back(batch.n);
            drawn_strides(all, input, counts, dice);
        }
    }
    long long volume = 1, count = 1, work = 0;
    for (long long length : n)
        volume *= length, work += length;
    for (const Index &batch : batches)
        count *= batch.n;
    if (work * volume * count > 1000000)
        return -1;
    long long from_volume = 1, to_volume = 1;
    for (int axis = 0; axis < rank; axis++)
        from_volume *= from[axis], to_volume *= to[axis];
    const long long in_elements = place(axes, batches, from, true, count - 1, from_volume - 1) + 1;
    const long long out_elements = place(axes, batches, to, false, count - 1, to_volume - 1) + 1;
    const size_t in_bytes = in_elements * sizeof(Real) * (from_complex ? 2 : 1), out_bytes = out_elements * sizeof(Real) * (to_complex ? 2 : 1);

    const bool on_device = dice.below(2);
    const size_t room = in_place ? std::max(in_bytes, out_bytes) : in_bytes;
    std::vector<unsigned char> host(room), host_out(out_bytes);
    for (unsigned char &byte : host)
        byte = static_cast<unsigned char>(dice.next());
    std::vector<std::vector<Number>> inputs(count, std::vector<Number>(volume));
    const long long last = n.back();
    for (long long b = 0; b < count; b++) {
        std::vector<Number> &whole = inputs[b];
        for (long long i = 0; i < volume; i++) {
            if (kind == C2R && i % last > last / 2)
                continue;
            double re = dice.unit(), im = dice.unit();
            long long element = i;
            if (kind == C2R) {
                long long across = 0, step = 1, rest = i;
                for (int axis = rank - 1; axis >= 0; axis--)
                    across += (n[axis] - rest % n[axis]) % n[axis] * step, step *= n[axis], rest /= n[axis];
                if (across == i)
                    im = 0;
                else if (across < i && across % last <= last / 2)
                    re = static_cast<double>(whole[across].re), im = -static_cast<double>(whole[across].im);
                element = i / last * half.back() + i % last;
            }
            unsigned char *at = host.data() + place(axes, batches, from, true, b, element) * sizeof(Real) * (from_complex ? 2 : 1);
            whole[i].re = store(precision, at, re);
            whole[i].im = from_complex ? store(precision, at + sizeof(Real), im) : 0;
        }
        if (kind == C2R)
            for (long long i = 0; i < volume; i++)
                if (i % last > last / 2) {
                    long long across = 0, step = 1, rest = i;
                    for (int axis = rank - 1; axis >= 0; axis--)
                        across += (n[axis] - rest % n[axis]) % n[axis] * step, step *= n[axis], rest /= n[axis];
                    whole[i] = {whole[across].re, -whole[across].im};
                }
    }
    void *input, *output;
    if (on_device) {
        CHECK(cudaMalloc(&input, room));
        CHECK(cudaMemcpy(input, host.data(), room, cudaMemcpyHostToDevice));
        output = input;
        if (!in_place)
            CHECK(cudaMalloc(&output, out_bytes));
    } else {
        input = P::malloc(room);
        output = in_place ? input : P::malloc(out_bytes);
        std::memcpy(input, host.data(), room);
    }
    Complex *ci = static_cast<Complex *>(input), *co = static_cast<Complex *>(output);
    Real *ri = static_cast<Real *>(input), *ro = static_cast<Real *>(output);
    const unsigned flags = FFTW_ESTIMATE;
    fftw_plan plan = nullptr;
    if (form == 0 && dice.below(2)) {
        const int *l = n32.data();
        plan = kind == C2C ? P::plan_dft(rank, l, ci, co, sign, flags) : kind == R2C ? P::plan_dft_r2c(rank, l, ri, co, flags) : P::plan_dft_c2r(rank, l, ci, ro, flags);
    } else if (form == 0 && rank == 1) {
        const int a = n32[0];
        plan = kind == C2C ? P::plan_dft_1d(a, ci, co, sign, flags) : kind == R2C ? P::plan_dft_r2c_1d(a, ri, co, flags) : P::plan_dft_c2r_1d(a, ci, ro, flags);
    } else if (form == 0 && rank == 2) {
        const int a = n32[0], b = n32[1];
        plan = kind == C2C ? P::plan_dft_2d(a, b, ci, co, sign, flags) : kind == R2C ? P::plan_dft_r2c_2d(a, b, ri, co, flags) : P::plan_dft_c2r_2d(a, b, ci, ro, flags);
    } else if (form == 0) {
        const int a = n32[0], b = n32[1], c = n32[2];
        plan = kind == C2C   ? P::plan_dft_3d(a, b, c, ci, co, sign, flags)
               : kind == R2C ? P::plan_dft_r2c_3d(a, b, c, ri, co, flags)
                             : P::plan_dft_c2r_3d(a, b, c, ci, ro, flags);
    } else if (form == 1) {
        const int *iep = without ? nullptr : ie.data(), *oep = without ? nullptr : oe.data(), batch = static_cast<int>(count);
        const int is = static_cast<int>(axes.back().from), os = static_cast<int>(axes.back().to);
        const int id = static_cast<int>(batches[0].from), od = static_cast<int>(batches[0].to), *l = n32.data();
        plan = kind == C2C   ? P::plan_many_dft(rank, l, batch, ci, iep, is, id, co, oep, os, od, sign, flags)
               : kind == R2C ? P::plan_many_dft_r2c(rank, l, batch, ri, iep, is, id, co, oep, os, od, flags)
                             : P::plan_many_dft_c2r(rank, l, batch, ci, iep, is, id, ro, oep, os, od, flags);
    } else {
        std::vector<fftw_iodim> d, e;
        std::vector<fftw_iodim64> d64, e64;
        for (const Index &axis : axes)
            d.push_back({static_cast<int>(axis.n), static_cast<int>(axis.from), static_cast<int>(axis.to)}), d64.push_back({axis.n, axis.from, axis.to});
        for (const Index &batch : batches)
            e.push_back({static_cast<int>(batch.n), static_cast<int>(batch.from), static_cast<int>(batch.to)}), e64.push_back({batch.n, batch.from, batch.to});
        const int indices = static_cast<int>(e.size());
        if (form == 2)
            plan = kind == C2C   ? P::plan_guru_dft(rank, d.data(), indices, e.data(), ci, co, sign, flags)
                   : kind == R2C ? P::plan_guru_dft_r2c(rank, d.data(), indices, e.data(), ri, co, flags)
                                 : P::plan_guru_dft_c2r(rank, d.data(), indices, e.data(), ci, ro, flags);
        else
            plan = kind == C2C   ? P::plan_guru64_dft(rank, d64.data(), indices, e64.data(), ci, co, sign, flags)
                   : kind == R2C ? P::plan_guru64_dft_r2c(rank, d64.data(), indices, e64.data(), ri, co, flags)
                                 : P::plan_guru64_dft_c2r(rank, d64.data(), indices, e64.data(), ci, ro, flags);
    }
    std::string text = std::string(precision.name) + " form " + std::to_string(form) + " kind " + std::to_string(kind) + (in_place ? " in place" : "") + (without ? " without embeddings" : "");
    for (const Index &axis : axes)
        text += " [" + std::to_string(axis.n) + " " + std::to_string(axis.from) + " " + std::to_string(axis.to) + "]";
    for (const Index &batch : batches)
        text += " x[" + std::to_string(batch.n) + " " + std::to_string(batch.from) + " " + std::to_string(batch.to) + "]";
    if (!plan)
        fail(text + ": no plan");
    if (dice.below(2))
        P::execute(plan);
    else if (kind == C2C)
        P::execute_dft(plan, ci, co);
    else if (kind == R2C)
        P::execute_dft_r2c(plan, ri, co);
    else
        P::execute_dft_c2r(plan, ci, ro);
    if (volume > 1 && !(P::cost(plan) > 0))
        fail(text + ": costs nothing");
    P::destroy_plan(plan);
    // All is done when the call returns.
    if (on_device)
        CHECK(cudaMemcpy(host_out.data(), output, out_bytes, cudaMemcpyDeviceToHost));
    else
        std::memcpy(host_out.data(), output, out_bytes);
    if (on_device) {
        CHECK(cudaFree(input));
        if (!in_place)
            CHECK(cudaFree(output));
    } else {
        P::free(input);
        if (!in_place)
            P::free(output);
    }
    double worst = 0;
    for (long long b = 0; b < count; b++) {
        transform(inputs[b], n, sign);
        long double off = 0, size = 0;
        for (long long i = 0; i < to_volume; i++) {
            const Number &expected = inputs[b][kind == R2C ? i / half.back() * last + i % half.back() : i];
            const unsigned char *at = host_out.data() + place(axes, batches, to, false, b, i) * sizeof(Real) * (to_complex ? 2 : 1);
            for (int part = 0; part < (to_complex ? 2 : 1); part++) {
                const long double should = part ? expected.im : expected.re, got = load(precision, at + part * sizeof(Real));
                off += (got - should) * (got - should);
                size += should * should;
            }
        }
        const double error = size > 0 ? static_cast<double>(sqrtl(off / size)) : static_cast<double>(off);
        const double bound = precision.bound * std::max(1.0, std::log2(static_cast<double>(volume)));
        if (!(error <= bound))
            fail(text + ": off by " + std::to_string(error / bound) + " of the bound");
        worst = std::max(worst, error / bound);
    }
    return worst;
}

__global__ void fill(fftw_complex *data, int n)
{
    for (int i = 0; i < n; i++)
        data[i][0] = 1, data[i][1] = 0;
}

int main(int count, char **arguments)
{
    Dice dice{count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 1};
    const int plans = count > 2 ? std::atoi(arguments[2]) : 100;
    double worst = 0;
    for (int i = 0; i < plans;) {
        const double error = i % 2 ? one<Single>(dice) : one<Double>(dice);
        i += error >= 0;
        worst = std::max(worst, error);
    }

    // Behind a kernel in the default stream.
    const int n = 1 << 14;
    fftw_complex *data;
    CHECK(cudaMallocManaged(&data, n * sizeof *data));
    fftw_plan plan = fftw_plan_dft_1d(n, data, data, FFTW_FORWARD, FFTW_MEASURE);
    fill<<<1, 1>>>(data, n);
    fftw_execute(plan);
    for (int i = 0; i < n; i++)
        if (std::fabs(data[i][0] - (i == 0 ? n : 0)) > 1e-9 || std::fabs(data[i][1]) > 1e-9)
            fail("a transform behind a kernel");
    double add = 0, mul = 0, fma = 1;
    fftw_flops(plan, &add, &mul, &fma);
    if (add + mul + fma != fftw_cost(plan))
        fail("operations");
    fftw_set_timelimit(1);
    fftw_export_wisdom_to_file(stdout);
    if (fftw_import_wisdom_from_file(stdin) != 0)
        fail("wisdom that nobody has");
    fftw_destroy_plan(plan);
    fftw_destroy_plan(nullptr);
    fftw_cleanup();

    const int lengths[] = {8, 8, 8, 8};
    if (fftw_plan_dft_1d(0, data, data, FFTW_FORWARD, 0) || fftw_plan_dft_1d(8, data, data, 0, 0) || fftw_plan_dft(0, lengths, data, data, FFTW_FORWARD, 0) ||
        fftw_plan_dft(4, lengths, data, data, FFTW_FORWARD, 0) || fftw_plan_dft(2, nullptr, data, data, FFTW_FORWARD, 0))
        fail("what cannot be planned has a plan");
    std::printf("%d plans, errors up to %.3f of the bound\n", plans, worst);
    return 0;
}
