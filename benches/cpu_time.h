// CPU time of a process to the microsecond, for benches whose rows are short.
#pragma once
#include <dirent.h>
#include <stdlib.h>
#include <time.h>

// Milliseconds that all of the process's threads have run. Linux gives what each thread has run up to now for a thread's own clock only:
// the process's clock counts a thread that runs on another core up to the last tick, so that a row of a millisecond seems to cost nothing.
static double cpu_milliseconds(void)
{
    double sum = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; threads && (thread = readdir(threads));) {
        const int id = atoi(thread->d_name);
        struct timespec ran;
        // The clock of a thread by its number: clock_getcpuclockid(3) makes the same of a process's.
        if (id > 0 && clock_gettime((clockid_t)(~(unsigned)id << 3 | 6), &ran) == 0)
            sum += ran.tv_sec * 1e3 + ran.tv_nsec / 1e6;
    }
    closedir(threads);
    return sum;
}
