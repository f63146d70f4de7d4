//! `tcgen05.mma`: D = A × B + D in tensor memory. Which lane and column an element of D has follows from M, from the pair and
//! from `.ws` ("Data Path Layout Organization"); a lane of A in tensor memory is that of the D which it is for.
//!
//! As of `mma`: one exact product after the other, k ascending, each sum rounded once to f32; with scales, sums of what one
//! scale is for are multiplied by it; whole numbers are summed exactly before D is added.

use compiler::tensor_memory::{
    A_IN_TENSOR_MEMORY, BLOCK_16, KIND_SHIFT, Kind, N_WORDS, PAIR, SCALE_D_SHIFT, SPARSE, WRONG, WS,
};

use super::element::{self, Element};
use super::shared::Matrix;
use super::{Memory, Pair};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    F16,
    F32,
    S32,
}

/// What the instruction and its descriptor say.
struct Product {
    kind: Kind,
    a: Element,
    b: Element,
    d: Sum,
    m: usize,
    n: usize,
    k: usize,
    negates: [bool; 2],
    transposes: [bool; 2],
    saturates: bool,
    is_pair: bool,
    is_sparse: bool,
    is_ws: bool,
    /// Of the metadata.
    selector: u32,
    scales: Option<Scales>,
}

#[derive(Clone, Copy)]
struct Scales {
    /// Elements that one is for.
    each: usize,
    /// First byte of a word, of A and of B.
    first: [u32; 2],
    is_ue4m3: bool,
}

/// Rows of D, and of them columns, that lie in lanes side by side.
#[derive(Clone, Copy)]
struct Part {
    lanes: usize,
    rows: usize,
    n_rows: usize,
    columns: usize,
    n_columns: usize,
}

impl Product {
    /// "Instruction descriptor" and the table of kinds and shapes; `None` for what they do not have.
    fn of(operation: u64, descriptor: u32) -> Option<Product> {
        let bits = |first: u32, n: u32| descriptor >> first & ((1 << n) - 1);
        let flag = |bit: u64| operation & bit != 0;
        let kind = Kind::ALL[(operation >> KIND_SHIFT & 15) as usize];
        let (is_pair, is_sparse, is_ws) = (flag(PAIR), flag(SPARSE), flag(WS));
        let small = |code: u32| {
            Some(match code {
                0 => Element::E4m3,
                1 => Element::E5m2,
                3 => Element::E2m3,
                4 => Element::E3m2,
                5 => Element::E2m1,
                _ => return None,
            })
        };
        let element = |code: u32| match (kind, code) {
            (Kind::F16, 0) => Some(Element::F16),
            (Kind::F16, 1) => Some(Element::Bf16),
            (Kind::Tf32, 2) => Some(Element::Tf32),
            (Kind::I8, 0) => Some(Element::U8),
            (Kind::I8, 1) => Some(Element::S8),
            (Kind::F8f6f4 | Kind::Mxf8f6f4, code) => small(code),
            (Kind::Mxf4 | Kind::Mxf4nvf4, 1) => Some(Element::PackedE2m1),
            _ => None,
        };
        let is_packed = matches!(kind, Kind::Mxf4 | Kind::Mxf4nvf4);
        let (a, b) = (element(bits(7, 3))?, element(bits(10, if is_packed { 2 } else { 3 }))?);
        let d = match (kind, bits(4, 2)) {
            (kind, _) if kind.is_scaled() => Sum::F32,
            (Kind::F16 | Kind::F8f6f4, 0) => Sum::F16,
            (Kind::F16 | Kind::Tf32 | Kind::F8f6f4, 1) => Sum::F32,
            (Kind::I8, 2) => Sum::S32,
            _ => return None,
        };
        // Only products of f16 have sums of f16, and of one type.
        if kind == Kind::F16 && d == Sum::F16 && (a, b) != (Element::F16, Element::F16) {
            return None;
        }
        let dense = match kind {
            Kind::F16 => 16,
            Kind::Tf32 => 8,
            Kind::F8f6f4 | Kind::I8 | Kind::Mxf8f6f4 => 32,
            Kind::Mxf4 | Kind::Mxf4nvf4 => 64,
        };
        // K = 96, which only sm_103a has, is not there.
        if is_packed && bits(31, 1) == 1 || (bits(2, 1) == 1) != is_sparse {
            return None;
        }
        let m = if kind.is_scaled() { 128 * bits(27, 2) } else { 16 * bits(24, 5) } as usize;
        let n = 8 * bits(17, 6) as usize;
        let product = Product {
            kind,
            a,
            b,
            d,
            m,
            n,
            k: if is_sparse { 2 * dense } else { dense },
            negates: [bits(13, 1) == 1, bits(14, 1) == 1],
            transposes: [bits(15, 1) == 1, bits(16, 1) == 1],
            saturates: bits(3, 1) == 1,
            is_pair,
            is_sparse,
            is_ws,
            selector: if kind.is_scaled() { 0 } else { bits(0, 2) },
            scales: Scales::of(kind, operation, descriptor)?,
        };
        product.is_legal().then_some(product)
    }

