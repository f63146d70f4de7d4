"""Operations of the graph API for few bits and for what is routed: types of less than a byte, factors of blocks, mixtures of experts, rows of so many
for each sequence, random numbers; beside their definition in f64 (ml_dtypes has the types)."""

import ctypes

import ml_dtypes
import numpy as np

from graphs import DATA_TYPE, DESCRIPTOR, DOUBLE_, FLOAT_, INT64, POINTER, Graph
from graphs import INT32 as WHOLE
from library import BFLOAT16, DOUBLE, FLOAT, FLOATS, HALF, INT32, P, STATUS, Scope, drawn, near
from networks import Attention, derivative, number_of, softmax_of

TRUTH, E4M3, E5M2, E8M0, E2M1, INT4, UINT4, BYTE = 11, 12, 13, 15, 16, 17, 18, 22
OF = {E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2, E8M0: ml_dtypes.float8_e8m0fnu, E2M1: ml_dtypes.float4_e2m1fn,
      INT4: ml_dtypes.int4, UINT4: ml_dtypes.uint4, HALF: np.float16, FLOAT: np.float32}
TRAINS = 17


def packed(values, of):
    """The bytes of a tensor without gaps: the first of two that share one is in its low bits."""
    if of == TRUTH:
        return np.packbits(values.ravel() != 0, bitorder="little")
    flat = values.ravel().astype(OF[of])
    if of in (E2M1, INT4, UINT4):
        nibbles = flat.view(np.uint8) & 15
        nibbles = np.concatenate([nibbles, np.zeros(len(nibbles) % 2, np.uint8)])
        return nibbles[::2] | nibbles[1::2] << 4
    return flat.view(np.uint8)


def unpacked(bytes_, of, sizes):
    count = int(np.prod(sizes))
    if of == TRUTH:
        return np.unpackbits(bytes_, bitorder="little")[:count].reshape(sizes).astype(float)
    if of in (E2M1, INT4, UINT4):
        bytes_ = np.stack([bytes_ & 15, bytes_ >> 4], -1).ravel()[:count]
        if of == INT4:
            return ((bytes_.astype(np.int8) ^ 8) - 8).reshape(sizes).astype(float)
        return (bytes_ if of == UINT4 else bytes_.view(OF[of])).reshape(sizes).astype(float)
    return bytes_.view(OF[of])[:count].reshape(sizes).astype(float)


def strides_of(sizes, order=None):
    order = range(len(sizes)) if order is None else order
    strides, stride = [0] * len(sizes), 1
    for at in reversed(list(order)):
        strides[at] = stride
        stride *= sizes[at]
    return strides


class Packed:
    """A tensor of any type without gaps, in memory in an order of its sizes; scales may lie in tiles."""

    def __init__(self, graph, values, of, order=None, tiles=False):
        self.of, self.sizes, self.tiles = of, values.shape, tiles
        self.order = list(order) if order is not None else list(range(values.ndim))
        image = tiled(values, self.order) if tiles else values.transpose(self.order)
        self.array = graph.scope.array(packed(image, of))
        uid = next(graph.uids)
        more = ((909, 20, 3),) if tiles else ()
        self.it = graph.final(TRAINS, (901, DATA_TYPE, of), (902, INT64, *self.sizes), (903, INT64, *strides_of(self.sizes, self.order)), (906, INT64, uid),
                              (900, INT64, 4), *more)
        graph.given[uid] = self.array.at.value

    def get(self):
        image = unpacked(self.array.get(), self.of, [self.sizes[at] for at in self.order])
        if self.tiles:
            return untiled(image.ravel(), self.sizes, self.order)
        return image.transpose(np.argsort(self.order))


def places(rows, columns):
    """Where cuBLAS's manual puts the factor of a row and a column, by tiles of 128 rows and 4 columns."""
    row, column = np.indices((rows, columns))
    tile = row // 128 * (columns // 4) + column // 4
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4


def tiled(values, order):
    turned = values.transpose(order)
    out = np.zeros_like(turned)
    for at in np.ndindex(turned.shape[:-2]):
        matrix = turned[at]
        flat = np.zeros(matrix.size)
        flat[places(*matrix.shape).ravel()] = matrix.ravel()
        out[at] = flat.reshape(matrix.shape)
    return out


def untiled(flat, sizes, order):
    shape = [sizes[at] for at in order]
    image = flat.reshape(shape)
    out = np.zeros(shape)
    for at in np.ndindex(*shape[:-2]):
        out[at] = image[at].ravel()[places(*shape[-2:])]
    return out.transpose(np.argsort(order))


def spread(scale, sizes, blocks):
    for axis, block in enumerate(blocks):
        scale = np.repeat(scale, block, axis)
    return scale[tuple(slice(size) for size in sizes)]


def exactly(values, of):
    return values.astype(OF[of]).astype(float)


