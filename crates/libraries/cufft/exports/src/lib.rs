//! `libcudaway_cufft.so`: the generated exports of cuFFT, as the shells `libcufft.so.N` bind them. What calls mean is in
//! `cufft`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
