"""Compiles CUDA C++ to PTX by NVRTC. usage: nvrtc.py LIBNVRTC SOURCE OUT OPTION…"""

import ctypes
import sys

library, source, out, *options = sys.argv[1:]
nvrtc = ctypes.CDLL(library)


def text(size_of, get):
    size = ctypes.c_size_t()
    assert getattr(nvrtc, size_of)(program, ctypes.byref(size)) == 0
    buffer = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, get)(program, buffer) == 0
    return buffer.raw[: size.value - 1]


program = ctypes.c_void_p()
with open(source, "rb") as file:
    code = file.read()
assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), code, source.encode(), 0, None, None) == 0
given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
if nvrtc.nvrtcCompileProgram(program, len(options), given) != 0:
    sys.exit(text("nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode(errors="replace"))
ptx = text("nvrtcGetPTXSize", "nvrtcGetPTX")
with open(out, "wb") as file:
    file.write(ptx)
