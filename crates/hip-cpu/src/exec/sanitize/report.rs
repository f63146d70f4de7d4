//! What the sanitizer says, in compute-sanitizer's manner, on stderr: the user asked for it.

use std::ffi::{c_int, c_void};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Access, Divergence, Kind, Place, Problem, Run, Space};
use crate::at_exit;
use crate::exec::thread_index;

static N_ERRORS: AtomicU64 = AtomicU64::new(0);

/// Lines that belong together, in one write.
fn say(lines: &[String]) {
    let text: String = lines.iter().map(|line| format!("========= {line}\n")).collect();
    at_exit::say(&text);
}

/// At the first launch; the summary comes when the process ends.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        say(&["CUDAWAY SANITIZER: memcheck".to_owned()]);
        at_exit::register(summary);
    });
}

extern "C" fn summary(_: c_int, _: *mut c_void) {
    let n = N_ERRORS.load(Ordering::Relaxed);
    say(&[format!("ERROR SUMMARY: {n} error{}", if n == 1 { "" } else { "s" })]);
}

pub fn count() {
    N_ERRORS.fetch_add(1, Ordering::Relaxed);
}

/// The kernel, the source line, and the PTX line.
fn at(run: &Run<'_>, position: u32) -> Vec<String> {
    let Some(place) = run.program.lines.place(position).filter(|_| position != 0) else {
        return vec![format!("    at {}", run.kernel)];
    };
    let mut lines = vec![format!("    at {} in {place}", run.kernel)];
    if let Some((file, line)) = &place.inlined_at {
        lines.push(format!("    inlined at {file}:{line}"));
    }
    if place.source.is_some() {
        lines.push(format!("    PTX line {} of {}", place.line, place.ptx));
    }
    lines
}

/// Where `address` lies beside a thing that starts at `extent.0` and has `extent.1` bytes.
pub fn relation(address: i128, (start, bytes): (u64, u64), name: &str) -> String {
    let what = format!("{name} at {start:#x} of size {bytes} bytes");
    let nearest = format!("the nearest {what}");
    let (start, bytes) = (i128::from(start), i128::from(bytes));
    match address {
        _ if address < start => format!("and is {} bytes before {nearest}", start - address),
        // As compute-sanitizer counts: the first byte behind the end is 1 byte after it.
        _ if address >= start + bytes => {
            format!("and is {} bytes after {nearest}", address - (start + bytes) + 1)
        }
        _ => format!("and reaches beyond the end of the {what}"),
    }
}

fn space(access: Access, place: Place) -> &'static str {
    match place {
        Place::Shared(..) => "__shared__",
        Place::Local(..) | Place::Frame => "__local__",
        Place::Param(_) => "parameter",
        Place::Elsewhere if access.space == Space::Const => "__constant__",
        Place::Workspace(_) | Place::Elsewhere => "__global__",
    }
}

/// Thread and block indices.
type Who = ([u32; 3], [u32; 3]);

fn who(([tx, ty, tz], [bx, by, bz]): Who) -> String {
    format!("    by thread ({tx},{ty},{tz}) in block ({bx},{by},{bz})")
}

pub fn access(
    run: &Run<'_>,
    access: Access,
    place: Place,
    problem: &Problem,
    address: usize,
    position: u32,
    by: Who,
) {
    let kind = match access.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Update => "atomic",
    };
    let adjective = if matches!(problem, Problem::Unwritten) { "Uninitialized" } else { "Invalid" };
    let first = format!("{adjective} {} {kind} of size {} bytes", space(access, place), access.bytes());
    let shown = match place {
        Place::Shared(_, offset) | Place::Local(_, offset) | Place::Param(offset) if offset < 0 => {
            format!("-{:#x}", offset.unsigned_abs())
        }
        Place::Shared(_, offset) | Place::Local(_, offset) | Place::Param(offset) => format!("{offset:#x}"),
        Place::Frame | Place::Workspace(_) | Place::Elsewhere => format!("{address:#x}"),
    };
    let mut lines = vec![first];
    lines.extend(at(run, position));
    lines.push(who(by));
    if let (true, Place::Shared(rank, _)) = (run.is_clustered, place) {
        lines.push(format!("    In the shared memory of the cluster's block of rank {rank}"));
    }
    match problem {
        Problem::Misaligned => {
            lines.push(format!("    Address {shown} is misaligned: not a multiple of {}", access.bytes()));
        }
        Problem::OutOfBounds(nearest) => {
            lines.push(format!("    Address {shown} is out of bounds"));
            lines.push(format!("    {nearest}"));
            if let Place::Local(owner, _) = place
                && thread_index(owner, run.block) != by.0
            {
                let [x, y, z] = thread_index(owner, run.block);
                lines.push(format!("    and is in the local memory of thread ({x},{y},{z})"));
            }
        }
        Problem::Unwritten => lines.push(format!("    Address {shown} was not written before in this block")),
    }
    lines.push(String::new());
    say(&lines);
}

pub fn barrier(run: &Run<'_>, position: u32, by: Who, what: Divergence) {
    let mut lines = vec![];
    match what {
        Divergence::Warp { other } => {
            lines.push("Barrier error detected. Divergent thread(s) in warp".to_owned());
            lines.extend(at(run, position));
            lines.push(who(by));
            let place = run.program.lines.place(other).map_or_else(String::new, |place| place.to_string());
            lines.push(format!("    Other threads of the warp came to the barrier at {place}"));
        }
        Divergence::Block { ended } => {
            lines.push("Barrier error detected. Divergent thread(s) in block".to_owned());
            lines.extend(at(run, position));
            lines.push(who(by));
            let [x, y, z] = thread_index(ended, run.block);
            lines.push(format!("    Thread ({x},{y},{z}) has ended and never comes to it"));
        }
    }
    lines.push(String::new());
    say(&lines);
}

/// A grid whose threads wait for each other for ever.
pub fn stuck(run: &Run<'_>, places: &[String]) {
    count();
    let mut lines =
        vec!["Barrier error detected. The threads of a block wait for each other for ever".to_owned()];
    lines.push(format!("    at {}", run.kernel));
    lines.extend(places.iter().map(|place| format!("    {place}")));
    lines.push(String::new());
    say(&lines);
}

/// The same at the same place, as often.
pub fn repeated(run: &Run<'_>, position: u32, what: &str, count: u64) {
    let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
    let mut lines = vec![format!("The same error ({what}) {times} more in this launch")];
    lines.extend(at(run, position));
    lines.push(String::new());
    say(&lines);
}
