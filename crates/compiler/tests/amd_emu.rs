//! The rows of `crates/hip-cpu/tests/run` on an instruction emulator of AMD GPUs (tools/amd-emu): gfx1100 and gfx1201 have waves of
//! 32 lanes, gfx942 of 64. Runs where `TINYGRAD` names a checkout of tinygrad and says that it was skipped otherwise.
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

use compiler::gcn::children::{self, Header};
use compiler::gcn::services::{CAPACITY, Fault, Kind, RECORDS, TAKEN};
use compiler::gcn::{Code, Launch, Target, Variables, compile, heap};
use compiler::{Module, Source};
use form::Row;
use gcn_batch::{code_object, merged, ptx_files};
use testkit::known::{self, Known, Ran};

const NO_EMULATOR: &str = "TINYGRAD does not name a checkout of tinygrad";

/// A GPU of each generation that the emulator knows.
const TARGETS: [&str; 3] = ["gfx1100", "gfx942", "gfx1201"];

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
    for name in TARGETS.iter().filter(|name| name.contains(&wanted)) {
        let ran = run(name, Path::new(&tinygrad));
        let ran: Vec<Ran> =
            ran.iter().map(|(test, failed)| Ran { test, failed: failed.as_deref() }).collect();
        let known = known(name, |file| file.contains(&rows));
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
    for name in TARGETS {
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

const LAUNCHES: &str = r#".version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
.visible .entry child(.param .u64 a, .param .u32 b) { ret; }
.visible .entry parent(.param .u64 out) {
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .pred %p<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 8;
    add.u64 %rd1, %rd1, %rd2;
    mov.u64 %rd3, child;
    add.u32 %r2, %r1, 1;
    mov.u32 %r3, 1;
    setp.eq.u32 %p3, %r1, 5;
    selp.b32 %r4, 2000, 32, %p3;
    { .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
      st.param.b64 [f], %rd3;
      st.param.b32 [g], %r2; st.param.b32 [g+4], %r3; st.param.b32 [g+8], %r3;
      st.param.b32 [b], %r4; st.param.b32 [b+4], %r3; st.param.b32 [b+8], %r3;
      st.param.b32 [s], 64;
      call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
      ld.param.b64 %rd4, [r]; }
    mov.u32 %r6, 1000;
    setp.eq.u64 %p1, %rd4, 0;
    @%p1 bra FAILED;
    st.u64 [%rd4], %rd1;
    st.u32 [%rd4+8], %r1;
    and.b32 %r5, %r1, 1;
    setp.ne.u32 %p2, %r5, 0;
    selp.b64 %rd5, 3, 0, %p2;
    { .param .b64 p; .param .b64 s; .param .b32 r;
      st.param.b64 [p], %rd4; st.param.b64 [s], %rd5;
      call.uni (r), __cudaCDP2LaunchDeviceV2, (p, s);
      ld.param.b32 %r6, [r]; }
FAILED:
    st.global.u32 [%rd1], %r6;
    { .param .b32 r; call.uni (r), __cudaCDP2GetLastError, (); ld.param.b32 %r7, [r]; }
    st.global.u32 [%rd1+4], %r7;
    ret;
}
"#;

/// What six threads launch, each one grid, the odd ones into the tail and the last one with a block that is too large.
struct Launches {
    /// By thread what the launch answered (1000: there was no buffer), and the last error.
    answers: Vec<[u32; 2]>,
    /// In the order of their places: grid, stream, and the parameter that says whose it is.
    records: Vec<(u32, u64, u32)>,
}

/// Of so much room in the tail, and so many bytes for records.
fn launched<const N: usize>(target: &Target, tinygrad: &Path, rooms: [(u32, u64); N]) -> [Launches; N] {
    const QUEUE: u64 = 0x1500_0000_0000;
    const OUT: u64 = 120 << 10;
    let source = Source { name: "launches".to_owned(), text: LAUNCHES.to_owned() };
    let module = Module::link(vec![source]).unwrap();
    let code = compile(&module, 1, target).unwrap();
    assert!(code.uses_queue && !code.uses_services && !code.uses_heap);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("queue-{}", target.processor()));
    std::fs::create_dir_all(&folder).unwrap();
    let object = code_object(&folder, "launches", &merged(&[&code]), target.processor());
    let line = |(tail_room, record_bytes): (u32, u64)| {
        let header = Header {
            tail_room,
            most_grid: [1 << 20, 65535, 65535],
            most_block: [1024, 1024, 64],
            most_threads: 1024,
            most_shared: 48 << 10,
            limits: [None; 5],
            attributes: vec![],
            kernels: module.kernels().iter().map(|kernel| (1024, kernel.params_bytes, [0; 3])).collect(),
            facts: None,
        };
        let header = header.to_bytes(Header::first(2, false) + record_bytes);
        let launch = Launch { queue: QUEUE, grid: [1; 3], block: [6, 1, 1], ..Launch::default() };
        format!(
            "{{\"object\": {:?}, \"kernel\": \"k0\", \"grid\": [1, 1, 1], \"block\": {:?}, \"shared\": 0, \
             \"kernarg\": \"{}\", \"memory\": [{}], \"read\": [{QUEUE}, {}]}}\n",
            object.to_str().unwrap(),
            code.packing.block([6, 1, 1]),
            hex(&code.kernarg.fill(&(QUEUE + OUT).to_le_bytes(), &launch)),
            block(QUEUE, OUT + 4096, &[(0, header)]),
            OUT + 4096,
        )
    };
    let list = folder.join("list.json");
    std::fs::write(&list, rooms.map(line).concat()).unwrap();
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/amd-emu/run_rows.py");
    let ran =
        Command::new("python3").arg(runner).arg(&list).arg("0").env("TINYGRAD", tinygrad).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    std::array::from_fn(|nth| {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("{nth} ")));
        let text = line.unwrap_or_else(|| panic!("{said}"));
        let bytes: Vec<u8> = (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect(text))
            .collect();
        let word = |at: u64| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        let wide = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
        let mut records = vec![];
        let (mut at, end) =
            (Header::first(2, false), Header::first(2, false) + wide(children::TAKEN).min(rooms[nth].1));
        while at < end {
            // 64 bytes, and 12 of parameters.
            assert_eq!(word(at), 80);
            if word(at + children::STATE) == children::State::Launch as u32 {
                let shape = [children::WHAT, children::SHARED, children::BLOCK, children::PARAMS_BYTES];
                assert_eq!(shape.map(|field| word(at + field)), [0, 64, 32, 12]);
                let thread = word(at + children::PARAMS + 8);
                assert_eq!(wide(at + children::PARAMS), QUEUE + OUT + 8 * u64::from(thread));
                let record = (word(at + children::GRID), wide(at + children::STREAM), thread);
                records.push((wide(at + children::PLACE), record));
            }
            at += 80;
        }
        records.sort_unstable();
        // Places count on from 0.
        assert!(records.iter().enumerate().all(|(nth, (place, _))| *place == nth as u64), "{records:?}");
        assert_eq!(wide(children::PLACES), records.len() as u64);
        Launches {
            answers: (0..6).map(|thread| [OUT + 8 * thread, OUT + 8 * thread + 4].map(word)).collect(),
            records: records.into_iter().map(|(_, record)| record).collect(),
        }
    })
}

