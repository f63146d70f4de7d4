"""What descriptors and handles keep, and what is refused. The numbers are those of NVIDIA's libcusparse 12.9.4, which makes descriptors
without a GPU, and the manual's."""

import ctypes
import os
import subprocess
import sys

import numpy as np

from draw import Dense, Sparse, Vector
from library import (COL, DEVICE, H, HOST, I32, I64, INVALID, N, NOT_INITIALIZED, NOT_SUPPORTED, OK, ROW, T, TYPES, Scope, device, i64,
                     scalar, size)

P = ctypes.c_void_p
INTERNAL = 7
# An address that nobody follows.
X = P(0x1000000)


def expect(status, wanted, what):
    assert status == wanted, f"{what}: {status} for {wanted}"


def make(library, name, *arguments):
    descriptor = P()
    status = library.status(name, ctypes.byref(descriptor), *arguments)
    return status, descriptor


def descriptors(library, rng):
    got = lambda *kinds: [kind() for kind in kinds]
    refs = lambda places: [ctypes.byref(place) for place in places]
    wide, pointer, number = ctypes.c_int64, P, ctypes.c_int
    count = 0
    for const in ("", "Const"):
        for offsets, indices, base, ty in ((2, 2, 0, 0), (3, 2, 1, 5), (3, 3, 1, 14)):
            for kind in ("Csr", "Csc"):
                _, it = make(library, f"cusparseCreate{const}{kind}", i64(5), i64(6), i64(7), P(8), P(16), P(24), offsets,
                             indices, base, ty)
                places = got(wide, wide, wide, pointer, pointer, pointer, number, number, number, number)
                library(f"cusparse{const}{kind}Get", it, *refs(places))
                assert [place.value for place in places] == [5, 6, 7, 8, 16, 24, offsets, indices, base, ty]
                if not const:
                    library(f"cusparse{kind}SetPointers", it, P(32), P(40), P(48))
                    library(f"cusparse{kind}Get", it, *refs(places))
                    assert [place.value for place in places[3:6]] == [32, 40, 48]
                library("cusparseDestroySpMat", it)
            _, it = make(library, f"cusparseCreate{const}Coo", i64(5), i64(6), i64(7), P(8), P(16), P(24), indices, base, ty)
            places = got(wide, wide, wide, pointer, pointer, pointer, number, number, number)
            library(f"cusparse{const}CooGet", it, *refs(places))
            assert [place.value for place in places] == [5, 6, 7, 8, 16, 24, indices, base, ty]
            library("cusparseDestroySpMat", it)
            _, it = make(library, f"cusparseCreate{const}BlockedEll", i64(6), i64(9), i64(3), i64(6), P(8), P(16), indices, base,
                         ty)
            places = got(wide, wide, wide, wide, pointer, pointer, number, number, number)
            library(f"cusparse{const}BlockedEllGet", it, *refs(places))
            assert [place.value for place in places] == [6, 9, 3, 6, 8, 16, indices, base, ty]
            library("cusparseDestroySpMat", it)
            _, it = make(library, f"cusparseCreate{const}SpVec", i64(9), i64(4), P(8), P(16), indices, base, ty)
            places = got(wide, wide, pointer, pointer, number, number, number)
            library(f"cusparse{const}SpVecGet", it, *refs(places))
            assert [place.value for place in places] == [9, 4, 8, 16, indices, base, ty]
            place, values = number(), P()
            library("cusparseSpVecGetIndexBase", it, ctypes.byref(place))
            library(f"cusparse{const}SpVecGetValues", it, ctypes.byref(values))
            assert (place.value, values.value) == (base, 16)
            library("cusparseDestroySpVec", it)
            count += 5
        _, it = make(library, f"cusparseCreate{const}DnVec", i64(9), P(8), 1)
        places = got(wide, pointer, number)
        library(f"cusparse{const}DnVecGet", it, *refs(places))
        assert [place.value for place in places] == [9, 8, 1]
        if not const:
            library("cusparseDnVecSetValues", it, P(64))
        library(f"cusparse{const}DnVecGetValues", it, ctypes.byref(places[1]))
        assert places[1].value == (8 if const else 64)
        library("cusparseDestroyDnVec", it)
        _, it = make(library, f"cusparseCreate{const}DnMat", i64(3), i64(4), i64(5), P(8), 1, ROW)
        places = got(wide, wide, wide, pointer, number, number)
        library(f"cusparse{const}DnMatGet", it, *refs(places))
        assert [place.value for place in places] == [3, 4, 5, 8, 1, ROW]
        batch, stride = number(), wide()
        library("cusparseDnMatSetStridedBatch", it, 3, i64(15))
        library("cusparseDnMatGetStridedBatch", it, ctypes.byref(batch), ctypes.byref(stride))
        assert (batch.value, stride.value) == (3, 15)
        library("cusparseDestroyDnMat", it)
        count += 2
    # Sizes and formats by their numbers; a matrix of blocks has those of its entries.
    for name, arguments, wanted in (
            ("Csr", (i64(5), i64(6), i64(7), X, X, X, 2, 2, 0, 0), (1, 5, 6, 7)),
            ("Csc", (i64(5), i64(6), i64(7), X, X, X, 2, 2, 0, 0), (2, 5, 6, 7)),
            ("Coo", (i64(5), i64(6), i64(7), X, X, X, 2, 0, 0), (3, 5, 6, 7)),
            ("Bsr", (i64(2), i64(3), i64(2), i64(2), i64(2), X, X, X, 2, 2, 0, 0, 1), (6, 4, 6, 8)),
            ("SlicedEll", (i64(4), i64(4), i64(5), i64(8), i64(2), X, X, X, 2, 2, 0, 0), (7, 4, 4, 5))):
        _, it = make(library, f"cusparseCreate{name}", *arguments)
        places = [ctypes.c_int(), *(ctypes.c_int64() for _ in range(3))]
        library("cusparseSpMatGetFormat", it, ctypes.byref(places[0]))
        library("cusparseSpMatGetSize", it, *refs(places[1:]))
        assert tuple(place.value for place in places) == wanted, name
        library("cusparseDestroySpMat", it)
        count += 1
    return count


