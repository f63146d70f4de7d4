"""What does no arithmetic: handles, modes, versions, names of statuses, copies, descriptors. Source: cuBLAS manual, "cuBLAS
Helper Function Reference" and "cuBLASLt API Reference"."""

import ctypes
import itertools

import numpy as np

from library import INVALID_VALUE, NOT_INITIALIZED, OK, Arena

DEFAULT = object()
# set, get, the type, a new handle's value, values that are kept, values that are refused
MODES = [
    ("cublasSetPointerMode_v2", "cublasGetPointerMode_v2", ctypes.c_int, 0, (1, 0), (2, -1)),
    ("cublasSetAtomicsMode", "cublasGetAtomicsMode", ctypes.c_int, 0, (1, 0), (2,)),
    # Default, pedantic, TF32, and with reductions in full precision.
    ("cublasSetMathMode", "cublasGetMathMode", ctypes.c_int, 0, (2, 3, 1, 16, 2 | 16, 0), (7,)),
    ("cublasSetSmCountTarget", "cublasGetSmCountTarget", ctypes.c_int, 0, (1, 0), (-1,)),
    ("cublasSetEmulationStrategy", "cublasGetEmulationStrategy", ctypes.c_int, 0, (1, 2, 0), (3,)),
    # Infinities, NaNs; all of them is the default.
    ("cublasSetEmulationSpecialValuesSupport", "cublasGetEmulationSpecialValuesSupport", ctypes.c_int, 0xFFFF, (0, 1, 2, 3), (0x10000,)),
]
MODES += [
    (f"cublasSetFixedPointEmulation{what}", f"cublasGetFixedPointEmulation{what}", kind, first, kept, refused)
    for what, kind, first, kept, refused in (
        ("MantissaControl", ctypes.c_int, 0, (1, 0), (2,)),
        ("MaxMantissaBitCount", ctypes.c_int, 0, (55, 79), (-1,)),
        ("MantissaBitOffset", ctypes.c_int, 0, (3, -4), ()),
        ("MantissaBitCountPointer", ctypes.c_void_p, None, (4096, None), ()),
    )
]
STATUSES = {
    0: "SUCCESS", 1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED", 16: "LICENSE_ERROR",
}
# Attributes of cuBLASLt's descriptors: number, the type, a new one's value (DEFAULT: what it was made with), another value.
i32, i64, u64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
LAYOUT = [(0, i32, DEFAULT, 2), (1, i32, 0, 1), (2, u64, DEFAULT, 9), (3, u64, DEFAULT, 8), (4, i64, DEFAULT, 7), (5, i32, 1, 3), (6, i64, 0, 99)]
MATMUL = [(0, i32, DEFAULT, 70), (1, i32, DEFAULT, 1), (2, i32, 0, 1), (3, i32, 0, 1), (4, i32, 0, 2), (5, i32, 0, 0), (7, i32, 1, 4)]
MATMUL += [(8, u64, 0, 256), (10, i64, 0, 5), (11, u64, 0, 512), (12, i64, 0, 128), (13, i64, 0, 6), (14, i64, 0, 7)]
MATMUL += [(number, u64, 0, 1024) for number in (17, 18, 19, 20, 21, 23, 24)] + [(22, i32, -1, 14), (25, ctypes.c_int8, 0, 1), (26, i32, -1, 0)]
PREFERENCE = [(0, i32, 0, 0), (1, u64, 0, 4096), (3, i32, -1, 1), (12, u64, 2**64 - 1, 1)] + [(number, i32, 256, 16) for number in (5, 6, 7, 8)]
TRANSFORM = [(0, i32, DEFAULT, 1), (1, i32, 0, 1), (2, i32, 0, 1), (3, i32, 0, 2)]
DESCRIPTORS = {
    "cublasLtMatrixLayout": ((0, 6, 5, 6), {0: 0, 2: 6, 3: 5, 4: 6}, LAYOUT),
    "cublasLtMatmulDesc": ((68, 0), {0: 68, 1: 0}, MATMUL),
    "cublasLtMatmulPreference": ((), {}, PREFERENCE),
    "cublasLtMatrixTransformDesc": ((0,), {0: 0}, TRANSFORM),
}
ROOM = 512  # bytes; more than any release's descriptor


def prove(library, families, only):
    for title, part in (("modes", _modes), ("life", _life), ("statuses", _statuses), ("copies", _copies), ("descriptors", _descriptors)):
        if only in f"cublas handles: {title}":
            part(library, families[f"handles: {title}"])


class Caller:
    """Calls with statuses that have to be."""

    def __init__(self, library, family):
        self.library, self.family = library, family

    def __call__(self, name, *arguments, status=OK):
        return self.family.expect(name, "status", self.library.function(name)(*arguments), status)

    def get(self, name, kind, *arguments):
        place = kind()
        self(name, *arguments, ctypes.addressof(place))
        return place.value


