"""The batched factorizations, by what they have to fulfil: a product of the factors is the matrix, within a bound by norms.

Factors and solutions are no function of the input alone, so there is no value to compare with (Higham, chapters 9, 14, 19).
"""

import ctypes

import numpy as np

from call import Wrong
from elements import C32, C64, F32, F64
from library import Arena, INVALID_VALUE, NOT_SUPPORTED

LETTERS = {"S": F32, "D": F64, "C": C32, "Z": C64}
BATCH, PAD = 3, 2


class Matrices:
    """A batch with padding on the device, and the pointers to them, in another order than they lie in."""

    def __init__(self, arena, element, rows, columns, rng):
        self.arena, self.element, self.shape, self.ld = arena, element, (rows, columns), rows + PAD
        self.memory = element.poison(BATCH * self.ld * columns).reshape(BATCH, columns, self.ld)
        numbers = element.random(rng, BATCH * rows * columns).reshape(BATCH, columns, rows)
        self.memory[:, :, :rows] = numbers
        self.address = arena.put(self.memory)
        places = self.address + np.array([2, 0, 1], np.int64) * self.memory[0].nbytes
        self.pointers = arena.put(places)

    def before(self):
        return self._dense(self.memory)

    def after(self):
        new = self.arena.get(self.address, self.memory)
        rows = self.shape[0]
        if new[:, :, rows:].tobytes() != self.memory[:, :, rows:].tobytes():
            raise Wrong("the padding was written")
        return self._dense(new)

    def _dense(self, memory):
        wide = self.element.wide(memory[[2, 0, 1], :, : self.shape[0]])
        return [matrix.T for matrix in wide]


def close(what, left, right, bound):
    error = np.linalg.norm((left - right).astype(complex))
    if not error <= bound:
        raise Wrong(f"{what}: off by {float(error):.3g}, not within {float(bound):.3g}")


def norm(*matrices):
    return float(np.prod([np.linalg.norm(m.astype(complex)) for m in matrices]))


def permuted(a, pivots):
    a = a.copy()
    for i, p in enumerate(pivots):
        a[[i, p - 1]] = a[[p - 1, i]]
    return a


def prove(library, families, only):
    for letter, element in LETTERS.items():
        for n in (1, 6, 33):
            for pivoted in (True, False):
                _lu(library, families, letter, element, n, pivoted, only)
        _singular(library, families, letter, element, only)
        for shape in ((1, 1), (6, 6), (9, 4), (4, 9), (70, 33)):
            _qr(library, families, letter, element, shape, only)
            for zero_column in (None, shape[1] - 1):
                _least_squares(library, families, letter, element, shape, zero_column, only)


