//! The 128 bytes that a tensor map has here. CUDA leaves them opaque: `cuTensorMapEncode*` writes them, and the copies of
//! `cp.async.bulk.tensor` read them.
//!
//! All integers little-endian; what is not listed is 0.
//!
//! | offset | type | what |
//! |---|---|---|
//! | 0 | 8 bytes | `CUDAWtm` and `0x01` |
//! | 8 | u64 | address of the tensor |
//! | 16 | u64 × 4 | bytes from one element to the next along dimensions 1 to 4 |
//! | 48 | u32 × 5 | elements along each dimension, less one |
//! | 68 | u16 × 5 | tile: elements of the box along each dimension; im2col: channels per pixel, pixels per column |
//! | 78 | u8 × 5 | step from element to element of the box along each dimension |
//! | 83 | u8 | dimensions |
//! | 84 | u8 | element type, CUDA's number |
//! | 85 | u8 | swizzle, CUDA's number |
//! | 86 | u8 | 1: floats out of bounds become NaN instead of 0 |
//! | 87 | u8 | 1: im2col |
//! | 88 | i16 × 3 | im2col: lower corner of the pixel box along dimensions 1 to 3 |
//! | 94 | i16 × 3 | im2col: upper corner |

pub const BYTES: usize = 128;

/// What a copy fills in for floats out of bounds, in every 16 bits; `fma.oob` looks for it, with either sign. PTX names
/// the value OOB-NaN and gives no bits: these are what others measured on hardware.
pub const OOB_NAN: u16 = 0x7ff7;

pub(crate) const MAGIC: [u8; 8] = *b"CUDAWtm\x01";

/// Where fields are that a kernel may replace.
pub(crate) const ADDRESS: usize = 8;
pub(crate) const STRIDES: usize = 16;
pub(crate) const DIMS: usize = 48;
pub(crate) const BOX: usize = 68;
pub(crate) const STEPS: usize = 78;
pub(crate) const RANK: usize = 83;
pub(crate) const ELEMENT: usize = 84;
pub(crate) const SWIZZLE: usize = 85;
pub(crate) const FILL: usize = 86;
pub(crate) const ATOMICITY: usize = 100;

/// The pixels that an im2col map goes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Im2col {
    /// Offsets of the box's first pixel from 0, along dimensions 1 to 3.
    pub lower: [i16; 3],
    /// Offsets of its last pixel from the tensor's last.
    pub upper: [i16; 3],
    pub channels_per_pixel: u16,
    pub pixels_per_column: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorMap {
    pub address: u64,
    pub strides: [u64; 4],
    /// 1 to 2^32 each.
    pub dims: [u64; 5],
    pub box_dims: [u16; 5],
    pub steps: [u8; 5],
    pub rank: u8,
    pub element: Element,
    pub swizzle: Swizzle,
    pub nan_fill: bool,
    pub im2col: Option<Im2col>,
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$default:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$default])* $variant = $number,)*
        }
        impl $name {
            pub fn of_number(number: u32) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// `CUtensorMapDataType`.
    Element {
        #[default]
        U8 = 0,
        U16 = 1,
        U32 = 2,
        S32 = 3,
        U64 = 4,
        S64 = 5,
        F16 = 6,
        F32 = 7,
        F64 = 8,
        Bf16 = 9,
        /// Subnormals become zero.
        F32Ftz = 10,
        /// Rounded to tf32.
        Tf32 = 11,
        Tf32Ftz = 12,
        /// Two in a byte, in both memories.
        U4 = 13,
        /// Sixteen are 8 bytes in global memory, and in shared memory 8 bytes and 8 that nothing is in.
        U4Padded = 14,
        /// Sixteen are 12 bytes in global memory, and in shared memory 12 bytes and 4 that nothing is in.
        U6Padded = 15,
    }
}

numbered! {
    /// `CUtensorMapSwizzle`.
    Swizzle {
        #[default]
        None = 0,
        Bytes32 = 1,
        Bytes64 = 2,
        Bytes128 = 3,
        /// Of 128 bytes, but pieces of 32 bytes change places.
        Bytes128By32 = 4,
        /// In each second row the halves of 16 bytes do too.
        Bytes128By32Flipped = 5,
        /// Of 128 bytes, but pieces of 64 bytes change places.
        Bytes128By64 = 6,
    }
}

