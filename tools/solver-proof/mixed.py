"""Systems that may be factored in a lower precision: their solutions are as good as the main one's."""

import ctypes

import numpy as np

from draw import near, norm, numbers, sizes, wide
from library import INVALID, Scope, Solver

# The main precision, and what may be lower.
NAMES = {"S": "SHBX", "D": "DSHBX", "C": "CKEY", "Z": "ZCKEY"}


def mixed(library, rng):
    handle, count = library.handle(), 0
    for letter, others in NAMES.items():
        for other in others:
            for n in sizes(rng):
                for routine in ("gesv", "gels"):
                    with Scope(library) as scope:
                        solver = Solver(library, handle, scope, letter)
                        name = f"cusolverDn{letter}{other}{routine}"
                        m = n + (int(rng.integers(0, 9)) if routine == "gels" else 0)
                        sides = int(rng.integers(0, 4))
                        a = numbers(rng, (m, n), solver).astype(solver.dtype)
                        b = numbers(rng, (m, sides), solver).astype(solver.dtype)
                        given, right = solver.matrix(a, rng=rng), solver.matrix(b, rng=rng)
                        x, info = solver.matrix(np.full((n, sides), 5), rng=rng), scope.info()
                        pivots = scope.zeros(n, np.int32)
                        sized = (m, n, sides) if routine == "gels" else (n, sides)
                        sized += (given.at, given.ld) + ((pivots.at,) if routine == "gesv" else ())
                        sized += (right.at, right.ld, x.at, x.ld)
                        room, steps = ctypes.c_size_t(), ctypes.c_int(-77)
                        library(name + "_bufferSize", handle, *sized, None, ctypes.byref(room))
                        area = scope.zeros(room.value, np.uint8)
                        library(name, handle, *sized, area.at, room, ctypes.byref(steps), info.at)
                        # It is there when the call returns.
                        assert steps.value == 0, f"{name}: {steps.value} iterations"
                        library.synchronize()
                        assert info.get()[0] == 0 and (given.get() == a).all() and (right.get() == b).all(), name
                        solution = wide(x.get())
                        rest = wide(a) @ solution - b
                        if routine == "gesv":
                            near(rest, norm(a) * norm(solution), n, solver, name)
                        else:
                            near(wide(a).conj().T @ rest, norm(a) * norm(a.conj().T) * norm(solution) + norm(a) * norm(b), m, solver, name)
                        # A column of zeros: no solution.
                        if n > 0:
                            column = int(rng.integers(n))
                            a[:, column] = 0
                            given, x = solver.matrix(a, rng=rng), solver.matrix(np.full((n, sides), 5), rng=rng)
                            at = 3 if routine == "gels" else 2
                            sized = sized[:at] + (given.at, given.ld) + sized[at + 2:-2] + (x.at, x.ld)
                            library(name, handle, *sized, area.at, room, ctypes.byref(steps), info.at)
                            library.synchronize()
                            assert info.get()[0] == column + 1, f"{name}: info {info.get()[0]} for {column + 1}"
                            assert (x.get() == 5).all(), f"{name}: a solution of a singular system"
                            wrong = sized[:-1] + (n - 1,)
                            status = library.status(name, handle, *wrong, area.at, room, ctypes.byref(steps), info.at)
                            assert status == INVALID, f"{name}: lddx {n - 1}: {status}"
                        count += 1
    library("cusolverDnDestroy", handle)
    return count
