"""Multi-head attention of the first API by its formulas, query by query. Gradients are derivatives of the definition: a step of 1e-30 along
the imaginary axis."""

import ctypes

import numpy as np

from library import BFLOAT16, DOUBLE, EPS, FLOAT, FLOATS, HALF, P, TYPES, Scope, drawn, ints, near, rounded

TINY = 1e-30
TIME, BATCH, BEAM, VECTOR = range(4)
ONE_TO_ONE, BIASES = 1, 2
Q, K, V, O = range(4)


class Layer:
    def __init__(self, rng, of):
        size = lambda: int(rng.integers(1, 5))
        self.of, self.heads, self.biases = of, int(rng.integers(1, 4)), bool(rng.integers(0, 2))
        self.scale = float(np.float32(rng.uniform(0.2, 1)))
        # A head's queries and keys are of one size, projected or not.
        depth = size()
        self.projected = [depth if rng.integers(0, 3) else 0 for _ in range(2)] + [size() if rng.integers(0, 3) else 0]
        self.sizes = [size() if self.projected[which] else depth for which in (Q, K)] + [size()]
        self.output = size() if rng.integers(0, 3) else 0
        self.one_to_one = bool(rng.integers(0, 2))
        self.batch, self.beams, self.queries, self.keys = (int(number) for number in (rng.integers(1, 3), rng.integers(1, 4), size(), size()))
        self.key_beams = self.beams if self.one_to_one else 1
        self.width = self.projected[V] or self.sizes[V]
        self.outputs = self.output or self.heads * self.width
        shapes = [(self.heads, self.projected[which], self.sizes[which]) for which in (Q, K, V)] + [(self.heads, self.output, self.width)]
        vectors = [(self.heads, self.projected[which], 1) for which in (Q, K, V)] + [(1, self.output, 1)]
        self.shapes = [shape if shape[1] else None for shape in shapes] + [shape if shape[1] and self.biases else None for shape in vectors]
        self.places, at = [], 0
        for shape in self.shapes:
            self.places.append(at)
            at += int(np.prod(shape)) if shape else 0
        self.count = at

    def run(self, weights, q, k, v, windows, lengths):
        """q: batch, beam, time, vector."""
        part = [weights[at:at + int(np.prod(shape))].reshape(shape) if shape else None for at, shape in zip(self.places, self.shapes)]

        def projected(which, head, vector):
            if part[which] is not None:
                vector = part[which][head] @ vector
                if part[which + 4] is not None:
                    vector = vector + part[which + 4][head][:, 0]
            return vector

        y = np.zeros((self.batch, self.beams, self.queries, self.outputs), np.result_type(weights, q, k, v))
        for b, m, t in np.ndindex(self.batch, self.beams, self.queries):
            own = m if self.one_to_one else 0
            first, end = windows[0][t], min(windows[1][t], lengths[1][b, own])
            if t >= lengths[0][b, m] or first >= end:
                continue
            rows = []
            for head in range(self.heads):
                query = projected(Q, head, q[b, m, t])
                scores = np.array([self.scale * (query @ projected(K, head, k[b, own, s])) for s in range(first, end)])
                e = np.exp(scores - scores.real.max())
                rows.append(sum(weight * projected(V, head, v[b, own, s]) for weight, s in zip(e / e.sum(), range(first, end))))
            if part[O] is None:
                y[b, m, t] = np.concatenate(rows)
            else:
                y[b, m, t] = sum(part[O][head] @ row for head, row in enumerate(rows)) + (part[O + 4][0][:, 0] if part[O + 4] is not None else 0)
        return y


