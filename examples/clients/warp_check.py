"""Warp as it comes from PyPI (the NVRTC inside its library compiles the kernels), with results held against those of its own CPU device,
to the bit where only integers or single roundings are asked for, and against NumPy's."""

import numpy as np
import warp as wp
import warp.optim.linear
import warp.sparse
import warp.utils

from beside import FAILED, compare, run

wp.config.quiet = True
# Where a kernel is not differentiated, NVRTC has half as much to do.
wp.config.enable_backward = False
wp.init()
# Without a driver there is only the CPU.
CUDA = wp.get_device("cuda:0")
BOTH = (CUDA, wp.get_device("cpu"))
SINGLE, N = 2e-6, 5000
RANDOM = np.random.default_rng(7)


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype or got.tobytes() != expected.tobytes():
        FAILED.append(f"{name}: {got.ravel()[:4]}…, expected {expected.ravel()[:4]}…")


def on_both(what):
    """What a function computes on the CUDA device, and on the CPU."""
    found = []
    for device in BOTH:
        with wp.ScopedDevice(device):
            found.append(what())
    return found


@wp.struct
class Body:
    at: wp.vec3
    turn: wp.quat
    inertia: wp.mat33
    count: wp.array(dtype=int)


@wp.kernel
def move(bodies: wp.array(dtype=Body), out: wp.array(dtype=wp.vec3), times: float):
    i = wp.tid()
    body = bodies[i]
    body.at = wp.quat_rotate(body.turn, body.inertia * body.at) * times
    body.count[i] = body.count[i] + i
    bodies[i] = body
    out[i] = body.at


