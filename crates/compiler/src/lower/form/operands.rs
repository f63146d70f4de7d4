//! What registers and constants operands may be, by the instruction's types: the manual's "Operand Type Checking", and the
//! operands that have a type of their own.

use ptx::Span;
use ptx::ast::{Expression, Instruction, Operand, OperandKind, Type};

use super::super::function::Lowerer;
use super::super::instruction::{Lower, fail};
use super::super::link::Symbol;
use super::super::scope::Entity;
use super::super::special;
use super::{Typed, typed};
use crate::ir::Ty;

/// What an operand has to be: `0` the first type, `1` the second; `+` behind a word: that or wider; `w` an integer of twice the first
/// type's width; `m0` what a lane has of a matrix of the first type; `u` and `U` integers of 32 and 64 bits, `r` a register of
/// 32; `a` an address; `c` a constant integer, `e` one up to 15, `l` 128, `s` a size in units of 16; `f` `.f32`; `p` a predicate; `[` an
/// address in brackets; `{` a list; `n0` an integer or bits of 32 where `m0` is no float, both lists; `b` 0 or 1, `i` the number of a
/// barrier, `t` a number of threads, whole warps of them, `h` a mask of 16 bits, `d` a descriptor or a list: all of these may be
/// registers too; `-` is not looked at. With `%` in front it is a register, with `?` it may be in brackets. With `=` in front
/// there are as many operands as words, with `<` no more.
#[derive(Clone, Copy)]
struct Want {
    ty: Type,
    may_be_wider: bool,
    may_be_address: bool,
    is_list: bool,
    only: Only,
}

/// What of all that has a type will do.
#[derive(Clone, Copy, PartialEq)]
enum Only {
    All,
    Registers,
    Constants,
    /// Registers, and multiples of 16.
    Sizes,
    /// 128.
    Line,
    /// 0 to 15.
    Events,
    /// Registers, and 0 or 1.
    Bits,
    /// Registers, and 0 to 15.
    Barriers,
    /// Registers, and multiples of 32.
    Threads,
    /// Registers of 64 bits, and lists of any.
    Descriptors,
    /// What stands in brackets.
    Addresses,
    /// What stands in braces.
    Lists,
}

