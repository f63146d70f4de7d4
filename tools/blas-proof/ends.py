"""Handles that end after what they were given."""

import os
from ctypes import byref, c_float, c_void_p

from calls import SUCCESS, after, case, equal


@case(CUDAWAY_LOG="info", CUDAWAY_LOG_FILE="FOLDER/log")
def a_handle_may_end_after_its_stream(libraries):
    cuda, blas = libraries.cuda, libraries.blas
    stream, memory = c_void_p(), c_void_p()
    equal(cuda.cudaStreamCreate(byref(stream)), SUCCESS)
    equal(cuda.cudaMalloc(byref(memory), 64), SUCCESS)
    handle = libraries.handle()
    equal(blas.cublasSetStream_v2(handle, stream), SUCCESS)
    equal(blas.cublasSscal_v2(handle, 16, byref(c_float(2)), memory, 1), SUCCESS)
    equal(cuda.cudaStreamDestroy(stream), SUCCESS)
    equal(blas.cublasDestroy_v2(handle), SUCCESS)


@after(a_handle_may_end_after_its_stream)
def _(stdout, stderr, folder):
    equal(stdout + stderr, "", "what is printed")
    with open(os.path.join(folder, "log")) as file:
        equal([line for line in file if "INVALID" in line], [], "calls that the driver refused")
