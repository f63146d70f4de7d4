"""Where the program ``cudaway`` and the libraries of this package lie."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path


def tree() -> Path:
    """The folder with ``bin``, ``lib`` and ``docs``, as an archive of CUDAway has them."""
    return Path(__file__).resolve().parent / "tree"


def tool() -> Path:
    """The program ``cudaway``."""
    program = tree() / "bin" / "cudaway"
    if not program.is_file():
        raise FileNotFoundError(
            f"there is no {program}: this package has no libraries with it, as in a checkout of the sources; "
            "`cargo xtask dist --wheel` makes a wheel that has them"
        )
    return program


def version() -> str:
    """The version of the package as it is installed."""
    try:
        return metadata.version("cudaway")
    except metadata.PackageNotFoundError:
        return "0+not-installed"
