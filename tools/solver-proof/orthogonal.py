"""Orthogonal factors: QR, reductions to two and three diagonals, and products with what they are made by."""

import ctypes

import numpy as np

from draw import KINDS, general, hermitian, kinds_of, near, norm, numbers, orthonormal, sizes, stored, untouched, wide
from library import C, INVALID, LEFT, LOWER, N, RIGHT, T, UPPER, Scope, i64
from systems import each


def qr(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    m = n + int(rng.integers(0, 9)) * int(rng.choice([-1, 1]))
                    m = max(m, 0)
                    what = f"geqrf {solver.letter} {kind} {m} by {n}"
                    a, size = general(rng, kind, m, n, solver), min(m, n)
                    given, tau, info = solver.matrix(a, rng=rng), scope.zeros(size, solver.dtype), scope.info()
                    if kind == "random":
                        device, host = ctypes.c_size_t(), ctypes.c_size_t()
                        sized = (None, i64(m), i64(n), solver.number, given.at, i64(given.ld), solver.number, tau.at,
                                 solver.number)
                        library("cusolverDnXgeqrf_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                        library("cusolverDnXgeqrf", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None,
                                host, info.at)
                    else:
                        area, room = solver.area("geqrf", m, n, given.at, given.ld)
                        solver.call("geqrf", m, n, given.at, given.ld, tau.at, area, room, info.at)
                    library.synchronize()
                    assert info.get()[0] == 0
                    made = given.get()
                    r = wide(np.triu(made)[:size])
                    q = solver.matrix(made[:, :size], rng=rng)
                    area, room = solver.area("orgqr", m, size, size, q.at, q.ld, tau.at)
                    solver.call("orgqr", m, size, size, q.at, q.ld, tau.at, area, room, info.at)
                    library.synchronize()
                    q = q.get()
                    orthonormal(q, solver, what)
                    near(wide(q) @ r - a, norm(a), m, solver, what)
                    # All of Q, and products from both sides.
                    columns = int(rng.integers(0, 6))
                    whole = np.eye(m, dtype=solver.dtype)
                    for side in (LEFT, RIGHT):
                        for op in (N, C) if solver.letter in "CZ" else (N, T, C):
                            shape = (m, columns) if side == LEFT else (columns, m)
                            c = numbers(rng, shape, solver).astype(solver.dtype)
                            results = []
                            for of in (c, whole):
                                into = solver.matrix(of, rng=rng)
                                sized = (side, op, *of.shape, size, given.at, given.ld, tau.at, into.at, into.ld)
                                area, room = solver.area("ormqr", *sized)
                                solver.call("ormqr", *sized, area, room, info.at)
                                library.synchronize()
                                results.append(wide(into.get()))
                            product, all_q = results
                            wanted = all_q @ c if side == LEFT else c @ all_q
                            near(product - wanted, norm(c), m, solver, f"ormqr {what} {side} {op}")
                            thin = (all_q if op == N else all_q.conj().T)[:, :size]
                            near(thin - q, 1, m, solver, f"ormqr and orgqr {what} {side} {op}")
                    count += 1
    return count


def bidiagonal(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    m = n + int(rng.integers(0, 9))
                    what = f"gebrd {solver.letter} {kind} {m} by {n}"
                    a = general(rng, kind, m, n, solver)
                    given, info = solver.matrix(a, rng=rng), scope.info()
                    d, e = scope.zeros(n, solver.real), scope.zeros(max(n - 1, 0), solver.real)
                    tauq, taup = scope.zeros(n, solver.dtype), scope.zeros(n, solver.dtype)
                    area, room = solver.area("gebrd", m, n)
                    solver.call("gebrd", m, n, given.at, given.ld, d.at, e.at, tauq.at, taup.at, area, room, info.at)
                    library.synchronize()
                    assert info.get()[0] == 0
                    if n == 0:
                        continue
                    made, b = given.get(), wide(np.diag(d.get()) + np.diag(e.get(), 1))
                    # Q whole or as many columns as B has, and Pᴴ.
                    columns = n if rng.integers(2) else m
                    q = solver.matrix(np.hstack([made, np.zeros((m, m - n), made.dtype)])[:, :columns], rng=rng)
                    p = solver.matrix(made[:n], rng=rng)
                    for side, of, rows, width, other, tau in ((LEFT, q, m, columns, n, tauq), (RIGHT, p, n, n, m, taup)):
                        area, room = solver.area("orgbr", side, rows, width, other, of.at, of.ld, tau.at)
                        solver.call("orgbr", side, rows, width, other, of.at, of.ld, tau.at, area, room, info.at)
                    library.synchronize()
                    q, p = q.get(), p.get()
                    orthonormal(q, solver, what)
                    orthonormal(p, solver, what)
                    near(wide(q)[:, :n] @ b @ wide(p) - a, norm(a), m, solver, what)
                    count += 1
    return count


def tridiagonal(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                for uplo in (LOWER, UPPER):
                    with Scope(library) as scope:
                        solver = solver_in(scope)
                        what = f"sytrd {solver.letter} {kind} {n} {uplo}"
                        a = hermitian(rng, kind, n, solver)
                        before, other = stored(a, uplo, rng)
                        given, info = solver.matrix(before, rng=rng), scope.info()
                        d, e = scope.zeros(n, solver.real), scope.zeros(max(n - 1, 0), solver.real)
                        tau = scope.zeros(max(n - 1, 0), solver.dtype)
                        sized = (uplo, n, given.at, given.ld, d.at, e.at, tau.at)
                        area, room = solver.area("sytrd", *sized)
                        solver.call("sytrd", *sized, area, room, info.at)
                        library.synchronize()
                        assert info.get()[0] == 0
                        made = given.get()
                        untouched(before, made, other, what)
                        if n == 0:
                            continue
                        t = wide(np.diag(d.get()) + np.diag(e.get(), 1) + np.diag(e.get(), -1))
                        q = solver.matrix(made, rng=rng)
                        area, room = solver.area("orgtr", uplo, n, q.at, q.ld, tau.at)
                        solver.call("orgtr", uplo, n, q.at, q.ld, tau.at, area, room, info.at)
                        library.synchronize()
                        orthonormal(q.get(), solver, what)
                        q = wide(q.get())
                        near(q @ t @ q.conj().T - a, norm(a), n, solver, what)
                        side, op = int(rng.integers(2)), int(rng.choice([N, C]))
                        columns = int(rng.integers(1, 6))
                        c = numbers(rng, (n, columns) if side == LEFT else (columns, n), solver).astype(solver.dtype)
                        into = solver.matrix(c, rng=rng)
                        sized = (side, uplo, op, *c.shape, given.at, given.ld, tau.at, into.at, into.ld)
                        area, room = solver.area("ormtr", *sized)
                        solver.call("ormtr", *sized, area, room, info.at)
                        library.synchronize()
                        of = q if op == N else q.conj().T
                        wanted = of @ c if side == LEFT else c @ of
                        near(into.get() - wanted, norm(c), n, solver, f"ormtr {what} {side} {op}")
                        count += 1
    return count


def blocks(library, rng):
    """Xlarft: I - V T V^H is the product of the reflections, one by one."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for backward in (0, 1):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    k = int(rng.integers(0, n + 1)) if n else 0
                    what = f"Xlarft {solver.letter} {n} {k} {'backward' if backward else 'forward'}"
                    # Where a one and zeros belong stand numbers that nobody reads.
                    v = (numbers(rng, (n, k), solver) / max(n, 1)).astype(solver.dtype)
                    factors = numbers(rng, k, solver).astype(solver.dtype)
                    factors[rng.random(k) < 0.2] = 0
                    before = numbers(rng, (k, k), solver).astype(solver.dtype)
                    given, tau, t = solver.matrix(v, rng=rng), scope.array(factors), solver.matrix(before, rng=rng)
                    device, host = ctypes.c_size_t(), ctypes.c_size_t()
                    number = solver.number
                    sized = (None, backward, 0, i64(n), i64(k), number, given.at, i64(given.ld), number, tau.at, number, t.at, i64(t.ld), number)
                    library("cusolverDnXlarft_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                    library("cusolverDnXlarft", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None, host)
                    library.synchronize()
                    made = t.get()
                    other = np.tril(np.ones((k, k), bool), -1) if not backward else np.triu(np.ones((k, k), bool), 1)
                    untouched(before, made, other, what)
                    assert (given.get() == v).all(), f"{what}: V was written"
                    vectors = wide(np.zeros((n, k), solver.dtype))
                    for i in range(k):
                        one = n - k + i if backward else i
                        kept = slice(0, one) if backward else slice(one + 1, n)
                        vectors[kept, i], vectors[one, i] = v[kept, i], 1
                    product = wide(np.eye(n, dtype=solver.dtype))
                    for i in range(k):
                        vector, factor = vectors[:, i], wide(factors)[i]
                        if backward:
                            product = product - factor * np.outer(vector, vector.conj() @ product)
                        else:
                            product = product - factor * np.outer(product @ vector, vector.conj())
                    triangle = wide(np.tril(made) if backward else np.triu(made))
                    found = np.eye(n) - vectors @ triangle @ vectors.conj().T
                    near(found - product, max(norm(product), norm(vectors) ** 2 * norm(triangle)), max(n, 1), solver, what)
                    count += 1
        with Scope(library) as scope:
            solver = solver_in(scope)
            v, tau, t = solver.matrix(np.ones((5, 3)), gap=0), scope.zeros(3, solver.dtype), solver.matrix(np.ones((3, 3)), gap=0)
            number, other = solver.number, solver.number ^ 1
            good = [None, 0, 0, i64(5), i64(3), number, v.at, i64(5), number, tau.at, number, t.at, i64(3), number]
            wrongs = ({1: 2}, {2: 1}, {2: 2}, {3: i64(2)}, {3: i64(-1)}, {4: i64(-1)}, {7: i64(4)}, {12: i64(2)}, {8: other}, {10: other}, {13: other},
                      {5: 2, 8: 2, 10: 2, 13: 2})
            device, host = ctypes.c_size_t(), ctypes.c_size_t()
            for wrong in wrongs:
                arguments = [wrong.get(i, argument) for i, argument in enumerate(good)]
                for status in (library.status("cusolverDnXlarft", solver.handle, *arguments, None, device, None, host),
                               library.status("cusolverDnXlarft_bufferSize", solver.handle, *arguments, ctypes.byref(device), ctypes.byref(host))):
                    assert status == INVALID, f"Xlarft {wrong}: {status}"
                count += 1
            for null in (6, 9, 11):
                arguments = [None if i == null else argument for i, argument in enumerate(good)]
                status = library.status("cusolverDnXlarft", solver.handle, *arguments, None, device, None, host)
                assert status == INVALID, f"Xlarft with NULL for {null}: {status}"
            library.synchronize()
            assert (t.get() == 1).all(), "a refused call wrote"
    return count
