// Opens the driver library from main, as a static runtime does: too late for a takeover.
#include "use.h"
#include <dlfcn.h>
int main(int argc, char **argv) {
    void *driver = dlopen(argv[1], RTLD_NOW);
    if (!driver) { puts(dlerror()); return 1; }
    *handle = "static";
    use_runtime();
    fflush(stdout);
    ((void (*)(void))dlsym(driver, "takeover_report"))();
    return 0;
}
