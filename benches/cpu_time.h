// CPU time of a process to the microsecond, for benches whose rows are short.
#pragma once
#include <dirent.h>
#include <stdlib.h>
#include <time.h>

// A thread as it was last seen.
struct cpu_thread {
    int id;
    int is_there;
    double ran;
};

// Milliseconds that all of the process's threads have run. Linux gives what each thread has run up to now for a thread's own clock only:
// the process's clock counts a thread that runs on another core up to the last tick, so that a row of a millisecond seems to cost nothing.
// A thread that has ended (a compiler's) counts as far as it was last seen: without it a row seems to cost less than nothing. For one
// thread of the process to call.
static double cpu_milliseconds(void)
{
    static struct cpu_thread seen[1024];
    static int count;
    static double gone;
    double sum = 0;
    for (int at = 0; at < count; at++)
        seen[at].is_there = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        const int id = atoi(thread->d_name);
        struct timespec time;
        // The clock of a thread by its number: clock_getcpuclockid(3) makes the same of a process's.
        if (id <= 0 || clock_gettime((clockid_t)(~(unsigned)id << 3 | 6), &time) != 0)
            continue;
        const double ran = time.tv_sec * 1e3 + time.tv_nsec / 1e6;
        int at = 0;
        while (at < count && seen[at].id != id)
            at++;
        sum += ran;
        if (at == 1024)
            continue;
        if (at == count)
            count++;
        else if (ran < seen[at].ran)
            gone += seen[at].ran; // Another one of the same number.
        seen[at].id = id;
        seen[at].is_there = 1;
        seen[at].ran = ran;
    }
    closedir(threads);
    for (int at = count - 1; at >= 0; at--) {
        if (seen[at].is_there)
            continue;
        gone += seen[at].ran;
        seen[at] = seen[--count];
    }
    return sum + gone;
}
