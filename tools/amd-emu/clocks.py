"""Reads of a GPU's clocks, which the emulator lacks: this machine's clock, in nanoseconds and in the ticks of 100 MHz that the
constant clock has."""

import ctypes
import time

from images import Instruction, Registers, bits

SENDMSG_RTN_B64, GET_REALTIME = 77, 131
MEMTIME, MEMREALTIME = 36, 37
GETREG_B32, CYCLES_LOW, CYCLES_HIGH = 17, 29, 30


def decode(pc, arch):
    """The instruction at `pc`, or None where it is another's."""
    low = ctypes.c_uint32.from_address(pc).value
    if arch == "cdna":
        # SMEM; the register is the first of two.
        op = bits(low, 18, 8) if bits(low, 26, 6) == 0b110000 else None
        if op in (MEMTIME, MEMREALTIME):
            return reading("S_MEMTIME" if op == MEMTIME else "S_MEMREALTIME", bits(low, 6, 7), 8, 1 if op == MEMTIME else 10)
    elif bits(low, 23, 9) == 0b101111101 and bits(low, 8, 8) == SENDMSG_RTN_B64 and bits(low, 0, 8) == GET_REALTIME:
        return reading("S_SENDMSG_RTN_B64", bits(low, 16, 7), 4, 10)
    elif arch == "rdna4" and bits(low, 23, 9) == 0b101100000 | GETREG_B32 and bits(low, 0, 6) in (CYCLES_LOW, CYCLES_HIGH):
        return reading("S_GETREG_B32", bits(low, 16, 7), 4, 1, 32 * (bits(low, 0, 6) - CYCLES_LOW), 1)
    return None


def reading(name, to, size, nanoseconds, from_bit=0, n_words=2):
    def run(scalars, vectors):
        registers = Registers(scalars.value, vectors.value)
        ticks = time.monotonic_ns() // nanoseconds >> from_bit
        for nth in range(n_words):
            registers.scalars[to + nth] = ticks >> 32 * nth & 0xFFFFFFFF
        registers.step(size)

    return Instruction(run, name, size)
