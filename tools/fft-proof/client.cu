// Programs that use cuFFT as its manual says, built by nvcc against NVIDIA's headers: `client PART [SEED COUNT]`. What is wrong is
// printed, and ends the program with 1; a part that is right ends with a line that says what was tried.
#include "reference.h"

#include <algorithm>
#include <atomic>
#include <thread>

static const long long MARGIN = 128;  // bytes before and behind, which nobody may touch

// The host's picture of an array on the device.
struct Array {
    std::vector<unsigned char> before, bytes;
    unsigned char *device;

    Array(long long reals, const Precision &of, Dice &dice) : bytes(reals * of.bytes + 2 * MARGIN)
    {
        for (unsigned char &byte : bytes)
            byte = static_cast<unsigned char>(dice.next());
        CHECK(cudaMalloc(&device, bytes.size()));
    }
    Array(const Array &) = delete;
    ~Array() { cudaFree(device); }

    unsigned char *real(long long i, const Precision &of) { return &bytes[MARGIN + i * of.bytes]; }
    void *start() { return device + MARGIN; }
    void upload()
    {
        before = bytes;
        CHECK(cudaMemcpy(device, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    }
    void download() { CHECK(cudaMemcpy(bytes.data(), device, bytes.size(), cudaMemcpyDeviceToHost)); }
};

// A plan of a case by one of the calls that can make it.
static cufftHandle made(const Case &c, Dice &dice)
{
    cufftHandle plan = -7;
    size_t size = 1, again = 2;
    const int rank = static_cast<int>(c.n.size());
    std::vector<long long> n = c.n, ie = c.input.embed, oe = c.output.embed;
    std::vector<int> n32(n.begin(), n.end()), ie32(ie.begin(), ie.end()), oe32(oe.begin(), oe.end());
    const int batch = static_cast<int>(c.batch);
    const bool wide = c.precision.bytes < 4 || dice.below(2);
    long long *iep = c.basic ? nullptr : ie.data(), *oep = c.basic ? nullptr : oe.data();
    int *iep32 = c.basic ? nullptr : ie32.data(), *oep32 = c.basic ? nullptr : oe32.data();
    const long long is = c.input.stride, id = c.input.distance, os = c.output.stride, od = c.output.distance;
    if (!wide && c.basic && dice.below(2) && (rank == 1 || batch == 1)) {
        const bool at_once = dice.below(2);
        if (!at_once)
            CHECK(cufftCreate(&plan));
        if (rank == 1)
            CHECK(at_once ? cufftPlan1d(&plan, n32[0], c.type(), batch) : cufftMakePlan1d(plan, n32[0], c.type(), batch, &size));
        if (rank == 2)
            CHECK(at_once ? cufftPlan2d(&plan, n32[0], n32[1], c.type()) : cufftMakePlan2d(plan, n32[0], n32[1], c.type(), &size));
        if (rank == 3)
            CHECK(at_once ? cufftPlan3d(&plan, n32[0], n32[1], n32[2], c.type())
                          : cufftMakePlan3d(plan, n32[0], n32[1], n32[2], c.type(), &size));
    } else if (!wide && dice.below(2)) {
        CHECK(cufftPlanMany(&plan, rank, n32.data(), iep32, is, id, oep32, os, od, c.type(), batch));
    } else {
        CHECK(cufftCreate(&plan));
        if (!wide) {
            CHECK(cufftMakePlanMany(plan, rank, n32.data(), iep32, is, id, oep32, os, od, c.type(), batch, &size));
        } else if (c.precision.bytes >= 4 && dice.below(2)) {
            CHECK(cufftMakePlanMany64(plan, rank, n.data(), iep, is, id, oep, os, od, c.type(), c.batch, &size));
        } else {
            const cudaDataType from = c.kind == R2C ? c.precision.real : c.precision.complex;
            const cudaDataType to = c.kind == C2R ? c.precision.real : c.precision.complex;
            CHECK(cufftXtMakePlanMany(plan, rank, n.data(), iep, is, id, from, oep, os, od, to, c.batch, &size, c.precision.complex));
            CHECK(cufftXtGetSizeMany(plan, rank, n.data(), iep, is, id, from, oep, os, od, to, c.batch, &again, c.precision.complex));
            if (again < size)
                fail("a plan is larger than cufftXtGetSizeMany says");
        }
    }
    return plan;
}

static cufftResult execute(const Case &c, cufftHandle plan, void *input, void *output, Dice &dice)
{
    // Of real transforms the direction is the plan's.
    if (c.precision.bytes < 4 || dice.below(2))
        return cufftXtExec(plan, input, output, c.kind == C2C ? c.sign : static_cast<int>(dice.between(-1, 1)));
    switch (c.type()) {
    case CUFFT_C2C:
        return cufftExecC2C(plan, static_cast<cufftComplex *>(input), static_cast<cufftComplex *>(output), c.sign);
    case CUFFT_R2C:
        return cufftExecR2C(plan, static_cast<cufftReal *>(input), static_cast<cufftComplex *>(output));
    case CUFFT_C2R:
        return cufftExecC2R(plan, static_cast<cufftComplex *>(input), static_cast<cufftReal *>(output));
    case CUFFT_Z2Z:
        return cufftExecZ2Z(plan, static_cast<cufftDoubleComplex *>(input), static_cast<cufftDoubleComplex *>(output), c.sign);
    case CUFFT_D2Z:
        return cufftExecD2Z(plan, static_cast<cufftDoubleReal *>(input), static_cast<cufftDoubleComplex *>(output));
    default:
        return cufftExecZ2D(plan, static_cast<cufftDoubleComplex *>(input), static_cast<cufftDoubleReal *>(output));
    }
}

// The element of a whole Hermitian array that stands across from `i`.
static long long mirrored(long long i, const std::vector<long long> &n)
{
    long long across = 0, step = 1;
    for (int axis = static_cast<int>(n.size()) - 1; axis >= 0; axis--) {
        across += (n[axis] - i % n[axis]) % n[axis] * step;
        i /= n[axis];
        step *= n[axis];
    }
    return across;
}

// Random numbers in the array, and the whole transforms' input as it was stored.
static std::vector<std::vector<Number>> filled(const Case &c, Array &array, Dice &dice)
{
    std::vector<std::vector<Number>> inputs;
    const long long volume = c.volume(), last = c.n.back();
    for (long long b = 0; b < c.batch; b++) {
        std::vector<Number> whole(volume);
        for (long long i = 0; i < volume; i++) {
            if (c.kind == C2R) {
                if (i % last > last / 2)
                    continue;
                const long long across = mirrored(i, c.n);
                const long long place = c.input.at(b, i / last * (last / 2 + 1) + i % last);
                double re = dice.unit(), im = dice.unit();
                // What is there twice in the half is so with the same numbers.
                if (across == i)
                    im = 0;
                else if (across < i && across % last <= last / 2)
                    re = static_cast<double>(whole[across].re), im = static_cast<double>(-whole[across].im);
                whole[i].re = store(c.precision, array.real(place, c.precision), re);
                whole[i].im = store(c.precision, array.real(place + 1, c.precision), im);
            } else {
                const long long place = c.input.at(b, i);
                whole[i].re = store(c.precision, array.real(place, c.precision), dice.unit());
                whole[i].im = c.kind == R2C ? 0 : store(c.precision, array.real(place + 1, c.precision), dice.unit());
            }
        }
        if (c.kind == C2R)
            for (long long i = 0; i < volume; i++)
                if (i % last > last / 2) {
                    const Number &across = whole[mirrored(i, c.n)];
                    whole[i] = {across.re, -across.im};
                }
        inputs.push_back(std::move(whole));
    }
    return inputs;
}

// Errors of each transform, and bytes that were to stay.
static double compare(const Case &c, std::vector<std::vector<Number>> &inputs, Array &array)
{
    std::vector<bool> written(array.bytes.size());
    const long long last = c.n.back();
    double worst = 0;
    for (long long b = 0; b < c.batch; b++) {
        transform(inputs[b], c.n, c.sign);
        long double off = 0, size = 0;
        for (long long i = 0; i < c.output.volume(); i++) {
            const Number &expected = inputs[b][c.kind == R2C ? i / (last / 2 + 1) * last + i % (last / 2 + 1) : i];
            for (int part = 0; part < (c.output.complex ? 2 : 1); part++) {
                unsigned char *at = array.real(c.output.at(b, i) + part, c.precision);
                const long double should = part ? expected.im : expected.re;
                const long double got = load(c.precision, at);
                off += (got - should) * (got - should);
                size += should * should;
                for (int byte = 0; byte < c.precision.bytes; byte++)
                    written[at - array.bytes.data() + byte] = true;
            }
        }
        const double error = size > 0 ? static_cast<double>(sqrtl(off / size)) : static_cast<double>(off);
        const double bits = std::max(1.0, std::log2(static_cast<double>(c.volume())));
        const double bound = c.precision.bound * (c.precision.grows ? bits : 1);
        if (!(error <= bound))
            fail(c.text() + ": transform " + std::to_string(b) + " is off by " + std::to_string(error / bound) + " of the bound");
        worst = std::max(worst, error / bound);
    }
    // What lies between rows in place was part of the input.
    if (!(c.in_place && c.kind != C2C))
        for (size_t i = 0; i < written.size(); i++)
            if (!written[i] && array.bytes[i] != array.before[i])
                fail(c.text() + ": byte " + std::to_string(static_cast<long long>(i) - MARGIN) + " is written");
    return worst;
}

static void numbers(const Precision &precision, uint64_t seed, int count)
{
    Dice dice{seed};
    double worst = 0;
    for (int i = 0; i < count;) {
        Case c = draw(precision, dice);
        long long work = 0;
        for (long long length : c.n)
            work += length;
        if (work * c.volume() * c.batch > 3000000)
            continue;
        i++;
        const long long in_reals = c.input.extent(c.batch), out_reals = c.output.extent(c.batch);
        Array input(c.in_place ? std::max(in_reals, out_reals) : in_reals, precision, dice), apart(out_reals, precision, dice);
        Array &output = c.in_place ? input : apart;
        std::vector<std::vector<Number>> inputs = filled(c, input, dice);
        input.upload();
        apart.upload();
        cufftHandle plan = made(c, dice);
        ANSWERS(0, execute(c, plan, input.start(), output.start(), dice));
        CHECK(cufftDestroy(plan));
        CHECK(cudaDeviceSynchronize());
        output.download();
        worst = std::max(worst, compare(c, inputs, output));
        if (!c.in_place && c.kind != C2R) {
            input.download();
            if (input.bytes != input.before)
                fail(c.text() + ": the input is written");
        }
    }
    std::printf("%d plans, errors up to %.3f of the bound\n", count, worst);
}

// Lengths beyond the definition's patience: some of the numbers, each by the definition.
static void lengths(uint64_t seed)
{
    Dice dice{seed};
    const std::vector<std::vector<long long>> cases = {{1 << 20}, {1 << 17}, {1000000}, {999983}, {65537}, {3 * 65537},
                                                       {1024, 768}, {17, 40009}, {128, 96, 80}};
    for (const std::vector<long long> &n : cases) {
        long long volume = 1;
        for (long long length : n)
            volume *= length;
        std::vector<int> n32(n.begin(), n.end());
        for (bool wide : {false, true}) {
            const size_t bytes = volume * (wide ? 16 : 8);
            std::vector<double> values(2 * volume);
            std::vector<float> narrow(2 * volume);
            for (long long i = 0; i < 2 * volume; i++)
                narrow[i] = static_cast<float>(dice.unit()), values[i] = narrow[i];
            void *device;
            CHECK(cudaMalloc(&device, bytes));
            CHECK(cudaMemcpy(device, wide ? static_cast<void *>(values.data()) : narrow.data(), bytes, cudaMemcpyHostToDevice));
            cufftHandle plan;
            CHECK(cufftPlanMany(&plan, static_cast<int>(n.size()), n32.data(), nullptr, 1, 0, nullptr, 1, 0, wide ? CUFFT_Z2Z : CUFFT_C2C, 1));
            CHECK(cufftXtExec(plan, device, device, CUFFT_FORWARD));
            long double off = 0, size = 0;
            for (int sample = 0; sample < 4; sample++) {
                const long long place = dice.below(volume);
                std::vector<long long> k(n.size());
                for (long long rest = place, axis = static_cast<long long>(n.size()) - 1; axis >= 0; rest /= n[axis], axis--)
                    k[axis] = rest % n[axis];
                // Rows one after the other, with each row's own root in front.
                Number sum = {0, 0};
                const long long row = n.back();
                std::vector<Number> roots(row);
                for (long long j = 0; j < row; j++)
                    roots[j] = root(j, row, -1);
                for (long long outer = 0; outer < volume / row; outer++) {
                    Number inner = {0, 0};
                    for (long long j = 0, turns = 0; j < row; j++, turns = (turns + k.back()) % row) {
                        const long double re = values[2 * (outer * row + j)], im = values[2 * (outer * row + j) + 1];
                        inner.re += re * roots[turns].re - im * roots[turns].im;
                        inner.im += re * roots[turns].im + im * roots[turns].re;
                    }
                    long long rest = outer;
                    for (long long axis = static_cast<long long>(n.size()) - 2; axis >= 0; rest /= n[axis], axis--) {
                        const Number turn = root(rest % n[axis] * k[axis] % n[axis], n[axis], -1);
                        inner = {inner.re * turn.re - inner.im * turn.im, inner.re * turn.im + inner.im * turn.re};
                    }
                    sum.re += inner.re, sum.im += inner.im;
                }
                double got[2];
                if (wide) {
                    CHECK(cudaMemcpy(got, static_cast<double *>(device) + 2 * place, 16, cudaMemcpyDeviceToHost));
                } else {
                    float both[2];
                    CHECK(cudaMemcpy(both, static_cast<float *>(device) + 2 * place, 8, cudaMemcpyDeviceToHost));
                    got[0] = both[0], got[1] = both[1];
                }
                off += (got[0] - sum.re) * (got[0] - sum.re) + (got[1] - sum.im) * (got[1] - sum.im);
                // What a number of the transform is on average: the definition's for random numbers of this size.
                size += 2 * volume / 3.0L;
            }
            const double error = static_cast<double>(sqrtl(off / size)), bound = (wide ? 1e-15 : 1e-6) * std::log2(static_cast<double>(volume));
            if (!(error <= bound))
                fail("length " + std::to_string(volume) + ": off by " + std::to_string(error / bound) + " of the bound");
            CHECK(cufftDestroy(plan));
            CHECK(cudaFree(device));
        }
    }
    std::printf("%zu shapes of up to %d numbers\n", cases.size(), 1 << 20);
}

__global__ void slowly(cufftComplex *data, int n, float value)
{
    for (int pass = 4; pass > 0; pass--)
        for (int i = 0; i < n; i++)
            data[i] = make_cuComplex(value * pass, 0);
}

// An impulse at the front has a transform of ones, ones have an impulse of n.
static const int N = 1 << 16;

static void expect(const cufftComplex *device, float first, float other, const char *what)
{
    std::vector<cufftComplex> host(N);
    CHECK(cudaMemcpy(host.data(), device, N * sizeof(cufftComplex), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) {
        const float should = i == 0 ? first : other;
        if (std::fabs(host[i].x - should) > 1e-3f * N / 16 || std::fabs(host[i].y) > 1e-3f * N / 16)
            fail(std::string(what) + ": number " + std::to_string(i) + " is " + std::to_string(host[i].x));
    }
}

static void streams()
{
    cufftComplex *data, *other;
    CHECK(cudaMalloc(&data, N * sizeof *data));
    CHECK(cudaMalloc(&other, N * sizeof *other));
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaEvent_t done;
    CHECK(cudaEventCreate(&done));
    for (int round = 0; round < 20; round++) {
        cufftHandle plan;
        CHECK(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
        CHECK(cufftSetStream(plan, first));
        // Behind a kernel, in front of another stream's transform; the handle is gone before either has run.
        slowly<<<1, 1, 0, first>>>(data, N, static_cast<float>(round));
        CHECK(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
        CHECK(cudaEventRecord(done, first));
        CHECK(cudaStreamWaitEvent(second, done, 0));
        CHECK(cufftSetStream(plan, second));
        CHECK(cufftExecC2C(plan, data, other, CUFFT_INVERSE));
        CHECK(cufftDestroy(plan));
        CHECK(cudaStreamSynchronize(second));
        expect(data, static_cast<float>(round) * N, 0, "a transform behind a kernel");
        expect(other, static_cast<float>(round) * N, static_cast<float>(round) * N, "a transform behind another stream's");
    }
    std::printf("20 rounds on two streams\n");
}

static void graphs()
{
    cufftComplex *data, *other;
    CHECK(cudaMalloc(&data, N * sizeof *data));
    CHECK(cudaMalloc(&other, N * sizeof *other));
    CHECK(cudaMemset(other, 0, N * sizeof *other));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cufftHandle plan;
    CHECK(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
    CHECK(cufftSetStream(plan, stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    slowly<<<1, 1, 0, stream>>>(data, N, 3);
    CHECK(cufftExecC2C(plan, data, other, CUFFT_FORWARD));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    // The graph keeps what it was captured with.
    CHECK(cufftDestroy(plan));
    expect(other, 0, 0, "a captured call does nothing yet");
    for (int run = 0; run < 3; run++) {
        CHECK(cudaMemset(other, 0, N * sizeof *other));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        expect(other, 3.0f * N, 0, "a run of the graph");
    }
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    std::printf("a kernel and a transform, three runs\n");
}

static void descriptors()
{
    const int n = 32;
    cufftHandle plan;
    size_t size[1];
    int device = 0;
    CHECK(cufftCreate(&plan));
    cudaLibXtDesc *data = nullptr, *spectrum = nullptr;
    ANSWERS(CUFFT_INVALID_PLAN, cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE));
    CHECK(cufftXtSetGPUs(plan, 1, &device));
    CHECK(cufftMakePlan2d(plan, n, n, CUFFT_R2C, size));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtMalloc(plan, nullptr, CUFFT_XT_FORMAT_INPLACE));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtMalloc(plan, &data, static_cast<cufftXtSubFormat>(9)));
    CHECK(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPUT));
    CHECK(cufftXtMalloc(plan, &spectrum, CUFFT_XT_FORMAT_OUTPUT));
    if (data->library != LIB_FORMAT_CUFFT || data->descriptor->nGPUs != 1 || data->descriptor->GPUs[0] != 0 ||
        data->descriptor->size[0] != n * n * sizeof(float) || spectrum->descriptor->size[0] != n * (n / 2 + 1) * sizeof(cufftComplex))
        fail("a descriptor's fields");
    std::vector<float> host(n * n, 0.0f);
    host[0] = 1;
    CHECK(cufftXtMemcpy(plan, data, host.data(), CUFFT_COPY_HOST_TO_DEVICE));
    CHECK(cufftXtExecDescriptorR2C(plan, data, spectrum));
    std::vector<cufftComplex> got(n * (n / 2 + 1));
    CHECK(cufftXtMemcpy(plan, got.data(), spectrum, CUFFT_COPY_DEVICE_TO_HOST));
    for (const cufftComplex &number : got)
        if (std::fabs(number.x - 1) > 1e-5 || std::fabs(number.y) > 1e-5)
            fail("an impulse by descriptors");
    ANSWERS(CUFFT_INVALID_TYPE, cufftXtExecDescriptorC2C(plan, data, spectrum, CUFFT_FORWARD));
    CHECK(cufftXtExecDescriptor(plan, data, spectrum, CUFFT_FORWARD));
    CHECK(cufftXtFree(data));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtFree(data));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtExecDescriptorR2C(plan, data, spectrum));
    CHECK(cufftXtFree(spectrum));
    CHECK(cufftXtFree(nullptr));
    CHECK(cufftDestroy(plan));
    std::printf("R2C by descriptors of one device\n");
}

// Arrays in parts on three devices: natural order by the first axis, shuffled by the second, as the manual has it.
static void devices(uint64_t seed)
{
    const int parts = 3;
    int which[parts] = {0, 1, 2}, twice[2] = {0, 0}, none[2] = {0, 77};
    cufftHandle plan;
    CHECK(cufftCreate(&plan));
    ANSWERS(CUFFT_INVALID_DEVICE, cufftXtSetGPUs(plan, 2, twice));
    ANSWERS(CUFFT_INVALID_DEVICE, cufftXtSetGPUs(plan, 2, none));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtSetGPUs(plan, 0, which));
    CHECK(cufftDestroy(plan));
    Dice dice{seed};
    const std::vector<std::vector<int>> shapes = {{10, 7}, {64, 64}, {7, 8, 5}, {6, 20, 9}, {360}, {50}};
    for (const std::vector<int> &n : shapes)
        for (Kind kind : {C2C, R2C})
            for (int batch : {1, 4}) {
                const std::vector<long long> lengths(n.begin(), n.end());
                std::vector<long long> counts = lengths;
                if (kind == R2C)
                    counts.back() = lengths.back() / 2 + 1;
                const long long rows = counts[0], columns = counts.size() > 1 ? counts[1] : 1, deep = counts.size() > 2 ? counts[2] : 1;
                const long long volume = rows * columns * deep, last = lengths.back(), row = counts.back();
                // Complex numbers, or the real ones in their place, rows padded.
                std::vector<double> host(2 * volume * batch);
                std::vector<std::vector<Number>> expected(batch);
                for (int b = 0; b < batch; b++) {
                    long long whole = 1;
                    for (long long length : lengths)
                        whole *= length;
                    for (long long i = 0; i < whole; i++) {
                        double re = dice.unit(), im = kind == R2C ? 0 : dice.unit();
                        if (kind == R2C)
                            host[2 * (b * volume + i / last * row) + i % last] = re;
                        else
                            host[2 * (b * volume + i)] = re, host[2 * (b * volume + i) + 1] = im;
                        expected[b].push_back({re, im});
                    }
                    transform(expected[b], lengths, -1);
                }
                size_t sizes[parts] = {7, 7, 7};
                CHECK(cufftCreate(&plan));
                CHECK(cufftXtSetGPUs(plan, parts, which));
                std::vector<int> lists = n;
                CHECK(cufftMakePlanMany(plan, static_cast<int>(n.size()), lists.data(), nullptr, 1, 0, nullptr, 1, 0, kind == R2C ? CUFFT_D2Z : CUFFT_Z2Z, batch, sizes));
                ANSWERS(CUFFT_INVALID_PLAN, cufftXtExec(plan, host.data(), host.data(), CUFFT_FORWARD));
                cudaLibXtDesc *data, *natural;
                CHECK(cufftXtMalloc(plan, &data, CUFFT_XT_FORMAT_INPLACE));
                CHECK(cufftXtMalloc(plan, &natural, CUFFT_XT_FORMAT_INPLACE));
                CHECK(cufftXtMemcpy(plan, data, host.data(), CUFFT_COPY_HOST_TO_DEVICE));
                CHECK(cufftXtExecDescriptor(plan, data, data, CUFFT_FORWARD));
                auto number = [&](long long b, long long i) { return kind == R2C ? expected[b][i / row * last + i % row] : expected[b][i]; };
                auto near = [&](double re, double im, const Number &should, const char *what) {
                    if (std::fabs(re - static_cast<double>(should.re)) > 1e-11 || std::fabs(im - static_cast<double>(should.im)) > 1e-11)
                        fail(std::string(what) + " of " + std::to_string(n.size()) + " dimensions, kind " + std::to_string(kind) + ", batch " + std::to_string(batch));
                };
                if (batch == 1 && n.size() > 1) {
                    if (data->subFormat != CUFFT_XT_FORMAT_INPLACE_SHUFFLED || data->descriptor->nGPUs != parts)
                        fail("a transformed descriptor is not shuffled");
                    for (long long part = 0, y0 = 0; part < parts; part++) {
                        const long long wide = columns / parts + (part < columns % parts);
                        std::vector<double> got(2 * rows * wide * deep);
                        CHECK(cudaMemcpy(got.data(), data->descriptor->data[part], got.size() * sizeof(double), cudaMemcpyDeviceToHost));
                        for (long long x = 0; x < rows; x++)
                            for (long long y = 0; y < wide; y++)
                                for (long long z = 0; z < deep; z++) {
                                    const long long at = 2 * ((x * wide + y) * deep + z);
                                    near(got[at], got[at + 1], number(0, (x * columns + y0 + y) * deep + z), "a shuffled part");
                                }
                        y0 += wide;
                    }
                }
                std::vector<double> got(host.size());
                CHECK(cufftXtMemcpy(plan, natural, data, CUFFT_COPY_DEVICE_TO_DEVICE));
                for (cudaLibXtDesc *from : {data, natural}) {
                    CHECK(cufftXtMemcpy(plan, got.data(), from, CUFFT_COPY_DEVICE_TO_HOST));
                    for (int b = 0; b < batch; b++)
                        for (long long i = 0; i < volume; i++)
                            near(got[2 * (b * volume + i)], got[2 * (b * volume + i) + 1], number(b, i), "an array");
                }
                CHECK(cufftXtFree(data));
                CHECK(cufftXtFree(natural));
                CHECK(cufftDestroy(plan));
            }
    std::printf("%zu shapes on three devices\n", shapes.size());
}

static void threads()
{
    cufftHandle shared;
    CHECK(cufftPlan1d(&shared, N, CUFFT_C2C, 1));
    std::vector<std::thread> all;
    for (int t = 0; t < 8; t++)
        all.emplace_back([shared, t] {
            cufftComplex *data;
            CHECK(cudaMalloc(&data, N * sizeof *data));
            for (int round = 0; round < 10; round++) {
                cufftHandle own;
                CHECK(cufftPlan1d(&own, N, CUFFT_C2C, 1));
                slowly<<<1, 1>>>(data, N, static_cast<float>(t + 1));
                CHECK(cufftExecC2C(own, data, data, CUFFT_FORWARD));
                CHECK(cufftExecC2C(shared, data, data, CUFFT_INVERSE));
                CHECK(cudaDeviceSynchronize());
                expect(data, static_cast<float>(t + 1) * N, static_cast<float>(t + 1) * N, "there and back again");
                CHECK(cufftDestroy(own));
            }
            CHECK(cudaFree(data));
        });
    for (std::thread &thread : all)
        thread.join();
    CHECK(cufftDestroy(shared));
    std::printf("8 threads with plans of their own and a shared one\n");
}

static void refusals()
{
    cufftHandle plan = -7, gone;
    size_t size = 0;
    int n[4] = {8, 8, 8, 8}, zero[3] = {0, 0, 0}, value;
    long long n64 = 8, number;
    void *device;
    CHECK(cudaMalloc(&device, 4096));
    cufftComplex *data = static_cast<cufftComplex *>(device);

    // As NVIDIA's library says where there is no GPU.
    ANSWERS(CUFFT_SUCCESS, cufftGetVersion(nullptr));
    ANSWERS(CUFFT_INVALID_TYPE, cufftGetProperty(static_cast<libraryPropertyType>(3), &value));
    ANSWERS(CUFFT_INVALID_VALUE, cufftGetProperty(MAJOR_VERSION, nullptr));
    ANSWERS(CUFFT_INVALID_VALUE, cufftCreate(nullptr));
    ANSWERS(CUFFT_INVALID_VALUE, cufftPlan1d(nullptr, 8, CUFFT_C2C, 1));
    ANSWERS(CUFFT_SUCCESS, cufftDestroy(CUFFT_PLAN_NULL));
    ANSWERS(CUFFT_INVALID_PLAN, cufftDestroy(12345));
    ANSWERS(CUFFT_INVALID_PLAN, cufftGetSize(12345, &size));
    ANSWERS(CUFFT_INVALID_VALUE, cufftGetSize(12345, nullptr));
    ANSWERS(CUFFT_INVALID_PLAN, cufftSetStream(12345, nullptr));
    ANSWERS(CUFFT_INVALID_PLAN, cufftSetWorkArea(12345, nullptr));
    ANSWERS(CUFFT_INVALID_PLAN, cufftSetAutoAllocation(12345, 1));
    ANSWERS(CUFFT_INVALID_PLAN, cufftExecC2C(12345, data, data, CUFFT_FORWARD));
    ANSWERS(CUFFT_INVALID_PLAN, cufftXtExec(12345, data, data, CUFFT_FORWARD));
    ANSWERS(CUFFT_INVALID_PLAN, cufftMakePlan1d(12345, 8, CUFFT_C2C, 1, &size));
    ANSWERS(CUFFT_INVALID_VALUE, cufftMakePlan1d(12345, 8, CUFFT_C2C, 1, nullptr));
    ANSWERS(CUFFT_INVALID_TYPE, cufftMakePlan1d(12345, 8, static_cast<cufftType>(7), 1, &size));
    ANSWERS(CUFFT_INVALID_PLAN, cufftGetPlanPropertyInt64(12345, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, &number));
    ANSWERS(CUFFT_INVALID_PLAN, cufftXtSetGPUs(12345, 1, &n[0]));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtSetGPUs(12345, 1, nullptr));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtSetWorkArea(12345, nullptr));
    void *routine = device;
    ANSWERS(CUFFT_NOT_IMPLEMENTED, cufftXtSetCallback(12345, &routine, CUFFT_CB_LD_COMPLEX, nullptr));
    ANSWERS(CUFFT_NOT_IMPLEMENTED, cufftXtClearCallback(12345, CUFFT_CB_LD_COMPLEX));
    ANSWERS(CUFFT_INVALID_PLAN, cufftXtSetCallbackSharedSize(12345, CUFFT_CB_LD_COMPLEX, 16));
    ANSWERS(CUFFT_SUCCESS, cufftXtFree(nullptr));

    // As the manual says.
    ANSWERS(CUFFT_INVALID_SIZE, cufftPlan1d(&plan, 0, CUFFT_C2C, 1));
    ANSWERS(CUFFT_INVALID_SIZE, cufftPlan1d(&plan, -3, CUFFT_C2C, 1));
    ANSWERS(CUFFT_INVALID_SIZE, cufftPlan1d(&plan, 8, CUFFT_C2C, 0));
    ANSWERS(CUFFT_INVALID_TYPE, cufftPlan1d(&plan, 8, static_cast<cufftType>(7), 1));
    ANSWERS(CUFFT_INVALID_SIZE, cufftPlan2d(&plan, 8, 0, CUFFT_R2C));
    ANSWERS(CUFFT_INVALID_SIZE, cufftPlan3d(&plan, 8, 8, -1, CUFFT_C2R));
    for (int rank : {-1, 0, 4})
        ANSWERS(CUFFT_INVALID_VALUE, cufftPlanMany(&plan, rank, n, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2C, 1));
    ANSWERS(CUFFT_INVALID_VALUE, cufftPlanMany(&plan, 2, nullptr, nullptr, 1, 0, nullptr, 1, 0, CUFFT_C2C, 1));
    ANSWERS(CUFFT_INVALID_VALUE, cufftPlanMany(&plan, 2, n, n, 0, 64, n, 1, 64, CUFFT_C2C, 1));
    ANSWERS(CUFFT_INVALID_VALUE, cufftPlanMany(&plan, 2, n, n, 1, -64, n, 1, 64, CUFFT_C2C, 2));
    ANSWERS(CUFFT_INVALID_VALUE, cufftPlanMany(&plan, 2, n, n, 1, 64, zero, 1, 64, CUFFT_C2C, 2));
    if (plan != -7)
        fail("a refused plan has a handle");
    ANSWERS(CUFFT_INVALID_SIZE, cufftEstimate1d(0, CUFFT_C2C, 1, &size));
    ANSWERS(CUFFT_INVALID_VALUE, cufftEstimate2d(8, 8, CUFFT_C2C, nullptr));
    ANSWERS(CUFFT_INVALID_TYPE, cufftEstimate3d(8, 8, 8, static_cast<cufftType>(0x2b), &size));
    CHECK(cufftEstimateMany(3, n, nullptr, 1, 0, nullptr, 1, 0, CUFFT_Z2D, 5, &size));

    CHECK(cufftCreate(&plan));
    ANSWERS(CUFFT_INVALID_PLAN, cufftGetSize(plan, &size));
    ANSWERS(CUFFT_INVALID_PLAN, cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    ANSWERS(CUFFT_INVALID_SIZE, cufftGetSize1d(plan, 0, CUFFT_C2C, 1, &size));
    CHECK(cufftGetSize1d(plan, 8, CUFFT_C2C, 1, &size));
    // A refusal leaves the handle as it was.
    ANSWERS(CUFFT_INVALID_SIZE, cufftMakePlan1d(plan, 0, CUFFT_C2C, 1, &size));
    const cudaDataType mixed[][3] = {{CUDA_C_32F, CUDA_C_64F, CUDA_C_32F}, {CUDA_C_32F, CUDA_C_32F, CUDA_C_64F}, {CUDA_R_32F, CUDA_R_32F, CUDA_C_32F},
                                     {CUDA_C_16F, CUDA_C_32F, CUDA_C_32F}, {CUDA_C_8I, CUDA_C_8I, CUDA_C_8I}, {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F}};
    for (const cudaDataType(&types)[3] : mixed)
        ANSWERS(CUFFT_INVALID_TYPE, cufftXtMakePlanMany(plan, 1, &n64, nullptr, 1, 8, types[0], nullptr, 1, 8, types[1], 1, &size, types[2]));
    CHECK(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size));
    ANSWERS(CUFFT_INVALID_PLAN, cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size));
    ANSWERS(CUFFT_INVALID_VALUE, cufftExecC2C(plan, nullptr, data, CUFFT_FORWARD));
    ANSWERS(CUFFT_INVALID_VALUE, cufftExecC2C(plan, data, nullptr, CUFFT_FORWARD));
    for (int direction : {-2, 0, 2})
        ANSWERS(CUFFT_INVALID_VALUE, cufftExecC2C(plan, data, data, direction));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtExec(plan, data, data, 0));
    ANSWERS(CUFFT_INVALID_TYPE, cufftExecR2C(plan, static_cast<float *>(device), data));
    ANSWERS(CUFFT_INVALID_TYPE, cufftExecZ2Z(plan, static_cast<cufftDoubleComplex *>(device), static_cast<cufftDoubleComplex *>(device), CUFFT_FORWARD));
    ANSWERS(CUFFT_NOT_SUPPORTED, cufftXtSetJITCallback(plan, "f", device, 16, CUFFT_CB_LD_COMPLEX, nullptr));
    ANSWERS(CUFFT_NOT_SUPPORTED, cufftSetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, 1));
    gone = plan;
    CHECK(cufftDestroy(plan));
    ANSWERS(CUFFT_INVALID_PLAN, cufftDestroy(gone));
    ANSWERS(CUFFT_INVALID_PLAN, cufftExecC2C(gone, data, data, CUFFT_FORWARD));

    // Properties are kept until the plan is made.
    CHECK(cufftCreate(&plan));
    if (plan == gone)
        fail("a freed handle is another plan's");
    CHECK(cufftSetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, 6));
    CHECK(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, &number));
    check(static_cast<int>(number), 6, "the property", __LINE__);
    CHECK(cufftResetPlanProperty(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS));
    CHECK(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, &number));
    check(static_cast<int>(number), 1, "the property's default", __LINE__);
    ANSWERS(CUFFT_INVALID_VALUE, cufftSetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, -1));
    ANSWERS(CUFFT_INVALID_TYPE, cufftSetPlanPropertyInt64(plan, static_cast<cufftProperty>(77), 1));
    ANSWERS(CUFFT_INVALID_VALUE, cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, nullptr));
    ANSWERS(CUFFT_NOT_SUPPORTED, cufftSetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_BLUESTEIN_ONLY, 1));

    // The program's own work area.
    CHECK(cufftSetAutoAllocation(plan, 0));
    CHECK(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, nullptr));
    ANSWERS(CUFFT_INVALID_VALUE, cufftXtSetWorkAreaPolicy(plan, static_cast<cufftXtWorkAreaPolicy>(9), nullptr));
    CHECK(cufftMakePlan1d(plan, 64, CUFFT_C2C, 4, &size));
    void *area = nullptr;
    CHECK(cudaMalloc(&area, size));
    CHECK(cufftSetWorkArea(plan, area));
    CHECK(cufftExecC2C(plan, data, data, CUFFT_FORWARD));
    CHECK(cudaDeviceSynchronize());
    CHECK(cufftDestroy(plan));

    int major, minor, patch, version;
    CHECK(cufftGetProperty(MAJOR_VERSION, &major));
    CHECK(cufftGetProperty(MINOR_VERSION, &minor));
    CHECK(cufftGetProperty(PATCH_LEVEL, &patch));
    CHECK(cufftGetVersion(&version));
    check(version, major * 1000 + minor * 100 + patch, "the version", __LINE__);
    check(version, CUFFT_VERSION, "the header's version", __LINE__);
    std::printf("what NVIDIA's library and the manual refuse\n");
}

int main(int count, char **arguments)
{
    const std::string part = count > 1 ? arguments[1] : "";
    const uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 1;
    const int plans = count > 3 ? std::atoi(arguments[3]) : 100;
    for (const Precision &precision : PRECISIONS)
        if (part == precision.name)
            return numbers(precision, seed, plans), 0;
    if (part == "lengths")
        lengths(seed);
    else if (part == "streams")
        streams();
    else if (part == "graphs")
        graphs();
    else if (part == "descriptors")
        descriptors();
    else if (part == "devices")
        devices(seed);
    else if (part == "threads")
        threads();
    else if (part == "refusals")
        refusals();
    else
        fail("no such part: " + part);
    return 0;
}
