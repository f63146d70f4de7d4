// cuRAND: the host API on the device and on the host, in a stream and in a captured graph, and curand_kernel.h in kernels,
// whose sequences are those of the host API.
#include "example.h"

#include <cmath>
#include <curand.h>
#include <curand_kernel.h>
#include <random>

static void check(curandStatus_t status, const char *call, const char *file, int line)
{
    if (status != CURAND_STATUS_SUCCESS)
        fail("%s:%d: %s: status %d", file, line, call, static_cast<int>(status));
}

static const int n = 4096;
static const unsigned long long seed = 20260117;

// The first word of subsequence `i`, which is where thread `i` of the host API's XORWOW begins.
__global__ void xorwow(unsigned *words)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandState_t state;
    curand_init(seed, i, 0, &state);
    words[i] = curand(&state);
}

// Blocks of four words of Philox, each by a state of its own.
__global__ void philox(uint4 *blocks)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, 0, 4ull * i, &state);
    blocks[i] = curand4(&state);
}

// Points of a Sobol sequence, from an offset on.
__global__ void sobol(curandDirectionVectors32_t *vectors, unsigned *words, float *uniforms)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStateSobol32_t state;
    curand_init(*vectors, i, &state);
    words[i] = curand(&state);
    curand_init(*vectors, i, &state);
    uniforms[i] = curand_uniform(&state);
}

// What the host API makes of those words with one distribution.
__global__ void poisson(curandDiscreteDistribution_t distribution, unsigned *values)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandState_t state;
    curand_init(seed, i, 0, &state);
    values[i] = curand_discrete(&state, distribution);
}

