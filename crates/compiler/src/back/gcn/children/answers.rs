//! The functions that answer a kernel's calls of the device runtime, as LLVM IR: `@cudaway_ask_…`, each with the address of the queue
//! and its arguments as 64-bit words. Those that answer a call give its value and CUDA's number, the others what they are asked.

use std::fmt::Write as _;

use super::{
    ATTRIBUTES, BLOCK, CAPACITY, FACTS, FIRST, Facts, GRID, HANDLES, KERNEL_BYTES, KERNELS, LIMITS,
    MOST_BLOCK, MOST_GRID, MOST_HANDLES, MOST_SHARED, MOST_THREADS, MOVE_BYTES, N_ATTRIBUTES, N_HANDLES,
    N_KERNELS, N_LIMITS, N_TAIL, NAME_BYTES, NAMES, PARAMS, PARAMS_BYTES, PLACE, PLACES, REFUSED, SHARED,
    STATE, STREAM, State, TAIL_ROOM, TAKEN, TEXT, WHAT,
};
use crate::device_runtime::{
    Call, DISABLE_TIMING, FIRST_HANDLE, MOST_PARAMETERS, RUNTIME_VERSION, TAIL, answer,
};
use crate::lower::kernel_address;

/// `%name = load ty` at `%base` and so many bytes behind it.
pub(super) fn load(name: &str, ty: &str, base: &str, offset: u64) -> String {
    let align = if ty == "i64" { 8 } else { 4 };
    format!("{}  %{name} = load {ty}, ptr addrspace(1) %{name}_p, align {align}\n", place(name, base, offset))
}

/// `%name_p`: a pointer to what lies so many bytes behind `%base`.
pub(super) fn place(name: &str, base: &str, offset: u64) -> String {
    format!(
        "  %{name}_a = add i64 %{base}, {offset}\n  %{name}_p = inttoptr i64 %{name}_a to ptr addrspace(1)\n"
    )
}

/// Stores `value`, by a pointer of that name.
pub(super) fn store(name: &str, ty: &str, value: &str, base: &str, offset: u64) -> String {
    let align = if ty == "i64" { 8 } else { 4 };
    format!("{}  store {ty} {value}, ptr addrspace(1) %{name}_p, align {align}\n", place(name, base, offset))
}

/// An answer without a value but its number.
pub(super) fn end(code: answer::Code) -> String {
    format!("  ret {{ i64, i32 }} {{ i64 {code}, i32 {code} }}\n")
}

/// The number `%code` as the answer.
const END_WITH_CODE: &str = "  %code_wide = zext i32 %code to i64\n  \
    %with_value = insertvalue { i64, i32 } poison, i64 %code_wide, 0\n  \
    %with_code = insertvalue { i64, i32 } %with_value, i32 %code, 1\n  ret { i64, i32 } %with_code\n";

pub(super) fn define(text: &mut String, result: &str, name: &str, params: &[&str], body: &str) {
    let params: String = params.iter().map(|name| format!(", i64 %{name}")).collect();
    let _ =
        write!(text, "define internal {result} @cudaway_ask_{name}(i64 %queue{params}) #2 {{\n{body}}}\n");
}

pub(super) const BOTH: &str = "{ i64, i32 }";

/// All functions, which become part of whoever calls them.
pub fn functions() -> String {
    let mut text = String::new();
    records(&mut text);
    launches(&mut text);
    handles(&mut text);
    moves(&mut text);
    questions(&mut text);
    of_kernels(&mut text);
    super::graphs::functions(&mut text);
    text
}

/// Room for records, and their places among all.
fn records(text: &mut String) {
    // The address of a record, or 0. What adds is an addition, which a PCIe bus has.
    let body = format!(
        "  %padded = add i64 %wanted, 15\n  %bytes = and i64 %padded, -16\n{}{}{}  \
         %start = atomicrmw add ptr addrspace(1) %taken_p, i64 %bytes monotonic, align 8\n  \
         %end = add i64 %start, %bytes\n  %is_in = icmp ule i64 %end, %capacity\n  \
         %is_whole = icmp ule i64 %start, %end\n  %fits = and i1 %is_in, %is_whole\n  \
         br i1 %fits, label %take, label %none\ntake:\n  %from = add i64 %queue, %first\n  \
         %at = add i64 %from, %start\n  %short = trunc i64 %bytes to i32\n{}  ret i64 %at\nnone:\n  ret i64 0\n",
        load("capacity", "i64", "queue", CAPACITY),
        load("first", "i64", "queue", FIRST),
        place("taken", "queue", TAKEN),
        store("length", "i32", "%short", "at", 0),
    );
    define(text, "i64", "room", &["wanted"], &body);

    // Whether nothing may be launched any more, though all children had ended.
    let body = format!(
        "{}{}  %is_full = icmp uge i32 %tail, %room\n  ret i1 %is_full\n",
        load("room", "i32", "queue", TAIL_ROOM),
        place("tail", "queue", N_TAIL)
            + "  %tail = load atomic i32, ptr addrspace(1) %tail_p monotonic, align 4\n",
    );
    define(text, "i1", "is_full", &[], &body);

    // What a record is from now on, with its place and its stream.
    let body = format!(
        "{}  %place = atomicrmw add ptr addrspace(1) %places_p, i64 1 monotonic, align 8\n{}{}{}  \
         %state_short = trunc i64 %state to i32\n  \
         store atomic i32 %state_short, ptr addrspace(1) %state_p release, align 4\n  ret void\n",
        place("places", "queue", PLACES),
        store("number", "i64", "%place", "at", PLACE),
        store("stream_is", "i64", "%stream", "at", STREAM),
        place("state", "at", STATE),
    );
    define(text, "void", "put", &["at", "stream", "state"], &body);

    // Notes a call that is not supported.
    let body = format!(
        "  %offset = shl i64 %number, 2\n  %flag = add i64 %queue, %offset\n{}{}",
        store("refused", "i32", "1", "flag", REFUSED),
        end(answer::NOT_SUPPORTED)
    );
    define(text, BOTH, "unsupported", &["number"], &body);
}

