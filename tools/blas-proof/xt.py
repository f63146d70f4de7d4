"""cuBLASXt on the CPU device: contexts by the manual, and every routine with matrices of the host beside cuBLAS's own."""

import struct
from ctypes import POINTER, byref, c_double, c_float, c_int, c_size_t, c_void_p, cast, create_string_buffer

from calls import INVALID_VALUE, NOT_INITIALIZED, SUCCESS, case, equal, holds

N, T, C = 0, 1, 2
LEFT, RIGHT = 0, 1
LOWER, UPPER = 0, 1


def context(libraries, is_selected=True):
    handle = c_void_p()
    equal(libraries.blas.cublasXtCreate(byref(handle)), SUCCESS, "cublasXtCreate")
    if is_selected:
        equal(libraries.blas.cublasXtDeviceSelect(handle, 1, (c_int * 1)(0)), SUCCESS, "cublasXtDeviceSelect")
    return handle


@case()
def xt_contexts_keep_what_is_set(libraries):
    blas, handle, value = libraries.blas, context(libraries, False), c_int(-1)
    equal(blas.cublasXtGetBlockDim(handle, byref(value)), SUCCESS)
    holds(value.value > 0, "tiles have no size")
    equal(blas.cublasXtSetBlockDim(handle, 512), SUCCESS)
    equal(blas.cublasXtGetBlockDim(handle, byref(value)), SUCCESS)
    equal(value.value, 512, "the size of tiles")
    equal(blas.cublasXtSetBlockDim(handle, 0), INVALID_VALUE, "tiles of nothing")
    equal(blas.cublasXtGetPinningMemMode(handle, byref(value)), SUCCESS)
    equal(value.value, 0, "the pinning mode, which is off by default")
    equal(blas.cublasXtSetPinningMemMode(handle, 1), SUCCESS)
    equal(blas.cublasXtGetPinningMemMode(handle, byref(value)), SUCCESS)
    equal(value.value, 1, "the pinning mode")
    equal(blas.cublasXtSetPinningMemMode(handle, 2), INVALID_VALUE)
    equal(blas.cublasXtSetCpuRatio(handle, 0, 0, c_float(0.5)), SUCCESS)
    equal(blas.cublasXtSetCpuRatio(handle, 0, 0, c_float(1.5)), INVALID_VALUE, "more than all")
    equal(blas.cublasXtSetCpuRatio(handle, 12, 0, c_float(0.5)), INVALID_VALUE, "no such routine")
    equal(blas.cublasXtSetCpuRoutine(handle, 0, 0, None), INVALID_VALUE, "no function")
    equal(blas.cublasXtMaxBoards(byref(value)), SUCCESS)
    equal(value.value, 1, "the boards")
    equal(blas.cublasXtGetNumBoards(1, (c_int * 1)(0), byref(value)), SUCCESS)
    equal(value.value, 1, "the boards of the device")
    equal(blas.cublasXtDeviceSelect(handle, 1, (c_int * 1)(99)), INVALID_VALUE, "a device that is none")
    equal(blas.cublasXtDeviceSelect(handle, 0, None), INVALID_VALUE, "no devices")
    equal(blas.cublasXtDestroy(handle), SUCCESS)
    equal(blas.cublasXtDestroy(handle), NOT_INITIALIZED)
    equal(blas.cublasXtGetBlockDim(handle, byref(value)), NOT_INITIALIZED)


# Numbers of each type, as small integers, so that sums are exact in any order.
class Type:
    def __init__(self, letter):
        self.letter, self.is_complex = letter, letter in "CZ"
        self.real = c_float if letter in "SC" else c_double
        self.parts = 2 if self.is_complex else 1

    def array(self, values):
        parts = [part for v in values for part in ((v.real, v.imag) if self.is_complex else (v.real,))]
        return (self.real * len(parts))(*parts)

    def one(self, value, real=False):
        return (self.real * 1)(value.real) if real else self.array([value])

    def read(self, array):
        if not self.is_complex:
            return [complex(v) for v in array]
        return [complex(array[i], array[i + 1]) for i in range(0, len(array), 2)]


