"""The graph API as cudnn-frontend uses it: descriptors with attributes, heuristics, a plan, a pack; beside the definition in f64."""

import ctypes
import math
from itertools import count

import numpy as np

from convolutions import Problem
from device import BY_KERNELS
from library import INT32 as WHOLE
from library import DOUBLE, FLOAT, FLOATS, HALF, P, STATUS, Scope, drawn, near

HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT_, DOUBLE_, POINTER, MODE, HEUR, NAN, POINTWISE, DESCRIPTOR, REDUCTION = 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 14, 15, 18
BEHAVIOR_NOTE, RESAMPLE, PADDING, INT32, NORM_MODE, NORM_PHASE, RESHAPE_MODE = 19, 21, 22, 23, 27, 28, 31
C = {HANDLE: P, DATA_TYPE: ctypes.c_int, BOOLEAN: ctypes.c_bool, INT64: ctypes.c_int64, FLOAT_: ctypes.c_float, DOUBLE_: ctypes.c_double,
     POINTER: P, MODE: ctypes.c_int, HEUR: ctypes.c_int, NAN: ctypes.c_int, POINTWISE: ctypes.c_int, DESCRIPTOR: P, REDUCTION: ctypes.c_int, RESAMPLE: ctypes.c_int,
     PADDING: ctypes.c_int, NORM_MODE: ctypes.c_int, NORM_PHASE: ctypes.c_int, RESHAPE_MODE: ctypes.c_int, INT32: ctypes.c_int32,
     # Of statistics, of their use, an order in memory, a distribution, a way of routing.
     16: ctypes.c_int, 17: ctypes.c_int, 20: ctypes.c_int, 29: ctypes.c_int, 30: ctypes.c_int}
erf = np.vectorize(math.erf)


class Graph:
    def __init__(self, scope):
        self.scope, self.face, self.uids, self.operations, self.given = scope, scope.library, count(100), [], {}

    def made(self, kind):
        it = P()
        self.face("cudnnBackendCreateDescriptor", kind, ctypes.byref(it))
        self.scope.undo.append(lambda: self.face("cudnnBackendDestroyDescriptor", it))
        return it

    def set(self, it, name, ty, *values):
        values = [value.value if isinstance(value, P) else value for value in values]
        self.face("cudnnBackendSetAttribute", it, name, ty, ctypes.c_int64(len(values)), (C[ty] * len(values))(*values))

    def final(self, kind, *attributes):
        it = self.made(kind)
        for attribute in attributes:
            self.set(it, *attribute)
        self.face("cudnnBackendFinalize", it)
        return it

    def tensor(self, sizes, strides, of, virtual=False, value=False):
        uid = next(self.uids)
        it = self.final(17, (901, DATA_TYPE, of), (902, INT64, *sizes), (903, INT64, *strides), (906, INT64, uid), (900, INT64, 4),
                        (907, BOOLEAN, virtual), (908, BOOLEAN, value))
        return uid, it

    def memory(self, tensor):
        """A tensor in the device's memory."""
        uid, it = self.tensor(tensor.sizes, tensor.strides, tensor.of)
        self.given[uid] = tensor.at.value
        return it

    def virtual(self, sizes, of=FLOAT):
        strides = [int(np.prod(sizes[at + 1:])) for at in range(len(sizes))]
        return self.tensor(sizes, strides, of, virtual=True)[1]

    def convolution(self, it):
        n = it.n
        return self.final(1, (100, DATA_TYPE, it.computed), (101, MODE, 0 if it.flips else 1), (106, INT64, n), (102, INT64, *it.dilation),
                          (103, INT64, *it.stride), (104, INT64, *it.padding), (105, INT64, *it.padding))

    def pointwise(self, mode, x, y, b=None, t=None, settings=(), backward=False):
        by = self.final(0, (0, POINTWISE, mode), (1, DATA_TYPE, FLOAT), *settings)
        names = (751, 757, 756) if backward else (751, 752, 753)
        attributes = [(750, DESCRIPTOR, by), (names[0], DESCRIPTOR, x), (names[2], DESCRIPTOR, y)]
        attributes += [(names[1], DESCRIPTOR, b)] if b is not None else []
        attributes += [(758, DESCRIPTOR, t)] if t is not None else []
        self.operations.append(self.final(13, *attributes))

    def plan(self, mode=3):
        # Graphs whose sizes are to change are as others are.
        graph = self.final(15, (801, DESCRIPTOR, *self.operations), (800, HANDLE, self.scope.handle), (803, BOOLEAN, len(self.given) % 2))
        heuristics = self.final(4, (201, DESCRIPTOR, graph), (200, HEUR, mode))
        found, config = ctypes.c_int64(), self.made(3)
        self.face("cudnnBackendGetAttribute", heuristics, 202, DESCRIPTOR, ctypes.c_int64(0), ctypes.byref(found), None)
        assert found.value == 1
        self.face("cudnnBackendGetAttribute", heuristics, 202, DESCRIPTOR, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(config))
        engine, index = self.made(2), ctypes.c_int64(9)
        self.face("cudnnBackendGetAttribute", config, 300, DESCRIPTOR, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(engine))
        self.face("cudnnBackendGetAttribute", engine, 1301, INT64, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(index))
        assert (found.value, index.value) == (1, 0)
        self.face("cudnnBackendGetAttribute", engine, 1303, 11, ctypes.c_int64(0), ctypes.byref(found), None)
        assert found.value == 0
        # It has one note on what it does: its plans become nodes of CUDA graphs.
        note = ctypes.c_int(9)
        self.face("cudnnBackendGetAttribute", engine, 1305, BEHAVIOR_NOTE, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(note))
        assert (found.value, note.value) == (1, 3)
        narrow = ctypes.c_int32(9)
        self.face("cudnnBackendGetAttribute", config, 304, INT32, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(narrow))
        assert (found.value, narrow.value) == (1, 0)
        plan = self.final(5, (400, HANDLE, self.scope.handle), (401, DESCRIPTOR, config))
        size = ctypes.c_int64(9)
        self.face("cudnnBackendGetAttribute", plan, 402, INT64, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(size))
        assert (found.value, size.value) == (1, 0)
        return plan

    def pack(self):
        return self.final(16, (1000, INT64, *self.given), (1001, POINTER, *self.given.values()), (1003, POINTER, 0))

    def run(self):
        self.face("cudnnBackendExecute", self.scope.handle, self.plan(), self.pack())
        self.face.synchronize()


