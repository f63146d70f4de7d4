// NVRTC, nvPTXCompiler and nvFatbin as far as programs ask them for code, with machine code that is longer than the PTX and
// of another kind. -DODD: one of NVRTC's functions begins in a way that no compiler's do.
#include "compiler.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#ifndef API
#define API
#endif

static const char ptx_text[] = ".version 8.0\n.target sm_80\n// PTX\n", machine_code[] = "\177ELF machine code, longer than the text is";
static volatile char is_traced;

// The real ones import it.
API int priority(void) { return sched_get_priority_max(SCHED_OTHER); }

API int nvrtcGetPTXSize(struct program *it, size_t *size)
{
    if (!it) return 4;
    if (!size) return 3;
    *size = it->has_ptx ? sizeof ptx_text : 1;
    return 0;
}
API int nvrtcGetPTX(struct program *it, char *to)
{
    if (!it) return 4;
    memcpy(to, it->has_ptx ? ptx_text : "", it->has_ptx ? sizeof ptx_text : 1);
    return 0;
}
// Begins with a comparison of what lies beside the code.
API int nvrtcGetCUBINSize(struct program *it, size_t *size)
{
    if (is_traced) abort();
    if (!it) return 4;
    if (!size) return 3;
    *size = it->has_cubin ? sizeof machine_code : 0;
    return 0;
}
#ifdef ODD
__asm__(".globl nvrtcGetCUBIN\n.type nvrtcGetCUBIN, @function\nnvrtcGetCUBIN:\n call 1f\n jmp odd_get_cubin\n1: ret\n.size nvrtcGetCUBIN, . - nvrtcGetCUBIN\n");
__attribute__((used)) int odd_get_cubin(struct program *it, char *to)
#else
API int nvrtcGetCUBIN(struct program *it, char *to)
#endif
{
    if (!it) return 4;
    if (!to) return 3;
    if (it->has_cubin) memcpy(to, machine_code, sizeof machine_code);
    return 0;
}

struct compiler { int is_compiled; };

API int nvPTXCompilerCreate(struct compiler **to, size_t bytes, const char *ptx)
{
    if (!to || !ptx || !bytes) return 1;
    *to = calloc(1, sizeof **to);
    return 0;
}
API int nvPTXCompilerCompile(struct compiler *it)
{
    it->is_compiled = 1;
    return 0;
}
API int nvPTXCompilerGetCompiledProgramSize(struct compiler *it, size_t *size)
{
    if (!it || !size) return 1;
    if (!it->is_compiled) return 5;
    *size = sizeof machine_code;
    return 0;
}
API int nvPTXCompilerGetCompiledProgram(struct compiler *it, char *to)
{
    if (!it || !to) return 1;
    if (!it->is_compiled) return 5;
    memcpy(to, machine_code, sizeof machine_code);
    return 0;
}
API int nvPTXCompilerDestroy(struct compiler **it)
{
    if (!it || !*it) return 1;
    free(*it);
    *it = 0;
    return 0;
}

API int nvFatbinAddCubin(char *fatbin, const void *code, size_t size, const char *arch, const char *name)
{
    if (!code || memcmp(code, "\177ELF", 4)) return 3;
    sprintf(fatbin, "cubin %s %s %zu", arch, name, size);
    return 0;
}
API int nvFatbinAddPTX(char *fatbin, const char *code, size_t size, const char *arch, const char *name, const char *options)
{
    if (!code) return 5;
    sprintf(fatbin, "PTX %s %s %zu %s", arch, name, size, options ? options : "none");
    return 0;
}
