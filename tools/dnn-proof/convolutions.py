"""Convolutions by their definition: a loop over taps in f64."""

import ctypes
from itertools import product

import numpy as np

from library import (DOUBLE, FLOAT, FLOATS, INT8, INT32, Scope, blended, drawn, factors, ints, near,
                     number)


def output_sizes(sizes, window, padding, stride, dilation):
    return [1 + (size + 2 * p - ((k - 1) * d + 1)) // s for size, k, p, s, d in zip(sizes, window, padding, stride, dilation)]


def taps(x, window, padding, stride, dilation):
    """For each tap the padded image's elements that it meets, as a view."""
    n = len(window)
    padded = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    out = output_sizes(x.shape[2:], window, padding, stride, dilation)
    for tap in product(*[range(k) for k in window]):
        at = tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, o, s in zip(tap, dilation, out, stride))
        yield tap, padded, (slice(None), slice(None)) + at
    assert n == len(out)


class Problem:
    def __init__(self, rng, of, wanted=None):
        while True:
            n = int(rng.choice([1, 2, 2, 2, 3])) if wanted is None else wanted
            self.groups = int(rng.choice([1, 1, 2, 3]))
            shape = str(rng.choice(["any", "any", "depthwise", "product"]))
            channels, filters = (1, 1) if shape == "depthwise" else (int(rng.integers(1, 9)), int(rng.integers(1, 9)))
            if shape == "depthwise":
                self.groups = int(rng.integers(2, 9))
            most = {1: 60, 2: 20, 3: 8}[n]
            self.sizes = [int(size) for size in rng.integers(1, most, n)]
            self.window = [1] * n if shape == "product" else [int(k) for k in rng.integers(1, 5, n)]
            plain = shape == "product"
            self.padding = [0] * n if plain else [int(p) for p in rng.integers(0, 4, n)]
            self.stride = [1] * n if plain else [int(s) for s in rng.choice([1, 1, 2, 3], n)]
            self.dilation = [1] * n if plain else [int(d) for d in rng.choice([1, 1, 2], n)]
            self.out = output_sizes(self.sizes, self.window, self.padding, self.stride, self.dilation)
            if min(self.out) > 0:
                break
        self.n, self.of, images = n, of, int(rng.integers(1, 4))
        self.flips = bool(rng.integers(0, 2))
        self.x_sizes = (images, self.groups * channels, *self.sizes)
        self.w_sizes = (self.groups * filters, channels, *self.window)
        self.y_sizes = (images, self.groups * filters, *self.out)
        self.depth = channels * int(np.prod(self.window))
        self.computed = {DOUBLE: DOUBLE, INT8: INT32}.get(of, FLOAT)

    def descriptor(self, scope):
        it = scope.made("cudnnCreateConvolutionDescriptor", "cudnnDestroyConvolutionDescriptor")
        mode = 0 if self.flips else 1
        if self.n == 2:
            numbers = [at for pair in (self.padding, self.stride, self.dilation) for at in pair]
            scope.library("cudnnSetConvolution2dDescriptor", it, *numbers, mode, self.computed)
        else:
            scope.library("cudnnSetConvolutionNdDescriptor", it, self.n, ints(*self.padding), ints(*self.stride),
                          ints(*self.dilation), mode, self.computed)
        scope.library("cudnnSetConvolutionGroupCount", it, self.groups)
        return it

    def groups_of(self, x, w):
        g = self.groups
        return zip(np.split(x, g, 1), np.split(w, g, 0))

    def turned(self, w):
        return w[(slice(None), slice(None)) + (slice(None, None, -1),) * self.n] if self.flips else w

    def forward(self, x, w):
        parts = []
        for x, w in self.groups_of(x, self.turned(w)):
            y = 0.0
            for tap, padded, at in taps(x, self.window, self.padding, self.stride, self.dilation):
                y = y + np.einsum("nc...,kc->nk...", padded[at], w[(slice(None), slice(None)) + tap])
            parts.append(y)
        return np.concatenate(parts, 1)

    def backward_data(self, w, dy):
        parts = []
        for dy, w in self.groups_of(dy, self.turned(w)):
            x = np.zeros((dy.shape[0], w.shape[1], *self.sizes))
            padded_sum = None
            for tap, padded, at in taps(x, self.window, self.padding, self.stride, self.dilation):
                if padded_sum is None:
                    padded_sum = np.zeros(padded.shape)
                padded_sum[at] += np.einsum("nk...,kc->nc...", dy, w[(slice(None), slice(None)) + tap])
            inside = tuple(slice(p, p + size) for p, size in zip(self.padding, self.sizes))
            parts.append(padded_sum[(slice(None), slice(None)) + inside])
        return np.concatenate(parts, 1)

    def backward_filter(self, x, dy):
        parts = []
        for x, dy in zip(np.split(x, self.groups, 1), np.split(dy, self.groups, 1)):
            w = np.zeros((dy.shape[1], x.shape[1], *self.window))
            for tap, padded, at in taps(x, self.window, self.padding, self.stride, self.dilation):
                over = [0, *range(2, self.n + 2)]
                w[(slice(None), slice(None)) + tap] = np.tensordot(dy, padded[at], (over, over))
            parts.append(w)
        return self.turned(np.concatenate(parts, 0))


