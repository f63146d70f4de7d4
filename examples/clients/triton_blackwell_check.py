"""Matrix products of Triton at compute capability 9.0, for which it writes `wgmma`, and at 10.0 and 10.3, for which it writes
`tcgen05`: tensor memory, descriptors of shared memory, tensor maps, mbarriers, warps with a role each. Results are compared to
NumPy's."""

import math
import sys

import numpy as np
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import blackwell
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory, mbarrier, tma
from triton.experimental.gluon.nvidia.blackwell import TensorDescriptor as GluonDescriptor
from triton.tools.tensor_descriptor import TensorDescriptor
from triton_arrays import Array, close, main, same, zeros

RANDOM = np.random.default_rng(1)


def decoded(exponents, fractions, bias, special):
    """What the codes of a small float with a sign are worth; `special` says of a code that it is no number."""
    values = []
    for code in range(1 << (exponents + fractions)):
        exponent, fraction = code >> fractions, code & ((1 << fractions) - 1)
        scaled = (fraction / 2**fractions + (exponent > 0)) * 2.0 ** (max(exponent, 1) - bias)
        values.append(np.nan if special(code) else scaled)
    return np.array(values + [-value for value in values])


E4M3 = decoded(4, 3, 7, lambda code: code == 0x7F)
E5M2 = decoded(5, 2, 15, lambda code: code >= 0x7C)
E2M1 = decoded(2, 1, 1, lambda code: False)


def encoded(values, table):
    """Codes of numbers that the type has."""
    order = np.argsort(np.where(np.isnan(table), np.inf, table), kind="stable")
    codes = order[np.searchsorted(table[order], values)]
    assert np.array_equal(table[codes], values)
    return codes.astype(np.uint8)


def bfloat16(values):
    """Of numbers that the type has."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def operand(values, kind):
    """A matrix of small integers in a type that has them all."""
    if kind == "bfloat16":
        return Array(bfloat16(values), kind)
    if kind == "float8_e4m3fn":
        return Array(encoded(values, E4M3), kind)
    if kind == "float8_e5m2":
        return Array(encoded(values, E5M2), kind)
    return Array(values.astype(kind))


KINDS = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2")


def integers(*shape):
    """Small: their products are exact in every type, and so are the sums."""
    return RANDOM.integers(-8, 9, shape)


@triton.jit
def product_kernel(
    a, b, c, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, HALF: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float16 if HALF else tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        left = tl.load(a + rows[:, None] * am + (k + depth)[None, :] * ak, mask=(rows[:, None] < M) & ((k + depth)[None, :] < K), other=0.0)
        right = tl.load(b + (k + depth)[:, None] * bk + columns[None, :] * bn, mask=(columns[None, :] < N) & ((k + depth)[:, None] < K), other=0.0)
        total = tl.dot(left, right, total, out_dtype=tl.float16 if HALF else tl.float32)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=(rows[:, None] < M) & (columns[None, :] < N))


def product(kind, tile, warps, stages, size=(256, 256, 256), turned=(False, False), half=False, ctas=1):
    (m, n, k), (bm, bn, bk) = size, tile
    a, b = integers(m, k), integers(k, n)
    c = zeros((m, n), np.float16 if half else np.float32)
    left, right = operand(a.T if turned[0] else a, kind), operand(b.T if turned[1] else b, kind)
    am, ak = left.stride()[:: -1 if turned[0] else 1]
    bk_, bn_ = right.stride()[:: -1 if turned[1] else 1]
    grid = (triton.cdiv(m, bm), triton.cdiv(n, bn))
    made = product_kernel[grid](
        left, right, c, m, n, k, am, ak, bk_, bn_, BM=bm, BN=bn, BK=bk, STAGES=stages, HALF=half, num_warps=warps, num_ctas=ctas
    )
    same(f"{kind} {tile} {warps} {stages} {turned}", c.get(), (a @ b).astype(c.data.dtype))
    return made.asm["ptx"]


def products():
    instruction = "wgmma.mma_async" if sys.argv[1] == "9.0" else "tcgen05.mma"
    for kind in KINDS:
        if instruction not in product(kind, (128, 128, 64), 4, 3):
            raise AssertionError(f"{kind}: no {instruction}")


def tiles():
    """Shapes of which one, two or no instruction is made."""
    for tile, warps in (
        ((64, 64, 64), 4),
        ((64, 128, 32), 4),
        ((128, 16, 64), 4),
        ((128, 256, 32), 8),
        ((256, 128, 64), 8),
        ((64, 256, 64), 8),
        ((16, 64, 32), 2),
        ((128, 32, 128), 4),
    ):
        product("float16", tile, warps, 2)
    product("float8_e5m2", (128, 64, 128), 8, 4)
    product("bfloat16", (128, 128, 128), 8, 1)
    product("float32", (128, 64, 32), 4, 4)


def layouts():
    """Both operands along either side."""
    for turned in ((True, False), (False, True), (True, True)):
        for kind in ("float16", "float8_e4m3fn", "float32"):
            product(kind, (128, 128, 64), 4, 3, turned=turned)


def edges():
    product("float16", (128, 128, 64), 4, 3, size=(200, 100, 72))
    product("bfloat16", (64, 128, 64), 4, 4, size=(65, 129, 130))


def halves():
    """Sums of 16 bits."""
    product("float16", (128, 128, 64), 4, 3, size=(128, 128, 64), half=True)


def pairs():
    """Two blocks of a cluster, of which one issues the product of both."""
    product("float16", (256, 128, 64), 4, 3, ctas=2)
    product("bfloat16", (256, 256, 64), 4, 2, ctas=2, turned=(False, True))


@triton.jit
def place_of(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Tiles of some rows go before those of the next."""
    of_group = GROUP * tiles_n
    first = tile // of_group * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + tile % of_group % rows, tile % of_group // rows


