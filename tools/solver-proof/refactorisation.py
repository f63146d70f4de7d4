"""cuSolverRF: factors of matrices that have the pattern of one that SciPy's SuperLU has factored, by elimination in NumPy's widest
numbers and by what they leave."""

import ctypes

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from draw import BOUND, near, norm, wide
from library import INVALID, NOT_INITIALIZED, OK, Scope
from sparse import P, Type, at, grid

ZERO_PIVOT = 10
BY_ROWS, BY_COLUMNS = 0, 1
# Which diagonal is of ones, and whether it is stored.
STORED_L, STORED_U, ASSUMED_L, ASSUMED_U = range(4)
real = ctypes.c_double


def i32(of):
    return np.array(of, np.int32)


def drawn(rng, n, density):
    kept = (rng.random((n, n)) < density) | np.eye(n, dtype=bool)
    a = np.where(kept, rng.standard_normal((n, n)), 0)
    return a + np.where(np.eye(n, dtype=bool), 3 * np.sign(a.diagonal() + 0.1), 0), kept


class Factored:
    """A matrix and SuperLU's factors with their orders, as `A(p, q) = L·U`, in the arrays that calls take."""

    def __init__(self, a, kept, form=BY_ROWS, diagonal=STORED_L, natural=False):
        self.a, self.kept, self.n, self.form = a, kept, len(a), form
        options = {"permc_spec": "NATURAL", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}} if natural else {}
        lu = splu(scipy.sparse.csc_matrix(a), **options)
        self.p, self.q = i32(np.argsort(lu.perm_r)), i32(np.argsort(lu.perm_c))
        l, u = lu.L.toarray(), lu.U.toarray()
        has_l, has_u = l != 0, u != 0
        if diagonal in (STORED_U, ASSUMED_U):
            pivots = u.diagonal().copy()
            l, u = l * pivots, u / pivots[:, None]
        if diagonal == ASSUMED_L:
            has_l &= ~np.eye(self.n, dtype=bool)
        if diagonal == ASSUMED_U:
            has_u &= ~np.eye(self.n, dtype=bool)
        self.A, self.L, self.U = self.lines(a, kept), self.lines(l, has_l), self.lines(u, has_u)

    def lines(self, of, kept):
        """By rows, or by columns."""
        if self.form == BY_COLUMNS:
            of, kept = of.T, kept.T
        counts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        rows, columns = np.nonzero(kept)
        return i32(counts), i32(columns), np.ascontiguousarray(of[rows, columns])

    def values(self, a):
        return self.lines(a, self.kept)[2]

    def host(self, values=None):
        (s, c, v), (ls, lc, lv), (us, uc, uv) = self.A, self.L, self.U
        self.held = v if values is None else values
        at_values = at(self.held) if isinstance(self.held, np.ndarray) else self.held
        return [self.n, len(c), at(s), at(c), at_values, len(lc), at(ls), at(lc), at(lv), len(uc), at(us), at(uc), at(uv), at(self.p), at(self.q)]

    def device(self, scope):
        flat = [scope.array(array) for part in (self.A, self.L, self.U) for array in part]
        p, q = scope.array(self.p), scope.array(self.q)
        counts = [len(part[1]) for part in (self.A, self.L, self.U)]
        made = [self.n]
        for number, count in enumerate(counts):
            made += [count, *(array.at for array in flat[3 * number:3 * number + 3])]
        return made + [p.at, q.at]


def eliminated(a, zero=0.0, boost=0.0):
    """L and U without exchanges, in NumPy's widest numbers."""
    u, n = wide(a).real.copy(), len(a)
    l = np.eye(n, dtype=u.dtype)
    for k in range(n):
        if abs(u[k, k]) <= zero and boost > 0:
            u[k, k] = boost
        for i in range(k + 1, n):
            l[i, k] = u[i, k] / u[k, k]
            u[i] -= l[i, k] * u[k]
            u[i, k] = 0
    return l, u


def create(library):
    handle = P()
    library("cusolverRfCreate", ctypes.byref(handle))
    return handle


