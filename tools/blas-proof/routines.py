"""What each routine means, on dense matrices of wide numbers: the reference.

A routine is its operands (where they lie, by the sizes and options), what it writes, and either `value`, what is written, or
`residual`, an equation that what is written has to fulfil. Both are evaluated once more on absolute values, which gives the
magnitudes that the error bounds of the literature stand on (Higham, Accuracy and Stability of Numerical Algorithms, 3.5, 8.1).
"""

from dataclasses import dataclass, field
from typing import Callable

import numpy as np

from memory import band, general, packed, triangle, vector

N, T, C = 0, 1, 2
LOWER, UPPER = 0, 1
UNIT = 1
LEFT, RIGHT = 0, 1


@dataclass
class Routine:
    operands: dict[str, Callable]  # (o, layout) -> (positions, span, the leading dimension or increment)
    writes: tuple[str, ...]
    value: Callable = None
    residual: Callable = None
    terms: Callable = lambda o: 1  # of the longest sum; None if numbers are only moved
    # What a factor of 0 keeps from being read.
    unread: dict[str, tuple[str, ...]] = field(default_factory=dict)
    positive: bool = False  # increments below 1 make it do nothing
    empty: Callable = lambda o: False  # nothing is written at all
    prepare: Callable = None  # changes the random numbers
    relative: bool = False  # the bound is relative to the value itself
    # Operands that may be what is written too, with which options.
    in_place: dict[str, Callable] = field(default_factory=dict)


# Operands.


def matrix(rows, columns):
    def place(o, layout):
        ld = max(1, rows(o)) + layout.pad
        return general(rows(o), columns(o), ld), ld * columns(o), ld

    return place


def half(order, unit=False):
    """A triangle, with the strict one if `unit` and the diagonal is one of ones."""

    def place(o, layout):
        n = order(o)
        ld = max(1, n) + layout.pad
        return triangle(n, ld, o.uplo == LOWER, unit and o.diag == UNIT), ld * n, ld

    return place


def half_packed(order, unit=False):
    def place(o, layout):
        n = order(o)
        return packed(n, o.uplo == LOWER, unit and o.diag == UNIT), n * (n + 1) // 2, None

    return place


def half_band(unit=False):
    def place(o, layout):
        below, above = (o.k, 0) if o.uplo == LOWER else (0, o.k)
        ld = o.k + 1 + layout.pad
        return band(o.n, o.n, below, above, ld, unit and o.diag == UNIT), ld * o.n, ld

    return place


def general_band(o, layout):
    ld = o.kl + o.ku + 1 + layout.pad
    return band(o.m, o.n, o.kl, o.ku, ld), ld * o.n, ld


def elements(length, which=0):
    def place(o, layout):
        increment = layout.increments[which]
        return vector(length(o), increment), max(0, (length(o) - 1) * abs(increment) + 1), increment

    return place


def scalar(o, layout):
    return np.zeros((), np.int64), 1, None


def parameters(o, layout):
    return np.arange(5), 5, None


# Forms of matrices, of what stands in memory and 0 elsewhere; each is right for absolute values too.


def op(a, trans):
    return a if trans == N else a.T if trans == T else np.conj(a.T)


def symmetric(a):
    return a + a.T - np.diag(np.diag(a))


def hermitian(a):
    """The diagonal's imaginary parts are not looked at."""
    return a + np.conj(a.T) - np.diag(np.real(np.diag(a)))


def real_diagonal(a):
    return a - 1j * np.diag(np.imag(np.diag(a))) if np.iscomplexobj(a) else a


def triangular(o):
    a = o.AP if hasattr(o, "AP") else o.A
    return op(a + np.eye(len(a)) if o.diag == UNIT else a, o.trans)


def on_side(o, a, b):
    return a @ b if o.side == LEFT else b @ a


# Sizes.


def m(o):
    return o.m


def n(o):
    return o.n


def swapped(trans, rows, columns):
    """The stored rows and columns of a matrix that is rows × columns after the operation."""
    return (
        lambda o: rows(o) if getattr(o, trans) == N else columns(o),
        lambda o: columns(o) if getattr(o, trans) == N else rows(o),
    )


def k(o):
    return o.k


def order(o):
    return o.m if o.side == LEFT else o.n


def inner(o):
    """Terms of a sum of a matrix-vector product."""
    return o.n if o.trans == N else o.m


def outer(o):
    return o.m if o.trans == N else o.n


ROUTINES = {}


def routine(names, writes, **what):
    for name in names.split():
        ROUTINES[name] = Routine(writes=tuple(writes.split()), **what)


# Level 1.

