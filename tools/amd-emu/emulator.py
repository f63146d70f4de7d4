"""Runs kernels of a code object on tinygrad's instruction emulator (its `test/mockgpu/amd`, MIT; never part of this tree).

$TINYGRAD is a checkout of https://github.com/tinygrad/tinygrad with `tinygrad`, `test/mockgpu` and `test/amd`. What compilers
emit and the emulator lacks is patched here while it is loaded.
"""

import os
import shutil
import struct
import sys

import cores
import images
from code_object import Memory, align

ARCHITECTURES = {"gfx11": "rdna3", "gfx12": "rdna4", "gfx9": "cdna"}
SHARED_BASE, PRIVATE_BASE = 0x2000000000000, 0x1000000000000


def load():
    sys.path.insert(0, os.environ["TINYGRAD"])
    if not shutil.which(os.environ.get("CC", "clang")):
        os.environ["CC"] = next(it for it in ("clang-19", "clang-17", "clang-15") if shutil.which(it))
    import test.mockgpu.amd.emu as emulator

    # The code keeps subnormals; upstream always flushes them.
    emulator._get_ftz_lib = lambda: (None, 0)
    patch(emulator)
    cores.patch(emulator)
    return emulator


def launch(emulator, code, name, grid, block, kernarg, dynamic_shared):
    """Runs all blocks. `kernarg` is the address of the kernarg segment."""
    about = code.descriptor(name)
    family = next((it for it in ARCHITECTURES if code.machine.startswith(it)), None)
    if family is None or family == "gfx11" and not code.machine.startswith("gfx11"):
        raise NotImplementedError(f"the emulator has no {code.machine}")
    shared = about["group"] + dynamic_shared
    # The descriptor has 0 there; the emulator counts 512 bytes for every target.
    granules = min(align(shared, 512) // 512, 0x1FF)
    rsrc2 = about["rsrc2"] & ~(0x1FF << 15) | granules << 15
    registers, properties = [], about["properties"]
    for bit, values in (
        (1, [0, 0, 0, 0]),
        (2, [0, 0]),
        (4, [0, 0]),
        (8, [kernarg & 0xFFFFFFFF, kernarg >> 32]),
        (16, [0, 0]),
        (32, [0, 0]),
        (64, [about["private"]]),
    ):
        if properties & bit:
            registers += values
    emulator.run_asm(about["entry"], 0, *grid, *block, kernarg, rsrc2, about["private"], ARCHITECTURES[family],
                     registers or None)


def patch(E):
    """Gaps of the emulator: 1 one scratch buffer for all waves of a block; 2 cache control; 3 reads of the program counter and
    jumps through registers; 4 flat addresses of LDS and scratch; 5 LDS loads of inactive lanes; 6 results of atomics; 7 FLAT
    without saddr; 8 s_getreg of the apertures; 9 waves that sleep let others run, and a barrier waits for all;
    10 ds_bpermute and lanes that are not active; 11 64-bit compare and swap. cores.py has products, images.py image instructions."""
    import ctypes
    import inspect

    def edit(fn, *subs):
        src = inspect.getsource(fn)
        for a, b in subs:
            if a not in src: print(f"amd-emu: the emulator changed, {a!r} was not patched", file=sys.stderr)
            src = src.replace(a, b)
        exec(compile(src, f"<{fn.__name__} patched>", "exec"), E.__dict__)
        return E.__dict__[fn.__name__]
    SH, PR = SHARED_BASE >> 32, PRIVATE_BASE >> 32
    LDS_AT, SCR_AT = 210, 212                              # unused slots of the emulator's SGPR array
    def set_apertures(st, lds_buf, scratch_buf, off):
        for at, a in ((LDS_AT, lds_buf._buf.va_addr), (SCR_AT, scratch_buf._buf.va_addr + off if scratch_buf else 0)):
            st._write_sgpr(at, a); st._write_sgpr(at + 1, a >> 32)
        st._write_sgpr(235, SH); st._write_sgpr(236, SH); st._write_sgpr(237, PR); st._write_sgpr(238, PR)
    E._set_apertures = set_apertures
    edit(E.run_asm,
      ("    done = [False] * len(waves)\n", "    done = [False] * len(waves)\n    waits = [False] * len(waves)\n"),
      ("        if done[wi]: continue\n", "        if done[wi] or waits[wi]: continue\n"),
      ("          if is_barrier: break", "          waits[wi] = is_barrier\n          if is_barrier or 'S_SLEEP' in _op_name(inst): break"),
      ("      # All waves have either hit", "      if all(d or w for d, w in zip(done, waits)): waits = [False] * len(waves)\n      # All waves have either hit"),
      ("Buffer('CPU', scratch_size * wave_size, dtypes.uint8)",
       "Buffer('CPU', scratch_size * wave_size * ((total_threads + wave_size - 1) // wave_size), dtypes.uint8)"),
      ("ctypes.c_uint64(scratch_buf._buf.va_addr if scratch_buf else 0)",
       "ctypes.c_uint64(scratch_buf._buf.va_addr + scratch_size * wave_start if scratch_buf else 0)"),
      ("      waves.append((st, [", "      _set_apertures(st, lds_buf, scratch_buf, scratch_size * wave_start)\n      waves.append((st, ["))
    UOp, dt, c = E.UOp, E.dtypes, E._c
    u64 = lambda v: UOp.const(v, dt.uint64)
    # 4: src_shared_base / src_private_base as 64-bit operands; FLAT address -> host address
    orig_rsrc = E._Ctx.rsrc_dyn
    def rsrc(self, off, lane, bits=32, *a, **k):
        v = orig_rsrc(self, off, lane, bits, *a, **k)
        if bits != 64: return v
        return (off.eq(c(235)) | off.eq(c(237))).where(self.rsgpr_dyn(off, off < c(256)).cast(dt.uint64) << u64(32), v)
    E._Ctx.rsrc_dyn = rsrc
    def aperture(ctx, inst, lane, addr, vaddr):
        if "FLAT" not in type(inst).__name__: return addr
        addr = vaddr                                       # FLAT has no saddr operand (its encoding bits are 0 on gfx9)
        hi, lo = addr >> u64(32), addr & u64(0xffffffff)
        host = lambda at: E._u64(ctx.rsgpr_dyn(c(at)), ctx.rsgpr_dyn(c(at + 1)))
        stride = ctx.rsgpr_dyn(c(E.SCRATCH_STRIDE_IDX)).cast(dt.uint64)
        return hi.eq(u64(SH)).where(host(LDS_AT) + lo, hi.eq(u64(PR)).where(host(SCR_AT) + lane.cast(dt.uint64) * stride + lo, addr))
    E._aperture = aperture
    old = E._compile_mem_op
    new = edit(old, ("    return base_addr + offset64", "    return _aperture(ctx, inst, lane, base_addr + offset64, vaddr_base + offset64)"),
      # 6: "atomic returns old value" is sc0 on CDNA3 and th bit 0 on RDNA4; VFLAT address helper
      ("is_atomic, glc = 'ATOMIC' in op_name, _iattr(inst, 'glc')",
       "is_atomic, glc = 'ATOMIC' in op_name, _iattr(inst, 'glc') | _iattr(inst, 'sc0') | (_iattr(inst, 'th') & 1)"),
      ("irc.DS, ir4.VSCRATCH)) and", "irc.DS, ir4.VSCRATCH, ir4.VFLAT)) and"),
      # 11: 64-bit compare and swap
      ("  pcode = get_pcode(inst.op)\n", "  pcode = get_pcode(inst.op).replace('DATA[127 : 64]', 'DATA2')\n"),
      ("if data_bits_mem == 64 else ctx.rvgpr_dyn(vdata_reg, lane)\n      return {'ADDR': addr, 'DATA': atomic_data,",
       "if data_bits_mem >= 64 else ctx.rvgpr_dyn(vdata_reg, lane)\n      return {'ADDR': addr, 'DATA': atomic_data,"
       " 'DATA2': _u64(ctx.rvgpr_dyn(vdata_reg + _c(2), lane), ctx.rvgpr_dyn(vdata_reg + _c(3), lane)),"),
      # 10: ds_bpermute writes lanes that are not active
      ("ctx.vgpr.index(val[0]).store(val[1].cast(dtypes.uint32))",
       "ctx.vgpr.index(val[0]).store(_lane_active(exec_mask, (val[0] & _c(ctx.wave_size - 1)).cast(dtypes.int)).where(val[1].cast(dtypes.uint32), ctx.vgpr.index(val[0]).load()))"),
      # 5: LDS loads of inactive lanes use whatever their address register holds -> out of bounds host read
      ("      addr = ctx.rvgpr_dyn(addr_reg, lane)\n", "      addr = _lane_active(exec_mask, lane).where(ctx.rvgpr_dyn(addr_reg, lane), _c(0))\n"),
      ("'vgpr_a': ctx.rvgpr_dyn(addr_reg, lane),", "'vgpr_a': _lane_active(exec_mask, lane).where(ctx.rvgpr_dyn(addr_reg, lane), _c(0)),"))
    for k, v in list(E._INST_HANDLERS.items()):
        if v is old: E._INST_HANDLERS[k] = new
    # 2: cache write-back / invalidate = no-op
    def nop_if_cache(h):
        def f(inst, ctx):
            n = E._op_name(inst)
            if n.endswith(("_INV", "_WB", "_WBINV", "_WBL2", "_WBINVL1", "_WBINVL1_VOL")): return UOp.sink(*ctx.inc_pc())
            return h(inst, ctx)
        return f
    # 3: pc reads / indirect jumps
    def pc_ops(h):
        def f(inst, ctx):
            n = E._op_name(inst)
            if n not in ("S_GETPC_B64", "S_SETPC_B64", "S_SWAPPC_B64"): return h(inst, ctx)
            nxt = ctx.rpc() + u64(ctx.inst_size); out = []; tgt = None
            if n != "S_GETPC_B64":
                s0 = ctx.inst_field(type(inst).ssrc0); tgt = E._u64(ctx.rsgpr_dyn(s0), ctx.rsgpr_dyn(s0 + c(1)))
            if n != "S_SETPC_B64":
                d = ctx.inst_field(type(inst).sdst); lo, hi = E._split64(nxt); out += [ctx.wsgpr_dyn(d, lo), ctx.wsgpr_dyn(d + c(1), hi)]
            if tgt is None: return UOp.sink(*out, *ctx.inc_pc())
            lo, hi = E._split64(tgt)
            return UOp.sink(*out, ctx.wsgpr_dyn(c(E.PC_LO_IDX), lo), ctx.wsgpr_dyn(c(E.PC_HI_IDX), hi))
        return f
    # 7: LLVM 15 reads the apertures with s_getreg_b32 hwreg(HW_REG_SH_MEM_BASES)
    def getreg(h):
        def f(inst, ctx):
            if "GETREG" not in E._op_name(inst): return h(inst, ctx)
            imm = ctx.inst_field(type(inst).simm16).cast(dt.uint32); d = ctx.inst_field(type(inst).sdst); hwid = imm & c(0x3f)
            other = ctx.rsgpr_dyn(c(E.SGPR_COUNT - 16) + hwid)
            v = hwid.eq(c(15)).where(c((SH >> 16) << 16 | PR >> 16), other)
            v = (v >> ((imm >> c(6)) & c(31))) & ((c(2) << ((imm >> c(11)) & c(31))) - c(1))
            return UOp.sink(ctx.wsgpr_dyn(d, v), *ctx.inc_pc())
        return f
    for k, v in list(E._INST_HANDLERS.items()):
        if k.__name__.startswith("SOPK"): E._INST_HANDLERS[k] = getreg(v)
        elif k.__name__.startswith("SOP1"): E._INST_HANDLERS[k] = pc_ops(v)
        elif k.__name__ in ("MUBUF", "VGLOBAL", "GLOBAL"): E._INST_HANDLERS[k] = nop_if_cache(v)
    orig_dec = E._decode_at                                # encodings the decoder does not know: overwrite with s_nop 0
    def dec(pc, arch):
        w = ctypes.c_uint32.from_address(pc).value
        if (arch == "rdna3" and w & 0xfffc0000 in (0xe0ac0000, 0xe0b00000)) or \
           (arch == "cdna" and w & 0xfffc0000 in (0xe0f80000, 0xe0fc0000, 0xe0a40000, 0xe0a00000)):
            ctypes.c_uint32.from_address(pc).value = 0xbf800000; ctypes.c_uint32.from_address(pc + 4).value = 0xbf800000
        image = images.decode(pc) if arch == "rdna3" else None
        return image.decoded() if image else orig_dec(pc, arch)
    E._decode_at = dec
