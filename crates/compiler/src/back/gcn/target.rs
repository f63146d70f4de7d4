//! Which AMD GPU: what `gcnArchName` and `--target` say.

use std::fmt;
use std::str::FromStr;

/// Generations whose code differs in more than scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Vega and CDNA: waves of 64.
    Gfx9,
    /// RDNA 1 and 2, waves of 32 like those after.
    Gfx10,
    Gfx11,
    Gfx12,
}

/// What image instructions a GPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Images {
    None,
    /// Of an image's first level, and none that gathers.
    Some,
    All,
}

/// A GPU and its features: `gfx90a:sramecc+:xnack-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    name: String,
    processor: usize,
    family: Family,
}

/// Names of the processors there are; some are known to new LLVMs only.
const PROCESSORS: &[(&str, Family)] = &[
    ("gfx900", Family::Gfx9),
    ("gfx902", Family::Gfx9),
    ("gfx904", Family::Gfx9),
    ("gfx906", Family::Gfx9),
    ("gfx908", Family::Gfx9),
    ("gfx909", Family::Gfx9),
    ("gfx90a", Family::Gfx9),
    ("gfx90c", Family::Gfx9),
    ("gfx940", Family::Gfx9),
    ("gfx941", Family::Gfx9),
    ("gfx942", Family::Gfx9),
    ("gfx950", Family::Gfx9),
    ("gfx1010", Family::Gfx10),
    ("gfx1011", Family::Gfx10),
    ("gfx1012", Family::Gfx10),
    ("gfx1013", Family::Gfx10),
    ("gfx1030", Family::Gfx10),
    ("gfx1031", Family::Gfx10),
    ("gfx1032", Family::Gfx10),
    ("gfx1033", Family::Gfx10),
    ("gfx1034", Family::Gfx10),
    ("gfx1035", Family::Gfx10),
    ("gfx1036", Family::Gfx10),
    ("gfx1100", Family::Gfx11),
    ("gfx1101", Family::Gfx11),
    ("gfx1102", Family::Gfx11),
    ("gfx1103", Family::Gfx11),
    ("gfx1150", Family::Gfx11),
    ("gfx1151", Family::Gfx11),
    ("gfx1152", Family::Gfx11),
    ("gfx1153", Family::Gfx11),
    ("gfx1200", Family::Gfx12),
    ("gfx1201", Family::Gfx12),
];

impl Target {
    /// All of it, as it was written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Without the features: what LLVM's `-mcpu` takes.
    pub fn processor(&self) -> &str {
        PROCESSORS[self.processor].0
    }

    /// `sramecc+`, `xnack-`, in the name's order.
    pub fn features(&self) -> impl Iterator<Item = &str> {
        self.name.split(':').skip(1)
    }

    pub fn family(&self) -> Family {
        self.family
    }

    /// Lanes of a wave. Where it is 64, two warps of CUDA share a wave.
    pub fn wave(&self) -> u32 {
        if self.family == Family::Gfx9 { 64 } else { 32 }
    }

    pub(crate) fn images(&self) -> Images {
        match self.processor() {
            "gfx940" | "gfx941" | "gfx942" | "gfx950" => Images::None,
            "gfx90a" => Images::Some,
            _ => Images::All,
        }
    }

    /// Its multiprocessors lie on several dies, each with numbers of its own.
    pub fn has_several_dies(&self) -> bool {
        matches!(self.processor(), "gfx940" | "gfx941" | "gfx942" | "gfx950")
    }

    /// The processors that [`Target`] can be, without features.
    pub fn processors() -> impl Iterator<Item = &'static str> {
        PROCESSORS.iter().map(|(name, _)| *name)
    }
}

/// Why a name is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no AMD GPU that code can be made for")]
pub struct UnknownTarget(pub String);

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(name: &str) -> Result<Target, UnknownTarget> {
        let unknown = || UnknownTarget(name.to_owned());
        let mut parts = name.split(':');
        let processor = parts.next().unwrap_or_default();
        let index = PROCESSORS.iter().position(|(known, _)| *known == processor).ok_or_else(unknown)?;
        let is_feature = |it: &str| matches!(it, "sramecc+" | "sramecc-" | "xnack+" | "xnack-");
        if !parts.all(is_feature) {
            return Err(unknown());
        }
        Ok(Target { name: name.to_owned(), processor: index, family: PROCESSORS[index].1 })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_features_is_a_processor_and_a_wave() {
        let target: Target = "gfx90a:sramecc+:xnack-".parse().unwrap();
        assert_eq!((target.processor(), target.wave(), target.family()), ("gfx90a", 64, Family::Gfx9));
        assert_eq!(target.features().collect::<Vec<_>>(), ["sramecc+", "xnack-"]);
        let waves = ["gfx1030", "gfx1100", "gfx1201"].map(|it| it.parse::<Target>().unwrap().wave());
        assert_eq!(waves, [32; 3]);
    }

    #[test]
    fn what_is_no_gpu_of_amd_is_refused() {
        for name in ["", "cpu", "sm_80", "gfx", "gfx803", "gfx1100x", "gfx90a:fast+", "gfx90a:"] {
            assert!(name.parse::<Target>().is_err(), "{name}");
        }
    }
}
