//! (helper ptx writes this) AST → SSA IR.

use crate::program::{Diagnostic, Program, Source};

pub fn program(_sources: &[Source]) -> Result<Program, Vec<Diagnostic>> {
    Err(vec![])
}
