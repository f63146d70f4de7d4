"""Results that the emulator has otherwise than AMD's ISA documents: rounding to the nearest even number, clamps, and what
atomic sums of doubles return."""

import re

from edits import edit


def patch(E):
    rounding(E)
    clamps(E)
    returned(E)


def rounding(E):
    """V_RNDNE: numbers above 2^23 stay, and zeros keep their sign, which the document's pseudocode leaves out."""
    UOp, trunc = E.UOp, E._FUNCS["trunc"]

    def nearest(x):
        constant = lambda value: UOp.const(value, x.dtype)
        word = {2: E.dtypes.uint16, 4: E.dtypes.uint32, 8: E.dtypes.uint64}[x.dtype.itemsize]
        whole = trunc(x)
        rest = x - whole
        rest = (rest < constant(0)).where(constant(0) - rest, rest)
        half = whole * constant(0.5)
        is_up = (constant(0.5) < rest) | (rest.eq(constant(0.5)) & trunc(half).ne(half))
        rounded = is_up.where(whole + (x < constant(0)).where(constant(-1), constant(1)), whole)
        sign = UOp.const(1 << 8 * x.dtype.itemsize - 1, word)
        return (rounded.bitcast(word) | x.bitcast(word) & sign).bitcast(x.dtype)

    E._FUNCS["rndne"] = nearest
    change_text(E, lambda op, text: re.sub(r"(?s)^D0\.(f16|f32|f64) = .*$", r"D0.\1 = rndne(S0.\1)", text) if "RNDNE" in op else text)


def clamps(E):
    """Of gfx9's signed sums and differences, which are V_ADD_NC_I32 on later ones, and of products of mixed precision."""
    saturated = E._int_clamp
    E._int_clamp = lambda name, srcs: saturated(re.sub("^V_(ADD|SUB)_I32", r"V_\1_NC_I32", name), srcs)
    last = "  return ctx.compile_vop_pcode(inst.op, srcs, lane, vdst_reg, exec_mask)\n"
    handler = E._compile_vop3p
    replaced = edit(E, handler, (last, last.replace("exec_mask)", "exec_mask, clmp=_iattr(inst, 'clmp'))")))
    for kind, of in list(E._INST_HANDLERS.items()):
        if of is handler:
            E._INST_HANDLERS[kind] = replaced
    slice_of = "          slice_stores.append("
    E._Ctx.compile_vop_pcode = edit(E, E._Ctx.compile_vop_pcode, (slice_of,
        "          if clmp and val.dtype in (dtypes.half, dtypes.float32):\n"
        "            clamped = val.maximum(UOp.const(0.0, val.dtype)).minimum(UOp.const(1.0, val.dtype))\n"
        "            val = _FUNCS['isNAN'](val).where(UOp.const(0.0, val.dtype), clamped)\n" + slice_of))


def returned(E):
    change_text(E, lambda op, text: text.replace("RETURN_DATA = tmp", "RETURN_DATA.f64 = tmp") if "F64" in op else text)


def change_text(E, change):
    """Of the pseudocode that the emulator makes an instruction of."""
    before = E.get_pcode
    E.get_pcode = lambda op: change(op.name, before(op))

