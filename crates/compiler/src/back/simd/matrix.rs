//! Matrix products of a warp: in registers with A and B laid out in memory, or as a call of the function over memory.

use super::Emitter;
use crate::back::llvm::Type;
use crate::back::llvm::inst::matrix::{self, Layout};
use crate::ir::{Inst, Value};
use crate::matrix::{Mma, Part};
use std::collections::HashMap;

/// Number of the first scratch buffer for sums; those before are others.
const FIRST_SUM: usize = 8;

/// Operands of each kind that are laid out at a time.
const OPERANDS: usize = 8;

/// Operands of the block being written that are laid out in memory.
#[derive(Default)]
pub(super) struct Operands {
    places: Vec<(Operand, String)>,
    /// How many there have been of each.
    made: HashMap<Part, usize>,
}

type Operand = (Mma, Part, Vec<Value>);

impl Operands {
    pub(super) fn clear(&mut self) {
        *self = Operands::default();
    }
}

impl Emitter<'_> {
    pub(super) fn mma(&mut self, mma: &Mma, inst: &Inst) -> Result<(), String> {
        match Layout::of(mma) {
            Some(layout) => self.product(&layout, mma, inst),
            None => self.call_product(mma, inst)?,
        }
        for &result in &inst.results {
            self.write_in_place(result);
        }
        Ok(())
    }

    fn product(&mut self, layout: &Layout<'_>, mma: &Mma, inst: &Inst) {
        let (a, rest) = inst.args.split_at(mma.registers(Part::A) as usize);
        let (b, rest) = rest.split_at(mma.registers(Part::B) as usize);
        let places = [(Part::A, a), (Part::B, b)]
            .map(|(part, args)| self.laid_out(layout, (*mma, part, args.to_vec())));
        let c = self.vectors_of(&rest[..mma.registers(Part::C) as usize]);
        let sums: Vec<String> =
            (0..layout.sums()).map(|nth| self.scratch(FIRST_SUM + nth, layout.sum_ty())).collect();
        let product = layout.multiply(&mut self.b, places.each_ref().map(String::as_str), &c, &sums);
        for (&result, val) in inst.results.iter().zip(product) {
            self.define_vector(result, val);
        }
    }

    /// Where A or B is laid out. Products that follow each other often have one of them in common.
    fn laid_out(&mut self, layout: &Layout<'_>, operand: Operand) -> String {
        if let Some((_, place)) = self.operands.places.iter().find(|(other, _)| *other == operand) {
            return place.clone();
        }
        let made = self.operands.made.entry(operand.1).or_default();
        let number = *made % OPERANDS;
        *made += 1;
        // A product's A and B never share a place.
        let place = self.registers(&format!("{:?}{number}.", operand.1), layout.bytes(operand.1));
        self.operands.places.retain(|(_, other)| *other != place);
        let registers = self.vectors_of(&operand.2);
        layout.lay_out(&mut self.b, operand.1, &registers, &place);
        self.operands.places.push((operand, place.clone()));
        place
    }

    /// The registers of all lanes go through memory; the function is the same as in the other settings.
    fn call_product(&mut self, mma: &Mma, inst: &Inst) -> Result<(), String> {
        let vectors = self.vectors_of(&inst.args[..mma.lane_words().len()]);
        let function = matrix::function(&mut self.b, mma).map_err(|missing| missing.to_string())?;
        let bytes = u64::from(mma.register_bytes()) * 32;
        let into = self.registers("in", bytes * vectors.len() as u64);
        let out = self.registers("out", bytes * inst.results.len() as u64);
        for (nth, val) in vectors.iter().enumerate() {
            let at = self.register_at(&into, nth as u64 * bytes);
            self.b.inst(format_args!("store {}, ptr {at}, align 64", val.typed()));
        }
        self.b.assign(Type::int(32, 1), format_args!("call i32 {function}(ptr {into}, ptr {out})"));
        for (nth, &result) in inst.results.iter().enumerate() {
            let ty = self.vector_ty(self.ty(result));
            let at = self.register_at(&out, nth as u64 * bytes);
            let val = self.b.assign(ty, format_args!("load {ty}, ptr {at}, align 64"));
            self.define_vector(result, val);
        }
        Ok(())
    }

    fn register_at(&mut self, buffer: &str, offset: u64) -> String {
        self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {buffer}, i64 {offset}")).text
    }
}