/// Opcodes, with a blank between them, and the operands of their forms: the first that fits.
pub(super) const TYPED: &[(&str, &[Typed])] = &[
    ("abs neg", &[typed(&[], "0 0")]),
    ("add sub", &[typed(&["1=f16|bf16"], "0 1 0"), typed(&[], "0 0 0")]),
    ("addc subc sad div rem min max and or xor copysign", &[typed(&[], "0 0 0 0")]),
    ("mul", &[typed(&["wide"], "w 0 0"), typed(&[], "0 0 0")]),
    ("mad madc", &[typed(&["wide"], "w 0 0 w"), typed(&[], "0 0 0 0")]),
    ("mul24 mad24", &[typed(&[], "0 0 0 0")]),
    ("fma", &[typed(&["1=f16|bf16"], "0 1 1 0"), typed(&[], "0 0 0 0")]),
    ("popc clz bfind", &[typed(&[], "u 0")]),
    ("brev not cnot rcp sqrt rsqrt sin cos lg2 ex2 tanh", &[typed(&[], "0 0")]),
    ("bfe", &[typed(&[], "0 0 u u")]),
    ("bfi", &[typed(&[], "0 0 0 u u")]),
    ("bmsk", &[typed(&[], "u u u")]),
    ("szext", &[typed(&[], "0 0 u")]),
    ("fns", &[typed(&[], "0 0 0 0")]),
    ("dp2a dp4a", &[typed(&[], "u u u u")]),
    ("testp", &[typed(&[], "p 0")]),
    ("setp", &[typed(&[], "p 0 0 p")]),
    ("set", &[typed(&[], "0 1 1 p")]),
    ("selp", &[typed(&[], "0 0 0 p")]),
    ("slct", &[typed(&[], "0 0 0 1")]),
    ("lop3", &[typed(&[], "0 0 0 0 u p")]),
    ("shf", &[typed(&[], "0 0 0 u")]),
    ("shl shr", &[typed(&[], "0 0 u")]),
    ("prmt", &[typed(&[], "0 0 0 0")]),
    (
        "cvt",
        &[
            typed(&["pack"], "u+ 1+ 1+ 2+"),
            typed(&["scaled::n2::ue8m0"], "0 %1 %h"),
            typed(&["rs", "0=f16x2"], "0+ 1+ 1+ %u"),
            typed(&["rs", "0=bf16x2"], "0 1 1 %u"),
            typed(&["rs"], "0 1 %u"),
            typed(&["0=f16x2|bf16x2", "1=e2m1x2"], "0 %1"),
            typed(&["0=f16", "1=bf16"], "0 1"),
            typed(
                &[
                    "0=u8|s8|u16|s16|u32|s32|u64|s64|f16|f16x2|f32|f64",
                    "1=u8|s8|u16|s16|u32|s32|u64|s64|f16|f32|f64",
                ],
                "0+ 1+ 1+",
            ),
            // ptxas: beside bfloat16 nothing is wider.
            typed(&["0=u8|s8|u16|s16|u32|s32|u64|s64|f32|f64", "1=bf16"], "0 1"),
            typed(&["0=bf16", "1=u8|s8|u16|s16|u32|s32|u64|s64|f32|f64"], "0 1"),
            typed(&["0=u8|s8|u16|s16|u32|s32|u64|s64|f32|f64"], "0+ 1"),
            typed(&["0=f16|f16x2", "1=e4m3x2|e5m2x2|e2m3x2|e3m2x2|bf16"], "0+ 1"),
            typed(&["0=bf16", "1=f16|bf16"], "0 1"),
            typed(
                &[
                    "0=bf16x2|e4m3x2|e5m2x2|tf32|ue8m0x2|e2m1x2|e2m3x2|e3m2x2",
                    "1=f32|f16x2|bf16x2|e4m3x2|e5m2x2|e2m3x2|e3m2x2|ue8m0x2",
                ],
                "0 1 1",
            ),
        ],
    ),
    ("mov", &[typed(&[], "0 0")]),
    ("ld ldu", &[typed(&["v2|v4|v8"], "0+"), typed(&[], "0+")]),
    ("st", &[typed(&["async"], "- 0"), typed(&["!bulk"], "- 0+")]),
    ("atom", &[typed(&[], "0 - 0 0")]),
    ("red", &[typed(&[], "- 0")]),
    ("shfl", &[typed(&[], "0 0 0 0 u")]),
    ("redux", &[typed(&["and|or|xor"], "u u u"), typed(&[], "0 0 u")]),
    (
        "mbarrier",
        &[
            typed(&["arrive|arrive_drop", "noComplete"], "= U - u"),
            typed(&["arrive|arrive_drop"], "U - u"),
            typed(&["test_wait", "parity"], "< p - b"),
            typed(&["test_wait"], "< p - U"),
            typed(&["try_wait", "parity"], "< p - b u"),
            typed(&["try_wait"], "< p - U u"),
            typed(&["expect_tx|complete_tx|init"], "- u"),
            typed(&["inval"], "= -"),
            typed(&["pending_count"], "u U"),
        ],
    ),
    ("wgmma", &[typed(&["mma_async"], "m0 d U")]),
    ("vadd vsub vabsdiff vmin vmax vshl vshr vmad vset", &[typed(&[], "u u u u")]),
    (
        "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
        &[typed(&[], "u u u u")],
    ),
    ("cvta", &[typed(&[], "0 0")]),
    ("isspacep", &[typed(&[], "p a")]),
    ("mapa", &[typed(&[], "0 0 u")]),
    ("getctarank", &[typed(&[], "u 0")]),
    (
        "createpolicy",
        &[typed(&["fractional"], "< U f"), typed(&["range"], "= U [ u u"), typed(&["cvt"], "= U U")],
    ),
    ("applypriority discard", &[typed(&[], "= - l")]),
    ("prefetch prefetchu", &[typed(&[], "= -")]),
    ("pmevent", &[typed(&["!mask"], "= e"), typed(&[], "= c")]),
    ("istypep", &[typed(&[], "p U")]),
    ("match", &[typed(&["any"], "u 0 u"), typed(&["all"], "u 0 u")]),
    ("stmatrix", &[typed(&[], "- {")]),
    ("ldmatrix", &[typed(&[], "{ -")]),
    ("tld4", &[typed(&[], "0 - o f")]),
    ("tex", &[typed(&["level"], "0 - 1 o f"), typed(&["grad"], "0 - - - o f"), typed(&[], "0 - o f")]),
    (
        "tensormap",
        &[
            typed(&["cp_fenceproxy"], "- - l"),
            typed(&["box_dim|global_dim|global_stride|element_stride"], "- c 0"),
            typed(&["replace"], "- 0"),
        ],
    ),
    ("tcgen05", &[typed(&["cp"], "- U"), typed(&["mma", "!sp"], "- ?U U u")]),
    ("alloca", &[typed(&[], "< 0 0 c")]),
    (
        "barrier bar",
        &[
            typed(&["red", "popc"], "u i"),
            typed(&["red"], "p i"),
            typed(&["sync|arrive", "!cluster|warp"], "i t"),
            typed(&["warp", "sync"], "u"),
        ],
    ),
    ("elect", &[typed(&[], "u u")]),
    ("brx", &[typed(&[], "u -")]),
    ("fence", &[typed(&["tensormap::generic", "acquire"], "- l")]),
    ("vote", &[typed(&["sync", "ballot"], "- p u"), typed(&["sync"], "p p u")]),
    ("stacksave nanosleep", &[typed(&[], "0")]),
    ("stackrestore", &[typed(&[], "%0")]),
    ("movmatrix", &[typed(&[], "r r")]),
    ("sured", &[typed(&["b"], "- 0"), typed(&["p"], "- %0")]),
    ("sust", &[typed(&["b|p"], "- 0+")]),
    ("clusterlaunchcontrol", &[typed(&["query_cancel"], "- 1")]),
    ("txq", &[typed(&["level"], "0 - u")]),
    (
        "cp",
        &[
            typed(&["wait_group"], "= c"),
            typed(&["bulk", "multicast::cluster", "!tensor"], "- - s - h"),
            typed(&["bulk", "ignore_oob"], "- - s i i"),
            typed(&["bulk", "!tensor|ignore_oob|prefetch|commit_group"], "- - s"),
            typed(&["bulk", "prefetch", "!tensor"], "- s"),
        ],
    ),
    ("multimem", &[typed(&["ld_reduce"], "0 -"), typed(&["st|red", "!cp"], "- 0"), typed(&["cp"], "- - s")]),
    ("mma", &[typed(&["sp|sp::ordered_metadata"], "m0 m1 m2 m3 r"), typed(&[], "m0 m1 m2 m3")]),
    (
        "wmma",
        &[
            typed(&["load", "0=u4|s4|b1"], "m0 - u"),
            typed(&["load"], "n0 - u"),
            typed(&["store"], "- n0 u"),
            typed(&["mma"], "- n1 n1"),
        ],
    ),
];

