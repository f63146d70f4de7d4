"""Operations of the graph API that networks are made of: norms, softmax, attention in parts and as one operation, gradients of pooling, joined
and reshaped tensors; beside their definition in f64. Gradients are derivatives of the definition: a step of 1e-30 along the imaginary axis."""

import ctypes

import numpy as np

import device
from graphs import BOOLEAN, DATA_TYPE, DESCRIPTOR, FLOAT_, INT64, NORM_MODE, NORM_PHASE, PADDING, POINTWISE, REDUCTION, RESAMPLE, RESHAPE_MODE, Graph
from library import BFLOAT16, DOUBLE, FLOAT, FLOATS, HALF, INT8, INT32, P, Scope, drawn, near

TRUTH = 11
LAYER, INSTANCE, BATCH, RMS, ADAPTIVE = 0, 1, 2, 4, 5
TINY = 1e-30


def derivative(f, x, outer):
    """Of the sum of f(x) times `outer`, by each element of x."""
    found = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        step = x.astype(complex)
        step[at] += 1j * TINY
        found[at] = (f(step) * outer).sum().imag / TINY
    return found


def number_of(graph, value):
    """A number of the host's, which is read when the plan is run."""
    number = ctypes.c_float(value)
    graph.scope.undo.append(lambda: number)
    uid, it = graph.tensor((1, 1, 1, 1), (1, 1, 1, 1), FLOAT, value=True)
    graph.given[uid] = ctypes.addressof(number)
    return it


def norms(library, rng):
    """Layer, instance, batch, root-mean-square and adaptive layer norms in both phases, and their gradients with the saved statistics and with others."""
    total = 0
    for mode, of in ((mode, of) for mode in (LAYER, INSTANCE, BATCH, RMS, ADAPTIVE) for of in FLOATS):
        face = library.drawn(rng)
        wide = DOUBLE if of == DOUBLE else FLOAT
        n, c, h, w = sizes = tuple(int(size) for size in rng.integers(2, 5, 4))
        # A layer's factors are for all of it, or for the channels alone (the other sizes are 1 then).
        if mode in (LAYER, RMS) and rng.integers(0, 2):
            sizes = n, c, 1, 1
        over = {LAYER: (1, 2, 3), RMS: (1, 2, 3), INSTANCE: (2, 3), BATCH: (0, 2, 3), ADAPTIVE: (2, 3)}[mode]
        factors = (1,) + sizes[1:] if mode in (LAYER, RMS) else (n, 1, h, w) if mode == ADAPTIVE else (1, c, 1, 1)
        statistics = tuple(1 if at in over else size for at, size in enumerate(sizes))
        x, dy = drawn(rng, sizes, of), drawn(rng, sizes, of)
        scale, bias = drawn(rng, factors, wide), drawn(rng, factors, wide)
        average, variance = drawn(rng, statistics, wide), np.abs(drawn(rng, statistics, wide)) + 0.5
        epsilon, momentum, count = float(np.float32(0.01)), float(np.float32(0.25)), np.prod([sizes[at] for at in over])

        def norm(x, scale=scale, bias=bias):
            mean = 0 if mode == RMS else x.mean(over, keepdims=True)
            far = x - mean
            inverse = 1 / np.sqrt((far * far).mean(over, keepdims=True) + epsilon)
            return scale * far * inverse + bias, mean, inverse

        y, mean, inverse = norm(x)
        large = np.abs(scale) * (np.abs(x) + 1) * inverse * 4 + np.abs(bias) + 1
        with Scope(face) as scope:
            graph = Graph(scope)
            tx, ty, tdy, tdx = (scope.tensor(values, of, rng) for values in (x, x * 0, dy, x * 0))
            ts, tb, tds, tdb, ta, tv, tna, tnv, tm, ti = (scope.tensor(values, wide) for values in (scale, bias, scale * 0, scale * 0, average, variance,
                                                                                                   average * 0, variance * 0, average * 0, variance * 0))
            has_bias, has_mean = mode != RMS or rng.integers(0, 2), mode != RMS
            gx, gs, eps = graph.memory(tx), graph.memory(ts), number_of(graph, epsilon)
            settings = [(2000, NORM_MODE, mode), (2001, NORM_PHASE, 1), (2002, DESCRIPTOR, gx), (2005, DESCRIPTOR, gs), (2007, DESCRIPTOR, eps),
                        (2013, DESCRIPTOR, graph.memory(ty)), (2004, DESCRIPTOR, graph.memory(ti))]
            settings += [(2006, DESCRIPTOR, graph.memory(tb))] if has_bias else []
            settings += [(2003, DESCRIPTOR, graph.memory(tm))] if has_mean else []
            if mode == BATCH:
                settings += [(2008, DESCRIPTOR, number_of(graph, momentum))]
                settings += [(name, DESCRIPTOR, graph.memory(tensor)) for name, tensor in ((2009, ta), (2010, tv), (2011, tna), (2012, tnv))]
            graph.operations.append(graph.final(29, *settings))
            graph.run()
            exact = y if has_bias else y - bias
            near(ty.get(), exact, large, of, count, f"norm {mode}")
            near(ti.get(), inverse, 4 * inverse, wide, count, "inverse")
            if has_mean:
                near(tm.get(), mean, np.abs(x).max() + 0 * mean, wide, count, "mean")
            if mode == BATCH:
                own = x.var(over, keepdims=True) * count / (count - 1)
                near(tna.get(), 0.75 * average + 0.25 * mean, 1 + np.abs(average) + np.abs(x).max(), wide, count, "running mean")
                near(tnv.get(), 0.75 * variance + 0.25 * own, 4 * variance + 4 * own + 1, wide, count, "running variance")
            # The way back, with what the way forward has saved or with its own.
            back = Graph(scope)
            gives = [(2103, DESCRIPTOR, back.memory(ti))] + ([(2102, DESCRIPTOR, back.memory(tm))] if has_mean else [])
            if rng.integers(0, 2):
                gives = [(2106, DESCRIPTOR, number_of(back, epsilon))]
            settings = [(2100, NORM_MODE, mode), (2101, DESCRIPTOR, back.memory(tx)), (2104, DESCRIPTOR, back.memory(tdy)),
                        (2105, DESCRIPTOR, back.memory(ts)), (2107, DESCRIPTOR, back.memory(tds)), (2109, DESCRIPTOR, back.memory(tdx)), *gives]
            settings += [(2108, DESCRIPTOR, back.memory(tdb))] if has_bias else []
            back.operations.append(back.final(30, *settings))
            back.run()
            slope = (np.abs(scale) * np.abs(dy)).max() * inverse.max() * 8 * (1 + np.abs(x).max() * inverse.max()) ** 2
            near(tdx.get(), derivative(lambda x: norm(x)[0], x, dy), slope + 0 * x, of, count * 4, f"norm's gradient {mode}")
            near(tds.get(), derivative(lambda scale: norm(x, scale)[0], scale, dy), slope * x.size, wide, 4, "scale's gradient")
            if has_bias:
                near(tdb.get(), derivative(lambda bias: norm(x, scale, bias)[0], bias, dy), slope * x.size, wide, 4, "bias's gradient")
            # Inference: with statistics that are given, or the tensor's own, which a batch has in training only.
            last = Graph(scope)
            is_given = mode == BATCH or bool(rng.integers(0, 2))
            settings = [(2000, NORM_MODE, mode), (2001, NORM_PHASE, 0), (2002, DESCRIPTOR, last.memory(tx)), (2005, DESCRIPTOR, last.memory(ts)),
                        (2006, DESCRIPTOR, last.memory(tb)), (2007, DESCRIPTOR, number_of(last, epsilon)), (2013, DESCRIPTOR, last.memory(ty))]
            if is_given:
                settings += [(2004, DESCRIPTOR, last.memory(tv))] + ([(2003, DESCRIPTOR, last.memory(ta))] if has_mean else [])
            last.operations.append(last.final(29, *settings))
            last.run()
            exact = scale * (x - (average if has_mean else 0)) * variance + bias if is_given else y
            near(ty.get(), exact, large + np.abs(scale) * (np.abs(x) + np.abs(average)) * variance * 4, of, count, f"inference {mode} {is_given}")
        total += 3
    return total


