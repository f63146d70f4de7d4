"""Recurrent networks by the manual's formulas in plain loops, sequence by sequence. Gradients are derivatives of the loops themselves: a step
of 1e-30 along the imaginary axis gives them to f64's last digits."""

import ctypes

import numpy as np

from device import Failure
from library import BFLOAT16, DOUBLE, EPS, FLOAT, FLOATS, HALF, P, TYPES, Scope, drawn, ints, near, rounded

RELU, TANH, LSTM, GRU = range(4)
GATES = {RELU: 1, TANH: 1, LSTM: 4, GRU: 3}
NO_BIAS, INPUT_BIAS, BOTH_BIASES, STATE_BIAS = range(4)
STEP_MAJOR, PACKED, BATCH_MAJOR = range(3)
TINY = 1e-30


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Network:
    """Sizes and modes of a network; its parameters are one vector: matrices by pseudo layer, biases by pseudo layer."""

    def __init__(self, rng, cell, bias, projects=False, layers=None):
        self.cell, self.bias = cell, bias
        self.hidden, self.layers = int(rng.integers(2, 6)), layers or int(rng.integers(1, 4))
        self.directions = int(rng.integers(1, 3))
        self.skips = int(rng.integers(0, 4) == 0)
        self.input = self.hidden if self.skips else int(rng.integers(1, 6))
        self.output = int(rng.integers(1, self.hidden)) if projects else self.hidden
        self.clip = (-0.3, 0.2) if cell == LSTM and rng.integers(0, 3) == 0 else None
        self.pseudo = self.layers * self.directions

    def lengths(self, rng, sorted_, least=0):
        self.batch, self.steps = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        lengths = rng.integers(least, self.steps + 1, self.batch)
        lengths[int(rng.integers(0, self.batch))] = self.steps
        self.lens = [int(length) for length in (sorted(lengths, reverse=True) if sorted_ else lengths)]

    def matrix(self, pseudo, linear):
        gates = GATES[self.cell]
        first = pseudo < self.directions
        if linear < gates:
            return None if first and self.skips else (self.hidden, self.input if first else self.directions * self.output)
        if linear < 2 * gates:
            return self.hidden, self.output
        return (self.output, self.hidden) if self.output != self.hidden else None

    def has_bias(self, linear):
        gates = GATES[self.cell]
        return linear < 2 * gates and (self.bias == BOTH_BIASES or self.bias == (INPUT_BIAS if linear < gates else STATE_BIAS))

    @property
    def linears(self):
        return range(2 * GATES[self.cell] + (self.cell == LSTM))

    def places(self):
        """Where each matrix and bias begins, and how many numbers there are."""
        at, matrices, biases = 0, {}, {}
        for pseudo in range(self.pseudo):
            for linear in self.linears:
                if sizes := self.matrix(pseudo, linear):
                    matrices[pseudo, linear] = at, sizes
                    at += sizes[0] * sizes[1]
        for pseudo in range(self.pseudo):
            for linear in self.linears:
                if self.has_bias(linear):
                    biases[pseudo, linear] = at
                    at += self.hidden
        return matrices, biases, at

    def run(self, weights, x, hx, cx, masks=None):
        """Arrays begin with an axis of variants. x: variants, batch, steps, input. What is behind a sequence's end is 0."""
        matrices, biases, _ = self.places()
        variants, gates = weights.shape[0], GATES[self.cell]
        part = lambda at, sizes: weights[:, at:at + int(np.prod(sizes))].reshape((variants,) + sizes)
        hy, cy = np.array(hx, dtype=weights.dtype), np.array(cx, dtype=weights.dtype)
        for layer in range(self.layers):
            y = np.zeros((variants, self.batch, self.steps, self.directions * self.output), weights.dtype)
            for direction in range(self.directions):
                pseudo = layer * self.directions + direction

                def linear(which, vector, adds_bias=True):
                    if (pseudo, which) in matrices:
                        vector = np.einsum("vij,vj->vi", part(*matrices[pseudo, which]), vector)
                    if adds_bias and (pseudo, which) in biases:
                        vector = vector + part(biases[pseudo, which], (self.hidden,))
                    return vector

                for b in range(self.batch):
                    h, c = hx[:, pseudo, b], cx[:, pseudo, b]
                    order = range(self.lens[b])
                    for t in order if direction == 0 else reversed(order):
                        u = x[:, b, t]
                        pre = lambda gate: linear(gate, u) + linear(gates + gate, h)
                        if self.cell == RELU:
                            # Products of two imaginary steps are no numbers above 0.
                            h = np.where(pre(0).real > TINY, pre(0), 0)
                        elif self.cell == TANH:
                            h = np.tanh(pre(0))
                        elif self.cell == LSTM:
                            i, f, g, o = sigmoid(pre(0)), sigmoid(pre(1)), np.tanh(pre(2)), sigmoid(pre(3))
                            c = f * c + i * g
                            if self.clip:
                                c = np.where(c.real < self.clip[0], self.clip[0], np.where(c.real > self.clip[1], self.clip[1], c))
                            h = o * np.tanh(c)
                            if (pseudo, 8) in matrices:
                                h = linear(8, h)
                        else:
                            r, z = sigmoid(pre(0)), sigmoid(pre(1))
                            new = np.tanh(linear(2, u) + r * linear(5, h))
                            h = (1 - z) * new + z * h
                        y[:, b, t, direction * self.output:(direction + 1) * self.output] = h
                    hy[:, pseudo, b], cy[:, pseudo, b] = h, c
            x = y if masks is None or layer + 1 == self.layers else y * masks[layer]
        return y, hy, cy


