//! Where variables' first bytes come from: numbers, and addresses that are known now or when the variables have their places.

use ptx::Constant;
use ptx::ast::{BinaryOperator, Expression, ExpressionKind, Initializer, Type};

use super::{Names, Symbol};
use crate::lower::{indirect, layout};
use crate::program::{Global, Relocation, Target};

/// Initialisers place bytes at most this far into a variable; only the text's own length lets them be many.
const MAX_INIT_BYTES: u64 = 1 << 28;

/// The first bytes of a variable, while they are collected.
pub(super) struct Image {
    pub(super) init: Vec<u8>,
    pub(super) relocations: Vec<Relocation>,
    pub(super) bytes: u64,
    pub(super) ty: Type,
}

impl Image {
    /// Writes `initializer` at `offset` as an array of `dimensions`.
    pub(super) fn fill(
        &mut self,
        names: &Names,
        initializer: &Initializer<'_>,
        offset: u64,
        dimensions: &[u64],
    ) -> Result<(), layout::Problem> {
        let element = layout::scalar_bytes(self.ty);
        match initializer {
            Initializer::Value(value) => self.value(names, value, offset),
            Initializer::Field(name, _) => {
                Err((name.span, "only textures and samplers have fields".to_owned()))
            }
            Initializer::List(list, span) => {
                let inner = dimensions.get(1..).unwrap_or(&[]);
                // PTX also takes a flat list for an array of several dimensions.
                let is_flat = !list.iter().any(|it| matches!(it, Initializer::List(..)));
                let stride = if is_flat {
                    element
                } else {
                    inner.iter().fold(element, |bytes, &n| bytes.saturating_mul(n))
                };
                for (index, value) in list.iter().enumerate() {
                    let at = (index as u64).checked_mul(stride).and_then(|at| at.checked_add(offset));
                    let Some(at) = at else { return Err((*span, "too many initialisers".to_owned())) };
                    self.fill(names, value, at, inner)?;
                }
                Ok(())
            }
        }
    }

    fn value(&mut self, names: &Names, value: &Expression<'_>, offset: u64) -> Result<(), layout::Problem> {
        let size = layout::scalar_bytes(self.ty);
        let end = offset.saturating_add(size);
        if end > self.bytes.max(size) {
            return Err((value.span, "more initialisers than the variable has room for".to_owned()));
        }
        if end > MAX_INIT_BYTES {
            return Err((value.span, "the initialiser is too large".to_owned()));
        }
        let bits = match value.constant() {
            Ok(constant) => bits_of(constant, self.ty),
            Err(ptx::NotConstant::Name) => {
                let address = Address::of(value, 1)?;
                if let Some(&Symbol::Kernel(index)) = names.get(address.name) {
                    let number = indirect::kernel_address(index).wrapping_add_signed(address.addend);
                    u128::from(number >> address.mask.map_or(0, u64::trailing_zeros))
                } else {
                    let relocation = self.relocation(names, value, &address, offset)?;
                    self.relocations.push(relocation);
                    0
                }
            }
            Err(_) => return Err((value.span, "the expression has no value".to_owned())),
        };
        if self.init.len() < end as usize {
            self.init.resize(end as usize, 0);
        }
        self.init[offset as usize..end as usize].copy_from_slice(&bits.to_le_bytes()[..size as usize]);
        Ok(())
    }

    fn relocation(
        &self,
        names: &Names,
        value: &Expression<'_>,
        address: &Address<'_>,
        offset: u64,
    ) -> Result<Relocation, layout::Problem> {
        let target = match names.get(address.name) {
            Some(&Symbol::Global(id)) => Target::Global(id),
            Some(&Symbol::Function(id)) => Target::Function(id),
            Some(_) => {
                return Err((value.span, format!("the address of '{}' is not constant", address.name)));
            }
            None => return Err((value.span, format!("'{}' is not defined", address.name))),
        };
        let (bytes, shift) = match address.mask {
            None => (layout::scalar_bytes(self.ty) as u8, 0),
            Some(mask) => (layout::scalar_bytes(self.ty) as u8, mask.trailing_zeros() as u8),
        };
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err((value.span, "an address does not fit here".to_owned()));
        }
        Ok(Relocation { offset, bytes, target, addend: address.addend, shift })
    }
}

/// `generic(sym) + 8`, `0xff00(sym)`
struct Address<'e> {
    name: &'e str,
    addend: i64,
    mask: Option<u64>,
}

impl<'e> Address<'e> {
    fn of(value: &'e Expression<'_>, sign: i64) -> Result<Self, layout::Problem> {
        let constant = |value: &Expression<'_>| layout::number(value).map(|bits| bits as i64);
        match &value.kind {
            ExpressionKind::Name(name) if sign == 1 => Ok(Address { name, addend: 0, mask: None }),
            ExpressionKind::Generic(inner) => Address::of(inner, sign),
            ExpressionKind::Mask(mask, inner) if *mask != 0 => {
                Ok(Address { mask: Some(*mask), ..Address::of(inner, sign)? })
            }
            ExpressionKind::Binary(BinaryOperator::Add, left, right) => {
                let (inner, addend) = if right.constant().is_ok() {
                    (left, constant(right)?)
                } else {
                    (right, constant(left)?)
                };
                let inner = Address::of(inner, sign)?;
                Ok(Address { addend: inner.addend.wrapping_add(addend), ..inner })
            }
            ExpressionKind::Binary(BinaryOperator::Subtract, left, right) => {
                let inner = Address::of(left, sign)?;
                Ok(Address { addend: inner.addend.wrapping_sub(constant(right)?), ..inner })
            }
            _ => Err((value.span, "not a constant address".to_owned())),
        }
    }
}

/// The bits a constant has as a value of `ty`.
pub(crate) fn bits_of(constant: Constant, ty: Type) -> u128 {
    match (ty, constant) {
        (Type::F32, Constant::Single(bits)) => u128::from(bits),
        (Type::F32, other) => u128::from((other.double() as f32).to_bits()),
        (Type::F64, other) => u128::from(other.double().to_bits()),
        (_, Constant::Single(bits)) => u128::from(bits),
        (_, Constant::Double(value)) => u128::from(value.to_bits()),
        (_, Constant::Unsigned(value)) => u128::from(value),
        (_, Constant::Signed(value)) => value as i128 as u128,
    }
}

/// Addresses of functions are numbers that are known now, so they are bytes and no relocations.
pub(super) fn write_function_addresses(global: &mut Global) {
    let relocations = std::mem::take(&mut global.relocations);
    for relocation in relocations {
        let Target::Function(id) = relocation.target else {
            global.relocations.push(relocation);
            continue;
        };
        let value = indirect::address(id).wrapping_add_signed(relocation.addend) >> relocation.shift.min(63);
        let (start, length) = (relocation.offset as usize, usize::from(relocation.bytes));
        // The initialiser reserved the place.
        if let Some(place) = global.init.get_mut(start..start + length) {
            place.copy_from_slice(&value.to_le_bytes()[..length]);
        }
    }
}
