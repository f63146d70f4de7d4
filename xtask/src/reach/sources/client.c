// One program, many ways to the driver: client WAY [NAME]. Prints whose driver answered.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
typedef int (*Version)(int *);
static int say(Version version) {
    int number = 0;
    if (version && version(&number)) number = 0;
    puts(number > 1 ? "ours" : number == 1 ? "theirs" : "none");
    fflush(stdout);
    return 0;
}
#ifdef LINK
int cuDriverGetVersion(int *);
int main(void) { return say(cuDriverGetVersion); }
#else
static int look(void *library) { return say(library ? (Version)dlsym(library, "cuDriverGetVersion") : 0); }
int main(int n, char **words) {
    const char *way = words[1], *name = n > 2 ? words[2] : "libcuda.so.1";
    char *again[] = {words[0], "dlopen", (char *)name, 0}, *nothing[] = {0};
    if (!strcmp(way, "dlopen")) return look(dlopen(name, RTLD_NOW));
    if (!strcmp(way, "deepbind")) return look(dlopen(name, RTLD_NOW | RTLD_DEEPBIND));
    if (!strcmp(way, "global")) { dlopen(name, RTLD_NOW | RTLD_GLOBAL); return say((Version)dlsym(RTLD_DEFAULT, "cuDriverGetVersion")); }
    if (!strcmp(way, "default")) return say((Version)dlsym(RTLD_DEFAULT, "cuDriverGetVersion"));
#ifndef STATIC
    if (!strcmp(way, "dlmopen")) return look(dlmopen(LM_ID_NEWLM, name, RTLD_NOW));
#endif
    if (!strcmp(way, "exec")) return execv(words[0], again);
    if (!strcmp(way, "exec-cleared")) return execve(words[0], again, nothing);
    if (!strcmp(way, "fork")) {
        if (!fork()) { look(dlopen(name, RTLD_NOW)); _exit(0); }
        wait(0);
    }
    return 0;
}
#endif
