"""Memory as the emulator lacks it: flat addresses of LDS and scratch, words that begin anywhere, results of atomics, lanes that are
not active, halves of registers, and instructions that control caches."""

from edits import edit

SHARED_BASE, PRIVATE_BASE = 0x2000000000000, 0x1000000000000
# Slots of the emulator's scalar registers that nothing uses: where LDS and scratch lie in this process.
SHARED_AT, PRIVATE_AT = 210, 212
# Operands: the base and the limit of LDS' addresses, then of scratch's.
APERTURES = {235: SHARED_BASE >> 32, 236: SHARED_BASE >> 32, 237: PRIVATE_BASE >> 32, 238: PRIVATE_BASE >> 32}
CACHE_CONTROL = ("_INV", "_WB", "_WBINV", "_WBL2", "_WBINVL1", "_WBINVL1_VOL")


def prepare(E, state, shared, scratch):
    """A wave's scalar registers: where its memories are."""
    for at, address in ((SHARED_AT, shared), (PRIVATE_AT, scratch)):
        state._write_sgpr(at, address)
        state._write_sgpr(at + 1, address >> 32)
    for at, word in APERTURES.items():
        state._write_sgpr(at, word)
    # The constant 1/2π, over which the emulator writes a hardware register.
    state._write_sgpr(248, E.F32_INLINE[248])


def patch(E):
    operands(E)
    E._aperture = lambda *of: host_address(E, *of)
    unaligned(E)
    accesses(E)
    caches(E)


def operands(E):
    """src_shared_base and src_private_base as 64-bit operands."""
    c, wide, before = E._c, E.dtypes.uint64, E._Ctx.rsrc_dyn

    def rsrc(self, off, lane, bits=32, *a, **k):
        value = before(self, off, lane, bits, *a, **k)
        if bits != 64:
            return value
        base = self.rsgpr_dyn(off, off < c(256)).cast(wide) << E.UOp.const(32, wide)
        return (off.eq(c(235)) | off.eq(c(237))).where(base, value)

    E._Ctx.rsrc_dyn = rsrc


def host_address(E, ctx, inst, lane, address, flat):
    """Of FLAT, which has no saddr operand: its bits are 0 on gfx9."""
    if "FLAT" not in type(inst).__name__:
        return address
    c, wide = E._c, E.dtypes.uint64
    constant = lambda value: E.UOp.const(value, wide)
    held = lambda at: E._u64(ctx.rsgpr_dyn(c(at)), ctx.rsgpr_dyn(c(at + 1)))
    high, low = flat >> constant(32), flat & constant(0xFFFFFFFF)
    private = held(PRIVATE_AT) + lane.cast(wide) * ctx.rsgpr_dyn(c(E.SCRATCH_STRIDE_IDX)).cast(wide) + low
    is_in = lambda base: high.eq(constant(base >> 32))
    return is_in(SHARED_BASE).where(held(SHARED_AT) + low, is_in(PRIVATE_BASE).where(private, flat))


