"""Factorizations of square matrices and what is solved by them."""

import ctypes
from pathlib import Path

import numpy as np
import scipy.linalg

from draw import KINDS, general, kinds_of, near, norm, numbers, positive, sizes, stored, untouched, wide
from library import C, INVALID, LOWER, N, T, TYPES, UPPER, Scope, Solver, i64


def each(library, rng):
    handle = library.handle()
    for letter in TYPES:
        yield lambda scope, letter=letter: Solver(library, handle, scope, letter)
    library("cusolverDnDestroy", handle)


def lu(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                m = n if kind != "random" else int(rng.integers(max(0, n - 6), n + 7))
                for pivoting, api in ((True, "int"), (True, "64"), (False, "int")):
                    with Scope(library) as scope:
                        solver = solver_in(scope)
                        what = f"getrf {solver.letter} {kind} {m} by {n} {api}"
                        a = general(rng, kind, m, n, solver)
                        if not pivoting:
                            # Diagonally dominant, so that it needs none.
                            a = (a / (norm(a) or 1) + 2 * np.eye(m, n)).astype(solver.dtype)
                        given, info = solver.matrix(a, rng=rng), scope.info()
                        size = min(m, n)
                        pivots = scope.array(np.full(size, -7, np.int64 if api == "64" else np.int32))
                        if api == "64":
                            sized = (None, i64(m), i64(n), solver.number, given.at, i64(given.ld))
                            device, host = ctypes.c_size_t(), ctypes.c_size_t()
                            library("cusolverDnXgetrf_bufferSize", solver.handle, *sized, solver.number,
                                    ctypes.byref(device), ctypes.byref(host))
                            library("cusolverDnXgetrf", solver.handle, *sized, pivots.at, solver.number,
                                    scope.zeros(device.value, np.uint8).at, device, None, host, info.at)
                        else:
                            area, _ = solver.area("getrf", m, n, given.at, given.ld)
                            solver.call("getrf", m, n, given.at, given.ld, area, pivots.at if pivoting else None, info.at)
                        library.synchronize()
                        made, found = given.get(), pivots.get()
                        l, u = wide(np.tril(made, -1)[:, :size] + np.eye(m, size)), wide(np.triu(made)[:size])
                        rows = np.arange(m)
                        for i, pivot in enumerate(found if pivoting else []):
                            assert i < pivot <= m, f"{what}: pivot {pivot} of {i}"
                            rows[[i, pivot - 1]] = rows[[pivot - 1, i]]
                        near(l @ u - a[rows], norm(a), max(m, n), solver, what)
                        zero = np.flatnonzero(np.diagonal(made) == 0)
                        assert info.get()[0] == (zero[0] + 1 if len(zero) else 0), f"{what}: info {info.get()[0]}"
                        if m == n and n > 0 and kind in ("random", "clustered", "tiny", "huge"):
                            solve(library, rng, scope, solver, a, given, pivots if pivoting else None, api)
                        count += 1
    return count


def solve(library, rng, scope, solver, a, given, pivots, api):
    n, sides = a.shape[0], int(rng.integers(0, 5))
    for op in (N, T, C):
        b = numbers(rng, (n, sides), solver).astype(solver.dtype)
        x, info = solver.matrix(b, rng=rng), scope.info()
        at = None if pivots is None else pivots.at
        if api == "64":
            library("cusolverDnXgetrs", solver.handle, None, op, i64(n), i64(sides), solver.number, given.at,
                    i64(given.ld), at, solver.number, x.at, i64(x.ld), info.at)
        else:
            solver.call("getrs", op, n, sides, given.at, given.ld, at, x.at, x.ld, info.at)
        library.synchronize()
        made = wide(x.get())
        of = wide({N: a, T: a.T, C: a.conj().T}[op])
        assert info.get()[0] == 0
        near(of @ made - b, norm(of) * norm(made), n, solver, f"getrs {solver.letter} {n} {op}")


def singular_info(library, rng):
    """A column of zeros: LAPACK's info."""
    count = 0
    for solver_in in each(library, rng):
        for n in (1, 4, 23, 60):
            with Scope(library) as scope:
                solver = solver_in(scope)
                a = numbers(rng, (n, n), solver).astype(solver.dtype)
                column = int(rng.integers(n))
                a[:, column] = 0
                given, info, pivots = solver.matrix(a, rng=rng), scope.info(), scope.zeros(n, np.int32)
                area, _ = solver.area("getrf", n, n, given.at, given.ld)
                solver.call("getrf", n, n, given.at, given.ld, area, pivots.at, info.at)
                library.synchronize()
                wanted = scipy.linalg.get_lapack_funcs("getrf", (a,))(a)[2]
                assert info.get()[0] == wanted == column + 1, f"info {info.get()[0]}, LAPACK's {wanted}"
                count += 1
    return count


def cholesky(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for uplo in (LOWER, UPPER):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    what = f"potrf {solver.letter} {n} {uplo}"
                    scale = float(rng.choice([1, 1e-20, 1e20]))
                    a = (positive(rng, n, solver) * solver.real(scale)).astype(solver.dtype)
                    before, other = stored(a, uplo, rng)
                    given, info = solver.matrix(before, rng=rng), scope.info()
                    area, size = solver.area("potrf", uplo, n, given.at, given.ld)
                    solver.call("potrf", uplo, n, given.at, given.ld, area, size, info.at)
                    library.synchronize()
                    made = given.get()
                    assert info.get()[0] == 0, what
                    untouched(before, made, other, what)
                    l = wide(np.tril(made)) if uplo == LOWER else wide(np.triu(made)).conj().T
                    near(l @ l.conj().T - a, norm(a), n, solver, what)
                    sides = int(rng.integers(0, 4))
                    b = numbers(rng, (n, sides), solver).astype(solver.dtype)
                    x = solver.matrix(b, rng=rng)
                    solver.call("potrs", uplo, n, sides, given.at, given.ld, x.at, x.ld, info.at)
                    y = solver.matrix(b, rng=rng)
                    library("cusolverDnXpotrs", solver.handle, None, uplo, i64(n), i64(sides), solver.number, given.at,
                            i64(given.ld), solver.number, y.at, i64(y.ld), info.at)
                    area, size = solver.area("potri", uplo, n, given.at, given.ld)
                    library.synchronize()
                    for solved in (x, y):
                        solution = wide(solved.get())
                        near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, f"potrs {what}")
                    solver.call("potri", uplo, n, given.at, given.ld, area, size, info.at)
                    library.synchronize()
                    half = given.get()
                    untouched(before, half, other, "potri")
                    half = np.tril(half) if uplo == LOWER else np.triu(half)
                    inverse = wide(half) + wide(half - np.diag(half.diagonal())).conj().T
                    near(wide(a) @ inverse - np.eye(n), norm(a) * norm(inverse), n, solver, f"potri {what}")
                    assert info.get()[0] == 0
                    # A minor that is not positive, through the 64-bit API.
                    if n > 1:
                        row = int(rng.integers(n))
                        broken = a.copy()
                        broken[row, row] = -broken[row, row]
                        given = solver.matrix(stored(broken, uplo, rng)[0], rng=rng)
                        device, host = ctypes.c_size_t(), ctypes.c_size_t()
                        sized = (None, uplo, i64(n), solver.number, given.at, i64(given.ld), solver.number)
                        library("cusolverDnXpotrf_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                        library("cusolverDnXpotrf", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device,
                                None, host, info.at)
                        library.synchronize()
                        assert info.get()[0] == row + 1, f"{what}: info {info.get()[0]} for {row + 1}"
                count += 1
    return count


def batches(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n, batch in ((0, 3), (1, 5), (7, 0), (7, 20), (33, 4)):
            for uplo in (LOWER, UPPER):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    all_ = [positive(rng, n, solver) for _ in range(batch)]
                    wanted = np.zeros(batch, np.int32)
                    if n > 2 and batch > 1:
                        all_[1][2, 2] = -1
                        wanted[1] = 3
                    gap = int(rng.integers(0, 3))
                    given = [solver.matrix(stored(a, uplo, rng)[0], gap=gap) for a in all_]
                    sides = [numbers(rng, (n, 1), solver).astype(solver.dtype) for _ in all_]
                    x = [solver.matrix(b, gap=gap) for b in sides]
                    addresses = lambda of: scope.array(np.array([it.at.value for it in of], np.uint64))
                    info, one = scope.info(batch), scope.info()
                    ld = max(n, 1) + gap
                    list_a, list_b = addresses(given), addresses(x)
                    solver.call("potrfBatched", uplo, n, list_a.at, ld, info.at, batch)
                    library.synchronize()
                    assert (info.get() == wanted).all(), f"potrfBatched: {info.get()}"
                    solver.call("potrsBatched", uplo, n, 1, list_a.at, ld, list_b.at, ld, one.at, batch)
                    library.synchronize()
                    assert one.get()[0] == 0
                    for a, b, solved, failed in zip(all_, sides, x, wanted):
                        if not failed:
                            solution = wide(solved.get())
                            near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, "potrsBatched")
                    count += 1
    return count


def indefinite(library, rng):
    """Symmetric matrices, of complex numbers too, beside LAPACK's pivots."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for uplo in (LOWER, UPPER):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    what = f"sytrf {solver.letter} {n} {uplo}"
                    a = numbers(rng, (n, n), solver)
                    a = a + a.T
                    a[np.arange(n) % 3 == 0, np.arange(n) % 3 == 0] = 0
                    a = a.astype(solver.dtype)
                    before, other = stored(a, uplo, rng)
                    given, info, pivots = solver.matrix(before, rng=rng), scope.info(), scope.zeros(n, np.int32)
                    area, size = solver.area("sytrf", n, given.at, given.ld)
                    solver.call("sytrf", uplo, n, given.at, given.ld, pivots.at, area, size, info.at)
                    # The same by the 64-bit API.
                    second, wide_pivots, wide_info = solver.matrix(before, rng=rng), scope.zeros(n, np.int64), scope.info()
                    device, host = ctypes.c_size_t(), ctypes.c_size_t()
                    sized = (None, uplo, i64(n), solver.number, second.at, i64(second.ld), wide_pivots.at, solver.number)
                    library("cusolverDnXsytrf_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                    library("cusolverDnXsytrf", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None,
                            host, wide_info.at)
                    library.synchronize()
                    made, found = given.get(), pivots.get()
                    untouched(before, made, other, what)
                    assert (second.get() == made).all() and (wide_pivots.get() == found).all(), what
                    assert info.get()[0] == wide_info.get()[0]
                    if n == 0:
                        continue
                    if n == 1:
                        assert info.get()[0] == 1, what
                        continue
                    assert info.get()[0] == 0, what
                    sides = int(rng.integers(1, 4))
                    b = numbers(rng, (n, sides), solver).astype(solver.dtype)
                    x = solver.matrix(b, rng=rng)
                    sized = (uplo, i64(n), i64(sides), solver.number, second.at, i64(second.ld), wide_pivots.at, solver.number,
                             x.at, i64(x.ld))
                    library("cusolverDnXsytrs_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                    library("cusolverDnXsytrs", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None,
                            host, info.at)
                    area, size = solver.area("sytri", uplo, n, given.at, given.ld, pivots.at)
                    solver.call("sytri", uplo, n, given.at, given.ld, pivots.at, area, size, info.at)
                    library.synchronize()
                    solution = wide(x.get())
                    near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, f"Xsytrs {what}")
                    half = given.get()
                    untouched(before, half, other, "sytri")
                    half = wide(np.tril(half) if uplo == LOWER else np.triu(half))
                    inverse = half + half.T - np.diag(half.diagonal())
                    near(wide(a) @ inverse - np.eye(n), norm(a) * norm(inverse), n, solver, f"sytri {what}")
                    # Anybody's factorization solves: LAPACK's own, by our pivots' meaning.
                    lapack = scipy.linalg.get_lapack_funcs("sytrf", (a,))(a, lower=uplo == LOWER)
                    assert lapack[2] == 0
                    theirs, their_pivots = solver.matrix(lapack[0], rng=rng), scope.array(lapack[1].astype(np.int64))
                    x = solver.matrix(b, rng=rng)
                    sized = (uplo, i64(n), i64(sides), solver.number, theirs.at, i64(theirs.ld), their_pivots.at, solver.number,
                             x.at, i64(x.ld))
                    library("cusolverDnXsytrs", solver.handle, *sized, None, ctypes.c_size_t(0), None, ctypes.c_size_t(0), info.at)
                    library.synchronize()
                    solution = wide(x.get())
                    near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, f"Xsytrs by LAPACK's factors {what}")
                    count += 1
    return count


def unpivoted(made, uplo, of):
    """What factors of one triangle are put together to, where no rows moved; `of` is what the other triangle is of the first."""
    factor = wide(np.tril(made, -1) if uplo == LOWER else np.triu(made, 1)) + np.eye(len(made))
    return factor @ np.diag(wide(made.diagonal())) @ of(factor).T


def hermitian_indefinite(library, rng):
    """Xhetrf and Xhetrs of complex matrices, by LAPACK's factors too; and without pivots, as sytrf and Xsytrs have it."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for uplo in (LOWER, UPPER):
                for name in ("he", "sy"):
                    with Scope(library) as scope:
                        solver = solver_in(scope)
                        if name == "he" and solver.letter not in "CZ":
                            continue
                        what = f"X{name}trf {solver.letter} {n} {uplo}"
                        of = np.conj if name == "he" else (lambda a: a)
                        a = numbers(rng, (n, n), solver)
                        a = a + of(a).T
                        moving, still = a.copy(), a / (norm(a) or 1) + 2 * np.diag(rng.choice([-1, 1], n))
                        moving[np.arange(n) % 3 == 0, np.arange(n) % 3 == 0] = 0
                        sides = int(rng.integers(1, 4))
                        b = numbers(rng, (n, sides), solver).astype(solver.dtype)

                        def solve(a, given, pivots, told):
                            x, info = solver.matrix(b, rng=rng), scope.info()
                            device, host = ctypes.c_size_t(), ctypes.c_size_t()
                            params = (None,) if name == "he" else ()
                            sized = (*params, uplo, i64(n), i64(sides), solver.number, given.at, i64(given.ld), pivots, solver.number, x.at, i64(x.ld))
                            library(f"cusolverDnX{name}trs_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                            library(f"cusolverDnX{name}trs", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None, host, info.at)
                            library.synchronize()
                            solution = wide(x.get())
                            assert info.get()[0] == 0, told
                            near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, told)

                        for a, moves in ((moving, True), (still, False)):
                            if moves and name == "sy":
                                continue
                            a = a.astype(solver.dtype)
                            before, other = stored(a, uplo, rng)
                            given, info, pivots = solver.matrix(before, rng=rng), scope.info(), scope.zeros(n, np.int64)
                            device, host = ctypes.c_size_t(), ctypes.c_size_t()
                            sized = (None, uplo, i64(n), solver.number, given.at, i64(given.ld), pivots.at if moves else None, solver.number)
                            library(f"cusolverDnX{name}trf_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                            library(f"cusolverDnX{name}trf", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None, host, info.at)
                            library.synchronize()
                            made = given.get()
                            untouched(before, made, other, what)
                            # A single zero is no pivot.
                            singular = n == 1 and moves
                            assert info.get()[0] == singular, f"{what}: info {info.get()[0]}"
                            if not moves:
                                near(unpivoted(made, uplo, of) - a, norm(a), n, solver, f"{what} without pivots")
                            if n > 0 and not singular:
                                solve(a, given, pivots.at if moves else None, f"{what} {moves}")
                            if moves and n > 1:
                                lapack = scipy.linalg.get_lapack_funcs("hetrf", (a,))(a, lower=uplo == LOWER)
                                assert lapack[2] == 0
                                # LAPACK's pivots count from 1, SciPy hands them on as they are.
                                theirs = scope.array(lapack[1].astype(np.int64))
                                solve(a, solver.matrix(lapack[0], rng=rng), theirs.at, f"{what} by LAPACK's factors")
                        count += 1
    with Scope(library) as scope:
        handle, a, info = library.handle(), scope.zeros(16, np.complex128), scope.info()
        pivots = scope.zeros(4, np.int64)
        device, host = ctypes.c_size_t(), ctypes.c_size_t()
        factor = [None, 0, i64(4), 5, a.at, i64(4), pivots.at, 5]
        solve = [None, 0, i64(4), i64(1), 5, a.at, i64(4), pivots.at, 5, a.at, i64(4)]
        for name, good, wrongs in (
            ("hetrf", factor, ({1: 2}, {2: i64(-1)}, {3: 1, 7: 1}, {3: 0, 7: 0}, {7: 4}, {5: i64(3)})),
            ("hetrs", solve, ({1: 2}, {2: i64(-1)}, {3: i64(-1)}, {4: 1, 8: 1}, {8: 4}, {6: i64(3)}, {10: i64(3)})),
        ):
            for wrong in wrongs:
                arguments = [wrong.get(i, argument) for i, argument in enumerate(good)]
                for status in (library.status(f"cusolverDnX{name}", handle, *arguments, None, device, None, host, info.at),
                               library.status(f"cusolverDnX{name}_bufferSize", handle, *arguments, ctypes.byref(device), ctypes.byref(host))):
                    assert status == INVALID, f"X{name} {wrong}: {status}"
                count += 1
            status = library.status(f"cusolverDnX{name}", handle, *[None if i == (4 if name == "hetrf" else 5) else x for i, x in enumerate(good)],
                                    None, device, None, host, info.at)
            assert status == INVALID, f"X{name} of NULL: {status}"
        library.synchronize()
        assert info.get()[0] == -99 and (a.get() == 0).all(), "a refused call wrote"
        library("cusolverDnDestroy", handle)
    return count


def triangles(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for uplo in (LOWER, UPPER):
                for diag in (0, 1):
                    with Scope(library) as scope:
                        solver = solver_in(scope)
                        what = f"Xtrtri {solver.letter} {n} {uplo} {diag}"
                        a = (numbers(rng, (n, n), solver) / max(n, 1) + np.eye(n)).astype(solver.dtype)
                        before, other = stored(a, uplo, rng)
                        given, info = solver.matrix(before, rng=rng), scope.info()
                        device, host = ctypes.c_size_t(), ctypes.c_size_t()
                        sized = (uplo, diag, i64(n), solver.number, given.at, i64(given.ld))
                        library("cusolverDnXtrtri_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                        library("cusolverDnXtrtri", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None,
                                host, info.at)
                        library.synchronize()
                        made = given.get()
                        untouched(before, made, other, what)
                        assert info.get()[0] == 0
                        of = np.tril if uplo == LOWER else np.triu
                        t, i = wide(of(a)), wide(of(made))
                        if diag:
                            np.fill_diagonal(t, 1)
                            np.fill_diagonal(i, 1)
                        near(t @ i - np.eye(n), norm(t) * norm(i), n, solver, what)
                        # U times its conjugate transpose, in its place.
                        given = solver.matrix(before, rng=rng)
                        area, size = solver.area("lauum", uplo, n, given.at, given.ld)
                        solver.call("lauum", uplo, n, given.at, given.ld, area, size, info.at)
                        library.synchronize()
                        made, t = given.get(), wide(of(before))
                        np.fill_diagonal(t, before.diagonal())
                        product = t.conj().T @ t if uplo == LOWER else t @ t.conj().T
                        near(of(wide(made) - product), norm(t) ** 2, n, solver, f"lauum {what}")
                        count += 1
    return count


def swaps(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n, rows in ((0, 3), (4, 9), (40, 30)):
            for step in (1, -1):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    a = numbers(rng, (rows, n), solver).astype(solver.dtype)
                    k1 = int(rng.integers(1, rows))
                    k2 = int(rng.integers(k1, rows + 1))
                    pivots = rng.integers(1, rows + 1, rows).astype(np.int32)
                    given, list_ = solver.matrix(a, rng=rng), scope.array(pivots)
                    solver.call("laswp", n, given.at, given.ld, k1, k2, list_.at, step)
                    library.synchronize()
                    for row in (range(k1, k2 + 1) if step == 1 else range(k2, k1 - 1, -1)):
                        a[[row - 1, pivots[row - 1] - 1]] = a[[pivots[row - 1] - 1, row - 1]]
                    assert (given.get() == a).all(), "laswp"
                    count += 1
    return count


def first_names(library, rng):
    """The 64-bit API's first names: one work area. CUDA 13's object has them no more."""
    library, count = type(library)(str(Path(library.own._name).parent / "libcusolver.so.11"), library.cudart._name), 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            with Scope(library) as scope:
                solver, info, room = solver_in(scope), scope.info(), ctypes.c_size_t()
                number = solver.number
                a, b = numbers(rng, (n, n), solver).astype(solver.dtype), numbers(rng, (n, 2), solver).astype(solver.dtype)
                given, x, pivots = solver.matrix(a, rng=rng), solver.matrix(b, rng=rng), scope.array(np.zeros(n, np.int64))
                sized = (None, i64(n), i64(n), number, given.at, i64(given.ld))
                library("cusolverDnGetrf_bufferSize", solver.handle, *sized, number, ctypes.byref(room))
                area = scope.zeros(room.value, np.uint8)
                library("cusolverDnGetrf", solver.handle, *sized, pivots.at, number, area.at, room, info.at)
                library("cusolverDnGetrs", solver.handle, None, N, i64(n), i64(2), number, given.at, i64(given.ld), pivots.at, number,
                        x.at, i64(x.ld), info.at)
                library.synchronize()
                assert info.get()[0] == 0
                near(wide(a) @ wide(x.get()) - b, norm(a) * norm(x.get()), n, solver, "Getrf and Getrs")
                a = positive(rng, n, solver)
                given, x = solver.matrix(a, rng=rng), solver.matrix(b, rng=rng)
                sized = (None, LOWER, i64(n), number, given.at, i64(given.ld), number)
                library("cusolverDnPotrf_bufferSize", solver.handle, *sized, ctypes.byref(room))
                area = scope.zeros(room.value, np.uint8)
                library("cusolverDnPotrf", solver.handle, *sized, area.at, room, info.at)
                library("cusolverDnPotrs", solver.handle, None, LOWER, i64(n), i64(2), number, given.at, i64(given.ld), number, x.at,
                        i64(x.ld), info.at)
                library.synchronize()
                assert info.get()[0] == 0
                near(wide(a) @ wide(x.get()) - b, norm(a) * norm(x.get()), n, solver, "Potrf and Potrs")
                real = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                given, w = solver.matrix(a, rng=rng), scope.zeros(n, solver.real)
                sized = (None, 0, LOWER, i64(n), number, given.at, i64(given.ld), real, w.at, number)
                library("cusolverDnSyevd_bufferSize", solver.handle, *sized, ctypes.byref(room))
                library("cusolverDnSyevd", solver.handle, *sized, scope.zeros(room.value, np.uint8).at, room, info.at)
                library.synchronize()
                assert info.get()[0] == 0
                near((w.get() - np.linalg.eigvalsh(a.astype(np.complex128)))[:, None], norm(a), n, solver, "Syevd")
                count += 3
    return count
