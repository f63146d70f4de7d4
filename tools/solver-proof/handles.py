"""The handle, parameters, what is wrong with calls, and the order of a stream. Statuses are the manual's."""

import ctypes
import threading

import numpy as np

from draw import near, norm, numbers, positive, wide
from library import (BY_NUMBER, BY_VALUE, INVALID, LOWER, NOT_INITIALIZED, NOT_SUPPORTED, NOVECTOR, OK, VECTOR,
                     Scope, Solver, device, i64)

P = ctypes.c_void_p


def expect(status, wanted, what):
    assert status == wanted, f"{what}: {status} for {wanted}"


def handles(library, rng):
    handle, stream, other = library.handle(), P(), P()
    library("cusolverDnGetStream", handle, ctypes.byref(stream))
    assert not stream.value
    library.runtime("cudaStreamCreate", ctypes.byref(stream))
    library("cusolverDnSetStream", handle, stream)
    library("cusolverDnGetStream", handle, ctypes.byref(other))
    assert other.value == stream.value
    mode = ctypes.c_int()
    for name, first, others in (("DeterministicMode", 1, (2, 1)), ("MathMode", 1, (2, 4, 6, 1))):
        library(f"cusolverDnGet{name}", handle, ctypes.byref(mode))
        assert mode.value == first, name
        for value in others:
            library(f"cusolverDnSet{name}", handle, value)
            library(f"cusolverDnGet{name}", handle, ctypes.byref(mode))
            assert mode.value == value, name
        expect(library.status(f"cusolverDnSet{name}", handle, 77), INVALID, name)
        expect(library.status(f"cusolverDnGet{name}", handle, None), INVALID, name)
    params = P()
    library("cusolverDnCreateParams", ctypes.byref(params))
    for function in range(7):
        for algorithm in range(3):
            library("cusolverDnSetAdvOptions", params, function, algorithm)
    expect(library.status("cusolverDnSetAdvOptions", params, 7, 0), INVALID, "a function that is none")
    expect(library.status("cusolverDnSetAdvOptions", params, 0, 3), INVALID, "an algorithm that is none")
    with Scope(library) as scope:
        a, info = scope.array(np.eye(3, dtype=np.float32)), scope.info()
        sized = (i64(3), i64(3), 0, a.at, i64(3))
        library("cusolverDnXgetrf", handle, params, *sized, None, 0, None, ctypes.c_size_t(0), None, ctypes.c_size_t(0), info.at)
        library("cusolverDnDestroyParams", params)
        status = library.status("cusolverDnXgetrf", handle, params, *sized, None, 0, None, ctypes.c_size_t(0), None,
                                ctypes.c_size_t(0), info.at)
        expect(status, NOT_INITIALIZED, "parameters that were destroyed")
        library.synchronize()
    version, part, parts = ctypes.c_int(), ctypes.c_int(), []
    for number in range(3):
        library("cusolverGetProperty", number, ctypes.byref(part))
        parts.append(part.value)
    library("cusolverGetVersion", ctypes.byref(version))
    assert version.value == 1000 * parts[0] + 100 * parts[1] + parts[2]
    expect(library.status("cusolverGetProperty", 3, ctypes.byref(part)), INVALID, "a property that is none")
    expect(library.status("cusolverDnCreate", None), INVALID, "a handle to NULL")
    library("cusolverDnDestroy", handle)
    expect(library.status("cusolverDnDestroy", handle), NOT_INITIALIZED, "destroying twice")
    expect(library.status("cusolverDnDestroy", None), NOT_INITIALIZED, "destroying NULL")
    expect(library.status("cusolverDnSetStream", handle, None), NOT_INITIALIZED, "a freed handle")
    library.runtime("cudaStreamDestroy", stream)
    return 29


