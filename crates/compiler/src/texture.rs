//! Textures and surfaces: what an instruction asks of the host's sampler, and what a named reference is in memory.
//!
//! Compiled code calls one of two services; an answer other than 0 ends the grid. [`Access::code`] says which
//! instruction it is.
//! * `i32 (launch, i64 code, ptr words)`, for one lane: `words` are its arguments, one 64-bit word each, and then its
//!   results.
//! * `i32 (launch, i64 code, ptr columns, i64 active, i32 group)`, for a group of at most [`MAX_LANES`] lanes: the
//!   arguments, then the results behind them, are columns with an item for each lane, of 64 bits where
//!   [`Access::is_wide_argument`] or [`Access::has_wide_results`] says so and of 32 elsewhere. Every column has room for
//!   64-bit items ([`column`]). Bits of `active` say which lanes ask; what the others have is anything, before and after.
//!   `group` is the number of lanes, and whether one handle, the first item, is all lanes' ([`group`]).

/// `.1d`, `.2d`, …; for surfaces and gathers a part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    D1,
    D2,
    D3,
    /// Layers come first among the coordinates.
    Layered1,
    Layered2,
    Cube,
    LayeredCube,
    /// The sample's number comes first, then the layer's.
    Multisample2,
    LayeredMultisample2,
}

use Geometry::*;

const GEOMETRIES: [Geometry; 9] =
    [D1, D2, D3, Layered1, Layered2, Cube, LayeredCube, Multisample2, LayeredMultisample2];

impl Geometry {
    pub fn parse(word: &str) -> Option<Geometry> {
        Some(match word {
            "1d" => D1,
            "2d" => D2,
            "3d" => D3,
            "a1d" => Layered1,
            "a2d" => Layered2,
            "cube" => Cube,
            "acube" => LayeredCube,
            "2dms" => Multisample2,
            "a2dms" => LayeredMultisample2,
            _ => return None,
        })
    }

    /// Integers in front of the coordinates: layer, sample.
    pub fn indices(self) -> usize {
        match self {
            D1 | D2 | D3 | Cube => 0,
            Layered1 | Layered2 | LayeredCube | Multisample2 => 1,
            LayeredMultisample2 => 2,
        }
    }

    /// Coordinates behind them.
    pub fn coordinates(self) -> usize {
        match self {
            D1 | Layered1 => 1,
            D2 | Layered2 | Multisample2 | LayeredMultisample2 => 2,
            D3 | Cube | LayeredCube => 3,
        }
    }

    /// Elements of PTX's coordinate vector that mean something.
    pub fn elements(self) -> usize {
        self.indices() + self.coordinates()
    }

    pub fn is_cube(self) -> bool {
        matches!(self, Cube | LayeredCube)
    }

    pub fn is_layered(self) -> bool {
        matches!(self, Layered1 | Layered2 | LayeredCube | LayeredMultisample2)
    }

    pub fn is_multisample(self) -> bool {
        matches!(self, Multisample2 | LayeredMultisample2)
    }
}

/// Which mipmap level a fetch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The first.
    Base,
    /// One argument: the level, of the coordinates' type.
    Explicit,
    /// Two vectors of derivatives, as long as the coordinates.
    Gradient,
}

/// What a fetch gives back: four words, four halves, or two pairs of halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Texel {
    Words,
    Halves,
    Pairs,
}

/// What a surface access does outside of the surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bounds {
    Trap,
    /// The nearest element inside.
    Clamp,
    /// Loads give 0, stores are dropped.
    Zero,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    Add,
    Min,
    Max,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Query {
    Width,
    Height,
    Depth,
    ChannelDataType,
    ChannelOrder,
    NormalizedCoords,
    ArraySize,
    NumMipmapLevels,
    NumSamples,
    ForceUnnormalizedCoords,
    FilterMode,
    AddrMode0,
    AddrMode1,
    AddrMode2,
    MemoryLayout,
}

use Query::*;

const QUERIES: [Query; 15] = [
    Width,
    Height,
    Depth,
    ChannelDataType,
    ChannelOrder,
    NormalizedCoords,
    ArraySize,
    NumMipmapLevels,
    NumSamples,
    ForceUnnormalizedCoords,
    FilterMode,
    AddrMode0,
    AddrMode1,
    AddrMode2,
    MemoryLayout,
];

