//! Matrix products of a warp: in registers with A and B laid out in memory, or as a call of the function over memory.

use std::collections::{HashMap, HashSet};

use super::Emitter;
use crate::back::llvm::inst::matrix::warpgroup::{self, Given};
use crate::back::llvm::inst::matrix::{self, Layout, Product};
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{Inst, Op, Order, Value};
use crate::matrix::{LANES, MatrixRows, Mma, Part, Wgmma};
use crate::pass::regions::Plan;

/// Number of the first scratch buffer for sums; those before are others.
const FIRST_SUM: usize = 8;

/// Instructions that a product waits for at most.
const REACH: usize = 64;

/// Products of one form that a long kernel has at least if they are calls. The loop of `hgemm_mma` (benches/peers) unrolled, so
/// that its code has 8, 16, 32, 64, 256 products, took 28, 28, 36, 36, 54 ms written out and 36, 36, 44, 36, 55 ms with calls, the
/// least of 20 launches each on a busy machine; NVIDIA's samples, of 2,048, took 4.1 and 3.4 s of the processor written out, 2.5 and
/// 2.7 s with calls.
const MANY: usize = 64;

/// Operands of each kind that are laid out at a time.
const OPERANDS: usize = 8;

/// Operands of the block being written that are laid out in memory, those used last at the end.
#[derive(Default)]
pub(super) struct Operands(Vec<Operand>);

#[derive(Clone)]
struct Operand {
    mma: Mma,
    part: Part,
    registers: Vec<Value>,
    /// Of the places for its part.
    number: usize,
    place: String,
}

/// The forms of product that a long kernel calls: it has many of them.
pub(super) fn called(plan: &Plan) -> HashSet<Mma> {
    let mut counts: HashMap<Mma, usize> = HashMap::new();
    for block in plan.regions.iter().flat_map(|region| &region.function.blocks) {
        for inst in &block.insts {
            if let Op::Mma(mma) = inst.op {
                *counts.entry(mma).or_default() += 1;
            }
        }
    }
    let is_called = |mma: &Mma| counts[mma] >= MANY && Layout::of(mma).is_some();
    counts.keys().copied().filter(is_called).collect()
}

impl Operands {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes out the operand that is these registers.
    fn find(&mut self, mma: &Mma, part: Part, registers: &[Value]) -> Option<Operand> {
        let is_it = |it: &Operand| (&it.mma, it.part, &it.registers[..]) == (mma, part, registers);
        self.0.iter().position(is_it).map(|at| self.0.remove(at))
    }

    /// A place for one more: a new one, or that of the operand that was not used for the longest time.
    fn number(&mut self, part: Part) -> usize {
        let mut of_part = self.0.iter().enumerate().filter(|(_, it)| it.part == part);
        let oldest = of_part.next().map(|(at, _)| at);
        let count = oldest.map_or(0, |_| 1 + of_part.count());
        match oldest.filter(|_| count >= OPERANDS) {
            Some(at) => self.0.remove(at).number,
            None => count,
        }
    }
}

