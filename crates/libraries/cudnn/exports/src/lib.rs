//! `libcudaway_cudnn.so`: the generated exports of cuDNN, once for each major, as the shells `libcudnn.so.8` and `.9` and their parts
//! bind them. What calls mean is in `cudnn`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
