//! `libcudaway_curand.so`: the generated exports of cuRAND, as the shell `libcurand.so.10` binds them. What calls mean is in
//! `curand`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
