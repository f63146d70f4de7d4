"""Handles, descriptors, what is refused and by which number, and the order of streams and graphs. What descriptors answer is what NVIDIA's
libcudnn 9.27 answers, whose descriptors need no GPU; 8's numbers are those of its header."""

import ctypes
import threading

import numpy as np

import device
from convolutions import Problem
from device import Failure
from library import FLOAT, HALF, P, STATUS, Scope, drawn, ints, near, number


def handles(library, rng):
    for face in library.faces:
        wide = (8, 9, 7) if face.major == 8 else (9, 27, 0)
        version = face.own.cudnnGetVersion()
        assert version == (8907 if face.major == 8 else 92700)
        part = ctypes.c_int()
        for at, wanted in enumerate(wide):
            face("cudnnGetProperty", at, ctypes.byref(part))
            assert part.value == wanted
        face.refused("BAD_PARAM", "cudnnGetProperty", 3, ctypes.byref(part))
        assert face.own.cudnnGetCudartVersion() == 13000
        names = {0: "SUCCESS", **{value: name for name, value in STATUS[face.major].items()}}
        for value, name in names.items():
            assert face.own.cudnnGetErrorString(value) == f"CUDNN_STATUS_{name}".encode()
        assert face.own.cudnnGetErrorString(77) == b"CUDNN_UNKNOWN_STATUS"
        for name in ("OpsInfer", "OpsTrain", "CnnInfer", "CnnTrain", "AdvInfer", "AdvTrain") if face.major == 8 else ("Graph", "Ops", "Cnn", "Adv", "SubquadraticOps"):
            face(f"cudnn{name}VersionCheck")
        handle, stream, other = face.handle(), P(), P(1)
        face("cudnnGetStream", handle, ctypes.byref(other))
        assert not other.value
        face.runtime("cudaStreamCreate", ctypes.byref(stream))
        face("cudnnSetStream", handle, stream)
        face("cudnnGetStream", handle, ctypes.byref(other))
        assert other.value == stream.value
        status = ctypes.c_int(5)
        face("cudnnQueryRuntimeError", handle, ctypes.byref(status), 2, None)
        assert status.value == 0
        face("cudnnDestroy", handle)
        face("cudnnDestroy", None)
        face.refused("BAD_PARAM", "cudnnSetStream", handle, None)
        face.refused("BAD_PARAM", "cudnnCreate", None)
        face.runtime("cudaStreamDestroy", stream)
        # A callback hears of what fails, and 9 keeps its text for one question.
        heard = []
        told = ctypes.CFUNCTYPE(None, ctypes.c_uint, P, P, ctypes.c_char_p)(lambda severity, data, debug, text: heard.append((severity, data, text)))
        face("cudnnSetCallback", 1 << 1, P(1234), told)
        face.refused("BAD_PARAM", "cudnnSetStream", None, None)
        face("cudnnSetCallback", 0, None, ctypes.cast(None, type(told)))
        assert len(heard) == 1 and heard[0][:2] == (1, 1234) and heard[0][2].startswith(b"cudnnSetStream: "), heard
        if face.major == 9:
            face.refused("BAD_PARAM", "cudnnSetStream", None, None)
            text = ctypes.create_string_buffer(200)
            face.own.cudnnGetLastErrorString(text, ctypes.c_size_t(200))
            assert text.value.startswith(b"cudnnSetStream: "), text.value
            face.own.cudnnGetLastErrorString(text, ctypes.c_size_t(200))
            assert text.value == b""
        # What has no body says so.
        face.refused("NOT_SUPPORTED", "cudnnDivisiveNormalizationForward", *[None] * 14)
    return 40


