//! How far a build is: on a terminal a bar with the time that is left, else a line for each object.

use std::io::{IsTerminal as _, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub struct Progress {
    bar: Option<ProgressBar>,
    /// The weight of what is being built.
    current: u64,
}

/// What an object costs, with all that it is the first to need, in parts of what the smallest does: from a build of everything on
/// two cores, in the order of [`super::objects`].
fn weight(name: &str) -> u64 {
    match name {
        "libcudaway_cusolver.so" => 120,
        "libcuda.so.1" | "libcudaway_blas.so" => 100,
        "libcudaway_cusparse.so" | "libcudaway_cpu.so" => 45,
        "libcudaway_cudart.so" | "libcudaway_cudnn.so" | "libcudaway_cufft.so" | "cudaway" => 25,
        "libnvidia-ml.so.1" | "libcudaway_curand.so" => 10,
        _ => 1,
    }
}

impl Progress {
    pub fn of<'a>(names: impl Iterator<Item = &'a str>) -> Progress {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(names.map(weight).sum());
            let template = "build: {wide_bar} {msg}, {elapsed} so far, some {eta} left";
            // The text is ours: a mistake in it would leave indicatif's own.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        Progress { bar, current: 0 }
    }

    /// This one is begun, and the one before has ended.
    pub fn begin(&mut self, name: &str) {
        match &self.bar {
            Some(bar) => {
                bar.inc(self.current);
                bar.set_message(name.to_owned());
            }
            None => eprintln!("build: {name}"),
        }
        self.current = weight(name);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
