//! What is added to an address right before the access becomes part of its offset: accesses at several constants from one address are
//! seen as neighbours. CUB's loads, written in inline assembly, come with an addition each.

use crate::ir::{Function, IntBin, Op, Space, Ty, Value};

pub(super) fn run(function: &mut Function) {
    let mut constants: Vec<Option<i64>> = vec![None; function.values.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let (Op::Const(bits), [result]) = (&inst.op, &inst.results[..])
            && function.ty(*result) == Ty::B64
        {
            constants[result.index()] = Some(*bits as u64 as i64);
        }
    }
    // What the block has made so far of a value and a number.
    let mut made: Vec<Option<(Value, i64)>> = vec![None; function.values.len()];
    for at in 0..function.blocks.len() {
        for nth in 0..function.blocks[at].insts.len() {
            let inst = &mut function.blocks[at].insts[nth];
            match (&mut inst.op, &inst.args[..]) {
                (Op::Int(op @ (IntBin::Add | IntBin::Sub), int), &[a, b]) if int.bits == 64 => {
                    let from = match (constants[a.index()], constants[b.index()]) {
                        (None, Some(number)) if *op == IntBin::Add => Some((a, number)),
                        (None, Some(number)) => Some((a, number.wrapping_neg())),
                        (Some(number), None) if *op == IntBin::Add => Some((b, number)),
                        _ => None,
                    };
                    made[inst.results[0].index()] = from.map(|(base, number)| match made[base.index()] {
                        Some((first, more)) => (first, number.wrapping_add(more)),
                        None => (base, number),
                    });
                }
                (
                    Op::Load { space, offset, .. }
                    | Op::Store { space, offset, .. }
                    | Op::Atomic { space, offset, .. },
                    &[address, ..],
                ) if matches!(space, Space::Global | Space::Generic) => {
                    let Some((base, number)) = made[address.index()] else { continue };
                    // An offset is 32 bits wide in PTX, and in the code of every device.
                    let sum = offset.wrapping_add(number);
                    if i32::try_from(sum).is_ok() {
                        *offset = sum;
                        inst.args[0] = base;
                    }
                }
                _ => {}
            }
        }
        for inst in &function.blocks[at].insts {
            inst.results.iter().for_each(|result| made[result.index()] = None);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::{Function, Op};
    use crate::program::{Program, Source};

    /// Offsets of the stores, and how many additions are left.
    fn offsets(body: &str) -> (Vec<i64>, usize) {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {{\n\
             .reg .b32 %t;\n.reg .b64 %p, %q, %r;\n.reg .pred %more;\nld.param.u64 %p, [words];\nmov.u32 %t, %tid.x;\n\
             {body}\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let function: &Function = program.kernel("k").unwrap().body.as_ref().unwrap();
        let insts = || function.blocks.iter().flat_map(|block| &block.insts);
        let stores = insts().filter_map(|inst| match inst.op {
            Op::Store { offset, .. } => Some(offset),
            _ => None,
        });
        (stores.collect(), insts().filter(|inst| matches!(inst.op, Op::Int(..))).count())
    }

    #[test]
    fn constants_of_an_address_are_its_offset() {
        let body =
            "add.s64 %q, %p, 16;\nst.global.u32 [%q+4], %t;\nsub.s64 %r, %q, 24;\nst.global.u32 [%r], %t;";
        assert_eq!(offsets(body), (vec![20, -8], 0));
    }

    #[test]
    fn a_sum_that_is_too_long_for_an_offset_stays() {
        let body = "add.s64 %q, %p, 0x7fffffff;\nst.global.u32 [%q+4], %t;\nst.global.u32 [%q], %t;";
        assert_eq!(offsets(body), (vec![4, 0x7fff_ffff], 1));
    }

    #[test]
    fn another_blocks_sum_stays() {
        let body = "add.s64 %q, %p, 16;\nsetp.lt.u32 %more, %t, 5;\n@%more bra done;\nst.global.u32 [%q], %t;\ndone:";
        assert_eq!(offsets(body).0, vec![0]);
    }
}
