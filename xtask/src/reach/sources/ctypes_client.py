import ctypes
import ctypes.util
import sys

name = ctypes.util.find_library("cuda") if sys.argv[1] == "find" else sys.argv[1]
version = ctypes.c_int(0)
try:
    if name:
        ctypes.CDLL(name).cuDriverGetVersion(ctypes.byref(version))
except OSError:
    pass
print("ours" if version.value > 1 else "theirs" if version.value == 1 else "none")
