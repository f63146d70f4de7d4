//! What is done element by element with several arrays.

use std::borrow::Cow;

use cublas_cpu::vectorized;

use crate::View;
use crate::activation::{self, Activation, sigmoid};
use crate::value::Value;

/// An array of `f` of the elements of one.
pub fn map<V: Value>(a: &[V], f: impl Fn(V) -> V + Sync + Send) -> Vec<V> {
    let mut result = vec![V::zero(); a.len()];
    crate::pieces(&mut result, 1 << 14, 1 << 14, |number, piece| {
        let a = &a[number << 14..];
        piece.iter_mut().zip(a).for_each(|(to, a)| *to = f(*a));
    });
    result
}

/// An array of `f` of the elements of two.
pub fn map2<V: Value>(a: &[V], b: &[V], f: impl Fn(V, V) -> V + Sync + Send) -> Vec<V> {
    let mut result = vec![V::zero(); a.len()];
    crate::pieces(&mut result, 1 << 14, 1 << 14, |number, piece| {
        let (a, b) = (&a[number << 14..], &b[number << 14..]);
        piece.iter_mut().zip(a.iter().zip(b)).for_each(|(to, (a, b))| *to = f(*a, *b));
    });
    result
}

/// An array of `f` of the elements of three.
pub fn map3<V: Value>(a: &[V], b: &[V], c: &[V], f: impl Fn(V, V, V) -> V + Sync + Send) -> Vec<V> {
    let mut result = vec![V::zero(); a.len()];
    crate::pieces(&mut result, 1 << 14, 1 << 14, |number, piece| {
        let (a, b, c) = (&a[number << 14..], &b[number << 14..], &c[number << 14..]);
        piece.iter_mut().enumerate().for_each(|(i, to)| *to = f(a[i], b[i], c[i]));
    });
    result
}

/// What `cudnnOpTensor` makes of two numbers, or of the first; of an extreme, whether a NaN goes on or gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    Add,
    Mul,
    Min(bool),
    Max(bool),
    Sqrt,
}

vectorized! {
    /// `a` becomes what is made of both, times their factors.
    pub fn mix[V: Value](of: Mix, factors: (V, V), a: &mut [V], b: &[V]) {
        let (alpha, beta) = factors;
        match of {
            Mix::Add => {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = alpha * *a + beta * *b;
                }
            }
            Mix::Mul => {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = alpha * *a * (beta * *b);
                }
            }
            Mix::Min(keeps_nan) => {
                for (a, b) in a.iter_mut().zip(b) {
                    let (x, b) = (alpha * *a, beta * *b);
                    *a = extreme(x, b, keeps_nan, x < b);
                }
            }
            Mix::Max(keeps_nan) => {
                for (a, b) in a.iter_mut().zip(b) {
                    let (x, b) = (alpha * *a, beta * *b);
                    *a = extreme(x, b, keeps_nan, x > b);
                }
            }
            Mix::Sqrt => {
                for a in a {
                    *a = (alpha * *a).sqrt();
                }
            }
        }
    }
}

/// The first where it is chosen; a NaN goes on or gives way.
#[inline(always)]
fn extreme<V: Value>(a: V, b: V, keeps_nan: bool, first: bool) -> V {
    let of_numbers = if first { a } else { b };
    let with_nan = if a.is_nan() == keeps_nan { a } else { b };
    if a.is_nan() || b.is_nan() { with_nan } else { of_numbers }
}

/// Bounds of a ReLU, and its slope below the lower one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    pub lower: f64,
    pub upper: f64,
    pub slope: f64,
    pub keeps_nan: bool,
}

impl Clip {
    fn of<V: Value>(self, x: V) -> V {
        let (lower, upper) = (V::of(self.lower), V::of(self.upper));
        if x.is_nan() {
            return if self.keeps_nan { x } else { lower };
        }
        if x <= lower {
            lower + V::of(self.slope) * (x - lower)
        } else if x > upper {
            upper
        } else {
            x
        }
    }

    fn slope<V: Value>(self, x: V) -> V {
        let (lower, upper) = (V::of(self.lower), V::of(self.upper));
        if x > lower && x < upper {
            V::one()
        } else if x <= lower {
            V::of(self.slope)
        } else {
            V::zero()
        }
    }
}

