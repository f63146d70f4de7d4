"""Factorizations, eigenvalues and singular values through cuSOLVER beside SciPy's LAPACK (OpenBLAS), by turns in one process.

solver.py libcusolver libcudart SECONDS [WORD ...]

A line is `name|ours|LAPACK`. Each side has one thread. Matrices are of doubles; what a routine overwrites is copied before each
turn, outside of what is measured. Results are compared before anything is measured.
"""

import ctypes
import sys

import numpy as np
from scipy.linalg import blas, lapack

from by_turns import P, Library, at, cpu_time, tell, turns

LOWER, VECTOR = 0, 1
i64 = ctypes.c_longlong


class Ours(Library):
    """cuSOLVER."""

    def __init__(self, cusolver, cudart):
        super().__init__(cusolver, cudart, "cusolverDnCreate")
        self.info = np.zeros(4096, np.int32)
        self.cublas = ctypes.CDLL("libcublas.so.13")
        self.blas_handle = P()
        assert self.cublas.cublasCreate_v2(ctypes.byref(self.blas_handle)) == 0

    def run(self, routine, *arguments):
        self("cusolverDn" + routine, self.handle, *arguments)
        self.wait()

    def blas(self, routine, *arguments):
        status = getattr(self.cublas, routine)(self.blas_handle, *arguments)
        assert status == 0, f"{routine}: {status}"
        self.wait()

    def check(self):
        assert (self.info == 0).all(), "info"


def matrix(rng, n):
    return np.asfortranarray(rng.standard_normal((n, n)) + n * np.eye(n))


def positive(rng, n):
    a = rng.standard_normal((n, n))
    return np.asfortranarray(a @ a.T / n + np.eye(n))


def symmetric(rng, n):
    a = rng.standard_normal((n, n))
    return np.asfortranarray((a + a.T) / 2)


class Case:
    """`ours` and `lapack` work on copies of `given`; what they answer is compared. `check` comes behind each, outside of what is measured."""

    check = None

    def __init__(self, given, ours, lapack):
        self.given, self.sides = given, {"ours": ours, "lapack": lapack}

    def run(self, side):
        copies = [array.copy(order="F") for array in self.given]
        start = cpu_time()
        answer = self.sides[side](*copies)
        taken = cpu_time() - start
        Case.check()
        return taken, answer


def cases(ours, rng, n):
    """Of one size."""
    info, work, pivots = at(ours.info), np.zeros(4 * n * n), np.zeros(n, np.int32)
    tau, values = np.zeros(n), np.zeros(n)
    u, v = np.zeros((n, n), order="F"), np.zeros((n, n), order="F")
    room = 4 * n * n
    general, spd, hermitian = matrix(rng, n), positive(rng, n), symmetric(rng, n)

    def getrf(a):
        ours.run("Dgetrf", n, n, at(a), n, at(work), at(pivots), info)
        return np.abs(a.diagonal())
    yield "getrf", Case([general], getrf, lambda a: np.abs(lapack.dgetrf(a, overwrite_a=1)[0].diagonal()))

    lu, piv, _ = lapack.dgetrf(general)
    numbers, b = piv.astype(np.int32) + 1, np.asfortranarray(rng.standard_normal((n, 16)))

    def getrs(b):
        ours.run("Dgetrs", 0, n, 16, at(lu), n, at(numbers), at(b), n, info)
        return b
    yield "getrs, 16 right sides", Case([b], getrs, lambda b: lapack.dgetrs(lu, piv, b, overwrite_b=1)[0])

    def potrf(a):
        ours.run("Dpotrf", LOWER, n, at(a), n, at(work), room, info)
        return a.diagonal().copy()
    yield "potrf", Case([spd], potrf, lambda a: lapack.dpotrf(a, lower=1, clean=0, overwrite_a=1)[0].diagonal())

    def geqrf(a):
        ours.run("Dgeqrf", n, n, at(a), n, at(tau), at(work), room, info)
        return np.abs(a.diagonal())
    yield "geqrf", Case([general], geqrf, lambda a: np.abs(lapack.dgeqrf(a, lwork=64 * n, overwrite_a=1)[0].diagonal()))

    def syevd(a):
        ours.run("Dsyevd", VECTOR, LOWER, n, at(a), n, at(values), at(work), room, info)
        return values.copy()
    yield "syevd, with vectors", Case([hermitian], syevd, lambda a: lapack.dsyevd(a, compute_v=1, lower=1, overwrite_a=1)[0])

    letter = ctypes.c_byte(ord("S"))

    def gesvd(a):
        ours.run("Dgesvd", letter, letter, n, n, at(a), n, at(values), at(u), n, at(v), n, at(work), room, None, info)
        return values.copy()
    yield "gesvd, with vectors, beside gesdd", Case([general], gesvd, lambda a: lapack.dgesdd(a, full_matrices=0, overwrite_a=1)[1])