def structs():
    at = RANDOM.standard_normal((50, 3))
    turn = RANDOM.standard_normal((50, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    inertia = RANDOM.standard_normal((50, 3, 3))

    def moved():
        count, bodies = wp.array(np.arange(50), dtype=int), []
        for i in range(50):
            body = Body()
            body.at, body.turn, body.inertia, body.count = wp.vec3(*at[i]), wp.quat(*turn[i]), wp.mat33(*inertia[i].ravel()), count
            bodies.append(body)
        bodies = wp.array(bodies, dtype=Body)
        out = wp.zeros(50, dtype=wp.vec3)
        for _ in range(2):
            wp.launch(move, dim=50, inputs=[bodies, out, 0.5])
        return out.numpy(), count.numpy()

    (out, count), (expected, _) = on_both(moved)
    compare("structs", out, expected, SINGLE)
    same("an array in a struct", count, np.arange(50, dtype=np.int32) * 3)


@wp.kernel
def tally(values: wp.array(dtype=int), bins: wp.array(dtype=int), ends: wp.array(dtype=int), total: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(bins, values[i] % 17, values[i])
    wp.atomic_min(ends, 0, values[i])
    wp.atomic_max(ends, 1, values[i])
    wp.atomic_xor(ends, 2, values[i])
    wp.atomic_add(total, 0, wp.float64(values[i]))
    # As many swaps as there are threads, each with what the one before has left.
    before = ends[3]
    while wp.atomic_cas(ends, 3, before, before + values[i]) != before:
        before = wp.atomic_add(ends, 3, 0)


def atomics():
    values = RANDOM.integers(1, 10_000, N).astype(np.int32)
    with wp.ScopedDevice(CUDA):
        bins, ends, total = wp.zeros(17, dtype=int), wp.array([10**6, 0, 0, 0], dtype=int), wp.zeros(1, dtype=wp.float64)
        wp.launch(tally, dim=N, inputs=[wp.array(values, dtype=int), bins, ends, total])
        expected = np.array([values[values % 17 == i].sum() for i in range(17)])
        same("bins", bins.numpy(), expected.astype(np.int32))
        same("ends", ends.numpy(), np.array([values.min(), values.max(), np.bitwise_xor.reduce(values), values.sum()], np.int32))
        same("a sum of doubles", total.numpy(), np.array([values.sum()], float))


TILE = wp.constant(16)


# A module is compiled as a whole, once more for every size of a block.

@wp.kernel(module="unique")
def multiply(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=float)
    for k in range(a.shape[1] // TILE):
        left = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, k * TILE))
        right = wp.tile_load(b, shape=(TILE, TILE), offset=(k * TILE, j * TILE))
        wp.tile_matmul(left, right, total)
    wp.tile_store(c, total, offset=(i * TILE, j * TILE))


@wp.kernel(module="unique")
def order(rows: wp.array2d(dtype=float), places: wp.array2d(dtype=int), sums: wp.array(dtype=float), mapped: wp.array2d(dtype=float)):
    i = wp.tid()
    row = wp.tile_load(rows[i], shape=256, storage="shared")
    index = wp.tile_arange(256, dtype=int, storage="shared")
    wp.tile_store(mapped[i], wp.tile_map(wp.sqrt, wp.tile_map(wp.abs, row)))
    wp.tile_atomic_add(sums, wp.tile_sum(row), offset=i)
    wp.tile_sort(row, index)
    wp.tile_store(rows[i], row)
    wp.tile_store(places[i], index)


@wp.kernel(module="unique")
def solve(a: wp.array2d(dtype=wp.float64), b: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64)):
    factor = wp.tile_cholesky(wp.tile_load(a, shape=(TILE, TILE)))
    wp.tile_store(x, wp.tile_cholesky_solve(factor, wp.tile_load(b, shape=TILE)))


def tiles():
    a, b = RANDOM.standard_normal((64, 48)).astype(np.float32), RANDOM.standard_normal((48, 80)).astype(np.float32)
    rows = RANDOM.standard_normal((6, 256)).astype(np.float32)
    root = RANDOM.standard_normal((16, 16))
    square, right = root @ root.T + 16 * np.eye(16), RANDOM.standard_normal(16)
    with wp.ScopedDevice(CUDA):
        c = wp.zeros((64, 80), dtype=float)
        wp.launch_tiled(multiply, dim=(4, 5), inputs=[wp.array(a), wp.array(b), c], block_dim=64)
        compare("tile_matmul", c.numpy(), a @ b, SINGLE)
        sorted_rows, places = wp.array(rows), wp.zeros((6, 256), dtype=int)
        sums, mapped = wp.zeros(6, dtype=float), wp.zeros((6, 256), dtype=float)
        wp.launch_tiled(order, dim=[6], inputs=[sorted_rows, places, sums, mapped], block_dim=128)
        same("tile_sort", sorted_rows.numpy(), np.sort(rows))
        same("tile_sort, places", places.numpy(), np.argsort(rows).astype(np.int32))
        compare("tile_sum", sums.numpy(), rows.sum(1), 1e-5)
        same("tile_map", mapped.numpy(), np.sqrt(np.abs(rows)))
        x = wp.zeros(16, dtype=wp.float64)
        wp.launch_tiled(solve, dim=[1], inputs=[wp.array(square), wp.array(right), x], block_dim=64)
        compare("tile_cholesky", x.numpy(), np.linalg.solve(square, right), 1e-12)


@wp.kernel
def neighbours(grid: wp.uint64, points: wp.array(dtype=wp.vec3), radius: float, count: wp.array(dtype=int), marks: wp.array(dtype=int)):
    i = wp.tid()
    query = wp.hash_grid_query(grid, points[i], radius)
    other = int(0)
    while wp.hash_grid_query_next(query, other):
        if wp.length(points[i] - points[other]) <= radius:
            count[i] = count[i] + 1
            marks[i] = marks[i] ^ (other * 31)


def hash_grid():
    points = RANDOM.uniform(0, 5, (N, 3)).astype(np.float32)

    def found():
        grid, at = wp.HashGrid(16, 16, 16), wp.array(points, dtype=wp.vec3)
        grid.build(at, 0.4)
        count, marks = wp.zeros(N, dtype=int), wp.zeros(N, dtype=int)
        wp.launch(neighbours, dim=N, inputs=[grid.id, at, 0.4, count, marks])
        return count.numpy(), marks.numpy()

    (count, marks), (expected, its_marks) = on_both(found)
    same("hash grid", count, expected)
    same("hash grid, which", marks, its_marks)
    if count.mean() < 5:
        FAILED.append(f"hash_grid: {count.mean()} neighbours prove little")


@wp.kernel
def overlaps(bvh: wp.uint64, low: wp.array(dtype=wp.vec3), high: wp.array(dtype=wp.vec3), count: wp.array(dtype=int), rays: wp.array(dtype=int)):
    i = wp.tid()
    query, other = wp.bvh_query_aabb(bvh, low[i], high[i]), int(0)
    while wp.bvh_query_next(query, other):
        count[i] = count[i] + 1 + other * 7
    query = wp.bvh_query_ray(bvh, low[i], wp.normalize(high[i] - low[i]))
    while wp.bvh_query_next(query, other):
        rays[i] = rays[i] + 1 + other * 7


def bvh():
    low = RANDOM.uniform(0, 10, (N, 3)).astype(np.float32)
    high = low + RANDOM.uniform(0.05, 0.6, (N, 3)).astype(np.float32)

    def found():
        at = wp.array(low, dtype=wp.vec3), wp.array(high, dtype=wp.vec3)
        tree = wp.Bvh(*at)
        count, rays = wp.zeros(N, dtype=int), wp.zeros(N, dtype=int)
        wp.launch(overlaps, dim=N, inputs=[tree.id, *at, count, rays])
        tree.refit()
        wp.launch(overlaps, dim=N, inputs=[tree.id, *at, count, rays])
        return count.numpy(), rays.numpy()

    (count, rays), (expected, its_rays) = on_both(found)
    inside = (low[:500, None] <= high[None]).all(2) & (high[:500, None] >= low[None]).all(2)
    same("boxes", count, expected)
    same("boxes beside NumPy's", count[:500], (2 * (inside * (1 + 7 * np.arange(N))).sum(1)).astype(np.int32))
    same("rays through boxes", rays, its_rays)


@wp.kernel
def nearest(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), near: wp.array(dtype=wp.vec3), sign: wp.array(dtype=float), hit: wp.array(dtype=float)):
    i = wp.tid()
    query = wp.mesh_query_point_sign_winding_number(mesh, points[i], 1.0e3)
    if query.result:
        near[i] = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
        sign[i] = query.sign
    ray = wp.mesh_query_ray(mesh, points[i], wp.normalize(wp.vec3(0.3, -0.2, 1.0)), 1.0e3)
    hit[i] = wp.where(ray.result, ray.t, -1.0)