class Sequences:
    """Vectors in the device's memory, in any order of time, batch and beam."""

    def __init__(self, scope, rng, values, of, lengths):
        self.scope, self.axes = scope, [int(axis) for axis in rng.permutation(3)] + [VECTOR]
        b, m, t, size = values.shape
        self.order = [{TIME: 2, BATCH: 0, BEAM: 1, VECTOR: 3}[axis] for axis in self.axes]
        self.array = scope.array(np.ascontiguousarray(values.transpose(self.order).astype(TYPES[of])))
        self.descriptor = scope.made("cudnnCreateSeqDataDescriptor", "cudnnDestroySeqDataDescriptor")
        flat = [int(length) for length in lengths.ravel()]
        scope.library("cudnnSetSeqDataDescriptor", self.descriptor, of, 4, ints(t, b, m, size), ints(*self.axes), ctypes.c_size_t(len(flat)), ints(*flat), None)

    @property
    def at(self):
        return self.array.at

    def get(self):
        return self.array.get().astype(np.float64).transpose(np.argsort(self.order))


def attention(library, rng):
    for case in range(28):
        of, face = FLOATS[case % 4], library.drawn(rng)
        it = Layer(rng, of)
        q = drawn(rng, (it.batch, it.beams, it.queries, it.sizes[Q]), of, 0.7)
        k, v = (drawn(rng, (it.batch, it.key_beams, it.keys, it.sizes[which]), of, 0.7) for which in (K, V))
        weights, dweights = drawn(rng, (it.count,), of, 0.7), drawn(rng, (it.count,), of)
        dy, residual = (drawn(rng, (it.batch, it.beams, it.queries, it.outputs), of) for _ in range(2))
        lengths = rng.integers(1, it.queries + 1, (it.batch, it.beams)), rng.integers(1, it.keys + 1, (it.batch, it.key_beams))
        first = rng.integers(0, 2, it.queries)
        windows = first, first + rng.integers(0, it.keys + 2, it.queries)
        y = it.run(weights, q, k, v, windows, lengths)
        large = 16 * (1 + np.abs(y).max()) * (1 + np.abs(weights).max() if it.count else 1)
        what = f"{vars(it)}"
        with Scope(face) as scope:
            handle, descriptor = scope.handle, scope.made("cudnnCreateAttnDescriptor", "cudnnDestroyAttnDescriptor")
            face("cudnnSetAttnDescriptor", descriptor, it.one_to_one * ONE_TO_ONE + it.biases * BIASES, it.heads, ctypes.c_double(it.scale), of,
                 DOUBLE if of == DOUBLE else FLOAT, 0, None, None, *it.sizes, *it.projected, it.output, it.queries, it.keys, it.batch, it.beams)
            size, work, room, place = (ctypes.c_size_t(), ctypes.c_size_t(7), ctypes.c_size_t(), P())
            face("cudnnGetMultiHeadAttnBuffers", handle, descriptor, ctypes.byref(size), ctypes.byref(work), ctypes.byref(room))
            bytes_ = np.dtype(TYPES[of]).itemsize
            assert size.value == it.count * bytes_ and work.value == 0 and room.value > 0
            memory, gradient = (scope.array(rounded(values if it.count else np.zeros(1), of)) for values in (weights, dweights))
            part = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
            for kind, (at, shape) in enumerate(zip(it.places, it.shapes)):
                face("cudnnGetMultiHeadAttnWeights", handle, descriptor, kind, size, memory.at, part, ctypes.byref(place))
                type_, n, sizes, strides = ctypes.c_int(), ctypes.c_int(), ints(0, 0, 0), ints(0, 0, 0)
                face("cudnnGetTensorNdDescriptor", part, 3, ctypes.byref(type_), ctypes.byref(n), sizes, strides)
                assert n.value == (3 if shape else 0)
                assert place.value == (memory.at.value + at * bytes_ if shape else None)
                assert not shape or (list(sizes), list(strides)) == (list(shape), [shape[1] * shape[2], shape[2], 1])
            tq, tk, tv = (Sequences(scope, rng, values, of, length) for values, length in ((q, lengths[0]), (k, lengths[1]), (v, lengths[1])))
            # The result and what is added to it lie alike.
            state = rng.bit_generator.state
            to = Sequences(scope, rng, y * 0 + 7, of, lengths[0])
            rng.bit_generator.state = state
            tr = Sequences(scope, rng, residual, of, lengths[0])
            rng.bit_generator.state = state
            tdy = Sequences(scope, rng, dy, of, lengths[0])
            host = [np.ascontiguousarray(values, np.int32) for values in windows]
            device = [scope.array(np.ascontiguousarray(values, np.int32)).at for values in lengths]
            sequences = (tq.descriptor, tq.at), (tk.descriptor, tk.at), (tv.descriptor, tv.at)
            nothing, kept = (ctypes.c_size_t(0), None), scope.array(np.zeros(room.value, np.uint8))

            def forward(index=-1, added=None, reserve=nothing):
                face("cudnnMultiHeadAttnForward", handle, descriptor, index, *[P(values.ctypes.data) for values in host], *device, tq.descriptor,
                     tq.at, added, tk.descriptor, tk.at, tv.descriptor, tv.at, to.descriptor, to.at, size, memory.at, *nothing, *reserve)
                face.synchronize()
                return to.get()

            depth = 4 * (it.keys + max(it.sizes) + it.heads)
            one = int(rng.integers(0, it.queries))
            found = forward(one)
            near(found[:, :, one], y[:, :, one], large, of, depth, f"one query {what}")
            assert (np.delete(found, one, 2) == 7).all()
            near(forward(added=tr.at), y + residual, large + np.abs(residual), of, depth, f"with residuals {what}")
            near(forward(reserve=(room, kept.at)), y, large, of, depth, f"training {what}")
            tdq, tdk, tdv = (Sequences(scope, rng, values * 0, of, length) for values, length in ((q, lengths[0]), (k, lengths[1]), (v, lengths[1])))
            # Gradients lie as what they are of.
            for gradient_, own in ((tdq, tq), (tdk, tk), (tdv, tv)):
                gradient_.order, gradient_.descriptor = own.order, own.descriptor
                gradient_.array = scope.array(np.zeros_like(own.array.get()))
            face("cudnnMultiHeadAttnBackwardData", handle, descriptor, *[P(values.ctypes.data) for values in host], *device, tdy.descriptor, tdy.at,
                 tq.descriptor, tdq.at, tq.at, tk.descriptor, tdk.at, tk.at, tv.descriptor, tdv.at, tv.at, size, memory.at, *nothing, room, kept.at)
            adds = int(rng.integers(0, 2))
            face("cudnnMultiHeadAttnBackwardWeights", handle, descriptor, 1 - adds, tq.descriptor, tq.at, tk.descriptor, tk.at, tv.descriptor, tv.at,
                 tdy.descriptor, tdy.at, size, memory.at, gradient.at, *nothing, room, kept.at)
            face.synchronize()
            arrays = [weights, q, k, v]
            got = [gradient.get().astype(np.float64)[:it.count] - adds * dweights, tdq.get(), tdk.get(), tdv.get()]
            slack = large**2 * (1 + np.abs(dy).max())
            for which, (array, found) in enumerate(zip(arrays, got)):
                flat = array.ravel()
                some = rng.choice(flat.size, min(25, flat.size), replace=False) if flat.size else []
                for at in some:
                    moved = [values.astype(complex) for values in arrays]
                    moved[which].ravel()[at] += 1j * TINY
                    exact = (it.run(*moved, windows, lengths) * dy).sum().imag / TINY
                    extra = np.abs(dweights).max() * EPS[of] / 2.0**-24 if which == 0 and of != DOUBLE else np.abs(dweights).max() if which == 0 else 0
                    near(found.ravel()[at:at + 1], np.array([exact]), np.array([slack + extra]), of, depth * it.batch * it.beams, f"gradient {which} {what}")
    return 28


