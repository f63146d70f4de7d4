//! `ldmatrix` and `stmatrix` of rows of 16 bytes, and of 16 elements of 4 or 6 bits with padding behind them: which lane has which
//! element is what CUTLASS's copies for `sm_100` say of them.

mod elements;

use std::fmt::Write;

use elements::Random;
use hip_cpu::harness::{self, Arg, How};

#[derive(Clone, Copy, Debug)]
struct Case {
    shape: &'static str,
    count: usize,
    /// Of an element in shared memory.
    bits: usize,
    space: &'static str,
}

impl Case {
    fn is_store(&self) -> bool {
        self.shape == "m16n8"
    }

    fn registers(&self) -> usize {
        if self.shape == "m16n16" { 2 * self.count } else { self.count }
    }

    /// Which row's address and which of its elements a byte of a lane's register is.
    fn place(&self, lane: usize, register: usize, byte: usize) -> (usize, usize) {
        let (group, four) = (lane / 4, lane % 4);
        match self.shape {
            "m8n16" => (8 * register + group, 4 * four + byte),
            "m16n16" => (16 * (register / 2) + 4 * four + byte, group + register % 2 * 8),
            _ => (8 * register + 2 * four + byte % 2, group + byte / 2 * 8),
        }
    }

    fn text(&self) -> String {
        let names: Vec<String> = (0..self.registers()).map(|n| format!("%r{n}")).collect();
        let list = names.join(", ");
        let address = if self.space.is_empty() { "%rd" } else { "%at" };
        let trans = if self.shape == "m8n16" { "" } else { ".trans" };
        let types = match self.bits {
            8 => "b8",
            6 => "b8x16.b6x16_p32",
            _ => "b8x16.b4x16_p64",
        };
        let form = format!("{}.x{}{trans}{}.{types}", self.shape, self.count, self.space);
        let mut work = String::new();
        if self.is_store() {
            for (nth, name) in names.iter().enumerate() {
                writeln!(work, "ld.global.b32 {name}, [%lane+{}];", 1024 + 128 * nth).unwrap();
            }
            writeln!(work, "stmatrix.sync.aligned.{form} [{address}], {{{list}}};\nbar.warp.sync -1;")
                .unwrap();
            for nth in 0..8 {
                let at = 128 * nth;
                writeln!(work, "ld.shared.b32 %word, [%mine+{at}];\nst.global.b32 [%out+{at}], %word;")
                    .unwrap();
            }
        } else {
            writeln!(work, "ldmatrix.sync.aligned.{form} {{{list}}}, [{address}];").unwrap();
            for (nth, name) in names.iter().enumerate() {
                writeln!(work, "st.global.b32 [%out+{}], {name};", 128 * nth).unwrap();
            }
        }
        let mut fill = String::new();
        for nth in 0..8 {
            let at = 128 * nth;
            writeln!(fill, "ld.global.b32 %word, [%lane+{at}];\nst.shared.b32 [%mine+{at}], %word;").unwrap();
        }
        // `from`: 1 KiB for shared memory, 512 bytes of registers, the rows' offsets.
        format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n\
             .visible .entry kernel(.param .u64 from, .param .u64 to)\n{{\n.shared .align 128 .b8 tile[1024];\n\
             .reg .b32 %r<8>, %l, %at, %word, %mine, %tile;\n.reg .b64 %lane, %out, %o, %rd;\n\
             ld.param.u64 %lane, [from];\nld.param.u64 %out, [to];\nmov.u32 %l, %laneid;\n\
             mul.wide.u32 %o, %l, 4;\nadd.u64 %lane, %lane, %o;\nadd.u64 %out, %out, %o;\nmov.u32 %tile, tile;\n\
             mad.lo.u32 %mine, %l, 4, %tile;\n{fill}bar.warp.sync -1;\nld.global.u32 %at, [%lane+1536];\n\
             add.u32 %at, %at, %tile;\ncvt.u64.u32 %rd, %at;\ncvta.shared.u64 %rd, %rd;\n{work}ret;\n}}\n"
        )
    }

    fn check(&self, random: &mut Random) {
        let mut input: Vec<u8> = (0..1536).map(|_| random.below(256) as u8).collect();
        let mut rows: Vec<usize> = (0..64).collect();
        for i in (1..64).rev() {
            rows.swap(i, random.below(i + 1));
        }
        input.extend(rows[..32].iter().flat_map(|&row| (16 * row as u32).to_le_bytes()));
        let mut expected =
            if self.is_store() { input[..1024].to_vec() } else { vec![0; 128 * self.registers()] };
        for register in 0..self.registers() {
            for lane in 0..32 {
                for byte in 0..4 {
                    let (row, element) = self.place(lane, register, byte);
                    let in_register = 128 * register + 4 * lane + byte;
                    if self.is_store() {
                        expected[16 * rows[row] + element] = input[1024 + in_register];
                        continue;
                    }
                    let row: [u8; 16] = input[16 * rows[row]..][..16].try_into().unwrap();
                    let found = u128::from_le_bytes(row) >> (self.bits * element);
                    expected[in_register] = (found & ((1 << self.bits) - 1)) as u8;
                }
            }
        }
        let text = self.text();
        let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        // The space changes how an address is found, which lanes do by themselves.
        let settings = [How::new(1, 32).lane(), How::new(1, 32).warp(), How::new(1, 32).simd(32)];
        for how in settings.into_iter().take(if self.space == ".shared" { 3 } else { 1 }) {
            let (mut given, mut found) = (input.clone(), vec![0xaa; expected.len()]);
            let mut args = [Arg::Buffer(&mut given), Arg::Buffer(&mut found)];
            harness::run(&program, "kernel", &how, &mut args)
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert!(found == expected, "{self:?} in {:?}\n{found:x?}\n{expected:x?}", how.setting);
        }
    }
}

const SPACES: [&str; 3] = ["", ".shared", ".shared::cta"];

#[test]
fn rows_of_bytes_are_loaded() {
    let mut random = Random(elements::seed());
    for space in SPACES {
        for bits in [8, 6, 4] {
            for count in [1, 2] {
                Case { shape: "m16n16", count, bits, space }.check(&mut random);
            }
        }
        for bits in [6, 4] {
            for count in [1, 2, 4] {
                Case { shape: "m8n16", count, bits, space }.check(&mut random);
            }
        }
    }
}

#[test]
fn rows_of_bytes_are_stored() {
    let mut random = Random(elements::seed());
    for space in SPACES {
        for count in [1, 2, 4] {
            Case { shape: "m16n8", count, bits: 8, space }.check(&mut random);
        }
    }
}

/// As NVIDIA's assembler of 13.5 has it.
#[test]
fn shapes_that_are_not_there_are_refused() {
    for form in [
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r0, %r1, %r2, %r3}, [%rd]",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r0, %r1}, [%rd]",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r0}, [%rd]",
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r0}, [%rd]",
        "ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r0}, [%rd]",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8 [%rd], {%r0}",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b16 [%rd], {%r0}",
    ] {
        let text = format!(
            ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry kernel()\n{{\n\
             .reg .b32 %r<4>;\n.reg .b64 %rd;\nmov.u64 %rd, 0;\n{form};\nret;\n}}\n"
        );
        let how = How::new(1, 32).lane();
        let found = harness::load(&text).and_then(|program| harness::run(&program, "kernel", &how, &mut []));
        let said = found.expect_err(form).to_string();
        assert!(said.contains("not supported"), "{form}: {said}");
    }
}
