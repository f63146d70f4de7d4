"""Instructions of matrix cores that the emulator lacks: products of integers and of fp8, and MFMA of f64.

D = A × B + C of 16 × 16. Lanes 0 to 15 and again those above have one row of A and one column of B each. On gfx11 every
lane has all of its k, else each 16 lanes have a part. D's columns are lanes; which row a register holds is the
generation's ("AMD matrix instruction calculator", ROCm).
"""

import re


def patch(E):
    UOp, types, c = E.UOp, E.dtypes, E._c
    whole = lambda n: UOp.const(n, types.int)

    def is_ours(name):
        return "WMMA_I32" in name or re.search("WMMA.*(FP8|BF8)", name) or "MFMA_F64_16X16X4" in name or "MFMA_I32_16X16X32_I8" in name

    def product(inst, ctx):
        name = E._op_name(inst)
        depth = int(re.search(r"16X16X(\d+)", name)[1])
        is_double, is_mfma = "F64" in name, "MFMA" in name
        formats = re.findall("FP8|BF8", name)
        bits = 64 if is_double else 4 if "IU4" in name else 8
        is_gfx11 = isinstance(inst, E.ir3.VOP3P)
        lanes_of_k = 1 if is_gfx11 else ctx.wave_size // 16
        share = depth // lanes_of_k
        word = types.uint64 if is_double else types.uint32
        number = types.float64 if is_double else types.float32 if formats else types.int32
        held = UOp.placeholder((32 * depth,), word, slot=0, addrspace=E.AddrSpace.LOCAL)
        sources = [ctx.inst_field(getattr(type(inst), it)) for it in ("src0", "src1", "src2")]

        def element(matrix, lane, nth):
            source = sources[matrix]
            if is_double:
                at = source - c(256)
                return E._u64(ctx.rvgpr_dyn(at, lane), ctx.rvgpr_dyn(at + c(1), lane))
            value = ctx.rvgpr_dyn(source - c(256) + c(nth * bits // 32), lane) >> c(nth * bits % 32) & c((1 << bits) - 1)
            if formats:
                return E._FUNCS[f"{formats[matrix].lower()}_to_f32"](value).bitcast(types.uint32)
            # Two of the bits that negate other operands say that these are signed; MFMA's always are.
            is_signed = is_mfma or E._iattr(inst, "neg") >> matrix & 1
            sign = 1 << (bits - 1) if is_signed else 0
            return (value ^ c(sign)) - c(sign)

        lane = ctx.range()
        group = lane // whole(16) if lanes_of_k > 1 else whole(0)
        stores = []
        for matrix in range(2):
            for nth in range(share):
                at = (lane % whole(16) + whole(16 * matrix)) * whole(depth) + group * whole(share) + whole(nth)
                stores.append(held.index(at).store(element(matrix, lane, nth)))
        held = held.after(UOp.group(*stores).end(lane))

        lane = ctx.range()
        quarter, exec_mask = lane // whole(16), ctx.rexec()
        in_vgprs = sources[2] >= c(256)
        read, write = (ctx.raccvgpr_dyn, ctx.waccvgpr_dyn) if E._iattr(inst, "acc_cd") else (ctx.rvgpr_dyn, ctx.wvgpr_dyn)
        target, size = ctx.inst_field(type(inst).vdst), 2 if is_double else 1
        results = []
        for register in range(256 // ctx.wave_size):
            if is_double: row = quarter + whole(4 * register)
            elif is_gfx11: row = quarter + whole(2 * register)
            else: row = quarter * whole(4 if is_mfma else 8) + whole(register)
            words = [read(sources[2] - c(256 - size * register - nth), lane, in_vgprs) for nth in range(size)]
            start = E._u64(*words) if is_double else words[0]
            # The one constant that is used is 0.
            total = in_vgprs.where(start, UOp.const(0, word)).bitcast(number)
            for k in range(depth):
                a = held.index(row * whole(depth) + whole(k)).bitcast(number)
                b = held.index((lane % whole(16) + whole(16)) * whole(depth) + whole(k)).bitcast(number)
                total = total + a * b
            words = E._split64(total.bitcast(word)) if is_double else [total.bitcast(word)]
            results += [write(target + c(size * register + nth), lane, it, exec_mask) for nth, it in enumerate(words)]
        return UOp.sink(UOp.group(*results).end(lane), *ctx.inc_pc())

    def before(handler):
        return lambda inst, ctx: product(inst, ctx) if is_ours(E._op_name(inst)) else handler(inst, ctx)

    for key, handler in list(E._INST_HANDLERS.items()):
        if key.__name__.startswith("VOP3P"):
            E._INST_HANDLERS[key] = before(handler)
