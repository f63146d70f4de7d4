"""Runs launches for crates/testkit/programs/hip_emulated.c, which is the HIP library of a GPU that is emulated.

`serve.py FILE ADDRESS BYTES`: the descriptor FILE is the GPU's memory, which lies at ADDRESS here as it does in the library. A
request is a line of standard input, `OBJECT KERNEL GX GY GZ BX BY BZ SHARED KERNARG` (KERNARG in hex); the reply is a line of
standard output, `ok` or what went wrong."""

import ctypes
import mmap
import os
import sys

from code_object import CodeObject, Memory
from emulator import launch, load

MAP_FIXED_NOREPLACE, MAP_SHARED = 0x100000, 1


def place(file, address, size):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if libc.mmap(address, size, protection, MAP_FIXED_NOREPLACE | MAP_SHARED, file, 0) != address:
        raise OSError(f"no memory at {address:#x}")


def run(emulator, objects, line):
    path, kernel, *numbers, shared, kernarg = line.split()
    if path not in objects:
        objects[path] = CodeObject(path)
    kernarg = bytes.fromhex(kernarg)
    segment = Memory(len(kernarg) + 256)
    segment[: len(kernarg)] = kernarg
    numbers = [int(it) for it in numbers]
    launch(emulator, objects[path], kernel, numbers[:3], numbers[3:], segment.address, int(shared))


def main(file, address, size):
    # What the emulator prints is no reply.
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    place(int(file), int(address, 0), int(size, 0))
    emulator, objects = load(), {}
    for line in sys.stdin:
        try:
            run(emulator, objects, line)
            print("ok", file=replies)
        except Exception as error:
            print(type(error).__name__, " ".join(str(error).split())[:300], file=replies)


main(*sys.argv[1:])