class Sequences:
    """Vectors of sequences in memory in a layout, with a descriptor."""

    def __init__(self, scope, network, values, of, layout, fill=None):
        self.network, self.layout, self.of, self.fill = network, layout, of, fill
        self.width = values.shape[-1]
        rows = sum(network.lens) if layout == PACKED else network.steps * network.batch
        image = np.full((rows, self.width), 7, TYPES[of])
        for row, (b, t) in self.rows():
            image[row] = values[b, t].astype(TYPES[of])
        self.array = scope.array(image)
        self.descriptor = scope.made("cudnnCreateRNNDataDescriptor", "cudnnDestroyRNNDataDescriptor")
        symbol = None if fill is None else np.array([fill], TYPES[of])
        scope.library("cudnnSetRNNDataDescriptor", self.descriptor, of, layout, network.steps, network.batch, self.width, ints(*network.lens),
                      None if symbol is None else P(symbol.ctypes.data))

    def rows(self):
        network, row = self.network, 0
        for t in range(network.steps):
            for b in range(network.batch):
                if t < network.lens[b]:
                    yield (row if self.layout == PACKED else b * network.steps + t if self.layout == BATCH_MAJOR else t * network.batch + b), (b, t)
                    row += 1

    @property
    def at(self):
        return self.array.at

    def get(self):
        """By sequence and step; what is padding has to be the fill, or what it was."""
        image = self.array.get().astype(np.float64)
        values = np.zeros((self.network.batch, self.network.steps, self.width))
        for row, (b, t) in self.rows():
            values[b, t] = image[row]
            image[row] = 7 if self.fill is None else self.fill
        if (image != (7 if self.fill is None else self.fill)).any():
            raise Failure("padding is not the fill")
        return values


