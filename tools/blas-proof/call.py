"""One call: its operands, what C is handed, and whether what came back is right."""

import zlib
from types import SimpleNamespace

import ml_dtypes
import numpy as np

from elements import DATA_TYPE, OF_C
from library import DEVICE
from memory import Image, Operand, read
from names import COMPUTE
from routines import ROUTINES, scalar

# Where these lie, the pointer mode says.
BY_POINTER_MODE = {"alpha", "beta", "c", "s", "a", "b", "d1", "d2", "x1", "y1", "param", "result"}
BATCH, ORDER = 3, (2, 0, 1)
ALGORITHM_DEFAULT = -1


class Wrong(Exception):
    """What is not as it has to be."""


def operand_of(parameter):
    return parameter.removesuffix("array")


def element_of(parameter, types):
    """By the parameter's type, or where that is `void`, by the type that another parameter has."""
    name, pointee = operand_of(parameter["name"]), parameter["type"].split()[-1]
    if pointee in OF_C:
        return OF_C[pointee]
    pair = {"a": "abType", "b": "abType", "c": "csType", "s": "csType"}.get(name)
    for key in (name, f"{name}Type", f"{name}type", pair):
        if key in types:
            return types[key]
    return types["executiontype"] if "executiontype" in types else types["executionType"]


