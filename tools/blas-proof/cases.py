"""The cases of a routine: every option with every layout, and what is special about zeros."""

import itertools
from dataclasses import dataclass
from types import SimpleNamespace

CHOICES = {
    "trans": (0, 1, 2),
    "transa": (0, 1, 2),
    "transb": (0, 1, 2),
    "uplo": (0, 1),
    "diag": (0, 1),
    "side": (0, 1),
    "mode": (0, 1),  # dgmm's side
}
SIZES = dict(m=6, n=5, k=3, kl=2, ku=1)


@dataclass(frozen=True)
class Layout:
    pad: int
    increments: tuple
    shared: bool = False  # every input of a batch is the same matrix: a stride of 0


TIGHT, PADDED = Layout(0, (1, 1)), Layout(3, (2, 3))
LAYOUTS = [TIGHT, PADDED, Layout(2, (-1, 1)), Layout(1, (1, -2)), Layout(0, (-3, -2))]
SHARED = Layout(1, (2, 1), shared=True)


@dataclass(frozen=True)
class Case:
    options: tuple  # (name, value)
    sizes: tuple
    layout: Layout
    zero: tuple = ()  # factors that are 0, with NaN in what is then not read
    what: str = ""
    in_place: str = ""  # the operand that lies where the result goes

    def namespace(self):
        o = SimpleNamespace(**dict(self.sizes), **dict(self.options))
        if hasattr(o, "mode"):
            o.side = o.mode
        return o

    def __str__(self):
        words = [f"{name}={value}" for name, value in self.options + self.sizes]
        words += [f"pad={self.layout.pad} inc={self.layout.increments}" + (" stride=0" if self.layout.shared else "")]
        words += [f"{name}=0" for name in self.zero] + ([f"C is {self.in_place}"] if self.in_place else [])
        return " ".join(words + ([self.what] if self.what else []))


def cases(routine, name, parameters):
    names = {p["name"] for p in parameters}
    kept = {key: value for key, value in SIZES.items() if key in names}
    has_steps = any(n.startswith("inc") for n in names)
    layouts = LAYOUTS if has_steps else LAYOUTS[:2]
    if routine.positive:
        layouts = LAYOUTS[:2]
    if name.batch:
        layouts = layouts[:3] + [SHARED]
    for options in _options(routine, name, names):
        for layout in layouts:
            yield Case(options, tuple(kept.items()), layout)
        for zero in _zeros(routine, names):
            yield Case(options, tuple(kept.items()), PADDED, zero=zero)
        for operand, allowed in routine.in_place.items():
            if not name.batch and allowed(dict(options)):
                yield Case(options, tuple(kept.items()), PADDED, in_place=operand)
        for size in kept:
            if size not in ("kl", "ku"):
                yield Case(options, tuple((kept | {size: 0}).items()), PADDED, what="empty")
        if not name.batch and not has_steps and {"m", "k"} & names:
            right = dict(options).get("side") == 1
            large = dict(m=19, n=133, k=9) if right or "m" not in names else dict(m=133, n=19, k=131)
            yield Case(options, tuple((key, large[key]) for key in kept), PADDED, what="large")


def _options(routine, name, names):
    choices = {key: CHOICES[key] for key in CHOICES if key in names}
    if name.routine.startswith(("syrk", "syr2k")):
        choices["trans"] = (0, 1)
    if name.routine.startswith(("herk", "her2k")):
        choices["trans"] = (0, 2)
    if name.routine == "rotm":
        choices["flag"] = (-2, -1, 0, 1)
    for values in itertools.product(*choices.values()):
        yield tuple(zip(choices, values))


def _zeros(routine, names):
    factors = [factor for factor in ("alpha", "beta", "a", "b") if factor in routine.unread]
    for count in range(1, len(factors) + 1):
        yield from itertools.combinations(factors, count)
