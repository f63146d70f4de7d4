"""Factors of sparse matrices that a program keeps: LU on the host, QR and Cholesky on the device and on the host, QR of batches; beside
NumPy's solutions and by what they leave."""

import ctypes
import threading

import numpy as np

from draw import near, norm, numbers, wide
from library import INVALID, NOT_INITIALIZED, OK, TYPES, Scope
from sparse import NOT_GENERAL, REAL, P, Sparse, Type, at, drawn, grid, rows
from spectrum import scalar, scalar_of

ZERO_PIVOT = 10


class Kept:
    """A matrix with an info of the library's, in the device's memory or the host's."""

    KINDS = {"lu": "Csrlu", "qr": "Csrqr", "chol": "Csrchol"}

    def __init__(self, sparse, scope, kind, routine, a, kept, base, device, rng):
        self.sparse, self.scope, self.kind, self.routine, self.device = sparse, scope, kind, routine, device
        self.library, self.info, (self.m, self.n) = sparse.library, P(), a.shape
        self.suffix = "" if device else "Host"
        self.library(f"cusolverSpCreate{self.KINDS[routine]}Info{self.suffix}", ctypes.byref(self.info))
        sparse.base(base)
        csr = rows(a, kept, base, rng, bool(rng.integers(2)))
        self.entries = len(csr[1])
        self.starts, self.columns, self.values = (self.put(array) for array in csr)
        self.sizes = (self.m, self.n) if routine == "qr" else (self.n,)
        self.matrix = (*self.sizes, self.entries, sparse.descr, self.values[0], self.starts[0], self.columns[0])

    def put(self, array):
        """Where a call finds an array, and what reads it."""
        if self.device:
            made = self.scope.array(array)
            return made.at, made.get
        array = np.ascontiguousarray(array).copy()
        return at(array), lambda: array

    def name(self, step):
        return f"cusolverSp{self.kind.letter}csr{self.routine}{step}{self.suffix}"

    def analyse(self):
        self.library(f"cusolverSpXcsr{self.routine}Analysis{self.suffix}", self.sparse.handle, *self.sizes, self.entries, self.sparse.descr,
                     self.starts[0], self.columns[0], self.info)
        kept, room = ctypes.c_size_t(), ctypes.c_size_t()
        self.library(self.name("BufferInfo"), self.sparse.handle, *self.matrix, self.info, ctypes.byref(kept), ctypes.byref(room))
        assert kept.value > 0 and room.value > 0
        self.area = self.put(np.zeros(room.value, np.uint8))[0]

    def factor(self, mu=0, b=None, threshold=1.0):
        handle, real = self.sparse.handle, REAL[self.kind.letter]
        if self.routine == "qr":
            self.library(self.name("Setup"), handle, *self.matrix, scalar(self.kind, mu), self.info)
            sides = (None, None)
            if b is not None:
                side, x = self.put(b), self.put(np.full(self.n, 7, self.kind.dtype))
                sides = (side[0], x[0])
            self.library(self.name("Factor"), handle, *self.sizes, self.entries, *sides, self.info, self.area)
            return x[1]() if b is not None else None
        more = (real(threshold),) if self.routine == "lu" else ()
        self.library(self.name("Factor"), handle, *self.matrix, self.info, *more, self.area)

    def zero_pivot(self, tol):
        position = ctypes.c_int(-77)
        self.library(self.name("ZeroPivot"), self.sparse.handle, self.info, REAL[self.kind.letter](tol), ctypes.byref(position))
        return position.value

    def solve_status(self, b):
        side, x = self.put(b), self.put(np.full(self.n, 7, self.kind.dtype))
        status = self.library.status(self.name("Solve"), self.sparse.handle, *self.sizes, side[0], x[0], self.info, self.area)
        return status, x[1]()

    def solve(self, b):
        status, x = self.solve_status(b)
        assert status == OK, f"{self.name('Solve')}: {status}"
        return x

    def close(self):
        self.library(f"cusolverSpDestroy{self.KINDS[self.routine]}Info{self.suffix}", self.info)


CALLS = (("lu", False), ("qr", False), ("qr", True), ("chol", False), ("chol", True))


def hermitian_positive(a, kind):
    made = a @ a.conj().T / max(float(norm(a)), 1) + np.eye(len(a))
    return ((made + made.conj().T) / 2).astype(kind.dtype)


