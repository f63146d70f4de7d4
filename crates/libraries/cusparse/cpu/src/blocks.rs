//! Where matrices of rectangular blocks have entries. A matrix by rows without blocks is one whose blocks are single values.

use crate::Index;

/// The size of a block, and how its values lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub rows: usize,
    pub cols: usize,
    pub row_major: bool,
}

impl Blocks {
    pub const SINGLE: Blocks = Blocks { rows: 1, cols: 1, row_major: true };

    /// How many values a block has.
    pub fn area(self) -> usize {
        self.rows * self.cols
    }

    fn at(self, row: usize, column: usize) -> usize {
        if self.row_major { row * self.cols + column } else { column * self.rows + row }
    }
}

/// Rows of blocks, and the columns of the blocks in them.
#[derive(Clone, Copy)]
pub struct Blocked<'a, I> {
    pub offsets: &'a [I],
    pub indices: &'a [I],
    pub base: usize,
    pub blocks: Blocks,
}

impl<I: Index> Blocked<'_, I> {
    pub fn block_rows(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub fn rows(&self) -> usize {
        self.block_rows() * self.blocks.rows
    }

    fn line(&self, block_row: usize) -> core::ops::Range<usize> {
        self.offsets[block_row].place(self.base)..self.offsets[block_row + 1].place(self.base)
    }

    pub fn has_block(&self, row: usize, column: usize) -> bool {
        self.indices[self.line(row)].iter().any(|index| index.place(self.base) == column)
    }

    /// Calls `each` with the column and the place in memory of each value of a row.
    pub fn row(&self, row: usize, mut each: impl FnMut(usize, usize)) {
        let Blocks { rows, cols, .. } = self.blocks;
        for block in self.line(row / rows) {
            let column = self.indices[block].place(self.base).wrapping_mul(cols);
            let first = block * self.blocks.area();
            (0..cols).for_each(|k| each(column.wrapping_add(k), first + self.blocks.at(row % rows, k)));
        }
    }
}

/// The same matrix in other blocks.
pub struct Regrouped<'a, I> {
    pub from: Blocked<'a, I>,
    /// Of the matrix, whose last blocks may stand out.
    pub rows: usize,
    pub cols: usize,
    pub to: Blocks,
}

impl<I: Index> Regrouped<'_, I> {
    /// Calls `each` with the columns of the blocks of every row of blocks, in order.
    fn lines(&self, mut each: impl FnMut(usize, &[usize])) {
        let mut seen = vec![0; self.cols.div_ceil(self.to.cols)];
        let mut columns = Vec::new();
        for line in 0..self.rows.div_ceil(self.to.rows) {
            columns.clear();
            for row in line * self.to.rows..self.rows.min((line + 1) * self.to.rows) {
                self.from.row(row, |column, _| {
                    assert!(column < self.cols, "a column behind the last");
                    let block = column / self.to.cols;
                    if seen[block] != line + 1 {
                        seen[block] = line + 1;
                        columns.push(block);
                    }
                });
            }
            columns.sort_unstable();
            each(line, &columns);
        }
    }

    /// Where rows of blocks begin. The number of blocks.
    pub fn offsets<J: Index>(&self, base: usize, offsets: &mut [J]) -> usize {
        let mut count = 0;
        self.lines(|line, columns| {
            offsets[line] = J::number(count, base);
            count += columns.len();
        });
        if let Some(last) = offsets.last_mut() {
            *last = J::number(count, base);
        }
        count
    }

    /// The columns of the blocks, and their values: 0 where the matrix has no entry.
    pub fn fill<J: Index, T: Copy + Default>(
        &self,
        from: &[T],
        base: usize,
        (indices, values): (&mut [J], &mut [T]),
    ) {
        let mut next = 0;
        let mut places = vec![0; self.cols.div_ceil(self.to.cols)];
        self.lines(|line, columns| {
            for &column in columns {
                (indices[next], places[column]) = (J::number(column, base), next);
                values[next * self.to.area()..][..self.to.area()].fill(T::default());
                next += 1;
            }
            for row in line * self.to.rows..self.rows.min((line + 1) * self.to.rows) {
                self.from.row(row, |column, at| {
                    let inner = self.to.at(row % self.to.rows, column % self.to.cols);
                    values[places[column / self.to.cols] * self.to.area() + inner] = from[at];
                });
            }
        });
    }
}
