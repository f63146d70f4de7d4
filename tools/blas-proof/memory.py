"""Where the elements of a matrix or vector lie, and the image of everything that one call is given.

A layout is an array of flat positions in the shape of the dense matrix, with -1 for what the routine must neither read nor
write: the other triangle, a unit diagonal, what is outside of a band. All of that, and the padding, is poison.
"""

import numpy as np

NOT_THERE = -1


def _grid(rows, columns):
    return np.arange(rows)[:, None], np.arange(columns)[None, :]


def general(rows, columns, ld):
    i, j = _grid(rows, columns)
    return i + j * ld


def triangle(n, ld, lower, unit=False):
    i, j = _grid(n, n)
    return np.where(_inside(i, j, lower, unit), i + j * ld, NOT_THERE)


def packed(n, lower, unit=False):
    i, j = _grid(n, n)
    position = i + j * (2 * n - j - 1) // 2 if lower else i + j * (j + 1) // 2
    return np.where(_inside(i, j, lower, unit), position, NOT_THERE)


def band(rows, columns, below, above, ld, unit=False):
    i, j = _grid(rows, columns)
    inside = (i - j <= below) & (j - i <= above)
    if unit:
        inside &= i != j
    return np.where(inside, above + i - j + j * ld, NOT_THERE)


def vector(n, increment):
    start = (1 - n) * increment if increment < 0 else 0
    return start + np.arange(n) * increment


def _inside(i, j, lower, unit):
    inside = i >= j if lower else i <= j
    return inside & (i != j) if unit else inside


class Operand:
    """One parameter's memory: `batch` matrices in the same layout, `stride` elements apart (0: one for all)."""

    def __init__(self, element, layout, span, batch, shared, rng, order=None):
        gap = 5
        self.element = element
        self.stride = 0 if shared else span + gap
        # Arrays of pointers need not name the matrices in the order in which they lie.
        order = range(batch) if order is None or shared else order
        self.starts = [gap + i * self.stride for i in order]
        self.where = [np.where(layout >= 0, layout + start, NOT_THERE) for start in self.starts]
        self.memory = element.poison(2 * gap + (span if shared else batch * self.stride))
        inside = np.zeros(len(self.memory), bool)
        for where in self.where:
            inside[where[where >= 0]] = True
        self.inside = np.flatnonzero(inside)
        self.memory[self.inside] = element.random(rng, len(self.inside))
        self.offset = None

    def forget(self):
        """Makes the numbers themselves NaN: they must not be read."""
        self.memory[self.inside] = self.element.poison(len(self.inside))

    def dense(self, index, memory=None):
        """A matrix of the batch in wide numbers; 0 for what is not there."""
        memory, where = self.memory if memory is None else memory, self.where[index]
        values = self.element.wide(memory[np.maximum(where, 0)])
        return np.where(where >= 0, values, values.dtype.type(0))


class Image:
    """Operands one behind the other, as they are copied to the device and back."""

    def __init__(self):
        self.parts, self.size = [], 0

    def add(self, array):
        offset = self.size
        self.parts.append((offset, array))
        self.size += (array.nbytes + 63) // 64 * 64
        return offset

    def bytes(self):
        image = np.full(self.size, 0xEE, np.uint8)
        for offset, array in self.parts:
            image[offset : offset + array.nbytes] = array.view(np.uint8)
        return image


def read(image, offset, like):
    return image[offset : offset + like.nbytes].view(like.dtype)
