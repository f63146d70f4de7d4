"""A library of ours beside others, by turns in one process: what the programs in this folder's folders share.

A line of theirs is `name|ours|theirs|...`, in seconds of CPU time of all the process's threads, of which the least of all turns counts:
what other programs do at the same time costs it nothing but caches.
"""

import ctypes
import os
import time

P = ctypes.c_void_p


def at(array):
    return P(array.ctypes.data)


class Library:
    """One of ours and its handle: on the CPU device the device's memory is the host's, so arrays are used where they are."""

    def __init__(self, library, cudart, create):
        self.own, self.cudart = ctypes.CDLL(library), ctypes.CDLL(cudart)
        self.cudart.cudaFree(None)
        self.handle = self.made(create)

    def __call__(self, name, *arguments):
        status = getattr(self.own, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def wait(self):
        assert self.cudart.cudaDeviceSynchronize() == 0

    def made(self, name, *arguments):
        made = P()
        self(name, ctypes.byref(made), *arguments)
        return made


LAST, GONE = {}, [0.0]


def cpu_time():
    """Seconds that all threads have run. The process's own clock counts threads on other cores up to the last tick; what has ended counts as
    far as it was last seen (cpu_time.h)."""
    now = {}
    for thread in os.listdir("/proc/self/task"):
        try:
            now[thread] = time.clock_gettime(~int(thread) << 3 | 6)
        except OSError:
            pass  # It has ended.
    GONE[0] += sum(ran for thread, ran in LAST.items() if now.get(thread, -1.0) < ran)
    LAST.clear()
    LAST.update(now)
    return sum(now.values()) + GONE[0]


def timed(run):
    """The same, giving the CPU time that it takes."""
    def measured():
        start = cpu_time()
        run()
        return cpu_time() - start
    return measured


def turns(runs, seconds):
    """The least time of each, of those that they give, by turns."""
    least = [float("inf")] * len(runs)
    count, until = 0, time.monotonic() + seconds
    while count < 3 or time.monotonic() < until:
        least = [min(so_far, run()) for so_far, run in zip(least, runs)]
        count += 1
    return least


def tell(name, least, digits=6):
    print(name + "|" + "|".join(f"{seconds:.{digits}f}" for seconds in least), flush=True)
