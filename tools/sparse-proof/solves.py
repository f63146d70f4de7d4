"""Systems and factorizations of bare arrays: csrsv2, csrsm2, bsrsv2, bsrsm2, bsrilu02, bsric02, and of several diagonals."""

import ctypes

import numpy as np

from bare import LETTERS, Blocks, Factor, Rows, blocks, columns, described, has, info, room, rounding, written
from draw import numbers, op
from library import H, N, T, Scope, is_complex, stored, wide
from systems import residual, triangle_of


def solves(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for upper in (0, 1):
                for unit in (0, 1):
                    for operation in (N, T, H):
                        if has(library, "cusparseScsrsv2_solve"):
                            of_rows(library, handle, rng, ty, base, upper, unit, operation)
                        of_blocks(library, handle, rng, ty, base, upper, unit, operation)
                        count += 1
    library("cusparseDestroy", handle)
    return count


def pivot(library, handle, kind, known):
    position = ctypes.c_int(77)
    return library.status(f"cusparseX{kind}_zeroPivot", handle, known, ctypes.byref(position)), position.value


def heavy(dense):
    return dense + np.diag(np.full(len(dense), 40.0))


def of_rows(library, handle, rng, ty, base, upper, unit, operation):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        n = int(rng.integers(1, 20))
        pattern = rng.random((n, n)) < 0.4
        np.fill_diagonal(pattern, True)
        i, j = np.nonzero(pattern)
        dense = heavy(numbers(rng, n * n, ty).reshape(n, n))
        a = Rows(library, scope, i, j, dense[i, j], ty, n, n, base, upper=upper, unit=unit)
        factor = Factor(library, scope, handle, rng, ty)
        alpha = 1.5 + 0.5j if is_complex(ty) else 1.5
        at = factor(alpha)
        what = f"{letter} from {base} upper {upper} unit {unit} op {operation} n {n}"
        # csrsv2
        known = info(library, scope, "Csrsv2")
        right = scope.array(stored(numbers(rng, n, ty), ty))
        x = scope.array(stored(numbers(rng, n, ty), ty))
        front, behind = (handle, operation, n, a.nnz), (a.descriptor, *a.arrays, known)
        name = f"cusparse{letter}csrsv2"
        area = room(library, scope, name + "_bufferSize", *front, *behind)
        solve = lambda: library.status(name + "_solve", *front, at, *behind, right.at, x.at, 1, area)
        assert solve() == 3, "solved without an analysis"
        library(name + "_analysis", *front, *behind, 1, area)
        assert pivot(library, handle, "csrsv2", known) == (0, -1)
        # The values that count are those of the solution.
        written(library, a.values, stored(a.wide * 2, ty))
        assert solve() == 0
        assert pivot(library, handle, "csrsv2", known) == (0, -1)
        matrix = op(triangle_of(a.dense * 2, upper, unit), operation)
        residual(matrix, wide(x.get(), ty), alpha * wide(right.values, ty), ty, "csrsv2 " + what)
        # csrsm2
        several, sides = info(library, scope, "Csrsm2"), int(rng.integers(0, 6))
        for turned in (N, T):
            b = columns(scope, rng, *((n, sides) if turned == N else (sides, n)), ty)
            first = op(b.dense, turned)
            call = (handle, int(rng.integers(2)), operation, turned, n, sides, a.nnz, at, a.descriptor, *a.arrays, b.at,
                    b.ld, several, 1)
            area = room(library, scope, f"cusparse{letter}csrsm2_bufferSizeExt", *call)
            library(f"cusparse{letter}csrsm2_analysis", *call, area)
            assert pivot(library, handle, "csrsm2", several) == (0, -1)
            library(f"cusparse{letter}csrsm2_solve", *call, area)
            library.synchronize()
            residual(matrix, op(b.get(), turned), alpha * first, ty, f"csrsm2 {turned} " + what)
        call = (handle, 0, operation, H, n, sides, a.nnz, at, a.descriptor, *a.arrays, b.at, n + sides + 9, several, 1)
        assert library.status(f"cusparse{letter}csrsm2_solve", *call, area) == 10
        # A zero on the diagonal: of the values, then of where entries are. None where the diagonal is ones.
        zero = int(rng.integers(n))
        written(library, a.values, stored(np.where((i == j) & (i >= zero), 0, a.wide), ty))
        assert solve() == 0
        assert pivot(library, handle, "csrsv2", known) == ((0, -1) if unit else (9, zero + base))
        keep = (i != j) | (i < zero)
        a = Rows(library, scope, i[keep], j[keep], a.wide[keep], ty, n, n, base, upper=upper, unit=unit)
        library(name + "_analysis", handle, operation, n, a.nnz, a.descriptor, *a.arrays, known, 0, area)
        assert pivot(library, handle, "csrsv2", known) == ((0, -1) if unit else (9, zero + base))


def of_blocks(library, handle, rng, ty, base, upper, unit, operation):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        mb, block = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        n = mb * block
        pattern = rng.random((mb, mb)) < 0.4
        np.fill_diagonal(pattern, True)
        dense = heavy(numbers(rng, n * n, ty).reshape(n, n))
        a = Blocks(library, scope, pattern, dense, ty, (block, block), int(rng.integers(2)), base, upper=upper, unit=unit)
        factor = Factor(library, scope, handle, rng, ty)
        alpha = 1.5 + 0.5j if is_complex(ty) else 1.5
        at = factor(alpha)
        what = f"{letter} from {base} upper {upper} unit {unit} op {operation} {mb} of {block}"
        known = info(library, scope, "Bsrsv2")
        right = scope.array(stored(numbers(rng, n, ty), ty))
        x = scope.array(stored(numbers(rng, n, ty), ty))
        front, behind = (handle, a.by_columns, operation, mb, a.nnzb), (a.descriptor, *a.arrays, block, known)
        name = f"cusparse{letter}bsrsv2"
        area = room(library, scope, name + "_bufferSize", *front, *behind)
        library(name + "_analysis", *front, *behind, 1, area)
        assert pivot(library, handle, "bsrsv2", known) == (0, -1)
        library(name + "_solve", *front, at, *behind, right.at, x.at, 1, area)
        assert pivot(library, handle, "bsrsv2", known) == (0, -1)
        triangle = triangle_of(a.dense, upper, unit)
        residual(op(triangle, operation), wide(x.get(), ty), alpha * wide(right.values, ty), ty, "bsrsv2 " + what)
        several, sides = info(library, scope, "Bsrsm2"), int(rng.integers(0, 6))
        for turned in (N, T):
            sizes = (n, sides) if turned == N else (sides, n)
            b, out = columns(scope, rng, *sizes, ty), columns(scope, rng, *sizes, ty)
            front, behind = (handle, a.by_columns, N, turned, mb, sides, a.nnzb), (a.descriptor, *a.arrays, block, several)
            area = room(library, scope, f"cusparse{letter}bsrsm2_bufferSize", *front, *behind)
            library(f"cusparse{letter}bsrsm2_analysis", *front, *behind, 1, area)
            library(f"cusparse{letter}bsrsm2_solve", *front, at, *behind, b.at, b.ld, out.at, out.ld, 1, area)
            assert pivot(library, handle, "bsrsm2", several) == (0, -1)
            residual(triangle, op(out.get(), turned), alpha * op(b.dense, turned), ty, f"bsrsm2 {turned} " + what)
        status = library.status(f"cusparse{letter}bsrsm2_analysis", handle, 0, T, N, mb, sides, a.nnzb, *behind, 1, area)
        assert status == 10, "bsrsm2 has no transposed matrices"
        # A block whose diagonal has a zero.
        zero = int(rng.integers(mb))
        dense[zero * block + block - 1, zero * block + block - 1] = 0
        a = Blocks(library, scope, pattern, dense, ty, (block, block), 0, base, upper=upper, unit=unit)
        front, behind = (handle, 0, operation, mb, a.nnzb), (a.descriptor, *a.arrays, block, known)
        library(name + "_solve", *front, at, *behind, right.at, x.at, 1, area)
        assert pivot(library, handle, "bsrsv2", known) == ((0, -1) if unit else (9, zero + base))


def factors(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for kind in ("bsrilu02", "bsric02"):
                for _ in range(6):
                    factor_blocks(library, handle, rng, ty, base, kind)
                    count += 1
    library("cusparseDestroy", handle)
    return count


def factor_blocks(library, handle, rng, ty, base, kind):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        library("cusparseSetPointerMode", handle, 0)
        mb, block = int(rng.integers(1, 8)), int(rng.integers(1, 5))
        n = mb * block
        pattern = rng.random((mb, mb)) < 0.3
        pattern |= pattern.T
        np.fill_diagonal(pattern, True)
        dense = numbers(rng, n * n, ty).reshape(n, n)
        # Hermitian and heavy on the diagonal: both factorizations exist.
        dense = (dense + dense.conj().T) / 2
        np.fill_diagonal(dense, 80.0)
        broken = bool(rng.integers(3) == 0)
        if broken:
            pattern[mb // 2, mb // 2] = False
        a = Blocks(library, scope, pattern, dense, ty, (block, block), int(rng.integers(2)), base)
        known = info(library, scope, kind.capitalize())
        common = (handle, a.by_columns, mb, a.nnzb, a.descriptor, *a.arrays, block, known)
        area = room(library, scope, f"cusparse{letter}{kind}_bufferSize", *common)
        library(f"cusparse{letter}{kind}_analysis", *common, 1, area)
        if broken:
            assert pivot(library, handle, kind, known) == (9, mb // 2 + base), kind
            return
        assert pivot(library, handle, kind, known) == (0, -1)
        library(f"cusparse{letter}{kind}", *common, 1, area)
        assert pivot(library, handle, kind, known) == (0, -1)
        made, full = a.read(a.values.get()), np.repeat(np.repeat(pattern, block, 0), block, 1)
        if kind == "bsrilu02":
            left, right, where = np.tril(made, -1) + np.eye(n), np.triu(made), full
        else:
            assert (made[np.triu_indices(n, 1)] == a.dense[np.triu_indices(n, 1)]).all(), "the upper triangle was written"
            left = np.tril(made)
            right, where = left.conj().T, np.tril(full)
        wrong = np.abs(left @ right - a.dense)
        bound = (n + 4) * rounding(ty) * (np.abs(left) @ np.abs(right) + np.abs(a.dense))
        assert (wrong[where] <= bound[where]).all(), f"{letter}{kind} from {base}"
        # No pivot in a row: its row of blocks is told, or pivots are boosted.
        row = int(rng.integers(n))
        diagonal = np.diag(np.where(np.arange(n) == row, 0.0, 4.0)).astype(a.dense.dtype)
        b = Blocks(library, scope, pattern, diagonal, ty, (block, block), a.by_columns, base)
        common = (handle, b.by_columns, mb, b.nnzb, b.descriptor, *b.arrays, block, known)
        library(f"cusparse{letter}{kind}", *common, 1, area)
        assert pivot(library, handle, kind, known) == (9, row // block + base), kind
        if kind == "bsrilu02":
            written(library, b.values, b.values.values)
            tolerance, value = ctypes.c_double(0.5), stored(np.array([3.0]), ty)
            library(f"cusparse{letter}bsrilu02_numericBoost", handle, known, 1, ctypes.byref(tolerance),
                    ctypes.c_void_p(value.ctypes.data))
            library(f"cusparse{letter}{kind}", *common, 1, area)
            assert pivot(library, handle, kind, known) == (0, -1)
            boosted = np.where(np.arange(n) == row, 3.0, 4.0)
            assert (np.diag(b.read(b.values.get())) == boosted).all(), "boosted"


def diagonals(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for kind, name in ((3, "gtsv2StridedBatch"), (3, "gtsvInterleavedBatch"), (5, "gpsvInterleavedBatch")):
            for algorithm in range(3 if name == "gtsvInterleavedBatch" else 1):
                for _ in range(4):
                    batch(library, handle, rng, ty, kind, name, algorithm)
                    count += 1
    library("cusparseDestroy", handle)
    return count


def batch(library, handle, rng, ty, width, name, algorithm):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        n, systems = int(rng.integers(3, 40)), int(rng.integers(1, 6))
        is_strided = name.startswith("gtsv2")
        stride = n + int(rng.integers(0, 3)) if is_strided else 1
        length = (systems - 1) * stride + n if is_strided else n * systems
        place = lambda system: system * stride + np.arange(n) if is_strided else np.arange(n) * systems + system
        parts = [wide(stored(numbers(rng, length, ty), ty), ty) for _ in range(width)]
        exchanges = width == 5 or algorithm > 0
        # Without exchanges the diagonal is heavy; with them it is not, but systems are not near to singular ones.
        if not exchanges:
            parts[width // 2] = parts[width // 2] + 9
        matrices = []
        for system in range(systems):
            dense = np.zeros((n, n), parts[0].dtype)
            for k, part in enumerate(parts):
                own = part[place(system)]
                for row in range(n):
                    if 0 <= row + k - width // 2 < n:
                        dense[row, row + k - width // 2] = own[row]
            if np.linalg.cond(dense) > 1e4:
                return
            matrices.append(dense)
        arrays = [scope.array(stored(part, ty)) for part in parts]
        x = scope.array(stored(numbers(rng, length, ty), ty))
        right = wide(x.values, ty)
        call = (*(it.at for it in arrays), x.at, systems)
        if is_strided:
            call = (handle, n, *call, stride)
        else:
            call = (handle, algorithm, n, *call)
            assert library.status(f"cusparse{letter}{name}", handle, 3, *call[2:], None) == 3, "an algorithm that is none"
        area = room(library, scope, f"cusparse{letter}{name}_bufferSizeExt", *call)
        library(f"cusparse{letter}{name}", *call, area)
        library.synchronize()
        got = wide(x.get(), ty)
        outside = np.ones(length, bool)
        for system, dense in enumerate(matrices):
            own, exact = got[place(system)], right[place(system)]
            outside[place(system)] = False
            left = np.abs(dense @ own - exact)
            bound = 200 * rounding(ty) * (np.abs(dense).sum(1).max() * np.abs(own).max() + np.abs(exact).max())
            assert left.max() <= bound, f"{letter}{name} {algorithm}: {left.max()} of {bound}"
        assert (got[outside] == right[outside]).all(), "between systems"
