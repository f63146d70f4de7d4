//! A texture's sampler on an AMD GPU: what HIP cannot be told of it, and what is written into its object afterwards.
//!
//! HIP's object is memory that the host reads and writes, too; its first 20 words are what HIP's own compiler relies on:
//! an image descriptor of 12, and the hardware's sampler descriptor (docs/architecture.md).

use cuda_abi::CUDA_RESOURCE_VIEW_DESC;
use hip_sys::{
    HIP_TEXTURE_DESC, HIP_TRSF_NORMALIZED_COORDINATES, hipAddressModeBorder, hipAddressModeClamp,
    hipAddressModeMirror, hipAddressModeWrap, hipTextureAddressMode, hipTextureObject_t,
};

use crate::{Error, Result};

/// The sampler's first word and the one with its border, in words from the object's start.
const MODES: usize = 12;
const BORDER: usize = 15;

/// What the texture reads, as far as HIP differs.
pub struct Texels {
    pub is_mipmapped: bool,
    pub gives_integers: bool,
    pub n_channels: u32,
    /// 0 where there are none.
    pub n_layers: usize,
}

/// A sampler: what HIP is told, and the words of its object that say the rest.
pub struct Sampler {
    pub told: HIP_TEXTURE_DESC,
    /// Modes of the axes, where they differ.
    modes: Option<u32>,
    /// The hardware's number of a border that is not 0.
    border: Option<u32>,
}

impl Sampler {
    pub fn of(
        desc: &HIP_TEXTURE_DESC,
        texels: &Texels,
        view: Option<&CUDA_RESOURCE_VIEW_DESC>,
    ) -> Result<Sampler> {
        // HIP differs: a view changes the format and nothing else there.
        if view.is_some_and(|view| is_part(view, texels)) {
            return Err(Error::NotSupported("cuTexObjectCreate: a view of a part of an array on an AMD GPU"));
        }
        let mut told = *desc;
        if !texels.is_mipmapped {
            // HIP differs: it refuses what only textures with levels heed.
            told.maxAnisotropy = 0;
            told.mipmapLevelBias = 0.0;
            told.minMipmapLevelClamp = 0.0;
            told.maxMipmapLevelClamp = 0.0;
        }
        // HIP differs: it takes the first axis' mode for all of them, and a border is always 0.
        let modes: u32 = (0..3).map(|axis| number(mode(desc, axis)) << (3 * axis)).sum();
        let modes = Some(modes).filter(|&modes| modes != number(mode(desc, 0)) * 0o111);
        let border = Some(border(desc, texels)?).filter(|&border| border != 0);
        Ok(Sampler { told, modes, border })
    }

    /// Writes into a new object what HIP was not told.
    ///
    /// # Safety
    ///
    /// `object` is one of HIP's for an AMD GPU, and no kernel has it yet.
    pub unsafe fn complete(&self, object: hipTextureObject_t) {
        let words = object.cast::<u32>();
        if let Some(modes) = self.modes {
            // SAFETY: the caller's; the object has this word.
            let word = unsafe { &mut *words.add(MODES) };
            *word = *word & !0o777 | modes;
        }
        if let Some(border) = self.border {
            // SAFETY: as above.
            let word = unsafe { &mut *words.add(BORDER) };
            *word = *word & (u32::MAX >> 2) | border << 30;
        }
    }
}

fn is_part(view: &CUDA_RESOURCE_VIEW_DESC, texels: &Texels) -> bool {
    view.firstLayer != 0
        || view.firstMipmapLevel != 0
        || view.lastMipmapLevel != 0
        || (view.lastLayer != 0 && view.lastLayer as usize + 1 != texels.n_layers)
}

/// CUDA: coordinates that count elements are clamped instead of repeated.
fn mode(desc: &HIP_TEXTURE_DESC, axis: usize) -> hipTextureAddressMode {
    let mode = desc.addressMode[axis];
    let repeats = mode == hipAddressModeWrap || mode == hipAddressModeMirror;
    if repeats && desc.flags & HIP_TRSF_NORMALIZED_COORDINATES == 0 { hipAddressModeClamp } else { mode }
}

/// The hardware's number of the border's colour.
fn border(desc: &HIP_TEXTURE_DESC, texels: &Texels) -> Result<u32> {
    if (0..3).all(|axis| mode(desc, axis) != hipAddressModeBorder) {
        return Ok(0);
    }
    let color = desc.borderColor.get(..texels.n_channels as usize).unwrap_or(&desc.borderColor);
    match color {
        color if color.iter().all(|&it| it == 0.0) => Ok(0),
        [0.0, 0.0, 0.0, 1.0] if !texels.gives_integers => Ok(1),
        color if !texels.gives_integers && color.iter().all(|&it| it == 1.0) => Ok(2),
        _ => {
            Err(Error::NotSupported("cuTexObjectCreate: a border of another color than 0 or 1 on an AMD GPU"))
        }
    }
}

/// As the sampler numbers them.
fn number(mode: hipTextureAddressMode) -> u32 {
    match mode {
        it if it == hipAddressModeWrap => 0,
        it if it == hipAddressModeMirror => 1,
        it if it == hipAddressModeBorder => 6,
        _ => 2,
    }
}
