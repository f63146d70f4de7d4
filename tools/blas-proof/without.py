"""Names that nothing here calls, and why."""

import re

_REASONS = [
    (r"cublasXt\w+", "on matrices of the host: calls.py (xt.py)"),
    (r"cublas(Lt)?(Logger\w+|[GS]etLoggerCallback)|cublasXerbla", "no arithmetic: calls.py"),
    (r"cublasLt(MatmulAlgo(Cap|Config)|MatmulAlgoCheckForStream|EmulationDesc|GroupedMatrixLayout|DisableCpu)\w*", "no arithmetic: calls.py"),
    (r"cublasUint8gemmBias", "an integer product with shifts that the manual does not define"),
]


def reason(c):
    return next((why for pattern, why in _REASONS if re.fullmatch(pattern, c)), None)
