//! The syntax tree: PTX as written, nothing resolved, every name a slice of the text.

use std::fmt;

use crate::span::{Span, Spanned};

/// A name and where it stands.
pub type Ident<'a> = Spanned<&'a str>;

/// One PTX module.
#[derive(Debug, Clone, Default)]
pub struct Module<'a> {
    /// `.version major.minor`.
    pub version: Option<Spanned<(u32, u32)>>,
    /// `.target sm_75, debug`: all words of all `.target` directives.
    pub targets: Vec<Ident<'a>>,
    /// `.address_size 64`.
    pub address_size: Option<Spanned<u32>>,
    /// Everything else, in order.
    pub items: Vec<Item<'a>>,
}

impl<'a> Module<'a> {
    /// All `.entry` and `.func` items, in order.
    pub fn functions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }

    /// All module-scope variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Variable(variable) => Some(variable),
            _ => None,
        })
    }
}

/// Something at module scope.
#[derive(Debug, Clone)]
pub enum Item<'a> {
    /// `.global .align 4 .u32 x[4] = {1, 2};`
    Variable(Variable<'a>),
    /// `.entry` or `.func`, declared or defined.
    Function(Function<'a>),
    /// `.alias name, target;`
    Alias(Alias<'a>),
    /// `.file 1 "a.cu"`
    File(File<'a>),
    /// `.section .debug_info { … }`: debug data, skipped.
    Section(Section<'a>),
    /// `.pragma "…";`
    Pragma(Pragma<'a>),
}

/// `.alias name, target;`
#[derive(Debug, Clone, Copy)]
pub struct Alias<'a> {
    /// The new name.
    pub name: Ident<'a>,
    /// The function it stands for.
    pub target: Ident<'a>,
    /// The whole directive.
    pub span: Span,
}

/// `.file index "name"`, time stamp and size dropped.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// What `.loc` calls it.
    pub index: u64,
    /// The name between the quotes, escapes as written.
    pub name: Ident<'a>,
}

/// A `.section`, its contents skipped.
#[derive(Debug, Clone, Copy)]
pub struct Section<'a> {
    /// `.debug_info` and the like, with the dot.
    pub name: Ident<'a>,
    /// All of it.
    pub span: Span,
}

/// `.pragma "nounroll", "…";`
#[derive(Debug, Clone)]
pub struct Pragma<'a> {
    /// The strings between the quotes.
    pub strings: Vec<Ident<'a>>,
    /// The whole directive.
    pub span: Span,
}

/// `.loc file line column[, function_name label[, inlined_at file line column]]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// The `.file` index.
    pub file: u64,
    /// From 1.
    pub line: u64,
    /// From 1; 0 says unknown.
    pub column: u64,
    /// File, line and column of the call this was inlined at.
    pub inlined_at: Option<(u64, u64, u64)>,
    /// The whole directive.
    pub span: Span,
}

/// How a symbol is seen by other modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Linkage {
    /// Not marked: known in this module only.
    #[default]
    Local,
    /// `.extern`: defined elsewhere.
    Extern,
    /// `.visible`: defined here, for all.
    Visible,
    /// `.weak`: defined here, gives way.
    Weak,
    /// `.common`: one storage for all modules that say so.
    Common,
}

/// A state space of a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// `.reg`
    Register,
    /// `.param`
    Param,
    /// `.global`
    Global,
    /// `.const`
    Const,
    /// `.shared`, also `.shared::cta`
    Shared,
    /// `.local`
    Local,
    /// `.tex` (old)
    Texture,
    /// `.sreg`
    Special,
}

impl Space {
    /// By the word without its dot.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "reg" => Space::Register,
            "param" => Space::Param,
            "global" => Space::Global,
            "const" => Space::Const,
            "shared" | "shared::cta" => Space::Shared,
            "local" => Space::Local,
            "tex" => Space::Texture,
            "sreg" => Space::Special,
            _ => return None,
        })
    }
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident $text:literal $bits:literal,)*) => {
        /// A fundamental, packed, alternate or opaque type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Type { $($name,)* }

        impl Type {
            /// Every type.
            pub const ALL: &'static [Type] = &[$(Type::$name,)*];

            /// By the word without its dot.
            pub fn parse(word: &str) -> Option<Self> {
                Some(match word { $($text => Type::$name,)* _ => return None })
            }

            /// The word without its dot.
            pub fn name(self) -> &'static str {
                match self { $(Type::$name => $text,)* }
            }

            /// Size in memory in bits; 1 for a predicate.
            pub fn bits(self) -> u32 {
                match self { $(Type::$name => $bits,)* }
            }
        }
    };
}