X, Y = elements(n, 0), elements(n, 1)


def coarse(o, memory):
    """Few different numbers, so that the largest and the smallest are there more than once."""
    x = memory["x"]
    x.memory[x.inside] = np.round(2 * x.element.wide(x.memory[x.inside])).astype(x.memory.dtype)


def magnitudes(o):
    return np.abs(np.real(o.x)) + np.abs(np.imag(o.x))


def index_of(pick):
    return lambda o: (1 + int(pick(magnitudes(o))) if o.n > 0 else 0,)


def dot(conjugated):
    return lambda o: ((np.conj(o.x) if conjugated else o.x) @ o.y,)


def rotate(o):
    return o.c * o.x + o.s * o.y, o.c * o.y + o.minus * np.conj(o.s) * o.x


def rotate_modified(o):
    flag, h11, h21, h12, h22 = o.raw_param
    if flag == -2:
        return o.x, o.y
    if flag == 0:
        h11, h22 = 1, 1
    if flag == 1:
        h12, h21 = 1, -1
    if o.minus == 1:
        h11, h21, h12, h22 = np.abs([h11, h21, h12, h22])
    return h11 * o.x + h12 * o.y, h21 * o.x + h22 * o.y


def make_rotation(o):
    """a, b, c, s after rotg (Netlib's, before 3.10)."""
    a, b = o.a, o.b
    if b == 0 and not np.iscomplexobj(a):
        return a, 0 * a, 0 * a + 1, 0 * a
    if a == 0:
        # Of complex numbers, b stays as it is.
        return b, b if np.iscomplexobj(a) else 1 + 0 * b, np.real(0 * a), 1 + 0 * a
    if np.iscomplexobj(a):
        norm = np.sqrt(np.abs(a) ** 2 + np.abs(b) ** 2)
        return a / np.abs(a) * norm, b, np.abs(a) / norm, a / np.abs(a) * np.conj(b) / norm
    larger = a if abs(a) > abs(b) else b
    r = np.copysign(np.sqrt(a * a + b * b), larger)
    c, s = a / r, b / r
    return r, s if abs(a) > abs(b) else 1 / c, c, s


def make_modified_rotation(o):
    """d1, d2, x1, param after rotmg, for numbers that need no rescaling; NaN where param is left as it was."""
    d1, d2, x, y = o.d1, o.d2, o.x1, o.y1
    p1, p2 = d1 * x, d2 * y
    if abs(p1 * x) > abs(p2 * y):
        h21, h12 = -y / x, p2 / p1
        u = 1 - h12 * h21
        return d1 / u, d2 / u, x * u, np.array([0, np.nan, h21, h12, np.nan])
    h11, h22 = p1 / p2, x / y
    u = 1 + h11 * h22
    return d2 / u, d1 / u, y * u, np.array([1, h11, np.nan, np.nan, h22])


def positive_weights(o, memory):
    for name in ("d1", "d2"):
        memory[name].memory[memory[name].inside] = np.abs(memory[name].memory[memory[name].inside]) + 0.5


def with_flag(o, memory):
    memory["param"].memory[memory["param"].inside[0]] = o.flag


routine("axpy", "y", operands={"x": X, "y": Y}, value=lambda o: (o.alpha * o.x + o.y,), unread={"alpha": ("x",)})
routine("scal", "x", operands={"x": X}, value=lambda o: (o.alpha * o.x,), positive=True)
routine("copy", "y", operands={"x": X, "y": Y}, value=lambda o: (o.x,), terms=None)
routine("swap", "x y", operands={"x": X, "y": Y}, value=lambda o: (o.y, o.x), terms=None)
for name, conjugated in (("dot", False), ("dotu", False), ("dotc", True)):
    routine(name, "result", operands={"x": X, "y": Y, "result": scalar}, value=dot(conjugated), terms=n)
routine("nrm2", "result", operands={"x": X, "result": scalar}, terms=n, positive=True,
        value=lambda o: (np.sqrt(np.sum(np.abs(o.x) ** 2)),))
routine("asum", "result", operands={"x": X, "result": scalar}, terms=n, positive=True, value=lambda o: (np.sum(magnitudes(o)),))
for name, pick in (("amax", np.argmax), ("amin", np.argmin)):
    routine(name, "result", operands={"x": X, "result": scalar}, positive=True, value=index_of(pick), prepare=coarse)
routine("rot", "x y", operands={"x": X, "y": Y, "c": scalar, "s": scalar}, value=rotate)
routine("rotm", "x y", operands={"x": X, "y": Y, "param": parameters}, value=rotate_modified, prepare=with_flag)
routine("rotg", "a b c s", operands={"a": scalar, "b": scalar, "c": scalar, "s": scalar}, value=make_rotation, relative=True,
        terms=lambda o: 8, unread={"a": (), "b": ()})
