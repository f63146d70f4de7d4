//! Sizes, alignments and shapes of declared variables. Numbers come from the text: all arithmetic is checked.

use ptx::ast::{Declarator, Expression, Initializer, Type, Variable};
use ptx::{Constant, Span};

use super::instruction::register_ty;
use crate::ir::Ty;

/// No variable is larger; a GPU's whole memory is smaller.
const MAX_BYTES: u64 = 1 << 42;
/// A parameter in registers has at most this many chunks; PTX allows 4,352 bytes to kernels and less to functions.
const MAX_CHUNKS: u64 = 4096;

/// What is wrong with a declaration.
pub(crate) type Problem = (Span, String);

/// A variable in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    /// Bytes that `name[1]` is behind `name[0]`: one of the declared type, of a vector one of its parts.
    pub(crate) element: u64,
}

/// A value for a size or count in the text.
pub(crate) fn number(expression: &Expression<'_>) -> Result<u64, Problem> {
    match expression.constant().map(Constant::integer) {
        Ok(Some(value)) => Ok(value),
        _ => Err((expression.span, "expected an integer constant".to_owned())),
    }
}

/// Bytes of one element in memory, vectors included.
pub(crate) fn element_bytes(variable: &Variable<'_>) -> u64 {
    scalar_bytes(variable.ty.value) * u64::from(variable.vector.unwrap_or(1))
}

pub(crate) fn scalar_bytes(ty: Type) -> u64 {
    u64::from(ty.bits().div_ceil(8))
}

/// Elements of each dimension; an empty first one takes its length from the initialiser, else 0.
pub(crate) fn dimensions(name: &Declarator<'_>) -> Result<Vec<u64>, Problem> {
    let mut dimensions = Vec::new();
    for (index, dimension) in name.dimensions.iter().enumerate() {
        dimensions.push(match dimension {
            Some(expression) => number(expression)?,
            None if index == 0 => match &name.initializer {
                Some(Initializer::List(list, _)) => list.len() as u64,
                _ => 0,
            },
            None => return Err((name.span, "only the first dimension may be empty".to_owned())),
        });
    }
    Ok(dimensions)
}

pub(crate) fn layout(variable: &Variable<'_>, name: &Declarator<'_>) -> Result<Layout, Problem> {
    let element = element_bytes(variable);
    let bytes = dimensions(name)?.into_iter().try_fold(element, |bytes, n| bytes.checked_mul(n));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= MAX_BYTES) else {
        return Err((name.span, format!("'{}' is too large", name.name.value)));
    };
    let natural = element.next_power_of_two().max(1);
    // PTX: `.align` may only raise the alignment; NVIDIA's assembler takes the larger one.
    let align = variable.align.map_or(natural, |align| align.value.max(scalar_bytes(variable.ty.value)));
    if align > 1 << 20 {
        return Err((name.span, "the alignment is too large".to_owned()));
    }
    Ok(Layout { bytes, align, element: scalar_bytes(variable.ty.value) })
}

/// How a parameter of a device function travels: `count` chunks of `chunk` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    pub(crate) chunk: u32,
    pub(crate) count: u32,
    pub(crate) ty: Ty,
    /// `.reg` instead of `.param`.
    pub(crate) register: bool,
}

/// Whether a `.reg` may be declared so.
pub(crate) fn check_register(variable: &Variable<'_>) -> Result<(), Problem> {
    match (variable.vector, variable.ty.value) {
        (None, _) => Ok(()),
        (Some(_), Type::Pred) => Err((variable.span, "a predicate is no vector".to_owned())),
        (Some(lanes @ (2 | 4)), ty) if ty.bits() * u32::from(lanes) <= 128 => Ok(()),
        _ => Err((variable.span, "a vector register has 2 or 4 elements and at most 128 bits".to_owned())),
    }
}

pub(crate) fn shape(variable: &Variable<'_>) -> Result<Shape, Problem> {
    let register = variable.space.value == ptx::ast::Space::Register;
    if register {
        check_register(variable)?;
    }
    let unnamed;
    let name = match variable.names.first() {
        Some(name) => name,
        None => {
            let ident = ptx::Spanned::new("_", variable.span);
            unnamed = Declarator {
                name: ident,
                range: None,
                dimensions: vec![],
                initializer: None,
                span: variable.span,
            };
            &unnamed
        }
    };
    let Layout { bytes, align, .. } = layout(variable, name)?;
    let scalar = scalar_bytes(variable.ty.value);
    // A vector register travels as its elements do.
    let is_scalar = name.dimensions.is_empty() && (variable.vector.is_none() || register);
    let (chunk, ty) = if is_scalar && scalar <= 8 {
        (scalar, register_ty(variable.ty.value))
    } else {
        let chunk = align.clamp(1, 8);
        (
            chunk,
            register_ty(match chunk {
                1 => Type::B8,
                2 => Type::B16,
                4 => Type::B32,
                _ => Type::B64,
            }),
        )
    };
    let count = bytes.div_ceil(chunk.max(1));
    if count > MAX_CHUNKS {
        return Err((variable.span, "the parameter is too large".to_owned()));
    }
    Ok(Shape { bytes, align, chunk: chunk as u32, count: count as u32, ty, register })
}

/// The types of all chunks of all parameters, in order.
pub(crate) fn types(shapes: &[Shape]) -> Vec<Ty> {
    shapes.iter().flat_map(|shape| std::iter::repeat_n(shape.ty, shape.count as usize)).collect()
}

pub(crate) fn shapes(variables: &[Variable<'_>]) -> Result<Vec<Shape>, Problem> {
    variables.iter().map(shape).collect()
}
