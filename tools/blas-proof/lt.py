"""cublasLtMatmul and cublasLtMatrixTransform: types, memory orders, batches, pointer modes, scale factors and epilogues.

D = epilogue(α·a·b·op(A)·op(B) + β·c·C)·d, where a, b, c and d are the scale factors of narrow types. Source: cuBLAS manual,
"Using the cuBLASLt API", the tables of cublasLtMatmul() and cublasLtEpilogue_t.
"""

import ctypes
import itertools

import numpy as np

from call import Wrong, stored
from elements import BF16, C32, C64, DATA_TYPE, E4M3, E5M2, F16, F32, F64, I8, I32
from in_order import Stream
from library import INVALID_VALUE, NOT_SUPPORTED, OK, Arena
from memory import Operand, general
from routines import op

BATCH = 3
COL, ROW, COL32 = 0, 1, 2
HOST, DEVICE, ALPHA_VECTOR_NO_BETA, ALPHA_VECTOR = 0, 1, 3, 4
COMPUTE = {"16F": 64, "32F": 68, "32F_PEDANTIC": 69, "32F_FAST_16F": 74, "32F_FAST_16BF": 75, "32F_FAST_TF32": 77, "64F": 70, "32I": 72}

# Attributes: cublasLtMatrixLayoutAttribute_t, …MatmulDescAttributes_t, …MatrixTransformDescAttributes_t.
ORDER, BATCH_COUNT, BATCH_OFFSET = 1, 5, 6
POINTER_MODE, TRANSA, TRANSB, EPILOGUE, BIAS_POINTER, BIAS_STRIDE = 2, 3, 4, 7, 8, 10
AUX_POINTER, AUX_LD, AUX_STRIDE, ALPHA_STRIDE = 11, 12, 13, 14
SCALE = {"A": 17, "B": 18, "C": 19, "D": 20}
AMAX_D, AUX_TYPE, AUX_SCALE, AUX_AMAX, BIAS_TYPE = 21, 22, 23, 24, 26

# cublasLtEpilogue_t is made of these.
RELU, BIAS, DRELU, BGRAD, GELU, DGELU, AUX, BGRADA, BGRADB = 2, 4, 8, 16, 32, 64, 128, 256, 512
FORWARD = [RELU, RELU | AUX, BIAS, RELU | BIAS, RELU | AUX | BIAS, GELU, GELU | AUX, GELU | BIAS, GELU | AUX | BIAS]
BACKWARD = [DRELU | AUX, DRELU | AUX | BGRAD, DGELU | AUX, DGELU | AUX | BGRAD, BGRADA, BGRADB]

# (compute type, scale type, A, B, C, D, what sums have)
TYPES = [("16F", F16, F16, F16, F16, F16, F16), ("32I", I32, I8, I8, I32, I32, I32), ("32I", F32, I8, I8, I8, I8, F32)]
TYPES += [("32F", F32, ab, ab, cd, cd, F32) for ab, cd in ((BF16, BF16), (F16, F16), (I8, F32), (BF16, F32), (F16, F32), (F32, F32))]
TYPES += [(compute, F32, F32, F32, F32, F32, F32) for compute in ("32F_PEDANTIC", "32F_FAST_16F", "32F_FAST_16BF", "32F_FAST_TF32")]
TYPES += [("32F", C32, C32, C32, C32, C32, C32), ("64F", F64, F64, F64, F64, F64, F64), ("64F", C64, C64, C64, C64, C64, C64)]
NARROW = [("32F", F32, E4M3, E4M3, c, d, F32) for c, d in ((BF16, BF16), (BF16, E4M3), (F16, E4M3), (F16, F16), (F32, F32))]
NARROW += [
    ("32F", F32, a, b, c, d, F32)
    for a, b in ((E4M3, E5M2), (E5M2, E4M3))
    for c, d in ((BF16, BF16), (BF16, E4M3), (BF16, E5M2), (F16, E4M3), (F16, E5M2), (F16, F16), (F32, F32))
]