def numbers(n, seed):
    """Small Gaussian integers."""
    return [complex((7 * i + 3 * seed) % 11 - 5, (5 * i + seed) % 7 - 3) for i in range(n)]


class Matrix:
    """`rows` by `columns` with two more rows between, of which nothing may be written."""

    def __init__(self, kind, rows, columns, seed):
        self.rows, self.columns, self.ld = rows, columns, rows + 2
        self.values = numbers(self.ld * columns, seed)
        if not kind.is_complex:
            self.values = [complex(v.real) for v in self.values]

    def __getitem__(self, at):
        return self.values[at[0] + at[1] * self.ld]

    def dense(self):
        return [[self[i, j] for j in range(self.columns)] for i in range(self.rows)]


def times(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a, op):
    return a if op == N else [[v.conjugate() if op == C else v for v in column] for column in zip(*a)]


def whole(a, lower, conjugate, unit=False, triangle=False):
    """The matrix of which a triangle is stored."""

    def at(i, j):
        if i == j:
            return 1 if unit else (complex(a[i][i].real) if conjugate else a[i][i])
        if (i > j) == lower:
            return a[i][j]
        return 0 if triangle else (a[j][i].conjugate() if conjugate else a[j][i])

    return [[at(i, j) for j in range(len(a))] for i in range(len(a))]


def inverse_times(a, b):
    """Solves by substitution in either direction, with Gaussian elimination of a triangle."""
    n = len(a)
    order = range(n) if all(a[i][j] == 0 for i in range(n) for j in range(i + 1, n)) else range(n - 1, -1, -1)
    x = [[0] * len(b[0]) for _ in b]
    for i in order:
        for c in range(len(b[0])):
            x[i][c] = (b[i][c] - sum(a[i][j] * x[j][c] for j in range(n) if j != i)) / a[i][i]
    return x


def added(alpha, a, beta, c):
    return [[alpha * x + beta * y for x, y in zip(r, s)] for r, s in zip(a, c)]


M, NN, K = 5, 4, 3
ALPHA, BETA = 2 - 1j, 3 + 1j


def expect(libraries, name, arguments, result, kind, wanted, where=None):
    """Calls, and looks at every element of the result: those of `where` are wanted, all others as before."""
    buffer = kind.array(result.values)
    arguments = [buffer if argument is result else kind.array(argument.values) if isinstance(argument, Matrix) else argument for argument in arguments]
    arguments = [c_size_t(argument) if isinstance(argument, Size) else argument for argument in arguments]
    equal(getattr(libraries.blas, name)(*arguments), SUCCESS, name)
    found = kind.read(buffer)
    for j in range(result.columns):
        for i in range(result.ld):
            is_result = i < result.rows and (where is None or where(i, j))
            want = wanted[i][j] if is_result else result.values[i + j * result.ld]
            at = found[i + j * result.ld]
            holds(abs(at - want) <= 1e-4 * max(1, abs(want)), f"{name}: element {i}, {j} is {at}, not {want}")


class Size(int):
    pass


def scalars(kind):
    return (ALPHA, BETA) if kind.is_complex else (complex(ALPHA.real), complex(BETA.real))


def triangle(lower):
    return lambda i, j: i >= j if lower else i <= j


