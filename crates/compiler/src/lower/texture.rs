//! Texture and surface instructions, with a texture, sampler or surface by name or by handle.

use ptx::Span;
use ptx::ast::{Address, Expression, ExpressionKind, Operand, OperandKind, Type};

use super::builder::Var;
use super::dialect::Need;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::link::Symbol;
use super::operand::split;
use super::scope::Entity;
use crate::ir::{Cmp, Mem, Op, Order, Scope, Space, Ty, U32, Value};
use crate::texture::{Access, Bounds, Geometry, Level, Opaque, Query, ReduceOp, Texel};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `[a, c]` or, in independent mode, `[a, b, c]`.
struct Place<'o, 'a> {
    texture: Value,
    sampler: Option<Value>,
    coordinates: &'o Operand<'a>,
}

/// `tex{.base,.level,.grad}.geom.v4.dtype.ctype d{|p}, [a, {b,} c]{, lod | dPdx, dPdy}{, e}{, f}`
pub(super) fn tex<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let level = i
        .take_one(&[("base", Level::Base), ("level", Level::Explicit), ("grad", Level::Gradient)])
        .unwrap_or(Level::Base);
    let geometry = i.take_map(Geometry::parse).ok_or(Failure::Unsupported)?;
    let lanes = i.need_one(&[("v2", 2usize), ("v4", 4)])?;
    let texel = match (i.ty()?, lanes) {
        (Type::U32 | Type::S32 | Type::F32, 4) => Texel::Words,
        (Type::F16, 4) => Texel::Halves,
        (Type::F16x2, 2) => Texel::Pairs,
        _ => return Err(Failure::Unsupported),
    };
    let float = match i.ty()? {
        Type::F32 => true,
        Type::S32 => false,
        _ => return Err(Failure::Unsupported),
    };
    i.done()?;
    if geometry.is_cube() && !float || geometry.is_multisample() && (float || level != Level::Base) {
        return Err(Failure::Unsupported);
    }
    let place = l.texture_place(i.operand(1)?)?;
    let mut args = l.texture_arguments(&place, geometry)?;
    let mut next = 2;
    match level {
        Level::Base => {}
        Level::Explicit => {
            args.push(l.coordinate(i.operand(next)?)?);
            next += 1;
        }
        Level::Gradient => {
            for derivative in [i.operand(next)?, i.operand(next + 1)?] {
                let n = match geometry.coordinates() {
                    3 => 4,
                    n => n,
                };
                if l.parts(derivative) != Some(n) {
                    return fail(derivative.span, format!("expected a vector of {n} derivatives"));
                }
                args.extend(l.elements(derivative, geometry.coordinates())?);
            }
            next += 2;
        }
    }
    let (offset, compare) = l.offset_and_compare(i, next, geometry, &mut args)?;
    if compare && (!float || geometry == Geometry::D3) {
        return fail(i.ast.span, "a depth is compared with `.f32` coordinates, and not in `.3d`");
    }
    let sampler = place.sampler.is_some();
    l.sample(i, Access::Fetch { geometry, float, level, texel, sampler, offset, compare }, &args)
}

/// `tld4.comp.geom.v4.dtype.f32 d{|p}, [a, {b,} c]{, e}{, f}`
pub(super) fn tld4<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let component = i.need_one(&[("r", 0u8), ("g", 1), ("b", 2), ("a", 3)])?;
    let geometry = i.take_map(Geometry::parse).ok_or(Failure::Unsupported)?;
    i.need_one(&[("v4", ())])?;
    let dtype = i.ty()?;
    let ctype = i.ty()?;
    i.done()?;
    let planar = geometry.is_cube() || matches!(geometry, Geometry::D2 | Geometry::Layered2);
    if !planar || ctype != Type::F32 || !matches!(dtype, Type::U32 | Type::S32 | Type::F32) {
        return Err(Failure::Unsupported);
    }
    let place = l.texture_place(i.operand(1)?)?;
    let mut args = l.texture_arguments(&place, geometry)?;
    let (offset, compare) = l.offset_and_compare(i, 2, geometry, &mut args)?;
    let sampler = place.sampler.is_some();
    l.sample(i, Access::Gather { geometry, component, sampler, offset, compare }, &args)
}