class Attributes:
    """A descriptor: made, given attributes, destroyed."""

    def __init__(self, library, kind, *arguments):
        self.library, self.kind, self.at = library, kind, ctypes.c_void_p()
        must(library, f"{kind}Create", ctypes.byref(self.at), *arguments)

    def set(self, number, value, kind=ctypes.c_int32):
        value = kind(value)
        must(self.library, f"{self.kind}SetAttribute", self.at, number, ctypes.byref(value), ctypes.sizeof(value))

    def destroy(self):
        must(self.library, f"{self.kind}Destroy", self.at)


def must(library, name, *arguments):
    if status := library.function(name)(*arguments):
        raise Wrong(f"{name}: status {status}")


class Matrix:
    """The matrices of a batch, in an order, in memory."""

    def __init__(self, arena, element, rows, columns, rng, order=COL, batch=1, shared=False, pad=3, small=False):
        self.element, self.rows, self.columns, self.order, self.batch = element, rows, columns, order, batch
        i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
        if order == COL:
            self.ld, span = rows + pad, (rows + pad) * columns
            positions = general(rows, columns, self.ld)
        elif order == ROW:
            self.ld, span = columns + pad, (columns + pad) * rows
            positions = i * self.ld + j
        else:
            self.ld, span = 32 * (rows + pad), 32 * (rows + pad) * ((columns + 31) // 32)
            positions = j // 32 * self.ld + 32 * i + j % 32
        self.operand = Operand(element, positions, span, batch, shared, rng)
        if small and not element.is_integer:
            self.operand.memory[self.operand.inside] = (self.operand.memory[self.operand.inside].astype(np.float64) / 8).astype(element.dtype)
        self.arena, self.base = arena, arena.put(self.operand.memory)

    @property
    def address(self):
        return self.base + self.operand.starts[0] * self.element.dtype.itemsize

    def forget(self):
        self.operand.forget()
        self.arena.library.copy(self.base, self.operand.memory.ctypes.data, self.operand.memory.nbytes, 1)

    def layout(self, library):
        layout = Attributes(library, "cublasLtMatrixLayout", DATA_TYPE[self.element], self.rows, self.columns, self.ld)
        if self.order != COL:
            layout.set(ORDER, self.order)
        if self.batch > 1:
            layout.set(BATCH_COUNT, self.batch)
            layout.set(BATCH_OFFSET, self.operand.stride, ctypes.c_int64)
        return layout

    def before(self, index):
        return self.operand.dense(index)

    def after(self):
        """Of every matrix the numbers; raises if others were written."""
        new = self.arena.get(self.base, self.operand.memory)
        beside = np.ones(len(new), bool)
        beside[self.operand.inside] = False
        if new[beside].tobytes() != self.operand.memory[beside].tobytes():
            raise Wrong("something was written beside the result")
        return [self.operand.dense(i, new) for i in range(self.batch)]


class Vector:
    """A vector for each product of a batch, or numbers that stand alone."""

    def __init__(self, arena, element, length, rng, batch=1, values=None):
        self.arena, self.element, self.length, self.stride = arena, element, length, length + 3
        self.memory = element.poison(batch * self.stride).reshape(batch, self.stride)
        self.memory[:, :length] = element.random(rng, batch * length).reshape(batch, length) if values is None else values
        self.address = arena.put(self.memory)

    def before(self, index):
        return self.element.wide(self.memory[index if len(self.memory) > 1 else 0, : self.length])

    def after(self):
        new = self.arena.get(self.address, self.memory)
        if new[:, self.length :].tobytes() != self.memory[:, self.length :].tobytes():
            raise Wrong("something was written beside a vector")
        return self.element.wide(new[:, : self.length])


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x):
    root = np.sqrt(2 / np.pi)
    tanh = np.tanh(root * (x + 0.044715 * x**3))
    return (1 + tanh) / 2 + x / 2 * (1 - tanh**2) * root * (1 + 3 * 0.044715 * x**2)