def _new_handle(call):
    handle = ctypes.c_void_p()
    call("cublasCreate_v2", ctypes.addressof(handle))
    return handle


def _modes(library, family):
    call = Caller(library, family)
    handle = _new_handle(call)
    for set_name, get_name, kind, first, kept, refused in MODES:
        family.expect(get_name, "a new handle's", call.get(get_name, kind, handle), first)
        for value in kept:
            call(set_name, handle, value)
            family.expect(get_name, f"after {value}", call.get(get_name, kind, handle), value)
        for value in refused:
            call(set_name, handle, value, status=INVALID_VALUE)
            family.expect(get_name, f"after the refused {value}", call.get(get_name, kind, handle), kept[-1])
        call(set_name, None, kept[-1], status=NOT_INITIALIZED)
        call(get_name, handle, None, status=INVALID_VALUE)
    _streams(library, call, handle)
    call("cublasDestroy_v2", handle)


def _streams(library, call, handle):
    stream = ctypes.c_void_p()
    library.cuda("cudaStreamCreate", ctypes.byref(stream))
    call.family.expect("cublasGetStream_v2", "a new handle's", call.get("cublasGetStream_v2", ctypes.c_void_p, handle), None)
    call("cublasSetStream_v2", handle, stream)
    call.family.expect("cublasGetStream_v2", "the stream", call.get("cublasGetStream_v2", ctypes.c_void_p, handle), stream.value)
    call("cublasSetWorkspace_v2", handle, library.arena, 1 << 16)
    call("cublasSetWorkspace_v2", handle, library.arena + 8, 1 << 16, status=INVALID_VALUE)
    call("cublasSetWorkspace_v2", None, library.arena, 1 << 16, status=NOT_INITIALIZED)
    call("cublasSetStream_v2", handle, None)
    library.cuda("cudaStreamDestroy", stream)


