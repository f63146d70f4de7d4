//! `libnvidia-ml.so.1`: the generated exports. What calls mean is in `nvml`.

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;
