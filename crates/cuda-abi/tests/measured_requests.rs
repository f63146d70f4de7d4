//! What NVIDIA's runtimes were seen to ask `cuGetProcAddress` for at start, answered by our rule over the measured exports.

use std::collections::BTreeMap;

use cuda_abi::proc_address::{Flavour, Lookup, Proc, Variant, find};

const EXPORTS: &str = include_str!("../../../tools/data/cuda_driver_exports.txt");
const REQUESTS: [(&str, u32, &str); 4] = [
    ("11.8", 11080, include_str!("../../../tools/data/cuda/cudart_gpa_requests_11.8.txt")),
    ("12.4", 12040, include_str!("../../../tools/data/cuda/cudart_gpa_requests_12.4.txt")),
    ("12.9", 12090, include_str!("../../../tools/data/cuda/cudart_gpa_requests_12.9.txt")),
    ("13.5", 13050, include_str!("../../../tools/data/cuda/cudart_gpa_requests_13.5.txt")),
];

/// (name, since) of each export, and the map over them.
fn table() -> (Vec<(&'static str, u32)>, Vec<Proc>) {
    let (mut exports, mut variants) = (Vec::new(), BTreeMap::<&str, Vec<Variant>>::new());
    for row in EXPORTS.lines().filter(|row| !row.starts_with('#')) {
        let [name, base, since, flavour, ..] = row.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let since = since.parse().unwrap();
        if since != 0 {
            let flavour = if flavour == "plain" { Flavour::Plain } else { Flavour::PerThread };
            let export = u16::try_from(exports.len()).unwrap();
            variants.entry(base).or_default().push(Variant { since, flavour, export });
        }
        exports.push((name, since));
    }
    let procs =
        variants.into_iter().map(|(base, variants)| Proc { base, variants: variants.leak() }).collect();
    (exports, procs)
}

#[test]
fn every_request_of_a_real_runtime_is_answered() {
    let (exports, procs) = table();
    let mut n_requests = 0;
    for (runtime, version, list) in REQUESTS {
        // A line that starts with a blank is the empty name, which no driver has.
        for row in list.lines().filter(|row| !row.starts_with(['#', ' '])) {
            let [base, asked, flags] = row.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
            let asked: u32 = asked.parse().unwrap();
            let flavour = if flags == "2" { Flavour::PerThread } else { Flavour::Plain };
            let Lookup::Found(export) = find(&procs, base, asked, flavour) else {
                panic!("cudart {runtime} asks for {row}");
            };
            // A runtime asks with the version that introduced what it wants, so it gets exactly that variant.
            assert_eq!(exports[export].1, asked, "{row} gives {}", exports[export].0);
            let is_per_thread = exports[export].0.ends_with("_ptsz") || exports[export].0.ends_with("_ptds");
            assert_eq!(is_per_thread, flavour == Flavour::PerThread, "{row} gives {}", exports[export].0);
            assert!(asked <= version);
            n_requests += 1;
        }
    }
    assert!(n_requests > 1600, "{n_requests}");
}

#[test]
fn an_old_version_gets_the_old_variant() {
    let (exports, procs) = table();
    for (base, version, wanted) in [
        ("cuCtxCreate", 2000, "cuCtxCreate"),
        ("cuCtxCreate", 12000, "cuCtxCreate_v3"),
        ("cuCtxCreate", 13000, "cuCtxCreate_v4"),
        ("cuMemAlloc", 12000, "cuMemAlloc_v2"),
        ("cuGetProcAddress", 11030, "cuGetProcAddress"),
        ("cuGetProcAddress", 12000, "cuGetProcAddress_v2"),
    ] {
        let Lookup::Found(export) = find(&procs, base, version, Flavour::Plain) else { panic!("{base}") };
        assert_eq!(exports[export].0, wanted, "{base} {version}");
    }
}
