"""Forms of instructions that the emulator has compiled, kept in a folder: each takes it 50 to 100 ms.

The folder is below ~/.cache/cudaway-toolchains, or where $AMD_EMU_FORMS says, and has a name of all that makes the code: the
emulator's sources, ours, and the processor. A file is one form; its name says which instructions have it.
"""

import hashlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

# What changes the emulator's forms.
PATCHES = ("cores.py", "edits.py", "memory.py", "results.py", "scalars.py")
KEPT = 8


def patch(E):
    from tinygrad.device import TinyELF

    folder = folder_of(E)
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        forget(folder.parent)
    known, seen = {}, set()
    compile_form = E._get_runner.__wrapped__

    def look():
        """What is new in the folder, by whichever process."""
        for name in set(os.listdir(folder)) - seen:
            seen.add(name)
            fields = name.split("-")
            if len(fields) == 4:
                kind, size, base, mask = fields
                known.setdefault((kind, int(size)), []).append((int(base, 16), int(mask, 16), name))

    def find(kind, size, word):
        for base, mask, entry in known.get((kind, size), []):
            if word & mask == base:
                return entry

    def kept(kind, size, word):
        name = find(kind, size, word)
        if name is None:
            look()
            name = find(kind, size, word)
        return name

    def load(name):
        takes, _, code = (folder / name).read_bytes().partition(b"\n")
        program = SimpleNamespace(arg=SimpleNamespace(globals=tuple(int(it) for it in takes.split())))
        elf = TinyELF(code, name, E.Device["CPU"].renderer.target, ())
        return program, E.Device["CPU"].runtime(elf)

    loaded = {}

    def get_runner(inst_bytes, arch="rdna3"):
        inst = E.decode_inst(inst_bytes, arch)
        kind, size = f"{arch}.{type(inst).__name__}", inst.size()
        name = kept(kind, size, int.from_bytes(inst_bytes[:size], "little"))
        if name is None:
            name = keep(kind, compile_form(inst_bytes, arch))
        if name not in loaded:
            loaded[name] = load(name)
        return loaded[name]

    def keep(kind, form):
        program, _ = form
        _, base, mask, size, _ = next(it for it in reversed(E._canonical_runner_cache) if it[4][0] is program)
        name = f"{kind}-{size}-{base:x}-{mask:x}"
        content = " ".join(str(it) for it in program.arg.globals).encode() + b"\n" + program.to_elf().lib
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(content)
        os.rename(file.name, folder / name)
        look()
        return name

    E._get_runner = get_runner


def forget(root):
    """All folders of forms but the KEPT newest."""
    folders = [it for it in root.iterdir() if re.fullmatch("[0-9a-f]{16}", it.name)]
    for folder in sorted(folders, key=lambda it: it.stat().st_mtime)[:-KEPT]:
        shutil.rmtree(folder, ignore_errors=True)


def processor():
    """What a compiler may use of this machine's."""
    with open("/proc/cpuinfo") as lines:
        return next((line for line in lines if line.startswith("flags")), "")


def folder_of(E):
    where = os.environ.get("AMD_EMU_FORMS")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(where) if where else cache / "cudaway-toolchains/amd-emu"
    made_by = hashlib.sha256(f"{E.Device['CPU'].renderer.target} {os.environ.get('CC')} {processor()}".encode())
    emulator = Path(os.environ["TINYGRAD"])
    files = [Path(__file__).with_name(name) for name in PATCHES] + [emulator / "test/amd/helpers.py"]
    for top in ("tinygrad", "test/mockgpu/amd"):
        files += sorted((emulator / top).rglob("*.py"))
    for file in files:
        made_by.update(file.read_bytes())
    return root / made_by.hexdigest()[:16]
