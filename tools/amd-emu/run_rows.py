"""Runs launches that crates/compiler/tests/amd_emu.rs lists, one JSON object a line, from a given line on.

Prints `begin N`, then `N HEX` (the bytes asked for) or `N error TEXT`. Memory lies where the list says."""

import ctypes
import json
import mmap
import signal
import sys

from code_object import CodeObject, Memory, align
from emulator import launch, load

# Instructions of a wave: some 10 s of this runner. And a bound for what is not a loop of instructions, in the runner's own time:
# what it waits for, a compiler or a busy machine, does not count.
LIMIT = 4_000_000
SECONDS = 120
MAP_FIXED_NOREPLACE, MAP_PRIVATE, MAP_ANONYMOUS = 0x100000, 2, 0x20

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def place(address, size):
    flags = MAP_FIXED_NOREPLACE | MAP_PRIVATE | MAP_ANONYMOUS
    if libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != address:
        raise OSError(f"no memory at {address:#x}")


def run(emulator, code, row):
    kernarg = bytes.fromhex(row["kernarg"])
    segment = Memory(len(kernarg) + 256)
    segment[: len(kernarg)] = kernarg
    placed = []
    try:
        for block in row["memory"]:
            size = align(block["bytes"], 4096) + 4096
            place(block["address"], size)
            placed.append((block["address"], size))
            for offset, content in block["pieces"]:
                content = bytes.fromhex(content)
                ctypes.memmove(block["address"] + offset, content, len(content))
        launch(emulator, code, row["kernel"], row["grid"], row["block"], segment.address, row["shared"], LIMIT)
        return ctypes.string_at(*row["read"]).hex()
    finally:
        for address, size in placed:
            libc.munmap(address, size)


def main(path, first):
    emulator, objects = load(), {}
    for number, line in enumerate(open(path)):
        if number < first:
            continue
        row = json.loads(line)
        print("begin", number, flush=True)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            if row["object"] not in objects:
                objects[row["object"]] = CodeObject(row["object"])
            print(number, run(emulator, objects[row["object"]], row), flush=True)
        except Exception as error:
            print(number, "error", type(error).__name__, " ".join(str(error).split())[:300], flush=True)


main(sys.argv[1], int(sys.argv[2]))
