//! `wgmma`: each lane loads its registers of the factors, and the warp has a product of `mma` for each 8 columns.

use super::{Lane, Writer, load};
use crate::ir::{Cmp, Inst, IntBin, Op, Space, Ty, U32, Value};
use crate::matrix::{Mma, Part, Wgmma};

impl Writer<'_> {
    pub(super) fn product(&mut self, wgmma: &Wgmma, inst: &Inst) {
        let mma = &wgmma.mma;
        let given = wgmma.operands(inst);
        let lane = Lane::of(self);
        let a = match wgmma.a {
            None => given.a.to_vec(),
            Some(how) => {
                let matrix = Matrix::of(self, given.a[0], given.window, how.is_transposed);
                let first = self.word_op(IntBin::Shl, given.warp, 1);
                let eights = [first, self.word_op(IntBin::Add, first, 1)];
                let a = matrix.fragment(self, &lane, mma, Part::A, &eights);
                match how.is_negative {
                    true => a.into_iter().map(|it| self.word_op(IntBin::Xor, it, mma.signs())).collect(),
                    false => a,
                }
            }
        };
        let matrix = Matrix::of(self, given.b, given.window, wgmma.b_is_transposed);
        let columns: Vec<Vec<Value>> = (0..wgmma.columns / 8)
            .map(|column| {
                let eight = self.word(column);
                matrix.fragment(self, &lane, mma, Part::B, &[eight])
            })
            .collect();
        let zero = self.emit1(Op::Const(0), &[], mma.d.register());
        let all = self.word(u32::MAX);
        let per_column = mma.registers(Part::D) as usize;
        let sums = given.d.chunks(per_column).zip(inst.results.chunks(per_column));
        for (b, (before, after)) in columns.into_iter().zip(sums) {
            let c: Vec<Value> = before
                .iter()
                .map(|&it| self.emit1(Op::Select, &[given.keeps, it, zero], mma.d.register()))
                .collect();
            let args = [&a[..], &b, &c, given.metadata.as_slice(), &[all]].concat();
            self.out.push(Inst { op: Op::Mma(*mma), args, results: after.to_vec(), pos: self.pos });
        }
    }
}

/// A factor in shared memory. Units of 16 bytes are what a swizzle moves; up to eight of them lie side by side.
struct Matrix {
    /// Neighbours in memory are neighbours along m or n, not along k.
    is_transposed: bool,
    start: Value,
    /// Bytes from row to row of eight, as a power of two.
    pitch_log2: Value,
    /// Units side by side, as a power of two, and that number less one.
    units_log2: Value,
    mask: Value,
    /// Which row of the swizzle's pattern the matrix begins at.
    base: Value,
    /// Bytes from eight rows (along m or n) to the next.
    down: Value,
    /// Bytes from a unit along k to the next; of a transposed matrix from eight rows along k to the next.
    along: Value,
}

impl Matrix {
    /// "Matrix descriptor": bits 0 to 13 are the start, 16 to 29 the leading dimension's offset, 32 to 45 the stride
    /// dimension's (each without its four lowest bits), 49 to 51 the base offset, 62 and 63 the swizzle.
    fn of(l: &mut Writer<'_>, descriptor: Value, window: Value, is_transposed: bool) -> Matrix {
        let halves = l.emit(Op::Unpack, &[descriptor], &[Ty::B32, Ty::B32]);
        let (low, high) = (halves[0], halves[1]);
        let bytes = |l: &mut Writer<'_>, word: Value| {
            let field = l.word_op(IntBin::And, word, 0x3fff);
            l.word_op(IntBin::Shl, field, 4)
        };
        let start = bytes(l, low);
        let start = l.words(IntBin::Add, start, window);
        let leading = l.word_op(IntBin::Shr, low, 16);
        let leading = bytes(l, leading);
        let stride = bytes(l, high);
        let base = l.word_op(IntBin::Shr, high, 17);
        let base = l.word_op(IntBin::And, base, 7);
        // 0: none, 1: 128 bytes, 2: 64 bytes, 3: 32 bytes.
        let swizzle = l.word_op(IntBin::Shr, high, 30);
        let four = l.word(4);
        let units_log2 = l.words(IntBin::Sub, four, swizzle);
        let units_log2 = l.word_op(IntBin::And, units_log2, 3);
        let one = l.word(1);
        let units = l.words(IntBin::Shl, one, units_log2);
        let mask = l.word_op(IntBin::Sub, units, 1);
        let zero = l.word(0);
        let is_plain = l.emit1(Op::Icmp(Cmp::Eq, U32), &[swizzle, zero], Ty::Pred);
        let select = |l: &mut Writer<'_>, yes, no| l.emit1(Op::Select, &[is_plain, yes, no], Ty::B32);
        let (down, along) = if is_transposed {
            (select(l, stride, leading), select(l, leading, stride))
        } else {
            let unit = l.word(16);
            (stride, select(l, leading, unit))
        };
        let pitch_log2 = l.word_op(IntBin::Add, units_log2, 4);
        Matrix { is_transposed, start, pitch_log2, units_log2, mask, base, down, along }
    }

    /// This lane's registers of a fragment of `mma`, whose rows are those `eights` of the matrix's rows.
    fn fragment(
        &self,
        l: &mut Writer<'_>,
        lane: &Lane,
        mma: &Mma,
        part: Part,
        eights: &[Value],
    ) -> Vec<Value> {
        let registers = 0..mma.registers(part);
        let per = mma.element(part).per_register();
        registers
            .map(|register| {
                let at = mma.position(part, 0, register, 0);
                let eight = eights[(at.row / 8) as usize];
                // A register's four neighbours fill a unit.
                let step = l.word(at.column / (4 * per));
                let along = l.words(IntBin::Mul, step, self.along);
                if !self.is_transposed {
                    let down = l.words(IntBin::Mul, eight, self.down);
                    let row = l.words(IntBin::Shl, lane.group, self.pitch_log2);
                    let within = l.word_op(IntBin::Shl, lane.four, 2);
                    let address = l.sum(self.start, &[down, row, along, within]);
                    return self.load(l, address, 32);
                }
                let aside = l.words(IntBin::And, eight, self.mask);
                let aside = l.word_op(IntBin::Shl, aside, 4);
                let down = l.words(IntBin::Shr, eight, self.units_log2);
                let down = l.words(IntBin::Mul, down, self.down);
                let within = l.word_op(IntBin::Shl, lane.group, 1);
                let first = l.sum(self.start, &[aside, down, along, within]);
                let row = l.word_op(IntBin::Shl, lane.four, 1);
                let halves = [0, 1].map(|next| {
                    let row = l.word_op(IntBin::Add, row, next);
                    let row = l.words(IntBin::Shl, row, self.pitch_log2);
                    let address = l.words(IntBin::Add, first, row);
                    self.load(l, address, 16)
                });
                l.emit1(Op::Pack, &halves, Ty::B32)
            })
            .collect()
    }

    /// What lies at an address of the matrix as if there were no swizzle.
    fn load(&self, l: &mut Writer<'_>, address: Value, bits: u8) -> Value {
        let row = l.word_op(IntBin::Shr, address, 7);
        let row = l.words(IntBin::Sub, row, self.base);
        let moved = l.words(IntBin::And, row, self.mask);
        let moved = l.word_op(IntBin::Shl, moved, 4);
        let address = l.words(IntBin::Xor, address, moved);
        let address = l.emit1(Op::Zext, &[address], Ty::B64);
        l.emit1(load(Space::Shared, bits, 0), &[address], Ty::of_bits(bits.into()))
    }
}
