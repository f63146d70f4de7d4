"""CTC loss, spatial transformers, transforms with padding and columns of images, by their definitions in f64."""

import ctypes
from itertools import product

import numpy as np

from device import Failure
from library import BFLOAT16, DOUBLE, FLOAT, FLOATS, HALF, P, TYPES, Filter, Scope, Tensor, blended, drawn, factors, ints, near, number, rounded


def collapsed(path):
    """What a way through the steps says: repeated letters once, and no blanks."""
    return tuple(letter for at, letter in enumerate(path) if letter and (at == 0 or path[at - 1] != letter))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def by_all_ways(p, labels):
    """The labels' probability and its derivative by the numbers in front of softmax, as sums over every way through the steps."""
    total, occupied = 0.0, np.zeros_like(p)
    for path in product(range(p.shape[1]), repeat=len(p)):
        if collapsed(path) == tuple(labels):
            chance = np.prod([p[t, letter] for t, letter in enumerate(path)])
            total += chance
            for t, letter in enumerate(path):
                occupied[t, letter] += chance
    return (np.inf, None) if total == 0 else (-np.log(total), p - occupied / total)


def ctc(library, rng):
    for case in range(36):
        face, of = library.drawn(rng), (FLOAT, DOUBLE)[case % 2]
        steps, samples, letters = int(rng.integers(1, 6)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
        lengths = rng.integers(0, steps + 1, samples).astype(np.int32)
        counts = np.array([rng.integers(0, max(1, min(4, length + 2))) for length in lengths], np.int32)
        labels = rng.integers(1, letters, counts.sum()).astype(np.int32)
        x = drawn(rng, (steps, samples, letters), of)
        takes_probabilities, skips, in_device, wants = (bool(rng.integers(0, 2)) for _ in range(4))
        wants = wants or case % 3 > 0
        given = rounded(softmax(x), of).astype(np.float64) if takes_probabilities else x
        chances = given if takes_probabilities else softmax(given)
        costs, gradients = np.zeros(samples), np.zeros_like(x)
        before = drawn(rng, x.shape, of)
        for sample in range(samples):
            first = counts[:sample].sum()
            cost, gradient = by_all_ways(chances[:lengths[sample], sample], labels[first:first + counts[sample]])
            costs[sample] = cost
            if gradient is not None:
                gradients[:lengths[sample], sample] = gradient
            elif skips:
                gradients[:, sample] = before[:, sample]
        with Scope(face) as scope:
            it, size = scope.made("cudnnCreateCTCLossDescriptor", "cudnnDestroyCTCLossDescriptor"), ctypes.c_size_t(9)
            modes = (of, int(not takes_probabilities), int(skips))
            if face.major == 9:
                face("cudnnSetCTCLossDescriptor_v9", it, *modes, 5)
            elif rng.integers(0, 2):
                face("cudnnSetCTCLossDescriptor_v8", it, *modes, 5)
            else:
                face("cudnnSetCTCLossDescriptorEx", it, *modes)
            tp, tg = scope.tensor(given, of, rng), scope.tensor(before, of, rng)
            out, algo = scope.array(rounded(np.zeros(samples), of)), int(rng.integers(0, 2))
            to = (tg.descriptor, tg.at) if wants else (None, None)
            if in_device:
                face("cudnnGetCTCLossWorkspaceSize_v8", scope.handle, algo, it, tp.descriptor, to[0], ctypes.byref(size))
                lists = [scope.array(list_ if list_.size else np.zeros(1, np.int32)).at for list_ in (labels, counts, lengths)]
                face("cudnnCTCLoss_v8", scope.handle, algo, it, *tp.both, *lists, out.at, *to, size, None)
            else:
                kept = [np.ascontiguousarray(list_ if list_.size else np.zeros(1, np.int32)) for list_ in (labels, counts, lengths)]
                lists = [P(list_.ctypes.data) for list_ in kept]
                face("cudnnGetCTCLossWorkspaceSize", scope.handle, tp.descriptor, to[0], *lists, algo, it, ctypes.byref(size))
                face("cudnnCTCLoss", scope.handle, *tp.both, *lists, out.at, *to, algo, it, None, size)
            face.synchronize()
            assert size.value == 0
            found, finite = out.get().astype(np.float64), np.isfinite(costs)
            assert (found[~finite] == np.inf).all(), found
            near(found[finite], costs[finite], 4 + costs[finite], of, 4 * steps, "cost")
            if wants:
                near(tg.get(), gradients, 2, of, 8 * steps, f"gradient {modes} {lengths} {counts}")
            elif (tg.get() != before).any():
                raise Failure("a gradient was written that nobody asked for")
    for face in library.faces:
        with Scope(face) as scope:
            it = scope.made("cudnnCreateCTCLossDescriptor", "cudnnDestroyCTCLossDescriptor")
            names = ("_v8", "_v9") if face.major == 9 else ("_v8",)
            for name in names:
                for type_ in (HALF, 9):
                    face.refused("NOT_SUPPORTED", f"cudnnSetCTCLossDescriptor{name}", it, type_, 0, 0, 5)
            face("cudnnSetCTCLossDescriptor_v8", it, FLOAT, 1, 1, 5)
            told = [ctypes.c_int(9) for _ in range(4)]
            face("cudnnGetCTCLossDescriptor_v8", it, *map(ctypes.byref, told))
            assert [value.value for value in told] == [0, 1, 1, 5]
            face("cudnnSetCTCLossDescriptor", it, FLOAT)
            face("cudnnGetCTCLossDescriptor_v8", it, *map(ctypes.byref, told))
            assert [value.value for value in told] == [0, 0, 0, 0]
            p, out = scope.tensor(np.full((3, 1, 4), 0.25), FLOAT), scope.array(np.full(1, 7, np.float32))
            for labels, count, length in ((0, 1, 3), (4, 1, 3), (1, 1, 4), (1, -1, 3), (1, 256, 3)):
                face.refused("BAD_PARAM", "cudnnCTCLoss", scope.handle, *p.both, ints(*[labels] * 256), ints(count), ints(length), out.at, None, None,
                             0, it, None, ctypes.c_size_t(0))
            assert out.get()[0] == 7
    return 36


def spatial(library, rng):
    """Grids by affine maps, images sampled at them, and the gradients by differences of the definition."""
    for case in range(24):
        face, of = library.drawn(rng), (FLOAT, DOUBLE, HALF)[case % 3]
        n, c = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        (hi, wi), (ho, wo) = (tuple(int(size) for size in rng.integers(2, 7, 2)) for _ in range(2))
        theta = drawn(rng, (n, 2, 3), of) * 0.5
        theta = rounded(theta, of).astype(np.float64)
        ys, xs = (np.linspace(-1, 1, size) for size in (ho, wo))
        base = np.stack([np.broadcast_to(xs, (ho, wo)), np.broadcast_to(ys[:, None], (ho, wo)), np.ones((ho, wo))], -1)
        grid = np.einsum("nij,hwj->nhwi", theta, base)
        x, y, dy = drawn(rng, (n, c, hi, wi), of), drawn(rng, (n, c, ho, wo), of), drawn(rng, (n, c, ho, wo), of)
        places = drawn(rng, (n, ho, wo, 2), of) * 0.7
        places = rounded(places, of).astype(np.float64)
        dgrid, dx = drawn(rng, places.shape, of), drawn(rng, x.shape, of)

        def at(image, over, down):
            inside = 0 <= over < wi and 0 <= down < hi
            return x[image, :, down, over] if inside else np.zeros(c)

        sampled, by_place, by_x = np.zeros_like(y), np.zeros_like(places), np.zeros_like(x)
        for i, row, column in np.ndindex(n, ho, wo):
            u, v = (places[i, row, column, 0] + 1) / 2 * (wi - 1), (places[i, row, column, 1] + 1) / 2 * (hi - 1)
            left, top = int(np.floor(u)), int(np.floor(v))
            for down, over in product((0, 1), (0, 1)):
                across, along = (u - left if over else 1 - u + left), (v - top if down else 1 - v + top)
                value = at(i, left + over, top + down)
                sampled[i, :, row, column] += across * along * value
                weight = (dy[i, :, row, column] * value).sum()
                by_place[i, row, column, 0] += weight * along * (1 if over else -1) * (wi - 1) / 2
                by_place[i, row, column, 1] += weight * across * (1 if down else -1) * (hi - 1) / 2
                if 0 <= left + over < wi and 0 <= top + down < hi:
                    by_x[i, :, top + down, left + over] += across * along * dy[i, :, row, column]
        alpha, beta = factors(rng)
        alpha_grid, beta_grid = factors(rng)
        with Scope(face) as scope:
            it = scope.made("cudnnCreateSpatialTransformerDescriptor", "cudnnDestroySpatialTransformerDescriptor")
            face("cudnnSetSpatialTransformerNdDescriptor", it, 0, of, 4, ints(n, c, ho, wo))
            tt, tg, tp, tdg = (scope.tensor(values, of) for values in (theta, places * 0, places, dgrid))
            tx, ty, tdx, tdy = (scope.tensor(values, of, rng) for values in (x, y, dx, dy))
            face("cudnnSpatialTfGridGeneratorForward", scope.handle, it, tt.at, tg.at)
            face.synchronize()
            near(tg.get(), grid, 4, of, 3, "grid")
            face("cudnnSpatialTfGridGeneratorBackward", scope.handle, it, tdg.at, tt.at)
            face.synchronize()
            near(tt.get(), np.einsum("nhwi,hwj->nij", dgrid, base), np.abs(dgrid).sum(axis=(1, 2)).max() + 1, of, ho * wo, "gradient of maps")
            face("cudnnSpatialTfSamplerForward", scope.handle, it, number(alpha, of), *tx.both, tp.at, number(beta, of), *ty.both)
            face("cudnnSpatialTfSamplerBackward", scope.handle, it, number(alpha, of), *tx.both, number(beta, of), *tdx.both,
                 number(alpha_grid, of), *tdy.both, tp.at, number(beta_grid, of), tdg.at)
            face.synchronize()
            # A place's rounding is a share's as well, times the image's size.
            large = 8 * max(hi, wi) * (np.abs(x).max() + 1)
            near(ty.get(), blended(alpha, sampled, beta, y), large, of, 4, "sampled")
            near(tdx.get(), blended(alpha, by_x, beta, dx), large * np.abs(dy).max() * 4, of, ho * wo, "gradient of images")
            near(tdg.get(), blended(alpha_grid, by_place, beta_grid, dgrid), large * max(hi, wi) * (np.abs(dy).sum(axis=1).max() + 1), of, 4 * c,
                 "gradient of places")
    for face in library.faces:
        with Scope(face) as scope:
            it = scope.made("cudnnCreateSpatialTransformerDescriptor", "cudnnDestroySpatialTransformerDescriptor")
            for wanted, *call in (("BAD_PARAM", 1, 0, 4), ("BAD_PARAM", 0, 77, 4), ("NOT_SUPPORTED", 0, 3, 4)):
                face.refused(wanted, "cudnnSetSpatialTransformerNdDescriptor", it, *call, ints(2, 3, 4, 5))
            face("cudnnSetSpatialTransformerNdDescriptor", it, 0, FLOAT, 3, ints(2, 3, 4))
            face.refused("NOT_SUPPORTED", "cudnnSpatialTfGridGeneratorForward", scope.handle, it, P(64), P(64))
    return 24


def transforms(library, rng):
    """Padding into another layout, of tensors and filters, and what is made of a descriptor."""
    for case in range(32):
        face, of, n = library.drawn(rng), FLOATS[case % 4], int(rng.integers(3, 6))
        sizes = tuple(int(size) for size in rng.integers(1, 6, n))
        before, after = ([int(pad) for pad in rng.integers(0, 3, n)] for _ in range(2))
        if case % 4 == 0:
            before, after = [0] * n, [0] * n
        x = drawn(rng, sizes, of)
        layout = int(rng.integers(0, 2)) if n >= 4 else 0
        wide = np.pad(x, list(zip(before, after)))
        y, (alpha, beta) = drawn(rng, wide.shape, of), factors(rng)
        with Scope(face) as scope:
            it, size = scope.made("cudnnCreateTensorTransformDescriptor", "cudnnDestroyTensorTransformDescriptor"), ctypes.c_size_t()
            face("cudnnSetTensorTransformDescriptor", it, n, layout, ints(*before), ints(*after), None, 0)
            name = ["NCHW", "NHWC"][layout]
            if case % 2 and n >= 4:
                tx, ty, call = Filter(scope, x, of, str(rng.choice(["NCHW", "NHWC"]))), Filter(scope, y, of, name), "cudnnTransformFilter"
            else:
                tx, ty, call = scope.tensor(x, of, rng), Tensor(scope, y, of, name), "cudnnTransformTensorEx"
                made = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
                face("cudnnInitTransformDest", it, tx.descriptor, made, ctypes.byref(size))
                kind, count, dims, strides = ctypes.c_int(), ctypes.c_int(), ints(*[0] * n), ints(*[0] * n)
                face("cudnnGetTensorNdDescriptor", made, n, ctypes.byref(kind), ctypes.byref(count), dims, strides)
                assert (kind.value, list(dims), list(strides)) == (of, list(wide.shape), list(ty.strides)), (list(strides), ty.strides)
                assert size.value == wide.size * rounded(0, of).itemsize
            face(call, scope.handle, it, number(alpha, of), *tx.both, number(beta, of), *ty.both)
            face.synchronize()
            near(ty.get(), blended(alpha, wide, beta, y), np.abs(wide) + np.abs(y), of, 1, call)
            told, folds = [ints(*[9] * n) for _ in range(2)], ints(*[9] * (n - 2))
            face("cudnnGetTensorTransformDescriptor", it, n, ctypes.byref(kind), *told, folds, None)
            assert [list(pads) for pads in told] == [before, after] and list(folds) == [1] * (n - 2) and kind.value == layout
            face("cudnnSetTensorTransformDescriptor", it, n, layout, None, None, ints(*[2] * (n - 2)), 0)
            face.refused("NOT_SUPPORTED", call, scope.handle, it, number(1, of), *tx.both, number(0, of), *ty.both)
            for call in ((2, 0, None, None, None, 0), (9, 0, None, None, None, 0), (4, 3, None, None, None, 0), (4, 0, None, None, None, 2),
                         (4, 0, None, None, ints(0, 1), 0), (4, 0, ints(-1, 0, 0, 0), None, None, 0)):
                face.refused("BAD_PARAM", "cudnnSetTensorTransformDescriptor", it, *call)
    return 32


def columns(library, rng):
    for case in range(16):
        face, of = library.drawn(rng), FLOATS[case % 4]
        n, c, h, w = (int(size) for size in rng.integers(1, 7, 4))
        r, s = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        pads, strides, dilations = rng.integers(0, 3, 2), rng.integers(1, 3, 2), rng.integers(1, 3, 2)
        out = [(size + 2 * pad - (tap - 1) * dilation - 1) // stride + 1
               for size, pad, tap, dilation, stride in zip((h, w), pads, (r, s), dilations, strides)]
        if min(h + 2 * pads[0] - (r - 1) * dilations[0], w + 2 * pads[1] - (s - 1) * dilations[1]) < 1:
            continue
        x = drawn(rng, (n, c, h, w), of)
        wide = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[0]), (pads[1], pads[1])])
        exact = np.zeros((c, r, s, n, *out))
        for i, j in np.ndindex(*out):
            for k, l in np.ndindex(r, s):
                exact[:, k, l, :, i, j] = wide[:, :, i * strides[0] + k * dilations[0], j * strides[1] + l * dilations[1]].T
        with Scope(face) as scope:
            tx = scope.tensor(x, of, rng)
            tw = scope.made("cudnnCreateFilterDescriptor", "cudnnDestroyFilterDescriptor")
            face("cudnnSetFilter4dDescriptor", tw, of, 0, 3, c, r, s)
            it = scope.made("cudnnCreateConvolutionDescriptor", "cudnnDestroyConvolutionDescriptor")
            face("cudnnSetConvolution2dDescriptor", it, *map(int, [*pads, *strides, *dilations]), 1, DOUBLE if of == DOUBLE else FLOAT)
            to = scope.tensor(exact * 0, of)
            face("cudnnIm2Col", scope.handle, *tx.both, tw, it, to.at)
            face.synchronize()
            if (to.get() != exact).any():
                raise Failure("columns")
    return 16


