"""What `cargo xtask on-nvidia` has packed, and this tree's examples and proofs, on a machine with an NVIDIA GPU and NVIDIA's libraries
(Python's wheels will do). Run it from the tree's root:

run.py PACK.tar.xz OUT [--seconds 200] [--only cases,rows,…]

Everything runs side by side, each in a process of its own, since a fault ends a process. OUT/logs.tar.gz gets a log for each kind: a line
`##### name: rc N, S s` before what each said. Docs: CONTRIBUTING.md.
"""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor

WORK = "/tmp/on-nvidia"
LIBRARIES = ("libcublas.so.13", "libcublasLt.so.13", "libcusolver.so.12", "libcusolverMg.so.12", "libcusparse.so.12", "libcufft.so.12", "libcurand.so.10",
             "libcudnn.so.9", "libcudart.so.13", "libnvJitLink.so.13", "libcuda.so.1")
HEADERS = ("cufft.h", "curand.h", "cudnn.h", "cublas_v2.h", "cusparse.h", "cusolverDn.h", "cusolverMg.h")
# What an example links besides the driver and the runtime.
LINKED = {
    "cublas_sgemm": ("libcublas.so.13", "libcublasLt.so.13"),
    "cublas_lt": ("libcublas.so.13", "libcublasLt.so.13"),
    "cublas_first_api": ("libcublas.so.13", "libcublasLt.so.13"),
    "cufft_transforms": ("libcufft.so.12",),
    "curand_numbers": ("libcurand.so.10",),
    "cusolver_systems": ("libcusolver.so.12",),
    "cusolver_multi_device": ("libcusolverMg.so.12",),
    "cusparse_products": ("libcusparse.so.12",),
    "cudnn_network": ("libcudnn.so.9",),
}
DEVICE_RUNTIME = ("device_graphs", "device_relay", "dynamic_parallelism")
FFT_PARTS = "single double half bfloat16 lengths refusals streams graphs descriptors".split()
BLAS_WORDS = "axpy dot gemv trsm syrk Sger nrm2 rot her2 geam getrf matinv gels tpttr dgmm GemmEx scal trmm tbsv amax asum".split()
# Processes that share the files of a kind of case.
PARTS = {"wgmma": 6, "oracle": 48, "matrix": 32, "random": 60}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pack")
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--only", default="", help="kinds whose names have one of these words")
    return parser.parse_args()


class Machine:
    """Where NVIDIA's files are here."""

    def __init__(self):
        wanted = " -o ".join(f"-name {name}" for name in LIBRARIES + HEADERS)
        found = subprocess.run(f"find / -xdev \\( {wanted} \\) 2>/dev/null", shell=True, capture_output=True, text=True).stdout
        self.files = sorted(found.split(), key=lambda file: ("cu12" in file, "cu13" not in file, len(file)))
        self.driver = self.file("libcuda.so.1")
        folders = dict.fromkeys(os.path.dirname(self.file(name)) for name in LIBRARIES)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=":".join(folders), OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.includes = [f"-I{os.path.dirname(self.file(name))}" for name in HEADERS if self.file(name) != name]

    def file(self, name):
        return next((file for file in self.files if os.path.basename(file) == name), name)


class Runs:
    def __init__(self, machine, seconds, only):
        self.machine, self.only = machine, [word for word in only.split(",") if word]
        self.end = time.time() + seconds
        self.pool, self.waiting = ThreadPoolExecutor(os.cpu_count() + 2), []

    def __call__(self, kind, name, argv, seconds=120, before=None, **changes):
        if not self.only or any(word in kind for word in self.only):
            self.waiting.append(self.pool.submit(self.run, kind, name, argv, seconds, before, changes))

    def run(self, kind, name, argv, seconds, before, changes):
        start = time.time()
        if before and (said := before()):
            return kind, f"##### {name}: not built\n{said}\n"
        left = min(seconds, self.end - time.time())
        if left < 3:
            return kind, f"##### {name}: not run\n"
        environment = {**self.machine.environment, **changes.pop("env", {})}
        try:
            ended = subprocess.run(argv, capture_output=True, timeout=left, env=environment, stdin=subprocess.DEVNULL, **changes)
            rc, out, err = ended.returncode, ended.stdout, ended.stderr
        except subprocess.TimeoutExpired as error:
            rc, out, err = "timeout", error.stdout or b"", error.stderr or b""
        except OSError as error:
            rc, out, err = "none", b"", str(error).encode()
        out, err = out.decode(errors="replace"), err.decode(errors="replace")[-3000:]
        return kind, f"##### {name}: rc {rc}, {time.time() - start:.1f} s\n{out}\n{'--- stderr' if err else ''}\n{err}\n"

    def logs(self):
        logs = {}
        for waiting in self.waiting:
            kind, said = waiting.result()
            logs[kind] = logs.get(kind, "") + said
        return logs


def built(machine, command):
    """Builds once, when it is first asked for; what it says if that fails."""
    def build():
        ended = subprocess.run(command, capture_output=True, text=True, env=machine.environment)
        return ended.stderr[-3000:] if ended.returncode else ""
    return build