class Product:
    """One call: what it is given, and what has to come back."""

    def __init__(self, library, types, *, sizes=(37, 21, 45), ops=(0, 0), orders=(COL, COL, COL), batch=1, mode=HOST, epilogue=0,
                 factors=(1.25, -0.5), scales=(), aux=None, in_place=False, bias_type=None):
        self.library, self.types, self.ops, self.mode, self.epilogue = library, types, ops, mode, epilogue
        self.compute, self.scale, a, b, c, d, self.sums = types
        self.m, self.n, self.k = sizes
        self.batch, self.in_place, self.aux_type = batch, in_place, aux
        m, n, k = sizes
        self.arena, rng = Arena(library), np.random.default_rng(m)
        arena = self.arena
        shape = lambda transposed, rows, columns: (columns, rows) if transposed else (rows, columns)
        small = d.is_integer or DATA_TYPE[d] in (28, 29)
        self.A = Matrix(arena, a, *shape(ops[0], m, k), rng, orders[0], batch, small=small)
        self.B = Matrix(arena, b, *shape(ops[1], k, n), rng, orders[1], batch, shared=batch > 1, small=small)
        self.C = Matrix(arena, c, m, n, rng, orders[2], batch)
        self.D = self.C if in_place else Matrix(arena, d, m, n, rng, orders[2], batch, pad=5)
        # Of the bytes of the imprecise types sums must not leave the range.
        self.alpha, self.beta = factors if not (d.is_integer and self.scale is F32) else (0.03125, 0.5)
        if self.scale is I32:
            self.alpha, self.beta = 3, -2
            if factors[1] == 0:
                self.beta = 0
        if self.scale.is_complex:
            self.alpha, self.beta = self.alpha * (1 - 0.5j), self.beta * (0.25 + 1j)
        rows = rng.uniform(-0.03, 0.03, m) if d is I8 else None
        self.rows = Vector(arena, self.scale, m, rng, batch, rows) if mode in (ALPHA_VECTOR_NO_BETA, ALPHA_VECTOR) else None
        if self.beta == 0 or mode == ALPHA_VECTOR_NO_BETA:
            self.C.forget()
        bias = bias_type or d
        length = n if epilogue == BGRADB else m
        self.bias = Vector(arena, bias, length, rng, batch) if epilogue & (BIAS | BGRAD | BGRADA | BGRADB) else None
        self.factors = {key: Vector(arena, F32, 1, rng, values=value) for key, value in scales}
        self.auxiliary = self._auxiliary(rng) if epilogue & AUX else None
        self.description = f"{self.compute} {self.scale.name}: {a.name} {b.name} {c.name} {d.name} ops={ops} orders={orders} batch={batch} mode={mode} " + \
            f"epilogue={epilogue} factors={factors} scales={[key for key, _ in scales]} in place={in_place} sizes={sizes}"

    def _auxiliary(self, rng):
        if not self.epilogue & (RELU | DRELU):
            return Matrix(self.arena, self.aux_type or self.D.element, self.m, self.n, rng, COL, self.batch, pad=8 - self.m % 8)
        # A bit for each element; columns are multiples of 128 apart.
        self.bits_ld = (self.m + 127) // 128 * 128
        self.bits = rng.integers(0, 256, (self.batch, self.n, self.bits_ld // 8), np.uint8)
        return self.arena.put(self.bits)

    def describe(self):
        library, made = self.library, Attributes(self.library, "cublasLtMatmulDesc", COMPUTE[self.compute], DATA_TYPE[self.scale])
        made.set(TRANSA, self.ops[0])
        made.set(TRANSB, self.ops[1])
        made.set(POINTER_MODE, self.mode)
        pointer = lambda number, address: made.set(number, address, ctypes.c_uint64)
        if self.epilogue:
            made.set(EPILOGUE, self.epilogue)
        if self.bias is not None:
            pointer(BIAS_POINTER, self.bias.address)
            if self.bias.element is not self.D.element:
                made.set(BIAS_TYPE, DATA_TYPE[self.bias.element])
            if self.batch > 1:
                made.set(BIAS_STRIDE, self.bias.stride, ctypes.c_int64)
        if self.rows is not None and self.batch > 1:
            made.set(ALPHA_STRIDE, self.rows.stride, ctypes.c_int64)
        if isinstance(self.auxiliary, Matrix):
            pointer(AUX_POINTER, self.auxiliary.address)
            made.set(AUX_LD, self.auxiliary.ld, ctypes.c_int64)
            made.set(AUX_STRIDE, self.auxiliary.operand.stride, ctypes.c_int64)
            if self.aux_type:
                made.set(AUX_TYPE, DATA_TYPE[self.aux_type])
        elif self.auxiliary is not None:
            pointer(AUX_POINTER, self.auxiliary)
            made.set(AUX_LD, self.bits_ld, ctypes.c_int64)
            made.set(AUX_STRIDE, self.n * self.bits_ld, ctypes.c_int64)
        numbers = SCALE | {"amax": AMAX_D, "aux": AUX_SCALE, "aux amax": AUX_AMAX}
        for key, factor in self.factors.items():
            pointer(numbers[key], factor.address)
        return made

    def call(self, handle, algorithm=None, stream=None):
        """The status, after the work; a held stream is let go when the descriptors are no more."""
        library = self.library
        made, layouts = self.describe(), [matrix.layout(library) for matrix in (self.A, self.B, self.C, self.D)]
        host = [np.array([value]).astype(self.scale.dtype) for value in (self.alpha, self.beta)]
        device = [self.arena.put(value) for value in host]
        alpha, beta = device if self.mode == DEVICE else [value.ctypes.data for value in host]
        if self.rows is not None:
            alpha = self.rows.address
        descriptors = [made.at, *(layout.at for layout in layouts)]
        status, found = algorithm(library, handle, descriptors) if algorithm else (OK, None)
        if status == OK:
            status = library.function("cublasLtMatmul")(
                handle, made.at, alpha, self.A.address, layouts[0].at, self.B.address, layouts[1].at, beta, self.C.address, layouts[2].at,
                self.D.address, layouts[3].at, found and ctypes.byref(found), None, 0, stream and stream.handle)
        for descriptor in (made, *layouts):
            descriptor.destroy()
        early = self.arena.get(self.D.base, self.D.operand.memory)
        if stream:
            stream.let_go()
        library.cuda("cudaDeviceSynchronize")
        if stream and early.tobytes() != self.D.operand.memory.tobytes():
            raise Wrong("something was written before the stream was let go")
        return status

    def factor(self, key):
        return self.factors[key].before(0)[0] if key in self.factors else 1

    def verify(self):
        results, biases = self.D.after(), self.bias.after() if self.bias is not None else None
        saved = self.auxiliary.after() if isinstance(self.auxiliary, Matrix) else None
        bits = self.arena.get(self.auxiliary, self.bits) if self.auxiliary is not None and saved is None else None
        largest, largest_saved = [], []
        for i in range(self.batch):
            value, bound = self._sums(i)
            if self.epilogue & BIAS:
                bias = self.bias.before(i)[:, None]
                value, bound = value + bias, bound + self.sums.roundoff * 2 * (np.abs(value) + np.abs(bias))
            if self.epilogue & AUX:
                value, bound = self._activated_with_aux(i, value, bound, saved, bits, largest_saved)
            elif self.epilogue & RELU:
                value = np.maximum(value, 0)
            elif self.epilogue & GELU:
                value, bound = gelu(value), 1.2 * bound + 8 * self.sums.roundoff * np.abs(value)
            largest.append((np.abs(value).max(), bound.max()))
            if self.epilogue & BGRAD:
                self._near(i, "bias gradient", biases[i], value.sum(axis=1), bound.sum(axis=1) + self.n * self.sums.roundoff * np.abs(value).sum(axis=1), self.bias.element)
            scale = self.factor("D")
            self._near(i, "D", results[i], value * scale, bound * scale + 2 * self.sums.roundoff * np.abs(value * scale), self.D.element)
            if self.epilogue in (BGRADA, BGRADB):
                key, matrix, axis = ("A", self.A, 1) if self.epilogue == BGRADA else ("B", self.B, 0)
                factor = op(matrix.before(i), self.ops[key == "B"])
                wanted, sizes = factor.sum(axis=axis), np.abs(factor).sum(axis=axis)
                self._near(i, f"gradient of {key}", biases[i], wanted, self.k * self.sums.roundoff * sizes, self.bias.element)
        for key, found in (("amax", largest), ("aux amax", largest_saved)):
            if key in self.factors:
                wanted = max(found)[0]
                self._near(0, key, self.factors[key].after()[0], np.array([wanted]), np.array([max(bound for _, bound in found) + 2**-23 * wanted]), F32)

    def _sums(self, index):
        """α·op(A)·op(B) + β·C, and what rounding may make of it."""
        both = []
        mode_beta = 0 if self.mode == ALPHA_VECTOR_NO_BETA else self.beta
        rows = None if self.rows is None else self.rows.before(index)[:, None]
        for form in (lambda x: x, np.abs):
            a, b = op(form(self.A.before(index)), self.ops[0]), op(form(self.B.before(index)), self.ops[1])
            alpha = form(self.scale.wide(np.array(self.alpha).astype(self.scale.dtype))) if rows is None else form(rows)
            sums = alpha * self.factor("A") * self.factor("B") * (a @ b)
            if mode_beta:
                sums = sums + form(np.array(mode_beta)) * self.factor("C") * form(self.C.before(index))
            both.append(sums)
        each = 4 if self.scale.is_complex else 1
        return both[0], each * (self.k + 6) * self.sums.roundoff * both[1]

    def _activated_with_aux(self, i, value, bound, saved, bits, largest_saved):
        if bits is not None:
            on = np.unpackbits(bits[i], axis=1, bitorder="little")[:, : self.m].T.astype(bool)
            if self.epilogue & DRELU:
                return np.where(on, value, 0), np.where(on, bound, 0)
            sure = np.abs(value) > bound
            if (on != (value > 0))[sure].any():
                raise Wrong(f"relu's bits of product {i}")
            return np.maximum(value, 0), bound
        slack = 8 * self.sums.roundoff
        if self.epilogue & DGELU:
            slope = gelu_slope(self.auxiliary.before(i))
            return value * slope, np.abs(slope) * bound + 4 * slack * np.abs(value)
        largest_saved.append((np.abs(value).max(), bound.max()))
        scale = self.factor("aux")
        self._near(i, "what gelu saves", saved[i], value * scale, bound * scale + slack * np.abs(value * scale), self.auxiliary.element)
        return gelu(value), 1.2 * bound + slack * np.abs(value)

    def _near(self, index, what, found, wanted, bound, element):
        bound = bound + (0.5 if element is I8 else stored(element, wanted))
        if element is I8:
            bound = bound * (1 + 1e-6)
        wrong = ~(np.abs(found - wanted) <= bound)
        if wrong.any():
            at = tuple(int(place[0]) for place in np.nonzero(wrong))
            raise Wrong(f"{what}{list(at)} of product {index}: {found[at]:.9g}, not {wanted[at]:.9g} within {float(bound[at]):.2g}")


# cublasLtMatmulHeuristicResult_t; the algorithm comes first.
class Heuristic(ctypes.Structure):
    _fields_ = [("algorithm", ctypes.c_uint64 * 8), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int), ("waves", ctypes.c_float),
                ("reserved", ctypes.c_int * 4)]


def by_heuristics(library, handle, descriptors, name="cublasLtMatmulAlgoGetHeuristic", *stream):
    """The first algorithm that the heuristics give, without workspace."""
    preference, found, count = Attributes(library, "cublasLtMatmulPreference"), (Heuristic * 2)(), ctypes.c_int()
    preference.set(1, 0, ctypes.c_uint64)
    status = library.function(name)(handle, *descriptors, preference.at, 2, found, ctypes.byref(count), *stream)
    preference.destroy()
    if status == OK and not (count.value >= 1 and found[0].state == OK and found[0].workspace == 0):
        raise Wrong("there is no algorithm without workspace")
    return status, found[0]


def for_the_stream(library, handle, descriptors):
    return by_heuristics(library, handle, descriptors, "cublasLtMatmulAlgoGetHeuristicForStream", None)


def checked(library, handle, descriptors):
    """An algorithm by its number, that says itself whether it is right."""
    types = [64 + 4, 0, 0, 0, 0, 0]  # all in 32-bit floating point
    numbers, count, algorithm, result = (ctypes.c_int * 4)(), ctypes.c_int(), (ctypes.c_uint64 * 8)(), Heuristic()
    must(library, "cublasLtMatmulAlgoGetIds", handle, *types, 4, numbers, ctypes.byref(count))
    if count.value < 1:
        raise Wrong("there is no algorithm")
    must(library, "cublasLtMatmulAlgoInit", handle, *types, numbers[0], algorithm)
    status = library.function("cublasLtMatmulAlgoCheck")(handle, *descriptors, algorithm, ctypes.byref(result))
    ctypes.memmove(ctypes.addressof(result), algorithm, ctypes.sizeof(algorithm))
    return status, result


def _cases():
    every = list(itertools.product((0, 1, 2), (0, 1, 2)))
    orders = list(itertools.product((COL, ROW), repeat=3))
    floats = ("32F", F32, F32, F32, F32, F32, F32)
    for types in TYPES:
        for ops in every:
            yield types, dict(ops=ops)
        for order, ops in itertools.product(orders, ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2))):
            yield types, dict(orders=order, ops=ops)
        for more in (dict(mode=DEVICE), dict(factors=(1.25, 0)), dict(factors=(0, -0.5)), dict(batch=BATCH), dict(batch=BATCH, mode=DEVICE)):
            yield types, more
        if types[4] is types[5]:
            yield types, dict(in_place=True)
            yield types, dict(in_place=True, batch=BATCH, orders=(ROW, ROW, ROW))
        if types[1] is types[6] and types[0] != "16F" and types[1] is not I32:
            for mode, batch in itertools.product((ALPHA_VECTOR, ALPHA_VECTOR_NO_BETA), (1, BATCH)):
                yield types, dict(mode=mode, batch=batch)
        yield types, dict(sizes=(1030, 3, 1027))
        yield types, dict(sizes=(3, 1030, 5), ops=(1, 1))
    for types in NARROW:
        narrow = types[5] in (E4M3, E5M2)
        scales = (("A", 0.5), ("B", 3.0)) + ((("D", 0.75), ("amax", -1.0)) if narrow else ())
        for ops in ((1, 0), (0, 0), (0, 1)):
            yield types, dict(ops=ops)
            yield types, dict(ops=ops, scales=scales)
        for more in (dict(batch=BATCH), dict(mode=DEVICE), dict(factors=(1.25, 0)), dict(mode=ALPHA_VECTOR)):
            yield types, dict(ops=(1, 0), scales=scales) | more
        bias_type = F16 if types[4] is F16 else BF16
        for epilogue in (BIAS, RELU | BIAS, GELU | BIAS, RELU | AUX | BIAS):
            yield types, dict(ops=(1, 0), scales=scales, epilogue=epilogue, bias_type=bias_type)
        if narrow:
            saved = scales + (("aux", 0.5), ("aux amax", -1.0))
            for batch in (1, BATCH):
                yield types, dict(ops=(1, 0), scales=saved, epilogue=GELU | AUX | BIAS, bias_type=bias_type, aux=types[5], batch=batch)
                yield types, dict(ops=(1, 0), scales=saved[:-1], epilogue=GELU | AUX | BIAS, bias_type=bias_type, aux=BF16, batch=batch)
    plain = [types for types in TYPES if types[0] == "32F" and types[1] is F32 and types[4] is not I8]
    for types in plain:
        for epilogue, batch in itertools.product(FORWARD + BACKWARD, (1, BATCH)):
            yield types, dict(epilogue=epilogue, batch=batch, ops=(1, 1) if batch > 1 else (0, 0))
        yield types, dict(epilogue=RELU | BIAS, bias_type=F32)
        yield types, dict(epilogue=GELU, orders=(ROW, ROW, ROW))
        yield types, dict(epilogue=RELU, orders=(COL, COL, ROW))
    yield floats, dict(epilogue=RELU | AUX | BIAS, sizes=(1100, 1030, 9))
    yield floats, dict(epilogue=DGELU | AUX | BGRAD, sizes=(1100, 1030, 9))
    yield floats, dict(epilogue=BIAS, mode=ALPHA_VECTOR)