def blocks(library, rng):
    """Factors of blocks: taken off, in any order of sizes and in tiles; and made, with the elements they are of."""
    total = 0
    for of, of_scale, face in ((of, of_scale, face) for face in library.faces for of, of_scale in
                               ((E4M3, E8M0), (E5M2, E8M0), (E2M1, E4M3), (E2M1, E8M0), (INT4, FLOAT), (UINT4, HALF), (HALF, HALF))):
        # Along rows, along columns, in two sizes; the sizes are no multiples of the blocks'.
        for sizes, block in (((2, 5, 38), (1, 16)), ((2, 37, 6), (16, 1)), ((2, 21, 19), (7, 5)), ((3, 4, 32), (32,)), ((3, 64, 4), (32,))):
            whole = [1] * (3 - len(block)) + list(block)
            if sizes == (3, 64, 4):
                whole = [1, 32, 1]
            counts = [-(-size // at) for size, at in zip(sizes, whole)]
            x = exactly(rng.uniform(0 if of == UINT4 else -7, 7, sizes), of)
            scale = exactly(2.0 ** rng.integers(-3, 4, counts) * (1 if of_scale == E8M0 else 1.25), of_scale)
            with Scope(face) as scope:
                graph, order = Graph(scope), (0, *rng.permutation([1, 2]))
                gx, gs = Packed(graph, x, of, order), Packed(graph, scale, of_scale, order)
                ty, middle = scope.tensor(np.zeros(sizes), FLOAT, rng), graph.virtual(sizes)
                graph.operations.append(graph.final(37, (2600, DESCRIPTOR, gx.it), (2601, DESCRIPTOR, gs.it), (2602, DESCRIPTOR, middle), (2603, DATA_TYPE, FLOAT),
                                                    (2604, WHOLE, *block)))
                graph.pointwise(16, middle, graph.memory(ty))
                graph.run()
                assert (ty.get() == -x * spread(scale, sizes, whole)).all(), (of, of_scale, sizes, block)
            total += 1
    for number in range(12):
        # Factors in tiles, padded to whole ones; the size with four of them is the last or the one before.
        face, is_turned = library.drawn(rng), bool(number % 2)
        of_scale = FLOAT if number % 3 == 2 else E4M3
        rows, columns, size = int(rng.integers(1, 200)), int(rng.integers(1, 8)) * 16, 16
        sizes, counts = (2, rows, columns), (2, -(-rows // 128) * 128, -(-columns // size // 4) * 4)
        scale = np.zeros(counts)
        scale[:, :rows, :columns // size] = exactly(2.0 ** rng.integers(-3, 4, (2, rows, columns // size)), of_scale)
        x = exactly(rng.uniform(-7, 7, sizes), E2M1)
        exact = x * spread(scale[:, :rows, :columns // size], sizes, (1, 1, size))
        turn = (lambda values: values.swapaxes(1, 2)) if is_turned else lambda values: values
        order = (0, 2, 1) if is_turned else (0, 1, 2)
        with Scope(face) as scope:
            graph = Graph(scope)
            gx, gs = Packed(graph, turn(x), E2M1, order), Packed(graph, turn(scale), of_scale, order, tiles=True)
            ty, middle = scope.tensor(turn(exact) * 0, FLOAT), graph.virtual(turn(exact).shape)
            graph.operations.append(graph.final(37, (2600, DESCRIPTOR, gx.it), (2601, DESCRIPTOR, gs.it), (2602, DESCRIPTOR, middle), (2604, WHOLE, size)))
            graph.pointwise(21, middle, graph.memory(ty))
            graph.run()
            assert (ty.get() == turn(exact)).all()
        total += 1
    for of, of_scale, size in ((E4M3, E8M0, 32), (E5M2, E8M0, 32), (E2M1, E4M3, 16), (E4M3, FLOAT, 8)) * 4:
        face, axis, tiles = library.drawn(rng), int(rng.integers(1, 3)), of == E2M1 and bool(rng.integers(0, 2))
        sizes = [2, 128, 64] if tiles else [2, int(rng.integers(1, 5)), int(rng.integers(1, 5))]
        axis = 2 if tiles else axis
        sizes[axis] = size * (4 if tiles else int(rng.integers(1, 4)))
        x = (rng.standard_normal(sizes) * 2.0 ** rng.integers(-4, 5, sizes)).astype(np.float32).astype(float)
        x[0, 0, 0] = 0
        counts = [at // size if place == axis else at for place, at in enumerate(sizes)]
        split = [part for place, at in enumerate(sizes) for part in ([at // size, size] if place == axis else [at])]
        most = {E4M3: 448.0, E5M2: 57344.0, E2M1: 6.0}[of]
        wanted = np.abs(x).reshape(split).max(axis + 1) / most
        if of_scale == E8M0:
            scale = 2.0 ** np.ceil(np.log2(wanted))
        elif of_scale == E4M3:
            grid = np.arange(127, dtype=np.uint8).view(OF[E4M3]).astype(float)
            scale = grid[np.searchsorted(grid, wanted)]
        else:
            scale = wanted.astype(np.float32).astype(float)
        blocks_ = [size if place == axis else 1 for place in range(3)]
        exact = exactly(x / spread(scale, sizes, blocks_), of)
        with Scope(face) as scope:
            graph = Graph(scope)
            # Blocks are of elements that follow each other in memory.
            order = [place for place in range(3) if place != axis] + [axis]
            tx = scope.tensor(x, FLOAT, rng)
            gy, gs = Packed(graph, np.zeros(sizes), of, order), Packed(graph, np.zeros(counts), of_scale, order, tiles)
            graph.operations.append(graph.final(36, (2500, DESCRIPTOR, graph.memory(tx)), (2501, DESCRIPTOR, gy.it), (2502, DESCRIPTOR, gs.it),
                                                (2503, DATA_TYPE, FLOAT), (2504, WHOLE, size)))
            graph.run()
            assert np.allclose(gs.get(), scale, rtol=2.0**-23, atol=0), (of, of_scale)
            # A quotient in single precision may be on the other side of the middle of two.
            far = np.abs(gy.get() - exact) > 1e-6 * np.abs(exact)
            edge = np.abs(x / spread(scale, sizes, blocks_))
            between = (np.abs(gy.get()) + np.abs(exact)) / 2
            assert (~far | (np.abs(edge - between) < 1e-5 * between)).all(), (of, of_scale)
        total += 1
    return total


def experts(library, rng):
    """Products of groups of rows with their expert's weights: as they lie, gathered and scattered; and the gradient of the weights."""
    total = 0
    for mode, of in ((mode, of) for mode in (0, 1, 2, 3) for of in FLOATS):
        face = library.drawn(rng)
        batches, count, top, tokens = int(rng.integers(1, 3)), int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 9))
        k, n, rows = int(rng.integers(1, 9)), int(rng.integers(1, 9)), tokens * top
        batches = 1 if mode == 3 else batches
        offsets = np.sort(rng.integers(0, rows + 1, batches * count))
        offsets[0] = 0
        ends = [*offsets[1:], rows]
        weight = drawn(rng, (count, k, n), of)
        token = drawn(rng, (1, tokens if mode == 1 else rows, k), of)
        # Each of the expanded slots once.
        slots = rng.permutation(rows)
        index, nth = slots // top, slots % top
        exact, d_weight = np.zeros((1, rows, n)), np.zeros((count, k, n))
        d_output = drawn(rng, (1, rows, n), of)
        for group, (first, end) in enumerate(zip(offsets, ends)):
            for row in range(first, end):
                taken = token[0, index[row] if mode == 1 else row]
                exact[0, index[row] * top + nth[row] if mode == 2 else row] = taken @ weight[group % count]
                if mode == 3:
                    d_weight[group % count] += np.outer(taken, d_output[0, row])
        with Scope(face) as scope:
            graph = Graph(scope)
            list_ = lambda values: graph.memory(scope.tensor(np.asarray(values).reshape(1, -1, 1).astype(float), INT32))
            starts = graph.memory(scope.tensor(offsets.reshape(-1, 1, 1).astype(float), INT32))
            gt = graph.memory(scope.tensor(token, of, rng))
            if mode == 3:
                tw = scope.tensor(d_weight * 0, of, rng)
                graph.operations.append(graph.final(48, (2951, DATA_TYPE, FLOAT), (2952, DESCRIPTOR, gt), (2953, DESCRIPTOR, graph.memory(tw)),
                                                    (2954, DESCRIPTOR, starts), (2955, DESCRIPTOR, graph.memory(scope.tensor(d_output, of, rng)))))
                graph.run()
                near(tw.get(), d_weight, np.abs(token).max() * np.abs(d_output).max() * rows + 0 * d_weight, of, rows, "experts' gradient")
            else:
                to = scope.tensor(exact * 0, of, rng)
                settings = [(2900, 30, mode), (2901, DATA_TYPE, FLOAT), (2902, DESCRIPTOR, gt), (2903, DESCRIPTOR, graph.memory(scope.tensor(weight, of, rng))),
                            (2904, DESCRIPTOR, starts), (2905, DESCRIPTOR, graph.memory(to))]
                settings += [(2906, DESCRIPTOR, list_(index))] if mode else []
                settings += [(2907, DESCRIPTOR, list_(nth)), (2908, WHOLE, top)] if mode == 2 else []
                graph.operations.append(graph.final(42, *settings))
                graph.run()
                near(to.get(), exact, np.abs(token).max() * np.abs(weight).max() * k + 0 * exact, of, k, f"experts {mode}")
        total += 1
    return total


def statistics(library, rng):
    """A batch norm in parts: sums, what they say, and the factors of its way back."""
    total = 0
    for case in range(16):
        of, face = FLOATS[case % 4], library.drawn(rng)
        wide = DOUBLE if of == DOUBLE else FLOAT
        sizes = n, c, h, w = tuple(int(size) for size in rng.integers(2, 6, 4))
        one, over, count = (1, c, 1, 1), (0, 2, 3), n * h * w
        x, dy, scale, bias = drawn(rng, sizes, of), drawn(rng, sizes, of), drawn(rng, one, wide), drawn(rng, one, wide)
        before, before_variance = drawn(rng, one, wide), np.abs(drawn(rng, one, wide)) + 0.5
        mean, variance = x.mean(over, keepdims=True), x.var(over, keepdims=True)
        inverse = 1 / np.sqrt(variance + 0.125)
        with Scope(face) as scope:
            graph = Graph(scope)
            tsum, tsquare = (scope.tensor(np.zeros(one), wide) for _ in range(2))
            tx = scope.tensor(x, of, rng)
            graph.operations.append(graph.final(14, (770, 16, 0), (771, DATA_TYPE, FLOAT), (772, DESCRIPTOR, graph.memory(tx)),
                                                (773, DESCRIPTOR, graph.memory(tsum)), (774, DESCRIPTOR, graph.memory(tsquare))))
            graph.run()
            near(tsum.get(), x.sum(over, keepdims=True), np.abs(x).sum(over, keepdims=True), wide, count, "sums")
            near(tsquare.get(), (x * x).sum(over, keepdims=True), (x * x).sum(over, keepdims=True), wide, count, "sums of squares")
            trains = case % 2 == 0
            graph = Graph(scope)
            memory = lambda values: graph.memory(scope.tensor(values, wide))
            results = [scope.tensor(np.zeros(one), wide) for _ in range(6)]
            number = ctypes.c_int64(count)
            uid, counted = graph.tensor((1, 1, 1, 1), (1, 1, 1, 1), 10, value=True)
            settings = [(780, TRAINS, 0 if trains else 1), (781, DATA_TYPE, FLOAT), (784, DESCRIPTOR, memory(scale)), (785, DESCRIPTOR, memory(bias)),
                        (786, DESCRIPTOR, memory(before)), (787, DESCRIPTOR, memory(before_variance)), (792, DESCRIPTOR, graph.memory(results[0])),
                        (793, DESCRIPTOR, graph.memory(results[1])), (795, DESCRIPTOR, number_of(graph, 0.125))]
            if trains:
                graph.given[uid] = ctypes.addressof(number)
                settings += [(782, DESCRIPTOR, graph.memory(tsum)), (783, DESCRIPTOR, graph.memory(tsquare)), (794, DESCRIPTOR, counted),
                             (796, DESCRIPTOR, number_of(graph, 0.25)), *[(name, DESCRIPTOR, graph.memory(it)) for name, it in zip((790, 791, 788, 789), results[2:])]]
            graph.operations.append(graph.final(20, *settings))
            graph.run()
            slack = 64 * (1 + (x * x).mean(over, keepdims=True)) * (inverse + 1)
            if trains:
                exact = [scale * inverse, bias - mean * scale * inverse, mean, inverse, 0.75 * before + 0.25 * mean,
                         0.75 * before_variance + 0.25 * variance * count / (count - 1)]
            else:
                inverse_ = 1 / np.sqrt(before_variance + 0.125)
                exact = [scale * inverse_, bias - before * scale * inverse_]
            for found, wanted in zip(results, exact):
                near(found.get(), wanted, slack + np.abs(wanted) + np.abs(before_variance), wide, count, f"what sums say {trains}")
            # The way back, whose gradient is what its three factors say.
            graph = Graph(scope)
            results = [scope.tensor(np.zeros(one), wide) for _ in range(5)]
            settings = [(1620, DATA_TYPE, FLOAT), (1624, DESCRIPTOR, graph.memory(tx)), (1625, DESCRIPTOR, graph.memory(scope.tensor(dy, of, rng)))]
            kept = [np.asarray(values, dtype={DOUBLE: np.float64, FLOAT: np.float32}[wide]).astype(float) for values in (mean, inverse)]
            settings += [(name, DESCRIPTOR, memory(values)) for name, values in zip((1621, 1622, 1623), (*kept, scale))]
            settings += [(name, DESCRIPTOR, graph.memory(it)) for name, it in zip((1626, 1627, 1628, 1629, 1630), results)]
            graph.operations.append(graph.final(23, *settings))
            graph.run()
            d_scale, d_bias, by_dy, by_x, rest = (it.get() for it in results)

            def norm(x):
                far = x - x.mean(over, keepdims=True)
                return scale * far / np.sqrt((far * far).mean(over, keepdims=True) + 0.125)

            large = np.abs(dy).sum(over, keepdims=True) * (1 + np.abs(x).max() * inverse) * 8
            near(d_scale, (dy * (x - mean) * inverse).sum(over, keepdims=True), large, wide, count, "factor's gradient")
            near(d_bias, dy.sum(over, keepdims=True), large, wide, count, "bias's gradient")
            slope = (np.abs(scale) * inverse * (np.abs(dy).max() + large) * (1 + np.abs(x).max() * inverse)).max()
            near(by_dy * dy + by_x * x + rest, derivative(norm, x, dy), slope + 0 * x, wide, count, "gradient by factors")
        total += 3
    return total


def moved(library, rng):
    """Transposes, and keys and values that are gathered from pages."""
    for case in range(16):
        of, face = FLOATS[case % 4], library.drawn(rng)
        sizes = [int(size) for size in rng.integers(1, 6, int(rng.integers(3, 6)))]
        order, x = [int(at) for at in rng.permutation(len(sizes))], drawn(rng, sizes, of)
        with Scope(face) as scope:
            graph = Graph(scope)
            ty = scope.tensor(x.transpose(order) * 0, of, rng)
            graph.operations.append(graph.final(46, (3200, DESCRIPTOR, graph.memory(scope.tensor(x, of, rng))), (3201, DESCRIPTOR, graph.memory(ty)),
                                                (3202, INT64, *order)))
            graph.run()
            assert (ty.get() == x.transpose(order)).all()
            batch, heads, size, depth, pages, held = (int(at) for at in rng.integers(1, 5, 6))
            container = drawn(rng, (batch * pages + 1, heads, size, depth), of)
            table = rng.permutation(batch * pages + 1)[:batch * pages].reshape(batch, pages)
            lengths, rows = rng.integers(1, pages * size + 1, batch), pages * size
            exact = np.zeros((batch, heads, rows, depth))
            for at in range(batch):
                for row in range(lengths[at]):
                    exact[at, :, row] = container[table[at, row // size], :, row % size]
            is_turned = case % 2 == 0 and depth > 1
            exact = exact.swapaxes(2, 3) if is_turned else exact
            graph = Graph(scope)
            ty = scope.tensor(exact * 0, of)
            strides = strides_of(exact.shape, (0, 1, 3, 2) if is_turned else None)
            middle = graph.tensor(exact.shape, strides, FLOAT if of != DOUBLE else DOUBLE, virtual=True)[1]
            ints = lambda values, sizes: graph.memory(scope.tensor(values.reshape(sizes).astype(float), INT32))
            graph.operations.append(graph.final(35, (1950, DESCRIPTOR, graph.memory(scope.tensor(container, of, rng))), (1951, DESCRIPTOR, middle),
                                                (1952, DESCRIPTOR, ints(lengths, (batch, 1, 1, 1))), (1953, DESCRIPTOR, ints(table, (batch, 1, pages, 1)))))
            graph.pointwise(21, middle, graph.memory(ty))
            graph.run()
            assert (ty.get() == exact).all()
    return 32


def philox(seed, subsequence, offset):
    """Of Salmon's paper, ten rounds."""
    c = [offset & 0xFFFFFFFF, offset >> 32, subsequence & 0xFFFFFFFF, subsequence >> 32]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def random(library, rng):
    """Random tensors: Philox by seed and offset, a subsequence for each element; attention drops by them, and takes sinks and masks of tiles."""
    total = 0
    for case in range(12):
        face, sizes = library.drawn(rng), (2, 3, 16, 20)
        seed, offset, chance = int(rng.integers(0, 2**40)), int(rng.integers(0, 2**33)), float(rng.uniform(0.1, 0.9))
        words = np.array([philox(seed, number, offset) for number in range(int(np.prod(sizes)))]).reshape(sizes) / 2.0**32
        with Scope(face) as scope:
            graph = Graph(scope)
            ty = scope.tensor(np.zeros(sizes), FLOAT, rng)

            def value(number):
                held = ctypes.c_int64(number)
                scope.undo.append(lambda: held)
                uid, it = graph.tensor((1, 1, 1, 1), (1, 1, 1, 1), 10, value=True)
                graph.given[uid] = ctypes.addressof(held)
                return it

            settings = ((2300, 29, 0), (2305, DOUBLE_, chance)) if case % 2 else ((2300, 29, 1), (2303, DOUBLE_, 3.0), (2304, DOUBLE_, -1.0))
            by = graph.final(32, *settings)
            seeds = (2311, INT64, seed) if case % 3 else (2311, DESCRIPTOR, value(seed))
            graph.operations.append(graph.final(33, (2312, DESCRIPTOR, by), (2310, DESCRIPTOR, graph.memory(ty)), seeds, (2313, DESCRIPTOR, value(offset))))
            graph.run()
            found = ty.get()
            if case % 2:
                assert (found == (words < chance)).all()
                assert abs(found.mean() - chance) < 6 * np.sqrt(chance * (1 - chance) / found.size)
            else:
                assert np.allclose(found, -1 + 4 * words, atol=1e-6)
        total += 1
    for case in range(24):
        of, face = FLOATS[case % 4], library.drawn(rng)
        it = Attention(rng, of, groups=case % 2 > 0)
        wide = DOUBLE if of == DOUBLE else FLOAT
        drops, sinks = case % 3 == 0, case % 3 > 0
        sink = drawn(rng, (1, it.h, 1, 1), wide)
        scores = it.scores(it.q, it.k)
        most = np.maximum(scores.max(-1, keepdims=True), sink) if sinks else scores.max(-1, keepdims=True)
        e = np.exp(scores - most)
        sums = e.sum(-1, keepdims=True) + (np.exp(sink - most) if sinks else 0)
        values = np.repeat(it.v, it.h // it.v_heads, 1)
        chances = e / sums
        with Scope(face) as scope:
            graph = Graph(scope)
            tq, tk, tv, to = (scope.tensor(values_, of, rng) for values_ in (it.q, it.k, it.v, it.do * 0))
            tstat, tmost, tsums = (scope.tensor(np.zeros(sums.shape), wide) for _ in range(3))
            softmax = [(3100, DESCRIPTOR, graph.virtual(scores.shape, wide)), (3101, DESCRIPTOR, graph.virtual(scores.shape, wide)), (3102, DESCRIPTOR, graph.memory(tstat)),
                       (3103, DESCRIPTOR, graph.memory(tmost)), (3104, DESCRIPTOR, graph.memory(tsums))]
            softmax += [(3105, DESCRIPTOR, graph.memory(scope.tensor(sink, wide)))] if sinks else []
            settings = [(2800 + at, DESCRIPTOR, graph.memory(tensor)) for at, tensor in enumerate((tq, tk, tv, to))]
            settings += [(2805, DESCRIPTOR, number_of(graph, it.scale)), (2814, DESCRIPTOR, graph.final(45, *softmax))]
            if drops:
                tkept = scope.tensor(scores * 0, wide, rng)
                numbers = [graph.memory(scope.tensor(np.full((1, 1, 1, 1), float(rng.integers(0, 2**30))), INT32)) for _ in range(2)]
                settings += [(2815, DESCRIPTOR, numbers[0]), (2816, DESCRIPTOR, numbers[1]), (2817, DESCRIPTOR, graph.memory(tkept)), (2818, DOUBLE_, 0.25)]
            graph.operations.append(graph.final(41, *settings))
            graph.run()
            if drops:
                kept = tkept.get()
                assert set(np.unique(kept)) <= {0.0, 1.0}
                chances = chances * kept / 0.75
            exact = np.einsum("bhij,bhje->bhie", chances, values)
            near(to.get(), exact, it.large * 2, of, it.t + it.d, f"attention {drops} {sinks}")
            for tensor, wanted in ((tmost, most), (tsums, sums), (tstat, most + np.log(sums))):
                near(tensor.get(), wanted, it.large * 4 * (1 + np.abs(wanted)), wide, it.t + it.d, "attention's statistics")
            if sinks:
                back = Graph(scope)

                def whole(sink):
                    most = np.maximum(scores.max(-1, keepdims=True), sink.real)
                    e = np.exp(scores - most)
                    return np.einsum("bhij,bhje->bhie", e / (e.sum(-1, keepdims=True) + np.exp(sink - most)), values)

                tds = scope.tensor(sink * 0, wide)
                exact_o = scope.tensor(exact, of, rng)
                tensors = (tq, tk, tv, exact_o, tstat, scope.tensor(it.do, of, rng), *(scope.tensor(values_ * 0, of, rng) for values_ in (it.q, it.k, it.v)))
                settings = [(name, DESCRIPTOR, back.memory(tensor)) for name, tensor in zip((2851, 2852, 2853, 2854, 2855, 2862, 2859, 2860, 2861), tensors)]
                settings += [(2856, DESCRIPTOR, number_of(back, it.scale)), (2863, DESCRIPTOR, back.memory(scope.tensor(sink, wide))), (2864, DESCRIPTOR, back.memory(tds))]
                back.operations.append(back.final(43, *settings))
                back.run()
                slack = it.large**2 * (1 + np.abs(it.do).max()) * it.b * it.s * (1 if of in (FLOAT, DOUBLE) else 2**14)
                near(tds.get(), derivative(whole, sink, it.do), slack + 0 * sink, wide, it.s + it.t, "sink's gradient")
                # The same softmax alone.
                alone = Graph(scope)
                tx, ty = scope.tensor(scores, wide, rng), scope.tensor(scores * 0, wide, rng)
                alone.operations.append(alone.final(45, (3100, DESCRIPTOR, alone.memory(tx)), (3101, DESCRIPTOR, alone.memory(ty)),
                                                    (3105, DESCRIPTOR, alone.memory(scope.tensor(sink, wide))), (3104, DESCRIPTOR, alone.memory(tsums))))
                alone.run()
                near(ty.get(), chances, 8 * (1 + np.abs(scores).max()), wide, it.t, "a softmax with a sink")
                near(tsums.get(), sums, 8 * (1 + np.abs(scores).max()) * sums, wide, it.t, "its sums")
        total += 1
    for face in library.faces:
        # A bit for each tile of 128 by 128.
        b, h, s, t, d = 1, 2, 200, 300, 4
        q, k, v = (drawn(rng, (b, h, count, d), FLOAT) for count in (s, t, t))
        bits = rng.integers(1, 8, (b, h, 2, 1))
        counts = np.repeat(np.repeat(np.unpackbits(bits.astype(np.uint8), axis=-1, bitorder="little")[..., :3], 128, -1), 128, -2)[:, :, :s, :t]
        scores = np.where(counts, np.einsum("bhid,bhjd->bhij", q, k), -np.inf)
        exact = np.einsum("bhij,bhjd->bhid", softmax_of(scores), v)
        with Scope(face) as scope:
            graph, to = Graph(scope), scope.tensor(q * 0, FLOAT, rng)
            tensors = [scope.tensor(values, FLOAT, rng) for values in (q, k, v)] + [to]
            mask = scope.array(bits.astype(np.uint8))
            uid, gm = graph.tensor(bits.shape, strides_of(bits.shape), 6)
            graph.given[uid] = mask.at.value
            graph.operations.append(graph.final(41, *[(2800 + at, DESCRIPTOR, graph.memory(tensor)) for at, tensor in enumerate(tensors)], (2806, DESCRIPTOR, gm)))
            graph.run()
            near(to.get(), exact, 64, FLOAT, t, "attention with a mask of tiles")
        total += 1
    return total


def ragged(library, rng):
    """Sequences that follow each other without gaps: attention and its gradients, and a copy into such rows."""
    for case in range(16):
        of, face = FLOATS[case % 4], library.drawn(rng)
        it = Attention(rng, of, lengths=True, groups=case % 2 > 0)
        wide, unit = DOUBLE if of == DOUBLE else FLOAT, 1 + case % 2 * 2
        o, statistics = it.run(it.q, it.k, it.v, wants_statistics=True)
        with Scope(face) as scope:
            graphs = Graph(scope), Graph(scope)

            class Rows:
                """Tokens, heads, depth."""

                def __init__(self, values, lengths):
                    self.values, self.lengths = values, lengths
                    b, h, s, d = self.sizes = values.shape
                    gap = -(-d * h // unit) * unit
                    # A row is so long that offsets are whole units.
                    self.row, starts = gap, np.concatenate([[0], np.cumsum(lengths)])
                    image = np.full((int(starts[-1]), gap), np.nan)
                    for at, length in enumerate(lengths):
                        image[starts[at]:starts[at] + length, :h * d] = values[at, :, :length].transpose(1, 0, 2).reshape(length, h * d)
                    self.starts = starts
                    dtype = {DOUBLE: np.float64, FLOAT: np.float32, HALF: np.float16, BFLOAT16: ml_dtypes.bfloat16}[of]
                    self.array = scope.array(image.astype(dtype))
                    self.offsets = scope.tensor((starts * gap // unit).reshape(-1, 1, 1, 1).astype(float), INT32)

                def into(self, graph):
                    b, h, s, d = self.sizes
                    uid, offsets = next(graph.uids), graph.memory(self.offsets)
                    graph.given[uid] = self.array.at.value
                    more = ((914, INT64, unit),) if unit != 1 else ()
                    return graph.final(TRAINS, (901, DATA_TYPE, of), (902, INT64, *self.sizes), (903, INT64, s * self.row, d, self.row, 1), (906, INT64, uid),
                                       (900, INT64, 4), (913, DESCRIPTOR, offsets), *more)

                def get(self):
                    b, h, s, d = self.sizes
                    image, values = self.array.get().astype(float), np.zeros(self.sizes)
                    assert np.isnan(image[:, h * d:]).all()
                    for at, length in enumerate(self.lengths):
                        rows = image[self.starts[at]:self.starts[at] + length, :h * d]
                        values[at, :, :length] = rows.reshape(length, h, d).transpose(1, 0, 2)
                    return values

            queries, keys = it.lens
            # Memory of no bytes is no memory.
            queries[0], keys[0] = max(queries[0], 1), max(keys[0], 1)
            o, statistics = it.run(it.q, it.k, it.v, wants_statistics=True)
            q, k, v, to = Rows(it.q, queries), Rows(it.k, keys), Rows(it.v, keys), Rows(o * 0, queries)
            tstat = scope.tensor(np.zeros(statistics.shape), wide)
            lengths = [scope.tensor(values.reshape(it.b, 1, 1, 1).astype(float), INT32) for values in it.lens]
            graph, back = graphs
            settings = [(2800 + at, DESCRIPTOR, rows.into(graph)) for at, rows in enumerate((q, k, v, to))]
            settings += [(2805, DESCRIPTOR, number_of(graph, it.scale)), (2804, DESCRIPTOR, graph.memory(tstat))]
            settings += [(name, DESCRIPTOR, graph.memory(tensor)) for name, tensor in zip((2809, 2810), lengths)]
            graph.operations.append(graph.final(41, *settings))
            graph.run()
            near(to.get(), o, it.large, of, it.t + it.d, "attention of ragged rows")
            d_o, dq, dk, dv = Rows(it.do, queries), Rows(it.q * 0, queries), Rows(it.k * 0, keys), Rows(it.v * 0, keys)
            settings = [(name, DESCRIPTOR, rows.into(back)) for name, rows in zip((2851, 2852, 2853, 2854, 2862, 2859, 2860, 2861), (q, k, v, to, d_o, dq, dk, dv))]
            settings += [(2855, DESCRIPTOR, back.memory(tstat)), (2856, DESCRIPTOR, number_of(back, it.scale))]
            settings += [(name, DESCRIPTOR, back.memory(tensor)) for name, tensor in zip((2857, 2858), lengths)]
            back.operations.append(back.final(43, *settings))
            back.run()
            slack = it.large**2 * (1 + np.abs(it.do).max()) * (1 if of in (FLOAT, DOUBLE) else 64)
            for rows, exact, what in zip((dq, dk, dv), it.gradients(), "qkv"):
                near(rows.get(), exact, slack * it.h, of, it.s + it.t, f"gradient of ragged rows {what}")
            # Heads, tokens, depth: heads lie apart.
            copy, (b, h, s, d) = Graph(scope), it.q.shape
            array, ty = scope.array(it.q), scope.tensor(it.q * 0, DOUBLE, rng)
            starts = np.arange(it.b + 1) * h * s * d
            uid, offsets = next(copy.uids), copy.memory(scope.tensor(starts.reshape(-1, 1, 1, 1).astype(float), INT32))
            copy.given[uid] = array.at.value
            gx = copy.final(TRAINS, (901, DATA_TYPE, DOUBLE), (902, INT64, b, h, s, d), (903, INT64, h * s * d, s * d, d, 1), (906, INT64, uid), (900, INT64, 8),
                            (913, DESCRIPTOR, offsets))
            copy.pointwise(21, gx, copy.memory(ty))
            copy.run()
            assert (ty.get() == it.q).all()
    return 48


def booleans(library, rng):
    """A boolean is a bit, and a byte in graphs that compute with each element alone, and where its type says so; constants are no part of a pack."""
    for case in range(12):
        face, sizes = library.drawn(rng), tuple(int(size) for size in rng.integers(2, 6, 4))
        x, limit = drawn(rng, sizes, FLOAT), 0.25
        with Scope(face) as scope:
            alone, is_byte = case % 2 == 0, case % 3 == 0
            graph = Graph(scope)
            gx = graph.memory(scope.tensor(x, FLOAT, rng))
            held = ctypes.c_float(limit)
            constant = graph.final(TRAINS, (901, DATA_TYPE, FLOAT), (902, INT64, 1, 1, 1, 1), (903, INT64, 1, 1, 1, 1), (906, INT64, next(graph.uids)), (900, INT64, 4),
                                   (908, 2, True), (910, POINTER, ctypes.addressof(held)))
            held.value = 99
            truths = x > limit
            bytes_ = truths.ravel().astype(np.uint8) if alone or is_byte else np.packbits(truths.ravel(), bitorder="little")
            array = scope.array(bytes_ * 0)
            uid, gy = graph.tensor(sizes, strides_of(sizes), BYTE if is_byte else TRUTH)
            graph.given[uid] = array.at.value
            graph.pointwise(302, gx, gy, constant)
            if not alone:
                tsum = scope.tensor(np.zeros((1, 1, 1, 1)), FLOAT)
                how = graph.final(21, (1600, 18, 0), (1601, DATA_TYPE, FLOAT))
                graph.operations.append(graph.final(22, (1610, DESCRIPTOR, gx), (1611, DESCRIPTOR, graph.memory(tsum)), (1612, DESCRIPTOR, how)))
            graph.run()
            assert (array.get() == bytes_).all(), (alone, is_byte)
            if not alone:
                near(tsum.get(), x.sum().reshape(1, 1, 1, 1), np.abs(x).sum(), FLOAT, x.size, "a sum beside")
    return 12


def complexes(library, rng):
    """Products of complex matrices, whose parts lie beside each other."""
    for case in range(12):
        face, (b, m, n, k) = library.drawn(rng), (int(size) for size in rng.integers(1, 20, 4))
        of, dtype, parts = ((20, np.complex64, FLOAT), (21, np.complex128, DOUBLE))[case % 2]
        values = lambda *sizes: (drawn(rng, sizes, parts) + 1j * drawn(rng, sizes, parts)).astype(dtype)
        a, b_ = values(b, m, k), values(int(rng.choice([1, b])), k, n)
        exact = a.astype(complex) @ b_.astype(complex)
        with Scope(face) as scope:
            graph = Graph(scope)

            def memory(values, order=(0, 1, 2)):
                array = scope.array(np.ascontiguousarray(values.transpose(order)))
                uid, it = graph.tensor(values.shape, strides_of(values.shape, order), of)
                graph.given[uid] = array.at.value
                return array, it

            (_, ga), (_, gb), (array, gc) = memory(a), memory(b_, (0, 2, 1)), memory(np.zeros(exact.shape, dtype))
            by = graph.final(18, (1500, DATA_TYPE, parts))
            graph.operations.append(graph.final(19, (1520, DESCRIPTOR, ga), (1521, DESCRIPTOR, gb), (1522, DESCRIPTOR, gc), (1523, DESCRIPTOR, by)))
            graph.run()
            magnitude = 2 * (np.abs(a) @ np.abs(b_)).astype(float)
            for part in (np.real, np.imag):
                near(part(array.get()).astype(float), part(exact), magnitude, parts, 2 * k, "complex product")
            operation, it = graph.final(13, (750, DESCRIPTOR, graph.final(0, (0, 14, 10), (1, DATA_TYPE, FLOAT))), (751, DESCRIPTOR, ga), (753, DESCRIPTOR, memory(a)[1])), graph.made(15)
            graph.set(it, 801, DESCRIPTOR, operation)
            face.refused("NOT_SUPPORTED", "cudnnBackendFinalize", it)
    return 24


def refusals(library, rng):
    """What does not fit, and what no engine has, is refused when the graph is finalized."""
    total = 0
    for face in library.faces:
        with Scope(face) as scope:
            graph = Graph(scope)
            zeros = lambda *sizes: graph.memory(scope.tensor(np.zeros(sizes), FLOAT))
            ints = lambda *sizes: graph.memory(scope.tensor(np.zeros(sizes), INT32))
            x, y = zeros(2, 3, 4, 32), zeros(2, 3, 4, 32)
            few, tiles = Packed(graph, np.zeros((2, 3, 4, 32)), E4M3), Packed(graph, np.zeros((2, 3, 4, 1)), E8M0)
            one, channels = zeros(1, 1, 1, 1), [zeros(1, 3, 1, 1) for _ in range(8)]
            q = [zeros(2, 4, 3, 5) for _ in range(4)]
            attention = [(2800 + at, DESCRIPTOR, it) for at, it in enumerate(q)]
            token, weight, output, starts = zeros(1, 6, 4), zeros(3, 4, 5), zeros(1, 6, 5), ints(3, 1, 1)
            group = ((2902, DESCRIPTOR, token), (2903, DESCRIPTOR, weight), (2905, DESCRIPTOR, output))
            bernoulli = graph.final(32, (2300, 29, 0), (2305, DOUBLE_, 1.5))
            normal = graph.final(32, (2300, 29, 2))
            wrong = [("BAD_PARAM", 46, (3200, DESCRIPTOR, x), (3201, DESCRIPTOR, y), (3202, INT64, 0, 1, 1, 3)),
                     ("BAD_PARAM", 46, (3200, DESCRIPTOR, x), (3201, DESCRIPTOR, y), (3202, INT64, 0, 2, 1, 3)),
                     ("BAD_PARAM", 36, (2500, DESCRIPTOR, x), (2501, DESCRIPTOR, few.it), (2502, DESCRIPTOR, tiles.it), (2504, WHOLE, 16)),
                     ("BAD_PARAM", 36, (2500, DESCRIPTOR, x), (2501, DESCRIPTOR, few.it), (2502, DESCRIPTOR, tiles.it)),
                     ("NOT_SUPPORTED", 36, (2500, DESCRIPTOR, x), (2501, DESCRIPTOR, y), (2502, DESCRIPTOR, tiles.it), (2504, WHOLE, 32)),
                     ("BAD_PARAM", 37, (2600, DESCRIPTOR, few.it), (2601, DESCRIPTOR, tiles.it), (2602, DESCRIPTOR, y), (2604, WHOLE, 5)),
                     ("NOT_SUPPORTED", 37, (2600, DESCRIPTOR, few.it), (2601, DESCRIPTOR, tiles.it), (2602, DESCRIPTOR, y), (2604, WHOLE, 32), (2605, 2, True)),
                     ("BAD_PARAM", 14, (772, DESCRIPTOR, x), (773, DESCRIPTOR, one), (774, DESCRIPTOR, one)),
                     ("BAD_PARAM", 20, (780, TRAINS, 0), (784, DESCRIPTOR, channels[0]), (792, DESCRIPTOR, channels[1]), (795, DESCRIPTOR, one)),
                     ("BAD_PARAM", 23, (1624, DESCRIPTOR, x), (1625, DESCRIPTOR, y)),
                     ("BAD_PARAM", 42, (2900, 30, 1), *group, (2904, DESCRIPTOR, starts)),
                     ("BAD_PARAM", 42, (2900, 30, 2), *group, (2904, DESCRIPTOR, starts), (2906, DESCRIPTOR, ints(1, 6, 1)), (2907, DESCRIPTOR, ints(1, 6, 1))),
                     ("BAD_PARAM", 42, (2900, 30, 0), *group, (2904, DESCRIPTOR, ints(4, 1, 1))),
                     ("NOT_SUPPORTED", 42, (2900, 30, 7), *group, (2904, DESCRIPTOR, starts)),
                     ("BAD_PARAM", 33, (2312, DESCRIPTOR, bernoulli), (2310, DESCRIPTOR, y)),
                     ("NOT_SUPPORTED", 33, (2312, DESCRIPTOR, normal), (2310, DESCRIPTOR, y)),
                     ("BAD_PARAM", 41, *attention, (2818, DOUBLE_, 1.0)),
                     ("BAD_PARAM", 41, *attention, (2815, DESCRIPTOR, one)),
                     ("BAD_PARAM", 41, *attention, (2806, DESCRIPTOR, one)),
                     ("BAD_PARAM", 41, *attention, (2822, DESCRIPTOR, one)),
                     ("BAD_PARAM", 35, (1950, DESCRIPTOR, x), (1951, DESCRIPTOR, y), (1952, DESCRIPTOR, one), (1953, DESCRIPTOR, one))]
            for wanted, kind, *attributes in wrong:
                operation, it = graph.final(kind, *attributes), graph.made(15)
                graph.set(it, 801, DESCRIPTOR, operation)
                face.refused(wanted, "cudnnBackendFinalize", it)
                total += 1
            # Tiles that are not whole, rows whose heads lie apart, types that nothing has a form for.
            offsets = ints(3, 1, 1, 1)
            for attributes in ((901, DATA_TYPE, E8M0), (902, INT64, 1, 100, 4), (903, INT64, 400, 4, 1), (909, 20, 3)), \
                              ((901, DATA_TYPE, FLOAT), (902, INT64, 2, 3, 4, 5), (903, INT64, 60, 20, 4, 1), (913, DESCRIPTOR, offsets)), \
                              ((901, DATA_TYPE, 23), (902, INT64, 2, 3), (903, INT64, 3, 1)):
                it = graph.made(TRAINS)
                for attribute in (*attributes, (906, INT64, 7), (900, INT64, 4)):
                    graph.set(it, *attribute)
                face.refused("NOT_SUPPORTED", "cudnnBackendFinalize", it)
                total += 1
    return total
