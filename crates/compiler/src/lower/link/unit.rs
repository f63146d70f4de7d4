//! One source among those that are linked: what it says of all its code, and whether it can be linked at all.

use ptx::{Parsed, Span};

use crate::lines::Lines;
use crate::lower::dialect::{self, Dialect};
use crate::program::{Cause, Diagnostic};

/// What a source says of all its code.
pub(crate) struct Unit {
    /// 75 of `.target sm_75`; 0 without one.
    pub(crate) target: u32,
    /// `.target texmode_independent`
    pub(crate) independent_textures: bool,
    /// What its instructions may be.
    pub(crate) dialect: Dialect,
}

impl Unit {
    /// `sm_90a`, where it stands.
    fn architecture<'m, 'a>(module: &'m ptx::Module<'a>) -> Option<&'m ptx::ast::Ident<'a>> {
        module.targets.iter().find(|word| word.value.starts_with("sm_"))
    }

    pub(super) fn new(module: &ptx::Module<'_>) -> Unit {
        let words = || module.targets.iter().map(|word| word.value);
        Unit {
            target: words().find_map(dialect::architecture).map_or(0, |(number, _)| number),
            independent_textures: words().any(|word| word == "texmode_independent"),
            dialect: Dialect::new(
                module.version.map_or((0, 0), |version| version.value),
                Unit::architecture(module).map(|word| word.value),
            ),
        }
    }
}

/// The PTX version of CUDA 13.5.
const NEWEST_PTX: (u32, u32) = (9, 5);

/// What the parser could not read outside of functions: the source as a whole is broken.
pub(super) fn module_errors(lines: &Lines, unit: usize, parsed: &Parsed<'_>) -> Vec<Diagnostic> {
    // Items stand in the order of the text.
    let spans: Vec<Span> = parsed.module.functions().map(|function| function.span).collect();
    let inside = |span: Span| {
        let behind = spans.partition_point(|it| it.start <= span.start);
        behind.checked_sub(1).is_some_and(|at| spans[at].contains(span))
    };
    let errors = parsed.diagnostics.iter().filter(|it| it.severity == ptx::Severity::Error);
    let told = |span, message: String| lines.diagnostic(unit, span, None, message);
    let mut found: Vec<Diagnostic> =
        errors.filter(|it| !inside(it.span)).map(|it| told(it.span, it.message.clone())).collect();
    let module = &parsed.module;
    let start = Span::default();
    // With other errors about, a missing line is most likely one of them.
    if found.is_empty() && module.version.is_none() {
        found.push(told(start, "the '.version' directive is missing".to_owned()));
    }
    if let Some(version) = module.version.as_ref().filter(|version| version.value > NEWEST_PTX) {
        let ((major, minor), (newest, its_minor)) = (version.value, NEWEST_PTX);
        let message =
            format!("PTX {major}.{minor} is newer than {newest}.{its_minor}, the newest known here");
        found.push(Diagnostic { cause: Cause::Version, ..told(version.span, message) });
    }
    if found.is_empty() && module.targets.is_empty() {
        found.push(told(start, "the '.target' directive is missing".to_owned()));
    }
    if let (Some(version), Some(target)) = (&module.version, Unit::architecture(module)) {
        let wrong = dialect::wrong_target(version.value, target.value);
        found.extend(wrong.map(|message| told(target.span, message)));
    }
    if let Some(size) = module.address_size.filter(|size| size.value != 64) {
        found.push(told(size.span, "32-bit addresses are not supported".to_owned()));
    }
    found
}
