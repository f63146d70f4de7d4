"""Having this process take our libraries in place of CUDA's, as ``cudaway run`` has a program that it starts.

The loader compares the name of a library that is asked for with the SONAME of each that is loaded, before it looks at any file. So
whoever asks for ``libcuda.so.1`` or ``libcudart.so.12`` once ours are loaded gets ours. What was loaded before stays.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
from typing import Any

from . import _process
from ._tool import tool, tree

_lock = threading.Lock()
#: What was loaded here, and why it was not all.
_loaded: list[ctypes.CDLL] = []
_failure: str | None = None


class CannotActivate(RuntimeError):
    """Says in a sentence why this process cannot take our libraries, and what can be done."""


def is_active() -> bool:
    """Whether this process has our ``libcuda.so.1``, by ``activate()``, ``cudaway run`` or in another way."""
    if _process.unfit() is not None:
        return False
    drivers = [library for library in _process.mapped() if _process.is_driver(library)]
    return bool(drivers) and all(map(_process.is_ours, drivers))


def activate() -> tuple[str, ...]:
    """Has whatever asks this process's loader for CUDA's libraries from now on get ours, and programs that are started too.

    To be called before the first import that loads CUDA's libraries. The variables that ``cudaway run`` sets are set in
    ``os.environ``. Gives what is reached only in part, a sentence each; nothing where all is well. In a process that has our
    libraries already it does nothing.

    Raises:
        CannotActivate: NVIDIA's libraries are in the process already, or ours cannot be loaded into it.
    """
    with _lock:
        if _failure is not None:
            raise CannotActivate(_failure)
        if _loaded:
            return ()
        if (why := _process.unfit()) is not None:
            raise CannotActivate(why)
        mapped = _process.mapped()
        theirs = [library for library in mapped if not _process.is_ours(library)]
        if theirs:
            names = ", ".join(map(str, theirs))
            raise CannotActivate(
                f"CUDA's libraries are in this process already ({names}), and what is loaded stays: call cudaway.activate() "
                "before the import that loads them, or start the program by `cudaway run`"
            )
        drivers = list(filter(_process.is_driver, mapped))
        if drivers and "libcuda.so.1" in os.environ.get("LD_PRELOAD", ""):
            # Started by `cudaway run`, of this package or of another installation.
            return ()
        others = [driver for driver in drivers if tree() not in driver.parents]
        if others:
            raise CannotActivate(
                f"another installation of CUDAway has its libraries in this process already ({others[0]}), and what is loaded "
                "stays: start the program by its `cudaway run`"
            )
        plan = _plan()
        # A library that is opened later may need names without saying of which library.
        _load(plan["preload"], os.RTLD_GLOBAL)
        _load(plan["parts"], os.RTLD_LOCAL)
        os.environ.update(plan["variables"])
    unclaimed = plan["unclaimed"]
    notes = [finding["why"] for finding in plan["findings"]]
    if unclaimed is not None:
        notes.append(f"what is opened as libcuda.so or by a path does not come to CUDAway: {unclaimed}")
    return tuple(notes)


def _plan() -> dict[str, Any]:
    """What ``cudaway run`` would preload and set for this interpreter."""
    try:
        program = sys.executable or os.readlink("/proc/self/exe")
        command = [os.fspath(tool()), "run", "--json", "--into", str(os.getpid()), "--", program]
        answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        plan: dict[str, Any] = json.loads(answer.stdout)
    except OSError as error:
        raise CannotActivate(f"CUDAway's own program cannot be started: {error}") from error
    except ValueError as error:
        said = answer.stderr.strip() or f"it ended with {answer.returncode}"
        raise CannotActivate(f"CUDAway's own program does not say what to load: {said}") from error
    reasons = [finding["why"] for finding in plan["findings"] if not finding["reached"]]
    if reasons:
        raise CannotActivate(
            f"{'; '.join(reasons)}. Call cudaway.activate() before the first import that uses CUDA, or start the program by `cudaway run`"
        )
    return plan


def _load(libraries: list[str], scope: int) -> None:
    """Opens each, so that the loader finds it by its name."""
    global _failure
    for path in libraries:
        try:
            _loaded.append(ctypes.CDLL(path, mode=scope | os.RTLD_NOW))
        except OSError as error:
            # What is loaded by now stays, and with it the mixture.
            _failure = f"the loader does not take {path}: {error}"
            raise CannotActivate(_failure) from error
