//! `cargo xtask cutlass`: CUTLASS's example programs for `sm_90a`, `sm_100a` and `sm_120a`, run on the CPU device with small problems, each with its own
//! check against a reference; docs/cutlass.md is made of what came of it.
//!
//! The programs are NVIDIA's, and no part of this tree: a folder has them, built, by the names of their sources.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::samples::ran::{Ran, Way, kept};
use crate::samples::{How, judge};
use crate::setup;
use crate::site::wrap::wrapped;

#[derive(clap::Args)]
pub struct Args {
    /// The folder that has the built programs.
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,
    /// Only these, comma separated.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seconds that a program may run.
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Our objects.
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,
}

const RESULTS: &str = "tools/data/cutlass.json";
const PAGE: &str = "docs/cutlass.md";

/// A program, what makes its problem small, and what it prints when its check has passed.
struct Example {
    name: &'static str,
    target: Target,
    shows: &'static str,
    arguments: &'static str,
    passed: &'static str,
}

/// What its PTX is for.
#[derive(Clone, Copy)]
enum Target {
    Sm90a,
    Sm100a,
    Sm120a,
}

impl Target {
    /// The target's name, and the compute capability that the device says it has.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Target::Sm90a => ("sm_90a", "9.0"),
            Target::Sm100a => ("sm_100a", "10.0"),
            Target::Sm120a => ("sm_120a", "12.0"),
        }
    }
}

const fn example(
    name: &'static str,
    shows: &'static str,
    arguments: &'static str,
    passed: &'static str,
) -> Example {
    Example { name, target: Target::Sm90a, shows, arguments, passed }
}

/// An example of a later target that says [`DISPOSITION`].
const fn later(target: Target, name: &'static str, shows: &'static str, arguments: &'static str) -> Example {
    Example { name, target, shows, arguments, passed: DISPOSITION }
}

/// CUTLASS shares the multiprocessors out among clusters, which have up to eight blocks; ours are as many as threads.
const VARIABLES: &[(&str, &str)] = &[("CUDAWAY_DEVICE", "cpu"), ("CUDAWAY_CPU_THREADS", "8")];

const DISPOSITION: &str = "Disposition: Passed";

