//! Functions of one number and their derivatives.

use cublas_cpu::vectorized;

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
            Activation::Tanh => x.tangent(),
            Activation::ClippedRelu(ceiling, keeps_nan) => {
                let lower = relu(x, keeps_nan);
                if lower > V::of(ceiling) { V::of(ceiling) } else { lower }
            }
            Activation::Elu(factor) => {
                if x > zero {
                    x
                } else {
                    V::of(factor) * x.power_less_one()
                }
            }
            Activation::Swish(factor) => x / (one + (-V::of(factor) * x).power()),
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
                    dy * V::of(factor) * x.power()
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
    V::one() / (V::one() + (-x).power())
}

#[inline(always)]
fn relu<V: Value>(x: V, keeps_nan: bool) -> V {
    if x > V::zero() || (keeps_nan && x.is_nan()) { x } else { V::zero() }
}

/// Runs the body once with `$function` being a constant kind of function, so that a loop in it has no branch by kinds.
macro_rules! by_kind {
    ($of:expr, $function:ident => $body:expr) => {
        match $of {
            Activation::Identity => {
                let $function = Activation::Identity;
                $body
            }
            Activation::Sigmoid => {
                let $function = Activation::Sigmoid;
                $body
            }
            Activation::Relu(true) => {
                let $function = Activation::Relu(true);
                $body
            }
            Activation::Relu(false) => {
                let $function = Activation::Relu(false);
                $body
            }
            Activation::Tanh => {
                let $function = Activation::Tanh;
                $body
            }
            Activation::ClippedRelu(ceiling, keeps_nan) => {
                let $function = Activation::ClippedRelu(ceiling, keeps_nan);
                $body
            }
            Activation::Elu(factor) => {
                let $function = Activation::Elu(factor);
                $body
            }
            Activation::Swish(factor) => {
                let $function = Activation::Swish(factor);
                $body
            }
        }
    };
}

/// Each element becomes the function of it.
pub fn apply<V: Value>(of: Activation, values: &mut [V]) {
    crate::pieces(values, 1 << 14, 1 << 16, |_, piece| apply_alone(of, piece));
}

vectorized! {
    fn apply_alone[V: Value](of: Activation, values: &mut [V]) {
        by_kind!(of, function => {
            for value in values {
                *value = function.of(*value);
            }
        });
    }
}

vectorized! {
    /// What stands in `x` becomes the gradient there; the three are as long.
    pub fn gradient[V: Value](of: Activation, x: &mut [V], y: &[V], dy: &[V]) {
        by_kind!(of, function => {
            for ((x, y), dy) in x.iter_mut().zip(y).zip(dy) {
                *x = function.backward(*x, *y, *dy);
            }
        });
    }
}
