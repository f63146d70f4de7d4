"""Eigenvalues of sparse matrices near a number and in a rectangle, and least squares, beside NumPy's and SciPy's."""

import ctypes

import numpy as np

from draw import BOUND, near, norm, numbers, wide
from library import INVALID, NOT_INITIALIZED, TYPES, Scope
from sparse import NOT_GENERAL, REAL, P, Sparse, Type, at, grid, rows



class ComplexFloat(ctypes.Structure):
    _fields_ = [("re", ctypes.c_float), ("im", ctypes.c_float)]


class ComplexDouble(ctypes.Structure):
    _fields_ = [("re", ctypes.c_double), ("im", ctypes.c_double)]


COMPLEX = {"S": ComplexFloat, "D": ComplexDouble, "C": ComplexFloat, "Z": ComplexDouble}


def scalar(kind, value):
    """A number of a type as C passes it."""
    if kind.letter in "SD":
        return REAL[kind.letter](float(np.real(value)))
    return COMPLEX[kind.letter](float(np.real(value)), float(np.imag(value)))


def scalar_of(kind, value):
    """The same, as the library has it."""
    return kind.dtype(value.real if kind.letter in "SD" else value)


def nearest(sparse, scope, kind, csr, mu0, x0, turns, tol, device):
    starts, columns, values = csr
    n, name = len(x0), f"cusolverSp{kind.letter}csreigvsi" + ("" if device else "Host")
    mu, x = np.full(1, 7, kind.dtype), np.full(n, 7, kind.dtype)
    if device:
        given = [scope.array(array) for array in (values, starts, columns, x0, mu, x)]
        to = [array.at for array in given]
    else:
        to = [at(array) for array in (values, starts, columns, x0, mu, x)]
    sparse.library(name, sparse.handle, n, len(columns), sparse.descr, *to[:3], scalar(kind, mu0), to[3], turns, REAL[kind.letter](tol),
                   *to[4:])
    return (given[4].get()[0], given[5].get()) if device else (mu[0], x)


def drawn(rng, n, kind, hermitian):
    """A sparse matrix whose eigenvalues are apart: their numbers, beside which stands little."""
    a = np.where(rng.random((n, n)) < min(1.0, 4 / max(n, 1)), 0.05 * numbers(rng, (n, n), kind), 0)
    if hermitian:
        a = a + a.conj().T
    a = a + np.diag(1.0 + np.arange(n))
    return a.astype(kind.dtype)