def accesses(E):
    written = "        return _write_val(bit_width, val, _wdata, vdst_reg + _c(dword_idx), lane, exec_mask)"
    all_stores = "  stores = [s for dest, val in assigns for s in make_stores(dest, val, lane, active, writes_return_data)]\n"
    active = "_lane_active(exec_mask, lane).where(ctx.rvgpr_dyn(addr_reg, lane), _c(0))"
    old = E._compile_mem_op
    new = edit(
        E, old,
        ("    return base_addr + offset64", "    return _aperture(ctx, inst, lane, base_addr + offset64, vaddr_base + offset64)"),
        # Whether an atomic gives the old value is sc0 on CDNA 3 and the first bit of th on RDNA 4.
        ("is_atomic, glc = 'ATOMIC' in op_name, _iattr(inst, 'glc')",
         "is_atomic, glc = 'ATOMIC' in op_name, _iattr(inst, 'glc') | _iattr(inst, 'sc0') | (_iattr(inst, 'th') & 1)"),
        ("irc.DS, ir4.VSCRATCH)) and", "irc.DS, ir4.VSCRATCH, ir4.VFLAT)) and"),
        # 64-bit compare and swap.
        ("  pcode = get_pcode(inst.op)\n", "  pcode = get_pcode(inst.op).replace('DATA[127 : 64]', 'DATA2')\n"),
        ("if data_bits_mem == 64 else ctx.rvgpr_dyn(vdata_reg, lane)\n      return {'ADDR': addr, 'DATA': atomic_data,",
         "if data_bits_mem >= 64 else ctx.rvgpr_dyn(vdata_reg, lane)\n      return {'ADDR': addr, 'DATA': atomic_data,"
         " 'DATA2': _u64(ctx.rvgpr_dyn(vdata_reg + _c(2), lane), ctx.rvgpr_dyn(vdata_reg + _c(3), lane)),"),
        # Loads into half of a register leave the other.
        (written,
         "        if bit_width == 16:\n"
         "          old_word, first = ctx.rvgpr_dyn(vdst_reg + _c(dword_idx), lane), int(m.group(2)) % 32\n"
         "          bit_width, val = 32, _set_bits(old_word, _val_to_bits(val), 16, first)\n" + written),
        # Words side by side.
        (all_stores,
         "  words = [val for dest, val in assigns if dest.startswith('MEM[') and dest.endswith('.b32')]\n"
         "  if len(words) > 1 and len(words) == len(assigns) and not (is_lds or is_atomic or is_scratch):\n"
         "    stores = _store_words(mem, words[0][0], [val[1] for val in words], active)\n"
         "  else: stores" + all_stores.removeprefix("  stores")),
        # ds_bpermute leaves lanes that are not active.
        ("ctx.vgpr.index(val[0]).store(val[1].cast(dtypes.uint32))",
         "ctx.vgpr.index(val[0]).store(_lane_active(exec_mask, (val[0] & _c(ctx.wave_size - 1)).cast(dtypes.int))"
         ".where(val[1].cast(dtypes.uint32), ctx.vgpr.index(val[0]).load()))"),
        # What the address of a lane that is not active holds is anything.
        ("      addr = ctx.rvgpr_dyn(addr_reg, lane)\n", f"      addr = {active}\n"),
        ("'vgpr_a': ctx.rvgpr_dyn(addr_reg, lane),", f"'vgpr_a': {active},"),
    )
    for kind, handler in list(E._INST_HANDLERS.items()):
        if handler is old:
            E._INST_HANDLERS[kind] = new


def unaligned(E):
    """Words at any address, and halves at odd ones, as ROCm lets GPUs access memory."""
    E._store_words = lambda *of: store_words(E, *of)
    E._mem_store = edit(E, E._mem_store, (
        "  if data_bits == 32: return [idx.store(active.where(_to_u32(val), idx))]\n",
        "  if data_bits == 32: return _store_words(mem, addr, [val], active)\n"))
    parser = E.parser.Parser
    parser._handle_mem_load = edit(E.parser, parser._handle_mem_load, (
        "        val = (val >> (((addr >> _const(adt, 1)) & _const(adt, 1)).cast(dtypes.uint32) * _u32(16))) & _u32(0xFFFF)\n",
        "        byte_off = (addr & _const(adt, 3)).cast(dtypes.uint32)\n"
        "        next_word = byte_off.eq(_u32(3)).where((addr + _const(adt, 4)) >> _const(adt, 2), idx)\n"
        "        both = val.cast(dtypes.uint64) | (mindex(next_word).cast(dtypes.uint64) << _u64(32))\n"
        "        val = (both >> (byte_off.cast(dtypes.uint64) * _u64(8))).cast(dtypes.uint32) & _u32(0xFFFF)\n"))


def store_words(E, mem, address, words, active):
    """Stores of words side by side, which begin anywhere: each place is written once."""
    wide = lambda value: E.UOp.const(value, E.dtypes.uint64)
    constant = lambda value: E.UOp.const(value, address.dtype)
    shift = ((address & constant(3)) * constant(8)).cast(E.dtypes.uint64)
    parts = [E._split64(E._to_u32(word).cast(E.dtypes.uint64) << shift) for word in words]
    mask_low, mask_high = E._split64(wide(0xFFFFFFFF) << shift)
    ones = E._c(0xFFFFFFFF)

    def place(nth, is_written):
        return mem.index(((address >> constant(2)) + constant(nth)).valid(is_written))

    first, crosses = place(0, active), active & shift.ne(wide(0))
    stores = [first.store(active.where(first & (mask_low ^ ones) | parts[0][0], first))]
    for nth in range(1, len(words)):
        middle = place(nth, active)
        stores.append(middle.store(active.where(parts[nth][0] | parts[nth - 1][1], middle)))
    last = place(len(words), crosses)
    return stores + [last.store(crosses.where(last & (mask_high ^ ones) | parts[-1][1], last))]


def caches(E):
    """There are none to write back or to forget."""
    def unless_control(handler):
        def compiled(inst, ctx):
            return E.UOp.sink(*ctx.inc_pc()) if E._op_name(inst).endswith(CACHE_CONTROL) else handler(inst, ctx)
        return compiled

    for kind, handler in list(E._INST_HANDLERS.items()):
        if kind.__name__ in ("MUBUF", "VGLOBAL", "GLOBAL"):
            E._INST_HANDLERS[kind] = unless_control(handler)
