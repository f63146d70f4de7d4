//! `tcgen05.cp`, from shared to tensor memory, and `tcgen05.shift`, within tensor memory: one thread asks for all of it.

use ptx::ast::Type;

use super::transfer::address;
use super::{I, L, expect, group};
use crate::ir::Ty;
use crate::lower::instruction::{Failure, Lower};
use crate::tensor_memory::{COPY, FORMAT_SHIFT, KIND_SHIFT, SHAPES, SHIFT};

/// `tcgen05.cp.cta_group.shape{.multicast}{.b8x16.src_fmt} [taddr], s-desc`
pub(super) fn cp<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let group = group(i)?;
    let name = i.take_map(|word| SHAPES.iter().find(|it| it.0 == word).map(|it| it.0));
    let multicast = i.take_map(|word| SHAPES.iter().any(|it| it.1 == Some(word)).then_some(word));
    let shape = SHAPES.iter().position(|it| Some(it.0) == name && it.1 == multicast);
    let shape = shape.ok_or(Failure::Unsupported)? as u64;
    let bits = match i.take("b8x16") {
        // What comes out stands in front of what goes in.
        true if i.ast.modifiers.iter().find(|it| it.value.starts_with('b')).map(|it| it.value)
            != Some("b8x16") =>
        {
            return Err(Failure::Unsupported);
        }
        true => i.need_one(&[("b6x16_p32", 6), ("b4x16_p64", 4)])?,
        false => 0,
    };
    i.done()?;
    expect(i, 2)?;
    let target = address(l, i.operand(0)?)?;
    let target = l.resize(target, Ty::B64, false);
    let source = l.value(i.operand(1)?, Type::B64)?;
    let answer = l.asked(COPY | group | shape << KIND_SHIFT | bits << FORMAT_SHIFT, &[target, source]);
    l.trap_below_zero(answer);
    Ok(())
}

/// `tcgen05.shift.cta_group.down [taddr]`
pub(super) fn shift<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let group = group(i)?;
    i.need_one(&[("down", ())])?;
    i.done()?;
    expect(i, 1)?;
    let target = address(l, i.operand(0)?)?;
    let target = l.resize(target, Ty::B64, false);
    let answer = l.asked(SHIFT | group, &[target]);
    l.trap_below_zero(answer);
    Ok(())
}
