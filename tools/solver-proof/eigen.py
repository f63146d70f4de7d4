"""Eigenvalues beside SciPy's and by what they are."""

import ctypes

import numpy as np

from draw import BOUND, KINDS, PLAIN, general, hermitian, kinds_of, near, norm, orthonormal, positive, sizes, stored, wide
from library import ALL, BY_NUMBER, BY_VALUE, INVALID, NOVECTOR, VECTOR, Scope, i64
from systems import each


def check(a, v, w, solver, what):
    n = a.shape[0]
    orthonormal(v, solver, what)
    near(wide(a) @ wide(v) - wide(v) * wide(w), norm(a), n, solver, what)


def check_values(w, wanted, a, solver, what):
    """Nobody's eigenvalues are further away than a matrix that is as near."""
    scale = max(float(norm(a)), float(np.finfo(solver.real).tiny)) * max(a.shape[0], 1) * float(solver.eps)
    assert (np.abs(np.asarray(w, np.float64) - wanted) <= BOUND * scale).all(), what


def scipy_values(a):
    a = a.astype(np.complex128)
    return np.linalg.eigvalsh(a) if a.shape[0] else np.zeros(0)


def syevd(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                for api in ("int", "64"):
                    with Scope(library) as scope:
                        solver, uplo = solver_in(scope), int(rng.integers(2))
                        what = f"syevd {solver.letter} {kind} {n} {uplo} {api}"
                        a = hermitian(rng, kind, n, solver)
                        wanted = scipy_values(a)
                        for job in (VECTOR, NOVECTOR):
                            given, info = solver.matrix(stored(a, uplo, rng)[0], rng=rng), scope.info()
                            w = scope.zeros(n, solver.real)
                            if api == "int":
                                sized = (job, uplo, n, given.at, given.ld, w.at)
                                area, room = solver.area("syevd", *sized)
                                solver.call("syevd", *sized, area, room, info.at)
                            else:
                                real = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                                device, host = ctypes.c_size_t(), ctypes.c_size_t()
                                sized = (None, job, uplo, i64(n), solver.number, given.at, i64(given.ld), real, w.at,
                                         solver.number)
                                library("cusolverDnXsyevd_bufferSize", solver.handle, *sized, ctypes.byref(device),
                                        ctypes.byref(host))
                                library("cusolverDnXsyevd", solver.handle, *sized, scope.zeros(device.value, np.uint8).at,
                                        device, None, host, info.at)
                            library.synchronize()
                            assert info.get()[0] == 0, what
                            values = w.get()
                            assert (np.diff(values) >= 0).all(), what
                            check_values(values, wanted, a, solver, what)
                            if job == VECTOR:
                                check(a, given.get(), values, solver, what)
                            given.get()
                        count += 1
    return count


def syevdx(library, rng):
    """Some of them, by their numbers and by their values; how many goes to the host."""
    count = 0
    for solver_in in each(library, rng):
        for n in (1, 2, 13, 40, 70):
            for api in ("int", "64"):
                with Scope(library) as scope:
                    solver, uplo = solver_in(scope), int(rng.integers(2))
                    a = hermitian(rng, "random", n, solver)
                    wanted = scipy_values(a)
                    first = int(rng.integers(1, n + 1))
                    last = int(rng.integers(first, n + 1))
                    # Between two eigenvalues, so that rounding changes nothing.
                    ends = np.concatenate([[wanted[0] - 1], (wanted[1:] + wanted[:-1]) / 2, [wanted[-1] + 1]])
                    low, high = float(ends[first - 1]), float(ends[last])
                    for range_ in (ALL, BY_NUMBER, BY_VALUE):
                        what = f"syevdx {solver.letter} {n} {range_} {first} to {last} {api}"
                        given, info = solver.matrix(stored(a, uplo, rng)[0], rng=rng), scope.info()
                        w = scope.zeros(n, solver.real)
                        real = ctypes.c_float if solver.real == np.float32 else ctypes.c_double
                        if api == "int":
                            found = ctypes.c_int(-1)
                            sized = (VECTOR, range_, uplo, n, given.at, given.ld, real(low), real(high), first, last,
                                     ctypes.byref(found), w.at)
                            area, room = solver.area("syevdx", *sized)
                            solver.call("syevdx", *sized, area, room, info.at)
                        else:
                            found, number = ctypes.c_int64(-1), {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                            device, host = ctypes.c_size_t(), ctypes.c_size_t()
                            sized = (None, VECTOR, range_, uplo, i64(n), solver.number, given.at, i64(given.ld),
                                     ctypes.byref(real(low)), ctypes.byref(real(high)), i64(first), i64(last),
                                     ctypes.byref(found), number, w.at, solver.number)
                            library("cusolverDnXsyevdx_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                            library("cusolverDnXsyevdx", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device,
                                    None, host, info.at)
                        # It is there when the call returns.
                        part = slice(0, n) if range_ == ALL else slice(first - 1, last)
                        assert found.value == len(wanted[part]), f"{what}: {found.value}"
                        library.synchronize()
                        assert info.get()[0] == 0
                        values, v = w.get()[:found.value], given.get()[:, :found.value]
                        check_values(values, wanted[part], a, solver, what)
                        check(a, v, values, solver, what)
                        # The ones that follow lie behind them, as NVIDIA's samples print them.
                        check_values(w.get()[:n - (part.start or 0)], wanted[part.start:], a, solver, what)
                        count += 1
    return count


def sygvd(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, (1, 2, 3), n):
                for by in ("sygvd", "sygvj", "sygvdx"):
                    with Scope(library) as scope:
                        solver, uplo = solver_in(scope), int(rng.integers(2))
                        what = f"{by} {solver.letter} {n} {uplo} {kind}"
                        a, b = hermitian(rng, "random", n, solver), positive(rng, n, solver)
                        given, factor = solver.matrix(stored(a, uplo, rng)[0], rng=rng), solver.matrix(stored(b, uplo, rng)[0], rng=rng)
                        w, info = scope.zeros(n, solver.real), scope.info()
                        params = scope.made("cusolverDnCreateSyevjInfo", "cusolverDnDestroySyevjInfo")
                        behind = (params,) if by == "sygvj" else ()
                        found = ctypes.c_int(n)
                        sized = [kind, VECTOR, uplo, n, given.at, given.ld, factor.at, factor.ld]
                        if by == "sygvdx":
                            real = ctypes.c_float if solver.real == np.float32 else ctypes.c_double
                            sized[2:2] = [BY_NUMBER if n else ALL]
                            sized += [real(0), real(0), 1, n, ctypes.byref(found)]
                        sized.append(w.at)
                        area, room = solver.area(by, *sized, behind=behind)
                        solver.call(by, *sized, area, room, info.at, *behind)
                        library.synchronize()
                        assert info.get()[0] == 0 and found.value == n, what
                        v, values = wide(given.get()), w.get()
                        assert (np.diff(values) >= 0).all()
                        scaled = v * wide(values)
                        left = {1: lambda: wide(a) @ v - wide(b) @ scaled, 2: lambda: wide(a) @ (wide(b) @ v) - scaled,
                                3: lambda: wide(b) @ (wide(a) @ v) - scaled}[kind]()
                        near(left, norm(a) * norm(v) * (1 if kind == 1 else norm(b)), n, solver, what)
                        if n > 2:
                            b[1, 1] = -1
                            factor = solver.matrix(b, rng=rng)
                            sized[7 if by == "sygvdx" else 6] = factor.at
                            sized[8 if by == "sygvdx" else 7] = factor.ld
                            solver.call(by, *sized, area, room, info.at, *behind)
                            library.synchronize()
                            assert info.get()[0] == n + 2, f"{what}: info {info.get()[0]} for {n + 2}"
                        count += 1
    return count


def syevj(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                with Scope(library) as scope:
                    solver, uplo = solver_in(scope), int(rng.integers(2))
                    what = f"syevj {solver.letter} {kind} {n} {uplo}"
                    a = hermitian(rng, kind, n, solver)
                    params = scope.made("cusolverDnCreateSyevjInfo", "cusolverDnDestroySyevjInfo")
                    for sort in (1, 0):
                        library("cusolverDnXsyevjSetSortEig", params, sort)
                        library("cusolverDnXsyevjSetTolerance", params, ctypes.c_double(1e-3 * float(solver.eps)))
                        library("cusolverDnXsyevjSetMaxSweeps", params, 60)
                        given, info, w = solver.matrix(stored(a, uplo, rng)[0], rng=rng), scope.info(), scope.zeros(n, solver.real)
                        sized = (VECTOR, uplo, n, given.at, given.ld, w.at)
                        area, room = solver.area("syevj", *sized, behind=(params,))
                        solver.call("syevj", *sized, area, room, info.at, params)
                        residual, sweeps = ctypes.c_double(-1), ctypes.c_int(-1)
                        library("cusolverDnXsyevjGetResidual", solver.handle, params, ctypes.byref(residual))
                        library("cusolverDnXsyevjGetSweeps", solver.handle, params, ctypes.byref(sweeps))
                        values = w.get()
                        assert info.get()[0] == 0, what
                        assert 0 <= sweeps.value <= 60 and (n < 2 or kind != "random" or sweeps.value > 0), what
                        frobenius = float(np.sqrt((np.abs(wide(a)) ** 2).sum()))
                        assert 0 <= residual.value <= 2 * float(solver.eps) * frobenius, f"{what}: residual {residual.value}"
                        assert not sort or (np.diff(values) >= 0).all(), what
                        check_values(np.sort(values), scipy_values(a), a, solver, what)
                        check(a, given.get(), values, solver, what)
                    # So few sweeps that it does not converge.
                    if n > 8 and kind == "random":
                        library("cusolverDnXsyevjSetMaxSweeps", params, 1)
                        given = solver.matrix(stored(a, uplo, rng)[0], rng=rng)
                        sized = (VECTOR, uplo, n, given.at, given.ld, w.at)
                        solver.call("syevj", *sized, area, room, info.at, params)
                        library.synchronize()
                        assert info.get()[0] == n + 1, f"{what}: info {info.get()[0]}"
                    count += 1
        for n, batch in ((0, 2), (1, 4), (6, 0), (9, 17), (40, 3)):
            for by in ("syevjBatched", "XsyevBatched"):
                with Scope(library) as scope:
                    solver, uplo = solver_in(scope), int(rng.integers(2))
                    all_ = [hermitian(rng, str(rng.choice(KINDS)), n, solver) for _ in range(batch)]
                    whole = np.hstack([stored(a, uplo, rng)[0] for a in all_]) if batch else np.zeros((n, 0), solver.dtype)
                    given, w, info = solver.matrix(whole, rng=rng), scope.zeros(n * batch, solver.real), scope.info(batch)
                    if by == "syevjBatched":
                        params = scope.made("cusolverDnCreateSyevjInfo", "cusolverDnDestroySyevjInfo")
                        sized = (VECTOR, uplo, n, given.at, given.ld, w.at)
                        area, room = solver.area(by, *sized, behind=(params, batch))
                        solver.call(by, *sized, area, room, info.at, params, batch)
                    else:
                        real = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                        device, host = ctypes.c_size_t(), ctypes.c_size_t()
                        sized = (None, VECTOR, uplo, i64(n), solver.number, given.at, i64(given.ld), real, w.at, solver.number)
                        library("cusolverDnXsyevBatched_bufferSize", solver.handle, *sized, ctypes.byref(device),
                                ctypes.byref(host), i64(batch))
                        library("cusolverDnXsyevBatched", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device,
                                None, host, info.at, i64(batch))
                    library.synchronize()
                    assert (info.get() == 0).all()
                    made, values = given.get(), w.get()
                    for i, a in enumerate(all_):
                        check(a, made[:, i * n:(i + 1) * n], values[i * n:(i + 1) * n], solver, f"{by} {n}")
                    count += 1
    return count


def geev(library, rng):
    """Of any matrix: eigenvalues, left and right eigenvectors, of real ones pairs of real and imaginary parts."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, (*KINDS, *PLAIN), n):
                with Scope(library) as scope:
                    solver = solver_in(scope)
                    what = f"Xgeev {solver.letter} {kind} {n}"
                    is_complex = solver.letter in "CZ"
                    a = general(rng, kind, n, n, solver)
                    apart = not is_complex and bool(rng.integers(2))
                    number = solver.number
                    of_w = number if apart or is_complex else number + 4
                    for jobs in ((NOVECTOR, VECTOR), (NOVECTOR, NOVECTOR), (VECTOR, VECTOR), (VECTOR, NOVECTOR)):
                        given, info = solver.matrix(a, rng=rng), scope.info()
                        sides = [solver.matrix(np.zeros((n, n)), rng=rng) for _ in jobs]
                        w = scope.zeros(2 * n, solver.real)
                        device, host = ctypes.c_size_t(), ctypes.c_size_t()
                        # A side that is not wanted may be anything.
                        placed = [(side.at, i64(side.ld)) if job == VECTOR or rng.integers(2) else (None, i64(1)) for job, side in zip(jobs, sides)]
                        sized = (None, *jobs, i64(n), number, given.at, i64(given.ld), of_w, w.at, number, *placed[0], number, *placed[1], number)
                        library("cusolverDnXgeev_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                        library("cusolverDnXgeev", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None,
                                host, info.at)
                        library.synchronize()
                        assert info.get()[0] == 0, what
                        parts = w.get().astype(np.float64)
                        values = parts[:n] + 1j * parts[n:] if apart else parts[0::2] + 1j * parts[1::2]
                        # The trace is their sum, with vectors and without.
                        scale = float(norm(a)) + float(np.finfo(solver.real).tiny)
                        assert abs(values.sum() - complex(wide(a).trace())) <= BOUND * n * n * float(solver.eps) * scale, what
                        for name, job, side in zip(("left", "right"), jobs, sides):
                            if job == VECTOR:
                                check_vectors(a, values, side.get(), solver, kind, name, f"{what} {name} of {jobs}")
                            else:
                                assert (side.get() == 0).all(), f"{what}: vectors that nobody asked for"
                    count += 1
    return count


def check_vectors(a, values, found, solver, kind, side, what):
    """Each belongs to its eigenvalue, is of length 1, and its largest component is real."""
    n, v = len(values), wide(found) * (1 + 0j)
    if solver.letter not in "CZ":
        first = np.flatnonzero(values.imag > 0)
        assert (values[first + 1] == values[first].conj()).all(), f"{what}: a pair"
        assert 2 * len(first) == np.count_nonzero(values.imag), what
        v[:, first] = v[:, first] + 1j * v[:, first + 1]
        v[:, first + 1] = v[:, first].conj()
    # u^H A = w u^H is A^H u = conj(w) u.
    left, of = (wide(a).conj().T, values.conj()) if side == "left" else (wide(a), values)
    near(left @ v - v * wide(of), norm(left), n, solver, what)
    lengths = np.sqrt((np.abs(v) ** 2).sum(axis=0))
    assert (np.abs(lengths - 1) <= BOUND * max(n, 1) * float(solver.eps)).all(), what
    # Of several components that are the largest, as far as the type can tell, one is real.
    moduli = np.abs(v)
    is_largest = moduli >= moduli.max(axis=0, initial=0) - 8 * solver.eps
    is_real = np.abs(v.imag) <= 4 * solver.eps
    assert (is_largest & is_real).any(axis=0).all(), f"{what}: the largest is not real"
    # Distinct eigenvalues have vectors that are independent of each other, as LAPACK's are.
    if kind == "random" and 1 < n:
        theirs = np.linalg.eig(np.asarray(a.conj().T if side == "left" else a).astype(np.complex128 if solver.letter in "CZ" else np.float64))
        assert np.linalg.cond(v.astype(np.complex128)) <= 4 * np.linalg.cond(theirs[1]) + 10, what


OWN, OF_Z, NO_VECTORS = 11, 12, 10


def sized_area(library, name, solver, *sized):
    """The work areas that a call of the 64-bit API asks for."""
    device, host = ctypes.c_size_t(), ctypes.c_size_t()
    library(name + "_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
    return solver.scope.zeros(max(device.value, 1), np.uint8).at, device, (ctypes.c_byte * max(host.value, 1))(), host


def stedc(library, rng):
    """Tridiagonal matrices, and Hermitian ones by way of them."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, (*KINDS, "zeros"), n):
                with Scope(library) as scope:
                    solver, uplo = solver_in(scope), int(rng.integers(2))
                    what = f"Xstedc {solver.letter} {kind} {n}"
                    of_reals = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                    a = hermitian(rng, kind, n, solver)
                    # What sytrd makes of a matrix, and the matrix by which it does.
                    given, info = solver.matrix(a, rng=rng), scope.info()
                    d, e = scope.zeros(n, solver.real), scope.zeros(max(n - 1, 0), solver.real)
                    tau = scope.zeros(max(n - 1, 0), solver.dtype)
                    sized = (uplo, n, given.at, given.ld, d.at, e.at, tau.at)
                    area, room = solver.area("sytrd", *sized)
                    solver.call("sytrd", *sized, area, room, info.at)
                    sized = (uplo, n, given.at, given.ld, tau.at)
                    area, room = solver.area("orgtr", *sized)
                    solver.call("orgtr", *sized, area, room, info.at)
                    library.synchronize()
                    diagonal, beside = d.get(), e.get()
                    made = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1) if n else np.zeros((0, 0))
                    found = {}
                    for job in (NO_VECTORS, OWN, OF_Z):
                        values = scope.array(diagonal)
                        z = solver.matrix(given.get() if job == OF_Z else np.full((n, n), 7), rng=rng)
                        sized = (None, job, i64(n), of_reals, values.at, scope.array(beside).at, solver.number, z.at, i64(z.ld), solver.number)
                        area, device, room, host = sized_area(library, "cusolverDnXstedc", solver, *sized)
                        info = scope.info()
                        library("cusolverDnXstedc", solver.handle, *sized, area, device, room, host, info.at)
                        library.synchronize()
                        assert info.get()[0] == 0, what
                        found[job] = values.get()
                        assert (np.diff(found[job]) >= 0).all(), what
                        check_values(found[job], scipy_values(made), made, solver, what)
                        if job == NO_VECTORS:
                            assert (z.get() == 7).all(), f"{what}: vectors that nobody asked for"
                        else:
                            check(made if job == OWN else a, z.get(), found[job], solver, f"{what} {job}")
                    count += 1
        with Scope(library) as scope:
            solver = solver_in(scope)
            of_reals, number = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter], solver.number
            d, e, z, info = scope.zeros(4, solver.real), scope.zeros(4, solver.real), solver.matrix(np.zeros((4, 4)), gap=0), scope.info()
            good = [None, OWN, i64(4), of_reals, d.at, e.at, number, z.at, i64(4), number]
            behind = (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0), info.at)
            for wrong in ({1: 13}, {1: 0}, {2: i64(-1)}, {3: 1 - of_reals}, {6: number ^ 1}, {6: 2, 9: 2}, {8: i64(3)}, {8: i64(0), 1: NO_VECTORS},
                          {9: number ^ 1}):
                arguments = [wrong.get(i, argument) for i, argument in enumerate(good)]
                device, host = ctypes.c_size_t(), ctypes.c_size_t()
                for status in (library.status("cusolverDnXstedc", solver.handle, *arguments, *behind),
                               library.status("cusolverDnXstedc_bufferSize", solver.handle, *arguments, ctypes.byref(device), ctypes.byref(host))):
                    assert status == INVALID, f"Xstedc {wrong}: {status}"
                count += 1
            for null in (4, 5, 7):
                arguments = [None if i == null else argument for i, argument in enumerate(good)]
                status = library.status("cusolverDnXstedc", solver.handle, *arguments, *behind)
                assert status == INVALID, f"Xstedc with NULL for {null}: {status}"
            # What is no number has no eigenvalues, and nothing is written.
            broken = scope.array(np.array([1, np.nan, 3, 4], solver.real))
            library("cusolverDnXstedc", solver.handle, *[broken.at if i == 4 else argument for i, argument in enumerate(good)], *behind)
            library.synchronize()
            assert info.get()[0] > 0 and broken.get()[3] == 4 and (z.get() == 0).all()
    return count