def jacobi(ours, rng, n):
    """Jacobi's method is for small matrices."""
    params, info, room = P(), at(ours.info), 4 * n * n
    ours("cusolverDnCreateGesvdjInfo", ctypes.byref(params))
    work, values = np.zeros(room), np.zeros(n)
    u, v = np.zeros((n, n), order="F"), np.zeros((n, n), order="F")

    def gesvdj(a):
        ours.run("Dgesvdj", VECTOR, 1, n, n, at(a), n, at(values), at(u), n, at(v), n, at(work), room, info, params)
        return values.copy()
    yield "gesvdj, with vectors, beside gesvd", Case([matrix(rng, n)], gesvdj, lambda a: lapack.dgesvd(a, full_matrices=0, overwrite_a=1)[1])


def batches(ours, rng, n, count):
    """Many small ones: LAPACK's in a loop. LU and QR of batches are cuBLAS's."""
    info, params = at(ours.info), P()
    ours("cusolverDnCreateSyevjInfo", ctypes.byref(params))
    spd = np.asfortranarray(np.hstack([positive(rng, n) for _ in range(count)]))
    general = np.asfortranarray(np.hstack([matrix(rng, n) for _ in range(count)]))
    work, values = np.zeros(64 * n * n), np.zeros((count, n))
    pivots, taus = np.zeros((count, n), np.int32), np.zeros((count, n))

    def each(a):
        return (a[:, i * n:(i + 1) * n] for i in range(count))

    def places(a, size):
        return np.array([a.ctypes.data + 8 * size * i for i in range(count)], np.int64)

    def diagonals(made):
        return np.abs(np.concatenate([part.diagonal() for part in made]))

    def getrf(a):
        parts = places(a, n * n)
        ours.blas("cublasDgetrfBatched", n, at(parts), n, at(pivots), info, count)
        return diagonals(each(a))
    yield f"getrfBatched of {count}", Case([general], getrf, lambda a: diagonals(lapack.dgetrf(part, overwrite_a=1)[0] for part in each(a)))

    def potrf(a):
        parts = places(a, n * n)
        ours.run("DpotrfBatched", LOWER, n, at(parts), n, info, count)
        return diagonals(each(a))
    yield f"potrfBatched of {count}", Case([spd], potrf, lambda a: diagonals(
        lapack.dpotrf(part, lower=1, clean=0, overwrite_a=1)[0] for part in each(a)))

    def geqrf(a):
        parts, factors = places(a, n * n), places(taus, n)
        ours.blas("cublasDgeqrfBatched", n, n, at(parts), n, at(factors), info, count)
        return diagonals(each(a))
    yield f"geqrfBatched of {count}", Case([general], geqrf, lambda a: diagonals(
        lapack.dgeqrf(part, lwork=64 * n, overwrite_a=1)[0] for part in each(a)))

    def syevj(a):
        ours.run("DsyevjBatched", VECTOR, LOWER, n, at(a), n, at(values), at(work), len(work), info, params, count)
        return values.reshape(-1).copy()

    def by_syevd(a):
        return np.concatenate([lapack.dsyevd(part, compute_v=1, lower=1, overwrite_a=1)[0] for part in each(a)])
    yield f"syevjBatched of {count}, beside syevd", Case([spd], syevj, by_syevd)

    u, v, lost = np.zeros((count, n, n)), np.zeros((count, n, n)), np.zeros(count)

    def gesvda(a):
        ours.run("DgesvdaStridedBatched", VECTOR, n, n, n, at(a), n, i64(n * n), at(values), i64(n), at(u), n, i64(n * n), at(v), n, i64(n * n),
                 at(work), len(work), info, at(lost), count)
        return values.reshape(-1).copy()

    def by_gesdd(a):
        return np.concatenate([lapack.dgesdd(part, full_matrices=0, overwrite_a=1)[1] for part in each(a)])
    yield f"gesvdaStridedBatched of {count}, beside gesdd", Case([general], gesvda, by_gesdd)


def main():
    cusolver, cudart, seconds, *words = sys.argv[1:]
    ours, rng = Ours(cusolver, cudart), np.random.default_rng(1)
    Case.check = ours.check
    # OpenBLAS makes its own code ready.
    blas.dgemm(1.0, np.eye(64), np.eye(64))
    groups = [(64, lambda: batches(ours, rng, 64, 1000)), (32, lambda: batches(ours, rng, 32, 1000)), (64, lambda: jacobi(ours, rng, 64)),
              (64, lambda: cases(ours, rng, 64)), (512, lambda: cases(ours, rng, 512)), (2048, lambda: cases(ours, rng, 2048))]
    for n, make in groups:
        for routine, case in make():
            name = f"{routine}, n = {n}"
            if not all(word in name for word in words):
                continue
            (_, found), (_, exact) = case.run("ours"), case.run("lapack")
            wrong = np.abs(found - exact).max() / np.abs(exact).max()
            assert wrong < 1e-10, f"{name}: {wrong}"
            least = turns([lambda: case.run("ours")[0], lambda: case.run("lapack")[0]], float(seconds))
            tell(name, least, 7)


main()
