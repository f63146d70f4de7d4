"""Layers of networks through cuDNN beside oneDNN, by turns in one process.

dnn.py libcudnn libcudart libdnnl SECONDS [WORD ...]

A line is `name|ours|oneDNN`. Both have the same arrays in and give theirs in the same order (N, C, D, H, W), of f32; what oneDNN
rearranges for that is in its time. Results are compared before anything is measured.
"""

import ctypes
import os
import sys

import numpy as np

from by_turns import P, Library, at, tell, timed, turns

f32 = np.float32
ONE, NONE = np.ones(1, f32), np.zeros(1, f32)


def ints(numbers):
    return (ctypes.c_int * len(numbers))(*numbers)


def dims(numbers):
    return (ctypes.c_int64 * 12)(*numbers)


def strides(sizes):
    return [int(np.prod(sizes[at + 1:], dtype=np.int64)) for at in range(len(sizes))]


class Conv:
    """A convolution: its sizes, and what both libraries call them."""

    def __init__(self, images, channels, filters, size, window, stride=1, padding=0, dilation=1, groups=1):
        n = len(size)
        self.size, self.window, self.groups = size, window, groups
        self.stride, self.padding, self.dilation = [stride] * n, list(padding) if isinstance(padding, tuple) else [padding] * n, [dilation] * n
        self.out = [(s + 2 * p - (d * (k - 1) + 1)) // t + 1
                    for s, k, t, p, d in zip(size, window, self.stride, self.padding, self.dilation)]
        self.x, self.w, self.y = (images, channels, *size), (filters, channels // groups, *window), (images, filters, *self.out)


class Ours(Library):
    """cuDNN."""

    def __init__(self, cudnn, cudart):
        super().__init__(cudnn, cudart, "cudnnCreate")

    def call(self, name, *arguments):
        def run(keep=arguments):
            self(name, self.handle, *arguments)
            self.wait()
        return run

    def tensor(self, sizes):
        sizes = tuple(sizes) + (1,) * (4 - len(sizes))
        it = self.made("cudnnCreateTensorDescriptor")
        self("cudnnSetTensorNdDescriptor", it, 0, len(sizes), ints(sizes), ints(strides(sizes)))
        return it

    def both(self, array):
        return self.tensor(array.shape), at(array)

    def conv(self, kind, of, x, w, y):
        settings, filter_ = self.made("cudnnCreateConvolutionDescriptor"), self.made("cudnnCreateFilterDescriptor")
        n = max(len(of.size), 2)
        # The width is the size: a tensor of height 1.
        wide = lambda sizes, one: [one, *sizes] if len(of.size) == 1 else list(sizes)
        self("cudnnSetConvolutionNdDescriptor", settings, n, ints(wide(of.padding, 0)), ints(wide(of.stride, 1)),
             ints(wide(of.dilation, 1)), 1, 0)
        self("cudnnSetConvolutionGroupCount", settings, of.groups)
        full = lambda sizes: [*sizes[:2], *wide(sizes[2:], 1)]
        self("cudnnSetFilterNdDescriptor", filter_, 0, 0, n + 2, ints(full(of.w)))
        tx, ty = self.tensor(full(of.x)), self.tensor(full(of.y))
        if kind == "forward":
            return self.call("cudnnConvolutionForward", at(ONE), tx, at(x), filter_, at(w), settings, 1, None, ctypes.c_size_t(0), at(NONE), ty,
                             at(y))
        if kind == "data":
            return self.call("cudnnConvolutionBackwardData", at(ONE), filter_, at(w), ty, at(y), settings, 1, None, ctypes.c_size_t(0),
                             at(NONE), tx, at(x))
        return self.call("cudnnConvolutionBackwardFilter", at(ONE), tx, at(x), ty, at(y), settings, 1, None, ctypes.c_size_t(0), at(NONE),
                         filter_, at(w))

    def pooling(self, mode, of, x, y, dy=None, dx=None):
        settings, n = self.made("cudnnCreatePoolingDescriptor"), len(of.size)
        self("cudnnSetPoolingNdDescriptor", settings, {"max": 0, "mean": 1}[mode], 0, n, ints(of.window), ints(of.padding), ints(of.stride))
        if dy is None:
            return self.call("cudnnPoolingForward", settings, at(ONE), *self.both(x), at(NONE), *self.both(y))
        return self.call("cudnnPoolingBackward", settings, at(ONE), *self.both(y), *self.both(dy), *self.both(x), at(NONE), *self.both(dx))

    def activation(self, mode, x, y, dy=None, dx=None):
        it = self.made("cudnnCreateActivationDescriptor")
        number = {"sigmoid": 0, "ReLU": 1, "tanh": 2, "ELU": 4, "swish": 6}[mode]
        self("cudnnSetActivationDescriptor", it, number, 0, ctypes.c_double(1.0))
        if dy is None:
            return self.call("cudnnActivationForward", it, at(ONE), *self.both(x), at(NONE), *self.both(y))
        return self.call("cudnnActivationBackward", it, at(ONE), *self.both(y), *self.both(dy), *self.both(x), at(NONE), *self.both(dx))

    def add(self, a, b, y):
        it = self.made("cudnnCreateOpTensorDescriptor")
        self("cudnnSetOpTensorDescriptor", it, 0, 0, 0)
        return self.call("cudnnOpTensor", it, at(ONE), *self.both(a), at(ONE), *self.both(b), at(NONE), *self.both(y))

    def softmax(self, x, y, dy=None, dx=None):
        if dy is None:
            return self.call("cudnnSoftmaxForward", 1, 1, at(ONE), *self.both(x), at(NONE), *self.both(y))
        return self.call("cudnnSoftmaxBackward", 1, 1, at(ONE), *self.both(y), *self.both(dy), at(NONE), *self.both(dx))

    def norm(self, kind, x, y, scale, bias, mean, variance, dy, dx, dscale, dbias):
        of, eps = self.tensor((1, x.shape[1], 1, 1)), ctypes.c_double(1e-5)
        if kind == "training":
            inverse = np.empty_like(mean)
            return self.call("cudnnBatchNormalizationForwardTraining", 1, at(ONE), at(NONE), *self.both(x), *self.both(y), of, at(scale),
                             at(bias), ctypes.c_double(1.0), None, None, eps, at(mean), at(inverse)), inverse
        if kind == "inference":
            return self.call("cudnnBatchNormalizationForwardInference", 1, at(ONE), at(NONE), *self.both(x), *self.both(y), of, at(scale),
                             at(bias), at(mean), at(variance), eps), None
        inverse = (1 / np.sqrt(variance + 1e-5)).astype(f32)
        return self.call("cudnnBatchNormalizationBackward", 1, at(ONE), at(NONE), at(ONE), at(NONE), *self.both(x), *self.both(dy),
                         *self.both(dx), of, at(scale), at(dscale), at(dbias), eps, at(mean), at(inverse)), inverse

    def lstm(self, x, weights, biases, y, training):
        (steps, batch, width), hidden = x.shape, y.shape[2]
        network, drop = self.made("cudnnCreateRNNDescriptor"), self.made("cudnnCreateDropoutDescriptor")
        self("cudnnSetDropoutDescriptor", drop, self.handle, ctypes.c_float(0), None, ctypes.c_size_t(0), ctypes.c_ulonglong(0))
        self("cudnnSetRNNDescriptor_v8", network, 0, 2, 1, 0, 0, 0, 0, 0, width, hidden, hidden, 1, drop, 1)
        lengths = np.full(batch, steps, np.int32)

        def sequences(size):
            it = self.made("cudnnCreateRNNDataDescriptor")
            self("cudnnSetRNNDataDescriptor", it, 0, 0, steps, batch, size, at(lengths), None)
            return it
        tx, ty = sequences(width), sequences(hidden)
        room, reserve = ctypes.c_size_t(), ctypes.c_size_t()
        self("cudnnGetRNNTempSpaceSizes", self.handle, network, int(training), tx, ctypes.byref(room), ctypes.byref(reserve))
        spaces = [np.zeros(max(size.value, 1), np.uint8) for size in (room, reserve)]
        state = self.tensor((1, batch, hidden))
        all_ = np.concatenate([weights[0].ravel(), weights[1].ravel(), biases.ravel()]).astype(f32)
        return self.call("cudnnRNNForward", network, int(training), at(lengths), tx, at(x), ty, at(y), state, None, None, state, None, None,
                         ctypes.c_size_t(all_.nbytes), at(all_), room, at(spaces[0]), reserve, at(spaces[1]) if training else None), all_, spaces


class Argument(ctypes.Structure):
    """dnnl_exec_arg_t"""
    _fields_ = [("number", ctypes.c_int), ("memory", P)]


SRC, DST, WEIGHTS, BIAS, MEAN, VARIANCE, SCALE, SHIFT, WORKSPACE = 1, 17, 33, 41, 49, 50, 51, 52, 64
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_SCALE, DIFF_SHIFT = 129, 145, 161, 255, 256
TRAINING, INFERENCE, BACKWARD = 64, 96, 128


class OneDnn:
    """oneDNN 3 by its C API. Descriptions say `any` where a layout is its own choice, and arrays are reordered for it."""

    def __init__(self, path):
        self.own = ctypes.CDLL(path)
        self.own.dnnl_primitive_desc_query_md.restype = P
        self.engine = self.made("engine_create", 1, ctypes.c_size_t(0))
        self.stream = self.made("stream_create", self.engine, 1)

    def __call__(self, name, *arguments):
        status = getattr(self.own, "dnnl_" + name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def made(self, name, *arguments):
        made = P()
        self(name, ctypes.byref(made), *arguments)
        return made

    def any(self, sizes):
        return self.made("memory_desc_create_with_tag", len(sizes), dims(sizes), 3, 1)

    def plain(self, sizes, by=None):
        return self.made("memory_desc_create_with_strides", len(sizes), dims(sizes), 3, dims(by or strides(sizes)))

    def described(self, name, *arguments):
        return self.made(name + "_primitive_desc_create", self.engine, *arguments, None)

    def memory(self, description, where=P(-1)):
        return self.made("memory_create", description, self.engine, where)

    def program(self, description, inputs, outputs, shared=()):
        """What runs the primitive on these arrays, which may come with their own descriptions."""
        before, after, arguments = [], [], []

        def step(primitive, pairs):
            array = (Argument * len(pairs))(*[Argument(number, memory) for number, memory in pairs])
            return lambda: self("primitive_execute", primitive, self.stream, len(pairs), array)

        def reorder(source, to, sides):
            return step(self.made("primitive_create", self.made("reorder_primitive_desc_create", source, self.engine, to, self.engine, None)),
                        [(SRC, sides[0]), (DST, sides[1])])
        for is_input, list_ in ((True, inputs), (False, outputs)):
            for number, array, *own in list_:
                own = own[0] if own else self.plain(array.shape)
                wanted = P(self.own.dnnl_primitive_desc_query_md(description, 255, number))
                memory = self.memory(own, at(array))
                if not self.own.dnnl_memory_desc_equal(own, wanted):
                    other = self.memory(wanted)
                    if is_input:
                        before.append(reorder(own, wanted, (memory, other)))
                    else:
                        after.append(reorder(wanted, own, (other, memory)))
                    memory = other
                arguments.append((number, memory))
        steps = [*before, step(self.made("primitive_create", description), [*arguments, *shared]), *after]

        def run():
            for step in steps:
                step()
            self("stream_wait", self.stream)
        return run

    def workspace(self, description):
        return [(WORKSPACE, self.memory(P(self.own.dnnl_primitive_desc_query_md(description, 255, WORKSPACE))))]

    def conv(self, kind, of, x, w, y):
        sizes_w = of.w if of.groups == 1 else (of.groups, of.w[0] // of.groups, *of.w[1:])
        w = w.reshape(sizes_w)
        sides = self.any(of.x), self.any(sizes_w), self.any(of.y)
        rest = [dims(of.stride), dims([d - 1 for d in of.dilation]), dims(of.padding), dims(of.padding)]
        forward = self.described("convolution_forward", TRAINING, 1, *sides[:2], None, sides[2], *rest)
        if kind == "forward":
            return self.program(forward, [(SRC, x), (WEIGHTS, w)], [(DST, y)])
        if kind == "data":
            return self.program(self.described("convolution_backward_data", 1, *sides, *rest, forward), [(WEIGHTS, w), (DIFF_DST, y)],
                                [(DIFF_SRC, x)])
        return self.program(self.described("convolution_backward_weights", 1, *sides[:2], None, sides[2], *rest, forward),
                            [(SRC, x), (DIFF_DST, y)], [(DIFF_WEIGHTS, w)])

    def pooling(self, mode, of, x, y, dy=None, dx=None):
        algorithm = {"max": 0x1FF, "mean": 0x2FF}[mode]
        sides = self.plain(of.x), self.plain(of.y)
        rest = [dims(of.stride), dims(of.window), dims([0] * len(of.size)), dims(of.padding), dims(of.padding)]
        forward = self.described("pooling_forward", INFERENCE if dy is None else TRAINING, algorithm, *sides, *rest)
        if dy is None:
            return self.program(forward, [(SRC, x)], [(DST, y)])
        shared = self.workspace(forward) if mode == "max" else []
        self.program(forward, [(SRC, x)], [(DST, y)], shared)()
        return self.program(self.described("pooling_backward", algorithm, *sides, *rest, forward), [(DIFF_DST, dy)], [(DIFF_SRC, dx)], shared)

    def activation(self, mode, x, y, dy=None, dx=None):
        side, factor = self.plain(x.shape), ctypes.c_float(0.0 if mode == "ReLU" else 1.0)
        algorithm = {"ReLU": 0x20, "tanh": 0x21, "ELU": 0x22, "sigmoid": 0x29, "swish": 0x2C}[mode]
        forward = self.described("eltwise_forward", INFERENCE if dy is None else TRAINING, algorithm, side, side, factor, ctypes.c_float(0))
        if dy is None:
            return self.program(forward, [(SRC, x)], [(DST, y)])
        back = self.described("eltwise_backward", algorithm, side, side, side, factor, ctypes.c_float(0), forward)
        return self.program(back, [(SRC, x), (DIFF_DST, dy)], [(DIFF_SRC, dx)])

    def add(self, a, b, y):
        description = self.described("binary", 0x1FFF0, self.plain(a.shape), self.plain(b.shape), self.plain(y.shape))
        return self.program(description, [(SRC, a), (2, b)], [(DST, y)])

    def softmax(self, x, y, dy=None, dx=None):
        side = self.plain(x.shape)
        forward = self.described("softmax_forward", TRAINING, 0x30000, side, side, 1)
        if dy is None:
            return self.program(forward, [(SRC, x)], [(DST, y)])
        back = self.described("softmax_backward", 0x30000, side, side, side, 1, forward)
        return self.program(back, [(DST, y), (DIFF_DST, dy)], [(DIFF_SRC, dx)])

    def norm(self, kind, x, y, scale, bias, mean, variance, dy, dx, dscale, dbias):
        side, eps = self.plain(x.shape), ctypes.c_float(1e-5)
        numbers = [(SCALE, scale), (SHIFT, bias)]
        statistics = [(MEAN, mean), (VARIANCE, variance)]
        forward = self.described("batch_normalization_forward", INFERENCE if kind == "inference" else TRAINING, side, side, eps,
                                 7 if kind == "inference" else 6)
        if kind == "training":
            return self.program(forward, [(SRC, x), *numbers], [(DST, y), *statistics])
        if kind == "inference":
            return self.program(forward, [(SRC, x), *numbers, *statistics], [(DST, y)])
        back = self.described("batch_normalization_backward", BACKWARD, side, side, side, eps, 6, forward)
        return self.program(back, [(SRC, x), (DIFF_DST, dy), (SCALE, scale), *statistics],
                            [(DIFF_SRC, dx), (DIFF_SCALE, dscale), (DIFF_SHIFT, dbias)])

    def lstm(self, x, weights, biases, y, training):
        (_, _, width), hidden = x.shape, y.shape[2]
        # l, d, i, g, o: in memory the gate, its row and the input's element.
        layer, state = (1, 1, width, 4, hidden), (1, 1, hidden, 4, hidden)
        by = lambda n: [4 * hidden * n, 4 * hidden * n, 1, hidden * n, n]
        bias = (1, 1, 4, hidden)
        description = self.described("lstm_forward", TRAINING if training else INFERENCE, 1, self.plain(x.shape), None, None, self.any(layer),
                                     self.any(state), None, None, self.plain(bias), self.plain(y.shape), None, None, 0)
        shared = self.workspace(description) if training else []
        return self.program(description, [(SRC, x), (WEIGHTS, weights[0], self.plain(layer, by(width))),
                                          (34, weights[1], self.plain(state, by(hidden))), (BIAS, biases.reshape(bias))], [(DST, y)], shared)


def near(got, exact, what):
    scale = abs(exact).max()
    wrong = abs(got.astype(np.float64) - exact).max() / scale if np.isfinite(scale) and scale > 0 else float("nan")
    assert wrong < 1e-4, f"{what}: {wrong}"


CONVOLUTIONS = {
    "ResNet 7x7/2 3-64 at 224": Conv(4, 3, 64, [224, 224], [7, 7], 2, 3),
    "ResNet 1x1 64-256 at 56": Conv(4, 64, 256, [56, 56], [1, 1]),
    "ResNet 3x3 64-64 at 56": Conv(4, 64, 64, [56, 56], [3, 3], 1, 1),
    "ResNet 3x3/2 128-128 at 56": Conv(4, 128, 128, [56, 56], [3, 3], 2, 1),
    "ResNet 1x1/2 256-512 at 56": Conv(4, 256, 512, [56, 56], [1, 1], 2),
    "ResNet 3x3 128-128 at 28": Conv(4, 128, 128, [28, 28], [3, 3], 1, 1),
    "ResNet 3x3 256-256 at 14": Conv(4, 256, 256, [14, 14], [3, 3], 1, 1),
    "ResNet 1x1 1024-256 at 14": Conv(4, 1024, 256, [14, 14], [1, 1]),
    "ResNet 3x3 512-512 at 7": Conv(4, 512, 512, [7, 7], [3, 3], 1, 1),
    "MobileNet 3x3/2 3-32 at 224": Conv(4, 3, 32, [224, 224], [3, 3], 2, 1),
    "MobileNet 1x1 32-64 at 112": Conv(4, 32, 64, [112, 112], [1, 1]),
    "MobileNet 1x1 512-512 at 14": Conv(4, 512, 512, [14, 14], [1, 1]),
    "grouped 3x3 128-128, 32 groups, at 56": Conv(4, 128, 128, [56, 56], [3, 3], 1, 1, groups=32),
    "depthwise 3x3 32 at 112": Conv(4, 32, 32, [112, 112], [3, 3], 1, 1, groups=32),
    "depthwise 3x3/2 64 at 112": Conv(4, 64, 64, [112, 112], [3, 3], 2, 1, groups=64),
    "depthwise 5x5 240 at 28": Conv(4, 240, 240, [28, 28], [5, 5], 1, 2, groups=240),
    "depthwise 3x3 512 at 14": Conv(4, 512, 512, [14, 14], [3, 3], 1, 1, groups=512),
    "3-D 3x3x3 64-64 at 8x28x28": Conv(1, 64, 64, [8, 28, 28], [3, 3, 3], 1, 1),
    "3-D 3x7x7/2 3-64 at 8x112x112": Conv(1, 3, 64, [8, 112, 112], [3, 7, 7], 2, (1, 3, 3)),
    "1-D 3 80-384 at 3000": Conv(1, 80, 384, [3000], [3], 1, 1),
    "1-D 3 64-64 at 8000, dilated by 8": Conv(1, 64, 64, [8000], [3], 1, 8, 8),
}

POOLINGS = {
    "max 3x3/2 64 at 112": ("max", Conv(4, 64, 64, [112, 112], [3, 3], 2, 1)),
    "max 2x2/2 64 at 224": ("max", Conv(1, 64, 64, [224, 224], [2, 2], 2)),
    "max 3x3 256 at 28": ("max", Conv(4, 256, 256, [28, 28], [3, 3], 1, 1)),
    "max 2x2x2/2 64 at 8x56x56": ("max", Conv(1, 64, 64, [8, 56, 56], [2, 2, 2], 2)),
    "mean 2x2/2 256 at 56": ("mean", Conv(4, 256, 256, [56, 56], [2, 2], 2)),
    "mean of all 2048 at 7": ("mean", Conv(16, 2048, 2048, [7, 7], [7, 7])),
}


def rows(ours, theirs, rng, wants):
    """Names, both ways to do it, and what has to be equal in both."""
    def drawn(*sizes):
        return rng.standard_normal(sizes, dtype=f32)

    def two(array):
        return np.empty_like(array), np.empty_like(array)
    for name, of in CONVOLUTIONS.items():
        for kind in ("forward", "data", "filter"):
            full = f"convolution {name}, {kind}"
            if not wants(full):
                continue
            x, w, y = drawn(*of.x), drawn(*of.w), drawn(*of.y)
            sides = [x, w, y]
            which = {"forward": 2, "data": 0, "filter": 1}[kind]
            runs, made = [], two(sides[which])
            for library, result in zip((ours, theirs), made):
                own = list(sides)
                own[which] = result
                runs.append(library.conv(kind, of, *own))
            yield full, runs, [made]
    for name, (mode, of) in POOLINGS.items():
        x, y = drawn(*of.x), np.empty(of.y, f32)
        if wants(full := f"pooling {name}, forward"):
            made = two(y)
            yield full, [library.pooling(mode, of, x, it) for library, it in zip((ours, theirs), made)], [made]
        if wants(full := f"pooling {name}, backward"):
            theirs.pooling(mode, of, x, y)()
            dy, made = drawn(*of.y), two(x)
            yield full, [library.pooling(mode, of, x, y, dy, it) for library, it in zip((ours, theirs), made)], [made]
    for mode in ("ReLU", "sigmoid", "tanh", "ELU", "swish"):
        x = drawn(4, 64, 112, 112)
        if wants(full := f"activation {mode}, forward"):
            made = two(x)
            yield full, [library.activation(mode, x, it) for library, it in zip((ours, theirs), made)], [made]
        if wants(full := f"activation {mode}, backward"):
            y, dy, made = np.empty_like(x), drawn(*x.shape), two(x)
            theirs.activation(mode, x, y)()
            yield full, [library.activation(mode, x, y, dy, it) for library, it in zip((ours, theirs), made)], [made]
    if wants(full := "sum of two, 256 at 56"):
        a, b = drawn(4, 256, 56, 56), drawn(4, 256, 56, 56)
        made = two(a)
        yield full, [library.add(a, b, it) for library, it in zip((ours, theirs), made)], [made]
    for name, sizes in {"64 rows of 1000": (64, 1000), "4096 rows of 512": (4096, 512), "21 channels at 224": (1, 21, 224, 224)}.items():
        x = drawn(*sizes)
        if wants(full := f"softmax {name}, forward"):
            made = two(x)
            yield full, [library.softmax(x, it) for library, it in zip((ours, theirs), made)], [made]
        if wants(full := f"softmax {name}, backward"):
            y, dy, made = np.empty_like(x), drawn(*sizes), two(x)
            theirs.softmax(x, y)()
            yield full, [library.softmax(x, y, dy, it) for library, it in zip((ours, theirs), made)], [made]
    for name, sizes in {"64 at 112": (4, 64, 112, 112), "2048 at 7": (4, 2048, 7, 7)}.items():
        for kind in ("training", "inference", "backward"):
            full = f"batch norm {name}, {kind}"
            if not wants(full):
                continue
            x, dy, channels = drawn(*sizes), drawn(*sizes), sizes[1]
            scale, bias = drawn(channels), drawn(channels)
            # In double precision: beside what is rounded away in sums the results are to be compared.
            mean, variance = (it((0, 2, 3), dtype=np.float64).astype(f32) for it in (x.mean, x.var))
            runs, pairs, kept = [], [two(x), two(x), two(scale), two(scale)], []
            for which, library in enumerate((ours, theirs)):
                y, dx, dscale, dbias = (pair[which] for pair in pairs)
                statistics = (np.empty_like(mean), np.empty_like(mean)) if kind == "training" else (mean, variance)
                run = library.norm(kind, x, y, scale, bias, *statistics, dy, dx, dscale, dbias)
                kept.append((run, statistics))
                runs.append(run[0] if library is ours else run)
            yield full, runs, pairs[1:] if kind == "backward" else pairs[:1]
    for steps, batch, width, hidden in ((32, 16, 256, 256), (50, 1, 512, 512), (20, 64, 512, 512)):
        for training in (False, True):
            full = f"LSTM {steps} steps of {batch}, {width}-{hidden}, {'training' if training else 'inference'}"
            if not wants(full):
                continue
            x = drawn(steps, batch, width)
            weights = [drawn(4, hidden, size) * f32(0.05) for size in (width, hidden)]
            biases, made = drawn(4, hidden), two(np.empty((steps, batch, hidden), f32))
            own = ours.lstm(x, weights, biases, made[0], training)
            yield full, [own[0], theirs.lstm(x, weights, biases, made[1], training)], [made]


def main():
    cudnn, cudart, dnnl, seconds, *words = sys.argv[1:]
    ours, theirs, rng = Ours(cudnn, cudart), OneDnn(dnnl), np.random.default_rng(1)
    for name, runs, pairs in rows(ours, theirs, rng, lambda name: all(word in name for word in words)):
        for run in runs:
            run()
        for got, exact in pairs:
            near(got, exact, name)
        tell(name, turns([timed(run) for run in runs], float(seconds)))


assert os.environ.get("OMP_NUM_THREADS") == "1", "OMP_NUM_THREADS is 1 here"
main()