/// `txq.query.b32 d, [a]`, `txq.level.query.b32 d, [a], lod`
pub(super) fn txq<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let level = i.take("level");
    let query = i.take_map(|word| Query::parse(word, false)).ok_or(Failure::Unsupported)?;
    if level && !matches!(query, Query::Width | Query::Height | Query::Depth) {
        return Err(Failure::Unsupported);
    }
    // A sampler has some of a texture's properties, and one that only it has.
    let of: &[Opaque] = match query {
        Query::ForceUnnormalizedCoords => &[Opaque::Sampler],
        Query::FilterMode | Query::AddrMode0 | Query::AddrMode1 | Query::AddrMode2 => {
            &[Opaque::Texture, Opaque::Sampler]
        }
        _ => &[Opaque::Texture],
    };
    query_of(l, i, Access::Query { query, level }, of)
}

/// `suq.query.b32 d, [a]`
pub(super) fn suq<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let query = i.take_map(|word| Query::parse(word, true)).ok_or(Failure::Unsupported)?;
    query_of(l, i, Access::Query { query, level: false }, &[Opaque::Surface])
}

fn query_of<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, access: Access, of: &[Opaque]) -> Lower {
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let operand = i.operand(1)?;
    let (handle, more) = l.handle(operand, of)?;
    if !more.is_empty() {
        return fail(operand.span, "a query has no coordinates");
    }
    let mut args = vec![handle];
    if access.arguments() == 2 {
        args.push(l.coordinate(i.operand(2)?)?);
    }
    if i.count() != 1 + args.len() {
        return fail(i.ast.span, format!("'{}' takes {} operands", i.ast.full_name(), 1 + args.len()));
    }
    let result = l.b.emit1(Op::Texture(access), &args, Ty::B32);
    l.write(i.operand(0)?, result)
}

/// `istypep.type p, a`
pub(super) fn istypep<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let opaque = i.need_one(&[
        ("texref", Opaque::Texture),
        ("samplerref", Opaque::Sampler),
        ("surfref", Opaque::Surface),
    ])?;
    i.done()?;
    let [p, a] = i.operands()?;
    let address = l.value(a, Type::U64)?;
    let result = l.b.emit1(Op::Texture(Access::IsType(opaque)), &[address], Ty::B32);
    let zero = l.b.constant(Ty::B32, 0);
    let result = l.b.emit1(Op::Icmp(Cmp::Ne, U32), &[result, zero], Ty::Pred);
    l.write(p, result)
}

/// `suld.b.geom{.cop}{.vec}.dtype.clamp d, [a, b]`
pub(super) fn suld<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("b", ())])?;
    let geometry = surface_geometry(i)?;
    i.cache_hints();
    let (ty, lanes) = element(i)?;
    let bounds = bounds(i)?;
    i.done()?;
    let [d, a] = i.operands()?;
    let access = Access::Load { geometry, bits: ty.bits() as u8, lanes: lanes as u8, bounds };
    let args = l.surface_arguments(a, geometry)?;
    if matches!(d.kind, OperandKind::Sink) {
        return fail(d.span, "'suld' cannot drop its result");
    }
    let vars = l.destinations(d)?;
    if vars.len() != lanes {
        return fail(d.span, format!("expected {lanes} destinations"));
    }
    l.texture_results(access, &args, &vars, d.span)
}

