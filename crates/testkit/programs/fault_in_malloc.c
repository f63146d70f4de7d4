// A thread that never ran a kernel faults inside the program's own malloc, with its lock held, after a kernel has run on
// another thread. The program's handler has to be called: prints "handled". Whoever allocates before that waits for ever.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile pthread_t victim;
static volatile int is_armed;

static void enter(void)
{
    pthread_mutex_lock(&lock);
    if (is_armed && pthread_equal(pthread_self(), victim))
        *(volatile int *)8 = 1;
}

void *malloc(size_t size)
{
    enter();
    void *memory = __libc_malloc(size);
    pthread_mutex_unlock(&lock);
    return memory;
}

void *calloc(size_t count, size_t size)
{
    enter();
    void *memory = __libc_calloc(count, size);
    pthread_mutex_unlock(&lock);
    return memory;
}

static void handled(int signal, siginfo_t *info, void *context)
{
    static const char text[] = "handled\n";
    (void)signal, (void)info, (void)context;
    _exit(write(1, text, sizeof text - 1) < 0);
}

static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry kernel(.param .u64 to)\n"
                          "{ .reg .b64 %rd<2>; ld.param.u64 %rd1, [to]; st.global.u32 [%rd1], 7; ret; }\n";

static void *library;

#define CALL(name, types, ...)                                                     \
    do {                                                                           \
        int(*called) types = (int(*) types)dlsym(library, name);                   \
        int code = called ? called(__VA_ARGS__) : -1;                              \
        if (code != 0) {                                                           \
            printf("%s: %d\n", name, code);                                        \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

static void *fault(void *none)
{
    victim = pthread_self();
    is_armed = 1;
    return malloc(100 + (none != NULL));
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handled;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);

    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    void *context, *module, *function;
    unsigned long long memory;
    unsigned word = 0;
    CALL("cuInit", (unsigned), 0);
    CALL("cuCtxCreate_v2", (void **, unsigned, int), &context, 0, 0);
    CALL("cuModuleLoadData", (void **, const void *), &module, PTX);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &function, module, "kernel");
    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), &memory, 4);
    void *parameters[] = {&memory};
    CALL("cuLaunchKernel",
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), function, 1,
         1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t), &word, memory, 4);
    if (word != 7) {
        puts("the kernel did not run");
        return 1;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, fault, NULL);
    pthread_join(thread, NULL);
    puts("no fault");
    return 1;
}
