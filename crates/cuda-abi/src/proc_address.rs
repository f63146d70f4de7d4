//! The rule by which `cuGetProcAddress` picks an export, as measured on NVIDIA's drivers (facts/abi.md §2).

/// Which default stream a spelling means by handle 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// The legacy default stream.
    Plain,
    /// `_ptsz`, `_ptds`: the calling thread's own default stream.
    PerThread,
}

/// One export behind a base name.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The CUDA version that introduced it, 1000 * major + 10 * minor.
    pub since: u32,
    pub flavour: Flavour,
    /// Its place in the list of exports.
    pub export: u16,
}

/// A base name and its exports.
#[derive(Clone, Copy, Debug)]
pub struct Proc {
    pub base: &'static str,
    pub variants: &'static [Variant],
}

/// What a name and a version lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Place in the list of exports.
    Found(usize),
    UnknownName,
    /// The name exists in later versions only.
    VersionTooLow,
}

/// Among the variants of `base`, the newest that is not newer than `version`; for a per-thread caller the
/// per-thread ones go first. `procs` is sorted by `base`.
pub fn find(procs: &[Proc], base: &str, version: u32, flavour: Flavour) -> Lookup {
    let Ok(at) = procs.binary_search_by(|known| known.base.cmp(base)) else {
        return Lookup::UnknownName;
    };
    let newest = |wanted: Flavour| {
        procs[at]
            .variants
            .iter()
            .filter(|variant| variant.flavour == wanted && variant.since <= version)
            .max_by_key(|variant| variant.since)
    };
    let found = match flavour {
        Flavour::PerThread => newest(Flavour::PerThread).or_else(|| newest(Flavour::Plain)),
        Flavour::Plain => newest(Flavour::Plain),
    };
    found.map_or(Lookup::VersionTooLow, |variant| Lookup::Found(usize::from(variant.export)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCS: &[Proc] = &[
        Proc {
            base: "cuCtxCreate",
            variants: &[
                Variant { since: 2000, flavour: Flavour::Plain, export: 0 },
                Variant { since: 3020, flavour: Flavour::Plain, export: 1 },
            ],
        },
        Proc {
            base: "cuMemcpy",
            variants: &[
                Variant { since: 4000, flavour: Flavour::Plain, export: 2 },
                Variant { since: 7000, flavour: Flavour::PerThread, export: 3 },
            ],
        },
    ];

    #[test]
    fn the_newest_variant_not_above_the_asked_version_wins() {
        assert_eq!(find(PROCS, "cuCtxCreate", 3010, Flavour::Plain), Lookup::Found(0));
        assert_eq!(find(PROCS, "cuCtxCreate", 3020, Flavour::Plain), Lookup::Found(1));
        assert_eq!(find(PROCS, "cuCtxCreate", 13050, Flavour::Plain), Lookup::Found(1));
    }

    #[test]
    fn a_per_thread_caller_gets_the_per_thread_spelling_where_there_is_one() {
        assert_eq!(find(PROCS, "cuMemcpy", 12000, Flavour::PerThread), Lookup::Found(3));
        assert_eq!(find(PROCS, "cuCtxCreate", 12000, Flavour::PerThread), Lookup::Found(1));
    }

    #[test]
    fn a_miss_says_why() {
        assert_eq!(find(PROCS, "cuCtxCreate", 1000, Flavour::Plain), Lookup::VersionTooLow);
        assert_eq!(find(PROCS, "cuCtxCreate_v2", 13000, Flavour::Plain), Lookup::UnknownName);
        assert_eq!(find(PROCS, "", 0, Flavour::Plain), Lookup::UnknownName);
    }
}