def factors(library, rng):
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        cases = [(1, 1.0), (2, 1.0), (7, 0.4), (int(rng.integers(20, 60)), 0.1), (130, 0.4)] + ([(0, 0)] if letter == "D" else [])
        for n, density in cases:
            if n:
                a, kept = drawn(rng, n, density, kind)
            else:
                a, kept = grid(25), grid(25) != 0
                n = len(a)
            for routine, device in CALLS:
                with Scope(library) as scope:
                    matrix, entries = a, kept
                    stored = a
                    if routine == "chol":
                        matrix = hermitian_positive(a, kind) if density else a
                        stored, entries = matrix.copy(), matrix != 0
                        # The upper triangle's numbers are nobody's, and need not be there.
                        stored[np.triu(np.ones((n, n), bool), 1)] = 1000
                        if n % 2:
                            entries = np.tril(entries)
                    base = int(rng.integers(2))
                    what = f"{letter}csr{routine} {n} {density} base {base} device {device}"
                    of = Kept(sparse, scope, kind, routine, stored, entries, base, device, rng)
                    of.analyse()
                    of.factor()
                    for _ in range(2):
                        assert of.zero_pivot(0) == -1, f"{what}: {of.zero_pivot(0)}"
                        assert of.zero_pivot(1e9) == 0, f"{what}: no pivot is so large"
                        b = numbers(rng, n, kind).astype(kind.dtype)
                        x = of.solve(b)
                        near((wide(matrix) @ wide(x) - b)[:, None], norm(matrix) * norm(x[:, None]), n, kind, what)
                        # The same factors once more, of the same values.
                        of.factor()
                    if routine == "qr":
                        mu = scalar_of(kind, 0.25 + 0.5j)
                        shifted = matrix - mu * np.eye(n)
                        x = of.factor(mu, b)
                        left = (wide(shifted) @ wide(x) - b)[:, None]
                        near(left, norm(shifted) * norm(x[:, None]), n, kind, f"{what}: shifted")
                    if routine == "chol" and device:
                        diagonal = scope.zeros(n, kind.real)
                        library(f"cusolverSp{letter}csrcholDiag", sparse.handle, of.info, diagonal.at)
                        wanted = np.linalg.cholesky(matrix.astype(np.complex128)).diagonal().real
                        assert np.abs(diagonal.get() - wanted).max() <= 100 * n * float(kind.eps) * wanted.max(), f"{what}: the diagonal"
                    if routine == "lu":
                        extract(library, sparse, of, matrix, kind, rng, what)
                    of.close()
                    count += 1
        # More rows than columns: least squares.
        for m, n in ((2, 1), (9, 4), (70, 40), (300, 180)):
            for device in (True, False):
                with Scope(library) as scope:
                    kept = rng.random((m, n)) < (0.2 if m > 20 else 0.8)
                    kept[np.arange(n), np.arange(n)] = True
                    a = np.where(kept, numbers(rng, (m, n), kind), 0)
                    a[np.arange(n), np.arange(n)] += 4
                    a, b = a.astype(kind.dtype), numbers(rng, m, kind).astype(kind.dtype)
                    of = Kept(sparse, scope, kind, "qr", a, kept, int(rng.integers(2)), device, rng)
                    of.analyse()
                    what = f"{letter}csrqr {m} by {n} device {device}"
                    for x in (of.factor(0, b), of.solve(b)):
                        rest = wide(a) @ wide(x) - b
                        scale = float(norm(a)) * float(np.abs(x).sum()) + float(np.abs(b).sum())
                        near((wide(a).conj().T @ rest)[:, None], norm(a) * scale, m, kind, what)
                    assert of.zero_pivot(0) == -1
                    of.close()
                    count += 1
    sparse.close()
    return count