def descriptors(library, rng):
    count = 0
    for face in library.faces:
        with Scope(face) as scope:
            made = lambda kind: scope.made(f"cudnnCreate{kind}Descriptor", f"cudnnDestroy{kind}Descriptor")
            t, f, c, p = made("Tensor"), made("Filter"), made("Convolution"), made("Pooling")
            got = [ctypes.c_int() for _ in range(9)]
            size = ctypes.c_size_t(5)

            def tensor4():
                face("cudnnGetTensor4dDescriptor", t, *map(ctypes.byref, got))
                return [it.value for it in got]

            assert tensor4() == [0] * 9
            face("cudnnGetTensorSizeInBytes", t, ctypes.byref(size))
            assert size.value == 0
            good = [("cudnnSetTensor4dDescriptor", t, 0, 0, 2, 3, 4, 5), ("cudnnSetTensor4dDescriptor", t, 2, 5, 1, 8, 4, 5),
                    ("cudnnSetTensor4dDescriptorEx", t, 0, 2, 3, 4, 5, 100, 30, 6, 1),
                    ("cudnnSetTensorNdDescriptor", t, 0, 2, ints(2, 3), ints(3, 1)),
                    ("cudnnSetTensorNdDescriptor", t, 0, 8, ints(*[1] * 8), ints(*[1] * 8)),
                    ("cudnnSetTensorNdDescriptorEx", t, 1, 0, 4, ints(2, 3, 4, 5)),
                    ("cudnnSetFilter4dDescriptor", f, 0, 0, 4, 3, 2, 2), ("cudnnSetFilterNdDescriptor", f, 0, 0, 3, ints(2, 2, 2)),
                    ("cudnnSetConvolution2dDescriptor", c, 0, 0, 1, 1, 1, 1, 1, 0), ("cudnnSetConvolutionGroupCount", c, 2),
                    ("cudnnSetConvolutionMathType", c, 3), ("cudnnSetPooling2dDescriptor", p, 0, 0, 2, 2, 2, 2, 2, 2)]
            bad = [("cudnnSetTensor4dDescriptor", t, 0, 0, 0, 3, 4, 5), ("cudnnSetTensor4dDescriptor", t, 0, 0, -1, 3, 4, 5),
                   ("cudnnSetTensor4dDescriptor", t, 7, 0, 1, 3, 4, 5), ("cudnnSetTensor4dDescriptor", t, 0, 77, 1, 3, 4, 5),
                   ("cudnnSetTensor4dDescriptor", t, 2, 5, 1, 3, 4, 5), ("cudnnSetTensor4dDescriptor", t, 2, 0, 1, 8, 4, 5),
                   ("cudnnSetTensor4dDescriptorEx", t, 0, 2, 3, 4, 5, 0, 20, 5, 1),
                   ("cudnnSetTensorNdDescriptor", t, 0, 1, ints(2), ints(1)),
                   ("cudnnSetFilter4dDescriptor", f, 0, 0, 0, 3, 2, 2), ("cudnnSetFilterNdDescriptor", f, 0, 0, 2, ints(2, 2)),
                   ("cudnnSetConvolution2dDescriptor", c, -1, 0, 1, 1, 1, 1, 1, 0),
                   ("cudnnSetConvolution2dDescriptor", c, 0, 0, 0, 1, 1, 1, 1, 0),
                   ("cudnnSetConvolution2dDescriptor", c, 0, 0, 1, 1, 0, 1, 1, 0),
                   ("cudnnSetConvolution2dDescriptor", c, 0, 0, 1, 1, 1, 1, 5, 0), ("cudnnSetConvolutionGroupCount", c, 0),
                   ("cudnnSetConvolutionMathType", c, 9), ("cudnnSetPooling2dDescriptor", p, 0, 0, 0, 2, 0, 0, 2, 2),
                   ("cudnnSetPooling2dDescriptor", p, 5, 0, 2, 2, 0, 0, 2, 2), ("cudnnSetPooling2dDescriptor", p, 0, 0, 2, 2, 0, 0, 0, 2),
                   ("cudnnCreateTensorDescriptor", None), ("cudnnSetTensor4dDescriptor", P(64), 0, 0, 1, 1, 1, 1)]
            unsupported = [("cudnnSetTensor4dDescriptor", t, 0, 0, 65536, 65536, 1, 1),
                           ("cudnnSetTensorNdDescriptor", t, 0, 9, ints(*[1] * 9), ints(*[1] * 9))]
            for call in good:
                face(*call)
            for call in bad:
                face.refused("BAD_PARAM", *call)
            for call in unsupported:
                face.refused("NOT_SUPPORTED", *call)
            face("cudnnDestroyTensorDescriptor", None)
            count += len(good) + len(bad) + len(unsupported)
            # What was refused has changed nothing.
            face("cudnnSetTensor4dDescriptorEx", t, 0, 2, 3, 4, 5, 100, 30, 6, 1)
            face.refused("BAD_PARAM", "cudnnSetTensor4dDescriptor", t, 0, 0, 0, 3, 4, 5)
            assert tensor4() == [0, 2, 3, 4, 5, 100, 30, 6, 1]
            face("cudnnGetTensorSizeInBytes", t, ctypes.byref(size))
            assert size.value == 732
            face("cudnnSetTensor4dDescriptor", t, 2, 5, 1, 8, 4, 5)
            assert tensor4() == [5, 1, 8, 4, 5, 40, 20, 5, 1]
            face("cudnnGetTensorSizeInBytes", t, ctypes.byref(size))
            assert size.value == 160
            face("cudnnSetTensorNdDescriptorEx", t, 1, 0, 4, ints(2, 3, 4, 5))
            kind, n, sizes, strides = ctypes.c_int(), ctypes.c_int(), ints(*[0] * 8), ints(*[0] * 8)
            face("cudnnGetTensorNdDescriptor", t, 8, ctypes.byref(kind), ctypes.byref(n), sizes, strides)
            assert (n.value, list(sizes)[:5], list(strides)[:5]) == (4, [2, 3, 4, 5, 0], [60, 1, 15, 3, 0])
            face("cudnnSetFilterNdDescriptor", f, 0, 1, 5, ints(2, 2, 2, 2, 2))
            face("cudnnGetFilterSizeInBytes", f, ctypes.byref(size))
            assert size.value == 128
            # Sizes of results.
            out = [ctypes.c_int() for _ in range(4)]
            places = list(map(ctypes.byref, out))
            face("cudnnSetFilter4dDescriptor", f, 0, 0, 4, 3, 2, 2)
            face("cudnnSetConvolution2dDescriptor", c, 1, 1, 2, 2, 2, 2, 0, 0)
            face("cudnnSetConvolutionGroupCount", c, 1)
            face("cudnnSetTensor4dDescriptor", t, 0, 0, 2, 3, 9, 9)
            face("cudnnGetConvolution2dForwardOutputDim", c, t, f, *places)
            assert [it.value for it in out] == [2, 4, 5, 5]
            face("cudnnSetTensor4dDescriptor", t, 0, 0, 2, 4, 9, 9)
            face.refused("BAD_PARAM", "cudnnGetConvolution2dForwardOutputDim", c, t, f, *places)
            face("cudnnSetConvolution2dDescriptor", c, 0, 0, 2, 2, 2, 2, 0, 0)
            face("cudnnSetTensor4dDescriptor", t, 0, 0, 2, 3, 1, 1)
            face.refused("BAD_PARAM", "cudnnGetConvolution2dForwardOutputDim", c, t, f, *places)
            face("cudnnSetPooling2dDescriptor", p, 0, 0, 3, 3, 1, 1, 2, 2)
            face("cudnnSetTensor4dDescriptor", t, 0, 0, 2, 3, 8, 8)
            face("cudnnGetPooling2dForwardOutputDim", p, t, *places)
            assert [it.value for it in out] == [2, 3, 4, 4]
            derived = made("Tensor")
            for of, mode, wanted in ((0, 0, [0, 1, 3, 8, 8, 192, 64, 8, 1]), (0, 1, [0, 1, 3, 1, 1, 3, 1, 1, 1]),
                                     (2, 2, [0, 1, 3, 1, 1, 3, 1, 1, 1]), (1, 1, [1, 1, 3, 1, 1, 3, 1, 1, 1])):
                face("cudnnSetTensor4dDescriptor", t, 0, of, 2, 3, 8, 8)
                face("cudnnDeriveBNTensorDescriptor", derived, t, mode)
                face("cudnnGetTensor4dDescriptor", derived, *map(ctypes.byref, got))
                assert [it.value for it in got] == wanted
            face.refused("BAD_PARAM", "cudnnDeriveBNTensorDescriptor", derived, t, 3)
            real = ctypes.c_double
            lrn, act, op, red = made("LRN"), made("Activation"), made("OpTensor"), made("ReduceTensor")
            for n, beta, k, wanted in ((5, 0.75, 2, 0), (0, 0.75, 2, 1), (17, 0.75, 2, 1), (16, 0.001, 2, 1), (5, 0.75, 1e-6, 1)):
                call = ("cudnnSetLRNDescriptor", lrn, n, real(1e-4), real(beta), real(k))
                face.refused("BAD_PARAM", *call) if wanted else face(*call)
            for mode in range(-1, 9):
                call = ("cudnnSetActivationDescriptor", act, mode, 0, real(1))
                face(*call) if 0 <= mode <= 6 else face.refused("BAD_PARAM", *call)
            for mode in range(8):
                call = ("cudnnSetOpTensorDescriptor", op, mode, 0, 0)
                face(*call) if mode <= 5 else face.refused("BAD_PARAM", *call)
            for arguments, wanted in (((0, 0, 0, 0, 0), 0), ((9, 0, 0, 0, 0), 1), ((3, 0, 0, 1, 0), 0), ((0, 0, 5, 0, 0), 1)):
                call = ("cudnnSetReduceTensorDescriptor", red, *arguments)
                face.refused("BAD_PARAM", *call) if wanted else face(*call)
            count += 50
    return count