class Case:
    """A network with drawn parameters, inputs and outer gradients, and its descriptors."""

    def __init__(self, scope, rng, network, of, layout, dropout=None):
        self.scope, self.network, self.of, self.layout = scope, network, of, layout
        self.matrices, self.biases, self.count = network.places()
        values = lambda *sizes: drawn(rng, sizes, of, 0.5)
        self.weights = values(self.count)
        valid = np.array([[t < length for t in range(network.steps)] for length in network.lens])[..., None]
        self.x = values(network.batch, network.steps, network.input) * valid
        self.dy = values(network.batch, network.steps, network.directions * network.output) * valid
        self.h, self.dh = (values(network.pseudo, network.batch, network.output) for _ in range(2))
        is_lstm = network.cell == LSTM
        self.c, self.dc = (values(network.pseudo, network.batch, network.hidden) * is_lstm for _ in range(2))
        self.has_states = bool(rng.integers(0, 3))
        if not self.has_states:
            self.h, self.c = self.h * 0, self.c * 0
        self.descriptor = scope.made("cudnnCreateRNNDescriptor", "cudnnDestroyRNNDescriptor")
        self.dropout = dropout
        self.states = [scope.tensor(values_, of) for values_ in (self.h, self.dh, self.h * 0, self.h * 0)]
        self.cells = [scope.tensor(values_, of) for values_ in (self.c, self.dc, self.c * 0, self.c * 0)]
        self.memory = scope.array(rounded(self.weights, of))
        self.dweights = values(self.count)
        self.gradient = scope.array(rounded(self.dweights, of))
        fill = float(rng.choice([0.0, -3.0])) if rng.integers(0, 2) else None
        self.tx = Sequences(scope, network, self.x, of, layout)
        self.tdx = Sequences(scope, network, self.x * 0, of, layout, fill)
        self.ty = Sequences(scope, network, self.dy * 0, of, layout, fill)
        self.tdy = Sequences(scope, network, self.dy, of, layout)
        self.exact = [values_[0].real for values_ in network.run(self.weights[None], self.x[None], self.h[None], self.c[None])]

    def derivatives(self, rng, masks=None):
        """Of some parameters and of all of them in one direction: rows of steps, and the loss's derivative along each."""
        network = self.network
        parts = [self.weights, self.x, self.h, self.c]
        sizes = [part.size for part in parts]
        theta = np.concatenate([part.ravel() for part in parts])
        some = rng.choice(theta.size, min(60, theta.size), replace=False)
        steps = np.zeros((len(some) + 1, theta.size))
        steps[np.arange(len(some)), some] = 1
        steps[-1] = rng.standard_normal(theta.size)
        varied = theta + 1j * TINY * steps
        ends = np.cumsum(sizes)
        cut = [varied[:, end - size:end].reshape((len(varied),) + part.shape) for end, size, part in zip(ends, sizes, parts)]
        y, hy, cy = network.run(*cut, masks)
        over = lambda values, outer: (values * outer).sum(axis=tuple(range(1, values.ndim)))
        loss = over(y, self.dy) + over(hy, self.dh) + over(cy, self.dc)
        return steps, loss.imag / TINY

    def check_forward(self, what, hy, cy):
        depth = self.network.steps * self.network.layers * (self.network.hidden + 8)
        y, h, c = self.exact
        large = 4 + np.abs(y).max()
        near(self.ty.get(), y, large, self.of, depth, f"{what}: y")
        near(hy.get(), h, large, self.of, depth, f"{what}: hy")
        if self.network.cell == LSTM:
            near(cy.get(), c, large, self.of, depth, f"{what}: cy")

    def check_backward(self, what, rng, dx, dhx, dcx, masks=None):
        found = [self.gradient.get().astype(np.float64) - self.dweights, dx.get(), dhx.get(), dcx.get() if self.network.cell == LSTM else self.c * 0]
        flat = np.concatenate([part.ravel() for part in found])
        if not self.has_states:
            flat[self.count + self.x.size:] = np.concatenate([part.ravel() for part in (dhx.get(), dcx.get() if self.network.cell == LSTM else self.c * 0)])
        steps, exact = self.derivatives(rng, masks)
        # A way along many parameters is as far as their roundings together.
        depth = self.network.steps * self.network.layers * (self.network.hidden + 8) * self.network.batch
        large = np.abs(steps) @ (np.abs(flat) + 4)
        weight_rounding = np.abs(steps[:, :self.count]) @ (np.abs(self.dweights) + np.abs(found[0])) * EPS[self.of] * 2
        bound_scale = 1 + weight_rounding / (EPS[self.of] * (large + 1))
        near(steps @ flat, exact, 2 * large * (1 if self.of in (FLOAT, DOUBLE) else 1 + EPS[self.of] / 2.0**-24 / 16) * bound_scale, self.of, depth, f"{what}: gradients")


def spaces(scope, of, *sizes):
    """Room of so many bytes each, aligned as `cudaMalloc` aligns."""
    return [(ctypes.c_size_t(size), scope.array(np.zeros(max(size, 8), np.uint8)).at) for size in sizes]