impl Want {
    fn read(word: &str, types: &[Type]) -> Option<Want> {
        if let Some(rest) = word.strip_prefix('%') {
            return Want::read(rest, types).map(|want| Want { only: Only::Registers, ..want });
        }
        if let Some(rest) = word.strip_suffix('+') {
            return Want::read(rest, types).map(|want| Want { may_be_wider: true, ..want });
        }
        if let Some(rest) = word.strip_prefix('?') {
            return Want::read(rest, types).map(|want| Want { may_be_address: true, ..want });
        }
        let exactly =
            |ty| Want { ty, may_be_wider: false, may_be_address: false, is_list: false, only: Only::All };
        Some(match word {
            "[" => Want { may_be_address: true, only: Only::Addresses, ..exactly(Type::B64) },
            "{" => Want { only: Only::Lists, is_list: true, ..exactly(Type::B32) },
            "b" => Want { only: Only::Bits, ..exactly(Type::U32) },
            "i" => Want { only: Only::Barriers, ..exactly(Type::U32) },
            "t" => Want { only: Only::Threads, ..exactly(Type::U32) },
            "d" => Want { only: Only::Descriptors, ..exactly(Type::U64) },
            "h" => exactly(Type::U16),
            "e" => Want { only: Only::Events, ..exactly(Type::U32) },
            "o" => exactly(Type::B32),
            "u" => exactly(Type::U32),
            "U" => exactly(Type::U64),
            "r" => Want { only: Only::Registers, ..exactly(Type::B32) },
            "a" => Want { may_be_wider: true, ..exactly(Type::U32) },
            "s" => Want { only: Only::Sizes, ..exactly(Type::U32) },
            "l" => Want { only: Only::Line, ..exactly(Type::U32) },
            "c" => Want { only: Only::Constants, ..exactly(Type::U32) },
            "f" => exactly(Type::F32),
            "p" => exactly(Type::Pred),
            "w" => exactly(match types.first()?.bits() {
                16 => Type::U32,
                _ => Type::U64,
            }),
            _ => match word.strip_prefix(['m', 'n']) {
                Some(nth) => {
                    let ty = match types.get(nth.parse::<usize>().ok()?)? {
                        ty @ (Type::F32 | Type::F64) => *ty,
                        Type::F16 | Type::Bf16 | Type::Tf32 | Type::S32 => Type::U32,
                        _ if word.starts_with('n') => Type::U32,
                        _ => Type::B32,
                    };
                    Want { is_list: true, ..exactly(ty) }
                }
                None => exactly(*types.get(word.parse::<usize>().ok()?)?),
            },
        })
    }

