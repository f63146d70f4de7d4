/* A hipSOLVER that writes down its calls. Signatures are those of hipsolver.h, declared here so that it is not needed. */
#include <stdio.h>
#include <stdlib.h>

static int note(const char *name, long a, long b, long c)
{
    FILE *log = fopen(getenv("HIPSOLVER_LOG"), "a");
    fprintf(log, "%s %ld %ld %ld\n", name, a, b, c);
    fclose(log);
    return 0;
}

int hipsolverDnCreate(void **handle)
{
    *handle = (void *)5;
    return note("hipsolverDnCreate", 0, 0, 0);
}

int hipsolverDnDestroy(void *handle)
{
    return note("hipsolverDnDestroy", (long)handle, 0, 0);
}

int hipsolverDnSetStream(void *handle, void *stream)
{
    return note("hipsolverDnSetStream", (long)handle, stream != 0, 0);
}

int hipsolverDnSetDeterministicMode(void *handle, int mode)
{
    return note("hipsolverDnSetDeterministicMode", (long)handle, mode, 0);
}

int hipsolverDnDpotrf_bufferSize(void *handle, int uplo, int n, double *a, int lda, int *lwork)
{
    *lwork = 640;
    return note("hipsolverDnDpotrf_bufferSize", uplo, n, lda);
}

/* Answers HIPSOLVER_STATUS_MAPPING_ERROR for a matrix of 9 rows. */
int hipsolverDnDpotrf(void *handle, int uplo, int n, double *a, int lda, double *work, int lwork, int *info)
{
    note("hipsolverDnDpotrf", uplo, n, lwork);
    return n == 9 ? 4 : 0;
}

int hipsolverDnCreateSyevjInfo(void **info)
{
    *info = (void *)6;
    return note("hipsolverDnCreateSyevjInfo", 0, 0, 0);
}

int hipsolverDnDestroySyevjInfo(void *info)
{
    return note("hipsolverDnDestroySyevjInfo", (long)info, 0, 0);
}

int hipsolverDnXsyevjSetMaxSweeps(void *info, int sweeps)
{
    return note("hipsolverDnXsyevjSetMaxSweeps", (long)info, sweeps, 0);
}

int hipsolverDnXsyevjSetSortEig(void *info, int sorted)
{
    return note("hipsolverDnXsyevjSetSortEig", (long)info, sorted, 0);
}

int hipsolverDnXsyevjGetSweeps(void *handle, void *info, int *sweeps)
{
    *sweeps = 3;
    return note("hipsolverDnXsyevjGetSweeps", (long)handle, (long)info, 0);
}
