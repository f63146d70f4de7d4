//! A byte without its top bit is the same number with a sign or without: `dp4a.s32.s32` of `x & 0x0f0f0f0f` takes that operand as
//! unsigned. CPUs have the product of unsigned bytes and signed ones (`back/llvm/inst/bytes.rs`).

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use crate::ir::{Function, IntBin, Op, Value};

const TOPS: u128 = 0x8080_8080;

/// Of two signed operands, the first that has no top bits becomes unsigned.
pub(super) fn run(function: &mut Function) {
    let insts = || function.blocks.iter().flat_map(|block| &block.insts);
    if !insts().any(|inst| matches!(inst.op, Op::Dp4a { .. })) {
        return;
    }
    let mut constants: HashMap<Value, u128> = HashMap::new();
    let mut low: HashSet<Value> = HashSet::new();
    for inst in insts() {
        let [result] = inst.results[..] else { continue };
        if let Op::Const(number) = inst.op {
            constants.insert(result, number);
        }
    }
    let is_low = |value: &Value| constants.get(value).is_some_and(|number| number & TOPS == 0);
    low.extend(constants.keys().filter(|value| is_low(value)));
    for inst in insts().filter(|inst| matches!(inst.op, Op::Int(IntBin::And, _))) {
        if inst.args.iter().any(is_low) {
            low.extend(&inst.results);
        }
    }
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Op::Dp4a { a_signed, b_signed } = &mut inst.op
            && *a_signed
            && *b_signed
        {
            *a_signed = !low.contains(&inst.args[0]);
            *b_signed = !*a_signed || !low.contains(&inst.args[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{Program, Source};

    /// The operation that `dp4a.{types}` of `left` and `right` becomes.
    fn dp4a(types: &str, left: &str, right: &str) -> String {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .b32 %r<8>;\n.reg .b64 %a;\n\
             ld.param.u64 %a, [p];\nld.global.u32 %r1, [%a];\nld.global.u32 %r2, [%a+4];\nand.b32 %r3, %r1, 252645135;\n\
             and.b32 %r4, %r2, 2139062143;\nand.b32 %r5, %r2, 255;\ndp4a.{types} %r6, {left}, {right}, %r1;\nst.global.u32 [%a], %r6;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "t.ptx".into(), text }]).unwrap();
        let function = program.kernels[0].body.as_ref().unwrap();
        let mut insts = function.blocks.iter().flat_map(|block| &block.insts);
        format!("{:?}", insts.find(|inst| matches!(inst.op, super::Op::Dp4a { .. })).unwrap().op)
    }

    #[test]
    fn one_operand_without_top_bits_becomes_unsigned() {
        let of = |a: bool, b: bool| format!("Dp4a {{ a_signed: {a}, b_signed: {b} }}");
        assert_eq!(dp4a("s32.s32", "%r3", "%r2"), of(false, true));
        assert_eq!(dp4a("s32.s32", "%r2", "%r4"), of(true, false));
        assert_eq!(dp4a("s32.s32", "%r3", "%r4"), of(false, true));
        assert_eq!(dp4a("s32.s32", "%r2", "%r5"), of(true, true));
        assert_eq!(dp4a("u32.s32", "%r2", "%r4"), of(false, true));
    }
}
