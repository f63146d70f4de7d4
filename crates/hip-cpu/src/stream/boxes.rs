//! Boxes of memory: rows of bytes, rows of rows (slices), that are copied and set.

/// A box of memory to copy or set: rows of `width` bytes, `height` rows, `depth` slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

/// Where a box begins and how far its rows and slices are apart.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub at: usize,
    pub pitch: usize,
    pub slice: usize,
}

impl Shape {
    pub fn of_row(width: usize) -> Shape {
        Shape { width, height: 1, depth: 1 }
    }

    pub fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// The same bytes in as few rows as they have at these places: memory moves megabytes faster in one piece than in rows of a
    /// few thousand.
    fn joined(self, places: &[Place]) -> Shape {
        let Shape { mut width, mut height, mut depth } = self;
        if height > 1 && places.iter().all(|place| place.pitch == width) {
            (width, height) = (width * height, 1);
        }
        if height == 1 && depth > 1 && places.iter().all(|place| place.slice == width) {
            (width, depth) = (width * depth, 1);
        }
        Shape { width, height, depth }
    }
}

impl Place {
    /// Of one row.
    pub fn of_row(at: usize) -> Place {
        Place { at, pitch: 0, slice: 0 }
    }

    fn row(&self, y: usize, z: usize) -> usize {
        self.at + z * self.slice + y * self.pitch
    }
}

/// # Safety
/// Both boxes lie in memory that stays valid.
pub unsafe fn copy_box(to: Place, from: Place, shape: Shape) {
    let shape = shape.joined(&[to, from]);
    for z in 0..shape.depth {
        for y in 0..shape.height {
            // SAFETY: a row of each box.
            unsafe { std::ptr::copy(from.row(y, z) as *const u8, to.row(y, z) as *mut u8, shape.width) };
        }
    }
}

/// # Safety
/// The box lies in memory that stays valid; its places are multiples of `unit`.
pub unsafe fn set_box(to: Place, shape: Shape, value: u32, unit: usize) {
    let shape = shape.joined(&[to]);
    for z in 0..shape.depth {
        for y in 0..shape.height {
            let row = to.row(y, z);
            let count = shape.width / unit;
            // SAFETY: a row of the box, aligned to its unit (checked at enqueue).
            unsafe {
                match unit {
                    1 => (row as *mut u8).write_bytes(value as u8, count),
                    2 => std::slice::from_raw_parts_mut(row as *mut u16, count).fill(value as u16),
                    _ => std::slice::from_raw_parts_mut(row as *mut u32, count).fill(value),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boxes of 3 × 4 × 2 bytes whose rows and slices are this far apart.
    const SHAPE: Shape = Shape { width: 3, height: 4, depth: 2 };
    const APART: [(usize, usize); 4] = [(3, 12), (3, 14), (5, 20), (5, 23)];

    fn at(memory: &mut [u8], (pitch, slice): (usize, usize)) -> Place {
        Place { at: memory.as_mut_ptr() as usize, pitch, slice }
    }

    #[test]
    fn bytes_between_rows_and_slices_stay_as_they_are() {
        for to_apart in APART {
            for from_apart in APART {
                let mut from: Vec<u8> = (1..=64).collect();
                let mut to = [0_u8; 64];
                // SAFETY: 64 bytes hold any of the boxes.
                unsafe { copy_box(at(&mut to, to_apart), at(&mut from, from_apart), SHAPE) };
                let mut wanted = [0; 64];
                for (x, y, z) in (0..24).map(|n| (n % 3, n / 3 % 4, n / 12)) {
                    wanted[z * to_apart.1 + y * to_apart.0 + x] =
                        from[z * from_apart.1 + y * from_apart.0 + x];
                }
                assert_eq!(to, wanted, "{to_apart:?} from {from_apart:?}");
            }
            let mut set = [0_u8; 64];
            // SAFETY: as above.
            unsafe { set_box(at(&mut set, to_apart), SHAPE, 7, 1) };
            assert_eq!(set.iter().filter(|&&it| it == 7).count(), 24);
            assert!((0..24).all(|n| set[n / 12 * to_apart.1 + n / 3 % 4 * to_apart.0 + n % 3] == 7));
        }
    }

    #[test]
    fn rows_without_gaps_are_one() {
        let joined = |pitch, slice| SHAPE.joined(&[at(&mut [], (pitch, slice))]);
        assert_eq!(joined(3, 12), Shape::of_row(24));
        assert_eq!(joined(3, 14), Shape { width: 12, height: 1, depth: 2 });
        assert_eq!(joined(5, 20), SHAPE);
    }
}