def causal(library, rng):
    """Causal convolutions by channel or by place, with SiLU or without, and their gradients, which are added to what is there."""
    face, total = library.faces[1], 0
    for of, by_place, silu in ((of, by_place, silu) for of in FLOATS for by_place in (False, True) for silu in (0, 1)):
        batch, channels, length = (int(size) for size in rng.integers(1, 5, 3))
        length, taps = length * 3, int(rng.choice([2, 3, 5, 8, 16]))
        wide = DOUBLE if of == DOUBLE else FLOAT
        x, dy = drawn(rng, (batch, channels, length), of), drawn(rng, (batch, channels, length), of)
        w, b = drawn(rng, (channels, taps), of), drawn(rng, (channels,), of)
        dw, db = drawn(rng, (channels, taps), wide), drawn(rng, (channels,), wide)

        def sums(x, w, b):
            padded = np.concatenate([np.zeros((batch, channels, taps - 1)), x], 2)
            y = sum(padded[:, :, nth:nth + length] * w[None, :, nth, None] for nth in range(taps)) + b[None, :, None]
            return y / (1 + np.exp(-y)) if silu else y

        def slope(f, at):
            found = np.zeros(at.shape)
            for place in np.ndindex(at.shape):
                step = at.astype(complex)
                step[place] += 1e-30j
                found[place] = (f(step) * dy).sum().imag / 1e-30
            return found

        laid = lambda values: values.swapaxes(-1, -2) if by_place and values.ndim > 1 else values
        name = "Nwh" if by_place else ""
        with Scope(face) as scope:
            arrays = [scope.array(np.ascontiguousarray(laid(values)).astype(TYPES[of])) for values in (x, w, b, x * 0, dy, x * 0)]
            tx, tw, tb, ty, tdy, tdx = arrays
            sums_ = [scope.array(np.ascontiguousarray(laid(values)).astype(TYPES[wide])) for values in (dw, db)]
            face(f"cudnnCausalConv1d{name}Forward", None, tx.at, tw.at, tb.at, ty.at, batch, channels, length, taps, of, silu)
            face(f"cudnnCausalConv1d{name}Backward", None, tx.at, tw.at, tb.at, tdy.at, tdx.at, sums_[0].at, sums_[1].at, batch, channels, length, taps, of, wide, silu)
            face.synchronize()
            large = (1 + np.abs(x).max()) * (1 + np.abs(w).max()) * (1 + np.abs(dy).max()) * (2 + np.abs(b).max())
            get = lambda array: laid(array.get().astype(float))
            near(get(ty), sums(x, w, b), large, of, taps, "causal convolution")
            near(get(tdx), slope(lambda x: sums(x, w, b), x), large * 4, of, taps, "its gradient")
            near(get(sums_[0]), dw + slope(lambda w: sums(x, w, b), w), large * 4, wide, batch * length, "taps' gradient")
            near(get(sums_[1]), db + slope(lambda b: sums(x, w, b), b), large * 4, wide, batch * length, "biases' gradient")
            wrong = (("NOT_SUPPORTED", (tx.at, tw.at, tb.at, ty.at, batch, channels, length, 9, of, 0)), ("BAD_PARAM", (tx.at, tw.at, None, ty.at, batch, channels, length, taps, of, 0)),
                     ("BAD_PARAM", (tx.at, tw.at, tb.at, ty.at, 0, channels, length, taps, of, 0)), ("NOT_SUPPORTED", (tx.at, tw.at, tb.at, ty.at, batch, channels, length, taps, 3, 0)),
                     ("BAD_PARAM", (tx.at, tw.at, tb.at, ty.at, batch, channels, length, taps, of, 2)))
            for wanted, arguments in wrong:
                face.refused(wanted, f"cudnnCausalConv1d{name}Forward", None, *arguments)
            face.refused("NOT_SUPPORTED", f"cudnnCausalConv1d{name}Backward", None, tx.at, tw.at, tb.at, tdy.at, tdx.at, sums_[0].at, sums_[1].at, batch, channels, length, taps, of,
                         DOUBLE if wide == FLOAT else FLOAT, silu)
        total += 2
    return total
