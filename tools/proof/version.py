"""What a library says its version is in a process of a libcudart's.

version.py library libcudart NAMES CREATE DESTROY [handle]: NAMES is what its functions begin with, CREATE and DESTROY are those of its
handle; with `handle` its `GetVersion` takes one.
"""

import ctypes
import sys

from device import Library

path, cudart, names, Library.CREATE, destroy = sys.argv[1:6]
library = Library(path, cudart)
library.runtime("cudaFree", ctypes.c_void_p())
handle, version, part = library.handle(), ctypes.c_int(), ctypes.c_int()
parts = []
for number in range(3):
    library(names + "GetProperty", number, ctypes.byref(part))
    parts.append(part.value)
library(names + "GetVersion", *([handle] if "handle" in sys.argv[6:] else []), ctypes.byref(version))
assert version.value == parts[0] * 1000 + parts[1] * 100 + parts[2], (version.value, parts)
library(destroy, handle)
print(".".join(str(part) for part in parts))
print("PASSED")
