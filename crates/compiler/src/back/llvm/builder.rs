//! Writes LLVM IR text: fresh names, blocks, instructions, constants, each intrinsic declared once.
//!
//! Every method works lane-wise on vectors and on scalars alike; the operand's type decides. No fast-math flag and no
//! `nsw`-like flag is ever written, so an instruction is poison only where LLVM says so for plain operands.

use super::ty::{Scalar, Type};
use crate::ir::Scope;
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// On the branch back of a loop that LLVM is not to unroll.
pub const ROLLED: &str = "!llvm.loop !1";

/// What [`ROLLED`] refers to; a module with such loops has it once.
pub const ROLLED_IS: &str = "!1 = distinct !{!1, !2}\n!2 = !{!\"llvm.loop.unroll.runtime.disable\"}";

/// An operand: a name or a constant, and its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Val {
    pub ty: Type,
    pub text: String,
}

impl Val {
    pub fn new(ty: Type, text: impl Into<String>) -> Val {
        Val { ty, text: text.into() }
    }

    /// `i32 %x`
    pub fn typed(&self) -> String {
        format!("{} {}", self.ty, self.text)
    }
}

#[derive(Debug, Default)]
pub struct Builder {
    declarations: BTreeMap<String, String>,
    text: String,
    names: u32,
    block: String,
    n_blocks: u32,
    /// Short names for long ones.
    shortened: BTreeMap<String, String>,
    machine: Machine,
    /// Results have numbers for names.
    is_numbered: bool,
}

/// What the code is for: where machines or their LLVM differ, the code asks.
#[derive(Clone, Copy, Debug)]
enum Machine {
    /// The widest vector register in bits, and whether it has AVX-512's products of bytes. LLVM 19 is ours.
    Cpu { vector_bits: u32, has_vnni: bool },
    /// LLVM is ROCm's, 15 or later.
    Amdgcn,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::Cpu { vector_bits: 0, has_vnni: false }
    }
}

impl Builder {
    pub fn new() -> Builder {
        Builder::default()
    }

    /// For a CPU whose widest vector register has so many bits, and its extension VNNI or not. Code made by [`Builder::new`] runs on any.
    pub fn for_vectors(vector_bits: u32, has_vnni: bool) -> Builder {
        Builder { machine: Machine::Cpu { vector_bits, has_vnni }, ..Builder::default() }
    }

    /// An empty one for the same machine.
    pub fn another(&self) -> Builder {
        Builder { machine: self.machine, ..Builder::default() }
    }

    /// The same, with numbers for names: LLVM reads them sooner, and keeps nothing of them. What has one is written in the order of
    /// the numbers, of which some may be missing (LLVM 19).
    pub fn numbered(vector_bits: u32) -> Builder {
        Builder { is_numbered: true, ..Builder::for_vectors(vector_bits, false) }
    }

    /// For AMD GPUs.
    pub fn for_amdgcn() -> Builder {
        Builder { machine: Machine::Amdgcn, ..Builder::default() }
    }

    pub fn is_amdgcn(&self) -> bool {
        matches!(self.machine, Machine::Amdgcn)
    }

    pub fn vector_bits(&self) -> u32 {
        match self.machine {
            Machine::Cpu { vector_bits, .. } => vector_bits,
            Machine::Amdgcn => 0,
        }
    }

    pub fn has_vnni(&self) -> bool {
        matches!(self.machine, Machine::Cpu { has_vnni: true, .. })
    }