@case()
def xt_routines_compute_on_matrices_of_the_host(libraries):
    handle = context(libraries)
    for letter in "SDCZ":
        kind = Type(letter)
        alpha, beta = scalars(kind)
        a1, b1 = kind.one(alpha), kind.one(beta)
        for op in (N, T, C):
            shape = (M, K) if op == N else (K, M)
            a, b, c = Matrix(kind, *shape, 1), Matrix(kind, *(NN, K), 2), Matrix(kind, M, NN, 3)
            wanted = added(alpha, times(turned(a.dense(), op), turned(b.dense(), T)), beta, c.dense())
            sizes = [Size(M), Size(NN), Size(K)]
            expect(libraries, f"cublasXt{letter}gemm", [handle, op, T, *sizes, a1, a, Size(a.ld), b, Size(b.ld), b1, c, Size(c.ld)], c, kind, wanted)
        for lower in (True, False):
            _symmetric(libraries, handle, kind, lower)
            _triangular(libraries, handle, kind, lower)


def _symmetric(libraries, handle, kind, lower):
    alpha, beta = scalars(kind)
    letter, fill = kind.letter, LOWER if lower else UPPER
    a1, b1, real_a, real_b = kind.one(alpha), kind.one(beta), kind.one(alpha, True), kind.one(beta, True)
    inside = triangle(lower)
    for hermitian in (False, True) if kind.is_complex else (False,):
        op_t, sy, conjugate = (C, "he", C) if hermitian else (T, "sy", T)
        for op in (N, op_t):
            shape = (NN, K) if op == N else (K, NN)
            a, b, c = Matrix(kind, *shape, 1), Matrix(kind, *shape, 2), Matrix(kind, NN, NN, 3)
            old = whole(c.dense(), lower, hermitian)
            pa, pb = turned(a.dense(), op), turned(b.dense(), op)
            head = [handle, fill, op, Size(NN), Size(K)]
            square = times(pa, turned(pa, conjugate))
            first, second = (real_a, real_b) if hermitian else (a1, b1)
            by, plus = (complex(alpha.real), complex(beta.real)) if hermitian else (alpha, beta)
            expect(libraries, f"cublasXt{letter}{sy}rk", [*head, first, a, Size(a.ld), second, c, Size(c.ld)], c, kind, added(by, square, plus, old), inside)
            one, other = times(pa, turned(pb, conjugate)), times(pb, turned(pa, conjugate))
            both = [[alpha * x + (alpha.conjugate() if hermitian else alpha) * y for x, y in zip(r, s)] for r, s in zip(one, other)]
            tail = [a1, a, Size(a.ld), b, Size(b.ld), second, c, Size(c.ld)]
            expect(libraries, f"cublasXt{letter}{sy}r2k", [*head, *tail], c, kind, added(1, both, plus, old), inside)
            # B = A: what is asked of these is that the product is symmetric, so alpha is real where it must be hermitian.
            tail = [kind.one(complex(alpha.real)), a, Size(a.ld), a, Size(a.ld), second, c, Size(c.ld)]
            expect(libraries, f"cublasXt{letter}{sy}rkx", [*head, *tail], c, kind, added(complex(alpha.real), square, plus, old), inside)
        for side in (LEFT, RIGHT):
            order = M if side == LEFT else NN
            a, b, c = Matrix(kind, order, order, 1), Matrix(kind, M, NN, 2), Matrix(kind, M, NN, 3)
            full = whole(a.dense(), lower, hermitian)
            product = times(full, b.dense()) if side == LEFT else times(b.dense(), full)
            head, tail = [handle, side, fill, Size(M), Size(NN), a1], [b, Size(b.ld), b1, c, Size(c.ld)]
            wanted = added(alpha, product, beta, c.dense())
            expect(libraries, f"cublasXt{letter}{sy}mm", [*head, a, Size(a.ld), *tail], c, kind, wanted)
            if not hermitian:
                rows = (lambda j: range(j, order)) if lower else (lambda j: range(j + 1))
                packed = kind.array([a[i, j] for j in range(order) for i in rows(j)])
                expect(libraries, f"cublasXt{letter}spmm", [*head, packed, *tail], c, kind, wanted)


