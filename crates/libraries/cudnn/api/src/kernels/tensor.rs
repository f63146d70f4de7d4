//! Tensors as kernels take them. The structures are those of api/kernels/tensors.cuh.

use cudnn_cpu::Kind;

/// The most sizes that a launch goes over.
pub const MOST: usize = 8;

const NUMBER: u32 = 11;
const PLACE: u32 = 12;
const NONE: u32 = 13;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Tensor {
    at: u64,
    kind: u32,
    unused: u32,
    outer: [i64; MOST],
    inner: [i64; MOST],
}

impl Tensor {
    /// Nothing is there.
    pub const NONE: Tensor = Tensor { at: 0, kind: NONE, unused: 0, outer: [0; MOST], inner: [0; MOST] };

    /// How far elements are along sizes that a kernel goes over by itself.
    pub fn go_along(&mut self, strides: &[i64]) {
        self.outer.iter_mut().zip(strides).for_each(|(to, from)| *to = *from);
    }

    /// How far rows and columns of a matrix are from each other.
    pub fn lie(&mut self, rows: i64, columns: i64) {
        (self.inner[0], self.inner[1]) = (rows, columns);
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub count: u32,
    n: u32,
    of: [u32; MOST],
}

/// The number by which kernels know a type, if they have it.
pub fn kind(of: Kind) -> Option<u32> {
    const KINDS: [Kind; 11] = [
        Kind::F32,
        Kind::F64,
        Kind::F16,
        Kind::Bf16,
        Kind::E4M3,
        Kind::E5M2,
        Kind::I8,
        Kind::U8,
        Kind::I32,
        Kind::I64,
        Kind::Bool,
    ];
    KINDS.iter().position(|kind| *kind == of).map(|number| number as u32)
}

/// What a kernel takes or gives: memory, a number or places, and its strides along the sizes that a launch goes over.
#[derive(Clone, Debug)]
pub struct Operand {
    at: u64,
    kind: u32,
    bytes: usize,
    pub strides: Vec<i64>,
}

impl Operand {
    /// Elements of a type that kernels have.
    pub fn memory(at: *const u8, of: Kind, strides: Vec<i64>) -> Option<Operand> {
        Some(Operand { at: at.expose_provenance() as u64, kind: kind(of)?, bytes: of.bytes(), strides })
    }

    pub fn number(value: f64) -> Operand {
        let bits = (value as f32).to_bits();
        Operand { at: bits.into(), kind: NUMBER, bytes: 0, strides: Vec::new() }
    }

    /// The place along the axis, from `first` on.
    pub fn place(first: usize, axis: usize, n: usize) -> Operand {
        let mut strides = vec![0; n];
        strides[axis] = 1;
        Operand { at: first as u64, kind: PLACE, bytes: 0, strides }
    }

    /// The number of each element of these sizes, the last of which goes first.
    pub fn element(sizes: &[usize]) -> Operand {
        Operand { at: 0, kind: PLACE, bytes: 0, strides: packed(sizes, &vec![false; sizes.len()]).0 }
    }

    /// Nothing is taken or given.
    pub fn none() -> Operand {
        Operand { at: 0, kind: NONE, bytes: 0, strides: Vec::new() }
    }

    /// The element so many further on.
    #[must_use]
    pub fn moved(mut self, by: i64) -> Operand {
        self.at = self.at.wrapping_add_signed(by * self.bytes as i64);
        self
    }

    pub fn is_none(&self) -> bool {
        self.kind == NONE
    }

    fn is_memory(&self) -> bool {
        self.bytes > 0
    }

    /// The bytes between which its elements lie.
    fn extent(&self, sizes: &[usize]) -> (i64, i64) {
        let (mut low, mut high) = (self.at as i64, self.at as i64);
        for (size, stride) in sizes.iter().zip(&self.strides) {
            let far = (*size as i64 - 1) * stride * self.bytes as i64;
            if far < 0 { low += far } else { high += far }
        }
        (low, high + self.bytes as i64)
    }

    /// Whether what is written here, of these sizes, changes nothing that is read there, of those.
    pub fn is_apart(&self, sizes: &[usize], (read, read_sizes): (&Operand, &[usize])) -> bool {
        let ((low, high), (first, end)) = (self.extent(sizes), read.extent(read_sizes));
        !self.is_memory() || !read.is_memory() || high <= first || end <= low
    }

    /// Whether that holds, or each element is read where it is written.
    pub fn is_apart_or_in_place(&self, read: &Operand, sizes: &[usize]) -> bool {
        let along = |at: usize| sizes[at] == 1 || self.stride(at) == read.stride(at);
        let is_same = self.at == read.at && self.kind == read.kind && (0..sizes.len()).all(along);
        is_same || self.is_apart(sizes, (read, sizes))
    }

