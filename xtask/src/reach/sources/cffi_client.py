import cffi

ffi = cffi.FFI()
ffi.cdef("int cuDriverGetVersion(int *version);")
version = ffi.new("int *")
try:
    ffi.dlopen("libcuda.so.1").cuDriverGetVersion(version)
except OSError:
    pass
print("ours" if version[0] > 1 else "theirs" if version[0] == 1 else "none")
