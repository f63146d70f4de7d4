"""What is not a convolution, by its definition in f64."""

import ctypes
from itertools import product

import numpy as np

from device import Failure
from library import DOUBLE, FLOAT, FLOATS, Scope, blended, drawn, factors, ints, near, number, rounded

SIGMOID, RELU, TANH, CLIPPED, ELU, IDENTITY, SWISH = range(7)


def sizes_of(rng, most=7):
    n = int(rng.choice([4, 4, 5]))
    return tuple(int(size) for size in rng.integers(1, most, n))


def elementwise(library, rng):
    """TransformTensor, AddTensor, SetTensor, ScaleTensor, OpTensor."""
    for number_ in range(80):
        of = FLOATS[number_ % 4]
        face, n = library.drawn(rng), int(rng.integers(2, 7))
        sizes = tuple(int(size) for size in rng.integers(1, 6, n))
        repeated = tuple(size if rng.integers(0, 2) else 1 for size in sizes)
        a, b, c = drawn(rng, sizes, of), drawn(rng, repeated, of), drawn(rng, sizes, of)
        alpha, beta = factors(rng)
        with Scope(face) as scope:
            handle, ta, tb, tc = scope.handle, scope.tensor(a, of, rng), scope.tensor(b, of, rng), scope.tensor(c, of, rng)
            other = FLOATS[int(rng.integers(0, 4))]
            to = scope.tensor(drawn(rng, sizes, other), other, rng)
            before = to.get()
            face("cudnnTransformTensor", handle, number(alpha, other), *ta.both, number(beta, other), *to.both)
            face.synchronize()
            near(to.get(), blended(alpha, a, beta, before), np.abs(before) + np.abs(a), other, 2, "transform")
            face("cudnnAddTensor", handle, number(alpha, of), *tb.both, number(beta, of), *tc.both)
            face.synchronize()
            near(tc.get(), blended(alpha, b, beta, c), np.abs(b) + np.abs(c), of, 2, "add")
            c = tc.get()
            op = int(rng.integers(0, 5))
            operation = scope.made("cudnnCreateOpTensorDescriptor", "cudnnDestroyOpTensorDescriptor")
            computed = DOUBLE if of == DOUBLE else FLOAT
            face("cudnnSetOpTensorDescriptor", operation, op, computed, 0)
            first, second = (0.5, -2.0) if op < 4 else (0.25, 0.0)
            source, values = (ta, a) if op < 4 else (scope.tensor(np.abs(a), of, rng), np.abs(a))
            face("cudnnOpTensor", handle, operation, number(first, computed), *source.both, number(second, computed), *tb.both,
                 number(beta, computed), *tc.both)
            face.synchronize()
            made = [np.add, np.multiply, np.minimum, np.maximum, lambda a, b: np.sqrt(a)][op](first * values, second * b + 0 * a)
            near(tc.get(), made + beta * c if beta else made, np.abs(values) + np.abs(b) + np.abs(c), of, 4, f"op {op}")
            value = rounded(rng.standard_normal(1), of)
            scaled = tc.get()
            face("cudnnScaleTensor", handle, *tc.both, number(-1.5, of))
            face("cudnnSetTensor", handle, *ta.both, value.ctypes.data_as(ctypes.c_void_p))
            face.synchronize()
            near(tc.get(), -1.5 * scaled, np.abs(scaled), of, 1, "scale")
            assert (ta.get() == float(value[0])).all()
    return 400


def function(mode, coefficient, x):
    with np.errstate(over="ignore"):
        return [lambda: 1 / (1 + np.exp(-x)), lambda: np.maximum(x, 0), lambda: np.tanh(x), lambda: np.clip(x, 0, coefficient),
                lambda: np.where(x > 0, x, coefficient * np.expm1(np.minimum(x, 0))), lambda: x, lambda: x / (1 + np.exp(-x))][mode]()


def slope(mode, coefficient, x, y):
    with np.errstate(over="ignore"):
        s = 1 / (1 + np.exp(-x))
        return [lambda: y * (1 - y), lambda: (x > 0) * 1.0, lambda: 1 - y * y, lambda: ((x > 0) & (x < coefficient)) * 1.0,
                lambda: np.where(x > 0, 1, coefficient * np.exp(np.minimum(x, 0))), None, lambda: s + x * s * (1 - s)][mode]()


