// Opens plugins, closes them, opens them again, from threads too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *use(const char *path, int quiet) {
    void *plugin = dlopen(path, RTLD_NOW);
    if (!plugin) { puts(dlerror()); exit(1); }
    void (*function)(void) = (void (*)(void))dlsym(plugin, "plugin_use");
    if (!quiet) function();
    return plugin;
}
static void *open_and_close(void *path) {
    for (int i = 0; i < 200; i++) dlclose(use(path, 1));
    return 0;
}
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) { dlclose(use(argv[i], 0)); use(argv[i], 0); }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, open_and_close, argv[1 + i % (argc - 1)]);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    void *again = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    if (!again) puts(dlerror()); else { void (*function)(void) = (void (*)(void))dlsym(again, "plugin_use"); function(); }
    puts("done");
    return 0;
}