def forward(library, rng):
    for number_ in range(90):
        of = FLOATS[number_ % 4]
        face, it = library.drawn(rng), Problem(rng, of)
        x, w, y = drawn(rng, it.x_sizes, of), drawn(rng, it.w_sizes, of), drawn(rng, it.y_sizes, of)
        alpha, beta = factors(rng)
        with Scope(face) as scope:
            convolution, tx, tw, ty = it.descriptor(scope), scope.tensor(x, of, rng), scope.filter(w, of, rng), scope.tensor(y, of, rng)
            sizes = ints(*[0] * (it.n + 2))
            face("cudnnGetConvolutionNdForwardOutputDim", convolution, tx.descriptor, tw.descriptor, it.n + 2, sizes)
            assert tuple(sizes) == it.y_sizes
            algorithm = int(rng.integers(0, 8))
            size = ctypes.c_size_t(99)
            face("cudnnGetConvolutionForwardWorkspaceSize", scope.handle, tx.descriptor, tw.descriptor, convolution, ty.descriptor,
                 algorithm, ctypes.byref(size))
            assert size.value == 0
            face("cudnnConvolutionForward", scope.handle, number(alpha, of), *tx.both, *tw.both, convolution, algorithm, None,
                 size, number(beta, of), *ty.both)
            face.synchronize()
            expected = blended(alpha, it.forward(x, w), beta, y)
            magnitude = blended(abs(alpha), it.forward(np.abs(x), np.abs(w)), abs(beta), np.abs(y))
            near(ty.get(), expected, magnitude, of, it.depth, f"forward {vars(it)}")
    return 90


def backward(library, rng):
    for number_ in range(80):
        of = FLOATS[number_ % 4]
        face, it = library.drawn(rng), Problem(rng, of)
        x, w, dy = drawn(rng, it.x_sizes, of), drawn(rng, it.w_sizes, of), drawn(rng, it.y_sizes, of)
        alpha, beta = factors(rng)
        with Scope(face) as scope:
            convolution, tx, tw, ty = it.descriptor(scope), scope.tensor(x, of, rng), scope.filter(w, of, rng), scope.tensor(dy, of, rng)
            if number_ // 4 % 2:
                face("cudnnConvolutionBackwardData", scope.handle, number(alpha, of), *tw.both, *ty.both, convolution,
                     int(rng.integers(0, 6)), None, ctypes.c_size_t(0), number(beta, of), *tx.both)
                face.synchronize()
                expected = blended(alpha, it.backward_data(w, dy), beta, x)
                magnitude = blended(abs(alpha), it.backward_data(np.abs(w), np.abs(dy)), abs(beta), np.abs(x))
                near(tx.get(), expected, magnitude, of, it.depth * 8, f"data {vars(it)}")
            else:
                face("cudnnConvolutionBackwardFilter", scope.handle, number(alpha, of), *tx.both, *ty.both, convolution,
                     int(rng.integers(0, 7)), None, ctypes.c_size_t(0), number(beta, of), *tw.both)
                face.synchronize()
                expected = blended(alpha, it.backward_filter(x, dy), beta, w)
                magnitude = blended(abs(alpha), it.backward_filter(np.abs(x), np.abs(dy)), abs(beta), np.abs(w))
                near(tw.get(), expected, magnitude, of, dy.size, f"filter {vars(it)}")
    return 80


