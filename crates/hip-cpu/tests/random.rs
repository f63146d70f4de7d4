//! Random structured kernels give the bits of the plain executor in `reference`, in every setting.

mod generate;
mod reference;

use generate::emit;
use generate::forms::Form;
use hip_cpu::harness::{self, Error, How, rows};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use reference::{Arg, Buffer, Launch, Program};

/// Rows of what is not done one instruction after the other.
const FUSED: &str = "run/float/fused.ptx";

/// The executor is itself tested by every row of `tests/run` that it can run.
#[test]
fn the_reference_gives_the_rows_of_tests_run() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    let wanted = std::env::var("ROWS").unwrap_or_default();
    let (mut good, mut skipped, mut failures) = (0, vec![], vec![]);
    let is_asked_for =
        |it: &std::path::PathBuf| it.to_string_lossy().contains(&wanted) && !it.ends_with(FUSED);
    for path in files(&folder).into_iter().filter(is_asked_for) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let parsed = ptx::parse(&text);
        let program = match Program::new(&parsed.module) {
            Ok(program) => program,
            Err(error) => {
                skipped.push(format!("{name}: {error}"));
                continue;
            }
        };
        for row in rows::parse(&text).unwrap() {
            match run_row(&program, &row) {
                Ok(true) => good += 1,
                Ok(false) => failures.push(format!("{name}:{}: {}", row.line, row.kernel)),
                Err(error) => skipped.push(format!("{name}:{}: {}: {error}", row.line, row.kernel)),
            }
        }
    }
    println!("{good} rows agree; {} were not run:\n{}", skipped.len(), skipped.join("\n"));
    assert!(failures.is_empty(), "{} rows differ:\n{}", failures.len(), failures.join("\n"));
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "ptx") {
            all.push(path);
        }
    }
    all.sort();
    all
}

/// Whether the results are the row's.
fn run_row(program: &Program<'_>, row: &rows::Row) -> reference::Result<bool> {
    let mut out = Buffer::new(vec![0xa5; row.results.iter().map(|it| it.bytes()).sum()]);
    let sizes = program.function(&row.kernel)?.parameter_sizes();
    let mut args = vec![Arg::Buffer(&mut out)];
    for (text, bytes) in row.arguments.iter().zip(&sizes[1..]) {
        args.push(Arg::Value(rows::argument(text, *bytes).ok_or("not a value")?));
    }
    let launch = Launch { grid: row.how.grid, block: row.how.block, dynamic_shared: row.how.dynamic_shared };
    reference::run(program, &row.kernel, &launch, &mut args)?;
    if out.defined.contains(&false) {
        return Err("the manual leaves it open".to_owned());
    }
    let mut at = 0;
    Ok(row.results.iter().all(|result| {
        at += result.bytes();
        result.matches(&out.bytes[at - result.bytes()..at])
    }))
}

/// How a program is run beside setting `lane`; the name is the setting and its width, then vector bits.
fn ways(kernel: &generate::Kernel) -> Vec<(String, How)> {
    let mut how = How::new(kernel.grid, 1);
    how.block = kernel.block;
    let simd = |width: u32, bits: Option<u32>| {
        let name = format!("simd{width}{}", bits.map(|bits| format!("/{bits}")).unwrap_or_default());
        (name, How { vector_bits: bits, ..how.clone().simd(width) })
    };
    let opened = |(name, how): (String, How)| Some((format!("{name} open"), how.opened()?));
    let in_warps = ("warp".to_owned(), how.clone().warp());
    let mut all = vec![in_warps.clone(), simd(32, None), simd(32, Some(256))];
    all.extend([in_warps.clone(), simd(32, None), simd(32, Some(256))].into_iter().filter_map(opened));
    all.extend([in_warps, simd(32, None)].map(|(name, how)| (format!("{name} for less"), how.thrifty())));
    if !kernel.warp {
        all.extend([simd(16, None), simd(8, None), simd(64, None), simd(16, Some(128)), simd(1, None)]);
    }
    // One a program, since LLVM takes its time with vectors: all have their turn. `ALL=1` takes them all, `ALL=0` none.
    match std::env::var("ALL").as_deref() {
        Ok("0") => all.clear(),
        Ok(_) => {}
        Err(_) => all = vec![all.swap_remove(kernel.seed as usize % all.len())],
    }
    all.insert(0, ("baseline".to_owned(), how.clone().baseline()));
    all.insert(0, ("lane".to_owned(), how.lane()));
    all
}

/// The buffers of a launch.
#[derive(Clone)]
struct Buffers {
    all: [Vec<u8>; 5],
}

impl Buffers {
    fn new(kernel: &generate::Kernel) -> Buffers {
        let threads = (kernel.block.iter().product::<u32>() * kernel.grid) as usize;
        let words = |count: usize, word: &dyn Fn(u32) -> u32| -> Vec<u8> {
            (0..count as u32).flat_map(|nth| word(nth).to_le_bytes()).collect()
        };
        let seed = kernel.seed;
        let input = words(emit::INPUT_BYTES / 4, &|nth| {
            let any = scrambled(nth ^ seed);
            match nth {
                0..200 => any % 50,
                200..512 => any,
                512..768 => (any as i32 as f32 / 1e8).to_bits(),
                _ if nth % 2 == 1 => 0x3fe0_0000 | any >> 12 | any << 31,
                _ => any,
            }
        });
        let zeros = |len: usize| vec![0; len];
        Buffers {
            all: [
                input,
                zeros(threads * emit::RESULT_BYTES),
                words(threads * emit::SCRATCH_BYTES / 4, &|nth| scrambled(nth) % 1000),
                words(threads * emit::LINES, &|nth| scrambled(nth) % 100),
                words(emit::COUNTERS * 2, &|nth| scrambled(nth)),
            ],
        }
    }
}

