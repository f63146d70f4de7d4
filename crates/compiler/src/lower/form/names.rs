//! Instructions whose name has several words: `cp.async.bulk.tensor`. These stand right behind the opcode, in their order,
//! where all other modifiers may come in any.

use ptx::ast::Instruction;

use super::super::instruction::{Lower, fail};

/// The rest of the names, behind the opcode.
pub(super) const NAMES: &[(&str, &[&str])] = &[
    ("bar", &["sync", "arrive", "red", "warp.sync", "cta.sync", "cta.arrive", "cta.red"]),
    ("barrier", &["", "red", "cta", "cta.red", "cluster.arrive", "cluster.wait"]),
    ("brx", &["idx"]),
    ("clusterlaunchcontrol", &["try_cancel.async", "query_cancel"]),
    (
        "cp",
        &[
            "async",
            "async.commit_group",
            "async.wait_group",
            "async.wait_all",
            "async.mbarrier.arrive",
            "async.bulk",
            "async.bulk.commit_group",
            "async.bulk.wait_group",
            "async.bulk.prefetch",
            "async.bulk.prefetch.tensor",
            "async.bulk.tensor",
            "reduce.async.bulk",
            "reduce.async.bulk.tensor",
        ],
    ),
    ("createpolicy", &["fractional", "range", "cvt"]),
    ("cvt", &["", "pack"]),
    ("cvta", &["", "to"]),
    ("div", &["", "full"]),
    ("dp2a", &["lo", "hi"]),
    ("fence", &["", "proxy"]),
    ("mad madc mul", &["", "lo", "hi", "wide"]),
    ("mad24 mul24", &["lo", "hi"]),
    (
        "mbarrier",
        &[
            "init",
            "inval",
            "expect_tx",
            "complete_tx",
            "arrive",
            "arrive.expect_tx",
            "arrive_drop",
            "arrive_drop.expect_tx",
            "test_wait",
            "test_wait.parity",
            "try_wait",
            "try_wait.parity",
            "pending_count",
        ],
    ),
    ("membar", &["", "proxy"]),
    ("multimem", &["ld_reduce", "st", "red", "cp.async.bulk", "cp.reduce.async.bulk"]),
    ("red", &["", "async"]),
    ("setmaxnreg", &["inc", "dec"]),
    ("shf", &["l", "r"]),
    ("st", &["", "async", "bulk"]),
    ("suld", &["b"]),
    ("sured sust", &["b", "p"]),
    (
        "tcgen05",
        &[
            "alloc",
            "dealloc",
            "relinquish_alloc_permit",
            "ld",
            "ld.red",
            "st",
            "wait::ld",
            "wait::st",
            "cp",
            "shift",
            "mma",
            "mma.ws",
            "commit",
            "fence::before_thread_sync",
            "fence::after_thread_sync",
        ],
    ),
    ("tensormap", &["replace", "cp_fenceproxy"]),
    ("tex", &["", "base", "level", "grad"]),
    ("txq", &["", "level"]),
    ("wgmma", &["mma_async", "fence", "commit_group", "wait_group"]),
    ("wmma", &["load.a", "load.b", "load.c", "store.d", "mma"]),
];

/// Words that stand in names alone, never as modifiers behind them.
const IN_NAMES: &[&str] =
    &["bulk", "tensor", "prefetch", "reduce", "wait_group", "commit_group", "wait_all", "pack", "parity"];

/// Whether the words of the name stand where they have to.
pub(super) fn check(names: &[&'static str], instruction: &Instruction<'_>) -> Lower {
    let modifiers = &instruction.modifiers;
    let begins = |name: &str| {
        let n_words = name.split('.').filter(|it| !it.is_empty()).count();
        let words = name.split('.').filter(|it| !it.is_empty());
        (n_words <= modifiers.len() && words.zip(modifiers).all(|(word, it)| word == it.value))
            .then_some(n_words)
    };
    let Some(n_words) = names.iter().filter_map(|name| begins(name)).max() else {
        return match names {
            [] => Ok(()),
            _ => fail(
                instruction.opcode.span,
                format!("'{}' is not the name of an instruction", instruction.full_name()),
            ),
        };
    };
    if let Some(found) = modifiers[n_words..].iter().find(|it| IN_NAMES.contains(&it.value)) {
        return fail(
            found.span,
            format!(
                "'.{}' of '{}' stands behind '{}'",
                found.value,
                instruction.full_name(),
                instruction.opcode.value
            ),
        );
    }
    // A longer name with its first words in place and a word elsewhere; a word that stands there twice is one.
    let written = &modifiers[..n_words];
    for name in names {
        let first = name.split('.').next().unwrap_or_default();
        let elsewhere = modifiers[n_words..].iter().find(|it| it.value == first);
        if let Some(found) = elsewhere.filter(|_| written.iter().all(|it| it.value != first)) {
            return fail(
                found.span,
                format!(
                    "'.{first}' of '{}' stands behind '{}'",
                    instruction.full_name(),
                    instruction.opcode.value
                ),
            );
        }
        let mut words = name.split('.').filter(|it| !it.is_empty());
        if !written.iter().all(|it| words.next() == Some(it.value)) {
            continue;
        }
        let Some(word) = words.next() else { continue };
        if let Some(found) = modifiers[n_words..].iter().find(|it| it.value == word) {
            return fail(
                found.span,
                format!(
                    "'.{word}' of '{}' stands behind '{}'",
                    instruction.full_name(),
                    instruction.opcode.value
                ),
            );
        }
    }
    Ok(())
}