routine("rotmg", "d1 d2 x1 param", value=make_modified_rotation, relative=True, terms=lambda o: 8, prepare=positive_weights,
        operands={"d1": scalar, "d2": scalar, "x1": scalar, "y1": scalar, "param": parameters})

# Level 2.

INNER, OUTER = elements(inner, 0), elements(outer, 1)
LENGTHWISE, ACROSS = elements(m, 0), elements(n, 1)


def times_vector(form):
    return lambda o: (o.alpha * form(o) @ o.x + o.beta * o.y,)


def solve_vector(o):
    return triangular(o) @ o.new.x, o.x


# Off the diagonal smaller than on it, so that solutions stay within the range of every type.
def well_scaled(o, memory):
    for name in ("A", "AP"):
        if name in memory:
            a = memory[name]
            for where in a.where:
                size = max(1, len(where))
                off = where[(where >= 0) & ~np.eye(len(where), dtype=bool)]
                a.memory[off] = a.memory[off] / a.memory.dtype.type(size)
                diagonal = np.diagonal(where)
                diagonal = diagonal[diagonal >= 0]
                a.memory[diagonal] = a.memory[diagonal] + a.memory.dtype.type(2)


MV = dict(terms=n, unread={"alpha": ("A", "AP", "x"), "beta": ("y",)})
GMV = MV | dict(terms=inner, empty=lambda o: o.m == 0 or o.n == 0)
routine("gemv", "y", operands={"A": matrix(m, n), "x": INNER, "y": OUTER}, value=times_vector(lambda o: op(o.A, o.trans)), **GMV)
routine("gbmv", "y", operands={"A": general_band, "x": INNER, "y": OUTER}, value=times_vector(lambda o: op(o.A, o.trans)), **GMV)
for names, form in (("sy sb sp", symmetric), ("he hb hp", hermitian)):
    full, banded, in_a_row = (name + "mv" for name in names.split())
    routine(full, "y", operands={"A": half(n), "x": X, "y": Y}, value=times_vector(lambda o, f=form: f(o.A)), **MV)
    routine(banded, "y", operands={"A": half_band(), "x": X, "y": Y}, value=times_vector(lambda o, f=form: f(o.A)), **MV)
    routine(in_a_row, "y", operands={"AP": half_packed(n), "x": X, "y": Y}, value=times_vector(lambda o, f=form: f(o.AP)), **MV)
for letter, name, place in (("r", "A", half(n, True)), ("b", "A", half_band(True)), ("p", "AP", half_packed(n, True))):
    routine(f"t{letter}mv", "x", operands={name: place, "x": X}, terms=n, value=lambda o: (triangular(o) @ o.x,))
    routine(f"t{letter}sv", "x", operands={name: place, "x": X}, terms=n, residual=solve_vector, prepare=well_scaled)

RANK1 = dict(unread={"alpha": ("x", "y")}, terms=lambda o: 2)
# With a factor of 0, not even the imaginary parts of a diagonal.
UNTOUCHED = RANK1 | dict(empty=lambda o: o.alpha == 0)
GER = dict(operands={"A": matrix(m, n), "x": LENGTHWISE, "y": ACROSS}, **RANK1)
routine("ger geru", "A", value=lambda o: (o.alpha * np.outer(o.x, o.y) + o.A,), **GER)
routine("gerc", "A", value=lambda o: (o.alpha * np.outer(o.x, np.conj(o.y)) + o.A,), **GER)
for name, place in (("A", half(n)), ("AP", half_packed(n))):
    kind = "r" if name == "A" else "pr"
    one, two = {name: place, "x": X}, {name: place, "x": X, "y": Y}
    sy, he = ("sy", "he") if name == "A" else ("s", "h")
    routine(f"{sy}{kind}", name, operands=one, **RANK1,
            value=lambda o, a=name: (o.alpha * np.outer(o.x, o.x) + getattr(o, a),))
    routine(f"{sy}{kind}2", name, operands=two, **RANK1,
            value=lambda o, a=name: (o.alpha * (np.outer(o.x, o.y) + np.outer(o.y, o.x)) + getattr(o, a),))
    routine(f"{he}{kind}", name, operands=one, **UNTOUCHED,
            value=lambda o, a=name: (o.alpha * np.outer(o.x, np.conj(o.x)) + hermitian(getattr(o, a)),))
    routine(f"{he}{kind}2", name, operands=two, **UNTOUCHED,
            value=lambda o, a=name: (o.alpha * np.outer(o.x, np.conj(o.y)) + np.conj(o.alpha) * np.outer(o.y, np.conj(o.x))
                                     + hermitian(getattr(o, a)),))