libc = ctypes.CDLL(None)
libc.free.argtypes = [P]


def taken(library, name, handle, parts, n):
    """Matrices that a call gives in memory of the C library's, as starts, indices and values."""
    counts = [ctypes.c_int(-7) for _ in range(parts)]
    pointers = [[P(), P(), P()] for _ in range(parts)]
    arguments = [ctypes.byref(it) for count, three in zip(counts, pointers) for it in (count, *three)]
    library(name, handle, *arguments)
    made = []
    for count, (starts, indices, values) in zip(counts, pointers):
        read = lambda pointer, kind, size: np.array((kind * size).from_address(pointer.value)[:]) if size else np.zeros(0)
        made.append((read(starts, ctypes.c_int, n + 1), read(indices, ctypes.c_int, count.value), read(values, real, count.value)))
        for pointer in (starts, indices, values):
            libc.free(pointer)
    return made


def dense(lines, n, form):
    starts, indices, values = lines
    made, seen = np.zeros((n, n)), np.zeros((n, n), bool)
    for line in range(n):
        part = slice(starts[line], starts[line + 1])
        assert (np.diff(indices[part]) > 0).all(), "entries are not in order"
        made[line, indices[part].astype(int)] = values[part]
        seen[line, indices[part].astype(int)] = True
    return (made.T, seen.T) if form == BY_COLUMNS else (made, seen)


def check_factors(library, handle, given, a, form, diagonal, kind, what):
    """That the factors' product is the matrix. They themselves may be far from the exact ones: nobody exchanges rows, so a matrix whose
    pivots come close to nothing is one whose factors change much with each rounding."""
    n, b = given.n, a[np.ix_(given.p, given.q)]
    l, u = eliminated(b)
    scale = float(norm(np.abs(l) @ np.abs(u)))
    (bundle,) = taken(library, "cusolverRfExtractBundledFactorsHost", handle, 1, n)
    m, seen = dense(bundle, n, form)
    near(wide(np.tril(m, -1) + np.eye(n)) @ wide(np.triu(m)) - b, scale, n, kind, f"{what}: the bundle")
    assert seen.sum() == len(bundle[1]), what
    lower, upper = taken(library, "cusolverRfExtractSplitFactorsHost", handle, 2, n)
    (lower, has_l), (upper, has_u) = dense(lower, n, form), dense(upper, n, form)
    if diagonal in (ASSUMED_L, ASSUMED_U):
        assert not (has_l if diagonal == ASSUMED_L else has_u).diagonal().any(), f"{what}: a diagonal that is not stored"
        (lower if diagonal == ASSUMED_L else upper)[np.diag_indices(n)] = 1
    units = upper if diagonal in (STORED_U, ASSUMED_U) else lower
    assert (units.diagonal() == 1).all(), f"{what}: which diagonal is of ones"
    near(wide(lower) @ wide(upper) - b, scale, n, kind, f"{what}: the factors")
    assert not np.triu(lower, 1).any() and not np.tril(upper, -1).any(), what
    return bundle


def solved(library, scope, handle, given, b):
    p, q, temp, x = scope.array(given.p), scope.array(given.q), scope.zeros(given.n, np.float64), scope.array(b)
    library("cusolverRfSolve", handle, p.at, q.at, 1, temp.at, given.n, x.at, given.n)
    return x.get()


