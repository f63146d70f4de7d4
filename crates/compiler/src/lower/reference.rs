//! `.texref`, `.samplerref` and `.surfref` variables: their place in memory and their initialisers.

use ptx::ast::{Declarator, Expression, ExpressionKind, Ident, Initializer, Space, Type, Variable};

use super::layout::{self, Layout, Problem};
use crate::texture::{Opaque, REFERENCE_BYTES, Sampler, address_mode, reference};

/// Which reference the variable is, if it is one.
pub(crate) fn kind(variable: &Variable<'_>) -> Option<Opaque> {
    match (variable.space.value, variable.ty.value) {
        (_, Type::Texref) => Some(Opaque::Texture),
        (_, Type::Samplerref) => Some(Opaque::Sampler),
        (_, Type::Surfref) => Some(Opaque::Surface),
        // `.tex .u32 t` of old is a `.global .texref`.
        (Space::Texture, _) => Some(Opaque::Texture),
        _ => None,
    }
}

pub(crate) fn layout(name: &Declarator<'_>) -> Result<Layout, Problem> {
    let bytes =
        layout::dimensions(name)?.into_iter().try_fold(REFERENCE_BYTES, |bytes, n| bytes.checked_mul(n));
    match bytes.filter(|&bytes| bytes <= 1 << 20) {
        Some(bytes) => Ok(Layout { bytes, align: 16, element: bytes }),
        None => Err((name.span, format!("'{}' is too large", name.name.value))),
    }
}

/// The first bytes: what the initialiser says about the sampler, in each element. Sizes and formats are those of what
/// is bound to the reference, whatever the text says.
pub(crate) fn init(opaque: Opaque, name: &Declarator<'_>, bytes: u64) -> Result<Vec<u8>, Problem> {
    let mut sampler = Sampler::default();
    match &name.initializer {
        None => {}
        Some(Initializer::List(list, _)) => {
            for field in list {
                match field {
                    Initializer::Field(name, value) => set(&mut sampler, opaque, name, value)?,
                    other => return Err((other.span(), "expected `field = value`".to_owned())),
                }
            }
        }
        Some(other) => return Err((other.span(), "expected `{ field = value }`".to_owned())),
    }
    Ok(reference(opaque, &sampler).repeat((bytes / REFERENCE_BYTES) as usize))
}

fn set(
    sampler: &mut Sampler,
    opaque: Opaque,
    field: &Ident<'_>,
    value: &Expression<'_>,
) -> Result<(), Problem> {
    let samples = opaque != Opaque::Surface;
    match field.value {
        "normalized_coords" if opaque == Opaque::Texture => sampler.normalized = number(value)?,
        "force_unnormalized_coords" if opaque == Opaque::Sampler => {
            sampler.force_unnormalized = number(value)?;
        }
        "filter_mode" if samples => {
            sampler.filter = word(value, &[("nearest", 0), ("linear", 1)])?;
        }
        "addr_mode_0" if samples => sampler.address[0] = address(value)?,
        "addr_mode_1" if samples => sampler.address[1] = address(value)?,
        "addr_mode_2" if samples => sampler.address[2] = address(value)?,
        "width" | "height" | "depth" | "channel_data_type" | "channel_order" | "array_size"
        | "num_mipmap_levels" | "num_samples"
            if opaque != Opaque::Sampler =>
        {
            number(value)?;
        }
        "memory_layout" if opaque == Opaque::Surface => {
            number(value)?;
        }
        _ => return Err((field.span, format!("'{}' is not a field of this type", field.value))),
    }
    Ok(())
}

fn number(value: &Expression<'_>) -> Result<u32, Problem> {
    Ok(layout::number(value)? as u32)
}

fn address(value: &Expression<'_>) -> Result<u32, Problem> {
    use address_mode::*;
    let modes = [
        ("wrap", WRAP),
        ("mirror", MIRROR),
        ("clamp_ogl", CLAMP_OGL),
        ("clamp_to_edge", CLAMP_TO_EDGE),
        ("clamp_to_border", CLAMP_TO_BORDER),
    ];
    word(value, &modes)
}

/// One of the words, or its number.
fn word(value: &Expression<'_>, words: &[(&str, u32)]) -> Result<u32, Problem> {
    let found = match &value.kind {
        ExpressionKind::Name(name) => words.iter().find(|(word, _)| word == name).map(|(_, number)| *number),
        _ => Some(number(value)?).filter(|&n| words.iter().any(|(_, number)| *number == n)),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        (value.span, format!("expected one of {}", names.join(", ")))
    })
}