// Ten rounds of Philox4x32, by the paper: what a block of words is, from its number and the seed.
static uint4 philox_by_the_paper(unsigned long long block, unsigned long long key)
{
    unsigned c[4] = {static_cast<unsigned>(block), static_cast<unsigned>(block >> 32), 0, 0};
    unsigned k[2] = {static_cast<unsigned>(key), static_cast<unsigned>(key >> 32)};
    for (int round = 0; round < 10; round++) {
        unsigned long long a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        unsigned next[4] = {static_cast<unsigned>(b >> 32) ^ c[1] ^ k[0], static_cast<unsigned>(b),
                            static_cast<unsigned>(a >> 32) ^ c[3] ^ k[1], static_cast<unsigned>(a)};
        std::memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return {c[0], c[1], c[2], c[3]};
}

template <typename T>
static std::vector<T> fetched(const T *device, int count)
{
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

int main()
{
    unsigned *words, *from_kernel;
    float *numbers;
    CHECK(cudaMalloc(&words, 4 * n * sizeof(unsigned)));
    CHECK(cudaMalloc(&from_kernel, 4 * n * sizeof(unsigned)));
    CHECK(cudaMalloc(&numbers, 4 * n * sizeof(float)));

    // The same sequence on the device and on the host, in one piece and in two.
    for (curandRngType_t type : {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_MTGP32,
                                 CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_QUASI_SOBOL32}) {
        curandGenerator_t device, host;
        CHECK(curandCreateGenerator(&device, type));
        CHECK(curandCreateGeneratorHost(&host, type));
        if (type < CURAND_RNG_QUASI_DEFAULT) {
            CHECK(curandSetPseudoRandomGeneratorSeed(device, seed));
            CHECK(curandSetPseudoRandomGeneratorSeed(host, seed));
        } else if (curandSetPseudoRandomGeneratorSeed(device, seed) != CURAND_STATUS_TYPE_ERROR) {
            fail("a quasirandom generator has a seed");
        }
        std::vector<unsigned> expected(n);
        CHECK(curandGenerate(host, expected.data(), n));
        CHECK(curandGenerate(device, words, 1000));
        CHECK(curandGenerate(device, words + 1000, n - 1000));
        expect_equal("numbers of the device", fetched(words, n), expected);
        CHECK(curandDestroyGenerator(device));
        CHECK(curandDestroyGenerator(host));
    }

    curandGenerator_t generator;
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_MT19937));
    CHECK(curandGenerate(generator, words, 1));
    expect_equal("MT19937's first", fetched(words, 1)[0], std::mt19937(0)());
    CHECK(curandDestroyGenerator(generator));

    // Kernels make the same states by themselves.
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_XORWOW));
    CHECK(curandSetGeneratorOrdering(generator, CURAND_ORDERING_PSEUDO_LEGACY));
    CHECK(curandSetPseudoRandomGeneratorSeed(generator, seed));
    CHECK(curandGenerate(generator, words, n));
    xorwow<<<n / 128, 128>>>(from_kernel);
    CHECK(cudaGetLastError());
    expect_equal("XORWOW in a kernel", fetched(from_kernel, n), fetched(words, n));
    // Distributions that kernels read: up to means of 2000 a value is that of one word, beyond it is a rounded normal one.
    for (double mean : {0.3, 25.0, 1999.0, 50000.0}) {
        curandDiscreteDistribution_t distribution;
        CHECK(curandCreatePoissonDistribution(mean, &distribution));
        poisson<<<n / 128, 128>>>(distribution, from_kernel);
        CHECK(cudaGetLastError());
        std::vector<unsigned> values = fetched(from_kernel, n);
        double sum = 0, squares = 0;
        for (unsigned value : values)
            sum += value, squares += (value - mean) * (value - mean);
        // The variance is the mean; six deviations of what chance gives.
        if (std::fabs(sum / n - mean) > 6 * std::sqrt(mean / n) || std::fabs(squares / n / mean - 1) > 6 * std::sqrt((2 + 1 / mean) / n))
            fail("Poisson's numbers in kernels, of mean %g and variance %g", sum / n, squares / n);
        if (mean < 2000) {
            CHECK(curandSetGeneratorOffset(generator, 0));
            CHECK(curandGeneratePoisson(generator, words, n, mean));
            expect_equal("Poisson's numbers in a kernel", values, fetched(words, n));
        }
        CHECK(curandDestroyDistribution(distribution));
        if (curandDestroyDistribution(distribution) != CURAND_STATUS_NOT_INITIALIZED)
            fail("a distribution is destroyed twice");
    }
    curandDiscreteDistribution_t none = nullptr;
    for (double mean : {0.0, -1.0, 400000.5})
        if (curandCreatePoissonDistribution(mean, &none) != CURAND_STATUS_OUT_OF_RANGE || none)
            fail("there is a distribution of mean %g", mean);
    CHECK(curandDestroyGenerator(generator));

    philox<<<n / 128, 128>>>(reinterpret_cast<uint4 *>(from_kernel));
    CHECK(cudaGetLastError());
    std::vector<unsigned> expected(4 * n);
    for (int i = 0; i < n; i++) {
        uint4 block = philox_by_the_paper(i, seed);
        std::memcpy(&expected[4 * i], &block, sizeof block);
    }
    expect_equal("Philox in a kernel", fetched(from_kernel, 4 * n), expected);

    // Sobol's direction vectors come from the library on the host. Dimension 3 of 5: its points lie one behind the other.
    curandDirectionVectors32_t *vectors, *on_device;
    CHECK(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
    CHECK(cudaMalloc(&on_device, sizeof *vectors));
    CHECK(cudaMemcpy(on_device, vectors + 2, sizeof *vectors, cudaMemcpyHostToDevice));
    sobol<<<n / 5 / 128, 128>>>(on_device, from_kernel, numbers);
    CHECK(cudaGetLastError());
    const int points = n / 5 / 128 * 128;
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32));
    CHECK(curandSetQuasiRandomGeneratorDimensions(generator, 5));
    if (curandGenerate(generator, words, 5 * points - 1) != CURAND_STATUS_LENGTH_NOT_MULTIPLE)
        fail("four and a fifth points");
    CHECK(curandGenerate(generator, words, 5 * points));
    expect_equal("Sobol in a kernel", fetched(from_kernel, points), fetched(words + 2 * points, points));
    std::vector<float> kernels = fetched(numbers, points);
    CHECK(curandSetGeneratorOffset(generator, 0));
    CHECK(curandGenerateUniform(generator, numbers, 5 * points));
    expect_equal("Sobol's uniforms in a kernel", kernels, fetched(numbers + 2 * points, points));
    CHECK(curandDestroyGenerator(generator));

    // In stream order: captured, the numbers are made when the graph runs, and each run goes on in the sequence.
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamCreate(&stream));
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_MTGP32));
    CHECK(curandSetPseudoRandomGeneratorSeed(generator, seed));
    CHECK(curandSetStream(generator, stream));
    CHECK(cudaMemset(numbers, 0, n * sizeof(float)));
    CHECK(curandGenerateSeeds(generator));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(curandGenerateUniform(generator, numbers, n));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    expect_equal("a captured call does nothing yet", fetched(numbers, 1)[0], 0);
    std::vector<float> runs;
    for (int run = 0; run < 2; run++) {
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (float number : fetched(numbers, n))
            runs.push_back(number);
    }
    curandGenerator_t host;
    CHECK(curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_MTGP32));
    CHECK(curandSetPseudoRandomGeneratorSeed(host, seed));
    std::vector<float> uniforms(2 * n);
    CHECK(curandGenerateUniform(host, uniforms.data(), n));
    CHECK(curandGenerateUniform(host, uniforms.data() + n, n));
    expect_equal("two runs of a graph", runs, uniforms);
    CHECK(curandDestroyGenerator(host));
    CHECK(curandDestroyGenerator(generator));
    CHECK(cudaStreamDestroy(stream));

    // Of normal numbers the mean and the deviation, of Poisson's the mean, far beyond what chance would give.
    CHECK(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    CHECK(curandSetPseudoRandomGeneratorSeed(generator, seed));
    CHECK(curandGenerateNormal(generator, numbers, 4 * n, 3, 0.5f));
    double sum = 0, squares = 0;
    for (float number : fetched(numbers, 4 * n))
        sum += number, squares += (number - 3) * (number - 3);
    if (std::fabs(sum / (4 * n) - 3) > 0.03 || std::fabs(std::sqrt(squares / (4 * n)) - 0.5) > 0.03)
        fail("normal numbers of mean %g and deviation %g", sum / (4 * n), std::sqrt(squares / (4 * n)));
    CHECK(curandGeneratePoisson(generator, words, 4 * n, 25));
    sum = 0;
    for (unsigned number : fetched(words, 4 * n))
        sum += number;
    if (std::fabs(sum / (4 * n) - 25) > 0.3)
        fail("Poisson's numbers of mean %g", sum / (4 * n));
    CHECK(curandDestroyGenerator(generator));
    if (curandDestroyGenerator(generator) != CURAND_STATUS_NOT_INITIALIZED)
        fail("a generator is destroyed twice");
    std::printf("curand_numbers: on the device and the host, in kernels, in a graph\n");
    return passed();
}
