//! The rows of `crates/hip-cpu/tests/run` on an instruction emulator of AMD GPUs (tools/amd-emu): gfx1100 has waves of 32
//! lanes, gfx942 of 64. Runs where `TINYGRAD` names a checkout of tinygrad and says that it was skipped otherwise.
//! `GCN=gfx942` runs one target, `ROWS=name` the files whose path contains it.

#[expect(dead_code, reason = "hip-cpu uses more of it")]
#[path = "../../hip-cpu/src/harness/rows/form.rs"]
mod form;
mod gcn_batch;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use compiler::gcn::services::{CAPACITY, Fault, Kind, RECORDS, TAKEN};
use compiler::gcn::{Code, Launch, Target, Variables, compile, heap};
use compiler::{Module, Source};
use form::Row;
use gcn_batch::{code_object, merged, ptx_files};
use testkit::known::{self, Known, Ran};

const NO_EMULATOR: &str = "TINYGRAD does not name a checkout of tinygrad";

/// The GPUs, and the rows that run there: all, or those of a folder where a generation is different.
const TARGETS: [(&str, &str); 3] = [("gfx1100", ""), ("gfx942", ""), ("gfx1201", "matrix/")];

/// Where things lie in the emulator's memory, which is the runner's.
const RESULTS: u64 = 0x1100_0000_0000;
const VARIABLES: u64 = 0x1000_0000_0000;
const WORKSPACE: u64 = 0x1200_0000_0000;
const SERVICES: u64 = 0x1300_0000_0000;
const HEAP: u64 = 0x1400_0000_0000;
/// As CUDA's.
const HEAP_BYTES: u64 = 8 << 20;
/// Bytes around the results that nobody may write.
const GUARD: usize = 256;

/// A row and the launch that runs it.
struct Case {
    name: String,
    row: Row,
    launch: String,
}

