"""Systems of sparse matrices, by LU, QR and Cholesky: on the device and on the host, each base, each order."""

import ctypes
import threading
from pathlib import Path

import numpy as np

from draw import near, norm, numbers, wide
from library import INVALID, NOT_INITIALIZED, TYPES, Scope

P = ctypes.c_void_p
NOT_GENERAL = 8
REAL = {"S": ctypes.c_float, "D": ctypes.c_double, "C": ctypes.c_float, "Z": ctypes.c_double}


class Sparse:
    """A handle of cuSolverSP, and a descriptor of the cuSPARSE beside the library."""

    def __init__(self, library):
        self.library, self.handle, self.descr = library, P(), P()
        self.cusparse = ctypes.CDLL(str(Path(library.own._name).parent / "libcusparse.so.12"))
        library("cusolverSpCreate", ctypes.byref(self.handle))
        assert self.cusparse.cusparseCreateMatDescr(ctypes.byref(self.descr)) == 0

    def base(self, base):
        assert self.cusparse.cusparseSetMatIndexBase(self.descr, base) == 0

    def close(self):
        assert self.cusparse.cusparseDestroyMatDescr(self.descr) == 0
        self.library("cusolverSpDestroy", self.handle)


class Type:
    """What `draw` asks of a type."""

    def __init__(self, letter):
        self.letter, (_, self.dtype, self.real) = letter, TYPES[letter]
        self.eps = np.finfo(self.real).eps


def rows(a, kept, base, rng, shuffled=False):
    """A matrix by rows, of the entries that are kept; their order in a row is anybody's."""
    starts, columns, values = [base], [], []
    for i in range(len(a)):
        places = np.flatnonzero(kept[i])
        if shuffled:
            rng.shuffle(places)
        columns += [int(j) + base for j in places]
        values += [a[i, j] for j in places]
        starts.append(len(columns) + base)
    return np.array(starts, np.int32), np.array(columns, np.int32), np.array(values, a.dtype)


def at(array):
    return P(array.ctypes.data)


def solve(sparse, scope, kind, routine, csr, b, tol=0.0, reorder=0, device=True):
    """The solution, and the column that is told."""
    starts, columns, values = csr
    singularity = ctypes.c_int(-77)
    real = REAL[kind.letter](tol)
    n, entries = len(b), len(columns)
    name = f"cusolverSp{kind.letter}csrlsv{routine}" + ("" if device else "Host")
    if device:
        given = [scope.array(array) for array in (values, starts, columns, b)]
        x = scope.array(np.full(n, 7, kind.dtype))
        sparse.library(name, sparse.handle, n, entries, sparse.descr, *(array.at for array in given), real, reorder, x.at,
                       ctypes.byref(singularity))
        # The call has waited for its result.
        return x.get(), singularity.value
    x = np.full(n, 7, kind.dtype)
    sparse.library(name, sparse.handle, n, entries, sparse.descr, at(values), at(starts), at(columns), at(b), real, reorder,
                   at(x), ctypes.byref(singularity))
    return x, singularity.value


def drawn(rng, n, density, kind):
    """A matrix that is well enough conditioned, some of its diagonal too small to be a pivot, and which entries are stored."""
    a = numbers(rng, (n, n), kind)
    kept = rng.random((n, n)) < density
    order = rng.permutation(n)
    kept[np.arange(n), order] = True
    a = np.where(kept, a, 0)
    a[np.arange(n), order] += 4 * np.sign(a[np.arange(n), order].real + 0.5) * np.sqrt(1 + density * n)
    return a.astype(kind.dtype), kept


def grid(side):
    """Five points of a square grid: what orders are for."""
    line = 2 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    return np.kron(line, np.eye(side)) + np.kron(np.eye(side), line)


CALLS = (("qr", True), ("qr", False), ("chol", True), ("chol", False), ("lu", False))