types! {
    B8 "b8" 8, B16 "b16" 16, B32 "b32" 32, B64 "b64" 64, B128 "b128" 128,
    U8 "u8" 8, U16 "u16" 16, U32 "u32" 32, U64 "u64" 64,
    S8 "s8" 8, S16 "s16" 16, S32 "s32" 32, S64 "s64" 64,
    F16 "f16" 16, F16x2 "f16x2" 32, F32 "f32" 32, F32x2 "f32x2" 64, F64 "f64" 64,
    Bf16 "bf16" 16, Bf16x2 "bf16x2" 32, Tf32 "tf32" 32,
    U16x2 "u16x2" 32, S16x2 "s16x2" 32, U8x4 "u8x4" 32, S8x4 "s8x4" 32,
    B4 "b4" 4, U4 "u4" 4, S4 "s4" 4, B1 "b1" 1, S2 "s2" 2, U2 "u2" 2,
    E4m3 "e4m3" 8, E5m2 "e5m2" 8, E4m3x2 "e4m3x2" 16, E5m2x2 "e5m2x2" 16,
    E4m3x4 "e4m3x4" 32, E5m2x4 "e5m2x4" 32,
    E3m2 "e3m2" 8, E2m3 "e2m3" 8, E2m1 "e2m1" 4,
    E3m2x2 "e3m2x2" 16, E2m3x2 "e2m3x2" 16, E2m1x2 "e2m1x2" 8,
    E3m2x4 "e3m2x4" 32, E2m3x4 "e2m3x4" 32, E2m1x4 "e2m1x4" 16,
    Ue8m0 "ue8m0" 8, Ue8m0x2 "ue8m0x2" 16, Ue4m3 "ue4m3" 8,
    Pred "pred" 1,
    Texref "texref" 64, Samplerref "samplerref" 64, Surfref "surfref" 64,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.name())
    }
}

/// `.attribute(.managed)`, `.attribute(.unified(1, 2))`
#[derive(Debug, Clone)]
pub struct Attribute<'a> {
    /// `managed`, without the dot.
    pub name: Ident<'a>,
    /// `(1, 2)`.
    pub arguments: Vec<Expression<'a>>,
}

/// `.ptr .global .align 16` of a kernel parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointer {
    /// The state space pointed to; generic if not said.
    pub space: Option<Space>,
    /// The alignment of what is pointed to.
    pub align: Option<u64>,
}

/// A declaration of one or more names of one type.
#[derive(Debug, Clone)]
pub struct Variable<'a> {
    /// `.extern`, `.visible`, `.weak`, `.common` or none.
    pub linkage: Linkage,
    /// `.attribute(…)`.
    pub attributes: Vec<Attribute<'a>>,
    /// `.global` and so on.
    pub space: Spanned<Space>,
    /// `.const[3]`: the bank.
    pub bank: Option<u64>,
    /// `.align n`.
    pub align: Option<Spanned<u64>>,
    /// 2, 4 or 8 for `.v2`, `.v4`, `.v8`.
    pub vector: Option<u8>,
    /// The element type.
    pub ty: Spanned<Type>,
    /// `.ptr …` of a kernel parameter.
    pub pointer: Option<Pointer>,
    /// The names; one, unless written as a list.
    pub names: Vec<Declarator<'a>>,
    /// The whole declaration.
    pub span: Span,
}

/// One declared name.
#[derive(Debug, Clone)]
pub struct Declarator<'a> {
    /// The name, or the stem of `%r<100>`.
    pub name: Ident<'a>,
    /// `<n>`: the names stem0 … stem(n-1). A number from the text: never allocate by it.
    pub range: Option<u32>,
    /// `[4][]`: `None` for empty brackets.
    pub dimensions: Vec<Option<Expression<'a>>>,
    /// `= …`.
    pub initializer: Option<Initializer<'a>>,
    /// The declarator.
    pub span: Span,
}

