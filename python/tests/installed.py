"""The files of the installed package are those of its RECORD, with their hashes; and nothing else was put beside them."""

import base64
import hashlib
import os
from importlib import metadata
from pathlib import Path

import cudaway

package = metadata.distribution("cudaway")
record = {Path(package.locate_file(file)).resolve(): file for file in package.files}
n_hashed = 0
for path, file in record.items():
    if file.hash is None:
        continue
    digest = hashlib.new(file.hash.mode, path.read_bytes()).digest()
    assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, path
    n_hashed += 1
assert n_hashed > 50, n_hashed
home = Path(package.locate_file("cudaway")).resolve()
there = {Path(folder, name) for folder, _, names in os.walk(home) for name in names if not name.endswith(".pyc")}
assert there <= set(record), there - set(record)
assert not any(path.is_symlink() for path in home.rglob("*"))
for name in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES.txt"):
    assert any(path.name == name and path.stat().st_size for path in record), name
assert (home / "py.typed").is_file()
assert cudaway.__version__ == package.version
entry_points = {(it.group, it.name) for it in package.entry_points}
assert entry_points == {("console_scripts", "cudaway"), ("pytest11", "cudaway")}, entry_points
print("PASSED")