impl Emitter<'_> {
    /// The product that can be done together with the one at `first`, which waits for it: a factor is the same, and
    /// nothing in between needs the first's result.
    pub(super) fn twin(&self, insts: &[Inst], first: usize) -> Option<usize> {
        let Op::Mma(mma) = &insts[first].op else { return None };
        Layout::of(mma).filter(|layout| layout.fits(&self.b, 2))?;
        let factors = |inst: &Inst| {
            let (a, b) = (mma.registers(Part::A) as usize, mma.registers(Part::B) as usize);
            (inst.args[..a].to_vec(), inst.args[a..a + b].to_vec())
        };
        let own = factors(&insts[first]);
        for (at, inst) in insts.iter().enumerate().skip(first + 1).take(REACH) {
            if inst.args.iter().any(|arg| insts[first].results.contains(arg)) {
                return None;
            }
            if inst.op == insts[first].op {
                let other = factors(inst);
                return (own.0 == other.0 || own.1 == other.1).then_some(at);
            }
            let passes = match inst.op {
                Op::Load { order: Order::Weak, .. } | Op::WarpSync => true,
                Op::MatrixRows(rows) => !rows.stores,
                _ => false,
            };
            if !inst.op.is_pure() && !passes {
                return None;
            }
        }
        None
    }

    /// Whether the kernel calls a function for each product of this form.
    pub(super) fn calls(&self, mma: &Mma) -> bool {
        self.called.contains(mma)
    }

    /// Products of one form.
    pub(super) fn mma(&mut self, insts: &[&Inst]) -> Result<(), String> {
        let Some(Inst { op: Op::Mma(mma), .. }) = insts.first() else { return Ok(()) };
        match Layout::of(mma) {
            Some(layout) if self.calls(mma) => self.call_products(&layout, mma, insts),
            Some(layout) => self.multiply(&layout, mma, insts),
            None => insts.iter().try_for_each(|inst| self.call_product(mma, inst))?,
        }
        for &result in insts.iter().flat_map(|inst| &inst.results) {
            self.write_in_place(result);
        }
        Ok(())
    }

    fn multiply(&mut self, layout: &Layout<'_>, mma: &Mma, insts: &[&Inst]) {
        let mut products = vec![];
        for inst in insts {
            let [a, b, c] = mma.operands(inst);
            let (a, b) = (self.laid_out(layout, mma, Part::A, a), self.laid_out(layout, mma, Part::B, b));
            let c = self.vectors_of(c);
            products.push(Product { a, b, c });
        }
        let found = self.written_out(layout, &products);
        for (inst, registers) in insts.iter().zip(found) {
            for (&result, val) in inst.results.iter().zip(registers) {
                self.define_vector(result, val);
            }
        }
    }

    /// The results' registers.
    fn written_out(&mut self, layout: &Layout<'_>, products: &[Product]) -> Vec<Vec<Val>> {
        let slots = products.len() * layout.sums();
        let slots: Vec<String> =
            (0..slots).map(|nth| self.scratch(FIRST_SUM + nth, layout.sum_ty())).collect();
        layout.multiply(&mut self.b, products, &slots)
    }

    /// The same as a call of a function that is written once for each form of product, and for each way in which two of
    /// them have a factor in common. It finds A and B laid out, and C and D in memory.
    fn call_products(&mut self, layout: &Layout<'_>, mma: &Mma, insts: &[&Inst]) {
        let mut name = format!("product.{}", matrix::name(mma));
        // Each place once, and its number for each factor of each product.
        let mut places: Vec<String> = vec![];
        let mut factors = vec![];
        for inst in insts {
            let [a, b, _] = mma.operands(inst);
            for (part, registers) in [(Part::A, a), (Part::B, b)] {
                let place = self.laid_out(layout, mma, part, registers);
                let known = places.iter().position(|it| *it == place);
                let number = known.unwrap_or(places.len());
                if known.is_none() {
                    places.push(place);
                }
                name += &format!(".{number}");
                factors.push(number);
            }
        }
        let first_sum = places.len();
        for inst in insts {
            let more = u64::from(mma.registers(Part::D)) * register_bytes(mma);
            places.push(self.sum_of(mma.operands(inst)[2], register_bytes(mma), more, inst));
        }
        let arguments: Vec<Val> = places.into_iter().map(|place| Val::new(Type::ptr(), place)).collect();
        self.outlined(&name, &arguments, &[], |me, params| {
            me.product_of_memory(layout, mma, &factors, params, first_sum);
            vec![]
        });
        for &result in insts.iter().flat_map(|inst| &inst.results) {
            self.define_sum(result);
        }
    }

    /// What the function does.
    fn product_of_memory(
        &mut self,
        layout: &Layout<'_>,
        mma: &Mma,
        factors: &[usize],
        params: &[Val],
        first_sum: usize,
    ) {
        let bytes = register_bytes(mma);
        let sums = &params[first_sum..];
        let ty = self.vector_ty(mma.element(Part::C).register());
        let mut products = vec![];
        for (pair, sum) in factors.chunks(2).zip(sums) {
            let c = (0..u64::from(mma.registers(Part::C))).map(|nth| {
                let at = self.register_at(&sum.text, nth * bytes);
                self.b.assign(ty, format_args!("load {ty}, ptr {at}, align 64"))
            });
            let c = c.collect();
            products.push(Product { a: params[pair[0]].text.clone(), b: params[pair[1]].text.clone(), c });
        }
        let found = self.written_out(layout, &products);
        for (registers, sum) in found.iter().zip(sums) {
            self.store_registers(registers, &sum.text, bytes);
        }
    }

    /// Where A or B is laid out. Products that follow each other often have one of them in common.
    fn laid_out(&mut self, layout: &Layout<'_>, mma: &Mma, part: Part, registers: &[Value]) -> String {
        let operand = match self.operands.find(mma, part, registers) {
            Some(known) => known,
            None => {
                let number = self.operands.number(part);
                let place = self.registers(&format!("{part:?}{number}."), layout.bytes(part));
                let vectors = self.vectors_of(registers);
                self.lay_out(layout, mma, part, &vectors, &place);
                Operand { mma: *mma, part, registers: registers.to_vec(), number, place }
            }
        };
        let place = operand.place.clone();
        self.operands.0.push(operand);
        place
    }

    fn lay_out(&mut self, layout: &Layout<'_>, mma: &Mma, part: Part, registers: &[Val], place: &str) {
        if !self.calls(mma) {
            return layout.lay_out(&mut self.b, part, registers, place);
        }
        let name = format!("lay_out.{}.{part:?}", matrix::name(mma));
        let arguments = [&[Val::new(Type::ptr(), place.to_owned())], registers].concat();
        self.outlined(&name, &arguments, &[], |me, params| {
            layout.lay_out(&mut me.b, part, &params[1..], &params[0].text);
            vec![]
        });
    }

    /// The registers of all lanes go through memory; the function is the same as in the other settings.
    fn call_product(&mut self, mma: &Mma, inst: &Inst) -> Result<(), String> {
        let vectors = self.vectors_of(&inst.args[..mma.lane_words().len()]);
        let function = matrix::function(&mut self.b, mma).map_err(|missing| missing.to_string())?;
        let bytes = register_bytes(mma);
        let into = self.registers("in", bytes * vectors.len() as u64);
        let out = self.registers("out", bytes * inst.results.len() as u64);
        self.store_registers(&vectors, &into, bytes);
        self.b.assign(Type::int(32, 1), format_args!("call i32 {function}(ptr {into}, ptr {out}, ptr null)"));
        for (nth, &result) in inst.results.iter().enumerate() {
            let ty = self.vector_ty(self.ty(result));
            let at = self.register_at(&out, nth as u64 * bytes);
            let val = self.b.assign(ty, format_args!("load {ty}, ptr {at}, align 64"));
            self.define_vector(result, val);
        }
        Ok(())
    }

    /// The function adds to sums in memory, and reads factors where they lie in shared memory.
    pub(super) fn wgmma(&mut self, wgmma: &Wgmma, inst: &Inst) -> Result<(), String> {
        let arguments = wgmma.operands(inst);
        let bytes = register_bytes(&wgmma.mma);
        let vectors = self.vectors_of(arguments.registers());
        let registers = self.registers("in", bytes * vectors.len() as u64);
        self.store_registers(&vectors, &registers, bytes);
        let a = match wgmma.a {
            Some(_) => self.first_lane(arguments.a[0]),
            None => Builder::int(Type::int(64, 1), 0),
        };
        let [b, window, warp, keeps] =
            [arguments.b, arguments.window, arguments.warp, arguments.keeps].map(|it| self.first_lane(it));
        let window = self.b.resize(&window, 64, false);
        let shared = format!("getelementptr i8, ptr %shared, {}", window.typed());
        let shared = self.b.assign(Type::ptr(), shared);
        let sum = Val::new(Type::ptr(), self.sum_of(arguments.d, bytes, 0, inst));
        let given = Given {
            before: sum.clone(),
            after: sum,
            registers: Val::new(Type::ptr(), registers),
            a,
            b,
            shared,
            warp,
            keeps,
        };
        warpgroup::call(&mut self.b, wgmma, &given).map_err(|missing| missing.to_string())?;
        for &result in &inst.results {
            self.define_sum(result);
        }
        for &result in &inst.results {
            self.write_in_place(result);
        }
        Ok(())
    }

    /// Each row of 16 bytes is where the lane says that has its address.
    pub(super) fn rows_of_matrices(&mut self, rows: &MatrixRows, inst: &Inst) {
        // An offset in the shared window fits 32 bits.
        let addresses = self.vector(inst.args[0]);
        let mut addresses = self.b.resize(&addresses, 32, false);
        let base =
            self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %shared, i64 {}", rows.offset));
        let turned = if rows.is_transposed { ".trans" } else { "" };
        let kind = format!("x{}{turned}", rows.count);
        if rows.stores {
            return self.store_rows_of_matrices(rows, &kind, [base, addresses], inst);
        }
        if let Some(mask) = self.mask.clone() {
            // What lanes have that are not active may be no address.
            let zero = Builder::bits(addresses.ty, 0);
            addresses = self.b.select(&mask, &addresses, &zero);
        }
        let results = vec![Type::int(32, LANES); rows.count.into()];
        let values = self.outlined(&format!("rows.{kind}"), &[base, addresses], &results, |me, params| {
            (0..u32::from(rows.count))
                .map(|matrix| {
                    let places: Vec<Val> = (0..8).map(|row| me.row_of(&params[1], matrix, row)).collect();
                    matrix::core_matrix(&mut me.b, &params[0], &places, rows.is_transposed)
                })
                .collect()
        });
        for (&result, val) in inst.results.iter().zip(values) {
            self.define_vector(result, val);
        }
    }

    /// Rows of which a lane that is not active has the address are left out.
    fn store_rows_of_matrices(&mut self, rows: &MatrixRows, kind: &str, place: [Val; 2], inst: &Inst) {
        let registers = self.vectors_of(&inst.args[1..inst.args.len() - 1]);
        let active = self.mask.clone().map(|mask| self.bits_of(&mask));
        let is_masked = active.is_some();
        let which = if is_masked { "active" } else { "all" };
        let arguments: Vec<Val> = place.into_iter().chain(registers).chain(active).collect();
        self.outlined(&format!("rows.store.{which}.{kind}"), &arguments, &[], |me, params| {
            for matrix in 0..u32::from(rows.count) {
                let units = matrix::units(&mut me.b, &params[2 + matrix as usize], rows.is_transposed);
                for (row, unit) in (0..).zip(units) {
                    let [store, next] = ["row", "next"].map(|hint| me.b.label(hint));
                    if is_masked {
                        let bit = 1i128 << (8 * matrix + row);
                        let bit = me.b.bin_int("and", &params[params.len() - 1], bit);
                        let is_active = me.b.icmp_int("ne", &bit, 0);
                        me.b.cond_br(&is_active, &store, &next);
                        me.b.start_block(&store);
                    }
                    let offset = me.row_of(&params[1], matrix, row);
                    let at = format!("getelementptr i8, {}, {}", params[0].typed(), offset.typed());
                    let at = me.b.assign(Type::ptr(), at);
                    me.b.inst(format_args!("store {}, {}, align 4", unit.typed(), at.typed()));
                    if is_masked {
                        me.b.br(&next);
                        me.b.start_block(&next);
                    }
                }
            }
            vec![]
        });
    }

    /// The address that the lane has for a row of a matrix.
    fn row_of(&mut self, addresses: &Val, matrix: u32, row: u32) -> Val {
        let place = self.extract(addresses, &(8 * matrix + row).to_string());
        self.b.resize(&place, 64, false)
    }

    /// What all lanes have alike, whether that is known or not.
    fn first_lane(&mut self, value: Value) -> Val {
        if !self.divergence(value).is_varying() {
            return self.scalar(value);
        }
        let vector = self.vector(value);
        self.extract(&vector, "0")
    }

    /// Writes registers of all lanes to memory, one behind the other.
    pub(super) fn store_registers(&mut self, registers: &[Val], buffer: &str, bytes: u64) {
        for (nth, val) in (0..).zip(registers) {
            let at = self.register_at(buffer, nth * bytes);
            self.b.inst(format_args!("store {}, ptr {at}, align 64", val.typed()));
        }
    }

    pub(super) fn register_at(&mut self, buffer: &str, offset: u64) -> String {
        self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {buffer}, i64 {offset}")).text
    }
}

/// Bytes of a register of all lanes.
pub(super) fn register_bytes(mma: &Mma) -> u64 {
    u64::from(mma.register_bytes() * LANES)
}
