"""Image instructions of gfx11 (MIMG, and the MUBUF loads that convert formats), which the emulator lacks.

Written from AMD's public RDNA3 ISA document: descriptors are read from scalar registers, elements from this process' memory.
Images have rows one behind the other (tiling 0) and one level. Filters mix in exact arithmetic, with weights of 8 bits.
"""

import ctypes
import math
import struct

EXEC, PC = 126, 256
PLAIN, SAMPLE, GATHER, STORE, ATOMIC = range(5)
OPERATIONS = {
    0: ("load", PLAIN), 1: ("load_mip", PLAIN), 6: ("store", STORE),
    12: ("add", ATOMIC), 14: ("smin", ATOMIC), 15: ("umin", ATOMIC), 16: ("smax", ATOMIC), 17: ("umax", ATOMIC),
    18: ("and", ATOMIC), 19: ("or", ATOMIC),
    28: ("d", SAMPLE), 29: ("l", SAMPLE), 31: ("lz", SAMPLE), 38: ("d_o", SAMPLE), 39: ("l_o", SAMPLE), 41: ("lz_o", SAMPLE),
    50: ("lz", GATHER), 54: ("lz_o", GATHER),
}
# The instruction's dimension: coordinates, and whether a layer follows them.
DIMENSIONS = {0: (1, False), 1: (2, False), 2: (3, False), 4: (1, True), 5: (2, True)}
UNORM, SNORM, UINT, SINT, FLOAT, SRGB = "unorm", "snorm", "uint", "sint", "float", "srgb"
# gfx11's image and buffer formats: bytes of a channel, channels, what they are.
FORMATS = {
    1: (1, 1, UNORM), 2: (1, 1, SNORM), 5: (1, 1, UINT), 6: (1, 1, SINT),
    7: (2, 1, UNORM), 8: (2, 1, SNORM), 11: (2, 1, UINT), 12: (2, 1, SINT), 13: (2, 1, FLOAT),
    14: (1, 2, UNORM), 15: (1, 2, SNORM), 18: (1, 2, UINT), 19: (1, 2, SINT),
    20: (4, 1, UINT), 21: (4, 1, SINT), 22: (4, 1, FLOAT),
    23: (2, 2, UNORM), 24: (2, 2, SNORM), 27: (2, 2, UINT), 28: (2, 2, SINT), 29: (2, 2, FLOAT),
    42: (1, 4, UNORM), 43: (1, 4, SNORM), 46: (1, 4, UINT), 47: (1, 4, SINT),
    48: (4, 2, UINT), 49: (4, 2, SINT), 50: (4, 2, FLOAT),
    51: (2, 4, UNORM), 52: (2, 4, SNORM), 55: (2, 4, UINT), 56: (2, 4, SINT), 57: (2, 4, FLOAT),
    61: (4, 4, UINT), 62: (4, 4, SINT), 63: (4, 4, FLOAT), 66: (1, 4, SRGB),
}
WRAP, MIRROR, LAST_TEXEL, BORDER = 0, 1, 2, 6


def bits(word, first, count):
    return word >> first & (1 << count) - 1


def signed(value, size=32):
    return value - (1 << size) if value >> size - 1 & 1 else value


def to_float(word):
    return struct.unpack("<f", struct.pack("<I", word))[0]


