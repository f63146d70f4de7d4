"""What a driver, a runtime and libraries say of each status, and what the driver says of device 0: a line for each, to be compared.

statuses.py LIBCUDA LIBCUDART [LIBCUBLAS LIBCUSPARSE LIBCUDNN]
"""

import ctypes
import sys

LIBRARIES = (
    (("cublasGetStatusName", "cublasGetStatusString"), range(40)),
    (("cusparseGetErrorName", "cusparseGetErrorString"), range(40)),
    (("cudnnGetErrorString",), [*range(40), *range(1000, 6000)]),
)


def texts(library, names, numbers):
    for name in names:
        function = getattr(library, name)
        function.restype = ctypes.c_char_p
        for number in numbers:
            print(name, number, function(number))


driver, runtime, *others = map(ctypes.CDLL, sys.argv[1:])
print("cuInit", driver.cuInit(0))
for name in ("cuGetErrorName", "cuGetErrorString"):
    for number in range(1001):
        text = ctypes.c_char_p()
        if getattr(driver, name)(number, ctypes.byref(text)) == 0:
            print(name, number, text.value)
device = ctypes.c_int()
driver.cuDeviceGet(ctypes.byref(device), 0)
for attribute in range(1, 200):
    value = ctypes.c_int(-1)
    status = driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    print("attribute", attribute, status, value.value)
texts(runtime, ("cudaGetErrorName", "cudaGetErrorString"), [*range(1001), 10000])
for library, (names, numbers) in zip(others, LIBRARIES):
    texts(library, names, numbers)
