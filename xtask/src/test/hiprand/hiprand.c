/* A hipRAND that writes down its calls, and makes sevens. Signatures are those of hiprand.h, declared here so that it is not needed. */
#include <stdio.h>
#include <stdlib.h>

static int note(const char *name, long a, long b, long c)
{
    FILE *log = fopen(getenv("HIPRAND_LOG"), "a");
    fprintf(log, "%s %ld %ld %ld\n", name, a, b, c);
    fclose(log);
    return 0;
}

int hiprandCreateGenerator(void **generator, int type)
{
    *generator = (void *)9;
    return note("hiprandCreateGenerator", type, 0, 0);
}

int hiprandDestroyGenerator(void *generator)
{
    return note("hiprandDestroyGenerator", (long)generator, 0, 0);
}

int hiprandSetStream(void *generator, void *stream)
{
    return note("hiprandSetStream", (long)generator, stream != 0, 0);
}

int hiprandSetPseudoRandomGeneratorSeed(void *generator, unsigned long long seed)
{
    return note("hiprandSetPseudoRandomGeneratorSeed", (long)generator, (long)seed, 0);
}

int hiprandGenerate(void *generator, unsigned *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i] = 7;
    return note("hiprandGenerate", (long)generator, (long)n, 0);
}

int hiprandGenerateNormalDouble(void *generator, double *at, size_t n, double mean, double deviation)
{
    (void)at;
    return note("hiprandGenerateNormalDouble", (long)n, (long)mean, (long)deviation);
}
