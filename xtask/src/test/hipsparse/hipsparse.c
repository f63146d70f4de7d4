/* A hipSPARSE that writes down its calls. Signatures are those of hipsparse.h of ROCm 6, declared here so that it is not needed. */
#include <stdio.h>
#include <stdlib.h>

static int note(const char *name, long a, long b, long c)
{
    FILE *log = fopen(getenv("HIPSPARSE_LOG"), "a");
    fprintf(log, "%s %ld %ld %ld\n", name, a, b, c);
    fclose(log);
    return 0;
}

int hipsparseCreate(void **handle)
{
    *handle = (void *)5;
    return note("hipsparseCreate", 0, 0, 0);
}

int hipsparseDestroy(void *handle)
{
    return note("hipsparseDestroy", (long)handle, 0, 0);
}

int hipsparseGetVersion(void *handle, int *version)
{
    *version = 300200;
    return 0;
}

int hipsparseSetStream(void *handle, void *stream)
{
    return note("hipsparseSetStream", (long)handle, stream != 0, 0);
}

int hipsparseSetPointerMode(void *handle, int mode)
{
    return note("hipsparseSetPointerMode", (long)handle, mode, 0);
}

int hipsparseCreateConstCsr(void)
{
    return 7;
}

int hipsparseCreateCsr(void **matrix, long long rows, long long cols, long long nnz, void *offsets, void *columns, void *values,
                       int offset_type, int index_type, int base, int type)
{
    *matrix = (void *)6;
    return note("hipsparseCreateCsr", rows, cols, type);
}

int hipsparseCsrSetPointers(void *matrix, void *offsets, void *columns, void *values)
{
    return note("hipsparseCsrSetPointers", (long)matrix, 0, 0);
}

int hipsparseDestroySpMat(void *matrix)
{
    return note("hipsparseDestroySpMat", (long)matrix, 0, 0);
}

int hipsparseCreateDnVec(void **vector, long long size, void *values, int type)
{
    *vector = (void *)7;
    return 0;
}

int hipsparseDestroyDnVec(void *vector)
{
    return vector == (void *)7 ? 0 : 7;
}

int hipsparseSpMV_bufferSize(void *handle, int op, const void *alpha, void *a, void *x, const void *beta, void *y, int type, int alg,
                             size_t *bytes)
{
    *bytes = 640;
    return note("hipsparseSpMV_bufferSize", op, type, alg);
}

/* Answers HIPSPARSE_STATUS_EXECUTION_FAILED for an alpha of 9, and HIPSPARSE_STATUS_NOT_SUPPORTED for one of 10. */
int hipsparseSpMV(void *handle, int op, const void *alpha, void *a, void *x, const void *beta, void *y, int type, int alg, void *buffer)
{
    double factor = *(const double *)alpha;
    note("hipsparseSpMV", op, (long)factor, buffer != 0);
    return factor == 9 ? 6 : factor == 10 ? 10 : 0;
}

int hipsparseCreateMatDescr(void **descr)
{
    *descr = (void *)8;
    return note("hipsparseCreateMatDescr", 0, 0, 0);
}

int hipsparseDestroyMatDescr(void *descr)
{
    return note("hipsparseDestroyMatDescr", (long)descr, 0, 0);
}

int hipsparseSetMatType(void *descr, int type)
{
    return 0;
}

int hipsparseSetMatFillMode(void *descr, int fill)
{
    return note("hipsparseSetMatFillMode", (long)descr, fill, 0);
}

int hipsparseSetMatDiagType(void *descr, int diagonal)
{
    return 0;
}

int hipsparseSetMatIndexBase(void *descr, int base)
{
    return note("hipsparseSetMatIndexBase", (long)descr, base, 0);
}

int hipsparseCreateCsrilu02Info(void **info)
{
    *info = (void *)9;
    return note("hipsparseCreateCsrilu02Info", 0, 0, 0);
}

int hipsparseDestroyCsrilu02Info(void *info)
{
    return note("hipsparseDestroyCsrilu02Info", (long)info, 0, 0);
}

int hipsparseDcsrilu02_bufferSize(void *handle, int m, int nnz, void *descr, double *values, const int *offsets, const int *columns,
                                  void *info, int *bytes)
{
    *bytes = 0;
    return note("hipsparseDcsrilu02_bufferSize", m, nnz, (long)descr);
}

int hipsparseDcsrilu02_analysis(void *handle, int m, int nnz, void *descr, const double *values, const int *offsets,
                                const int *columns, void *info, int policy, void *buffer)
{
    return note("hipsparseDcsrilu02_analysis", m, nnz, policy);
}

/* HIPSPARSE_STATUS_ZERO_PIVOT */
int hipsparseXcsrilu02_zeroPivot(void *handle, void *info, int *position)
{
    *position = 2;
    note("hipsparseXcsrilu02_zeroPivot", (long)handle, (long)info, 0);
    return 9;
}

int hipsparseSpSV_createDescr(void **descr)
{
    *descr = (void *)10;
    return note("hipsparseSpSV_createDescr", 0, 0, 0);
}

int hipsparseSpSV_destroyDescr(void *descr)
{
    return note("hipsparseSpSV_destroyDescr", (long)descr, 0, 0);
}

/* Fewer bytes than our own code asks for. */
int hipsparseSpSV_bufferSize(void *handle, int op, const void *alpha, void *a, void *x, void *y, int type, int alg, void *descr,
                             size_t *bytes)
{
    *bytes = 8;
    return note("hipsparseSpSV_bufferSize", op, type, (long)descr);
}

int hipsparseSpSV_analysis(void *handle, int op, const void *alpha, void *a, void *x, void *y, int type, int alg, void *descr,
                           void *buffer)
{
    return note("hipsparseSpSV_analysis", op, (long)descr, buffer != 0);
}

int hipsparseSpSV_solve(void *handle, int op, const void *alpha, void *a, void *x, void *y, int type, int alg, void *descr)
{
    return note("hipsparseSpSV_solve", op, (long)*(const double *)alpha, (long)descr);
}

int hipsparseSpGEMM_createDescr(void **descr)
{
    *descr = (void *)11;
    return note("hipsparseSpGEMM_createDescr", 0, 0, 0);
}

int hipsparseSpGEMM_destroyDescr(void *descr)
{
    return note("hipsparseSpGEMM_destroyDescr", (long)descr, 0, 0);
}

int hipsparseSpGEMM_workEstimation(void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c,
                                   int type, int alg, void *descr, size_t *bytes, void *buffer)
{
    *bytes = 700;
    return note("hipsparseSpGEMM_workEstimation", alg, (long)descr, buffer != 0);
}

int hipsparseSpGEMM_compute(void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, int type,
                            int alg, void *descr, size_t *bytes, void *buffer)
{
    *bytes = 800;
    return note("hipsparseSpGEMM_compute", alg, (long)descr, buffer != 0);
}

int hipsparseSpGEMM_copy(void *handle, int op_a, int op_b, const void *alpha, void *a, void *b, const void *beta, void *c, int type,
                         int alg, void *descr)
{
    return note("hipsparseSpGEMM_copy", alg, (long)descr, 0);
}

int hipsparseSpMatGetSize(void *matrix, long long *rows, long long *cols, long long *nnz)
{
    *rows = *cols = 2;
    *nnz = 3;
    return note("hipsparseSpMatGetSize", (long)matrix, 0, 0);
}
