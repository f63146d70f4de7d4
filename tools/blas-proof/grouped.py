"""cublasGemmGroupedBatched and its form with types: groups of products, each with sizes, options and factors of its own."""

import numpy as np

from call import Wrong, compare, stored
from elements import BF16, DATA_TYPE, F16, F32, F64
from library import HOST, INVALID_VALUE, Arena
from memory import Operand, general
from names import COMPUTE
from routines import op

# (transa, transb, m, n, k, alpha, beta, products); a group may be empty, and so may a product or its sum.
GROUPS = [
    (0, 0, 6, 5, 3, 1.5, -0.5, 2),
    (1, 0, 4, 7, 9, 1.0, 1.0, 0),
    (1, 2, 40, 33, 70, -0.75, 0.0, 3),
    (0, 1, 5, 4, 0, 1.0, 2.0, 1),
    (2, 0, 0, 3, 2, 1.0, 1.0, 1),
    (0, 2, 8, 1, 2, 0.0, 0.5, 2),
]
# The manual's table.
TYPES = [("32F", F16, F16), ("32F", BF16, BF16), ("32F", F32, F32), ("64F", F64, F64)]
NAMED = {"S": ("32F", F32, F32), "D": ("64F", F64, F64)}


class Products:
    """What lies in memory: of every product three matrices, of which some must not be read."""

    def __init__(self, library, ab, c, scale):
        self.arena, rng = Arena(library), np.random.default_rng(len(GROUPS))
        self.matrices, self.ld, self.c = [], {"A": [], "B": [], "C": []}, c
        for transa, transb, m, n, k, alpha, beta, count in GROUPS:
            shapes = {"A": (m, k) if transa == 0 else (k, m), "B": (k, n) if transb == 0 else (n, k), "C": (m, n)}
            for key, shape in shapes.items():
                self.ld[key].append(max(1, shape[0]) + 2)
            for _ in range(count):
                triple = {}
                for key, (rows, columns) in shapes.items():
                    ld = max(1, rows) + 2
                    triple[key] = operand = Operand(c if key == "C" else ab, general(rows, columns, ld), ld * columns, 1, False, rng)
                    if (key == "C" and beta == 0) or (key != "C" and alpha == 0):
                        operand.forget()
                self.matrices.append(triple)
        for triple in self.matrices:
            for operand in triple.values():
                operand.address = self.arena.put(operand.memory)
        self.pointers = {key: self.arena.put(np.array([self._start(triple[key]) for triple in self.matrices], np.int64)) for key in "ABC"}
        self.factors = {key: np.array([group[i] for group in GROUPS]).astype(scale.dtype) for key, i in (("alpha", 5), ("beta", 6))}

    @staticmethod
    def _start(operand):
        return operand.address + operand.starts[0] * operand.element.dtype.itemsize

    def arrays(self, integer):
        """Those of the host."""
        columns = list(zip(*GROUPS))
        arrays = {"transa": np.array(columns[0], np.int32), "transb": np.array(columns[1], np.int32)}
        arrays |= {key: np.array(columns[i], integer) for key, i in (("m", 2), ("n", 3), ("k", 4), ("group_size", 7))}
        arrays |= {f"ld{key.lower()}": np.array(self.ld[key], integer) for key in "ABC"}
        return arrays | self.factors

    def verify(self, u):
        index = 0
        for transa, transb, _, _, k, alpha, beta, count in GROUPS:
            for triple in self.matrices[index : index + count]:
                self._verify(index, triple, transa, transb, k, alpha, beta, u)
                index += 1

    def _verify(self, index, triple, transa, transb, k, alpha, beta, u):
        for key in "AB":
            if self.arena.get(triple[key].address, triple[key].memory).tobytes() != triple[key].memory.tobytes():
                raise Wrong(f"{key} of product {index} was written")
        c = triple["C"]
        new = self.arena.get(c.address, c.memory)
        inside = np.zeros(len(new), bool)
        inside[c.inside] = True
        if new[~inside].tobytes() != c.memory[~inside].tobytes():
            raise Wrong(f"beside C of product {index} something was written")

        def sums(form):
            a, b, old = (form(triple[key].dense(0)) for key in "ABC")
            product = form(alpha) * (op(a, transa) @ op(b, transb)) if alpha else np.zeros(old.shape)
            return product + form(beta) * old if beta else product

        value = sums(lambda number: number)
        compare("C", index, c.dense(0, new), value, (k + 4) * u * sums(np.abs) + stored(c.element, value), np.ones(value.shape, bool))


def prove(library, families, only):
    for wide in ("", "_64"):
        for letter, row in NAMED.items():
            _prove_name(library, families["gemmGroupedBatched"], f"cublas{letter}gemmGroupedBatched{wide}", [row], only)
        _prove_name(library, families["gemmGroupedBatchedEx"], f"cublasGemmGroupedBatchedEx{wide}", TYPES, only)


def _prove_name(library, family, name, rows, only):
    if only not in name:
        return
    library.pointer_mode(HOST)
    integer = np.int64 if name.endswith("_64") else np.int32
    for compute, ab, c in rows:
        scale = COMPUTE[compute][1]
        products = Products(library, ab, c, scale)
        arrays = products.arrays(integer)
        given = _arguments(name, products, arrays, ab, c, compute)
        call = lambda **other: library.function(name)(library.handle, *map(_address, (given | other).values()))
        for what, other in _wrong(arrays):
            family.expect(name, what, call(**other), INVALID_VALUE)
        family.expect(name, "no groups", call(group_count=0), 0)
        if not family.called(name, call()):
            return
        try:
            products.verify(scale.roundoff)
        except Wrong as wrong:
            family.wrong.append(f"{name} {compute} {ab.name}: {wrong}")


def _arguments(name, products, arrays, ab, c, compute):
    types = {"A": DATA_TYPE[ab], "B": DATA_TYPE[ab], "C": DATA_TYPE[c]} if "Ex" in name else {}
    given = {key: arrays[key] for key in ("transa", "transb", "m", "n", "k", "alpha")}
    for key in "ABC":
        if key == "C":
            given["beta"] = arrays["beta"]
        given[key] = products.pointers[key]
        if types:
            given[f"{key}type"] = types[key]
        given[f"ld{key.lower()}"] = arrays[f"ld{key.lower()}"]
    given |= {"group_count": len(GROUPS), "group_size": arrays["group_size"]}
    return given | ({"computeType": COMPUTE[compute][0]} if types else {})


def _address(value):
    return value.ctypes.data if isinstance(value, np.ndarray) else value


def _wrong(arrays):
    yield "group_count is -1", dict(group_count=-1)
    yield "m is NULL", dict(m=None)
    yield "alpha is NULL", dict(alpha=None)
    for key in ("m", "n", "k", "group_size", "lda"):
        array = arrays[key].copy()
        array[2] = -1
        yield f"{key} of a group is -1", {key: array}
