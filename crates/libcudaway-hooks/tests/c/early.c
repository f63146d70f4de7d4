// Lookups before main, in a signal handler, on four threads, and in a vforked child.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
extern int in_constructor;
#ifdef IFUNC
extern int chosen(void);
#endif
static void *other;
static int whose(void) { int (*f)(void) = (int (*)(void))dlsym(other, "cuInit"); return f ? f() : -1; }
static int before_all;
static void first(void) { before_all = dlsym(RTLD_DEFAULT, "getpid") != 0; }
__attribute__((section(".preinit_array"), used)) static void (*entry)(void) = first;
static volatile int in_handler;
static void handler(int s) { (void)s; in_handler = whose(); }
static void *thread(void *x) { for (int i = 0; i < 20000; i++) if (whose() != 42) return (void *)1; return x; }
int main(void) {
    other = dlopen("libother.so", RTLD_NOW);
    signal(SIGALRM, handler);
    raise(SIGALRM);
    pthread_t threads[4];
    int wrong = 0;
    for (int i = 0; i < 4; i++) pthread_create(threads + i, 0, thread, 0);
    for (int i = 0; i < 4; i++) { void *r; pthread_join(threads[i], &r); wrong |= r != 0; }
    pid_t child = vfork();
    if (!child) _exit(whose());
    int status;
    waitpid(child, &status, 0);
    printf("%d %d %d %d %d", before_all, in_constructor, in_handler, wrong, WEXITSTATUS(status));
#ifdef IFUNC
    printf(" %d", chosen());
#endif
    fflush(stdout);
    return 0;
}