def of_float(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


class Texels:
    """Elements of a format, and the order in which its channels come."""

    def __init__(self, number, order):
        self.size, self.channels, self.kind = FORMATS[number]
        self.order = [bits(order, 3 * nth, 3) for nth in range(4)]
        self.bytes = self.size * self.channels
        self.is_integer = self.kind in (UINT, SINT)

    def read(self, address):
        raw = ctypes.string_at(address, self.bytes)
        return [self.channel(raw[nth * self.size :][: self.size], nth) for nth in range(self.channels)]

    def channel(self, raw, nth):
        number = int.from_bytes(raw, "little")
        most = (1 << 8 * self.size) - 1
        if self.kind == UINT:
            return number
        if self.kind == SINT:
            return signed(number, 8 * self.size)
        if self.kind == FLOAT:
            return struct.unpack("<e" if self.size == 2 else "<f", raw)[0]
        if self.kind == SNORM:
            return max(signed(number, 8 * self.size) / (most >> 1), -1.0)
        value = number / most
        if self.kind == UNORM or nth == 3:
            return value
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    def write(self, address, words):
        """Integers that do not fit are the nearest that do."""
        if self.kind != UINT:
            raise NotImplementedError(f"a store as {self.kind}")
        raw = b"".join(min(word, (1 << 8 * self.size) - 1).to_bytes(self.size, "little") for word in words[: self.channels])
        ctypes.memmove(address, raw, self.bytes)

    def ordered(self, channels):
        """Channels as the descriptor selects them; a missing one is 0, and there is a constant 1."""
        one = 1 if self.is_integer else 1.0
        channels = channels + [0] * (4 - len(channels))
        return [channels[it - 4] if it >= 4 else one if it == 1 else 0 for it in self.order]

    def word(self, value):
        return value & 0xFFFFFFFF if self.is_integer else of_float(value)


class Image:
    def __init__(self, words):
        if bits(words[3], 20, 5):
            raise NotImplementedError("a tiled image")
        if bits(words[3], 12, 4) or bits(words[3], 16, 4):
            raise NotImplementedError("an image with levels")
        self.base = (words[0] | bits(words[1], 0, 8) << 32) << 8
        self.texels = Texels(bits(words[1], 20, 8), words[3])
        kind = bits(words[3], 28, 4)
        self.dimensions = {8: 1, 9: 2, 10: 3, 12: 1, 13: 2}[kind]
        width = bits(words[1], 30, 2) | bits(words[2], 0, 12) << 2
        height = bits(words[2], 14, 14)
        last = bits(words[4], 0, 13)
        self.layers = last + 1 if kind in (12, 13) else 1
        self.size = [width + 1, height + 1 if kind not in (8, 12) else 1, last + 1 if kind == 10 else 1]
        # Rows of images with slices have no pitch of their own: they begin at multiples of 256 bytes.
        row = self.size[0] * self.texels.bytes
        self.row = (row + 255) // 256 * 256 if kind in (10, 12, 13) else (bits(words[4], 0, 14) + 1) * self.texels.bytes

    def address(self, at, layer):
        """Of an element; None outside."""
        at = list(at) + [0] * (3 - len(at))
        if any(not 0 <= x < n for x, n in zip(at, self.size)) or not 0 <= layer < self.layers:
            return None
        slices = (at[2] + layer) * self.size[1]
        return self.base + (slices + at[1]) * self.row + at[0] * self.texels.bytes

    def element(self, at, layer):
        address = self.address(at, layer)
        return self.texels.read(address) if address is not None else [0] * self.texels.channels


class Sampler:
    def __init__(self, words):
        self.modes = [bits(words[0], 3 * axis, 3) for axis in range(3)]
        self.counts_elements = bits(words[0], 15, 1)
        self.is_linear = bits(words[2], 20, 2) & 1
        if bits(words[3], 30, 2):
            raise NotImplementedError("a border that is not 0")

    def index(self, axis, i, n):
        mode = self.modes[axis]
        if self.counts_elements and mode in (WRAP, MIRROR):
            raise NotImplementedError("repetition of coordinates that count elements")
        if mode == WRAP:
            return i % n
        if mode == MIRROR:
            i %= 2 * n
            return i if i < n else 2 * n - 1 - i
        if mode == LAST_TEXEL:
            return min(max(i, 0), n - 1)
        if mode == BORDER:
            return i
        raise NotImplementedError(f"address mode {mode}")


def scaled(image, sampler, axis, x):
    x = x if sampler.counts_elements else x * image.size[axis]
    return x if math.isfinite(x) else 0.0


def foot(x):
    """The first of the two elements around x, and the second's weight."""
    fixed = math.floor((x - 0.5) * 256 + 0.5)
    return fixed >> 8, (fixed & 255) / 256


def sampled(image, sampler, at, layer, offsets):
    def texel(index):
        index = [sampler.index(axis, i + o, image.size[axis]) for axis, (i, o) in enumerate(zip(index, offsets))]
        return image.element(index, layer)

    if not sampler.is_linear or image.texels.is_integer:
        return texel([math.floor(scaled(image, sampler, axis, x)) for axis, x in enumerate(at)])
    feet = [foot(scaled(image, sampler, axis, x)) for axis, x in enumerate(at)]
    total = [0.0] * image.texels.channels
    for corner in range(1 << len(at)):
        weight, index = 1.0, []
        for axis, (first, second) in enumerate(feet):
            step = corner >> axis & 1
            weight *= second if step else 1 - second
            index.append(first + step)
        if weight:
            total = [sum_ + weight * part for sum_, part in zip(total, texel(index))]
    return total


def gathered(image, sampler, at, layer, offsets, channel):
    first = [foot(scaled(image, sampler, axis, x))[0] for axis, x in enumerate(at)]
    values = []
    for step in ((0, 1), (1, 1), (1, 0), (0, 0)):
        index = [sampler.index(axis, first[axis] + step[axis] + offsets[axis], image.size[axis]) for axis in (0, 1)]
        values.append(image.texels.ordered(image.element(index, layer))[channel])
    return values


def atomic(name, address, size, value):
    before = int.from_bytes(ctypes.string_at(address, size), "little")
    as_signed = lambda it: signed(it, 8 * size)
    after = {
        "add": before + value, "and": before & value, "or": before | value,
        "umin": min(before, value), "umax": max(before, value),
        "smin": min(before, value, key=as_signed), "smax": max(before, value, key=as_signed),
    }[name]
    ctypes.memmove(address, (after & (1 << 8 * size) - 1).to_bytes(size, "little"), size)
    return before


class Registers:
    def __init__(self, scalars, vectors):
        self.scalars = (ctypes.c_uint32 * 260).from_address(scalars)
        self.vectors = (ctypes.c_uint32 * (256 * 32)).from_address(vectors)

    def lanes(self):
        return [lane for lane in range(32) if self.scalars[EXEC] >> lane & 1]

    def vector(self, register, lane):
        return self.vectors[register * 32 + lane]

    def write(self, register, lane, word):
        self.vectors[register * 32 + lane] = word & 0xFFFFFFFF

    def step(self, size):
        pc = (self.scalars[PC] | self.scalars[PC + 1] << 32) + size
        self.scalars[PC], self.scalars[PC + 1] = pc & 0xFFFFFFFF, pc >> 32


class Instruction:
    """As `emu._decode_at` gives one: `(program, runtime), instruction`. The runtime is called with the scalar and the
    vector registers' addresses."""

    def __init__(self, run, name, size):
        self.op, self.fxn, self.arg, self.globals, self.bytes = name, run, self, [0, 1], size

    def size(self):
        return self.bytes

    def decoded(self):
        return (self, self), self


def decode(pc):
    """The instruction at `pc`, or None where it is another's."""
    low, high = (ctypes.c_uint32 * 2).from_address(pc)
    if bits(low, 26, 6) == 0b111100 and bits(low, 18, 8) in OPERATIONS:
        return image_instruction(pc, low, high)
    if bits(low, 26, 6) == 0b111000 and bits(low, 18, 8) < 4:
        return buffer_instruction(low, high)
    return None


def image_instruction(pc, low, high):
    name, kind = OPERATIONS[bits(low, 18, 8)]
    if bits(low, 16, 2) or bits(high, 21, 2) or bits(low, 15, 1):
        raise NotImplementedError(f"image {name} with a16, d16, tfe, lwe or r128")
    mask, data, first = bits(low, 8, 4), bits(high, 8, 8), bits(high, 0, 8)
    image_at, sampler_at = 4 * bits(high, 16, 5), 4 * bits(high, 26, 5)
    n_coordinates, has_layer = DIMENSIONS[bits(low, 2, 3)]
    returns = bits(low, 14, 1)
    size = 12 if bits(low, 0, 1) else 8
    # With addresses apart, four more registers stand behind; the last of five is the first of the rest.
    apart = [first] + list((ctypes.c_uint8 * 4).from_address(pc + 8)) if size == 12 else [first]

    def address(nth):
        return apart[nth] if nth < len(apart) else apart[-1] + nth - len(apart) + 1

    def run(scalars, vectors):
        registers = Registers(scalars.value, vectors.value)
        words = registers.scalars
        image = Image(words[image_at : image_at + 8])
        if image.dimensions != n_coordinates or (image.layers > 1 and not has_layer):
            raise ValueError("the instruction's dimension is not the image's")
        sampler = Sampler(words[sampler_at : sampler_at + 4]) if kind in (SAMPLE, GATHER) else None
        for lane in registers.lanes():
            nth = iter(range(16))
            take = lambda: registers.vector(address(next(nth)), lane)
            if sampler:
                offset = take() if name.endswith("_o") else 0
                if offset and sampler.counts_elements:
                    raise ValueError("an offset to coordinates that count elements")
                offsets = [signed(bits(offset, 8 * axis, 6), 6) for axis in range(n_coordinates)]
                for _ in range(2 * n_coordinates if name.startswith("d") else 0):
                    take()
                at = [to_float(take()) for _ in range(n_coordinates)]
                layer = round(to_float(take())) if has_layer else 0
                layer = min(max(layer, 0), image.layers - 1)
                if kind == GATHER:
                    values = gathered(image, sampler, at, layer, offsets, mask.bit_length() - 1)
                else:
                    values = image.texels.ordered(sampled(image, sampler, at, layer, offsets))
                out = [image.texels.word(value) for value in values]
                store = out if kind == GATHER else [word for nth, word in enumerate(out) if mask >> nth & 1]
                for nth_, word in enumerate(store):
                    registers.write(data + nth_, lane, word)
                continue
            at = [take() for _ in range(n_coordinates)]
            layer = take() if has_layer else 0
            if name == "load_mip" and take():
                raise NotImplementedError("a level")
            place = image.address(at, layer)
            if kind == STORE:
                given = iter(registers.vector(data + nth_, lane) for nth_ in range(4))
                stored = [next(given) if mask >> nth_ & 1 else 0 for nth_ in range(4)]
                if place is not None:
                    image.texels.write(place, stored)
            elif kind == ATOMIC:
                n_words = 2 if mask == 3 else 1
                if image.texels.kind != UINT or image.texels.bytes != 4 * n_words:
                    raise ValueError("an atomic operation on another format")
                value = sum(registers.vector(data + nth_, lane) << 32 * nth_ for nth_ in range(n_words))
                before = atomic(name, place, 4 * n_words, value) if place is not None else 0
                for nth_ in range(n_words if returns else 0):
                    registers.write(data + nth_, lane, before >> 32 * nth_)
            else:
                values = image.texels.ordered(image.element(at, layer))
                out = [image.texels.word(value) for nth_, value in enumerate(values) if mask >> nth_ & 1]
                for nth_, word in enumerate(out):
                    registers.write(data + nth_, lane, word)
        registers.step(size)

    return Instruction(run, f"IMAGE_{name.upper()}", size)


def buffer_instruction(low, high):
    count, data, first = bits(low, 18, 8) + 1, bits(high, 8, 8), bits(high, 0, 8)
    buffer_at, offset_at = 4 * bits(high, 16, 5), bits(high, 24, 8)
    if not bits(high, 23, 1) or bits(high, 22, 1) or bits(low, 0, 12):
        raise NotImplementedError("a buffer load other than by index")

    def run(scalars, vectors):
        registers = Registers(scalars.value, vectors.value)
        words = registers.scalars[buffer_at : buffer_at + 4]
        base, stride = words[0] | bits(words[1], 0, 16) << 32, bits(words[1], 16, 14)
        texels = Texels(bits(words[3], 12, 6), words[3])
        for lane in registers.lanes():
            index = registers.vector(first, lane)
            at = base + index * stride + registers.scalars[offset_at]
            values = texels.ordered(texels.read(at) if index < words[2] else [0] * texels.channels)
            for nth, value in enumerate(values[:count]):
                registers.write(data + nth, lane, texels.word(value))
        registers.step(8)

    return Instruction(run, "BUFFER_LOAD_FORMAT", 8)
