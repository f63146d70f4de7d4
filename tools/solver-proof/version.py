"""What a libcusolver says its version is in a process of a libcudart's.

version.py libcusolver libcudart
"""

import ctypes
import sys

from library import Library

library = Library(sys.argv[1], sys.argv[2])
library.runtime("cudaFree", ctypes.c_void_p())
handle, version, part = library.handle(), ctypes.c_int(), ctypes.c_int()
parts = []
for number in range(3):
    library("cusolverGetProperty", number, ctypes.byref(part))
    parts.append(part.value)
library("cusolverGetVersion", ctypes.byref(version))
assert version.value == parts[0] * 1000 + parts[1] * 100 + parts[2], (version.value, parts)
library("cusolverDnDestroy", handle)
print(".".join(str(part) for part in parts))
print("PASSED")
