//! Modifiers that are not with each other, or not without each other, and types that an instruction has not.

use ptx::ast::Instruction;

use super::super::instruction::{Lower, fail};
use super::{Clash, clash};

const NO_TYPE: &str = "is not there for this type";
const SPACE: &str = "is not there for this state space";
const NEEDS_SCOPE: &str = "has a memory order, and no scope";
const NEEDS_ORDER: &str = "has a scope, and no memory order that has one";
const NO_ORDER: &str = "has a memory order that this instruction has not";
const ROUNDING: &str = "has no such rounding";
const COMPARISON: &str = "has no such comparison for this type";
const CACHE: &str = "has a cache operator that does not go with the rest";

/// Any priority of what is evicted.
const EVICTIONS: &str = "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate|L2::evict_normal|L2::evict_unchanged|L2::evict_first|L2::evict_last";
/// Any of the second level alone.
const EVICTIONS_L2: &str = "L2::evict_normal|L2::evict_unchanged|L2::evict_first|L2::evict_last";

/// A number for words of which an instruction has one, and that once.
pub(super) fn alternative(word: &str) -> Option<u32> {
    Some(match word {
        "rn" | "rz" | "rm" | "rp" | "rna" | "rs" | "rni" | "rzi" | "rmi" | "rpi" => 0,
        "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" => 1,
        "nc" => 2,
        "L1::evict_normal"
        | "L1::evict_unchanged"
        | "L1::evict_first"
        | "L1::evict_last"
        | "L1::no_allocate" => 3,
        "L2::evict_normal" => 4,
        "L2::64B" | "L2::128B" | "L2::256B" => 5,
        "L2::cache_hint" => 6,
        "L2::evict_last" => 7,
        _ => return None,
    })
}

/// A policy has one priority, or two: what does not get the first is evicted first, or as it would be.
pub(super) fn check_priorities(instruction: &Instruction<'_>) -> Lower {
    if instruction.opcode.value != "createpolicy" {
        return Ok(());
    }
    let mut all = instruction.modifiers.iter().filter(|it| it.value.starts_with("L2::evict"));
    let (_, second, third) = (all.next(), all.next(), all.next());
    let is_second = |word: &str| matches!(word, "L2::evict_first" | "L2::evict_unchanged");
    match third.or(second.filter(|it| !is_second(it.value))) {
        Some(wrong) => fail(wrong.span, format!("'.{}' is no second priority", wrong.value)),
        None => Ok(()),
    }
}