fn launches(text: &mut String) {
    let sides = |axis: &str, most: u64| {
        let mut lines = String::new();
        for (nth, side) in ["x", "y", "z"].iter().enumerate() {
            let name = format!("most_{axis}{side}");
            lines += &load(&name, "i32", "queue", most + 4 * nth as u64);
            // 1 or more, and no more than that.
            let _ = write!(
                lines,
                "  %{axis}{side}_less = add i32 %{axis}{side}, -1\n  \
                 %{axis}{side}_fits = icmp ult i32 %{axis}{side}_less, %{name}\n"
            );
        }
        lines
    };
    let parts = |axis: &str| {
        format!(
            "  %{axis}x = trunc i64 %{axis}xy to i32\n  %{axis}xy_high = lshr i64 %{axis}xy, 32\n  \
             %{axis}y = trunc i64 %{axis}xy_high to i32\n  %{axis}z = trunc i64 %{axis}zz to i32\n"
        )
    };
    // Whether a kernel takes such a grid and such blocks: 0, or CUDA's number.
    let first_kernel = kernel_address(0);
    let mut body = format!(
        "  %number = sub i64 %function, {first_kernel}\n  %low = and i64 %number, 15\n  \
         %is_whole = icmp eq i64 %low, 0\n  %kernel = lshr i64 %number, 4\n{}  \
         %n_kernels = zext i32 %n to i64\n  %is_there = icmp ult i64 %kernel, %n_kernels\n  \
         %is_kernel = and i1 %is_whole, %is_there\n  br i1 %is_kernel, label %known, label %unknown\nunknown:\n  \
         ret i32 {}\nknown:\n{}{}  %offset = mul i64 %kernel, {KERNEL_BYTES}\n  %entry_at = add i64 %queue, %offset\n",
        load("n", "i32", "queue", N_KERNELS),
        answer::INVALID_DEVICE_FUNCTION,
        parts("g"),
        parts("b"),
    );
    body += &load("own_threads", "i32", "entry_at", KERNELS);
    for (nth, side) in ["x", "y", "z"].iter().enumerate() {
        body += &load(&format!("own_{side}"), "i32", "entry_at", KERNELS + 8 + 4 * nth as u64);
        let _ = writeln!(body, "  %same_{side} = icmp eq i32 %own_{side}, %b{side}");
    }
    body += &load("most_threads", "i32", "queue", MOST_THREADS);
    body += &load("most_shared", "i32", "queue", MOST_SHARED);
    body += &sides("g", MOST_GRID);
    body += &sides("b", MOST_BLOCK);
    body += "  %bx_wide = zext i32 %bx to i64\n  %by_wide = zext i32 %by to i64\n  %bz_wide = zext i32 %bz to i64\n  \
             %plane = mul i64 %bx_wide, %by_wide\n  %threads = mul i64 %plane, %bz_wide\n  \
             %most_wide = zext i32 %most_threads to i64\n  %own_wide = zext i32 %own_threads to i64\n  \
             %threads_fit = icmp ule i64 %threads, %most_wide\n  %own_fits = icmp ule i64 %threads, %own_wide\n  \
             %shared_short = trunc i64 %shared to i32\n  %shared_fits = icmp ule i32 %shared_short, %most_shared\n  \
             %is_free = icmp eq i32 %own_x, 0\n  %same_xy = and i1 %same_x, %same_y\n  %same = and i1 %same_xy, %same_z\n  \
             %block_fits = or i1 %is_free, %same\n";
    let mut all = "%block_fits".to_owned();
    let more = [
        "gx_fits",
        "gy_fits",
        "gz_fits",
        "bx_fits",
        "by_fits",
        "bz_fits",
        "threads_fit",
        "own_fits",
        "shared_fits",
    ];
    for (nth, fits) in more.iter().enumerate() {
        let _ = writeln!(body, "  %all{nth} = and i1 {all}, %{fits}");
        all = format!("%all{nth}");
    }
    let _ = write!(
        body,
        "  %code = select i1 {all}, i32 0, i32 {}\n  ret i32 %code\n",
        answer::INVALID_CONFIGURATION
    );
    let shape = ["function", "gxy", "gzz", "bxy", "bzz", "shared"];
    define(text, "i32", "check", &shape, &body);

    // Writes into a record what is launched.
    let mut body =
        format!("  %number = sub i64 %function, {first_kernel}\n  %kernel = lshr i64 %number, 4\n");
    body += "  %kernel_short = trunc i64 %kernel to i32\n  %shared_short = trunc i64 %shared to i32\n";
    body += &(parts("g") + &parts("b"));
    body += &store("kernel_is", "i32", "%kernel_short", "at", WHAT);
    body += &store("shared_is", "i32", "%shared_short", "at", SHARED);
    for (axis, to) in [("g", GRID), ("b", BLOCK)] {
        for (nth, side) in ["x", "y", "z"].iter().enumerate() {
            let value = format!("{axis}{side}");
            body += &store(&format!("{value}_is"), "i32", &format!("%{value}"), "at", to + 4 * nth as u64);
        }
    }
    body += "  ret void\n";
    define(text, "void", "describe", &["at", "function", "gxy", "gzz", "bxy", "bzz", "shared"], &body);

    // Room for parameters: their address, or why there is none.
    let body = format!(
        "  %is_long = icmp ugt i64 %bytes, {MOST_PARAMETERS}\n  br i1 %is_long, label %long, label %look\nlong:\n  \
         ret {BOTH} {{ i64 0, i32 {} }}\nlook:\n  %is_full = call i1 @cudaway_ask_is_full(i64 %queue)\n  \
         br i1 %is_full, label %full, label %take\nfull:\n  ret {BOTH} {{ i64 0, i32 {} }}\ntake:\n  \
         %wanted = add i64 %bytes, {PARAMS}\n  %at = call i64 @cudaway_ask_room(i64 %queue, i64 %wanted)\n  \
         %is_none = icmp eq i64 %at, 0\n  br i1 %is_none, label %full, label %fill\nfill:\n  \
         %bytes_short = trunc i64 %bytes to i32\n{}{}  %params = add i64 %at, {PARAMS}\n  \
         %answer = insertvalue {BOTH} {{ i64 0, i32 0 }}, i64 %params, 0\n  ret {BOTH} %answer\n",
        answer::INVALID_VALUE,
        answer::PENDING_COUNT_EXCEEDED,
        store("bytes_are", "i32", "%bytes_short", "at", PARAMS_BYTES),
        store("state_is", "i32", &(State::Room as u32).to_string(), "at", STATE),
    );
    define(text, BOTH, "buffer", &["align", "bytes"], &body);

    let body = format!(
        "  %code = call i32 @cudaway_ask_check(i64 %queue, i64 %function, i64 %gxy, i64 %gzz, i64 %bxy, i64 %bzz, i64 %shared)\n  \
         %is_well = icmp eq i32 %code, 0\n  br i1 %is_well, label %take, label %wrong\nwrong:\n  \
         %failed = insertvalue {BOTH} {{ i64 0, i32 0 }}, i32 %code, 1\n  ret {BOTH} %failed\ntake:\n  \
         %number = sub i64 %function, {first_kernel}\n  %kernel = lshr i64 %number, 4\n  \
         %offset = mul i64 %kernel, {KERNEL_BYTES}\n  %entry_at = add i64 %queue, %offset\n{}  \
         %bytes_wide = zext i32 %bytes to i64\n  \
         %answer = call {BOTH} @cudaway_ask_buffer(i64 %queue, i64 0, i64 %bytes_wide)\n  \
         %params = extractvalue {BOTH} %answer, 0\n  %is_none = icmp eq i64 %params, 0\n  \
         br i1 %is_none, label %done, label %fill\nfill:\n  %at = sub i64 %params, {PARAMS}\n  \
         call void @cudaway_ask_describe(i64 %queue, i64 %at, i64 %function, i64 %gxy, i64 %gzz, i64 %bxy, i64 %bzz, i64 %shared)\n\
         {}  br label %done\ndone:\n  ret {BOTH} %answer\n",
        load("bytes", "i32", "entry_at", KERNELS + 4),
        store("state_is", "i32", &(State::Asked as u32).to_string(), "at", STATE),
    );
    define(text, BOTH, "buffer_for", &shape, &body);

    // The record whose parameters lie there, which is launched from now on by nobody else, or 0: at least in that state.
    let body = format!(
        "{}{}{}  %at = sub i64 %buffer, {PARAMS}\n  %records = add i64 %queue, %first\n  \
         %distance = sub i64 %at, %records\n  %is_less = icmp ult i64 %taken, %capacity\n  \
         %end = select i1 %is_less, i64 %taken, i64 %capacity\n  %is_in = icmp ult i64 %distance, %end\n  \
         %low = and i64 %distance, 15\n  %is_whole = icmp eq i64 %low, 0\n  %may_be = and i1 %is_in, %is_whole\n  \
         br i1 %may_be, label %look, label %none\nlook:\n{}  %state_less = add i32 %state, -1\n  \
         %is_room = icmp ult i32 %state_less, {}\n  %least_short = trunc i64 %least to i32\n  \
         %is_enough = icmp uge i32 %state, %least_short\n  %is_it = and i1 %is_room, %is_enough\n  \
         br i1 %is_it, label %claim, label %none\nclaim:\n  \
         %claimed = cmpxchg ptr addrspace(1) %state_p, i32 %state, i32 {} acq_rel monotonic, align 4\n  \
         %is_claimed = extractvalue {{ i32, i1 }} %claimed, 1\n  br i1 %is_claimed, label %own, label %none\nown:\n  \
         ret i64 %at\nnone:\n  ret i64 0\n",
        place("taken", "queue", TAKEN)
            + "  %taken = load atomic i64, ptr addrspace(1) %taken_p monotonic, align 8\n",
        load("capacity", "i64", "queue", CAPACITY),
        load("first", "i64", "queue", FIRST),
        place("state", "at", STATE)
            + "  %state = load atomic i32, ptr addrspace(1) %state_p monotonic, align 4\n",
        State::Asked as u32,
        State::Claimed as u32,
    );
    define(text, "i64", "claim", &["buffer", "least"], &body);

    // Counts what a record says as launched, or answers why it may not be.
    let body = format!(
        "  %is_tail = icmp eq i64 %stream, {TAIL}\n  br i1 %is_tail, label %tail, label %child\ntail:\n{}{}  \
         %before = atomicrmw add ptr addrspace(1) %tail_p, i32 1 monotonic, align 4\n  \
         %fits = icmp ult i32 %before, %room\n  br i1 %fits, label %put, label %back\nback:\n  \
         %after = atomicrmw add ptr addrspace(1) %tail_p, i32 -1 monotonic, align 4\n  br label %full\nfull:\n{}child:\n  \
         %is_full = call i1 @cudaway_ask_is_full(i64 %queue)\n  br i1 %is_full, label %full, label %put\nput:\n  \
         call void @cudaway_ask_put(i64 %queue, i64 %at, i64 %stream, i64 {})\n{}",
        load("room", "i32", "queue", TAIL_ROOM),
        place("tail", "queue", N_TAIL),
        end(answer::PENDING_COUNT_EXCEEDED),
        State::Launch as u32,
        end(answer::SUCCESS),
    );
    define(text, BOTH, "begin", &["at", "stream"], &body);

    let known = format!(
        "  %is_known = call i1 @cudaway_ask_is_stream(i64 %queue, i64 %stream)\n  \
         br i1 %is_known, label %known, label %unknown\nunknown:\n{}known:\n",
        end(answer::INVALID_RESOURCE_HANDLE)
    );
    let body = format!(
        "{known}  %at = call i64 @cudaway_ask_claim(i64 %queue, i64 %buffer, i64 {})\n  %is_none = icmp eq i64 %at, 0\n  \
         br i1 %is_none, label %none, label %begin\nnone:\n{}begin:\n  \
         %answer = call {BOTH} @cudaway_ask_begin(i64 %queue, i64 %at, i64 %stream)\n  ret {BOTH} %answer\n",
        State::Asked as u32,
        end(answer::INVALID_VALUE),
    );
    define(text, BOTH, "launch_asked", &["buffer", "stream"], &body);

    // A kernel without parameters needs no buffer.
    let body = format!(
        "  %code = call i32 @cudaway_ask_check(i64 %queue, i64 %function, i64 %gxy, i64 %gzz, i64 %bxy, i64 %bzz, i64 %shared)\n  \
         %is_well = icmp eq i32 %code, 0\n  br i1 %is_well, label %look, label %wrong\nwrong:\n{END_WITH_CODE}look:\n{known}  \
         %is_bare = icmp eq i64 %buffer, 0\n  br i1 %is_bare, label %bare, label %given\nbare:\n  \
         %made = call {BOTH} @cudaway_ask_buffer(i64 %queue, i64 0, i64 0)\n  %made_at = extractvalue {BOTH} %made, 0\n  \
         %is_made = icmp ne i64 %made_at, 0\n  br i1 %is_made, label %given, label %full\nfull:\n{}given:\n  \
         %params = phi i64 [ %buffer, %known ], [ %made_at, %bare ]\n  \
         %at = call i64 @cudaway_ask_claim(i64 %queue, i64 %params, i64 {})\n  %is_none = icmp eq i64 %at, 0\n  \
         br i1 %is_none, label %none, label %begin\nnone:\n{}begin:\n  \
         call void @cudaway_ask_describe(i64 %queue, i64 %at, i64 %function, i64 %gxy, i64 %gzz, i64 %bxy, i64 %bzz, i64 %shared)\n  \
         %answer = call {BOTH} @cudaway_ask_begin(i64 %queue, i64 %at, i64 %stream)\n  ret {BOTH} %answer\n",
        end(answer::PENDING_COUNT_EXCEEDED),
        State::Room as u32,
        end(answer::INVALID_VALUE),
    );
    define(
        text,
        BOTH,
        "launch",
        &["function", "buffer", "gxy", "gzz", "bxy", "bzz", "shared", "stream"],
        &body,
    );
}

