"""Calls that take bare arrays: sorting, offsets, incomplete factorizations, three diagonals."""

import ctypes

import numpy as np
import scipy.linalg

from draw import coordinates, numbers
from library import ROUNDING, Scope, is_complex, size, stored, wide

LETTERS = {"r32f": "S", "r64f": "D", "c32f": "C", "c64f": "Z"}


def legacy(library, rng):
    handle, count = library.handle(), 0
    for base in (0, 1):
        for _ in range(10):
            sorting(library, handle, rng, base)
            count += 1
        for ty in LETTERS:
            for _ in range(6):
                factors(library, handle, rng, ty, base)
                count += 1
    for ty in LETTERS:
        for _ in range(8):
            tridiagonal(library, handle, rng, ty)
            count += 1
    library("cusparseDestroy", handle)
    return count


def described(library, scope, base):
    matrix = scope.made("cusparseCreateMatDescr", "cusparseDestroyMatDescr")
    library("cusparseSetMatIndexBase", matrix, base)
    return matrix


def sorting(library, handle, rng, base):
    with Scope(library) as scope:
        rows, cols = (int(it) for it in rng.integers(1, 30, 2))
        i, j = coordinates(rng, rng.choice(["random", "duplicates", "empty", "power law"]), rows, cols)
        by = rng.permutation(len(i))
        i, j, nnz = i[by], j[by], len(i)
        for name, keys in (("cusparseXcoosortByRow", (j, i)), ("cusparseXcoosortByColumn", (i, j))):
            a, b = scope.array((i + base).astype(np.int32)), scope.array((j + base).astype(np.int32))
            p, bytes_ = scope.array(np.zeros(nnz, np.int32)), size()
            library("cusparseCreateIdentityPermutation", handle, nnz, p.at)
            library("cusparseXcoosort_bufferSizeExt", handle, rows, cols, nnz, a.at, b.at, ctypes.byref(bytes_))
            library(name, handle, rows, cols, nnz, a.at, b.at, p.at, scope.room(bytes_.value))
            library.synchronize()
            order = np.lexsort(keys)
            assert (a.get() == i[order] + base).all() and (b.get() == j[order] + base).all(), name
            assert (p.get() == order).all(), name
        order = np.lexsort((j, i))
        i = i[order]
        numbers_, offsets = scope.array((i + base).astype(np.int32)), scope.array(np.zeros(rows + 1, np.int32))
        library("cusparseXcoo2csr", handle, numbers_.at, nnz, rows, offsets.at, base)
        back = scope.array(np.full(nnz, -5, np.int32))
        library("cusparseXcsr2coo", handle, offsets.at, nnz, rows, back.at, base)
        library.synchronize()
        starts = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=rows))])
        assert (offsets.get() == starts + base).all() and (back.get() == i + base).all(), "offsets"
        # Lines in any order.
        j = rng.integers(0, cols, nnz)
        for name, sizes in (("cusparseXcsrsort", (rows, cols)), ("cusparseXcscsort", (cols, rows))):
            columns, p = scope.array((j + base).astype(np.int32)), scope.array(np.arange(nnz, dtype=np.int32))
            bytes_ = size()
            library(name + "_bufferSizeExt", handle, *sizes, nnz, offsets.at, columns.at, ctypes.byref(bytes_))
            library(name, handle, *sizes, nnz, described(library, scope, base), offsets.at, columns.at, p.at,
                    scope.room(bytes_.value))
            library.synchronize()
            order = np.lexsort((j, i))
            assert (columns.get() == j[order] + base).all() and (p.get() == order).all(), name


