//! Functions of one number and their derivatives.

use crate::value::Value;

/// What a coefficient means is the function's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    Identity,
    Sigmoid,
    /// Whether a NaN stays one.
    Relu(bool),
    Tanh,
    /// The ceiling.
    ClippedRelu(f64, bool),
    /// The factor below 0.
    Elu(f64),
    /// The factor in the sigmoid.
    Swish(f64),
}

impl Activation {
    #[inline(always)]
    pub fn of<V: Value>(self, x: V) -> V {
        let (zero, one) = (V::zero(), V::one());
        match self {
            Activation::Identity => x,
            Activation::Sigmoid => sigmoid(x),
            Activation::Relu(keeps_nan) => relu(x, keeps_nan),
            Activation::Tanh => x.tanh(),
            Activation::ClippedRelu(ceiling, keeps_nan) => {
                let lower = relu(x, keeps_nan);
                if lower > V::of(ceiling) { V::of(ceiling) } else { lower }
            }
            Activation::Elu(factor) => {
                if x > zero {
                    x
                } else {
                    V::of(factor) * x.exp_m1()
                }
            }
            Activation::Swish(factor) => x / (one + (-V::of(factor) * x).exp()),
        }
    }

    /// The derivative at x, where the function is y, times dy.
    #[inline(always)]
    pub fn backward<V: Value>(self, x: V, y: V, dy: V) -> V {
        let (zero, one) = (V::zero(), V::one());
        match self {
            Activation::Identity => dy,
            Activation::Sigmoid => dy * y * (one - y),
            Activation::Relu(_) => {
                if x > zero {
                    dy
                } else {
                    zero
                }
            }
            Activation::Tanh => dy * (one - y * y),
            Activation::ClippedRelu(ceiling, _) => {
                if x > zero && x < V::of(ceiling) {
                    dy
                } else {
                    zero
                }
            }
            Activation::Elu(factor) => {
                if x > zero {
                    dy
                } else {
                    dy * V::of(factor) * x.exp()
                }
            }
            Activation::Swish(factor) => {
                let (factor, s) = (V::of(factor), sigmoid(V::of(factor) * x));
                dy * (s + factor * x * s * (one - s))
            }
        }
    }

    /// Whether the derivative is made of x; else of y.
    pub fn needs_x(self) -> bool {
        !matches!(self, Activation::Sigmoid | Activation::Tanh | Activation::Identity)
    }
}

#[inline(always)]
pub fn sigmoid<V: Value>(x: V) -> V {
    V::one() / (V::one() + (-x).exp())
}

#[inline(always)]
fn relu<V: Value>(x: V, keeps_nan: bool) -> V {
    if x > V::zero() || (keeps_nan && x.is_nan()) { x } else { V::zero() }
}

/// Each element becomes the function of it.
pub fn apply<V: Value>(of: Activation, values: &mut [V]) {
    crate::pieces(values, 1 << 14, 1 << 16, |_, piece| {
        piece.iter_mut().for_each(|value| *value = of.of(*value))
    });
}