def prove(library, families, only):
    handle = ctypes.c_void_p()
    if only in "cublasLtMatmul":
        must(library, "cublasLtCreate", ctypes.byref(handle))
        _products(library, handle, families)
        _refusals(library, handle, families["Lt: refusals"])
    if only in "cublasLtMatrixTransform":
        if not handle:
            must(library, "cublasLtCreate", ctypes.byref(handle))
        _transforms(library, handle, families["Lt: transforms"])
    if handle:
        must(library, "cublasLtDestroy", handle)


def _products(library, handle, families):
    name = "cublasLtMatmul"
    for turn, (types, more) in enumerate(_cases()):
        kind = "in narrow types" if types in NARROW else "with epilogues" if "epilogue" in more else "plain"
        family = families[f"Lt: products {kind}"]
        # A handle of cuBLAS's is one of cuBLASLt's too.
        where = library.handle if turn % 3 == 2 else handle
        algorithm = (None, by_heuristics, for_the_stream)[turn % 3]
        family.names |= {name} | ({"cublasLtMatmulAlgoGetHeuristic" + ("ForStream" if turn % 3 == 2 else "")} if algorithm else set())
        product = None
        try:
            product = Product(library, types, **more)
            status = product.call(where, algorithm)
            family.calls += 1
            if status == NOT_SUPPORTED:
                family.declined.append(product.description)
                continue
            if status != OK:
                raise Wrong(f"status {status}")
            product.verify()
        except Wrong as wrong:
            family.wrong.append(f"{name} {product.description if product else more}: {wrong}")
    _in_order(library, handle, families["Lt: products on a stream"])
    family = families["Lt: algorithms by number"]
    family.names |= {"cublasLtMatmulAlgoGetIds", "cublasLtMatmulAlgoInit", "cublasLtMatmulAlgoCheck"}
    try:
        product = Product(library, ("32F", F32, F32, F32, F32, F32, F32))
        family.expect("cublasLtMatmulAlgoCheck", "status", product.call(handle, checked), OK)
        product.verify()
    except Wrong as wrong:
        family.wrong.append(f"cublasLtMatmulAlgoCheck: {wrong}")