def refusals(library, rng):
    """Nothing is written by a call that is refused."""
    count = 0
    for face in library.faces:
        with Scope(face) as scope:
            it = Problem(rng, FLOAT, 2)
            while it.groups > 1:
                it = Problem(rng, FLOAT, 2)
            convolution = it.descriptor(scope)
            x, w, y = (drawn(rng, sizes, FLOAT) for sizes in (it.x_sizes, it.w_sizes, it.y_sizes))
            tx, tw, ty = scope.tensor(x, FLOAT), scope.filter(w, FLOAT, rng), scope.tensor(y, FLOAT)
            half = scope.tensor(x, HALF)
            one, none = number(1.0, FLOAT), ctypes.c_size_t(0)

            def forward(wanted, handle=scope.handle, alpha=one, x=tx.both, w=tw.both, convolution=convolution, algorithm=1, y=ty.both):
                face.refused(wanted, "cudnnConvolutionForward", handle, alpha, *x, *w, convolution, algorithm, None, none, one, *y)

            forward("BAD_PARAM", handle=None)
            forward("BAD_PARAM", alpha=None)
            forward("BAD_PARAM", x=(tx.descriptor, None))
            forward("BAD_PARAM", w=(tw.descriptor, None))
            forward("BAD_PARAM", y=(ty.descriptor, None))
            forward("BAD_PARAM", x=(None, tx.at))
            forward("BAD_PARAM", algorithm=8)
            forward("BAD_PARAM", y=tx.both if it.x_sizes != it.y_sizes else (P(8), ty.at))
            forward("NOT_SUPPORTED", x=half.both)
            wrong = scope.made("cudnnCreateConvolutionDescriptor", "cudnnDestroyConvolutionDescriptor")
            forward("BAD_PARAM", convolution=wrong)
            face.refused("BAD_PARAM", "cudnnAddTensor", scope.handle, one, *tx.both, one, *scope.tensor(x[:, :, :, :1][:, :, :1] * 0, FLOAT).both) \
                if x.shape[2:] != (1, 1) else None
            face.refused("BAD_PARAM", "cudnnActivationForward", scope.handle, scope.activation(5), one, *tx.both, one, *tx.both)
            face.refused("BAD_PARAM", "cudnnActivationForward", scope.handle, scope.activation(1), one, *half.both, one, *tx.both)
            face.refused("BAD_PARAM", "cudnnSoftmaxForward", scope.handle, 3, 0, one, *tx.both, one, *tx.both)
            face.refused("BAD_PARAM", "cudnnSoftmaxForward", scope.handle, 0, 2, one, *tx.both, one, *tx.both)
            face.refused("BAD_PARAM", "cudnnConvolutionBackwardBias", scope.handle, one, *ty.both, one, *ty.both) if y.shape != (1, y.shape[1], 1, 1) else None
            face.synchronize()
            assert (tx.get() == x).all() and (ty.get() == y).all() and (tw.get() == w).all()
            count += 15
    return count


