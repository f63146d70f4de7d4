//! How a graph's tensors lie in memory: by strides, as rows of so many for each sequence, or as tiles of scales.

use cudnn_cpu::{Kind, Value, View};

use super::descriptor::Descriptor;
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result, memory};

type Name = cudnnBackendAttributeName_t;

#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    Strided,
    /// Each sequence begins where the tensor of this number says, in units of so many elements, and ends where the next begins. Its rows are
    /// along this size.
    Ragged {
        offsets: i64,
        unit: i64,
        axis: usize,
    },
    /// Complex numbers, a real part and an imaginary one each: all real parts are loaded, and then all imaginary ones.
    Complex,
    /// Tiles of 128 by 4 elements, as cuBLAS has scales of blocks: this size is the one with four.
    Tiles {
        inner: usize,
    },
}

/// Elements of a tile.
const TILE: usize = 512;

impl Layout {
    pub fn of(of: &Descriptor, sizes: &[usize], strides: &[isize]) -> Result<Layout> {
        let n = sizes.len();
        let kind = cudnnBackendDescriptorType_t::CUDNN_BACKEND_TENSOR_DESCRIPTOR;
        // How NVIDIA's engines hold what lies in no memory (INT8x32, F16x16) is their own.
        let order = match of.number(Name::CUDNN_ATTR_TENSOR_REORDERING_MODE)? {
            1 | 2 if of.number(Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL)? != 0 => 0,
            order => order,
        };
        if let Some(node) = of.node(Name::CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, kind)? {
            supports(order == 0 && n == 4, "ragged rows of a tensor that has not four sizes")?;
            let offsets = node.lock();
            let count: i64 = offsets.integers(Name::CUDNN_ATTR_TENSOR_DIMENSIONS)?.iter().product();
            require(
                count == sizes[0] as i64 + 1,
                "a ragged tensor's offsets are not one more than it has sequences",
            )?;
            // Rows are longer than what lies within them; keys may be given as columns.
            let axis = if strides[3] > strides[2] { 3 } else { 2 };
            let row = (sizes[5 - axis] as isize - 1) * strides[5 - axis];
            supports(strides[axis] > row || sizes[axis] == 1, "ragged rows that lie in each other")?;
            let unit = of.integer(Name::CUDNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER)?.unwrap_or(1);
            let uid = offsets.integer(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID)?;
            let uid = uid.ok_or(Error::BadParam("a tensor has no unique number"))?;
            return Ok(Layout::Ragged { offsets: uid, unit, axis });
        }
        let is_complex = matches!(
            cudnnDataType_t(of.number(Name::CUDNN_ATTR_TENSOR_DATA_TYPE)?),
            cudnnDataType_t::CUDNN_DATA_COMPLEX_FP32 | cudnnDataType_t::CUDNN_DATA_COMPLEX_FP64
        );
        match order {
            0 if is_complex => Ok(Layout::Complex),
            0 => Ok(Layout::Strided),
            3 => {
                supports(n >= 2, "scales in tiles of less than two sizes")?;
                // The size with four is the one whose elements follow each other, unless only the other one can be.
                let is_tiled = |inner: &usize| {
                    sizes[*inner].is_multiple_of(4) && sizes[2 * n - 3 - inner].is_multiple_of(128)
                };
                let first = if strides[n - 1] == 1 { n - 1 } else { n - 2 };
                let inner = [first, 2 * n - 3 - first].into_iter().find(is_tiled);
                let inner = inner
                    .ok_or(Error::NotSupported("scales in tiles that are not whole tiles of 128 by 4"))?;
                Ok(Layout::Tiles { inner })
            }
            _ => Err(Error::NotSupported("a tensor in another order")),
        }
    }

    /// The tensor that says where rows begin.
    pub fn offsets(&self) -> Option<i64> {
        if let Layout::Ragged { offsets, .. } = self { Some(*offsets) } else { None }
    }

