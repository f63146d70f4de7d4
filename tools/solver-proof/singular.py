"""Singular values beside NumPy's and by what they are."""

import ctypes

import numpy as np

from draw import BOUND, KINDS, general, kinds_of, near, norm, numbers, orthonormal, sizes, wide
from library import INVALID, NOVECTOR, VECTOR, Scope, i64
from systems import each


def numpy_values(a):
    return np.linalg.svd(a.astype(np.complex128), compute_uv=False) if min(a.shape) else np.zeros(0)


def check(a, u, s, vt, solver, what):
    """U and Vᴴ may have more columns and rows than there are singular values."""
    size = min(a.shape)
    scale = max(float(norm(a)), float(np.finfo(solver.real).tiny)) * max(*a.shape, 1) * float(solver.eps)
    assert (s >= 0).all() and (np.diff(s) <= 0).all(), f"{what}: {s}"
    assert (np.abs(s.astype(np.float64) - numpy_values(a)) <= BOUND * scale).all(), what
    if u is not None:
        orthonormal(u, solver, what)
    if vt is not None:
        orthonormal(vt.conj().T, solver, what)
    if u is not None and vt is not None:
        near((wide(u)[:, :size] * wide(s)) @ wide(vt)[:size] - a, norm(a), max(a.shape), solver, what)


