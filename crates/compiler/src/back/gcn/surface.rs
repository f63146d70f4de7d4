//! `suld`, `sust`, `sured`: bytes of an array by their place. PTX moves bits, so the image's descriptor is taken with a
//! format of plain bits of the element's size ([`Code::as_bits`]).
//!
//! An access as wide as an element is one image instruction; a wider one is a loop over elements, and a part of an element
//! is cut out of it. A store or reduction of a part cannot be without the rest, so it is a fault.

use super::code::Code;
use super::descriptor::Field;
use super::services::Fault;
use super::texture::dimension;
use crate::back::llvm::{Builder, Scalar, Type, Val};
use crate::texture::{Access, Bounds, Geometry, ReduceOp};

const WORD: Type = Type { scalar: Scalar::Int(32), lanes: 1 };
const TEXEL: Type = Type { scalar: Scalar::Float, lanes: 4 };
/// The widest access.
const WIDE: Type = Type { scalar: Scalar::Int(128), lanes: 1 };

/// Where an access is.
struct Place {
    /// The image as elements of bits.
    words: Val,
    /// Logarithm of an element's bytes.
    size: Val,
    /// Bytes into the element, where the access is a part of one.
    part: Val,
    /// Element, row and slice or layer.
    at: Vec<Val>,
    /// False where the access has no effect.
    is_there: Val,
}