def proofs(machine, runs):
    """Each family of a library's proof, with NVIDIA's library."""
    tools, here = f"{WORK}/tools", os.path.dirname(os.path.abspath(__file__))
    shutil.copytree("tools", tools, dirs_exist_ok=True)
    # NVIDIA's wheels have one major; both faces of the proof are that one's.
    path = f"{tools}/dnn-proof/library.py"
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace('Face(8, str(nine.with_name("libcudnn.so.8")), cudart)', "Face(9, path, cudart)"))
    cudart = machine.file("libcudart.so.13")
    for kind, library in (("dnn", "libcudnn.so.9"), ("solver", "libcusolver.so.12"), ("sparse", "libcusparse.so.12")):
        proof = f"{tools}/{kind}-proof/proof.py"
        with open(proof) as file:
            families = re.findall(r'^    "([^"]+)":', file.read(), re.MULTILINE)
        for family in families:
            argv = [sys.executable, f"{here}/going_on.py", proof, "7", machine.file(library), cudart, family]
            runs(f"proof-{kind}", family, argv, seconds=60)
    libraries = [machine.file(name) for name in ("libcublas.so.13", "libcublasLt.so.13", "libcudart.so.13")]
    for word in BLAS_WORDS:
        argv = [sys.executable, f"{tools}/blas-proof/proof.py", "tools/data/cublas/cublas.json", *libraries, "--only", word]
        runs("proof-blas", word, argv, seconds=60, env={"PYTHONPATH": f"{tools}/proof"})


def fft(machine, runs):
    source = f"{WORK}/tools/fft-proof/client.cu"
    with open(source) as file:
        # A property that cuFFT 13.0's header does not have.
        lines = [line for line in file.read().split("\n") if "BLUESTEIN_ONLY" not in line]
    with open(source, "w") as file:
        file.write("\n".join(lines))
    for part in FFT_PARTS:
        program = f"{WORK}/fft-{part}"
        command = ["nvcc", "-O2", "-std=c++17", "-cudart", "shared", "-arch=native", *machine.includes, "-o", program, source]
        command += [f"-Xlinker={machine.file(name)}" for name in ("libcufft.so.12", "libcudart.so.13")]
        runs("fft", part, [program, part, "7", "60"], seconds=80, before=built(machine, command))


def examples(machine, runs):
    os.makedirs(f"{WORK}/examples", exist_ok=True)
    for source in sorted(glob.glob("examples/*.cu")):
        name = os.path.basename(source)[:-3]
        program = f"{WORK}/examples/{name}"
        command = ["nvcc", "-std=c++17", "-w", "-arch=native", "-Iexamples", *machine.includes, "-o", program, source]
        command += ["-rdc=true", "-lcudadevrt"] if name in DEVICE_RUNTIME else []
        command += [f"-Xlinker={machine.file(file)}" for file in (*LINKED.get(name, ()), "libcuda.so.1")] + ["-lpthread"]
        runs("examples", name, [program], seconds=60, before=built(machine, command))


def filters(machine, runs):
    program = f"{WORK}/filters"
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "filters.cu")
    runs("filters", "textures", [program], before=built(machine, ["nvcc", "-std=c++17", "-arch=native", "-o", program, source]))


def main():
    asked = options()
    os.makedirs(WORK, exist_ok=True)
    with tarfile.open(asked.pack) as pack:
        pack.extractall(WORK, filter="data")
    machine = Machine()
    runs = Runs(machine, asked.seconds, asked.only)
    rows_on_cuda = [f"{WORK}/rows_on_cuda", machine.driver]
    libraries = [machine.file(name) for name in ("libcublas.so.13", "libcusparse.so.12", "libcudnn.so.9")]
    statuses = os.path.join(os.path.dirname(os.path.abspath(__file__)), "statuses.py")
    runs("statuses", "statuses", [sys.executable, statuses, machine.driver, machine.file("libcudart.so.13"), *libraries])
    for program in sorted(glob.glob(f"{WORK}/conformance/*")):
        # The runtime of the headers that it was built with.
        # A kernel that is loaded when it is first launched waits for the device, so for what a chapter holds back until after it.
        environment = {"LD_LIBRARY_PATH": f"{WORK}/lib:{os.path.dirname(machine.driver)}", "CUDA_MODULE_LOADING": "EAGER"}
        runs("conformance", os.path.basename(program), [program], seconds=170, env=environment)
    folder = "crates/hip-cpu/tests/run"
    count = sum(name.endswith(".ptx") for _, _, files in os.walk(folder) for name in files)
    for nth in range(count):
        runs("rows", f"file {nth}", [*rows_on_cuda, "--folder", folder, "--part", f"{nth}/{count}"], seconds=150)
    for kind, parts in PARTS.items():
        for nth in range(parts):
            argv = [*rows_on_cuda, "--folder", f"{WORK}/cases/{kind}", "--cases", "--part", f"{nth}/{parts}"]
            runs("cases", f"{kind} {nth}/{parts}", argv, seconds=150)
    filters(machine, runs)
    examples(machine, runs)
    proofs(machine, runs)
    fft(machine, runs)
    logs = runs.logs()
    about = subprocess.run("nvidia-smi; nvcc --version; python3 --version", shell=True, capture_output=True, text=True).stdout
    logs["about"] = about + "\n".join(machine.files)
    os.makedirs(f"{WORK}/logs", exist_ok=True)
    for kind, said in logs.items():
        with open(f"{WORK}/logs/{kind}.log", "w") as file:
            file.write(said)
    os.makedirs(asked.out, exist_ok=True)
    with tarfile.open(f"{asked.out}/logs.tar.gz", "w:gz") as archive:
        archive.add(f"{WORK}/logs", ".")
    print({kind: len(said) for kind, said in logs.items()})


main()
