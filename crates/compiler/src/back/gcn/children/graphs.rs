//! What kernels know of graphs that they launch and of nodes that they change: a block of memory of a context, which the host sees.
//!
//! Little-endian:
//!
//! | offset | type | what |
//! |---|---|---|
//! | 0 | 16 bytes × 16384 | graphs: u64 handle, or 0; u32 launches by kernels that have not ended |
//! | 262144 | 16 bytes × 16384 | nodes: u64 handle, or 0; u64 address of its state |
//!
//! A handle's place among its like is what its bits from [`INDEX_SHIFT`] on say. A node's state: u32 bytes of the arguments, u32
//! whether it runs, u32 × 3 grid, and at [`ARGUMENTS`] the arguments.

use super::Mode;
use super::answers::{BOTH, define, end, load, place, store};
use super::{GRAPHS, IS_IN_GRAPH, IS_OWN_TAIL, MOST_GRID, N_GRAPHS, OWN_GRAPH, STREAM, State, WHAT};
use crate::device_runtime::{MOST_PARAMETERS, answer};

/// Where the place of a handle begins in it.
pub const INDEX_SHIFT: u32 = 3;
pub const MOST: u64 = 16384;
pub const ENTRY_BYTES: u64 = 16;
/// Behind the handle.
pub const N_LAUNCHES: u64 = 8;
pub const STATE_AT: u64 = 8;
pub const NODES: u64 = ENTRY_BYTES * MOST;
pub const BYTES: u64 = 2 * NODES;

/// Of a node's state.
pub const IS_ENABLED: u64 = 4;
pub const GRID: u64 = 8;
pub const ARGUMENTS: u64 = 64;

/// Where the entry of a handle is, from the first of its like on.
#[must_use]
pub fn entry(handle: u64) -> u64 {
    ENTRY_BYTES * ((handle >> INDEX_SHIFT) & (MOST - 1))
}

/// The bytes of a record of a launch.
const RECORD_BYTES: u64 = 64;

/// The functions that answer calls about graphs.
pub(super) fn functions(text: &mut String) {
    // The entry of a handle, or 0.
    let body = format!(
        "{}  %is_table = icmp ne i64 %table, 0\n  %is_named = icmp ne i64 %handle, 0\n  \
         %may_be = and i1 %is_table, %is_named\n  br i1 %may_be, label %look, label %no\nlook:\n  \
         %shifted = lshr i64 %handle, {INDEX_SHIFT}\n  %index = and i64 %shifted, {}\n  \
         %offset = mul i64 %index, {ENTRY_BYTES}\n  %inside = add i64 %offset, %first\n  %at = add i64 %table, %inside\n{}  \
         %is_it = icmp eq i64 %known, %handle\n  br i1 %is_it, label %yes, label %no\nyes:\n  ret i64 %at\nno:\n  ret i64 0\n",
        load("table", "i64", "queue", GRAPHS),
        MOST - 1,
        place("known", "at", 0)
            + "  %known = load atomic i64, ptr addrspace(1) %known_p monotonic, align 8\n",
    );
    define(text, "i64", "entry", &["first", "handle"], &body);
    launch(text);
    nodes(text);
}

