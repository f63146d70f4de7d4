"""A pytest plugin for the suites of other projects: writes down how each test ends, and can take a sample.

CUDAWAY_RESULTS=FILE  gets `collected <tab> number`, `begun <tab> test` and `outcome <tab> test <tab> reason`, each at once:
                      a test may take the process down. Tests that stand in the file already are not run again
CUDAWAY_UNTIL=TIME    the test that is running at this time (seconds since 1970) is the last, in a process that takes a dead one's place too
CUDAWAY_SAMPLE=N      only the first N tests, in an order drawn by a fixed seed
CUDAWAY_AGAIN=FILE    only the tests that it names, a line each
CUDAWAY_BEFORE=FILE   all but those: they were run before
CUDAWAY_LISTED=FILE   tests of which those that are not there are written down: `absent <tab> test`

With pytest-xdist several processes run tests; the one that hands them out writes.
"""

import ctypes
import os
import random
import sys
import time

import pytest

SEED = 5
RANK = {"passed": 0, "skipped": 1, "failed": 2}
PATH = os.environ["CUDAWAY_RESULTS"]
END = float(os.environ.get("CUDAWAY_UNTIL", "inf"))
endings = {}
# Of pytest-xdist, in a process that is handed tests: "gw0", "gw1", …
WORKER = os.environ.get("PYTEST_XDIST_WORKER")


def write(*fields):
    with open(PATH, "a", encoding="utf-8") as out:
        out.write("\t".join(fields) + "\n")


def pytest_configure():
    # A worker that takes the place of one that died finds the tests that the others have found.
    if WORKER is None:
        with open(PATH + ".before", "w", encoding="utf-8") as out:
            out.writelines(line.split("\t")[1] + "\n" for line in lines_of(PATH) if line.startswith("begun\t"))


def lines_of(path):
    try:
        with open(path, encoding="utf-8") as lines:
            return [line.rstrip("\n") for line in lines]
    except FileNotFoundError:
        return []


def named(variable):
    return lines_of(os.environ.get(variable, ""))


@pytest.fixture
def initialize_from_pytest_config():
    """Numba's tests ask for it; the conftest.py that has it is not in its wheel."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    # All workers find the same tests, before any is run.
    if WORKER in (None, "gw0"):
        write("collected", str(len(items)))
        there = {item.nodeid for item in items}
        for test in named("CUDAWAY_LISTED") + named("CUDAWAY_AGAIN"):
            if test not in there:
                write("absent", test)
    again = set(named("CUDAWAY_AGAIN"))
    wanted = int(os.environ.get("CUDAWAY_SAMPLE", "0"))
    if again:
        items[:] = [item for item in items if item.nodeid in again]
    elif wanted:
        # In any order, so that what a time limit leaves of it is a sample too.
        random.Random(SEED).shuffle(items)
        del items[wanted:]
    before = set(lines_of(PATH + ".before") + named("CUDAWAY_BEFORE"))
    items[:] = [item for item in items if item.nodeid not in before]


def pytest_runtest_call(item):
    if time.time() > END:
        item.session.shouldstop = "its time is over"


def lost():
    """What the driver says of a context that no test can use any more: the numbers of errors that stay until the process ends."""
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    error = driver.cuCtxSynchronize()
    return error if error in (700, 710, *range(714, 720)) else None


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    # As if it had taken the process down: all tests after it would fail as well, and be blamed.
    error = lost()
    if error is not None:
        sys.stderr.write(f"{item.nodeid}: CUDA error {error}, and its context is lost\n")
        sys.stderr.flush()
        os._exit(1)


def pytest_runtest_logstart(nodeid):
    if WORKER is None:
        write("begun", nodeid)


def pytest_runtest_logreport(report):
    """Set-up, the test, its subtests and tear-down are reported one by one; the worst of them counts."""
    if WORKER is not None:
        return
    outcome, reason = report.outcome, ""
    if hasattr(report, "wasxfail"):
        # On any GPU: it ended as its authors say, whether it failed or not.
        outcome, reason = "skipped", "expected to fail"
    elif report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = crash.message if crash else (str(report.longrepr).splitlines() or ["?"])[-1]
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    before = endings.get(report.nodeid)
    if before is None or RANK[outcome] > RANK[before[0]]:
        endings[report.nodeid] = (outcome, " ".join(reason.split())[:400])
    # Of a worker that a test took down, pytest-xdist reports that and nothing more of the test.
    if report.when not in ("setup", "call"):
        outcome, reason = endings.pop(report.nodeid)
        write(outcome, report.nodeid, reason)
