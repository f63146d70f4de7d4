// ask LIBRARY NAME [dlmopen]: opens the library, looks the name up on its handle, and prints what the function answers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(int n, char **words) {
    void *library = n > 3 ? dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW) : dlopen(words[1], RTLD_NOW);
    int (*found)(void) = library ? (int (*)(void))dlsym(library, words[2]) : 0;
    printf("%d", found ? found() : -1);
    // A lookup that succeeded leaves no error behind.
    if (found && dlerror()) printf(" with an error");
    return 0;
}