def eigenvalues(library, rng):
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        for n in (1, 2, 9, 40, 120):
            for device in (True, False):
                for hermitian in (True, False):
                    a, base = drawn(rng, n, kind, hermitian), int(rng.integers(2))
                    sparse.base(base)
                    true = np.linalg.eigvals(a.astype(np.complex128))
                    wanted = true[int(rng.integers(n))]
                    # Of a real matrix one that is real, unless its shift is no number of its type.
                    if letter in "SD" and abs(wanted.imag) > 0:
                        continue
                    mu0 = wanted + 0.1 * (rng.random() - 0.5)
                    x0 = numbers(rng, n, kind).astype(kind.dtype) + kind.dtype(2)
                    what = f"{letter}csreigvsi {n} hermitian {hermitian} device {device}"
                    scale = float(norm(a))
                    tol = 20 * np.sqrt(n) * float(kind.eps) * scale
                    with Scope(library) as scope:
                        mu, x = nearest(sparse, scope, kind, rows(a, a != 0, base, rng, True), mu0, x0, 100, tol, device)
                        assert abs(mu - wanted) <= 2e-3 * max(abs(wanted), 1), f"{what}: {mu} for {wanted}"
                        near((wide(a) @ wide(x) - wide(mu) * wide(x))[:, None], scale, n, kind, what)
                        assert abs(np.linalg.norm(x.astype(np.complex128)) - 1) <= BOUND * n * float(kind.eps), what
                        # The definition, turn by turn; the eigenvalue is that of the vector before.
                        for turns in (-1, 0, 1, 2):
                            mu, x = nearest(sparse, scope, kind, rows(a, a != 0, base, rng), mu0, x0, turns, 0, device)
                            y, value = x0.astype(np.complex128), 0
                            y = y / np.linalg.norm(y)
                            for _ in range(turns):
                                value = y.conj() @ a.astype(np.complex128) @ y
                                y = np.linalg.solve(a.astype(np.complex128) - scalar_of(kind, mu0) * np.eye(n), y)
                                y = y / np.linalg.norm(y)
                            loose = 5e3 * n * float(kind.eps)
                            assert abs(mu - value) <= loose * max(scale, 1), f"{what}: {mu} for {value} after {turns}"
                            assert np.abs(x - y).max() <= 10 * loose, f"{what}: the vector after {turns}"
                    count += 1
        # A shift that is an eigenvalue, to the bit.
        a = np.diag(np.arange(1.0, 6.0)).astype(kind.dtype)
        sparse.base(0)
        with Scope(library) as scope:
            for device in (True, False):
                mu, x = nearest(sparse, scope, kind, rows(a, a != 0, 0, rng), 2, np.ones(5, kind.dtype), 20, 1e-5, device)
                assert abs(mu - 2) < 1e-5 and abs(abs(x[1]) - 1) < 1e-5, f"{letter}csreigvsi of a shift that is an eigenvalue: {mu} {x}"
                count += 1
            # No vector to begin with has no eigenvector.
            _, x = nearest(sparse, scope, kind, rows(a, a != 0, 0, rng), 2.2, np.zeros(5, kind.dtype), 20, 1e-5, False)
            assert np.isnan(x).all()
    kind, a = Type("D"), grid(20)
    sparse.base(0)
    mu, x = nearest(sparse, None, kind, rows(a, a != 0, 0, rng), 4.03, rng.standard_normal(400), 300, 1e-9, False)
    true = np.linalg.eigvalsh(a)
    assert abs(mu - true[np.abs(true - 4.03).argmin()]) < 1e-6, f"of a grid: {mu}"
    sparse.close()
    return count + 1


def count_in(sparse, kind, csr, n, low, high):
    starts, columns, values = csr
    found = ctypes.c_int(-7)
    corner = lambda z: COMPLEX[kind.letter](float(z.real), float(z.imag))
    sparse.library(f"cusolverSp{kind.letter}csreigsHost", sparse.handle, n, len(columns), sparse.descr, at(values), at(starts), at(columns),
                   corner(low), corner(high), ctypes.byref(found))
    return found.value


