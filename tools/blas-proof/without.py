"""Names that are not in the table of routines, and why."""

import re

_REASONS = [
    (r"cublasXt\w+", "on matrices of the host: xt.py"),
    (r"cublas(Create|Destroy|Get|Set|Logger|Alloc|Free|Init|Shutdown|Xerbla)\w*", "no arithmetic: calls.py"),
    (r"cublas[SDCZ](getrf|getri|getrs|matinv)Batched", "shown by lapack.py"),
    (r"cublas[SDCZ](geqrf|gels)Batched", "nobody has written the reference yet; crates/blas-cpu has its tests"),
    (r"cublas([SD]gemm|Gemm)GroupedBatched(Ex)?(_64)?|cublasRotm?gEx", "nobody has written the reference yet"),
    (r"cublasUint8gemmBias", "an integer product with shifts that the manual does not define"),
]


def reason(c, signature):
    if not any(p["name"] == "handle" for p in signature["params"]) and not re.fullmatch(_REASONS[1][0], c):
        return "the interface of before CUDA 4"
    return next((why for pattern, why in _REASONS if re.fullmatch(pattern, c)), None)
