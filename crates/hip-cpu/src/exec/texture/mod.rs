//! Textures and surfaces as kernels use them: one call per lane and instruction, the sampler in software.
//!
//! A handle is the address of an [`Image`], of a [`Sampler`] with a mark, or of a `.texref`-like variable that names
//! one. It is read under the guard: what is no such object ends the grid with a fault, not the process. Nothing here
//! allocates, locks or panics.

mod cube;
mod group;
mod query;
mod sample;
mod surface;
mod texel;

use compiler::texture::{Access, MAX_WORDS, REFERENCE_OBJECT, REFERENCE_SAMPLER, Sampler, mark};

use super::{Launch, guard};
pub use group::{Plan, access_group};

/// 1 + log2 of the longest side.
pub const MAX_LEVELS: usize = 18;

/// One mipmap level: `depth` slices of `height` rows of `width` elements. Layers and faces are slices.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub data: *mut u8,
    pub pitch: u64,
    pub slice: u64,
    pub width: u32,
    pub height: u32,
    pub depth: u32,
    pub zero: u32,
}

impl Level {
    pub const NONE: Level =
        Level { data: std::ptr::null_mut(), pitch: 0, slice: 0, width: 0, height: 0, depth: 0, zero: 0 };
}

/// [`Image::flags`].
pub mod flag {
    /// Slices are layers.
    pub const LAYERED: u32 = 1;
    /// Slices are faces, six to a cube.
    pub const CUBE: u32 = 2;
    /// The program's own memory, not an array.
    pub const LINEAR: u32 = 4;
    /// 8- and 16-bit integers are read as fractions of their largest value.
    pub const NORMALIZED_FLOAT: u32 = 8;
    /// Red, green and blue of 8-bit fractions are sRGB.
    pub const SRGB: u32 = 16;
    /// Filtering goes on behind the edges of a cube's face.
    pub const SEAMLESS: u32 = 32;
}

/// A texture or surface object, as docs/architecture.md has it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// One of [`mark`].
    pub mark: u64,
    /// `hipArray_Format`.
    pub format: u32,
    /// 1, 2 or 4.
    pub channels: u32,
    pub flags: u32,
    pub n_levels: u32,
    /// 1, 2 or 3.
    pub dimensions: u32,
    /// 1 when it has mipmap levels, though perhaps one only.
    pub mipmapped: u32,
    pub sampler: Sampler,
    pub levels: [Level; MAX_LEVELS],
    /// How groups fetch by integer and by float coordinates, where vectors do it.
    pub plans: [Option<Plan>; 2],
}

// SAFETY: plain data; who may touch the memory behind it is the program's business, as with every device pointer.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Image {
    pub fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// [`Image::plans`] of what the rest says.
    pub fn plans(&self) -> [Option<Plan>; 2] {
        [Plan::of(self, false), Plan::of(self, true)]
    }

    pub fn channel_bytes(&self) -> u64 {
        match self.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            _ => 4,
        }
    }

    pub fn element_bytes(&self) -> u64 {
        self.channel_bytes() * u64::from(self.channels)
    }

    /// Level `nth`; the last one behind it.
    fn level(&self, nth: usize) -> &Level {
        let last = (self.n_levels as usize).clamp(1, MAX_LEVELS) - 1;
        &self.levels[nth.min(last)]
    }
}

/// What an access ends the grid with.
enum Fault {
    /// Not a texture (sampler, surface): the handle.
    Handle(u64),
    /// `.trap` outside of a surface.
    Trap,
}

type Answer<T = ()> = Result<T, Fault>;

/// The mark at an address that may be anything.
fn mark_at(at: u64) -> Option<u64> {
    let at = std::ptr::NonNull::new(at as *mut u64)?;
    // SAFETY: none for a bad address: that is what the guard is for. A good one has a mark.
    Some(unsafe { at.as_ptr().read_unaligned() })
}

/// The object behind a handle of one kind, by itself or through a variable of the other mark.
fn object(handle: u64, itself: u64, variable: u64) -> Answer<*const u8> {
    let mut at = handle;
    let mut found = mark_at(at);
    if found == Some(variable) {
        // SAFETY: a variable is that long.
        at = unsafe { (at as *const u8).add(REFERENCE_OBJECT as usize).cast::<u64>().read_unaligned() };
        // Nothing is bound: 0.
        found = mark_at(at);
    }
    if found == Some(itself) { Ok(at as *const u8) } else { Err(Fault::Handle(handle)) }
}

fn image<'a>(handle: u64, itself: u64, variable: u64) -> Answer<&'a Image> {
    // SAFETY: the mark says that an image is there; the program keeps it while kernels use it.
    object(handle, itself, variable).map(|at| unsafe { &*at.cast::<Image>() })
}

fn texture<'a>(handle: u64) -> Answer<&'a Image> {
    image(handle, mark::TEXTURE, mark::TEXREF)
}

fn surface_of<'a>(handle: u64) -> Answer<&'a Image> {
    image(handle, mark::SURFACE, mark::SURFREF)
}

/// A `.samplerref` holds its sampler itself.
fn sampler(handle: u64) -> Answer<Sampler> {
    if mark_at(handle) != Some(mark::SAMPLERREF) {
        return Err(Fault::Handle(handle));
    }
    let at = handle as *const u8;
    // SAFETY: the variable is that long.
    Ok(unsafe { at.add(REFERENCE_SAMPLER as usize).cast::<Sampler>().read_unaligned() })
}

/// The service: `words` are the arguments, then the results; the answer is 0 or what ends the grid.
///
/// # Safety
/// `code` is an [`Access::code`], and `words` has its arguments and room for [`MAX_WORDS`].
pub unsafe extern "C" fn access(_: *const Launch, code: u64, words: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    let words = unsafe { &mut *words.cast::<[u64; MAX_WORDS]>() };
    match one(code, words) {
        Ok(()) => 0,
        Err(fault) => status(&fault),
    }
}

fn one(code: u64, words: &mut [u64; MAX_WORDS]) -> Answer {
    if let Some((geometry, float)) = Access::plain_fetch(code)
        && let Some(()) = group::fetch_one(geometry, float, words)?
    {
        return Ok(());
    }
    match Access::of_code(code) {
        Some(access) => run(access, words),
        None => Err(Fault::Trap),
    }
}

/// What ends the grid.
fn status(fault: &Fault) -> i32 {
    match *fault {
        Fault::Trap => -1,
        Fault::Handle(handle) => {
            guard::set_address(handle as usize);
            guard::ILLEGAL_ADDRESS
        }
    }
}

/// One lane's access, said plainly: arguments become results.
fn run(access: Access, words: &mut [u64; MAX_WORDS]) -> Answer {
    match access {
        Access::Fetch { .. } | Access::Gather { .. } => sample::sample(access, words),
        Access::Load { geometry, bits, lanes, bounds } => {
            surface::load(words, geometry, bits, lanes.into(), bounds)
        }
        Access::Store { geometry, bits, lanes, bounds, formatted } => {
            surface::store(words, geometry, bits, lanes.into(), bounds, formatted)
        }
        Access::Reduce { geometry, op, bits, signed, bounds, formatted } => {
            surface::reduce(words, geometry, op, bits, signed, bounds, formatted)
        }
        Access::Query { query, level } => query::query(words, query, level),
        Access::IsType(opaque) => {
            query::is_type(words, opaque);
            Ok(())
        }
    }
}

/// A word's low half as what it is.
fn float(word: u64) -> f32 {
    f32::from_bits(word as u32)
}

fn integer(word: u64) -> i32 {
    word as u32 as i32
}
