//! `tex`, `tld4`, `txq`, `suq` by the GPU's image instructions. A handle is HIP's object ([`super::descriptor`]).
//!
//! Its sampler does what HIP can say of a CUDA texture: one address mode for all axes, a border of zeros, one level unless
//! HIP makes more. What else PTX promises is code here.

use super::code::{Code, Result};
use super::descriptor::{Field, Image, clamp, kind};
use super::launch::field;
use super::target::Images;
use crate::back::llvm::{Builder, Scalar, Type, Unsupported, Val};
use crate::ir::{GlobalId, Inst, Op, Value};
use crate::texture::{Access, Geometry, Level, Query, REFERENCE_OBJECT, Texel, address_mode};

const WORD: Type = Type { scalar: Scalar::Int(32), lanes: 1 };
const FLOAT: Type = Type { scalar: Scalar::Float, lanes: 1 };
const TEXEL: Type = Type { scalar: Scalar::Float, lanes: 4 };
/// Bit of a sampler's first word: coordinates count elements.
const UNNORMALIZED: i128 = 1 << 15;

/// A fetch and its arguments, apart.
struct Fetch<'v> {
    geometry: Geometry,
    layer: Option<&'v Val>,
    coordinates: &'v [Val],
    level: Level,
    /// The level, or both derivatives.
    levels: &'v [Val],
    offsets: &'v [Val],
}

