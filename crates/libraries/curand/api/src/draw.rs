//! What a program asks of a generator, for whoever makes the numbers elsewhere than `curand_cpu` does.

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Words of 32 bits, or of 64 from a generator that has those.
    Bits,
    UniformSingle,
    UniformDouble,
    /// `mean` and `deviation` have 32 bits that count.
    NormalSingle(Normal),
    NormalDouble(Normal),
    Poisson {
        mean: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normal {
    pub mean: f64,
    pub deviation: f64,
    /// Whether the numbers' exponentials are asked for.
    pub exponential: bool,
}

impl Normal {
    pub fn of(mean: impl Into<f64>, deviation: impl Into<f64>, exponential: bool) -> Normal {
        Normal { mean: mean.into(), deviation: deviation.into(), exponential }
    }
}

impl Draw {
    /// Whether a draw gives a pair, of the generators that make pairs.
    pub fn is_normal(self) -> bool {
        matches!(self, Draw::NormalSingle(_) | Draw::NormalDouble(_))
    }
}
