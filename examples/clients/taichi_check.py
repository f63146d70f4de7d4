"""Taichi as it comes from PyPI (its own LLVM writes the PTX), with results compared to NumPy's and, for whole simulations, to
what Taichi's CPU backend computes from the same source."""

import numpy as np
import taichi as ti

FAILED = []
N = 10_000


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype or not np.array_equal(got, expected):
        FAILED.append(f"{name}: {got.ravel()[:4]}…, expected {expected.ravel()[:4]}…")


def close(name, got, expected, bound):
    worst = np.max(np.abs(got - expected))
    if got.shape != expected.shape or not worst <= bound:
        FAILED.append(f"{name}: off by {worst}")


def begin(arch=ti.cuda):
    ti.reset()
    ti.init(arch=arch, random_seed=3, log_level=ti.WARN, offline_cache=False, fast_math=False)
    # Without a driver it falls back to the CPU with a warning.
    assert ti.lang.impl.current_cfg().arch == arch, "CUDA is not used"


def fields():
    begin()
    x = ti.field(ti.i32, shape=N)
    total = ti.field(ti.i64, shape=())

    @ti.kernel
    def fill():
        for i in x:
            x[i] = i * 3 % 1000
            total[None] += x[i]

    fill()
    expected = (np.arange(N, dtype=np.int64) * 3 % 1000).astype(np.int32)
    same("field", x.to_numpy(), expected)
    same("atomic sum", np.int64(total[None]), np.int64(expected.sum()))


def arrays():
    begin()

    @ti.kernel
    def add(a: ti.types.ndarray(), b: ti.types.ndarray(), out: ti.types.ndarray()):
        for i, j in out:
            out[i, j] = a[i, j] + b[j, i]

    random = np.random.default_rng(1)
    a, b = random.standard_normal((70, 50)), random.standard_normal((50, 70))
    out = np.zeros((70, 50))
    # The host's arrays go there and back.
    add(a, b, out)
    same("arrays of the host", out, a + b.T)
    device = [ti.ndarray(ti.f64, shape) for shape in ((70, 50), (50, 70), (70, 50))]
    device[0].from_numpy(a)
    device[1].from_numpy(b)
    add(*device)
    same("arrays of the device", device[2].to_numpy(), a + b.T)


def vectors():
    begin()
    m = ti.Matrix.field(3, 3, ti.f64, shape=500)
    v = ti.Vector.field(3, ti.f64, shape=500)

    @ti.kernel
    def turn():
        for i in v:
            v[i] = m[i] @ v[i] + m[i].transpose() @ v[i]

    random = np.random.default_rng(2)
    ms, vs = random.integers(-9, 9, (500, 3, 3)), random.integers(-9, 9, (500, 3))
    m.from_numpy(ms.astype(np.float64))
    v.from_numpy(vs.astype(np.float64))
    turn()
    same("matrices", v.to_numpy(), (np.einsum("nij,nj->ni", ms, vs) + np.einsum("nji,nj->ni", ms, vs)).astype(float))


