"""An AMD code object: its segments in memory, its kernels' metadata and descriptors."""

import ctypes
import mmap
import struct

MACHINES = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x3F: "gfx90a", 0x40: "gfx940", 0x4C: "gfx942", 0x4F: "gfx950",
    0x33: "gfx1010", 0x36: "gfx1030", 0x41: "gfx1100", 0x46: "gfx1101", 0x47: "gfx1102", 0x44: "gfx1103",
    0x43: "gfx1150", 0x4A: "gfx1151", 0x48: "gfx1200", 0x4E: "gfx1201",
}
NT_AMDGPU_METADATA = 32
R_AMDGPU_ABS64, R_AMDGPU_RELATIVE64 = 3, 13


def align(value, to):
    return (value + to - 1) // to * to


def message_pack(b, at=0):
    """One value of MessagePack and where it ends; what AMD's metadata uses of it."""
    tag = b[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if tag & 0xF0 == 0x80:
        count, kind = tag & 15, "map"
    elif tag & 0xF0 == 0x90:
        count, kind = tag & 15, "array"
    elif tag & 0xE0 == 0xA0:
        count, kind = tag & 31, "text"
    elif tag == 0xC0:
        return None, at
    elif tag in (0xC2, 0xC3):
        return tag == 0xC3, at
    else:
        first, kind, width = next(it for it in (
            (0xDE, "map", 2), (0xDC, "array", 2), (0xD9, "text", 1), (0xD0, "signed", 1), (0xCC, "unsigned", 1),
        ) if it[0] <= tag)
        width <<= tag - first
        raw, at = b[at : at + width], at + width
        count = int.from_bytes(raw, "big", signed=kind == "signed")
        if kind in ("unsigned", "signed"):
            return count, at
    if kind == "text":
        return b[at : at + count].decode(), at + count
    if kind == "array":
        values = []
        for _ in range(count):
            value, at = message_pack(b, at)
            values.append(value)
        return values, at
    values = {}
    for _ in range(count):
        key, at = message_pack(b, at)
        values[key], at = message_pack(b, at)
    return values, at


class Memory:
    """Pages of this process: the emulator's addresses are ours."""

    def __init__(self, size):
        self.pages = mmap.mmap(-1, align(max(size, 1), 4096) + 4096)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.pages))

    def __getitem__(self, place):
        return self.pages[place]

    def __setitem__(self, place, value):
        self.pages[place] = value


class CodeObject:
    def __init__(self, path):
        b = self.file = open(path, "rb").read()
        if b[:4] != b"\x7fELF" or struct.unpack_from("<H", b, 18)[0] != 224:
            raise ValueError(f"{path} is no AMD code object")
        self.machine = MACHINES[struct.unpack_from("<I", b, 48)[0] & 0xFF]
        segments_at, sections_at = struct.unpack_from("<QQ", b, 32)
        n_segments, n_sections = struct.unpack_from("<H", b, 56)[0], struct.unpack_from("<H", b, 60)[0]
        self.segments = [struct.unpack_from("<IIQQQQQQ", b, segments_at + 56 * i) for i in range(n_segments)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", b, sections_at + 64 * i) for i in range(n_sections)]
        self.memory = Memory(max(it[3] + it[6] for it in self.segments if it[0] == 1) + 65536)
        for kind, _, offset, address, _, size, _, _ in self.segments:
            if kind == 1:
                self.memory[address : address + size] = b[offset : offset + size]
        self.symbols = {}
        tables = {i: self.symbol_table(it) for i, it in enumerate(self.sections) if it[1] in (2, 11)}
        for section in self.sections:
            if section[1] == 4:
                self.relocate(section, tables[section[6]])
        notes = [self.metadata(it) for it in self.segments if it[0] == 4]
        self.kernels = {it[".name"]: it for note in notes for it in note.get("amdhsa.kernels", [])}

    def symbol_table(self, section):
        b, table = self.file, []
        names_at = self.sections[section[6]][4]
        for k in range(section[5] // 24):
            name_at, _, _, index, value, size = struct.unpack_from("<IBBHQQ", b, section[4] + 24 * k)
            name = b[names_at + name_at : b.index(b"\0", names_at + name_at)].decode()
            table.append(value)
            if name and index:
                self.symbols[name] = value
        return table

    def relocate(self, section, table):
        for k in range(section[5] // 24):
            offset, info, addend = struct.unpack_from("<QQq", self.file, section[4] + 24 * k)
            value = self.memory.address + addend
            if info & 0xFFFFFFFF == R_AMDGPU_ABS64:
                value += table[info >> 32]
            elif info & 0xFFFFFFFF != R_AMDGPU_RELATIVE64:
                raise NotImplementedError(f"relocation {info & 0xFFFFFFFF}")
            self.memory[offset : offset + 8] = struct.pack("<Q", value & (1 << 64) - 1)

    def metadata(self, segment):
        b, at, end = self.file, segment[2], segment[2] + segment[5]
        while at < end:
            name_size, size, kind = struct.unpack_from("<III", b, at)
            start = at + 12 + align(name_size, 4)
            if kind == NT_AMDGPU_METADATA:
                return message_pack(b[start : start + size])[0]
            at = start + align(size, 4)
        return {}

    def descriptor(self, name):
        at = self.symbols[name + ".kd"]
        raw = self.memory[at : at + 64]
        group, private, _ = struct.unpack_from("<III", raw, 0)
        (entry,) = struct.unpack_from("<q", raw, 16)
        _, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
        return {"group": group, "private": private, "entry": self.memory.address + at + entry, "rsrc1": rsrc1,
                "rsrc2": rsrc2, "properties": properties, "preload": preload}
