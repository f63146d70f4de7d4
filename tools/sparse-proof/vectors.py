"""Sparse vectors."""

import ctypes

import numpy as np

from draw import Vector, numbers
from library import DEVICE, H, HOST, I32, I64, N, TYPES, Scope, i64, is_complex, scalar, size, stored, wide
from near import check

COMPUTE = {"r16f": "r32f", "r16bf": "r32f", "c16f": "c32f", "c16bf": "c32f", "r8i": "r32i"}


class SparseVector:
    def __init__(self, scope, rng, length, ty, index, base):
        self.ty, self.length = ty, length
        self.nnz = int(rng.integers(0, length + 1))
        self.places = np.sort(rng.choice(length, self.nnz, replace=False)).astype(int)
        self.dense = wide(stored(numbers(rng, self.nnz, ty), ty), ty)
        self.indices = scope.array((self.places + base).astype(np.int32 if index == I32 else np.int64))
        self.values = scope.array(stored(self.dense, ty))
        self.descriptor = scope.made("cusparseCreateSpVec", "cusparseDestroySpVec", i64(length), i64(self.nnz),
                                     self.indices.at, self.values.at, index, base, TYPES[ty][0])

    def get(self):
        return wide(self.values.get(), self.ty)


def vectors(library, rng):
    handle, count = library.handle(), 0
    for ty in ("r32f", "r64f", "c32f", "c64f", "r16f", "r16bf", "c16f", "c16bf"):
        compute = COMPUTE.get(ty, ty)
        for index in (I32, I64):
            for base in (0, 1):
                for length in (0, 1, int(rng.integers(2, 90))):
                    for mode in (HOST, DEVICE):
                        one(library, handle, rng, ty, compute, index, base, length, mode)
                        count += 1
    for x, compute in (("r32f", "r32f"), ("r64f", "r64f"), ("c32f", "c32f"), ("c64f", "c64f"), ("r8i", "r32i"),
                       ("r8i", "r32f"), ("r16f", "r32f"), ("r16bf", "r32f")):
        for operation in (N, H) if is_complex(compute) else (N,):
            for mode in (HOST, DEVICE):
                dot(library, handle, rng, x, compute, operation, mode)
                count += 1
    library("cusparseDestroy", handle)
    return count


def factor(library, scope, value, ty, mode):
    array, at = scalar(value, ty)
    if mode == DEVICE:
        return array, scope.array(array).at
    return array, at


def one(library, handle, rng, ty, compute, index, base, length, mode):
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        x, y = SparseVector(scope, rng, length, ty, index, base), Vector(scope, rng, length, ty)
        what = f"{ty} {index} from {base}, {x.nnz} of {length}"
        alpha, beta = (complex(v) if is_complex(ty) else v for v in (1.5, rng.choice([0.0, 1.0, -0.5])))
        if is_complex(ty):
            alpha += 0.25j
        keep = factor(library, scope, alpha, compute, mode), factor(library, scope, beta, compute, mode)
        library("cusparseAxpby", handle, keep[0][1], x.descriptor, keep[1][1], y.descriptor)
        library.synchronize()
        exact = beta * y.dense
        exact[x.places] += alpha * x.dense
        sizes = np.abs(beta * y.dense)
        sizes[x.places] += np.abs(alpha * x.dense)
        # What is scaled is stored between.
        rounding = ty if compute != ty else compute
        check(y.get(), exact, sizes, 2, rounding, ty, f"Axpby {what}")
        now = y.get()
        library("cusparseGather", handle, y.descriptor, x.descriptor)
        library.synchronize()
        assert (x.get() == now[x.places]).all(), f"Gather {what}"
        z = Vector(scope, rng, length, ty)
        library("cusparseScatter", handle, x.descriptor, z.descriptor)
        library.synchronize()
        expected = z.dense.copy()
        expected[x.places] = x.get()
        assert (z.get() == expected).all(), f"Scatter {what}"
        if compute != ty:
            return
        c, s = 0.6, 0.8
        keep = factor(library, scope, c, ty, mode), factor(library, scope, s, ty, mode)
        a, b = x.get(), z.get()
        library("cusparseRot", handle, keep[0][1], keep[1][1], x.descriptor, z.descriptor)
        library.synchronize()
        sizes = np.abs(a) + np.abs(b[x.places])
        check(x.get(), c * a + s * b[x.places], sizes, 4, ty, ty, f"Rot x {what}")
        after = b.copy()
        after[x.places] = c * b[x.places] - s * a
        sizes = np.abs(b)
        sizes[x.places] += np.abs(a)
        check(z.get(), after, sizes, 4, ty, ty, f"Rot y {what}")


def dot(library, handle, rng, ty, compute, operation, mode):
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        length = int(rng.integers(1, 200))
        x, y = SparseVector(scope, rng, length, ty, I32, int(rng.integers(2))), Vector(scope, rng, length, ty)
        result = stored(np.array([7.0]), compute)
        to = scope.array(result)
        at = to.at if mode == DEVICE else ctypes.c_void_p(result.ctypes.data)
        bytes_ = size()
        library("cusparseSpVV_bufferSize", handle, operation, x.descriptor, y.descriptor, at, TYPES[compute][0],
                ctypes.byref(bytes_))
        library("cusparseSpVV", handle, operation, x.descriptor, y.descriptor, at, TYPES[compute][0],
                scope.room(bytes_.value))
        if mode == DEVICE:
            library.synchronize()
            result = to.get()
        left = x.dense.conj() if operation == H else x.dense
        terms = left * y.dense[x.places]
        check(wide(result, compute), np.array([terms.sum()]), np.array([np.abs(terms).sum()]), x.nnz, compute, compute,
              f"SpVV {ty} {compute} {operation}")