/// `sust.{b,p}.geom{.cop}{.vec}.ctype.clamp [a, b], c`
pub(super) fn sust<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let formatted = i.need_one(&[("b", false), ("p", true)])?;
    let geometry = surface_geometry(i)?;
    i.cache_hints();
    let (ty, lanes) = element(i)?;
    let bounds = bounds(i)?;
    i.done()?;
    if formatted && ty != Type::B32 {
        return Err(Failure::Unsupported);
    }
    let [a, c] = i.operands()?;
    let mut args = l.surface_arguments(a, geometry)?;
    let values = l.values(c, ty)?;
    if values.len() != lanes {
        return fail(c.span, format!("expected {lanes} values"));
    }
    for value in values {
        args.push(l.untyped(value));
    }
    let (bits, lanes) = (ty.bits() as u8, lanes as u8);
    l.b.emit(Op::Texture(Access::Store { geometry, bits, lanes, bounds, formatted }), &args, &[]);
    Ok(())
}

/// `sured.{b,p}.op.geom.ctype.clamp [a, b], c`
pub(super) fn sured<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let formatted = i.need_one(&[("b", false), ("p", true)])?;
    let op = i.need_one(&[
        ("add", ReduceOp::Add),
        ("min", ReduceOp::Min),
        ("max", ReduceOp::Max),
        ("and", ReduceOp::And),
        ("or", ReduceOp::Or),
    ])?;
    let geometry = surface_geometry(i)?;
    let ty = i.ty()?;
    let bounds = bounds(i)?;
    i.done()?;
    let minmax = matches!(op, ReduceOp::Min | ReduceOp::Max);
    let bitwise = matches!(op, ReduceOp::And | ReduceOp::Or);
    let legal = match ty {
        Type::U32 | Type::S32 => !formatted && !bitwise,
        Type::U64 => !formatted && !bitwise,
        Type::S64 => !formatted && minmax,
        Type::B32 => formatted || bitwise,
        Type::B64 => formatted && minmax,
        _ => false,
    };
    if !legal || !matches!(geometry, Geometry::D1 | Geometry::D2 | Geometry::D3) {
        return Err(Failure::Unsupported);
    }
    let [a, c] = i.operands()?;
    let mut args = l.surface_arguments(a, geometry)?;
    let value = l.value(c, ty)?;
    args.push(l.untyped(value));
    let signed = matches!(ty, Type::S32 | Type::S64);
    let access = Access::Reduce { geometry, op, bits: ty.bits() as u8, signed, bounds, formatted };
    l.b.emit(Op::Texture(access), &args, &[]);
    Ok(())
}

fn surface_geometry(i: &mut I<'_, '_>) -> Lower<Geometry> {
    use Geometry::{D1, D2, D3, Layered1, Layered2};
    let geometry = i.take_map(Geometry::parse).ok_or(Failure::Unsupported)?;
    if matches!(geometry, D1 | D2 | D3 | Layered1 | Layered2) {
        Ok(geometry)
    } else {
        Err(Failure::Unsupported)
    }
}

/// Type and number of the elements; 128 bits at most.
fn element(i: &mut I<'_, '_>) -> Lower<(Type, usize)> {
    let lanes = i.take_one(&[("v2", 2usize), ("v4", 4)]).unwrap_or(1);
    let ty = i.ty()?;
    let fits = ty.bits() as usize * lanes <= 128;
    if fits && matches!(ty, Type::B8 | Type::B16 | Type::B32 | Type::B64) {
        Ok((ty, lanes))
    } else {
        Err(Failure::Unsupported)
    }
}