def boxes(library, rng):
    """How many are in rectangles whose sides keep away from all."""
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        for n, times in ((1, 4), (2, 4), (7, 4), (25, 4), (60, 1)):
            for _ in range(times):
                a = np.where(rng.random((n, n)) < min(1.0, 6 / n), numbers(rng, (n, n), kind), 0).astype(kind.dtype)
                thin = 1.0
                if rng.integers(2) == 0:
                    a = ((a + a.conj().T) / 2).astype(kind.dtype)
                    if rng.integers(2) == 0:
                        # All of its eigenvalues are real as well, and it does not look so; powers of two leave its numbers exact.
                        scales = 2.0 ** rng.integers(-2, 3, n)
                        a = (scales[:, None] * a / scales).astype(kind.dtype)
                    # Sides beside the line that all are on.
                    thin = float(rng.choice([1, 1e-2]))
                base = int(rng.integers(2))
                sparse.base(base)
                if not (a != 0).any():
                    continue
                true = np.linalg.eigvals(a.astype(np.complex128))
                reach = float(np.abs(true).max()) + 1
                for _ in range(50):
                    re, im = (np.sort(rng.uniform(-reach, reach, 2)) for _ in range(2))
                    im *= thin
                    gap = min(float(np.abs(true.real[:, None] - re).min()), float(np.abs(true.imag[:, None] - im).min()))
                    if gap > 1e-3 * reach / n and min(re[1] - re[0], im[1] - im[0]) > 0.1 * thin:
                        break
                else:
                    continue
                inside = (true.real > re[0]) & (true.real < re[1]) & (true.imag > im[0]) & (true.imag < im[1])
                corners = [complex(re[0], im[0]), complex(re[1], im[1])]
                if rng.integers(4) == 0:
                    corners.reverse()
                found = count_in(sparse, kind, rows(a, a != 0, base, rng, True), n, *corners)
                assert found == inside.sum(), f"{letter}csreigs {n}: {found} of {inside.sum()} in {corners}"
                found = count_in(sparse, kind, rows(a, a != 0, base, rng), n, complex(-reach, -reach), complex(reach, reach))
                assert found == n, f"{letter}csreigs {n}: {found} of all"
                count += 1
        # One that is there several times counts as often, and so does one of Jordan's.
        sparse.base(0)
        for a, box, wanted in ((np.diag([1.0, 1, 2, 2]), (0.5 - 1j, 1.5 + 1j), 2), (np.eye(4) + np.eye(4, k=1), (0.9 - 0.1j, 1.1 + 0.1j), 4),
                               (np.eye(4), (1.5 - 1j, 2.5 + 1j), 0), (np.array([[0.0, -1], [1, 0]]), (-0.5 + 0.5j, 0.5 + 1.5j), 1),
                               (np.eye(3), (0j, 0j), 0), (np.eye(3), (0j, 2 + 0j), 0)):
            a = a.astype(kind.dtype)
            found = count_in(sparse, kind, rows(a, a != 0, 0, rng), len(a), *map(complex, box))
            assert found == wanted, f"{letter}csreigs in {box}: {found} for {wanted}"
            count += 1
    kind, a = Type("D"), grid(12)
    true = np.linalg.eigvalsh(a)
    found = count_in(sparse, kind, rows(a, a != 0, 0, rng), len(a), 1.01 - 1j, 3.01 + 1j)
    assert found == ((true > 1.01) & (true < 3.01)).sum(), f"of a grid: {found}"
    sparse.close()
    return count + 1


def least(library, rng):
    """Least squares of any shape and rank, by what they leave."""
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        for m, n, rank in ((1, 1, 1), (5, 3, 3), (3, 5, 3), (9, 9, 9), (20, 12, 12), (20, 12, 7), (12, 20, 9), (80, 50, 50), (60, 60, 55)):
            base = int(rng.integers(2))
            sparse.base(base)
            a = np.where(rng.random((m, n)) < 0.5, numbers(rng, (m, n), kind), 0)
            if rank < min(m, n):
                a = numbers(rng, (m, rank), kind) @ numbers(rng, (rank, n), kind)
                a[:, int(rng.integers(n))] = 0
            a = a.astype(kind.dtype)
            if not (a != 0).any():
                continue
            b = numbers(rng, m, kind).astype(kind.dtype)
            starts, columns, values = rows(a, a != 0, base, rng, True)
            # Between the rounding of what is dependent and what is not.
            tol = 30 * max(m, n) * float(kind.eps) * float(norm(a))
            x, p, found, left = np.full(n, 7, kind.dtype), np.full(n, -7, np.int32), ctypes.c_int(-7), np.full(1, -7, kind.real)
            sparse.library(f"cusolverSp{letter}csrlsqvqrHost", sparse.handle, m, n, len(columns), sparse.descr, at(values), at(starts), at(columns),
                           at(b), REAL[letter](tol), ctypes.byref(found), at(x), at(p), at(left))
            what = f"{letter}csrlsqvqr {m} by {n} of rank {rank}"
            wanted = np.linalg.matrix_rank(a.astype(np.complex128), tol=tol)
            assert found.value == wanted, f"{what}: a rank of {found.value} for {wanted}"
            assert (np.sort(p) == np.arange(n)).all(), f"{what}: {p}"
            assert (x[p[found.value:]] == 0).all(), f"{what}: {x}"
            rest = wide(a) @ wide(x) - b
            true = np.linalg.lstsq(a.astype(np.complex128), b.astype(np.complex128), rcond=tol / max(np.linalg.norm(a, 2), 1e-30))[0]
            best = float(np.linalg.norm(a.astype(np.complex128) @ true - b))
            scale = float(norm(a)) * float(np.abs(x).sum()) + float(np.linalg.norm(b))
            length = float(np.sqrt((np.abs(rest) ** 2).sum()))
            assert length <= best + BOUND * max(m, n) * float(kind.eps) * scale, f"{what}: {length} left for {best}"
            assert abs(left[0] - length) <= BOUND * max(m, n) * float(kind.eps) * scale, f"{what}: {left[0]} told for {length}"
            near((wide(a).conj().T @ rest)[:, None], norm(a) * scale, max(m, n), kind, f"{what}: what is left is orthogonal")
            count += 1
    sparse.close()
    return count