def refusals(library, rng):
    w = i64
    count = 0

    def tries(name, rows):
        nonlocal count
        for arguments, wanted in rows:
            status, it = make(library, name, *arguments)
            expect(status, wanted, f"{name} {arguments}")
            if status == OK:
                library("cusparseDestroySpMat" if "Vec" not in name and "Dn" not in name else
                        "cusparseDestroy" + name.removeprefix("cusparseCreate"), it)
            count += 1

    csr = lambda rows, cols, nnz, o=X, c=X, v=X, ot=2, ct=2, b=0, t=0: (w(rows), w(cols), w(nnz), o, c, v, ot, ct, b, t)
    tries("cusparseCreateCsr", [
        (csr(3, 3, 2), OK), (csr(-1, 3, 2), INVALID), (csr(3, 3, -1), INVALID), (csr(0, 0, 0, None, None, None), OK),
        (csr(3, 3, 2, None), OK), (csr(3, 3, 2, X, None), OK), (csr(3, 3, 2, X, X, None), OK), (csr(3, 3, 10), INVALID),
        (csr(3, 3, 2, ot=3), OK), (csr(3, 3, 2, ot=0), INVALID), (csr(3, 3, 2, ct=4), INVALID), (csr(3, 3, 2, b=2), INVALID)])
    tries("cusparseCreateCsr", [
        (csr(3, 3, 2, t=t), OK if t in (0, 1, 2, 3, 4, 5, 6, 10, 14, 15) else INVALID) for t in range(36)])
    dense = lambda rows, cols, ld, v=X, t=0, o=1: (w(rows), w(cols), w(ld), v, t, o)
    tries("cusparseCreateDnMat", [
        (dense(3, 4, 3), OK), (dense(3, 4, 2), INVALID), (dense(3, 4, 3, o=2), INVALID), (dense(3, 4, 4, o=2), OK),
        (dense(0, 4, 0, None), OK), (dense(3, 4, 3, None), OK), (dense(3, 4, 3, o=0), INVALID),
        (dense(3, 4, 3, o=3), INVALID), (dense(-1, 4, 3), INVALID)])
    tries("cusparseCreateDnVec", [
        ((w(3), X, 0), OK), ((w(0), None, 0), OK), ((w(-1), X, 0), INVALID), ((w(3), X, 99), INVALID)])
    tries("cusparseCreateSpVec", [
        ((w(3), w(2), X, X, 2, 0, 0), OK), ((w(3), w(4), X, X, 2, 0, 0), INVALID), ((w(3), w(2), None, X, 2, 0, 0), OK),
        ((w(-1), w(0), X, X, 2, 0, 0), INVALID), ((w(3), w(-1), X, X, 2, 0, 0), INVALID),
        ((w(3), w(2), X, X, 5, 0, 0), INVALID), ((w(3), w(2), X, X, 2, 7, 0), INVALID)])
    tries("cusparseCreateCoo", [
        ((w(3), w(3), w(2), X, X, X, 2, 0, 0), OK), ((w(3), w(3), w(10), X, X, X, 2, 0, 0), INVALID)])
    tries("cusparseCreateBlockedEll", [
        ((w(4), w(4), w(2), w(4), X, X, 2, 0, 0), OK), ((w(4), w(4), w(2), w(3), X, X, 2, 0, 0), INVALID),
        ((w(5), w(4), w(2), w(4), X, X, 2, 0, 0), INVALID), ((w(4), w(5), w(2), w(4), X, X, 2, 0, 0), INVALID),
        ((w(4), w(4), w(2), w(6), X, X, 2, 0, 0), INVALID), ((w(4), w(4), w(0), w(4), X, X, 2, 0, 0), INVALID),
        ((w(4), w(4), w(2), w(0), None, None, 2, 0, 0), OK), ((w(0), w(0), w(1), w(0), None, None, 2, 0, 0), INVALID)])
    bsr = lambda br, bc, n, r, c, ot=2, ct=2, o=1: (w(br), w(bc), w(n), w(r), w(c), X, X, X, ot, ct, 0, 0, o)
    tries("cusparseCreateBsr", [
        (bsr(2, 2, 2, 2, 2), OK), (bsr(2, 2, 2, 2, 3), INVALID), (bsr(2, 2, 2, 0, 2), INVALID), (bsr(2, 2, 5, 2, 2), INVALID),
        (bsr(2, 2, 2, 2, 2, ot=3), NOT_SUPPORTED), (bsr(2, 2, 2, 2, 2, o=3), INVALID)])
    sell = lambda r, c, n, v, s: (w(r), w(c), w(n), w(v), w(s), X, X, X, 2, 2, 0, 0)
    tries("cusparseCreateSlicedEll", [(sell(4, 4, 5, 8, 2), OK), (sell(4, 4, 5, 4, 2), INVALID), (sell(0, 0, 0, 0, 2), OK)])

    # A descriptor that is none, in every place where one is asked for.
    _, matrix = make(library, "cusparseCreateCsr", *csr(3, 4, 2, b=1))
    _, square = make(library, "cusparseCreateCsr", *csr(3, 3, 2))
    _, freed = make(library, "cusparseCreateCsr", *csr(3, 3, 2))
    library("cusparseDestroySpMat", freed)
    place, wide = ctypes.c_int(7), ctypes.c_int64()
    for none in (None, freed, P(0x1234)):
        expect(library.status("cusparseSpMatGetFormat", none, ctypes.byref(place)), INVALID, "GetFormat of none")
        expect(library.status("cusparseSpMatSetValues", none, X), INVALID, "SetValues of none")
        expect(library.status("cusparseSpMatGetSize", none, *[ctypes.byref(wide)] * 3), INVALID, "GetSize of none")
    expect(library.status("cusparseDestroySpMat", None), OK, "destroying NULL")
    expect(library.status("cusparseDestroySpMat", freed), INVALID, "destroying twice")
    expect(library.status("cusparseSpMatGetFormat", matrix, None), INVALID, "a format to NULL")
    expect(library.status("cusparseCreateCsr", None, *csr(3, 3, 2)), INVALID, "a descriptor to NULL")
    # Attributes.
    for attribute in range(5):
        for bytes_ in (0, 1, 4, 8):
            wanted = OK if attribute < 4 and bytes_ == 4 else INVALID
            place.value = 0
            expect(library.status("cusparseSpMatSetAttribute", matrix, attribute, ctypes.byref(place),
                                  ctypes.c_size_t(bytes_)), wanted, f"attribute {attribute} of {bytes_}")
    for value in (1, 2):
        place.value = value
        call = ("cusparseSpMatSetAttribute", matrix, 3, ctypes.byref(place), ctypes.c_size_t(4))
        expect(library.status(*call), INVALID, "a symmetry of 3 by 4")
        expect(library.status(call[0], square, *call[2:]), OK, "a symmetry of 3 by 3")
        place.value = 9
        library("cusparseSpMatGetAttribute", square, 3, ctypes.byref(place), ctypes.c_size_t(4))
        assert place.value == value
    expect(library.status("cusparseSpMatGetAttribute", square, 0, None, ctypes.c_size_t(4)), INVALID, "to NULL")
    # Batches.
    for n, a, b, wanted in ((0, 0, 0, INVALID), (1, 0, 0, OK), (2, 0, 0, OK), (2, 4, 2, OK), (2, 3, 2, INVALID),
                            (2, 4, 1, INVALID), (-1, 4, 2, INVALID), (2, 0, 2, OK)):
        expect(library.status("cusparseCsrSetStridedBatch", matrix, n, w(a), w(b)), wanted, f"batch {n} {a} {b}")
    library("cusparseSpMatGetStridedBatch", matrix, ctypes.byref(place))
    assert place.value == 2
    expect(library.status("cusparseCooSetStridedBatch", matrix, 2, w(2)), INVALID, "a batch of another format")
    expect(library.status("cusparseCooSetPointers", matrix, X, X, X), INVALID, "pointers of another format")
    _, dense_matrix = make(library, "cusparseCreateDnMat", *dense(3, 4, 3))
    for n, s, wanted in ((0, 0, INVALID), (1, 0, OK), (2, 0, OK), (2, 12, OK), (2, 11, INVALID), (-1, 12, INVALID)):
        expect(library.status("cusparseDnMatSetStridedBatch", dense_matrix, n, w(s)), wanted, f"dense batch {n} {s}")
    library("cusparseDestroyDnMat", dense_matrix)
    library("cusparseDestroySpMat", matrix)
    library("cusparseDestroySpMat", square)
    count += 50
    return count + calls(library, rng)


