//! LLVM types of values: a scalar, or `lanes` of them as a vector.

use crate::ir::Ty;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    Int(u32),
    Half,
    Float,
    Double,
    /// A pointer of the default address space.
    Ptr,
    /// A pointer of another address space, as the AMD GPUs number them.
    Space(u32),
}

/// A first-class LLVM type; one lane is the scalar itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub scalar: Scalar,
    pub lanes: u32,
}

impl Type {
    pub fn new(scalar: Scalar, lanes: u32) -> Type {
        Type { scalar, lanes }
    }

    /// The type that holds an IR value.
    pub fn of(ty: Ty, lanes: u32) -> Type {
        let scalar = match ty {
            Ty::F32 => Scalar::Float,
            Ty::F64 => Scalar::Double,
            _ => Scalar::Int(ty.bits()),
        };
        Type { scalar, lanes }
    }

    pub fn int(bits: u32, lanes: u32) -> Type {
        Type { scalar: Scalar::Int(bits), lanes }
    }

    pub fn ptr() -> Type {
        Type { scalar: Scalar::Ptr, lanes: 1 }
    }

    /// A pointer of address space `number`.
    pub fn space(number: u32) -> Type {
        Type { scalar: Scalar::Space(number), lanes: 1 }
    }

    /// Another scalar, as many lanes.
    pub fn with(self, scalar: Scalar) -> Type {
        Type { scalar, ..self }
    }

    /// Integers of `bits`, as many lanes.
    pub fn ints(self, bits: u32) -> Type {
        self.with(Scalar::Int(bits))
    }

    pub fn float(self) -> Type {
        self.with(Scalar::Float)
    }

    pub fn double(self) -> Type {
        self.with(Scalar::Double)
    }

    pub fn pred(self) -> Type {
        self.ints(1)
    }

    /// Bits of one lane.
    pub fn bits(self) -> u32 {
        match self.scalar {
            Scalar::Int(bits) => bits,
            Scalar::Half => 16,
            Scalar::Float => 32,
            Scalar::Double | Scalar::Ptr => 64,
            // LDS and scratch.
            Scalar::Space(number) => {
                if matches!(number, 3 | 5) {
                    32
                } else {
                    64
                }
            }
        }
    }

    /// One lane of a vector.
    pub fn lane(self) -> Type {
        Type { lanes: 1, ..self }
    }

    pub fn is_int(self) -> bool {
        matches!(self.scalar, Scalar::Int(_))
    }

    /// How overloaded intrinsics spell it: `i32`, `v8f32`.
    pub fn suffix(self) -> String {
        let scalar = match self.scalar {
            Scalar::Int(bits) => format!("i{bits}"),
            Scalar::Half => "f16".to_owned(),
            Scalar::Float => "f32".to_owned(),
            Scalar::Double => "f64".to_owned(),
            Scalar::Ptr => "p0".to_owned(),
            Scalar::Space(number) => format!("p{number}"),
        };
        if self.lanes == 1 { scalar } else { format!("v{}{scalar}", self.lanes) }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(bits) => write!(f, "i{bits}"),
            Scalar::Half => f.write_str("half"),
            Scalar::Float => f.write_str("float"),
            Scalar::Double => f.write_str("double"),
            Scalar::Ptr => f.write_str("ptr"),
            Scalar::Space(number) => write!(f, "ptr addrspace({number})"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lanes == 1 { self.scalar.fmt(f) } else { write!(f, "<{} x {}>", self.lanes, self.scalar) }
    }
}
