//! Copies from shared to tensor memory, and the shift of a warp's lanes.

use std::fmt::Write;

use super::elements::T::U8;
use super::product::{self, Layout, Tensors, put};
use super::{Random, refusal, seed};

/// Shape, rows, bytes of one, and the lanes that a row goes to.
type Shape = (&'static str, usize, usize, fn(usize) -> Vec<usize>);
const SHAPES: [Shape; 6] = [
    ("128x256b", 128, 32, |row| vec![row]),
    ("4x256b", 4, 32, |row| vec![32 * row]),
    ("128x128b", 128, 16, |row| vec![row]),
    ("64x128b.warpx2::02_13", 64, 16, |row| vec![row, row + 64]),
    ("64x128b.warpx2::01_23", 64, 16, |row| match row {
        0..32 => vec![row, row + 32],
        _ => vec![row + 32, row + 64],
    }),
    ("32x128b.warpx4", 32, 16, |row| vec![row, row + 32, row + 64, row + 96]),
];

fn noise(random: &mut Random, n_blocks: usize) -> Tensors {
    (0..n_blocks)
        .map(|_| (0..128).map(|_| std::array::from_fn(|_| random.below(1 << 30) as u32)).collect())
        .collect()
}

#[test]
fn copies_put_rows_into_lanes() {
    let mut random = Random(seed());
    for (turn, (name, rows, bytes, lanes)) in SHAPES.into_iter().enumerate() {
        for (format, bits) in [("", 8), (".b8x16.b6x16_p32", 6), (".b8x16.b4x16_p64", 4)] {
            for n_blocks in product::some(&mut random, turn, &[1, 2]) {
                let mut end = 64;
                let layout = Layout::draw(&mut random, U8, false, rows.max(8), bytes, false, &mut end);
                let before = noise(&mut random, n_blocks);
                let mut after = before.clone();
                let mut shared = vec![vec![0u8; end.next_multiple_of(16)]; n_blocks];
                let column = 8 * random.below(60);
                let first = if rows == 4 { random.below(32) } else { 0 };
                for (block, memory) in shared.iter_mut().enumerate() {
                    for row in 0..rows {
                        for unit in 0..bytes / 16 {
                            let elements: Vec<u64> =
                                (0..16).map(|_| random.below(1 << bits) as u64).collect();
                            let bit = layout.place(U8, false, row, 16 * unit);
                            for (nth, &element) in elements.iter().enumerate() {
                                put(memory, bit + bits * nth, bits, element);
                                let byte = if bits == 4 { element << 2 } else { element } as u32;
                                for lane in lanes(row) {
                                    let word = &mut after[block][first + lane][column + 4 * unit + nth / 4];
                                    let shift = nth % 4 * 8;
                                    *word = *word & !(0xff << shift) | byte << shift;
                                }
                            }
                        }
                    }
                }
                let instruction = format!("tcgen05.cp.cta_group::{n_blocks}.{name}{format} [%d], %rd12;\n");
                let text = product::text(&instruction, n_blocks, shared[0].len(), false);
                let address = (first as u64) << 16 | column as u64;
                let numbers = [0, layout.descriptor(), 0, 0, address, 0, 0, 0, 0];
                product::run(&format!("{layout:?}"), &text, &instruction, &numbers, &shared, &before, &after);
            }
        }
    }
}

#[test]
fn a_shift_moves_the_lanes_of_a_warp_by_one() {
    let mut random = Random(seed());
    for n_blocks in [1, 2] {
        let before = noise(&mut random, n_blocks);
        let mut after = before.clone();
        let (first, column) = (32 * random.below(4), 8 * random.below(60));
        for block in 0..n_blocks {
            for lane in first..first + 31 {
                for column in column..column + 8 {
                    after[block][lane][column] = before[block][lane + 1][column];
                }
            }
        }
        let mut instruction = String::new();
        writeln!(instruction, "tcgen05.shift.cta_group::{n_blocks}.down [%d];").unwrap();
        let text = product::text(&instruction, n_blocks, 64, false);
        let numbers = [0, 0, 0, 0, (first as u64) << 16 | column as u64, 0, 0, 0, 0];
        let shared = vec![vec![0; 64]; n_blocks];
        product::run("", &text, &instruction, &numbers, &shared, &before, &after);
        // The commits of PTX 9.4 let the waiting threads of the same blocks go on.
        for (restriction, mask) in [
            ("", ".multicast::cluster::32b"),
            (".sync_restrict::shared::read::mma::a", ""),
            (".sync_restrict::shared::read::mma::a", ".multicast::cluster"),
            (".sync_restrict::shared::read::mma::a", ".multicast::cluster::32b"),
        ] {
            if mask.is_empty() && n_blocks > 1 {
                continue;
            }
            // Blocks that are not there have bits, too.
            let (set, operand) = match mask {
                "" => (String::new(), ""),
                ".multicast::cluster" => (format!("mov.u16 %h1, {};\n", (1 << n_blocks) - 1), ", %h1"),
                _ => (format!("mov.u32 %r9, 0x8001000{};\n", (1 << n_blocks) - 1), ", %r9"),
            };
            let commit = format!(
                "{set}tcgen05.commit.cta_group::{n_blocks}.mbarrier::arrive::one{restriction}.shared::cluster{mask}.b64 [%s]{operand};"
            );
            let from = text.find("tcgen05.commit").unwrap();
            let behind = from + text[from..].find(';').unwrap() + 1;
            let text = format!("{}{commit}{}", &text[..from], &text[behind..])
                .replace(".version 9.1", ".version 9.4")
                .replace("sm_100a", "sm_107a");
            product::run(&commit, &text, &instruction, &numbers, &shared, &before, &after);
        }
    }
}

#[test]
fn what_the_manual_does_not_have_is_refused() {
    for good in [
        "tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [%r1], %rd1;",
        "tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%r1+4], %rd1;",
        "tcgen05.shift.down.cta_group::2 [%r1];",
    ] {
        assert_eq!(refusal(good), None, "{good}");
    }
    for wrong in [
        "tcgen05.cp.cta_group::1.128x256b.b8x16 [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.128x256b.b6x16_p32 [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.128x256b.b6x16_p32.b8x16 [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.32x128b [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.64x128b [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.64x128b.warpx4 [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.4x256b.warpx4 [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.16x256b [%r1], %rd1;",
        "tcgen05.cp.cta_group::1.128x256b [%r1], %r2;",
        "tcgen05.shift.cta_group::1 [%r1];",
        "tcgen05.shift.cta_group::1.up [%r1];",
    ] {
        assert!(refusal(wrong).is_some(), "{wrong}");
    }
}