fn bounds(i: &mut I<'_, '_>) -> Lower<Bounds> {
    i.need_one(&[("trap", Bounds::Trap), ("clamp", Bounds::Clamp), ("zero", Bounds::Zero)])
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// The handle that `[a, …]` names, and what stands behind it.
    fn handle<'o>(&mut self, operand: &'o Operand<'a>, of: &[Opaque]) -> Lower<(Value, &'o [Operand<'a>])> {
        let OperandKind::Address(Address { base, more, suffix: None }) = &operand.kind else {
            return fail(operand.span, "expected a texture or surface in brackets");
        };
        Ok((self.opaque(base, of, operand.span)?, more))
    }

    /// A register's value is a handle or the address of a reference; a named reference, which is one `of` these, is its own
    /// address.
    fn opaque(&mut self, expression: &Expression<'a>, of: &[Opaque], span: Span) -> Lower<Value> {
        let (Some(name), 0) = split(expression)? else {
            return fail(span, "expected the name of a texture or surface, or a register");
        };
        match self.entity(name) {
            Some(Entity::Register(register)) if register.vars.len() == 1 && register.ty == Ty::B64 => {
                Ok(self.b.read(register.vars[0]))
            }
            Some(Entity::Register(_)) => fail(span, format!("'{name}' is no 64-bit register")),
            Some(Entity::KernelParam(offset)) => Ok(self.handle_parameter(offset)),
            Some(Entity::Buffer(index)) => self.read_buffer(index, 0, 8, span),
            _ => {
                let address = self.symbol_address(name, span)?.1;
                match self.reference(name) {
                    Some(opaque) if of.contains(&opaque) => Ok(address),
                    _ => fail(span, format!("'{name}' is no reference of that kind")),
                }
            }
        }
    }

    /// The kind of the reference that the name is.
    pub(super) fn reference(&mut self, name: &str) -> Option<Opaque> {
        let id = match self.entity(name) {
            Some(Entity::Global(id)) => id,
            Some(_) => return None,
            None => match self.module.linked.symbol(self.unit, name)? {
                Symbol::Global(id) => id,
                _ => return None,
            },
        };
        self.module.globals()[id.index()].opaque
    }

    /// `.param .texref t`: the parameter holds the handle.
    pub(super) fn handle_parameter(&mut self, offset: u32) -> Value {
        let address = self.b.emit1(Op::ParamAddr(offset), &[], Ty::B64);
        let op = Op::Load {
            space: Space::Param,
            mem: Mem { bits: 64, signed: false },
            offset: 0,
            order: Order::Weak,
            scope: Scope::Sys,
        };
        self.b.emit1(op, &[address], Ty::B64)
    }

    fn texture_place<'o>(&mut self, operand: &'o Operand<'a>) -> Lower<Place<'o, 'a>> {
        let (texture, more) = self.handle(operand, &[Opaque::Texture])?;
        let (sampler, coordinates) = match more {
            [coordinates] => (None, coordinates),
            [sampler, coordinates] => {
                let OperandKind::Name(name) = &sampler.kind else {
                    return fail(sampler.span, "expected a sampler");
                };
                static HANDLES: Need = Need::new("4.3", "0");
                if matches!(self.entity(name), Some(Entity::Register(_))) {
                    self.require(sampler.span, "a sampler that a register names", &HANDLES)?;
                }
                let name = Expression { kind: ExpressionKind::Name(name), span: sampler.span };
                // As ptxas has it, a texture is one too.
                let of = [Opaque::Sampler, Opaque::Texture];
                (Some(self.opaque(&name, &of, sampler.span)?), coordinates)
            }
            _ => return fail(operand.span, "expected a texture, perhaps a sampler, and coordinates"),
        };
        if sampler.is_some() != self.independent_textures() {
            let message = "a sampler is written in independent texture mode, and only there";
            return fail(operand.span, message);
        }
        Ok(Place { texture, sampler, coordinates })
    }

    fn independent_textures(&self) -> bool {
        self.module.linked.units[self.unit].independent_textures
    }

    fn texture_arguments(&mut self, place: &Place<'_, 'a>, geometry: Geometry) -> Lower<Vec<Value>> {
        let mut args = vec![place.texture];
        args.extend(place.sampler);
        args.extend(self.elements(place.coordinates, geometry.elements())?);
        Ok(args)
    }

    fn surface_arguments(&mut self, operand: &Operand<'a>, geometry: Geometry) -> Lower<Vec<Value>> {
        let (handle, more) = self.handle(operand, &[Opaque::Surface])?;
        let [coordinates] = more else { return fail(operand.span, "expected a surface and coordinates") };
        let mut args = vec![handle];
        args.extend(self.elements(coordinates, geometry.elements())?);
        Ok(args)
    }

    /// The first `count` elements of `{x, y, …}`; more may be written and mean nothing.
    fn elements(&mut self, operand: &Operand<'a>, count: usize) -> Lower<Vec<Value>> {
        let values: Vec<Value> = match &operand.kind {
            OperandKind::Vector(list) => {
                list.iter().take(count).map(|it| self.coordinate(it)).collect::<Lower<_>>()?
            }
            _ => {
                let values = self.values(operand, Type::B32)?;
                values.into_iter().take(count).map(|it| self.untyped(it)).collect()
            }
        };
        if values.len() < count {
            return fail(operand.span, format!("expected {count} coordinates"));
        }
        Ok(values)
    }

    fn coordinate(&mut self, operand: &Operand<'a>) -> Lower<Value> {
        let value = self.value(operand, Type::B32)?;
        Ok(self.untyped(value))
    }

    /// `{, e}{, f}` from operand `next` on: an offset is a vector or of an integer register, a depth is `.f32`.
    fn offset_and_compare(
        &mut self,
        i: &I<'i, 'a>,
        next: usize,
        geometry: Geometry,
        args: &mut Vec<Value>,
    ) -> Lower<(bool, bool)> {
        let rest = i.ast.operands.get(next..).unwrap_or(&[]);
        let (offset, compare) = match rest {
            [] => (None, None),
            [offset, compare] => (Some(offset), Some(compare)),
            [one] if self.is_offset(one) => (Some(one), None),
            [one] => (None, Some(one)),
            _ => return fail(i.ast.span, format!("'{}' takes fewer operands", i.ast.full_name())),
        };
        if let Some(offset) = offset {
            if geometry.is_cube() {
                return fail(offset.span, "a cubemap takes no offset");
            }
            args.extend(self.elements(offset, geometry.coordinates())?);
        }
        if let Some(compare) = compare {
            args.push(self.coordinate(compare)?);
        }
        Ok((offset.is_some(), compare.is_some()))
    }

    fn is_offset(&mut self, operand: &Operand<'a>) -> bool {
        match &operand.kind {
            OperandKind::Vector(_) => true,
            OperandKind::Name(name) => match self.entity(name) {
                Some(Entity::Register(register)) => register.vars.len() > 1 || register.ty == Ty::B32,
                _ => false,
            },
            OperandKind::Expression(expression) => {
                matches!(expression.constant(), Ok(constant) if constant.integer().is_some())
            }
            _ => false,
        }
    }

    /// Writes `d`, or `d|p`: everything is resident here.
    fn sample(&mut self, i: &I<'i, 'a>, access: Access, args: &[Value]) -> Lower {
        let (d, resident) = match &i.operand(0)?.kind {
            OperandKind::Pair(d, p) => (&**d, Some(&**p)),
            _ => (i.operand(0)?, None),
        };
        let vars = self.destinations(d)?;
        if vars.len() != access.results().len() {
            return fail(d.span, format!("expected {} destinations", access.results().len()));
        }
        self.texture_results(access, args, &vars, d.span)?;
        if let Some(p) = resident {
            let yes = self.b.constant(Ty::Pred, 1);
            self.write(p, yes)?;
        }
        Ok(())
    }

    fn texture_results(&mut self, access: Access, args: &[Value], vars: &[Option<Var>], span: Span) -> Lower {
        let types: Vec<Ty> = access.results().into_iter().map(Ty::of_bits).collect();
        let values = self.b.emit(Op::Texture(access), args, &types);
        for (var, value) in vars.iter().zip(values) {
            self.write_extended(*var, value, false, span)?;
        }
        Ok(())
    }
}
