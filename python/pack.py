"""Packs the wheel: a build backend as PEP 517 has it, of the standard library alone.

`cargo xtask dist --wheel` starts it with what only the build knows: the folders with the tree (`bin`, `lib`, …), the platform of the
objects, the time of the commit. The same contents give the same bytes: entries are sorted, and have that time and two modes.

A wheel is a zip archive, in which links do not survive. Links of the tree are written as a list, `links`, which the program
`cudaway` reads (crates/cli/src/links.rs).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import stat
import time
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

#: Where the tree lies in the package.
TREE = "cudaway/tree"

LICENSES = ("LICENSE", "LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt")
BILL_OF_MATERIALS = "cudaway.cdx.json"

#: The first time that a zip archive can have.
EARLIEST_S = 315532800


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    """The name of the wheel, in that folder."""
    settings = dict(config_settings or {})
    try:
        trees = [Path(tree) for tree in settings["trees"].split(os.pathsep)]
        platform, epoch_s = settings["platform"], int(settings["epoch"])
    except KeyError as missing:
        raise SystemExit(
            f"the wheel of CUDAway has its libraries in it, which `cargo xtask dist --wheel` builds and packs; {missing} is not given"
        ) from None
    return pack(Path(wheel_directory), trees, platform, epoch_s, int(settings.get("level", "9")))


def pack(folder: Path, trees: list[Path], platform: str, epoch_s: int, level: int) -> str:
    with open(HERE / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    with open(HERE.parent / "Cargo.toml", "rb") as file:
        version = tomllib.load(file)["workspace"]["package"]["version"]
    tag = f"py3-none-{platform}"
    stem = f"{project['name']}-{version}"
    info = f"{stem}.dist-info"

    entries: dict[str, Path | bytes] = {}
    for path in sorted((HERE / "cudaway").rglob("*")):
        if path.suffix in (".py", ".typed"):
            entries[f"cudaway/{path.relative_to(HERE / 'cudaway').as_posix()}"] = path
    files, links = read(trees)
    entries |= {f"{TREE}/{name}": path for name, path in files.items()}
    entries[f"{TREE}/links"] = "".join(f"{name}\t{target}\n" for name, target in sorted(links.items())).encode()
    entries |= {f"{info}/licenses/{name}": files[name] for name in LICENSES}
    entries[f"{info}/sboms/{BILL_OF_MATERIALS}"] = files[BILL_OF_MATERIALS]
    entries[f"{info}/METADATA"] = metadata(project, version).encode()
    entries[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: cudaway {version}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    entries[f"{info}/entry_points.txt"] = entry_points(project).encode()

    name = f"{stem}-{tag}.whl"
    aside = folder / f".{name}.{os.getpid()}"
    try:
        write(aside, entries, f"{info}/RECORD", time.gmtime(max(epoch_s, EARLIEST_S))[:6], level)
        aside.replace(folder / name)
    finally:
        aside.unlink(missing_ok=True)
    return name


def read(trees: list[Path]) -> tuple[dict[str, Path], dict[str, str]]:
    """The files and the links of trees that are one; what begins with a dot was left by a build that was ended."""
    files: dict[str, Path] = {}
    links: dict[str, str] = {}
    for tree in trees:
        for path in walk(tree):
            name = path.relative_to(tree).as_posix()
            if path.is_symlink():
                links[name] = os.readlink(path)
            else:
                files[name] = path
    return files, links


def walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from walk(path)
        else:
            yield path


def write(at: Path, entries: Mapping[str, Path | bytes], record: str, when: tuple[int, ...], level: int) -> None:
    rows = []
    with zipfile.ZipFile(at, "w", zipfile.ZIP_DEFLATED) as wheel:
        # By the specification what describes the wheel comes last.
        for name, content in sorted(entries.items(), key=lambda entry: (".dist-info/" in entry[0], entry[0])):
            is_program = isinstance(content, Path) and os.access(content, os.X_OK)
            data = content.read_bytes() if isinstance(content, Path) else content
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
            add(wheel, name, data, 0o755 if is_program else 0o644, when, level)
        add(wheel, record, "".join([*rows, f"{record},,\n"]).encode(), 0o644, when, level)


def add(wheel: zipfile.ZipFile, name: str, data: bytes, mode: int, when: tuple[int, ...], level: int) -> None:
    entry = zipfile.ZipInfo(name, when)  # type: ignore[arg-type]
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix: its modes follow.
    entry.external_attr = (stat.S_IFREG | mode) << 16
    wheel.writestr(entry, data, compresslevel=level)


def metadata(project: Mapping[str, Any], version: str) -> str:
    """Core metadata 2.4."""
    lines = [
        ("Metadata-Version", "2.4"),
        ("Name", project["name"]),
        ("Version", version),
        ("Summary", project["description"]),
        ("Keywords", ",".join(project["keywords"])),
        ("License-Expression", project["license"]),
        *(("License-File", name) for name in LICENSES),
        *(("Classifier", classifier) for classifier in project["classifiers"]),
        ("Requires-Python", project["requires-python"]),
        ("Description-Content-Type", "text/markdown"),
    ]
    head = "".join(f"{name}: {value}\n" for name, value in lines)
    return f"{head}\n{(HERE / project['readme']).read_text(encoding='utf-8')}"


def entry_points(project: Mapping[str, Any]) -> str:
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    return "\n".join(
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in names.items()) for group, names in groups.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Packs the wheel of CUDAway, for `cargo xtask dist --wheel`.")
    parser.add_argument("--tree", action="append", required=True, help="a folder whose contents are the tree; may be repeated")
    parser.add_argument("--platform", required=True, help="the platform's tag: manylinux_2_31_x86_64")
    parser.add_argument("--epoch", required=True, help="the time of all entries, in seconds since 1970")
    parser.add_argument("--level", default="9", help="how hard to compress, 0 to 9")
    parser.add_argument("folder", help="where the wheel goes")
    words = parser.parse_args()
    settings = {"trees": os.pathsep.join(words.tree), "platform": words.platform, "epoch": words.epoch, "level": words.level}
    print(build_wheel(words.folder, settings))


if __name__ == "__main__":
    main()