def factors(library, rng):
    count, kind = 0, Type("D")
    for n, density in ((1, 1.0), (2, 1.0), (6, 0.5), (25, 0.2), (60, 0.1), (64, None)):
        for form in (BY_ROWS, BY_COLUMNS):
            for diagonal in range(4):
                with Scope(library) as scope:
                    what = f"Rf {n} {density} format {form} {diagonal}"
                    a, kept = drawn(rng, n, density) if density else (grid(8), grid(8) != 0)
                    given, handle = Factored(a, kept, form, diagonal), create(library)
                    library("cusolverRfSetMatrixFormat", handle, form, diagonal)
                    if rng.integers(2):
                        library("cusolverRfSetResetValuesFastMode", handle, 1)
                    algorithms = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 2), (2, 3))[int(rng.integers(6))]
                    library("cusolverRfSetAlgs", handle, *algorithms)
                    if rng.integers(2):
                        library("cusolverRfSetupHost", *given.host(), handle)
                    else:
                        library("cusolverRfSetupDevice", *given.device(scope), handle)
                    library("cusolverRfAnalyze", handle)
                    shown = None
                    for turn in range(3):
                        if turn:
                            a = np.where(kept, given.a * (1 + 0.1 * rng.standard_normal((n, n))), 0)
                            s, c, v = (scope.array(array) for array in (*given.A[:2], given.values(a)))
                            p, q = scope.array(given.p), scope.array(given.q)
                            library("cusolverRfResetValues", n, len(given.A[1]), s.at, c.at, v.at, p.at, q.at, handle)
                        library("cusolverRfRefactor", handle)
                        bundle = check_factors(library, handle, given, a, form, diagonal, kind, f"{what} {turn}")
                        b = rng.standard_normal(n)
                        x = solved(library, scope, handle, given, b)
                        l, u = eliminated(a[np.ix_(given.p, given.q)])
                        near((wide(a) @ x - b)[:, None], norm(np.abs(l) @ np.abs(u)) * norm(x[:, None]), n, kind, f"{what} {turn}: solve")
                        # What kernels see is what the host was given, and goes with the factors.
                        entries, pointers = ctypes.c_int(-7), [P(), P(), P()]
                        library("cusolverRfAccessBundledFactorsDevice", handle, ctypes.byref(entries), *map(ctypes.byref, pointers))
                        assert entries.value == len(bundle[1]) and (shown is None or shown == [at_.value for at_ in pointers]), what
                        shown = [at_.value for at_ in pointers]
                        for at_, array in zip(pointers, bundle):
                            array = array.astype(np.float64 if array is bundle[2] else np.int32)
                            copy = np.zeros_like(array)
                            library.runtime("cudaMemcpy", P(copy.ctypes.data), at_, ctypes.c_size_t(copy.nbytes), 2)
                            assert (copy == array).all(), f"{what}: the device's factors"
                        # A second time is the same.
                        library("cusolverRfRefactor", handle)
                        assert (taken(library, "cusolverRfExtractBundledFactorsHost", handle, 1, n)[0][2] == bundle[2]).all(), what
                        assert (solved(library, scope, handle, given, b) == x).all(), what
                    library("cusolverRfDestroy", handle)
                    count += 1
    # Entries that a caller left out of its factors, because they came to nothing in the first matrix, are there in the next one.
    a = np.array([[1.0, 1, 1], [1, 2, 1], [1, 1, 3]])
    kept = np.ones((3, 3), bool)
    given, handle = Factored(a, kept, natural=True), create(library)
    assert len(given.L[1]) + len(given.U[1]) < 12, "nothing came to nothing"
    library("cusolverRfSetupHost", *given.host(), handle)
    with Scope(library) as scope:
        a = np.array([[1.0, 1, 2], [1, 2, 1], [2, 1, 3]])
        s, c, v, p, q = (scope.array(array) for array in (*given.A[:2], given.values(a), given.p, given.q))
        library("cusolverRfResetValues", 3, 9, s.at, c.at, v.at, p.at, q.at, handle)
        library("cusolverRfRefactor", handle)
        check_factors(library, handle, given, a, BY_ROWS, STORED_L, kind, "what came to nothing")
    library("cusolverRfDestroy", handle)
    return count + 1