/// An operation of the graph API, element by element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pointwise {
    Activation(Activation),
    /// The gradient at the function's argument, or told by its result.
    Backward(Activation),
    BackwardOfResult(Activation),
    Clip(Clip),
    ClipBackward(Clip),
    Softplus(f64),
    SoftplusBackward(f64),
    Gelu,
    GeluBackward,
    GeluByTanh,
    GeluByTanhBackward,
    /// The element's place along an axis.
    Index(usize),
    One(One),
    Two(Two),
    /// The first where the third is not 0, else the second.
    Select,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum One {
    Sqrt,
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Neg,
    Rsqrt,
    Sin,
    Tan,
    Erf,
    Identity,
    Reciprocal,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Two {
    Add,
    Mul,
    Min,
    Max,
    AddSquare,
    Div,
    Mod,
    Pow,
    Sub,
    Atan2,
    FloorMod,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    And,
    Or,
}

/// The operations that have no settings, by cuDNN's numbers of modes.
pub const PLAIN: &[(u32, Pointwise)] = &[
    (0, Pointwise::Two(Two::Add)),
    (1, Pointwise::Two(Two::Mul)),
    (2, Pointwise::Two(Two::Min)),
    (3, Pointwise::Two(Two::Max)),
    (4, Pointwise::One(One::Sqrt)),
    (5, Pointwise::Two(Two::AddSquare)),
    (6, Pointwise::Two(Two::Div)),
    (7, Pointwise::Two(Two::Mod)),
    (8, Pointwise::Two(Two::Pow)),
    (9, Pointwise::Two(Two::Sub)),
    (10, Pointwise::One(One::Abs)),
    (11, Pointwise::One(One::Ceil)),
    (12, Pointwise::One(One::Cos)),
    (13, Pointwise::One(One::Exp)),
    (14, Pointwise::One(One::Floor)),
    (15, Pointwise::One(One::Log)),
    (16, Pointwise::One(One::Neg)),
    (17, Pointwise::One(One::Rsqrt)),
    (18, Pointwise::One(One::Sin)),
    (19, Pointwise::One(One::Tan)),
    (20, Pointwise::One(One::Erf)),
    (21, Pointwise::One(One::Identity)),
    (22, Pointwise::One(One::Reciprocal)),
    (23, Pointwise::Two(Two::Atan2)),
    (24, Pointwise::Two(Two::FloorMod)),
    (204, Pointwise::GeluBackward),
    (207, Pointwise::GeluByTanhBackward),
    (300, Pointwise::Two(Two::Equal)),
    (301, Pointwise::Two(Two::NotEqual)),
    (302, Pointwise::Two(Two::Greater)),
    (303, Pointwise::Two(Two::GreaterEqual)),
    (304, Pointwise::Two(Two::Less)),
    (305, Pointwise::Two(Two::LessEqual)),
    (400, Pointwise::Two(Two::And)),
    (401, Pointwise::Two(Two::Or)),
    (402, Pointwise::One(One::Not)),
    (601, Pointwise::Select),
];

impl Pointwise {
    pub fn is_backward(self) -> bool {
        matches!(
            self,
            Pointwise::Backward(_)
                | Pointwise::BackwardOfResult(_)
                | Pointwise::ClipBackward(_)
                | Pointwise::SoftplusBackward(_)
                | Pointwise::GeluBackward
                | Pointwise::GeluByTanhBackward
        )
    }

    /// How many arrays.
    pub fn takes(self) -> usize {
        match self {
            Pointwise::Two(_) => 2,
            Pointwise::Select => 3,
            _ if self.is_backward() => 2,
            _ => 1,
        }
    }

    /// The operation of arrays of one size, the first two times these factors.
    pub fn apply<V: Value>(self, of: &[Cow<[V]>], (alpha, beta): (f64, f64), sizes: &[usize]) -> Vec<V> {
        let (alpha, beta) = (V::of(alpha), V::of(beta));
        match self {
            Pointwise::One(one) => map(&of[0], |x| one.of(alpha * x)),
            Pointwise::Two(two) => map2(&of[0], &of[1], |x, b| two.of(alpha * x, beta * b)),
            Pointwise::Select => {
                map3(&of[0], &of[1], &of[2], |x, b, t| if t.is_zero() { beta * b } else { alpha * x })
            }
            Pointwise::Activation(function) => {
                let mut values = map(&of[0], |x| alpha * x);
                activation::apply(function, &mut values);
                values
            }
            Pointwise::Backward(function) => {
                map2(&of[0], &of[1], |x, dy| function.backward(x, function.of(x), dy))
            }
            Pointwise::BackwardOfResult(function) => {
                map2(&of[0], &of[1], |y, dy| function.backward(y, y, dy))
            }
            Pointwise::Clip(clip) => map(&of[0], |x| clip.of(alpha * x)),
            Pointwise::ClipBackward(clip) => map2(&of[0], &of[1], |x, dy| clip.slope(x) * dy),
            Pointwise::Softplus(factor) => map(&of[0], |x| softplus(alpha * x, V::of(factor))),
            Pointwise::SoftplusBackward(factor) => {
                map2(&of[0], &of[1], |x, dy| dy * sigmoid(V::of(factor) * x))
            }
            Pointwise::Gelu => map(&of[0], |x| alpha * x * normal(alpha * x)),
            Pointwise::GeluBackward => map2(&of[0], &of[1], |x, dy| {
                let density = (-x * x / V::of(2.0)).exp() / V::of((2.0 * core::f64::consts::PI).sqrt());
                dy * (normal(x) + x * density)
            }),
            Pointwise::GeluByTanh => map(&of[0], |x| {
                let x = alpha * x;
                V::of(0.5) * x * (V::one() + bent(x).tangent())
            }),
            Pointwise::GeluByTanhBackward => map2(&of[0], &of[1], |x, dy| {
                let t = bent(x).tangent();
                let slope = V::of(GELU) * (V::one() + V::of(3.0 * 0.044_715) * x * x);
                dy * V::of(0.5) * (V::one() + t + x * (V::one() - t * t) * slope)
            }),
            Pointwise::Index(axis) => {
                let behind: usize = sizes[axis + 1..].iter().product();
                (0..sizes.iter().product())
                    .map(|at: usize| V::of((at / behind % sizes[axis]) as f64))
                    .collect()
            }
        }
    }
}

/// The square root of 2/π.
const GELU: f64 = 0.797_884_560_802_865_4;

fn bent<V: Value>(x: V) -> V {
    V::of(GELU) * (x + V::of(0.044_715) * x * x * x)
}

fn softplus<V: Value>(x: V, factor: V) -> V {
    // ln(1 + e^v), where e^v overflows too.
    let v = factor * x;
    (v.max(V::zero()) + (-v.abs()).exp().ln_1p()) / factor
}

/// The part of a normal distribution that is below.
fn normal<V: Value>(x: V) -> V {
    V::of(0.5 * erfc(-x.get() * core::f64::consts::FRAC_1_SQRT_2))
}

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    /// What it lacks to 1.
    safe fn erfc(x: f64) -> f64;
}

