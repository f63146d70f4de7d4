"""What the checks of a framework that has a CPU device of its own share: a result is held against that device's, and every check is told."""

import numpy as np

FAILED = []


def compare(name, got, expected, bound):
    """Off by no more than `bound` of the largest number that is expected."""
    got, expected = np.asarray(got), np.asarray(expected)
    worst = np.max(np.abs(got.astype(np.float64) - expected)) / np.max(np.abs(expected))
    if got.shape != expected.shape or got.dtype != expected.dtype or not worst <= bound:
        FAILED.append(f"{name}: off by {worst}")


def run(*checks):
    """Ends the program."""
    for check in checks:
        before = len(FAILED)
        try:
            check()
        except Exception as error:
            FAILED.append(f"{check.__name__}: {type(error).__name__}: {str(error)[:300]}")
        print(check.__name__, "ok" if len(FAILED) == before else "FAILED")
    for line in FAILED:
        print("FAILED:", line)
    print("FAILED" if FAILED else "PASSED")
    raise SystemExit(1 if FAILED else 0)