def activations(library, rng):
    count = 0
    for mode in (SIGMOID, RELU, TANH, CLIPPED, ELU, SWISH):
        for of in FLOATS:
            face, sizes, coefficient = library.drawn(rng), sizes_of(rng), float(rng.uniform(0.3, 1.5))
            x, y, dy, dx = (drawn(rng, sizes, of, 2.0) for _ in range(4))
            alpha, beta = factors(rng)
            with Scope(face) as scope:
                activation = scope.activation(mode, coefficient)
                tx, ty, tdy, tdx = (scope.tensor(values, of, rng) for values in (x, y, dy, dx))
                face("cudnnActivationForward", scope.handle, activation, number(alpha, of), *tx.both, number(beta, of), *ty.both)
                face.synchronize()
                exact = function(mode, coefficient, x)
                near(ty.get(), blended(alpha, exact, beta, y), np.abs(y) + 1, of, 1, f"activation {mode}")
                exact = rounded(exact, of).astype(np.float64)
                made = scope.tensor(exact, of, rng)
                face("cudnnActivationBackward", scope.handle, activation, number(alpha, of), *made.both, *tdy.both, *tx.both,
                     number(beta, of), *tdx.both)
                face.synchronize()
                expected = blended(alpha, dy * slope(mode, coefficient, x, exact), beta, dx)
                near(tdx.get(), expected, 2 * np.abs(dy) + np.abs(dx), of, 1, f"activation {mode} backward")
                # A NaN goes on if it is to.
                for nan in (0, 1):
                    values = x.copy()
                    values.flat[0] = np.nan
                    tx, ty = scope.tensor(values, of), scope.tensor(y, of)
                    face("cudnnActivationForward", scope.handle, scope.activation(mode, coefficient, nan), number(1.0, of), *tx.both,
                         number(0.0, of), *ty.both)
                    face.synchronize()
                    wanted = nan == 1 or mode not in (RELU, CLIPPED)
                    assert np.isnan(ty.get().flat[0]) == wanted, (mode, nan)
                count += 4
    return count


def softmax(library, rng):
    count = 0
    for algorithm, mode, of in product(range(3), range(2), FLOATS):
        face, sizes = library.drawn(rng), sizes_of(rng)
        x, y, dy, dx = (drawn(rng, sizes, of, 3.0) for _ in range(4))
        if algorithm:
            x = rounded(x * 20, of).astype(np.float64)
        alpha, beta = factors(rng)
        axes = (1,) if mode == 1 else tuple(range(1, len(sizes)))
        shifted = x - x.max(axes, keepdims=True)
        sums = np.exp(shifted).sum(axes, keepdims=True)
        exact = np.exp(shifted) / sums
        size = np.abs(exact)
        if algorithm == 2:
            # Both may be large where what is left of them is not, and the logarithm has the sum's relative error as its absolute one.
            exact = shifted - np.log(sums)
            size = np.abs(shifted) + np.log(sums) + 1
        with Scope(face) as scope:
            tx, ty, tdy, tdx = (scope.tensor(values, of, rng) for values in (x, y, dy, dx))
            face("cudnnSoftmaxForward", scope.handle, algorithm, mode, number(alpha, of), *tx.both, number(beta, of), *ty.both)
            face.synchronize()
            depth = x[0].size
            near(ty.get(), blended(alpha, exact, beta, y), size + np.abs(y), of, depth, f"softmax {algorithm} {mode}")
            exact = rounded(exact, of).astype(np.float64)
            made = scope.tensor(exact, of, rng)
            face("cudnnSoftmaxBackward", scope.handle, algorithm, mode, number(alpha, of), *made.both, *tdy.both, number(beta, of),
                 *tdx.both)
            face.synchronize()
            if algorithm == 2:
                gradient = dy - np.exp(exact) * dy.sum(axes, keepdims=True)
                magnitude = np.abs(dy) + np.exp(exact) * np.abs(dy).sum(axes, keepdims=True)
            else:
                gradient = exact * (dy - (dy * exact).sum(axes, keepdims=True))
                magnitude = exact * (np.abs(dy) + np.abs(dy * exact).sum(axes, keepdims=True))
            near(tdx.get(), blended(alpha, gradient, beta, dx), magnitude + np.abs(dx), of, depth, f"softmax {algorithm} {mode} backward")
        count += 2
    return count