    fn stride(&self, axis: usize) -> i64 {
        self.strides.get(axis).copied().unwrap_or(0)
    }
}

/// Numbers that a kernel counts in 32 bits, half of which are for those that are negative on the way.
pub fn small(of: usize) -> Option<u32> {
    u32::try_from(of).ok().filter(|it| *it <= i32::MAX as u32)
}

pub fn three(of: [usize; 3]) -> Option<[u32; 3]> {
    let [a, b, c] = of.map(small);
    Some([a?, b?, c?])
}

/// A tensor as kernels take it that go along five sizes: the image, the channel and three of its own.
pub fn five(of: &Operand) -> Option<Tensor> {
    let mut strides = of.strides.clone();
    while strides.len() < 5 {
        strides.insert(2, 0);
    }
    let mut tensor = space(&[], &[], core::slice::from_ref(of))?.tensors[0];
    tensor.go_along(&strides);
    Some(tensor)
}

/// What a launch goes over: places along outer sizes, and along inner ones for each of those.
pub struct Space {
    pub outer: Sizes,
    pub inner: Sizes,
    pub tensors: Vec<Tensor>,
}

/// Strides of numbers without gaps, one for each place along the outer sizes; and how many they are.
pub fn packed(sizes: &[usize], is_inner: &[bool]) -> (Vec<i64>, usize) {
    let (mut strides, mut count) = (vec![0; sizes.len()], 1);
    for at in (0..sizes.len()).rev().filter(|&at| !is_inner[at]) {
        strides[at] = count as i64;
        count *= sizes[at];
    }
    (strides, count)
}

/// The launch over these sizes, of which the inner ones are marked; none where there are too many places or sizes. Sizes along which all
/// tensors go on as before are one, and elements of the first tensor that lie together follow each other.
pub fn space(sizes: &[usize], is_inner: &[bool], operands: &[Operand]) -> Option<Space> {
    let mut tensors: Vec<Tensor> = operands
        .iter()
        .map(|it| Tensor { at: it.at, kind: it.kind, unused: 0, outer: [0; MOST], inner: [0; MOST] })
        .collect();
    let mut side = |inner: bool| {
        let mut axes: Vec<usize> =
            (0..sizes.len()).filter(|&at| is_inner[at] == inner && sizes[at] != 1).collect();
        axes.sort_by_key(|&axis| core::cmp::Reverse(operands[0].stride(axis).abs()));
        let (of, strides) = merged(&axes, sizes, operands);
        let count = u32::try_from(of.iter().product::<usize>()).ok()?;
        if of.len() > MOST {
            return None;
        }
        let mut made = Sizes { count, n: of.len() as u32, of: [1; MOST] };
        for (at, size) in of.iter().enumerate() {
            made.of[at] = *size as u32;
            for (tensor, strides) in tensors.iter_mut().zip(&strides) {
                let to = if inner { &mut tensor.inner } else { &mut tensor.outer };
                to[at] = strides[at];
            }
        }
        Some(made)
    };
    let (outer, inner) = (side(false)?, side(true)?);
    Some(Space { outer, inner, tensors })
}

/// The sizes of these axes, and each operand's strides along them.
fn merged(axes: &[usize], sizes: &[usize], operands: &[Operand]) -> (Vec<usize>, Vec<Vec<i64>>) {
    let mut of: Vec<usize> = Vec::new();
    let mut strides: Vec<Vec<i64>> = vec![Vec::new(); operands.len()];
    for &axis in axes {
        let size = sizes[axis];
        let goes_on = |(own, it): (&Vec<i64>, &Operand)| {
            own.last().is_some_and(|last| *last == it.stride(axis) * size as i64)
        };
        let is_one = !of.is_empty() && strides.iter().zip(operands).all(goes_on);
        match of.last_mut() {
            Some(last) if is_one => *last *= size,
            _ => of.push(size),
        }
        for (own, it) in strides.iter_mut().zip(operands) {
            if is_one {
                own.pop();
            }
            own.push(it.stride(axis));
        }
    }
    (of, strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: usize, strides: &[i64]) -> Operand {
        let at = core::ptr::without_provenance(address);
        Operand::memory(at, Kind::F32, strides.to_vec()).unwrap()
    }

    #[test]
    fn sizes_that_go_on_as_before_are_one() {
        // Channels last to channels last, and a number for each channel.
        let sizes = [2, 3, 4, 5];
        let last = [60, 1, 15, 3];
        let space = space(&sizes, &[false; 4], &[at(64, &last), at(4096, &last), at(8192, &[0, 1, 0, 0])]);
        let space = space.unwrap();
        assert_eq!((space.outer.count, space.outer.n, &space.outer.of[..2]), (120, 2, &[40, 3][..]));
        let strides = |number: usize| &space.tensors[number].outer[..2];
        assert_eq!((strides(0), strides(1), strides(2)), (&[3, 1][..], &[3, 1][..], &[0, 1][..]));
        assert_eq!((space.inner.count, space.inner.n), (1, 0));
    }

    #[test]
    fn what_is_written_may_be_read_in_its_place_alone() {
        let sizes = [4, 8];
        let to = at(4096, &[8, 1]);
        let is_apart = |read: &Operand| to.is_apart(&sizes, (read, &sizes));
        assert!(is_apart(&at(4096 + 128, &[8, 1])));
        assert!(!is_apart(&at(4096, &[8, 1])));
        assert!(to.is_apart_or_in_place(&at(4096, &[8, 1]), &sizes));
        assert!(!to.is_apart_or_in_place(&at(4100, &[8, 1]), &sizes));
        assert!(!to.is_apart_or_in_place(&at(4096, &[1, 4]), &sizes));
        assert!(is_apart(&Operand::number(1.0)));
    }
}
