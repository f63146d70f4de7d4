"""NVML as monitors use it: nvidia-ml-py, nvitop and gpustat as they come from PyPI. Identity is compared with the driver
API's, a process is listed once it has launched a kernel, and no call claims a success that it is not."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pynvml as nvml

CUDA = ctypes.CDLL("libcuda.so.1")
FAILED = []

PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry store(.param .u64 p)
{
    .reg .u64 %a;
    .reg .u32 %x;
    ld.param.u64 %a, [p];
    mov.u32 %x, 42;
    st.global.u32 [%a], %x;
    ret;
}
\0"""

INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE, MISMATCH = 2, 3, 6, 7, 25


def call(name, *arguments):
    result = getattr(CUDA, name)(*arguments)
    if result != 0:
        raise RuntimeError(f"{name}: {result}")


def equal(got, expected, what):
    if got != expected:
        raise AssertionError(f"{what}: {got!r}, expected {expected!r}")


def fails(code, function, *arguments):
    try:
        got = function(*arguments)
    except nvml.NVMLError as error:
        return equal(error.value, code, function.__name__)
    raise AssertionError(f"{function.__name__} gave {got!r}, expected error {code}")


def before_init():
    fails(1, nvml.nvmlDeviceGetCount)
    fails(1, nvml.nvmlShutdown)


def init_is_counted():
    nvml.nvmlInit()
    nvml.nvmlInit()
    nvml.nvmlShutdown()
    nvml.nvmlDeviceGetCount()
    nvml.nvmlShutdown()
    fails(1, nvml.nvmlDeviceGetCount)


def after_init_a_fork_can_use_cuda():
    """PyTorch asks NVML before it forks, so that the driver is not started too early."""
    nvml.nvmlInit()
    child = os.fork()
    if child == 0:
        os._exit(0 if launch() == 42 else 1)
    equal(os.waitpid(child, 0)[1], 0, "the child's end")


def identity_is_cudas():
    call("cuInit", 0)
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    equal(nvml.nvmlDeviceGetCount(), count.value, "devices")
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    equal(nvml.nvmlSystemGetCudaDriverVersion(), version.value, "CUDA version")
    for ordinal in range(count.value):
        handle = nvml.nvmlDeviceGetHandleByIndex(ordinal)
        name = ctypes.create_string_buffer(256)
        call("cuDeviceGetName", name, 256, ordinal)
        equal(nvml.nvmlDeviceGetName(handle), name.value.decode(), "name")
        uuid = (ctypes.c_ubyte * 16)()
        call("cuDeviceGetUuid_v2", uuid, ordinal)
        equal(nvml.nvmlDeviceGetUUID(handle).replace("-", ""), "GPU" + bytes(uuid).hex(), "UUID")
        total = ctypes.c_size_t()
        call("cuDeviceTotalMem_v2", ctypes.byref(total), ordinal)
        for memory in nvml.nvmlDeviceGetMemoryInfo(handle), nvml.nvmlDeviceGetMemoryInfo(handle, nvml.nvmlMemory_v2):
            equal(memory.total, total.value, "memory")
            equal(memory.used + memory.free, total.value, "used and free")
        capability = ctypes.c_int(), ctypes.c_int()
        call("cuDeviceComputeCapability", ctypes.byref(capability[0]), ctypes.byref(capability[1]), ordinal)
        equal(nvml.nvmlDeviceGetCudaComputeCapability(handle), tuple(it.value for it in capability), "capability")
        bus_id = ctypes.create_string_buffer(32)
        call("cuDeviceGetPCIBusId", bus_id, 32, ordinal)
        equal(nvml.nvmlDeviceGetPciInfo(handle).busIdLegacy.lower(), bus_id.value.decode().lower(), "PCI address")


def handles_come_back():
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        again = [
            nvml.nvmlDeviceGetHandleByUUID(nvml.nvmlDeviceGetUUID(handle)),
            nvml.nvmlDeviceGetHandleByPciBusId(nvml.nvmlDeviceGetPciInfo(handle).busId),
        ]
        equal([nvml.nvmlDeviceGetIndex(it) for it in again], [index, index], "index")


def errors_are_nvmls():
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    fails(NOT_FOUND, nvml.nvmlDeviceGetHandleByUUID, "GPU-00000000-0000-0000-0000-000000000000")
    fails(NOT_FOUND, nvml.nvmlDeviceGetHandleByPciBusId, "ABCD:12:13.0")
    fails(INVALID_ARGUMENT, nvml.nvmlDeviceGetHandleByIndex, 99)
    fails(MISMATCH, nvml.nvmlDeviceGetMemoryInfo, handle, 1)
    fails(NOT_SUPPORTED, nvml.nvmlDeviceGetMigMode, handle)
    fails(NOT_SUPPORTED, nvml.nvmlDeviceSetPersistenceMode, handle, 1)
    small = ctypes.create_string_buffer(8)
    equal(nvml.nvmlLib.nvmlDeviceGetName(handle, small, 8), INSUFFICIENT_SIZE, "a small buffer")
    equal(nvml.nvmlErrorString(INSUFFICIENT_SIZE), "Insufficient Size", "a text")