fn scrambled(nth: u32) -> u32 {
    let mut x = nth.wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

const N: u32 = 100;

fn by_reference(ptx: &str, kernel: &generate::Kernel) -> reference::Result<Vec<Buffer>> {
    let parsed = ptx::parse(ptx);
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    let program = Program::new(&parsed.module)?;
    let mut buffers = Buffers::new(kernel).all.map(Buffer::new);
    let mut args: Vec<Arg<'_>> = buffers.iter_mut().map(Arg::Buffer).collect();
    args.push(Arg::Value(N.to_le_bytes().to_vec()));
    let launch = Launch { grid: [kernel.grid, 1, 1], block: kernel.block, dynamic_shared: 0 };
    reference::run(&program, "kernel", &launch, &mut args)?;
    Ok(buffers.to_vec())
}

fn by_translator(
    program: &compiler::Program,
    kernel: &generate::Kernel,
    how: &How,
) -> Result<Vec<Vec<u8>>, Error> {
    let mut buffers = Buffers::new(kernel).all;
    let mut args: Vec<harness::Arg<'_>> =
        buffers.iter_mut().map(|buffer| harness::Arg::Buffer(buffer)).collect();
    args.push(harness::Arg::u32(N));
    harness::run(program, "kernel", how, &mut args)?;
    Ok(buffers.to_vec())
}

/// Counts of what was done.
#[derive(Default)]
struct Tally {
    programs: u32,
    open: u32,
    bytes: u64,
    open_bytes: u64,
    runs: std::collections::BTreeMap<String, u32>,
    refused: std::collections::BTreeMap<String, u32>,
}

/// `Err` tells the first difference.
fn check(kernel: &generate::Kernel, forms: &[Vec<Form>], tally: &mut Tally) -> Result<(), String> {
    let ptx = emit::module(kernel, forms);
    if let Some(file) = std::env::var_os("LAST") {
        std::fs::write(file, &ptx).unwrap();
    }
    let fail = |what: String| {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("random.ptx");
        std::fs::write(&file, &ptx).unwrap();
        format!("{what}\nblock {:?}, grid {}, text in {}", kernel.block, kernel.grid, file.display())
    };
    tally.programs += 1;
    let start = std::time::Instant::now();
    let expected = by_reference(&ptx, kernel);
    if std::env::var_os("TIMES").is_some() {
        println!("reference: {:?}", start.elapsed());
    }
    let expected = match expected {
        Ok(expected) => expected,
        Err(error) if error.ends_with(reference::OPEN) => {
            tally.open += 1;
            return Ok(());
        }
        Err(error) => return Err(fail(format!("the reference: {error}"))),
    };
    for buffer in &expected {
        tally.bytes += buffer.bytes.len() as u64;
        tally.open_bytes += buffer.defined.iter().filter(|it| !**it).count() as u64;
    }
    let program = harness::load(&ptx).map_err(|error| fail(error.to_string()))?;
    for (name, how) in ways(kernel) {
        let start = std::time::Instant::now();
        let found = match by_translator(&program, kernel, &how) {
            Ok(found) => found,
            Err(Error::Refused { why, .. }) => {
                *tally.refused.entry(format!("{name}: {why}")).or_default() += 1;
                continue;
            }
            Err(error) => return Err(fail(format!("{name}: {error}"))),
        };
        *tally.runs.entry(name.clone()).or_default() += 1;
        if std::env::var_os("TIMES").is_some() {
            println!("{} lines, {name}: {:?}", ptx.lines().count(), start.elapsed());
        }
        for (nth, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let differs = |at: &usize| expected.defined[*at] && expected.bytes[*at] != found[*at];
            if let Some(at) = (0..found.len()).find(differs) {
                let count = (0..found.len()).filter(differs).count();
                return Err(fail(format!(
                    "{name}: buffer {nth} differs in {count} bytes, first {at}: {:#04x}, expected {:#04x}",
                    found[at], expected.bytes[at]
                )));
            }
        }
    }
    Ok(())
}

/// `PROGRAMS=10000` makes more of them, `SEED=7` others, `TIMES=1` shows how long each takes. A failure is cut down to a small program with the same fault.
#[test]
fn random_kernels_give_the_reference_s_bits_in_every_setting() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u32>().ok());
    let forms = generate::forms::pure();
    println!("{} forms of pure instructions", forms.iter().map(Vec::len).sum::<usize>());
    let config = Config {
        cases: number("PROGRAMS").unwrap_or(24),
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number("SEED").unwrap_or(0).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let tally = std::cell::RefCell::new(Tally::default());
    let result = runner.run(&generate::kernel(), |kernel| {
        check(&kernel, &forms, &mut tally.borrow_mut()).map_err(TestCaseError::fail)
    });
    let tally = tally.into_inner();
    println!(
        "{} programs, {} of them open; {} of {} bytes open; runs {:?}; refused {:?}",
        tally.programs, tally.open, tally.open_bytes, tally.bytes, tally.runs, tally.refused
    );
    if let Err(TestError::Fail(reason, kernel)) = &result {
        panic!("{reason}\n{kernel:#?}");
    }
    result.unwrap();
}
