//! What matrices in tests are made of: types of elements, and small whole numbers in them.
#![allow(dead_code, reason = "not every test needs all of it")]

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum T {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    E2m1,
    F32,
    F64,
    S4,
    U4,
    S8,
    U8,
    S32,
    B1,
}
#[allow(unused_imports, reason = "not every test names them")]
pub use T::*;

impl T {
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    pub fn bits(self) -> usize {
        match self {
            B1 => 1,
            S4 | U4 | E2m1 => 4,
            E2m3 | E3m2 => 6,
            E4m3 | E5m2 | S8 | U8 => 8,
            F16 | Bf16 => 16,
            Tf32 | F32 | S32 => 32,
            F64 => 64,
        }
    }

    /// Bytes of its register.
    pub fn bytes(self) -> usize {
        if self == F64 { 8 } else { 4 }
    }

    pub fn per_register(self) -> usize {
        self.bytes() * 8 / self.bits()
    }

    /// Register prefix in the texts here.
    pub fn register(self) -> &'static str {
        match self {
            F32 => "%f",
            F64 => "%d",
            _ => "%r",
        }
    }

    /// Bits of a whole number that the type has.
    pub fn encode(self, value: i64) -> u64 {
        let single = |value: i64| u64::from((value as f32).to_bits());
        // Sign, exponent with its own bias, the mantissa's upper bits.
        let float = |exponent_bits: u32, mantissa_bits: u32| {
            let bits = single(value);
            let sign = bits >> 31 << (exponent_bits + mantissa_bits);
            if value == 0 {
                return sign;
            }
            let exponent = (bits >> 23 & 0xff) + (1 << (exponent_bits - 1)) - 1 - 127;
            let mantissa = (bits & 0x7f_ffff) >> (23 - mantissa_bits);
            assert_eq!(mantissa << (23 - mantissa_bits), bits & 0x7f_ffff, "{value} in {self:?}");
            sign | exponent << mantissa_bits | mantissa
        };
        match self {
            F16 => float(5, 10),
            Bf16 => float(8, 7),
            E4m3 => float(4, 3),
            E5m2 => float(5, 2),
            E2m3 => float(2, 3),
            E3m2 => float(3, 2),
            E2m1 => float(2, 1),
            Tf32 | F32 => single(value),
            F64 => (value as f64).to_bits(),
            S4 | U4 => value as u64 & 0xf,
            S8 | U8 => value as u64 & 0xff,
            S32 => u64::from(value as u32),
            B1 => value as u64 & 1,
        }
    }

    /// Numbers to fill matrices with.
    pub fn some(self, seed: &mut u64) -> i64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (*seed >> 33) as i64;
        match self {
            B1 => random & 1,
            U4 => random & 15,
            S4 => (random & 15) - 8,
            U8 => random & 255,
            S8 => (random & 255) - 128,
            // Near the ends too, where sums wrap or saturate.
            S32 => match random % 3 {
                0 => i64::from(i32::MAX) - (random >> 2 & 0xffff),
                1 => i64::from(i32::MIN) + (random >> 2 & 0xffff),
                _ => random - (1 << 30),
            },
            _ => random % 9 - 4,
        }
    }
}

/// Small numbers, drawn anew in each run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    pub fn of<E: Copy>(&mut self, list: &[E]) -> E {
        list[self.below(list.len())]
    }

    pub fn matrix(&mut self, ty: T, rows: usize, columns: usize) -> Vec<Vec<i64>> {
        (0..rows).map(|_| (0..columns).map(|_| ty.some(&mut self.0)).collect()).collect()
    }
}

/// What `SEED` says if it is a number, or another each time, which is told.
pub fn seed() -> u64 {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seed);
    println!("SEED={seed}");
    seed
}