class Prepared:
    """A case's operands in memory, and the arguments that C is given."""

    def __init__(self, name, parameters, types, case):
        self.name, self.parameters, self.types, self.case = name, parameters, types, case
        self.routine = ROUTINES[name.routine]
        self.options = case.namespace()
        self.operands, self.steps = {}, {}
        seed = f"{name.c.removesuffix('_64')} {sorted((key, str(value)) for key, value in types.items())} {case}"
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        for parameter in parameters:
            self._place(parameter, rng)
        if self.routine.prepare:
            self.routine.prepare(self.options, self.operands)
        self.forgotten = {key for factor in case.zero for key in self.routine.unread[factor] if key in self.operands}
        for key in self.forgotten:
            self.operands[key].forget()
        for factor in case.zero:
            self.operands[factor].memory[self.operands[factor].inside] = 0
        self.image = Image()
        for operand in self.operands.values():
            operand.offset = self.image.add(operand.memory)

    def _place(self, parameter, rng):
        key = operand_of(parameter["name"])
        place = scalar if key in ("alpha", "beta") else self.routine.operands.get(key)
        if place is None or key == self.case.in_place:
            return
        layout, batch = self.case.layout, self.name.batch
        positions, span, step = place(self.options, layout)
        copies = BATCH if batch and key not in BY_POINTER_MODE else 1
        shared = copies == 1 or (layout.shared and key not in self.routine.writes)
        order = ORDER if parameter["type"].count("*") == 2 else None
        self.operands[key] = Operand(element_of(parameter, self.types), positions, span, copies, shared, rng, order)
        self.steps[f"ld{key.lower()}"] = self.steps[f"inc{key}"] = step
        if self.case.in_place and key in self.routine.writes:
            self.steps[f"ld{self.case.in_place.lower()}"] = step

    @property
    def has_scalars(self):
        return bool(BY_POINTER_MODE & self.operands.keys())

    @property
    def batch(self):
        return BATCH if self.name.batch else 1

    def call(self, library, mode):
        """The status and the image after the call; in host mode with the host's scalars in their places."""
        host, arguments = self.arguments(library, mode)
        library.send(host)
        library.pointer_mode(mode)
        status = library.function(self.name.c)(*arguments)
        return status, self.after(library, mode, host)

    def arguments(self, library, mode):
        """The whole image, and what C is given."""
        image, pointers = Image(), {}
        image.parts, image.size = list(self.image.parts), self.image.size
        for parameter in self.parameters:
            if parameter["type"].count("*") == 2:
                operand = self.operands[operand_of(parameter["name"])]
                starts = np.array(operand.starts * (1 if len(operand.starts) == BATCH else BATCH), np.int64)
                addresses = library.arena + operand.offset + starts * operand.element.dtype.itemsize
                pointers[parameter["name"]] = library.arena + image.add(addresses)
        host = image.bytes()
        scalars = library.arena if mode == DEVICE else host.ctypes.data
        return host, [self._argument(p, library, pointers, scalars) for p in self.parameters]

    def after(self, library, mode, host):
        after = library.receive(self.image.size)
        if mode != DEVICE:
            for key in BY_POINTER_MODE & self.operands.keys():
                operand = self.operands[key]
                read(after, operand.offset, operand.memory)[:] = read(host, operand.offset, operand.memory)
        return after

    def _argument(self, parameter, library, pointers, scalars):
        name = parameter["name"]
        if name == self.case.in_place:
            name = self.routine.writes[0]
        if name == "handle":
            return library.handle
        if name in pointers:
            return pointers[name]
        if name in self.operands:
            operand = self.operands[name]
            start = 0 if len(operand.starts) == 0 else operand.starts[0]
            base = scalars if name in BY_POINTER_MODE else library.arena
            return base + operand.offset + start * operand.element.dtype.itemsize
        if name in self.steps:
            return self.steps[name]
        if name.startswith("stride"):
            operand = self.operands[name.removeprefix("stride")]
            return 0 if len(set(operand.starts)) == 1 else operand.stride
        if name == "batchCount":
            return BATCH
        if name == "computeType":
            return COMPUTE[self.types[name]][0]
        if name == "algo":
            return ALGORITHM_DEFAULT
        if name.lower().endswith("type"):
            return DATA_TYPE[self.types[name]]
        return getattr(self.options, name)

    # What has to come back.

    def dense(self, index, magnitudes=False, **more):
        o = SimpleNamespace(**vars(self.options), minus=1 if magnitudes else -1, **more)
        for key, operand in self.operands.items():
            value = operand.dense(index if len(operand.where) > 1 else 0)
            if key in self.forgotten:
                value = np.zeros_like(value)
            setattr(o, key, np.abs(value) if magnitudes else value)
        if self.case.in_place:
            setattr(o, self.case.in_place, getattr(o, self.routine.writes[0]))
        o.raw_param = self.operands["param"].dense(0) if "param" in self.operands else None
        return o

    def roundoff(self):
        """Of the arithmetic that sums are kept in."""
        if "computeType" in self.types:
            return COMPUTE[self.types["computeType"]][1].roundoff
        for key in ("executionType", "executiontype"):
            if key in self.types:
                return self.types[key].roundoff
        if "alpha" in self.operands:
            return self.operands["alpha"].element.roundoff
        return max(operand.element.roundoff for operand in self.operands.values())

    def gamma(self):
        if self.routine.terms is None:
            return 0.0
        # A complex product is four real ones and two sums (Higham, lemma 3.5).
        each = 4 if any(operand.element.is_complex for operand in self.operands.values()) else 1
        u = each * (self.routine.terms(self.options) + 4) * self.roundoff()
        return u / (1 - u)

    def expected(self):
        """Of every matrix of the batch, the values and their magnitudes; None of a routine that solves."""
        if self.routine.value is None:
            return None
        with np.errstate(all="ignore"):
            if self.routine.empty(self.dense(0)):
                olds = [self.dense(i) for i in range(self.batch)]
                return [[(getattr(o, key), 0 * np.abs(getattr(o, key))) for key in self.routine.writes] for o in olds]
            both = [(self.routine.value(self.dense(i)), self.routine.value(self.dense(i, True))) for i in range(self.batch)]
        if self.routine.relative:
            both = [(values, [np.abs(value) for value in values]) for values, _ in both]
        return [list(zip(values, magnitudes)) for values, magnitudes in both]

    def verify(self, after, expected):
        """Raises `Wrong` unless what was written is within its bound, and nothing else was written."""
        for key, operand in self.operands.items():
            old, new = operand.memory, read(after, operand.offset, operand.memory)
            size = operand.element.dtype.itemsize
            changed = (old.view(np.uint8) != new.view(np.uint8)).reshape(-1, size).any(axis=1)
            if key in self.routine.writes:
                changed[operand.inside] = False
            if changed.any():
                raise Wrong(f"{key}: written at {np.flatnonzero(changed)[:4]}, where nothing is to be written")
        for index in range(self.batch):
            if expected is None:
                self._verify_residual(index, after)
                continue
            for key, (value, magnitude) in zip(self.routine.writes, expected[index]):
                self._verify_value(key, index, after, value, magnitude)

    def _verify_value(self, key, index, after, value, magnitude):
        operand = self.operands[key]
        new = operand.dense(index, read(after, operand.offset, operand.memory))
        there = operand.where[index] >= 0
        if self.name.routine == "rotmg" and key == "param":
            there = there & ~np.isnan(value)
        bound = self.gamma() * magnitude + (stored(operand.element, value) if self.routine.terms else 0)
        compare(key, index, new, value, bound, there)

    def _verify_residual(self, index, after):
        news = {}
        for key in self.routine.writes:
            operand = self.operands[key]
            news[key] = operand.dense(index, read(after, operand.offset, operand.memory))
        left, right = self.routine.residual(self.dense(index, new=SimpleNamespace(**news)))
        absolute = SimpleNamespace(**{key: np.abs(value) for key, value in news.items()})
        sizes = self.routine.residual(self.dense(index, True, new=absolute))
        bound = self.gamma() * np.maximum(*sizes)
        compare("residual", index, left, right, bound, np.ones(left.shape, bool))


def stored(element, value):
    """What rounding to the stored type may add."""
    if element.is_integer:
        return 0.0
    real = np.dtype({"c8": "f4", "c16": "f8"}.get(element.dtype.str[1:], element.dtype))
    return element.roundoff * np.abs(value) + float(ml_dtypes.finfo(real).smallest_subnormal)


def compare(key, index, new, value, bound, there):
    wrong = there & ~(np.abs(new - value) <= bound)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
        pick = lambda array: np.atleast_1d(np.broadcast_to(array, wrong.shape))[at]
        raise Wrong(f"{key}{list(at)} of matrix {index}: {pick(new):.9g}, not {pick(value):.9g} within {float(pick(bound)):.2g}")