    fn is_legal(&self) -> bool {
        let has_m = match (self.is_ws, self.is_pair, self.kind.is_scaled()) {
            (true, ..) => matches!(self.m, 32 | 64 | 128),
            (false, false, false) => matches!(self.m, 64 | 128),
            (false, false, true) => self.m == 128,
            (false, true, false) => matches!(self.m, 128 | 256),
            (false, true, true) => self.m == 256 || self.m == 128 && !self.is_sparse,
        };
        let step = if self.is_pair { 2 } else { 1 };
        let has_n = match (self.is_ws, self.kind) {
            (true, _) => self.n == 64 || self.n == 128 || self.n == 256 && !self.is_sparse,
            (false, Kind::I8) if !self.is_pair => {
                matches!(self.n, 8 | 24) || self.n.is_multiple_of(16) && self.n > 0
            }
            (false, Kind::I8) => self.n.is_multiple_of(32) && self.n > 0,
            _ => self.n.is_multiple_of(8 * step) && self.n > 0,
        };
        let is_byte = self.b.bits() == 8;
        let can_transpose = [self.a, self.b]
            .iter()
            .zip(self.transposes)
            .all(|(element, is_transposed)| !is_transposed || element.may_be_transposed())
            && (!self.transposes[1] || !is_byte || self.n.is_multiple_of(16 * step));
        let is_int = self.kind == Kind::I8;
        has_m
            && has_n
            && self.n <= 256
            && can_transpose
            && (is_int || !self.saturates)
            && !(is_int && self.negates != [false; 2])
            && (matches!(self.kind, Kind::F16 | Kind::Tf32) && self.is_sparse && self.selector < 2
                || self.selector == 0)
    }

    /// Elements of A along k in memory.
    fn held(&self) -> usize {
        if self.is_sparse { self.k / 2 } else { self.k }
    }

    /// Rows of A and D that a block has.
    fn block_rows(&self) -> usize {
        if self.is_pair { self.m / 2 } else { self.m }
    }

    /// Layouts A to G; `None` where D begins at a lane that its layout does not have.
    fn parts(&self, lane: usize) -> Option<Vec<Part>> {
        let (rows, n) = (self.block_rows(), self.n);
        let whole = Part { lanes: 0, rows: 0, n_rows: rows, columns: 0, n_columns: n };
        let is_half = rows == 64 && !self.is_ws && (!self.is_pair || self.is_sparse);
        if is_half {
            let quarter = |nth: usize| Part { lanes: lane + 32 * nth, rows: 16 * nth, n_rows: 16, ..whole };
            return (lane == 0 || lane == 16).then(|| (0..4).map(quarter).collect());
        }
        // As many times as there are lanes, the rows lie there, each time with the next columns.
        let times = 128 / rows;
        let part = |nth: usize| Part {
            lanes: nth * rows,
            columns: nth * (n / times),
            n_columns: n / times,
            ..whole
        };
        (lane == 0).then(|| (0..times).map(part).collect())
    }
}

impl Scales {
    /// `Some(None)`: the kind has none.
    fn of(kind: Kind, operation: u64, descriptor: u32) -> Option<Option<Scales>> {
        if !kind.is_scaled() {
            return Some(None);
        }
        // Of a sparse A half of the elements are there: one for so many of those.
        let held = if operation & BLOCK_16 != 0 { 16 } else { 32 };
        let each = if operation & SPARSE != 0 { 2 * held } else { held };
        let is_ue4m3 = descriptor >> 23 & 1 == 0;
        let first = [descriptor >> 29 & 3, descriptor >> 4 & 3];
        let fits = match (kind, held) {
            (Kind::Mxf8f6f4, _) => true,
            (_, 32) => first.iter().all(|first| first % 2 == 0),
            _ => first == [0, 0],
        };
        // Only `mxf4nvf4` has ue4m3, for 16 elements each.
        let has_type = !is_ue4m3 || kind == Kind::Mxf4nvf4 && held == 16;
        (fits && has_type).then_some(Some(Scales { each, first, is_ue4m3 }))
    }