impl Query {
    /// Of `txq`, or (with `surface`) of `suq`.
    pub fn parse(word: &str, surface: bool) -> Option<Query> {
        Some(match word {
            "width" => Width,
            "height" => Height,
            "depth" => Depth,
            "channel_data_type" => ChannelDataType,
            "channel_order" => ChannelOrder,
            "array_size" => ArraySize,
            "memory_layout" if surface => MemoryLayout,
            "normalized_coords" if !surface => NormalizedCoords,
            "num_mipmap_levels" if !surface => NumMipmapLevels,
            "num_samples" if !surface => NumSamples,
            "force_unnormalized_coords" if !surface => ForceUnnormalizedCoords,
            "filter_mode" if !surface => FilterMode,
            "addr_mode_0" if !surface => AddrMode0,
            "addr_mode_1" if !surface => AddrMode1,
            "addr_mode_2" if !surface => AddrMode2,
            _ => return None,
        })
    }
}

/// The three opaque types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opaque {
    Texture,
    Sampler,
    Surface,
}

/// One instruction. Arguments are words in this order; addresses take a whole word, the others its low bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// `tex`: handle, [sampler], indices and coordinates, [level | dPdx…, dPdy…], [offsets…], [compare] → 4 or 2 words.
    Fetch {
        geometry: Geometry,
        /// Coordinates are `.f32`, else `.s32`.
        float: bool,
        level: Level,
        texel: Texel,
        sampler: bool,
        offset: bool,
        compare: bool,
    },
    /// `tld4`: handle, [sampler], indices and coordinates, [offsets…], [compare] → 4 words.
    Gather { geometry: Geometry, component: u8, sampler: bool, offset: bool, compare: bool },
    /// `suld.b`: handle, indices and coordinates → `lanes` words, of which `bits` bits count.
    Load { geometry: Geometry, bits: u8, lanes: u8, bounds: Bounds },
    /// `sust.b`, or (`formatted`) `sust.p`: handle, indices and coordinates, `lanes` values.
    Store { geometry: Geometry, bits: u8, lanes: u8, bounds: Bounds, formatted: bool },
    /// `sured`: handle, coordinates, value.
    Reduce { geometry: Geometry, op: ReduceOp, bits: u8, signed: bool, bounds: Bounds, formatted: bool },
    /// `txq`, `suq`: handle, [level] → 1 word.
    Query { query: Query, level: bool },
    /// `istypep`: address → 1 word, 0 or 1.
    IsType(Opaque),
}

/// Arguments or results of one access at most.
pub const MAX_WORDS: usize = 16;

/// Lanes of a group at most.
pub const MAX_LANES: usize = 64;

/// The last argument of the service for a group.
pub mod group {
    /// Bits of the number of lanes.
    pub const LANES: u32 = 0xff;
    pub const ONE_HANDLE: u32 = 0x100;
}

/// Where column number `nth` of a group's access begins, in bytes.
pub const fn column(nth: usize, lanes: usize) -> usize {
    nth * lanes * 8
}

impl Access {
    /// How many arguments it takes.
    pub fn arguments(self) -> usize {
        let flag = usize::from;
        match self {
            Access::Fetch { geometry, level, sampler, offset, compare, .. } => {
                let levels = match level {
                    Level::Base => 0,
                    Level::Explicit => 1,
                    Level::Gradient => 2 * geometry.coordinates(),
                };
                let offsets = if offset { geometry.coordinates() } else { 0 };
                1 + flag(sampler) + geometry.elements() + levels + offsets + flag(compare)
            }
            Access::Gather { geometry, sampler, offset, compare, .. } => {
                let offsets = if offset { geometry.coordinates() } else { 0 };
                1 + flag(sampler) + geometry.elements() + offsets + flag(compare)
            }
            Access::Load { geometry, .. } => 1 + geometry.elements(),
            Access::Store { geometry, lanes, .. } => 1 + geometry.elements() + usize::from(lanes),
            Access::Reduce { geometry, .. } => 2 + geometry.elements(),
            Access::Query { level, .. } => 1 + flag(level),
            Access::IsType(_) => 1,
        }
    }