def pivots(library, rng):
    """Pivots that are none, and what is put in their places."""
    count = 0
    a = np.array([[4.0, 1, 0, 0], [1, 5, 2, 0], [0, 2, 6, 1], [3, 0, 1, 7]])
    given = Factored(a, np.ones((4, 4), bool), natural=True)
    assert (given.p == np.arange(4)).all() and (given.q == np.arange(4)).all()
    report, kind = ctypes.c_int(-7), Type("D")
    for zero, boost, left, status, used in ((0, 0, 0.0, ZERO_PIVOT, 0), (0, 0.5, 0.0, OK, 1), (1e-3, 0, 1e-5, ZERO_PIVOT, 0), (1e-3, 0.5, 1e-5, OK, 1),
                                            (1e-3, 0.5, -1e-5, OK, 1), (0, 0.5, 1e-5, OK, 0), (0, 0, 1e-5, OK, 0), (1e-3, 0.5, 2e-3, OK, 0)):
        with Scope(library) as scope:
            what, handle = f"Rf zero {zero} boost {boost} of {left}", create(library)
            library("cusolverRfSetNumericProperties", handle, real(zero), real(boost))
            library("cusolverRfSetupHost", *given.host(), handle)
            library("cusolverRfAnalyze", handle)
            b = a.copy()
            b[1, 1] = b[1, 0] * b[0, 1] / b[0, 0] + left
            s, c, v, p, q = (scope.array(array) for array in (*given.A[:2], given.values(b), given.p, given.q))
            library("cusolverRfResetValues", 4, len(given.A[1]), s.at, c.at, v.at, p.at, q.at, handle)
            found = library.status("cusolverRfRefactor", handle)
            assert found == status, f"{what}: {found}"
            library("cusolverRfGetNumericBoostReport", handle, ctypes.byref(report))
            assert report.value == used, f"{what}: a report of {report.value}"
            if status == OK:
                l, u = eliminated(b, zero, boost)
                m, _ = dense(taken(library, "cusolverRfExtractBundledFactorsHost", handle, 1, 4)[0], 4, BY_ROWS)
                near(m - (l - np.eye(4) + u), norm(np.abs(l) @ np.abs(u)), 4, kind, what)
                if used:
                    assert m[1, 1] == boost, f"{what}: {m[1, 1]}"
            library("cusolverRfDestroy", handle)
            count += 1
    return count


def batches(library, rng):
    count, kind = 0, Type("D")
    for n, batch, form in ((1, 1, BY_ROWS), (6, 4, BY_COLUMNS), (30, 7, BY_ROWS), (64, 3, BY_ROWS)):
        with Scope(library) as scope:
            a, kept = drawn(rng, n, 0.3) if n < 64 else (grid(8), grid(8) != 0)
            given, handle = Factored(a, kept, form), create(library)
            library("cusolverRfSetMatrixFormat", handle, form, STORED_L)
            several = lambda: [a if i == 0 else np.where(kept, a * (1 + 0.1 * rng.standard_normal((n, n))), 0) for i in range(batch)]
            all_ = several()
            values = [given.values(one) for one in all_]
            pointers = np.array([one.ctypes.data for one in values], np.uint64)
            position = np.full(batch, -7, np.int32)
            library("cusolverRfBatchSetupHost", batch, *given.host(pointers), handle)
            library("cusolverRfBatchAnalyze", handle)
            for turn in range(2):
                what = f"Rf batch {n} {batch} {turn}"
                if turn:
                    all_ = several()
                    broken = batch > 2 and n > 1
                    if broken:
                        # Nothing is left of the first pivot.
                        all_[1] = all_[1].copy()
                        all_[1][given.p[0], given.q[0]] = 0
                    there = [scope.array(given.values(one)) for one in all_]
                    list_ = scope.array(np.array([one.at.value for one in there], np.uint64))
                    s, c, p, q = (scope.array(array) for array in (*given.A[:2], given.p, given.q))
                    library("cusolverRfBatchResetValues", batch, n, len(given.A[1]), s.at, c.at, list_.at, p.at, q.at, handle)
                else:
                    broken = False
                library("cusolverRfBatchRefactor", handle)
                status = library.status("cusolverRfBatchZeroPivot", handle, at(position))
                assert status == (ZERO_PIVOT if broken else OK), f"{what}: {status}"
                assert all(position[i] == (0 if broken and i == 1 else -1) for i in range(batch)), f"{what}: {position}"
                sides = [rng.standard_normal(n) for _ in range(batch)]
                x = [scope.array(side) for side in sides]
                list_ = scope.array(np.array([one.at.value for one in x], np.uint64))
                p, q, temp = scope.array(given.p), scope.array(given.q), scope.zeros(2 * batch * n, np.float64)
                library("cusolverRfBatchSolve", handle, p.at, q.at, 1, temp.at, n, list_.at, n)
                for i, (one, side, solution) in enumerate(zip(all_, sides, x)):
                    if broken and i == 1:
                        continue
                    l, u = eliminated(one[np.ix_(given.p, given.q)])
                    solution = solution.get()
                    near((wide(one) @ solution - side)[:, None], norm(np.abs(l) @ np.abs(u)) * norm(solution[:, None]), n, kind, what)
                count += 1
            library("cusolverRfDestroy", handle)
    return count