def _life(library, family):
    call = Caller(library, family)
    first, second = _new_handle(call), _new_handle(call)
    family.expect("cublasCreate_v2", "two handles are two", first.value != second.value, True)
    call("cublasCreate_v2", None, status=INVALID_VALUE)
    version = call.get("cublasGetVersion_v2", ctypes.c_int, first)
    parts = [call.get("cublasGetProperty", ctypes.c_int, which) for which in range(3)]
    # cublas_api.h's CUBLAS_VERSION
    family.expect("cublasGetVersion_v2", "of its parts", version, 10000 * parts[0] + 100 * parts[1] + parts[2])
    family.expect("cublasGetProperty", "the major of libcublas.so.13", parts[0], 13)
    call("cublasGetProperty", 3, ctypes.addressof(ctypes.c_int()), status=INVALID_VALUE)
    family.expect("cublasGetCudartVersion", "of CUDA 13", library.function("cublasGetCudartVersion")() // 1000, 13)
    call("cublasDestroy_v2", second)
    call("cublasGetVersion_v2", second, ctypes.addressof(ctypes.c_int()), status=NOT_INITIALIZED)
    call("cublasGetVersion_v2", first, ctypes.addressof(ctypes.c_int()))
    call("cublasDestroy_v2", first)
    call("cublasDestroy_v2", first, status=NOT_INITIALIZED)
    lt = ctypes.c_void_p()
    call("cublasLtCreate", ctypes.addressof(lt))
    call("cublasLtDestroy", lt)
    call("cublasLtDestroy", lt, status=NOT_INITIALIZED)
    family.expect("cublasLtGetVersion", "as cublasGetVersion", library.function("cublasLtGetVersion")(), version)
    family.expect("cublasLtGetCudartVersion", "of CUDA 13", library.function("cublasLtGetCudartVersion")() // 1000, 13)
    family.expect("cublasLtGetProperty", "as cublasGetProperty", [call.get("cublasLtGetProperty", ctypes.c_int, which) for which in range(3)], parts)


def _statuses(library, family):
    for prefix in ("cublas", "cublasLt"):
        for number, name in STATUSES.items():
            family.expect(f"{prefix}GetStatusName", f"of {number}", library.function(f"{prefix}GetStatusName")(number), f"CUBLAS_STATUS_{name}".encode())
            family.expect(f"{prefix}GetStatusString", f"of {number}", bool(library.function(f"{prefix}GetStatusString")(number)), True)


def _copies(library, family):
    """There with one distance between the elements, back with another; what lies between them stays."""
    call, rng = Caller(library, family), np.random.default_rng(3)
    for (wide, asynchronous), size in itertools.product(itertools.product(("", "_64"), ("", "Async")), (1, 2, 4, 8, 16)):
        name = lambda what: f"cublas{what}{asynchronous}{wide}"
        stream = (None,) if asynchronous else ()
        # A matrix of 7 x 5 with leading dimensions of 9, 11 and 8; a vector is one of one row.
        for what, shape, distances in (("Matrix", (7, 5), (9, 11, 8)), ("Vector", (5,), (3, 1, 2))):
            rows = shape[0] if what == "Matrix" else 1
            host, back = (rng.integers(0, 256, (5, ld, size), np.uint8) for ld in (distances[0], distances[2]))
            device = rng.integers(0, 256, (5, distances[1], size), np.uint8)
            arena, wanted, on_device = Arena(library), back.copy(), device.copy()
            at = arena.put(device)
            call(name(f"Set{what}"), *shape, size, host.ctypes.data, distances[0], at, distances[1], *stream)
            call(name(f"Get{what}"), *shape, size, at, distances[1], back.ctypes.data, distances[2], *stream)
            library.cuda("cudaDeviceSynchronize")
            on_device[:, :rows], wanted[:, :rows] = host[:, :rows], host[:, :rows]
            family.expect(name(f"Set{what}"), f"elements of {size} bytes", arena.get(at, device).tobytes() == on_device.tobytes(), True)
            family.expect(name(f"Get{what}"), f"elements of {size} bytes", back.tobytes() == wanted.tobytes(), True)
            for direction in ("Set", "Get"):
                call(name(direction + what), *shape, 0, host.ctypes.data, distances[0], at, distances[1], *stream, status=INVALID_VALUE)
                call(name(direction + what), *shape, size, host.ctypes.data, 0, at, distances[1], *stream, status=INVALID_VALUE)


def _descriptors(library, family):
    call = Caller(library, family)
    for kind, (made_with, given, attributes) in DESCRIPTORS.items():
        made, room = ctypes.c_void_p(), (ctypes.c_uint64 * (ROOM // 8))()
        call(f"{kind}Create", ctypes.addressof(made), *made_with)
        call(f"{kind}Init_internal", ctypes.addressof(room), ROOM, *made_with)
        call(f"{kind}Init_internal", ctypes.addressof(room), 8, *made_with, status=INVALID_VALUE)
        for at in (made, ctypes.addressof(room)):
            _attributes(call, kind, at, given, attributes)
        call(f"{kind}Destroy", made)
    _groups(call)
    before = call.get("cublasLtHeuristicsCacheGetCapacity", ctypes.c_size_t)
    call("cublasLtHeuristicsCacheSetCapacity", before)


def _groups(call):
    """A layout of groups in the program's memory: its sizes are arrays, which nobody reads yet."""
    room, name = (ctypes.c_uint64 * (ROOM // 8))(), "cublasLtGroupedMatrixLayoutInit_internal"
    call(name, ctypes.addressof(room), ROOM, 0, 3, 256, 512, 1024)
    call(name, ctypes.addressof((ctypes.c_uint64 * 8)()), 8, 0, 3, 256, 512, 1024, status=INVALID_VALUE)
    # Its type, how many groups, CUBLASLT_BATCH_MODE_GROUPED.
    for number, wanted in ((0, 0), (5, 3), (8, 2)):
        value = ctypes.c_int32(-1)
        call("cublasLtMatrixLayoutGetAttribute", ctypes.addressof(room), number, ctypes.addressof(value), 4, None)
        call.family.expect(name, f"attribute {number}", value.value, wanted)


def _attributes(call, kind, at, given, attributes):
    get, put = f"{kind}GetAttribute", f"{kind}SetAttribute"

    def read(number, of_type):
        place, written = of_type(), ctypes.c_size_t()
        call(get, at, number, ctypes.addressof(place), ctypes.sizeof(place), ctypes.addressof(written))
        call.family.expect(get, f"bytes of attribute {number}", written.value, ctypes.sizeof(place))
        return place.value

    for number, of_type, first, other in attributes:
        wanted = given[number] if first is DEFAULT else first
        call.family.expect(get, f"attribute {number} of a new one", read(number, of_type), wanted)
        value, written = of_type(other), ctypes.c_size_t()
        call(put, at, number, ctypes.addressof(value), ctypes.sizeof(value))
        call(put, at, number, ctypes.addressof(value), ctypes.sizeof(value) + 1, status=INVALID_VALUE)
        call(put, at, number, None, ctypes.sizeof(value), status=INVALID_VALUE)
        # With no bytes, only their number is told.
        call(get, at, number, None, 0, ctypes.addressof(written))
        call.family.expect(get, f"bytes of attribute {number}", written.value, ctypes.sizeof(value))
    # All at the end: none has changed another.
    for number, of_type, _, other in attributes:
        call.family.expect(get, f"attribute {number} after it was set", read(number, of_type), other)
    call(put, at, 9999, ctypes.addressof(ctypes.c_int()), 4, status=INVALID_VALUE)