def pooling(library, rng):
    for number_ in range(64):
        of, mode = FLOATS[number_ % 4], int(rng.integers(0, 4))
        face, n = library.drawn(rng), int(rng.choice([2, 2, 3]))
        while True:
            sizes = [int(size) for size in rng.integers(1, 10, n)]
            window = [int(k) for k in rng.integers(1, 5, n)]
            padding = [int(rng.integers(0, k)) for k in window]
            stride = [int(s) for s in rng.integers(1, 4, n)]
            out = [1 + (size + 2 * p - k) // s for size, p, k, s in zip(sizes, padding, window, stride)]
            if min(out) > 0:
                break
        formula = list(out)
        if rng.integers(0, 2):
            # As Caffe and ONNX's ceil_mode round: a last window that begins inside and ends beyond.
            up = [1 - (k - size - 2 * p) // s for size, p, k, s in zip(sizes, padding, window, stride)]
            out = [more if (more - 1) * s - p < size else less for more, less, s, p, size in zip(up, out, stride, padding, sizes)]
        images = (int(rng.integers(1, 4)), int(rng.integers(1, 5)))
        x, y, dy, dx = (drawn(rng, images + tuple(shape), of) for shape in (sizes, out, out, sizes))
        alpha, beta = factors(rng)
        exact, gradient, magnitude = np.zeros(y.shape), np.zeros(x.shape), np.zeros(x.shape)
        for place in product(*[range(o) for o in out]):
            begin = [o * s - p for o, s, p in zip(place, stride, padding)]
            inside = tuple(slice(max(b, 0), min(b + k, size)) for b, k, size in zip(begin, window, sizes))
            at, here = (slice(None), slice(None)) + inside, (slice(None), slice(None)) + place
            met = x[at]
            if mode in (0, 3):
                flat = met.reshape(*images, -1)
                exact[here] = flat.max(-1)
                chosen = np.zeros(flat.shape)
                np.put_along_axis(chosen, flat.argmax(-1)[..., None], 1.0, -1)
                chosen = chosen.reshape(met.shape)
            else:
                # Padding counts, and what is beyond it does not.
                all_ = [min(b + k, size + p) - b for b, k, size, p in zip(begin, window, sizes, padding)]
                count = int(np.prod(all_)) if mode == 1 else met[0, 0].size
                exact[here] = met.sum(tuple(range(2, n + 2))) / count
                chosen = np.full(met.shape, 1.0 / count)
            share = dy[here].reshape(*images, *[1] * n)
            gradient[at] += chosen * share
            magnitude[at] += chosen * np.abs(share)
        with Scope(face) as scope:
            it = scope.made("cudnnCreatePoolingDescriptor", "cudnnDestroyPoolingDescriptor")
            if n == 2:
                face("cudnnSetPooling2dDescriptor", it, mode, 0, *window, *padding, *stride)
            else:
                face("cudnnSetPoolingNdDescriptor", it, mode, 0, n, ints(*window), ints(*padding), ints(*stride))
            tx, ty, tdy, tdx = (scope.tensor(values, of, rng) for values in (x, y, dy, dx))
            told = ints(*[0] * (n + 2))
            face("cudnnGetPoolingNdForwardOutputDim", it, tx.descriptor, n + 2, told)
            assert list(told)[2:] == formula
            face("cudnnPoolingForward", scope.handle, it, number(alpha, of), *tx.both, number(beta, of), *ty.both)
            face.synchronize()
            near(ty.get(), blended(alpha, exact, beta, y), np.abs(exact) + np.abs(y) + 1, of, 64, f"pooling {mode}")
            made = scope.tensor(exact, of, rng)
            face("cudnnPoolingBackward", scope.handle, it, number(alpha, of), *made.both, *tdy.both, *tx.both, number(beta, of),
                 *tdx.both)
            face.synchronize()
            near(tdx.get(), blended(alpha, gradient, beta, dx), magnitude + np.abs(dx), of, 64, f"pooling {mode} backward")
    return 128


def lrn(library, rng):
    for number_ in range(24):
        of, face, sizes = FLOATS[number_ % 4], library.drawn(rng), sizes_of(rng, 9)
        n, alpha_, beta_, k = int(rng.integers(1, 17)), 0.3, float(rng.uniform(0.4, 1.2)), float(rng.uniform(0.8, 2.0))
        x, y, dy, dx = (drawn(rng, sizes, of) for _ in range(4))
        alpha, beta = factors(rng)
        behind, channels = (n - 1) // 2, sizes[1]
        window = lambda c: slice(max(c - behind, 0), min(c - behind + n, channels))
        scale = np.stack([k + alpha_ / n * (x[:, window(c)] ** 2).sum(1) for c in range(channels)], 1)
        exact = x * scale**-beta_
        rounded_ = rounded(exact, of).astype(np.float64)
        share = 2 * alpha_ * beta_ / n * dy * rounded_ / scale
        gradient, magnitude = dy * scale**-beta_, np.abs(dy * scale**-beta_)
        for c in range(channels):
            gradient[:, window(c)] -= share[:, c:c + 1] * x[:, window(c)]
            magnitude[:, window(c)] += np.abs(share[:, c:c + 1] * x[:, window(c)])
        with Scope(face) as scope:
            it = scope.made("cudnnCreateLRNDescriptor", "cudnnDestroyLRNDescriptor")
            face("cudnnSetLRNDescriptor", it, n, ctypes.c_double(alpha_), ctypes.c_double(beta_), ctypes.c_double(k))
            tx, ty, tdy, tdx = (scope.tensor(values, of, rng) for values in (x, y, dy, dx))
            face("cudnnLRNCrossChannelForward", scope.handle, it, 0, number(alpha, of), *tx.both, number(beta, of), *ty.both)
            face.synchronize()
            near(ty.get(), blended(alpha, exact, beta, y), np.abs(exact) + np.abs(y), of, 16, "lrn")
            made = scope.tensor(rounded_, of, rng)
            face("cudnnLRNCrossChannelBackward", scope.handle, it, 0, number(alpha, of), *made.both, *tdy.both, *tx.both,
                 number(beta, of), *tdx.both)
            face.synchronize()
            near(tdx.get(), blended(alpha, gradient, beta, dx), magnitude + np.abs(dx), of, 64, "lrn backward")
    return 48


def normalization(library, rng):
    """Batch normalization: training with its statistics, inference, gradients; with a sum and an activation behind it."""
    for number_ in range(48):
        of, mode, ops = FLOATS[number_ % 4], int(rng.integers(0, 3)), int(rng.integers(0, 3))
        face, sizes = library.drawn(rng), sizes_of(rng)
        sizes = (sizes[0] + 1,) + sizes[1:]
        wide = DOUBLE if of == DOUBLE else FLOAT
        axes = (0,) if mode == 0 else (0,) + tuple(range(2, len(sizes)))
        parameters = tuple(1 if at in axes else size for at, size in enumerate(sizes))
        x, y, z, dy, dx, dz = (drawn(rng, sizes, of) for _ in range(6))
        scale, bias, running_mean, dscale, dbias = (drawn(rng, parameters, wide) for _ in range(5))
        running_variance = np.abs(drawn(rng, parameters, wide)) + 0.5
        running_variance = rounded(running_variance, wide).astype(np.float64)
        alpha, beta = factors(rng)
        epsilon, average = 1e-3, float(rng.choice([1.0, 0.1]))
        count = int(np.prod([sizes[at] for at in axes]))
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        inverse = 1 / np.sqrt(variance + epsilon)
        bound = (np.abs(scale) * (np.abs(x) + np.abs(mean)) * inverse + np.abs(bias)) * 4 + 1
        with Scope(face) as scope:
            handle, eps = scope.handle, ctypes.c_double(epsilon)
            tx, ty, tz, tdy, tdx, tdz = (scope.tensor(values, of, rng) for values in (x, y, z, dy, dx, dz))
            ts, tb, trm, trv, tds, tdb = (scope.tensor(values, wide)
                                          for values in (scale, bias, running_mean, running_variance, dscale, dbias))
            tsm, tsv = (scope.tensor(scale * 0, wide) for _ in range(2))
            derived = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
            face("cudnnDeriveBNTensorDescriptor", derived, tx.descriptor, mode)
            factors_ = (number(alpha, of), number(beta, of))
            statistics = (derived, ts.at, tb.at, ctypes.c_double(average), trm.at, trv.at, eps, tsm.at, tsv.at)
            relu, none = scope.activation(1), (None, ctypes.c_size_t(0), None, ctypes.c_size_t(0))
            fused = number_ % 2 == 1
            if not fused:
                ops = 0
                face("cudnnBatchNormalizationForwardTraining", handle, mode, *factors_, *tx.both, *ty.both, *statistics)
            else:
                face("cudnnBatchNormalizationForwardTrainingEx", handle, mode, ops, *factors_, *tx.both, *tz.both, *ty.both, *statistics,
                     relu, *none)
            face.synchronize()
            exact = scale * (x - mean) * inverse + bias + (z if ops == 2 else 0)
            exact = np.maximum(exact, 0) if ops else exact
            near(ty.get(), blended(alpha, exact, beta, y), bound + np.abs(y) + np.abs(z), of, count, f"training {mode} {ops}")
            corrected = variance * count / (count - 1) if count > 1 else variance
            near(tsm.get(), mean, np.abs(x).max() + 0 * mean, wide, count, "saved mean")
            near(tsv.get(), inverse, inverse * 4, wide, count, "saved inverse")
            near(trm.get(), average * mean + (1 - average) * running_mean, np.abs(x).max() + np.abs(running_mean), wide, count, "running mean")
            near(trv.get(), average * corrected + (1 - average) * running_variance, (x**2).max() * 2 + running_variance, wide, count,
                 "running variance")
            # The gradients, with the statistics saved or made again.
            saved = (tsm.at, tsv.at) if rng.integers(0, 2) else (None, None)
            made = rounded(exact, of).astype(np.float64)
            gradient = dy * (made > 0) if ops else dy
            hat = (x - mean) * inverse
            of_scale, of_bias = (gradient * hat).sum(axes, keepdims=True), gradient.sum(axes, keepdims=True)
            of_x = scale * inverse * (gradient - (of_bias + hat * of_scale) / count)
            many = (number(alpha, of), number(beta, of), number(beta, of), number(alpha, of))
            if not fused:
                face("cudnnBatchNormalizationBackward", handle, mode, *many, *tx.both, *tdy.both, *tdx.both, derived, ts.at, tds.at,
                     tdb.at, eps, *saved)
            else:
                tmade = scope.tensor(made, of, rng)
                face("cudnnBatchNormalizationBackwardEx", handle, mode, ops, *many, *tx.both, *tmade.both, *tdy.both, *tdz.both,
                     *tdx.both, derived, ts.at, tb.at, tds.at, tdb.at, eps, *saved, relu, *none)
            face.synchronize()
            large = np.abs(scale) * inverse * (np.abs(gradient) + np.abs(gradient).sum(axes, keepdims=True) * (1 + np.abs(hat)) / count)
            near(tdx.get(), blended(alpha, of_x, beta, dx), large * (2 + np.abs(hat)) + np.abs(dx), of, count, f"backward {mode} {ops}")
            large = (np.abs(gradient) * (1 + np.abs(hat))).sum(axes, keepdims=True) + 1
            near(tds.get(), blended(beta, of_scale, alpha, dscale), 2 * large + np.abs(dscale), wide, count, "scale's gradient")
            near(tdb.get(), blended(beta, of_bias, alpha, dbias), 2 * large + np.abs(dbias), wide, count, "bias's gradient")
            if ops == 2:
                near(tdz.get(), blended(alpha, gradient, beta, dz), np.abs(gradient) + np.abs(dz), of, 1, "z's gradient")
            face("cudnnBatchNormalizationForwardInference", handle, mode, *factors_, *tx.both, *tz.both, derived, ts.at, tb.at, trm.at,
                 trv.at, eps)
            face.synchronize()
            exact = scale * (x - trm.get()) / np.sqrt(trv.get() + epsilon) + bias
            near(tz.get(), blended(alpha, exact, beta, z), np.abs(exact) * 4 + bound + np.abs(z), of, count, f"inference {mode}")
    return 144


def reductions(library, rng):
    names = "add mul min max amax avg norm1 norm2 mul_no_zeros".split()
    count = 0
    for op, of in product(range(9), FLOATS):
        face, n = library.drawn(rng), int(rng.integers(2, 6))
        sizes = tuple(int(size) for size in rng.integers(1, 7, n))
        kept = tuple(size if rng.integers(0, 2) else 1 for size in sizes)
        a, c = drawn(rng, sizes, of), drawn(rng, kept, of)
        if op in (1, 8):
            a = rounded(1 + a * 0.1, of).astype(np.float64)
            if op == 8:
                a.flat[::3] = 0
        alpha, beta = factors(rng)
        axes = tuple(at for at in range(n) if kept[at] == 1 and sizes[at] != 1)
        over = lambda f, values: f(values, axis=axes, keepdims=True) if axes else values
        exact = [lambda: over(np.sum, a), lambda: over(np.prod, a), lambda: over(np.min, a), lambda: over(np.max, a),
                 lambda: over(np.max, np.abs(a)), lambda: over(np.mean, a), lambda: over(np.sum, np.abs(a)),
                 lambda: np.sqrt(over(np.sum, a * a)), lambda: over(np.prod, np.where(a == 0, 1, a))][op]()
        tells = op in (2, 3, 4)
        computed = DOUBLE if of == DOUBLE else FLOAT
        with Scope(face) as scope:
            it = scope.made("cudnnCreateReduceTensorDescriptor", "cudnnDestroyReduceTensorDescriptor")
            face("cudnnSetReduceTensorDescriptor", it, op, computed, 1, int(tells), 0)
            ta, tc, size = scope.tensor(a, of, rng), scope.tensor(c, of, rng), ctypes.c_size_t(9)
            face("cudnnGetReductionWorkspaceSize", scope.handle, it, ta.descriptor, tc.descriptor, ctypes.byref(size))
            assert size.value == 0
            face("cudnnGetReductionIndicesSize", scope.handle, it, ta.descriptor, tc.descriptor, ctypes.byref(size))
            assert size.value == (4 * c.size if tells else 0)
            places = scope.array(np.full(c.size, 77, np.uint32))
            face("cudnnReduceTensor", scope.handle, it, places.at, size, None, ctypes.c_size_t(0), number(alpha, of), *ta.both,
                 number(beta, of), *tc.both)
            face.synchronize()
            near(tc.get(), blended(alpha, exact, beta, c), over(np.sum, np.abs(a)) + np.abs(exact) + np.abs(c), of, a.size, names[op])
            if tells:
                order = [at for at in range(n) if at not in axes] + list(axes)
                flat = (np.abs(a) if op == 4 else a).transpose(order).reshape(c.size, -1)
                wanted = flat.argmin(1) if op == 2 else flat.argmax(1)
                if (places.get() != wanted).any():
                    raise Failure(f"{names[op]}: places {places.get()} for {wanted}")
        count += 1
    return count


def dropout(library, rng):
    """What is kept is scaled, the gradient knows it, other calls drop others, and states repeat."""
    for number_ in range(12):
        of, face, p = FLOATS[number_ % 4], library.drawn(rng), float(np.float32(rng.uniform(0.2, 0.7)))
        x = np.abs(drawn(rng, (4, 5, 11, 13), of)) + 1
        x = rounded(x, of).astype(np.float64)
        with Scope(face) as scope:
            handle, size = scope.handle, ctypes.c_size_t()
            face("cudnnDropoutGetStatesSize", handle, ctypes.byref(size))
            states, bytes_ = scope.array(np.zeros(size.value, np.uint8)), ctypes.c_size_t(size.value)
            tx, ty = scope.tensor(x, of, rng), scope.tensor(x, of, rng)
            face("cudnnDropoutGetReserveSpaceSize", tx.descriptor, ctypes.byref(size))
            assert size.value == (x.size + 7) // 8
            reserve = scope.array(np.zeros(size.value, np.uint8))
            it = scope.made("cudnnCreateDropoutDescriptor", "cudnnDestroyDropoutDescriptor")
            seed = ctypes.c_ulonglong(int(rng.integers(0, 2**63)))
            begin = lambda: face("cudnnSetDropoutDescriptor", it, handle, ctypes.c_float(p), states.at, bytes_, seed)
            forward = lambda: (face("cudnnDropoutForward", handle, it, *tx.both, *ty.both, reserve.at, size), face.synchronize(), ty.get())[2]
            begin()
            first, second = forward(), forward()
            kept = second != 0
            assert 0.8 * p < 1 - kept.mean() < 1.2 * p, (p, kept.mean())
            near(second[kept], x[kept] / (1 - p), x[kept], of, 1, "dropout")
            assert (kept != (first != 0)).any()
            gradient = scope.tensor(x, of, rng)
            face("cudnnDropoutBackward", handle, it, *tx.both, *gradient.both, reserve.at, size)
            face.synchronize()
            assert (gradient.get() == second).all()
            # Restored states go on where they were, new ones begin anew.
            copy = states.get().copy()
            third = forward()
            states.copy(states.at.value, copy.ctypes.data, copy.nbytes, 1)
            face("cudnnRestoreDropoutDescriptor", it, handle, ctypes.c_float(p), states.at, bytes_, seed)
            assert (forward() == third).all()
            begin()
            assert (forward() == first).all()
            face.refused("BAD_PARAM", "cudnnDropoutForward", handle, it, *tx.both, *ty.both, reserve.at, ctypes.c_size_t(size.value - 1))
            face.refused("BAD_PARAM", "cudnnSetDropoutDescriptor", it, handle, ctypes.c_float(1.5), states.at, bytes_, seed)
    return 12
