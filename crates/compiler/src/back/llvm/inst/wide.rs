//! Directed rounding of f64 operations, by integer arithmetic: there is no wider float to hold the error.

use super::super::builder::{Builder, Val};
use super::{Result, Unsupported};
use crate::ir::Round;

pub fn add(_b: &mut Builder, rounding: Round, _x: &Val, _y: &Val) -> Result<Val> {
    Err(Unsupported(format!("f64 addition with rounding {rounding:?}")))
}
pub fn mul(_b: &mut Builder, rounding: Round, _x: &Val, _y: &Val) -> Result<Val> {
    Err(Unsupported(format!("f64 multiplication with rounding {rounding:?}")))
}
pub fn div(_b: &mut Builder, rounding: Round, _x: &Val, _y: &Val) -> Result<Val> {
    Err(Unsupported(format!("f64 division with rounding {rounding:?}")))
}
pub fn sqrt(_b: &mut Builder, rounding: Round, _x: &Val) -> Result<Val> {
    Err(Unsupported(format!("f64 square root with rounding {rounding:?}")))
}
pub fn fma(_b: &mut Builder, rounding: Round, _x: &Val, _y: &Val, _z: &Val) -> Result<Val> {
    Err(Unsupported(format!("f64 fma with rounding {rounding:?}")))
}
