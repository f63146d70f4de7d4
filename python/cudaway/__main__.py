"""``python -m cudaway``, and the command ``cudaway``: the program of this package takes the place of this one."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from ._tool import tool


def main() -> NoReturn:
    try:
        program = tool()
        # Python ignores these, and what takes its place would go on ignoring them.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execv(program, ["cudaway", *_words(sys.argv[1:])])
    except OSError as error:
        print(f"cudaway: {error}", file=sys.stderr)
        # What env(1) and `cudaway run` answer when they fail themselves.
        sys.exit(125)


def _words(words: list[str]) -> list[str]:
    """A kernel for Jupyter is this Python, unless another one is named."""
    is_kernel = words[:1] == ["install"] and "--jupyter" in words
    if is_kernel and not any(word.partition("=")[0] == "--python" for word in words):
        return [*words, "--python", sys.executable]
    return words


if __name__ == "__main__":
    main()
