"""Products and systems of sparse matrices through cuSPARSE beside Intel's MKL and SciPy, by turns in one process.

sparse.py libcusparse libcudart FOLDER-OF-MKL THREADS SECONDS [WORD ...]

A line is `name|ours|MKL|SciPy`. Results are compared before anything is measured.
"""

import ctypes
import os
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve_triangular

from by_turns import P, Library, at, tell, timed, turns

i64 = ctypes.c_int64
TYPES = {"f32": (0, np.float32, "s", ctypes.c_float), "f64": (1, np.float64, "d", ctypes.c_double)}


class Ours(Library):
    """cuSPARSE."""

    def __init__(self, cusparse, cudart):
        super().__init__(cusparse, cudart, "cusparseCreate")

    def sparse(self, a, ty):
        arrays = (at(a.indptr), at(a.indices), at(a.data)) if a.nnz else (at(a.indptr), None, None)
        return self.made("cusparseCreateCsr", i64(a.shape[0]), i64(a.shape[1]), i64(a.nnz), *arrays, 2, 2, 0, TYPES[ty][0])

    def vector(self, x, ty):
        return self.made("cusparseCreateDnVec", i64(len(x)), at(x), TYPES[ty][0])

    def dense(self, x, ty):
        return self.made("cusparseCreateDnMat", i64(x.shape[0]), i64(x.shape[1]), i64(x.shape[1]), at(x), TYPES[ty][0], 2)

    def spmv(self, a, x, y, ty):
        one, none = np.ones(1, TYPES[ty][1]), np.zeros(1, TYPES[ty][1])
        call = (self.handle, 0, at(one), self.sparse(a, ty), self.vector(x, ty), at(none), self.vector(y, ty), TYPES[ty][0], 0,
                None)

        def run(keep=(one, none)):
            self("cusparseSpMV", *call)
            self.wait()
        return run

    def spmm(self, a, x, y, ty):
        one, none = np.ones(1, TYPES[ty][1]), np.zeros(1, TYPES[ty][1])
        call = (self.handle, 0, 0, at(one), self.sparse(a, ty), self.dense(x, ty), at(none), self.dense(y, ty), TYPES[ty][0], 0,
                None)

        def run(keep=(one, none)):
            self("cusparseSpMM", *call)
            self.wait()
        return run

    def spgemm(self, a, b, ty):
        """All of it, as a program does it that has no product of that pattern yet."""
        one, none = np.ones(1, TYPES[ty][1]), np.zeros(1, TYPES[ty][1])
        left, right = self.sparse(a, ty), self.sparse(b, ty)
        room = np.zeros(64, np.uint8)

        def run():
            offsets = np.zeros(a.shape[0] + 1, np.int32)
            c = self.made("cusparseCreateCsr", i64(a.shape[0]), i64(b.shape[1]), i64(0), at(offsets), None, None, 2, 2, 0,
                          TYPES[ty][0])
            known, size = self.made("cusparseSpGEMM_createDescr"), ctypes.c_size_t(64)
            call = (self.handle, 0, 0, at(one), left, right, at(none), c, TYPES[ty][0], 0, known)
            self("cusparseSpGEMM_workEstimation", *call, ctypes.byref(size), at(room))
            self("cusparseSpGEMM_compute", *call, ctypes.byref(size), at(room))
            sizes = [i64() for _ in range(3)]
            self("cusparseSpMatGetSize", c, *(ctypes.byref(it) for it in sizes))
            nnz = sizes[2].value
            indices, values = np.empty(nnz, np.int32), np.empty(nnz, TYPES[ty][1])
            self("cusparseCsrSetPointers", c, at(offsets), at(indices), at(values))
            self("cusparseSpGEMM_copy", *call)
            self.wait()
            self("cusparseSpGEMM_destroyDescr", known)
            self("cusparseDestroySpMat", c)
            return sp.csr_matrix((values, indices, offsets), (a.shape[0], b.shape[1]))
        return run

    def solve(self, a, x, y, ty):
        """The solution alone: the analysis is before."""
        one, many = np.ones(1, TYPES[ty][1]), x.ndim == 2
        matrix, kind = self.sparse(a, ty), "SpSM" if many else "SpSV"
        known = self.made(f"cusparse{kind}_createDescr")
        sides = [(self.dense if many else self.vector)(it, ty) for it in (x, y)]
        call = (self.handle, 0, *((0,) if many else ()), at(one), matrix, *sides, TYPES[ty][0], 0, known)
        room = np.zeros(64, np.uint8)
        self(f"cusparse{kind}_analysis", *call, at(room))

        def run(keep=one):
            self(f"cusparse{kind}_solve", *call)
            self.wait()
        return run


