// What a file of promises is made of. Each PROMISE runs in a process of its own, so that none sees what another left,
// and a crash or a hang is one promise's failure. Values come from NVIDIA's manual, whose chapter each file names.
//
//     PROMISE(what_the_manual_says_in_a_few_words)
//     {
//         OK(cuInit(0));
//         IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
//         SAME(2 + 2, 4);
//     }
//
// Output: a line "ok NAME", "failed NAME: why" or "skipped NAME: why" for each; exit status 1 if any failed.
#pragma once

#include <cuda.h>
#ifdef __CUDACC__
#include <cuda_runtime.h>
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace check {

struct Promise {
    const char *name;
    void (*body)();
};

inline std::vector<Promise> &promises()
{
    static std::vector<Promise> all;
    return all;
}

struct Entered {
    Entered(const char *name, void (*body)()) { promises().push_back({name, body}); }
};

// Where a promise's process says what went wrong.
inline int &report()
{
    static int pipe = -1;
    return pipe;
}

constexpr int KEPT = 0, BROKEN = 1, SKIPPED = 2;

[[noreturn]] inline void leave(int how, const std::string &why)
{
    (void)!write(report(), why.data(), why.size());
    _exit(how);
}

template <typename T> std::string shown(const T &value)
{
    std::ostringstream text;
    if constexpr (std::is_enum_v<T>)
        text << static_cast<long long>(value);
    else
        text << value;
    return text.str();
}

inline std::string shown(CUresult code)
{
    const char *name = nullptr;
    cuGetErrorName(code, &name);
    return std::string(name ? name : "an unknown code") + " (" + std::to_string(static_cast<int>(code)) + ")";
}

#ifdef __CUDACC__
inline std::string shown(cudaError_t code)
{
    return std::string(cudaGetErrorName(code)) + " (" + std::to_string(static_cast<int>(code)) + ")";
}
#endif

template <typename A, typename B> void same(const A &got, const B &wanted, const char *what, const char *file, int line)
{
    if (got == static_cast<A>(wanted))
        return;
    const char *base = std::strrchr(file, '/');
    leave(BROKEN, std::string(base ? base + 1 : file) + ":" + std::to_string(line) + ": " + what + " is " + shown(got) +
                      ", not " + shown(static_cast<A>(wanted)));
}

// `got` is its type's zero, which is every API's success.
template <typename T> void succeeded(const T &got, const char *what, const char *file, int line)
{
    same(got, T(0), what, file, line);
}

// The version of CUDA that the driver is of, ours or NVIDIA's.
inline int driver_version()
{
    int version = 0;
    succeeded(cuDriverGetVersion(&version), "cuDriverGetVersion", __FILE__, __LINE__);
    return version;
}

// What came with this header may be missing in the driver that answers.
inline bool is_driver_older()
{
    return driver_version() < CUDA_VERSION;
}

// NVIDIA's driver is in this machine's kernel, so what answers may be NVIDIA's.
inline bool is_beside_nvidia()
{
    return access("/proc/driver/nvidia/version", F_OK) == 0;
}

// What a process of its own ends with: its status, or 128 and the signal.
inline int ended(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// What a call answers (below 128) in a process of its own, which it may end.
template <typename Call> int apart(Call call)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(static_cast<int>(call()));
    return ended(child);
}

inline int run(int argc, char **argv)
{
    constexpr unsigned SECONDS = 60;
    int n_failed = 0;
    for (const Promise &promise : promises()) {
        if (argc > 1 && !std::strstr(promise.name, argv[1]))
            continue;
        int ends[2];
        if (pipe(ends) != 0)
            return 2;
        std::fflush(nullptr);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            report() = ends[1];
            alarm(SECONDS);
            promise.body();
            leave(KEPT, "");
        }
        close(ends[1]);
        std::string why;
        char part[512];
        for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
            why.append(part, n);
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status))
            why = WTERMSIG(status) == SIGALRM ? "hangs" : "ends by signal " + std::to_string(WTERMSIG(status));
        const bool is_skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
        const bool is_kept = WIFEXITED(status) && WEXITSTATUS(status) == KEPT;
        if (is_kept)
            std::printf("ok %s\n", promise.name);
        else
            std::printf("%s %s: %s\n", is_skipped ? "skipped" : "failed", promise.name, why.c_str());
        n_failed += !is_kept && !is_skipped;
    }
    return n_failed != 0;
}

} // namespace check

#define PROMISE(name)                                         \
    static void name();                                       \
    static const check::Entered name##_entered(#name, &name); \
    static void name()

// Of any type: the value, and what it has to be.
#define SAME(got, wanted) check::same((got), (wanted), #got, __FILE__, __LINE__)
// A call answers this code.
#define IS(call, code) check::same((call), (code), #call, __FILE__, __LINE__)
// What holds.
#define TRUE(condition) check::same(static_cast<bool>(condition), true, #condition, __FILE__, __LINE__)
// This machine has not what the promise is about.
#define SKIP(why) check::leave(check::SKIPPED, (why))

// A call succeeds.
#define OK(call) check::succeeded((call), #call, __FILE__, __LINE__)

int main(int argc, char **argv)
{
    return check::run(argc, argv);
}