def extract(library, sparse, of, a, kind, rng, what):
    """`A(P, Q) = L·U`, each matrix with a base of its own."""
    n, l_count, u_count = of.n, ctypes.c_int(-7), ctypes.c_int(-7)
    library("cusolverSpXcsrluNnzHost", sparse.handle, ctypes.byref(l_count), ctypes.byref(u_count), of.info)
    p, q = np.full(n, -7, np.int32), np.full(n, -7, np.int32)
    parts, descriptors, bases = [], [], []
    for size in (l_count.value, u_count.value):
        parts.append((np.zeros(size, kind.dtype), np.full(n + 1, -7, np.int32), np.full(size, -7, np.int32)))
        descriptors.append(P())
        bases.append(int(rng.integers(2)))
        assert sparse.cusparse.cusparseCreateMatDescr(ctypes.byref(descriptors[-1])) == 0
        assert sparse.cusparse.cusparseSetMatIndexBase(descriptors[-1], bases[-1]) == 0
    flat = [argument for descr, part in zip(descriptors, parts) for argument in (descr, *map(at, part))]
    library(f"cusolverSp{kind.letter}csrluExtractHost", sparse.handle, at(p), at(q), *flat, of.info, of.area)
    made = []
    for base, (values, starts, columns), descr in zip(bases, parts, descriptors):
        dense = np.zeros((n, n), kind.dtype)
        assert starts[0] == base and starts[n] == base + len(values), f"{what}: where rows begin"
        for i in range(n):
            line = slice(starts[i] - base, starts[i + 1] - base)
            assert (np.diff(columns[line]) > 0).all(), f"{what}: columns are not in order"
            dense[i, columns[line] - base] = values[line]
        made.append(dense)
        assert sparse.cusparse.cusparseDestroyMatDescr(descr) == 0
    lower, upper = made
    assert not np.triu(lower).any() and not np.tril(upper, -1).any(), f"{what}: no triangles"
    assert (np.sort(p) == np.arange(n)).all() and (np.sort(q) == np.arange(n)).all(), what
    assert (np.abs(lower) <= 1 + 4 * kind.eps).all(), f"{what}: pivots are not the largest"
    lower = lower + np.eye(n, dtype=kind.dtype)
    scale = norm(np.abs(lower).astype(np.float64) @ np.abs(upper).astype(np.float64))
    near(wide(lower) @ wide(upper) - wide(a)[np.ix_(p, q)], scale, n, kind, f"{what}: P, Q, L and U")


def singular(library, rng):
    """Which column is told, and what there is no solution of."""
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        for n in (2, 6, 50, 130):
            a, _ = drawn(rng, n, 0.5, kind)
            column = int(rng.integers(1, n))
            twice, empty = a.copy(), a.copy()
            twice[:, column], empty[:, column] = a[:, 0], 0
            broken = hermitian_positive(a, kind)
            broken[column, column] = -1
            b, all_ = numbers(rng, n, kind).astype(kind.dtype), np.ones((n, n), bool)
            for routine, device in CALLS:
                with Scope(library) as scope:
                    what = f"{letter}csr{routine} {n} device {device}"
                    for matrix, kept, tol in ((broken, all_, 0),) if routine == "chol" else ((twice, all_, 1e-4), (empty, all_, 0), (empty, empty != 0, 0)):
                        of = Kept(sparse, scope, kind, routine, matrix, kept, 0, device, rng)
                        of.analyse()
                        of.factor()
                        assert of.zero_pivot(tol) == column, f"{what}: {of.zero_pivot(tol)} for {column}"
                        if routine == "chol":
                            status, x = of.solve_status(b)
                            assert status == ZERO_PIVOT and (x == 7).all(), f"{what}: {status}, and there are no factors"
                        of.close()
                    count += 1
    sparse.close()
    return count