def convolutions(library, rng):
    """A convolution alone and with what a network has behind it, in virtual tensors; its gradients."""
    for number_ in range(48):
        of = FLOATS[number_ % 4]
        face, it = library.drawn(rng), Problem(rng, of, int(rng.choice([2, 2, 3])))
        x, w, y = drawn(rng, it.x_sizes, of), drawn(rng, it.w_sizes, of), drawn(rng, it.y_sizes, of)
        with Scope(face) as scope:
            graph = Graph(scope)
            tx, tw, ty = scope.tensor(x, of, rng), scope.tensor(w, of, rng), scope.tensor(y, of, rng)
            convolution = graph.convolution(it)
            gx, gw, gy = graph.memory(tx), graph.memory(tw), graph.memory(ty)
            kind = number_ // 4 % 4
            if kind == 0:
                graph.operations.append(graph.final(10, (702, DESCRIPTOR, convolution), (704, DESCRIPTOR, gx), (703, DESCRIPTOR, gw),
                                                    (705, DESCRIPTOR, gy), (700, FLOAT_, 2.0), (701, FLOAT_, -0.5)))
                graph.run()
                near(ty.get(), 2 * it.forward(x, w) - 0.5 * y, 2 * it.forward(np.abs(x), np.abs(w)) + np.abs(y), of, it.depth, "graph")
            elif kind == 1:
                graph.operations.append(graph.final(12, (708, DESCRIPTOR, convolution), (709, DESCRIPTOR, gw), (711, DESCRIPTOR, gy),
                                                    (710, DESCRIPTOR, gx)))
                graph.run()
                near(tx.get(), it.backward_data(w, y), it.backward_data(np.abs(w), np.abs(y)), of, it.depth * 8, "graph data")
            elif kind == 2:
                graph.operations.append(graph.final(11, (714, DESCRIPTOR, convolution), (716, DESCRIPTOR, gx), (717, DESCRIPTOR, gy),
                                                    (715, DESCRIPTOR, gw)))
                graph.run()
                near(tw.get(), it.backward_filter(x, y), it.backward_filter(np.abs(x), np.abs(y)), of, y.size, "graph filter")
            else:
                bias, z = drawn(rng, (1, it.y_sizes[1]) + (1,) * it.n, of), drawn(rng, it.y_sizes, of)
                gb, gz = graph.memory(scope.tensor(bias, of)), graph.memory(scope.tensor(z, of, rng))
                first, second, third = (graph.virtual(it.y_sizes, it.computed) for _ in range(3))
                # In the opposite order: each comes behind what it takes from, whatever the list says.
                graph.pointwise(100, third, gy)
                graph.pointwise(0, second, third, gb)
                graph.pointwise(0, first, second, gz)
                graph.operations.append(graph.final(10, (702, DESCRIPTOR, convolution), (704, DESCRIPTOR, gx), (703, DESCRIPTOR, gw),
                                                    (705, DESCRIPTOR, first)))
                graph.run()
                magnitude = it.forward(np.abs(x), np.abs(w)) + np.abs(z) + np.abs(bias)
                near(ty.get(), np.maximum(it.forward(x, w) + z + bias, 0), magnitude, of, it.depth, "graph with bias")
    return 48