    /// Whether a register of that type will do.
    fn takes(self, register: Type) -> bool {
        let has_none = [Only::Constants, Only::Line, Only::Events, Only::Addresses, Only::Lists];
        if has_none.contains(&self.only) {
            return false;
        }
        if register == Type::Pred || self.ty == Type::Pred {
            return register == self.ty;
        }
        let is_wide_enough = match self.may_be_wider {
            true => register.bits() >= self.ty.bits(),
            false => register.bits() == self.ty.bits().max(8),
        };
        let is_kind = match kind(self.ty) {
            Kind::Bits => true,
            Kind::Integer => kind(register) != Kind::Float || register == Type::F16x2,
            // In a wider register only bits have a place.
            Kind::Float if register == self.ty => true,
            Kind::Float => kind(register) == Kind::Bits,
        };
        is_wide_enough && is_kind
    }

    /// Whether a constant will do.
    fn takes_constant(self, constant: ptx::Constant) -> bool {
        use ptx::Constant as C;
        if [Only::Registers, Only::Addresses, Only::Lists].contains(&self.only) {
            return false;
        }
        if self.only == Only::Events && constant.integer().is_none_or(|event| !(0..16).contains(&event)) {
            return false;
        }
        if self.only == Only::Line && constant.integer() != Some(128) {
            return false;
        }
        if self.only == Only::Sizes && constant.integer().is_none_or(|bytes| bytes % 16 != 0) {
            return false;
        }
        let fits = |fits: fn(u64) -> bool| constant.integer().is_some_and(fits);
        let is_one = match self.only {
            Only::Bits => fits(|it| it < 2),
            Only::Barriers => fits(|it| it < 16),
            Only::Threads => fits(|it| it % 32 == 0),
            _ => true,
        };
        if !is_one || matches!(self.ty, Type::U16x2 | Type::S16x2) {
            return false;
        }
        match (kind(self.ty), constant) {
            (Kind::Integer, C::Signed(_) | C::Unsigned(_)) => true,
            (Kind::Integer, _) => false,
            (Kind::Bits, C::Signed(_) | C::Unsigned(_)) => true,
            (Kind::Bits, C::Single(_)) => self.ty == Type::B32,
            (Kind::Bits, C::Double(_)) => self.ty == Type::B64,
            (Kind::Float, C::Single(_) | C::Double(_)) => matches!(self.ty, Type::F32 | Type::F64),
            (Kind::Float, _) => false,
        }
    }
}

/// One of the parts that are packed, of so many bits.
fn part(bits: usize) -> Option<Want> {
    let ty = match bits {
        8 => Type::B8,
        16 => Type::B16,
        32 => Type::B32,
        64 => Type::B64,
        _ => return None,
    };
    Some(Want { ty, may_be_wider: false, may_be_address: false, is_list: false, only: Only::All })
}

/// Instructions of video, whose operands may have a selector.
#[derive(Clone, Copy, PartialEq)]
enum Video {
    One,
    Several,
}