def batches(library, rng):
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        for m, n, batch in ((1, 1, 1), (6, 6, 5), (30, 30, 17), (12, 7, 4)):
            with Scope(library) as scope:
                base, info = int(rng.integers(2)), P()
                sparse.base(base)
                kept = (rng.random((m, n)) < 0.4) | np.eye(m, n, dtype=bool)
                all_ = [(np.where(kept, numbers(rng, (m, n), kind), 0) + 5 * np.eye(m, n)).astype(kind.dtype) for _ in range(batch)]
                parts = [rows(a, kept, base, rng) for a in all_]
                entries = len(parts[0][1])
                starts, columns = scope.array(parts[0][0]), scope.array(parts[0][1])
                values = scope.array(np.concatenate([part[2] for part in parts]))
                b = numbers(rng, (batch, m), kind).astype(kind.dtype)
                side, x = scope.array(b), scope.array(np.full((batch, n), 7, kind.dtype))
                library("cusolverSpCreateCsrqrInfo", ctypes.byref(info))
                shape = (m, n, entries, sparse.descr)
                inner, room = ctypes.c_size_t(), ctypes.c_size_t()
                library("cusolverSpXcsrqrAnalysisBatched", sparse.handle, *shape, starts.at, columns.at, info)
                name = f"cusolverSp{letter}csrqr"
                library(name + "BufferInfoBatched", sparse.handle, *shape, values.at, starts.at, columns.at, batch, info, ctypes.byref(inner),
                        ctypes.byref(room))
                area = scope.zeros(room.value, np.uint8)
                call = lambda size, where=area.at: library.status(name + "svBatched", sparse.handle, *shape, values.at, starts.at, columns.at, side.at,
                                                                  x.at, size, info, where)
                what = f"{letter}csrqrsvBatched {m} by {n}, {batch}"
                assert call(batch + 1) == INVALID and call(0) == INVALID and call(batch, None) == INVALID, what
                assert (x.get() == 7).all()
                # A part of the batch leaves the others alone.
                assert call(batch - 1) == (OK if batch > 1 else INVALID), what
                assert (x.get()[batch - 1] == 7).all(), what
                assert call(batch) == OK, what
                for a, right, solution in zip(all_, b, x.get()):
                    rest = wide(a) @ wide(solution) - right
                    scale = float(norm(a)) * float(np.abs(solution).sum()) + float(np.abs(right).sum())
                    near((wide(a).conj().T @ rest)[:, None], norm(a) * scale, m, kind, what)
                library("cusolverSpDestroyCsrqrInfo", info)
                count += 1
    sparse.close()
    return count