def systems(library, rng):
    sparse, count = Sparse(library), 0
    for letter in TYPES:
        kind = Type(letter)
        cases = [(n, density) for n in (1, 2, 5, int(rng.integers(8, 40))) for density in (0.1, 0.4, 1.0)]
        cases += [(int(rng.integers(100, 200)), 0.03), (150, 0.5), (0, 1.0)]
        for n, density in cases:
            a, kept = drawn(rng, n, density, kind)
            positive = a @ a.conj().T / max(norm(a), 1) + np.eye(n)
            positive = ((positive + positive.conj().T) / 2).astype(kind.dtype)
            b = numbers(rng, n, kind).astype(kind.dtype)
            for routine, device in CALLS:
                matrix, entries = (positive, positive != 0) if routine == "chol" else (a, kept)
                # The upper triangle's numbers are nobody's, and need not be there.
                stored = matrix.copy()
                if routine == "chol":
                    stored[np.triu(np.ones((n, n), bool), 1)] = 1000
                    if n % 2:
                        entries = np.tril(entries)
                base, reorder = int(rng.integers(2)), int(rng.integers(4))
                sparse.base(base)
                with Scope(library) as scope:
                    csr = rows(stored, entries, base, rng, bool(rng.integers(2)))
                    x, singular = solve(sparse, scope, kind, routine, csr, b, 0.0, reorder, device)
                what = f"{letter}csrlsv{routine} {n} {density} base {base} order {reorder} device {device}"
                assert singular == -1, f"{what}: {singular}"
                near((wide(matrix) @ wide(x) - b)[:, None], norm(matrix) * norm(x[:, None]), n, kind, what)
                count += 1
    # Large enough for work in blocks, and for more than one core.
    kind, a = Type("D"), grid(30)
    b = numbers(rng, len(a), kind)
    for routine, device in CALLS:
        for reorder in (0, 1):
            sparse.base(0)
            with Scope(library) as scope:
                x, singular = solve(sparse, scope, kind, routine, rows(a, a != 0, 0, rng), b, 0.0, reorder, device)
            assert singular == -1
            near((wide(a) @ wide(x) - b)[:, None], norm(a) * norm(x[:, None]), len(a), kind, f"grid {routine} {reorder}")
            count += 1
    sparse.close()
    return count


def singular(library, rng):
    """Which column is told of matrices that are singular, and that a bound tells of what is solved all the same."""
    sparse, count = Sparse(library), 0
    sparse.base(1)
    for letter in TYPES:
        kind = Type(letter)
        for n in (2, 7, 40, 130):
            a, _ = drawn(rng, n, 0.3, kind)
            all_, b = np.ones((n, n), bool), numbers(rng, n, kind).astype(kind.dtype)
            column = int(rng.integers(1, n))
            twice = a.copy()
            twice[:, column] = a[:, 0]
            empty = a.copy()
            empty[:, column] = 0
            for routine, device in CALLS:
                with Scope(library) as scope:
                    call = lambda matrix, tol, kept=all_, reorder=0: solve(
                        sparse, scope, kind, routine, rows(matrix, kept, 1, rng), b, tol, reorder, device)
                    what = f"{letter}csrlsv{routine} {n} device {device}"
                    if routine == "chol":
                        positive = (a @ a.conj().T / norm(a) + np.eye(n)).astype(kind.dtype)
                        broken = positive.copy()
                        broken[column, column] = -1
                        x, told = call(broken, 0.0)
                        assert told == column, f"{what}: {told} for {column}"
                        assert (x == 7).all(), f"{what}: there is no factorization, and a solution"
                        a_ = positive
                    else:
                        # As the manual has it: a column that is there twice, and one without entries.
                        _, told = call(twice, 1e-4)
                        assert told == column, f"{what}: {told} for {column}, twice"
                        _, told = call(empty, 0.0, empty != 0)
                        assert told == column, f"{what}: {told} for {column}, without entries"
                        _, told = call(empty, 0.0)
                        assert told == column, f"{what}: {told} for {column}, of zeros"
                        _, told = call(empty, 0.0, empty != 0, 1)
                        assert told != -1, f"{what}: not told in another order"
                        a_ = a
                    # All pivots are below such a bound, and the system is solved.
                    x, told = call(a_, 1e6)
                    assert told == 0, f"{what}: {told}"
                    near((wide(a_) @ wide(x) - b)[:, None], norm(a_) * norm(x[:, None]), n, kind, what)
                    count += 1
    sparse.close()
    return count