def _in_order(library, handle, family):
    """Behind a stream's work: a bias and a factor get their numbers only after the call."""
    name, stream = "cublasLtMatmul", Stream(library)
    of_floats = [types for types in TYPES if types[1] is F32 and types[5] is not I8]
    for types, mode, epilogue in itertools.product(of_floats, (HOST, DEVICE), (0, GELU | AUX | BIAS)):
        family.names.add(name)
        family.calls += 1
        product = Product(library, types, mode=mode, epilogue=epilogue, batch=BATCH)
        late = [matrix.operand.memory for matrix in (product.A, product.B, product.C)] + ([product.bias.memory] if epilogue else [])
        places = [matrix.base for matrix in (product.A, product.B, product.C)] + ([product.bias.address] if epilogue else [])
        aside = [product.arena.put(memory) for memory in late]
        for place, memory in zip(places, late):
            nothing = np.zeros_like(memory)
            library.copy(place, nothing.ctypes.data, memory.nbytes, 1)
        stream.hold()
        try:
            for place, source, memory in zip(places, aside, late):
                stream.copy(place, source, memory.nbytes)
            status = product.call(handle, by_heuristics, stream)
            if status != OK:
                raise Wrong(f"status {status}")
            product.verify()
        except Wrong as wrong:
            family.wrong.append(f"{name} on a stream {product.description}: {wrong}")
        finally:
            stream.let_go()
    stream.destroy()