/// Streams and events, which are the grid's.
fn handles(text: &mut String) {
    let body = format!(
        "  %index = sub i64 %handle, {FIRST_HANDLE}\n  %is_one = icmp ult i64 %index, {MOST_HANDLES}\n  \
         br i1 %is_one, label %look, label %no\nlook:\n  %offset = shl i64 %index, 2\n  %slot = add i64 %queue, %offset\n{}  \
         %kind_short = trunc i64 %kind to i32\n  %is_it = icmp eq i32 %is, %kind_short\n  ret i1 %is_it\nno:\n  ret i1 false\n",
        place("is", "slot", HANDLES) + "  %is = load atomic i32, ptr addrspace(1) %is_p monotonic, align 4\n",
    );
    define(text, "i1", "is_handle", &["handle", "kind"], &body);

    // The three names of the block's own, the tail, and that for what is fired and forgotten, come before all others.
    let body = "  %is_named = icmp ule i64 %stream, 4\n  br i1 %is_named, label %yes, label %look\nyes:\n  ret i1 true\nlook:\n  \
                %is_it = call i1 @cudaway_ask_is_handle(i64 %queue, i64 %stream, i64 1)\n  ret i1 %is_it\n";
    define(text, "i1", "is_stream", &["stream"], body);

    // A place that is none is the caller's mistake.
    let given = format!(
        "  %is_nowhere = icmp eq i64 %place, 0\n  br i1 %is_nowhere, label %nowhere, label %somewhere\nnowhere:\n{}somewhere:\n",
        end(answer::INVALID_VALUE)
    );
    for (name, kind, condition) in [
        ("stream", 1, "icmp ule i32 %flags_short, 1".to_owned()),
        ("event", 2, format!("icmp eq i32 %flags_short, {DISABLE_TIMING}")),
    ] {
        let body = format!(
            "  %flags_short = trunc i64 %flags to i32\n  %fits = {condition}\n  \
             br i1 %fits, label %fit, label %nowhere\nfit:\n  %is_nowhere = icmp eq i64 %place, 0\n  \
             br i1 %is_nowhere, label %nowhere, label %somewhere\nnowhere:\n{}somewhere:\n{}  \
             %number = atomicrmw add ptr addrspace(1) %n_p, i32 1 monotonic, align 4\n  \
             %index = zext i32 %number to i64\n  %is_room = icmp ult i64 %index, {MOST_HANDLES}\n  \
             br i1 %is_room, label %make, label %full\nfull:\n{}make:\n  %offset = shl i64 %index, 2\n  \
             %slot = add i64 %queue, %offset\n{}  %handle = add i64 %index, {FIRST_HANDLE}\n  \
             %to = inttoptr i64 %place to ptr\n  store i64 %handle, ptr %to, align 8\n{}",
            end(answer::INVALID_VALUE),
            place("n", "queue", N_HANDLES),
            end(answer::MEMORY_ALLOCATION),
            place("is", "slot", HANDLES)
                + &format!("  store atomic i32 {kind}, ptr addrspace(1) %is_p monotonic, align 4\n"),
            end(answer::SUCCESS),
        );
        define(text, BOTH, name, &["place", "flags"], &body);
        let body = format!(
            "  %index = sub i64 %handle, {FIRST_HANDLE}\n  %is_one = icmp ult i64 %index, {MOST_HANDLES}\n  \
             br i1 %is_one, label %look, label %no\nlook:\n  %offset = shl i64 %index, 2\n  %slot = add i64 %queue, %offset\n{}  \
             %ended = cmpxchg ptr addrspace(1) %is_p, i32 {kind}, i32 0 monotonic monotonic, align 4\n  \
             %is_ended = extractvalue {{ i32, i1 }} %ended, 1\n  br i1 %is_ended, label %yes, label %no\nyes:\n{}no:\n{}",
            place("is", "slot", HANDLES),
            end(answer::SUCCESS),
            end(answer::INVALID_RESOURCE_HANDLE),
        );
        define(text, BOTH, &format!("forget_{name}"), &["handle"], &body);
    }

    // What was launched first comes first, in all streams: nothing is to be done for an event.
    let both = format!(
        "  %is_stream = call i1 @cudaway_ask_is_stream(i64 %queue, i64 %stream)\n  \
         %is_event = call i1 @cudaway_ask_is_handle(i64 %queue, i64 %event, i64 2)\n  \
         %are_known = and i1 %is_stream, %is_event\n  br i1 %are_known, label %known, label %unknown\nknown:\n{}unknown:\n{}",
        end(answer::SUCCESS),
        end(answer::INVALID_RESOURCE_HANDLE),
    );
    define(text, BOTH, "wait", &["stream", "event", "flags"], &both);
    define(text, BOTH, "record", &["event", "stream"], &both);
    define(text, BOTH, "record_flagged", &["event", "stream", "flags"], &both);

    for (name, value) in [("one", 1), ("zero", 0), ("version", RUNTIME_VERSION)] {
        let body = format!(
            "{given}  %to = inttoptr i64 %place to ptr\n  store i32 {value}, ptr %to, align 4\n{}",
            end(answer::SUCCESS)
        );
        define(text, BOTH, name, &["place"], &body);
    }
}

