//! Nothing but dependencies.
//!
//! Cargo compiles a crate again for each set of its features, and with it all that uses it. The objects are built one by one, and
//! what runs in the compiler had other features in some of them (clap's macros ask more of `syn` than serde's do): `compiler`
//! was compiled for the libraries and once more for the tool. This crate, a macro crate so that it is built for the compiler and
//! is in no object, asks everywhere for what is asked for anywhere.