def emulation(library, rng):
    """Five settings: the first values, others, what is refused; and what computes by settings that do not go together."""
    handle, count = library.handle(), 0
    value = ctypes.c_int()
    settings = {
        "EmulationStrategy": (0, (1, 2, 0), (3, -1)),
        "EmulationSpecialValuesSupport": (0xFFFF, (0, 1, 2, 3, 0xFFFF), ()),
        "FixedPointEmulationMantissaControl": (0, (1, 0), (2, -1)),
        "FixedPointEmulationMaxMantissaBitCount": (0, (1, 53, 79, 0), (-1,)),
        "FixedPointEmulationMantissaBitOffset": (0, (-16, 8, 0), ()),
    }
    for name, (first, others, wrong) in settings.items():
        library(f"cusolverDnGet{name}", handle, ctypes.byref(value))
        assert value.value == first, f"{name}: {value.value} at first"
        for other in others:
            library(f"cusolverDnSet{name}", handle, other)
            for none in wrong:
                expect(library.status(f"cusolverDnSet{name}", handle, none), INVALID, f"{name} {none}")
            library(f"cusolverDnGet{name}", handle, ctypes.byref(value))
            assert value.value == other, f"{name}: {value.value} for {other}"
            count += 1
        expect(library.status(f"cusolverDnGet{name}", handle, None), INVALID, f"{name} to NULL")
        for call in ("Get", "Set"):
            argument = ctypes.byref(value) if call == "Get" else 0
            expect(library.status(f"cusolverDn{call}{name}", None, argument), NOT_INITIALIZED, f"{name} of NULL")
    with Scope(library) as scope:
        a, info = scope.array(np.eye(3)), scope.info()
        factor = lambda: library.status("cusolverDnDpotrf", handle, LOWER, 3, a.at, 3, None, 3, info.at)
        library("cusolverDnSetFixedPointEmulationMantissaBitOffset", handle, -8)
        for mode, control, wanted in ((1, 0, OK), (1, 1, OK), (2, 1, OK), (4, 0, OK), (4, 1, INVALID), (6, 1, INVALID), (6, 0, OK)):
            library("cusolverDnSetMathMode", handle, mode)
            library("cusolverDnSetFixedPointEmulationMantissaControl", handle, control)
            expect(factor(), wanted, f"an offset by mode {mode} and control {control}")
            count += 1
        library("cusolverDnSetFixedPointEmulationMantissaControl", handle, 1)
        library("cusolverDnSetFixedPointEmulationMantissaBitOffset", handle, 0)
        expect(factor(), OK, "no offset")
        library.synchronize()
    library("cusolverDnDestroy", handle)
    return count