fn truth<V: Value>(holds: bool) -> V {
    if holds { V::one() } else { V::zero() }
}

impl One {
    #[inline(always)]
    fn of<V: Value>(self, x: V) -> V {
        match self {
            One::Sqrt => x.sqrt(),
            One::Abs => x.abs(),
            One::Ceil => x.ceil(),
            One::Cos => x.cos(),
            One::Exp => x.exp(),
            One::Floor => x.floor(),
            One::Log => x.ln(),
            One::Neg => -x,
            One::Rsqrt => V::one() / x.sqrt(),
            One::Sin => x.sin(),
            One::Tan => x.tan(),
            One::Erf => V::of(erf(x.get())),
            One::Identity => x,
            One::Reciprocal => V::one() / x,
            One::Not => truth(x.is_zero()),
        }
    }
}

impl Two {
    #[inline(always)]
    fn of<V: Value>(self, a: V, b: V) -> V {
        match self {
            Two::Add => a + b,
            Two::Mul => a * b,
            Two::Min => {
                if a < b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Two::Max => {
                if a > b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Two::AddSquare => a + b * b,
            Two::Div => a / b,
            Two::Mod => a % b,
            Two::Pow => a.powf(b),
            Two::Sub => a - b,
            Two::Atan2 => a.atan2(b),
            Two::FloorMod => a - (a / b).floor() * b,
            Two::Equal => truth(a == b),
            Two::NotEqual => truth(a != b),
            Two::Greater => truth(a > b),
            Two::GreaterEqual => truth(a >= b),
            Two::Less => truth(a < b),
            Two::LessEqual => truth(a <= b),
            Two::And => truth(!a.is_zero() && !b.is_zero()),
            Two::Or => truth(!a.is_zero() || !b.is_zero()),
        }
    }
}

/// The values with sizes of 1 repeated.
pub fn repeated<'v, V: Value>(values: &'v [V], from: &[usize], to: &[usize]) -> Cow<'v, [V]> {
    if from == to {
        return Cow::Borrowed(values);
    }
    // SAFETY: the values are an array of these sizes, which is read alone.
    unsafe {
        let view = View::packed(values.as_ptr().cast_mut().cast(), V::KIND, from);
        Cow::Owned(view.repeated(to).load())
    }
}