const EXAMPLES: &[Example] = &[
    example(
        "48_hopper_warp_specialized_gemm",
        "tf32, warps with parts of their own",
        "--m=256 --n=256 --k=128 --iterations=0",
        DISPOSITION,
    ),
    example(
        "49_collective_builder",
        "f16, all schedules of the builder",
        "--m=256 --n=256 --k=128 --l=1",
        DISPOSITION,
    ),
    example(
        "50_hopper_gemm_with_epilogue_swizzle",
        "s8, a swizzled epilogue",
        "--m=256 --n=256 --k=128",
        ": Passed",
    ),
    example(
        "51_hopper_gett",
        "a contraction of tensors",
        "--modeC=m,n,l --modeA=m,k,l --modeB=k,n,l --extents=m:256,n:128,k:128,l:2",
        "GETT verification passed.",
    ),
    example(
        "52_hopper_gather_scatter_fusion",
        "rows gathered and scattered",
        "--m=256 --n=256 --k=128 --index_size=128 --iterations=1",
        "Passed validation",
    ),
    example(
        "53_hopper_gemm_permute",
        "permuted tensors",
        "--m=128 --n=512 --k=512 --batch_size=8 --iterations=1",
        "Passed validation",
    ),
    example(
        "54_hopper_fp8_warp_specialized_gemm",
        "FP8",
        "--m=256 --n=256 --k=128 --iterations=0",
        DISPOSITION,
    ),
    example(
        "55_hopper_mixed_dtype_gemm",
        "FP8 by f16, converted in registers",
        "--m=256 --n=256 --k=256 --g=128 --mode=1 --iterations=0",
        DISPOSITION,
    ),
    example(
        "55_hopper_int4_fp8_gemm",
        "s4 by FP8",
        "--m=256 --n=256 --k=256 --g=128 --mode=1 --iterations=0",
        DISPOSITION,
    ),
    example(
        "55_hopper_int4_bf16_gemm",
        "s4 by bf16",
        "--m=256 --n=256 --k=256 --g=128 --mode=1 --iterations=0",
        DISPOSITION,
    ),
    example(
        "56_hopper_ptr_array_batched_gemm",
        "batches by arrays of pointers: `tensormap.replace`",
        "--m=256 --n=256 --k=128 --l=3 --iterations=0",
        DISPOSITION,
    ),
    example(
        "57_hopper_grouped_gemm",
        "groups of problems: `tensormap.replace`",
        "--m=256 --n=512 --k=128 --groups=3 --iterations=0",
        DISPOSITION,
    ),
    example(
        "61_hopper_gemm_with_topk_and_softmax",
        "a softmax of the largest",
        // The check wants an error below 1e-5 of f16 numbers: a larger k, whose exponentials lose more digits, has some round
        // the other way.
        "--m=64 --n=8 --k=64 --l=1 --iterations=0",
        DISPOSITION,
    ),
    example(
        "62_hopper_sparse_gemm",
        "a sparse A: `wgmma.mma_async.sp`",
        "--m=256 --n=256 --k=256 --iterations=0 --warmup=0",
        DISPOSITION,
    ),
    example(
        "63_hopper_gemm_with_weight_prefetch",
        "weights that are asked for early",
        "--m=256 --n=64 --k=256 --iterations=0",
        DISPOSITION,
    ),
    example(
        "67_hopper_fp8_warp_specialized_gemm_with_blockwise_scaling",
        "FP8, scaled block by block",
        "--m=256 --n=256 --k=256 --iterations=0",
        DISPOSITION,
    ),
    example(
        "67_hopper_fp8_warp_specialized_gemm_with_groupwise_scaling",
        "FP8, scaled group by group",
        "--m=256 --n=256 --k=256 --iterations=0",
        DISPOSITION,
    ),
    example(
        "68_hopper_fp8_warp_specialized_grouped_gemm_with_blockwise_scaling",
        "groups in FP8, scaled block by block",
        "--m=256 --n=256 --k=256 --groups=2 --iterations=0",
        DISPOSITION,
    ),
    example(
        "69_hopper_mixed_dtype_grouped_gemm",
        "groups, FP8 by f16",
        "--m=256 --n=256 --k=256 --groups=2 --mode=1 --c=256 --iterations=0",
        DISPOSITION,
    ),
    example(
        "69_hopper_int4_fp8_grouped_gemm",
        "groups, s4 by FP8",
        "--m=256 --n=256 --k=256 --groups=2 --mode=1 --c=256 --iterations=0",
        DISPOSITION,
    ),
    example(
        "69_hopper_int4_bf16_grouped_gemm",
        "groups, s4 by bf16",
        "--m=256 --n=256 --k=256 --groups=2 --mode=1 --c=256 --iterations=0",
        DISPOSITION,
    ),
    example(
        "88_hopper_fmha",
        "attention",
        "--b=1 --h=1 --q=128 --k=128 --d=64 --verify --iterations=1",
        "[OK]",
    ),
    later(
        Target::Sm100a,
        "70_blackwell_fp16_gemm",
        "f16, pairs of blocks, `clusterlaunchcontrol`",
        "--m=512 --n=256 --k=128 --iterations=0",
    ),
    later(
        Target::Sm100a,
        "70_blackwell_fp8_gemm",
        "FP8, pairs of blocks",
        "--m=512 --n=256 --k=128 --iterations=0",
    ),
    later(
        Target::Sm100a,
        "71_blackwell_gemm_with_collective_builder",
        "f16, schedules of the builder",
        "--m=256 --n=256 --k=128 --l=1",
    ),
    later(
        Target::Sm100a,
        "72a_blackwell_nvfp4_bf16_gemm",
        "FP4 with scales, into bf16",
        "--m=256 --n=256 --k=256 --iterations=0",
    ),
    later(
        Target::Sm100a,
        "72b_blackwell_nvfp4_nvfp4_gemm",
        "FP4 with scales, into FP4 with scales",
        "--m=256 --n=256 --k=256 --iterations=0",
    ),
    later(
        Target::Sm100a,
        "72c_blackwell_mixed_mxfp8_bf16_gemm",
        "FP8 by FP4, both with scales",
        "--m=256 --n=256 --k=256 --iterations=0",
    ),
    later(
        Target::Sm100a,
        "75_blackwell_grouped_gemm",
        "groups of problems",
        "--m=256 --n=256 --k=128 --groups=3 --iterations=0",
    ),
    Example {
        passed: "[OK]",
        ..later(
            Target::Sm100a,
            "77_blackwell_fmha",
            "attention",
            "--b=1 --h=1 --q=256 --k=256 --d=64 --verify --iterations=1",
        )
    },
    later(
        Target::Sm100a,
        "83_blackwell_sparse_gemm",
        "a sparse A: `tcgen05.mma.sp`",
        "--m=256 --n=256 --k=256 --iterations=0",
    ),
    later(
        Target::Sm120a,
        "79a_blackwell_geforce_nvfp4_bf16_gemm",
        "`mma` of FP4 with scales",
        "--m=256 --n=256 --k=256 --iterations=0",
    ),
];