def _lu(library, families, letter, element, n, pivoted, only):
    arena, rng = Arena(library), np.random.default_rng(n)
    u = 40 * n * element.roundoff
    a, b, inverse = (Matrices(arena, element, n, columns, rng) for columns in (n, 4, n))
    # Without pivots, only a heavy diagonal keeps the factors small.
    if not pivoted:
        a.memory[:, np.arange(n), np.arange(n)] += a.memory.dtype.type(n + 1)
        library.copy(a.address, a.memory.ctypes.data, a.memory.nbytes, 1)
    info, pivots = np.full(BATCH, -7, np.int32), np.full((BATCH, n), -7, np.int32)
    at_info, at_pivots = arena.put(info), arena.put(pivots)
    host_info = ctypes.c_int(-7)
    P = at_pivots if pivoted else None

    def step(routine, *arguments):
        name = f"cublas{letter}{routine}Batched"
        if only not in name:
            return False
        return families[routine + "Batched"].called(name, library.function(name)(library.handle, *arguments))

    def check(routine, verify):
        try:
            for i in range(BATCH):
                verify(i)
        except Wrong as wrong:
            families[routine + "Batched"].wrong.append(f"cublas{letter}{routine}Batched n={n} pivoted={pivoted}: {wrong}")

    if step("matinv", n, a.pointers, a.ld, inverse.pointers, inverse.ld, at_info, BATCH):
        found, old = inverse.after(), a.before()
        check("matinv", lambda i: close("A·X", old[i] @ found[i], np.eye(n), u * norm(old[i], found[i]) * n))
    if not step("getrf", n, a.pointers, a.ld, P, at_info, BATCH):
        return
    factors, old = a.after(), a.before()
    order = arena.get(at_pivots, pivots) if pivoted else np.tile(np.arange(1, n + 1), (BATCH, 1))
    lower = [np.tril(f, -1) + np.eye(n) for f in factors]
    upper = [np.triu(f) for f in factors]

    def factored(i):
        if arena.get(at_info, info)[i] != 0:
            raise Wrong("info is not 0")
        if pivoted and np.abs(lower[i]).max() > (1.5 if element.is_complex else 1 + 4 * element.roundoff):
            raise Wrong("a pivot was not the largest of its column")
        close("L·U", lower[i] @ upper[i], permuted(old[i], order[i]), u * norm(lower[i], upper[i]))

    check("getrf", factored)
    if step("getri", n, a.pointers, a.ld, P, inverse.pointers, inverse.ld, at_info, BATCH):
        found = inverse.after()
        check("getri", lambda i: close("A·X", old[i] @ found[i], np.eye(n), u * norm(lower[i], upper[i], found[i])))
    for trans, form in enumerate((lambda m: m, lambda m: m.T, lambda m: np.conj(m.T))):
        right = b.before()
        library.copy(b.address, b.memory.ctypes.data, b.memory.nbytes, 1)
        if step("getrs", trans, n, 4, a.pointers, a.ld, P, b.pointers, b.ld, ctypes.addressof(host_info), BATCH):
            x = b.after()
            check("getrs", lambda i: close("op(A)·X", form(old[i]) @ x[i], right[i], u * norm(lower[i], upper[i], x[i])))


def _singular(library, families, letter, element, only):
    """A column of zeros: `info` names it, counted from 1."""
    n, zero = 5, 3
    arena, rng = Arena(library), np.random.default_rng(5)
    a, inverse = (Matrices(arena, element, n, n, rng) for _ in range(2))
    info, pivots = np.full(BATCH, -7, np.int32), np.zeros((BATCH, n), np.int32)
    at_info, at_pivots = arena.put(info), arena.put(pivots)
    # The second matrix alone.
    a.memory[0, zero, :n] = 0
    library.copy(a.address, a.memory.ctypes.data, a.memory.nbytes, 1)
    calls = {
        "matinv": (n, a.pointers, a.ld, inverse.pointers, inverse.ld, at_info, BATCH),
        "getrf": (n, a.pointers, a.ld, at_pivots, at_info, BATCH),
        "getri": (n, a.pointers, a.ld, at_pivots, inverse.pointers, inverse.ld, at_info, BATCH),
    }
    for routine, arguments in calls.items():
        name, family = f"cublas{letter}{routine}Batched", families[routine + "Batched"]
        if only in name and family.called(name, library.function(name)(library.handle, *arguments)):
            family.expect(name, "info of a singular matrix", arena.get(at_info, info).tolist(), [0, zero + 1, 0])


class Vectors:
    """An array of vectors with a gap between them, and the pointers to them."""

    def __init__(self, arena, element, length):
        self.arena, self.element, self.length = arena, element, length
        self.memory = element.poison(BATCH * (length + 1)).reshape(BATCH, length + 1)
        self.address = arena.put(self.memory)
        self.pointers = arena.put(self.address + np.arange(BATCH, dtype=np.int64) * self.memory[0].nbytes)

    def after(self):
        new = self.arena.get(self.address, self.memory)
        if not np.isnan(new[:, self.length]).all():
            raise Wrong("a number too many was written")
        return self.element.wide(new[:, : self.length])


def _reflections(factored, tau):
    """Q, of what LAPACK's geqrf leaves: the product of the I - τ·v·vᴴ."""
    rows = len(factored)
    q = np.eye(rows, dtype=factored.dtype)
    for k, factor in enumerate(tau):
        v = factored[:, k].copy()
        v[:k], v[k] = 0, 1
        q = q - factor * np.outer(q @ v, np.conj(v))
    return q


