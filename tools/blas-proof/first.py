"""The first API (cublas.h): each routine by the later one's cases and reference; letters for options, factors and results by
value, an error that waits to be asked for."""

import ctypes
import dataclasses

from call import Prepared, Wrong
from cases import cases
from library import HOST, INVALID_VALUE, NOT_INITIALIZED, OK, Complex32, Complex64
from memory import read
from names import parse
from routines import ROUTINES

# In turn capitals and small letters.
LETTERS = {"trans": "NtC", "transa": "nTc", "transb": "Ntc", "uplo": "lU", "diag": "Nu", "side": "lR"}
FAMILY = "first API"


def prove(library, families, signatures, only):
    names = [c for c, signature in sorted(signatures.items()) if _later(c, signature, signatures) and library.has(c)]
    names = [c for c in names if only in c]
    if not names:
        return
    _helpers(library, families[FAMILY + ": helpers"])
    for c in names:
        _prove_name(library, families[FAMILY], c, signatures[c]["params"], signatures[f"{c}_v2"]["params"])
    _errors(library, families[FAMILY + ": errors"])
    must_be(families[FAMILY + ": helpers"], library, "cublasShutdown")


def _later(c, signature, signatures):
    return f"{c}_v2" in signatures and not any(p["type"] == "cublasHandle_t" for p in signature["params"]) and parse(f"{c}_v2")


def must_be(family, library, name, *arguments, status=OK):
    return family.expect(name, "status", library.function(name)(*arguments), status)


def _helpers(library, family):
    """cublasInit and what stands around it; routines before it leave an error."""
    library.function("cublasSscal")(1, 1.0, library.arena, 1)
    family.expect("cublasGetError", "of a call before cublasInit", library.function("cublasGetError")(), NOT_INITIALIZED)
    must_be(family, library, "cublasGetError")
    must_be(family, library, "cublasInit")
    must_be(family, library, "cublasInit")
    version, later = ctypes.c_int(), ctypes.c_int()
    must_be(family, library, "cublasGetVersion", ctypes.addressof(version))
    must_be(family, library, "cublasGetVersion_v2", library.handle, ctypes.addressof(later))
    family.expect("cublasGetVersion", "the later API's", version.value, later.value)
    at = ctypes.c_void_p()
    must_be(family, library, "cublasAlloc", 0, 4, ctypes.addressof(at), status=INVALID_VALUE)
    must_be(family, library, "cublasAlloc", 4, 0, ctypes.addressof(at), status=INVALID_VALUE)
    must_be(family, library, "cublasAlloc", 100, 4, ctypes.addressof(at))
    image = bytes(range(100)) * 4
    library.copy(at.value, ctypes.cast(image, ctypes.c_void_p).value, 400, 1)
    back = ctypes.create_string_buffer(400)
    library.copy(ctypes.addressof(back), at.value, 400, 2)
    family.expect("cublasAlloc", "memory", back.raw, image)
    must_be(family, library, "cublasFree", at)
    must_be(family, library, "cublasSetKernelStream", None)


def _prove_name(library, family, c, parameters, later):
    name = dataclasses.replace(parse(f"{c}_v2"), c=c)
    routine = ROUTINES[name.routine]
    # trmm has no place of its own for what it makes.
    works_in_place = len(parameters) + 3 == len(later)
    for case in cases(routine, name, later):
        if bool(case.in_place) != works_in_place:
            continue
        prepared = Prepared(name, later, {}, case)
        family.names.add(c)
        family.calls += 1
        try:
            prepared.verify(_call(library, prepared, c, parameters, later), prepared.expected())
        except Wrong as wrong:
            family.wrong.append(f"{c}({case}): {wrong}")


def _call(library, prepared, c, parameters, later):
    host, arguments = prepared.arguments(library, HOST)
    library.send(host)
    # By their places: names differ.
    result = library.function(c)(*(_value(p["type"], q["name"], value) for p, q, value in zip(parameters, later[1:], arguments[1:])))
    if error := library.function("cublasGetError")():
        raise Wrong(f"cublasGetError gives {error}")
    if later[-1]["name"] == "result":
        place = read(host, prepared.operands["result"].offset, prepared.operands["result"].memory)
        at = prepared.operands["result"].starts[0]
        place[at] = complex(result.real, result.imag) if isinstance(result, ctypes.Structure) else result
    return prepared.after(library, HOST, host)


def _value(kind, name, given):
    """What stands where the later API is given an address, or a letter for an option's number."""
    if kind == "c_char":
        return LETTERS[name][given].encode()
    by_value = {"f32": ctypes.c_float, "f64": ctypes.c_double, "cuComplex": Complex32, "cuDoubleComplex": Complex64}.get(kind)
    return given if by_value is None else by_value.from_address(given)


def _errors(library, family):
    """A call that is refused says so once, unless another call comes between."""
    gemm = lambda transa=b"n", m=1, lda=1: library.function("cublasSgemm")(
        transa, b"N", m, 1, 1, 1.0, library.arena, lda, library.arena, 1, 0.0, library.arena + 256, 1)
    for what, wrong in (("a letter", dict(transa=b"x")), ("a size", dict(m=-1)), ("a leading dimension", dict(lda=0))):
        gemm(**wrong)
        family.expect("cublasGetError", f"after {what} that is none", library.function("cublasGetError")(), INVALID_VALUE)
        family.expect("cublasGetError", "once more", library.function("cublasGetError")(), OK)
    library.function("cublasStrsv")(b"q", b"n", b"n", 1, library.arena, 1, library.arena + 256, 1)
    gemm()
    family.expect("cublasGetError", "after a call that was good", library.function("cublasGetError")(), OK)
