//! Products that become part of a sum: `mul` and `add` or `sub` without a rounding modifier may be one fused multiply-add (PTX ISA, `mul`),
//! and NVIDIA's ptxas makes them that, so results on a GPU are such a sum's. nvcc leaves it `x - a * b`, for one.
//!
//! The rule is ptxas' own, read from the machine code that it makes (13.5, for sm_80, sm_90 and sm_100): a product is fused where all that
//! uses it is sums of its own block, which flush subnormals as it does; its negative counts for itself. A sum of two such products fuses
//! the one that fewer use, else its first.

use crate::ir::{Float, FloatBin, FloatMode, FloatUn, Function, Inst, Op, Value};

/// A product that may be fused.
struct Product {
    block: usize,
    factors: [Value; 2],
    float: Float,
    ftz: bool,
    /// Sums that may fuse it.
    n_sums: u32,
    /// It is also used otherwise, so it is made in any case, and nothing is gained.
    is_kept: bool,
}

impl Product {
    /// Whether an operation of the block and of this type and mode may have it as a part.
    fn fits(&self, block: usize, float: Float, mode: FloatMode) -> bool {
        (self.block, self.float, self.ftz) == (block, float, mode.ftz)
    }
}

/// A value that is a product, or its negative.
#[derive(Clone, Copy)]
struct Part {
    product: usize,
    is_negative: bool,
}

/// Afterwards no operation is left that [may fuse](FloatMode::fuses).
pub(super) fn run(function: &mut Function) {
    let fuses = |inst: &Inst| matches!(inst.op, Op::Float(FloatBin::Mul, _, mode) if mode.fuses);
    if function.blocks.iter().flat_map(|block| &block.insts).any(fuses) {
        let mut products = Products::of(function);
        products.count(function);
        products.choose(function);
        if products.fuse(function) {
            super::simplify::run(function);
        }
    }
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Op::Float(_, _, mode) = &mut inst.op {
            mode.fuses = false;
        }
    }
}

struct Products {
    all: Vec<Product>,
    /// By value.
    parts: Vec<Option<Part>>,
}

impl Products {
    fn of(function: &Function) -> Products {
        let mut products = Products { all: vec![], parts: vec![None; function.values.len()] };
        for (block, insts) in function.blocks.iter().map(|block| &block.insts).enumerate() {
            for inst in insts {
                match (&inst.op, &inst.args[..], &inst.results[..]) {
                    (Op::Float(FloatBin::Mul, float, mode), &[a, b], [result]) if mode.fuses && !mode.sat => {
                        let product = products.all.len();
                        products.parts[result.index()] = Some(Part { product, is_negative: false });
                        let (float, ftz) = (*float, mode.ftz);
                        let made = Product { block, factors: [a, b], float, ftz, n_sums: 0, is_kept: false };
                        products.all.push(made);
                    }
                    (Op::FloatUn(FloatUn::Neg, float, mode), &[of], [result]) => {
                        let fits = |part: &Part| products.all[part.product].fits(block, *float, *mode);
                        let part = products.parts[of.index()].filter(fits);
                        let negative = part.map(|it| Part { is_negative: !it.is_negative, ..it });
                        products.parts[result.index()] = negative;
                    }
                    _ => {}
                }
            }
        }
        products
    }

    /// The products that a sum of the block may fuse: of each side.
    fn of_sum(&self, block: usize, inst: &Inst) -> [Option<usize>; 2] {
        let (Op::Float(FloatBin::Add | FloatBin::Sub, float, mode), &[x, y]) = (&inst.op, &inst.args[..])
        else {
            return [None; 2];
        };
        let fits = |value: Value| {
            let product = self.parts[value.index()]?.product;
            Some(product).filter(|it| mode.fuses && self.all[*it].fits(block, *float, *mode))
        };
        match [fits(x), fits(y)] {
            // Twice the same.
            [Some(a), Some(b)] if a == b => [None; 2],
            sides => sides,
        }
    }

    fn count(&mut self, function: &Function) {
        for (at, block) in function.blocks.iter().enumerate() {
            for inst in &block.insts {
                let negates = inst.results.first().is_some_and(|it| self.parts[it.index()].is_some())
                    && inst.args.len() == 1;
                let sides = self.of_sum(at, inst);
                for (nth, arg) in inst.args.iter().enumerate() {
                    let Some(part) = self.parts[arg.index()] else { continue };
                    if sides.get(nth).is_some_and(|side| side.is_some()) {
                        self.all[part.product].n_sums += 1;
                    } else if !negates {
                        self.all[part.product].is_kept = true;
                    }
                }
            }
            let carried = block.term.edges().into_iter().flat_map(|edge| &edge.args);
            for value in block.term.own_values().iter().chain(carried) {
                if let Some(part) = self.parts[value.index()] {
                    self.all[part.product].is_kept = true;
                }
            }
        }
    }

    /// Of two products of a sum one is kept.
    fn choose(&mut self, function: &Function) {
        for (at, block) in function.blocks.iter().enumerate() {
            for inst in &block.insts {
                let [Some(first), Some(second)] = self.of_sum(at, inst) else { continue };
                let [x, y] = [first, second].map(|product| &self.all[product]);
                if !x.is_kept && !y.is_kept {
                    let kept = if y.n_sums < x.n_sums { first } else { second };
                    self.all[kept].is_kept = true;
                }
            }
        }
    }

    /// Whether there was something to fuse.
    fn fuse(&self, function: &mut Function) -> bool {
        let mut changed = false;
        for at in 0..function.blocks.len() {
            let insts = std::mem::take(&mut function.blocks[at].insts);
            let mut fused = Vec::with_capacity(insts.len());
            for mut inst in insts {
                let chosen = self.of_sum(at, &inst).map(|side| side.filter(|it| !self.all[*it].is_kept));
                if let Some(side) = chosen.iter().position(Option::is_some) {
                    self.fuse_one(function, &mut inst, side, &mut fused);
                    changed = true;
                }
                fused.push(inst);
            }
            function.blocks[at].insts = fused;
        }
        changed
    }

    /// Makes the sum a fused one of the product on this side; what it needs besides goes to `before`.
    fn fuse_one(&self, function: &mut Function, sum: &mut Inst, side: usize, before: &mut Vec<Inst>) {
        let (Op::Float(op, float, mode), Some(part)) = (&sum.op, self.parts[sum.args[side].index()]) else {
            return;
        };
        let (float, mode) = (*float, FloatMode { fuses: false, ..*mode });
        let takes = |nth: usize| *op == FloatBin::Sub && nth == 1;
        let mut signed = |value: Value, is_negative: bool| {
            if !is_negative {
                return value;
            }
            let result = function.new_value(function.ty(value));
            let op = Op::FloatUn(FloatUn::Neg, float, FloatMode::default());
            before.push(Inst { op, args: vec![value], results: vec![result], pos: sum.pos });
            result
        };
        let [a, b] = self.all[part.product].factors;
        let a = signed(a, part.is_negative != takes(side));
        let c = signed(sum.args[1 - side], takes(1 - side));
        sum.op = Op::Fma(float, mode);
        sum.args = vec![a, b, c];
    }
}
