"""cuBLASLt's algorithms: their capabilities, settings and checks on the CPU device, which has one; emulation; products of
pointer arrays and of groups."""

import struct
from ctypes import addressof, byref, c_char, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p, create_string_buffer

from calls import INVALID_VALUE, NOT_SUPPORTED, SUCCESS, case, equal, holds

R_32F, R_64F, R_8I, R_32I, R_16F = 0, 1, 3, 10, 2
COMPUTE_32F, COMPUTE_64F, COMPUTE_32I = 68, 70, 72

# cublasLtMatmulAlgoCapAttributes_t: number -> (bytes, value) for matrices of float.
CAPABILITIES = {
    "SPLITK_SUPPORT": (0, 4, 0),
    "REDUCTION_SCHEME_MASK": (1, 4, 0),
    "CTA_SWIZZLING_SUPPORT": (2, 4, 0),
    "STRIDED_BATCH_SUPPORT": (3, 4, 1),
    "OUT_OF_PLACE_RESULT_SUPPORT": (4, 4, 1),
    "UPLO_SUPPORT": (5, 4, 0),
    "CUSTOM_OPTION_MAX": (7, 4, 0),
    "CUSTOM_MEMORY_ORDER": (10, 4, 0),
    # Host 1, device 2, a vector of alpha with beta zero 8 and with beta of the host 16.
    "POINTER_MODE_MASK": (11, 4, 1 | 2 | 8 | 16),
    # Default, relu, bias, drelu, bgrad, gelu, dgelu, aux, bgrada, bgradb.
    "EPILOGUE_MASK": (12, 4, 1023),
    "LD_NEGATIVE": (14, 4, 0),
    # Multiply and add, sums in float, elements in float.
    "NUMERICAL_IMPL_FLAGS": (15, 8, 1 | 2 << 8 | 8 << 16),
    "MIN_ALIGNMENT_A_BYTES": (16, 4, 4),
    "MIN_ALIGNMENT_D_BYTES": (19, 4, 4),
    "POINTER_ARRAY_BATCH_SUPPORT": (21, 4, 1),
    "FLOATING_POINT_EMULATION_SUPPORT": (22, 4, 0),
    "POINTER_ARRAY_GROUPED_SUPPORT": (23, 4, 1),
}
# cublasLtMatmulAlgoConfigAttributes_t: number -> (bytes, default)
SETTINGS = {"TILE_ID": (1, 4, 0), "SPLITK_NUM": (2, 4, 1), "REDUCTION_SCHEME": (3, 4, 0), "CTA_SWIZZLING": (4, 4, 0)}
SETTINGS |= {"CUSTOM_OPTION": (5, 4, 0), "STAGES_ID": (6, 4, 0), "INNER_SHAPE_ID": (7, 2, 0), "CLUSTER_SHAPE_ID": (8, 2, 0)}


def algorithm(libraries, handle, compute=COMPUTE_32F, scale=R_32F, types=(R_32F,) * 4):
    ids, count, algo = (c_int * 8)(), c_int(-1), create_string_buffer(64)
    equal(libraries.lt.cublasLtMatmulAlgoGetIds(handle, compute, scale, *types, 8, ids, byref(count)), SUCCESS)
    equal(count.value, 1, "the number of algorithms")
    equal(libraries.lt.cublasLtMatmulAlgoInit(handle, compute, scale, *types, ids[0], algo), SUCCESS)
    return algo


def got(function, target, number, size):
    value, written = create_string_buffer(size), c_size_t()
    equal(function(target, number, value, c_size_t(size), byref(written)), SUCCESS, f"getting {number}")
    equal(written.value, size, f"the bytes of {number}")
    return int.from_bytes(value.raw, "little", signed=False)


def put(function, target, number, value, size):
    return function(target, number, value.to_bytes(size, "little"), c_size_t(size))