/// `= 3`, `= {1, {2, 3}}`, `= {addr_mode_0 = wrap}`
#[derive(Debug, Clone)]
pub enum Initializer<'a> {
    /// One value.
    Value(Expression<'a>),
    /// `{ … }`.
    List(Vec<Initializer<'a>>, Span),
    /// `field = value` of a texture, sampler or surface.
    Field(Ident<'a>, Expression<'a>),
}

impl Initializer<'_> {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Initializer::Value(value) => value.span,
            Initializer::List(_, span) => *span,
            Initializer::Field(name, value) => name.span.to(value.span),
        }
    }
}

/// Kernel or device function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
}

/// `.entry` or `.func`.
#[derive(Debug, Clone)]
pub struct Function<'a> {
    /// Which of the two.
    pub kind: FunctionKind,
    /// `.extern`, `.visible`, `.weak` or none.
    pub linkage: Linkage,
    /// `.attribute(…)`.
    pub attributes: Vec<Attribute<'a>>,
    /// `(.param .b32 retval)` in front of the name.
    pub returns: Vec<Variable<'a>>,
    /// The name.
    pub name: Ident<'a>,
    /// The parameters.
    pub parameters: Vec<Variable<'a>>,
    /// `.maxntid 256, 1, 1`, `.noreturn`, …
    pub directives: Vec<Directive<'a>>,
    /// The body, unless only declared.
    pub body: Option<Block<'a>>,
    /// The whole function.
    pub span: Span,
}

impl<'a> Function<'a> {
    /// The directive of that name (without dot).
    pub fn directive(&self, name: &str) -> Option<&Directive<'a>> {
        self.directives.iter().find(|directive| directive.name.value == name)
    }
}

/// `.maxntid 16, 16`; the name without its dot.
#[derive(Debug, Clone)]
pub struct Directive<'a> {
    /// The name without its dot.
    pub name: Ident<'a>,
    /// The numbers behind it.
    pub arguments: Vec<Expression<'a>>,
    /// All of it.
    pub span: Span,
}

/// `{ … }`: a scope.
#[derive(Debug, Clone, Default)]
pub struct Block<'a> {
    /// In order.
    pub statements: Vec<Statement<'a>>,
    /// Both braces included.
    pub span: Span,
}

impl Block<'_> {
    /// Instructions in it, those of inner scopes included.
    pub fn n_instructions(&self) -> usize {
        let of = |statement: &Statement<'_>| match statement {
            Statement::Instruction(_) => 1,
            Statement::Block(block) => block.n_instructions(),
            _ => 0,
        };
        self.statements.iter().map(of).sum()
    }
}

/// Something in a function body.
#[derive(Debug, Clone)]
pub enum Statement<'a> {
    /// `.reg .b32 %r<3>;`
    Variable(Variable<'a>),
    /// `name:`
    Label(Ident<'a>),
    /// `@%p add.s32 d, a, b;`
    Instruction(Instruction<'a>),
    /// `{ … }`
    Block(Block<'a>),
    /// `name: .callprototype (…) _ (…);`
    CallPrototype(CallPrototype<'a>),
    /// `name: .calltargets f, g;`
    CallTargets(Targets<'a>),
    /// `name: .branchtargets A, B;`
    BranchTargets(Targets<'a>),
    /// `.loc …`
    Location(Location),
    /// `.pragma "…";`
    Pragma(Pragma<'a>),
    /// Could not be read; the diagnostics say why.
    Invalid(Span),
}

/// `name: .callprototype (.param .b32 _) _ (.param .b64 _);`
#[derive(Debug, Clone)]
pub struct CallPrototype<'a> {
    /// The label in front.
    pub name: Ident<'a>,
    /// What comes back.
    pub returns: Vec<Variable<'a>>,
    /// What goes in.
    pub parameters: Vec<Variable<'a>>,
    /// `.noreturn` and the like.
    pub directives: Vec<Directive<'a>>,
    /// The whole statement.
    pub span: Span,
}

/// The list of a `.calltargets` or `.branchtargets`.
#[derive(Debug, Clone)]
pub struct Targets<'a> {
    /// The label in front.
    pub name: Ident<'a>,
    /// The functions or labels.
    pub targets: Vec<Ident<'a>>,
    /// The whole statement.
    pub span: Span,
}

/// `@!%p`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard<'a> {
    /// `!`
    pub negated: bool,
    /// The predicate.
    pub register: Ident<'a>,
}

/// `@%p opcode.mod.mod operands;`
#[derive(Debug, Clone)]
pub struct Instruction<'a> {
    /// `@%p`.
    pub guard: Option<Guard<'a>>,
    /// The first word.
    pub opcode: Ident<'a>,
    /// Every dot word behind it, in order, without the dot: `shared::cta`, `s32`, `2d`.
    pub modifiers: Vec<Ident<'a>>,
    /// The operands, in order.
    pub operands: Vec<Operand<'a>>,
    /// From the guard to the semicolon.
    pub span: Span,
}

impl Instruction<'_> {
    /// `add.rn.f32`, as written.
    pub fn full_name(&self) -> String {
        let mut name = self.opcode.value.to_owned();
        for modifier in &self.modifiers {
            name.push('.');
            name.push_str(modifier.value);
        }
        name
    }

    /// Whether the modifier is there.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|it| it.value == modifier)
    }
}

/// An operand and where it stands.
#[derive(Debug, Clone)]
pub struct Operand<'a> {
    /// What it is.
    pub kind: OperandKind<'a>,
    /// Where.
    pub span: Span,
}