def sphere(across):
    """A sphere of triangles, with a bump."""
    u, v = np.meshgrid(np.linspace(0, np.pi, across), np.linspace(0, 2 * np.pi, across, endpoint=False), indexing="ij")
    r = 1 + 0.1 * np.sin(3 * v) * np.sin(u)
    points = np.stack([r * np.sin(u) * np.cos(v), r * np.sin(u) * np.sin(v), r * np.cos(u)], 2).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(across - 1), np.arange(across), indexing="ij")
    here, right = i * across + j, i * across + (j + 1) % across
    faces = np.stack([here, here + across, right, right, here + across, right + across], 2).reshape(-1)
    return points.astype(np.float32), faces.astype(np.int32)


def mesh():
    vertices, faces = sphere(24)
    points = RANDOM.uniform(-1.6, 1.6, (N, 3)).astype(np.float32)

    def found():
        made = wp.Mesh(wp.array(vertices, dtype=wp.vec3), wp.array(faces, dtype=int), support_winding_number=True)
        at, near = wp.array(points, dtype=wp.vec3), wp.zeros(N, dtype=wp.vec3)
        sign, hit = wp.zeros(N, dtype=float), wp.zeros(N, dtype=float)
        wp.launch(nearest, dim=N, inputs=[made.id, at, near, sign, hit])
        return [it.numpy() for it in (near, sign, hit)]

    (near, sign, hit), (expected, its_sign, its_hit) = on_both(found)
    # Two faces may be equally near: what is compared is how far they are.
    compare("nearest points", np.linalg.norm(near - points, axis=1), np.linalg.norm(expected - points, axis=1), 1e-5)
    same("inside or not", sign, its_sign)
    same("whether rays hit", hit > 0, its_hit > 0)
    compare("where rays hit", hit, its_hit, 1e-5)


