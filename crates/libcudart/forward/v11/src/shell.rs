//! The library but for what an object has once; crates/trampoline/preload has it too.

#[rustfmt::skip]
#[path = "generated/names.rs"]
mod generated;

const MAJOR: u32 = 11;

include!("../../fill.rs");