fn video(opcode: &str) -> Option<Video> {
    let rest = opcode.strip_prefix('v')?;
    match rest.strip_suffix(['2', '4']) {
        Some(_) => Some(Video::Several),
        None => ["add", "sub", "absdiff", "min", "max", "shl", "shr", "mad", "set"]
            .contains(&rest)
            .then_some(Video::One),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Bits,
    Integer,
    Float,
}

fn kind(ty: Type) -> Kind {
    use Type as T;
    match ty {
        T::B8 | T::B16 | T::B32 | T::B64 | T::B128 | T::Pred => Kind::Bits,
        T::U8 | T::U16 | T::U32 | T::U64 | T::S8 | T::S16 | T::S32 | T::S64 | T::U16x2 | T::S16x2 => {
            Kind::Integer
        }
        _ => Kind::Float,
    }
}

impl<'a> Lowerer<'_, '_, 'a> {
    /// Whether the operands are what `wanted` says, and addresses and special registers stand where they may.
    pub(super) fn check_operands(
        &mut self,
        wanted: &str,
        instruction: &Instruction<'a>,
        types: &[Type],
    ) -> Lower {
        let (sign, wanted) = match wanted.split_once(' ') {
            Some((sign @ ("=" | "<"), rest)) => (sign, rest),
            _ => ("", wanted),
        };
        let (n_wanted, n_operands) = (wanted.split(' ').count(), instruction.operands.len());
        if sign == "=" && n_operands != n_wanted || sign == "<" && n_operands > n_wanted {
            let message =
                format!("'{}' takes {n_wanted} operands, not {n_operands}", instruction.full_name());
            return fail(instruction.span, message);
        }
        let mut wanted = wanted.split(' ');
        let last = instruction.operands.len().saturating_sub(1);
        let has_policy = instruction.has("L2::cache_hint");
        for (nth, operand) in instruction.operands.iter().enumerate() {
            let word = wanted.next().unwrap_or("-");
            let is_policy = nth == last && has_policy;
            let want = if is_policy { Want::read("U", types) } else { Want::read(word, types) };
            if is_policy && matches!(operand.kind, OperandKind::Vector(_)) {
                return fail(operand.span, "a list stands where one value does");
            }
            let is_dropped = nth == 0 && want.is_some() && matches!(operand.kind, OperandKind::Sink);
            let is_arrival = instruction.has("arrive") || instruction.has("arrive_drop");
            let can_be_dropped = match instruction.opcode.value {
                "atom" | "setp" => true,
                "mbarrier" => is_arrival,
                _ => false,
            };
            if nth > 0 && matches!(operand.kind, OperandKind::Sink) {
                return fail(operand.span, "`_` is not a source");
            }
            if is_dropped && !can_be_dropped {
                return fail(operand.span, format!("'{}' cannot drop its result", instruction.opcode.value));
            }
            // What another block's barrier had before does not come back.
            if nth == 0
                && !is_dropped
                && is_arrival
                && instruction.opcode.value == "mbarrier"
                && instruction.has("shared::cluster")
            {
                return fail(operand.span, "an arrival at another block's barrier has no result");
            }
            self.check_operand(want, operand, instruction)?;
        }
        Ok(())
    }

    fn check_operand(
        &mut self,
        want: Option<Want>,
        operand: &Operand<'a>,
        instruction: &Instruction<'a>,
    ) -> Lower {
        match &operand.kind {
            OperandKind::Name(name) => self.check_name(want, name, None, operand.span, instruction),
            OperandKind::Member(name, member) => {
                self.check_name(want, name, Some(member), operand.span, instruction)
            }
            OperandKind::Expression(expression) => match (want, expression.constant()) {
                (Some(want), _) if want.is_list => fail(operand.span, "one value stands where a list does"),
                // What is a call of others there takes a register as it is.
                (_, Err(ptx::NotConstant::Name)) if self.is_selected(operand, instruction) => {
                    fail(operand.span, "a sum stands where a register does")
                }
                (Some(want), Err(ptx::NotConstant::Name))
                    if matches!(want.only, Only::Constants | Only::Events | Only::Line) =>
                {
                    fail(operand.span, "a register stands where a constant does")
                }
                (Some(want), Ok(constant)) if !want.takes_constant(constant) => {
                    fail(operand.span, format!("the constant is not of type '{}'", want.ty))
                }
                _ => Ok(()),
            },
            OperandKind::Address(address) => {
                if want.is_some_and(|want| !want.may_be_address) {
                    return fail(operand.span, "an address stands where a value does");
                }
                let nth = instruction.operands.iter().position(|it| std::ptr::eq(it, operand));
                self.check_address(&address.base, nth, instruction)?;
                for more in &address.more {
                    if let OperandKind::Vector(list) = &more.kind {
                        self.check_coordinates(list, instruction)?;
                    }
                }
                Ok(())
            }
            OperandKind::Vector(list) => {
                // The parts of what `mov` packs are narrower than it.
                let want = match instruction.opcode.value {
                    "mov" if !instruction.has("v2") && !instruction.has("v4") => match want {
                        Some(want) if kind(want.ty) != Kind::Bits => {
                            return fail(operand.span, "only bits are packed and unpacked");
                        }
                        Some(want) => part(want.ty.bits() as usize / list.len().max(1)),
                        None => None,
                    },
                    "atom" | "red"
                        if want.is_some()
                            && !["v2", "v4", "v8"].into_iter().any(|it| instruction.has(it)) =>
                    {
                        return fail(operand.span, "a list stands where one value does");
                    }
                    _ => want,
                };
                let takes_one = want.is_some_and(|want| {
                    matches!(want.only, Only::Constants | Only::Line | Only::Bits | Only::Events)
                });
                let is_alone = matches!(instruction.opcode.value, "createpolicy" | "clusterlaunchcontrol");
                if takes_one || want.is_some() && is_alone {
                    return fail(operand.span, "a list stands where one value does");
                }
                // An offset is of integers, where a depth that stands in its place is not.
                let is_offset = matches!(instruction.opcode.value, "tex" | "tld4")
                    && want.is_some_and(|want| want.ty == Type::B32);
                if is_offset
                    && (list.len() == 3 || list.iter().any(|it| matches!(it.kind, OperandKind::Sink)))
                {
                    return fail(operand.span, "an offset has one, two or four values");
                }
                let want = match instruction.opcode.value {
                    "tex" | "tld4" => want.map(|want| match want.ty {
                        Type::B32 => Want { ty: Type::U32, ..want },
                        _ => want,
                    }),
                    _ => want,
                };
                if want.is_some_and(|want| want.only == Only::Descriptors) {
                    return self.check_list(None, list, instruction);
                }
                let want = want.map(|want| match want.only {
                    Only::Lists => Want { only: Only::All, ..want },
                    _ => want,
                });
                self.check_list(want, list, instruction)
            }
            OperandKind::Pair(left, right) => {
                self.check_operand(want, left, instruction)?;
                self.check_operand(None, right, instruction)
            }
            OperandKind::Not(inner) | OperandKind::Negate(inner) => {
                self.check_operand(want, inner, instruction)
            }
            OperandKind::Sink | OperandKind::Element(..) | OperandKind::List(_) => Ok(()),
        }
    }

    /// Whether a selector may stand behind the operand: of an instruction of video the first two sources, and all of one that has
    /// several values in each.
    fn is_selected(&self, operand: &Operand<'a>, instruction: &Instruction<'a>) -> bool {
        let nth = instruction.operands.iter().position(|it| std::ptr::eq(it, operand));
        match video(instruction.opcode.value) {
            Some(Video::One) => matches!(nth, Some(1 | 2)),
            Some(Video::Several) => matches!(nth, Some(1..)),
            None => false,
        }
    }

    fn check_name(
        &mut self,
        want: Option<Want>,
        name: &str,
        member: Option<&str>,
        span: Span,
        instruction: &Instruction<'a>,
    ) -> Lower {
        let opcode = instruction.opcode.value;
        // Several values in one have no selector for it.
        if name == "WARP_SZ" && video(opcode) == Some(Video::Several) {
            return fail(span, format!("'{name}' is no operand of '{opcode}'"));
        }
        if name == "WARP_SZ" {
            return match want {
                Some(want) if want.is_list || !want.takes_constant(ptx::Constant::Signed(32)) => {
                    fail(span, format!("the constant is not of type '{}'", want.ty))
                }
                _ => Ok(()),
            };
        }
        if let Some((declared, n_parts)) = self.scopes.declared(name) {
            // What stands behind a point selects a part of the value there.
            if n_parts > 1 && video(opcode).is_some() {
                return fail(span, format!("'{name}' has several parts"));
            }
            let Some(want) = want else { return Ok(()) };
            // A register of several values is a list.
            let want = match want.only {
                Only::Lists if n_parts > 1 && member.is_none() => Want { only: Only::All, ..want },
                _ => want,
            };
            if want.is_list && member.is_some() {
                return fail(span, "one value stands where a list does");
            }
            // As bits it is packed or unpacked.
            if opcode == "mov"
                && n_parts > 1
                && member.is_none()
                && !instruction.has("v2")
                && !instruction.has("v4")
            {
                return match kind(want.ty) {
                    Kind::Bits => Ok(()),
                    _ => fail(span, "only bits are packed and unpacked"),
                };
            }
            return match want.takes(declared) {
                true => Ok(()),
                false => {
                    fail(span, format!("'{name}' is of type '{declared}', the operand of type '{}'", want.ty))
                }
            };
        }
        match self.entity(name) {
            Some(_) => match want {
                Some(_) if !matches!(opcode, "mov" | "cvta" | "mapa") => {
                    fail(span, format!("'{name}' is not a register"))
                }
                _ => Ok(()),
            },
            None if special::is_vector(name) || special::find(name, member).is_some() => {
                let bits = match special::find(name, member.or(special::is_vector(name).then_some("x"))) {
                    Some(it) => special::ty(it).bits(),
                    None => 32,
                };
                match (opcode, want) {
                    ("mov", Some(want)) if member.is_some() || !special::is_vector(name) => {
                        let is_wide_enough = match special::find(name, member).map(special::ty) {
                            Some(Ty::B64) => want.ty.bits() == 64,
                            Some(Ty::Pred) => want.ty == Type::Pred,
                            // These had 16 bits once.
                            _ if matches!(name, "%tid" | "%ntid" | "%ctaid" | "%nctaid") => {
                                want.ty.bits() <= 32 && want.ty != Type::Pred
                            }
                            _ => want.ty.bits() == 32,
                        };
                        match is_wide_enough && kind(want.ty) != Kind::Float {
                            true => Ok(()),
                            false => fail(
                                span,
                                format!("'{name}' has {bits} bits, the operand is of type '{}'", want.ty),
                            ),
                        }
                    }
                    ("cvt", Some(want)) if kind(want.ty) == Kind::Float => {
                        fail(span, format!("'{name}' is an integer, the operand is of type '{}'", want.ty))
                    }
                    ("mov" | "cvt", _) => Ok(()),
                    _ => fail(span, format!("'{name}' is read by 'mov' and 'cvt' alone")),
                }
            }
            None => match (want, self.module.linked.symbol(self.unit, name)) {
                (Some(_), Some(Symbol::Global(_) | Symbol::Shared(_) | Symbol::Function(_)))
                    if !matches!(opcode, "mov" | "cvta" | "mapa") =>
                {
                    fail(span, format!("'{name}' is not a register"))
                }
                (Some(_), None) if special::constant(name).is_none() => {
                    fail(span, format!("'{name}' is not declared"))
                }
                (Some(want), None)
                    if kind(want.ty) == Kind::Float || opcode == "mov" && want.ty.bits() < 32 =>
                {
                    fail(span, format!("'{name}' is an integer, the operand is of type '{}'", want.ty))
                }
                _ => Ok(()),
            },
        }
    }

    /// `[base + 8]`: a register in it is an integer or bits.
    fn check_address(
        &mut self,
        base: &Expression<'a>,
        nth: Option<usize>,
        instruction: &Instruction<'a>,
    ) -> Lower {
        let is_first = nth == Some(0);
        let name = match super::super::operand::split(base) {
            Ok((Some(name), _)) => name,
            _ => return Ok(()),
        };
        let is = |word: &str| instruction.opcode.value == word;
        match self.entity(name) {
            // Opaque types have their handles there, and a fence has no state space.
            Some(Entity::KernelParam(_))
                if !["fence", "tex", "tld4", "txq", "suq", "suld", "sust", "sured"].into_iter().any(is)
                    && !instruction.has("param")
                    && !instruction.has("param::entry") =>
            {
                fail(base.span, format!("'{name}' is not in that state space"))
            }
            Some(Entity::Local(_)) if instruction.has("param::entry") => {
                fail(base.span, format!("'{name}' is not a parameter of a kernel"))
            }
            Some(Entity::Local(_) | Entity::Global(_)) if is("mbarrier") => {
                fail(base.span, format!("'{name}' is not in shared memory"))
            }
            None if is("mbarrier")
                && matches!(self.module.linked.symbol(self.unit, name), Some(Symbol::Global(_))) =>
            {
                fail(base.span, format!("'{name}' is not in shared memory"))
            }
            Some(Entity::Register(_)) if instruction.has("param::func") => {
                fail(base.span, format!("'{name}' is not a parameter of a function"))
            }
            Some(Entity::Register(register))
                if register.declared.bits() < 64 && is("multimem") && instruction.has("red") =>
            {
                fail(
                    base.span,
                    format!("'{name}' is of type '{}', the address of 64 bits", register.declared),
                )
            }
            // What these do with an address takes more than a `ld`.
            Some(Entity::Register(register))
                if register.declared.bits() < 32
                    && (["createpolicy", "tensormap", "wmma", "tcgen05"].into_iter().any(is)
                        || (is("ldmatrix") || is("stmatrix"))
                            && !instruction.has("shared")
                            && !instruction.has("shared::cta")
                        || is("prefetch") && instruction.has("tensormap")
                        || is("cp")
                            && instruction.has("mbarrier")
                            && !instruction.has("shared")
                            && !instruction.has("shared::cta")
                        || is_first && is("st") && (instruction.has("async") || instruction.has("bulk"))
                        || is_first && is("red") && instruction.has("async")
                        || nth == Some(3)
                            && is("cp")
                            && instruction.has("bulk")
                            && !instruction.has("tensor")
                            && !instruction.has("reduce")) =>
            {
                fail(
                    base.span,
                    format!("'{name}' is of type '{}', which is not an address's", register.declared),
                )
            }
            Some(Entity::Register(register))
                if kind(register.declared) == Kind::Float || register.declared == Type::Pred =>
            {
                fail(
                    base.span,
                    format!("'{name}' is of type '{}', which is not an address's", register.declared),
                )
            }
            _ => Ok(()),
        }
    }

    /// `{x, y}` behind a texture or a tensor map: of one width, and integers where they count elements or layers.
    fn check_coordinates(&mut self, list: &[Operand<'a>], instruction: &Instruction<'a>) -> Lower {
        let want = Want {
            ty: Type::U32,
            may_be_wider: false,
            may_be_address: false,
            is_list: false,
            only: Only::Registers,
        };
        match instruction.opcode.value {
            "suld" | "sust" | "sured" | "cp" => self.check_list(Some(want), list, instruction),
            "tex" if instruction.modifiers.last().is_some_and(|it| it.value == "s32") => {
                self.check_list(Some(want), list, instruction)
            }
            "tex" | "tld4" if ["a1d", "a2d", "acube", "a2dms"].into_iter().any(|it| instruction.has(it)) => {
                self.check_list(None, list, instruction)?;
                match list.first() {
                    Some(layer) => self.check_list(Some(want), std::slice::from_ref(layer), instruction),
                    None => Ok(()),
                }
            }
            _ => self.check_list(None, list, instruction),
        }
    }

    /// `{a, b}`: registers of one width, of which one at least has the operand's type.
    fn check_list(
        &mut self,
        want: Option<Want>,
        list: &[Operand<'a>],
        instruction: &Instruction<'a>,
    ) -> Lower {
        let mut first: Option<Type> = None;
        let mut wrong = None;
        let mut is_one = false;
        for operand in list {
            let declared = match &operand.kind {
                OperandKind::Name(name) => match self.entity(name) {
                    Some(Entity::Register(register)) => register.declared,
                    _ => continue,
                },
                _ => continue,
            };
            match first {
                Some(first) if first.bits() != declared.bits() => {
                    return fail(operand.span, format!("'{first}' and '{declared}' are not of one width"));
                }
                _ => first = Some(declared),
            }
            match want {
                Some(want) if !want.takes(declared) => {
                    wrong = self.check_operand(Some(want), operand, instruction).err();
                }
                _ => is_one = true,
            }
        }
        match wrong {
            Some(wrong) if !is_one => Err(wrong),
            _ => Ok(()),
        }
    }
}