@case()
def an_algorithm_tells_what_it_can_do(libraries):
    lt, handle = libraries.lt, libraries.lt_handle()
    algo = algorithm(libraries, handle)
    for name, (number, size, value) in CAPABILITIES.items():
        equal(got(lt.cublasLtMatmulAlgoCapGetAttribute, algo, number, size), value, name)
    written = c_size_t(9)
    for number, size in ((6, 0), (13, 0), (0, 4), (15, 8)):
        equal(lt.cublasLtMatmulAlgoCapGetAttribute(algo, number, None, c_size_t(0), byref(written)), SUCCESS)
        equal(written.value, size, f"the bytes needed for {number}")
    buffer = create_string_buffer(16)
    equal(lt.cublasLtMatmulAlgoCapGetAttribute(algo, 0, buffer, c_size_t(8), byref(written)), INVALID_VALUE, "another size")
    equal(lt.cublasLtMatmulAlgoCapGetAttribute(algo, 0, None, c_size_t(4), byref(written)), INVALID_VALUE, "no buffer")
    equal(lt.cublasLtMatmulAlgoCapGetAttribute(algo, 0, None, c_size_t(0), None), INVALID_VALUE, "nothing asked for")
    equal(lt.cublasLtMatmulAlgoCapGetAttribute(algo, 99, buffer, c_size_t(4), None), INVALID_VALUE, "no such capability")
    equal(lt.cublasLtMatmulAlgoCapGetAttribute(None, 0, buffer, c_size_t(4), None), INVALID_VALUE, "no algorithm")
    integers = algorithm(libraries, handle, COMPUTE_32I, R_32I, (R_8I, R_8I, R_32I, R_32I))
    equal(got(lt.cublasLtMatmulAlgoCapGetAttribute, integers, 15, 8), 1 | 8 << 8 | 0x20 << 16, "flags of integers")
    equal(got(lt.cublasLtMatmulAlgoCapGetAttribute, integers, 16, 4), 1, "alignment of bytes")


@case()
def algorithms_are_of_types_that_there_are(libraries):
    lt, handle = libraries.lt, libraries.lt_handle()
    count, algo, ids = c_int(-1), create_string_buffer(64), (c_int * 1)()
    wrong = (COMPUTE_64F, R_64F, R_32F, R_8I, R_32F, R_32F)
    equal(lt.cublasLtMatmulAlgoGetIds(handle, *wrong, 1, ids, byref(count)), SUCCESS)
    equal(count.value, 0, "algorithms for types that do not fit")
    equal(lt.cublasLtMatmulAlgoInit(handle, *wrong, 0, algo), NOT_SUPPORTED)
    right = (COMPUTE_64F, R_64F, R_64F, R_64F, R_64F, R_64F)
    equal(lt.cublasLtMatmulAlgoGetIds(handle, *right, 0, ids, byref(count)), INVALID_VALUE, "no algorithm asked for")
    equal(lt.cublasLtMatmulAlgoInit(handle, *right, 1, algo), INVALID_VALUE, "an algorithm that is none")


class Product:
    """D = A·B of floats, 2 by 2, in device memory."""

    def __init__(self, libraries, layouts=None):
        self.lt = libraries.lt
        self.handle, self.desc = libraries.lt_handle(), c_void_p()
        equal(self.lt.cublasLtMatmulDescCreate(byref(self.desc), COMPUTE_32F, R_32F), SUCCESS)
        self.layouts = layouts or [layout(libraries) for _ in "ABCD"]

    def check(self, algo, result):
        return self.lt.cublasLtMatmulAlgoCheck(self.handle, self.desc, *self.layouts, algo, result)

    def run(self, a, b, d, algo=None):
        alpha, beta = c_float(1), c_float(0)
        a, b, d = c_void_p(a), c_void_p(b), c_void_p(d)
        layouts = self.layouts
        return self.lt.cublasLtMatmul(
            self.handle, self.desc, byref(alpha), a, layouts[0], b, layouts[1], byref(beta), d, layouts[2], d, layouts[3],
            algo, None, c_size_t(0), None,
        )  # fmt: skip


def layout(libraries, rows=2, columns=2):
    made = c_void_p()
    create = libraries.lt.cublasLtMatrixLayoutCreate
    equal(create(byref(made), R_32F, c_uint64(rows), c_uint64(columns), c_int64(rows)), SUCCESS)
    return made


def device(libraries, values):
    """Device memory with these bytes or floats in it."""
    values = values if isinstance(values, bytes) else struct.pack(f"{len(values)}f", *values)
    at = c_void_p()
    equal(libraries.cuda.cudaMalloc(byref(at), c_size_t(len(values))), SUCCESS, "cudaMalloc")
    equal(libraries.cuda.cudaMemcpy(at, values, c_size_t(len(values)), 1), SUCCESS, "cudaMemcpy")
    return at.value