    /// `syncscope("…") ` of an atomic access or a fence. On a CPU a narrower scope is the whole process.
    pub fn sync_scope(&self, scope: Scope) -> &'static str {
        match (self.machine, scope) {
            (Machine::Amdgcn, Scope::Cta) => "syncscope(\"workgroup\") ",
            (Machine::Amdgcn, Scope::Cluster | Scope::Gpu) => "syncscope(\"agent\") ",
            _ => "",
        }
    }

    // ---- the text ----

    /// A name nothing else has: `%v7`.
    pub fn fresh(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    /// The name of what is written next: `%7`.
    fn number(&mut self) -> String {
        self.names += 1;
        format!("%{}", self.names)
    }

    /// The name of a function that is known by `long`: its first word and a number.
    pub fn shortened(&mut self, long: &str) -> String {
        if let Some(short) = self.shortened.get(long) {
            return short.clone();
        }
        let word = long.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let short = format!("{word}.{}", self.shortened.len());
        self.shortened.insert(long.to_owned(), short.clone());
        short
    }

    /// What is written for the same module has its functions' names in common.
    pub fn trade_names(&mut self, other: &mut Builder) {
        std::mem::swap(&mut self.shortened, &mut other.shortened);
    }

    /// A block label nothing else has, without `%`: `loop.7`.
    pub fn label(&mut self, hint: &str) -> String {
        self.names += 1;
        format!("{hint}.{}", self.names)
    }

    /// What was written, without the declarations.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// One line as it is.
    pub fn line(&mut self, line: impl Display) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Puts others in the place of lines that were written as marks.
    pub fn replace_lines(&mut self, marks: &[(String, String)]) {
        let marks: BTreeMap<&str, &str> = marks.iter().map(|(mark, line)| (&**mark, &**line)).collect();
        let old = std::mem::take(&mut self.text);
        for line in old.lines() {
            self.line(marks.get(line).unwrap_or(&line));
        }
    }

    /// One instruction without a result.
    pub fn inst(&mut self, inst: impl Display) {
        let _ = writeln!(self.text, "  {inst}");
    }

    /// `%fresh = inst`
    pub fn assign(&mut self, ty: Type, inst: impl Display) -> Val {
        let name = if self.is_numbered { self.number() } else { self.fresh() };
        let _ = writeln!(self.text, "  {name} = {inst}");
        Val { ty, text: name }
    }

    /// Starts a block; the one before must have ended.
    pub fn start_block(&mut self, label: &str) {
        let _ = writeln!(self.text, "{label}:");
        label.clone_into(&mut self.block);
        self.n_blocks += 1;
    }

    /// Which block is being written: the first is 1.
    pub fn nth_block(&self) -> u32 {
        self.n_blocks
    }

    /// Label of the block being written, for phis.
    pub fn current_block(&self) -> &str {
        &self.block
    }

    pub fn br(&mut self, label: &str) {
        self.inst(format_args!("br label %{label}"));
    }

    pub fn cond_br(&mut self, condition: &Val, then: &str, otherwise: &str) {
        self.inst(format_args!("br i1 {}, label %{then}, label %{otherwise}", condition.text));
    }

    /// Adds a declaration or a global constant to the module, once per name.
    pub fn declare(&mut self, name: &str, declaration: impl Into<String>) {
        if !self.declarations.contains_key(name) {
            self.declarations.insert(name.to_owned(), declaration.into());
        }
    }

    /// Adds a function to the module, once per name; `write` gets a builder of its own.
    pub fn define<E>(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Builder) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.declarations.contains_key(name) {
            return Ok(());
        }
        let mut inner = Builder { machine: self.machine, ..Builder::default() };
        write(&mut inner)?;
        for (name, declaration) in inner.declarations {
            self.declare(&name, declaration);
        }
        self.declare(name, inner.text);
        Ok(())
    }

    pub fn is_declared(&self, name: &str) -> bool {
        self.declarations.contains_key(name)
    }

    /// Adds the function that `inner` wrote: `header`, `first` in the entry block, then its text from block `body` on.
    pub fn adopt(&mut self, name: &str, header: impl Display, first: &[String], inner: Builder) {
        let mut text = format!("{header} {{\nentry:\n");
        for line in first {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(text, "  br label %body\n{}}}", inner.text);
        for (name, declaration) in inner.declarations {
            self.declare(&name, declaration);
        }
        self.declare(name, text);
    }

    /// What was written, and the declarations it needs.
    pub fn finish(self) -> String {
        let mut text = self.text;
        for declaration in self.declarations.into_values() {
            let _ = writeln!(text, "{declaration}");
        }
        text
    }

    // ---- constants ----

    /// The bits as a constant of `ty`, in every lane.
    pub fn bits(ty: Type, bits: u128) -> Val {
        let width = ty.bits();
        let bits = if width >= 128 { bits } else { bits & ((1u128 << width) - 1) };
        let scalar = match ty.scalar {
            Scalar::Int(1) => if bits == 1 { "true" } else { "false" }.to_owned(),
            // Wider integers are sign-extended.
            Scalar::Int(129..) => (bits as i128).to_string(),
            Scalar::Int(_) => bits.to_string(),
            Scalar::Half => format!("0xH{bits:04X}"),
            Scalar::Double => format!("0x{bits:016X}"),
            Scalar::Float => {
                let value = f32::from_bits(bits as u32);
                if value.is_nan() {
                    let ints = Builder::bits(ty.ints(32), bits);
                    return Val::new(ty, format!("bitcast ({} to {ty})", ints.typed()));
                }
                format!("0x{:016X}", f64::from(value).to_bits())
            }
            Scalar::Ptr | Scalar::Space(_) => "null".to_owned(),
        };
        if ty.lanes == 1 {
            Val::new(ty, scalar)
        } else if bits == 0 {
            Val::new(ty, "zeroinitializer")
        } else {
            Val::new(ty, format!("splat ({} {scalar})", ty.scalar))
        }
    }

    /// Whether an operand is written out instead of named.
    pub fn is_constant(value: &Val) -> bool {
        !value.text.starts_with('%')
    }

    /// The bits of an operand that is written out, the same in all lanes.
    pub fn constant_int(value: &Val) -> Option<u128> {
        let text = value.text.as_str();
        if text == "zeroinitializer" {
            return Some(0);
        }
        let lane = text.strip_prefix("splat (").and_then(|it| it.strip_suffix(')'));
        lane.map_or(Some(text), |it| it.split_once(' ').map(|(_, bits)| bits))?.parse().ok()
    }

    /// An integer constant, negative ones in two's complement.
    pub fn int(ty: Type, value: i128) -> Val {
        Builder::bits(ty, value as u128)
    }

    /// A float constant in `ty`'s format; it must be representable there.
    pub fn fp(ty: Type, value: f64) -> Val {
        match ty.scalar {
            Scalar::Float => Builder::bits(ty, u128::from((value as f32).to_bits())),
            Scalar::Double => Builder::bits(ty, u128::from(value.to_bits())),
            _ => unreachable!("float constants are f32 or f64"),
        }
    }

    // ---- instructions ----

    pub fn bin(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        debug_assert_eq!(a.ty, b.ty, "{op}");
        self.assign(a.ty, format_args!("{op} {} {}, {}", a.ty, a.text, b.text))
    }

    /// The right side is an integer constant.
    pub fn bin_int(&mut self, op: &str, a: &Val, b: i128) -> Val {
        let b = Builder::int(a.ty, b);
        self.bin(op, a, &b)
    }

    pub fn add(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("add", a, b)
    }

    pub fn sub(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("sub", a, b)
    }

    pub fn mul(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("mul", a, b)
    }

    pub fn and(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("and", a, b)
    }

    pub fn or(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("or", a, b)
    }

    pub fn xor(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("xor", a, b)
    }

    pub fn not(&mut self, a: &Val) -> Val {
        self.bin_int("xor", a, -1)
    }

    pub fn fadd(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("fadd", a, b)
    }

    pub fn fsub(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("fsub", a, b)
    }

    pub fn fmul(&mut self, a: &Val, b: &Val) -> Val {
        self.bin("fmul", a, b)
    }

    pub fn fneg(&mut self, a: &Val) -> Val {
        self.assign(a.ty, format_args!("fneg {}", a.typed()))
    }

    pub fn icmp(&mut self, condition: &str, a: &Val, b: &Val) -> Val {
        debug_assert_eq!(a.ty, b.ty, "icmp {condition}");
        self.assign(a.ty.pred(), format_args!("icmp {condition} {} {}, {}", a.ty, a.text, b.text))
    }

    pub fn icmp_int(&mut self, condition: &str, a: &Val, b: i128) -> Val {
        let b = Builder::int(a.ty, b);
        self.icmp(condition, a, &b)
    }

    pub fn fcmp(&mut self, condition: &str, a: &Val, b: &Val) -> Val {
        debug_assert_eq!(a.ty, b.ty, "fcmp {condition}");
        self.assign(a.ty.pred(), format_args!("fcmp {condition} {} {}, {}", a.ty, a.text, b.text))
    }

    pub fn select(&mut self, condition: &Val, a: &Val, b: &Val) -> Val {
        debug_assert_eq!(a.ty, b.ty, "select");
        self.assign(a.ty, format_args!("select {}, {}, {}", condition.typed(), a.typed(), b.typed()))
    }

    /// `trunc`, `zext`, `fpext`, `bitcast`…; nothing when the type is already `to`.
    pub fn cast(&mut self, op: &str, a: &Val, to: Type) -> Val {
        if a.ty == to {
            return a.clone();
        }
        self.assign(to, format_args!("{op} {} to {to}", a.typed()))
    }

    pub fn bitcast(&mut self, a: &Val, to: Type) -> Val {
        self.cast("bitcast", a, to)
    }

    /// To integers of the type's width with the same bits.
    pub fn to_bits(&mut self, a: &Val) -> Val {
        self.bitcast(a, a.ty.ints(a.ty.bits()))
    }

    /// Truncates, or extends by the sign or with zeros.
    pub fn resize(&mut self, a: &Val, bits: u32, signed: bool) -> Val {
        let op = match (bits < a.ty.bits(), signed) {
            (true, _) => "trunc",
            (false, true) => "sext",
            (false, false) => "zext",
        };
        self.cast(op, a, a.ty.ints(bits))
    }

    /// Calls an LLVM intrinsic: `llvm.NAME.SUFFIX` of the overloaded types, in order.
    pub fn intrinsic(&mut self, name: &str, overloads: &[Type], ret: Type, args: &[&Val]) -> Val {
        let mut full = format!("llvm.{name}");
        for ty in overloads {
            let _ = write!(full, ".{}", ty.suffix());
        }
        let types: Vec<String> = args.iter().map(|arg| arg.ty.to_string()).collect();
        self.declare(&full, format!("declare {ret} @{full}({})", types.join(", ")));
        let args: Vec<String> = args.iter().map(|arg| arg.typed()).collect();
        self.assign(ret, format_args!("call {ret} @{full}({})", args.join(", ")))
    }

    /// Calls an intrinsic without a result; `params` is how its declaration lists them.
    pub fn call_void(&mut self, name: &str, params: &str, args: &[&Val]) {
        self.declare(name, format!("declare void @{name}({params})"));
        let args: Vec<String> = args.iter().map(|arg| arg.typed()).collect();
        self.inst(format_args!("call void @{name}({})", args.join(", ")));
    }

    /// An intrinsic overloaded on the type all operands and the result have.
    pub fn same(&mut self, name: &str, args: &[&Val]) -> Val {
        let ty = args[0].ty;
        self.intrinsic(name, &[ty], ty, args)
    }

    /// `llvm.ctlz`, `llvm.abs`: a last immediate `i1 false` says the odd input is defined.
    pub fn same_defined(&mut self, name: &str, a: &Val) -> Val {
        let no = Val::new(Type::int(1, 1), "false");
        self.intrinsic(name, &[a.ty], a.ty, &[a, &no])
    }

    pub fn fma(&mut self, a: &Val, b: &Val, c: &Val) -> Val {
        self.same("fma", &[a, b, c])
    }

    /// To the nearest integer, ties to even.
    pub fn round_even(&mut self, a: &Val) -> Val {
        // LLVM 15 cannot select `roundeven` there; `rint` rounds so while nobody changes the mode, and nobody does.
        self.same(if self.is_amdgcn() { "rint" } else { "roundeven" }, &[a])
    }

    pub fn fabs(&mut self, a: &Val) -> Val {
        self.same("fabs", &[a])
    }

    pub fn copysign(&mut self, magnitude: &Val, sign: &Val) -> Val {
        self.same("copysign", &[magnitude, sign])
    }
}