def _refusals(library, handle, family):
    """The manual: INVALID_VALUE for what contradicts itself, NOT_SUPPORTED for what the device does not do."""
    floats, name = ("32F", F32, F32, F32, F32, F32, F32), "cublasLtMatmul"

    def status(change=lambda product: None, types=floats, where=handle, **more):
        product = Product(library, types, **more)
        change(product)
        return product.call(where)

    def other(key, **values):
        return lambda product: [setattr(getattr(product, key), attribute, value) for attribute, value in values.items()]

    family.expect(name, "no handle", status(where=None), 1)
    family.expect(name, "B of another depth", status(other("B", rows=44)), INVALID_VALUE)
    family.expect(name, "D of another size", status(other("D", columns=20)), INVALID_VALUE)
    family.expect(name, "C of another size", status(other("C", rows=36)), INVALID_VALUE)
    family.expect(name, "a leading dimension that is too small", status(other("A", ld=36)), INVALID_VALUE)
    family.expect(name, "an epilogue that is none", status(lambda product: setattr(product, "epilogue", 3)), INVALID_VALUE)
    family.expect(name, "a bias that is nowhere", status(lambda product: setattr(product, "epilogue", BIAS)), INVALID_VALUE)
    family.expect(name, "an operation that is none", status(lambda product: setattr(product, "ops", (9, 0))), INVALID_VALUE)
    family.expect(name, "doubles summed in floats", status(types=("32F", F32, F64, F64, F64, F64, F32)), NOT_SUPPORTED)
    family.expect(name, "floats summed in integers", status(types=("32I", I32, F32, F32, F32, F32, I32)), NOT_SUPPORTED)


