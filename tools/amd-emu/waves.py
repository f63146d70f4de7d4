"""Blocks of a grid by turns, wave by wave: what the emulator's own `run_asm` is, but that blocks can wait for each other, that a
wave which sleeps or has worked for long lets others run, that a barrier waits for all of its block, and that each wave has
scratch memory of its own."""

import ctypes

import memory

# Threads that are there at once: of four multiprocessors, as rows and crates/testkit/programs/hip_emulated.c say.
RESIDENT = 4 * 2048
# Instructions of a wave in one go.
TURN = 4000


class Endless(Exception):
    """A wave has not come to its end in as many instructions as it may take."""


class Grid:
    def __init__(self, emulator, entry, grid, block, registers, shared, scratch, rsrc2, arch, limit):
        self.emulator, self.entry, self.grid, self.block = emulator, entry, grid, block
        self.registers, self.shared, self.scratch = registers, shared, scratch
        self.rsrc2, self.arch, self.limit = rsrc2, arch, limit
        self.wave_size = emulator._wave_size(arch)
        self.threads = block[0] * block[1] * block[2]

    def run(self):
        size_x, size_y, size_z = self.grid
        places = ((x, y, z) for z in range(size_z) for y in range(size_y) for x in range(size_x))
        resident, next_place = [], next(places, None)
        while resident or next_place:
            if next_place and len(resident) < max(RESIDENT // self.threads, 1):
                resident.append(Block(self, next_place))
                next_place = next(places, None)
            resident = [it for it in resident if not it.turn()]


class Block:
    def __init__(self, grid, place):
        lanes = range(0, grid.threads, grid.wave_size)
        self.shared = ctypes.create_string_buffer(grid.shared + 64)
        self.scratch = ctypes.create_string_buffer(grid.scratch * grid.wave_size * len(lanes) + 64)
        self.waves = [Wave(grid, self, place, first_lane) for first_lane in lanes]

    def turn(self):
        """Whether all has been done."""
        for wave in self.waves:
            if not (wave.is_done or wave.waits):
                wave.run()
        if all(it.is_done or it.waits for it in self.waves):
            for wave in self.waves:
                wave.waits = False
        return all(it.is_done for it in self.waves)


class Wave:
    def __init__(self, grid, block, place, first_lane):
        emulator = grid.emulator
        self.grid, self.is_done, self.waits, self.count = grid, False, False, 0
        self.state = emulator._init_wave(grid.entry, first_lane, grid.threads, *grid.block, 0, grid.rsrc2, grid.scratch,
                                         grid.arch, *place, grid.registers, grid.wave_size)
        shared = ctypes.addressof(block.shared)
        scratch = ctypes.addressof(block.scratch) + grid.scratch * first_lane
        memory.prepare(emulator, self.state, shared, scratch)
        scalars, vectors = self.state.sgpr_buf._buf.va_addr, self.state.vgpr_buf._buf.va_addr
        accumulators = self.state.accvgpr_buf._buf.va_addr
        self.memories = [ctypes.c_uint64(it) for it in (scalars, vectors, 0, shared, scratch, accumulators)]
        self.counter = ctypes.c_uint64.from_address(scalars + 4 * emulator.PC_LO_IDX)
        self.arguments = {}

    def run(self):
        """Until its end, a barrier, a sleep, or the end of its turn."""
        counter, arguments, program = self.counter, self.arguments, program_of(self.grid)
        end = self.grid.emulator.ENDPGM_PC
        for self.count in range(self.count + 1, self.count + TURN + 1):
            at = counter.value
            if at == end:
                self.is_done = True
                return
            function, takes, stops = program.get(at) or program.setdefault(at, instruction(self.grid, at))
            given = arguments.get(takes)
            if given is None:
                given = arguments[takes] = [self.memories[it] for it in takes]
            function(*given)
            if stops:
                self.waits = stops == "barrier"
                break
        if self.grid.limit and self.count > self.grid.limit:
            raise Endless(f"a wave has not ended in {self.grid.limit} instructions")


# By architecture; code stays where it has been loaded.
programs = {}


def program_of(grid):
    return programs.setdefault(grid.arch, {})


def instruction(grid, at):
    """The function, the memories that it takes, and whether others run behind it: at a barrier or in a sleep."""
    emulator = grid.emulator
    (program, runtime), decoded = emulator._decode_at(at, grid.arch)
    name = emulator._op_name(decoded)
    is_barrier = name in ("S_BARRIER", "S_BARRIER_WAIT")
    stops = "barrier" if is_barrier else "sleep" if "S_SLEEP" in name else None
    return runtime.fxn, tuple(program.arg.globals), stops
