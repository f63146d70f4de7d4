//! The library but for what an object has once; crates/trampoline/preload has it too.

#[rustfmt::skip]
#[path = "generated/names.rs"]
mod generated;

const MAJOR: u32 = 13;

include!("../../fill.rs");