def softmax_of(scores):
    e = np.exp(scores - scores.real.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Attention:
    """Drawn queries, keys and values; fewer heads of keys and values, lengths, a causal mask and a bias, if asked for."""

    def __init__(self, rng, of, causal=False, bias=False, lengths=False, groups=False, sizes=None):
        drawn_sizes = (rng.integers(1, 3), 4, rng.integers(1, 6), rng.integers(1, 6), rng.integers(1, 5), rng.integers(1, 5))
        self.b, self.h, self.s, self.t, self.d, self.e = (int(size) for size in sizes or drawn_sizes)
        self.k_heads, self.v_heads = (int(rng.choice([1, 2, 4])) for _ in range(2)) if groups else (4, 4)
        self.of, self.causal = of, causal
        self.scale = float(np.float32(rng.uniform(0.2, 1)))
        self.q = drawn(rng, (self.b, self.h, self.s, self.d), of)
        self.k = drawn(rng, (self.b, self.k_heads, self.t, self.d), of)
        self.v = drawn(rng, (self.b, self.v_heads, self.t, self.e), of)
        self.bias = drawn(rng, (1, self.h, self.s, self.t), of) if bias else None
        self.do = drawn(rng, (self.b, self.h, self.s, self.e), of)
        self.lens = (rng.integers(0, self.s + 1, self.b), rng.integers(0, self.t + 1, self.b)) if lengths else None

    def scores(self, q, k):
        scores = np.einsum("bhid,bhjd->bhij", q, np.repeat(k, self.h // k.shape[1], 1)) * self.scale
        if self.bias is not None:
            scores = scores + self.bias
        if self.causal:
            scores = np.where(np.arange(self.s)[:, None] >= np.arange(self.t)[None, :], scores, -1e30)
        return scores

    def run(self, q, k, v, wants_statistics=False):
        v = np.repeat(v, self.h // v.shape[1], 1)
        scores = self.scores(q, k)
        if self.lens is None:
            chances = softmax_of(scores)
            statistics = np.log(np.exp(scores - scores.real.max(-1, keepdims=True)).sum(-1, keepdims=True)) + scores.real.max(-1, keepdims=True)
        else:
            chances = np.zeros(scores.shape, scores.dtype)
            statistics = np.full(scores.shape[:-1] + (1,), -np.inf, scores.dtype)
            for at, (queries, keys) in enumerate(zip(*self.lens)):
                if keys:
                    part = scores[at, :, :queries, :keys]
                    chances[at, :, :queries, :keys] = softmax_of(part)
                    statistics[at, :, :queries] = np.log(np.exp(part).sum(-1, keepdims=True))
        result = np.einsum("bhij,bhje->bhie", chances, v)
        return (result, statistics) if wants_statistics else result

    @property
    def large(self):
        return 8 * (1 + np.abs(self.v).max()) * (1 + np.abs(self.q).max() * np.abs(self.k).max() * self.d)

    def slopes(self):
        """The gradients by the chain rule, where there are too many elements to step along each."""
        k, v = (np.repeat(values, self.h // values.shape[1], 1) for values in (self.k, self.v))
        chances = softmax_of(self.scores(self.q, self.k))
        d_chances = np.einsum("bhie,bhje->bhij", self.do, v)
        mean = (chances * d_chances).sum(-1, keepdims=True)
        d_scores = chances * (d_chances - mean) * self.scale
        shared = lambda values, heads: values.reshape(self.b, heads, -1, *values.shape[2:]).sum(2)
        return [np.einsum("bhij,bhjd->bhid", d_scores, k), shared(np.einsum("bhij,bhid->bhjd", d_scores, self.q), self.k_heads),
                shared(np.einsum("bhij,bhie->bhje", chances, self.do), self.v_heads)]

    def gradients(self):
        return [derivative(lambda q: self.run(q, self.k, self.v), self.q, self.do), derivative(lambda k: self.run(self.q, k, self.v), self.k, self.do),
                derivative(lambda v: self.run(self.q, self.k, v), self.v, self.do)]


def attention(library, rng):
    """As one operation of 9's: fewer heads of keys, lengths, pages; its statistics, and its gradients."""
    for case in range(24):
        of, face = FLOATS[case % 4], library.drawn(rng)
        it = Attention(rng, of, lengths=case % 3 > 0, groups=case % 2 > 0)
        o, statistics = it.run(it.q, it.k, it.v, wants_statistics=True)
        wide = DOUBLE if of == DOUBLE else FLOAT
        with Scope(face) as scope:
            graph = Graph(scope)
            tq, tk, tv, to = (scope.tensor(values, of, rng) for values in (it.q, it.k, it.v, o * 0))
            tstat = scope.tensor(np.zeros(statistics.shape), wide)
            settings = [(2800, DESCRIPTOR, graph.memory(tq)), (2803, DESCRIPTOR, graph.memory(to)), (2805, DESCRIPTOR, number_of(graph, it.scale)),
                        (2804, DESCRIPTOR, graph.memory(tstat))]
            lengths = []
            if it.lens is not None:
                lengths = [scope.tensor(values.reshape(it.b, 1, 1, 1).astype(float), INT32) for values in it.lens]
                settings += [(name, DESCRIPTOR, graph.memory(tensor)) for name, tensor in zip((2809, 2810), lengths)]
            if it.lens is not None and rng.integers(0, 2):
                # Keys and values in pages of two, in any order.
                pages = -(-it.t // 2)
                for name, table_name, values in ((2801, 2807, it.k), (2802, 2808, it.v)):
                    order = rng.permutation(it.b * pages).reshape(it.b, pages)
                    held = np.zeros((it.b * pages, values.shape[1], 2, values.shape[3]))
                    for b, page in np.ndindex(it.b, pages):
                        rows = values[b, :, 2 * page:2 * page + 2]
                        held[order[b, page], :, :rows.shape[1]] = rows
                    settings += [(name, DESCRIPTOR, graph.memory(scope.tensor(held, of, rng))),
                                 (table_name, DESCRIPTOR, graph.memory(scope.tensor(order.reshape(it.b, 1, pages, 1).astype(float), INT32)))]
            else:
                settings += [(2801, DESCRIPTOR, graph.memory(tk)), (2802, DESCRIPTOR, graph.memory(tv))]
            graph.operations.append(graph.final(41, *settings))
            graph.run()
            near(to.get(), o, it.large, of, it.t + it.d, "attention")
            found, finite = tstat.get(), np.isfinite(statistics)
            assert (found[~finite] == -np.inf).all()
            near(found[finite], statistics[finite], it.large, wide, it.t + it.d, "statistics")
            back = Graph(scope)
            tdo, tdq, tdk, tdv = (scope.tensor(values, of, rng) for values in (it.do, it.q * 0, it.k * 0, it.v * 0))
            names = (2851, 2852, 2853, 2854, 2855, 2862, 2859, 2860, 2861)
            tensors = (tq, tk, tv, to, tstat, tdo, tdq, tdk, tdv)
            settings = [(name, DESCRIPTOR, back.memory(tensor)) for name, tensor in zip(names, tensors)]
            settings += [(2856, DESCRIPTOR, number_of(back, it.scale))]
            settings += [(name, DESCRIPTOR, back.memory(tensor)) for name, tensor in zip((2857, 2858), lengths)]
            back.operations.append(back.final(43, *settings))
            back.run()
            # What is rounded in the result is so in the gradients.
            slack = it.large**2 * (1 + np.abs(it.do).max()) * (1 if of in (FLOAT, DOUBLE) else 64)
            for tensor, exact, what in zip((tdq, tdk, tdv), it.gradients(), "qkv"):
                near(tensor.get(), exact, slack * it.h, of, it.s + it.t, f"attention's gradient {what}")
    return 48


def masked(library, rng):
    """As one operation with a graph for its scores, as cudnn-frontend 1.32 writes a causal mask or a window: a bias, a mask along a diagonal
    that a right or a left bound and lengths move, and a softmax that gives statistics to either base."""
    for case in range(24):
        of, face = FLOATS[case % 4], library.drawn(rng)
        # Some have more queries than are worked on together.
        it = Attention(rng, of, groups=case % 2 > 0, sizes=(1, 4, 150, 90, 3, 3) if case % 6 == 5 else None)
        wide = DOUBLE if of == DOUBLE else FLOAT
        bound, is_left, moves = int(rng.integers(0, 3)), bool(rng.integers(0, 2)), bool(rng.integers(0, 2))
        # One length for all, or one for each sequence.
        shared = bool(rng.integers(0, 2))
        lengths = [np.resize(rng.integers(1, most + 1, 1 if shared else it.b), it.b) for most in (it.s, it.t)]
        ends = (lengths[1] - lengths[0]) * moves
        rows, columns = np.arange(it.s)[None, :, None], np.arange(it.t)[None, None, :]
        ends = ends[:, None, None]
        stays = columns + bound - ends > rows if is_left else rows + ends + bound >= columns
        bias = drawn(rng, (1, it.h, it.s, it.t), of)
        scores = np.where(stays[:, None], it.scores(it.q, it.k) + bias, -np.inf)
        most = scores.max(-1, keepdims=True)
        e = np.where(most == -np.inf, 0, np.exp(scores - np.where(most == -np.inf, 0, most)))
        total = e.sum(-1, keepdims=True)
        exact = np.einsum("bhij,bhje->bhie", e / np.where(total == 0, 1, total), np.repeat(it.v, it.h // it.v_heads, 1))
        with np.errstate(divide="ignore"):
            statistics = np.where(total == 0, -np.inf, np.log(total) + np.where(total == 0, 0, most))
        is_binary, sizes = bool(rng.integers(0, 2)), (it.b, it.h, it.s, it.t)
        with Scope(face) as scope:
            graph, inner = Graph(scope), Graph(scope)
            inner.uids, inner.given = graph.uids, graph.given
            tensor = lambda sizes: inner.tensor(sizes, [int(np.prod(sizes[at + 1:])) for at in range(4)], wide, virtual=True)
            (first, taken), (_, middle), (last, given) = tensor(sizes), tensor(sizes), tensor(sizes)
            inner.pointwise(0, taken, middle, inner.memory(scope.tensor(bias, of)))
            settings = [(3000, DESCRIPTOR, middle), (3005, DESCRIPTOR, number_of(inner, -np.inf)), (3006, DESCRIPTOR, given),
                        (3007, POINTWISE, 302 if is_left else 303), (3003 if is_left else 3004, DESCRIPTOR, number_of(inner, bound))]
            if moves:
                settings += [(name, DESCRIPTOR, inner.memory(scope.tensor(values[:1 if shared else it.b].reshape(-1, 1, 1, 1).astype(float), INT32)))
                             for name, values in ((3002, lengths[0]), (3001, lengths[1]))]
            inner.operations.append(inner.final(44, *settings))
            part = inner.final(15, (801, DESCRIPTOR, *inner.operations))
            heuristics = inner.made(4)
            inner.set(heuristics, 201, DESCRIPTOR, part)
            face.refused("BAD_PARAM", "cudnnBackendFinalize", heuristics)
            to, tstat = scope.tensor(exact * 0, of, rng), scope.tensor(np.zeros(statistics.shape), wide)
            softmax = graph.final(45, (3100, DESCRIPTOR, graph.virtual(sizes, wide)), (3101, DESCRIPTOR, graph.virtual(sizes, wide)),
                                  (3102, DESCRIPTOR, graph.memory(tstat)), (3106, BOOLEAN, is_binary))
            tensors = [graph.memory(scope.tensor(values, of, rng)) for values in (it.q, it.k, it.v)] + [graph.memory(to)]
            graph.operations.append(graph.final(41, *[(2800 + at, DESCRIPTOR, tensor) for at, tensor in enumerate(tensors)],
                                                (2805, DESCRIPTOR, number_of(graph, it.scale)), (2811, DESCRIPTOR, part), (2812, INT64, first),
                                                (2813, INT64, last), (2814, DESCRIPTOR, softmax)))
            graph.run()
            near(to.get(), exact, it.large * 2, of, it.t + it.d, f"masked attention {is_left} {bound} {moves}")
            found, finite = tstat.get(), np.isfinite(statistics)
            assert (found[~finite] == -np.inf).all()
            statistics = statistics * (np.log2(np.e) if is_binary else 1)
            near(found[finite], statistics[finite], it.large * 2, wide, it.t + it.d, "masked attention's statistics")
    return 24


def in_parts(library, rng):
    """Attention as cudnn-frontend writes it: products, a mask by places, softmax by reductions; and its gradients in parts."""
    for case in range(16):
        of, face = FLOATS[case % 4], library.drawn(rng)
        it = Attention(rng, of, causal=case % 2 > 0, bias=case % 3 > 0, groups=case % 5 > 2)
        compared(face, it, rng, of, it.gradients)
    return 32


def large(library, rng):
    """The same of so many scores that heads are worked on one after the other."""
    for case, sizes in enumerate(((2, 4, 700, 740, 8, 6), (1, 4, 1100, 1000, 5, 9))):
        of, face = (FLOAT, HALF)[case], library.drawn(rng)
        it = Attention(rng, of, causal=True, bias=case == 0, groups=True, sizes=sizes)
        compared(face, it, rng, of, it.slopes)
    return 4


def compared(face, it, rng, of, gradients):
    o, statistics = it.run(it.q, it.k, it.v, wants_statistics=True)
    wide = DOUBLE if of == DOUBLE else FLOAT
    scores_, rows = (it.b, it.h, it.s, it.t), (it.b, it.h, it.s, 1)
    with Scope(face) as scope:
        graph = Graph(scope)
        by = graph.final(18, (1500, DATA_TYPE, wide))
        product = lambda graph, a, b, c: graph.operations.append(graph.final(19, (1520, DESCRIPTOR, a), (1521, DESCRIPTOR, b), (1522, DESCRIPTOR, c), (1523, DESCRIPTOR, by)))

        def reduce_(graph, x, y, op):
            how = graph.final(21, (1600, REDUCTION, op), (1601, DATA_TYPE, wide))
            graph.operations.append(graph.final(22, (1610, DESCRIPTOR, x), (1611, DESCRIPTOR, y), (1612, DESCRIPTOR, how)))

        def transposed(graph, tensor):
            """The same memory with the last two sizes the other way round."""
            swap = lambda values: (*values[:2], values[3], values[2])
            uid, made = graph.tensor(swap(tensor.sizes), swap(tensor.strides), tensor.of)
            graph.given[uid] = tensor.at.value
            return made

        def scored(graph):
            """The scores with bias and mask."""
            s = graph.virtual(scores_, wide)
            product(graph, graph.memory(tq), transposed(graph, tk), s)
            scaled = graph.virtual(scores_, wide)
            graph.pointwise(1, s, scaled, number_of(graph, it.scale))
            if it.bias is not None:
                biased = graph.virtual(scores_, wide)
                graph.pointwise(0, scaled, biased, graph.memory(tbias))
                scaled = biased
            if it.causal:
                row, column, mask, masked = graph.virtual(scores_, INT32), graph.virtual(scores_, INT32), graph.virtual(scores_, TRUTH), graph.virtual(scores_, wide)
                graph.pointwise(501, scaled, row, settings=((9, INT64, 2),))
                graph.pointwise(501, scaled, column, settings=((9, INT64, 3),))
                graph.pointwise(303, row, mask, column)
                graph.pointwise(601, scaled, masked, number_of(graph, -1e30), mask)
                scaled = masked
            return scaled

        tq, tk, tv, to = (scope.tensor(values, of, rng) for values in (it.q, it.k, it.v, o * 0))
        tbias = scope.tensor(it.bias, of) if it.bias is not None else None
        tstat = scope.tensor(statistics * 0, wide)
        s = scored(graph)
        most, far, e, total, log, p = (graph.virtual(sizes, wide) for sizes in (rows, scores_, scores_, rows, rows, scores_))
        reduce_(graph, s, most, 3)
        graph.pointwise(9, s, far, most)
        graph.pointwise(13, far, e)
        reduce_(graph, e, total, 0)
        graph.pointwise(15, total, log)
        graph.pointwise(0, most, graph.memory(tstat), log)
        graph.pointwise(6, e, p, total)
        product(graph, p, graph.memory(tv), graph.memory(to))
        graph.run()
        near(to.get(), o, it.large, of, it.t + it.d, "attention in parts")
        near(tstat.get(), statistics, it.large + np.abs(statistics), wide, it.t + it.d, "statistics in parts")
        # Back: transposes are views of virtual tensors, and heads that share keys are summed.
        back = Graph(scope)
        tdo, tdq, tdk, tdv = (scope.tensor(values, of, rng) for values in (it.do, it.q * 0, it.k * 0, it.v * 0))

        def turned(x):
            b, h, i, j = scores_
            _, y = back.tensor((b, h, j, i), (h * i * j, i * j, 1, j), wide, virtual=True)
            back.operations.append(back.final(31, (2200, DESCRIPTOR, x), (2201, DESCRIPTOR, y)))
            return y

        do, stat = back.memory(tdo), back.memory(tstat)
        far, p, dp, mul, delta, less, ds, scaled = (back.virtual(sizes, wide) for sizes in (scores_, scores_, scores_, o.shape, rows, scores_, scores_, scores_))
        back.pointwise(9, scored(back), far, stat)
        back.pointwise(13, far, p)
        dv = back.virtual((it.b, it.h, it.t, it.e), wide)
        product(back, turned(p), do, dv)
        reduce_(back, dv, back.memory(tdv), 0)
        product(back, do, transposed(back, tv), dp)
        back.pointwise(1, do, mul, back.memory(to))
        reduce_(back, mul, delta, 0)
        back.pointwise(9, dp, less, delta)
        back.pointwise(1, less, ds, p)
        back.pointwise(1, ds, scaled, number_of(back, it.scale))
        product(back, scaled, back.memory(tk), back.memory(tdq))
        dk = back.virtual((it.b, it.h, it.t, it.d), wide)
        product(back, turned(scaled), back.memory(tq), dk)
        reduce_(back, dk, back.memory(tdk), 0)
        back.run()
        slack = it.large**2 * (1 + np.abs(it.do).max()) * (1 if of in (FLOAT, DOUBLE) else 64)
        for tensor, exact, what in zip((tdq, tdk, tdv), gradients(), "qkv"):
            near(tensor.get(), exact, slack * it.h, of, it.s + it.t, f"gradient in parts {what}")


def shapes(library, rng):
    """Joined, reshaped and parted tensors, softmax with its statistics, and gradients of pooling."""
    for case in range(16):
        of, face, axis = FLOATS[case % 4], library.drawn(rng), int(rng.integers(0, 4))
        wide = DOUBLE if of == DOUBLE else FLOAT
        sizes = [int(size) for size in rng.integers(1, 5, 4)]
        parts = [drawn(rng, (*sizes[:axis], int(size), *sizes[axis + 1:]), of) for size in rng.integers(1, 4, int(rng.integers(1, 4)))]
        with Scope(face) as scope:
            graph = Graph(scope)
            whole = np.concatenate(parts, axis)
            ty = scope.tensor(whole * 0, of, rng)
            graph.operations.append(graph.final(27, (1800, INT64, axis), (1801, DESCRIPTOR, *[graph.memory(scope.tensor(part, of, rng)) for part in parts]),
                                                (1803, DESCRIPTOR, graph.memory(ty))))
            graph.run()
            assert (ty.get() == whole).all()
            # In their order, whatever the strides.
            n, c, h, w = whole.shape
            graph, tz = Graph(scope), scope.tensor(np.zeros((n * c, w, h, 1)), of, rng)
            graph.operations.append(graph.final(31, (2200, DESCRIPTOR, graph.memory(ty)), (2201, DESCRIPTOR, graph.memory(tz)), (2202, RESHAPE_MODE, 1)))
            graph.run()
            assert (tz.get() == whole.reshape(tz.sizes)).all()
            # As they lie in memory: a transpose.
            graph = Graph(scope)
            first = graph.virtual(whole.shape, wide)
            tt = scope.tensor(whole.swapaxes(2, 3) * 0, of)
            uid, view = graph.tensor((n, c, w, h), (c * h * w, h * w, 1, w), wide, virtual=True)
            graph.pointwise(21, graph.memory(ty), first)
            graph.operations.append(graph.final(31, (2200, DESCRIPTOR, first), (2201, DESCRIPTOR, view)))
            graph.pointwise(21, view, graph.memory(tt))
            graph.run()
            assert (tt.get() == whole.swapaxes(2, 3)).all()
            # A part, with steps.
            first = [int(rng.integers(0, size)) for size in whole.shape]
            end = [int(rng.integers(at + 1, size + 1)) for at, size in zip(first, whole.shape)]
            step = [int(at) for at in rng.integers(1, 3, 4)]
            part = whole[tuple(slice(*ends) for ends in zip(first, end, step))]
            graph, tp = Graph(scope), scope.tensor(part * 0, of, rng)
            graph.operations.append(graph.final(47, (3300, DESCRIPTOR, graph.memory(ty)), (3301, DESCRIPTOR, graph.memory(tp)), (3302, INT64, *first),
                                                (3303, INT64, *end), (3304, INT64, *step)))
            graph.run()
            assert (tp.get() == part).all()
            # Softmax over the last size.
            graph, ts = Graph(scope), scope.tensor(whole * 0, of, rng)
            e = np.exp(whole)
            total, most = e.sum(-1, keepdims=True), whole.max(-1, keepdims=True)
            others = [scope.tensor(total * 0, wide) for _ in range(3)]
            is_binary = bool(rng.integers(0, 2))
            graph.operations.append(graph.final(45, (3100, DESCRIPTOR, graph.memory(ty)), (3101, DESCRIPTOR, graph.memory(ts)), (3106, BOOLEAN, is_binary),
                                                *[(name, DESCRIPTOR, graph.memory(tensor)) for name, tensor in zip((3102, 3103, 3104), others)]))
            graph.run()
            near(ts.get(), e / total, 2, of, w, "softmax")
            statistics = np.log(total) * (np.log2(np.e) if is_binary else 1)
            for tensor, exact in zip(others, (statistics, most, total / np.exp(most))):
                near(tensor.get(), exact, 4 + np.abs(exact), wide, w, "softmax's statistics")
            # Gradients of pooling, by the definition's differences.
            # No two are equal, in any type.
            x = rng.permutation(80).reshape(2, 2, 5, 4).astype(np.float64)
            dy, mode = drawn(rng, (2, 2, 3, 2), of), (2, 3, 4)[case % 3]

            def pool(x):
                y = np.zeros((2, 2, 3, 2), x.dtype)
                for i, j in np.ndindex(3, 2):
                    met = x[:, :, max(2 * i - 1, 0):min(2 * i + 2, 5), 2 * j:2 * j + 2].reshape(2, 2, -1)
                    if mode == 3:
                        y[:, :, i, j] = np.take_along_axis(met, met.real.argmax(-1)[..., None], -1)[..., 0]
                    else:
                        y[:, :, i, j] = met.sum(-1) / (6 if mode == 2 else met.shape[-1])
                return y

            graph, tx, tdy, tdx = Graph(scope), scope.tensor(x, of, rng), scope.tensor(dy, of, rng), scope.tensor(x * 0, of, rng)
            by = graph.final(24, (1700, RESAMPLE, mode), (1701, DATA_TYPE, wide), (1702, INT64, 2), (1703, INT64, 1, 0), (1704, INT64, 1, 0),
                             (1705, INT64, 2, 2), (1706, INT64, 3, 2), (1708, PADDING, 1))
            graph.operations.append(graph.final(26, (1720, DESCRIPTOR, graph.memory(tdx)), (1721, DESCRIPTOR, graph.memory(tdy)), (1725, DESCRIPTOR, by),
                                                (1726, DESCRIPTOR, graph.memory(tx)), (1723, FLOAT_, 2.0)))
            graph.run()
            near(tdx.get(), 2 * derivative(pool, x, dy), 8, of, 8, f"pooling's gradient {mode}")
            if mode == 3:
                # The way forward says where the largest are; the way back has no images then.
                places = scope.tensor(dy * 0, (INT8, INT32)[case // 4 % 2], rng)
                forward, ty = Graph(scope), scope.tensor(dy * 0, of, rng)
                forward.operations.append(forward.final(25, (1710, DESCRIPTOR, forward.memory(tx)), (1711, DESCRIPTOR, forward.memory(ty)),
                                                        (1712, DESCRIPTOR, forward.memory(places)), (1716, DESCRIPTOR, by)))
                forward.run()
                assert (ty.get() == pool(x)).all()
                back, tdx = Graph(scope), scope.tensor(x * 0, of, rng)
                back.operations.append(back.final(26, (1720, DESCRIPTOR, back.memory(tdx)), (1721, DESCRIPTOR, back.memory(tdy)), (1722, DESCRIPTOR, back.memory(places)),
                                                  (1725, DESCRIPTOR, by), (1723, FLOAT_, 2.0)))
                back.run()
                near(tdx.get(), 2 * derivative(pool, x, dy), 8, of, 8, "pooling's gradient by places")
    return 96


def native(library, rng):
    """A plan as nodes of the program's CUDA graph, which runs as often as it is launched, for another pack once it is updated, and within another
    graph when the first one is gone."""
    for face in library.faces[1:]:
        with Scope(face) as scope:
            graph, x = Graph(scope), drawn(rng, (2, 3, 4, 5), FLOAT)
            tx, ty, tz = (scope.tensor(values, FLOAT) for values in (x, x * 0, x * 0))
            gx, middle, gy = graph.memory(tx), graph.virtual(x.shape), graph.memory(ty)
            graph.pointwise(101, gx, middle)
            graph.pointwise(101, middle, gy)
            expected = np.tanh(np.tanh(x))
            plan, pack = graph.plan(), graph.pack()
            made, outer, run, stream = P(), P(), P(), P()

            def is_of(nodes):
                count = ctypes.c_size_t()
                face.runtime("cudaGraphGetNodes", made, None, ctypes.byref(count))
                assert count.value == nodes, (count.value, nodes)

            face.runtime("cudaGraphCreate", ctypes.byref(made), 0)
            if device.ON_COPIES and not device.BY_KERNELS:
                face.refused("NOT_SUPPORTED", "cudnnBackendPopulateCudaGraph", scope.handle, plan, pack, made)
                is_of(0)
                assert (ty.get() == 0).all()
                face.runtime("cudaGraphDestroy", made)
                return 1
            # Kernels have a node for each launch.
            nodes = 2 if device.BY_KERNELS else 1
            face("cudnnBackendPopulateCudaGraph", scope.handle, plan, pack, made)
            face.refused("BAD_PARAM", "cudnnBackendPopulateCudaGraph", scope.handle, plan, pack, made)
            face.refused("BAD_PARAM", "cudnnBackendPopulateCudaGraph", scope.handle, plan, pack, None)
            is_of(nodes)
            assert (ty.get() == 0).all()
            face.runtime("cudaStreamCreate", ctypes.byref(stream))
            face.runtime("cudaGraphInstantiate", ctypes.byref(run), made, ctypes.c_ulonglong(0))
            launch = lambda: (face.runtime("cudaGraphLaunch", run, stream), face.synchronize())
            launch()
            near(ty.get(), expected, 1, FLOAT, 1, "a graph's nodes")
            graph.given = {uid: tz.at.value if at == ty.at.value else at for uid, at in graph.given.items()}
            face("cudnnBackendUpdateCudaGraph", scope.handle, plan, graph.pack(), made)
            is_of(nodes)
            launch()
            assert (tz.get() == 0).all()
            other = (ctypes.c_byte * 64)()
            face.runtime("cudaGraphExecUpdate", run, made, other)
            launch()
            near(tz.get(), expected, 1, FLOAT, 1, "an updated graph's nodes")
            face.runtime("cudaGraphExecDestroy", run)
            face.runtime("cudaGraphCreate", ctypes.byref(outer), 0)
            face.runtime("cudaGraphAddChildGraphNode", ctypes.byref(P()), outer, None, ctypes.c_size_t(0), made)
            face.runtime("cudaGraphDestroy", made)
            face.runtime("cudaGraphInstantiate", ctypes.byref(run), outer, ctypes.c_ulonglong(0))
            face.runtime("cudaMemset", tz.at, 0, ctypes.c_size_t(4 * x.size))
            launch()
            near(tz.get(), expected, 1, FLOAT, 1, "a graph within another")
            empty = P()
            face.runtime("cudaGraphCreate", ctypes.byref(empty), 0)
            face.refused("BAD_PARAM", "cudnnBackendUpdateCudaGraph", scope.handle, plan, pack, empty)
            for name, it in (("cudaGraphExecDestroy", run), ("cudaGraphDestroy", outer), ("cudaGraphDestroy", empty), ("cudaStreamDestroy", stream)):
                face.runtime(name, it)
    return 9


def refusals(library, rng):
    """What no engine has, and what does not fit, is refused with its reason when the graph is finalized."""
    total = 0
    for face in library.faces:
        with Scope(face) as scope:
            graph = Graph(scope)
            x, y = (graph.memory(scope.tensor(np.zeros((2, 3, 4, 5)), FLOAT)) for _ in range(2))
            small = graph.memory(scope.tensor(np.zeros((1, 3, 1, 1)), FLOAT))
            eps = number_of(graph, 0.1)
            norm = ((2002, DESCRIPTOR, x), (2005, DESCRIPTOR, small), (2006, DESCRIPTOR, small), (2007, DESCRIPTOR, eps))
            q = [graph.memory(scope.tensor(np.zeros(sizes), FLOAT)) for sizes in ((2, 4, 3, 5), (2, 3, 3, 5), (2, 4, 3, 5), (2, 4, 3, 5))]
            pool = lambda mode: graph.final(24, (1700, RESAMPLE, mode), (1701, DATA_TYPE, FLOAT), (1702, INT64, 2), (1703, INT64, 0, 0), (1704, INT64, 0, 0),
                                            (1705, INT64, 1, 1), (1706, INT64, 1, 1), (1708, PADDING, 1))
            wrong = [("BAD_PARAM", 29, (2000, NORM_MODE, BATCH), (2001, NORM_PHASE, 1), (2013, DESCRIPTOR, small), *norm),
                     ("BAD_PARAM", 29, (2000, NORM_MODE, INSTANCE), (2001, NORM_PHASE, 1), (2013, DESCRIPTOR, y), (2003, DESCRIPTOR, small), *norm),
                     ("NOT_SUPPORTED", 29, (2000, NORM_MODE, BATCH), (2001, NORM_PHASE, 0), (2013, DESCRIPTOR, y), *norm),
                     ("NOT_SUPPORTED", 29, (2000, NORM_MODE, 3), (2001, NORM_PHASE, 1), (2013, DESCRIPTOR, y), *norm),
                     ("BAD_PARAM", 27, (1800, INT64, 1), (1801, DESCRIPTOR, x, x), (1803, DESCRIPTOR, y)),
                     ("BAD_PARAM", 27, (1800, INT64, 4), (1801, DESCRIPTOR, x), (1803, DESCRIPTOR, y)),
                     ("BAD_PARAM", 47, (3300, DESCRIPTOR, x), (3301, DESCRIPTOR, small), (3302, INT64, 0, 0, 0, 0), (3303, INT64, 1, 3, 1, 6)),
                     ("BAD_PARAM", 31, (2200, DESCRIPTOR, x), (2201, DESCRIPTOR, small)),
                     ("BAD_PARAM", 26, (1720, DESCRIPTOR, x), (1721, DESCRIPTOR, x), (1725, DESCRIPTOR, pool(3))),
                     ("NOT_SUPPORTED", 26, (1720, DESCRIPTOR, x), (1721, DESCRIPTOR, x), (1722, DESCRIPTOR, y), (1725, DESCRIPTOR, pool(3))),
                     ("BAD_PARAM", 25, (1710, DESCRIPTOR, x), (1711, DESCRIPTOR, y), (1712, DESCRIPTOR, small), (1716, DESCRIPTOR, pool(3))),
                     ("NOT_SUPPORTED", 25, (1710, DESCRIPTOR, x), (1711, DESCRIPTOR, y), (1712, DESCRIPTOR, y), (1716, DESCRIPTOR, pool(2))),
                     ("NOT_SUPPORTED", 25, (1710, DESCRIPTOR, x), (1711, DESCRIPTOR, y), (1714, FLOAT_, 1.0), (1716, DESCRIPTOR, pool(3))),
                     ("BAD_PARAM", 41, (2800, DESCRIPTOR, q[0]), (2801, DESCRIPTOR, q[1]), (2802, DESCRIPTOR, q[2]), (2803, DESCRIPTOR, q[3]))]
            for wanted, kind, *attributes in wrong:
                operation, it = graph.final(kind, *attributes), graph.made(15)
                graph.set(it, 801, DESCRIPTOR, operation)
                face.refused(wanted, "cudnnBackendFinalize", it)
                total += 1
    return total
