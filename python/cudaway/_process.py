"""What is mapped into this process, and what it is."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import sys
from pathlib import Path

from ._tool import tree

#: The entry of the auxiliary vector by which the kernel says that a program has more rights than its user (``elf.h``).
_AT_SECURE = 23

#: A library of ours that NVIDIA's have no counterpart of; it lies beside the others.
_OWN = "libcudaway_cudart.so"


def unfit() -> str | None:
    """Why no library of ours can be loaded here, whatever else is loaded."""
    if sys.platform != "linux":
        return f"CUDAway's libraries are for Linux, and this is {sys.platform}"
    if platform.machine() != "x86_64" or sys.maxsize < 2**32:
        bits = 64 if sys.maxsize > 2**32 else 32
        return f"CUDAway's libraries are for x86-64, and this Python is for {bits} bits of {platform.machine()}"
    if _glibc() is None:
        return "CUDAway's libraries need the C library glibc, and this Python uses another one, such as musl"
    if _is_secure():
        return (
            "this process has more rights than its user has (set-user-ID, set-group-ID, capabilities of its file, or a "
            "security module's): what its environment says is not believed there"
        )
    return None


def _glibc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return None


def _is_secure() -> bool:
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.argtypes, getauxval.restype = [ctypes.c_ulong], ctypes.c_ulong
    return bool(getauxval(_AT_SECURE))


def mapped() -> list[Path]:
    """The files in this process with names of CUDA's libraries, each once, in the order of their addresses."""
    pattern = _names()
    found: dict[Path, None] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2].removesuffix(" (deleted)")
            if path and pattern.fullmatch(path.rpartition("/")[2]):
                found[Path("/", path)] = None
    return list(found)


def _names() -> re.Pattern[str]:
    """The names that our libraries answer to: the stem of each, alone or with digits."""
    stems = {file.name.partition(".so")[0] for file in (tree() / "lib").glob("lib*.so.*")}
    return re.compile(rf"(?:{'|'.join(map(re.escape, sorted(stems)))})\.so(?:\.[0-9]+)*") if stems else re.compile("(?!)")


def is_ours(library: Path) -> bool:
    """Whether a file is one of CUDAway's: of this package, or of another installation."""
    folder = library.parent.parent if library.parent.name == "preload" else library.parent
    return (folder / _OWN).is_file()


def is_driver(library: Path) -> bool:
    return library.name.startswith("libcuda.so")
