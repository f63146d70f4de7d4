//! The functions of a static runtime whose names were stripped, told by what they are: the code of each function in NVIDIA's
//! libcudart_static.a of each release is known by its length and by a hash of what no linker changes in it.
//! The rule: nothing is guessed. A function is what it is taken for when all of its code is, byte for byte but for what a linker
//! writes, and when it lies where the release has it among the others.
//!
//! A linker keeps the archive's code in one piece, so the public functions lie in blocks whose places among each other are the
//! archive's. Where functions begin is written in what unwinders search (`.eh_frame_hdr`), which no program can be stripped of:
//! a function of a block with an unusual distance to the next one leads to where the block would be.

use crate::elf::{self, File, Segment};
use crate::generated::signatures::{
    BLOCKS, MASKS, NAMES_11, NAMES_12, NAMES_13, PLACES, RELEASES, SIGNATURES,
};

/// What is known of a release's runtime.
pub struct Release {
    /// As NVIDIA counts the runtime itself, and all releases whose public functions are the same.
    pub name: &'static str,
    pub major: u32,
    /// Which blocks, from and to.
    pub blocks: [u16; 2],
}

/// Public functions that lie close together.
pub struct Block {
    /// Which places, from and to.
    pub places: [u16; 2],
    /// How far into the block the function lies that is searched for.
    pub anchor: u32,
    /// From there to where the next function begins, and from that to the one behind it, which are rarely just so much.
    pub gaps: [u32; 2],
}

/// How far behind the one before it a function of a block lies, in [`UNIT`]s, and which one it is.
pub struct Place(pub u16, pub u16);

/// What functions begin at multiples of.
pub const UNIT: u64 = 16;

/// A function as an archive has it.
pub struct Signature {
    hash: u128,
    len_bytes: u16,
    /// Index of the name among its major's.
    name: u16,
    /// Where in `MASKS` it is written what a linker changes.
    mask: u16,
}

/// A row of the table of CUDA 11: which of its names, sorted, and the rest.
pub const fn v11(name: usize, len_bytes: u16, mask: u16, hash: u128) -> Signature {
    Signature { hash, len_bytes, name: NAMES_11[name], mask }
}

/// Likewise of 12.
pub const fn v12(name: usize, len_bytes: u16, mask: u16, hash: u128) -> Signature {
    Signature { hash, len_bytes, name: NAMES_12[name], mask }
}

/// Likewise of 13.
pub const fn v13(name: usize, len_bytes: u16, mask: u16, hash: u128) -> Signature {
    Signature { hash, len_bytes, name: NAMES_13[name], mask }
}

/// FNV-1a over 128 bits of code in which the bytes of `mask` count as zero.
///
/// A mask is a list of pairs: so many bytes as they are, then so many that a linker changes.
pub fn hash(code: &[u8], mask: &[[u8; 2]]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let add = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
    let (mut hash, mut rest) = (BASIS, code);
    for &[kept, changed] in mask {
        let (before, after) = rest.split_at(usize::from(kept).min(rest.len()));
        let (hidden, after) = after.split_at(usize::from(changed).min(after.len()));
        hash = before.iter().fold(hash, |hash, &byte| add(hash, byte));
        hash = hidden.iter().fold(hash, |hash, _| add(hash, 0));
        rest = after;
    }
    rest.iter().fold(hash, |hash, &byte| add(hash, byte))
}

/// A runtime that was found: its release, and at which of the file's addresses each of its blocks begins.
#[derive(Clone, Copy)]
pub struct Found {
    pub release: &'static Release,
    blocks: [u64; MOST_BLOCKS],
}

const MOST_BLOCKS: usize = 4;

/// A public function of the runtime.
pub struct Function {
    /// Index of its name among the major's.
    pub name: usize,
    pub address: u64,
    pub len_bytes: u64,
    /// Its code is the release's.
    pub is_known: bool,
}