/// Copies and fills.
fn moves(text: &mut String) {
    let fields = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let mut body = format!(
        "  %is_known = call i1 @cudaway_ask_is_stream(i64 %queue, i64 %stream)\n  \
         br i1 %is_known, label %known, label %unknown\nunknown:\n{}known:\n  \
         %at = call i64 @cudaway_ask_room(i64 %queue, i64 {MOVE_BYTES})\n  %is_none = icmp eq i64 %at, 0\n  \
         br i1 %is_none, label %none, label %fill\nnone:\n{}fill:\n",
        end(answer::INVALID_RESOURCE_HANDLE),
        end(answer::MEMORY_ALLOCATION),
    );
    for (nth, field) in fields.iter().enumerate() {
        body += &store(&format!("{field}_is"), "i64", &format!("%{field}"), "at", WHAT + 8 * nth as u64);
    }
    body += "  call void @cudaway_ask_put(i64 %queue, i64 %at, i64 %stream, i64 %state)\n";
    body += &end(answer::SUCCESS);
    let params: Vec<&str> = ["state", "stream"].into_iter().chain(fields).collect();
    define(text, BOTH, "move", &params, &body);

    let moved = |state: State, values: [&str; 9]| {
        let values: String = values.iter().map(|value| format!(", i64 {value}")).collect();
        format!(
            "  %answer = call {BOTH} @cudaway_ask_move(i64 %queue, i64 {}, i64 %stream{values})\n  ret {BOTH} %answer\n",
            state as u32
        )
    };
    let wrong = format!("wrong:\n{}", end(answer::INVALID_VALUE));
    let body = moved(State::Copy, ["%to", "0", "0", "%from", "0", "0", "%width", "1", "1"]);
    define(text, BOTH, "copy", &["to", "from", "width", "kind", "stream"], &body);
    let body = format!(
        "  %fits_to = icmp ule i64 %width, %to_pitch\n  %fits_from = icmp ule i64 %width, %from_pitch\n  \
         %fits = and i1 %fits_to, %fits_from\n  br i1 %fits, label %fit, label %wrong\n{wrong}fit:\n{}",
        moved(State::Copy, ["%to", "%to_pitch", "0", "%from", "%from_pitch", "0", "%width", "%height", "1"])
    );
    let params = ["to", "to_pitch", "from", "from_pitch", "width", "height", "kind", "stream"];
    define(text, BOTH, "copy_2d", &params, &body);

    // A place in pitched memory: its address, or 0 where the box does not lie in its rows and slices.
    let body = "  %x_room = sub i64 %pitch, %x\n  %x_in = icmp ule i64 %x, %pitch\n  %x_fits = icmp ule i64 %width, %x_room\n  \
                %in_row = and i1 %x_in, %x_fits\n  %y_room = sub i64 %rows, %y\n  %y_in = icmp ule i64 %y, %rows\n  \
                %y_fits = icmp ule i64 %height, %y_room\n  %in_slice = and i1 %y_in, %y_fits\n  \
                %is_flat = icmp ule i64 %depth, 1\n  %any_slice = or i1 %in_slice, %is_flat\n  \
                %fits = and i1 %in_row, %any_slice\n  %slice = mul i64 %pitch, %rows\n  %by_slices = mul i64 %z, %slice\n  \
                %by_rows = mul i64 %y, %pitch\n  %skipped = add i64 %by_slices, %by_rows\n  %inside = add i64 %skipped, %x\n  \
                %place = add i64 %at, %inside\n  %result = select i1 %fits, i64 %place, i64 0\n  ret i64 %result\n";
    define(text, "i64", "pitched", &["at", "pitch", "rows", "x", "y", "z", "width", "height", "depth"], body);

    // `cudaMemcpy3DParms`, 19 words of 8 bytes: an array, a position and a pitched pointer of either side; the extent.
    let mut body =
        "  %is_null = icmp eq i64 %params, 0\n  br i1 %is_null, label %wrong, label %read\n".to_owned();
    body += &(wrong.clone() + "read:\n");
    let words = [
        "from_array",
        "x",
        "y",
        "z",
        "from",
        "from_pitch",
        "from_row",
        "from_rows",
        "to_array",
        "to_x",
        "to_y",
        "to_z",
        "to",
        "to_pitch",
        "to_row",
        "to_rows",
        "width",
        "height",
        "depth",
    ];
    for (nth, word) in words.iter().enumerate() {
        let _ = write!(
            body,
            "  %{word}_a = add i64 %params, {}\n  %{word}_p = inttoptr i64 %{word}_a to ptr\n  \
             %{word} = load i64, ptr %{word}_p, align 8\n",
            8 * nth
        );
    }
    let _ = write!(
        body,
        "  %arrays = or i64 %from_array, %to_array\n  %are_none = icmp eq i64 %arrays, 0\n  \
         br i1 %are_none, label %find, label %array\narray:\n  \
         %refused = call {BOTH} @cudaway_ask_unsupported(i64 %queue, i64 {})\n  ret {BOTH} %refused\nfind:\n  \
         %target = call i64 @cudaway_ask_pitched(i64 %queue, i64 %to, i64 %to_pitch, i64 %to_rows, i64 %to_x, i64 %to_y, \
         i64 %to_z, i64 %width, i64 %height, i64 %depth)\n  \
         %source = call i64 @cudaway_ask_pitched(i64 %queue, i64 %from, i64 %from_pitch, i64 %from_rows, i64 %x, i64 %y, \
         i64 %z, i64 %width, i64 %height, i64 %depth)\n  %is_to = icmp ne i64 %target, 0\n  \
         %is_from = icmp ne i64 %source, 0\n  %are_there = and i1 %is_to, %is_from\n  \
         br i1 %are_there, label %fit, label %wrong\nfit:\n  %to_slice = mul i64 %to_pitch, %to_rows\n  \
         %from_slice = mul i64 %from_pitch, %from_rows\n{}",
        Call::Memcpy3DAsync as u32,
        moved(
            State::Copy,
            [
                "%target",
                "%to_pitch",
                "%to_slice",
                "%source",
                "%from_pitch",
                "%from_slice",
                "%width",
                "%height",
                "%depth"
            ]
        )
    );
    define(text, BOTH, "copy_3d", &["params", "stream"], &body);

    let body = moved(State::Fill, ["%to", "0", "0", "%value", "%width", "1", "1", "0", "0"]);
    define(text, BOTH, "fill", &["to", "value", "width", "stream"], &body);
    let body = format!(
        "  %fits = icmp ule i64 %width, %pitch\n  br i1 %fits, label %fit, label %wrong\n{wrong}fit:\n{}",
        moved(State::Fill, ["%to", "%pitch", "0", "%value", "%width", "%height", "1", "0", "0"])
    );
    define(text, BOTH, "fill_2d", &["to", "pitch", "value", "width", "height", "stream"], &body);
    let body = format!(
        "  %target = call i64 @cudaway_ask_pitched(i64 %queue, i64 %to, i64 %pitch, i64 %rows, i64 0, i64 0, i64 0, i64 %width, \
         i64 %height, i64 %depth)\n  %is_to = icmp ne i64 %target, 0\n  br i1 %is_to, label %fit, label %wrong\n{wrong}fit:\n  \
         %slice = mul i64 %pitch, %rows\n{}",
        moved(
            State::Fill,
            ["%target", "%pitch", "%slice", "%value", "%width", "%height", "%depth", "0", "0"]
        )
    );
    let params = ["to", "pitch", "row", "rows", "value", "width", "height", "depth", "stream"];
    define(text, BOTH, "fill_3d", &params, &body);
}