fn launch(text: &mut String) {
    // CUDA: the call succeeds, or something is invalid. A graph launches itself into its tail, or not at all.
    let [most_tail, most_fired] = [Mode::Tail, Mode::FireAndForget].map(Mode::most);
    let body = format!(
        "{}  %is_in = icmp ne i32 %inside, 0\n  %low = and i64 %stream, 72057594037927935\n  %is_plain = icmp eq i64 %low, 0\n  \
         %top = lshr i64 %stream, 56\n  %mode = add i64 %top, -1\n  %is_mode = icmp ult i64 %mode, 3\n  \
         %is_one = and i1 %is_in, %is_plain\n  %may_be = and i1 %is_one, %is_mode\n  \
         br i1 %may_be, label %look, label %wrong\nlook:\n{}  %is_own = icmp eq i64 %own, %graph\n  \
         %is_tail = icmp eq i64 %mode, 0\n  %is_fired = xor i1 %is_tail, true\n  %is_itself = and i1 %is_own, %is_fired\n  \
         %entry = call i64 @cudaway_ask_entry(i64 %queue, i64 0, i64 %graph)\n  %is_unknown = icmp eq i64 %entry, 0\n  \
         %cannot = or i1 %is_itself, %is_unknown\n  br i1 %cannot, label %wrong, label %known\nknown:\n  \
         %most = select i1 %is_tail, i32 {most_tail}, i32 {most_fired}\n  %mode_offset = shl i64 %mode, 2\n  \
         %counted = add i64 %queue, %mode_offset\n{}  \
         %before = atomicrmw add ptr addrspace(1) %n_p, i32 1 monotonic, align 4\n  \
         %is_room = icmp ult i32 %before, %most\n  br i1 %is_room, label %take, label %less\ntake:\n  \
         %at = call i64 @cudaway_ask_room(i64 %queue, i64 {RECORD_BYTES})\n  %is_none = icmp eq i64 %at, 0\n  \
         br i1 %is_none, label %less, label %empty\nempty:\n{}{}  %again = and i1 %is_own, %is_tail\n  \
         br i1 %again, label %own_tail, label %other\nown_tail:\n{}  \
         %first = cmpxchg ptr addrspace(1) %waits_p, i32 0, i32 1 monotonic monotonic, align 4\n  \
         %is_first = extractvalue {{ i32, i1 }} %first, 1\n  br i1 %is_first, label %one_more, label %less\none_more:\n  \
         %launches = atomicrmw add ptr addrspace(1) %launches_p, i32 1 monotonic, align 4\n  br label %put\nother:\n  \
         %claimed = cmpxchg ptr addrspace(1) %launches_p, i32 0, i32 1 monotonic monotonic, align 4\n  \
         %is_claimed = extractvalue {{ i32, i1 }} %claimed, 1\n  br i1 %is_claimed, label %put, label %less\nput:\n{}{}  \
         call void @cudaway_ask_put(i64 %queue, i64 %at, i64 0, i64 {})\n{}less:\n  \
         %undone = atomicrmw sub ptr addrspace(1) %n_p, i32 1 monotonic, align 4\n  br label %wrong\nwrong:\n{}",
        load("inside", "i32", "queue", IS_IN_GRAPH),
        load("own", "i64", "queue", OWN_GRAPH),
        place("n", "counted", N_GRAPHS),
        // Nothing yet.
        store("is", "i32", "0", "at", super::STATE) + &store("stream_is", "i64", "0", "at", STREAM),
        place("launches", "entry", N_LAUNCHES),
        place("waits", "queue", IS_OWN_TAIL),
        store("graph_is", "i64", "%graph", "at", WHAT),
        store("mode_is", "i64", "%mode", "at", WHAT + 8),
        State::Graph as u32,
        end(answer::SUCCESS),
        end(answer::INVALID_VALUE),
    );
    define(text, BOTH, "launch_graph", &["graph", "stream"], &body);
}