    /// Bits of each result.
    pub fn results(self) -> Vec<u32> {
        match self {
            Access::Fetch { texel: Texel::Words, .. } | Access::Gather { .. } => vec![32; 4],
            Access::Fetch { texel: Texel::Halves, .. } => vec![16; 4],
            Access::Fetch { texel: Texel::Pairs, .. } => vec![32; 2],
            Access::Load { bits, lanes, .. } => vec![u32::from(bits); lanes.into()],
            Access::Store { .. } | Access::Reduce { .. } => vec![],
            Access::Query { .. } | Access::IsType(_) => vec![32],
        }
    }

    /// How many results it gives.
    pub fn n_results(self) -> usize {
        match self {
            Access::Fetch { texel: Texel::Pairs, .. } => 2,
            Access::Fetch { .. } | Access::Gather { .. } => 4,
            Access::Load { lanes, .. } => lanes.into(),
            Access::Store { .. } | Access::Reduce { .. } => 0,
            Access::Query { .. } | Access::IsType(_) => 1,
        }
    }

    /// Whether argument number `nth` needs 64 bits: a handle, or a value that is so wide.
    pub fn is_wide_argument(self, nth: usize) -> bool {
        match self {
            Access::Fetch { sampler, .. } | Access::Gather { sampler, .. } => nth == 0 || sampler && nth == 1,
            Access::Store { geometry, bits, .. } | Access::Reduce { geometry, bits, .. } => {
                nth == 0 || bits == 64 && nth > geometry.elements()
            }
            Access::Load { .. } | Access::Query { .. } | Access::IsType(_) => nth == 0,
        }
    }

    /// Whether the results need 64 bits each.
    pub fn has_wide_results(self) -> bool {
        matches!(self, Access::Load { bits: 64, .. })
    }

    /// Leaves everything as it was.
    pub fn only_reads(self) -> bool {
        !matches!(self, Access::Store { .. } | Access::Reduce { .. })
    }

    /// The access as a number, for [`Access::of_code`].
    pub fn code(self) -> u64 {
        let mut out = Packer(0, 0);
        match self {
            Access::Fetch { geometry, float, level, texel, sampler, offset, compare } => {
                out.put(0).put(geometry as u64).put(float.into()).put(level as u64).put(texel as u64);
                out.put(sampler.into()).put(offset.into()).put(compare.into());
            }
            Access::Gather { geometry, component, sampler, offset, compare } => {
                out.put(1).put(geometry as u64).put(component.into());
                out.put(sampler.into()).put(offset.into()).put(compare.into());
            }
            Access::Load { geometry, bits, lanes, bounds } => {
                out.put(2).put(geometry as u64).put(log2(bits)).put(lanes.into()).put(bounds as u64);
            }
            Access::Store { geometry, bits, lanes, bounds, formatted } => {
                out.put(3).put(geometry as u64).put(log2(bits)).put(lanes.into()).put(bounds as u64);
                out.put(formatted.into());
            }
            Access::Reduce { geometry, op, bits, signed, bounds, formatted } => {
                out.put(4).put(geometry as u64).put(op as u64).put(log2(bits)).put(signed.into());
                out.put(bounds as u64).put(formatted.into());
            }
            Access::Query { query, level } => {
                out.put(5).put(query as u64).put(level.into());
            }
            Access::IsType(opaque) => {
                out.put(6).put(opaque as u64);
            }
        }
        out.0
    }

    /// The geometry of a fetch by coordinates alone, from lines, planes, boxes and layers of them, into four words, and
    /// whether coordinates are floats; by its number, and quicker than [`Access::of_code`].
    pub fn plain_fetch(code: u64) -> Option<(Geometry, bool)> {
        let geometry = (code >> 4 & 15) as usize;
        // All other fields are 0.
        let is_plain = code & !0x1f0 == 0 && geometry < 5;
        is_plain.then(|| (GEOMETRIES[geometry], code >> 8 & 1 == 1))
    }