def refusals(library, rng):
    """Steps whose step before is missing, wrong sizes, types and areas; the order of a stream."""
    sparse, kind, count = Sparse(library), Type("D"), 0
    a, kept = drawn(rng, 6, 0.5, kind)
    b = numbers(rng, 6, kind)
    for routine, device in CALLS:
        with Scope(library) as scope:
            matrix, entries = (hermitian_positive(a, kind), np.ones((6, 6), bool)) if routine == "chol" else (a, kept)
            of = Kept(sparse, scope, kind, routine, matrix, entries, 0, device, rng)
            handle, real, position = sparse.handle, ctypes.c_double, ctypes.c_int(-77)
            side, x = of.put(b), of.put(np.full(6, 7.0))
            area = of.put(np.zeros(64, np.uint8))[0]
            inner, room = ctypes.byref(ctypes.c_size_t()), ctypes.byref(ctypes.c_size_t())
            more = (real(1),) if routine == "lu" else ()
            steps = {
                "Analysis": [handle, *of.sizes, of.entries, sparse.descr, of.starts[0], of.columns[0], of.info],
                "BufferInfo": [handle, *of.matrix, of.info, inner, room],
                "Factor": [handle, *of.matrix, of.info, *more, area],
                "ZeroPivot": [handle, of.info, real(0), ctypes.byref(position)],
                "Solve": [handle, *of.sizes, side[0], x[0], of.info, area],
            }
            if routine == "qr":
                steps["Setup"] = [handle, *of.matrix, real(0), of.info]
                steps["Factor"] = [handle, *of.sizes, of.entries, None, None, of.info, area]
            if routine == "chol" and device:
                steps["Diag"] = [handle, of.info, x[0]]
            full = lambda step: f"cusolverSpXcsr{routine}Analysis{of.suffix}" if step == "Analysis" else of.name(step) if step != "Diag" else "cusolverSpDcsrcholDiag"
            call = lambda step, changed={}: library.status(full(step), *[changed.get(i, argument) for i, argument in enumerate(steps[step])])
            expect = lambda step, status, changed={}: check(call(step, changed), status, f"{full(step)} {changed}")

            def check(found, wanted, what):
                nonlocal count
                assert found == wanted, f"{what}: {found} for {wanted}"
                count += 1

            for step in steps:
                for none in (None, P(0x1234560)):
                    expect(step, NOT_INITIALIZED, {0: none})
                at_info = next(i for i, argument in enumerate(steps[step]) if argument is of.info)
                for none in (None, P(0x1234560)):
                    expect(step, INVALID, {at_info: none})
            for step in steps:
                if step != "Analysis":
                    expect(step, INVALID)
            wide_matrix = {1: 5} if routine == "qr" else {1: 0}
            n_sizes = len(of.sizes)
            for changed in ({1: -1}, wide_matrix, {n_sizes + 1: 0}, {n_sizes + 1: of.entries - 1}, {n_sizes + 2: None}, {n_sizes + 3: None},
                            {n_sizes + 4: None}):
                expect("Analysis", INVALID, changed)
            assert sparse.cusparse.cusparseSetMatType(sparse.descr, 1) == 0
            expect("Analysis", NOT_GENERAL)
            assert sparse.cusparse.cusparseSetMatType(sparse.descr, 0) == 0
            expect("Analysis", OK)
            for changed in ({1: 5}, {n_sizes + 1: of.entries - 1}):
                for step in ("BufferInfo", "Factor") + (("Setup",) if routine == "qr" else ()):
                    expect(step, INVALID, changed)
            expect("BufferInfo", OK)
            for step in ("ZeroPivot", "Solve") + (("Factor",) if routine == "qr" else ()):
                expect(step, INVALID)
            if routine == "qr":
                expect("Setup", OK)
                expect("Factor", INVALID, {n_sizes + 2: side[0]})
            expect("Factor", INVALID, {len(steps["Factor"]) - 1: None})
            expect("Factor", OK)
            for changed in ({1: 5}, {n_sizes + 1: None}, {n_sizes + 2: None}, {n_sizes + 4: None}):
                expect("Solve", INVALID, changed)
            expect("ZeroPivot", INVALID, {3: None})
            # Factors of another type are none.
            status = library.status(of.name("ZeroPivot").replace("SpD", "SpS"), *steps["ZeroPivot"])
            check(status, INVALID, "factors of another type")
            assert position.value == -77 and (x[1]() == 7).all(), "a refused call wrote"
            expect("Solve", OK)
            near((wide(matrix) @ wide(x[1]()) - b)[:, None], norm(matrix) * norm(x[1]()[:, None]), 6, kind, full("Solve"))
            # Analysed again, nothing is factored.
            expect("Analysis", OK)
            expect("Solve", INVALID)
            of.close()
            check(library.status(f"cusolverSpDestroy{of.KINDS[routine]}Info{of.suffix}", of.info), INVALID, "destroying twice")
            check(library.status(f"cusolverSpCreate{of.KINDS[routine]}Info{of.suffix}", None), INVALID, "an info to NULL")
    # Values come late on a stream that is held; a capture is refused.
    with Scope(library) as scope:
        of, stream = Kept(sparse, scope, kind, "qr", a, kept, 0, True, rng), P()
        of.analyse()
        library.runtime("cudaStreamCreate", ctypes.byref(stream))
        library("cusolverSpSetStream", sparse.handle, stream)
        true, late = of.values[1](), scope.array(np.zeros(of.entries))
        again = scope.array(true)
        of.matrix = (*of.sizes, of.entries, sparse.descr, late.at, of.starts[0], of.columns[0])
        gate = threading.Event()
        hold = ctypes.CFUNCTYPE(None, P)(lambda _: gate.wait(30))
        library.runtime("cudaLaunchHostFunc", stream, hold, None)
        library.runtime("cudaMemcpyAsync", late.at, again.at, ctypes.c_size_t(again.bytes), 3, stream)
        timer = threading.Timer(0.2, gate.set)
        timer.start()
        of.factor()
        timer.join()
        x = of.solve(b)
        near((wide(a) @ wide(x) - b)[:, None], norm(a) * norm(x[:, None]), 6, kind, "behind a held stream")
        graph, side, x = P(), scope.array(b), scope.zeros(6, np.float64)
        library.runtime("cudaStreamBeginCapture", stream, 0)
        status = library.status("cusolverSpDcsrqrSolve", sparse.handle, 6, 6, side.at, x.at, of.info, of.area)
        library.cudart.cudaStreamEndCapture(stream, ctypes.byref(graph))
        assert status != OK, "a call that waits was captured"
        library("cusolverSpSetStream", sparse.handle, None)
        library.runtime("cudaStreamDestroy", stream)
        of.close()
    sparse.close()
    return count + 2
