//! Elements that are less than a byte, or rare enough that no loop is compiled for each: they are read and written through `f64`.
//!
//! The first of those that share a byte is in its lowest bits, as CUDA's vector types of them have it.

/// How many bits an element has, and what they mean.
pub(crate) struct Code {
    bits: usize,
    decode: fn(u32) -> f64,
    encode: fn(f64) -> u32,
}

pub(crate) static BIT: Code = Code { bits: 1, decode: f64::from, encode: |value| u32::from(value != 0.0) };

pub(crate) static I4: Code = Code {
    bits: 4,
    decode: |bits| f64::from(((bits << 28) as i32) >> 28),
    encode: |value| (value.round_ties_even().clamp(-8.0, 7.0) as i32) as u32 & 15,
};

pub(crate) static U4: Code =
    Code { bits: 4, decode: f64::from, encode: |value| value.round_ties_even().clamp(0.0, 15.0) as u32 };

pub(crate) static U32: Code =
    Code { bits: 32, decode: f64::from, encode: |value| value.round_ties_even() as u32 };

pub(crate) static E2M1: Code = Code {
    bits: 4,
    decode: |bits| {
        let size = E2M1_SIZES[bits as usize & 7];
        if bits & 8 == 0 { size } else { -size }
    },
    encode: |value| nearest_e2m1(value.abs()) | if value.is_sign_negative() { 8 } else { 0 },
};

/// What is not a power of two becomes the next larger one, as scales are made.
pub(crate) static E8M0: Code = Code {
    bits: 8,
    decode: |bits| if bits == 255 { f64::NAN } else { f64::from(bits as i32 - 127).exp2() },
    encode: |value| {
        if value.is_nan() {
            return 255;
        }
        let exponent = value.log2().ceil();
        (exponent.clamp(-127.0, 127.0) as i32 + 127) as u32
    },
};

/// The eight numbers without a sign.
const E2M1_SIZES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The nearest, the one with an even last bit where two are; what is larger than all becomes the largest, and so does a NaN.
fn nearest_e2m1(size: f64) -> u32 {
    if size.is_nan() {
        return 7;
    }
    let above = E2M1_SIZES.iter().position(|it| *it >= size).unwrap_or(7);
    if above == 0 || E2M1_SIZES[above] <= size {
        return above as u32;
    }
    let (low, high) = (size - E2M1_SIZES[above - 1], E2M1_SIZES[above] - size);
    let is_lower = low < high || (low == high && above % 2 == 1);
    (if is_lower { above - 1 } else { above }) as u32
}

impl Code {
    /// The byte, and how far its bits are to be moved.
    fn place(&self, offset: isize) -> (isize, u32) {
        let bit = offset * self.bits as isize;
        (bit.div_euclid(8), bit.rem_euclid(8) as u32)
    }

    /// # Safety
    /// There is an element so far from the address.
    pub(crate) unsafe fn read(&self, at: *const u8, offset: isize) -> f64 {
        let (byte, shift) = self.place(offset);
        // SAFETY: the caller's word.
        let at = unsafe { at.offset(byte) };
        if self.bits == 32 {
            // SAFETY: as above.
            return (self.decode)(unsafe { at.cast::<u32>().read_unaligned() });
        }
        // SAFETY: as above.
        let bits = u32::from(unsafe { at.read() }) >> shift;
        (self.decode)(bits & ((1 << self.bits) - 1))
    }

    /// # Safety
    /// There is an element so far from the address, and nobody else uses its byte meanwhile.
    pub(crate) unsafe fn write(&self, at: *mut u8, offset: isize, value: f64) {
        let (byte, shift) = self.place(offset);
        let bits = (self.encode)(value);
        // SAFETY: the caller's word.
        unsafe {
            let at = at.offset(byte);
            if self.bits == 32 {
                at.cast::<u32>().write_unaligned(bits);
                return;
            }
            let mask = ((1_u32 << self.bits) - 1) << shift;
            at.write((u32::from(at.read()) & !mask | (bits << shift) & mask) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_gives_back_what_it_was_given_and_rounds_to_the_nearest() {
        for code in [&BIT, &I4, &U4, &E2M1, &E8M0] {
            for bits in 0..1_u32 << code.bits {
                let value = (code.decode)(bits);
                assert_eq!((code.encode)(value), bits, "{value}");
            }
        }
        let e2m1 = |value: f64| (E2M1.decode)((E2M1.encode)(value));
        let cases = [
            (0.25, 0.0),
            (0.26, 0.5),
            (0.75, 1.0),
            (2.5, 2.0),
            (3.5, 4.0),
            (5.0, 4.0),
            (5.1, 6.0),
            (9.0, 6.0),
            (-1.25, -1.0),
        ];
        assert!(cases.iter().all(|(value, expected)| e2m1(*value) == *expected));
        let e8m0 = |value: f64| (E8M0.decode)((E8M0.encode)(value));
        assert!(
            [(1.0, 1.0), (1.1, 2.0), (0.3, 0.5), (0.0, 2.0_f64.powi(-127))]
                .iter()
                .all(|(a, b)| e8m0(*a) == *b)
        );
    }

    #[test]
    fn elements_that_share_a_byte_leave_each_other_alone() {
        let mut memory = [0xff_u8; 2];
        // SAFETY: the four are there.
        unsafe {
            U4.write(memory.as_mut_ptr(), 1, 3.0);
            U4.write(memory.as_mut_ptr(), 2, 5.0);
            assert_eq!(U4.read(memory.as_ptr(), 0), 15.0);
        }
        assert_eq!(memory, [0x3f, 0xf5]);
    }
}
