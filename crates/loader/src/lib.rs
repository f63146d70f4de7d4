//! What the system's loader knows of our objects: where they lie, and whose names they have. No allocation, so it can be asked
//! before `main` and inside a loader's callback.

#![cfg_attr(not(test), no_std)]

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod libraries;
}
pub mod names;
pub mod place;
