//! `libcudaway_blas.so`: the generated exports of cuBLAS and cuBLASLt, as the shells `libcublas.so.N` and
//! `libcublasLt.so.N` bind them. What calls mean is in `blas`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