# cublasLtMatrixTransform: (scale type, A, B, C, what is computed in)
TRANSFORMS = [(F32, F32, F32, F32, F32), (F32, F16, F16, F16, F32), (F32, F16, F16, F32, F32), (F32, I8, I8, I8, F32), (F64, F64, F64, F64, F64), (C32, C32, C32, C32, C32)]


def _transforms(library, handle, family):
    name = "cublasLtMatrixTransform"
    for types, orders, ops, has_b, batch in itertools.product(
            TRANSFORMS, itertools.product((COL, ROW, COL32), repeat=2), ((0, 0), (1, 0), (0, 1), (2, 1)), (True, False), (1, BATCH)):
        family.names.add(name)
        what = f"{[t.name for t in types]} orders={orders} ops={ops} B={has_b} batch={batch}"
        try:
            status = _transform(library, handle, types, orders, ops, has_b, batch)
            family.calls += 1
            if status == NOT_SUPPORTED:
                family.declined.append(what)
            elif status != OK:
                raise Wrong(f"status {status}")
        except Wrong as wrong:
            family.wrong.append(f"{name} {what}: {wrong}")


def _transform(library, handle, types, orders, ops, has_b, batch):
    scale, a, b, c, sums = types
    m, n = 35, 70
    arena, rng = Arena(library), np.random.default_rng(batch)
    shape = lambda transposed: (n, m) if transposed else (m, n)
    A = Matrix(arena, a, *shape(ops[0]), rng, orders[0], batch)
    B = Matrix(arena, b, *shape(ops[1]), rng, orders[1], batch, shared=batch > 1)
    C = Matrix(arena, c, m, n, rng, orders[1], batch)
    made = Attributes(library, "cublasLtMatrixTransformDesc", DATA_TYPE[scale])
    made.set(2, ops[0])
    made.set(3, ops[1])
    layouts = [matrix.layout(library) for matrix in (A, B, C)]
    numbers = (1.5, -0.5) if not scale.is_complex else (1.5 - 1j, -0.5j)
    factors = [np.array([number]).astype(scale.dtype) for number in numbers]
    status = library.function("cublasLtMatrixTransform")(
        handle, made.at, factors[0].ctypes.data, A.address, layouts[0].at, factors[1].ctypes.data, B.address if has_b else None,
        layouts[1].at if has_b else None, C.address, layouts[2].at, None)
    library.cuda("cudaDeviceSynchronize")
    for descriptor in (made, *layouts):
        descriptor.destroy()
    if status == OK:
        for i, found in enumerate(C.after()):
            left, right = numbers[0] * op(A.before(i), ops[0]), numbers[1] * op(B.before(i), ops[1]) if has_b else 0
            bound = 8 * sums.roundoff * (np.abs(left) + np.abs(right)) + (0.5 + 1e-6 if c is I8 else stored(c, left + right))
            if not (np.abs(found - (left + right)) <= bound).all():
                raise Wrong(f"matrix {i} is off by {float(np.abs(found - (left + right)).max()):.3g}")
    return status