def _qr(library, families, letter, element, shape, only):
    name, family = f"cublas{letter}geqrfBatched", families["geqrfBatched"]
    if only not in name:
        return
    (m, n), arena = shape, Arena(library)
    a = Matrices(arena, element, m, n, np.random.default_rng(m))
    tau, info = Vectors(arena, element, min(m, n)), ctypes.c_int(-7)
    arguments = lambda rows=m, columns=n, ld=a.ld: (rows, columns, a.pointers, ld, tau.pointers, ctypes.addressof(info), BATCH)
    call = lambda *what: library.function(name)(library.handle, *what)
    for place, wrong in ((1, arguments(rows=-1)), (2, arguments(columns=-1)), (4, arguments(ld=m - 1))):
        family.expect(name, f"argument {place} is wrong", call(*wrong), INVALID_VALUE)
        family.expect(name, f"info of argument {place}", info.value, -place)
    if not family.called(name, call(*arguments())):
        return
    family.expect(name, "info", info.value, 0)
    try:
        factors, old = a.after(), a.before()
        for i, factor in enumerate(tau.after()):
            q, r = _reflections(factors[i], factor), np.triu(factors[i])
            u = 60 * m * element.roundoff
            close("Q·R", q @ r, old[i], u * norm(old[i]))
            close("Qᴴ·Q", np.conj(q.T) @ q, np.eye(m), u * m)
    except Wrong as wrong:
        family.wrong.append(f"{name} {m}x{n}: {wrong}")


def _least_squares(library, families, letter, element, shape, zero_column, only):
    """The residual is orthogonal to what A reaches: Aᴴ·(C - A·X) = 0. A becomes its factors; the manual has the plain
    operation alone and no fewer rows than columns."""
    name, family = f"cublas{letter}gelsBatched", families["gelsBatched"]
    if only not in name:
        return
    (m, n), arena, rng = shape, Arena(library), np.random.default_rng(shape[0] + 1)
    a, c = Matrices(arena, element, m, n, rng), Matrices(arena, element, m, 3, rng)
    if zero_column is not None:
        a.memory[:, zero_column, :m] = 0
        library.copy(a.address, a.memory.ctypes.data, a.memory.nbytes, 1)
    infos = np.full(BATCH, -7, np.int32)
    at_infos, info = arena.put(infos), ctypes.c_int(-7)

    def call(trans=0, rows=m, columns=n, count=3, lda=a.ld, ldc=c.ld):
        return library.function(name)(library.handle, trans, rows, columns, count, a.pointers, lda, c.pointers, ldc,
                                      ctypes.addressof(info), at_infos, BATCH)

    for place, wrong in ((2, dict(rows=-1)), (3, dict(columns=-1)), (4, dict(count=-1)), (6, dict(lda=m - 1)), (8, dict(ldc=m - 1))):
        family.expect(name, f"argument {place} is wrong", call(**wrong), INVALID_VALUE)
        family.expect(name, f"info of argument {place}", info.value, -place)
    family.expect(name, "a transposed matrix", call(trans=1), NOT_SUPPORTED)
    if m < n:
        family.expect(name, "fewer rows than columns", call(), NOT_SUPPORTED)
        return
    if not family.called(name, call()):
        return
    family.expect(name, "info", info.value, 0)
    wanted = 0 if zero_column is None else zero_column + 1
    family.expect(name, "infos on the device", arena.get(at_infos, infos).tolist(), [wanted] * BATCH)
    if zero_column is not None:
        return
    try:
        factors, solved, old, right = a.after(), c.after(), a.before(), c.before()
        for i in range(BATCH):
            x, u = solved[i][:n], 60 * m * element.roundoff
            error = np.conj(old[i].T) @ (right[i] - old[i] @ x)
            close("Aᴴ·(C - A·X)", error, 0 * error, u * norm(old[i]) * (norm(right[i]) + norm(old[i], x)))
            # R of A: Rᴴ·R = Aᴴ·A.
            r = np.triu(factors[i][:n])
            close("Rᴴ·R", np.conj(r.T) @ r, np.conj(old[i].T) @ old[i], u * norm(old[i]) ** 2)
    except Wrong as wrong:
        family.wrong.append(f"{name} {m}x{n}: {wrong}")
