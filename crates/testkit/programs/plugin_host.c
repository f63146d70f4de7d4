/* Opens a library that has a CUDA runtime linked in, as a Python interpreter opens an extension module, and runs it.
 * The library is an example built with -shared and -Dmain=plugin_main. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!plugin) {
        printf("FAILED: %s\n", argc > 1 ? dlerror() : "which plugin?");
        return 1;
    }
    int (*plugin_main)(void);
    *(void **)&plugin_main = dlsym(plugin, "_Z11plugin_mainv");
    if (!plugin_main) {
        printf("FAILED: %s\n", dlerror());
        return 1;
    }
    return plugin_main();
}