def sparse():
    """Memory that kernels themselves ask for, a place at a time."""
    begin()
    x = ti.field(ti.i32)
    ti.root.pointer(ti.i, 64).bitmasked(ti.i, 64).place(x)
    found = ti.field(ti.i32, shape=())

    @ti.kernel
    def activate():
        for i in range(64):
            x[i * i] = i + 1

    @ti.kernel
    def visit():
        for i in x:
            found[None] += x[i]

    activate()
    visit()
    same("sparse", np.int32(found[None]), np.int32(64 * 65 // 2))


def derivatives():
    begin()
    x = ti.field(ti.f64, shape=64, needs_grad=True)
    loss = ti.field(ti.f64, shape=(), needs_grad=True)

    @ti.kernel
    def compute():
        for i in x:
            loss[None] += x[i] ** 3 + ti.sin(x[i])

    values = np.linspace(-2, 2, 64)
    x.from_numpy(values)
    with ti.ad.Tape(loss):
        compute()
    close("derivative", x.grad.to_numpy(), 3 * values**2 + np.cos(values), 1e-12)


def shared_memory():
    begin()
    block = 128
    x, out = ti.field(ti.i32, shape=N // block * block), ti.field(ti.i32, shape=N // block)

    @ti.kernel
    def sums():
        ti.loop_config(block_dim=128)
        for i in x:
            pad = ti.simt.block.SharedArray((128,), ti.i32)
            thread = i % 128
            pad[thread] = x[i]
            ti.simt.block.sync()
            if thread == 0:
                total = 0
                for j in range(128):
                    total += pad[j]
                out[i // 128] = total
            ti.simt.block.sync()

    values = np.random.default_rng(4).integers(0, 1000, x.shape[0]).astype(np.int32)
    x.from_numpy(values)
    sums()
    same("shared memory", out.to_numpy(), values.reshape(-1, block).sum(1).astype(np.int32))


def mpm(steps):
    """The step of Taichi's own example mpm88.py: particles to a grid with atomics, and back."""
    n_particles, n_grid, dt = 1024, 32, 2e-4
    x, v = ti.Vector.field(2, ti.f64, n_particles), ti.Vector.field(2, ti.f64, n_particles)
    c, j = ti.Matrix.field(2, 2, ti.f64, n_particles), ti.field(ti.f64, n_particles)
    grid_v, grid_m = ti.Vector.field(2, ti.f64, (n_grid, n_grid)), ti.field(ti.f64, (n_grid, n_grid))
    dx = 1 / n_grid
    mass = volume = (dx * 0.5) ** 2

    @ti.kernel
    def step():
        for i, k in grid_m:
            grid_v[i, k] = [0, 0]
            grid_m[i, k] = 0
        for p in x:
            base = int(x[p] / dx - 0.5)
            fx = x[p] / dx - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -dt * 4 * 400.0 * volume * (j[p] - 1) / dx**2
            affine = ti.Matrix([[stress, 0], [0, stress]]) + mass * c[p]
            for i, k in ti.static(ti.ndrange(3, 3)):
                distance = (ti.Vector([i, k]) - fx) * dx
                weight = w[i].x * w[k].y
                grid_v[base + ti.Vector([i, k])] += weight * (mass * v[p] + affine @ distance)
                grid_m[base + ti.Vector([i, k])] += weight * mass
        for i, k in grid_m:
            if grid_m[i, k] > 0:
                grid_v[i, k] /= grid_m[i, k]
            grid_v[i, k].y -= dt * 9.8
            if i < 3 and grid_v[i, k].x < 0 or i > n_grid - 3 and grid_v[i, k].x > 0:
                grid_v[i, k].x = 0
            if k < 3 and grid_v[i, k].y < 0 or k > n_grid - 3 and grid_v[i, k].y > 0:
                grid_v[i, k].y = 0
        for p in x:
            base = int(x[p] / dx - 0.5)
            fx = x[p] / dx - base
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            new_v, new_c = ti.Vector.zero(ti.f64, 2), ti.Matrix.zero(ti.f64, 2, 2)
            for i, k in ti.static(ti.ndrange(3, 3)):
                distance = (ti.Vector([i, k]) - fx) * dx
                g = grid_v[base + ti.Vector([i, k])]
                new_v += w[i].x * w[k].y * g
                new_c += 4 * w[i].x * w[k].y * g.outer_product(distance) / dx**2
            v[p], c[p] = new_v, new_c
            x[p] += dt * v[p]
            j[p] *= 1 + dt * c[p].trace()

    at = np.random.default_rng(5).random((n_particles, 2)) * 0.4 + 0.2
    x.from_numpy(at)
    v.from_numpy(np.tile([0.0, -1.0], (n_particles, 1)))
    j.fill(1)
    for _ in range(steps):
        step()
    return x.to_numpy()


def simulation():
    results = []
    for arch in (ti.cuda, ti.cpu):
        begin(arch)
        results.append(mpm(50))
    # Atomics add in any order.
    close("mpm", *results, 1e-9)


for check in (fields, arrays, vectors, sparse, derivatives, shared_memory, simulation):
    before = len(FAILED)
    try:
        check()
    except Exception as error:
        FAILED.append(f"{check.__name__}: {type(error).__name__}: {error}")
    print(check.__name__, "ok" if len(FAILED) == before else "FAILED")
for line in FAILED:
    print("FAILED:", line)
print("FAILED" if FAILED else "PASSED")
raise SystemExit(1 if FAILED else 0)
