//! A number moved up and down again within its register is its low half made wide: `shl.b64 b, a, 32; shr.s64 c, b, 30`, as nvcc
//! writes a 32-bit index times 4, becomes `cvt.s64.s32` of the half, and a shift for what is left. Passes know a line of
//! addresses in that form.

use foldhash::{HashMap, HashMapExt as _};

use crate::ir::{Function, Inst, Int, IntBin, Op, Ty, Value};

/// Rewrites such shifts, if they are by constants; what nobody needs any more is left for others to drop.
pub(super) fn run(function: &mut Function) {
    let mut constants: HashMap<Value, u128> = HashMap::new();
    let mut raised: HashMap<Value, (Value, u128)> = HashMap::new();
    let insts = || function.blocks.iter().flat_map(|block| &block.insts);
    for inst in insts() {
        if let (Op::Const(number), [result]) = (&inst.op, inst.results.as_slice()) {
            constants.insert(*result, *number);
        }
    }
    for inst in insts() {
        if let (Op::Int(IntBin::Shl, _), [from, by], [result]) =
            (&inst.op, inst.args.as_slice(), inst.results.as_slice())
            && let Some(&by) = constants.get(by)
        {
            raised.insert(*result, (*from, by));
        }
    }
    if raised.is_empty() {
        return;
    }
    for at in 0..function.blocks.len() {
        let insts = std::mem::take(&mut function.blocks[at].insts);
        let mut written = Vec::with_capacity(insts.len());
        for inst in insts {
            let lowered = match (&inst.op, inst.args.as_slice()) {
                (Op::Int(IntBin::Shr, int), [from, by]) => raised
                    .get(from)
                    .zip(constants.get(by))
                    .map(|(&(origin, up), &down)| (*int, origin, up, down)),
                _ => None,
            };
            match lowered.and_then(|(int, origin, up, down)| Widening::of(int, origin, up, down)) {
                Some(widening) => widening.write(function, inst, &mut written),
                None => written.push(inst),
            }
        }
        function.blocks[at].insts = written;
    }
}

/// The low half of `origin`, made `int` again and shifted by `up`.
struct Widening {
    origin: Value,
    half: Ty,
    int: Int,
    up: u128,
}

impl Widening {
    fn of(int: Int, origin: Value, up: u128, down: u128) -> Option<Widening> {
        let half = match (int.bits, up) {
            (64, 32) => Ty::B32,
            (32, 16) => Ty::B16,
            _ => return None,
        };
        (down <= up).then(|| Widening { origin, half, int, up: up - down })
    }

    fn write(self, function: &mut Function, inst: Inst, written: &mut Vec<Inst>) {
        let (by, wide) = (function.ty(inst.args[1]), function.ty(inst.results[0]));
        let mut add = |op, args, ty| {
            let result = function.new_value(ty);
            written.push(Inst { op, args, results: vec![result], pos: inst.pos });
            result
        };
        let half = add(Op::Trunc, vec![self.origin], self.half);
        let op = if self.int.signed { Op::Sext } else { Op::Zext };
        if self.up == 0 {
            written.push(Inst { op, args: vec![half], ..inst });
            return;
        }
        let again = add(op, vec![half], wide);
        let up = add(Op::Const(self.up), vec![], by);
        written.push(Inst { op: Op::Int(IntBin::Shl, self.int), args: vec![again, up], ..inst });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    /// The operations that a kernel's two shifts become, by name.
    fn ops(up: &str, down: &str) -> Vec<&'static str> {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .b64 %p, %a, %b, %c;\n\
             ld.param.u64 %p, [p];\nld.global.u64 %a, [%p];\n{up}\n{down}\nst.global.u64 [%p], %c;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let body = program.kernel("k").unwrap().body.as_ref().unwrap();
        let name = |op: &Op| match op {
            Op::Trunc => Some("trunc"),
            Op::Sext => Some("sext"),
            Op::Zext => Some("zext"),
            Op::Int(IntBin::Shl, _) => Some("shl"),
            Op::Int(IntBin::Shr, _) => Some("shr"),
            _ => None,
        };
        body.blocks.iter().flat_map(|block| &block.insts).filter_map(|inst| name(&inst.op)).collect()
    }

    #[test]
    fn a_half_that_is_moved_up_and_down_is_made_wide() {
        assert_eq!(ops("shl.b64 %b, %a, 32;", "shr.s64 %c, %b, 30;"), ["trunc", "sext", "shl"]);
        assert_eq!(ops("shl.b64 %b, %a, 32;", "shr.u64 %c, %b, 32;"), ["trunc", "zext"]);
        // More than the half, and less.
        assert_eq!(ops("shl.b64 %b, %a, 31;", "shr.s64 %c, %b, 30;"), ["shl", "shr"]);
        assert_eq!(ops("shl.b64 %b, %a, 32;", "shr.s64 %c, %b, 33;"), ["shl", "shr"]);
    }
}