def gesvd(library, rng):
    count = 0
    jobs = [(u, v) for u in "ASON" for v in "ASON" if (u, v) != ("O", "O")]
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                for job in (jobs[int(rng.integers(len(jobs)))], jobs[int(rng.integers(len(jobs)))], ("A", "A")):
                    with Scope(library) as scope:
                        solver, wide_api = solver_in(scope), bool(rng.integers(2))
                        m = n + int(rng.integers(0, 9)) * int(rng.integers(2))
                        what = f"gesvd {solver.letter} {kind} {m} by {n} {job} {wide_api}"
                        a = general(rng, kind, m, n, solver)
                        given, info, s = solver.matrix(a, rng=rng), scope.info(), scope.zeros(n, solver.real)
                        u = solver.matrix(np.zeros((m, m if job[0] == "A" else n)), rng=rng)
                        vt = solver.matrix(np.zeros((n, n)), rng=rng)
                        letters = (ctypes.c_byte(ord(job[0])), ctypes.c_byte(ord(job[1])))
                        if wide_api:
                            number, real = solver.number, {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                            device, host = ctypes.c_size_t(), ctypes.c_size_t()
                            sized = (None, *letters, i64(m), i64(n), number, given.at, i64(given.ld), real, s.at, number, u.at,
                                     i64(u.ld), number, vt.at, i64(vt.ld), number)
                            library("cusolverDnXgesvd_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                            library("cusolverDnXgesvd", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device,
                                    None, host, info.at)
                        else:
                            area, room = solver.area("gesvd", m, n)
                            solver.call("gesvd", *letters, m, n, given.at, given.ld, s.at, u.at, u.ld, vt.at, vt.ld, area, room,
                                        None, info.at)
                        library.synchronize()
                        assert info.get()[0] == 0, what
                        made = given.get()
                        left = {"A": u.get, "S": u.get, "O": lambda: made[:, :n], "N": lambda: None}[job[0]]()
                        right = {"A": vt.get, "S": vt.get, "O": lambda: made[:n], "N": lambda: None}[job[1]]()
                        if job[0] in "ON":
                            assert (u.get() == 0).all(), f"{what}: U was written"
                        if job[1] in "ON":
                            assert (vt.get() == 0).all(), f"{what}: Vᴴ was written"
                        check(a, left, s.get(), right, solver, what)
                        count += 1
    return count


def gesvdj(library, rng):
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                with Scope(library) as scope:
                    solver, econ = solver_in(scope), int(rng.integers(2))
                    m = max(0, n + int(rng.integers(-9, 10)))
                    what = f"gesvdj {solver.letter} {kind} {m} by {n} {econ}"
                    a, size = general(rng, kind, m, n, solver), min(m, n)
                    params = scope.made("cusolverDnCreateGesvdjInfo", "cusolverDnDestroyGesvdjInfo")
                    library("cusolverDnXgesvdjSetTolerance", params, ctypes.c_double(1e-20))
                    library("cusolverDnXgesvdjSetMaxSweeps", params, 80)
                    library("cusolverDnXgesvdjSetSortEig", params, 1)
                    given, info, s = solver.matrix(a, rng=rng), scope.info(), scope.zeros(size, solver.real)
                    u = solver.matrix(np.zeros((m, size if econ else m)), rng=rng)
                    v = solver.matrix(np.zeros((n, size if econ else n)), rng=rng)
                    sized = (VECTOR, econ, m, n, given.at, given.ld, s.at, u.at, u.ld, v.at, v.ld)
                    area, room = solver.area("gesvdj", *sized, behind=(params,))
                    solver.call("gesvdj", *sized, area, room, info.at, params)
                    residual, sweeps = ctypes.c_double(-1), ctypes.c_int(-1)
                    library("cusolverDnXgesvdjGetResidual", solver.handle, params, ctypes.byref(residual))
                    library("cusolverDnXgesvdjGetSweeps", solver.handle, params, ctypes.byref(sweeps))
                    assert info.get()[0] == 0, what
                    assert residual.value >= 0 and 0 <= sweeps.value <= 80, what
                    values = s.get()
                    check(a, u.get(), values, v.get().conj().T, solver, what)
                    # Without vectors.
                    given, other = solver.matrix(a, rng=rng), scope.zeros(size, solver.real)
                    solver.call("gesvdj", NOVECTOR, econ, m, n, given.at, given.ld, other.at, None, 1, None, 1, area, room, info.at,
                                params)
                    library.synchronize()
                    assert (other.get() == values).all(), what
                    if size > 8 and kind == "random":
                        library("cusolverDnXgesvdjSetMaxSweeps", params, 1)
                        given = solver.matrix(a, rng=rng)
                        solver.call("gesvdj", NOVECTOR, econ, m, n, given.at, given.ld, other.at, None, 1, None, 1, area, room,
                                    info.at, params)
                        library.synchronize()
                        assert info.get()[0] == size + 1, f"{what}: info {info.get()[0]}"
                    count += 1
        for m, n, batch in ((0, 2, 2), (1, 1, 5), (5, 9, 0), (9, 5, 11), (5, 9, 11), (32, 32, 3)):
            with Scope(library) as scope:
                solver = solver_in(scope)
                all_ = [general(rng, str(rng.choice(KINDS)), m, n, solver) for _ in range(batch)]
                size = min(m, n)
                params = scope.made("cusolverDnCreateGesvdjInfo", "cusolverDnDestroyGesvdjInfo")
                given = solver.matrix(np.hstack(all_) if batch else np.zeros((m, 0)), rng=rng)
                info, s = scope.info(batch), scope.zeros(size * batch, solver.real)
                u, v = solver.matrix(np.zeros((m, m * batch)), rng=rng), solver.matrix(np.zeros((n, n * batch)), rng=rng)
                sized = (VECTOR, m, n, given.at, given.ld, s.at, u.at, u.ld, v.at, v.ld)
                area, room = solver.area("gesvdjBatched", *sized, behind=(params, batch))
                solver.call("gesvdjBatched", *sized, area, room, info.at, params, batch)
                library.synchronize()
                assert (info.get() == 0).all()
                left, values, right = u.get(), s.get(), v.get()
                for i, a in enumerate(all_):
                    check(a, left[:, i * m:(i + 1) * m], values[i * size:(i + 1) * size], right[:, i * n:(i + 1) * n].conj().T,
                          solver, f"gesvdjBatched {m} by {n}")
                count += 1
    return count


def gesvda(library, rng):
    """The first ones of each matrix of a batch, and the norm of what they leave."""
    count = 0
    for solver_in in each(library, rng):
        for m, n, rank, batch in ((0, 0, 0, 1), (7, 7, 7, 3), (20, 6, 4, 5), (60, 30, 1, 2), (5, 3, 2, 0)):
            with Scope(library) as scope:
                solver = solver_in(scope)
                all_ = [numbers(rng, (m, n), solver).astype(solver.dtype) for _ in range(batch)]
                given = solver.matrix(np.hstack(all_) if batch else np.zeros((m, 0)), rng=rng)
                u, v = solver.matrix(np.zeros((m, rank * batch)), rng=rng), solver.matrix(np.zeros((n, rank * batch)), rng=rng)
                s, info = scope.zeros(rank * batch, solver.real), scope.info(batch)
                sized = (VECTOR, rank, m, n, given.at, given.ld, i64(given.ld * n), s.at, i64(rank), u.at, u.ld,
                         i64(u.ld * rank), v.at, v.ld, i64(v.ld * rank))
                area, room = solver.area("gesvdaStridedBatched", *sized, behind=(batch,))
                norms = np.full(batch, -1.0)
                solver.call("gesvdaStridedBatched", *sized, area, room, info.at, ctypes.c_void_p(norms.ctypes.data), batch)
                assert (norms >= 0).all(), "the norms are there when the call returns"
                library.synchronize()
                assert (info.get() == 0).all()
                left, values, right = u.get(), s.get(), v.get()
                for i, a in enumerate(all_):
                    part = slice(i * rank, (i + 1) * rank)
                    x, w, y = wide(left[:, part]), wide(values[part]), wide(right[:, part])
                    orthonormal(x, solver, "gesvda")
                    orthonormal(y, solver, "gesvda")
                    near(wide(a) @ y - x * w, norm(a), m, solver, "gesvda")
                    rest = float(np.sqrt((np.abs(wide(a) - (x * w) @ y.conj().T) ** 2).sum()))
                    bound = BOUND * max(m, 1) * float(solver.eps) * float(norm(a))
                    assert abs(norms[i] - rest) <= bound, f"gesvda: a norm of {norms[i]} for {rest}"
                count += 1
    return count


def approximate(library, rng):
    """Xgesvdp, wide matrices too, and Xgesvdr, whose singular values are below the true ones and near them."""
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, KINDS, n):
                with Scope(library) as scope:
                    solver, econ, job = solver_in(scope), int(rng.integers(2)), int(rng.integers(2))
                    m = max(0, n + int(rng.integers(-8, 9)))
                    what = f"Xgesvdp {solver.letter} {kind} {m} by {n}, econ {econ}"
                    a, size = general(rng, kind, m, n, solver), min(m, n)
                    given, info, s = solver.matrix(a, rng=rng), scope.info(), scope.zeros(size, solver.real)
                    u = solver.matrix(np.zeros((m, size if econ else m)), rng=rng)
                    v = solver.matrix(np.zeros((n, size if econ else n)), rng=rng)
                    number, real = solver.number, {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                    sized = (None, job, econ, i64(m), i64(n), number, given.at, i64(given.ld), real, s.at, number, u.at, i64(u.ld),
                             number, v.at, i64(v.ld), number)
                    device, host, error = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_double(-1)
                    library("cusolverDnXgesvdp_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                    library("cusolverDnXgesvdp", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None, host,
                            info.at, ctypes.byref(error))
                    library.synchronize()
                    assert info.get()[0] == 0 and error.value == 0, what
                    vectors = (u.get(), v.get().conj().T) if job == VECTOR else (None, None)
                    check(a, vectors[0], s.get(), vectors[1], solver, what)
                    count += 1
        for m, n, rank, more, powers in ((0, 0, 0, 0, 0), (9, 7, 3, 2, 0), (120, 80, 6, 4, 2), (60, 150, 5, 8, 2), (200, 200, 10, 6, 2)):
            with Scope(library) as scope:
                solver, jobs = solver_in(scope), ("SS", "SN", "NS", "NN")[int(rng.integers(4))]
                what = f"Xgesvdr {solver.letter} {m} by {n}, the first {rank}, {jobs}"
                # Singular values that fall, so that the first ones can be found.
                q, r = (np.linalg.qr(numbers(rng, (of, min(m, n)), solver))[0] for of in (m, n))
                true = 0.5 ** np.arange(min(m, n))
                a = ((q * true) @ r.conj().T).astype(solver.dtype)
                given, info, s = solver.matrix(a, rng=rng), scope.info(), scope.zeros(rank, solver.real)
                u, v = solver.matrix(np.zeros((m, rank)), rng=rng), solver.matrix(np.zeros((n, rank)), rng=rng)
                number, real = solver.number, {"S": 0, "C": 0, "D": 1, "Z": 1}[solver.letter]
                letters = tuple(ctypes.c_byte(ord(job)) for job in jobs)
                sized = (None, *letters, i64(m), i64(n), i64(rank), i64(more), i64(powers), number, given.at, i64(given.ld), real, s.at,
                         number, u.at, i64(u.ld), number, v.at, i64(v.ld), number)
                device, host = ctypes.c_size_t(), ctypes.c_size_t()
                library("cusolverDnXgesvdr_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                library("cusolverDnXgesvdr", solver.handle, *sized, scope.zeros(device.value, np.uint8).at, device, None, host, info.at)
                library.synchronize()
                assert info.get()[0] == 0, what
                found = s.get()
                assert (np.diff(found) <= 0).all(), f"{what}: {found}"
                # The last ones are those that a sketch finds least well.
                if rank:
                    assert (np.abs(found - true[:rank]) <= 0.2 * true[:rank] + 1e-5).all(), f"{what}: {found}"
                    assert abs(found[0] - 1) < 1e-2, f"{what}: {found}"
                if jobs[0] == "S":
                    orthonormal(u.get(), solver, what)
                if jobs[1] == "S":
                    orthonormal(v.get(), solver, what)
                if jobs == "SS" and rank:
                    # What the triplets leave of A is about as much as the best ones would.
                    rest = wide(a) - (wide(u.get()) * wide(found)) @ wide(v.get()).conj().T
                    assert float(np.abs(np.linalg.norm(rest.astype(np.complex128), 2))) <= 2 * true[rank], what
                wrong = list(sized)
                wrong[5] = i64(min(m, n) + 1)
                status = library.status("cusolverDnXgesvdr", solver.handle, *wrong, None, device, None, host, info.at)
                assert status == INVALID, f"{what}: a rank that it does not have: {status}"
                count += 1
    return count


GENERAL, UPPER = 2, 1


def polar(library, rng):
    """Both factors, what is told of them, and which rank there is; beside SciPy's where they are the only ones."""
    import scipy.linalg
    count = 0
    for solver_in in each(library, rng):
        for n in sizes(rng):
            for kind in kinds_of(rng, (*KINDS, "zeros"), n):
                with Scope(library) as scope:
                    solver, uplo = solver_in(scope), int(rng.integers(1, 3))
                    m = n + int(rng.integers(0, 9))
                    what = f"Xpolar {solver.letter} {kind} {m} by {n}, {uplo}"
                    a = general(rng, kind, m, n, solver)
                    taken = np.triu(a) if uplo == UPPER else a
                    given, h, info = solver.matrix(a, rng=rng), solver.matrix(np.full((n, n), 7), rng=rng), scope.info()
                    residual, told, rcond = (scope.array(np.array([-1.0])) for _ in range(3))
                    number = solver.number
                    with_h = bool(rng.integers(4))
                    sized = (None, uplo, i64(m), i64(n), number, given.at, i64(given.ld), number, h.at if with_h else None,
                             i64(h.ld if with_h else 0), number)
                    device, host = ctypes.c_size_t(), ctypes.c_size_t()
                    library("cusolverDnXpolar_bufferSize", solver.handle, *sized, ctypes.byref(device), ctypes.byref(host))
                    area, room = scope.zeros(max(device.value, 1), np.uint8).at, (ctypes.c_byte * max(host.value, 1))()
                    library("cusolverDnXpolar", solver.handle, *sized, area, device, room, host, residual.at, told.at, rcond.at, info.at)
                    library.synchronize()
                    assert info.get()[0] == 0, what
                    u, made = given.get(), h.get()
                    orthonormal(u, solver, what)
                    s = np.linalg.svd(taken.astype(np.complex128), compute_uv=False) if n else np.zeros(0)
                    scale = float(norm(taken)) + float(np.finfo(solver.real).tiny)
                    bound = BOUND * max(m, 1) * float(solver.eps)
                    frobenius = float(np.sqrt((np.abs(wide(taken)) ** 2).sum()))
                    assert abs(told.get()[0] - frobenius) <= bound * scale, f"{what}: {told.get()[0]} for {frobenius}"
                    if n and s[-1] > 1e3 * m * float(solver.eps) * s[0]:
                        wanted = 1 / (np.sqrt(((s / s[0]) ** 2).sum()) * np.sqrt(((s[0] / s) ** 2).sum()))
                        assert abs(rcond.get()[0] - wanted) <= 0.2 * wanted, f"{what}: {rcond.get()[0]} for {wanted}"
                    if with_h:
                        assert (made == made.conj().T).all(), f"{what}: H is not Hermitian"
                        near(wide(u) @ wide(made) - wide(taken), norm(taken), m, solver, what)
                        least = np.linalg.eigvalsh((made / scale).astype(np.complex128)).min(initial=0) if n else 0
                        assert least >= -bound, f"{what}: H is negative: {least}"
                        left = wide(taken) - wide(u) @ wide(made)
                        true = float(np.linalg.norm((left / scale).astype(np.complex128), 2)) if n else 0
                        assert abs(residual.get()[0] / scale - true) <= bound, f"{what}: a residual of {residual.get()[0]}"
                        if kind == "random" and n:
                            theirs = scipy.linalg.polar(taken.astype(np.complex128))
                            near(made - theirs[1], norm(taken), m, solver, f"{what}: beside SciPy's")
                    else:
                        assert (made == 7).all(), f"{what}: an H that nobody asked for"
                    count += 1
        with Scope(library) as scope:
            solver = solver_in(scope)
            number, a, h, info = solver.number, solver.matrix(np.eye(5, 4), gap=0), solver.matrix(np.eye(4), gap=0), scope.info()
            good = [None, GENERAL, i64(5), i64(4), number, a.at, i64(5), number, h.at, i64(4), number]
            wrongs = ({1: 0}, {1: 3}, {2: i64(-1)}, {3: i64(-1)}, {2: i64(3)}, {6: i64(4)}, {9: i64(3)}, {7: number ^ 1}, {10: number ^ 1},
                      {4: 2, 7: 2, 10: 2})
            for wrong in wrongs:
                arguments = [wrong.get(i, argument) for i, argument in enumerate(good)]
                device, host = ctypes.c_size_t(), ctypes.c_size_t()
                for status in (library.status("cusolverDnXpolar", solver.handle, *arguments, None, device, None, host, None, None, None, info.at),
                               library.status("cusolverDnXpolar_bufferSize", solver.handle, *arguments, ctypes.byref(device), ctypes.byref(host))):
                    assert status == INVALID, f"Xpolar {wrong}: {status}"
                count += 1
            # Nothing has to be told, and what is no number does not converge.
            device, host = ctypes.c_size_t(0), ctypes.c_size_t(0)
            library("cusolverDnXpolar", solver.handle, *good, None, device, None, host, None, None, None, info.at)
            library.synchronize()
            assert info.get()[0] == 0
            broken = solver.matrix(np.full((5, 4), np.nan), gap=0)
            good[5] = broken.at
            library("cusolverDnXpolar", solver.handle, *good, None, device, None, host, None, None, None, info.at)
            library.synchronize()
            assert info.get()[0] == 10 and np.isnan(broken.get()).all()
    return count
