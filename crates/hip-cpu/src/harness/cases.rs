//! `CASES=folder` keeps what tests launch, so that a CUDA driver can be asked whether it agrees (`examples/rows_on_cuda.rs`): a case is a
//! PTX text behind comments that say the launch, its arguments, and what was in memory before and after it.
//!
//! ```text
//! // case: kernel 2,1,1 128,1,1 1,1,1 0 false
//! // value: 64000000
//! // buffer: 00000000 2a000000
//! ```
//! The words of the first line: the kernel, its grid, block and cluster, bytes of dynamic shared memory, whether it is cooperative.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use compiler::Program;

use super::rows::Shape;
use super::{Arg, How};

/// A launch.
#[derive(Debug, PartialEq)]
pub struct Case {
    pub kernel: String,
    pub shape: Shape,
    pub arguments: Vec<Argument>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Argument {
    Value(Vec<u8>),
    Buffer { before: Vec<u8>, after: Vec<u8> },
}

/// A case that runs.
pub struct Running {
    path: PathBuf,
    text: String,
    case: Case,
}

impl Running {
    /// `None` where nothing is kept, or this launch is: settings launch the same ones.
    pub fn new(program: &Program, kernel: &str, how: &How, args: &[Arg<'_>]) -> Option<Running> {
        let folder = std::env::var_os("CASES")?;
        let [source] = program.lines.sources() else { return None };
        let How { grid, block, cluster, cooperative, dynamic_shared, .. } = *how;
        let shape = Shape { grid, block, cluster, cooperative, dynamic_shared };
        let arguments = args.iter().map(|arg| match arg {
            Arg::Value(bytes) => Argument::Value(bytes.clone()),
            Arg::Buffer(buffer) => Argument::Buffer { before: buffer.to_vec(), after: Vec::new() },
        });
        let case = Case { kernel: kernel.to_owned(), shape, arguments: arguments.collect() };
        let mut hasher = DefaultHasher::new();
        (&source.text, case.said()).hash(&mut hasher);
        let path = Path::new(&folder).join(format!("{:016x}.ptx", hasher.finish()));
        (!path.exists()).then(|| Running { path, text: source.text.clone(), case })
    }

    /// Keeps it with what its buffers have now.
    pub fn end(mut self, args: &[Arg<'_>]) {
        for (argument, arg) in self.case.arguments.iter_mut().zip(args) {
            if let (Argument::Buffer { after, .. }, Arg::Buffer(buffer)) = (argument, arg) {
                *after = buffer.to_vec();
            }
        }
        std::fs::write(self.path, self.case.said() + &self.text)
            .expect("CASES is a folder that can be written");
    }
}

impl Case {
    fn said(&self) -> String {
        let Shape { grid, block, cluster, cooperative, dynamic_shared } = self.shape;
        let [grid, block, cluster] = [grid, block, cluster].map(|[x, y, z]| format!("{x},{y},{z}"));
        let mut text =
            format!("// case: {} {grid} {block} {cluster} {dynamic_shared} {cooperative}\n", self.kernel);
        for argument in &self.arguments {
            let _ = match argument {
                Argument::Value(bytes) => writeln!(text, "// value: {}", hexadecimal(bytes)),
                Argument::Buffer { before, after } => {
                    writeln!(text, "// buffer: {} {}", hexadecimal(before), hexadecimal(after))
                }
            };
        }
        text
    }

    /// What a text says that was kept.
    pub fn read(text: &str) -> Option<Case> {
        let (first, rest) = text.split_once('\n')?;
        let words: Vec<&str> = first.strip_prefix("// case: ")?.split(' ').collect();
        let &[kernel, grid, block, cluster, dynamic_shared, cooperative] = words.as_slice() else {
            return None;
        };
        let three = |word: &str| -> Option<[u32; 3]> {
            let numbers: Option<Vec<u32>> = word.split(',').map(|number| number.parse().ok()).collect();
            numbers?.try_into().ok()
        };
        let shape = Shape {
            grid: three(grid)?,
            block: three(block)?,
            cluster: three(cluster)?,
            cooperative: cooperative.parse().ok()?,
            dynamic_shared: dynamic_shared.parse().ok()?,
        };
        let lines = rest.lines().map_while(|line| line.strip_prefix("// ")?.split_once(": "));
        let argument = |(kind, words): (&str, &str)| match kind {
            "value" => Some(Argument::Value(bytes(words)?)),
            "buffer" => {
                let (before, after) = words.split_once(' ')?;
                Some(Argument::Buffer { before: bytes(before)?, after: bytes(after)? })
            }
            _ => None,
        };
        let arguments = lines.map(argument).collect::<Option<_>>()?;
        Some(Case { kernel: kernel.to_owned(), shape, arguments })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |index: usize| u8::from_str_radix(text.get(index..index + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_was_kept() {
        let shape = Shape {
            grid: [2, 1, 1],
            block: [64, 2, 1],
            cluster: [2, 1, 1],
            cooperative: true,
            dynamic_shared: 48,
        };
        let buffer = Argument::Buffer { before: vec![0, 1], after: vec![0xff, 0x10] };
        let arguments = vec![Argument::Value(vec![7, 0, 0, 0]), buffer];
        let case = Case { kernel: "k".to_owned(), shape, arguments };
        assert_eq!(Case::read(&(case.said() + "// made by hand\n.version 8.0\n")), Some(case));
        assert_eq!(Case::read(".version 8.0\n"), None);
        assert_eq!(Case::read("// case: k 1,1,1 1,1,1 1,1,1 0 false\n// value: 0g\n"), None);
    }
}