    /// # Safety
    /// The memory has what the layout says.
    pub unsafe fn load<V: Value>(
        &self,
        at: *mut u8,
        kind: Kind,
        (sizes, strides): (&[usize], &[isize]),
        offsets: &[f64],
    ) -> Vec<V> {
        match self {
            // SAFETY: the caller's word.
            Layout::Strided => unsafe { named(at, kind, sizes, strides).load() },
            Layout::Complex => {
                // SAFETY: as above.
                let parts = parts(at, kind, sizes, strides).map(|part| unsafe { part.load::<V>() });
                parts.concat()
            }
            Layout::Ragged { unit, axis, .. } => {
                let mut values = vec![V::of(0.0); sizes.iter().product()];
                // SAFETY: the caller's promise.
                unsafe {
                    for_sequences(at, kind, (sizes, strides), offsets, (*unit, *axis), |first, view| {
                        let part: Vec<V> = view.load();
                        for (number, value) in part.into_iter().enumerate() {
                            values[first + place(number, view.sizes(), sizes)] = value;
                        }
                    })
                };
                values
            }
            Layout::Tiles { inner } => {
                let matrix = sizes[sizes.len() - 2] * sizes[sizes.len() - 1];
                let mut values = vec![V::of(0.0); sizes.iter().product()];
                for (values, at) in values.chunks_mut(matrix).zip(matrices(at, kind, sizes, strides)) {
                    // SAFETY: as above.
                    let tiles: Vec<V> = unsafe { named(at, kind, &[matrix], &[1]).load() };
                    values
                        .iter_mut()
                        .zip(places(sizes, *inner))
                        .for_each(|(value, place)| *value = tiles[place]);
                }
                values
            }
        }
    }

    /// # Safety
    /// As of [`Layout::load`].
    pub unsafe fn store<V: Value>(
        &self,
        at: *mut u8,
        kind: Kind,
        (sizes, strides): (&[usize], &[isize]),
        offsets: &[f64],
        values: &[V],
    ) {
        let (one, zero) = (V::of(1.0), V::of(0.0));
        match self {
            // SAFETY: the caller's word.
            Layout::Strided => unsafe { named(at, kind, sizes, strides).store(values, one, zero) },
            Layout::Complex => {
                let halves = values.chunks_exact(values.len() / 2);
                for (part, values) in parts(at, kind, sizes, strides).iter().zip(halves) {
                    // SAFETY: as above.
                    unsafe { part.store(values, one, zero) };
                }
            }
            Layout::Ragged { unit, axis, .. } => {
                // SAFETY: the caller's promise.
                unsafe {
                    for_sequences(at, kind, (sizes, strides), offsets, (*unit, *axis), |first, view| {
                        let part =
                            (0..view.len()).map(|number| values[first + place(number, view.sizes(), sizes)]);
                        view.store(&part.collect::<Vec<_>>(), one, zero);
                    })
                };
            }
            Layout::Tiles { inner } => {
                let matrix = sizes[sizes.len() - 2] * sizes[sizes.len() - 1];
                for (values, at) in values.chunks(matrix).zip(matrices(at, kind, sizes, strides)) {
                    let mut tiles = vec![zero; matrix];
                    values.iter().zip(places(sizes, *inner)).for_each(|(value, place)| tiles[place] = *value);
                    // SAFETY: as above.
                    unsafe { named(at, kind, &[matrix], &[1]).store(&tiles, one, zero) };
                }
            }
        }
    }
}

/// What a tensor has where it lies, within the work: a run has one tensor after the other, and of some the memory says how much it is.
///
/// # Safety
/// As of [`View::new`].
unsafe fn named(at: *mut u8, kind: Kind, sizes: &[usize], strides: &[isize]) -> View {
    // SAFETY: the caller's word.
    memory::tensor_in_work(unsafe { View::new(at, kind, sizes, strides) })
}

/// The address of an element that begins with a byte.
fn element(at: *mut u8, kind: Kind, offset: isize) -> *mut u8 {
    at.wrapping_offset(offset * kind.bits() as isize / 8)
}

/// The real and the imaginary parts.
fn parts(at: *mut u8, kind: Kind, sizes: &[usize], strides: &[isize]) -> [View; 2] {
    let strides: Vec<isize> = strides.iter().map(|stride| 2 * stride).collect();
    // SAFETY: the callers' word.
    [0, kind.bytes()].map(|offset| unsafe { named(at.wrapping_add(offset), kind, sizes, &strides) })
}

