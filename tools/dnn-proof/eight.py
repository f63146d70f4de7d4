"""The graph API's attention of 8-bit floats, with a factor for each tensor or for each block; beside the definition in f64: numbers are
multiplied by their factors, chances are rounded to the queries' type behind theirs, and the largest of what is rounded is told."""

import numpy as np

from experts import E4M3, E5M2, E8M0, Packed, exactly, spread
from graphs import DESCRIPTOR, Graph
from library import BFLOAT16, FLOAT, HALF, INT32, Scope, near
from networks import Attention, number_of

MOST = {E4M3: 448.0, E5M2: 57344.0}
# Half of the distance between neighbours, for numbers of that size and for the least.
ROUNDED = {E4M3: (2.0**-4, 2.0**-10), E5M2: (2.0**-3, 2.0**-17)}


def number_in_memory(graph, value=0.0):
    tensor = graph.scope.tensor(np.full((1, 1, 1, 1), value), FLOAT)
    return tensor, graph.memory(tensor)


def drawn_eight(rng, sizes, of):
    return exactly(rng.standard_normal(sizes) * 4, of)


def whole(library, rng):
    """A factor for each tensor."""
    for case in range(24):
        face, kinds = library.drawn(rng), [(E4M3, E5M2)[int(at)] for at in rng.integers(0, 2, 3)]
        to_kind = (FLOAT, HALF, BFLOAT16, kinds[0])[case % 4]
        it = Attention(rng, FLOAT, lengths=case % 3 == 0, groups=case % 2 > 0)
        values = [drawn_eight(rng, values.shape, of) for values, of in zip((it.q, it.k, it.v), kinds)]
        of_q, of_k, of_v, of_s, scale_o = (float(np.float32(2.0 ** rng.uniform(-3, 1))) for _ in range(5))
        scale_s = float(np.float32(rng.uniform(20, MOST[kinds[0]] / 2)))
        # About what takes the chances' factor off again, so that results are of 16 bits.
        of_s = float(np.float32(of_s / scale_s))
        it.q, it.k, it.v = values[0] * of_q, values[1] * of_k, values[2]
        # The chances themselves, as the result for values that are one for a key and 0 for all others.
        eye = np.broadcast_to(np.eye(it.t), (it.b, it.h, it.t, it.t))
        chances = it.run(it.q, it.k, eye)
        v = np.repeat(values[2], it.h // it.v_heads, 1)
        result = lambda chances: np.einsum("bhij,bhje->bhie", chances, v) * of_s * of_v
        low, middle, high = (exactly(chances * scale_s * (1 + step), kinds[0]) for step in (-1e-5, 0, 1e-5))
        o, slack = result(middle), np.einsum("bhij,bhje->bhie", high - low, np.abs(v)) * of_s * of_v
        with Scope(face) as scope:
            graph = Graph(scope)
            tensors = [Packed(graph, values_, of) for values_, of in zip(values, kinds)]
            if to_kind in ROUNDED:
                to = Packed(graph, o * 0, to_kind)
                to_it = to.it
            else:
                to = scope.tensor(o * 0, to_kind, rng)
                to_it = graph.memory(to)
            (largest_s, at_s), (largest_o, at_o) = number_in_memory(graph), number_in_memory(graph)
            factors = [number_in_memory(graph, value)[1] for value in (of_q, of_k, of_v, of_s, scale_s, scale_o)]
            settings = [(2800 + at, DESCRIPTOR, tensor.it) for at, tensor in enumerate(tensors)] + [(2803, DESCRIPTOR, to_it)]
            settings += [(2805, DESCRIPTOR, number_of(graph, it.scale)), (2829, DESCRIPTOR, at_o)]
            settings += [(2822 + at, DESCRIPTOR, factor) for at, factor in enumerate(factors)]
            settings += [(2828, DESCRIPTOR, at_s)] if case % 5 else []
            if it.lens is not None:
                lengths = [scope.tensor(lens.reshape(it.b, 1, 1, 1).astype(float), INT32) for lens in it.lens]
                settings += [(name, DESCRIPTOR, graph.memory(tensor)) for name, tensor in zip((2809, 2810), lengths)]
            graph.operations.append(graph.final(41, *settings))
            graph.run()
            large = (np.abs(v).max() + 1) * np.abs(scale_s * of_s * of_v) * 8
            near(largest_s.get(), np.full((1, 1, 1, 1), chances.max() if case % 5 else 0), it.large, FLOAT, it.d, "the largest chance")
            wide = slack.max() + 1e-5 * large
            assert abs(largest_o.get().item() - np.abs(o).max()) <= wide, "the largest result"
            found = to.get()
            exact = o * scale_o
            nearest = np.clip(found, exact - slack * scale_o, exact + slack * scale_o)
            if to_kind in ROUNDED:
                # What is larger than the largest becomes that.
                nearest = np.clip(nearest, -MOST[to_kind], MOST[to_kind])
                relative, least = ROUNDED[to_kind]
                far = np.abs(found - nearest) > 1.01 * relative * np.abs(nearest) + least + 1e-5 * large * scale_o
                assert not far.any(), (found[far], nearest[far])
            else:
                near(found, nearest, large * scale_o * 4, to_kind, it.t, "attention in 8 bits")
    return 24


def blocks(library, rng):
    """A factor for each 32 elements of a query, of a key and of a value's sequence, as MXFP8 has them; in tiles too."""
    for case in range(12):
        face, kinds = library.drawn(rng), [(E4M3, E5M2)[int(at)] for at in rng.integers(0, 2, 3)]
        is_tiled = case % 3 == 2
        it = Attention(rng, FLOAT, groups=case % 2 > 0)
        it.d, it.t = 32 * int(rng.integers(1, 5)), 32 * int(rng.integers(1, 3))
        shapes = [(it.b, it.h, it.s, it.d), (it.b, it.k_heads, it.t, it.d), (it.b, it.v_heads, it.t, it.e)]
        it.scale = float(np.float32(0.2 / np.sqrt(it.d)))
        values = [drawn_eight(rng, sizes, of) for sizes, of in zip(shapes, kinds)]
        blocks_ = [(1, 1, 1, 32), (1, 1, 1, 32), (1, 1, 32, 1)]
        scales = [2.0 ** rng.integers(-3, 2, [size // block for size, block in zip(sizes, of)]) for sizes, of in zip(shapes, blocks_)]
        it.q, it.k, it.v = (values_ * spread(scale, sizes, of) for values_, scale, sizes, of in zip(values, scales, shapes, blocks_))
        o, statistics = it.run(it.q, it.k, it.v, wants_statistics=True)
        with Scope(face) as scope:
            graph = Graph(scope)
            tensors = [Packed(graph, values_, of) for values_, of in zip(values, kinds)]
            orders = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 3, 2)]
            held = []
            for scale, order in zip(scales, orders):
                if is_tiled:
                    # Whole tiles of 128 rows and 4 columns; a value's rows are those of its depth.
                    rows, columns = order[2:]
                    sizes = list(scale.shape)
                    sizes[rows], sizes[columns] = -(-sizes[rows] // 128) * 128, -(-sizes[columns] // 4) * 4
                    padded = np.full(sizes, 0.25)
                    padded[tuple(slice(size) for size in scale.shape)] = scale
                    scale = padded
                held.append(Packed(graph, scale, E8M0, order, tiles=is_tiled))
            to, tstat = scope.tensor(o * 0, FLOAT, rng), scope.tensor(np.zeros(statistics.shape), FLOAT)
            largest, at_o = number_in_memory(graph)
            settings = [(2800 + at, DESCRIPTOR, tensor.it) for at, tensor in enumerate(tensors)]
            settings += [(2803, DESCRIPTOR, graph.memory(to)), (2804, DESCRIPTOR, graph.memory(tstat)), (2805, DESCRIPTOR, number_of(graph, it.scale))]
            settings += [(2822 + at, DESCRIPTOR, tensor.it) for at, tensor in enumerate(held)]
            settings += [(2829, DESCRIPTOR, at_o)] if case % 4 else []
            graph.operations.append(graph.final(41, *settings))
            graph.run()
            large = it.large * it.scale * 4 + np.abs(it.v).max()
            near(to.get(), o, large * (1 + np.abs(it.v).max()), FLOAT, it.t + it.d, "attention of blocks")
            near(tstat.get(), statistics, large, FLOAT, it.t + it.d, "its statistics")
            if case % 4:
                near(largest.get(), np.full((1, 1, 1, 1), np.abs(o).max()), large * (1 + np.abs(it.v).max()), FLOAT, it.t + it.d, "its largest result")
    return 12


def refusals(library, rng):
    """What lacks a factor, or has one that its type does not take, is refused when the graph is finalized."""
    total = 0
    for face in library.faces:
        with Scope(face) as scope:
            graph = Graph(scope)
            sizes = (2, 4, 64, 64)
            eight = [(2800 + at, DESCRIPTOR, Packed(graph, np.zeros(sizes), E4M3).it) for at in range(4)]
            floats = [(2800 + at, DESCRIPTOR, graph.memory(scope.tensor(np.zeros(sizes), FLOAT))) for at in range(4)]
            one = lambda: number_in_memory(graph)[1]
            factors = [(2822 + at, DESCRIPTOR, one()) for at in range(6)]
            largest = (2829, DESCRIPTOR, one())
            scale = lambda *sizes: Packed(graph, np.ones(sizes), E8M0).it
            of_blocks = [(2822, DESCRIPTOR, scale(2, 4, 64, 2)), (2823, DESCRIPTOR, scale(2, 4, 64, 2)), (2824, DESCRIPTOR, scale(2, 4, 2, 64))]
            wide = (2822, DESCRIPTOR, graph.memory(scope.tensor(np.zeros((1, 4, 1, 1)), FLOAT)))
            wrong = [eight, [*eight, *factors], [*eight, *factors[:3], largest], [*floats, *factors, largest], [*floats, largest],
                     [*floats[:1], *eight[1:], *factors, largest], [*eight, wide, *factors[1:], largest],
                     [*eight, *factors, (2829, DESCRIPTOR, graph.memory(scope.tensor(np.zeros((1, 4, 1, 1)), FLOAT)))],
                     [*eight, *of_blocks, (2828, DESCRIPTOR, one())], [*eight, *of_blocks[:2], (2824, DESCRIPTOR, scale(2, 4, 64, 2))],
                     [*eight, *of_blocks[:2], (2824, DESCRIPTOR, one())]]
            for attributes in wrong:
                operation, it = graph.final(41, *attributes), graph.made(15)
                graph.set(it, 801, DESCRIPTOR, operation)
                face.refused("BAD_PARAM", "cudnnBackendFinalize", it)
                total += 1
    return total
