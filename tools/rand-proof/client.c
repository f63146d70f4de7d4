/* Runs commands from stdin, a line each, on a libcurand and says what each answered: the status, then the words that it wrote.

     client LIBCURAND [LIBCUDART]

   With a runtime, generators are the device's and numbers are written to its memory; without one they are the host's. Numbers
   are written where a guard stands behind them. Types and names are those of curand.h, declared here so that it is not needed. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Generator;
typedef unsigned long long Wide;

static void *library, *runtime;
static Generator generator;

static void *find(void *in, const char *name)
{
    void *found = dlsym(in, name);
    if (!found) {
        fprintf(stderr, "client: no %s\n", name);
        exit(2);
    }
    return found;
}

#define CALL(name, parameters, ...) (((int(*) parameters)find(library, "curand" #name))(__VA_ARGS__))
#define CUDA(name, parameters, ...) (((int(*) parameters)find(runtime, "cuda" #name))(__VA_ARGS__))

enum { GUARD = 64 };
static const unsigned char filler = 0xa5;

/* Memory for `bytes` of numbers, with a guard behind it. */
static unsigned char *room(size_t bytes)
{
    unsigned char *at = NULL;
    if (!runtime) {
        at = malloc(bytes + GUARD);
        memset(at, filler, bytes + GUARD);
        return at;
    }
    if (CUDA(Malloc, (void **, size_t), (void **)&at, bytes + GUARD) ||
        CUDA(Memset, (void *, int, size_t), at, filler, bytes + GUARD)) {
        fprintf(stderr, "client: no device memory\n");
        exit(2);
    }
    return at;
}

/* Whether words are many: FNV's sum of them is said. */
static int summed;

/* Prints the status and, of a call that succeeded, the words of `unit` bytes. */
static void tell(int status, unsigned char *at, size_t n, size_t unit)
{
    size_t bytes = n * unit;
    unsigned char *copy = at;
    if (runtime) {
        copy = malloc(bytes + GUARD);
        /* It waits for the default stream. */
        if (CUDA(Memcpy, (void *, const void *, size_t, int), copy, at, bytes + GUARD, 2)) {
            fprintf(stderr, "client: the copy failed\n");
            exit(2);
        }
    }
    printf("%d", status);
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; !status && i < n; i++) {
        if (summed)
            sum = (sum ^ ((uint32_t *)copy)[i]) * 0x100000001b3u;
        else if (unit == 4)
            printf(" %08" PRIx32, ((uint32_t *)copy)[i]);
        else
            printf(" %016" PRIx64, ((uint64_t *)copy)[i]);
    }
    if (summed)
        printf(" %016" PRIx64, sum);
    for (size_t i = 0; i < GUARD; i++)
        if (copy[bytes + i] != filler)
            printf(" written-behind");
    printf("\n");
    if (runtime) {
        CUDA(Free, (void *), at);
        free(copy);
    } else {
        free(at);
    }
}

/* Uniform numbers, `n` at a time and `times` times: a device's by a graph that has one call and is launched so often. */
static int runs(float *at, size_t n, size_t times)
{
    void *stream = NULL, *graph = NULL, *exec = NULL;
    int status = 0;
    if (!runtime) {
        for (size_t time = 0; !status && time < times; time++)
            status = CALL(GenerateUniform, (Generator, float *, size_t), generator, at + time * n, n);
        return status;
    }
    float *numbers = (float *)room(n * sizeof(float));
    int failed = CUDA(StreamCreate, (void **), &stream);
    CALL(SetStream, (Generator, void *), generator, stream);
    failed |= CUDA(StreamBeginCapture, (void *, int), stream, 0);
    status = CALL(GenerateUniform, (Generator, float *, size_t), generator, numbers, n);
    failed |= CUDA(StreamEndCapture, (void *, void **), stream, &graph);
    failed |= CUDA(GraphInstantiate, (void **, void *, Wide), &exec, graph, 0);
    for (size_t time = 0; !status && time < times; time++) {
        failed |= CUDA(GraphLaunch, (void *, void *), exec, stream);
        failed |= CUDA(StreamSynchronize, (void *), stream);
        failed |= CUDA(Memcpy, (void *, const void *, size_t, int), at + time * n, numbers, n * sizeof(float), 3);
    }
    failed |= CUDA(GraphExecDestroy, (void *), exec) | CUDA(GraphDestroy, (void *), graph);
    CALL(SetStream, (Generator, void *), generator, NULL);
    failed |= CUDA(StreamDestroy, (void *), stream) | CUDA(Free, (void *), numbers);
    if (failed) {
        fprintf(stderr, "client: the graph failed\n");
        exit(2);
    }
    return status;
}

