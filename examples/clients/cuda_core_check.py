"""cuda.core and cuda.bindings as they come from PyPI: PTX by NVRTC, memory, streams, events, graphs, launches and links, with
results compared to NumPy's. `compile("ptx")` is the form that leaves machine code to the driver."""

import numpy as np
from cuda.bindings import driver, nvjitlink
from cuda.core import (
    Device, LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, ObjectCode, Program, ProgramOptions, launch,
)

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float* x, const float* y, float* out, size_t n) {
    for (size_t i = threadIdx.x + size_t(blockIdx.x) * blockDim.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        out[i] = a * x[i] + y[i];
}
template <typename T> __global__ void twice(T* values, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) values[i] = values[i] + values[i];
}
extern "C" __device__ int offset = 5;
extern "C" __global__ void shifted(int* values) { values[threadIdx.x] = threadIdx.x + offset; }
"""

FAILED = []
N = 10_000

device = Device()
device.set_current()
stream = device.create_stream()
architecture = "sm_%d%d" % tuple(device.compute_capability)
program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=architecture))
code = program.compile("ptx", name_expressions=("twice<double>", "twice<int>"))
pinned = LegacyPinnedMemoryResource()


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    if got.shape != expected.shape or got.dtype != expected.dtype or not np.array_equal(got, expected):
        FAILED.append(f"{name}: {got.ravel()[:4]}…, expected {expected.ravel()[:4]}…")


def host(bytes_, dtype):
    buffer = pinned.allocate(bytes_)
    return buffer, np.from_dlpack(buffer).view(dtype)


def grid(n, block=128):
    return LaunchConfig(grid=-(-n // block), block=block)


def kernels():
    (bx, x), (by, y), (bo, out) = (host(4 * N, np.float32) for _ in range(3))
    # Sums and products of small integers are exact.
    x[:], y[:], out[:] = np.arange(N), 3, 0
    launch(stream, LaunchConfig(grid=7, block=64), code.get_kernel("saxpy"), np.float32(2), bx, by, bo, np.uint64(N))
    stream.sync()
    same("saxpy", out, (2 * np.arange(N) + 3).astype(np.float32))


def templates():
    for name, dtype in (("twice<double>", np.float64), ("twice<int>", np.int32)):
        buffer, values = host(N * np.dtype(dtype).itemsize, dtype)
        values[:] = np.arange(N)
        launch(stream, grid(N), code.get_kernel(name), buffer, np.int32(N))
        stream.sync()
        same(name, values, (2 * np.arange(N)).astype(dtype))


def copies():
    (ba, a), (bb, b) = host(4 * N, np.int32), host(4 * N, np.int32)
    a[:], b[:] = np.arange(N), 0
    on_device = device.memory_resource.allocate(4 * N, stream=stream)
    on_device.copy_from(ba, stream=stream)
    launch(stream, grid(N), code.get_kernel("twice<int>"), on_device, np.int32(N))
    bb.copy_from(on_device, stream=stream)
    stream.sync()
    same("copies", b, (2 * np.arange(N)).astype(np.int32))
    on_device.close(stream)


def events():
    other, (buffer, values) = device.create_stream(), host(4 * N, np.int32)
    values[:] = 1
    for turn in range(10):
        where = (stream, other)[turn % 2]
        launch(where, grid(N), code.get_kernel("twice<int>"), buffer, np.int32(N))
        # The other stream goes on when this one is there.
        (stream, other)[1 - turn % 2].wait(where.record())
    # `device.sync()` would ask cuda.bindings.runtime, whose static runtime is stripped and so not taken over.
    stream.sync()
    other.sync()
    same("events", values, np.full(N, 1 << 10, np.int32))


def graphs():
    buffer, values = host(4 * N, np.int32)
    values[:] = 1
    builder = device.create_graph_builder().begin_building()
    for _ in range(3):
        launch(builder, grid(N), code.get_kernel("twice<int>"), buffer, np.int32(N))
    graph = builder.end_building().complete()
    same("nothing runs while a graph is built", values, np.ones(N, np.int32))
    for _ in range(2):
        graph.launch(stream)
    stream.sync()
    same("graph", values, np.full(N, 64, np.int32))


def checked(answer):
    error, *rest = answer
    assert error == driver.CUresult.CUDA_SUCCESS, error
    return rest[0] if len(rest) == 1 else rest


def bindings():
    """The same code through cuda.bindings alone: module, variable, function, extra errors."""
    module = checked(driver.cuModuleLoadData(bytes(code.code)))
    address, size = checked(driver.cuModuleGetGlobal(module, b"offset"))
    checked(driver.cuMemcpyHtoD(address, np.array([100], np.int32), size))
    memory, out = checked(driver.cuMemAlloc(4 * 32)), np.zeros(32, np.int32)
    function = checked(driver.cuModuleGetFunction(module, b"shifted"))
    place = np.array([int(memory)], np.uint64)
    arguments = np.array([place.ctypes.data], np.uint64)
    checked(driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, arguments.ctypes.data, 0))
    checked(driver.cuMemcpyDtoH(out, memory, out.nbytes))
    same("variable", out, np.arange(100, 132, dtype=np.int32))
    missing, _ = driver.cuModuleGetFunction(module, b"missing")
    if missing != driver.CUresult.CUDA_ERROR_NOT_FOUND:
        FAILED.append(f"a kernel that is not there: {missing}")
    checked(driver.cuMemFree(memory))
    checked(driver.cuModuleUnload(module))


def parts():
    """PTX of two sources, one of which calls the other."""
    sources = (
        'extern __device__ int twice(int x); extern "C" __global__ void all_twice(int* v) { v[threadIdx.x] = twice(v[threadIdx.x]); }',
        "__device__ int twice(int x) { return x + x; }",
    )
    options = ProgramOptions(arch=architecture, relocatable_device_code=True)
    return [Program(source, code_type="c++", options=options).compile("ptx") for source in sources]


def run_linked(name, linked):
    buffer, values = host(4 * 32, np.int32)
    values[:] = np.arange(32)
    launch(stream, LaunchConfig(grid=1, block=32), linked.get_kernel("all_twice"), buffer)
    stream.sync()
    same(name, values, 2 * np.arange(32, dtype=np.int32))


def linker():
    run_linked("Linker", Linker(*parts(), options=LinkerOptions(arch=architecture)).link("cubin"))


def jit_linker():
    """nvJitLink itself, which the Linker passes by where it is older than 12.3, as ours says it is."""
    link = nvjitlink.create(1, [f"-arch={architecture}"])
    for number, part in enumerate(parts()):
        text = bytes(part.code)
        nvjitlink.add_data(link, nvjitlink.InputType.PTX, text, len(text), f"part{number}")
    nvjitlink.complete(link)
    cubin = bytearray(nvjitlink.get_linked_cubin_size(link))
    nvjitlink.get_linked_cubin(link, cubin)
    nvjitlink.destroy(link)
    run_linked("nvJitLink", ObjectCode.from_cubin(bytes(cubin)))


for check in (kernels, templates, copies, events, graphs, bindings, linker, jit_linker):
    before = len(FAILED)
    try:
        check()
    except Exception as error:
        FAILED.append(f"{check.__name__}: {type(error).__name__}: {error}")
    print(check.__name__, "ok" if len(FAILED) == before else "FAILED")
for line in FAILED:
    print("FAILED:", line)
print("FAILED" if FAILED else "PASSED")
raise SystemExit(1 if FAILED else 0)