def zeros_never_succeed():
    """Each export with NULL and 0 for everything: none may say that it has answered."""
    library = next(line.split()[-1] for line in open("/proc/self/maps") if "libnvidia-ml.so" in line)
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    equal(len(names) > 400, True, "the number of exports")
    for name in names:
        if name.startswith("nvmlInit") or name in ("nvmlShutdown", "nvmlErrorString"):
            continue
        if getattr(nvml.nvmlLib, name)(*[ctypes.c_void_p(0)] * 8) == 0:
            raise AssertionError(f"{name} succeeds with zeros")


def launch():
    """One kernel, which stores 42; its context stays."""
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    function, address, word = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint32()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"store")
    call("cuMemAlloc_v2", ctypes.byref(address), 4)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    stream = ctypes.c_void_p()
    call("cuStreamCreate", ctypes.byref(stream), 1)
    call("cuLaunchKernel", function, 64, 1, 1, 32, 1, 1, 0, stream, arguments, None)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH_v2", ctypes.byref(word), address, 4)
    return word.value


def processes():
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    return [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)]


def who_computes_is_listed():
    equal(os.getpid() in processes(), False, "listed before it computes")
    equal(launch(), 42, "the kernel's word")
    equal(os.getpid() in processes(), True, "listed when it computes")
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    equal(nvml.nvmlDeviceGetGraphicsRunningProcesses(handle), [], "graphics")
    count = ctypes.c_uint(0)
    asked = nvml.nvmlLib.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), None)
    equal((asked, count.value >= 1), (INSUFFICIENT_SIZE, True), "the room that is needed")
    equal(nvml.nvmlSystemGetProcessName(os.getpid()).endswith(Path(sys.executable).name), True, "the process's name")


def monitor(*arguments):
    path = Path(sys.prefix, "bin", arguments[0])
    if not path.exists():  # a folder of wheels without an environment of its own
        path = next(folder for folder in map(Path, sys.path) if (folder / "bin" / arguments[0]).exists()) / "bin" / arguments[0]
    ran = subprocess.run([sys.executable, path, *arguments[1:]], capture_output=True, text=True, timeout=120)
    equal(ran.returncode, 0, f"{arguments[0]}'s end: {ran.stderr[-300:]}")
    return ran.stdout


def nvitop_shows_the_device():
    shown = monitor("nvitop", "-1", "--ascii")
    for wanted in nvml.nvmlSystemGetDriverVersion(), nvml.nvmlDeviceGetPciInfo(nvml.nvmlDeviceGetHandleByIndex(0)).busId:
        equal(wanted in shown, True, f"{wanted} in\n{shown}")
    equal(str(os.getpid()) in shown, True, "our process")


def gpustat_shows_the_device():
    shown = json.loads(monitor("gpustat", "--json"))
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    first = shown["gpus"][0]
    equal(first["uuid"], nvml.nvmlDeviceGetUUID(handle), "UUID")
    equal(first["memory.total"], nvml.nvmlDeviceGetMemoryInfo(handle).total >> 20, "memory")
    equal(os.getpid() in [process["pid"] for process in first["processes"]], True, "our process")


def cudaway_smi_shows_the_same():
    tool = Path(os.environ["LD_LIBRARY_PATH"].split(":")[0]).parent / "bin" / "cudaway"
    handle = nvml.nvmlDeviceGetHandleByIndex(0)
    uuid, total = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetMemoryInfo(handle).total >> 20

    def smi(*arguments):
        return subprocess.run([tool, "smi", *arguments], capture_output=True, text=True, check=True, timeout=60).stdout

    equal(smi("-L"), f"GPU 0: {nvml.nvmlDeviceGetName(handle)} (UUID: {uuid})\n", "the list")
    shown = smi("--query-gpu=uuid,memory.total,serial", "--format=csv", "-i", uuid)
    equal(shown, f"uuid, memory.total [MiB], serial\n{uuid}, {total} MiB, [N/A]\n", "fields")
    equal(smi("--query-gpu=memory.total", "--format=csv,noheader,nounits"), f"{total}\n", "a plain field")
    apps = smi("--query-compute-apps=pid", "--format=csv,noheader").split()
    equal(str(os.getpid()) in apps, True, "our process")
    equal(f"Driver Version: {nvml.nvmlSystemGetDriverVersion()} " in smi(), True, "the table's head")
    wrong = subprocess.run([tool, "smi", "--query-gpu=colour"], capture_output=True, text=True)
    equal((wrong.returncode, wrong.stdout, "colour" in wrong.stderr), (1, "", True), "an unknown field")


CHECKS = (
    before_init,
    init_is_counted,
    after_init_a_fork_can_use_cuda,
    identity_is_cudas,
    handles_come_back,
    errors_are_nvmls,
    zeros_never_succeed,
    who_computes_is_listed,
    nvitop_shows_the_device,
    gpustat_shows_the_device,
    cudaway_smi_shows_the_same,
)


def main():
    for check in CHECKS:
        before = len(FAILED)
        try:
            check()
        except Exception as error:
            FAILED.append(f"{check.__name__}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        print(check.__name__, "ok" if len(FAILED) == before else "FAILED", flush=True)
    for line in FAILED:
        print("FAILED:", line)
    print("FAILED" if FAILED else "PASSED")
    raise SystemExit(bool(FAILED))


main()
