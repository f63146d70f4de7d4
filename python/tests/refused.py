"""Prints what cudaway.activate() says where it refuses. The first word is the case."""

import ctypes
import os
import platform
import sys

import cudaway

case, *words = sys.argv[1:]
if case == "loaded":
    library = ctypes.CDLL(words[0])
elif case == "processor":
    platform.machine = lambda: "aarch64"
elif case == "platform":
    sys.platform = "darwin"
elif case == "libc":

    def confstr(name):
        raise ValueError(name)

    os.confstr = confstr
else:
    assert case == "as it is", case
try:
    cudaway.activate()
except cudaway.CannotActivate as why:
    print(why)
    assert not cudaway.is_active() or case == "loaded"
    print("PASSED")
else:
    sys.exit("it did not refuse")
