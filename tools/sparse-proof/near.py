"""How far a sum may be from the exact one."""

import numpy as np

from library import ROUNDING, is_complex


def check(got, exact, size, terms, compute, out, what):
    """`size` is the sum of the terms' sizes, of which there are so many. A complex product is four real ones."""
    rounding = ROUNDING[compute] * (4 if is_complex(compute) else 1)
    bound = (terms + 4) * rounding * size + 2 * ROUNDING[out] * np.abs(exact) + (6e-8 if out in ("r16f", "c16f") else 0)
    wrong = ~(np.abs(got - exact) <= bound)
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        raise AssertionError(f"{what}: at {at} {got[at]} for {exact[at]}, bound {np.broadcast_to(bound, got.shape)[at]}")
