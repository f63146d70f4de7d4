//! `txq`, `suq`, `istypep`. Formats are OpenCL's numbers: PTX's manual takes them from there.

use compiler::texture::{MAX_WORDS, Opaque, Query, mark};

use super::texel::{FLOAT, HALF, SIGNED_8, SIGNED_16, SIGNED_32, UNSIGNED_8, UNSIGNED_16, UNSIGNED_32};
use super::{Answer, Image, flag, image, integer, sampler, surface_of, texture};
use crate::exec::guard::Pause;

pub fn query(words: &mut [u64; MAX_WORDS], query: Query, level: bool) -> Answer {
    use Query::{AddrMode0, AddrMode1, AddrMode2, FilterMode, ForceUnnormalizedCoords, MemoryLayout};
    let handle = words[0];
    let of_sampler =
        matches!(query, AddrMode0 | AddrMode1 | AddrMode2 | FilterMode | ForceUnnormalizedCoords);
    let state = match of_sampler {
        // In unified mode the texture has the sampler.
        true => Some(sampler(handle).or_else(|_| texture(handle).map(|image| image.sampler))?),
        false => None,
    };
    let answer = match (state, query) {
        (Some(state), AddrMode0) => state.address[0],
        (Some(state), AddrMode1) => state.address[1],
        (Some(state), AddrMode2) => state.address[2],
        (Some(state), FilterMode) => state.filter,
        (Some(state), _) => state.force_unnormalized,
        (None, MemoryLayout) => u32::from(surface_of(handle)?.is(flag::LINEAR)),
        (None, query) => {
            let image = texture(handle).or_else(|_| image(handle, mark::SURFACE, mark::SURFREF))?;
            let level = if level { integer(words[1]).max(0) as usize } else { 0 };
            of_image(image, query, level)
        }
    };
    words[0] = answer.into();
    Ok(())
}

fn of_image(image: &Image, query: Query, level: usize) -> u32 {
    let layers = image.is(flag::LAYERED);
    let size = image.level(level);
    match query {
        Query::Width => size.width,
        Query::Height if image.dimensions > 1 => size.height,
        Query::Depth if image.dimensions > 2 => size.depth,
        Query::ArraySize if layers && image.is(flag::CUBE) => size.depth / 6,
        Query::ArraySize if layers => size.depth,
        Query::NumMipmapLevels if image.mipmapped != 0 => image.n_levels,
        Query::NormalizedCoords => u32::from(image.sampler.normalized != 0),
        Query::ChannelDataType => data_type(image),
        Query::ChannelOrder => match image.channels {
            1 => 0x10b0,
            2 => 0x10b2,
            _ => 0x10b5,
        },
        _ => 0,
    }
}

/// `CL_SNORM_INT8` … `CL_FLOAT`.
fn data_type(image: &Image) -> u32 {
    let fraction = image.is(flag::NORMALIZED_FLOAT);
    match image.format {
        SIGNED_8 if fraction => 0x10d0,
        SIGNED_16 if fraction => 0x10d1,
        UNSIGNED_8 if fraction => 0x10d2,
        UNSIGNED_16 if fraction => 0x10d3,
        SIGNED_8 => 0x10d7,
        SIGNED_16 => 0x10d8,
        SIGNED_32 => 0x10d9,
        UNSIGNED_8 => 0x10da,
        UNSIGNED_16 => 0x10db,
        UNSIGNED_32 => 0x10dc,
        HALF => 0x10dd,
        FLOAT => 0x10de,
        _ => 0,
    }
}

/// Any number may be asked about, so it is looked up and not read through.
pub fn is_type(words: &mut [u64; MAX_WORDS], opaque: Opaque) {
    let _pause = Pause::new();
    words[0] = u64::from(crate::texture::kind_of(words[0] as usize) == Some(opaque));
}