def refusals(library, rng):
    """Nothing is written by a call that is refused, its info included."""
    handle, count = library.handle(), 0
    with Scope(library) as scope:
        solver = Solver(library, handle, scope, "D")
        image = numbers(rng, (6, 6), solver).astype(np.float64)
        a, b, w = scope.array(image), scope.array(image), scope.array(image)
        info, pivots, size = scope.info(), scope.array(np.full(6, 5, np.int32)), ctypes.c_int(-1)
        jacobi = scope.made("cusolverDnCreateSyevjInfo", "cusolverDnDestroySyevjInfo")
        singular = scope.made("cusolverDnCreateGesvdjInfo", "cusolverDnDestroyGesvdjInfo")
        A, B, W, I, V = a.at, b.at, w.at, info.at, pivots.at
        byte = lambda letter: ctypes.c_byte(ord(letter))
        zero = ctypes.c_size_t(0)
        odd = P(a.at.value + 1)
        X = (None, zero, None, zero, I)
        good = {
            "getrf": [6, 6, A, 6, None, V, I],
            "getrs": [0, 6, 2, A, 6, V, B, 6, I],
            "potrf": [0, 6, A, 6, None, 6, I],
            "potrs": [0, 6, 2, A, 6, B, 6, I],
            "potri": [0, 6, A, 6, None, 6, I],
            "geqrf": [6, 6, A, 6, W, None, 6, I],
            "orgqr": [6, 6, 6, A, 6, W, None, 6, I],
            "ormqr": [0, 0, 6, 3, 6, A, 6, W, B, 6, None, 6, I],
            "sytrf": [0, 6, A, 6, V, None, 6, I],
            "gebrd": [6, 6, A, 6, W, W, B, B, None, 6, I],
            "sytrd": [0, 6, A, 6, W, W, B, None, 6, I],
            "syevd": [1, 0, 6, A, 6, W, None, 6, I],
            "syevdx": [1, BY_NUMBER, 0, 6, A, 6, ctypes.c_double(0), ctypes.c_double(1), 1, 2, ctypes.byref(size), W, None, 6, I],
            "sygvd": [1, 1, 0, 6, A, 6, B, 6, W, None, 6, I],
            "syevj": [1, 0, 6, A, 6, W, None, 6, I, jacobi],
            "gesvd": [byte("A"), byte("A"), 6, 6, A, 6, W, B, 6, B, 6, None, 6, None, I],
            "gesvdj": [1, 0, 6, 6, A, 6, W, B, 6, B, 6, None, 6, I, singular],
            "gesvdjBatched": [1, 6, 6, A, 6, W, B, 6, B, 6, None, 6, I, singular, 1],
            "laswp": [6, A, 6, 1, 6, V, 1],
        }
        # (routine, {argument: value}, status)
        wrong = [
            ("getrf", {0: -1}), ("getrf", {1: -1}), ("getrf", {2: None}), ("getrf", {3: 5}), ("getrf", {6: None}),
            ("getrf", {2: odd}),
            ("getrs", {0: 3}), ("getrs", {1: -1}), ("getrs", {2: -1}), ("getrs", {4: 5}), ("getrs", {7: 5}), ("getrs", {6: None}),
            ("getrs", {8: None}),
            ("potrf", {0: 2}), ("potrf", {1: -1}), ("potrf", {3: 5}), ("potrf", {2: None}), ("potrf", {5: -1}),
            ("potrs", {0: 7}), ("potrs", {2: -1}), ("potrs", {4: 5}), ("potrs", {6: 5}),
            ("potri", {1: -1}), ("potri", {3: 5}),
            ("geqrf", {0: -1}), ("geqrf", {3: 5}), ("geqrf", {4: None}),
            ("orgqr", {1: 7}), ("orgqr", {2: 7}), ("orgqr", {0: 5}), ("orgqr", {4: 5}), ("orgqr", {2: -1}), ("orgqr", {5: None}),
            ("ormqr", {0: 2}), ("ormqr", {1: 3}), ("ormqr", {4: 7}), ("ormqr", {6: 5}), ("ormqr", {9: 5}), ("ormqr", {3: -1}),
            ("sytrf", {0: 5}), ("sytrf", {3: 5}), ("sytrf", {0: -1}),
            ("gebrd", {0: 5}), ("gebrd", {1: -1}), ("gebrd", {3: 5}), ("gebrd", {4: None}), ("gebrd", {7: None}),
            ("sytrd", {0: 5}), ("sytrd", {3: 5}), ("sytrd", {6: None}),
            ("syevd", {0: 2}), ("syevd", {1: 2}), ("syevd", {2: -1}), ("syevd", {4: 5}), ("syevd", {5: None}),
            ("syevdx", {1: 5}), ("syevdx", {8: 0}), ("syevdx", {9: 7}), ("syevdx", {8: 3}), ("syevdx", {10: None}),
            ("syevdx", {1: BY_VALUE, 6: ctypes.c_double(2)}),
            ("sygvd", {0: 0}), ("sygvd", {0: 4}), ("sygvd", {7: 5}), ("sygvd", {6: None}),
            ("syevj", {9: None}), ("syevj", {0: 3}), ("syevj", {4: 5}),
            ("gesvd", {0: byte("X")}), ("gesvd", {0: byte("O"), 1: byte("O")}), ("gesvd", {2: 5}), ("gesvd", {5: 5}),
            ("gesvd", {8: 5}), ("gesvd", {10: 5}), ("gesvd", {7: None}), ("gesvd", {6: None}),
            ("gesvdj", {14: None}), ("gesvdj", {8: 5}), ("gesvdj", {10: 5}), ("gesvdj", {0: 2}), ("gesvdj", {2: -1}),
            ("gesvdjBatched", {1: 33, 4: 33, 7: 33}), ("gesvdjBatched", {14: -1}),
            ("laswp", {3: 0}), ("laswp", {4: 0}), ("laswp", {6: 2}), ("laswp", {5: None}),
        ]
        for routine, arguments in good.items():
            for none in (None, P(0x1234560)):
                expect(library.status("cusolverDnD" + routine, none, *arguments), NOT_INITIALIZED, f"{routine}: a handle that is none")
                count += 1
        for routine, changed in wrong:
            arguments = [changed.get(i, argument) for i, argument in enumerate(good[routine])]
            expect(library.status("cusolverDnD" + routine, handle, *arguments), INVALID, f"{routine} {changed}")
            count += 1
        # Complex factors are not merely transposed.
        c = solver.matrix(np.eye(6), gap=0)
        expect(library.status("cusolverDnZunmqr", handle, 0, 1, 2, 2, 1, c.at, 6, c.at, c.at, 6, None, 6, I), INVALID, "unmqr")
        expect(library.status("cusolverDnDpotrsBatched", handle, 0, 6, 2, A, 6, B, 6, I, 1), INVALID, "two right sides of a batch")
        # The 64-bit API's types.
        for types in ((0, 1), (1, 0), (2, 2), (5, 1)):
            status = library.status("cusolverDnXgetrf", handle, None, i64(6), i64(6), types[0], A, i64(6), None, types[1], *X)
            expect(status, INVALID, f"Xgetrf of {types}")
            if types != (5, 1):
                status = library.status("cusolverDnXsyevd", handle, None, 1, 0, i64(6), types[0], A, i64(6), types[1], W, types[0],
                                        *X)
                expect(status, INVALID, f"Xsyevd of {types}")
            count += 2
        status = library.status("cusolverDnXgetrf", handle, None, i64(2**40), i64(2**40), 1, A, i64(2**40), None, 1, *X)
        expect(status, INVALID, "a matrix of 2^83 bytes")
        geev = lambda left, right: library.status("cusolverDnXgeev", handle, None, left, right, i64(6), 1, A, i64(6), 5, W, 1, None, i64(1), 1,
                                                  B, i64(6), 1, *X)
        expect(geev(VECTOR, NOVECTOR), INVALID, "no place for left eigenvectors")
        expect(geev(2, NOVECTOR), INVALID, "a job that is none")
        # A pivot that names no row ends the work.
        names_none = scope.array(np.full(6, 9, np.int32))
        library("cusolverDnDgetrs", handle, 0, 6, 2, A, 6, names_none.at, B, 6, I)
        library.synchronize()
        for array in (a, b, w):
            assert (array.get() == image).all(), "a refused call wrote"
        assert info.get()[0] == 0 and (pivots.get() == 5).all()
    library("cusolverDnDestroy", handle)
    return count + 8


