"""Numbers of cuRAND's generators on the CPU device beside NVIDIA's own host generators and Intel's MKL, by turns in one process.

rand.py libcurand libcudart NVIDIA'S-libcurand libmkl_rt SECONDS [WORD ...]

A line is `name|ours|NVIDIA's|MKL's|memory`: memory is NumPy's filling of as many bytes. Ours are compared with NVIDIA's before
anything is measured.
"""

import ctypes
import sys

import numpy as np

from by_turns import P, at, tell, timed, turns

COUNT = 1 << 24
SEED = 1234
#: cuRAND's number, MKL's (VSL_BRNG_*) where it has such a generator, and whether sequences take dimensions in the place of a seed.
KINDS = {"XORWOW": (101, None), "MRG32k3a": (121, 3), "MTGP32": (141, None), "MT19937": (142, 8), "Philox4x32-10": (161, 16),
         "Sobol32": (201, 6), "Sobol64": (203, None)}
IS_QUASI = {"Sobol32", "Sobol64"}
f32, f64 = ctypes.c_float, ctypes.c_double


class Rand:
    """A libcurand."""

    def __init__(self, path, create):
        self.own, self.create = ctypes.CDLL(path), create

    def __call__(self, name, *arguments):
        status = getattr(self.own, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def generator(self, kind):
        made = P()
        self(self.create, ctypes.byref(made), KINDS[kind][0])
        if kind not in IS_QUASI:
            self("curandSetPseudoRandomGeneratorSeed", made, ctypes.c_ulonglong(SEED))
        return made


def filled(library, kind, what, out, after=lambda: None):
    """A function that has the library fill the array."""
    generator, count = library.generator(kind), ctypes.c_size_t(len(out))
    extra = {"normal": (f32(0), f32(1)), "normal double": (f64(0), f64(1)), "Poisson of 10": (f64(10),)}.get(what, ())
    name = {"words": "curandGenerateLongLong" if kind == "Sobol64" else "curandGenerate", "uniform": "curandGenerateUniform",
            "uniform double": "curandGenerateUniformDouble", "normal": "curandGenerateNormal",
            "normal double": "curandGenerateNormalDouble", "Poisson of 10": "curandGeneratePoisson"}[what]

    def run():
        library(name, generator, at(out), count, *extra)
        after()
    return run


def by_mkl(mkl, kind, what, out):
    """The same by MKL, or None."""
    call = {"uniform": ("vsRngUniform", f32), "uniform double": ("vdRngUniform", f64), "normal": ("vsRngGaussian", f32),
            "normal double": ("vdRngGaussian", f64)}.get(what)
    number = KINDS[kind][1]
    if call is None or number is None:
        return None
    stream = P()
    assert mkl.vslNewStream(ctypes.byref(stream), number << 20, 1 if kind in IS_QUASI else SEED) == 0
    name, ty = call
    # VSL_RNG_METHOD_UNIFORM_STD is 0, VSL_RNG_METHOD_GAUSSIAN_BOXMULLER2, which takes both of a pair, 1.
    method = 1 if "Gaussian" in name else 0

    def run():
        assert getattr(mkl, name)(method, stream, len(out), at(out), ty(0), ty(1)) == 0
    return run


def array(kind, what):
    if what == "words":
        return np.zeros(COUNT, np.uint64 if kind == "Sobol64" else np.uint32)
    return np.zeros(COUNT, {"Poisson of 10": np.uint32}.get(what, np.float64 if "double" in what else np.float32))


def rows():
    for kind in KINDS:
        yield kind, "words"
        yield kind, "uniform"
        if kind in ("XORWOW", "Philox4x32-10", "MRG32k3a", "Sobol32"):
            yield from ((kind, what) for what in ("uniform double", "normal", "normal double", "Poisson of 10"))


def main():
    curand, cudart, nvidia, mkl, seconds, *words = sys.argv[1:]
    runtime = ctypes.CDLL(cudart)
    runtime.cudaFree(None)
    ours, theirs, mkl = Rand(curand, "curandCreateGenerator"), Rand(nvidia, "curandCreateGeneratorHost"), ctypes.CDLL(mkl)
    for kind, what in rows():
        name = f"{kind} {what}"
        if not all(word in name for word in words):
            continue
        a, b, c = (array(kind, what) for _ in range(3))
        runs = [filled(ours, kind, what, a, runtime.cudaDeviceSynchronize), filled(theirs, kind, what, b), by_mkl(mkl, kind, what, c)]
        runs[0]()
        runs[1]()
        assert np.allclose(a, b, rtol=1e-6, atol=1e-6) if "normal" in what else (a == b).all(), f"{name}: other numbers"
        runs.append(lambda: c.fill(1))
        least = iter(turns([timed(run) for run in runs if run], float(seconds)))
        tell(name, [next(least) if run else 0.0 for run in runs])


main()