impl Element {
    /// How many elements are one thing to a copy: more than one of those that share bytes.
    pub fn together(self) -> usize {
        match self {
            Element::U4 => 2,
            Element::U4Padded | Element::U6Padded => 16,
            _ => 1,
        }
    }

    /// Bytes of so many elements in shared memory.
    pub fn shared_bytes(self) -> usize {
        match self {
            Element::U4Padded | Element::U6Padded => 16,
            _ => self.bytes(),
        }
    }

    /// Bytes of so many elements in global memory.
    pub fn bytes(self) -> usize {
        match self {
            Element::U8 | Element::U4 => 1,
            Element::U4Padded => 8,
            Element::U6Padded => 12,
            Element::U16 | Element::F16 | Element::Bf16 => 2,
            Element::U64 | Element::S64 | Element::F64 => 8,
            _ => 4,
        }
    }

    /// Whether elements lie side by side in both memories, with the same bits.
    pub fn is_plain(self) -> bool {
        !matches!(
            self,
            Element::U4Padded | Element::U6Padded | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz
        )
    }

    pub fn is_float(self) -> bool {
        use Element::*;
        !matches!(self, U8 | U16 | U32 | S32 | U64 | S64 | U4 | U4Padded | U6Padded)
    }
}

impl Swizzle {
    /// Bytes in which pieces change places; a row of the box takes so many.
    pub fn span(self) -> usize {
        match self {
            Swizzle::None => 0,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            _ => 128,
        }
    }

    /// Numbers of `tensormap.replace`: of the mode, and of how many bytes keep together.
    fn fields(self) -> [u8; 2] {
        match self {
            Swizzle::Bytes128By32 => [3, 1],
            Swizzle::Bytes128By32Flipped => [3, 2],
            Swizzle::Bytes128By64 => [3, 3],
            _ => [self as u8, 0],
        }
    }

    fn of_fields(mode: u8, atomicity: u8) -> Option<Swizzle> {
        (0..=6).filter_map(Swizzle::of_number).find(|it| it.fields() == [mode, atomicity])
    }

    /// Where the byte of that shared address is instead.
    pub fn apply(self, address: usize) -> usize {
        let row = address >> 7;
        match self {
            Swizzle::Bytes128By32 => return address ^ ((row & 3) << 5),
            Swizzle::Bytes128By32Flipped => return address ^ ((row & 3) << 5) ^ ((row & 1) << 3),
            Swizzle::Bytes128By64 => return address ^ ((row & 1) << 6),
            _ => {}
        }
        let pieces = (self.span() / 16).saturating_sub(1);
        address ^ ((row & pieces) << 4)
    }
}