def on_copies(library, rng):
    """A call waits for a held stream, and is refused where the stream is captured."""
    handle, stream = library.handle(), P()
    library.runtime("cudaStreamCreate", ctypes.byref(stream))
    library("cusolverDnSetStream", handle, stream)
    with Scope(library) as scope:
        solver, n = Solver(library, handle, scope, "D"), 40
        a, b = positive(rng, n, solver), numbers(rng, (n, 1), solver)
        given, x, info = solver.matrix(a, gap=2), solver.matrix(b, gap=0), scope.info()
        potrf = (handle, LOWER, n, given.at, given.ld, None, n, info.at)
        refused = device.refused_in_capture(library, stream, lambda: library.status("cusolverDnDpotrf", *potrf))
        expect(refused, NOT_SUPPORTED, "potrf in a capture")
        assert (given.get() == a).all() and info.get()[0] == -99, "a refused call wrote"
        assert device.waits(library, stream, lambda: library("cusolverDnDpotrf", *potrf)), "potrf did not wait"
        solver.call("potrs", LOWER, n, 1, given.at, given.ld, x.at, x.ld, info.at)
        solution = wide(x.get())
        near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, "behind a held stream")
    library("cusolverDnDestroy", handle)
    library.runtime("cudaStreamDestroy", stream)
    return 3