class Description(ctypes.Structure):
    """struct matrix_descr"""
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


GENERAL, LOWER = Description(20, 0, 0), Description(23, 40, 50)


class Mkl:
    """Intel's inspector and executor, with 32-bit numbers."""

    def __init__(self, folder, threads):
        ctypes.CDLL(str(folder / "libiomp5.so"), mode=ctypes.RTLD_GLOBAL)
        self.own = ctypes.CDLL(str(folder / "libmkl_rt.so.3"))
        self.own.MKL_Set_Num_Threads(threads)

    def __call__(self, name, *arguments):
        status = getattr(self.own, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def sparse(self, a, ty):
        made, letter = P(), TYPES[ty][2]
        self(f"mkl_sparse_{letter}_create_csr", ctypes.byref(made), 0, a.shape[0], a.shape[1], at(a.indptr),
             P(a.indptr.ctypes.data + 4), at(a.indices), at(a.data))
        return made

    def spmv(self, a, x, y, ty):
        _, _, letter, number = TYPES[ty]
        made = self.sparse(a, ty)
        self("mkl_sparse_set_mv_hint", made, 10, GENERAL, 1000)
        self("mkl_sparse_optimize", made)
        return lambda: self(f"mkl_sparse_{letter}_mv", 10, number(1), made, GENERAL, at(x), number(0), at(y))

    def spmm(self, a, x, y, ty):
        _, _, letter, number = TYPES[ty]
        made, n = self.sparse(a, ty), x.shape[1]
        self("mkl_sparse_set_mm_hint", made, 10, GENERAL, 101, n, 1000)
        self("mkl_sparse_optimize", made)
        return lambda: self(f"mkl_sparse_{letter}_mm", 10, number(1), made, GENERAL, 101, at(x), n, n, number(0), at(y), n)

    def spgemm(self, a, b, ty):
        left, right = self.sparse(a, ty), self.sparse(b, ty)

        def run():
            made = P()
            self("mkl_sparse_spmm", 10, left, right, ctypes.byref(made))
            # Columns in order, as cuSPARSE has them.
            self("mkl_sparse_order", made)
            self("mkl_sparse_destroy", made)
        return run

    def solve(self, a, x, y, ty):
        _, _, letter, number = TYPES[ty]
        made = self.sparse(a, ty)
        if x.ndim == 2:
            n = x.shape[1]
            self("mkl_sparse_set_sm_hint", made, 10, LOWER, 101, n, 1000)
            self("mkl_sparse_optimize", made)
            return lambda: self(f"mkl_sparse_{letter}_trsm", 10, number(1), made, LOWER, 101, at(x), n, n, at(y), n)
        self("mkl_sparse_set_sv_hint", made, 10, LOWER, 1000)
        self("mkl_sparse_optimize", made)
        return lambda: self(f"mkl_sparse_{letter}_trsv", 10, number(1), made, LOWER, at(x), at(y))


def grid(n):
    """Five points on a grid of n times n."""
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (n, n))
    one = sp.identity(n)
    return (sp.kron(one, line) + sp.kron(line, one)).tocsr()


def drawn(rng, n, each):
    """As many entries in each row, anywhere."""
    columns = rng.integers(0, n, (n, each), dtype=np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), each)
    return sp.csr_matrix((rng.random(n * each) + 0.5, (rows, columns.reshape(-1))), (n, n))