impl TensorMap {
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(ADDRESS, &self.address.to_le_bytes());
        for (nth, stride) in self.strides.iter().enumerate() {
            put(STRIDES + 8 * nth, &stride.to_le_bytes());
        }
        for (nth, dim) in self.dims.iter().enumerate() {
            put(DIMS + 4 * nth, &(dim.saturating_sub(1) as u32).to_le_bytes());
        }
        let mut boxed = self.box_dims;
        if let Some(im2col) = self.im2col {
            boxed = [im2col.channels_per_pixel, im2col.pixels_per_column, 0, 0, 0];
            for axis in 0..3 {
                put(88 + 2 * axis, &im2col.lower[axis].to_le_bytes());
                put(94 + 2 * axis, &im2col.upper[axis].to_le_bytes());
            }
        }
        for (nth, dim) in boxed.iter().enumerate() {
            put(BOX + 2 * nth, &dim.to_le_bytes());
        }
        put(STEPS, &self.steps);
        let [mode, atomicity] = self.swizzle.fields();
        let last = [self.rank, self.element as u8, mode, self.nan_fill.into(), self.im2col.is_some().into()];
        put(RANK, &last);
        put(ATOMICITY, &[atomicity]);
        bytes
    }

    /// `None` when the bytes are not a map of ours.
    pub fn decode(bytes: &[u8; BYTES]) -> Option<TensorMap> {
        fn field<const N: usize>(bytes: &[u8; BYTES], at: usize) -> [u8; N] {
            std::array::from_fn(|nth| bytes[at + nth])
        }
        let half = |at: usize| u16::from_le_bytes(field(bytes, at));
        if bytes[..8] != MAGIC || !(1..=5).contains(&bytes[RANK]) {
            return None;
        }
        let boxed: [u16; 5] = std::array::from_fn(|nth| half(BOX + 2 * nth));
        let corner = |at: usize| std::array::from_fn(|axis| half(at + 2 * axis).cast_signed());
        let im2col = (bytes[87] == 1).then(|| Im2col {
            lower: corner(88),
            upper: corner(94),
            channels_per_pixel: boxed[0],
            pixels_per_column: boxed[1],
        });
        Some(TensorMap {
            address: u64::from_le_bytes(field(bytes, ADDRESS)),
            strides: std::array::from_fn(|nth| u64::from_le_bytes(field(bytes, STRIDES + 8 * nth))),
            dims: std::array::from_fn(|nth| u64::from(u32::from_le_bytes(field(bytes, DIMS + 4 * nth))) + 1),
            box_dims: if im2col.is_some() { [0; 5] } else { boxed },
            steps: field(bytes, STEPS),
            rank: bytes[RANK],
            element: Element::of_number(bytes[ELEMENT].into())?,
            swizzle: Swizzle::of_fields(bytes[SWIZZLE], bytes[ATOMICITY])?,
            nan_fill: bytes[FILL] == 1,
            im2col,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back() {
        let tile = TensorMap {
            address: 0x7fff_0000_1230,
            strides: [16, 32, 64, 1 << 39],
            dims: [1, 2, 3, 4, 1 << 32],
            box_dims: [16, 1, 256, 3, 2],
            steps: [1, 2, 8, 1, 1],
            rank: 5,
            element: Element::Bf16,
            swizzle: Swizzle::Bytes64,
            nan_fill: true,
            im2col: None,
        };
        assert_eq!(TensorMap::decode(&tile.encode()), Some(tile));
        let im2col = Im2col {
            lower: [-1, -128, 0],
            upper: [127, -2, 3],
            channels_per_pixel: 256,
            pixels_per_column: 1024,
        };
        let column = TensorMap { im2col: Some(im2col), box_dims: [0; 5], ..tile };
        assert_eq!(TensorMap::decode(&column.encode()), Some(column));
        assert_eq!(TensorMap::decode(&[0; BYTES]), None);
    }

    #[test]
    fn a_swizzle_moves_sixteen_bytes_by_the_row_they_are_in() {
        // The manual's pattern: in row r of 128 bytes, piece p is at p xor r.
        assert_eq!(Swizzle::Bytes128.apply(5 * 128 + 3 * 16 + 7), 5 * 128 + 6 * 16 + 7);
        assert_eq!(Swizzle::Bytes64.apply(3 * 128 + 64 + 16), 3 * 128 + 64 + 2 * 16);
        assert_eq!(Swizzle::Bytes32.apply(128 + 32), 128 + 48);
        assert_eq!(Swizzle::None.apply(1234), 1234);
        assert_eq!(Swizzle::Bytes128By32.apply(6 * 128 + 3 * 32 + 20), 6 * 128 + 32 + 20);
        assert_eq!(Swizzle::Bytes128By32Flipped.apply(6 * 128 + 3 * 32 + 20), 6 * 128 + 32 + 20);
        assert_eq!(Swizzle::Bytes128By32Flipped.apply(5 * 128 + 3 * 32 + 20), 5 * 128 + 2 * 32 + 28);
        assert_eq!(Swizzle::Bytes128By64.apply(5 * 128 + 20), 5 * 128 + 64 + 20);
        assert_eq!(Swizzle::Bytes128By64.apply(6 * 128 + 20), 6 * 128 + 20);
    }

    #[test]
    fn every_pattern_is_kept_in_a_map() {
        for number in 0..=6 {
            let swizzle = Swizzle::of_number(number).unwrap();
            let map = TensorMap { rank: 1, swizzle, ..TensorMap::default() };
            assert_eq!(TensorMap::decode(&map.encode()).unwrap().swizzle, swizzle);
        }
        let mut bytes = TensorMap { rank: 1, swizzle: Swizzle::Bytes64, ..TensorMap::default() }.encode();
        bytes[ATOMICITY] = 1;
        assert_eq!(TensorMap::decode(&bytes), None, "pieces of 32 bytes in 64");
    }
}