def in_order(library, rng):
    """A held stream, and a graph that is launched twice."""
    if device.ON_COPIES:
        return on_copies(library, rng)
    handle, stream, count = library.handle(), P(), 0
    library.runtime("cudaStreamCreate", ctypes.byref(stream))
    library("cusolverDnSetStream", handle, stream)
    with Scope(library) as scope:
        solver = Solver(library, handle, scope, "D")
        n = 40
        a, b = positive(rng, n, solver), numbers(rng, (n, 1), solver)
        given, x, info = solver.matrix(a, gap=2), solver.matrix(b, gap=0), scope.info()
        gate = threading.Event()
        hold = ctypes.CFUNCTYPE(None, P)(lambda _: gate.wait(30))
        library.runtime("cudaLaunchHostFunc", stream, hold, None)
        solver.call("potrf", LOWER, n, given.at, given.ld, None, n, info.at)
        solver.call("potrs", LOWER, n, 1, given.at, given.ld, x.at, x.ld, info.at)
        assert library.cudart.cudaStreamQuery(stream) == 600, "the calls did not come back before the stream was free"
        gate.set()
        library.runtime("cudaStreamSynchronize", stream)
        solution = wide(x.get())
        near(wide(a) @ solution - b, norm(a) * norm(solution), n, solver, "behind a held stream")
        # A graph of a factorization and a system, whose right side is its solution the second time.
        again, bytes_ = solver.matrix(a, gap=2), given.array.bytes
        graph, ready = P(), P()
        library.runtime("cudaStreamBeginCapture", stream, 0)
        library.runtime("cudaMemcpyAsync", given.at, again.at, ctypes.c_size_t(bytes_), 3, stream)
        solver.call("potrf", LOWER, n, given.at, given.ld, None, n, info.at)
        solver.call("potrs", LOWER, n, 1, given.at, given.ld, x.at, x.ld, info.at)
        library.runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
        assert (wide(x.get()) == solution).all(), "a capture runs nothing"
        library.runtime("cudaGraphInstantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        for _ in range(2):
            before = wide(x.get())
            library.runtime("cudaGraphLaunch", ready, stream)
            library.runtime("cudaStreamSynchronize", stream)
            after = wide(x.get())
            near(wide(a) @ after - before, norm(a) * norm(after), n, solver, "a graph's system")
            count += 1
        library.runtime("cudaGraphExecDestroy", ready)
        library.runtime("cudaGraphDestroy", graph)
        # What tells the host something tells it when the graph has run; what has to wait cannot be captured.
        w, found, one = scope.zeros(n, np.float64), ctypes.c_int(-1), ctypes.c_double(0)
        info_of = scope.made("cusolverDnCreateSyevjInfo", "cusolverDnDestroySyevjInfo")
        library.runtime("cudaStreamBeginCapture", stream, 0)
        solver.call("syevdx", NOVECTOR, BY_NUMBER, LOWER, n, again.at, again.ld, one, one, 3, 9, ctypes.byref(found), w.at, None, 0,
                    info.at)
        library.runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
        assert found.value == -1
        library.runtime("cudaGraphInstantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        library.runtime("cudaGraphLaunch", ready, stream)
        library.runtime("cudaStreamSynchronize", stream)
        assert found.value == 7
        near((wide(w.get()[:7]) - np.linalg.eigvalsh(a)[2:9])[:, None], norm(a), n, solver, "a captured syevdx")
        library.runtime("cudaGraphExecDestroy", ready)
        library.runtime("cudaGraphDestroy", graph)
        library.runtime("cudaStreamBeginCapture", stream, 0)
        status = library.status("cusolverDnXsyevjGetSweeps", handle, info_of, ctypes.byref(found))
        library.cudart.cudaStreamEndCapture(stream, ctypes.byref(graph))
        assert status != OK, "a call that waits was captured"
    library("cusolverDnDestroy", handle)
    library.runtime("cudaStreamDestroy", stream)
    return count + 3