def sygvd64(library, rng):
    """Xsygvd, Xsygvdx and batches at strides: residuals, lengths, and the order of a minor of B that is not positive."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, (1, 2, 3), n):
                for by in ("Xsygvd", "Xsygvdx", "XsygvStridedBatched"):
                    with Scope(library) as scope:
                        solver, uplo = solver_in(scope), int(rng.integers(2))
                        what = f"{by} {solver.letter} {n} {uplo} {kind}"
                        of_reals, number = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter], solver.number
                        batch = int(rng.integers(0, 5)) if by == "XsygvStridedBatched" else 1
                        pairs = [(hermitian(rng, "random", n, solver), positive(rng, n, solver)) for _ in range(batch)]
                        broken = batch > 1 and n > 2
                        if broken:
                            pairs[1][1][1, 1] = -1
                        whole = lambda which: np.hstack([stored(pair[which], uplo, rng)[0] for pair in pairs] or [np.zeros((n, 0), solver.dtype)])
                        a, b = solver.matrix(whole(0), rng=rng), solver.matrix(whole(1), rng=rng)
                        w, info = scope.zeros(n * batch, solver.real), scope.info(batch)
                        first = (None, kind, VECTOR)
                        if by == "Xsygvd":
                            sized = (*first, uplo, i64(n), number, a.at, i64(a.ld), number, b.at, i64(b.ld), of_reals, w.at, number)
                            area = sized_area(library, "cusolverDnXsygvd", solver, *sized)
                            library("cusolverDnXsygvd", solver.handle, *sized, *area, info.at)
                            chosen = slice(0, n)
                        elif by == "Xsygvdx":
                            low = int(rng.integers(1, n + 1)) if n else 0
                            chosen = slice(max(low - 1, 0), n)
                            found, none = ctypes.c_int64(-1), ctypes.c_void_p()
                            sized = (uplo, i64(n), number, a.at, i64(a.ld), number, b.at, i64(b.ld), none, none, i64(low), i64(n),
                                     ctypes.byref(found), of_reals, w.at, number)
                            area = sized_area(library, "cusolverDnXsygvdx", solver, *first, *sized)
                            library("cusolverDnXsygvdx", solver.handle, *first, BY_NUMBER if n else ALL, *sized, *area, info.at)
                            assert found.value == len(range(n)[chosen]), f"{what}: {found.value}"
                        else:
                            sized = (*first, uplo, i64(n), number, a.at, i64(a.ld), i64(a.ld * n), number, b.at, i64(b.ld), i64(b.ld * n),
                                     of_reals, w.at, i64(n), number, i64(batch))
                            area = sized_area(library, "cusolverDnXsygvStridedBatched", solver, *sized)
                            library("cusolverDnXsygvStridedBatched", solver.handle, *sized, *area, info.at)
                            chosen = slice(0, n)
                        library.synchronize()
                        vectors, values = a.get(), w.get()
                        for i, (left, right) in enumerate(pairs):
                            told = info.get()[i]
                            if broken and i == 1:
                                assert told == n + 2, f"{what}: info {told} for {n + 2}"
                                continue
                            assert told == 0, f"{what}: info {told}"
                            size = len(range(n)[chosen])
                            v, found_values = wide(vectors[:, i * n:i * n + size]), values[i * n:i * n + size]
                            scaled = v * wide(found_values)
                            rest = {1: lambda: wide(left) @ v - wide(right) @ scaled, 2: lambda: wide(left) @ (wide(right) @ v) - scaled,
                                    3: lambda: wide(right) @ (wide(left) @ v) - scaled}[kind]()
                            near(rest, norm(left) * norm(v) * (1 if kind == 1 else norm(right)), n, solver, what)
                            if n:
                                import scipy.linalg
                                theirs = scipy.linalg.eigh(left.astype(np.complex128), right.astype(np.complex128), type=kind, eigvals_only=True)
                                scale = float(np.abs(theirs).max()) * np.linalg.cond(right.astype(np.complex128)) * n * float(solver.eps)
                                assert (np.abs(found_values - theirs[chosen]) <= BOUND * scale).all(), f"{what}: beside SciPy's"
                                metric = wide(right) if kind < 3 else wide(np.linalg.inv(right.astype(np.complex128)))
                                lengths = v.conj().T @ metric @ v
                                near(lengths - np.eye(size), np.linalg.cond(right.astype(np.complex128)), n, solver, f"{what}: lengths")
                        count += 1
        with Scope(library) as scope:
            solver = solver_in(scope)
            of_reals, number = {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter], solver.number
            a, w, info = solver.matrix(np.eye(4), gap=0), scope.zeros(8, solver.real), scope.info()
            good = [None, 1, VECTOR, 0, i64(4), number, a.at, i64(4), number, a.at, i64(4), of_reals, w.at, number]
            for wrong in ({1: 0}, {1: 4}, {2: 2}, {3: 2}, {4: i64(-1)}, {7: i64(3)}, {8: number ^ 1}, {10: i64(3)}, {11: 1 - of_reals}, {13: number ^ 1}):
                arguments = [wrong.get(i, argument) for i, argument in enumerate(good)]
                device, host = ctypes.c_size_t(), ctypes.c_size_t()
                for status in (library.status("cusolverDnXsygvd", solver.handle, *arguments, None, device, None, host, info.at),
                               library.status("cusolverDnXsygvd_bufferSize", solver.handle, *arguments, ctypes.byref(device), ctypes.byref(host))):
                    assert status == INVALID, f"Xsygvd {wrong}: {status}"
                count += 1
    return count