    fn number(&self, bits: u32) -> f64 {
        if self.is_ue4m3 { element::ue4m3(bits as u8) } else { element::ue8m0(bits as u8) }
    }
}

/// One of A's rows in memory: numbers, and the k of each.
struct Row {
    numbers: Vec<f32>,
    places: Vec<usize>,
}

/// What [`run`] works on.
struct Work<'a> {
    product: &'a Product,
    words: &'a [u64; N_WORDS],
    is_in_tensor_memory: bool,
    /// Of D.
    column: usize,
    adds: bool,
    divisor_log: u32,
    /// All of B, by k.
    b: Vec<f32>,
}

/// # Safety
/// A kernel asks for it, with the address of its block's tensor memory.
pub unsafe fn run(own: Memory, pair: Option<&Pair>, operation: u64, words: &[u64; N_WORDS]) -> i32 {
    let Some(product) = Product::of(operation, (words[0] >> 32) as u32) else { return WRONG };
    let address = words[0] as u32;
    let Some(parts) = product.parts((address >> 16) as usize) else { return WRONG };
    let blocks = pair.map_or(vec![own], |pair| pair.memories.to_vec());
    // SAFETY: the caller's promise.
    let Some(b) = (unsafe { factor_b(&product, &blocks, words) }) else { return WRONG };
    let work = Work {
        product: &product,
        words,
        is_in_tensor_memory: operation & A_IN_TENSOR_MEMORY != 0,
        column: (address & 0xffff) as usize,
        adds: words[3] >> 32 != 0,
        divisor_log: (operation >> SCALE_D_SHIFT & 15) as u32,
        b,
    };
    for (rank, block) in blocks.iter().enumerate() {
        for part in &parts {
            // SAFETY: the caller's promise.
            if unsafe { work.part(*block, rank, part) }.is_none() {
                return WRONG;
            }
        }
    }
    0
}

/// All of B as numbers, `k × n`; each block of a pair has half of its columns.
///
/// # Safety
/// As for [`run`].
unsafe fn factor_b(product: &Product, blocks: &[Memory], words: &[u64; N_WORDS]) -> Option<Vec<f32>> {
    let Product { n, k, b: element, .. } = *product;
    let mut numbers = vec![0f32; k * n];
    let mut row = vec![0u32; k];
    let sign = if product.negates[1] { -1.0 } else { 1.0 };
    let mask = product.is_ws.then(|| ColumnMask::of(words[4], product.m, n));
    let each = n / blocks.len();
    for (rank, block) in blocks.iter().enumerate() {
        let matrix = Matrix::of(block.shared(), words[2], element, product.transposes[1])?;
        for column in 0..each {
            let shift = mask.as_ref().map_or(0, |mask| mask.shift);
            // SAFETY: the caller's promise.
            unsafe { matrix.row(column + shift, &mut row) };
            let column = rank * each + column;
            if mask.as_ref().is_some_and(|mask| mask.is_zero[column]) {
                continue;
            }
            for (k, &bits) in row.iter().enumerate() {
                numbers[k * n + column] = sign * element.number(bits);
            }
        }
    }
    Some(numbers)
}

/// "Zero-Column Mask Descriptor"; 0 has no effect.
struct ColumnMask {
    is_zero: Vec<bool>,
    shift: usize,
}

impl ColumnMask {
    fn of(descriptor: u64, m: usize, n: usize) -> ColumnMask {
        let byte = |first: usize| (descriptor >> first & 0xff) as usize;
        let mut is_zero = vec![false; n];
        if descriptor >> 39 & 1 == 1 {
            let (zeros, used) = (byte(40) + 1, byte(48) + 1);
            let n_parts = 128 / m;
            for (nth, part) in is_zero.chunks_mut(n / n_parts).enumerate() {
                // A first span of 1 begins with zeros; the start count leaves out its first columns.
                let begins_with_zeros = descriptor >> (32 + nth) & 1 == 1;
                for (column, is_zero) in part.iter_mut().enumerate() {
                    let at = (column + byte(8 * nth)) % (zeros + used);
                    *is_zero = if begins_with_zeros { at < zeros } else { at >= used };
                }
            }
        }
        ColumnMask { is_zero, shift: (descriptor >> 56 & 0x3f) as usize }
    }
}