def v8(rng, scope, case, mode=1):
    """Sets the descriptor, places the weights where the library says, and gives the sizes and memory of both spaces."""
    face, network, of = scope.library, case.network, case.of
    math = DOUBLE if of == DOUBLE else int(rng.choice([FLOAT, HALF])) if of == HALF else FLOAT
    face("cudnnSetRNNDescriptor_v8", case.descriptor, 0, network.cell, network.bias, network.directions - 1, network.skips, of, math, 0,
         network.input, network.hidden, network.output, network.layers, case.dropout, int(case.layout != PACKED))
    if network.clip:
        low, high = map(ctypes.c_double, network.clip)
        if face.major == 9 and rng.integers(0, 2):
            face("cudnnRNNSetClip_v9", case.descriptor, 1, low, high)
        else:
            face("cudnnRNNSetClip_v8", case.descriptor, 1, 1, low, high)
    size, work, reserve = (ctypes.c_size_t(77) for _ in range(3))
    face("cudnnGetRNNWeightSpaceSize", scope.handle, case.descriptor, ctypes.byref(size))
    bytes_ = np.dtype(TYPES[of]).itemsize
    assert size.value == case.count * bytes_, (size.value, case.count)
    matrix, bias = (scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor") for _ in range(2))
    for pseudo in range(network.pseudo):
        for linear in network.linears:
            places = [P(1), P(1)]
            face("cudnnGetRNNWeightParams", scope.handle, case.descriptor, pseudo, size, case.memory.at, linear, matrix, ctypes.byref(places[0]),
                 bias, ctypes.byref(places[1]))
            wanted = [case.matrices.get((pseudo, linear)),
                      (case.biases[pseudo, linear], (network.hidden, 1)) if (pseudo, linear) in case.biases else None]
            for place, descriptor, known in zip(places, (matrix, bias), wanted):
                kind, n, sizes, strides = ctypes.c_int(), ctypes.c_int(), ints(0, 0, 0), ints(0, 0, 0)
                face("cudnnGetTensorNdDescriptor", descriptor, 3, ctypes.byref(kind), ctypes.byref(n), sizes, strides)
                if known is None:
                    assert not place.value and n.value == 0, (pseudo, linear)
                else:
                    at, (rows, columns) = known
                    assert place.value == case.memory.at.value + at * bytes_, (pseudo, linear)
                    assert (kind.value, list(sizes), list(strides)) == (of, [1, rows, columns], [rows * columns, columns, 1])
    face("cudnnGetRNNTempSpaceSizes", scope.handle, case.descriptor, mode, case.tx.descriptor, ctypes.byref(work), ctypes.byref(reserve))
    assert work.value == 0 and (mode == 1) == (reserve.value > 0)
    return size, spaces(scope, of, work.value, reserve.value)


def state(case, tensor):
    """A first state, or NULL for one of zeros."""
    return tensor.at if case.has_states else None


def forward_v8(case, size, spaces_, mode, hy, cy):
    scope = case.scope
    (work, work_at), (reserve, reserve_at) = spaces_
    scope.library("cudnnRNNForward", scope.handle, case.descriptor, mode, None, case.tx.descriptor, case.tx.at, case.ty.descriptor, case.ty.at,
                  case.states[0].descriptor, state(case, case.states[0]), hy.at, case.cells[0].descriptor, state(case, case.cells[0]), cy.at,
                  size, case.memory.at, work, work_at, reserve, reserve_at)
    scope.library.synchronize()


def backward_v8(case, size, spaces_, dhx, dcx):
    scope, face = case.scope, case.scope.library
    (work, work_at), (reserve, reserve_at) = spaces_
    h, c = case.states[0].descriptor, case.cells[0].descriptor
    face("cudnnRNNBackwardData_v8", scope.handle, case.descriptor, None, case.ty.descriptor, case.ty.at, case.tdy.at, case.tdx.descriptor,
         case.tdx.at, h, state(case, case.states[0]), case.states[1].at, dhx.at, c, state(case, case.cells[0]), case.cells[1].at, dcx.at, size,
         case.memory.at, work, work_at, reserve, reserve_at)
    face("cudnnRNNBackwardWeights_v8", scope.handle, case.descriptor, 0, None, case.tx.descriptor, case.tx.at, h, state(case, case.states[0]),
         case.ty.descriptor, case.ty.at, size, case.gradient.at, work, work_at, reserve, reserve_at)
    face.synchronize()


def networks(library, rng):
    """The API of 8 and 9: all cells, biases and layouts; projections, bounds, types, both directions, several layers."""
    number = 0
    for cell in range(4):
        for bias in range(4):
            for projects in (False, True) if cell == LSTM else (False,):
                of = FLOATS[number % 4] if number % 3 else DOUBLE
                face, layout = library.drawn(rng), int(rng.integers(0, 3))
                network = Network(rng, cell, bias, projects)
                network.lengths(rng, layout == PACKED)
                what = f"{cell} {bias} {vars(network)} type {of} layout {layout}"
                with Scope(face) as scope:
                    case = Case(scope, rng, network, of, layout)
                    size, room = v8(rng, scope, case, 0)
                    forward_v8(case, size, room, 0, case.states[2], case.cells[2])
                    case.check_forward("inference " + what, case.states[2], case.cells[2])
                    size, room = v8(rng, scope, case, 1)
                    forward_v8(case, size, room, 1, case.states[2], case.cells[2])
                    case.check_forward("training " + what, case.states[2], case.cells[2])
                    backward_v8(case, size, room, case.states[3], case.cells[3])
                    case.check_backward(what, rng, case.tdx, case.states[3], case.cells[3])
                number += 1
    return number


def first_api(library, rng):
    """8's first API: its calls over arrays of tensors, and the extended ones over descriptors of sequences."""
    face = library.faces[0]
    number = 0
    for cell in range(4):
        for extended in (False, True):
            for of in (DOUBLE, FLOATS[number % 4]):
                layout = int(rng.choice([STEP_MAJOR, BATCH_MAJOR, PACKED])) if extended else PACKED
                network = Network(rng, cell, int(rng.integers(0, 4)), cell == LSTM and rng.integers(0, 2))
                network.lengths(rng, layout == PACKED, least=int(not extended))
                what = f"first {cell} {extended} {vars(network)} type {of} layout {layout}"
                with Scope(face) as scope:
                    first_case(face, rng, scope, Case(scope, rng, network, of, layout), extended, what)
                number += 1
    return number


def first_case(face, rng, scope, case, extended, what):
    network, of, handle, it = case.network, case.of, scope.handle, case.descriptor
    face("cudnnSetRNNDescriptor_v6", handle, it, network.hidden, network.layers, None, network.skips, network.directions - 1, network.cell, 0,
         DOUBLE if of == DOUBLE else FLOAT)
    face("cudnnSetRNNBiasMode", it, network.bias)
    face("cudnnSetRNNPaddingMode", it, int(case.layout != PACKED))
    if network.output != network.hidden:
        face("cudnnSetRNNProjectionLayers", handle, it, network.output, 0)
    if network.clip:
        face("cudnnRNNSetClip", handle, it, 1, 1, *map(ctypes.c_double, network.clip))
    counts = [sum(length > t for length in network.lens) for t in range(network.steps)]

    def step(width, count):
        tensor = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
        face("cudnnSetTensorNdDescriptor", tensor, of, 3, ints(count, width, 1), ints(width, 1, 1))
        return tensor

    steps = lambda width: (P * network.steps)(*[step(width, count).value for count in counts])
    xs, ys = steps(network.input), steps(network.directions * network.output)
    size, reserve, work = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t(5)
    one = step(network.input, network.batch)
    face("cudnnGetRNNParamsSize", handle, it, one, ctypes.byref(size), of)
    bytes_ = np.dtype(TYPES[of]).itemsize
    assert size.value == case.count * bytes_
    weights = scope.made("cudnnCreateFilterDescriptor", "cudnnDestroyFilterDescriptor")
    face("cudnnSetFilterNdDescriptor", weights, of, 0, 3, ints(case.count, 1, 1))
    part, place = scope.made("cudnnCreateFilterDescriptor", "cudnnDestroyFilterDescriptor"), P()
    for pseudo in range(network.pseudo):
        for linear in network.linears:
            bias = (case.biases[pseudo, linear], (network.hidden, 1)) if (pseudo, linear) in case.biases else None
            for name, known in (("Matrix", case.matrices.get((pseudo, linear))), ("Bias", bias)):
                face(f"cudnnGetRNNLinLayer{name}Params", handle, it, pseudo, one, weights, case.memory.at, linear, part, ctypes.byref(place))
                kind, layout, n, sizes = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ints(0, 0, 0)
                face("cudnnGetFilterNdDescriptor", part, 3, ctypes.byref(kind), ctypes.byref(layout), ctypes.byref(n), sizes)
                if known is None:
                    assert not place.value and n.value == 0
                else:
                    assert place.value == case.memory.at.value + known[0] * bytes_ and list(sizes) == [1, *known[1]], (name, pseudo, linear)
    # Of sequences with padding there may be as many rows as the largest have together.
    full = (P * network.steps)(*[step(network.input, network.batch).value for _ in counts])
    face("cudnnGetRNNTrainingReserveSize", handle, it, network.steps, full, ctypes.byref(reserve))
    face("cudnnGetRNNWorkspaceSize", handle, it, network.steps, xs, ctypes.byref(work))
    assert work.value == 0
    kept = scope.array(np.zeros(reserve.value, np.uint8)).at
    h, c = case.states, case.cells
    first = lambda tensor: (tensor.descriptor, state(case, tensor))
    both = lambda tensor: (tensor.descriptor, tensor.at)
    none = (None,) * 8
    nothing = (None, ctypes.c_size_t(0))
    for mode in ("Inference", "Training"):
        tail = nothing + ((kept, reserve) if mode == "Training" else ())
        if extended:
            face(f"cudnnRNNForward{mode}Ex", handle, it, case.tx.descriptor, case.tx.at, *first(h[0]), *first(c[0]), weights, case.memory.at,
                 case.ty.descriptor, case.ty.at, *both(h[2]), *both(c[2]), *none, *tail)
        else:
            face(f"cudnnRNNForward{mode}", handle, it, network.steps, xs, case.tx.at, *first(h[0]), *first(c[0]), weights, case.memory.at, ys,
                 case.ty.at, *both(h[2]), *both(c[2]), *tail)
        face.synchronize()
        case.check_forward(f"{mode} {what}", h[2], c[2])
    states = (*both(h[1]), *both(c[1]), weights, case.memory.at, *first(h[0]), *first(c[0]))
    ends = (*both(h[3]), *both(c[3]))
    if extended:
        face("cudnnRNNBackwardDataEx", handle, it, case.ty.descriptor, case.ty.at, case.tdy.descriptor, case.tdy.at, None, None, *states,
             case.tdx.descriptor, case.tdx.at, *ends, None, None, *nothing, kept, reserve)
        face("cudnnRNNBackwardWeightsEx", handle, it, case.tx.descriptor, case.tx.at, *first(h[0]), case.ty.descriptor, case.ty.at, *nothing,
             weights, case.gradient.at, kept, reserve)
    else:
        face("cudnnRNNBackwardData", handle, it, network.steps, ys, case.ty.at, ys, case.tdy.at, *states, xs, case.tdx.at, *ends, *nothing, kept,
             reserve)
        face("cudnnRNNBackwardWeights", handle, it, network.steps, xs, case.tx.at, *first(h[0]), ys, case.ty.at, *nothing, weights,
             case.gradient.at, kept, reserve)
    face.synchronize()
    case.check_backward(what, rng, case.tdx, h[3], c[3])


def dropping(library, rng):
    """What is dropped between layers is seen through a second layer that gives what it gets; it repeats with the states."""
    for number, of in enumerate((FLOAT, DOUBLE, FLOAT, DOUBLE)):
        face, p = library.drawn(rng), float(np.float32(rng.uniform(0.2, 0.6)))
        network = Network(rng, RELU, NO_BIAS, layers=2)
        network.directions, network.pseudo, network.hidden, network.output = 1, 2, 40, 40
        network.input, network.skips = 5, 0
        network.batch, network.steps, network.lens = 3, 4, [4, 2, 3]
        with Scope(face) as scope:
            dropout, size = scope.made("cudnnCreateDropoutDescriptor", "cudnnDestroyDropoutDescriptor"), ctypes.c_size_t()
            face("cudnnDropoutGetStatesSize", scope.handle, ctypes.byref(size))
            states = scope.array(np.zeros(size.value, np.uint8))
            begin = lambda: face("cudnnSetDropoutDescriptor", dropout, scope.handle, ctypes.c_float(p), states.at, size, ctypes.c_ulonglong(number))
            begin()
            case = Case(scope, rng, network, of, STEP_MAJOR, dropout)
            at, _ = case.matrices[1, 0]
            case.weights[at:] = 0
            case.weights[at:at + 1600] = np.eye(40).ravel()
            case.memory = scope.array(rounded(case.weights, of))
            case.has_states, case.h = False, case.h * 0
            space, room = v8(rng, scope, case)
            forward = lambda: (forward_v8(case, space, room, 1, case.states[2], case.cells[2]), case.ty.get())[1]
            first = network.run(case.weights[None], case.x[None], case.h[None], case.c[None])[0][0]
            once, twice = forward(), forward()
            kept = twice != 0
            large = first > 1e-3
            near(twice[kept], first[kept] / (1 - p), 4 + first[kept], of, 50, "what is kept")
            spread = np.sqrt(p * (1 - p) / large.sum())
            assert abs(1 - kept[large].mean() - p) < 5 * spread, (p, kept[large].mean())
            assert ((once != 0) != kept).any()
            # The way back knows what the last training dropped, and a step of inference drops nothing.
            masks = [np.where(kept | (first <= 0), 1 / (1 - p), 0)]
            backward_v8(case, space, room, case.states[3], case.cells[3])
            case.check_backward("dropout", rng, case.tdx, case.states[3], case.cells[3], masks)
            begin()
            assert (forward() == once).all() and (forward() == twice).all()
            forward_v8(case, space, room, 0, case.states[2], case.cells[2])
            near(case.ty.get(), first, 4 + first, of, 50, "inference")
    return 4


def refusals(library, rng):
    """What is refused and by which number: of descriptors, what NVIDIA's 9.27 refuses."""
    count = 0
    for face in library.faces:
        with Scope(face) as scope:
            it = scope.made("cudnnCreateRNNDescriptor", "cudnnDestroyRNNDescriptor")
            data = scope.made("cudnnCreateRNNDataDescriptor", "cudnnDestroyRNNDataDescriptor")
            size, place = ctypes.c_size_t(), P()
            names = "algo cell bias direction input_mode of precision math input hidden projected layers dropout flags".split()
            plain = dict(zip(names, (0, LSTM, 2, 0, 0, FLOAT, FLOAT, 0, 4, 4, 4, 1, None, 0)))
            with_ = lambda **other: ("cudnnSetRNNDescriptor_v8", it, *{**plain, **other}.values())
            face.refused("NOT_INITIALIZED", "cudnnGetRNNWeightSpaceSize", scope.handle, it, ctypes.byref(size))
            good = [{}, *({name: value} for name in ("algo", "cell", "bias", "math") for value in range(4)), {"of": DOUBLE, "precision": DOUBLE},
                    {"of": HALF}, {"of": HALF, "precision": HALF}, {"of": BFLOAT16}, {"projected": 3}, {"projected": 3, "direction": 1},
                    {"layers": 3}, {"input_mode": 1, "input": 5}, {"flags": 1}]
            bad = [{name: value} for name in ("algo", "cell", "bias", "math") for value in (-1, 4)]
            bad += [{"direction": 2}, {"input_mode": 2}, {"input": 0}, {"hidden": 0}, {"projected": 0}, {"projected": -1}, {"layers": 0}, {"flags": 2},
                    {"dropout": P(64)}]
            unsupported = [{"of": DOUBLE}, {"of": BFLOAT16, "precision": BFLOAT16}, {"of": 3}, {"precision": DOUBLE}, {"precision": HALF},
                           {"projected": 5}, {"projected": 3, "cell": GRU}, {"projected": 3, "algo": 1}]
            for other in good:
                face(*with_(**other))
            for other in bad:
                face.refused("BAD_PARAM", *with_(**other))
            for other in unsupported:
                face.refused("NOT_SUPPORTED", *with_(**other))
            face(*with_())
            got = [ctypes.c_int(99) for _ in range(13)]
            dropout = P(5)
            face("cudnnGetRNNDescriptor_v8", it, *map(ctypes.byref, got[:12]), ctypes.byref(dropout), ctypes.byref(got[12]))
            assert [value.value for value in got] == [0, LSTM, 2, 0, 0, FLOAT, FLOAT, 0, 4, 4, 4, 1, 0] and not dropout.value
            double = ctypes.c_double
            face("cudnnRNNSetClip_v8", it, 1, 0, double(-1), double(1))
            face.refused("BAD_PARAM", "cudnnRNNSetClip_v8", it, 1, 0, double(1), double(-1))
            face.refused("BAD_PARAM", "cudnnRNNSetClip_v8", it, 1, 0, double(np.nan), double(1))
            mode, nan, low, high = ctypes.c_int(7), ctypes.c_int(7), double(), double()
            face("cudnnRNNGetClip_v8", it, *map(ctypes.byref, (mode, nan, low, high)))
            assert (mode.value, nan.value, low.value, high.value) == (1, 0, -1, 1)
            face("cudnnRNNSetClip_v8", it, 0, 0, double(0), double(0))
            names = "of layout steps batch width lengths fill".split()
            usual = dict(zip(names, (FLOAT, 0, 4, 3, 4, (4, 2, 1), None)))

            def sequences(**other):
                of, layout, steps, batch, width, lengths, fill = {**usual, **other}.values()
                return "cudnnSetRNNDataDescriptor", data, of, layout, steps, batch, width, lengths and ints(*lengths), fill

            for other in ({}, {"layout": 1}, {"layout": 2}, {"lengths": (1, 2, 4)}, {"lengths": (0, 2, 1)}, {"lengths": (3, 0, 0)}, {"of": DOUBLE}, {"of": HALF}):
                face(*sequences(**other))
            bad_sequences = [{"layout": 3}, {"layout": 1, "lengths": (1, 2, 4)}, {"lengths": (5, 2, 1)}, {"lengths": (-1, 2, 1)}, {"steps": 0},
                             {"batch": 0}, {"width": 0}, {"of": 77}, {"lengths": None}]
            for other in bad_sequences:
                face.refused("BAD_PARAM", *sequences(**other))
            face.refused("NOT_SUPPORTED", *sequences(of=3))
            fill = ctypes.c_float(3)
            face(*sequences(fill=ctypes.byref(fill)))
            told, lengths, fill = [ctypes.c_int(9) for _ in range(5)], ints(7, 7, 7, 7, 7), ctypes.c_float()
            face("cudnnGetRNNDataDescriptor", data, *map(ctypes.byref, told), 2, lengths, ctypes.byref(fill))
            assert [value.value for value in told] == [0, 0, 4, 3, 4] and list(lengths) == [4, 2, 7, 7, 7] and fill.value == 3
            face("cudnnGetRNNDataDescriptor", data, *map(ctypes.byref, told), 5, lengths, ctypes.byref(fill))
            assert list(lengths) == [4, 2, 1, 0, 0]
            face.refused("BAD_PARAM", "cudnnGetRNNDataDescriptor", data, *map(ctypes.byref, told), -1, lengths, None)
            # Calls whose parts do not go together, or whose room is too small, write nothing.
            face("cudnnGetRNNWeightSpaceSize", scope.handle, it, ctypes.byref(size))
            reserve = ctypes.c_size_t()
            face("cudnnGetRNNTempSpaceSizes", scope.handle, it, 1, data, None, ctypes.byref(reserve))
            weights, memory = scope.array(np.zeros(size.value, np.uint8)), scope.array(np.full(48, 7, np.float32))
            kept, h = scope.array(np.zeros(reserve.value, np.uint8)), scope.tensor(np.zeros((1, 3, 4)), FLOAT)

            def forward(descriptor=None, bytes_=size.value, room=reserve.value, states=h, y=memory.at, mode=1):
                descriptor = descriptor or data
                return ("cudnnRNNForward", scope.handle, it, mode, None, data, memory.at, descriptor, y, states.descriptor, states.at, None,
                        h.descriptor, None, None, ctypes.c_size_t(bytes_), weights.at, ctypes.c_size_t(0), None, ctypes.c_size_t(room), kept.at)

            other = scope.made("cudnnCreateRNNDataDescriptor", "cudnnDestroyRNNDataDescriptor")
            face.refused("BAD_PARAM", *forward())
            face(*with_(flags=1))
            wrong = [{"descriptor": other}, {"bytes_": size.value - 1}, {"room": reserve.value - 1}, {"y": None}, {"mode": 2},
                     {"states": scope.tensor(np.zeros((1, 3, 5)), FLOAT)}, {"states": scope.tensor(np.zeros((1, 3, 4)), DOUBLE)}]
            for call in wrong:
                face.refused("BAD_PARAM", *forward(**call))
            for pseudo, linear in ((1, 0), (0, 9), (-1, 0), (0, -1)):
                face.refused("BAD_PARAM", "cudnnGetRNNWeightParams", scope.handle, it, pseudo, size, weights.at, linear, h.descriptor,
                             ctypes.byref(place), h.descriptor, ctypes.byref(place))
            face.synchronize()
            assert (memory.get() == 7).all()
            face.refused("BAD_PARAM", "cudnnBuildRNNDynamic", scope.handle, it, 3)
            face(*with_(algo=2))
            face("cudnnBuildRNNDynamic", scope.handle, it, 3)
            count += len(good) + len(bad) + len(unsupported) + len(bad_sequences) + len(wrong) + 20
    return count
