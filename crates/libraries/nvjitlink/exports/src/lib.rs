//! `libcudaway_nvjitlink.so`: the generated exports of nvJitLink, as the shells `libnvJitLink.so.N` bind them. What calls mean is
//! in `nvjitlink`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