def refusals(library, rng):
    """What is wrong with calls, which then write nothing; the order of a stream."""
    sparse, kind, count = Sparse(library), Type("D"), 0
    sparse.base(0)
    a, kept = drawn(rng, 6, 0.5, kind)
    b = numbers(rng, 6, kind)
    with Scope(library) as scope:
        starts, columns, values = rows(a, kept, 0, rng)
        far, back = columns.copy(), starts.copy()
        far[3], back[2] = 6, 0
        back[1] = 5
        S, C, V, B, F, K = (scope.array(array) for array in (starts, columns, values, b, far, back))
        x, told = scope.array(np.full(6, 7.0)), ctypes.c_int(-77)
        good = [6, len(columns), sparse.descr, V.at, S.at, C.at, B.at, ctypes.c_double(0), 0, x.at, ctypes.byref(told)]
        wrong = [{0: -1}, {1: -1}, {2: None}, {2: P(0x1234560)}, {3: None}, {4: None}, {5: None}, {6: None}, {8: 4}, {8: -1},
                 {9: None}, {10: None}, {5: F.at}, {4: K.at}, {1: len(columns) - 1}, {0: 5}]
        for name in ("csrlsvqr", "csrlsvchol"):
            for none in (None, P(0x1234560)):
                status = library.status("cusolverSpD" + name, none, *good)
                assert status == NOT_INITIALIZED, f"{name}: a handle that is none: {status}"
            for changed in wrong:
                arguments = [changed.get(i, argument) for i, argument in enumerate(good)]
                status = library.status("cusolverSpD" + name, sparse.handle, *arguments)
                assert status == INVALID, f"{name} {changed}: {status}"
                count += 1
            for type_ in (1, 2, 3):
                assert sparse.cusparse.cusparseSetMatType(sparse.descr, type_) == 0
                status = library.status("cusolverSpD" + name, sparse.handle, *good)
                assert status == NOT_GENERAL, f"{name} of type {type_}: {status}"
            assert sparse.cusparse.cusparseSetMatType(sparse.descr, 0) == 0
        assert told.value == -77 and (x.get() == 7).all(), "a refused call wrote"
        # Behind a stream that is held, the right side comes late; a capture is refused.
        stream, other, late = P(), P(), scope.array(np.zeros(6))
        library.runtime("cudaStreamCreate", ctypes.byref(stream))
        library("cusolverSpSetStream", sparse.handle, stream)
        library("cusolverSpGetStream", sparse.handle, ctypes.byref(other))
        assert other.value == stream.value
        gate = threading.Event()
        hold = ctypes.CFUNCTYPE(None, P)(lambda _: gate.wait(30))
        library.runtime("cudaLaunchHostFunc", stream, hold, None)
        library.runtime("cudaMemcpyAsync", late.at, B.at, ctypes.c_size_t(48), 3, stream)
        timer = threading.Timer(0.2, gate.set)
        timer.start()
        good[6] = late.at
        library("cusolverSpDcsrlsvqr", sparse.handle, *good)
        timer.join()
        assert told.value == -1
        near((wide(a) @ wide(x.get()) - b)[:, None], norm(a) * norm(x.get()[:, None]), 6, kind, "behind a held stream")
        graph = P()
        library.runtime("cudaStreamBeginCapture", stream, 0)
        status = library.status("cusolverSpDcsrlsvqr", sparse.handle, *good)
        library.cudart.cudaStreamEndCapture(stream, ctypes.byref(graph))
        assert status != 0, "a call that waits was captured"
        library("cusolverSpSetStream", sparse.handle, None)
        library.runtime("cudaStreamDestroy", stream)
    handle = sparse.handle
    sparse.close()
    assert library.status("cusolverSpDestroy", handle) == NOT_INITIALIZED
    assert library.status("cusolverSpCreate", None) == INVALID
    return count + 8


def entries_below(a):
    """How many a Cholesky factor of a pattern has."""
    filled = np.tril(a != 0)
    for i in range(len(filled)):
        below = np.flatnonzero(filled[i + 1:, i]) + i + 1
        filled[np.ix_(below, below)] = True
        filled = np.tril(filled)
    return int(filled.sum())