    /// The access of a number that [`Access::code`] gave; `None` for any other.
    pub fn of_code(code: u64) -> Option<Access> {
        let mut code = Unpacker(code);
        Some(match code.take() {
            0 => Access::Fetch {
                geometry: *GEOMETRIES.get(code.take())?,
                float: code.flag(),
                level: *[Level::Base, Level::Explicit, Level::Gradient].get(code.take())?,
                texel: *[Texel::Words, Texel::Halves, Texel::Pairs].get(code.take())?,
                sampler: code.flag(),
                offset: code.flag(),
                compare: code.flag(),
            },
            1 => Access::Gather {
                geometry: *GEOMETRIES.get(code.take())?,
                component: code.take() as u8,
                sampler: code.flag(),
                offset: code.flag(),
                compare: code.flag(),
            },
            2 => Access::Load {
                geometry: *GEOMETRIES.get(code.take())?,
                bits: 1 << code.take(),
                lanes: code.take() as u8,
                bounds: code.bounds()?,
            },
            3 => Access::Store {
                geometry: *GEOMETRIES.get(code.take())?,
                bits: 1 << code.take(),
                lanes: code.take() as u8,
                bounds: code.bounds()?,
                formatted: code.flag(),
            },
            4 => Access::Reduce {
                geometry: *GEOMETRIES.get(code.take())?,
                op: *[ReduceOp::Add, ReduceOp::Min, ReduceOp::Max, ReduceOp::And, ReduceOp::Or]
                    .get(code.take())?,
                bits: 1 << code.take(),
                signed: code.flag(),
                bounds: code.bounds()?,
                formatted: code.flag(),
            },
            5 => Access::Query { query: *QUERIES.get(code.take())?, level: code.flag() },
            6 => Access::IsType(*[Opaque::Texture, Opaque::Sampler, Opaque::Surface].get(code.take())?),
            _ => return None,
        })
    }
}

fn log2(bits: u8) -> u64 {
    u64::from(bits.trailing_zeros())
}

/// Four bits each.
struct Packer(u64, u32);

impl Packer {
    fn put(&mut self, value: u64) -> &mut Packer {
        debug_assert!(value < 16);
        self.0 |= value << self.1;
        self.1 += 4;
        self
    }
}

struct Unpacker(u64);

impl Unpacker {
    fn take(&mut self) -> usize {
        let value = self.0 & 15;
        self.0 >>= 4;
        value as usize
    }

    fn flag(&mut self) -> bool {
        self.take() != 0
    }

    fn bounds(&mut self) -> Option<Bounds> {
        [Bounds::Trap, Bounds::Clamp, Bounds::Zero].get(self.take()).copied()
    }
}

// ---- named references ----

/// First word of what a handle points to. Chosen at random; what has another one is no such object.
pub mod mark {
    pub const TEXTURE: u64 = 0x7e9d_51c3_0b6f_a201;
    pub const SAMPLER: u64 = 0x7e9d_51c3_0b6f_a202;
    pub const SURFACE: u64 = 0x7e9d_51c3_0b6f_a203;
    /// A variable: the object it stands for is the next word.
    pub const TEXREF: u64 = 0x7e9d_51c3_0b6f_a211;
    pub const SAMPLERREF: u64 = 0x7e9d_51c3_0b6f_a212;
    pub const SURFREF: u64 = 0x7e9d_51c3_0b6f_a213;
}

/// Numbers as `txq` gives them.
pub mod address_mode {
    pub const WRAP: u32 = 0;
    pub const MIRROR: u32 = 1;
    /// Clamp to the edge, or half-way to the border when filtered.
    pub const CLAMP_OGL: u32 = 2;
    pub const CLAMP_TO_EDGE: u32 = 3;
    pub const CLAMP_TO_BORDER: u32 = 4;
}

/// How a texture is sampled: a part of a texture, or a `.samplerref`'s own. 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Coordinates run from 0 to 1.
    pub normalized: u32,
    /// 1 for linear.
    pub filter: u32,
    pub address: [u32; 3],
    /// 1 for linear between levels.
    pub mip_filter: u32,
    pub mip_bias: f32,
    pub min_level: f32,
    pub max_level: f32,
    /// Whatever the texture says, coordinates count elements.
    pub force_unnormalized: u32,
    pub border: [f32; 4],
    pub zero: [u32; 2],
}