def pointwise(library, rng):
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    normal = lambda x: 0.5 * (1 + erf(x / math.sqrt(2)))
    k = math.sqrt(2 / math.pi)
    bent = lambda x: k * (x + 0.044715 * x**3)
    one = {4: np.sqrt, 10: np.abs, 11: np.ceil, 12: np.cos, 13: np.exp, 14: np.floor, 15: np.log, 16: np.negative,
           17: lambda x: 1 / np.sqrt(x), 18: np.sin, 19: np.tan, 20: erf, 21: lambda x: x, 22: lambda x: 1 / x,
           100: lambda x: np.maximum(x, 0), 101: np.tanh, 102: sigmoid, 103: lambda x: np.where(x > 0, x, np.expm1(x)),
           104: lambda x: x * normal(x), 105: lambda x: np.log1p(np.exp(x)), 106: lambda x: x * sigmoid(x),
           107: lambda x: 0.5 * x * (1 + np.tanh(bent(x))), 402: lambda x: (x == 0) * 1.0}
    two = {0: np.add, 1: np.multiply, 2: np.minimum, 3: np.maximum, 5: lambda a, b: a + b * b, 6: np.divide, 7: np.fmod, 8: np.power,
           9: np.subtract, 23: np.arctan2, 24: np.mod, 300: np.equal, 301: np.not_equal, 302: np.greater, 303: np.greater_equal,
           304: np.less, 305: np.less_equal, 400: np.logical_and, 401: np.logical_or}
    slope = lambda f, x: (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    positive = (4, 15, 17, 8, 19)
    total = 0
    for mode in [*one, *two, 200, 201, 202, 203, 204, 205, 206, 207, 501, 601]:
        for of in (FLOAT, DOUBLE, HALF):
            face = library.drawn(rng)
            sizes = tuple(int(size) for size in rng.integers(1, 6, 4))
            smaller = tuple(size if rng.integers(0, 2) else 1 for size in sizes)
            x, b, t = drawn(rng, sizes, of), drawn(rng, smaller, of), (rng.integers(0, 2, sizes) * 1.0)
            if mode in positive:
                x = np.abs(x) + 0.25
                x = np.minimum(x, 1.2).astype({FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16}[of]).astype(np.float64)
            if mode in (6, 7, 22, 24):
                b = np.sign(b) * (np.abs(b) + 0.5) + (b == 0)
                b = b.astype({FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16}[of]).astype(np.float64)
                if mode == 22:
                    x = np.sign(x) * (np.abs(x) + 0.5) + (x == 0)
                    x = x.astype({FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16}[of]).astype(np.float64)
            with Scope(face) as scope:
                graph = Graph(scope)
                tx, tb, ty, tt = scope.tensor(x, of, rng), scope.tensor(b, of, rng), scope.tensor(x * 0, of, rng), scope.tensor(t, of, rng)
                gx, gb, gy, gt = (graph.memory(tensor) for tensor in (tx, tb, ty, tt))
                magnitude = np.abs(x) + np.abs(b) + 1
                if mode in one:
                    graph.pointwise(mode, gx, gy)
                    expected = one[mode](x)
                    magnitude = magnitude + np.abs(expected) ** 2
                elif mode in two:
                    graph.pointwise(mode, gx, gy, gb)
                    expected = two[mode](x, b + 0 * x) * 1.0
                    magnitude = magnitude + b * b
                    if mode in (7, 24):
                        magnitude = magnitude + np.abs(x / b)
                elif mode == 501:
                    graph.pointwise(mode, gx, gy, settings=((9, INT64, 2),))
                    expected = np.broadcast_to(np.arange(sizes[2])[None, None, :, None], sizes) * 1.0
                elif mode == 601:
                    graph.pointwise(mode, gx, gy, gb, gt)
                    expected = np.where(t != 0, x, b)
                else:
                    graph.pointwise(mode, gx, gy, gb, backward=True)
                    f = {200: 100, 201: 101, 202: 102, 203: 103, 204: 104, 205: 105, 206: 106, 207: 107}[mode]
                    expected = np.where(np.abs(x) < 1e-5, np.nan, slope(one[f], x)) * b
                graph.run()
                found = ty.get()
                if 200 <= mode < 300:
                    # The difference that stands for the slope is itself so far off.
                    wrong = ~(np.isnan(expected) | (np.abs(found - expected) <= (2e-3 if of == HALF else 1e-5) * (np.abs(b) + 1e-3)))
                    assert not wrong.any(), (mode, found[wrong], expected[wrong])
                elif mode in (7, 24):
                    # At a multiple of b either end is as near.
                    apart = np.abs(found - expected)
                    wrong = np.minimum(apart, np.abs(apart - np.abs(b))) > 2e-3 * magnitude
                    assert not wrong.any(), (mode, found[wrong], expected[wrong])
                else:
                    near(found, expected, magnitude, of, 4, f"pointwise {mode}")
            total += 1
    return total



def of_any_numbers(library, rng):
    """Functions of floats whose bits are drawn, and of those that have names, near what NumPy gives in double precision."""
    specials = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-45, 3.4028235e38, 16777216.0, 1e30, 2.0**31, -7e22]
    normal = np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2)))
    one = {4: np.sqrt, 10: np.abs, 11: np.ceil, 12: np.cos, 13: np.exp, 14: np.floor, 15: np.log, 16: np.negative, 17: lambda x: 1 / np.sqrt(x),
           18: np.sin, 19: np.tan, 20: erf, 22: lambda x: 1 / x, 101: np.tanh, 102: lambda x: 1 / (1 + np.exp(-x)), 104: lambda x: x * normal(x),
           105: lambda x: np.logaddexp(0, x), 402: lambda x: (x == 0) * 1.0}
    two = {2: np.minimum, 3: np.maximum, 6: np.divide, 7: np.fmod, 8: np.power, 23: np.arctan2, 302: np.greater, 305: np.less_equal}

    def numbers():
        bits = rng.integers(0, 1 << 32, 1000, dtype=np.uint32).view(np.float32)
        near = rng.normal(0, 4, 1000).astype(np.float32)
        return np.concatenate([bits, near, np.float32(specials)]).astype(np.float64)

    for mode in [*one, *two]:
        face, x = library.drawn(rng), numbers()
        b = rng.permutation(numbers())
        shape = (1, 1, 2, x.size // 2)
        with Scope(face) as scope, np.errstate(all="ignore"):
            graph = Graph(scope)
            tx, tb, ty = (scope.tensor(values.reshape(shape), FLOAT) for values in (x, b, x * 0))
            graph.pointwise(mode, graph.memory(tx), graph.memory(ty), graph.memory(tb) if mode in two else None)
            graph.run()
            exact = (two[mode](x, b) if mode in two else one[mode](x)) * 1.0
            expected, found = exact.astype(np.float32).astype(np.float64), ty.get().reshape(-1)
            # What is less than the least normal number may be 0.
            close = np.abs(found - exact) <= 2e-6 * np.abs(exact) + 1.2e-38
            # A number that is nearly the last may be infinity.
            end = (np.abs(exact) > 3.4028e38) & (np.sign(found) == np.sign(exact)) & (np.abs(found) > 3.4028e38)
            right = close | end | (found == expected) | (np.isnan(found) & np.isnan(expected))
            assert right.all(), (mode, x[~right][:4], b[~right][:4], found[~right][:4], expected[~right][:4])
    return len(one) + len(two)


def products_and_reductions(library, rng):
    for number_ in range(36):
        of = FLOATS[number_ % 4]
        face = library.drawn(rng)
        batch = tuple(int(size) for size in rng.integers(1, 4, int(rng.integers(1, 3))))
        m, n, k = (int(size) for size in rng.integers(1, 40, 3))
        other = tuple(size if rng.integers(0, 2) else 1 for size in batch)
        a, b = drawn(rng, batch + (m, k), of), drawn(rng, other + (k, n), of)
        exact, magnitude = a @ b, np.abs(a) @ np.abs(b)
        with Scope(face) as scope:
            graph = Graph(scope)
            ta, tb, tc = scope.tensor(a, of, rng), scope.tensor(b, of, rng), scope.tensor(exact * 0, of, rng)
            by = graph.final(18, (1500, DATA_TYPE, DOUBLE if of == DOUBLE else FLOAT))
            ga, gb, gc = (graph.memory(tensor) for tensor in (ta, tb, tc))
            middle = graph.virtual(exact.shape, FLOAT)
            graph.operations.append(graph.final(19, (1520, DESCRIPTOR, ga), (1521, DESCRIPTOR, gb), (1522, DESCRIPTOR, middle), (1523, DESCRIPTOR, by)))
            # Times a number of the host's, and its rows' sums beside it.
            scale = ctypes.c_float(0.375)
            uid, gs = graph.tensor((1,) * exact.ndim, (1,) * exact.ndim, FLOAT, value=True)
            graph.given[uid] = ctypes.addressof(scale)
            graph.pointwise(1, middle, gc, gs)
            op = int(rng.choice([0, 2, 3, 5]))
            reduce_ = graph.final(21, (1600, REDUCTION, op), (1601, DATA_TYPE, FLOAT))
            tr = scope.tensor(exact[..., :1] * 0, of, rng)
            graph.operations.append(graph.final(22, (1610, DESCRIPTOR, gc), (1611, DESCRIPTOR, graph.memory(tr)), (1612, DESCRIPTOR, reduce_)))
            graph.face("cudnnBackendExecute", scope.handle, graph.plan(), graph.pack())
            scale.value = 99.0
            face.synchronize()
            near(tc.get(), exact * 0.375, magnitude, of, k, "matmul")
            over = {0: np.sum, 2: np.min, 3: np.max, 5: np.mean}[op]
            # What is in memory is taken from there by a kernel, rounded to its type; our own code on the host takes it as it was.
            taken = tc.get() if BY_KERNELS else exact * 0.375
            near(tr.get(), over(taken, -1, keepdims=True), magnitude.sum(-1, keepdims=True), of, k + n, "rows")
    for number_ in range(16):
        of, face = FLOATS[number_ % 4], library.drawn(rng)
        batch, heads, m, n, k = (int(size) for size in rng.integers(1, 6, 5))
        a, b = drawn(rng, (batch, heads, m, k), of), drawn(rng, (batch, heads, k, n), of)
        # Rows, columns and products of each of a batch; what is behind them is not looked at.
        names = [name for name in (1525, 1526, 1527) if rng.integers(0, 3)]
        limits = {name: rng.integers(0, size + 1, (batch, 1, 1, 1)) for name, size in zip((1525, 1526, 1527), (m, n, k)) if name in names}
        rows, columns, depth = (limits.get(name, np.full((batch, 1, 1, 1), size)) for name, size in zip((1525, 1526, 1527), (m, n, k)))
        inside = np.arange(k) < depth
        exact = np.where(inside, a, 0) @ np.where(inside.swapaxes(2, 3), b, 0)
        exact *= (np.arange(m)[:, None] < rows) & (np.arange(n) < columns)
        a[~np.broadcast_to(inside, a.shape)] = np.nan
        with Scope(face) as scope:
            graph = Graph(scope)
            ta, tb, tc = scope.tensor(a, of, rng), scope.tensor(b, of, rng), scope.tensor(exact * 0 + 1, of, rng)
            by = graph.final(18, (1500, DATA_TYPE, DOUBLE if of == DOUBLE else FLOAT))
            settings = [(name, DESCRIPTOR, graph.memory(scope.tensor(limit.astype(np.float64), WHOLE))) for name, limit in limits.items()]
            graph.operations.append(graph.final(19, (1520, DESCRIPTOR, graph.memory(ta)), (1521, DESCRIPTOR, graph.memory(tb)),
                                                (1522, DESCRIPTOR, graph.memory(tc)), (1523, DESCRIPTOR, by), *settings))
            graph.run()
            near(tc.get(), exact, k * 10, of, k, "matmul with limits")
    return 88


def pooling(library, rng):
    total = 0
    for mode, of in ((3, FLOAT), (2, FLOAT), (4, FLOAT), (3, HALF), (2, DOUBLE), (4, DOUBLE)):
        face, sizes = library.drawn(rng), (2, 3, 9, 8)
        window, stride, padding = (3, 2), (2, 2), (1, 0)
        out = (5, 4)
        x = drawn(rng, sizes, of)
        exact = np.zeros((2, 3) + out)
        for i in range(out[0]):
            for j in range(out[1]):
                at = (slice(max(2 * i - 1, 0), min(2 * i + 2, 9)), slice(2 * j, 2 * j + 2))
                met = x[:, :, at[0], at[1]]
                exact[:, :, i, j] = met.max((2, 3)) if mode == 3 else met.sum((2, 3)) / (6 if mode == 2 else met[0, 0].size)
        with Scope(face) as scope:
            graph = Graph(scope)
            tx, ty = scope.tensor(x, of, rng), scope.tensor(exact * 0, of, rng)
            by = graph.final(24, (1700, RESAMPLE, mode), (1701, DATA_TYPE, FLOAT), (1702, INT64, 2), (1703, INT64, *padding), (1704, INT64, *padding),
                             (1705, INT64, *stride), (1706, INT64, *window), (1708, PADDING, 1))
            graph.operations.append(graph.final(25, (1710, DESCRIPTOR, graph.memory(tx)), (1711, DESCRIPTOR, graph.memory(ty)), (1716, DESCRIPTOR, by)))
            graph.run()
            near(ty.get(), exact, np.abs(exact) + 1, of, 6, f"graph pooling {mode}")
        total += 1
    return total


def refusals(library, rng):
    total = 0
    for face in library.faces:
        bad = lambda fine: {8: 3, 9: fine}[face.major]
        with Scope(face) as scope:
            graph = Graph(scope)

            def expect(wanted, name, *arguments):
                status = face.status(name, *arguments)
                assert status == wanted, f"{name}: {status} for {wanted}"

            set_ = lambda it, name, ty, *values: (it, name, ty, ctypes.c_int64(len(values)), (C[ty] * len(values))(*values))
            final = "cudnnBackendFinalize"
            expect(bad(2002), final, None)
            expect(bad(2000), final, P(8))
            expect(STATUS[face.major]["NOT_SUPPORTED"], "cudnnBackendCreateDescriptor", 99, ctypes.byref(P()))
            tensor = graph.made(17)
            expect(bad(2000), final, tensor)
            expect(bad(2000), "cudnnBackendSetAttribute", *set_(tensor, 100, DATA_TYPE, 0))
            face("cudnnBackendSetAttribute", *set_(tensor, 901, DATA_TYPE, FLOAT))
            number_ = ctypes.c_int64()
            expect(STATUS[face.major]["NOT_INITIALIZED"], "cudnnBackendGetAttribute", tensor, 901, DATA_TYPE, ctypes.c_int64(0),
                   ctypes.byref(number_), None)
            for name, values in ((902, (2, 3, 4, 5)), (903, (60, 20, 5, 1)), (906, (7,)), (900, (4,))):
                graph.set(tensor, name, INT64, *values)
            operation = graph.made(13)
            expect(bad(2004), "cudnnBackendSetAttribute", *set_(operation, 751, DESCRIPTOR, tensor.value))
            face(final, tensor)
            expect(STATUS[face.major]["NOT_INITIALIZED"], "cudnnBackendSetAttribute", *set_(tensor, 906, INT64, 8))
            sizes = (ctypes.c_int64 * 6)()
            face("cudnnBackendGetAttribute", tensor, 902, INT64, ctypes.c_int64(6), ctypes.byref(number_), sizes)
            assert (number_.value, list(sizes)) == (4, [2, 3, 4, 5, 0, 0])
            # A graph is refused when it is finalized: an operation without an engine, one without its tensors, a virtual tensor of nobody's.
            band = graph.final(39)
            it = graph.made(15)
            graph.set(it, 801, DESCRIPTOR, band)
            expect({8: 9, 9: 3001}[face.major], final, it)
            by = graph.final(0, (0, POINTWISE, 100), (1, DATA_TYPE, FLOAT))
            graph.set(operation, 750, DESCRIPTOR, by)
            graph.set(operation, 751, DESCRIPTOR, tensor)
            face(final, operation)
            it = graph.made(15)
            expect(bad(2000), final, it)
            graph.set(it, 801, DESCRIPTOR, operation)
            expect(bad(2000), final, it)
            nobodys, out = graph.virtual((2, 3, 4, 5)), graph.memory(scope.tensor(np.zeros((2, 3, 4, 5)), FLOAT))
            graph.pointwise(100, nobodys, out)
            it = graph.made(15)
            graph.set(it, 801, DESCRIPTOR, *graph.operations)
            expect(bad(2000), final, it)
            # A pack that lacks a tensor, and one that was not finalized.
            graph.operations = []
            graph.pointwise(100, tensor, out)
            plan = graph.plan()
            expect(bad(2000), "cudnnBackendExecute", scope.handle, plan, graph.pack())
            expect(bad(2004), "cudnnBackendExecute", scope.handle, plan, graph.made(16))
            expect(bad(2000), "cudnnBackendExecute", scope.handle, tensor, graph.pack())
            total += 18
    return total


class Vector(ctypes.Structure):
    """C++'s `std::vector`, as both libraries of Linux lay it out."""

    _fields_ = [("first", P), ("end", P), ("room", P)]


def vectors(scope, lists):
    """A `std::vector<std::vector<int64_t>>`."""
    rows = [(ctypes.c_int64 * len(row))(*row) for row in lists]
    inner = (Vector * len(rows))(*[Vector(ctypes.addressof(row), ctypes.addressof(row) + 8 * len(row), ctypes.addressof(row) + 8 * len(row)) for row in rows])
    scope.undo.append(lambda: (rows, inner))
    return ctypes.addressof(inner)


def written(library, rng):
    """Plans become texts and plans again; a run may have other sizes than its plan, which virtual tensors follow."""
    total = 0
    for case in range(16):
        face = library.drawn(rng)
        sizes = [int(size) for size in rng.integers(1, 9, 4)]
        other = [int(size) for size in rng.integers(1, 9, 4)]

        def drawn_of(sizes):
            b, m, n, k = sizes
            return drawn(rng, (b, m, k), FLOAT), drawn(rng, (b, k, n), FLOAT), drawn(rng, (1, 1, n), FLOAT)

        with Scope(face) as scope:
            graph = Graph(scope)
            a, b, bias = drawn_of(sizes)
            exact = lambda a, b, bias: np.maximum(a @ b + bias, 0).max(2, keepdims=True)
            tensors = [scope.tensor(values, FLOAT) for values in (a, b, bias, exact(a, b, bias) * 0)]
            ga, gb, gbias, gy = (graph.memory(tensor) for tensor in tensors)
            middle, biased, clipped = (graph.virtual((sizes[0], sizes[1], sizes[2])) for _ in range(3))
            by, most = graph.final(18, (1500, DATA_TYPE, FLOAT)), graph.final(21, (1600, REDUCTION, 3), (1601, DATA_TYPE, FLOAT))
            operations = [graph.final(19, (1520, DESCRIPTOR, ga), (1521, DESCRIPTOR, gb), (1522, DESCRIPTOR, middle), (1523, DESCRIPTOR, by))]
            graph.pointwise(0, middle, biased, gbias)
            graph.pointwise(100, biased, clipped)
            operations += graph.operations + [graph.final(22, (1610, DESCRIPTOR, clipped), (1611, DESCRIPTOR, gy), (1612, DESCRIPTOR, most))]
            # In any order.
            graph.operations = [operations[at] for at in rng.permutation(4)]
            plan, length = graph.plan(), ctypes.c_int64()
            face("cudnnBackendGetAttribute", plan, 405, 24, ctypes.c_int64(0), ctypes.byref(length), None)
            text = (ctypes.c_char * length.value)()
            face("cudnnBackendGetAttribute", plan, 405, 24, length, ctypes.byref(length), text)
            read = graph.made(5)
            face("cudnnBackendSetAttribute", read, 405, 24, length, text)
            face("cudnnBackendSetAttribute", read, 400, HANDLE, ctypes.c_int64(1), ctypes.byref(scope.handle))
            face("cudnnBackendFinalize", read)
            # It has an engine, as it had.
            config, engine, found = graph.made(3), graph.made(2), ctypes.c_int64()
            face("cudnnBackendGetAttribute", read, 401, DESCRIPTOR, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(config))
            face("cudnnBackendGetAttribute", config, 300, DESCRIPTOR, ctypes.c_int64(1), ctypes.byref(found), ctypes.byref(engine))
            assert found.value == 1
            face("cudnnBackendExecute", scope.handle, read, graph.pack())
            face.synchronize()
            magnitude = (np.abs(a) @ np.abs(b) + np.abs(bias)).max(2, keepdims=True)
            near(tensors[3].get(), exact(a, b, bias), magnitude, FLOAT, sizes[3], "a plan of a text")
            for broken in (text.raw[:-2], b"{}", text.raw.replace(b'"cudaway": 1', b'"cudaway": 9'), text.raw.replace(b"[17, ", b"[17.", 1), b"\0" * 8):
                wrong = graph.made(5)
                face("cudnnBackendSetAttribute", wrong, 405, 24, ctypes.c_int64(len(broken)), broken)
                status = face.status("cudnnBackendFinalize", wrong)
                assert status == {8: 14, 9: 1003}[face.major], status
            # Other sizes, for one run.
            a, b, bias = drawn_of(other)
            others = [scope.tensor(values, FLOAT) for values in (a, b, bias, exact(a, b, bias) * 0)]
            uids = list(graph.given)
            pack = graph.final(16, (1000, INT64, *uids), (1001, POINTER, *[tensor.at.value for tensor in others]), (1010, INT64, *uids),
                               (1011, POINTER, vectors(scope, [tensor.sizes for tensor in others])), (1012, POINTER, vectors(scope, [tensor.strides for tensor in others])))
            for which in (plan, read):
                face("cudnnBackendExecute", scope.handle, which, pack)
                face.synchronize()
                magnitude = (np.abs(a) @ np.abs(b) + np.abs(bias)).max(2, keepdims=True)
                near(others[3].get(), exact(a, b, bias), magnitude, FLOAT, other[3], "other sizes")
            misfit = graph.final(16, (1000, INT64, *uids), (1001, POINTER, *[tensor.at.value for tensor in others]), (1010, INT64, uids[0]),
                                 (1011, POINTER, vectors(scope, [(50, 60, 70)])), (1012, POINTER, vectors(scope, [(4200, 70, 1)])))
            face.refused("BAD_PARAM", "cudnnBackendExecute", scope.handle, plan, misfit)
            # A device's properties are a text too.
            device = graph.final(38, (2700, INT32, 0))
            face("cudnnBackendGetAttribute", device, 2702, 24, ctypes.c_int64(0), ctypes.byref(length), None)
            text = (ctypes.c_char * length.value)()
            face("cudnnBackendGetAttribute", device, 2702, 24, length, ctypes.byref(length), text)
            for given, fine in ((text.raw, True), (b"{}", False)):
                read = graph.made(38)
                face("cudnnBackendSetAttribute", read, 2702, 24, ctypes.c_int64(len(given)), given)
                assert (face.status("cudnnBackendFinalize", read) == 0) == fine
        total += 1
    return total
