//! cuRAND's random numbers on the CPU: the words, and the uniform, normal and Poisson values, that NVIDIA's library gives
//! for a generator, an ordering, a seed and an offset, over any number of calls.
//!
//! A [`Generator`] has a kind and settings, and fills slices. Fills go on where the last one ended. Large ones are shared
//! out over rayon's cores; the values do not depend on how many there are.
//!
//! What differs from NVIDIA's: the scrambled Sobol sequences have scrambles of our own ([`scramble64`]), since the numbers of
//! NVIDIA's are published nowhere.
#![forbid(unsafe_code)]

mod draw;
mod generator;
mod image;
mod interleaved;
mod lanes;
mod math;
mod mrg;
mod mt19937;
mod mtgp;
mod philox;
mod poisson;
mod sobol;
mod xorwow;

pub use generator::{Error, Generator, Kind, Ordering, Result};
pub use image::Recipe;
pub use philox::philox;
pub use poisson::Distribution;
pub use sobol::{DIMENSIONS, directions32, directions64, scramble32, scramble64};