impl Code<'_> {
    /// Finds the place; ends the thread outside of the surface where the instruction says so.
    fn place(
        &mut self,
        geometry: Geometry,
        bytes: i128,
        by_element: bool,
        bounds: Bounds,
        args: &[Val],
    ) -> Place {
        let image = self.image(&args[0]);
        let size = self.element_size(&image);
        let words = self.as_bits(&image, &size);
        let (layer, coordinates) = args[1..].split_at(geometry.indices());
        let x = &coordinates[0];
        // Coordinates and where they end, and whether they have a sign.
        let width = self.extent(&image, Field::Width);
        let row = self.b.bin("shl", &width, &size);
        let last = match by_element {
            true => self.b.bin_int("sub", &width, 1),
            false => self.b.bin_int("sub", &row, bytes),
        };
        let mut axes = vec![(x.clone(), last.clone(), true)];
        for (nth, field) in [(1, Field::Height), (2, Field::Depth)] {
            if nth < geometry.coordinates() {
                axes.push((coordinates[nth].clone(), self.field(&image, field), true));
            }
        }
        if let Some(layer) = layer.first() {
            axes.push((layer.clone(), self.field(&image, Field::Depth), false));
        }

        let mut is_inside = Builder::int(Type::int(1, 1), 1);
        let mut at = vec![];
        // Rows shorter than the access have no place for it.
        let fits = self.b.icmp_int("sge", &last, 0);
        for (coordinate, last, signed) in &axes {
            // What is negative is beyond the end without its sign.
            let inside = self.b.icmp("ule", coordinate, last);
            is_inside = self.b.and(&is_inside, &inside);
            at.push(match (bounds, signed) {
                (Bounds::Clamp, true) => self.clamped(coordinate, last),
                (Bounds::Clamp, false) => self.b.same("umin", &[coordinate, last]),
                _ => coordinate.clone(),
            });
        }
        is_inside = self.b.and(&is_inside, &fits);
        let is_there = match bounds {
            Bounds::Clamp => fits,
            Bounds::Zero => is_inside,
            Bounds::Trap => {
                self.trap_unless(&is_inside);
                is_inside
            }
        };
        let mut part = Builder::int(WORD, 0);
        if !by_element {
            // PTX: low bits of the address may be masked off.
            let byte = self.b.bin_int("and", &at[0], !(bytes - 1));
            let whole = self.b.bin("shl", &Builder::int(WORD, -1), &size);
            let inside = self.b.not(&whole);
            part = self.b.and(&byte, &inside);
            at[0] = self.b.bin("lshr", &byte, &size);
        }
        Place { words, size, part, at, is_there }
    }

    fn trap_unless(&mut self, condition: &Val) {
        let [good, bad] = ["good", "bad"].map(|hint| self.b.label(hint));
        self.b.cond_br(condition, &good, &bad);
        self.b.start_block(&bad);
        self.fault(Fault::Trap);
        self.b.br(&good);
        self.b.start_block(&good);
    }

    pub fn surface_load(
        &mut self,
        geometry: Geometry,
        bits: u8,
        lanes: u8,
        bounds: Bounds,
        args: &[Val],
    ) -> Vec<Val> {
        let bytes = i128::from(bits) / 8 * i128::from(lanes);
        let place = self.place(geometry, bytes, false, bounds, args);
        let [whole, other, one, pieces, done] =
            ["inside", "other", "whole", "pieces", "loaded"].map(|hint| self.b.label(hint));
        let before = self.b.current_block().to_owned();
        self.b.cond_br(&place.is_there, &whole, &done);
        self.b.start_block(&whole);
        let is_whole = self.b.icmp_int("eq", &place.size, i128::from(bytes.trailing_zeros()));
        self.b.cond_br(&is_whole, &one, &other);

        self.b.start_block(&one);
        let all = self.load_element(geometry, &place, &Builder::int(WORD, 0));
        self.b.br(&done);

        self.b.start_block(&other);
        let zero = Builder::int(WIDE, 0);
        let sum = self.each_element(&place, bytes, &pieces, &zero, |code, nth, shift, sum| {
            let element = code.load_element(geometry, &place, nth);
            let element = code.low_bytes(&element, &place.size);
            let element = code.b.bin("shl", &element, shift);
            code.b.or(sum, &element)
        });
        let part = self.b.bin_int("shl", &place.part, 3);
        let part = self.b.resize(&part, 128, false);
        let cut = self.b.bin("lshr", &sum, &part);
        let after = self.b.current_block().to_owned();
        self.b.br(&done);

        self.b.start_block(&done);
        let phi = format!("phi i128 [ 0, %{before} ], [ {}, %{one} ], [ {}, %{after} ]", all.text, cut.text);
        let all = self.b.assign(WIDE, phi);
        let lane = |nth: u8| {
            let value = self.b.bin_int("lshr", &all, i128::from(bits) * i128::from(nth));
            self.b.resize(&value, bits.into(), false)
        };
        (0..lanes).map(lane).collect()
    }

    pub fn surface_store(&mut self, geometry: Geometry, bits: u8, lanes: u8, bounds: Bounds, args: &[Val]) {
        let bytes = i128::from(bits) / 8 * i128::from(lanes);
        let mut all = Builder::int(WIDE, 0);
        for (nth, value) in args[1 + geometry.elements()..].iter().enumerate() {
            let value = self.b.to_bits(value);
            let value = self.b.resize(&value, bits.into(), false);
            let value = self.b.resize(&value, 128, false);
            let value = self.b.bin_int("shl", &value, i128::from(bits) * nth as i128);
            all = self.b.or(&all, &value);
        }
        let place = self.place(geometry, bytes, false, bounds, args);
        let [whole, other, one, pieces, done] =
            ["inside", "other", "whole", "pieces", "stored"].map(|hint| self.b.label(hint));
        self.b.cond_br(&place.is_there, &whole, &done);
        self.b.start_block(&whole);
        let is_whole = self.b.icmp_int("eq", &place.size, i128::from(bytes.trailing_zeros()));
        self.b.cond_br(&is_whole, &one, &other);

        self.b.start_block(&one);
        self.store_element(geometry, &place, &Builder::int(WORD, 0), &all);
        self.b.br(&done);

        self.b.start_block(&other);
        let has_elements = self.b.icmp_int("ult", &place.size, i128::from(bytes.trailing_zeros()));
        self.trap_unless(&has_elements);
        self.each_element(&place, bytes, &pieces, &all, |code, nth, shift, all| {
            let element = code.b.bin("lshr", all, shift);
            let element = code.low_bytes(&element, &place.size);
            code.store_element(geometry, &place, nth, &element);
            all.clone()
        });
        self.b.br(&done);
        self.b.start_block(&done);
    }

    pub fn surface_reduce(&mut self, access: Access, args: &[Val]) {
        let Access::Reduce { geometry, op, bits, signed, bounds, formatted } = access else { return };
        let place = self.place(geometry, i128::from(bits) / 8, formatted, bounds, args);
        let [inside, done] = ["inside", "reduced"].map(|hint| self.b.label(hint));
        self.b.cond_br(&place.is_there, &inside, &done);
        self.b.start_block(&inside);
        let is_whole = self.b.icmp_int("eq", &place.size, i128::from(bits / 8).trailing_zeros().into());
        self.trap_unless(&is_whole);
        let value = self.b.to_bits(&args[1 + geometry.elements()]);
        let value = self.b.resize(&value, bits.into(), false);
        if formatted && matches!(op, ReduceOp::Min | ReduceOp::Max) {
            // PTX: the surface's format says what the numbers are.
            let image = self.image(&args[0]);
            let ty = self.channel_type(&image);
            let is_signed = self.b.icmp_int("ule", &ty, 10);
            let [with, without, both] = ["signed", "unsigned", "both"].map(|hint| self.b.label(hint));
            self.b.cond_br(&is_signed, &with, &without);
            for (label, signed) in [(&with, true), (&without, false)] {
                self.b.start_block(label);
                self.image_atomic(op, signed, geometry, &place, &value);
                self.b.br(&both);
            }
            self.b.start_block(&both);
        } else {
            self.image_atomic(op, signed, geometry, &place, &value);
        }
        self.b.br(&done);
        self.b.start_block(&done);
    }

    fn image_atomic(&mut self, op: ReduceOp, signed: bool, geometry: Geometry, place: &Place, value: &Val) {
        let name = match (op, signed) {
            (ReduceOp::Add, _) => "add",
            (ReduceOp::And, _) => "and",
            (ReduceOp::Or, _) => "or",
            (ReduceOp::Min, true) => "smin",
            (ReduceOp::Min, false) => "umin",
            (ReduceOp::Max, true) => "smax",
            (ReduceOp::Max, false) => "umax",
        };
        let none = Builder::int(WORD, 0);
        let mut args = vec![value];
        args.extend(&place.at);
        args.extend([&place.words, &none, &none]);
        let name = format!("amdgcn.image.atomic.{name}.{}", dimension(geometry));
        self.b.intrinsic(&name, &[value.ty, WORD], value.ty, &args);
    }

    /// Element number `nth` of the access.
    fn load_element(&mut self, geometry: Geometry, place: &Place, nth: &Val) -> Val {
        let mut at = place.at.clone();
        at[0] = self.b.add(&at[0], nth);
        let four = self.image_load("load", geometry, &at, &place.words, TEXEL);
        self.b.bitcast(&four, WIDE)
    }

    fn store_element(&mut self, geometry: Geometry, place: &Place, nth: &Val, element: &Val) {
        let mut at = place.at.clone();
        at[0] = self.b.add(&at[0], nth);
        let four = self.b.bitcast(element, TEXEL);
        let (mask, none) = (Builder::int(WORD, 15), Builder::int(WORD, 0));
        let mut args = vec![&four, &mask];
        args.extend(&at);
        args.extend([&place.words, &none, &none]);
        let types: Vec<String> = args.iter().map(|arg| arg.ty.to_string()).collect();
        let name = format!("llvm.amdgcn.image.store.{}.{}.i32", dimension(geometry), TEXEL.suffix());
        self.b.call_void(&name, &types.join(", "), &args);
    }

    /// The lowest bytes of a value, as many as an element has.
    fn low_bytes(&mut self, value: &Val, size: &Val) -> Val {
        let bits = self.b.bin("shl", &Builder::int(WORD, 8), size);
        let others = self.b.sub(&Builder::int(WORD, 128), &bits);
        let others = self.b.resize(&others, 128, false);
        let mask = self.b.bin("lshr", &Builder::int(WIDE, -1), &others);
        self.b.and(value, &mask)
    }

    /// A loop over the elements that an access of `bytes` covers: `turn` gets an element's number, its first bit in the
    /// access and what the turn before gave.
    fn each_element(
        &mut self,
        place: &Place,
        bytes: i128,
        label: &str,
        first: &Val,
        turn: impl FnOnce(&mut Self, &Val, &Val, &Val) -> Val,
    ) -> Val {
        let n = self.b.bin("lshr", &Builder::int(WORD, bytes), &place.size);
        let n = self.b.same("umax", &[&n, &Builder::int(WORD, 1)]);
        let before = self.b.current_block().to_owned();
        let [back, end] = ["next", "elements"].map(|hint| self.b.label(hint));
        let [nth, next, value, more] = std::array::from_fn(|_| self.b.fresh());
        self.b.br(label);
        self.b.start_block(label);
        self.b.inst(format_args!("{nth} = phi i32 [ 0, %{before} ], [ {next}, %{back} ]"));
        self.b.inst(format_args!("{value} = phi i128 [ {}, %{before} ], [ {more}, %{back} ]", first.text));
        let (nth, value) = (Val::new(WORD, nth), Val::new(WIDE, value));
        let shift = self.b.bin("shl", &nth, &place.size);
        let shift = self.b.bin_int("shl", &shift, 3);
        let shift = self.b.resize(&shift, 128, false);
        let given = turn(self, &nth, &shift, &value);
        self.b.br(&back);
        self.b.start_block(&back);
        self.b.inst(format_args!("{more} = or i128 {}, 0", given.text));
        self.b.inst(format_args!("{next} = add i32 {}, 1", nth.text));
        let goes_on = self.b.icmp("ult", &Val::new(WORD, next), &n);
        self.b.cond_br(&goes_on, label, &end);
        self.b.start_block(&end);
        Val::new(WIDE, more)
    }
}
