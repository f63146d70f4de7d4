//! Setting S: W lanes in LLVM vectors (helper back-s).

use super::cpu::{Compiled, Options};
use crate::ir::Function;
use crate::program::{Kernel, Program};

/// `Err` is the reason why this kernel does not run in S.
pub fn emit(_program: &Program, _kernel: &Kernel, _body: &Function, _options: &Options) -> Result<Compiled, String> {
    Err("setting S is not written yet".to_owned())
}