/// The runtime inside a file, where it is of a release that is known.
pub fn find(file: File) -> Option<Found> {
    let starts = Starts::of(file)?;
    let mut best = [Best::NONE; BLOCKS.len()];
    for [start, next, third] in starts.threes() {
        let gaps = [next.wrapping_sub(start), third.wrapping_sub(next)];
        if !MAY_BE_GAP[gaps[0] as usize % MAY_BE_GAP.len()] {
            continue;
        }
        for (block, best) in BLOCKS.iter().zip(&mut best) {
            if block.gaps.map(i64::from) == gaps {
                let address = starts.base.wrapping_add_signed(start).wrapping_sub(block.anchor.into());
                best.meet(file, block, address);
            }
        }
    }
    let mut found = None;
    let mut most = 0;
    for release in &RELEASES {
        let [from, to] = release.blocks.map(usize::from);
        let n_all: usize = BLOCKS.get(from..to)?.iter().map(|block| block.places().len()).sum();
        let best = best.get(from..to)?;
        let n_known: usize = best.iter().map(|best| best.n_known).sum();
        // Of another build of the runtime the rest is as unknown as what differs.
        let is_it = best.iter().all(|best| best.n_known > 0) && n_known * 4 >= n_all * 3;
        if is_it && n_known > most {
            let mut blocks = [0; MOST_BLOCKS];
            for (block, best) in blocks.iter_mut().zip(best) {
                *block = best.address;
            }
            (found, most) = (Some(Found { release, blocks }), n_known);
        }
    }
    found
}

/// Whether a distance between functions may be one that is searched for, by what is left of it.
static MAY_BE_GAP: [bool; 4096] = {
    let mut may_be = [false; 4096];
    let mut at = 0;
    while at < BLOCKS.len() {
        may_be[BLOCKS[at].gaps[0] as usize % may_be.len()] = true;
        at += 1;
    }
    may_be
};

/// The release of the CUDA runtime that a file has inside without its names, as [`crate::release_without_names`] says.
pub fn release_in(bytes: &[u8]) -> Option<&'static str> {
    find(File::parse(bytes)?).map(|found| found.release.name)
}

impl Found {
    pub fn functions(self, file: File<'_>) -> impl Iterator<Item = Function> {
        let [from, to] = self.release.blocks.map(usize::from);
        let blocks = BLOCKS.get(from..to).unwrap_or(&[]);
        blocks.iter().zip(self.blocks).flat_map(move |(block, address)| block.functions(file, address))
    }
}

/// Where a block is rather than anywhere else.
#[derive(Clone, Copy)]
struct Best {
    address: u64,
    n_known: usize,
}

impl Best {
    const NONE: Best = Best { address: 0, n_known: 0 };

    /// The block may begin at this address.
    fn meet(&mut self, file: File, block: &Block, address: u64) {
        /// So many functions are looked at before the others are: not one of them is known nearly everywhere.
        const FIRST: usize = 8;
        let n_known = |n| block.functions(file, address).take(n).filter(|function| function.is_known).count();
        if n_known(FIRST) > 0 {
            let n_known = n_known(usize::MAX);
            if n_known > self.n_known {
                *self = Best { address, n_known };
            }
        }
    }
}

impl Block {
    fn places(&self) -> &'static [Place] {
        let [from, to] = self.places.map(usize::from);
        PLACES.get(from..to).unwrap_or(&[])
    }

    /// The block's functions, were it at this address.
    fn functions<'a>(&self, file: File<'a>, address: u64) -> impl Iterator<Item = Function> + use<'a> {
        let mut at = address;
        self.places().iter().filter_map(move |&Place(behind, signature)| {
            at = at.wrapping_add(u64::from(behind) * UNIT);
            let signature = SIGNATURES.get(usize::from(signature))?;
            let len_bytes = u64::from(signature.len_bytes);
            Some(Function {
                name: signature.name.into(),
                address: at,
                len_bytes,
                is_known: file.code_at(at, len_bytes).is_some_and(|code| signature.is_of(code)),
            })
        })
    }
}

impl Signature {
    fn is_of(&self, code: &[u8]) -> bool {
        hash(code, mask(self.mask)) == self.hash
    }
}

/// The mask at a place of `MASKS`: a pair is the last one when both of it are zero.
fn mask(at: u16) -> &'static [[u8; 2]] {
    let rest = MASKS.get(usize::from(at)..).unwrap_or(&[]);
    let len = rest.iter().take_while(|&&pair| pair != [0, 0]).count();
    rest.get(..len).unwrap_or(&[])
}

/// Where the functions of a file begin, in order: the table of `.eh_frame_hdr`.
struct Starts<'a> {
    /// The file's address of what the table's numbers are counted from.
    base: u64,
    entries: &'a [[u8; 8]],
}

impl<'a> Starts<'a> {
    fn of(file: File<'a>) -> Option<Self> {
        const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
        /// Version 1; a distance of four bytes to `.eh_frame`; a number of four bytes; pairs of four bytes, counted from here.
        const KNOWN: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let Segment { offset, address, file_bytes, .. } =
            file.segments().find(|segment| segment.kind == PT_GNU_EH_FRAME)?;
        let bytes = file.bytes_at(offset, file_bytes)?;
        if !bytes.starts_with(&KNOWN) {
            return None;
        }
        let n = usize::try_from(elf::u32_at(bytes, 8)?).ok()?;
        let entries = bytes.get(12..)?.as_chunks().0;
        Some(Starts { base: address, entries: entries.get(..n)? })
    }

