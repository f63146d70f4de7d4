/* nvPTXCompiler, which exists as a static library only, makes a program of a PTX text, which is loaded and run; a text with a
   mistake keeps its own error and log. Names and numbers are those of nvPTXCompiler.h and cuda.h, declared here. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Any;
extern int nvPTXCompilerCreate(Any *, size_t, const char *);
extern int nvPTXCompilerDestroy(Any *);
extern int nvPTXCompilerCompile(Any, int, const char *const *);
extern int nvPTXCompilerGetCompiledProgramSize(Any, size_t *);
extern int nvPTXCompilerGetCompiledProgram(Any, void *);
extern int nvPTXCompilerGetErrorLogSize(Any, size_t *);
extern int nvPTXCompilerGetErrorLog(Any, char *);

extern int cuInit(unsigned);
extern int cuDevicePrimaryCtxRetain(Any *, int);
extern int cuCtxSetCurrent(Any);
extern int cuModuleLoadData(Any *, const void *);
extern int cuModuleGetFunction(Any *, Any, const char *);
extern int cuMemAlloc_v2(uint64_t *, size_t);
extern int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
extern int cuLaunchKernel(Any, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Any, void **, void **);

enum { COMPILATION_FAILURE = 3, INVOCATION_INCOMPLETE = 6 };

static void want(int is, const char *what, int line)
{
    if (!is) {
        printf("FAILED in line %d: %s\n", line, what);
        exit(1);
    }
}
#define WANT(is) want((is), #is, __LINE__)

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL(name, number) \
    ".visible .entry " name "(.param .u64 to) {\n .reg .b64 %to;\n ld.param.u64 %to, [to];\n st.global.u32 [%to], " number ";\n ret;\n}\n"

static Any compiler_of(const char *text)
{
    Any compiler;
    WANT(nvPTXCompilerCreate(&compiler, strlen(text), text) == 0);
    return compiler;
}

int main(void)
{
    const char *options[] = {"--gpu-name=sm_80"};
    Any context, module, function, compilers[2];
    uint64_t to;
    WANT(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0);
    WANT(cuMemAlloc_v2(&to, 4) == 0);

    /* Two at a time, each with its own text, which may be gone before it is compiled. */
    char first[] = HEAD KERNEL("answer", "42"), second[] = HEAD KERNEL("answer", "43");
    compilers[0] = compiler_of(first);
    compilers[1] = compiler_of(second);
    memset(second, ' ', sizeof second - 1);
    for (int i = 0; i < 2; i++) {
        size_t size = 0;
        WANT(nvPTXCompilerGetCompiledProgramSize(compilers[i], &size) == INVOCATION_INCOMPLETE);
        WANT(nvPTXCompilerCompile(compilers[i], 1, options) == 0);
        WANT(nvPTXCompilerGetCompiledProgramSize(compilers[i], &size) == 0 && size > 0);
        char *program = malloc(size + 1);
        program[size] = 'x';
        WANT(nvPTXCompilerGetCompiledProgram(compilers[i], program) == 0 && program[size] == 'x');
        WANT(cuModuleLoadData(&module, program) == 0);
        WANT(cuModuleGetFunction(&function, module, "answer") == 0);
        void *arguments[] = {&to};
        int got = 0;
        WANT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == 0);
        WANT(cuMemcpyDtoH_v2(&got, to, 4) == 0 && got == 42 + i);
        free(program);
    }
    WANT(nvPTXCompilerDestroy(&compilers[0]) == 0 && nvPTXCompilerDestroy(&compilers[1]) == 0);

    Any compiler = compiler_of(HEAD ".visible .entry k() {\n nonsense.u32 a;\n ret;\n}\n");
    size_t size = 0;
    WANT(nvPTXCompilerCompile(compiler, 1, options) == COMPILATION_FAILURE);
    WANT(nvPTXCompilerGetErrorLogSize(compiler, &size) == 0 && size > 0);
    char *log = calloc(1, size + 1);
    WANT(nvPTXCompilerGetErrorLog(compiler, log) == 0 && strstr(log, "nonsense"));
    WANT(nvPTXCompilerGetCompiledProgramSize(compiler, &size) == INVOCATION_INCOMPLETE);
    WANT(nvPTXCompilerDestroy(&compiler) == 0);
    puts("PASSED");
    return 0;
}