def sparse():
    rows, columns = RANDOM.integers(0, 60, 400), RANDOM.integers(0, 60, 400)
    blocks = RANDOM.standard_normal((400, 2, 2))
    vector = RANDOM.standard_normal(120)
    dense = np.zeros((60, 2, 60, 2))
    np.add.at(dense.transpose(0, 2, 1, 3), (rows, columns), blocks)
    dense = dense.reshape(120, 120)

    def unfold(matrix):
        out = np.zeros((60, 2, 60, 2))
        offsets, at = matrix.offsets.numpy(), matrix.columns.numpy()
        values = matrix.values.numpy()
        for i in range(60):
            for k in range(offsets[i], offsets[i + 1]):
                out[i, :, at[k]] += values[k]
        return out.reshape(120, 120)

    with wp.ScopedDevice(CUDA):
        made = wp.sparse.bsr_from_triplets(
            60, 60, wp.array(rows, dtype=int), wp.array(columns, dtype=int), wp.array(blocks, dtype=wp.float64)
        )
        compare("triplets", unfold(made), dense, 1e-14)
        compare("a product", unfold(wp.sparse.bsr_mm(made, made)), dense @ dense, 1e-14)
        compare("a transpose", unfold(wp.sparse.bsr_transposed(made)), dense.T, 1e-14)
        x, y = wp.array(vector, dtype=wp.float64), wp.zeros(120, dtype=wp.float64)
        wp.sparse.bsr_mv(made, x, y)
        compare("times a vector", y.numpy(), dense @ vector, 1e-14)
        # Symmetric and positive: conjugate gradients, whose loop is a graph's.
        diagonal = wp.sparse.bsr_diag(made.dtype(4.0, 0.0, 0.0, 4.0), rows_of_blocks=60)
        system = wp.sparse.bsr_mm(wp.sparse.bsr_transposed(made), made) + diagonal
        solution = wp.zeros(120, dtype=wp.float64)
        wp.optim.linear.cg(system, x, solution, tol=1e-12, maxiter=600, use_cuda_graph=True)
        compare("conjugate gradients", solution.numpy(), np.linalg.solve(dense.T @ dense + 4 * np.eye(120), vector), 1e-8)


