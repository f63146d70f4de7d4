//! What HIP's texture and surface objects point to: an image descriptor of 8 words, what HIP adds to it, and behind that,
//! for textures, a sampler descriptor of 4 words. The words are the hardware's (the ISA documents' "resource" and
//! "sampler" descriptors); where a family has a field elsewhere, [`bits`] says so.

use super::Family;
use super::code::Code;
use crate::back::llvm::{Builder, Type, Val, memory};

/// Words behind a handle.
const CHANNEL_TYPE: i64 = 8;
const CHANNEL_ORDER: i64 = 9;
const LINEAR_WIDTH: i64 = 10;
const SAMPLER: i64 = 12;

/// HIP's objects begin on a multiple of this.
const ALIGN: u32 = 16;

/// Fields of an image descriptor. `Width`, `Height` and `Depth` are one less than what they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Width,
    Height,
    /// Of a volume, or the last layer.
    Depth,
    BaseLevel,
    LastLevel,
    /// 0: rows of elements one behind the other.
    Tiling,
    /// 8: 1D, 9: 2D, 10: 3D, 12: layers of 1D, 13: layers of 2D; less than 8: a buffer's descriptor.
    Kind,
    Format,
}

/// Kinds of descriptors.
pub mod kind {
    pub const FIRST_IMAGE: i128 = 8;
    pub const VOLUME: i128 = 10;
    pub const LAYERS_1D: i128 = 12;
    pub const LAYERS_2D: i128 = 13;
}

/// What a sampler does beyond an axis' ends: its lowest three bits are the first axis'.
pub mod clamp {
    pub const WRAP: i128 = 0;
    pub const MIRROR: i128 = 1;
    pub const BORDER: i128 = 6;
}

/// Word, first bit and number of bits of a field's parts, the lowest first.
fn bits(family: Family, field: Field) -> &'static [(u32, u32, u32)] {
    use Family::{Gfx9, Gfx10, Gfx11, Gfx12};
    match (field, family) {
        (Field::Width, Gfx9) => &[(2, 0, 14)],
        (Field::Width, Gfx10 | Gfx11) => &[(1, 30, 2), (2, 0, 12)],
        (Field::Width, Gfx12) => &[(1, 30, 2), (2, 0, 14)],
        (Field::Height, Gfx12) => &[(2, 14, 16)],
        (Field::Height, _) => &[(2, 14, 14)],
        (Field::Depth, Gfx12) => &[(4, 0, 14)],
        (Field::Depth, _) => &[(4, 0, 13)],
        (Field::BaseLevel, Gfx12) => &[(1, 25, 5)],
        (Field::BaseLevel, _) => &[(3, 12, 4)],
        (Field::LastLevel, Gfx12) => &[(3, 15, 5)],
        (Field::LastLevel, _) => &[(3, 16, 4)],
        (Field::Tiling, _) => &[(3, 20, 5)],
        (Field::Kind, _) => &[(3, 28, 4)],
        // The element's layout; what its bits mean stands behind it.
        (Field::Format, Gfx9) => &[(1, 20, 6)],
        (Field::Format, Gfx10) => &[(1, 20, 9)],
        (Field::Format, Gfx11) => &[(1, 20, 8)],
        (Field::Format, Gfx12) => &[(1, 17, 8)],
    }
}

/// Formats of elements of 1, 2, 4, 8 and 16 bytes that are unsigned integers and nothing else.
fn plain_formats(family: Family) -> [u32; 5] {
    match family {
        // The layout, and behind it 4 for unsigned integers.
        Family::Gfx9 => [1, 2, 4, 11, 14].map(|layout| layout | 4 << 6),
        Family::Gfx10 => [5, 11, 20, 62, 75],
        Family::Gfx11 | Family::Gfx12 => [5, 11, 20, 48, 61],
    }
}

/// Bits of the whole format.
fn format_bits(family: Family) -> (u32, u32) {
    match family {
        Family::Gfx9 => (20, 10),
        _ => {
            let (_, first, count) = bits(family, Field::Format)[0];
            (first, count)
        }
    }
}

const WORD: Type = Type { scalar: crate::back::llvm::Scalar::Int(32), lanes: 1 };

/// An image descriptor, as it is in registers.
pub struct Image {
    handle: Val,
    pub words: Val,
}