def refusals(library, rng):
    """What a handle says of itself, and what is wrong with calls."""
    handle, a, b, count = create(library), ctypes.c_int(-7), ctypes.c_int(-7), 0
    first, second = ctypes.byref(a), ctypes.byref(b)
    zero, boost = real(-7), real(-7)
    library("cusolverRfGetNumericProperties", handle, ctypes.byref(zero), ctypes.byref(boost))
    assert (zero.value, boost.value) == (0, 0)
    for name, wanted in (("Algs", (0, 1)), ("MatrixFormat", (0, 0))):
        library("cusolverRfGet" + name, handle, first, second)
        assert (a.value, b.value) == wanted, f"{name}: {a.value}, {b.value}"
    for name in ("ResetValuesFastMode", "NumericBoostReport"):
        library("cusolverRfGet" + name, handle, first)
        assert a.value == 0, name
    # As NVIDIA's library answers (12.4).
    for f, s, wanted in ((0, 1, OK), (0, 2, OK), (0, 3, OK), (1, 1, INVALID), (1, 2, OK), (1, 3, OK), (2, 1, INVALID), (2, 2, OK), (2, 3, OK), (3, 1, INVALID),
                         (0, 4, INVALID), (0, 0, INVALID)):
        status = library.status("cusolverRfSetAlgs", handle, f, s)
        assert status == wanted, f"SetAlgs {f} {s}: {status}"
        count += 1
    library("cusolverRfGetAlgs", handle, first, second)
    assert (a.value, b.value) == (2, 3)
    for form, diagonal, wanted in ((0, 4, INVALID), (2, 0, INVALID), (1, 3, OK), (0, 0, OK)):
        status = library.status("cusolverRfSetMatrixFormat", handle, form, diagonal)
        assert status == wanted, f"SetMatrixFormat {form} {diagonal}: {status}"
    for mode, wanted in ((2, INVALID), (1, OK), (0, OK)):
        assert library.status("cusolverRfSetResetValuesFastMode", handle, mode) == wanted
    for pair, wanted in (((-1, 0), INVALID), ((0, -1), INVALID), ((0.5, 2), OK), ((0, 0), OK)):
        assert library.status("cusolverRfSetNumericProperties", handle, *map(real, pair)) == wanted, pair
    assert library.status("cusolverRfCreate", None) == INVALID
    with Scope(library) as scope:
        matrix, kept = drawn(rng, 5, 0.6)
        given = Factored(matrix, kept)
        good = [*given.host(), handle]
        entries = len(given.A[1])
        p, q, t, x = (scope.array(array) for array in (given.p, given.q, np.zeros(5), np.ones(5)))
        s, c, v = (scope.array(array) for array in given.A)
        list_ = scope.array(np.array([v.at.value], np.uint64))
        solve = [handle, p.at, q.at, 1, t.at, 5, x.at, 5]
        reset = [5, entries, s.at, c.at, v.at, p.at, q.at, handle]
        numbers = [ctypes.byref(ctypes.c_int()) for _ in range(2)]
        pointers = [ctypes.byref(P()) for _ in range(6)]
        bundle = [handle, numbers[0], *pointers[:3]]
        # Before a matrix is set up there is nothing to be done.
        for name, arguments in (("Analyze", [handle]), ("Refactor", [handle]), ("Solve", solve), ("ResetValues", reset), ("BatchAnalyze", [handle]),
                                ("BatchRefactor", [handle]), ("ExtractBundledFactorsHost", bundle), ("AccessBundledFactorsDevice", bundle),
                                ("ExtractSplitFactorsHost", [handle, numbers[0], *pointers[:3], numbers[1], *pointers[3:]])):
            status = library.status("cusolverRf" + name, *arguments)
            assert status == NOT_INITIALIZED, f"{name} before a matrix is set up: {status}"
            for none in (None, P(0x1234560)):
                changed = [none if argument is handle else argument for argument in arguments]
                assert library.status("cusolverRf" + name, *changed) == NOT_INITIALIZED, f"{name} of a handle that is none"
            count += 1
        high, twice, short = i32([0, 1, 2, 3, 5]), i32([0, 1, 2, 2, 4]), given.A[0].copy()
        short[-1] -= 1
        for wrong in ({0: -1}, {0: 0}, {1: -1}, {1: entries - 1}, {2: None}, {3: None}, {4: None}, {5: -1}, {6: None}, {7: None}, {8: None}, {9: -1},
                      {10: None}, {11: None}, {12: None}, {13: None}, {14: None}, {13: at(high)}, {13: at(twice)}, {14: at(twice)}, {2: at(short)},
                      {5: good[9], 6: good[10], 7: good[11], 8: good[12]}):
            arguments = [wrong.get(i, argument) for i, argument in enumerate(good)]
            status = library.status("cusolverRfSetupHost", *arguments)
            assert status == INVALID, f"SetupHost {wrong}: {status}"
            count += 1
        library("cusolverRfSetupHost", *good)
        status = library.status("cusolverRfSolve", *solve)
        assert status == INVALID, f"Solve of what was not factored: {status}"
        library("cusolverRfRefactor", handle)
        for wrong in ({1: None}, {2: None}, {3: 0}, {3: 2}, {4: None}, {5: 4}, {6: None}, {7: 4}):
            arguments = [wrong.get(i, argument) for i, argument in enumerate(solve)]
            status = library.status("cusolverRfSolve", *arguments)
            assert status == INVALID, f"Solve {wrong}: {status}"
            count += 1
        assert (x.get() == 1).all(), "a refused call wrote"
        other, order = scope.array(np.roll(given.A[1], 1)), scope.array(np.roll(given.p, 1))
        for wrong in ({0: 4}, {1: entries - 1}, {2: None}, {3: None}, {4: None}, {5: None}, {6: None}, {3: other.at}, {5: order.at}):
            arguments = [wrong.get(i, argument) for i, argument in enumerate(reset)]
            status = library.status("cusolverRfResetValues", *arguments)
            assert status == INVALID, f"ResetValues {wrong}: {status}"
            count += 1
        for name, arguments in (("BatchAnalyze", [handle]), ("BatchRefactor", [handle]), ("BatchZeroPivot", [handle, first]),
                                ("BatchResetValues", [1, 5, entries, s.at, c.at, list_.at, p.at, q.at, handle]),
                                ("BatchSolve", [*solve[:6], list_.at, 5])):
            status = library.status("cusolverRf" + name, *arguments)
            assert status == INVALID, f"{name} of one matrix: {status}"
        for size in (0, -1):
            values = np.array([given.A[2].ctypes.data], np.uint64)
            status = library.status("cusolverRfBatchSetupHost", size, *given.host(values), handle)
            assert status == INVALID, f"a batch of {size}: {status}"
    library("cusolverRfDestroy", handle)
    assert library.status("cusolverRfDestroy", handle) == NOT_INITIALIZED
    assert library.status("cusolverRfDestroy", None) == NOT_INITIALIZED
    return count + 12