def orders(library, rng):
    """Orders of rows and columns: each is one, and does what it is for."""
    sparse, count, kind = Sparse(library), 0, Type("D")
    for side in (0, 1, 2, 7, 12):
        n, base = side * side, int(rng.integers(2))
        sparse.base(base)
        shuffle = rng.permutation(n)
        a = grid(side)[np.ix_(shuffle, shuffle)] if side else np.zeros((0, 0))
        starts, columns, values = rows(a, a != 0, base, rng, shuffled=True)
        given = (n, len(columns), sparse.descr, at(starts), at(columns))
        for name in ("symrcm", "symmdq", "symamd", "metisnd"):
            order = np.full(n, -7, np.int32)
            options = (None,) if name == "metisnd" else ()
            library(f"cusolverSpXcsr{name}Host", sparse.handle, *given, *options, at(order))
            assert (np.sort(order) == np.arange(n)).all(), f"{name}: {order}"
            ordered = a[np.ix_(order, order)]
            if name == "symrcm" and n:
                far = np.abs(np.subtract(*np.nonzero(ordered))).max()
                assert far <= 2 * side, f"symrcm: {far} beside the diagonal, of a grid {side} wide"
            elif n > 16:
                assert entries_below(ordered) < 0.9 * entries_below(a), f"{name} keeps nothing sparse"
            count += 1
        symmetric, ends = ctypes.c_int(-7), starts[1:].copy()
        library("cusolverSpXcsrissymHost", sparse.handle, *given[:4], at(ends), given[4], ctypes.byref(symmetric))
        assert symmetric.value == 1
    for letter in TYPES:
        kind = Type(letter)
        for m, n in ((0, 0), (1, 1), (5, 9), (30, 20)):
            base = int(rng.integers(2))
            sparse.base(base)
            kept = rng.random((m, n)) < 0.3
            a = np.where(kept, numbers(rng, (m, n), kind), 0).astype(kind.dtype)
            starts, columns, values = rows(a, kept, base, rng, shuffled=True)
            p, q, room = rng.permutation(m).astype(np.int32), rng.permutation(n).astype(np.int32), ctypes.c_size_t()
            given = (m, n, len(columns), sparse.descr, at(starts), at(columns), at(p), at(q))
            map_ = np.arange(len(columns), dtype=np.int32)
            library("cusolverSpXcsrperm_bufferSizeHost", sparse.handle, *given, ctypes.byref(room))
            area = np.zeros(room.value, np.uint8)
            library("cusolverSpXcsrpermHost", sparse.handle, *given, at(map_), at(area))
            made = np.zeros((m, n), kind.dtype)
            for i in range(m):
                line = slice(starts[i] - base, starts[i + 1] - base)
                assert (np.diff(columns[line]) > 0).all(), "columns are not in order"
                made[i, columns[line] - base] = values[map_[line]]
            assert (made == a[np.ix_(p, q)]).all(), f"csrperm {m} by {n}"
            count += 1
        for n in (0, 1, 6, 40):
            a, kept = drawn(rng, n, 0.1, kind)
            kept &= a != 0
            if n == 6:
                # Stored, but zero; and two rows that have one column together.
                kept[:2], a[:2] = True, 0
                a[:2, 3] = 1
            starts, columns, values = rows(a, kept, base, rng, shuffled=True)
            order, found = np.full(n, -7, np.int32), ctypes.c_int(-7)
            library(f"cusolverSp{letter}csrzfdHost", sparse.handle, n, len(columns), sparse.descr, at(values), at(starts), at(columns),
                    at(order), ctypes.byref(found))
            assert (np.sort(order) == np.arange(n)).all(), f"csrzfd: {order}"
            there = int((a[order].diagonal() != 0).sum())
            most = n if n != 6 else maximum(a)
            assert found.value == there == most, f"csrzfd: {found.value} of {most}, {there} there"
            count += 1
    starts, columns = np.array([0, 1, 2], np.int32), np.array([1, 5], np.int32)
    sparse.base(0)
    order = np.zeros(2, np.int32)
    for wrong in ((2, 2, sparse.descr, at(starts), at(columns)), (-1, 2, sparse.descr, at(starts), at(columns))):
        status = library.status("cusolverSpXcsrsymrcmHost", sparse.handle, *wrong, at(order))
        assert status == INVALID, f"csrsymrcm that is wrong: {status}"
    sparse.close()
    return count


def maximum(a):
    """How many elements of the diagonal an order of the rows can make entries, by SciPy."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching
    return int((maximum_bipartite_matching(csr_matrix(a != 0)) >= 0).sum())