# Level 3.

MM = dict(unread={"alpha": ("A", "B"), "beta": ("C",)})
PANEL = matrix(*swapped("trans", n, k))


def ranked(o, *, b="A", conjugated):
    """op(A) · op(B)ᵀ, or its conjugate transpose."""
    left, right = op(o.A, o.trans), op(getattr(o, b), o.trans)
    return left @ (np.conj(right.T) if conjugated else right.T)


routine("gemm gemm3m", "C", terms=k, **MM,
        operands={"A": matrix(*swapped("transa", m, k)), "B": matrix(*swapped("transb", k, n)), "C": matrix(m, n)},
        value=lambda o: (o.alpha * (op(o.A, o.transa) @ op(o.B, o.transb)) + o.beta * o.C,))
for name, form in (("symm", symmetric), ("hemm", hermitian)):
    routine(name, "C", terms=order, **MM, operands={"A": half(order), "B": matrix(m, n), "C": matrix(m, n)},
            value=lambda o, f=form: (o.alpha * on_side(o, f(o.A), o.B) + o.beta * o.C,))
routine("syrk syrk3m", "C", terms=k, **MM, operands={"A": PANEL, "C": half(n)},
        value=lambda o: (o.alpha * ranked(o, conjugated=False) + o.beta * o.C,))
routine("herk herk3m", "C", terms=k, **MM, operands={"A": PANEL, "C": half(n)},
        value=lambda o: (o.alpha * ranked(o, conjugated=True) + o.beta * hermitian(o.C),))
# Whoever calls herkx promises that the sum is Hermitian; what the promise does not hold for is dropped.
TWO = {"A": PANEL, "B": PANEL, "C": half(n)}
routine("syrkx", "C", terms=k, **MM, operands=TWO,
        value=lambda o: (o.alpha * ranked(o, b="B", conjugated=False) + o.beta * o.C,))
routine("herkx", "C", terms=k, **MM, operands=TWO,
        value=lambda o: (real_diagonal(o.alpha * ranked(o, b="B", conjugated=True) + o.beta * hermitian(o.C)),))


def rank_2k(o, conjugated):
    one = o.alpha * ranked(o, b="B", conjugated=conjugated)
    return one + (np.conj(one.T) if conjugated else one.T)


routine("syr2k", "C", terms=lambda o: 2 * o.k, **MM, operands=TWO, value=lambda o: (rank_2k(o, False) + o.beta * o.C,))
routine("her2k", "C", terms=lambda o: 2 * o.k, **MM, operands=TWO, value=lambda o: (rank_2k(o, True) + o.beta * hermitian(o.C),))
routine("trmm", "C", terms=order, unread={"alpha": ("A", "B", "C")},
        operands={"A": half(order, True), "B": matrix(m, n), "C": matrix(m, n)},
        value=lambda o: (o.alpha * on_side(o, triangular(o), o.B),), in_place={"B": lambda options: True})


def solve_matrix(o):
    # With a factor of 0 the solution is 0, and A, which was not read, says nothing.
    return (o.new.B if o.alpha == 0 else on_side(o, triangular(o), o.new.B)), o.alpha * o.B


routine("trsm", "B", terms=order, unread={"alpha": ("A", "B")}, operands={"A": half(order, True), "B": matrix(m, n)},
        residual=solve_matrix, prepare=well_scaled)
routine("geam", "C", terms=lambda o: 2, unread={"alpha": ("A", "C"), "beta": ("B", "C")},
        operands={"A": matrix(*swapped("transa", m, n)), "B": matrix(*swapped("transb", m, n)), "C": matrix(m, n)},
        value=lambda o: (o.alpha * op(o.A, o.transa) + o.beta * op(o.B, o.transb),),
        in_place={"A": lambda options: options["transa"] == N, "B": lambda options: options["transb"] == N})
routine("dgmm", "C", operands={"A": matrix(m, n), "x": elements(order), "C": matrix(m, n)}, in_place={"A": lambda options: True},
        value=lambda o: (o.x[:, None] * o.A if o.side == LEFT else o.A * o.x[None, :],))
routine("tpttr", "A", terms=None, operands={"AP": half_packed(n), "A": half(n)}, value=lambda o: (o.AP,))
routine("trttp", "AP", terms=None, operands={"A": half(n), "AP": half_packed(n)}, value=lambda o: (o.A,))
