"""Systems with a triangle, beside SciPy's solver."""

import ctypes

import numpy as np
import scipy.linalg

from draw import Dense, Sparse, Vector, op
from library import DEVICE, H, HOST, I32, I64, N, ROUNDING, T, TYPES, Scope, is_complex, size, stored, wide
from vectors import factor


def triangle_of(dense, upper, unit):
    part = np.triu(dense) if upper else np.tril(dense)
    if unit:
        part = part - np.diag(np.diag(part)) + np.eye(len(dense))
    return part


def residual(matrix, got, right, ty, what):
    """Componentwise, as Higham has it for substitution (Theorem 8.5)."""
    n = len(matrix)
    left = np.abs(matrix @ got - right)
    rounding = ROUNDING[ty] * (4 if is_complex(ty) else 1)
    bound = (n + 4) * rounding * (np.abs(matrix) @ np.abs(got) + np.abs(right))
    assert (left <= bound).all(), f"{what}: {(left - bound).max()}"


def make(scope, rng, kind, ty, n, base, offsets, indices):
    """A matrix of which both triangles can be solved: diagonal entries are there, and are greater than a row of others."""
    a = Sparse(scope, rng, kind, ty, n, n, "full" if n < 30 else "random", base, offsets, indices,
               block=int(rng.integers(1, 5)))
    return a


def systems(library, rng):
    handle, count = library.handle(), 0
    for ty in ("r32f", "r64f", "c32f", "c64f"):
        for kind in ("csr", "coo", "sell"):
            for offsets, indices in ((I32, I32), (I64, I64)):
                for upper in (0, 1):
                    for unit in (0, 1):
                        for operation in (N, T, H):
                            one(library, handle, rng, ty, kind, offsets, indices, upper, unit, operation)
                            count += 1
    library("cusparseDestroy", handle)
    return count


def one(library, handle, rng, ty, kind, offsets, indices, upper, unit, operation):
    mode, base = (int(it) for it in rng.integers(0, 2, 2))
    n = int(rng.integers(0, 20))
    library("cusparseSetPointerMode", handle, mode)
    what = f"{ty} {kind} {offsets} {indices} upper {upper} unit {unit} op {operation} n {n}"
    with Scope(library) as scope:
        a = make(scope, rng, kind, ty, n, base, offsets, indices)
        # Heavy diagonals, so that solutions stay of the size of the right sides.
        if kind != "sell" and n:
            heavy = a.values.values.copy()
            at = a.i == a.j
            heavy[at] = stored(wide(heavy[at], ty) + 40, ty)
            library.runtime("cudaMemcpy", a.values.at, ctypes.c_void_p(heavy.ctypes.data), ctypes.c_size_t(heavy.nbytes), 1)
            a.dense[np.arange(n), np.arange(n)] += 40
        for attribute, value in ((0, upper), (1, unit)):
            number = ctypes.c_int(value)
            library("cusparseSpMatSetAttribute", a.descriptor, attribute, ctypes.byref(number), ctypes.c_size_t(4))
        alpha = 1.5 + 0.5j if is_complex(ty) else 1.5
        keep = factor(library, scope, alpha, ty, mode)
        matrix = op(triangle_of(a.dense, upper, unit), operation)
        if n and (np.diag(matrix) == 0).any():
            return
        x, y = Vector(scope, rng, n, ty), Vector(scope, rng, n, ty)
        description = scope.made("cusparseSpSV_createDescr", "cusparseSpSV_destroyDescr")
        call = (handle, operation, keep[1], a.descriptor, x.descriptor, y.descriptor, TYPES[ty][0], 0, description)
        bytes_ = size()
        library("cusparseSpSV_bufferSize", *call, ctypes.byref(bytes_))
        assert library.status("cusparseSpSV_solve", *call) != 0, "solved without an analysis"
        library("cusparseSpSV_analysis", *call, scope.room(bytes_.value))
        library("cusparseSpSV_solve", *call)
        library.synchronize()
        residual(matrix, y.get(), alpha * x.dense, ty, f"SpSV {what}")
        if kind != "sell" and n:
            solution = scipy.linalg.solve_triangular(matrix, alpha * x.dense, lower=bool(np.allclose(matrix, np.tril(matrix))))
            near = np.abs(y.get() - solution) <= 2000 * n * ROUNDING[ty] * (np.abs(solution).max() + 1)
            assert near.all() or unit, f"SpSV {what} beside SciPy"
        if kind == "sell":
            assert library.status("cusparseSpSV_updateMatrix", handle, description, a.values.at, 0) == 10
            return
        # In place, several right sides.
        sides = int(rng.integers(0, 7))
        order_b, order_c = (int(it) for it in rng.integers(1, 3, 2))
        operation_b = int(rng.integers(0, 3))
        b = Dense(scope, rng, *((n, sides) if operation_b == N else (sides, n)), ty, order_b)
        c = Dense(scope, rng, n, sides, ty, order_c)
        several = scope.made("cusparseSpSM_createDescr", "cusparseSpSM_destroyDescr")
        call_m = (handle, operation, operation_b, keep[1], a.descriptor, b.descriptor, c.descriptor, TYPES[ty][0], 0,
                  several)
        library("cusparseSpSM_bufferSize", *call_m, ctypes.byref(bytes_))
        library("cusparseSpSM_analysis", *call_m, scope.room(bytes_.value))
        library("cusparseSpSM_solve", *call_m)
        library.synchronize()
        residual(matrix, c.get()[0], alpha * op(b.dense[0], operation_b), ty, f"SpSM {what}")
        # Other values, and another diagonal.
        scale = stored(wide(a.values.get(), ty) * 2, ty)
        other = scope.array(scale)
        library("cusparseSpSV_updateMatrix", handle, description, other.at, 0)
        library("cusparseSpSV_solve", *call)
        library.synchronize()
        doubled = op(triangle_of(a.dense * 2, upper, unit), operation)
        residual(doubled, y.get(), alpha * x.dense, ty, f"SpSV with other values {what}")
        diagonal = scope.array(stored(np.full(n, 64.0), ty))
        library("cusparseSpSM_updateMatrix", handle, several, diagonal.at, 1)
        library("cusparseSpSM_solve", *call_m)
        library.synchronize()
        changed = triangle_of(a.dense, upper, unit)
        if not unit:
            changed[np.arange(n), np.arange(n)] = 64
        residual(op(changed, operation), c.get()[0], alpha * op(b.dense[0], operation_b), ty,
                 f"SpSM with another diagonal {what}")
