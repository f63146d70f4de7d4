// The driver through a C++ object's constructor, before main.
#include <cstdio>
#include <dlfcn.h>
namespace {
struct Driver {
    int version = 0;
    Driver() {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        auto ask = reinterpret_cast<int (*)(int *)>(library ? dlsym(library, "cuDriverGetVersion") : nullptr);
        if (ask && ask(&version)) version = 0;
    }
} driver;
}
int main() { std::puts(driver.version > 1 ? "ours" : driver.version == 1 ? "theirs" : "none"); }