/* A list that the library owns: its first and last `n` words. */
static void tell_list(int status, const void *list, size_t words, size_t unit)
{
    printf("%d", status);
    for (size_t i = 0; !status && list && i < words; i++) {
        if (i >= 128 && i + 128 < words && i % 997)
            continue;
        if (unit == 4)
            printf(" %08" PRIx32, ((const uint32_t *)list)[i]);
        else
            printf(" %016" PRIx64, ((const uint64_t *)list)[i]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    char line[256];
    if (argc < 2 || !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)) ||
        (argc > 2 && !(runtime = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL)))) {
        fprintf(stderr, "client: %s\n", argc < 2 ? "client LIBCURAND [LIBCUDART]" : dlerror());
        return 2;
    }
    while (fgets(line, sizeof line, stdin)) {
        char word[32] = "";
        double a = 0, b = 0, c = 0;
        Wide n = 0;
        sscanf(line, "%31s", word);
        const char *rest = line + strlen(word);
        char first[64] = "0";
        sscanf(rest, "%63s %lf %lf %lf", first, &a, &b, &c);
        n = strtoull(first, NULL, 0);
#define IS(name) (!strcmp(word, name))
/* `name N …`: a function that fills N numbers. `null` behind it passes no place. */
#define FILLS(name, function, type, parameters, ...)                                             \
    if (IS(name)) {                                                                              \
        unsigned char *at = room(n * sizeof(type));                                              \
        type *place = strstr(rest, "null") ? NULL : (type *)at;                                  \
        int status = CALL(function, parameters, generator, place, (size_t)n, ##__VA_ARGS__);     \
        tell(status, at, n, sizeof(type));                                                       \
        fflush(stdout);                                                                          \
        continue;                                                                                \
    }
        FILLS("gen", Generate, unsigned, (Generator, unsigned *, size_t))
        FILLS("wide", GenerateLongLong, Wide, (Generator, Wide *, size_t))
        FILLS("uniform", GenerateUniform, float, (Generator, float *, size_t))
        FILLS("uniform-double", GenerateUniformDouble, double, (Generator, double *, size_t))
        FILLS("normal", GenerateNormal, float, (Generator, float *, size_t, float, float), (float)a, (float)b)
        FILLS("normal-double", GenerateNormalDouble, double, (Generator, double *, size_t, double, double), a, b)
        FILLS("log-normal", GenerateLogNormal, float, (Generator, float *, size_t, float, float), (float)a, (float)b)
        FILLS("log-normal-double", GenerateLogNormalDouble, double, (Generator, double *, size_t, double, double), a, b)
        FILLS("poisson", GeneratePoisson, unsigned, (Generator, unsigned *, size_t, double), a)
        FILLS("poisson-method", GeneratePoissonMethod, unsigned, (Generator, unsigned *, size_t, double, int), a, (int)b)
        if (IS("sum")) {
            unsigned char *at = room(n * 4);
            int status = CALL(Generate, (Generator, unsigned *, size_t), generator, (unsigned *)at, (size_t)n);
            summed = 1;
            tell(status, at, n, 4);
            summed = 0;
        } else if (IS("runs")) {
            unsigned char *at = room(n * (size_t)a * sizeof(float));
            tell(runs((float *)at, n, (size_t)a), at, n * (size_t)a, sizeof(float));
        } else if (IS("create")) {
            generator = NULL;
            if (runtime)
                printf("%d\n", CALL(CreateGenerator, (Generator *, int), &generator, (int)n));
            else
                printf("%d\n", CALL(CreateGeneratorHost, (Generator *, int), &generator, (int)n));
        } else if (IS("create-null"))
            printf("%d\n", CALL(CreateGeneratorHost, (Generator *, int), NULL, (int)n));
        else if (IS("forget"))
            generator = NULL, printf("0\n");
        else if (IS("destroy")) {
            printf("%d\n", CALL(DestroyGenerator, (Generator), generator));
            generator = NULL;
        } else if (IS("seed"))
            printf("%d\n", CALL(SetPseudoRandomGeneratorSeed, (Generator, Wide), generator, n));
        else if (IS("offset"))
            printf("%d\n", CALL(SetGeneratorOffset, (Generator, Wide), generator, n));
        else if (IS("order"))
            printf("%d\n", CALL(SetGeneratorOrdering, (Generator, int), generator, (int)n));
        else if (IS("dimensions"))
            printf("%d\n", CALL(SetQuasiRandomGeneratorDimensions, (Generator, unsigned), generator, (unsigned)n));
        else if (IS("stream"))
            printf("%d\n", CALL(SetStream, (Generator, void *), generator, (void *)(uintptr_t)n));
        else if (IS("seeds"))
            printf("%d\n", CALL(GenerateSeeds, (Generator), generator));
        else if (IS("version")) {
            int version = -1, status = CALL(GetVersion, (int *), n ? NULL : &version);
            printf("%d %d\n", status, version);
        } else if (IS("property")) {
            int value = -1, status = CALL(GetProperty, (int, int *), (int)n, strstr(rest, "null") ? NULL : &value);
            printf("%d %d\n", status, value);
        } else if (IS("directions32")) {
            void *list = NULL;
            int status = CALL(GetDirectionVectors32, (void **, int), strstr(rest, "null") ? NULL : &list, (int)n);
            tell_list(status, list, 20000 * 32, 4);
        } else if (IS("directions64")) {
            void *list = NULL;
            int status = CALL(GetDirectionVectors64, (void **, int), strstr(rest, "null") ? NULL : &list, (int)n);
            tell_list(status, list, 20000 * 64, 8);
        } else if (IS("scramble32")) {
            void *list = NULL;
            tell_list(CALL(GetScrambleConstants32, (void **), n ? NULL : &list), list, 20000, 4);
        } else if (IS("scramble64")) {
            void *list = NULL;
            tell_list(CALL(GetScrambleConstants64, (void **), n ? NULL : &list), list, 20000, 8);
        } else if (IS("distribution")) {
            void *made = NULL;
            int status = CALL(CreatePoissonDistribution, (double, void **), strtod(first, NULL), strstr(rest, "null") ? NULL : &made);
            printf("%d", status);
            if (!status)
                printf(" %d", CALL(DestroyDistribution, (void *), made));
            printf("\n");
        } else if (IS("destroy-distribution"))
            printf("%d\n", CALL(DestroyDistribution, (void *), (void *)(uintptr_t)n));
        else {
            fprintf(stderr, "client: what is %s", line);
            return 2;
        }
        fflush(stdout);
    }
    return 0;
}
