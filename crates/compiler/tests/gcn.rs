//! Every kernel of `crates/hip-cpu/tests/run` becomes a code object for each family of AMD GPUs, by Debian's LLVM 19, and
//! the code object says of itself what the launcher is told.

mod gcn_batch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use compiler::gcn::{Code, Target, compile};
use compiler::{Module, Source};
use gcn_batch::{code_object, merged, path, ptx_files, tool};

const TARGETS: [&str; 6] = ["gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// A folder's kernels that can be made, and what is said of the others.
fn all(folder: &str, target: &Target) -> (Vec<Code>, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let (mut codes, mut refused) = (vec![], vec![]);
    for file in ptx_files(&folder) {
        let name = file.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let module = Module::link(vec![Source { name, text }]).unwrap();
        for kernel in 0..module.kernels().len() {
            match compile(&module, kernel, target) {
                Ok(code) => codes.push(code),
                Err(diagnostics) => refused.extend(diagnostics.iter().map(ToString::to_string)),
            }
        }
    }
    (codes, refused)
}

/// `.name: value` of each kernel in the notes of a code object.
fn metadata(notes: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let mut kernels: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for part in notes.split("\n  - .").skip(1) {
        let fields: BTreeMap<String, String> = part
            .lines()
            .filter_map(|line| line.strip_prefix("    .")?.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        kernels.insert(fields["name"].clone(), fields);
    }
    kernels
}

/// Those that `GCN` names, in part (`gfx`: all), or three, other ones in each run: LLVM takes seconds for each.
fn targets() -> Vec<&'static str> {
    if let Ok(wanted) = std::env::var("GCN") {
        return TARGETS.into_iter().filter(|name| name.contains(&wanted)).collect();
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let first = now.subsec_nanos() as usize % TARGETS.len();
    // One of each third of the list, which is by age.
    (0..3).map(|nth| TARGETS[(first + 2 * nth) % TARGETS.len()]).collect()
}

#[test]
fn kernels_become_code_objects_for_every_family() {
    for name in targets() {
        let target: Target = name.parse().unwrap();
        let (codes, refused) = all("../hip-cpu/tests/run", &target);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        println!("{name}: {} kernels, {} refused", codes.len(), refused.len());
        std::fs::write(folder.join("refused.txt"), refused.join("\n")).unwrap();
        // Two at a time.
        let parts: Vec<Vec<&Code>> =
            (0..2).map(|part| codes.iter().skip(part).step_by(2).collect()).collect();
        std::thread::scope(|scope| {
            for (part, codes) in parts.iter().enumerate() {
                let folder = &folder;
                scope.spawn(move || check(folder, &format!("part{part}"), codes, name));
            }
        });
    }
}

/// cuRAND's generators, for both sizes of waves.
#[test]
fn kernels_of_libraries_become_code_objects() {
    for name in ["gfx942", "gfx1100"] {
        let (codes, refused) = all("../libraries/curand/api/kernels", &name.parse().unwrap());
        assert_eq!((codes.len(), refused), (42, vec![]), "{name}");
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("libraries-{name}"));
        std::fs::create_dir_all(&folder).unwrap();
        check(&folder, "kernels", &codes.iter().collect::<Vec<_>>(), name);
    }
}

fn check(folder: &Path, part: &str, codes: &[&Code], name: &str) {
    let text = merged(codes);
    let file = code_object(folder, part, &text, name);
    tool("opt-19", &["-passes=verify", "-disable-output", &path(&folder.join(format!("{part}.ll")))]);
    let notes = tool("llvm-readelf-19", &["--notes", &path(&file)]);
    let kernels = metadata(&notes);
    assert_eq!(kernels.len(), codes.len(), "{name}");
    let wave = name.parse::<Target>().unwrap().wave();
    for (n, code) in codes.iter().enumerate() {
        let fields = &kernels[&format!("k{n}")];
        let is = |field: &str, value: u32| {
            assert_eq!(fields[field], value.to_string(), "{name} {}: {field}", code.symbol)
        };
        is("kernarg_segment_size", code.kernarg.bytes);
        is("group_segment_fixed_size", code.shared_bytes);
        is("wavefront_size", wave);
    }
}

/// The instruction, its place, and words: nothing of how the compiler writes it down for itself.
#[test]
fn an_instruction_that_is_not_there_is_named_as_it_stands() {
    let text = ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n\
                .reg .b32 %r<9>; .reg .b64 %rd<3>;\n.shared .align 128 .b8 tile[128];\nld.param.u64 %rd1, [p];\n\
                mov.u32 %r1, tile;\nmov.u32 %r2, 0;\n\
                cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r1];\nret;\n}\n";
    let module = Module::link(vec![Source { name: "x.ptx".to_owned(), text: text.to_owned() }]).unwrap();
    let errors = compiler::gcn::compile(&module, 0, &"gfx1100".parse().unwrap()).unwrap_err();
    let said = errors[0].to_string();
    let expected = "x.ptx:11:1: error: instruction 'cp.async.bulk.tensor.1d.global.shared::cta.bulk_group' is not supported on gfx1100";
    assert_eq!(said, expected);
}