def integers(library, rng):
    """Sums of products of bytes are exact; to bytes they are rounded and end at the type's ends."""
    count = 0
    for vector in (1, 1, 4, 4, 32):
        for to in (INT8, FLOAT):
            if vector > 1 and to == FLOAT:
                continue
            face, it = library.drawn(rng), Problem(rng, INT8, 2)
            it.groups, it.flips = 1, False
            channels, filters = (32, 32) if vector > 1 else (it.x_sizes[1], it.w_sizes[0])
            it.x_sizes = (it.x_sizes[0], channels, *it.sizes)
            it.w_sizes = (filters, channels, *it.window)
            it.y_sizes = (it.x_sizes[0], filters, *it.out)
            x, w = drawn(rng, it.x_sizes, INT8), drawn(rng, it.w_sizes, INT8)
            expected = it.forward(x, w) * 2.0**-9
            expected = np.clip(np.rint(expected), -128, 127) if to == INT8 else expected
            vectors = lambda values: values.reshape(values.shape[0], -1, vector, *values.shape[2:]).transpose(0, 1, 3, 4, 2)
            with Scope(face) as scope:
                descriptors = []
                kind, format_ = {1: (INT8, 0), 4: (5, 2), 32: (8, 2)}[vector]
                for sizes, of in ((it.x_sizes, kind), (it.y_sizes, kind if to == INT8 else to)):
                    descriptor = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
                    face("cudnnSetTensor4dDescriptor", descriptor, format_, of, *sizes)
                    descriptors.append(descriptor)
                filter_ = scope.made("cudnnCreateFilterDescriptor", "cudnnDestroyFilterDescriptor")
                face("cudnnSetFilter4dDescriptor", filter_, kind, format_, *it.w_sizes)
                ax, aw = scope.array(vectors(x).astype(np.int8)), scope.array(vectors(w).astype(np.int8))
                ay = scope.array(np.zeros(vectors(expected).shape, np.int8 if to == INT8 else np.float32))
                face("cudnnConvolutionForward", scope.handle, number(2.0**-9, FLOAT), descriptors[0], ax.at, filter_, aw.at,
                     it.descriptor(scope), 1, None, ctypes.c_size_t(0), number(0.0, FLOAT), descriptors[1], ay.at)
                face.synchronize()
                assert (ay.get() == vectors(expected)).all(), f"{vector} {to} {vars(it)}"
            count += 1
    return count