def host(libraries, at, n, form="f"):
    bytes_ = create_string_buffer(n * struct.calcsize(form))
    equal(libraries.cuda.cudaDeviceSynchronize(), SUCCESS, "cudaDeviceSynchronize")
    equal(libraries.cuda.cudaMemcpy(bytes_, c_void_p(at), c_size_t(len(bytes_)), 2), SUCCESS, "cudaMemcpy")
    return list(struct.unpack(f"{n}{form}", bytes_.raw))


@case()
def an_algorithm_is_checked_as_it_is_set(libraries):
    lt, product = libraries.lt, Product(libraries)
    algo, get, set_ = algorithm(libraries, product.handle), lt.cublasLtMatmulAlgoConfigGetAttribute, lt.cublasLtMatmulAlgoConfigSetAttribute
    equal(got(get, algo, 0, 4), 0, "the algorithm's number")
    equal(put(set_, algo, 0, 0, 4), INVALID_VALUE, "setting the number, which is read alone")
    stream_check = lt.cublasLtMatmulAlgoCheckForStream
    for name, (number, size, default) in SETTINGS.items():
        equal(got(get, algo, number, size), default, name)
        equal(put(set_, algo, number, 3, size), SUCCESS, f"setting {name}")
        equal(got(get, algo, number, size), 3, name)
        result = create_string_buffer(b"\x55" * 96, 96)
        equal(product.check(algo, result), NOT_SUPPORTED, f"the check with {name}")
        equal(stream_check(product.handle, product.desc, *product.layouts, algo, result, None), NOT_SUPPORTED, name)
        equal(put(set_, algo, number, 3, 8), INVALID_VALUE, "another size")
        equal(put(set_, algo, number, default, size), SUCCESS, f"setting {name} back")
    equal(set_(algo, 1, None, c_size_t(4)), INVALID_VALUE, "no value")
    result = create_string_buffer(b"\x55" * 96, 96)
    equal(product.check(algo, result), SUCCESS, "the check")
    workspace, state, waves = struct.unpack_from("QIf", result.raw, 64)
    equal((workspace, state, waves), (0, SUCCESS, 1.0), "workspace, state and waves")
    equal(result.raw[:64], b"\x55" * 64, "the result's algorithm, which a check leaves alone")
    equal(stream_check(product.handle, product.desc, *product.layouts, algo, result, None), SUCCESS)
    a, d = device(libraries, [1, 2, 3, 4]), device(libraries, [0] * 4)
    equal(product.run(a, a, d, algo), SUCCESS, "the product")
    equal(host(libraries, d, 4), [7, 10, 15, 22], "D")
    equal(put(set_, algo, 2, 4, 4), SUCCESS, "splitting k")
    equal(product.run(a, a, d, algo), NOT_SUPPORTED, "a product that is split")


@case()
def emulation_descriptors_keep_what_is_set(libraries):
    lt, desc = libraries.lt, c_void_p()
    equal(lt.cublasLtEmulationDescCreate(byref(desc)), SUCCESS)
    get, set_ = lt.cublasLtEmulationDescGetAttribute, lt.cublasLtEmulationDescSetAttribute
    defaults = {0: (4, 0), 1: (4, 0xFFFF), 2: (4, 0), 3: (4, 0), 4: (4, 0), 5: (8, 0)}
    for number, (size, value) in defaults.items():
        equal(got(get, desc, number, size), value, f"attribute {number}")
        equal(put(set_, desc, number, 2, size), SUCCESS)
        equal(got(get, desc, number, size), 2, f"attribute {number}")
        equal(put(set_, desc, number, 2, 2), INVALID_VALUE, "another size")
    equal(put(set_, desc, 6, 0, 4), INVALID_VALUE, "no such attribute")
    equal(lt.cublasLtEmulationDescDestroy(desc), SUCCESS)
    equal(lt.cublasLtEmulationDescDestroy(None), INVALID_VALUE)
    own = create_string_buffer(64)
    equal(lt.cublasLtEmulationDescInit_internal(own, c_size_t(64)), SUCCESS)
    equal(got(get, own, 1, 4), 0xFFFF, "the special values")