def refusals(library, rng):
    sparse, kind, count = Sparse(library), Type("D"), 0
    sparse.base(0)
    a = np.diag([1.0, 2, 3])
    starts, columns, values = rows(a, a != 0, 0, rng)
    x0, mu, x, p, number = np.ones(3), np.full(1, 7.0), np.full(3, 7.0), np.full(3, -7, np.int32), ctypes.c_int(-7)
    real, z = ctypes.c_double, ComplexDouble
    with Scope(library) as scope:
        V, S, C, X, M, R = (scope.array(array) for array in (values, starts, columns, x0, mu, x))
        matrix = [3, 3, sparse.descr]
        calls = {
            "csreigvsi": [*matrix, V.at, S.at, C.at, real(1.1), X.at, 5, real(0), M.at, R.at],
            "csreigvsiHost": [*matrix, at(values), at(starts), at(columns), real(1.1), at(x0), 5, real(0), at(mu), at(x)],
            "csreigsHost": [*matrix, at(values), at(starts), at(columns), z(0, -1), z(5, 1), ctypes.byref(number)],
            "csrlsqvqrHost": [3, *matrix, at(values), at(starts), at(columns), at(x0), real(0), ctypes.byref(number), at(x), at(p), at(mu)],
        }
        wrong = {
            "csreigvsi": [{0: -1}, {0: 0}, {1: 0}, {2: None}, {3: None}, {4: None}, {5: None}, {7: None}, {10: None}, {11: None}, {1: 2}],
            "csreigvsiHost": [{0: -1}, {0: 0}, {1: 0}, {2: None}, {3: None}, {4: None}, {5: None}, {7: None}, {10: None}, {11: None}, {1: 2}],
            "csreigsHost": [{0: -1}, {0: 0}, {1: 0}, {2: None}, {3: None}, {4: None}, {5: None}, {8: None}, {1: 2}],
            "csrlsqvqrHost": [{0: 0}, {1: 0}, {1: -1}, {2: 0}, {3: None}, {4: None}, {5: None}, {6: None}, {7: None}, {9: None}, {10: None},
                              {11: None}, {12: None}],
        }
        for name, good in calls.items():
            for none in (None, P(0x1234560)):
                status = library.status("cusolverSpD" + name, none, *good)
                assert status == NOT_INITIALIZED, f"{name}: a handle that is none: {status}"
            for changed in wrong[name]:
                arguments = [changed.get(i, argument) for i, argument in enumerate(good)]
                status = library.status("cusolverSpD" + name, sparse.handle, *arguments)
                assert status == INVALID, f"{name} {changed}: {status}"
                count += 1
            assert sparse.cusparse.cusparseSetMatType(sparse.descr, 1) == 0
            status = library.status("cusolverSpD" + name, sparse.handle, *good)
            assert status == NOT_GENERAL, f"{name} of a symmetric matrix: {status}"
            assert sparse.cusparse.cusparseSetMatType(sparse.descr, 0) == 0
        assert number.value == -7 and (x == 7).all() and (mu == 7).all() and (p == -7).all() and (R.get() == 7).all(), "a refused call wrote"
        for name, good in calls.items():
            library("cusolverSpD" + name, sparse.handle, *good)
    sparse.close()
    return count
