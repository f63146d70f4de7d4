"""Calls of cuBLAS and cuBLASLt that keep, tell or log something, through their C names: what they answer is the manual's.

usage: calls.py LIBCUBLAS LIBCUBLASLT LIBCUDART [--only WORD] [--found FILE] [--act NAME]

Every case runs in a process of its own, since loggers and their variables are the process's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from ctypes import CDLL, RTLD_GLOBAL, byref, c_int, c_void_p

SUCCESS, NOT_INITIALIZED, INVALID_VALUE, NOT_SUPPORTED = 0, 1, 7, 15

CASES = {}
CALLED = ".called"  # in a case's folder, the names that it called


class Wrong(Exception):
    pass


def case(**variables):
    """A case, and the environment it runs in. Its docstring is the promise."""

    def register(function):
        CASES[function.__name__] = (function, variables)
        return function

    return register


def equal(found, wanted, what=""):
    if found != wanted:
        raise Wrong(f"{what or 'the answer'} is {found!r}, not {wanted!r}")


def holds(condition, what):
    if not condition:
        raise Wrong(what)


class Remembering:
    """A library, and the names of what was taken from it."""

    def __init__(self, library, names):
        self._library, self._names = library, names

    def __getattr__(self, name):
        self._names.add(name)
        return getattr(self._library, name)


class Libraries:
    def __init__(self, blas, lt, cuda):
        self.names = set()
        self.blas, self.lt = (Remembering(CDLL(path, RTLD_GLOBAL), self.names) for path in (blas, lt))
        self.cuda = CDLL(cuda)
        self.folder = os.environ.get("CALLS_FOLDER", ".")

    def handle(self):
        handle = c_void_p()
        equal(self.blas.cublasCreate_v2(byref(handle)), SUCCESS, "cublasCreate")
        return handle

    def lt_handle(self):
        handle = c_void_p()
        equal(self.lt.cublasLtCreate(byref(handle)), SUCCESS, "cublasLtCreate")
        return handle

    def version(self, handle):
        """A call that only tells something."""
        version = c_int()
        equal(self.blas.cublasGetVersion_v2(handle, byref(version)), SUCCESS, "cublasGetVersion")


def act(name, libraries):
    function, _ = CASES[name]
    try:
        function(libraries)
    except Wrong as wrong:
        print(f"wrong: {wrong}", file=sys.stderr)
        return 1
    with open(os.path.join(libraries.folder, CALLED), "w") as file:
        json.dump(sorted(libraries.names), file)
    return 0


def run(name, paths):
    """What a case says of itself when it is wrong, and the names that it called."""
    function, variables = CASES[name]
    with tempfile.TemporaryDirectory() as folder:
        environment = {key: value.replace("FOLDER", folder) for key, value in variables.items()}
        environment = {**os.environ, **environment, "CALLS_FOLDER": folder}
        ended = subprocess.run(
            [sys.executable, __file__, *paths, "--act", name], env=environment, capture_output=True, text=True
        )
        after = getattr(function, "after", None)
        if ended.returncode == 0:
            with open(os.path.join(folder, CALLED)) as file:
                called = json.load(file)
            os.remove(os.path.join(folder, CALLED))
            try:
                (after or _silent)(ended.stdout, ended.stderr, folder)
                return None, called
            except Wrong as wrong:
                return str(wrong), []
        return f"exit {ended.returncode}: {ended.stdout}{ended.stderr}", []


def _silent(stdout, stderr, _):
    equal(stdout, "", "stdout")
    equal(stderr, "", "stderr")


def after(check_of):
    """What the process of a case has left: `check(stdout, stderr, folder)`."""

    def register(check):
        check_of.after = check
        return check

    return register


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for argument in ("cublas", "cublaslt", "cudart"):
        parser.add_argument(argument)
    parser.add_argument("--only", default="", help="cases that contain this")
    parser.add_argument("--found", help="a file for the names that each case called, as JSON")
    parser.add_argument("--act", help="this case alone, in this process")
    arguments = parser.parse_args()
    paths = (arguments.cublas, arguments.cublaslt, arguments.cudart)
    if arguments.act:
        raise SystemExit(act(arguments.act, Libraries(*paths)))
    is_wrong, found = False, {}
    for name in (name for name in CASES if arguments.only in name):
        wrong, called = run(name, paths)
        found[name.replace("_", " ")] = called
        is_wrong |= wrong is not None
        print(f"{'ok' if wrong is None else 'FAILED'} {name.replace('_', ' ')}")
        for line in (wrong or "").splitlines():
            print(f"    {line}")
    if arguments.found:
        with open(arguments.found, "w") as file:
            json.dump(found, file)
    if is_wrong:
        raise SystemExit(1)
    print("PASSED")


if __name__ == "__main__":
    # The cases register with this module, not with a second copy of it.
    sys.modules["calls"] = sys.modules["__main__"]
    import algorithms  # noqa: F401
    import ends  # noqa: F401
    import logger  # noqa: F401
    import xt  # noqa: F401

    main()