#[test]
fn rows_give_their_results_on_the_emulator() {
    let Some(tinygrad) = std::env::var_os("TINYGRAD") else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let wanted = std::env::var("GCN").unwrap_or_default();
    let rows = std::env::var("ROWS").unwrap_or_default();
    let mut differences = vec![];
    for (name, part) in TARGETS.iter().filter(|(name, _)| name.contains(&wanted)) {
        let ran = run(name, part, Path::new(&tinygrad));
        let ran: Vec<Ran> =
            ran.iter().map(|(test, failed)| Ran { test, failed: failed.as_deref() }).collect();
        let known = known(name, |file| file.contains(&rows) && file.contains(part));
        println!("{name}: tools/amd-emu/known.tsv lists {} failures", known.len());
        differences.extend(known::differences(&known, &ran));
    }
    assert!(
        differences.is_empty(),
        "{} rows are not as tools/amd-emu/known.tsv says:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

const SPEAKS: &str = r#".version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 format[] = {37, 100, 32, 37, 102, 0};
.global .align 1 .b8 message[] = {120, 0};
.visible .entry speaks() {
    .local .align 8 .b8 depot[16];
    .reg .b64 %rd<6>;
    .reg .b32 %r<6>;
    .reg .pred %p;
    mov.u32 %r1, %tid.x;
    mov.u64 %rd1, depot;
    cvta.local.u64 %rd2, %rd1;
    st.local.u32 [depot], %r1;
    st.local.f64 [depot+8], 0d3FF8000000000000;
    mov.u64 %rd3, format;
    cvta.global.u64 %rd3, %rd3;
    { .param .b64 a; .param .b64 b; .param .b32 c;
      st.param.b64 [a], %rd3; st.param.b64 [b], %rd2;
      call.uni (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }
    setp.ne.u32 %p, %r1, 1;
    @%p bra OUT;
    mov.u64 %rd4, message;
    cvta.global.u64 %rd4, %rd4;
    mov.u64 %rd5, 1;
    mov.u32 %r3, 77;
    { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
      st.param.b64 [a], %rd4; st.param.b64 [b], %rd4; st.param.b32 [c], %r3; st.param.b64 [d], %rd4; st.param.b64 [e], %rd5;
      call.uni __assertfail, (a, b, c, d, e); }
OUT:
    setp.ne.u32 %p, %r1, 2;
    @%p ret;
    trap;
}
"#;

/// `printf`, an assertion and a trap of three lanes: what the launcher finds in the services buffer.
#[test]
fn what_a_kernel_says_stands_in_the_services_buffer() {
    let Some(tinygrad) = std::env::var_os("TINYGRAD") else { return testkit::skip!("{NO_EMULATOR}") };
    for (name, _) in TARGETS {
        let target: Target = name.parse().unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("services-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        let source = Source { name: "speaks".to_owned(), text: SPEAKS.to_owned() };
        let module = Module::link(vec![source]).unwrap();
        let code = compile(&module, 0, &target).unwrap();
        let object = code_object(&folder, "speaks", &merged(&[&code]), target.processor());
        let variables = Variables::of(module.globals());
        let launch = Launch {
            variables: VARIABLES,
            services: SERVICES,
            grid: [1; 3],
            block: [3, 1, 1],
            ..Launch::default()
        };
        let capacity = (CAPACITY, 1024u64.to_le_bytes().to_vec());
        let memory = [
            block(SERVICES, 4096, &[capacity]),
            block(VARIABLES, variables.bytes(), &variables.initial(module.globals(), VARIABLES)),
        ];
        let line = format!(
            "{{\"object\": {:?}, \"kernel\": \"k0\", \"grid\": [1, 1, 1], \"block\": [3, 1, 1], \"shared\": 0, \
             \"kernarg\": \"{}\", \"memory\": [{}], \"read\": [{SERVICES}, 1024]}}\n",
            object.to_str().unwrap(),
            hex(&code.kernarg.fill(&[], &launch)),
            memory.join(", ")
        );
        let list = folder.join("list.json");
        std::fs::write(&list, line).unwrap();
        let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/amd-emu/run_rows.py");
        let ran = Command::new("python3")
            .arg(runner)
            .arg(&list)
            .arg("0")
            .env("TINYGRAD", &tinygrad)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stdout).into_owned();
        let text = said.lines().find_map(|line| line.strip_prefix("0 ")).unwrap_or_else(|| panic!("{said}"));
        let bytes: Vec<u8> = (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect(text))
            .collect();
        let word = |at: u64| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        let wide = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
        assert!(
            [Fault::Assertion as u32, Fault::Trap as u32].contains(&word(0)),
            "{name}: fault {}",
            word(0)
        );
        let address = |variable: &str| VARIABLES + variables.offset(module.global(variable).unwrap().0);
        let (mut at, mut printed, mut n_assertions) = (RECORDS, vec![], 0);
        while at < RECORDS + wide(TAKEN) {
            match word(at + 4) {
                kind if kind == Kind::Printf as u32 => {
                    assert_eq!((word(at), wide(at + 8)), (32, address("format")), "{name}");
                    printed.push((word(at + 16), f64::from_bits(wide(at + 24))));
                }
                kind => {
                    assert_eq!((kind, word(at)), (Kind::Assertion as u32, 64), "{name}");
                    assert_eq!((wide(at + 8), word(at + 32)), (address("message"), 77), "{name}");
                    assert_eq!(
                        [36, 40, 44, 48, 52, 56].map(|field| word(at + field)),
                        [0, 0, 0, 1, 0, 0],
                        "{name}"
                    );
                    n_assertions += 1;
                }
            }
            at += u64::from(word(at));
        }
        printed.sort_by_key(|(thread, _)| *thread);
        assert_eq!((printed, n_assertions), (vec![(0, 1.5), (1, 1.5), (2, 1.5)], 1), "{name}");
    }
}

/// Rows of wanted files that are known to fail on a GPU, and what is said of each: tools/amd-emu/known.tsv.
fn known(gpu: &str, wanted: impl Fn(&str) -> bool) -> Vec<Known> {
    let text = include_str!("../../../tools/amd-emu/known.tsv");
    let mut all = vec![];
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let Ok([of, test, said, why]) = <[String; 4]>::try_from(fields) else {
            panic!("known.tsv: GPU, row, what is said, why: {line}")
        };
        assert!(TARGETS.iter().any(|(name, _)| *name == of), "known.tsv: no rows run on {of}");
        let (file, _) = test.split_once(": ").unwrap_or_else(|| panic!("known.tsv: no row is {test}"));
        if of == gpu && wanted(file) {
            all.push(Known { test, said, why, wavers: false });
        }
    }
    all
}

#[test]
fn the_list_of_known_failures_can_be_read() {
    let n: usize = TARGETS.iter().map(|(name, _)| known(name, |_| true).len()).sum();
    assert!(n > 0);
}

/// The rows by name, each with what is said if it fails.
fn run(name: &str, part: &str, tinygrad: &Path) -> Vec<(String, Option<String>)> {
    let target: Target = name.parse().unwrap();
    // Runs of different rows at the same time do not meet.
    let rows = std::env::var("ROWS").unwrap_or_default().replace('/', "-");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("emu-{name}-{rows}"));
    std::fs::create_dir_all(&folder).unwrap();
    let (cases, refused) = cases(&target, part, &folder);
    // Two runners: what they take longest for is compiling each form of an instruction once.
    let parts: Vec<Vec<&Case>> = (0..2).map(|part| cases.iter().skip(part).step_by(2).collect()).collect();
    let failures: BTreeMap<String, String> = std::thread::scope(|scope| {
        let running: Vec<_> = parts
            .iter()
            .enumerate()
            .map(|(part, cases)| {
                let list = folder.join(format!("rows{part}.json"));
                scope.spawn(move || run_part(name, tinygrad, &list, cases))
            })
            .collect();
        running.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    println!(
        "{name}: {} of {} rows pass; {refused} are of kernels that this target does not have",
        cases.len() - failures.len(),
        cases.len()
    );
    cases
        .into_iter()
        .map(|case| {
            let failed = failures.get(&case.name).cloned();
            (case.name, failed)
        })
        .collect()
}

/// All rows of kernels that can be made, with their code objects in `folder`, and how many cannot.
fn cases(target: &Target, part: &str, folder: &Path) -> (Vec<Case>, usize) {
    let (mut cases, mut codes, mut refused) = (vec![], vec![], 0);
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-cpu/tests/run");
    let wanted = std::env::var("ROWS").unwrap_or_default();
    let object = folder.join("all.hsaco");
    for file in ptx_files(&rows) {
        let name = file.strip_prefix(&rows).unwrap().to_string_lossy().into_owned();
        if !name.contains(&wanted) || !name.contains(part) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let module = Module::link(vec![Source { name: name.clone(), text: text.clone() }]).unwrap();
        let mut made: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for row in form::parse(&text).unwrap() {
            let kernel =
                module.kernels().iter().position(|it| it.name == row.kernel).expect("the row's kernel");
            let number = *made.entry(kernel).or_insert_with(|| {
                codes.push(compile(&module, kernel, target).ok()?);
                Some(codes.len() - 1)
            });
            let Some(number) = number.filter(|_| row.how.cluster == [1; 3]) else {
                refused += 1;
                continue;
            };
            let launch = launch(&module, kernel, &codes[number], number, &row, &object);
            // Without its line, which moves; some run more than once, in other blocks.
            let mut name = format!("{name}: {}({})", row.kernel, row.arguments.join(", "));
            let nth = times.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
            if *nth > 1 {
                let _ = write!(name, " #{nth}");
            }
            cases.push(Case { name, row, launch });
        }
    }
    code_object(folder, "all", &merged(&codes.iter().collect::<Vec<_>>()), target.processor());
    (cases, refused)
}

/// The launch as tools/amd-emu/run_rows.py reads it.
fn launch(module: &Module, kernel: usize, code: &Code, number: usize, row: &Row, object: &Path) -> String {
    let header = &module.kernels()[kernel];
    let mut params = vec![0; header.params_bytes as usize];
    params[..8].copy_from_slice(&(RESULTS + GUARD as u64).to_le_bytes());
    for (text, param) in row.arguments.iter().zip(&header.params[1..]) {
        let value = form::argument(text, param.bytes as usize).expect("an argument");
        params[param.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    let variables = Variables::of(module.globals());
    let launch = Launch {
        variables: VARIABLES,
        services: 0,
        workspace: if row.how.cooperative { WORKSPACE } else { 0 },
        grid_id: 1,
        tick: 10 << 32,
        grid: row.how.grid,
        block: row.how.block,
        dynamic_shared: row.how.dynamic_shared,
        multiprocessors: 4,
        heap: if code.uses_heap { HEAP } else { 0 },
    };
    let size: usize = row.results.iter().map(|it| it.bytes()).sum::<usize>() + 2 * GUARD;
    let mut memory = vec![block(RESULTS, size as u64, &[(0, vec![0xa5; size])])];
    if variables.bytes() > 0 {
        memory.push(block(VARIABLES, variables.bytes(), &variables.initial(module.globals(), VARIABLES)));
    }
    if code.uses_heap {
        memory.push(block(HEAP, HEAP_BYTES, &[(0, heap::header(HEAP_BYTES))]));
    }
    if row.how.cooperative {
        memory.push(block(WORKSPACE, 8, &[(0, vec![8, 0, 0, 0])]));
    }
    format!(
        "{{\"object\": {:?}, \"kernel\": \"k{number}\", \"grid\": {:?}, \"block\": {:?}, \"shared\": {}, \"kernarg\": \"{}\", \
         \"memory\": [{}], \"read\": [{RESULTS}, {size}]}}",
        object.to_str().unwrap(),
        row.how.grid,
        code.packing.block(row.how.block),
        row.how.dynamic_shared,
        hex(&code.kernarg.fill(&params, &launch)),
        memory.join(", ")
    )
}

fn block(address: u64, bytes: u64, pieces: &[(u64, Vec<u8>)]) -> String {
    let pieces: Vec<String> =
        pieces.iter().map(|(offset, content)| format!("[{offset}, \"{}\"]", hex(content))).collect();
    format!("{{\"address\": {address}, \"bytes\": {bytes}, \"pieces\": [{}]}}", pieces.join(", "))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Runs the rows; the runner is started again behind a row that ends it.
fn run_part(target: &str, tinygrad: &Path, list: &Path, cases: &[&Case]) -> BTreeMap<String, String> {
    std::fs::write(list, cases.iter().map(|case| format!("{}\n", case.launch)).collect::<String>()).unwrap();
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/amd-emu/run_rows.py");
    let mut failures = BTreeMap::new();
    let mut next = 0;
    while next < cases.len() {
        let mut child = Command::new("python3")
            .arg(&runner)
            .arg(list)
            .arg(next.to_string())
            .env("TINYGRAD", tinygrad)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut begun = None;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let Some((number, rest)) = line.split_once(' ') else { continue };
            if number == "begin" {
                begun = rest.parse::<usize>().ok();
                continue;
            }
            let Some(number) = number.parse::<usize>().ok().filter(|it| Some(*it) == begun) else { continue };
            begun = None;
            next = number + 1;
            if let Err(why) = answer(&cases[number].row, rest) {
                failures.insert(cases[number].name.clone(), why);
            }
        }
        let status = child.wait().unwrap();
        match begun {
            Some(number) => {
                failures.insert(cases[number].name.clone(), format!("the emulator ended: {status}"));
                next = number + 1;
            }
            None => assert!(next == cases.len(), "{target}: the runner does not start: {status}"),
        }
    }
    failures
}

fn answer(row: &Row, text: &str) -> Result<(), String> {
    let bytes: Option<Vec<u8>> =
        (0..text.len() / 2).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    let bytes = bytes.filter(|_| !text.starts_with("error")).ok_or_else(|| text.to_owned())?;
    let mut at = GUARD;
    for (index, expected) in row.results.iter().enumerate() {
        let got = &bytes[at..at + expected.bytes()];
        if !expected.matches(got) {
            return Err(format!("result {index} is {}, expected {expected:?}", expected.show(got)));
        }
        at += expected.bytes();
    }
    match bytes[..GUARD].iter().chain(&bytes[at..]).all(|byte| *byte == 0xa5) {
        true => Ok(()),
        false => Err("the kernel wrote outside its results".to_owned()),
    }
}
