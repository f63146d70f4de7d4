//! What directives and declarations need of a source's `.version` and `.target`, as [`dialect`](super::dialect) has it of
//! instructions: at module scope where the source is linked, in a body where that is lowered. What ptxas of CUDA 13.5
//! accepts is the source here too (`cargo test -p compiler --test targets`), and what is not listed is allowed.

use ptx::Span;
use ptx::ast::{
    Attribute, CallPrototype, Directive, Expression, ExpressionKind, Function, Initializer, Item, Linkage,
    Location, Pragma, Type, Variable,
};

use super::dialect::{Dialect, Need};

/// What stands in a source that it may not have.
pub(super) type Refused = Vec<(Span, String)>;

/// Directives of functions and of call prototypes.
const DIRECTIVES: &[(&str, Need)] = &[
    ("abi_preserve", Need::new("9.0", "80")),
    ("abi_preserve_control", Need::new("9.0", "80")),
    ("blocksareclusters", Need::new("9.0", "90")),
    ("explicitcluster", Need::new("7.8", "90")),
    ("maxclusterrank", Need::new("7.8", "90")),
    ("noreturn", Need::new("6.4", "0")),
    ("reqnctapercluster", Need::new("7.8", "90")),
];

/// Strings of `.pragma`, by how they begin; others mean nothing.
const PRAGMAS: &[(&str, Need)] = &[
    ("enable_smem_spilling", Need::new("8.7", "75")),
    ("frequency", Need::new("9.0", "0")),
    ("used_bytes_mask", Need::new("8.3", "0")),
];

const TYPES: &[(Type, Need)] = &[(Type::B128, Need::new("8.3", "70")), (Type::F16x2, Need::new("0.0", "53"))];

const ALIAS: Need = Need::new("6.3", "0");
const BRANCH_TARGETS: Need = Need::new("5.1", "0");
const COMMON: Need = Need::new("5.0", "0");
const INLINED: Need = Need::new("7.0", "0");
/// `0xff00(symbol)` in an initialiser.
const MASK: Need = Need::new("7.1", "0");
const UNIFIED: Need = Need::new("8.0", "90");
/// `.param .b8 p[]` of a function.
const UNSIZED: Need = Need::new("5.1", "0");

/// Bytes of a kernel's parameters that every source may have; the most that one may have else; and which may.
const PARAMETERS: u64 = 4352;
const MOST_PARAMETERS: u64 = 32764;
const MANY_PARAMETERS: Need = Need::new("8.1", "70");

impl Dialect {
    fn hold(&self, need: &Need, span: Span, what: impl FnOnce() -> String, refused: &mut Refused) {
        refused.extend(self.refusal(need, what).map(|message| (span, message)));
    }

    /// At module scope.
    pub(super) fn item(&self, item: &Item<'_>, refused: &mut Refused) {
        match item {
            Item::Variable(variable) => self.variable(variable, refused),
            Item::Function(function) => self.function(function, refused),
            Item::Alias(alias) => self.hold(&ALIAS, alias.span, || "'.alias'".to_owned(), refused),
            Item::File(_) | Item::Section(_) | Item::Pragma(_) => {}
        }
    }

    /// All of it but its body, and how much a kernel's parameters take.
    fn function(&self, function: &Function<'_>, refused: &mut Refused) {
        self.attributes(&function.attributes, refused);
        self.directives(&function.directives, refused);
        for variable in function.returns.iter().chain(&function.parameters) {
            self.parameter(variable, refused);
        }
    }

    /// Of the kernel `name`, so many bytes of parameters.
    pub(super) fn parameters(&self, name: &str, bytes: u64) -> Option<String> {
        if bytes > MOST_PARAMETERS {
            return Some(format!(
                "'{name}' has {bytes} bytes of parameters, and {MOST_PARAMETERS} are the most"
            ));
        }
        if bytes > PARAMETERS {
            return self.refusal(&MANY_PARAMETERS, || format!("'{name}' with {bytes} bytes of parameters"));
        }
        None
    }

    fn attributes(&self, attributes: &[Attribute<'_>], refused: &mut Refused) {
        for attribute in attributes.iter().filter(|it| it.name.value == "unified") {
            self.hold(&UNIFIED, attribute.name.span, || "'.unified'".to_owned(), refused);
        }
    }

    fn directives(&self, directives: &[Directive<'_>], refused: &mut Refused) {
        for directive in directives {
            let Some((name, need)) = DIRECTIVES.iter().find(|it| it.0 == directive.name.value) else {
                continue;
            };
            self.hold(need, directive.name.span, || format!("'.{name}'"), refused);
        }
    }

    fn parameter(&self, variable: &Variable<'_>, refused: &mut Refused) {
        self.variable(variable, refused);
        for name in variable.names.iter().filter(|it| it.dimensions.iter().any(Option::is_none)) {
            self.hold(&UNSIZED, name.span, || "a parameter without a length".to_owned(), refused);
        }
    }

    /// A declaration anywhere.
    pub(super) fn variable(&self, variable: &Variable<'_>, refused: &mut Refused) {
        self.attributes(&variable.attributes, refused);
        if variable.linkage == Linkage::Common {
            self.hold(&COMMON, variable.span, || "'.common'".to_owned(), refused);
        }
        if let Some((ty, need)) = TYPES.iter().find(|it| it.0 == variable.ty.value) {
            self.hold(need, variable.ty.span, || format!("type '{ty}'"), refused);
        }
        let masks = self.refusal(&MASK, || "a mask in an initialiser".to_owned());
        let Some(masks) = masks else { return };
        let initializers = variable.names.iter().filter_map(|it| it.initializer.as_ref());
        let found = initializers.filter_map(first_mask).map(|span| (span, masks.clone()));
        refused.extend(found);
    }

    pub(super) fn prototype(&self, prototype: &CallPrototype<'_>, refused: &mut Refused) {
        self.directives(&prototype.directives, refused);
        for variable in prototype.returns.iter().chain(&prototype.parameters) {
            self.parameter(variable, refused);
        }
    }

    pub(super) fn branch_targets(&self, span: Span, refused: &mut Refused) {
        self.hold(&BRANCH_TARGETS, span, || "'.branchtargets'".to_owned(), refused);
    }

    pub(super) fn location(&self, location: &Location, refused: &mut Refused) {
        if location.inlined_at.is_some() {
            self.hold(&INLINED, location.span, || "'inlined_at'".to_owned(), refused);
        }
    }

    /// Inside a body: elsewhere these strings mean nothing.
    pub(super) fn pragma(&self, pragma: &Pragma<'_>, refused: &mut Refused) {
        for string in &pragma.strings {
            let begins = |word: &str| string.value.split_whitespace().next() == Some(word);
            let Some((name, need)) = PRAGMAS.iter().find(|it| begins(it.0)) else { continue };
            self.hold(need, string.span, || format!("pragma '{name}'"), refused);
        }
    }
}

fn first_mask(initializer: &Initializer<'_>) -> Option<Span> {
    match initializer {
        Initializer::Value(value) => is_masked(value).then_some(value.span),
        Initializer::List(list, _) => list.iter().find_map(first_mask),
        Initializer::Field(..) => None,
    }
}

fn is_masked(expression: &Expression<'_>) -> bool {
    matches!(expression.kind, ExpressionKind::Mask(..))
}
