"""Runs kernels of a code object on tinygrad's instruction emulator (its `test/mockgpu/amd`, MIT; never part of this tree).

$TINYGRAD is a checkout of https://github.com/tinygrad/tinygrad with `tinygrad`, `test/mockgpu` and `test/amd`. What compilers
emit and the emulator lacks is patched here while it is loaded.
"""

import ctypes
import os
import shutil
import sys

import clocks
import cores
import forms
import images
import memory
import results
import scalars
from waves import Grid

ARCHITECTURES = {"gfx11": "rdna3", "gfx12": "rdna4", "gfx9": "cdna"}
# buffer_gl0_inv and buffer_gl1_inv; buffer_inv, buffer_wbl2 and those of older ones.
CACHE_CONTROL = {"rdna3": (0xE0AC0000, 0xE0B00000), "cdna": (0xE0F80000, 0xE0FC0000, 0xE0A40000, 0xE0A00000)}


def load():
    sys.path.insert(0, os.environ["TINYGRAD"])
    if not shutil.which(os.environ.get("CC", "clang")):
        os.environ["CC"] = next(it for it in ("clang-19", "clang-17", "clang-15") if shutil.which(it))
    import test.mockgpu.amd.emu as emulator
    import test.mockgpu.amd.pcode as parser

    emulator.parser = parser
    for part in (results, memory, scalars, cores, forms):
        part.patch(emulator)
    decoding(emulator)
    return emulator


def launch(emulator, code, name, grid, block, kernarg, dynamic_shared, limit=None):
    """Runs all blocks. `kernarg` is the address of the kernarg segment, `limit` how many instructions a wave may take."""
    about = code.descriptor(name)
    family = next((it for it in ARCHITECTURES if code.machine.startswith(it)), None)
    if family is None:
        raise NotImplementedError(f"the emulator has no {code.machine}")
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
    shared = about["group"] + dynamic_shared
    arch = ARCHITECTURES[family]
    Grid(emulator, about["entry"], grid, block, registers or None, shared, about["private"], about["rsrc2"], arch, limit).run()


def decoding(E):
    """Instructions that are run here, and those of caches that the decoder does not know, which become s_nop 0."""
    before = E._decode_at

    def decode(pc, arch):
        word = ctypes.c_uint32.from_address(pc)
        if word.value & 0xFFFC0000 in CACHE_CONTROL.get(arch, ()):
            word.value = ctypes.c_uint32.from_address(pc + 4).value = 0xBF800000
        ours = clocks.decode(pc, arch) or (images.decode(pc) if arch == "rdna3" else None)
        return ours.decoded() if ours else before(pc, arch)

    E._decode_at = decode