/// CUDA: a launch with a block that the device does not have is `cudaErrorInvalidConfiguration`, 9, one that there is no room for
/// `cudaErrorLaunchPendingCountExceeded`, 69.
#[test]
fn what_a_kernel_launches_stands_in_the_queue() {
    let Some(tinygrad) = std::env::var_os("TINYGRAD") else { return testkit::skip!("{NO_EMULATOR}") };
    let tinygrad = Path::new(&tinygrad);
    for name in TARGETS {
        let target: Target = name.parse().unwrap();
        let rooms = [(100, 16 << 10), (1, 16 << 10), (0, 16 << 10), (100, 2 * 80)];
        let [all, one, none, short] = launched(&target, tinygrad, rooms);
        let n = |of: &Launches, wanted: [u32; 2]| of.answers.iter().filter(|it| **it == wanted).count();

        assert_eq!(all.answers, [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [1000, 9]], "{name}");
        let mut records = all.records;
        records.sort_unstable();
        assert_eq!(records, [(1, 0, 0), (2, 3, 1), (3, 0, 2), (4, 3, 3), (5, 0, 4)], "{name}");

        // A tail with room for one of the two that want it. Nothing is launched once it is full.
        let failed = n(&one, [69, 69]) + n(&one, [1000, 69]);
        assert!(failed >= 1 && failed + n(&one, [0, 0]) == 5, "{name}: {:?}", one.answers);
        assert_eq!(one.records.len(), n(&one, [0, 0]), "{name}");
        assert_eq!(one.records.iter().filter(|(_, stream, _)| *stream == 3).count(), 1, "{name}");

        // Nothing may be outstanding any more.
        assert_eq!((n(&none, [1000, 69]), n(&none, [1000, 9]), none.records.len()), (5, 1, 0), "{name}");

        // A queue with room for two records.
        assert_eq!((n(&short, [0, 0]), n(&short, [1000, 69]), n(&short, [1000, 9])), (2, 3, 1), "{name}");
        assert_eq!(short.records.len(), 2, "{name}");
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
        assert!(TARGETS.contains(&of.as_str()), "known.tsv: no rows run on {of}");
        let (file, _) = test.split_once(": ").unwrap_or_else(|| panic!("known.tsv: no row is {test}"));
        if of == gpu && wanted(file) {
            all.push(Known { test, said, why, wavers: false });
        }
    }
    all
}

#[test]
fn the_list_of_known_failures_can_be_read() {
    let n: usize = TARGETS.iter().map(|name| known(name, |_| true).len()).sum();
    assert!(n > 0);
}

/// The rows by name, each with what is said if it fails.
fn run(name: &str, tinygrad: &Path) -> Vec<(String, Option<String>)> {
    let target: Target = name.parse().unwrap();
    // Runs of different rows at the same time do not meet.
    let rows = std::env::var("ROWS").unwrap_or_default().replace('/', "-");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("emu-{name}-{rows}"));
    std::fs::create_dir_all(&folder).unwrap();
    let (cases, refused) = cases(&target, &folder);
    // What runners take longest for, the first time, is compiling each form of an instruction. They share what one has compiled,
    // and rows side by side have the same forms: one runner gets many such.
    let runners = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let mut parts: Vec<Vec<&Case>> = vec![vec![]; runners];
    for (nth, rows) in cases.chunks(32).enumerate() {
        parts[nth % runners].extend(rows);
    }
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
fn cases(target: &Target, folder: &Path) -> (Vec<Case>, usize) {
    let (mut cases, mut codes, mut refused) = (vec![], vec![], 0);
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-cpu/tests/run");
    let wanted = std::env::var("ROWS").unwrap_or_default();
    let object = folder.join("all.hsaco");
    for file in ptx_files(&rows) {
        let name = file.strip_prefix(&rows).unwrap().to_string_lossy().into_owned();
        if !name.contains(&wanted) {
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
        queue: 0,
        graph: 0,
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