impl Default for Sampler {
    /// A reference that says nothing: nearest element, clamped, coordinates in elements.
    fn default() -> Sampler {
        Sampler {
            normalized: 0,
            filter: 0,
            address: [address_mode::CLAMP_TO_EDGE; 3],
            mip_filter: 0,
            mip_bias: 0.0,
            min_level: 0.0,
            max_level: 0.0,
            force_unnormalized: 0,
            border: [0.0; 4],
            zero: [0; 2],
        }
    }
}

impl Sampler {
    fn bytes(&self) -> Vec<u8> {
        let [a, b, c] = self.address;
        let words = [
            self.normalized,
            self.filter,
            a,
            b,
            c,
            self.mip_filter,
            self.mip_bias.to_bits(),
            self.min_level.to_bits(),
            self.max_level.to_bits(),
            self.force_unnormalized,
        ];
        let border = self.border.map(f32::to_bits);
        words.iter().chain(&border).chain(&self.zero).flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Bytes of a `.texref`, `.samplerref` or `.surfref` variable: mark, object, [`Sampler`].
pub const REFERENCE_BYTES: u64 = 80;
/// Where the bound object's handle lies in it.
pub const REFERENCE_OBJECT: u64 = 8;
/// Where the sampler lies in it.
pub const REFERENCE_SAMPLER: u64 = 16;

/// The first bytes of such a variable.
pub fn reference(opaque: Opaque, sampler: &Sampler) -> Vec<u8> {
    let mark = match opaque {
        Opaque::Texture => mark::TEXREF,
        Opaque::Sampler => mark::SAMPLERREF,
        Opaque::Surface => mark::SURFREF,
    };
    let mut bytes = mark.to_le_bytes().to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend(sampler.bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_survives_its_number() {
        let mut all = vec![];
        let bounds = [Bounds::Trap, Bounds::Clamp, Bounds::Zero];
        for geometry in GEOMETRIES {
            for bits in 0..8u8 {
                let [sampler, offset, compare] = [0, 1, 2].map(|bit| bits >> bit & 1 == 1);
                for level in [Level::Base, Level::Explicit, Level::Gradient] {
                    for texel in [Texel::Words, Texel::Halves, Texel::Pairs] {
                        let float = sampler != offset;
                        all.push(Access::Fetch { geometry, float, level, texel, sampler, offset, compare });
                    }
                }
                let component = bits & 3;
                all.push(Access::Gather { geometry, component, sampler, offset, compare });
            }
            for bounds in bounds {
                for (bits, lanes) in [(8, 1), (16, 2), (32, 4), (64, 2)] {
                    all.push(Access::Load { geometry, bits, lanes, bounds });
                    for formatted in [false, true] {
                        all.push(Access::Store { geometry, bits, lanes, bounds, formatted });
                        let op = ReduceOp::Or;
                        let signed = lanes == 2;
                        all.push(Access::Reduce { geometry, op, bits, signed, bounds, formatted });
                    }
                }
            }
        }
        for query in QUERIES {
            all.extend([false, true].map(|level| Access::Query { query, level }));
        }
        all.extend([Opaque::Texture, Opaque::Sampler, Opaque::Surface].map(Access::IsType));
        for access in all {
            assert_eq!(Access::of_code(access.code()), Some(access));
            assert!(access.arguments() <= MAX_WORDS && access.results().len() <= MAX_WORDS);
            assert_eq!(access.n_results(), access.results().len());
            let plain = match access {
                Access::Fetch {
                    geometry: geometry @ (D1 | D2 | D3 | Layered1 | Layered2),
                    float,
                    level: Level::Base,
                    texel: Texel::Words,
                    sampler: false,
                    offset: false,
                    compare: false,
                } => Some((geometry, float)),
                _ => None,
            };
            assert_eq!(Access::plain_fetch(access.code()), plain);
        }
        assert_eq!(Access::of_code(7), None);
        assert_eq!(Access::of_code(u64::MAX), None);
    }

    #[test]
    fn a_reference_is_as_long_as_it_says() {
        for opaque in [Opaque::Texture, Opaque::Sampler, Opaque::Surface] {
            assert_eq!(reference(opaque, &Sampler::default()).len() as u64, REFERENCE_BYTES);
        }
        assert_eq!(REFERENCE_BYTES - REFERENCE_SAMPLER, size_of::<Sampler>() as u64);
    }
}
