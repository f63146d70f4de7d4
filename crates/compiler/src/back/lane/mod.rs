//! Setting L: one thread at a time (helper back-l).

use super::cpu::{Compiled, Options};
use crate::ir::Function;
use crate::program::{Diagnostic, Kernel, Program};

pub fn emit(
    _program: &Program,
    _kernel: &Kernel,
    _body: &Function,
    _options: &Options,
) -> Result<Compiled, Vec<Diagnostic>> {
    Err(vec![])
}