@triton.jit
def persistent_kernel(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HALVES: tl.constexpr, ROLES: tl.constexpr, MAPS: tl.constexpr
):
    """Some blocks take all tiles; `a` and `b` lie along K and are read through tensor maps, of the host's or made here."""
    if MAPS:
        left_map, right_map, out_map = a, b, c
    else:
        left_map = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
        right_map = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
        out_map = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN // HALVES])
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True, warp_specialize=ROLES):
        m, n = place_of(tile, tiles_m, tiles_n, 2)
        total = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            total = tl.dot(left_map.load([m * BM, k]), right_map.load([n * BN, k]).T, total)
        if HALVES == 2:
            low, high = tl.split(tl.permute(tl.reshape(total, (BM, 2, BN // 2)), (0, 2, 1)))
            out_map.store([m * BM, n * BN], low.to(tl.float16))
            out_map.store([m * BM, n * BN + BN // 2], high.to(tl.float16))
        else:
            out_map.store([m * BM, n * BN], total.to(tl.float16))


def persistent(kind, tile, warps, stages, maps, halves=1, roles=False, size=(256, 384, 256), **options):
    (m, n, k), (bm, bn, bk) = size, tile
    a, b = integers(m, k), integers(k, n)
    left, right, c = operand(a, kind), operand(b.T, kind), zeros((m, n), np.float16)
    if maps:
        blocks = ([bm, bk], [bn, bk], [bm, bn // halves])
        left, right, out = (TensorDescriptor.from_tensor(x, block) for x, block in zip((left, right, c), blocks))
    else:
        out = c
        # Where the maps lie.
        triton.set_allocator(lambda size, alignment, stream: Array(np.zeros(size, np.uint8)))
    persistent_kernel[(3,)](
        left, right, out, m, n, k, BM=bm, BN=bn, BK=bk, HALVES=halves, ROLES=roles, MAPS=maps, num_warps=warps, num_stages=stages, **options
    )
    # Sums of up to 2048 are halves.
    same(f"persistent {kind} {tile} {warps} {stages} {maps} {halves} {roles} {options}", c.get(), (a @ b).astype(np.float16))


def maps():
    """Tensor maps of the host's: copies that mbarriers count."""
    persistent("float16", (128, 128, 64), 4, 3, True)
    persistent("float8_e4m3fn", (128, 128, 128), 8, 2, True, halves=2)
    persistent("bfloat16", (64, 64, 64), 4, 4, True, size=(200, 136, 72))


def made_maps():
    """Tensor maps that the kernel makes."""
    persistent("float16", (128, 128, 64), 4, 3, False)
    persistent("float8_e5m2", (128, 64, 128), 4, 2, False, halves=2)


def roles():
    """Warps that copy, one that multiplies and others that store."""
    persistent("float16", (128, 128, 64), 4, 3, True, roles=True)
    persistent("float8_e4m3fn", (128, 256, 64), 8, 2, True, halves=2, roles=True)
    persistent("bfloat16", (128, 64, 64), 4, 2, False, roles=True)


@triton.jit
def cancelled_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile = tl.program_id(0)
    m, n = place_of(tile, tl.cdiv(M, BM), tl.cdiv(N, BN), 2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([m * BM, k]), b.load([n * BN, k]).T, total)
    c.store([m * BM, n * BN], total.to(tl.float16))


def cancelled():
    """Blocks that are done take the place of blocks that have not begun (`clusterlaunchcontrol`)."""
    m, n, k = 512, 512, 64
    a, b = integers(m, k), integers(k, n)
    c = zeros((m, n), np.float16)
    blocks = (operand(a, "float16"), [64, 64]), (operand(b.T, "float16"), [64, 64]), (c, [64, 64])
    descriptors = (TensorDescriptor.from_tensor(x, block) for x, block in blocks)
    cancelled_kernel[(64,)](*descriptors, m, n, k, BM=64, BN=64, BK=64, clc=True)
    same("cancelled", c.get(), (a @ b).astype(np.float16))


@triton.jit
def attention_kernel(
    q, k, v, out, weights, scale, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, ROLES: tl.constexpr
):
    """The scores of a tile are numbers in tensor memory, from which their powers come back as the left side of a product."""
    first, head = tl.program_id(0) * BM, tl.program_id(1) * N
    rows = first + tl.arange(0, BM)
    left = q.load([head + first, 0])
    most, weight = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = first + BM if CAUSAL else N
    for start in tl.range(0, end, BN, warp_specialize=ROLES):
        scores = tl.dot(left, k.load([head + start, 0]).T) * scale
        if CAUSAL:
            scores = tl.where(start + tl.arange(0, BN)[None, :] <= rows[:, None], scores, -1e6)
        higher = tl.maximum(most, tl.max(scores, axis=1))
        shrink, powers = tl.exp2(most - higher), tl.exp2(scores - higher[:, None])
        weight = weight * shrink + tl.sum(powers, axis=1)
        total = tl.dot(powers.to(tl.float16), v.load([head + start, 0]), total * shrink[:, None])
        most = higher
    tl.store(weights + head + rows, most + tl.log2(weight))
    out.store([head + first, 0], (total / weight[:, None]).to(tl.float16))


def attention():
    n, heads = 256, 2
    for d, bm, bn, warps, stages, causal, roles in (
        (64, 128, 64, 4, 3, True, False),
        (128, 128, 128, 8, 2, False, False),
        (64, 128, 128, 4, 2, False, True),
        (64, 64, 32, 4, 2, True, False),
    ):
        # Triton's own pass that gives warps their roles fails for these tiles of 9.0.
        if roles and sys.argv[1] == "9.0":
            continue
        q, k, v = (RANDOM.standard_normal((heads * n, d)).astype(np.float16) for _ in range(3))
        out, weights = zeros((heads * n, d), np.float16), zeros(heads * n, np.float32)
        pairs = zip((Array(q), Array(k), Array(v), out), ([bm, d], [bn, d], [bn, d], [bm, d]))
        descriptors = [TensorDescriptor.from_tensor(x, block) for x, block in pairs]
        scale = 1.4426950408889634 / math.sqrt(d)
        attention_kernel[(n // bm, heads)](
            *descriptors, weights, scale, N=n, D=d, BM=bm, BN=bn, CAUSAL=causal, ROLES=roles, num_warps=warps, num_stages=stages
        )
        q, k, v = (x.astype(np.float64).reshape(heads, n, d) for x in (q, k, v))
        scores = q @ k.transpose(0, 2, 1) * scale
        if causal:
            scores[:, *np.triu_indices(n, 1)] = -np.inf
        powers = np.exp2(scores - scores.max(2, keepdims=True))
        name = f"attention {d} {bm} {bn} {warps} {causal} {roles}"
        # The powers and what is stored are halves: 11 bits.
        close(name, out.get(), (powers / powers.sum(2, keepdims=True) @ v).reshape(-1, d), 4e-3)
        close(f"{name}, weights", weights.get(), (scores.max(2) + np.log2(powers.sum(2))).ravel(), 1e-4)


@triton.jit
def scaled_kernel(
    a, b, a_scale, b_scale, c, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EACH: tl.constexpr,
    A_KIND: tl.constexpr, B_KIND: tl.constexpr, A_PACKED: tl.constexpr, B_PACKED: tl.constexpr, STAGES: tl.constexpr, BLOCKED: tl.constexpr
):
    m, n = tl.program_id(0), tl.program_id(1)
    scales: tl.constexpr = BK // EACH
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K // BK, num_stages=STAGES):
        left, right = a.load([m * BM, k * (BK // A_PACKED)]), b.load([n * BN, k * (BK // B_PACKED)])
        if BLOCKED:
            # As cuBLAS wants them: 512 bytes for 128 rows of 4, which are copied into tensor memory as they lie.
            inner = tl.arange(0, scales * 128)
            of_a = tl.load(a_scale + (m * (BM // 128) + tl.arange(0, BM // 128))[:, None] * (K // EACH * 128) + k * scales * 128 + inner[None, :])
            of_b = tl.load(b_scale + (n * (BN // 128) + tl.arange(0, BN // 128))[:, None] * (K // EACH * 128) + k * scales * 128 + inner[None, :])
            of_a = of_a.reshape(BM // 128, scales // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BM, scales)
            of_b = of_b.reshape(BN // 128, scales // 4, 32, 4, 4).trans(0, 3, 2, 1, 4).reshape(BN, scales)
        else:
            of_a = tl.load(a_scale + (m * BM + tl.arange(0, BM))[:, None] * (K // EACH) + k * scales + tl.arange(0, scales)[None, :])
            of_b = tl.load(b_scale + (n * BN + tl.arange(0, BN))[:, None] * (K // EACH) + k * scales + tl.arange(0, scales)[None, :])
        total = tl.dot_scaled(left, of_a, A_KIND, right.T, of_b, B_KIND, total)
    c.store([m * BM, n * BN], total)


def blocked(scales):
    """128 rows of four as `cublasLt` lays them out: row r is 16 (r mod 32) + 4 (r / 32) bytes in."""
    rows, columns = scales.shape
    return np.ascontiguousarray(scales.reshape(rows // 128, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4))


def scaled_operand(shape, kind, each):
    """Codes, scales, and what they are worth: exact in single precision."""
    rows, columns = shape
    table = {"e4m3": E4M3, "e5m2": E5M2, "e2m1": E2M1}[kind]
    values = RANDOM.choice(E2M1, shape)
    codes = encoded(values, table)
    if each == 16:
        worth = RANDOM.choice([0.5, 1.0, 1.5, 2.0], (rows, columns // each))
        scales = encoded(worth, E4M3)
    else:
        powers = RANDOM.integers(-1, 2, (rows, columns // each))
        worth, scales = 2.0**powers, (powers + 127).astype(np.uint8)
    if kind == "e2m1":
        data = Array(codes[:, ::2] | codes[:, 1::2] << 4)
    else:
        data = Array(codes, {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}[kind])
    return data, scales, values * np.repeat(worth, each, 1)


def scaled(a_kind, b_kind, each, tile, warps, stages, in_blocks):
    m, n, k = 256, 256, 512
    bm, bn, bk = tile
    a, a_scale, left = scaled_operand((m, k), a_kind, each)
    b, b_scale, right = scaled_operand((n, k), b_kind, each)
    c = zeros((m, n), np.float32)
    packed = [2 if kind == "e2m1" else 1 for kind in (a_kind, b_kind)]
    blocks = (a, [bm, bk // packed[0]]), (b, [bn, bk // packed[1]]), (c, [bm, bn])
    a_map, b_map, c_map = (TensorDescriptor.from_tensor(x, block) for x, block in blocks)
    scales = [Array(blocked(x) if in_blocks else x, "float8_e4m3fn" if each == 16 else None) for x in (a_scale, b_scale)]
    scaled_kernel[(m // bm, n // bn)](
        a_map, b_map, *scales, c_map, K=k, BM=bm, BN=bn, BK=bk, EACH=each, A_KIND=a_kind, B_KIND=b_kind, A_PACKED=packed[0], B_PACKED=packed[1],
        STAGES=stages, BLOCKED=in_blocks, num_warps=warps
    )
    same(f"scaled {a_kind} {b_kind} {each} {tile} {in_blocks}", c.get(), (left @ right.T).astype(np.float32))


def scaled_products():
    """Microscaled formats, with scales that go through registers."""
    scaled("e4m3", "e5m2", 32, (128, 128, 128), 4, 2, False)
    scaled("e2m1", "e2m1", 32, (128, 128, 256), 4, 2, False)
    scaled("e2m1", "e2m1", 16, (128, 64, 128), 4, 2, False)


def blocked_scales():
    """Scales in the order in which they are copied into tensor memory."""
    scaled("e4m3", "e4m3", 32, (128, 256, 128), 4, 3, True)
    scaled("e2m1", "e2m1", 32, (128, 128, 256), 4, 3, True)
    scaled("e2m1", "e2m1", 16, (128, 256, 256), 8, 2, True)
    scaled("e4m3", "e2m1", 32, (128, 128, 128), 4, 2, True)
    scaled("e5m2", "e4m3", 32, (256, 128, 128), 8, 2, True)


@triton.jit
def rows_kernel(x, taken, places, back, N: tl.constexpr, D: tl.constexpr):
    rows = tl.load(places + tl.arange(0, N))
    values = x.gather(rows, 0)
    tl.store(taken + tl.arange(0, N)[:, None] * D + tl.arange(0, D)[None, :], values)
    back.scatter(values + values, rows, 0)


def rows():
    """Rows by their numbers, four at a time (`tile::gather4`, `tile::scatter4`)."""
    x, places = integers(64, 64).astype(np.float16), RANDOM.permutation(64)[:32].astype(np.int32)
    taken, back = zeros((32, 64), np.float16), zeros((64, 64), np.float16)
    rows_kernel[(1,)](TensorDescriptor.from_tensor(Array(x), [1, 64]), taken, Array(places), TensorDescriptor.from_tensor(back, [1, 64]), N=32, D=64)
    same("gather", taken.get(), x[places])
    expected = np.zeros_like(x)
    expected[places] = 2 * x[places]
    same("scatter", back.get(), expected)


@gluon.jit
def cluster_kernel(a, b, c, K: gl.constexpr, layout: gl.constexpr):
    """A product by the blocks of a cluster: two and two issue one instruction, tiles that several need are sent to all of them."""
    M: gl.constexpr = a.block_shape[0]
    N: gl.constexpr = b.block_shape[1]
    BK: gl.constexpr = a.block_shape[1]
    left = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    right = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    total = allocate_tensor_memory(gl.float32, [M, N], layout)
    loaded, multiplied = mbarrier.allocate_mbarrier(two_ctas=True), mbarrier.allocate_mbarrier()
    mbarrier.init(loaded, count=1)
    mbarrier.init(multiplied, count=blackwell.tcgen05_mma_barrier_count([left, right], multicast=True, two_ctas=True))
    phase = 0
    for k in range(K // BK):
        mbarrier.expect(loaded, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [0, k * BK], loaded, left, multicast=True)
        tma.async_load(b, [k * BK, 0], loaded, right, multicast=True)
        mbarrier.wait(loaded, phase=phase, deps=[left, right])
        blackwell.tcgen05_mma(left, right, total, use_acc=k != 0, multicast=True, mbarriers=[multiplied])
        mbarrier.wait(multiplied, phase=phase, deps=[left, right])
        phase ^= 1
    mbarrier.invalidate(loaded)
    mbarrier.invalidate(multiplied)
    out = gl.allocate_shared_memory(c.dtype, c.block_shape, c.layout)
    out.store(total.load().to(c.dtype))
    blackwell.fence_async_shared()
    tma.async_store(c, [0, 0], out)
    tma.store_wait(0)


def clusters():
    """`cta_group::2`, also of four blocks, of which two have the same right side."""
    for m, n, of_a, of_b in ((256, 128, ((1, 0),), ((0, 1),)), (512, 128, ((1, 0), (2, 0)), ((0, 1), (0, 0))), (128, 64, ((1, 0),), ((0, 1),))):
        k, bk, ctas = 192, 64, 2 ** len(of_a)
        a, b, c = integers(m, k), integers(k, n), zeros((m, n), np.float16)
        blocks = ([m, bk], of_a), ([bk, n], of_b), ([m, n], of_a)
        layouts = [gl.NVMMASharedLayout.get_default_for(shape, gl.float16, cga_layout=bases) for shape, bases in blocks]
        arrays = (operand(a, "float16"), [m, bk]), (operand(b, "float16"), [bk, n]), (c, [m, n])
        descriptors = [GluonDescriptor.from_tensor(x, block, layout) for (x, block), layout in zip(arrays, layouts)]
        layout = TensorMemoryLayout(block=(m // ctas, n), col_stride=1, cga_layout=of_a, two_ctas=True)
        cluster_kernel[(1,)](*descriptors, k, layout, num_warps=4, num_ctas=ctas)
        same(f"cluster {m} {n}", c.get(), (a @ b).astype(np.float16))


@gluon.jit
def extremes_kernel(x, least, most, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    held = allocate_tensor_memory(gl.float32, [M, N], layout)
    registers: gl.constexpr = held.get_reg_layout()
    i, j = gl.arange(0, M, gl.SliceLayout(1, registers)), gl.arange(0, N, gl.SliceLayout(0, registers))
    held.store(gl.load(x + i[:, None] * N + j[None, :]))
    _, low = held.load_min()
    _, high = held.load_max(abs=True)
    gl.store(least + gl.arange(0, M, low.type.layout), low)
    gl.store(most + gl.arange(0, M, high.type.layout), high)


def extremes():
    """The least number of each row while it comes out of tensor memory, and the largest without its sign: `tcgen05.ld.red` is of 10.3."""
    x = RANDOM.standard_normal((128, 64)).astype(np.float32)
    least, most = zeros(128, np.float32), zeros(128, np.float32)
    extremes_kernel[(1,)](Array(x), least, most, 128, 64, TensorMemoryLayout(block=(128, 64), col_stride=1), num_warps=4)
    same("least", least.get(), x.min(1))
    same("most", most.get(), np.abs(x).max(1))


@triton.jit
def changes_kernel(total, most, bits, x, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + tl.program_id(0) * N * N + i[:, None] * N + i[None, :])
    total.atomic_add([0, 0], values)
    most.atomic_max([0, 0], values)
    bits.atomic_xor([0, 0], values)


def changes():
    """Blocks that add to what a tensor map is of (`cp.reduce.async.bulk.tensor`)."""
    x = RANDOM.integers(-99, 99, (5, 32, 32)).astype(np.int32)
    outs = [zeros((32, 32), np.int32) for _ in range(3)]
    changes_kernel[(5,)](*(TensorDescriptor.from_tensor(out, [32, 32]) for out in outs), Array(x), N=32)
    for name, out, expected in zip(("sum", "most", "xor"), outs, (x.sum(0), np.maximum(x.max(0), 0), np.bitwise_xor.reduce(x, 0))):
        same(name, out.get(), expected.astype(np.int32))


CHECKS = {
    "9.0": (products, tiles, layouts, edges, halves, maps, made_maps, roles, attention, rows, changes),
    "10.0": (
        products,
        tiles,
        layouts,
        edges,
        halves,
        pairs,
        maps,
        made_maps,
        roles,
        cancelled,
        attention,
        scaled_products,
        blocked_scales,
        rows,
        clusters,
        changes,
    ),
    "10.3": (products, maps, roles, attention, scaled_products, blocked_scales, clusters, extremes),
}

if __name__ == "__main__":
    main(triton, CHECKS)