def factors(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        n = int(rng.integers(1, 25))
        pattern = rng.random((n, n)) < 0.3
        pattern |= pattern.T
        np.fill_diagonal(pattern, True)
        dense = np.where(pattern, numbers(rng, n * n, ty).reshape(n, n), 0)
        # Hermitian and heavy on the diagonal: both factorizations exist.
        dense = (dense + dense.conj().T) / 2
        np.fill_diagonal(dense, 80.0)
        kind, broken = str(rng.choice(["csrilu02", "csric02"])), bool(rng.integers(3) == 0)
        if broken:
            # A row whose diagonal is not there.
            pattern[n // 2, n // 2] = False
        i, j = np.nonzero(pattern)
        starts = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=n))])
        values = scope.array(stored(dense[i, j], ty))
        a = wide(values.values, ty)
        offsets, columns = (scope.array((it + base).astype(np.int32)) for it in (starts, j))
        matrix = described(library, scope, base)
        info = scope.made(f"cusparseCreate{kind.capitalize()}Info", f"cusparseDestroy{kind.capitalize()}Info")
        common = (handle, n, len(i), matrix, values.at, offsets.at, columns.at, info)
        bytes_, position = ctypes.c_int(), ctypes.c_int(77)
        library(f"cusparse{letter}{kind}_bufferSize", *common, ctypes.byref(bytes_))
        room = scope.room(bytes_.value)
        library(f"cusparse{letter}{kind}_analysis", *common, 1, room)
        pivot = lambda: library.status(f"cusparseX{kind}_zeroPivot", handle, info, ctypes.byref(position))
        if broken:
            assert pivot() == 9 and position.value == n // 2 + base, (position.value, n // 2)
            return
        assert pivot() == 0 and position.value == -1
        library(f"cusparse{letter}{kind}", *common, 1, room)
        assert pivot() == 0 and position.value == -1
        made = np.zeros((n, n), a.dtype)
        made[i, j] = wide(values.get(), ty)
        rounding = ROUNDING[ty] * (4 if is_complex(ty) else 1)
        # The product of the factors is the matrix where it has entries: that is what the factorization is.
        if kind == "csrilu02":
            left, right, where = np.tril(made, -1) + np.eye(n), np.triu(made), pattern
        else:
            assert (made[np.triu_indices(n, 1)] == dense[np.triu_indices(n, 1)]).all(), "the upper triangle was written"
            left = np.tril(made)
            right, where = left.conj().T, np.tril(pattern)
        wrong = np.abs(left @ right - dense)
        bound = (n + 4) * rounding * (np.abs(left) @ np.abs(right) + np.abs(dense))
        assert (wrong[where] <= bound[where]).all(), f"{letter}{kind} from {base}: {wrong[where].max()}"
        # A pivot of 0: the first is told, or boosted.
        if kind == "csrilu02":
            zero = stored(np.where(i == j, 0, dense[i, j] * 0), ty)
            library.runtime("cudaMemcpy", values.at, ctypes.c_void_p(zero.ctypes.data), ctypes.c_size_t(zero.nbytes), 1)
            library(f"cusparse{letter}{kind}", *common, 1, room)
            assert pivot() == 9 and position.value == base, position.value
            library.runtime("cudaMemcpy", values.at, ctypes.c_void_p(zero.ctypes.data), ctypes.c_size_t(zero.nbytes), 1)
            tolerance, value = ctypes.c_double(0.5), stored(np.array([3.0]), ty)
            library(f"cusparse{letter}csrilu02_numericBoost", handle, info, 1, ctypes.byref(tolerance),
                    ctypes.c_void_p(value.ctypes.data))
            library(f"cusparse{letter}{kind}", *common, 1, room)
            assert pivot() == 0
            assert (wide(values.get(), ty) == np.where(i == j, 3.0, 0.0)).all(), "boosted"


def tridiagonal(library, handle, rng, ty):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        n, sides = int(rng.integers(3, 60)), int(rng.integers(0, 5))
        ld = n + int(rng.integers(0, 3))
        lower, middle, upper = (wide(stored(numbers(rng, n, ty), ty), ty) for _ in range(3))
        pivoting = bool(rng.integers(2))
        if not pivoting:
            middle = middle + 9
        lower[0], upper[-1] = 0, 0
        dense = np.diag(middle) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
        if np.linalg.cond(dense) > 1e4:
            return
        right = numbers(rng, max(1, ld * sides), ty)
        arrays = [scope.array(stored(it, ty)) for it in (lower, middle, upper, right)]
        b = wide(arrays[3].values, ty)
        name = f"cusparse{letter}gtsv2" + ("" if pivoting else "_nopivot")
        call = (handle, n, sides, *(it.at for it in arrays), ld)
        bytes_ = size()
        library(name + "_bufferSizeExt", *call, ctypes.byref(bytes_))
        library(name, *call, scope.room(bytes_.value))
        library.synchronize()
        got = wide(arrays[3].get(), ty)
        for side in range(sides):
            x, exact = got[side * ld:side * ld + n], b[side * ld:side * ld + n]
            left = np.abs(dense @ x - exact)
            rounding = ROUNDING[ty] * (4 if is_complex(ty) else 1)
            # Growth of partial pivoting on three diagonals is at most 2.
            assert left.max() <= 40 * rounding * (np.abs(dense).sum(1).max() * np.abs(x).max() + np.abs(exact).max()), name
            assert (got[side * ld + n:(side + 1) * ld] == b[side * ld + n:(side + 1) * ld]).all(), "between right sides"
        assert library.status(name, handle, 2, sides, *(it.at for it in arrays), ld, None) == 3, "two rows"