@wp.kernel(enable_backward=True)
def springs(at: wp.array(dtype=wp.vec3d), rest: wp.float64, loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    if i > 0:
        length = wp.length(at[i] - at[i - 1])
        wp.atomic_add(loss, 0, wp.float64(0.5) * (length - rest) * (length - rest) + wp.sin(at[i][0]))


@wp.kernel(enable_backward=True)
def step(at: wp.array(dtype=wp.vec3d), out: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    out[i] = at[i] * wp.float64(1.1) + wp.cross(at[i], wp.vec3d(wp.float64(0.1), wp.float64(0.2), wp.float64(-0.3)))


def autodiff():
    points = RANDOM.standard_normal((200, 3))

    def found():
        at = [wp.array(points, dtype=wp.vec3d, requires_grad=True)]
        loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(3):
                at.append(wp.zeros_like(at[-1]))
                wp.launch(step, dim=200, inputs=at[-2:-1], outputs=at[-1:])
            wp.launch(springs, dim=200, inputs=[at[-1], wp.float64(0.7)], outputs=[loss])
        tape.backward(loss)
        return loss.numpy(), at[0].grad.numpy()

    (loss, gradient), (expected, its_gradient) = on_both(found)
    compare("a loss", loss, expected, 1e-13)
    compare("its gradient", gradient, its_gradient, 1e-13)


@wp.kernel
def count_down(left: wp.array(dtype=int), total: wp.array(dtype=int)):
    wp.atomic_add(total, 0, left[0])
    left[0] = left[0] - 1


@wp.kernel
def scale(values: wp.array(dtype=float), by: float):
    i = wp.tid()
    values[i] = values[i] * by + 1.0


def graphs():
    start = RANDOM.standard_normal(N).astype(np.float32)
    with wp.ScopedDevice(CUDA):
        values, kept = wp.array(start), wp.zeros(N, dtype=float)
        left, total = wp.array([10], dtype=int), wp.zeros(1, dtype=int)
        wp.load_module(device=CUDA)
        with wp.ScopedCapture() as capture:
            for _ in range(5):
                wp.launch(scale, dim=N, inputs=[values, 0.5])
            wp.copy(kept, values)
            left.fill_(10)
            wp.capture_while(left, lambda: wp.launch(count_down, dim=1, inputs=[left, total]))
        same("captured, not run", values.numpy(), start)
        for _ in range(3):
            wp.capture_launch(capture.graph)
        expected = start
        for _ in range(15):
            expected = expected * np.float32(0.5) + np.float32(1)
        same("a graph, three times", kept.numpy(), expected)
        same("a loop in a graph", total.numpy(), np.array([3 * 55], np.int32))


@wp.kernel
def look(image: wp.Texture2D, volume: wp.Texture3D, at: wp.array(dtype=wp.vec3), flat: wp.array(dtype=wp.vec4), deep: wp.array(dtype=float)):
    i = wp.tid()
    flat[i] = wp.texture_sample(image, wp.vec2f(at[i][0], at[i][1]), dtype=wp.vec4f)
    deep[i] = wp.texture_sample(volume, at[i], dtype=float)


def textures():
    image, volume = RANDOM.random((40, 56, 4)).astype(np.float32), RANDOM.random((12, 20, 28)).astype(np.float32)
    at = RANDOM.uniform(-0.4, 1.4, (N, 3)).astype(np.float32)
    for mode in (wp.TextureAddressMode.WRAP, wp.TextureAddressMode.CLAMP, wp.TextureAddressMode.MIRROR):
        for how in (wp.TextureFilterMode.CLOSEST, wp.TextureFilterMode.LINEAR):

            def found():
                made = [
                    wp.Texture2D(image, filter_mode=how, address_mode=mode),
                    wp.Texture3D(volume, filter_mode=how, address_mode=mode),
                ]
                flat, deep = wp.zeros(N, dtype=wp.vec4), wp.zeros(N, dtype=float)
                wp.launch(look, dim=N, inputs=[*made, wp.array(at, dtype=wp.vec3), flat, deep])
                return flat.numpy(), deep.numpy()

            (flat, deep), (expected, its_deep) = on_both(found)
            # A texture unit weighs by 256ths; Warp's CPU device by singles.
            bound = 0 if how == wp.TextureFilterMode.CLOSEST else 8e-3
            compare(f"2D, {mode}, {how}", flat, expected, bound)
            compare(f"3D, {mode}, {how}", deep, its_deep, bound)


@wp.kernel(module="unique")
def fall(volume: wp.uint64, at: wp.array(dtype=wp.vec3), out: wp.array(dtype=float), slope: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    inside, gradient = wp.volume_world_to_index(volume, at[i]), wp.vec3()
    out[i] = wp.volume_sample_grad_f(volume, inside, wp.Volume.LINEAR, gradient)
    slope[i] = gradient


def volumes():
    """NanoVDB: a tree of voxels, which Warp's own kernels build on the device."""
    values = RANDOM.random((20, 16, 24)).astype(np.float32)
    at = RANDOM.uniform(-1, 11, (N, 3)).astype(np.float32)
    tiles = np.unique(RANDOM.integers(-40, 40, (300, 3)) * 8, axis=0).astype(np.int32)

    def found():
        volume = wp.Volume.load_from_numpy(values, voxel_size=0.5, bg_value=0.25) if CUDA == wp.get_device() else None
        # `load_from_numpy` is of CUDA alone; the bytes of the tree go to the CPU.
        if volume is None:
            volume = wp.Volume(wp.array(trees[0], dtype=wp.uint8))
        else:
            trees.append(volume.array().numpy())
        out, slope = wp.zeros(N, dtype=float), wp.zeros(N, dtype=wp.vec3)
        wp.launch(fall, dim=N, inputs=[volume.id, wp.array(at, dtype=wp.vec3), out, slope])
        return out.numpy(), slope.numpy()

    trees = []
    (out, slope), (expected, its_slope) = on_both(found)
    compare("voxels", out, expected, SINGLE)
    compare("their slopes", slope, its_slope, 1e-5)
    with wp.ScopedDevice(CUDA):
        made = wp.Volume.allocate_by_tiles(wp.array(tiles), voxel_size=1.0, bg_value=0.0)
        same("tiles", np.unique(made.get_tiles().numpy(), axis=0), tiles)
        if made.get_voxel_count() != 512 * len(tiles):
            FAILED.append(f"volumes: {made.get_voxel_count()} voxels of {len(tiles)} tiles")


@wp.kernel
def draw(words: wp.array(dtype=wp.uint32), units: wp.array(dtype=float), normals: wp.array(dtype=float), hills: wp.array(dtype=float)):
    i = wp.tid()
    state = wp.rand_init(11, i)
    words[i] = wp.randu(state)
    units[i] = wp.randf(state, -2.0, 3.0)
    normals[i] = wp.randn(state)
    hills[i] = wp.noise(wp.rand_init(5), wp.vec3(float(i) * 0.01, units[i], normals[i]))


def random_numbers():
    def drawn():
        words = wp.zeros(N, dtype=wp.uint32)
        others = [wp.zeros(N, dtype=float) for _ in range(3)]
        wp.launch(draw, dim=N, inputs=[words, *others])
        return [it.numpy() for it in (words, *others)]

    (words, *others), (expected, *theirs) = on_both(drawn)
    same("words", words, expected)
    for name, got, wanted in zip(("units", "normals", "noise"), others, theirs):
        compare(name, got, wanted, 1e-5)


def utilities():
    """Sorts, sums and runs, which are CUB's in Warp's library."""
    keys, values = RANDOM.integers(-500, 500, N).astype(np.int32), np.arange(N, dtype=np.int32)
    with wp.ScopedDevice(CUDA):
        pair = [wp.array(np.concatenate([it, it * 0]), dtype=int) for it in (keys, values)]
        wp.utils.radix_sort_pairs(*pair, N)
        at = np.argsort(keys, kind="stable")
        same("sorted", pair[0].numpy()[:N], keys[at])
        same("in their order", pair[1].numpy()[:N], values[at])
        out = wp.zeros(N, dtype=int)
        wp.utils.array_scan(wp.array(keys), out, inclusive=False)
        same("sums so far", out.numpy(), (np.cumsum(keys) - keys).astype(np.int32))
        runs, lengths, count = wp.zeros(N, dtype=int), wp.zeros(N, dtype=int), wp.zeros(1, dtype=int)
        wp.utils.runlength_encode(wp.array(keys[at]), runs, lengths, run_count=count)
        wanted = np.unique(keys, return_counts=True)
        same("runs", runs.numpy()[: count.numpy()[0]], wanted[0])
        same("their lengths", lengths.numpy()[: count.numpy()[0]], wanted[1].astype(np.int32))
        singles = RANDOM.standard_normal(N)
        compare("a sum", np.float64(wp.utils.array_sum(wp.array(singles, dtype=wp.float64))), singles.sum(), 1e-12)


print(wp.__version__, CUDA.name)
run(structs, atomics, tiles, hash_grid, bvh, mesh, sparse, autodiff, graphs, textures, volumes, random_numbers, utilities)
