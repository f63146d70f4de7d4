"""The graph API's rotary positions: pairs of a row's last elements turned by the position's angles, alone, on the way back, and in front of
attention; beside the definition as products with matrices of rotation in f64."""

import numpy as np

from graphs import DESCRIPTOR, FLOAT_, INT64, Graph
from library import BFLOAT16, DOUBLE, FLOAT, FLOATS, HALF, STATUS, Scope, drawn, near
from networks import Attention, derivative, number_of


def turned(x, angles, width, factor):
    """Each element of the first half of the last `width` is turned with its like of the second half; all are multiplied."""
    positions, half = x.shape[2], width // 2
    cosines, sines = np.cos(angles[:positions, :half]), np.sin(angles[:positions, :half])
    matrices = np.stack([np.stack([cosines, -sines], -1), np.stack([sines, cosines], -1)], -2)
    before = x.shape[3] - width
    pairs = np.stack([x[..., before:before + half], x[..., before + half:]], -1)
    pairs = np.einsum("pjac,bhpjc->bhpja", matrices, pairs)
    return factor * np.concatenate([x[..., :before], pairs[..., 0], pairs[..., 1]], -1)


class Rotation:
    """Drawn angles, for more positions than there are; how many elements are turned and the factor are told, or left as they are."""

    def __init__(self, rng, x):
        self.depth = x.shape[3]
        self.width = 2 * int(rng.integers(1, self.depth // 2 + 1))
        self.angles = drawn(rng, (x.shape[2] + int(rng.integers(0, 3)), self.width), FLOAT, spread=3.0)
        self.factor = float(np.float32(rng.choice([1.0, rng.uniform(0.2, 2)])))
        self.is_told = self.width < self.depth or bool(rng.integers(0, 2))

    def run(self, x):
        return turned(x, self.angles, self.width, self.factor)

    def add(self, graph, x, y, backward=False):
        at = 3410 if backward else 3400
        rows = graph.scope.tensor(self.angles.reshape(len(self.angles), 1, 1, self.width), FLOAT)
        settings = [(at, DESCRIPTOR, x), (at + 1, DESCRIPTOR, y), (at + 2, DESCRIPTOR, graph.memory(rows))]
        settings += [(at + 3, FLOAT_, self.factor)] if self.factor != 1 else []
        # 0 is all, as cudnn-frontend writes it where nothing is told.
        settings += [(at + 4, INT64, self.width if self.width < self.depth else 0)] if self.is_told else []
        graph.operations.append(graph.final(50 if backward else 49, *settings))


def rotations(library, rng):
    for case in range(24):
        of, face = FLOATS[case % 4], library.drawn(rng)
        sizes = (*(int(size) for size in rng.integers(1, 5, 3)), 2 * int(rng.integers(1, 6)))
        x, dy = drawn(rng, sizes, of), drawn(rng, sizes, of)
        it = Rotation(rng, x)
        with Scope(face) as scope:
            for given, exact, is_back in ((x, it.run(x), False), (dy, derivative(it.run, x, dy), True)):
                graph, from_, to = Graph(scope), scope.tensor(given, of, rng), scope.tensor(x * 0, of, rng)
                it.add(graph, graph.memory(from_), graph.memory(to), is_back)
                graph.run()
                near(to.get(), exact, 2 * np.abs(given).max() * it.factor, of, 2, f"rotation {is_back} {it.width} of {it.depth}")
    return 48


def attention(library, rng):
    """Queries and keys are turned in front of attention, and kept; the factor may be the queries'."""
    for case in range(12):
        of, face = FLOATS[case % 4], library.drawn(rng)
        it = Attention(rng, of, groups=case % 2 > 0)
        it.d = 2 * it.d
        it.q, it.k = drawn(rng, (*it.q.shape[:3], it.d), of), drawn(rng, (*it.k.shape[:3], it.d), of)
        by = [Rotation(rng, it.q), Rotation(rng, it.k)]
        with Scope(face) as scope:
            graph = Graph(scope)
            tensors = [scope.tensor(values, of, rng) for values in (it.q, it.k, it.v)]
            kept = [scope.tensor(values * 0, of, rng) for values in (it.q, it.k)]
            inner = []
            for rotation, from_, to in zip(by, tensors, kept):
                inner.append(graph.memory(to))
                rotation.add(graph, graph.memory(from_), inner[-1])
            exact = [rotation.run(values) for rotation, values in zip(by, (it.q, it.k))]
            o = it.run(*exact, it.v)
            to = scope.tensor(o * 0, of, rng)
            graph.operations.append(graph.final(41, (2800, DESCRIPTOR, inner[0]), (2801, DESCRIPTOR, inner[1]), (2802, DESCRIPTOR, graph.memory(tensors[2])),
                                                (2803, DESCRIPTOR, graph.memory(to)), (2805, DESCRIPTOR, number_of(graph, it.scale))))
            graph.run()
            for tensor, exact_, rotation, values in zip(kept, exact, by, (it.q, it.k)):
                near(tensor.get(), exact_, 2 * np.abs(values).max() * rotation.factor, of, 2, "what is turned")
            # What is rounded in 16 bits is so before it is multiplied.
            large = it.large * 8 * by[0].factor * by[1].factor * (64 if of in (HALF, BFLOAT16) else 1) + it.large
            near(to.get(), o, large, of, it.t + it.d, "attention behind rotations")
    return 12


def refusals(library, rng):
    """What does not fit is refused when the graph is finalized, and so is what no public text defines."""
    total = 0
    for face in library.faces:
        with Scope(face) as scope:
            graph = Graph(scope)
            tensor = lambda *sizes: graph.memory(scope.tensor(np.zeros(sizes), FLOAT))
            x, y, angles = tensor(2, 3, 4, 6), tensor(2, 3, 4, 6), tensor(4, 1, 1, 6)
            operands = ((3400, DESCRIPTOR, x), (3401, DESCRIPTOR, y))
            wrong = [("BAD_PARAM", 49, *operands),
                     ("BAD_PARAM", 49, *operands, (3402, DESCRIPTOR, tensor(3, 1, 1, 6))),
                     ("BAD_PARAM", 49, *operands, (3402, DESCRIPTOR, tensor(4, 1, 2, 3))),
                     ("BAD_PARAM", 49, *operands, (3402, DESCRIPTOR, angles), (3404, INT64, 4)),
                     ("BAD_PARAM", 49, *operands, (3402, DESCRIPTOR, tensor(4, 1, 1, 3)), (3404, INT64, 3)),
                     ("BAD_PARAM", 49, *operands, (3402, DESCRIPTOR, tensor(4, 1, 1, 8)), (3404, INT64, 8)),
                     ("BAD_PARAM", 49, *operands, (3402, DESCRIPTOR, angles), (3404, INT64, -2)),
                     ("BAD_PARAM", 50, (3410, DESCRIPTOR, x), (3411, DESCRIPTOR, tensor(2, 3, 4, 5)), (3412, DESCRIPTOR, angles)),
                     ("BAD_PARAM", 50, (3410, DESCRIPTOR, tensor(2, 3, 4)), (3411, DESCRIPTOR, tensor(2, 3, 4)), (3412, DESCRIPTOR, angles))]
            for wanted, kind, *attributes in wrong:
                operation, it = graph.final(kind, *attributes), graph.made(15)
                graph.set(it, 801, DESCRIPTOR, operation)
                face.refused(wanted, "cudnnBackendFinalize", it)
                total += 1
            # Where a band lies in its storage is written nowhere.
            for kind, at in ((39, 2250), (40, 2270)):
                operation, it = graph.final(kind, (at, DESCRIPTOR, x), (at + 1, DESCRIPTOR, y), *((at + 2 + n, INT64, 1) for n in range(3))), graph.made(15)
                graph.set(it, 801, DESCRIPTOR, operation)
                status = face.status("cudnnBackendFinalize", it)
                assert status == {8: STATUS[8]["NOT_SUPPORTED"], 9: 3001}[face.major], status
                total += 1
    return total