/// The place in a sequence of all rows of an element of one that has fewer.
fn place(number: usize, held: &[usize], sizes: &[usize]) -> usize {
    let (head, row, column) = (number / held[2] / held[1], number / held[2] % held[1], number % held[2]);
    (head * sizes[2] + row) * sizes[3] + column
}

/// Calls `body` with each sequence that has rows, and with each head of it where heads lie apart: its first element's place, and where its own
/// lie. No row begins behind the sequence's end.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn for_sequences(
    at: *mut u8,
    kind: Kind,
    (sizes, strides): (&[usize], &[isize]),
    offsets: &[f64],
    (unit, axis): (i64, usize),
    mut body: impl FnMut(usize, View),
) {
    let is_apart = strides[1] * (sizes[1] as isize - 1) >= strides[axis];
    let (heads, at_once) = if is_apart { (sizes[1], 1) } else { (1, sizes[1]) };
    let of_head = sizes[2] * sizes[3];
    for (batch, ends) in offsets.windows(2).enumerate() {
        let (first, end) = (ends[0] as isize * unit as isize, ends[1] as isize * unit as isize);
        for head in 0..heads {
            let begin = first + head as isize * strides[1];
            let rows = ((end - begin).max(0) as usize).div_ceil(strides[axis].max(1) as usize);
            let rows = rows.min(sizes[axis]);
            if rows == 0 {
                continue;
            }
            let at = element(at, kind, begin);
            let mut held = [at_once, sizes[2], sizes[3]];
            held[axis - 1] = rows;
            // SAFETY: the callers' word.
            let view = unsafe { named(at, kind, &held, &strides[1..]) };
            body((batch * sizes[1] + head) * of_head, view);
        }
    }
}

/// Where each matrix of the last two sizes begins.
fn matrices(at: *mut u8, kind: Kind, sizes: &[usize], strides: &[isize]) -> impl Iterator<Item = *mut u8> {
    let n = sizes.len() - 2;
    let count: usize = sizes[..n].iter().product();
    (0..count).map(move |number| {
        let (mut left, mut offset) = (number, 0);
        for axis in (0..n).rev() {
            offset += (left % sizes[axis]) as isize * strides[axis];
            left /= sizes[axis];
        }
        element(at, kind, offset)
    })
}

/// The place among tiles of each element of a matrix in its order.
fn places(sizes: &[usize], inner: usize) -> impl Iterator<Item = usize> {
    let (rows, columns) = (sizes[sizes.len() - 2], sizes[sizes.len() - 1]);
    let is_last = inner == sizes.len() - 1;
    let across = if is_last { columns / 4 } else { rows / 4 };
    (0..rows * columns).map(move |number| {
        let (row, column) = (number / columns, number % columns);
        let (outer, inner) = if is_last { (row, column) } else { (column, row) };
        let tile = outer / 128 * across + inner / 4;
        tile * TILE + outer % 32 * 16 + outer % 128 / 32 * 4 + inner % 4
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::descriptor::Attribute;

    #[test]
    fn an_order_of_its_own_is_refused_where_it_lies_in_memory() {
        const F16X16: u8 = 2;
        for (is_virtual, is_had) in [(0, false), (1, true)] {
            let mut tensor = Descriptor::new(cudnnBackendDescriptorType_t::CUDNN_BACKEND_TENSOR_DESCRIPTOR);
            for (name, number) in [
                (Name::CUDNN_ATTR_TENSOR_REORDERING_MODE, F16X16),
                (Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual),
            ] {
                let ty = cudnnBackendAttributeType_t::CUDNN_TYPE_BOOLEAN;
                tensor.put(name.0, Attribute::read(ty, 1, vec![number], vec![]).expect("one byte"));
            }
            let layout = Layout::of(&tensor, &[1, 1, 2, 2], &[4, 4, 2, 1]);
            assert_eq!(layout.is_ok_and(|layout| layout == Layout::Strided), is_had, "{is_virtual}");
        }
    }
}
