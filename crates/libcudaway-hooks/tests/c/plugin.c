// Opens a plug-in that only the program's own RUNPATH finds.
#include <dlfcn.h>
#include <stdio.h>
int main(void) { printf("%s", dlopen("libplug.so", RTLD_NOW) ? "found" : dlerror()); return 0; }
