"""Runs unmodified CUDA programs on machines without an NVIDIA GPU.

``activate()`` has this process take CUDAway's libraries in place of NVIDIA's, ``doctor()`` tells what keeps programs from
running here. The tool itself is ``cudaway`` on the command line, or ``python -m cudaway``.
"""

from ._activate import CannotActivate, activate, is_active
from ._doctor import Finding, doctor
from ._tool import tool, tree, version

__all__ = ["CannotActivate", "Finding", "activate", "doctor", "is_active", "tool", "tree"]


def __getattr__(name: str) -> str:
    # Looked up when it is asked for: every pytest of the environment imports this package.
    if name == "__version__":
        return version()
    raise AttributeError(f"module 'cudaway' has no attribute {name!r}")