fn nodes(text: &mut String) {
    // Whether a node's update is one, which is done where `apply` is 1. Fields have the numbers of cudaGraphKernelNodeField.
    let mut grid = String::new();
    let mut all = "true".to_owned();
    for (nth, side) in ["gx", "gy", "gz"].iter().enumerate() {
        grid += &load(&format!("most_{side}"), "i32", "queue", MOST_GRID + 4 * nth as u64);
        grid += &format!(
            "  %{side}_less = add i32 %{side}, -1\n  %{side}_in = icmp ult i32 %{side}_less, %most_{side}\n  \
             %all{nth} = and i1 {all}, %{side}_in\n"
        );
        all = format!("%all{nth}");
    }
    let sides: String = ["gx", "gy", "gz"]
        .iter()
        .enumerate()
        .map(|(nth, side)| {
            store(&format!("{side}_is"), "i32", &format!("%{side}"), "state", GRID + 4 * nth as u64)
        })
        .collect();
    let body = format!(
        "  %entry = call i64 @cudaway_ask_entry(i64 %queue, i64 {NODES}, i64 %node)\n  %is_unknown = icmp eq i64 %entry, 0\n  \
         br i1 %is_unknown, label %no, label %known\nknown:\n{}  %does = icmp ne i64 %apply, 0\n  \
         %field_short = trunc i64 %field to i32\n  \
         switch i32 %field_short, label %no [ i32 1, label %grid i32 2, label %argument i32 3, label %enabled ]\ngrid:\n  \
         %gx = trunc i64 %a to i32\n  %a_high = lshr i64 %a, 32\n  %gy = trunc i64 %a_high to i32\n  %gz = trunc i64 %b to i32\n\
         {grid}  br i1 {all}, label %grid_fits, label %no\ngrid_fits:\n  br i1 %does, label %set_grid, label %yes\nset_grid:\n\
         {sides}  br label %yes\nargument:\n{}  %len_wide = zext i32 %len to i64\n  %is_some = icmp ne i64 %a, 0\n  \
         %b_in = icmp ule i64 %b, %len_wide\n  %left = sub i64 %len_wide, %b\n  %c_in = icmp ule i64 %c, %left\n  \
         %is_short = icmp ule i64 %c, {MOST_PARAMETERS}\n  %fits0 = and i1 %is_some, %b_in\n  %fits1 = and i1 %fits0, %c_in\n  \
         %fits = and i1 %fits1, %is_short\n  br i1 %fits, label %argument_fits, label %no\nargument_fits:\n  \
         %is_any = icmp ne i64 %c, 0\n  %copies = and i1 %does, %is_any\n  br i1 %copies, label %copy, label %yes\ncopy:\n  \
         %nth = phi i64 [ 0, %argument_fits ], [ %next, %copy ]\n  %from_a = add i64 %a, %nth\n  \
         %from = inttoptr i64 %from_a to ptr\n  %byte = load i8, ptr %from, align 1\n  %inside = add i64 %b, %nth\n  \
         %spot = add i64 %state, %inside\n{}  store i8 %byte, ptr addrspace(1) %to_p, align 1\n  \
         %next = add i64 %nth, 1\n  %is_more = icmp ult i64 %next, %c\n  br i1 %is_more, label %copy, label %yes\nenabled:\n  \
         %a_short = trunc i64 %a to i32\n  %is_on = icmp ne i32 %a_short, 0\n  %on = zext i1 %is_on to i32\n  \
         br i1 %does, label %set_enabled, label %yes\nset_enabled:\n{}  br label %yes\nyes:\n  ret i1 true\nno:\n  ret i1 false\n",
        load("state", "i64", "entry", STATE_AT),
        load("len", "i32", "state", 0),
        place("to", "spot", ARGUMENTS),
        store("on_is", "i32", "%on", "state", IS_ENABLED),
    );
    define(text, "i1", "update", &["node", "field", "a", "b", "c", "apply"], &body);

    let one = |field: u32, before: &str, words: &str| {
        format!(
            "{before}  %is_done = call i1 @cudaway_ask_update(i64 %queue, i64 %node, i64 {field}, {words}, i64 1)\n  \
             br i1 %is_done, label %done, label %wrong\ndone:\n{}wrong:\n{}",
            end(answer::SUCCESS),
            end(answer::INVALID_VALUE)
        )
    };
    define(text, BOTH, "set_grid", &["node", "a", "b"], &one(1, "", "i64 %a, i64 %b, i64 0"));
    let words = "i64 %value, i64 %offset, i64 %bytes";
    define(text, BOTH, "set_param", &["node", "offset", "value", "bytes"], &one(2, "", words));
    // A `bool`, of which the low byte counts.
    let low = "  %low = and i64 %is_on, 255\n";
    define(text, BOTH, "set_enabled", &["node", "is_on"], &one(3, low, "i64 %low, i64 0, i64 0"));

    // `cudaGraphKernelNodeUpdate`, 5 words of 8 bytes: the node, the field, and what the field needs. All of them, or none.
    let words: String = ["node", "field", "w0", "w1", "w2"]
        .iter()
        .enumerate()
        .map(|(nth, word)| {
            format!(
                "  %{word}_a = add i64 %at, {}\n  %{word}_p = inttoptr i64 %{word}_a to ptr\n  \
                 %{word} = load i64, ptr %{word}_p, align 8\n",
                8 * nth
            )
        })
        .collect();
    // An argument's address stands in front of its offset, as a grid's first two sides in front of the third.
    let body = format!(
        "  %is_nowhere = icmp eq i64 %updates, 0\n  %is_empty = icmp eq i64 %count, 0\n  \
         br i1 %is_nowhere, label %wrong, label %any\nany:\n  br i1 %is_empty, label %done, label %turn\nturn:\n  \
         %apply = phi i64 [ 0, %any ], [ 1, %turned ]\n  br label %one\none:\n  \
         %nth = phi i64 [ 0, %turn ], [ %next, %more ]\n  %offset = mul i64 %nth, 40\n  %at = add i64 %updates, %offset\n{words}  \
         %fits = call i1 @cudaway_ask_update(i64 %queue, i64 %node, i64 %field, i64 %w0, i64 %w1, i64 %w2, i64 %apply)\n  \
         br i1 %fits, label %more, label %wrong\nmore:\n  %next = add i64 %nth, 1\n  %is_more = icmp ult i64 %next, %count\n  \
         br i1 %is_more, label %one, label %turned\nturned:\n  %was_check = icmp eq i64 %apply, 0\n  \
         br i1 %was_check, label %turn, label %done\ndone:\n{}wrong:\n{}",
        end(answer::SUCCESS),
        end(answer::INVALID_VALUE)
    );
    define(text, BOTH, "apply", &["updates", "count"], &body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_in_their_part() {
        assert_eq!(entry(0), 0);
        assert_eq!(entry(u64::MAX), NODES - ENTRY_BYTES);
        assert_eq!((NODES, BYTES), (262_144, 524_288));
        const { assert!(WHAT + 16 <= RECORD_BYTES) };
    }
}
