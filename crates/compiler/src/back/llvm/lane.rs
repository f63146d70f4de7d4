//! What follows from a lane's number alone.

use super::{Builder, Val};
use crate::ir::Special;

/// `%lanemask_*`: the lanes of the warp that compare so with this one.
pub fn mask(b: &mut Builder, special: Special, lane: &Val) -> Val {
    let one = Builder::int(lane.ty, 1);
    let equal = b.bin("shl", &one, lane);
    let less = b.bin_int("sub", &equal, 1);
    match special {
        Special::LaneMaskEq => equal,
        Special::LaneMaskLt => less,
        Special::LaneMaskLe => b.or(&less, &equal),
        Special::LaneMaskGe => b.not(&less),
        _ => {
            let or_equal = b.or(&less, &equal);
            b.not(&or_equal)
        }
    }
}