def bias_and_activation(library, rng):
    for number_ in range(40):
        of = FLOATS[number_ % 4]
        face, it = library.drawn(rng), Problem(rng, of)
        x, w, z = drawn(rng, it.x_sizes, of), drawn(rng, it.w_sizes, of), drawn(rng, it.y_sizes, of)
        bias = drawn(rng, (1, it.y_sizes[1]) + (1,) * it.n, of)
        alpha, factor = float(rng.choice([1.0, 0.5])), float(rng.choice([0.0, 1.0, -0.5]))
        mode = int(rng.choice([1, 5]))
        with Scope(face) as scope:
            convolution, tx, tw = it.descriptor(scope), scope.tensor(x, of, rng), scope.filter(w, of, rng)
            tb, ty = scope.tensor(bias, of), scope.tensor(z * 0 + 7, of, rng)
            in_place = bool(rng.integers(0, 2))
            tz = ty if in_place else scope.tensor(z, of, rng)
            if in_place:
                z = z * 0 + 7
            face("cudnnConvolutionBiasActivationForward", scope.handle, number(alpha, of), *tx.both, *tw.both, convolution, 1, None,
                 ctypes.c_size_t(0), number(factor, of), *tz.both, *tb.both, scope.activation(mode), *ty.both)
            face.synchronize()
            expected = alpha * it.forward(x, w) + factor * z + bias
            expected = np.maximum(expected, 0.0) if mode == 1 else expected
            magnitude = it.forward(np.abs(x), np.abs(w)) + np.abs(z) + np.abs(bias)
            near(ty.get(), expected, magnitude, of, it.depth, f"bias and activation {vars(it)}")
            # The bias's gradient.
            dy, db = scope.tensor(z, of, rng), scope.tensor(bias, of)
            a, b = factors(rng)
            face("cudnnConvolutionBackwardBias", scope.handle, number(a, of), *dy.both, number(b, of), *db.both)
            face.synchronize()
            axes = (0,) + tuple(range(2, it.n + 2))
            expected = blended(a, z.sum(axes, keepdims=True), b, bias)
            magnitude = np.abs(a * z).sum(axes, keepdims=True) + np.abs(b * bias)
            near(db.get(), expected, magnitude, of, z.size, "backward bias")
    return 80


class Perf(ctypes.Structure):
    _fields_ = [("algo", ctypes.c_uint), ("status", ctypes.c_uint), ("time", ctypes.c_float), ("memory", ctypes.c_size_t),
                ("determinism", ctypes.c_uint), ("math", ctypes.c_uint), ("reserved", ctypes.c_int * 3)]


def algorithms(library, rng):
    """What is told of algorithms: each takes no memory, is deterministic, and Find has measured it; with memory it has done the work."""
    count = 0
    for face in library.faces:
        it = Problem(rng, FLOAT, 2)
        with Scope(face) as scope:
            convolution = it.descriptor(scope)
            tx, tw, ty = (make(drawn(rng, sizes, FLOAT), FLOAT, rng) for make, sizes in (
                (scope.tensor, it.x_sizes), (scope.filter, it.w_sizes), (scope.tensor, it.y_sizes)))
            x, w, y = tx.descriptor, tw.descriptor, ty.descriptor
            for direction, order, places, made in (("Forward", (x, w, convolution, y), (tx, tw, ty), it.forward),
                                                   ("BackwardData", (w, y, convolution, x), (tw, ty, tx), it.backward_data),
                                                   ("BackwardFilter", (x, y, convolution, w), (tx, ty, tw), it.backward_filter)):
                most = ctypes.c_int()
                face(f"cudnnGetConvolution{direction}AlgorithmMaxCount", scope.handle, ctypes.byref(most))
                assert most.value > 0
                a, b, c, d = order
                with_memory = (a, places[0].at, b, places[1].at, c, d, places[2].at)
                inputs, before = [place.get() for place in places[:2]], places[2].get()
                expected, magnitude = made(*inputs), made(*[np.abs(values) for values in inputs])
                for name, given, behind in ((f"cudnnGetConvolution{direction}Algorithm_v7", order, ()),
                                            (f"cudnnFindConvolution{direction}Algorithm", order, ()),
                                            (f"cudnnFindConvolution{direction}AlgorithmEx", with_memory, (None, ctypes.c_size_t(0)))):
                    results, returned = (Perf * most.value)(), ctypes.c_int()
                    face(name, scope.handle, *given, most.value, ctypes.byref(returned), results, *behind)
                    assert 0 < returned.value <= most.value
                    for result in results[:returned.value]:
                        assert (result.status, result.memory, result.determinism) == (0, 0, 1), name
                        assert (result.time >= 0) == ("Find" in name)
                    if behind:
                        near(places[2].get(), expected, magnitude, FLOAT, max(it.depth * 8, ty.get().size), name)
                    else:
                        assert (places[2].get() == before).all(), f"{name} has written"
                    face.refused("BAD_PARAM", name, scope.handle, *given, 0, ctypes.byref(returned), results, *behind)
                    count += 1
    return count
