//! `libcudaway_cusolver.so`: the generated exports of cuSOLVER, as the shells `libcusolver.so.11` and `.12` bind. What calls mean is in
//! `cusolver`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