@case()
def a_product_that_is_not_emulated_says_so(libraries):
    """The header: without emulation the number of mantissa bits is -1."""
    lt, product, emulation = libraries.lt, Product(libraries), c_void_p()
    equal(lt.cublasLtEmulationDescCreate(byref(emulation)), SUCCESS)
    a, d, bits = device(libraries, [1, 2, 3, 4]), device(libraries, [0] * 4), device(libraries, struct.pack("i", 7))
    equal(put(lt.cublasLtEmulationDescSetAttribute, emulation, 5, bits, 8), SUCCESS)
    equal(put(lt.cublasLtMatmulDescSetAttribute, product.desc, 38, emulation.value, 8), SUCCESS)
    equal(got(lt.cublasLtMatmulDescGetAttribute, product.desc, 38, 8), emulation.value, "the descriptor's emulation")
    equal(product.run(a, a, d), SUCCESS)
    equal(host(libraries, d, 4), [7, 10, 15, 22], "D")
    equal(host(libraries, bits, 1, "i"), [-1], "the number of mantissa bits")


@case()
def a_batch_may_be_an_array_of_pointers(libraries):
    lt, product = libraries.lt, Product(libraries)
    for one in product.layouts:
        equal(put(lt.cublasLtMatrixLayoutSetAttribute, one, 5, 3, 4), SUCCESS, "the batch's length")
        equal(put(lt.cublasLtMatrixLayoutSetAttribute, one, 8, 1, 4), SUCCESS, "the batch's mode")
    one, two = device(libraries, [1, 0, 0, 1]), device(libraries, [2, 0, 0, 2])
    rest = [device(libraries, [i, i + 1, i + 2, i + 3]) for i in range(3)]
    d = [device(libraries, [9] * 4) for _ in range(3)]
    pointers = lambda *all_: device(libraries, struct.pack(f"{len(all_)}Q", *all_))  # noqa: E731
    equal(product.run(pointers(two, one, two), pointers(*rest), pointers(d[2], d[1], d[0])), SUCCESS)
    equal(host(libraries, d[2], 4), [0, 2, 4, 6], "the first product")
    equal(host(libraries, d[1], 4), [1, 2, 3, 4], "the second product")
    equal(host(libraries, d[0], 4), [4, 6, 8, 10], "the third product")


@case()
def groups_have_sizes_of_their_own(libraries):
    """Group i: A of m[i] by k[i] times B of k[i] by n[i]; sizes lie in device memory."""
    lt = libraries.lt
    m, n, k = [1, 2, 0], [2, 1, 3], [2, 3, 1]
    for width, form in ((0, "i"), (1, "q")):
        array = lambda values: device(libraries, struct.pack(f"{len(values)}{form}", *values))  # noqa: B023, E731
        layouts = []
        for rows, columns in ((m, k), (k, n), (m, n), (m, n)):
            made, ld = c_void_p(), [max(r, 1) for r in rows]
            create = lt.cublasLtGroupedMatrixLayoutCreate
            arguments = [c_void_p(array(rows)), c_void_p(array(columns)), c_void_p(array(ld))]
            equal(create(byref(made), R_32F, 3, *arguments), SUCCESS)
            equal(put(lt.cublasLtMatrixLayoutSetAttribute, made, 12, width, 4), SUCCESS, "the width of sizes")
            equal(put(lt.cublasLtMatrixLayoutSetAttribute, made, 13, width, 4), SUCCESS, "the width of ld")
            equal(got(lt.cublasLtMatrixLayoutGetAttribute, made, 8, 4), 2, "the batch's mode")
            equal(got(lt.cublasLtMatrixLayoutGetAttribute, made, 5, 4), 3, "the number of groups")
            layouts.append(made)
        product = Product(libraries, layouts)
        a = [device(libraries, [1, 2]), device(libraries, [1, 2, 3, 4, 5, 6]), device(libraries, [0])]
        b = [device(libraries, [1, 2, 3, 4]), device(libraries, [1, 1, 1]), device(libraries, [0] * 3)]
        d = [device(libraries, [9] * 2) for _ in range(3)]
        pointers = lambda all_: device(libraries, struct.pack("3Q", *all_))  # noqa: E731
        equal(product.run(pointers(a), pointers(b), pointers(d)), SUCCESS)
        equal(host(libraries, d[0], 2), [1 * 1 + 2 * 2, 1 * 3 + 2 * 4], "the first group")
        equal(host(libraries, d[1], 2), [1 + 3 + 5, 2 + 4 + 6], "the second group")
        equal(host(libraries, d[2], 2), [9, 9], "an empty group")
    equal(lt.cublasLtGroupedMatrixLayoutCreate(None, R_32F, 3, None, None, None), INVALID_VALUE)
