//! `libcudaway_cusparse.so`: the generated exports of cuSPARSE, as the shells `libcusparse.so.11` and `.12` bind. What calls mean is in
//! `cusparse`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