/// Opcodes, with a blank between them, and what cannot be.
pub(super) const CLASHES: &[(&str, &[Clash])] = &[
    (
        "abs neg",
        &[
            clash(&["ftz", "0=bf16|bf16x2|f64"], "has no '.ftz'"),
            clash(&["sat"], "has no '.sat'"),
            clash(&["relu"], "has no '.relu'"),
            clash(&["0=u16|u32|u64|b16|b32|b64"], "is of signed types alone"),
        ],
    ),
    ("and or xor", &[clash(&["!0=pred|b16|b32|b64"], NO_TYPE)]),
    ("bfind sad add addc sub subc rem mad madc", &[clash(&["0=b16|b32|b64"], NO_TYPE)]),
    (
        "ex2",
        &[clash(&["0=bf16|bf16x2", "!ftz"], "needs '.ftz'"), clash(&["0=f16|f16x2", "ftz"], "has no '.ftz'")],
    ),
    ("shl", &[clash(&["!0=b16|b32|b64"], NO_TYPE)]),
    ("szext", &[clash(&["!0=u32|s32"], NO_TYPE)]),
    ("madc", &[clash(&["sat"], "has no '.sat'")]),
    (
        "mad madc",
        &[
            clash(&["wide", "cc"], "has no '.cc'"),
            clash(&["cc", "!0=u32|s32|u64|s64"], "has no '.cc' for this type"),
            clash(&["wide", "sat"], "has no '.sat'"),
        ],
    ),
    ("add sub mul fma mad div min max", &[clash(&["ftz", "0=f64"], "has no '.ftz'")]),
    ("slct", &[clash(&["ftz", "!1=f32"], "has no '.ftz'")]),
    ("ldmatrix stmatrix", &[clash(&["shared::cluster"], SPACE)]),
    ("add sub", &[clash(&["ftz", "1=f16|bf16"], "has no '.ftz'")]),
    ("redux", &[clash(&["add|min|max", "0=b32"], NO_TYPE), clash(&["and|or|xor", "!0=b32"], NO_TYPE)]),
    (
        "barrier bar",
        &[clash(&["red", "popc", "!0=u32"], NO_TYPE), clash(&["red", "and|or", "!0=pred"], NO_TYPE)],
    ),
    ("cvta isspacep", &[clash(&["param::func"], SPACE)]),
    (
        "add sub mul",
        &[
            clash(&["relu"], "has no '.relu'"),
            clash(&["rz|rm|rp|rna", "0=f16|f16x2|bf16|bf16x2"], ROUNDING),
            clash(&["rna"], ROUNDING),
            clash(&["sat", "0=u32"], "has no '.sat' for this type"),
            clash(&["ftz", "0=bf16|bf16x2"], "has no '.ftz'"),
            clash(&["sat", "0=f32x2|f64|u16x2|s16x2"], "has no '.sat'"),
        ],
    ),
    (
        "fma",
        &[
            clash(&["ftz", "0=bf16|bf16x2"], "has no '.ftz'"),
            clash(&["!rn|rz|rm|rp"], "has no rounding"),
            clash(&["relu", "0=f32|f64|f32x2"], "has no '.relu'"),
            clash(&["rz|rm|rp", "0=f16|f16x2"], ROUNDING),
            clash(&["sat", "0=bf16|bf16x2"], "has no '.sat'"),
            clash(&["sat", "relu"], "has '.sat' and '.relu'"),
            clash(&["sat", "0=f64|f32x2"], "has no '.sat'"),
            clash(&["oob", "0=f32|f64|f32x2"], "has no '.oob'"),
            clash(&["ftz", "1=f16|bf16"], "has no '.ftz'"),
        ],
    ),
    (
        "mad",
        &[
            clash(&["0=f16|f16x2|bf16|bf16x2|f32x2"], NO_TYPE),
            clash(&["0=f64", "!rn|rz|rm|rp"], "has no rounding"),
        ],
    ),
    ("bfe", &[clash(&["!0=u32|s32|u64|s64"], NO_TYPE)]),
    ("popc clz brev bfi", &[clash(&["!0=b32|b64"], NO_TYPE)]),
    ("cnot not", &[clash(&["!0=b16|b32|b64|pred"], NO_TYPE)]),
    (
        "mul24 mad24",
        &[
            clash(&["!0=u32|s32"], NO_TYPE),
            clash(&["sat", "0=u32"], NO_TYPE),
            clash(&["sat", "lo"], "has no '.sat'"),
        ],
    ),
    (
        "min max",
        &[
            clash(&["xorsign", "!abs"], "needs '.abs'"),
            clash(&["ftz", "0=bf16|bf16x2"], "has no '.ftz'"),
            clash(&["relu", "!0=s32|s16x2|f16|f16x2|bf16|bf16x2"], "has no '.relu'"),
        ],
    ),
    (
        "setp",
        &[
            clash(&["ftz", "!0=f16|f16x2|f32"], "has no '.ftz'"),
            clash(&["lo|ls|hi|hs", "!0=u16|u32|u64"], COMPARISON),
            clash(&["lt|le|gt|ge", "0=b16|b32|b64"], COMPARISON),
            clash(&["equ|neu|ltu|leu|gtu|geu|num|nan", "!0=f16|f16x2|bf16|bf16x2|f32|f64"], COMPARISON),
        ],
    ),
    ("selp", &[clash(&["!0=b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64"], NO_TYPE)]),
    ("slct", &[clash(&["!0=b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64"], NO_TYPE)]),
    (
        "set",
        &[
            clash(&["lo|ls|hi|hs", "!1=u16|u32|u64"], COMPARISON),
            clash(&["lt|le|gt|ge", "1=b16|b32|b64"], COMPARISON),
            clash(&["0=bf16", "1=f16x2|bf16x2"], NO_TYPE),
            clash(&["0=f16", "1=bf16"], NO_TYPE),
            clash(&["0=bf16x2", "!1=bf16x2"], NO_TYPE),
            clash(&["0=f16x2", "!1=f16x2"], NO_TYPE),
            clash(&["0=f32", "1=f16x2|bf16x2"], NO_TYPE),
            clash(&["ftz", "!1=f16|f16x2|f32"], "has no '.ftz'"),
            clash(&["equ|neu|ltu|leu|gtu|geu|num|nan", "!1=f16|f16x2|bf16|bf16x2|f32|f64"], COMPARISON),
        ],
    ),
    ("set", &[clash(&["!0=u16|s16|u32|s32|f16|bf16|f16x2|bf16x2|f32"], NO_TYPE)]),
    ("sqrt rcp div", &[clash(&["rna"], ROUNDING)]),
    ("sqrt", &[clash(&["ftz", "0=f64"], "has no '.ftz'")]),
    ("div mul min max", &[clash(&["0=b16|b32|b64"], NO_TYPE)]),
    ("sub", &[clash(&["0=u16x2|s16x2"], NO_TYPE)]),
    ("add sub mul", &[clash(&["sat", "0=bf16|bf16x2"], "has no '.sat'")]),
    ("mad", &[clash(&["sat", "hi|lo", "!0=s32"], "has no '.sat'")]),
    ("div rem mul mad", &[clash(&["0=u16x2|s16x2"], NO_TYPE)]),
    ("mov", &[clash(&["!0=pred|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64|b128"], NO_TYPE)]),
    ("cvt", &[clash(&["0=b8|b16|b32|b64"], NO_TYPE), clash(&["1=b8|b16|b32|b64"], NO_TYPE)]),
    (
        "ld ldu st",
        &[clash(&["!bulk", "!0=b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64|b128"], NO_TYPE)],
    ),
    (
        "ldu",
        &[
            clash(&["shared|shared::cta|shared::cluster|param|param::entry|param::func|const|local"], SPACE),
            clash(&["ca|cg|cs|lu|cv|wb|wt|nc|L2::64B|L2::128B|L2::256B|L2::cache_hint"], CACHE),
            clash(&[EVICTIONS], CACHE),
            clash(&["weak|volatile|mmio|relaxed|acquire|cta|cluster|gpu|sys"], NO_ORDER),
        ],
    ),
    (
        "ld",
        &[
            clash(&["acq_rel|release|sc"], NO_ORDER),
            clash(&["wb|wt"], CACHE),
            clash(&["volatile", "const|param|param::entry|param::func"], SPACE),
            clash(&["nc", "weak|relaxed|acquire|volatile|mmio"], "has a memory order"),
            clash(&["nc", "lu|cv"], CACHE),
            clash(
                &[
                    "mmio|volatile",
                    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                ],
                CACHE,
            ),
            clash(
                &[
                    "v8",
                    "0=b32|u32|s32|f32",
                    "shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func",
                ],
                SPACE,
            ),
            clash(
                &[
                    "v4",
                    "0=b64|u64|s64|f64",
                    "shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func",
                ],
                SPACE,
            ),
            clash(
                &[
                    "L2::cache_hint",
                    "volatile|shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func",
                ],
                CACHE,
            ),
            clash(&[EVICTIONS_L2, "!v4|v8"], CACHE),
            clash(&[EVICTIONS_L2, "v4", "!0=b64|u64|s64|f64"], CACHE),
            clash(&["nc", "!global"], SPACE),
            clash(&["relaxed|acquire", "!cta|cluster|gpu|sys"], NEEDS_SCOPE),
            clash(&["cta|cluster|gpu|sys", "!relaxed|acquire"], NEEDS_ORDER),
            clash(&["relaxed|acquire|mmio", "param|param::entry|param::func|const|local"], SPACE),
            clash(&["relaxed|acquire|mmio|volatile", "ca|cg|cs|lu|cv"], CACHE),
            clash(&["mmio", "!relaxed|acquire|release"], "has no memory order"),
            clash(&["mmio", "shared|shared::cta|shared::cluster"], SPACE),
            clash(&["mmio", "cta|cluster|gpu"], "is of the whole system"),
            clash(&["mmio", "v2|v4|v8"], "is of one value"),
            clash(
                &[
                    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                    "shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func",
                ],
                SPACE,
            ),
            clash(
                &[
                    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                    "ca|cg|cs|lu|cv",
                ],
                CACHE,
            ),
            clash(
                &[
                    "L2::64B|L2::128B|L2::256B",
                    "shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func",
                ],
                SPACE,
            ),
        ],
    ),
    (
        "st",
        &[
            clash(&["acq_rel|acquire|sc"], NO_ORDER),
            clash(&["ca|lu|cv|nc|L2::64B|L2::128B|L2::256B"], CACHE),
            clash(&["const|param::entry"], SPACE),
            clash(&["relaxed|release", "!cta|cluster|gpu|sys|async"], NEEDS_SCOPE),
            clash(&["cta|cluster|gpu|sys", "!relaxed|release|async"], NEEDS_ORDER),
            clash(&["relaxed|release|mmio", "param|param::func|local"], SPACE),
            clash(&["volatile|L2::cache_hint", "param|param::func"], SPACE),
            clash(&["L2::cache_hint", "volatile|shared|shared::cta|shared::cluster|local"], CACHE),
            clash(
                &[
                    "mmio|volatile",
                    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                ],
                CACHE,
            ),
            clash(
                &["v8", "0=b32|u32|s32|f32", "shared|shared::cta|shared::cluster|local|param|param::func"],
                SPACE,
            ),
            clash(
                &["v4", "0=b64|u64|s64|f64", "shared|shared::cta|shared::cluster|local|param|param::func"],
                SPACE,
            ),
            clash(&[EVICTIONS_L2, "!v4|v8"], CACHE),
            clash(&[EVICTIONS_L2, "v4", "!0=b64|u64|s64|f64"], CACHE),
            clash(&["relaxed|release|mmio|volatile", "wb|cg|cs|wt"], CACHE),
            clash(&["async", "mmio", "!release"], "has no memory order"),
            clash(&["bulk", "global|local|shared|shared::cluster|param|param::func"], SPACE),
            clash(&["async", "relaxed|acquire"], NO_ORDER),
            clash(&["async", "release", "!gpu|sys"], NEEDS_SCOPE),
            clash(&["mmio", "!relaxed|acquire|release"], "has no memory order"),
            clash(&["mmio", "shared|shared::cta|shared::cluster"], SPACE),
            clash(&["mmio", "cta|cluster|gpu"], "is of the whole system"),
            clash(&["mmio", "v2|v4|v8"], "is of one value"),
            clash(
                &[
                    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                    "shared|shared::cta|shared::cluster|local|param|param::func",
                ],
                SPACE,
            ),
            clash(
                &[
                    "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                    "wb|cg|cs|wt",
                ],
                CACHE,
            ),
        ],
    ),
    (
        "atom red",
        &[
            clash(&["weak|volatile|sc"], NO_ORDER),
            clash(&["const|local|param|param::entry|param::func"], SPACE),
            clash(
                &[
                    "ca|cg|cs|lu|cv|wb|wt|nc|L2::64B|L2::128B|L2::256B|L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
                ],
                CACHE,
            ),
            clash(&[EVICTIONS_L2], CACHE),
            clash(&["L2::cache_hint", "shared|shared::cta|shared::cluster"], SPACE),
            clash(&["and|or|xor", "!0=b32|b64"], NO_TYPE),
            clash(&["exch|cas", "!0=b16|b32|b64|b128"], NO_TYPE),
            clash(&["exch", "0=b16"], NO_TYPE),
            clash(&["inc|dec", "!0=u32"], NO_TYPE),
            clash(&["min|max", "!0=u32|s32|u64|s64|f16|f16x2|bf16|bf16x2"], NO_TYPE),
            clash(&["add", "!async", "!0=u32|s32|u64|f16|f16x2|bf16|bf16x2|f32|f64"], NO_TYPE),
            clash(&["noftz", "!0=f16|f16x2|bf16|bf16x2|f32"], "has no '.noftz'"),
            clash(&["0=f16|f16x2|bf16|bf16x2", "!noftz"], "needs '.noftz'"),
            clash(&["v2|v4|v8", "shared|shared::cta|shared::cluster"], SPACE),
            clash(&["min|max", "0=f16|f16x2|bf16|bf16x2", "!v2|v4|v8"], "is of vectors alone"),
        ],
    ),
    (
        "red",
        &[
            clash(&["acquire|acq_rel"], NO_ORDER),
            clash(&["exch|cas"], "has no such operation"),
            clash(&["async", "!relaxed|release"], "has no memory order"),
            clash(&["async", "mmio", "!release"], "has no memory order"),
            clash(&["async", "mmio", "!sys"], "is of the whole system"),
            clash(&["async", "release", "!gpu|sys"], NEEDS_SCOPE),
            clash(&["async", "relaxed", "!cta|cluster|gpu|sys"], NEEDS_SCOPE),
        ],
    ),
    ("applypriority", &[clash(&["!L2::evict_normal"], "has no priority")]),
    (
        "applypriority discard",
        &[clash(&["shared|shared::cta|shared::cluster|param|param::entry|param::func|const|local"], SPACE)],
    ),
    ("discard", &[clash(&["!L2"], "has no level")]),
    ("discard", &[clash(&[EVICTIONS_L2], CACHE)]),
    (
        "applypriority discard prefetch prefetchu",
        &[clash(&["ca|cg|cs|lu|cv|wb|wt|nc|L2::64B|L2::128B|L2::256B"], CACHE)],
    ),
    (
        "prefetch prefetchu",
        &[
            clash(&["!L1|L2|tensormap|L2::evict_last|L2::evict_normal"], "has no level"),
            clash(&["tensormap", "L1|L2"], "has two levels"),
            clash(&["L2::evict_last|L2::evict_normal", "L1|L2|tensormap"], "has two levels"),
            clash(&["L2::evict_last|L2::evict_normal", "local"], SPACE),
            clash(&["L2::evict_last", "L2::evict_normal"], "has two priorities"),
            clash(&["L2::evict_unchanged|L2::evict_first"], "has no such priority"),
            clash(&["param::entry"], SPACE),
            clash(&["tensormap", "shared|shared::cta|shared::cluster|local|global"], SPACE),
            clash(&["!tensormap", "param|const|shared|shared::cta|shared::cluster"], SPACE),
        ],
    ),
    (
        "cp",
        &[
            clash(&["async", "lu|cs|cv|wb|wt"], CACHE),
            clash(&["async", "ca|cg", "shared::cluster"], SPACE),
            clash(&["bulk", "L2::64B|L2::128B|L2::256B"], CACHE),
            clash(&["mbarrier", "arrive", "const|global|local|param"], SPACE),
            clash(&["ca|cg", "bulk|tensor|reduce|mbarrier|commit_group|wait_group|wait_all"], CACHE),
            clash(
                &["L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate"],
                CACHE,
            ),
            clash(
                &["async", "!ca|cg|bulk|commit_group|wait_group|wait_all|mbarrier|reduce"],
                "needs '.ca' or '.cg'",
            ),
        ],
    ),
    (
        "createpolicy",
        &[
            clash(
                &["fractional", "!L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"],
                "has no priority",
            ),
            clash(
                &["cvt", "L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged"],
                "has a priority",
            ),
            clash(&["range|fractional", "L2"], "has a level"),
            clash(&["cvt", "!L2"], "has no level"),
            clash(&["fractional|cvt", "global"], SPACE),
            clash(&["ca|cg|cs|lu|cv|wb|wt"], CACHE),
        ],
    ),
    (
        "multimem",
        &[
            clash(&["acq_rel|sc|volatile"], NO_ORDER),
            clash(&["cta|cluster|gpu|sys", "!relaxed|acquire|release"], NEEDS_ORDER),
            clash(&["relaxed|acquire|release", "!cta|cluster|gpu|sys"], NEEDS_SCOPE),
            clash(&["st|red", "acquire"], NO_ORDER),
            clash(&["ld_reduce", "release"], NO_ORDER),
            clash(&["v2|v4|v8", "0=u32|s32|b32|u64|s64|b64|f64"], "has no vectors of this type"),
            clash(&["red|ld_reduce|st", "0=f16|bf16", "!v2|v4|v8"], NO_TYPE),
            clash(&["red", "!cp", "min|max", "0=f16x2|bf16x2", "!v2|v4|v8"], "is of vectors alone"),
            clash(&["acc::f32|acc::f16", "0=u32|s32|b32|u64|s64|b64|f32|f64"], NO_TYPE),
            clash(&["acc::f16", "0=f16|f16x2|bf16|bf16x2"], NO_TYPE),
            clash(&["acc::f32", "0=e4m3|e4m3x2|e4m3x4|e5m2|e5m2x2|e5m2x4"], NO_TYPE),
            clash(&["acc::f32|acc::f16", "min|max"], "accumulates sums alone"),
            clash(&["v8", "0=f16x2|bf16x2|f32"], "has no vectors of this length for the type"),
        ],
    ),
    (
        "fence",
        &[
            clash(&["mbarrier_init", "!release"], "has no memory order"),
            clash(&["mbarrier_init", "!cluster"], NEEDS_SCOPE),
            clash(&["proxy", "tensormap::generic", "!acquire|release"], "has no memory order"),
            clash(
                &["sync_restrict::shared::cluster|sync_restrict::shared::cta", "!acquire|release"],
                "has no memory order",
            ),
            clash(&["proxy", "async::generic", "cta|gpu|sys"], "is of the cluster"),
            clash(&["release", "!proxy", "sync_restrict::shared::cluster"], "does not go with '.release'"),
            clash(
                &[
                    "!tensormap::generic",
                    "sync_restrict::shared::cluster|sync_restrict::shared::cta",
                    "cta|gpu|sys",
                ],
                "is of the cluster",
            ),
            clash(&["acquire", "release"], "has two memory orders"),
            clash(&["async::generic", "acquire", "!sync_restrict::shared::cluster"], "needs a restriction"),
            clash(&["async::generic", "release", "!sync_restrict::shared::cta"], "needs a restriction"),
            clash(&["acquire", "!proxy", "sync_restrict::shared::cta"], "does not go with '.acquire'"),
        ],
    ),
    (
        "mbarrier",
        &[
            clash(&["weak|volatile|sc|acq_rel"], NO_ORDER),
            clash(&["init|inval|pending_count", "relaxed|acquire|release"], NO_ORDER),
            clash(&["test_wait|try_wait", "release"], NO_ORDER),
            clash(&["arrive|arrive_drop|expect_tx|complete_tx", "acquire"], NO_ORDER),
            clash(&["expect_tx|complete_tx", "!arrive|arrive_drop", "release"], NO_ORDER),
            clash(&["relaxed|acquire|release", "!cta|cluster"], NEEDS_SCOPE),
            clash(&["cta|cluster", "!relaxed|acquire|release"], NEEDS_ORDER),
            clash(&["gpu|sys"], "has no such scope"),
            clash(&["noComplete", "!arrive|arrive_drop"], "arrives nowhere"),
            clash(&["noComplete", "relaxed"], NO_ORDER),
            clash(&["noComplete", "cluster"], "has a scope that does not go with '.noComplete'"),
            clash(&["init|inval|test_wait|try_wait", "shared::cluster"], SPACE),
        ],
    ),
    ("cp multimem", &[clash(&["bulk", EVICTIONS_L2], CACHE)]),
    ("vshl vshr", &[clash(&["2=s32"], "shifts by '.u32' alone")]),
    ("wmma", &[clash(&["shared::cluster"], SPACE)]),
    ("clusterlaunchcontrol", &[clash(&["query_cancel", "!1=b128"], NO_TYPE)]),
    (
        "suld sust",
        &[clash(&["lu|nc|L2::64B|L2::128B|L2::256B|L2::cache_hint"], CACHE), clash(&[EVICTIONS], CACHE)],
    ),
    ("suld", &[clash(&["wb|wt"], CACHE)]),
    ("sust", &[clash(&["ca|cv"], CACHE)]),
];
