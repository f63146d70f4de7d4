"""Scalar instructions that the emulator lacks: reads of the program counter, jumps through registers, and hardware registers."""

from memory import PRIVATE_BASE, SHARED_BASE

MEMORY_BASES = 15


def patch(E):
    for kind, handler in list(E._INST_HANDLERS.items()):
        if kind.__name__.startswith("SOPK"):
            E._INST_HANDLERS[kind] = hardware_registers(E, handler)
        elif kind.__name__.startswith("SOP1"):
            E._INST_HANDLERS[kind] = jumps(E, handler)


def jumps(E, handler):
    c = E._c

    def compiled(inst, ctx):
        name = E._op_name(inst)
        if name not in ("S_GETPC_B64", "S_SETPC_B64", "S_SWAPPC_B64"):
            return handler(inst, ctx)
        stores, target = [], None
        if name != "S_GETPC_B64":
            source = ctx.inst_field(type(inst).ssrc0)
            target = E._u64(ctx.rsgpr_dyn(source), ctx.rsgpr_dyn(source + c(1)))
        if name != "S_SETPC_B64":
            to = ctx.inst_field(type(inst).sdst)
            low, high = E._split64(ctx.rpc() + E.UOp.const(ctx.inst_size, E.dtypes.uint64))
            stores += [ctx.wsgpr_dyn(to, low), ctx.wsgpr_dyn(to + c(1), high)]
        if target is None:
            return E.UOp.sink(*stores, *ctx.inc_pc())
        low, high = E._split64(target)
        return E.UOp.sink(*stores, ctx.wsgpr_dyn(c(E.PC_LO_IDX), low), ctx.wsgpr_dyn(c(E.PC_HI_IDX), high))

    return compiled


def hardware_registers(E, handler):
    """LLVM 15 reads the bases of LDS' and scratch's addresses from one; all others are 0."""
    c = E._c

    def compiled(inst, ctx):
        if "GETREG" not in E._op_name(inst):
            return handler(inst, ctx)
        which, to = ctx.inst_field(type(inst).simm16).cast(E.dtypes.uint32), ctx.inst_field(type(inst).sdst)
        bases = c((SHARED_BASE >> 48) << 16 | PRIVATE_BASE >> 48)
        word = (which & c(0x3F)).eq(c(MEMORY_BASES)).where(bases, c(0))
        first, last = (which >> c(6)) & c(31), (which >> c(11)) & c(31)
        return E.UOp.sink(ctx.wsgpr_dyn(to, (word >> first) & ((c(2) << last) - c(1))), *ctx.inc_pc())

    return compiled