impl Code<'_> {
    /// Of a texture or surface. Where lanes have different ones, LLVM makes a loop over them.
    pub fn image(&mut self, handle: &Val) -> Image {
        let handle = self.b.cast("inttoptr", handle, Type::space(4));
        let words = self.descriptor(&handle, 0, 8);
        Image { handle, words }
    }

    pub fn sampler(&mut self, image: &Image) -> Val {
        self.descriptor(&image.handle, SAMPLER, 4)
    }

    fn descriptor(&mut self, handle: &Val, word: i64, count: u32) -> Val {
        let at = memory::offset_pointer(&mut self.b, handle, 4 * word);
        let ty = Type::int(32, count);
        self.b.assign(ty, format_args!("load {ty}, {}, align {ALIGN}", at.typed()))
    }

    fn behind(&mut self, image: &Image, word: i64) -> Val {
        let at = memory::offset_pointer(&mut self.b, &image.handle, 4 * word);
        self.b.assign(WORD, format_args!("load i32, {}, align 4", at.typed()))
    }

    /// As HSA numbers them.
    pub fn channel_type(&mut self, image: &Image) -> Val {
        self.behind(image, CHANNEL_TYPE)
    }

    pub fn channel_order(&mut self, image: &Image) -> Val {
        self.behind(image, CHANNEL_ORDER)
    }

    /// Elements of linear memory.
    pub fn linear_width(&mut self, image: &Image) -> Val {
        self.behind(image, LINEAR_WIDTH)
    }

    pub fn element_of(&mut self, vector: &Val, index: u32) -> Val {
        let ty = Type { lanes: 1, ..vector.ty };
        self.b.assign(ty, format_args!("extractelement {}, i32 {index}", vector.typed()))
    }

    fn with_word(&mut self, words: &Val, index: u32, word: &Val) -> Val {
        let inserted = format!("insertelement {}, {}, i32 {index}", words.typed(), word.typed());
        self.b.assign(words.ty, inserted)
    }

    pub fn field(&mut self, image: &Image, field: Field) -> Val {
        let (mut value, mut below) = (Builder::int(WORD, 0), 0);
        for &(word, first, count) in bits(self.unit.target.family(), field) {
            let word = self.element_of(&image.words, word);
            let part = self.b.bin_int("lshr", &word, i128::from(first));
            let part = self.b.bin_int("and", &part, (1 << count) - 1);
            let part = self.b.bin_int("shl", &part, below);
            value = if below == 0 { part } else { self.b.or(&value, &part) };
            below += i128::from(count);
        }
        value
    }

    /// What `Width`, `Height` or `Depth` counts.
    pub fn extent(&mut self, image: &Image, field: Field) -> Val {
        let last = self.field(image, field);
        self.b.bin_int("add", &last, 1)
    }

    /// Logarithm of the bytes of an element. Formats stand in order of their size.
    pub fn element_size(&mut self, image: &Image) -> Val {
        let firsts: [i128; 4] = match self.unit.target.family() {
            Family::Gfx9 => {
                // 1: 8; 2: 16; 3: 8_8; 4: 32; 5: 16_16; … 10: 8_8_8_8; 11: 32_32; 12: 16_16_16_16; 14: 32_32_32_32.
                [2, 4, 11, 14]
            }
            Family::Gfx10 => [7, 20, 62, 72],
            Family::Gfx11 | Family::Gfx12 => [7, 20, 48, 58],
        };
        let format = self.field(image, Field::Format);
        let mut size = Builder::int(WORD, 0);
        for first in firsts {
            let is_larger = self.b.icmp_int("uge", &format, first);
            let one = self.b.cast("zext", &is_larger, WORD);
            size = self.b.add(&size, &one);
        }
        size
    }

    /// The descriptor of the same image with elements that are bits and nothing else. Where an element lies depends on its
    /// size only.
    pub fn as_bits(&mut self, image: &Image, size: &Val) -> Val {
        let family = self.unit.target.family();
        let (first, count) = format_bits(family);
        let mut format = Builder::int(WORD, 0);
        for (log, plain) in plain_formats(family).into_iter().enumerate() {
            let is_size = self.b.icmp_int("eq", size, log as i128);
            format = self.b.select(&is_size, &Builder::int(WORD, i128::from(plain) << first), &format);
        }
        let word = self.element_of(&image.words, 1);
        let others = self.b.bin_int("and", &word, !(((1 << count) - 1) << first));
        let word = self.b.or(&others, &format);
        let words = self.with_word(&image.words, 1, &word);
        // Channels as they come: x, y, z, w are 4 to 7.
        let order = self.element_of(&words, 3);
        let order = self.b.bin_int("and", &order, !0xfff);
        let order = self.b.bin_int("or", &order, 4 | 5 << 3 | 6 << 6 | 7 << 9);
        self.with_word(&words, 3, &order)
    }
}
