"""What ``cudaway doctor`` finds, as values."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ._tool import tool


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    #: Stable, for scripts: ``files.soname``.
    id: str
    level: Literal["ok", "warning", "fault"]
    seen: str
    #: Why it matters; empty where all is well.
    why: str
    #: What mends it.
    fix: str

    def __str__(self) -> str:
        lines = [f"{self.level}: {self.seen} ({self.id})"]
        lines += [f"  {head}: {said}" for head, said in (("why", self.why), ("fix", self.fix)) if said]
        return "\n".join(lines)


def doctor(command: Sequence[str | os.PathLike[str]] = (), *, pid: int | None = None) -> list[Finding]:
    """Looks for what keeps programs from running on CUDAway here, runs a kernel, and tells all that was found.

    With ``command`` also how that program would be started, which it is not; with ``pid`` whether that process is on our
    libraries: ``os.getpid()`` is this one.
    """
    words = [os.fspath(tool()), "doctor", "--json"]
    if pid is not None:
        words += ["--pid", str(pid)]
    if command:
        words += ["--", *(os.fspath(word) for word in command)]
    answer = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        findings = json.loads(answer.stdout)["findings"]
    except ValueError as error:
        said = answer.stderr.strip() or f"it ended with {answer.returncode}"
        raise RuntimeError(f"cudaway doctor gave no answer: {said}") from error
    return [Finding(**finding) for finding in findings]
