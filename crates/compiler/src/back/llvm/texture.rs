//! A texture or surface instruction, of one lane or of a group of lanes, as a call of the host's service.

use super::{Builder, Type, Val, memory};
use crate::texture::{Access, MAX_WORDS, column, group};

/// Where arguments and results lie.
pub fn words_ty() -> Type {
    Type::int(64, MAX_WORDS as u32)
}

/// Writes the arguments to `words`, calls, and ends the function with the service's answer unless it is 0.
pub fn call(b: &mut Builder, service: &str, words: &Val, access: Access, args: &[Val]) {
    for (nth, arg) in args.iter().enumerate() {
        let bits = b.to_bits(arg);
        let wide = b.resize(&bits, 64, false);
        let at = memory::offset_pointer(b, words, 8 * nth as i64);
        b.inst(format_args!("store {}, {}, align 8", wide.typed(), at.typed()));
    }
    let code = access.code();
    finish(b, format!("call i32 {service}(ptr %launch, i64 {code}, {})", words.typed()));
}

/// Calls, and ends the function with the answer unless it is 0.
fn finish(b: &mut Builder, call: String) {
    let status = b.assign(Type::int(32, 1), call);
    let good = b.icmp_int("eq", &status, 0);
    let (fault, next) = (b.label("texture.fault"), b.label("texture.done"));
    b.cond_br(&good, &next, &fault);
    b.start_block(&fault);
    b.inst(format_args!("ret {}", status.typed()));
    b.start_block(&next);
}

/// Result number `nth` of the call before.
pub fn result(b: &mut Builder, words: &Val, nth: usize, to: Type) -> Val {
    let at = memory::offset_pointer(b, words, 8 * nth as i64);
    let wide = b.assign(Type::int(64, 1), format_args!("load i64, {}, align 8", at.typed()));
    let bits = b.resize(&wide, to.bits(), false);
    b.bitcast(&bits, to)
}

/// Bytes of a group's columns.
pub fn columns_bytes(access: Access, lanes: u32) -> u64 {
    column(access.arguments() + access.results().len(), lanes as usize) as u64
}

/// As [`call`], for the lanes of a group of which bits of `active` are set: `args` are vectors, but for a handle that is
/// all lanes'.
pub fn call_group(
    b: &mut Builder,
    service: &str,
    columns: &Val,
    access: Access,
    args: &[Val],
    lanes: u32,
    active: &Val,
) {
    for (nth, arg) in args.iter().enumerate() {
        let bits = b.to_bits(arg);
        let item = b.resize(&bits, if access.is_wide_argument(nth) { 64 } else { 32 }, false);
        let at = memory::offset_pointer(b, columns, column(nth, lanes as usize) as i64);
        b.inst(format_args!("store {}, {}, align 8", item.typed(), at.typed()));
    }
    let code = access.code();
    let one_handle = lanes > 1 && args.first().is_some_and(|handle| handle.ty.lanes == 1);
    let group = lanes | if one_handle { group::ONE_HANDLE } else { 0 };
    let line = format!(
        "call i32 {service}(ptr %launch, i64 {code}, {}, {}, i32 {group})",
        columns.typed(),
        active.typed()
    );
    finish(b, line);
}

/// Result number `nth` of the group's call before, a vector.
pub fn group_result(b: &mut Builder, columns: &Val, access: Access, nth: usize, to: Type) -> Val {
    let at = memory::offset_pointer(b, columns, column(access.arguments() + nth, to.lanes as usize) as i64);
    let item = to.ints(if access.has_wide_results() { 64 } else { 32 });
    let item = b.assign(item, format_args!("load {item}, {}, align 8", at.typed()));
    let bits = b.resize(&item, to.bits(), false);
    b.bitcast(&bits, to)
}