def goes_on(library, name, *arguments, what):
    """A call succeeds whose work may end early; one that comes back behind its work may tell of it."""
    status = library.status(name, *arguments)
    assert status == OK or device.ON_COPIES and status == INTERNAL, f"{name} of {what}: {status}"


def out_of_range(library, rng):
    """Row and column numbers that are none: the call succeeds, as NVIDIA's does, nothing is written beside the arrays (each has poison
    around it), what is read stays as it is, and the handle goes on working. All of it once more while kernels are checked."""
    handle, count = library.handle(), 0
    for kind in ("csr", "csc", "coo", "sell", "bsr"):
        for none in (1, 1 << 20, -(1 << 20), np.iinfo(np.int32).max, np.iinfo(np.int32).min):
            with Scope(library) as scope:
                a = Sparse(scope, rng, kind, "r32f", 6, 4, "full")
                good = Sparse(scope, rng, "csr", "r32f", 6, 4, "full")
                columns = a.indices.get().copy()
                lines = {"csc": 6, "bsr": 2}.get(kind, 4)
                columns[len(columns) // 2] = lines if none == 1 else none
                a.indices.copy(a.indices.at.value, columns.ctypes.data, columns.nbytes, 1)
                x, y = Vector(scope, rng, 4, "r32f"), Vector(scope, rng, 6, "r32f")
                b, c = Dense(scope, rng, 4, 3, "r32f", COL), Dense(scope, rng, 6, 3, "r32f", COL)
                one, zero = scalar(1.0, "r32f"), scalar(0.0, "r32f")
                calls = [("cusparseSpMV", [N, one[1], a.descriptor, x.descriptor, zero[1], y.descriptor, 0, 0, None])]
                if kind != "sell":
                    calls.append(("cusparseSpMM", [N, N, one[1], a.descriptor, b.descriptor, zero[1], c.descriptor, 0, 0, None]))
                    if kind != "bsr":
                        whole = Dense(scope, rng, 6, 4, "r32f", COL)
                        calls.append(("cusparseSparseToDense", [a.descriptor, whole.descriptor, 0, None]))
                if kind == "csr":
                    calls.append(("cusparseSDDMM", [N, N, one[1], c.descriptor, Dense(scope, rng, 3, 4, "r32f", COL).descriptor, zero[1], a.descriptor,
                                                    0, 0, None]))
                for name, arguments in calls:
                    goes_on(library, name, handle, *arguments, what=f"{kind} with {none}")
                    library.synchronize()
                    for written in (y, c, x, b):
                        written.get()
                    assert (a.indices.get() == columns).all() and (a.offsets.get() == a.offsets.values).all(), f"{name}: {kind} itself was written"
                    a.values.get()
                    # The same handle and a matrix that is one.
                    library("cusparseSpMV", handle, N, one[1], good.descriptor, x.descriptor, zero[1], y.descriptor, 0, 0, None)
                    library.synchronize()
                    assert np.allclose(y.get(), good.dense @ x.dense), f"behind {name} of {kind} with {none}"
                    count += 1
    for none in (5, 1 << 20, -1, np.iinfo(np.int32).min):
        with Scope(library) as scope:
            numbers = np.array([0, none, 2], np.int32)
            places, values, y = scope.array(numbers), scope.array(np.ones(3, np.float32)), Vector(scope, rng, 5, "r32f")
            vector = scope.made("cusparseCreateSpVec", "cusparseDestroySpVec", i64(5), i64(3), places.at, values.at, I32, 0, 0)
            one = scalar(1.0, "r32f")
            for name, arguments in (("cusparseAxpby", [one[1], vector, one[1], y.descriptor]), ("cusparseGather", [y.descriptor, vector]),
                                    ("cusparseScatter", [vector, y.descriptor])):
                goes_on(library, name, handle, *arguments, what=none)
                library.synchronize()
                y.get(), values.get()
                assert (places.get() == numbers).all(), f"{name}: its numbers were written"
                count += 1
    library("cusparseDestroy", handle)
    if "CUDAWAY_SANITIZE" not in os.environ:
        again = [sys.executable, *sys.argv[:4], "out of range"]
        checked = subprocess.run(again, env={**os.environ, "CUDAWAY_SANITIZE": "memcheck"}, capture_output=True, text=True, timeout=300)
        assert checked.returncode == 0 and "PASSED" in checked.stdout, f"under memcheck: {checked.stdout}{checked.stderr}"
        count += 1
    return count


def calls(library, rng):
    """Calls that compute, each wrong in one thing, and nothing written."""
    handle, count = library.handle(), 0
    freed_handle = library.handle()
    library("cusparseDestroy", freed_handle)
    with Scope(library) as scope:
        a = Sparse(scope, rng, "csr", "r32f", 4, 5)
        sell = Sparse(scope, rng, "sell", "r32f", 4, 5)
        bell = Sparse(scope, rng, "bell", "r32f", 4, 4)
        x, y, short = Vector(scope, rng, 5, "r32f"), Vector(scope, rng, 4, "r32f"), Vector(scope, rng, 3, "r32f")
        double = Vector(scope, rng, 4, "r64f")
        _, null_values = make(library, "cusparseCreateDnVec", i64(5), None, 0)
        _, odd = make(library, "cusparseCreateDnVec", i64(5), P(x.array.at.value + 1), 0)
        _, freed = make(library, "cusparseCreateDnVec", i64(5), X, 0)
        library("cusparseDestroyDnVec", freed)
        keep = scalar(1.0, "r32f")
        one = keep[1]
        good = [handle, N, one, a.descriptor, x.descriptor, one, y.descriptor, 0, 0, None]

        def wrong(name, call, where, value, wanted, what):
            nonlocal count
            changed = list(call)
            changed[where] = value
            expect(library.status(name, *changed), wanted, f"{name}: {what}")
            count += 1

        for where, value, wanted, what in (
                (0, None, INVALID, "no handle"), (0, freed_handle, NOT_INITIALIZED, "a freed handle"), (1, 3, INVALID, "operation 3"),
                (1, T, INVALID, "sizes of the other operation"), (2, None, INVALID, "no alpha"), (3, None, INVALID, "no matrix"),
                (3, x.descriptor, INVALID, "a vector for a matrix"), (4, None, INVALID, "no x"), (4, freed, INVALID, "a freed x"),
                (4, short.descriptor, INVALID, "a short x"), (4, null_values, INVALID, "an x without values"),
                (4, odd, INVALID, "an x out of line"), (5, None, INVALID, "no beta"), (6, short.descriptor, INVALID, "a short y"),
                (6, double.descriptor, NOT_SUPPORTED, "a y of another type"), (7, 1, NOT_SUPPORTED, "another computation"),
                (8, 7, INVALID, "algorithm 7"), (3, bell.descriptor, INVALID, "Blocked-ELL of another size")):
            wrong("cusparseSpMV", good, where, value, wanted, what)
        square = [handle, N, one, bell.descriptor, y.descriptor, one, Vector(scope, rng, 4, "r32f").descriptor, 0, 0, None]
        expect(library.status("cusparseSpMV", *square), NOT_SUPPORTED, "Blocked-ELL times a vector")
        turned = [handle, T, one, sell.descriptor, y.descriptor, one, x.descriptor, 0, 0, None]
        expect(library.status("cusparseSpMV", *turned), NOT_SUPPORTED, "Sliced-ELL transposed")
        z, description, plan = Vector(scope, rng, 4, "r32f"), P(), P()
        made = ctypes.byref(description)
        good = [handle, made, N, a.descriptor, x.descriptor, y.descriptor, z.descriptor, 0, 0, None]
        for where, value, wanted, what in (
                (1, None, INVALID, "no place for it"), (2, 3, INVALID, "operation 3"), (2, T, NOT_SUPPORTED, "transposed"), (3, None, INVALID, "no matrix"),
                (3, sell.descriptor, NOT_SUPPORTED, "slices"), (4, short.descriptor, INVALID, "a short x"), (5, short.descriptor, INVALID, "a short y"),
                (6, short.descriptor, INVALID, "a short z"), (6, double.descriptor, NOT_SUPPORTED, "a z of another type"),
                (7, 1, NOT_SUPPORTED, "another computation"), (8, 3, INVALID, "algorithm 3")):
            wrong("cusparseSpMVOp_createDescr", good, where, value, wanted, what)
        library("cusparseSpMVOp_createDescr", *good)
        code = ctypes.create_string_buffer(b"\x7fLTO", 64)
        good = [handle, description, ctypes.byref(plan), None, ctypes.c_size_t(0)]
        wrong("cusparseSpMVOp_createPlan", good, 1, P(0x77), INVALID, "a description that is none")
        wrong("cusparseSpMVOp_createPlan", good, 4, ctypes.c_size_t(64), INVALID, "a size without code")
        expect(library.status("cusparseSpMVOp_createPlan", *good[:3], code, ctypes.c_size_t(64)), NOT_SUPPORTED, "an epilogue in LTO IR")
        assert plan.value is None, "a refused plan was told"
        library("cusparseSpMVOp_createPlan", *good)
        expect(library.status("cusparseSpMVOp_setGlobalUserData", handle, plan, b"a", code, ctypes.c_size_t(4)), INVALID, "a variable of no epilogue")
        good = [handle, plan, one, one, x.descriptor, y.descriptor, z.descriptor]
        for where, value, what in ((1, P(0x77), "a plan that is none"), (2, None, "no alpha"), (3, None, "no beta"), (4, null_values, "an x without values"),
                                   (6, short.descriptor, "a short z")):
            wrong("cusparseSpMVOp", good, where, value, INVALID, what)
        library("cusparseSpMVOp_destroyPlan", plan)
        wrong("cusparseSpMVOp", good, 2, one, INVALID, "a destroyed plan")
        library("cusparseSpMVOp_destroyDescr", description)
        assert z.array.get().tobytes() == z.array.values.tobytes(), "a refused call has written"
        b, c = Dense(scope, rng, 5, 3, "r32f", COL), Dense(scope, rng, 4, 3, "r32f", COL)
        good = [handle, N, N, one, a.descriptor, b.descriptor, one, c.descriptor, 0, 0, None]
        for where, value, wanted, what in (
                (1, 9, INVALID, "operation 9"), (2, T, INVALID, "sizes"), (4, None, INVALID, "no A"), (5, c.descriptor, INVALID, "B's size"),
                (7, b.descriptor, INVALID, "C's size"), (8, 1, NOT_SUPPORTED, "another computation"), (9, 7, INVALID, "algorithm 7"),
                (4, sell.descriptor, NOT_SUPPORTED, "Sliced-ELL")):
            wrong("cusparseSpMM", good, where, value, wanted, what)
        description = scope.made("cusparseSpSV_createDescr", "cusparseSpSV_destroyDescr")
        s = Sparse(scope, rng, "csr", "r32f", 4, 4, "full")
        z = Vector(scope, rng, 4, "r32f")
        good = [handle, N, one, s.descriptor, y.descriptor, z.descriptor, 0, 0, description]
        expect(library.status("cusparseSpSV_solve", *good), INVALID, "a solution without an analysis")
        wrong("cusparseSpSV_solve", good, 8, None, INVALID, "no descriptor")
        wrong("cusparseSpSV_analysis", good + [None], 3, a.descriptor, INVALID, "a matrix that is not square")
        wrong("cusparseSpSV_analysis", good + [None], 8, P(0x77), INVALID, "a descriptor that is none")
        expect(library.status("cusparseSpSV_updateMatrix", handle, description, X, 0), INVALID, "an update before")
        library.synchronize()
        for array in (y.array, x.array, c.array, z.array):
            assert array.get().tobytes() == array.values.tobytes(), "a refused call has written"
        library("cusparseDestroyDnVec", null_values)
        library("cusparseDestroyDnVec", odd)
    # What has no body yet says so.
    expect(library.status("cusparseSpMMOp", None, None), NOT_SUPPORTED, "SpMMOp")
    library("cusparseDestroy", handle)
    return count + 8


def handles(library, rng):
    handle, version, part = library.handle(), ctypes.c_int(), ctypes.c_int()
    library("cusparseGetVersion", handle, ctypes.byref(version))
    parts = []
    for property_ in range(3):
        library("cusparseGetProperty", property_, ctypes.byref(part))
        parts.append(part.value)
    # The runtime beside it is CUDA 13's.
    assert parts == [12, 9, 4] and version.value == 12904, (parts, version.value)
    expect(library.status("cusparseGetProperty", 3, ctypes.byref(part)), INVALID, "property 3")
    expect(library.status("cusparseGetVersion", None, ctypes.byref(version)), INVALID, "a version of NULL")
    expect(library.status("cusparseCreate", None), INVALID, "a handle to NULL")
    expect(library.status("cusparseDestroy", None), OK, "destroying NULL")
    mode, stream = ctypes.c_int(5), P()
    library("cusparseGetPointerMode", handle, ctypes.byref(mode))
    assert mode.value == HOST
    library("cusparseSetPointerMode", handle, DEVICE)
    library("cusparseGetPointerMode", handle, ctypes.byref(mode))
    assert mode.value == DEVICE
    expect(library.status("cusparseSetPointerMode", handle, 2), INVALID, "mode 2")
    made = P()
    library.runtime("cudaStreamCreate", ctypes.byref(made))
    library("cusparseSetStream", handle, made)
    library("cusparseGetStream", handle, ctypes.byref(stream))
    assert stream.value == made.value
    names = ["SUCCESS", "NOT_INITIALIZED", "ALLOC_FAILED", "INVALID_VALUE", "ARCH_MISMATCH", "MAPPING_ERROR", "EXECUTION_FAILED",
             "INTERNAL_ERROR", "MATRIX_TYPE_NOT_SUPPORTED", "ZERO_PIVOT", "NOT_SUPPORTED", "INSUFFICIENT_RESOURCES"]
    texts = ["success", "initialization error", "out of memory", "invalid value", "architecture mismatch",
             "texture memory mapping error", "kernel launch failure", "internal error", "matrix type not supported",
             "zero pivot", "operation not supported", "insufficient resources"]
    for number, (name, text) in enumerate(zip(names, texts)):
        assert library.own.cusparseGetErrorName(number).decode() == "CUSPARSE_STATUS_" + name
        assert library.own.cusparseGetErrorString(number).decode() == text
    assert library.own.cusparseGetErrorName(12) == b"unrecognized error code"
    # The logger tells of a call that fails.
    heard = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p)(
        lambda level, name, text: heard.append((level, name)))
    library("cusparseLoggerSetCallback", callback)
    library("cusparseLoggerSetLevel", 1)
    library.status("cusparseGetProperty", 3, ctypes.byref(part))
    assert heard == [(1, b"cusparseGetProperty")], heard
    library("cusparseLoggerSetMask", 0)
    library.status("cusparseGetProperty", 3, ctypes.byref(part))
    assert len(heard) == 1
    expect(library.status("cusparseLoggerOpenFile", None), INVALID, "a log file NULL")
    expect(library.status("cusparseLoggerSetLevel", 6), INVALID, "level 6")
    library("cusparseLoggerSetCallback", None)
    # The description of the typed calls.
    matrix = P()
    library("cusparseCreateMatDescr", ctypes.byref(matrix))
    get, put = "cusparseGetMat{}", "cusparseSetMat{}"
    for what, most in (("Type", 3), ("FillMode", 1), ("DiagType", 1), ("IndexBase", 1)):
        assert library.status(get.format(what), matrix) == 0
        library(put.format(what), matrix, most)
        assert library.status(get.format(what), matrix) == most
        expect(library.status(put.format(what), matrix, most + 1), INVALID, what)
        expect(library.status(put.format(what), None, 0), INVALID, what)
    library("cusparseDestroyMatDescr", matrix)
    expect(library.status("cusparseDestroyMatDescr", None), OK, "destroying no description")
    library("cusparseDestroy", handle)
    expect(library.status("cusparseDestroy", handle), NOT_INITIALIZED, "destroying twice")
    expect(library.status("cusparseSetStream", handle, None), NOT_INITIALIZED, "a freed handle")
    library.runtime("cudaStreamDestroy", made)
    return 40
