"""What a C name says: the routine, the form of its batch; and the types that its `…Type` parameters may have together."""

import re
from dataclasses import dataclass

from elements import BF16, C32, C64, F16, F32, F64, I8, I32
from routines import ROUTINES

LETTERS = "Is|Id|Ic|Iz|Sc|Dz|Cs|Zd|HSH|HSS|TST|TSS|S|D|C|Z|H"
_ROUTINE = "|".join(sorted(ROUTINES, key=len, reverse=True))
_TYPED = re.compile(rf"cublas(?:{LETTERS})({_ROUTINE})(Batched|StridedBatched)?(Ex)?(_v2)?(_64)?")
_UNTYPED = re.compile(rf"cublas(Gemm|Axpy|Dot|Dotc|Nrm2|Scal|Copy|Swap|Iamax|Iamin|Asum|Rot|Rotm|Rotg|Rotmg)(Batched|StridedBatched)?Ex()()(_64)?")

PLAIN, BATCHED, STRIDED = "", "Batched", "StridedBatched"


@dataclass(frozen=True)
class Name:
    c: str
    routine: str
    batch: str
    wide: bool  # the form with 64-bit integers

    @property
    def family(self):
        return self.routine + self.batch + ("Ex" if "Ex" in self.c else "")


def parse(c):
    match = _TYPED.fullmatch(c) or _UNTYPED.fullmatch(c)
    if match is None:
        return None
    routine = match[1].lower()
    return Name(c, {"iamax": "amax", "iamin": "amin"}.get(routine, routine), match[2] or PLAIN, bool(match[5]))


# cublasComputeType_t: its number, and the element that sums are kept in.
COMPUTE = {"16F": (64, F16), "32F": (68, F32), "32F_FAST_TF32": (77, None), "64F": (70, F64), "32I": (72, I32)}


def _gemm_types():
    rows = [("16F", F16, F16, F16)]
    rows += [("32F", ab, c, F32) for ab, c in ((F16, F16), (BF16, BF16), (F16, F32), (BF16, F32), (I8, F32), (F32, F32))]
    rows += [("32F", C32, C32, C32), ("64F", F64, F64, F64), ("64F", C64, C64, C64), ("32I", I8, I32, I32)]
    return [dict(computeType=compute, Atype=ab, Btype=ab, Ctype=c, alpha=scale, beta=scale) for compute, ab, c, scale in rows]


def _vectors(*rows, names):
    return [dict(zip(names.split(), row)) for row in rows]


_REAL = (F16, BF16, F32, F64)
_ONE = [(e, F32 if e in (F16, BF16) else e) for e in (F16, BF16, F32, F64, C32, C64)]
_REAL_OF = {F16: F16, BF16: BF16, F32: F32, F64: F64, C32: F32, C64: F64}
_EXECUTION = dict(_ONE)

# By the C name without its width: the combinations that the manual's tables allow.
TYPES = {
    "cublasGemmEx": _gemm_types(),
    "cublasGemmBatchedEx": _gemm_types(),
    "cublasGemmStridedBatchedEx": _gemm_types(),
    "cublasSgemmEx": _vectors(*((ab, ab, c) for ab, c in ((F16, F16), (F16, F32), (BF16, BF16), (BF16, F32), (I8, F32), (F32, F32))), names="Atype Btype Ctype"),
    "cublasCgemmEx": _vectors((C32, C32, C32), names="Atype Btype Ctype"),
    "cublasCgemm3mEx": _vectors((C32, C32, C32), names="Atype Btype Ctype"),
    **{f"cublasC{name}Ex": _vectors((C32, C32), names="Atype Ctype") for name in ("syrk", "syrk3m", "herk", "herk3m")},
    "cublasAxpyEx": _vectors(*((s, e, e, s) for e, s in _ONE), names="alphaType xType yType executiontype"),
    "cublasScalEx": _vectors(*((s, e, s) for e, s in _ONE), names="alphaType xType executionType"),
    "cublasDotEx": _vectors(*((e, e, e, s) for e, s in _ONE), names="xType yType resultType executionType"),
    "cublasDotcEx": _vectors(*((e, e, e, s) for e, s in _ONE), names="xType yType resultType executionType"),
    "cublasNrm2Ex": _vectors(*((e, _REAL_OF[e], _REAL_OF[s]) for e, s in _ONE), names="xType resultType executionType"),
    "cublasAsumEx": _vectors(*((e, _REAL_OF[e], _REAL_OF[s]) for e, s in _ONE), names="xType resultType executiontype"),
    "cublasRotEx": _vectors(*((e, e, _REAL_OF[e], s) for e, s in _ONE), names="xType yType csType executiontype")
    + _vectors(*((e, e, e, _REAL_OF[e], e) for e in (C32, C64)), names="xType yType csType c executiontype"),
    "cublasRotgEx": _vectors(*((e, e, _REAL_OF[e], s) for e, s in _ONE), names="abType csType c executiontype"),
    "cublasRotmEx": _vectors(*((e, e, e, s) for e, s in _ONE[:4]), names="xType yType paramType executiontype"),
    "cublasRotmgEx": _vectors(*((e, e, e, e, e, s) for e, s in _ONE[:4]), names="d1Type d2Type x1Type y1Type paramType executiontype"),
    **{f"cublas{name}Ex": _vectors(*((e, e) for e, _ in _ONE), names="xType yType") for name in ("Copy", "Swap")},
    **{f"cublas{name}Ex": _vectors(*((e,) for e, _ in _ONE), names="xType") for name in ("Iamax", "Iamin")},
}
