#include <stddef.h>
#include <stdio.h>
struct program { int has_cubin, has_ptx; };
struct compiler;
#define FUNCTIONS(X) \
    X(nvrtcGetPTXSize, (struct program *, size_t *)) \
    X(nvrtcGetPTX, (struct program *, char *)) \
    X(nvrtcGetCUBINSize, (struct program *, size_t *)) \
    X(nvrtcGetCUBIN, (struct program *, char *)) \
    X(nvPTXCompilerCreate, (struct compiler **, size_t, const char *)) \
    X(nvPTXCompilerCompile, (struct compiler *)) \
    X(nvPTXCompilerGetCompiledProgramSize, (struct compiler *, size_t *)) \
    X(nvPTXCompilerGetCompiledProgram, (struct compiler *, char *)) \
    X(nvPTXCompilerDestroy, (struct compiler **)) \
    X(nvFatbinAddCubin, (char *, const void *, size_t, const char *, const char *))
