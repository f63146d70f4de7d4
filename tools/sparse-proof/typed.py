"""Products, sums, conversions and choices of entries of bare arrays, beside NumPy's wide numbers."""

import ctypes

import numpy as np

from bare import (LETTERS, Blocks, Columns, Factor, Rows, blocks, columns, described, has, info, room, rounding, rows,
                  starts_of, written)
from draw import coordinates, numbers, op
from library import H, N, T, Scope, is_complex, stored, wide


def near(got, exact, size, terms, ty, what):
    bound = (terms + 4) * rounding(ty) * (size + np.abs(exact))
    assert got.shape == exact.shape and (np.abs(got - exact) <= bound).all(), f"{what}: {np.abs(got - exact).max(initial=0)}"


def products(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for _ in range(8):
                bsrmv(library, handle, rng, ty, base)
                bsrmm(library, handle, rng, ty, base)
                for operation in (N, T, H):
                    gemvi(library, handle, rng, ty, base, operation)
                if has(library, "cusparseSgemmi"):
                    gemmi(library, handle, rng, ty)
                count += 1
    library("cusparseDestroy", handle)
    return count


def bsrmv(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        mb, nb, block = (int(it) for it in (*rng.integers(1, 9, 2), rng.integers(2, 6)))
        a = blocks(library, scope, rng, ty, mb, nb, (block, block), base)
        factor = Factor(library, scope, handle, rng, ty)
        (alpha, alpha_at), (beta, beta_at) = factor.draw(), factor.draw()
        x, y = (scope.array(stored(numbers(rng, n * block, ty), ty)) for n in (nb, mb))
        before, vector = wide(y.values, ty), wide(x.values, ty)
        call = (handle, a.by_columns, N, mb, nb, a.nnzb, alpha_at, a.descriptor, *a.arrays)
        assert library.status(f"cusparse{letter}bsrmv", *call, 1, x.at, beta_at, y.at) == 10, "blocks of one value"
        library(f"cusparse{letter}bsrmv", *call, block, x.at, beta_at, y.at)
        library.synchronize()
        size = abs(alpha) * np.abs(a.dense) @ np.abs(vector) + abs(beta) * np.abs(before)
        near(wide(y.get(), ty), alpha * (a.dense @ vector) + beta * before, size, nb * block, ty, f"{letter}bsrmv")
        # Some rows, and of each some blocks.
        written(library, y, y.values)
        mask = np.sort(rng.choice(mb, int(rng.integers(0, mb + 1)), replace=False))
        starts = starts_of(a.i, mb)
        begins = np.array([rng.integers(starts[k], starts[k + 1] + 1) for k in range(mb)])
        ends = np.array([rng.integers(begins[k], starts[k + 1] + 1) for k in range(mb)])
        arrays = [scope.array((it + base).astype(np.int32)) for it in (mask, begins, ends)]
        part = np.zeros_like(a.dense)
        for row in mask:
            for at in range(begins[row], ends[row]):
                where = np.s_[row * block:(row + 1) * block, a.j[at] * block:(a.j[at] + 1) * block]
                part[where] = a.dense[where]
        library(f"cusparse{letter}bsrxmv", handle, a.by_columns, N, len(mask), mb, nb, a.nnzb, alpha_at, a.descriptor,
                a.values.at, *(it.at for it in arrays), a.indices.at, block, x.at, beta_at, y.at)
        library.synchronize()
        exact = alpha * (part @ vector) + beta * before
        others = ~np.isin(np.arange(mb * block) // block, mask)
        exact[others] = before[others]
        near(wide(y.get(), ty), exact, size + np.abs(before), nb * block, ty, f"{letter}bsrxmv")


def bsrmm(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        mb, kb, block, n = (int(it) for it in (*rng.integers(1, 8, 2), rng.integers(1, 5), rng.integers(0, 9)))
        a = blocks(library, scope, rng, ty, mb, kb, (block, block), base)
        factor = Factor(library, scope, handle, rng, ty)
        (alpha, alpha_at), (beta, beta_at) = factor.draw(), factor.draw()
        for turned in (N, T):
            b = columns(scope, rng, *((kb * block, n) if turned == N else (n, kb * block)), ty)
            c = columns(scope, rng, mb * block, n, ty)
            library(f"cusparse{letter}bsrmm", handle, a.by_columns, N, turned, mb, n, kb, a.nnzb, alpha_at, a.descriptor,
                    *a.arrays, block, b.at, b.ld, beta_at, c.at, c.ld)
            library.synchronize()
            right = op(b.dense, turned)
            size = abs(alpha) * np.abs(a.dense) @ np.abs(right) + abs(beta) * np.abs(c.dense)
            near(c.get(), alpha * (a.dense @ right) + beta * c.dense, size, kb * block, ty, f"{letter}bsrmm {turned}")


def gemvi(library, handle, rng, ty, base, operation):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n = (int(it) for it in rng.integers(1, 20, 2))
        a = columns(scope, rng, m, n, ty)
        length, long = (n, m) if operation == N else (m, n)
        nnz = int(rng.integers(0, length + 1))
        places = np.sort(rng.choice(length, nnz, replace=False))
        values = scope.array(stored(numbers(rng, nnz, ty), ty))
        indices = scope.array((places + base).astype(np.int32))
        y = scope.array(stored(numbers(rng, long, ty), ty))
        factor = Factor(library, scope, handle, rng, ty)
        (alpha, alpha_at), (beta, beta_at) = factor.draw(), factor.draw()
        area = room(library, scope, f"cusparse{letter}gemvi_bufferSize", handle, operation, m, n, nnz)
        library(f"cusparse{letter}gemvi", handle, operation, m, n, alpha_at, a.at, a.ld, nnz, values.at, indices.at,
                beta_at, y.at, base, area)
        library.synchronize()
        x, before, matrix = np.zeros(length, a.dense.dtype), wide(y.values, ty), op(a.dense, operation)
        x[places] = wide(values.values, ty)
        size = abs(alpha) * np.abs(matrix) @ np.abs(x) + abs(beta) * np.abs(before)
        near(wide(y.get(), ty), alpha * (matrix @ x) + beta * before, size, nnz, ty, f"{letter}gemvi {operation}")


def gemmi(library, handle, rng, ty):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n, k = (int(it) for it in rng.integers(1, 12, 3))
        a, c = columns(scope, rng, m, k, ty), columns(scope, rng, m, n, ty)
        # By columns: the transposed matrix by rows.
        b = rows(library, scope, rng, ty, n, k, 0)
        factor = Factor(library, scope, handle, rng, ty)
        (alpha, alpha_at), (beta, beta_at) = factor.draw(), factor.draw()
        library(f"cusparse{letter}gemmi", handle, m, n, k, b.nnz, alpha_at, a.at, a.ld, *b.arrays, beta_at, c.at, c.ld)
        library.synchronize()
        size = abs(alpha) * np.abs(a.dense) @ np.abs(b.dense.T) + abs(beta) * np.abs(c.dense)
        near(c.get(), alpha * (a.dense @ b.dense.T) + beta * c.dense, size, k, ty, f"{letter}gemmi")


def sums(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for _ in range(10):
                geam(library, handle, rng, ty, base)
                if has(library, "cusparseScsrgemm2"):
                    for parts in ((True, True), (True, False), (False, True)):
                        gemm(library, handle, rng, ty, base, parts)
                count += 1
    library("cusparseDestroy", handle)
    return count


def check_sum(library, scope, ty, exact, size, pattern, offsets, total, nnz_name, finish, base_c, what):
    """The pattern that was told, then the values, which `finish` asks for."""
    library.synchronize()
    i, j = np.nonzero(pattern)
    assert total() == len(i), f"{what}: {total()} of {len(i)}"
    assert (offsets.get() == starts_of(i, len(pattern)) + base_c).all(), nnz_name
    values, indices = scope.array(stored(np.zeros(len(i)), ty)), scope.array(np.full(len(i), -9, np.int32))
    finish(values, indices)
    library.synchronize()
    assert (indices.get() == j + base_c).all(), what
    near(wide(values.get(), ty), exact[i, j], size[i, j], 40, ty, what)


def geam(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n, base_b, base_c = (int(it) for it in (*rng.integers(1, 15, 2), *rng.integers(0, 2, 2)))
        a, b = rows(library, scope, rng, ty, m, n, base), rows(library, scope, rng, ty, m, n, base_b)
        factor = Factor(library, scope, handle, rng, ty)
        (alpha, alpha_at), (beta, beta_at) = factor.draw(), factor.draw()
        c, offsets = described(library, scope, base_c), scope.array(np.full(m + 1, -9, np.int32))
        call = (handle, m, n, alpha_at, a.descriptor, a.nnz, *a.arrays, beta_at, b.descriptor, b.nnz, *b.arrays, c)
        area = room(library, scope, f"cusparse{letter}csrgeam2_bufferSizeExt", *call, None, offsets.at, None)
        at, total = factor.total()
        library("cusparseXcsrgeam2Nnz", handle, m, n, a.descriptor, a.nnz, *a.numbers, b.descriptor, b.nnz, *b.numbers, c,
                offsets.at, at, area)
        pattern = np.zeros((m, n), bool)
        pattern[a.i, a.j] = pattern[b.i, b.j] = True
        finish = lambda values, indices: library(
            f"cusparse{letter}csrgeam2", *call, values.at, offsets.at, indices.at, area)
        size = abs(alpha) * np.abs(a.dense) + abs(beta) * np.abs(b.dense)
        check_sum(library, scope, ty, alpha * a.dense + beta * b.dense, size, pattern, offsets, total,
                  "cusparseXcsrgeam2Nnz", finish, base_c, f"{letter}csrgeam2")


def gemm(library, handle, rng, ty, base, parts):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n, k, base_b, base_c = (int(it) for it in (*rng.integers(1, 12, 3), *rng.integers(0, 2, 2)))
        a, b, d = (rows(library, scope, rng, ty, *it) for it in ((m, k, base), (k, n, base_b), (m, n, 1 - base)))
        factor = Factor(library, scope, handle, rng, ty)
        (alpha, alpha_at), (beta, beta_at) = factor.draw(), factor.draw()
        if not parts[0]:
            alpha, alpha_at = 0, None
        if not parts[1]:
            beta, beta_at = 0, None
        known, c = info(library, scope, "Csrgemm2"), described(library, scope, base_c)
        offsets = scope.array(np.full(m + 1, -9, np.int32))
        bare = lambda it: (it.descriptor, it.nnz, *it.numbers)
        whole = lambda it: (it.descriptor, it.nnz, *it.arrays)
        area = room(library, scope, f"cusparse{letter}csrgemm2_bufferSizeExt", handle, m, n, k, alpha_at, *bare(a), *bare(b),
                    beta_at, *bare(d), known)
        at, total = factor.total()
        library("cusparseXcsrgemm2Nnz", handle, m, n, k, *bare(a), *bare(b), *bare(d), c, offsets.at, at, known, area)
        one = lambda it, shape: np.add.at(shape, (it.i, it.j), 1) or shape
        pattern = np.zeros((m, n), bool)
        if parts[0]:
            pattern |= one(a, np.zeros((m, k))) @ one(b, np.zeros((k, n))) > 0
        if parts[1]:
            pattern |= one(d, np.zeros((m, n))) > 0
        finish = lambda values, indices: library(
            f"cusparse{letter}csrgemm2", handle, m, n, k, alpha_at, *whole(a), *whole(b), beta_at, *whole(d), c, values.at,
            offsets.at, indices.at, known, area)
        size = abs(alpha) * np.abs(a.dense) @ np.abs(b.dense) + abs(beta) * np.abs(d.dense)
        check_sum(library, scope, ty, alpha * (a.dense @ b.dense) + beta * d.dense, size, pattern, offsets, total,
                  "cusparseXcsrgemm2Nnz", finish, base_c, f"{letter}csrgemm2 {parts}")


def blocking(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for _ in range(8):
                to_blocks(library, handle, rng, ty, base)
                regroup(library, handle, rng, ty, base)
                count += 1
    library("cusparseDestroy", handle)
    return count


def grouped(dense, where, block):
    """The matrix with zeros behind its end, and where it has blocks."""
    (m, n), (r, c) = dense.shape, block
    mb, nb = -(-m // r), -(-n // c)
    wide_ = np.zeros((mb * r, nb * c), dense.dtype)
    wide_[:m, :n] = dense
    there = np.zeros((mb * r, nb * c), bool)
    there[:m, :n] = where
    return wide_, there.reshape(mb, r, nb, c).any((1, 3))


class Made:
    """Room for a matrix of blocks that a call makes: its offsets first, the rest when their number is known."""

    def __init__(self, library, scope, rng, ty, dense, pattern, block, base):
        self.library, self.scope, self.ty, self.dense, self.pattern = library, scope, ty, dense, pattern
        self.block, self.base, self.by_columns = block, base, int(rng.integers(2))
        self.descriptor = described(library, scope, base)
        self.offsets = scope.array(np.full(len(pattern) + 1, -9, np.int32))

    def counted(self, total, what):
        self.library.synchronize()
        self.i, self.j = np.nonzero(self.pattern)
        assert total() == len(self.i), f"{what}: {total()} of {len(self.i)}"
        assert (self.offsets.get() == starts_of(self.i, len(self.pattern)) + self.base).all(), what
        self.room()

    def room(self):
        self.i, self.j = np.nonzero(self.pattern)
        area = self.block[0] * self.block[1]
        self.values = self.scope.array(stored(np.full(len(self.i) * area, 99.0), self.ty))
        self.indices = self.scope.array(np.full(len(self.i), -9, np.int32))
        self.arrays = (self.values.at, self.offsets.at, self.indices.at)

    def check(self, what):
        self.library.synchronize()
        assert (self.offsets.get() == starts_of(self.i, len(self.pattern)) + self.base).all(), what
        assert (self.indices.get() == self.j + self.base).all(), what
        (r, c), (mb, nb) = self.block, self.pattern.shape
        lying = wide(self.values.get(), self.ty).reshape((-1, c, r) if self.by_columns else (-1, r, c))
        parts = lying.transpose(0, 2, 1) if self.by_columns else lying
        exact = self.dense.reshape(mb, r, nb, c).transpose(0, 2, 1, 3)[self.i, self.j]
        assert (parts == exact).all(), what


def to_blocks(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n = (int(it) for it in rng.integers(1, 20, 2))
        a = rows(library, scope, rng, ty, m, n, base)
        where = np.zeros((m, n), bool)
        where[a.i, a.j] = True
        base_c, edge, r, c = (int(it) for it in (rng.integers(2), *rng.integers(1, 6, 3)))
        factor = Factor(library, scope, handle, rng, ty)
        made = Made(library, scope, rng, ty, *grouped(a.dense, where, (edge, edge)), (edge, edge), base_c)
        at, total = factor.total()
        library("cusparseXcsr2bsrNnz", handle, made.by_columns, m, n, a.descriptor, *a.numbers, edge, made.descriptor,
                made.offsets.at, at)
        made.counted(total, "csr2bsrNnz")
        library(f"cusparse{letter}csr2bsr", handle, made.by_columns, m, n, a.descriptor, *a.arrays, edge, made.descriptor,
                *made.arrays)
        made.check(f"{letter}csr2bsr")
        made = Made(library, scope, rng, ty, *grouped(a.dense, where, (r, c)), (r, c), base_c)
        area = room(library, scope, f"cusparse{letter}csr2gebsr_bufferSize", handle, made.by_columns, m, n, a.descriptor,
                    *a.arrays, r, c)
        at, total = factor.total()
        library("cusparseXcsr2gebsrNnz", handle, made.by_columns, m, n, a.descriptor, *a.numbers, made.descriptor,
                made.offsets.at, r, c, at, area)
        made.counted(total, "csr2gebsrNnz")
        library(f"cusparse{letter}csr2gebsr", handle, made.by_columns, m, n, a.descriptor, *a.arrays, made.descriptor,
                *made.arrays, r, c, area)
        made.check(f"{letter}csr2gebsr")


def regroup(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        mb, nb, r, c, r_to, c_to, base_c = (int(it) for it in (*rng.integers(1, 7, 2), *rng.integers(1, 5, 4),
                                                               rng.integers(2)))
        a = blocks(library, scope, rng, ty, mb, nb, (r, c), base)
        full = np.repeat(np.repeat(a.pattern, r, 0), c, 1)
        # To single values: all of each block, zeros too.
        single = Made(library, scope, rng, ty, a.dense, full, (1, 1), base_c)
        single.room()
        library(f"cusparse{letter}gebsr2csr", handle, a.by_columns, mb, nb, a.descriptor, *a.arrays, r, c,
                single.descriptor, *single.arrays)
        single.check(f"{letter}gebsr2csr")
        square = blocks(library, scope, rng, ty, mb, nb, (r, r), base)
        full_square = np.repeat(np.repeat(square.pattern, r, 0), r, 1)
        single = Made(library, scope, rng, ty, square.dense, full_square, (1, 1), base_c)
        single.room()
        library(f"cusparse{letter}bsr2csr", handle, square.by_columns, mb, nb, square.descriptor, *square.arrays, r,
                single.descriptor, *single.arrays)
        single.check(f"{letter}bsr2csr")
        # To other blocks.
        factor = Factor(library, scope, handle, rng, ty)
        made = Made(library, scope, rng, ty, *grouped(a.dense, full, (r_to, c_to)), (r_to, c_to), base_c)
        made.by_columns = a.by_columns
        area = room(library, scope, f"cusparse{letter}gebsr2gebsr_bufferSize", handle, a.by_columns, mb, nb, a.nnzb,
                    a.descriptor, *a.arrays, r, c, r_to, c_to)
        at, total = factor.total()
        library("cusparseXgebsr2gebsrNnz", handle, a.by_columns, mb, nb, a.nnzb, a.descriptor, *a.numbers, r, c,
                made.descriptor, made.offsets.at, r_to, c_to, at, area)
        made.counted(total, "gebsr2gebsrNnz")
        library(f"cusparse{letter}gebsr2gebsr", handle, a.by_columns, mb, nb, a.nnzb, a.descriptor, *a.arrays, r, c,
                made.descriptor, *made.arrays, r_to, c_to, area)
        made.check(f"{letter}gebsr2gebsr")
        # Blocks by columns; each lies as it lay.
        for numeric in (0, 1):
            values = scope.array(stored(np.full(a.nnzb * r * c, 99.0), ty))
            indices, offsets = (scope.array(np.full(k, -9, np.int32)) for k in (a.nnzb, nb + 1))
            area = room(library, scope, f"cusparse{letter}gebsr2gebsc_bufferSize", handle, mb, nb, a.nnzb, *a.arrays, r, c)
            library(f"cusparse{letter}gebsr2gebsc", handle, mb, nb, a.nnzb, *a.arrays, r, c, values.at, indices.at,
                    offsets.at, numeric, base, area)
            library.synchronize()
            order = np.lexsort((a.i, a.j))
            assert (indices.get() == a.i[order] + base).all(), "gebsr2gebsc"
            assert (offsets.get() == starts_of(a.j[order], nb) + base).all(), "gebsr2gebsc"
            lay = a.values.values.reshape(-1, r * c)[order].reshape(-1)
            assert values.get().tobytes() == (lay if numeric else values.values).tobytes(), "gebsr2gebsc"


PRUNED = {"r16f": "H", "r32f": "S", "r64f": "D"}


def thinning(library, rng):
    handle, count = library.handle(), 0
    for base in (0, 1):
        for ty in LETTERS:
            for _ in range(6):
                nnz(library, handle, rng, ty, base)
                compress(library, handle, rng, ty, base)
                count += 1
        for ty in PRUNED:
            for by in (False, True):
                for _ in range(6):
                    prune(library, handle, rng, ty, base, by)
                    count += 1
    library("cusparseDestroy", handle)
    return count


def nnz(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n = (int(it) for it in rng.integers(1, 15, 2))
        a, matrix = columns(scope, rng, m, n, ty), described(library, scope, base)
        thin = rng.random(len(a.array.values)) < 0.5
        written(library, a.array, np.where(thin, a.array.values, a.array.values * 0))
        dense = a.read(a.array.get())
        factor = Factor(library, scope, handle, rng, ty)
        for by_columns in (0, 1):
            lines = scope.array(np.full(n if by_columns else m, -9, np.int32))
            at, total = factor.total()
            library(f"cusparse{letter}nnz", handle, by_columns, m, n, matrix, a.at, a.ld, lines.at, at)
            library.synchronize()
            counts = (dense != 0).sum(0 if by_columns else 1)
            assert (lines.get() == counts).all() and total() == counts.sum(), f"{letter}nnz"
            if not has(library, "cusparseSdense2csr"):
                continue
            to, back = ("csc", "csc2dense") if by_columns else ("csr", "csr2dense")
            i, j = np.nonzero(dense.T if by_columns else dense)
            values, indices = scope.array(stored(np.zeros(len(i)), ty)), scope.array(np.zeros(len(i), np.int32))
            offsets = scope.array(np.full(len(counts) + 1, -9, np.int32))
            rest = (indices.at, offsets.at) if by_columns else (offsets.at, indices.at)
            library(f"cusparse{letter}dense2{to}", handle, m, n, matrix, a.at, a.ld, lines.at, values.at, *rest)
            out = columns(scope, rng, m, n, ty)
            library(f"cusparse{letter}{back}", handle, m, n, matrix, values.at, *rest, out.at, out.ld)
            library.synchronize()
            assert (offsets.get() == starts_of(i, len(counts)) + base).all() and (indices.get() == j + base).all()
            assert (out.get() == dense).all(), f"{letter}{back}"


VALUES = {"r32f": ctypes.c_float, "r64f": ctypes.c_double}


class Complex64(ctypes.Structure):
    _fields_ = [("re", ctypes.c_float), ("im", ctypes.c_float)]


class Complex128(ctypes.Structure):
    _fields_ = [("re", ctypes.c_double), ("im", ctypes.c_double)]


def by_value(value, ty):
    kinds = {"c32f": Complex64, "c64f": Complex128}
    return kinds[ty](value, 0.0) if is_complex(ty) else VALUES[ty](value)


def compress(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n = (int(it) for it in rng.integers(1, 15, 2))
        a = rows(library, scope, rng, ty, m, n, base)
        tolerance = float(rng.choice([0.0, 0.5, 1.25]))
        factor = Factor(library, scope, handle, rng, ty)
        lines = scope.array(np.full(m, -9, np.int32))
        at, total = factor.total()
        call = (handle, m, a.descriptor, a.values.at, a.offsets.at, lines.at, at)
        assert library.status(f"cusparse{letter}nnz_compress", *call, by_value(-1.0, ty)) == 3, "a tolerance below 0"
        library(f"cusparse{letter}nnz_compress", *call, by_value(tolerance, ty))
        library.synchronize()
        keep = np.abs(a.wide) > tolerance
        i, j = a.i[keep], a.j[keep]
        assert total() == len(i) and (lines.get() == np.bincount(i, minlength=m)).all(), f"{letter}nnz_compress"
        values, indices = scope.array(stored(np.zeros(len(i)), ty)), scope.array(np.zeros(len(i), np.int32))
        offsets = scope.array(np.full(m + 1, -9, np.int32))
        library(f"cusparse{letter}csr2csr_compress", handle, m, n, a.descriptor, a.values.at, a.indices.at, a.offsets.at,
                a.nnz, lines.at, values.at, indices.at, offsets.at, by_value(tolerance, ty))
        library.synchronize()
        assert (offsets.get() == starts_of(i, m) + base).all() and (indices.get() == j + base).all()
        assert (wide(values.get(), ty) == a.wide[keep]).all(), f"{letter}csr2csr_compress"


def prune(library, handle, rng, ty, base, by):
    letter, word = PRUNED[ty], "ByPercentage" if by else ""
    with Scope(library) as scope:
        m, n, base_c = (int(it) for it in (*rng.integers(1, 15, 2), rng.integers(2)))
        factor = Factor(library, scope, handle, rng, ty)
        percentage = float(rng.choice([0.0, 20.0, 50.0, 100.0]))
        threshold = float(rng.choice([0.0, 0.5, 1.25]))
        how = ctypes.c_float(percentage) if by else factor(threshold)
        known = (info(library, scope, "Prune"),) if by else ()
        a, c = rows(library, scope, rng, ty, m, n, base), described(library, scope, base_c)
        d = columns(scope, rng, m, n, ty)
        full = np.nonzero(np.ones((m, n)))
        for kind, front, (i, j), values in (
                ("Csr", (a.nnz, a.descriptor, *a.arrays), (a.i, a.j), a.wide),
                ("Dense", (d.at, d.ld), full, d.dense[full])):
            name = f"cusparse{letter}prune{kind}2csr"
            if by:
                bound = -1.0
                if len(values):
                    place = int(np.ceil(len(values) * (percentage / 100))) - 1
                    bound = np.sort(np.abs(values))[max(0, min(place, len(values) - 1))]
            else:
                bound = threshold
            keep = np.abs(values) > bound
            i, j, values = i[keep], j[keep], values[keep]
            offsets = scope.array(np.full(m + 1, -9, np.int32))
            call = (handle, m, n, *front, how, c)
            area = room(library, scope, f"{name}{word}_bufferSizeExt", *call, None, offsets.at, None, *known)
            at, total = factor.total()
            library(f"{name}Nnz{word}", *call, offsets.at, at, *known, area)
            library.synchronize()
            assert total() == len(i), f"{name}Nnz{word}: {total()} of {len(i)}"
            assert (offsets.get() == starts_of(i, m) + base_c).all(), name
            out, indices = scope.array(stored(np.zeros(len(i)), ty)), scope.array(np.zeros(len(i), np.int32))
            library(f"{name}{word}", *call, out.at, offsets.at, indices.at, *known, area)
            library.synchronize()
            assert (indices.get() == j + base_c).all() and (wide(out.get(), ty) == values).all(), name
        if by:
            status = library.status(f"cusparse{letter}pruneDense2csrNnz{word}", handle, m, n, d.at, d.ld,
                                    ctypes.c_float(101.0), c, offsets.at, at, *known, area)
            assert status == 3, "more than all"


def ordering(library, rng):
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for _ in range(8):
                unsorted(library, handle, rng, ty, base)
                color(library, handle, rng, ty, base)
                count += 1
    library("cusparseDestroy", handle)
    return count


def unsorted(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m, n = (int(it) for it in rng.integers(1, 15, 2))
        i, j = coordinates(rng, str(rng.choice(["random", "power law", "empty"])), m, n)
        order = np.lexsort((rng.random(len(i)), i))
        i, j = i[order], j[order]
        a = Rows(library, scope, i, j, numbers(rng, len(i), ty), ty, m, n, base)
        known = info(library, scope, "Csru2csr")
        area = room(library, scope, f"cusparse{letter}csru2csr_bufferSizeExt", handle, m, n, a.nnz, *a.arrays, known)
        call = (handle, m, n, a.nnz, a.descriptor, *a.arrays, known, area)
        library(f"cusparse{letter}csru2csr", *call)
        library.synchronize()
        order = np.lexsort((j, i))
        assert (a.indices.get() == j[order] + base).all() and (wide(a.values.get(), ty) == a.wide[order]).all(), "csru2csr"
        library(f"cusparse{letter}csr2csru", *call)
        library.synchronize()
        assert (a.indices.get() == j + base).all() and (wide(a.values.get(), ty) == a.wide).all(), "csr2csru"


def color(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        m = int(rng.integers(1, 30))
        pattern = rng.random((m, m)) < 0.15
        pattern |= pattern.T | np.eye(m, dtype=bool)
        i, j = np.nonzero(pattern)
        a = Rows(library, scope, i, j, numbers(rng, len(i), ty), ty, m, m, base)
        factor, fraction = Factor(library, scope, handle, rng, ty), float(rng.choice([0.0, 0.5, 1.0]))
        at, total = factor.total()
        part = "r32f" if ty in ("r32f", "c32f") else "r64f"
        colors, order = (scope.array(np.full(m, -9, np.int32)) for _ in range(2))
        library(f"cusparse{letter}csrcolor", handle, m, a.nnz, a.descriptor, *a.arrays, factor(fraction, part), at,
                colors.at, order.at, info(library, scope, "Color"))
        library.synchronize()
        got, places = colors.get(), order.get()
        assert set(got) == set(range(total())), f"{total()} colours, of which there are {sorted(set(got))}"
        assert ((got[i] != got[j]) | (i == j)).all(), "neighbours of one colour"
        assert (np.sort(places) == np.arange(m)).all() and (np.diff(got[np.argsort(places)]) >= 0).all(), "the reordering"
        if fraction == 0:
            assert total() == m, "a colour for each"
        if fraction == 1:
            assert total() <= pattern.sum(1).max(), "more colours than neighbours"


def entries(library, rng):
    """Of 11 alone."""
    if not has(library, "cusparseSgthr"):
        return 0
    handle, count = library.handle(), 0
    for ty in LETTERS:
        for base in (0, 1):
            for _ in range(5):
                vector(library, handle, rng, ty, base)
                count += 1
    library("cusparseDestroy", handle)
    return count


def vector(library, handle, rng, ty, base):
    letter = LETTERS[ty]
    with Scope(library) as scope:
        length = int(rng.integers(0, 30))
        nnz_ = int(rng.integers(0, length + 1))
        places = rng.permutation(length)[:nnz_]
        indices = scope.array((places + base).astype(np.int32))
        fresh = lambda count: scope.array(stored(numbers(rng, count, ty), ty))
        factor = Factor(library, scope, handle, rng, ty)
        x, y = fresh(nnz_), fresh(length)
        before = wide(y.values, ty)
        library(f"cusparse{letter}gthr", handle, nnz_, y.at, x.at, indices.at, base)
        library.synchronize()
        assert (wide(x.get(), ty) == before[places]).all() and (wide(y.get(), ty) == before).all(), "gthr"
        library(f"cusparse{letter}gthrz", handle, nnz_, y.at, x.at, indices.at, base)
        library.synchronize()
        exact = before.copy()
        exact[places] = 0
        assert (wide(x.get(), ty) == before[places]).all() and (wide(y.get(), ty) == exact).all(), "gthrz"
        library(f"cusparse{letter}sctr", handle, nnz_, x.at, indices.at, y.at, base)
        library.synchronize()
        assert (wide(y.get(), ty) == before).all(), "sctr"
        alpha, at = factor.draw()
        x = fresh(nnz_)
        values = wide(x.values, ty)
        library(f"cusparse{letter}axpyi", handle, nnz_, at, x.at, indices.at, y.at, base)
        library.synchronize()
        exact = before.copy()
        exact[places] += alpha * values
        near(wide(y.get(), ty), exact, np.abs(before) + np.abs(exact), 2, ty, "axpyi")
        if not is_complex(ty):
            before = wide(y.get(), ty)
            library(f"cusparse{letter}roti", handle, nnz_, x.at, indices.at, y.at, factor(0.5), factor(-1.5), base)
            library.synchronize()
            exact = before.copy()
            exact[places] = 0.5 * before[places] + 1.5 * values
            near(wide(y.get(), ty), exact, np.abs(before) * 3 + 9, 3, ty, "roti")
            near(wide(x.get(), ty), 0.5 * values - 1.5 * before[places], np.abs(values) * 3 + 9, 3, ty, "roti")
