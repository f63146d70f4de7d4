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


PRECISIONS = {"S": 1204, "D": 1203, "C": 1214, "Z": 1213}
NO_PARAMS, NO_PRECISION, NO_REFINEMENT, NO_INFOS = 12, 14, 15, 25


def parameters(library, rng):
    """The same by their parameters, with what they tell."""
    handle, count, P = library.handle(), 0, ctypes.c_void_p
    for letter, main in PRECISIONS.items():
        params, infos = P(), P()
        library("cusolverDnIRSParamsCreate", ctypes.byref(params))
        library("cusolverDnIRSInfosCreate", ctypes.byref(infos))
        for routine in ("gesv", "gels"):
            size = (6, 6, 1) if routine == "gels" else (6, 1)
            room = ctypes.c_size_t()

            def asked(size=size, routine=routine, room=room):
                return library.status(f"cusolverDnIRSX{routine}_bufferSize", handle, params, *size, ctypes.byref(room))
            if routine == "gesv":
                assert asked() == NO_REFINEMENT
                library("cusolverDnIRSParamsSetRefinementSolver", params, 1104)
                assert asked() == NO_PRECISION
                library("cusolverDnIRSParamsSetSolverPrecisions", params, main, main + 10 if letter in "SD" else main - 10)
                assert asked() == NO_PRECISION, "real and complex precisions together"
                # The same one, or any that is lower.
                lowest = int(rng.integers(main, main // 10 * 10 + 8))
                library("cusolverDnIRSParamsSetSolverLowestPrecision", params, lowest)
                library("cusolverDnIRSParamsSetMaxIters", params, 7)
                library("cusolverDnIRSParamsSetTol", params, ctypes.c_double(1e-9))
            assert asked() == 0
            for n in sizes(rng):
                with Scope(library) as scope:
                    solver, name = Solver(library, handle, scope, letter), f"cusolverDnIRSX{routine}"
                    m = n + (int(rng.integers(0, 9)) if routine == "gels" else 0)
                    sides = int(rng.integers(1, 4))
                    a = numbers(rng, (m, n), solver).astype(solver.dtype)
                    b = numbers(rng, (m, sides), solver).astype(solver.dtype)
                    given, right = solver.matrix(a, rng=rng), solver.matrix(b, rng=rng)
                    x, info, steps = solver.matrix(np.full((n, sides), 5), rng=rng), scope.info(), ctypes.c_int(-77)
                    sized = ((m, n, sides) if routine == "gels" else (n, sides))
                    sized += (given.at, given.ld, right.at, right.ld, x.at, x.ld, scope.zeros(room.value, np.uint8).at, room)
                    history = P()
                    library("cusolverDnIRSInfosRequestResidual", infos)
                    library(name, handle, params, infos, *sized, ctypes.byref(steps), info.at)
                    assert steps.value == 0 and info.get()[0] == 0, name
                    told = ctypes.c_int(-1)
                    library("cusolverDnIRSInfosGetNiters", infos, ctypes.byref(told))
                    assert told.value == 0
                    library("cusolverDnIRSInfosGetMaxIters", infos, ctypes.byref(told))
                    assert told.value == 7
                    library("cusolverDnIRSInfosGetResidualHistory", infos, ctypes.byref(history))
                    number = ctypes.c_float if solver.real == np.float32 else ctypes.c_double
                    norms = np.ctypeslib.as_array(ctypes.cast(history, ctypes.POINTER(number)), (sides, 8))
                    rest = wide(a) @ wide(x.get()) - b
                    lengths = np.sqrt((np.abs(rest) ** 2).sum(0)).astype(np.float64)
                    bound = 30 * max(m, 1) * float(solver.eps) * float(norm(a) * norm(x.get()) + norm(b))
                    assert (np.abs(norms[:, 0] - lengths) <= bound).all() and (norms[:, 1:] == 0).all(), f"{name}: {norms}"
                    if routine == "gesv":
                        near(rest, norm(a) * norm(x.get()), n, solver, name)
                    else:
                        near(wide(a).conj().T @ rest, norm(a) * norm(a.conj().T) * norm(x.get()) + norm(a) * norm(b), m, solver, name)
                    assert library.status(name, handle, None, infos, *sized, ctypes.byref(steps), info.at) == NO_PARAMS
                    assert library.status(name, handle, params, None, *sized, ctypes.byref(steps), info.at) == NO_INFOS
                    count += 1
        library("cusolverDnIRSParamsDestroy", params)
        library("cusolverDnIRSInfosDestroy", infos)
        assert library.status("cusolverDnIRSParamsDestroy", params) == NO_PARAMS
        assert library.status("cusolverDnIRSInfosDestroy", infos) == NO_INFOS
    library("cusolverDnDestroy", handle)
    return count
