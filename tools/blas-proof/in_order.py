"""Every routine behind a stream's work: factors, matrices and vectors get their numbers only after the call has returned.

The stream waits for a host function, then copies the numbers to where the call was told they are, then does the routine's
work, then copies what came out aside. A routine that reads or writes earlier or later than its turn has the wrong numbers.
"""

import ctypes
import threading

import numpy as np

from call import Prepared, Wrong
from cases import PADDED, cases
from library import DEVICE, NOT_SUPPORTED, OK
from names import TYPES
from routines import ROUTINES

NON_BLOCKING = 1
DEVICE_TO_DEVICE = 3
ROOM = 1 << 20
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Stream:
    """A stream of its own, that waits until it is let go."""

    def __init__(self, library):
        self.library, self.handle, self._go = library, ctypes.c_void_p(), threading.Event()
        library.cuda("cudaStreamCreateWithFlags", ctypes.byref(self.handle), NON_BLOCKING)
        self._waits = HOST_FUNCTION(lambda _: self._go.wait(60))

    def hold(self):
        self._go.clear()
        self.library.cuda("cudaLaunchHostFunc", self.handle, self._waits, None)

    def copy(self, to, source, size):
        self.library.cuda("cudaMemcpyAsync", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), DEVICE_TO_DEVICE, self.handle)

    def let_go(self):
        self._go.set()
        self.library.cuda("cudaStreamSynchronize", self.handle)

    def destroy(self):
        self.library.cuda("cudaStreamDestroy", self.handle)


class InOrder:
    def __init__(self, library):
        self.library, self.stream = library, Stream(library)
        # Beyond what any call's image takes: the numbers to come, and what came out.
        self.numbers, self.results = library.arena + 4 * ROOM, library.arena + 5 * ROOM

    def prove(self, name, parameters, family):
        """The first case with padding, in the first types."""
        types = TYPES.get(name.c.removesuffix("_64"), [{}])[0]
        case = next(case for case in cases(ROUTINES[name.routine], name, parameters) if case.layout is PADDED)
        prepared = Prepared(name, parameters, types, case)
        library, stream = self.library, self.stream
        host, arguments = prepared.arguments(library, DEVICE)
        assert host.size <= ROOM
        nothing = np.full(host.size, 0x7F, np.uint8)
        library.send(nothing)
        library.copy(self.numbers, host.ctypes.data, host.size, 1)
        library.pointer_mode(DEVICE)
        library.set_stream(stream.handle)
        stream.hold()
        try:
            stream.copy(library.arena, self.numbers, host.size)
            status = library.function(name.c)(*arguments)
            stream.copy(self.results, library.arena, host.size)
            stream.copy(library.arena, self.numbers, host.size)
            early = library.receive(host.size) if status == OK else nothing
        finally:
            stream.let_go()
            library.set_stream(None)
        if status == NOT_SUPPORTED:
            return
        family.calls += 1
        after = np.empty(prepared.image.size, np.uint8)
        library.copy(after.ctypes.data, self.results, after.size, 2)
        try:
            if status != OK:
                raise Wrong(f"status {status}")
            if early.tobytes() != nothing.tobytes():
                raise Wrong("something was written before the stream was let go")
            prepared.verify(after, prepared.expected())
        except Wrong as wrong:
            family.wrong.append(f"{name.c} on a stream ({case}): {wrong}")