    /// Where each function begins and the two behind it, counted from the base.
    fn threes(&self) -> impl Iterator<Item = [i64; 3]> {
        self.entries.windows(3).map(|entries| {
            [0, 1, 2].map(|at| {
                let [a, b, c, d, ..] = entries.get(at).copied().unwrap_or_default();
                i32::from_le_bytes([a, b, c, d]).into()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn what_a_linker_changes_does_not_count_and_all_else_does() {
        let code: Vec<u8> = (0..100).collect();
        let mask = [[10, 4], [20, 7]];
        let known = hash(&code, &mask);
        for at in 0..code.len() {
            let mut other = code.clone();
            other[at] ^= 1;
            let is_masked = (10..14).contains(&at) || (34..41).contains(&at);
            assert_eq!(hash(&other, &mask) == known, is_masked, "{at}");
        }
        // The function by its own test values.
        assert_eq!(hash(b"", &[]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash(b"a", &[]), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash(b"foobar", &[]), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
        // A mask that is longer than the code.
        assert_eq!(hash(b"abc", &[[1, 200], [4, 4]]), hash(b"a\0\0", &[]));
    }

    #[test]
    fn the_table_has_the_public_functions_of_every_release_in_order() {
        for release in &RELEASES {
            let [from, to] = release.blocks.map(usize::from);
            assert!(to - from <= MOST_BLOCKS, "{}", release.name);
            let names: &[&[u8]] = match release.major {
                11 => &names::V11,
                12 => &names::V12,
                _ => &names::V13,
            };
            let places = || BLOCKS[from..to].iter().flat_map(Block::places);
            let mut found: Vec<&[u8]> =
                places().map(|place| names[usize::from(SIGNATURES[usize::from(place.1)].name)]).collect();
            let n_functions = found.len();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), n_functions, "{}: a name twice", release.name);
            for name in ["cudaMalloc", "cudaLaunchKernel", "__cudaRegisterFatBinary", "cudaMemcpyAsync"] {
                assert!(found.contains(&name.as_bytes()), "{} has no {name}", release.name);
            }
            for block in &BLOCKS[from..to] {
                let mut at = 0;
                let is_one = |place: &Place| {
                    at += u32::from(place.0) * UNIT as u32;
                    at == block.anchor
                };
                assert!(block.places().iter().any(is_one), "{}", release.name);
            }
        }
    }

    #[test]
    fn this_test_has_no_runtime_inside_and_its_functions_begin_where_they_do() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        assert_eq!(release_in(&bytes), None);
        let file = File::parse(&bytes).unwrap();
        let starts = Starts::of(file).unwrap();
        assert!(starts.entries.len() > 100);
        assert!(starts.threes().all(|starts| starts.is_sorted()));
        let named = |symbol: &elf::Symbol| {
            symbol.kind == elf::STT_FUNC && elf::mentions(symbol.name, b"this_test_has_no_runtime")
        };
        let symbol = file.symbols(elf::SHT_SYMTAB).unwrap().iter().find(named).unwrap();
        let is_it = |[start, ..]: [i64; 3]| starts.base.wrapping_add_signed(start) == symbol.value;
        assert!(starts.threes().any(is_it));
    }

    #[test]
    fn a_damaged_table_gives_none_and_no_panic() {
        const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
        let whole = std::fs::read("/proc/self/exe").unwrap();
        let table = File::parse(&whole).unwrap().segments().find(|it| it.kind == PT_GNU_EH_FRAME).unwrap();
        let at = usize::try_from(table.offset).unwrap();
        let first = BLOCKS[0].gaps;
        for damage in 0..40 {
            let mut bytes = whole.clone();
            match damage {
                // The head, byte for byte, and with it the number of entries.
                0..12 => bytes[at + damage] ^= 0xff,
                // Distances that are searched for, at addresses that are nowhere.
                12..26 => {
                    for (index, entry) in bytes[at + 12..].chunks_exact_mut(8).take(300).enumerate() {
                        let start = (damage as u32) << 27;
                        let gaps = [0, first[0], first[0] + first[1]][index % 3];
                        entry[..4].copy_from_slice(&start.wrapping_add(gaps).to_le_bytes());
                    }
                }
                _ => bytes.truncate(at + (damage - 26) * 5),
            }
            assert_eq!(release_in(&bytes), None);
        }
    }
}