def _triangular(libraries, handle, kind, lower):
    alpha, _ = scalars(kind)
    for side in (LEFT, RIGHT):
        for op in (N, T, C):
            for unit in (False, True):
                order = M if side == LEFT else NN
                a, b, c = Matrix(kind, order, order, 1), Matrix(kind, M, NN, 2), Matrix(kind, M, NN, 3)
                for i in range(order):
                    a.values[i + i * a.ld] = complex(2)
                full = turned(whole(a.dense(), lower, False, unit, True), op)
                head = [handle, side, LOWER if lower else UPPER, op, int(unit), Size(M), Size(NN), kind.one(alpha), a, Size(a.ld)]
                product = times(full, b.dense()) if side == LEFT else times(b.dense(), full)
                scaled = [[alpha * v for v in row] for row in product]
                expect(libraries, f"cublasXt{kind.letter}trmm", [*head, b, Size(b.ld), c, Size(c.ld)], c, kind, scaled)
                right = [[alpha * v for v in row] for row in b.dense()]
                solved = inverse_times(full, right) if side == LEFT else turned(inverse_times(turned(full, T), turned(right, T)), T)
                if kind.letter in "DZ":
                    # In float the bound below is too narrow for a solution whose elements grow.
                    expect(libraries, f"cublasXt{kind.letter}trsm", [*head, b, Size(b.ld)], b, kind, solved)
                else:
                    b.values = [v / 4096 for v in b.values]
                    small = [[v / 4096 for v in row] for row in solved]
                    _close(libraries, f"cublasXt{kind.letter}trsm", [*head, b, Size(b.ld)], b, kind, small)


def _close(libraries, name, arguments, result, kind, wanted):
    """As `expect`, with the error of a substitution in float: of the largest element."""
    largest = max(abs(v) for row in wanted for v in row)
    buffer = kind.array(result.values)
    arguments = [buffer if argument is result else kind.array(argument.values) if isinstance(argument, Matrix) else argument for argument in arguments]
    arguments = [c_size_t(argument) if isinstance(argument, Size) else argument for argument in arguments]
    equal(getattr(libraries.blas, name)(*arguments), SUCCESS, name)
    found = kind.read(buffer)
    for i in range(result.rows):
        for j in range(result.columns):
            at = found[i + j * result.ld]
            holds(abs(at - wanted[i][j]) <= 1e-4 * largest, f"{name}: element {i}, {j} is {at}, not {wanted[i][j]}")


@case()
def xt_routines_check_what_they_are_given(libraries):
    blas, kind = libraries.blas, Type("S")
    a, one = kind.array([1, 2, 3, 4]), kind.one(complex(1))
    call = lambda handle, ld: blas.cublasXtSgemm(handle, N, N, *[c_size_t(2)] * 3, one, a, c_size_t(ld), a, c_size_t(2), one, a, c_size_t(2))  # noqa: E731
    equal(call(None, 2), NOT_INITIALIZED, "no context")
    equal(call(context(libraries, False), 2), NOT_INITIALIZED, "a context without a device")
    equal(call(context(libraries), 1), INVALID_VALUE, "a leading dimension that is too small")


@case()
def xt_takes_matrices_of_the_device(libraries):
    kind = Type("D")
    values, one, zero = kind.array([1, 2, 3, 4]), kind.one(complex(1)), kind.one(complex(0))
    places = [c_void_p() for _ in range(2)]
    for place in places:
        equal(libraries.cuda.cudaMalloc(byref(place), c_size_t(32)), SUCCESS)
    equal(libraries.cuda.cudaMemcpy(places[0], values, c_size_t(32), 1), SUCCESS)
    sizes = [c_size_t(2)] * 3
    status = libraries.blas.cublasXtDgemm(context(libraries), N, N, *sizes, one, places[0], sizes[0], values, sizes[0], zero, places[1], sizes[0])
    equal(status, SUCCESS)
    found = (c_double * 4)()
    equal(libraries.cuda.cudaMemcpy(found, places[1], c_size_t(32), 2), SUCCESS)
    equal(list(found), [7, 10, 15, 22], "the product")
