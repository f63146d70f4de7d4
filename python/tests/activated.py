"""cudaway.activate() in this process, which nothing of ours was in: whoever asks for CUDA's libraries gets ours, by whatever name."""

import ctypes
import os
import subprocess
import sys

import cudaway
import launch

assert not cudaway.is_active()
assert not cudaway._process.mapped()
notes = cudaway.activate()
assert notes == (), notes
assert cudaway.is_active()
assert cudaway.activate() == (), "a second time it does nothing"
launch.run()

# By SONAME, without a version, by a path, and what has no name at all.
for name in ("libcuda.so.1", "libcuda.so", "/usr/lib64/libcuda.so.1"):
    assert ctypes.CDLL(name).cudaway_get_config, name
assert ctypes.CDLL(None).cuInit, "the names are there for all"
for release, runtime in ((11, "libcudart.so.11.0"), (12, "libcudart.so.12"), (13, "libcudart.so.13")):
    version = ctypes.c_int()
    launch.check(ctypes.CDLL(runtime).cudaRuntimeGetVersion(ctypes.byref(version)))
    assert version.value // 1000 == release, (runtime, version.value)
for name, function in (
    ("libcublas.so.12", "cublasCreate_v2"),
    ("libcudnn.so.9", "cudnnCreate"),
    ("libcudnn_cnn_infer.so.8", "cudnnConvolutionForward"),
    ("libcufft.so.11", "cufftExecC2C"),
    ("libcurand.so.10", "curandCreateGenerator"),
    ("libcusolver.so.11", "cusolverDnCreate"),
    ("libcusparse.so.12", "cusparseCreate"),
    ("libnvJitLink.so.12", "nvJitLinkVersion"),
    ("libnvidia-ml.so.1", "nvmlInit_v2"),
):
    assert getattr(ctypes.CDLL(name), function), name
tree = cudaway.tree().resolve()
for library in cudaway._process.mapped():
    assert tree in library.parents, f"{library} is not of the package"

# What is started has us too, and our tools.
script = "import sys; sys.path.insert(0, sys.argv[1]); import launch; launch.run()"
subprocess.run([sys.executable, "-c", script, os.path.dirname(launch.__file__)], check=True)
assert subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.startswith("GPU 0: ")

findings = cudaway.doctor(pid=os.getpid())
assert findings and {finding.level for finding in findings} == {"ok"}, "\n".join(map(str, findings))
ours = [finding for finding in findings if finding.id == "process"]
assert len(ours) == 1 and str(tree / "lib") in ours[0].seen, ours
print("PASSED")