/// What an operand is.
#[derive(Debug, Clone)]
pub enum OperandKind<'a> {
    /// A register, label, symbol or special register.
    Name(&'a str),
    /// `%tid.x`, `%v.y`, `%r1.b0`: name and member, without the dot.
    Member(&'a str, &'a str),
    /// `_`
    Sink,
    /// `7`, `sym+4`, `(A-1)*2`
    Expression(Expression<'a>),
    /// `[%rd1+16]`, `[tex, {x, y}]`
    Address(Address<'a>),
    /// `sym[3]`
    Element(&'a str, Expression<'a>),
    /// `{a, b, _}`
    Vector(Vec<Operand<'a>>),
    /// `(a, b)` of a call.
    List(Vec<Operand<'a>>),
    /// `p|q`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `!p`
    Not(Box<Operand<'a>>),
    /// `-r`, of the video instructions.
    Negate(Box<Operand<'a>>),
}

/// `[base]`, `[base+8]`, `[base, more, …]` and a suffix as in `[a].unified`.
#[derive(Debug, Clone)]
pub struct Address<'a> {
    /// Register or symbol, plus or minus numbers.
    pub base: Expression<'a>,
    /// What stands behind commas inside the brackets.
    pub more: Vec<Operand<'a>>,
    /// `.unified`, without the dot.
    pub suffix: Option<Ident<'a>>,
}

/// A constant expression or an address expression.
#[derive(Debug, Clone)]
pub struct Expression<'a> {
    /// What it is.
    pub kind: ExpressionKind<'a>,
    /// Where.
    pub span: Span,
}

/// The cases of an expression.
#[derive(Debug, Clone)]
pub enum ExpressionKind<'a> {
    /// An integer; `unsigned` if it has a `U` or does not fit `.s64`.
    Integer { value: u64, unsigned: bool },
    /// `0f3f800000`: the bits.
    Single(u32),
    /// `0d3ff0000000000000` or `1.0`: the bits.
    Double(u64),
    /// A symbol, a register, or `WARP_SZ`.
    Name(&'a str),
    /// `-a`, `+a`, `!a`, `~a`
    Unary(UnaryOperator, Box<Expression<'a>>),
    /// `a + b`
    Binary(BinaryOperator, Box<Expression<'a>>, Box<Expression<'a>>),
    /// `c ? a : b`
    Conditional(Box<[Expression<'a>; 3]>),
    /// `(.s64) a`, `(.u64) a`: whether unsigned.
    Cast { unsigned: bool, value: Box<Expression<'a>> },
    /// `generic(sym)`, `generic(sym) + 8`
    Generic(Box<Expression<'a>>),
    /// `0xff00(sym)`: the masked byte of an address.
    Mask(u64, Box<Expression<'a>>),
}

/// Operators of one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOperator {
    Plus,
    Minus,
    LogicalNot,
    Complement,
}

/// Operators of two operands, as in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Xor,
    Or,
    LogicalAnd,
    LogicalOr,
}
