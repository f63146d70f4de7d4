//! Setting L: one thread at a time, from one meeting point to the next. The reference for every other setting.
//!
//! `cudaway_step` is a state machine: the record's resume point picks the place to go on at. [`plan`] decides what is
//! saved where, `code` writes the function, `request` and `special` what they are named after.

mod code;
pub(crate) mod layout;
mod plan;
mod request;
mod special;

use super::cpu::{Compiled, ENTRY_LANE, Options, Setting};
use crate::ir::Function;
use crate::program::{Diagnostic, Kernel, Program};

pub fn emit(
    program: &Program,
    kernel: &Kernel,
    body: &Function,
    options: &Options,
) -> Result<Compiled, Vec<Diagnostic>> {
    let plan = plan::plan(body);
    let locals = code::Locals::of(body);
    let text = code::write(program, kernel, body, options, &plan, &locals, ENTRY_LANE).map_err(|reason| {
        vec![Diagnostic {
            source: String::new(),
            line: 0,
            column: 0,
            function: Some(kernel.name.clone()),
            message: reason.to_string(),
        }]
    })?;
    Ok(Compiled {
        text,
        setting: Setting::Lane,
        width: 1,
        context_bytes: plan.context_bytes,
        local_bytes: locals.bytes,
        why_not_simd: None,
    })
}
