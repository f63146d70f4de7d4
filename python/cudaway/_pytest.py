"""``pytest --cudaway``: pytest is started once more, with the same words, by ``cudaway run``.

Nothing of CUDAway is loaded without the option. The process stays the same one (``exec``), so its exit status and its streams are
pytest's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

#: The process that was started once more: a second time would not help it.
_GUARD = "_CUDAWAY_PYTEST"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("cudaway", "CUDAway").addoption(
        "--cudaway",
        action="store_true",
        help="Run the tests on CUDAway: pytest is started once more, by `cudaway run`.",
    )


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Before pytest takes the streams for itself, which a wrapper of its own does, and before any conftest.py is imported."""
    if early_config.known_args_namespace.cudaway:
        _start_once_more(early_config)
    yield


def pytest_report_header(config: pytest.Config) -> str | None:
    from ._tool import version

    return f"cudaway: {version()}, by `cudaway run`" if config.getoption("cudaway") else None


def _start_once_more(config: pytest.Config) -> None:
    from . import _activate, _process, _tool

    if (why := _process.unfit()) is not None:
        raise pytest.UsageError(f"--cudaway: {why}")
    if _activate.is_active():
        return
    if os.environ.get(_GUARD) == str(os.getpid()):
        raise pytest.UsageError("--cudaway: pytest was started by `cudaway run`, and our libcuda.so.1 is not in it")
    if list(config.invocation_params.args) != sys.argv[1:]:
        raise pytest.UsageError(
            "--cudaway: a program called pytest.main(), and only pytest's own command line can be started once more; "
            "start that program by `cudaway run`"
        )
    try:
        program = os.fspath(_tool.tool())
        words = [program, "run", "--", sys.executable, *_words()]
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(program, words, {**os.environ, _GUARD: str(os.getpid())})
    except OSError as error:
        raise pytest.UsageError(f"--cudaway: {error}") from error


def _words() -> list[str]:
    """What this interpreter was started with, its own options included (Python has it as ``sys.orig_argv`` only from 3.10 on)."""
    with open("/proc/self/cmdline", "rb") as line:
        return [os.fsdecode(word) for word in line.read().split(b"\0")[1:-1]]
