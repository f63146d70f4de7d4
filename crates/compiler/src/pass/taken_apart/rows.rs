//! `ldmatrix` and `stmatrix` of 16-bit elements: each lane has the addresses of its rows from the lanes that hold them, and
//! moves its elements.

use super::{Lane, Writer, load, store};
use crate::ir::{Inst, IntBin, Op, ShflMode, Space, Ty, U64, Value};
use crate::matrix::MatrixRows;

impl Writer<'_> {
    pub(super) fn rows(&mut self, rows: &MatrixRows, inst: &Inst) {
        let lane = Lane::of(self);
        let column = self.word_op(IntBin::Shl, lane.four, 1);
        // An offset in the shared window fits 32 bits.
        let base = self.emit1(Op::Trunc, &[inst.args[0]], Ty::B32);
        for matrix in 0..u32::from(rows.count) {
            let nth = matrix as usize;
            if !rows.is_transposed {
                let row = self.word_op(IntBin::Add, lane.group, matrix * 8);
                let address = self.element(base, row, column);
                if rows.stores {
                    self.emit(store(Space::Shared, 32, rows.offset), &[address, inst.args[1 + nth]], &[]);
                } else {
                    self.give(load(Space::Shared, 32, rows.offset), &[address], inst.results[nth]);
                }
                continue;
            }
            // Element (row, column) of the transposed matrix is (column, row) of the one in memory.
            let halves = match rows.stores {
                true => self.emit(Op::Unpack, &[inst.args[1 + nth]], &[Ty::B16, Ty::B16]),
                false => [0; 2].map(|_| self.function.new_value(Ty::B16)).to_vec(),
            };
            for (half, &value) in (0..).zip(&halves) {
                let row = self.word_op(IntBin::Add, column, matrix * 8 + half);
                let address = self.element(base, row, lane.group);
                if rows.stores {
                    self.emit(store(Space::Shared, 16, rows.offset), &[address, value], &[]);
                } else {
                    self.give(load(Space::Shared, 16, rows.offset), &[address], value);
                }
            }
            if !rows.stores {
                self.give(Op::Pack, &halves, inst.results[nth]);
            }
        }
    }

    /// The address of an element of the row whose address the lane has that `row` says.
    fn element(&mut self, base: Value, row: Value, column: Value) -> Value {
        let (all, clamp) = (self.word(u32::MAX), self.word(31));
        let args = [base, row, clamp, all];
        let address = self.emit(Op::Shfl(ShflMode::Idx), &args, &[Ty::B32, Ty::Pred])[0];
        let address = self.emit1(Op::Zext, &[address], Ty::B64);
        let bytes = self.word_op(IntBin::Shl, column, 1);
        let bytes = self.emit1(Op::Zext, &[bytes], Ty::B64);
        self.emit1(Op::Int(IntBin::Add, U64), &[address, bytes], Ty::B64)
    }
}