/// What is only asked.
fn questions(text: &mut String) {
    for (function, offset) in [("name", 0), ("text", TEXT)] {
        let last = answer::ALL.len() - 1;
        let mut body = "  %short = trunc i64 %code to i32\n".to_owned();
        let mut index = last.to_string();
        for (nth, (number, ..)) in answer::ALL.iter().enumerate() {
            let Some(number) = number else { continue };
            let _ = write!(
                body,
                "  %is{nth} = icmp eq i32 %short, {number}\n  %index{nth} = select i1 %is{nth}, i64 {nth}, i64 {index}\n"
            );
            index = format!("%index{nth}");
        }
        let _ = write!(
            body,
            "  %offset = mul i64 {index}, {NAME_BYTES}\n  %entry_at = add i64 %queue, %offset\n  \
             %at = add i64 %entry_at, {}\n  %answer = insertvalue {BOTH} {{ i64 0, i32 0 }}, i64 %at, 0\n  ret {BOTH} %answer\n",
            NAMES + offset
        );
        define(text, BOTH, function, &["code"], &body);
    }

    let given = |value: &str, ty: &str, align: u32| {
        format!(
            "  %is_nowhere = icmp eq i64 %place, 0\n  br i1 %is_nowhere, label %nowhere, label %somewhere\nnowhere:\n{}somewhere:\n  \
             %to = inttoptr i64 %place to ptr\n  store {ty} {value}, ptr %to, align {align}\n{}",
            end(answer::INVALID_VALUE),
            end(answer::SUCCESS)
        )
    };
    let unknown = |call: Call| {
        format!(
            "unknown:\n  %refused = call {BOTH} @cudaway_ask_unsupported(i64 %queue, i64 {})\n  ret {BOTH} %refused\n",
            call as u32
        )
    };
    let body = format!(
        "  %device_short = trunc i64 %device to i32\n  %is_first = icmp eq i32 %device_short, 0\n  \
         br i1 %is_first, label %first, label %other\nother:\n{}first:\n  %number_short = trunc i64 %number to i32\n  \
         %index = zext i32 %number_short to i64\n  %is_one = icmp ult i64 %index, {N_ATTRIBUTES}\n  \
         br i1 %is_one, label %look, label %unknown\nlook:\n  %offset = shl i64 %index, 2\n  %slot = add i64 %queue, %offset\n{}  \
         %is_known = icmp ne i32 %value, {}\n  br i1 %is_known, label %known, label %unknown\n{}known:\n{}",
        end(answer::INVALID_DEVICE),
        load("value", "i32", "slot", ATTRIBUTES),
        i32::MIN,
        unknown(Call::DeviceGetAttribute),
        given("%value", "i32", 4),
    );
    define(text, BOTH, "attribute", &["place", "number", "device"], &body);
    let body = format!(
        "  %number_short = trunc i64 %number to i32\n  %index = zext i32 %number_short to i64\n  \
         %is_one = icmp ult i64 %index, {N_LIMITS}\n  br i1 %is_one, label %look, label %unknown\nlook:\n  \
         %offset = shl i64 %index, 3\n  %slot = add i64 %queue, %offset\n{}  %is_known = icmp ne i64 %value, -1\n  \
         br i1 %is_known, label %known, label %unknown\n{}known:\n{}",
        load("value", "i64", "slot", LIMITS),
        unknown(Call::DeviceGetLimit),
        given("%value", "i64", 8),
    );
    define(text, BOTH, "limit", &["place", "number"], &body);

    // What the heap gave: nothing, where that was asked for, is an answer.
    let body = format!(
        "  %is_none = icmp eq i64 %got, 0\n  %is_some = icmp ne i64 %bytes, 0\n  %failed = and i1 %is_none, %is_some\n  \
         br i1 %failed, label %full, label %give\nfull:\n{}give:\n{}",
        end(answer::MEMORY_ALLOCATION),
        given("%got", "i64", 8),
    );
    define(text, BOTH, "malloc", &["place", "bytes", "got"], &body);
}