def dropping(library, rng):
    """What is dropped of the output repeats with its states, and its gradient knows it; the weights of values drop too."""
    for of in (FLOAT, DOUBLE):
        face, p = library.drawn(rng), float(np.float32(rng.uniform(0.3, 0.6)))
        for where in (0, 1):
            with Scope(face) as scope:
                handle, size, bytes_ = scope.handle, ctypes.c_size_t(), ctypes.c_size_t()
                dropout = scope.made("cudnnCreateDropoutDescriptor", "cudnnDestroyDropoutDescriptor")
                face("cudnnDropoutGetStatesSize", handle, ctypes.byref(bytes_))
                states = scope.array(np.zeros(bytes_.value, np.uint8))
                begin = lambda: face("cudnnSetDropoutDescriptor", dropout, handle, ctypes.c_float(p), states.at, bytes_, ctypes.c_ulonglong(3))
                begin()
                it = scope.made("cudnnCreateAttnDescriptor", "cudnnDestroyAttnDescriptor")
                given = (dropout, None) if where == 0 else (None, dropout)
                # One head without projections: with a scale of 0 each value has the same weight, and values are a unit matrix.
                n = 24
                face("cudnnSetAttnDescriptor", it, 0, 1, ctypes.c_double(0), of, of, 0, *given, 2, 2, n, 0, 0, 0, 0, n, n, 1, 1)
                work, room = ctypes.c_size_t(), ctypes.c_size_t()
                face("cudnnGetMultiHeadAttnBuffers", handle, it, ctypes.byref(size), ctypes.byref(work), ctypes.byref(room))
                full = np.full((1, 1), n)
                q, k, v = drawn(rng, (1, 1, n, 2), of), drawn(rng, (1, 1, n, 2), of), np.eye(n).reshape(1, 1, n, n)
                tq, tk, tv, to, tdv = (Sequences(scope, rng, values, of, full) for values in (q, k, v, v * 0, v * 0))
                low, high = np.zeros(n, np.int32), np.full(n, n, np.int32)
                lengths = [scope.array(np.full(1, n, np.int32)).at for _ in range(2)]
                kept = scope.array(np.zeros(room.value, np.uint8))
                nothing = (ctypes.c_size_t(0), None)
                host = P(low.ctypes.data), P(high.ctypes.data)

                def forward(reserve):
                    face("cudnnMultiHeadAttnForward", handle, it, -1, *host, *lengths, tq.descriptor, tq.at, None, tk.descriptor, tk.at, tv.descriptor,
                         tv.at, to.descriptor, to.at, size, None, *nothing, *reserve)
                    face.synchronize()
                    return to.get()[0, 0]

                once, twice = forward((room, kept.at)), forward((room, kept.at))
                kept_ = twice != 0
                near(twice[kept_], np.full(kept_.sum(), 1 / n / (1 - p)), 1, of, n, "what is kept")
                assert abs(1 - kept_.mean() - p) < 5 * np.sqrt(p * (1 - p)) / n and (kept_ != (once != 0)).any()
                # The gradient of values is the transposed mask, as the last training dropped.
                tdo, tdq, tdk = (Sequences(scope, rng, values, of, full) for values in (v, q * 0, k * 0))
                face("cudnnMultiHeadAttnBackwardData", handle, it, *host, *lengths, tdo.descriptor, tdo.at, tq.descriptor, tdq.at, tq.at, tk.descriptor,
                     tdk.at, tk.at, tdv.descriptor, tdv.at, tv.at, size, None, *nothing, room, kept.at)
                face.synchronize()
                mask = kept_ / (1 - p) / n
                near(tdv.get()[0, 0], expected(mask, where), 1, of, n, "gradient of values")
                begin()
                assert (forward((room, kept.at)) == once).all()
                near(forward(nothing), np.full((n, n), 1 / n), 1, of, n, "inference")
    return 4


