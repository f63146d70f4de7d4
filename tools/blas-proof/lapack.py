"""The batched factorizations, by what they have to fulfil: a product of the factors is the matrix, within a bound by norms.

Factors and solutions are no function of the input alone, so there is no value to compare with (Higham, chapters 9, 14, 19).
"""

import ctypes

import numpy as np

from call import Wrong
from elements import C32, C64, F32, F64

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


class Arena:
    """Takes memory of the device in a row."""

    def __init__(self, library):
        self.library, self.next = library, library.arena

    def put(self, array):
        address = self.next
        self.next += (array.nbytes + 255) // 256 * 256
        self.library.copy(address, array.ctypes.data, array.nbytes, 1)
        return address

    def get(self, address, like):
        out = np.empty_like(like)
        self.library.copy(out.ctypes.data, address, like.nbytes, 2)
        return out


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
