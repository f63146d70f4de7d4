"""Matrices that are drawn, and LAPACK's measures."""

import numpy as np

KINDS = ("random", "graded", "singular", "clustered", "tiny", "huge")
# Of which nothing, or little, is left when their eigenvalues' mean is taken off.
PLAIN = ("zeros", "multiple of the identity", "Jordan's")
BOUND = 30.0
# Work is done in wider numbers, so that what is measured is the library's rounding. NumPy multiplies matrices of its widest numbers by
# plain loops, so floats are widened to doubles, and real numbers stay real.
WIDER = {np.dtype(of): np.dtype(to) for of, to in (("f4", "f8"), ("c8", "c16"), ("f8", np.longdouble), ("c16", np.clongdouble))}
# Of matrices from this size on, so many kinds are drawn; of smaller ones all are tried.
LARGE, DRAWN = 64, 2


def wide(a):
    a = np.asarray(a)
    return a.astype(WIDER.get(a.dtype, a.dtype))


def sizes(rng):
    """Some that are always there, and some that are drawn."""
    return [0, 1, 2, 3, *(int(n) for n in rng.integers(4, 48, 3)), int(rng.integers(LARGE, 150))]


def kinds_of(rng, kinds, n):
    """The kinds that are tried of matrices of this size: the first, which some families do more of, and others that are drawn."""
    if n < LARGE:
        return kinds
    first, *others = kinds
    return (first, *(others[i] for i in rng.permutation(len(others))[:DRAWN - 1]))


def numbers(rng, shape, solver):
    a = rng.standard_normal(shape)
    return a + 1j * rng.standard_normal(shape) if np.issubdtype(solver.dtype, np.complexfloating) else a


def general(rng, kind, m, n, solver):
    a = numbers(rng, (m, n), solver)
    tiny, huge = (1e-30, 1e30) if solver.real == np.float32 else (1e-200, 1e200)
    if kind == "graded":
        a = a * 0.7 ** np.add.outer(np.arange(m), np.arange(n))
    elif kind == "singular" and n > 0:
        a = a[:, np.arange(n) % max(n // 2, 1)]
    elif kind == "zeros":
        a = np.zeros((m, n))
    elif kind == "multiple of the identity":
        a = 2.5 * np.eye(m, n)
    elif kind == "Jordan's":
        a = 1.5 * np.eye(m, n) + np.eye(m, n, 1)
    elif kind == "clustered":
        a = np.eye(m, n) + 1e-5 * a
    elif kind == "tiny":
        a = a * tiny
    elif kind == "huge":
        a = a * huge
    return a.astype(solver.dtype)


def hermitian(rng, kind, n, solver):
    a = general(rng, kind, n, n, solver)
    upper = np.triu(a, 1)
    return (upper + upper.conj().T + np.diag(a.diagonal().real)).astype(solver.dtype)


def positive(rng, n, solver):
    a = numbers(rng, (n, n), solver)
    made = (a @ a.conj().T / max(n, 1) + np.eye(n)).astype(solver.dtype)
    return ((made + made.conj().T) / 2).astype(solver.dtype)


def stored(a, uplo, rng):
    """The other triangle is of numbers that nobody reads."""
    other = np.triu(np.ones(a.shape, bool), 1) if uplo == 0 else np.tril(np.ones(a.shape, bool), -1)
    made = a.copy()
    made[other] = (1000 + rng.standard_normal(int(other.sum()))).astype(a.dtype)
    return made, other


def untouched(before, after, other, what):
    assert (before[other] == after[other]).all(), f"{what}: the other triangle was written"


def norm(a):
    return np.abs(a).sum(axis=0).max(initial=0)


def near(difference, scale, n, solver, what):
    """`|difference| / (|scale| n eps)` in the norm of columns."""
    scale = max(float(scale), float(np.finfo(solver.real).tiny))
    measure = float(norm(difference)) / (scale * max(n, 1) * float(solver.eps))
    assert measure < BOUND, f"{what}: {measure}"


def orthonormal(q, solver, what):
    q = wide(q)
    near(q.conj().T @ q - np.eye(q.shape[1]), 1, q.shape[0], solver, f"{what}: orthogonality")