def expected(mask, where):
    """dv[s, e] sums the weights of value s over queries t times dy[t, e], a unit matrix, where element e of query t is kept."""
    if where == 0:
        return mask.T
    n = len(mask)
    return np.broadcast_to(np.diag(mask), (n, n))


def refusals(library, rng):
    """By the numbers of NVIDIA's 9.27."""
    count = 0
    for face in library.faces:
        with Scope(face) as scope:
            it = scope.made("cudnnCreateSeqDataDescriptor", "cudnnDestroySeqDataDescriptor")
            names = "of n sizes axes count lengths".split()
            plain = dict(zip(names, (FLOAT, 4, (5, 2, 3, 8), (1, 2, 0, 3), 6, (5, 4, 3, 2, 1, 5))))

            def sequences(**other):
                of, n, sizes, axes, count_, lengths = {**plain, **other}.values()
                return "cudnnSetSeqDataDescriptor", it, of, n, ints(*sizes), ints(*axes), ctypes.c_size_t(count_), ints(*lengths), None

            for other in ({}, {"axes": (0, 1, 2, 3)}, {"of": DOUBLE}, {"of": HALF}, {"of": BFLOAT16}):
                face(*sequences(**other))
            for other in ({"sizes": (0, 2, 3, 8)}, {"axes": (0, 1, 3, 2)}, {"axes": (0, 0, 2, 3)}, {"axes": (0, 1, 2, 4)}, {"count": 5}, {"count": 7},
                          {"lengths": (6, 4, 3, 2, 1, 5)}, {"lengths": (0, 4, 3, 2, 1, 5)}, {"lengths": (-1, 4, 3, 2, 1, 5)}):
                face.refused("BAD_PARAM", *sequences(**other))
            for n in (3, 5):
                face.refused("NOT_SUPPORTED", *sequences(n=n))
            face(*sequences())
            of, n, sizes, axes, size, lengths = ctypes.c_int(), ctypes.c_int(), ints(*[0] * 4), ints(*[9] * 4), ctypes.c_size_t(), ints(*[0] * 6)
            face("cudnnGetSeqDataDescriptor", it, ctypes.byref(of), ctypes.byref(n), 4, sizes, axes, ctypes.byref(size), ctypes.c_size_t(6), lengths, None)
            assert (of.value, n.value, list(sizes), list(axes), size.value, list(lengths)) == (0, 4, [5, 2, 3, 8], [1, 2, 0, 3], 6, [5, 4, 3, 2, 1, 5])
            it = scope.made("cudnnCreateAttnDescriptor", "cudnnDestroyAttnDescriptor")
            names = "mode heads scale of precision math first second q k v qp kp vp op tq tk batch beam".split()
            usual = dict(zip(names, (0, 2, 1.0, FLOAT, FLOAT, 0, None, None, 8, 8, 8, 4, 4, 4, 8, 5, 5, 3, 1)))

            def attention_(**other):
                values = {**usual, **other}
                return "cudnnSetAttnDescriptor", it, *[ctypes.c_double(value) if name == "scale" else value for name, value in values.items()]

            face.refused("NOT_INITIALIZED", "cudnnGetMultiHeadAttnBuffers", scope.handle, it, ctypes.byref(size), ctypes.byref(size), None)
            good = [{}, {"mode": 3}, {"scale": 0.0}, {"of": DOUBLE, "precision": DOUBLE}, {"of": HALF}, {"of": HALF, "precision": HALF}, {"of": BFLOAT16},
                    {"math": 3}, {"qp": 0, "kp": 0}, {"kp": 0, "k": 4}, {"vp": 0}, {"op": 0}, {"beam": 2}]
            bad = [{"mode": 4}, {"heads": 0}, {"scale": -1.0}, {"of": 3}, {"q": 0}, {"qp": 0}, {"qp": 0, "kp": 0, "q": 6}, {"kp": 3}, {"qp": -1}, {"tq": 0},
                   {"tk": 0}, {"batch": 0}, {"beam": 0}]
            for other in good:
                face(*attention_(**other))
            for other in bad:
                face.refused("BAD_PARAM", *attention_(**other))
            face.refused("NOT_SUPPORTED", *attention_(of=DOUBLE))
            face(*attention_())
            place = P()
            face("cudnnGetMultiHeadAttnBuffers", scope.handle, it, ctypes.byref(size), ctypes.byref(ctypes.c_size_t()), None)
            tensor = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
            face.refused("BAD_PARAM", "cudnnGetMultiHeadAttnWeights", scope.handle, it, 8, size, P(4096), tensor, ctypes.byref(place))
            face.refused("BAD_PARAM", "cudnnGetMultiHeadAttnWeights", scope.handle, it, 0, ctypes.c_size_t(size.value - 1), P(4096), tensor, ctypes.byref(place))
            count += len(good) + len(bad) + 21
    return count
