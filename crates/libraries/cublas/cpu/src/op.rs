//! What a routine is told about its matrices.

/// How a matrix enters a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// As it is.
    N,
    /// Transposed.
    T,
    /// Transposed and conjugated.
    C,
}

impl Op {
    pub const ALL: [Self; 3] = [Self::N, Self::T, Self::C];

    pub fn transposes(self) -> bool {
        self != Self::N
    }

    pub fn conjugates(self) -> bool {
        self == Self::C
    }
}

/// The triangle that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uplo {
    Lower,
    Upper,
}

impl Uplo {
    pub const ALL: [Self; 2] = [Self::Lower, Self::Upper];

    /// The triangle that the transposed matrix has.
    pub fn other(self) -> Self {
        match self {
            Self::Lower => Self::Upper,
            Self::Upper => Self::Lower,
        }
    }
}

/// Whether a triangle's diagonal is read or taken to be ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Diag {
    NonUnit,
    Unit,
}

impl Diag {
    pub const ALL: [Self; 2] = [Self::NonUnit, Self::Unit];
}

/// The side of the general matrix on which the special one stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Left,
    Right,
}

impl Side {
    pub const ALL: [Self; 2] = [Self::Left, Self::Right];
}