def power(rng, n, each):
    """A few rows and columns have most of the entries."""
    lengths = np.minimum((rng.pareto(1.2, n) * each / 3 + 1).astype(np.int64), n // 4)
    columns = (n * rng.random(lengths.sum()) ** 3).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), lengths)
    return sp.csr_matrix((rng.random(len(rows)) + 0.5, (rows, columns)), (n, n))


def banded(rng, n, each):
    """Blocks of a band, as finite elements have them."""
    rows = np.repeat(np.arange(n, dtype=np.int64), each)
    columns = np.clip(rows // 4 * 4 + rng.integers(-200, 200, len(rows)), 0, n - 1)
    return sp.csr_matrix((rng.random(len(rows)) + 0.5, (rows, columns)), (n, n))


def lower(a):
    part = sp.tril(a, -1).tocsr()
    return (part + sp.diags(np.abs(part).sum(1).A1 + 1.0)).tocsr()


def ready(a, ty):
    a = a.astype(TYPES[ty][1])
    a.sum_duplicates()
    a.sort_indices()
    a.indptr, a.indices = a.indptr.astype(np.int32), a.indices.astype(np.int32)
    return a


def near(got, exact, what):
    wrong = abs(got - exact).max() / abs(exact).max()
    assert wrong < 1e-4, f"{what}: {wrong}"


def main():
    cusparse, cudart, folder, threads, seconds, *words = sys.argv[1:]
    ours, mkl, seconds = Ours(cusparse, cudart), Mkl(Path(folder), int(threads)), float(seconds)
    rng = np.random.default_rng(1)
    # Made when a row wants it, and then kept.
    sources = {
        "grid": lambda: grid(700),
        "random": lambda: drawn(rng, 100_000, 20),
        "power": lambda: power(rng, 150_000, 12),
        "band": lambda: banded(rng, 60_000, 40),
    }
    smaller = {
        "grid": lambda: grid(400),
        "random": lambda: drawn(rng, 30_000, 10),
        "power": lambda: power(rng, 20_000, 6),
        "band": lambda: banded(rng, 15_000, 30),
    }
    for kind in ("SpMV", "SpMM", "SpGEMM", "SpSV", "SpSM"):
        for shape in sources:
            for ty in TYPES:
                name = f"{kind} {shape} {ty}"
                if not all(word in name for word in words):
                    continue
                a = ready((smaller if kind == "SpGEMM" else sources)[shape](), ty)
                n, number = a.shape[0], TYPES[ty][1]
                x = rng.random(n if kind in ("SpMV", "SpSV") else (n, 32)).astype(number)
                y = [np.zeros_like(x) for _ in range(2)]
                if kind in ("SpMV", "SpMM"):
                    make = (lambda it, y: it.spmv(a, x, y, ty)) if kind == "SpMV" else (lambda it, y: it.spmm(a, x, y, ty))
                    runs = {"ours": make(ours, y[0]), "mkl": make(mkl, y[1]), "scipy": lambda: a @ x}
                elif kind == "SpGEMM":
                    runs = {"ours": ours.spgemm(a, a, ty), "mkl": mkl.spgemm(a, a, ty), "scipy": lambda: (a @ a).sort_indices()}
                else:
                    a = ready(lower(a), ty)
                    # SciPy has no analysis to do before; its solution is of one right side.
                    runs = {"ours": ours.solve(a, x, y[0], ty), "mkl": mkl.solve(a, x, y[1], ty)}
                    if kind == "SpSV":
                        runs["scipy"] = lambda: spsolve_triangular(a, x, lower=True)
                if kind == "SpGEMM":
                    near(runs["ours"](), a @ a, name)
                else:
                    runs["ours"]()
                    runs["mkl"]()
                    near(y[0], a @ x if kind in ("SpMV", "SpMM") else y[1], name)
                    near(y[1], y[0], name)
                least = dict(zip(runs, turns([timed(run) for run in runs.values()], seconds)))
                tell(f"{name}, {n} rows, {a.nnz} entries", [least.get(it, 0) for it in ("ours", "mkl", "scipy")])


# Threads that wait for work would be counted as if they did some.
assert os.environ.get("KMP_BLOCKTIME") == "0", "KMP_BLOCKTIME is 0 here"
main()
