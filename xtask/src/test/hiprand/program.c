/* cuRAND on a device that is not the CPU's: says whether a device's words are the host's, in a stream and in a graph, and what is
   refused. Types are those of cuda.h and curand.h, declared here so that they are not needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1000, RUNS = 3 };

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemFree_v2(unsigned long long);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
int cuStreamCreate(void **, unsigned);
int cuStreamDestroy_v2(void *);
int cuStreamSynchronize(void *);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cuGraphInstantiateWithFlags(void **, void *, unsigned long long);
int cuGraphLaunch(void *, void *);
int curandCreateGenerator(void **, int);
int curandCreateGeneratorHost(void **, int);
int curandDestroyGenerator(void *);
int curandSetStream(void *, void *);
int curandSetPseudoRandomGeneratorSeed(void *, unsigned long long);
int curandGenerate(void *, unsigned *, size_t);
int curandGenerateLongLong(void *, unsigned long long *, size_t);
int curandGenerateNormalDouble(void *, double *, size_t, double, double);

static void check(int code, const char *what)
{
    if (code) {
        printf("FAILED %s: %d\n", what, code);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

static unsigned wanted[(1 + RUNS) * WORDS], found[WORDS];

static const char *compared(unsigned long long at, int nth)
{
    CHECK(cuMemcpyDtoH_v2(found, at, sizeof found));
    return memcmp(found, wanted + nth * WORDS, sizeof found) ? "others" : "the host's";
}

int main(void)
{
    void *context, *stream, *generator, *host, *graph, *exec;
    unsigned long long at;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&at, WORDS * sizeof(double)));
    CHECK(cuStreamCreate(&stream, 1));

    CHECK(curandCreateGeneratorHost(&host, 161));
    CHECK(curandSetPseudoRandomGeneratorSeed(host, 42));
    CHECK(curandGenerate(host, wanted, (1 + RUNS) * WORDS));

    CHECK(curandCreateGenerator(&generator, 161));
    CHECK(curandSetStream(generator, stream));
    CHECK(curandSetPseudoRandomGeneratorSeed(generator, 42));
    CHECK(curandGenerate(generator, (unsigned *)at, WORDS));
    CHECK(cuStreamSynchronize(stream));
    printf("words: %s\n", compared(at, 0));

    CHECK(cuStreamBeginCapture_v2(stream, 0));
    int captured = curandGenerate(generator, (unsigned *)at, WORDS);
    printf("captured: %d\n", captured);
    if (!captured) {
        CHECK(curandSetPseudoRandomGeneratorSeed(generator, 43));
        printf("with another seed: %d\n", curandGenerate(generator, (unsigned *)at, WORDS));
    }
    int ended = cuStreamEndCapture(stream, &graph);
    printf("ended: %d\n", ended);
    if (!ended) {
        CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
        for (int run = 1; run <= RUNS; run++) {
            CHECK(cuGraphLaunch(exec, stream));
            CHECK(cuStreamSynchronize(stream));
            printf("run %d: %s\n", run, compared(at, run));
        }
    }
    CHECK(curandGenerateNormalDouble(generator, (double *)at, WORDS, 3, 2));
    CHECK(curandDestroyGenerator(generator));
    CHECK(curandDestroyGenerator(host));

    CHECK(curandCreateGenerator(&generator, 203));
    printf("wide: %d\n", curandGenerateLongLong(generator, (unsigned long long *)at, WORDS));
    CHECK(curandDestroyGenerator(generator));
    CHECK(cuStreamDestroy_v2(stream));
    CHECK(cuMemFree_v2(at));
    printf("PASSED\n");
    return 0;
}