impl Work<'_> {
    /// # Safety
    /// As for [`run`].
    unsafe fn part(&self, block: Memory, rank: usize, part: &Part) -> Option<()> {
        let product = self.product;
        for nth in 0..part.n_rows {
            let lane = part.lanes + nth;
            if self.is_disabled(128 * rank + lane) {
                continue;
            }
            // SAFETY: the caller's promise.
            let row = unsafe { self.row_of_a(block, part.rows + nth, lane)? };
            let column = self.column;
            let place = |nth: usize| (lane, column + nth);
            if product.kind == Kind::I8 {
                let sums = self.whole_sums(&row, part);
                for (nth, sum) in sums.into_iter().enumerate() {
                    let (lane, column) = place(nth);
                    // SAFETY: the caller's promise.
                    let old = if self.adds { unsafe { block.read(lane, column) }.cast_signed() } else { 0 };
                    let sum = sum + i64::from(old);
                    let sum = match product.saturates {
                        true => sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32,
                        false => sum as i32,
                    };
                    // SAFETY: the caller's promise.
                    unsafe { block.write(lane, column, sum.cast_unsigned()) };
                }
                continue;
            }
            let mut sums = vec![0f32; part.n_columns];
            if self.adds {
                let factor = 2f32.powi(-(self.divisor_log as i32));
                for (nth, sum) in sums.iter_mut().enumerate() {
                    let (lane, column) = place(nth);
                    // SAFETY: the caller's promise.
                    let word = unsafe { block.read(lane, column) };
                    let old =
                        if product.d == Sum::F16 { element::f16_number(word) } else { f32::from_bits(word) };
                    *sum = old * factor;
                }
            }
            match product.scales {
                // SAFETY: the caller's promise.
                Some(scales) => unsafe { self.add_scaled(block, &scales, &row, lane, part, nth, &mut sums) },
                None => {
                    for (&number, &k) in row.numbers.iter().zip(&row.places) {
                        let b = &self.b[k * product.n + part.columns..][..part.n_columns];
                        add_product(&mut sums, number, b);
                    }
                }
            }
            for (nth, sum) in sums.into_iter().enumerate() {
                let (lane, column) = place(nth);
                let word = match product.d {
                    Sum::F16 => element::f16_bits(sum),
                    _ if sum.is_nan() => 0x7fff_ffff,
                    _ => sum.to_bits(),
                };
                // SAFETY: the caller's promise.
                unsafe { block.write(lane, column, word) };
            }
        }
        Some(())
    }

    /// Bits 0 to 127 are the lanes of the block, of a pair of the even one, the others those of the odd one.
    fn is_disabled(&self, lane: usize) -> bool {
        let has_mask = !self.product.is_ws && self.product.scales.is_none();
        has_mask && self.words[4 + lane / 64] >> (lane % 64) & 1 == 1
    }

    /// # Safety
    /// As for [`run`].
    unsafe fn row_of_a(&self, block: Memory, row: usize, lane: usize) -> Option<Row> {
        let product = self.product;
        let mut bits = vec![0u32; product.held()];
        if self.is_in_tensor_memory {
            let address = self.words[1] as u32;
            let column = (address & 0xffff) as usize;
            for (k, bits) in bits.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                *bits = product.a.of_row(k, |word| unsafe { block.read(lane, column + word) });
            }
        } else {
            let matrix = Matrix::of(block.shared(), self.words[1], product.a, product.transposes[0])?;
            // SAFETY: the caller's promise.
            unsafe { matrix.row(row, &mut bits) };
        }
        let sign = if product.negates[0] { -1.0 } else { 1.0 };
        let numbers = bits.iter().map(|&bits| sign * product.a.number(bits)).collect();
        let places = match product.is_sparse {
            // SAFETY: the caller's promise.
            true => unsafe { self.places(block, lane) },
            false => (0..product.k).collect(),
        };
        Some(Row { numbers, places })
    }

    /// The k of each element of a row of a sparse A, from the metadata in tensor memory.
    ///
    /// # Safety
    /// As for [`run`].
    unsafe fn places(&self, block: Memory, lane: usize) -> Vec<usize> {
        let product = self.product;
        let address = self.words[3] as u32;
        let column = (address & 0xffff) as usize + product.selector as usize;
        // SAFETY: the caller's promise.
        let word = |lane: usize, column: usize| unsafe { block.read(lane, column) };
        let metadata = if product.a.bits() >= 16 {
            // Rows 0 to 7 of 16 have the lower halves of words, the others the upper ones; lanes 0 to 7 have the first half
            // along k, the others the second.
            let (sixteen, row) = (lane / 16 * 16, lane % 16);
            let half = |lane: usize| u64::from(word(lane, column) >> (16 * (row / 8)) & 0xffff);
            half(sixteen + row % 8) | half(sixteen + row % 8 + 8) << 16
        } else {
            u64::from(word(lane, column)) | u64::from(word(lane, column + 1)) << 32
        };
        let two = |nth: usize| (metadata >> (2 * nth) & 3) as usize;
        let n_held = product.held();
        match product.kind {
            // 0b1110 is the upper of two, 0b0100 the lower.
            Kind::Tf32 => (0..n_held).map(|nth| 2 * nth + usize::from(two(2 * nth) / 2 == 1)).collect(),
            // Pairs of neighbours.
            Kind::Mxf4 | Kind::Mxf4nvf4 => {
                (0..n_held).map(|nth| nth / 4 * 8 + 2 * two(nth / 2) + nth % 2).collect()
            }
            _ => (0..n_held).map(|nth| nth / 2 * 4 + two(nth)).collect(),
        }
    }

    fn whole_sums(&self, row: &Row, part: &Part) -> Vec<i64> {
        let mut sums = vec![0i64; part.n_columns];
        for (&number, &k) in row.numbers.iter().zip(&row.places) {
            let b = &self.b[k * self.product.n + part.columns..][..part.n_columns];
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum += number as i64 * b as i64;
            }
        }
        sums
    }

    /// # Safety
    /// As for [`run`].
    #[expect(clippy::too_many_arguments, reason = "what a row of a part is made of")]
    unsafe fn add_scaled(
        &self,
        block: Memory,
        scales: &Scales,
        row: &Row,
        lane: usize,
        part: &Part,
        nth: usize,
        sums: &mut [f32],
    ) {
        let [a, b] = [self.words[4] as u32, (self.words[4] >> 32) as u32];
        // The row's lane has the scales that it needs in its 32 lanes: row r in lane r % 32, column r / 32, a byte for each.
        let scale = |address: u32, first: u32, row: usize, which: usize| {
            let column = (address & 0xffff) as usize + row / 32;
            // SAFETY: the caller's promise.
            let word = unsafe { block.read(lane / 32 * 32 + row % 32, column) };
            scales.number(word >> (8 * (first as usize + which)))
        };
        let mut first = 0;
        for which in 0..self.product.k / scales.each {
            let end = (which + 1) * scales.each;
            let mut partial = vec![0f32; sums.len()];
            while first < row.places.len() && row.places[first] < end {
                let at = row.places[first] * self.product.n + part.columns;
                add_product(&mut partial, row.numbers[first], &self.b[at..][..part.n_columns]);
                first += 1;
            }
            let of_a = scale(a, scales.first[0], part.rows + nth, which);
            for (column, (sum, partial)) in sums.iter_mut().zip(partial).enumerate() {
                let of_b = scale(b, scales.first[1], column, which);
                *sum = (f64::from(*sum) + f64::from(partial) * (of_a * of_b)) as f32;
            }
        }
    }
}

/// `sums += number × row`, each rounded once.
fn add_product(sums: &mut [f32], number: f32, row: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("fma") && std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has both.
        return unsafe { add_product_fma(sums, number, row) };
    }
    for (sum, &other) in sums.iter_mut().zip(row) {
        *sum = number.mul_add(other, *sum);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_product_fma(sums: &mut [f32], number: f32, row: &[f32]) {
    for (sum, &other) in sums.iter_mut().zip(row) {
        *sum = number.mul_add(other, *sum);
    }
}