impl Code<'_> {
    pub fn texture(&mut self, access: Access, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        if self.unit.target.images() == Images::None {
            return Err(Unsupported("it has no image instructions, and HIP no textures on it".to_owned()));
        }
        let values = match access {
            Access::Fetch { sampler, compare, geometry, .. }
            | Access::Gather { sampler, compare, geometry, .. } => {
                possible(geometry, sampler, compare)?;
                self.texels(access, args)?
            }
            Access::Query { query, level } => vec![self.query(query, args, level)],
            Access::Load { geometry, bits, lanes, bounds } => {
                self.surface_load(geometry, bits, lanes, bounds, args)
            }
            Access::Store { formatted: true, .. } => {
                return Err(Unsupported("its conversions into formats are not PTX's".to_owned()));
            }
            Access::Store { geometry, bits, lanes, bounds, .. } => {
                self.surface_store(geometry, bits, lanes, bounds, args);
                vec![]
            }
            Access::Reduce { .. } => {
                self.surface_reduce(access, args);
                vec![]
            }
            Access::IsType(_) => {
                return Err(Unsupported("HIP's objects do not say what they are".to_owned()));
            }
        };
        let sized = |(value, to): (Val, &Type)| {
            let value = self.b.resize(&value, to.bits(), false);
            self.b.bitcast(&value, *to)
        };
        Ok(values.into_iter().zip(results).map(sized).collect())
    }

    fn texels(&mut self, access: Access, args: &[Val]) -> Result<Vec<Val>> {
        let image = self.image(&args[0]);
        let take = |from: usize, count: usize| &args[from..from + count];
        let fetch = |geometry: Geometry, level: Level, offset: bool| {
            let first = 1 + geometry.indices();
            let (at, coordinates) = (first + geometry.coordinates(), geometry.coordinates());
            let n_levels = match level {
                Level::Base => 0,
                Level::Explicit => 1,
                Level::Gradient => 2 * coordinates,
            };
            Fetch {
                geometry,
                layer: take(1, geometry.indices()).first(),
                coordinates: take(first, coordinates),
                level,
                levels: take(at, n_levels),
                offsets: take(at + n_levels, if offset { coordinates } else { 0 }),
            }
        };
        match access {
            Access::Fetch { geometry, float, level, texel, offset, .. } => {
                let fetch = fetch(geometry, level, offset);
                let texel4 = match float {
                    true => self.sample(&image, &fetch, None)?,
                    false => self.element(&image, &fetch),
                };
                Ok(self.as_texel(texel, &texel4))
            }
            Access::Gather { geometry, component, offset, .. } => {
                let fetch = fetch(geometry, Level::Base, offset);
                let four = self.sample(&image, &fetch, Some(component))?;
                Ok(self.as_texel(Texel::Words, &four))
            }
            _ => Ok(vec![]),
        }
    }

    fn as_texel(&mut self, texel: Texel, four: &Val) -> Vec<Val> {
        let channels: Vec<Val> = (0..4).map(|nth| self.element_of(four, nth)).collect();
        if texel == Texel::Words {
            return channels.iter().map(|channel| self.b.to_bits(channel)).collect();
        }
        let half = FLOAT.with(Scalar::Half);
        let halves: Vec<Val> = channels
            .iter()
            .map(|channel| {
                let narrow = self.b.cast("fptrunc", channel, half);
                self.b.to_bits(&narrow)
            })
            .collect();
        if texel == Texel::Halves {
            return halves;
        }
        halves
            .chunks(2)
            .map(|pair| {
                let [low, high] = [&pair[0], &pair[1]].map(|it| self.b.resize(it, 32, false));
                let high = self.b.bin_int("shl", &high, 16);
                self.b.or(&low, &high)
            })
            .collect()
    }

    /// By the sampler; with `gather` that channel of the four elements that a filter would mix.
    fn sample(&mut self, image: &Image, fetch: &Fetch<'_>, gather: Option<u8>) -> Result<Val> {
        let sampler = self.sampler(image);
        let first = self.element_of(&sampler, 0);
        let counts = self.b.bin_int("and", &first, UNNORMALIZED);
        let counts = self.b.icmp_int("ne", &counts, 0);
        let zero = Builder::fp(FLOAT, 0.0);
        let mut coordinates: Vec<Val> =
            fetch.coordinates.iter().map(|it| self.b.bitcast(it, FLOAT)).collect();

        let (mut kind, mut before, mut overloads) = (String::new(), vec![], vec![TEXEL]);
        if !fetch.offsets.is_empty() {
            // The hardware's offsets are for coordinates from 0 to 1.
            let mut packed = Builder::int(WORD, 0);
            for (nth, offset) in fetch.offsets.iter().enumerate() {
                let part = self.b.bin_int("and", offset, 63);
                let part = self.b.bin_int("shl", &part, 8 * nth as i128);
                packed = self.b.or(&packed, &part);
                let distance = self.b.cast("sitofp", offset, FLOAT);
                let distance = self.b.select(&counts, &distance, &zero);
                coordinates[nth] = self.b.fadd(&coordinates[nth], &distance);
            }
            before.push(self.b.select(&counts, &Builder::int(WORD, 0), &packed));
        }
        // Where coordinates count elements, there is the first level only. Where the hardware has no others, neither.
        let extended = self.unit.target.images() == Images::All;
        let levels: Vec<Val> = fetch
            .levels
            .iter()
            .map(|level| {
                let level = self.b.bitcast(level, FLOAT);
                self.b.select(&counts, &zero, &level)
            })
            .collect();
        match (fetch.level, extended) {
            (Level::Base, true) => kind += ".lz",
            (Level::Explicit, true) => kind += ".l",
            (Level::Gradient, true) => {
                kind += ".d";
                before.extend(levels.iter().cloned());
                overloads.push(FLOAT);
            }
            (_, false) if gather.is_some() || !fetch.offsets.is_empty() => {
                return Err(Unsupported(
                    "it has no image instruction that gathers or takes offsets".to_owned(),
                ));
            }
            (_, false) => {}
        }
        if !fetch.offsets.is_empty() {
            kind += ".o";
        }
        if let Some(layer) = fetch.layer {
            // The hardware takes the last layer for all beyond.
            coordinates.push(self.b.cast("uitofp", layer, FLOAT));
        }
        if fetch.level == Level::Explicit && extended {
            coordinates.extend(levels);
        }
        overloads.push(FLOAT);
        let name = if gather.is_some() { "gather4" } else { "sample" };
        let mask = Builder::int(WORD, gather.map_or(15, |component| 1 << component));
        let (no, none) = (Builder::int(Type::int(1, 1), 0), Builder::int(WORD, 0));
        let mut args = vec![&mask];
        args.extend(before.iter().chain(&coordinates));
        args.extend([&image.words, &sampler, &no, &none, &none]);
        let name = format!("amdgcn.image.{name}{kind}.{}", dimension(fetch.geometry));
        Ok(self.b.intrinsic(&name, &overloads, TEXEL, &args))
    }

    /// Coordinates name an element. Linear memory has zeros around it; elsewhere the sampler says what is there.
    fn element(&mut self, image: &Image, fetch: &Fetch<'_>) -> Val {
        let mut at: Vec<Val> = fetch.coordinates.to_vec();
        for (coordinate, offset) in at.iter_mut().zip(fetch.offsets) {
            *coordinate = self.b.add(coordinate, offset);
        }
        if fetch.geometry != Geometry::D1 {
            return self.image_element(image, fetch, &at);
        }
        let kind = self.field(image, Field::Kind);
        let is_linear = self.b.icmp_int("ult", &kind, kind::FIRST_IMAGE);
        let [linear, array, done] = ["linear", "array", "fetched"].map(|hint| self.b.label(hint));
        self.b.cond_br(&is_linear, &linear, &array);
        self.b.start_block(&linear);
        let from_memory = self.linear_element(image, &at[0]);
        let after_memory = self.b.current_block().to_owned();
        self.b.br(&done);
        self.b.start_block(&array);
        let from_array = self.image_element(image, fetch, &at);
        let after_array = self.b.current_block().to_owned();
        self.b.br(&done);
        self.b.start_block(&done);
        let phi = format!(
            "phi {TEXEL} [ {}, %{after_memory} ], [ {}, %{after_array} ]",
            from_memory.text, from_array.text
        );
        self.b.assign(TEXEL, phi)
    }

    fn linear_element(&mut self, image: &Image, x: &Val) -> Val {
        let low = "<4 x i32> <i32 0, i32 1, i32 2, i32 3>";
        let buffer = format!("shufflevector {}, <8 x i32> undef, {low}", image.words.typed());
        let buffer = self.b.assign(Type::int(32, 4), buffer);
        let width = self.linear_width(image);
        let is_inside = self.b.icmp("ult", x, &width);
        let none = Builder::int(WORD, 0);
        let index = self.b.select(&is_inside, x, &none);
        let args = [&buffer, &index, &none, &none, &none];
        let found = self.b.intrinsic("amdgcn.struct.buffer.load.format", &[TEXEL], TEXEL, &args);
        self.b.select(&is_inside, &found, &Builder::bits(TEXEL, 0))
    }

    fn image_element(&mut self, image: &Image, fetch: &Fetch<'_>, at: &[Val]) -> Val {
        let sampler = self.sampler(image);
        let mode = self.element_of(&sampler, 0);
        let mode = self.b.bin_int("and", &mode, 7);
        let has_border = self.b.icmp_int("eq", &mode, clamp::BORDER);
        let level = match fetch.level {
            Level::Explicit if self.unit.target.images() == Images::All => {
                let [first, last] =
                    [Field::BaseLevel, Field::LastLevel].map(|field| self.field(image, field));
                let most = self.b.sub(&last, &first);
                Some(self.clamped(&fetch.levels[0], &most))
            }
            _ => None,
        };
        let mut args = vec![];
        for (coordinate, field) in at.iter().zip([Field::Width, Field::Height, Field::Depth]) {
            let mut size = self.extent(image, field);
            if let Some(level) = &level {
                size = self.at_level(&size, level);
            }
            let most = self.b.bin_int("sub", &size, 1);
            let inside = self.clamped(coordinate, &most);
            // The hardware gives zeros outside.
            args.push(self.b.select(&has_border, coordinate, &inside));
        }
        if let Some(layer) = fetch.layer {
            let last = self.field(image, Field::Depth);
            args.push(self.b.same("umin", &[layer, &last]));
        }
        let kind = if level.is_some() { "load.mip" } else { "load" };
        args.extend(level);
        self.image_load(kind, fetch.geometry, &args, &image.words, TEXEL)
    }

    pub fn image_load(&mut self, kind: &str, of: Geometry, at: &[Val], words: &Val, ty: Type) -> Val {
        let (mask, none) = (Builder::int(WORD, 15), Builder::int(WORD, 0));
        let mut args = vec![&mask];
        args.extend(at);
        args.extend([words, &none, &none]);
        let name = format!("amdgcn.image.{kind}.{}", dimension(of));
        self.b.intrinsic(&name, &[ty, WORD], ty, &args)
    }

    /// The nearest of 0 to `most`.
    pub fn clamped(&mut self, value: &Val, most: &Val) -> Val {
        let low = self.b.same("smax", &[value, &Builder::int(WORD, 0)]);
        self.b.same("smin", &[&low, most])
    }

    fn at_level(&mut self, size: &Val, level: &Val) -> Val {
        let size = self.b.bin("lshr", size, level);
        self.b.same("umax", &[&size, &Builder::int(WORD, 1)])
    }

    // ---- references ----

    /// A `.texref` or `.surfref` variable: whoever binds an object to it writes HIP's handle there.
    pub fn is_reference(&self, id: GlobalId) -> bool {
        self.unit.program.globals.get(id.index()).is_some_and(|it| it.opaque.is_some())
    }

    /// In the place of a reference's address its handle is taken, so nothing else may be done with the address.
    pub fn only_accessed(&self, address: Value) -> Result {
        let is_access =
            |inst: &Inst| matches!(inst.op, Op::Texture(access) if !matches!(access, Access::IsType(_)));
        let elsewhere = self.function.blocks.iter().any(|block| {
            let otherwise = |inst: &Inst| {
                let from = usize::from(is_access(inst));
                inst.args.get(from..).is_some_and(|args| args.contains(&address))
            };
            let handed_on = || block.term.edges().iter().any(|edge| edge.args.contains(&address));
            block.insts.iter().any(otherwise) || block.term.own_values().contains(&address) || handed_on()
        });
        match elsewhere {
            false => Ok(()),
            true => Err(Unsupported("the address of a texture or surface reference".to_owned())),
        }
    }

    pub fn bound_object(&mut self, id: GlobalId) -> Val {
        let wide = Type::int(64, 1);
        let base = self.launch(field::VARIABLES, wide);
        let offset = self.unit.variables.offset(id) + REFERENCE_OBJECT;
        let at = self.b.bin_int("add", &base, i128::from(offset));
        let at = self.b.cast("inttoptr", &at, Type::space(4));
        self.b.assign(wide, format_args!("load i64, {}, align 8", at.typed()))
    }

    // ---- queries ----

    fn query(&mut self, query: Query, args: &[Val], level: bool) -> Val {
        let image = self.image(&args[0]);
        let none = Builder::int(WORD, 0);
        let kind = self.field(&image, Field::Kind);
        let is_image = self.b.icmp_int("uge", &kind, kind::FIRST_IMAGE);
        let is_volume = self.b.icmp_int("eq", &kind, kind::VOLUME);
        let sized = |code: &mut Self, size: &Val| match level {
            true => code.at_level(size, &args[1]),
            false => size.clone(),
        };
        match query {
            Query::Width => {
                let elements = self.linear_width(&image);
                let width = self.extent(&image, Field::Width);
                let width = sized(self, &width);
                self.b.select(&is_image, &width, &elements)
            }
            Query::Height => {
                // 9, 10 and 13 have rows.
                let rows = self.b.bin("lshr", &Builder::int(WORD, 1 << 9 | 1 << 10 | 1 << 13), &kind);
                let rows = self.b.bin_int("and", &rows, 1);
                let has_rows = self.b.icmp_int("ne", &rows, 0);
                let height = self.extent(&image, Field::Height);
                let height = sized(self, &height);
                self.b.select(&has_rows, &height, &none)
            }
            Query::Depth => {
                let depth = self.extent(&image, Field::Depth);
                let depth = sized(self, &depth);
                self.b.select(&is_volume, &depth, &none)
            }
            Query::ArraySize => {
                let of = [kind::LAYERS_1D, kind::LAYERS_2D].map(|it| self.b.icmp_int("eq", &kind, it));
                let has_layers = self.b.or(&of[0], &of[1]);
                let layers = self.extent(&image, Field::Depth);
                self.b.select(&has_layers, &layers, &none)
            }
            Query::NumMipmapLevels => {
                let [first, last] =
                    [Field::BaseLevel, Field::LastLevel].map(|field| self.field(&image, field));
                let more = self.b.sub(&last, &first);
                let levels = self.b.bin_int("add", &more, 1);
                let has_levels = self.b.icmp_int("ne", &more, 0);
                let has_levels = self.b.and(&has_levels, &is_image);
                self.b.select(&has_levels, &levels, &none)
            }
            Query::ChannelDataType => {
                // HSA has a fourth fraction between OpenCL's, whose numbers PTX takes.
                let ty = self.channel_type(&image);
                let is_fraction = self.b.icmp_int("ult", &ty, 8);
                let [fraction, whole] = [0x10d0, 0x10cf].map(|first| self.b.bin_int("add", &ty, first));
                self.b.select(&is_fraction, &fraction, &whole)
            }
            Query::ChannelOrder => {
                // HSA's R is 1, RG 3; else there are four.
                let order = self.channel_order(&image);
                let four = Builder::int(WORD, 0x10b5);
                let is_pair = self.b.icmp_int("eq", &order, 3);
                let some = self.b.select(&is_pair, &Builder::int(WORD, 0x10b2), &four);
                let is_one = self.b.icmp_int("eq", &order, 1);
                self.b.select(&is_one, &Builder::int(WORD, 0x10b0), &some)
            }
            Query::MemoryLayout => {
                let tiling = self.field(&image, Field::Tiling);
                let is_linear = self.b.icmp_int("eq", &tiling, 0);
                self.b.cast("zext", &is_linear, WORD)
            }
            Query::NumSamples | Query::ForceUnnormalizedCoords => none,
            Query::NormalizedCoords => {
                let word = self.sampler_word(&image, 0);
                let counts = self.b.bin_int("and", &word, UNNORMALIZED);
                let normalized = self.b.icmp_int("eq", &counts, 0);
                self.b.cast("zext", &normalized, WORD)
            }
            Query::FilterMode => {
                let word = self.sampler_word(&image, 2);
                let filter = self.b.bin_int("lshr", &word, 20);
                self.b.bin_int("and", &filter, 1)
            }
            Query::AddrMode0 => self.address_mode(&image, 0),
            Query::AddrMode1 => self.address_mode(&image, 3),
            Query::AddrMode2 => self.address_mode(&image, 6),
        }
    }

    fn sampler_word(&mut self, image: &Image, word: u32) -> Val {
        let sampler = self.sampler(image);
        self.element_of(&sampler, word)
    }

    fn address_mode(&mut self, image: &Image, first: i128) -> Val {
        let word = self.sampler_word(image, 0);
        let mode = self.b.bin_int("lshr", &word, first);
        let mode = self.b.bin_int("and", &mode, 7);
        let number = |mode: u32| Builder::int(WORD, i128::from(mode));
        let mut answer = number(address_mode::CLAMP_TO_EDGE);
        for (theirs, ours) in [
            (clamp::WRAP, address_mode::WRAP),
            (clamp::MIRROR, address_mode::MIRROR),
            (clamp::BORDER, address_mode::CLAMP_TO_BORDER),
        ] {
            let is_mode = self.b.icmp_int("eq", &mode, theirs);
            answer = self.b.select(&is_mode, &number(ours), &answer);
        }
        answer
    }
}

/// What HIP has no objects for.
fn possible(geometry: Geometry, sampler: bool, compare: bool) -> Result {
    let why = match () {
        () if sampler => "CUDA and HIP have no call that makes a sampler of its own",
        () if compare => "HIP's samplers compare no depths",
        () if geometry.is_cube() => "HIP has no cubemaps",
        () if geometry.is_multisample() => "HIP has no arrays with several samples",
        () => return Ok(()),
    };
    Err(Unsupported(why.to_owned()))
}

/// As the intrinsics spell it. A layer comes last among their coordinates.
pub fn dimension(geometry: Geometry) -> &'static str {
    match geometry {
        Geometry::D1 => "1d",
        Geometry::D2 => "2d",
        Geometry::D3 => "3d",
        Geometry::Layered1 => "1darray",
        Geometry::Layered2 => "2darray",
        Geometry::Cube | Geometry::LayeredCube => "cube",
        Geometry::Multisample2 => "2dmsaa",
        Geometry::LayeredMultisample2 => "2darraymsaa",
    }
}