def on_copies(face, scope, rng, it, tensors, convolution, stream):
    """A call waits for its stream, with memory as it is then, and is done when it comes back; a captured stream refuses it."""
    tx, tw, ty = tensors
    one, zero = number(1.0, FLOAT), number(0.0, FLOAT)
    call = lambda: face.status("cudnnConvolutionForward", scope.handle, one, *tx.both, *tw.both, convolution, 1, None, ctypes.c_size_t(0),
                               zero, *ty.both)
    refused = device.refused_in_capture(face, stream, call)
    assert refused == STATUS[face.major]["NOT_SUPPORTED"], refused
    assert not ty.get().any(), "a call that was refused has written"
    x = drawn(rng, it.x_sizes, FLOAT)
    image = x.astype(np.float32)
    tx.array.copy(tx.at.value, image.ctypes.data, image.nbytes, 1)
    answered = []
    assert device.waits(face, stream, lambda: answered.append(call())), "a call did not wait for its stream"
    assert answered == [0], answered
    w = tw.get()
    near(ty.get(), it.forward(x, w), it.forward(np.abs(x), np.abs(w)), FLOAT, it.depth, "behind a held stream")
    # A tensor that is longer than its memory is refused.
    face("cudnnSetTensor4dDescriptor", tx.descriptor, 0, FLOAT, 1000, *it.x_sizes[1:])
    face("cudnnSetTensor4dDescriptor", ty.descriptor, 0, FLOAT, 1000, *it.y_sizes[1:])
    face.refused("NOT_SUPPORTED", "cudnnConvolutionForward", scope.handle, one, *tx.both, *tw.both, convolution, 1, None, ctypes.c_size_t(0),
                 zero, *ty.both)
    face("cudnnSetStream", scope.handle, None)
    face.runtime("cudaStreamDestroy", stream)


