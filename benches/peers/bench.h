// What the three host programs share: the order of a run, the clock, and the lines xtask reads.
//
// An Api has:
//   const char *refuses(const std::string &row)      why it cannot do a row, or nullptr
//   Handle put(const std::vector<uint32_t> &words)   a device array with these contents
//   void get(Handle, std::vector<uint32_t> &words)   and back
//   void launch(const std::string &row, const std::vector<Handle> &arrays)   everything one launch does
//   void finish()                                    waits for all of it
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../cpu_time.h"
#include "work.h"

namespace bench {

[[noreturn]] inline void fail(const std::string &what)
{
    std::printf("failed %s\n", what.c_str());
    std::fflush(stdout);
    std::_Exit(1);
}

// Processor time of all threads of this process, the system's part for it too.
inline double cpu_now() { return cpu_milliseconds() * 1e-3; }

inline double wall_now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Api>
void check(Api &api, const Work &work, const std::vector<typename Api::Handle> &handles, int launches)
{
    std::vector<std::vector<uint32_t>> got = work.arrays;
    for (size_t i = 0; i < got.size(); i++)
        api.get(handles[i], got[i]);
    const std::string wrong = work.wrong(got, launches);
    if (wrong.empty())
        return;
    std::printf("wrong %s\n", wrong.c_str());
    std::fflush(stdout);
    std::_Exit(0);
}

// `program ROW SECONDS`: measures for about that long, five passes at least, and prints one line.
template <typename Api>
int run(Api &api, int argc, char **argv)
{
    if (argc < 3)
        fail("usage: program ROW SECONDS");
    const std::string row = argv[1];
    const double budget = std::atof(argv[2]);
    const Work work = make_work(row);
    if (!work.wrong)
        fail("no row is called " + row);
    if (const char *why = api.refuses(row)) {
        std::printf("unsupported %s\n", why);
        return 0;
    }
    std::vector<typename Api::Handle> handles;
    for (const auto &words : work.arrays)
        handles.push_back(api.put(words));

    int launches = 0;
    const auto several = [&](int count) {
        for (int i = 0; i < count; i++) {
            api.launch(row, handles);
            if (row == "empty")  // the row is the way there and back
                api.finish();
        }
        api.finish();
        launches += count;
    };
    several(1);  // compiles
    check(api, work, handles, launches);

    // A pass is long enough for the clock: CPU time is counted in microseconds, and threads take their time to start.
    const double before = wall_now();
    several(1);
    const double once = std::max(wall_now() - before, 1e-7);
    const int count = std::max(1, static_cast<int>(std::min(0.02, budget / 10) / once));
    double cpu = 1e9, wall = 1e9;
    int passes = 0;
    for (const double start = wall_now(); passes < 5 || (wall_now() - start < budget && passes < 1000); passes++) {
        // A launch of seconds needs no five passes to be told from one of milliseconds.
        if (passes >= 2 && wall_now() - start > 4 * budget)
            break;
        const double wall_start = wall_now(), cpu_start = cpu_now();
        several(count);
        cpu = std::min(cpu, (cpu_now() - cpu_start) / count);
        wall = std::min(wall, (wall_now() - wall_start) / count);
    }
    check(api, work, handles, launches);
    std::printf("measured %.3f %.3f %d\n", cpu * 1e6, wall * 1e6, launches);
    return 0;
}

}  // namespace bench