pub fn run(args: &Args) -> Result<()> {
    let lib = fs::canonicalize(args.lib.clone().unwrap_or_else(setup::lib_dir))
        .context("our objects; first: cargo xtask build")?;
    ensure!(lib.join("libcuda.so.1").exists(), "{} has no libcuda.so.1", lib.display());
    let programs = fs::canonicalize(&args.programs).with_context(|| args.programs.display().to_string())?;
    if let Some(unknown) = args.only.iter().find(|name| !EXAMPLES.iter().any(|it| it.name == name.as_str())) {
        bail!("no example is called {unknown}");
    }
    let home = setup::root().join("target/cutlass");
    let mut results: Vec<Ran> = kept(RESULTS)?;
    for example in
        EXAMPLES.iter().filter(|it| args.only.is_empty() || args.only.iter().any(|only| only == it.name))
    {
        let program = programs.join(example.name);
        if !program.exists() {
            println!("{}: not in {}", example.name, programs.display());
            continue;
        }
        let ran = one(example, &program, &lib, &home, Duration::from_secs(args.limit))?;
        println!("{}: {} ({:.1} s) {}", ran.name, ran.how.word(), ran.wall, ran.said);
        results.retain(|it| it.name != ran.name);
        results.push(ran);
        results.sort_by(|a, b| a.name.cmp(&b.name));
        setup::keep(RESULTS, &results)?;
        fs::write(setup::root().join(PAGE), wrapped(&page(&results)?)?)?;
    }
    Ok(())
}

fn one(example: &Example, program: &Path, lib: &Path, home: &Path, limit: Duration) -> Result<Ran> {
    let arguments: Vec<String> = example.arguments.split_whitespace().map(str::to_owned).collect();
    let capability = ("CUDAWAY_COMPUTE_CAPABILITY", example.target.words().1);
    let variables = [VARIABLES, &[capability]].concat();
    let way = Way { lib, dir: &home.join(example.name), limit, variables: &variables };
    Ran::new(example.name, program, &arguments, &way, |ended| match judge(ended, limit) {
        (How::Passed, _) if !ended.stdout.contains(example.passed) => {
            (How::Failed, format!("does not say `{}`", example.passed))
        }
        judged => judged,
    })
}

/// The page, by its path.
pub fn pages() -> Result<Vec<(String, String)>> {
    Ok(vec![(PAGE.to_owned(), page(&kept(RESULTS)?)?)])
}

const HEAD: &str = "# CUTLASS's examples for sm_90a, sm_100a and sm_120a on our libraries

Written by `cargo xtask cutlass --programs DIR` from `tools/data/cutlass.json`, which it writes too. The programs are NVIDIA's and no part of
this tree: the folder `DIR` has them built, by the names of their sources, with PTX for their target in them and no code for a GPU. Those of the
table's last run were CUTLASS's at commit `7107b05535f8` (4.7, 20 August 2026), built by nvcc 13.5.

They are what only these targets have, put together: on `sm_90a` `wgmma`, copies of tensors, clusters with multicasts, barriers that count
bytes, and for problems in groups maps of tensors that kernels change; on `sm_100a` `tcgen05` with its tensor memory, pairs of blocks, and
blocks that take over the work of others (`clusterlaunchcontrol`); on `sm_120a` `mma` of scaled types. Each program computes a small problem
on the CPU device by `cudaway run`, and passes if its own comparison with a plain product says so. The device says that its compute
capability is the target's (`CUDAWAY_COMPUTE_CAPABILITY`), and has eight threads (`CUDAWAY_CPU_THREADS=8`) and so eight multiprocessors:
CUTLASS launches as many clusters as fit on those there are, and with fewer multiprocessors than a cluster has blocks an empty grid, which
is refused (`invalid configuration argument`). Times are seconds of a first run, with nothing in the cache, as in
[samples.md](samples.md): on the clock, of the processor, in kernels, and to compile them.
";

fn page(results: &[Ran]) -> Result<String> {
    let mut text = HEAD.to_owned();
    let of = |name: &str| results.iter().find(|it| it.name == name);
    let count = |how| results.iter().filter(|it| it.how == how).count();
    let known = results.iter().filter(|it| EXAMPLES.iter().any(|example| example.name == it.name)).count();
    ensure!(known == results.len(), "{RESULTS} has an example that nobody knows");
    let _ = writeln!(
        text,
        "\nOf {}: {} passed, {} failed, {} not run.",
        EXAMPLES.len(),
        count(How::Passed),
        results.len() - count(How::Passed),
        EXAMPLES.len() - results.len()
    );
    text.push_str("\n| program | target | what it shows | arguments | result | s | processor | kernels | compiled | launches | it says |\n");
    text.push_str("|---|---|---|---|---|--:|--:|--:|--:|--:|---|\n");
    for Example { name, target, shows, arguments, .. } in EXAMPLES {
        let arguments = if arguments.is_empty() { String::new() } else { format!("`{arguments}`") };
        let result = of(name)
            .map_or("not run | | | | | | ".to_owned(), |it| format!("{} | {}", it.cells(), it.quoted()));
        let _ = writeln!(text, "| {name} | {} | {shows} | {arguments} | {result} |", target.words().0);
    }
    Ok(text)
}