def in_order(library, rng):
    """A call's work is done behind what is in front of it in its stream, with the descriptors as they were, and again with each run of its
    graph."""
    HOST = ctypes.CFUNCTYPE(None, P)
    for face in library.faces:
        with Scope(face) as scope:
            it = Problem(rng, FLOAT, 2)
            x, w = drawn(rng, it.x_sizes, FLOAT), drawn(rng, it.w_sizes, FLOAT)
            tx, tw, ty = scope.tensor(x, FLOAT), scope.filter(w, FLOAT, rng), scope.tensor(np.zeros(it.y_sizes), FLOAT)
            convolution, one, zero, stream = it.descriptor(scope), number(1.0, FLOAT), number(0.0, FLOAT), P()
            face.runtime("cudaStreamCreate", ctypes.byref(stream))
            face("cudnnSetStream", scope.handle, stream)
            if device.ON_COPIES:
                on_copies(face, scope, rng, it, (tx, tw, ty), convolution, stream)
                continue
            gate = threading.Event()
            held = HOST(lambda _: gate.wait(60) and None)
            call = lambda by: face("cudnnConvolutionForward", by, one, *tx.both, *tw.both, convolution, 1, None, ctypes.c_size_t(0),
                                zero, *ty.both)
            face.runtime("cudaLaunchHostFunc", stream, held, None)
            call(scope.handle)
            # The descriptor may be set anew, and memory is read when the stream has come there.
            face("cudnnSetTensor4dDescriptor", ty.descriptor, 0, FLOAT, 1, 1, 1, 1)
            other = drawn(rng, it.x_sizes, FLOAT)
            image = other.astype(np.float32)
            ctypes.memmove(tx.at.value, image.ctypes.data, image.nbytes)
            # A copy would wait for the stream: the CPU device's memory is the process's.
            assert not any(ctypes.string_at(ty.at.value, 4 * ty.length)), "the work did not wait for the stream"
            gate.set()
            face.runtime("cudaStreamSynchronize", stream)
            magnitude = it.forward(np.abs(other), np.abs(w))
            near(ty.get(), it.forward(other, w), magnitude, FLOAT, it.depth, "behind a held stream")
            face("cudnnSetTensor4dDescriptor", ty.descriptor, 0, FLOAT, *it.y_sizes)
            # A graph runs when the handle that it was made with is gone.
            graph, run, by = P(), P(), P()
            face("cudnnCreate", ctypes.byref(by))
            face("cudnnSetStream", by, stream)
            face.runtime("cudaStreamBeginCapture", stream, 0)
            call(by)
            face.runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
            face("cudnnDestroy", by)
            face.runtime("cudaGraphInstantiate", ctypes.byref(run), graph, ctypes.c_ulonglong(0))
            for _ in range(2):
                values = drawn(rng, it.x_sizes, FLOAT)
                image = values.astype(np.float32)
                tx.array.copy(tx.at.value, image.ctypes.data, image.nbytes, 1)
                face.runtime("cudaGraphLaunch", run, stream)
                face.runtime("cudaStreamSynchronize", stream)
                near(ty.get(), it.forward(values, w), it.forward(np.abs(values), np.abs(w)), FLOAT, it.depth, "in a graph")
            face.runtime("cudaGraphExecDestroy", run)
            face.runtime("cudaGraphDestroy", graph)
            face("cudnnSetStream", scope.handle, None)
            face.runtime("cudaStreamDestroy", stream)
    return 8


def parts(library, rng):
    """The parts of the library that programs open by name answer as it does."""
    from pathlib import Path
    count = 0
    for face in library.faces:
        folder = Path(face.own._name).parent
        names = ({"ops_infer": "cudnnCreate", "ops_train": "cudnnDropoutBackward", "cnn_infer": "cudnnConvolutionForward",
                  "cnn_train": "cudnnConvolutionBackwardFilter", "adv_infer": "cudnnRNNForward", "adv_train": "cudnnCTCLoss"} if face.major == 8 else
                 {"graph": "cudnnCreate", "ops": "cudnnSoftmaxForward", "cnn": "cudnnConvolutionForward", "adv": "cudnnRNNForward",
                  "ext": "cudnnCausalConv1dForward", "engines_precompiled": None, "engines_runtime_compiled": None,
                  "engines_tensor_ir": None, "heuristic": None})
        for part, name in names.items():
            opened = ctypes.CDLL(str(folder / f"libcudnn_{part}.so.{face.major}"))
            if name:
                status = getattr(opened, name)(*[None] * 30)
                if status not in STATUS[face.major].values():
                    raise Failure(f"{name} of {part}: {status}")
            count += 1
    return count