/// What kernels are like.
fn of_kernels(text: &mut String) {
    // The address of what is known of a kernel, or 0.
    let first_kernel = kernel_address(0);
    let body = format!(
        "{}{}  %number = sub i64 %function, {first_kernel}\n  %low = and i64 %number, 15\n  %is_whole = icmp eq i64 %low, 0\n  \
         %kernel = lshr i64 %number, 4\n  %n_kernels = zext i32 %n to i64\n  %is_there = icmp ult i64 %kernel, %n_kernels\n  \
         %is_kernel = and i1 %is_whole, %is_there\n  %is_told = icmp ne i64 %facts, 0\n  \
         %may_be = and i1 %is_kernel, %is_told\n  br i1 %may_be, label %look, label %no\nlook:\n  \
         %offset = mul i64 %kernel, {}\n  %inside = add i64 %offset, %facts\n  %at = add i64 %queue, %inside\n{}  \
         %is_known = icmp ne i32 %known, 0\n  br i1 %is_known, label %yes, label %no\nyes:\n  ret i64 %at\nno:\n  ret i64 0\n",
        load("facts", "i64", "queue", FACTS),
        load("n", "i32", "queue", N_KERNELS),
        Facts::BYTES,
        load("known", "i32", "at", Facts::IS_KNOWN),
    );
    define(text, "i64", "facts", &["function"], &body);

    let found = format!(
        "  %at = call i64 @cudaway_ask_facts(i64 %queue, i64 %function)\n  %is_unknown = icmp eq i64 %at, 0\n  \
         br i1 %is_unknown, label %unknown, label %known\nunknown:\n{}known:\n  %is_nowhere = icmp eq i64 %place, 0\n  \
         br i1 %is_nowhere, label %wrong, label %tell\nwrong:\n{}",
        end(answer::INVALID_DEVICE_FUNCTION),
        end(answer::INVALID_VALUE),
    );
    let body = format!(
        "{found}tell:\n  br label %one\none:\n  %nth = phi i64 [ 0, %tell ], [ %next, %one ]\n  %offset = shl i64 %nth, 2\n  \
         %from_a = add i64 %at, %offset\n  %from = inttoptr i64 %from_a to ptr addrspace(1)\n  \
         %value = load i32, ptr addrspace(1) %from, align 4\n  %to_a = add i64 %place, %offset\n  \
         %to = inttoptr i64 %to_a to ptr\n  store i32 %value, ptr %to, align 4\n  %next = add i64 %nth, 1\n  \
         %is_more = icmp ult i64 %next, %n_words\n  br i1 %is_more, label %one, label %done\ndone:\n{}",
        end(answer::SUCCESS)
    );
    define(text, BOTH, "attributes", &["place", "function", "n_words"], &body);

    // Blocks that a multiprocessor holds: as many as its threads' registers allow, and as its shared memory has room for.
    let body = format!(
        "  %threads_short = trunc i64 %threads to i32\n  %is_some = icmp sgt i32 %threads_short, 0\n  \
         %flags_short = trunc i64 %flags to i32\n  %is_flag = icmp ule i32 %flags_short, 1\n  \
         %is_well = and i1 %is_some, %is_flag\n  br i1 %is_well, label %ask, label %wrong\nask:\n{}tell:\n  \
         %less = add i32 %threads_short, -1\n  %nth_short = lshr i32 %less, 5\n  %nth = zext i32 %nth_short to i64\n  \
         %is_short = icmp ult i32 %nth_short, 32\n{}{}{}  %most_wide = zext i32 %most to i64\n  \
         %is_little = icmp ule i64 %dynamic, %most_wide\n  %fits = and i1 %is_short, %is_little\n  \
         br i1 %fits, label %count, label %give\ncount:\n  %offset = shl i64 %nth, 1\n  %slot = add i64 %at, %offset\n{}  \
         %n_short = load i16, ptr addrspace(1) %n_p, align 2\n  %n = zext i16 %n_short to i32\n  \
         %dynamic_short = trunc i64 %dynamic to i32\n  %whole = add i32 %shared, %dynamic_short\n  \
         %is_any = icmp ne i32 %whole, 0\n  %divisor = select i1 %is_any, i32 %whole, i32 1\n  \
         %by_shared = udiv i32 %all, %divisor\n  %is_less = icmp ult i32 %by_shared, %n\n  \
         %is_bound = and i1 %is_any, %is_less\n  %held = select i1 %is_bound, i32 %by_shared, i32 %n\n  br label %give\ngive:\n  \
         %blocks = phi i32 [ 0, %tell ], [ %held, %count ]\n  %to = inttoptr i64 %place to ptr\n  \
         store i32 %blocks, ptr %to, align 4\n{}",
        found,
        load("shared", "i32", "at", Facts::SHARED),
        load("most", "i32", "at", Facts::MOST_DYNAMIC),
        load("all", "i32", "at", Facts::MULTIPROCESSOR),
        place("n", "slot", Facts::BLOCKS),
        end(answer::SUCCESS),
    );
    define(text, BOTH, "occupancy", &["place", "function", "threads", "dynamic", "flags"], &body);
}
