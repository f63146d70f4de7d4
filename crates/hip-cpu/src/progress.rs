//! `CUDAWAY_PROGRESS=1`: when launches have waited for code for a second, a line on the terminal says for which kernels.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use crate::{at_exit, thread};

/// What is over sooner is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

struct Wait {
    number: u64,
    /// The kernel as its source has it, and the block.
    what: String,
    since: Instant,
}

#[derive(Default)]
struct Waits {
    waits: Vec<Wait>,
    last_number: u64,
    /// A thread looks at them until there are none.
    is_watched: bool,
}

static WAITS: Mutex<Waits> = Mutex::new(Waits { waits: Vec::new(), last_number: 0, is_watched: false });

/// What stands on the terminal; whoever draws or erases it has this.
static LINE: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A launch that waits for code, until this is dropped.
pub struct Waiting {
    number: u64,
}

impl Waiting {
    /// `None` where nobody asked to be told, or nobody would see it.
    pub fn begin(name: &str, [x, y, z]: [u32; 3]) -> Option<Waiting> {
        if !config::get().progress || !std::io::stderr().is_terminal() {
            return None;
        }
        let what = format!("{}, block {x}x{y}x{z}", at_exit::demangled(name));
        let mut all = WAITS.lock();
        all.last_number += 1;
        let number = all.last_number;
        all.waits.push(Wait { number, what, since: Instant::now() });
        if !all.is_watched {
            // Without a thread there is no line.
            all.is_watched = thread::spawn("cudaway-progress".to_owned(), watch).is_ok();
        }
        Some(Waiting { number })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let is_last = {
            let mut all = WAITS.lock();
            all.waits.retain(|wait| wait.number != self.number);
            all.waits.is_empty()
        };
        // What the program writes next stands in a line of its own.
        if is_last {
            erase(&mut LINE.lock());
        }
    }
}

/// Draws the line as long as somebody waits.
fn watch() {
    loop {
        std::thread::sleep(TICK);
        let mut line = LINE.lock();
        let mut all = WAITS.lock();
        let text = text(&all.waits, Instant::now());
        let is_over = all.waits.is_empty();
        if is_over {
            all.is_watched = false;
        }
        drop(all);
        match text {
            Some(text) => {
                let line = line.get_or_insert_with(new_line);
                line.set_message(text);
                line.tick();
            }
            None => erase(&mut line),
        }
        if is_over {
            return;
        }
    }
}

fn erase(line: &mut Option<ProgressBar>) {
    if let Some(line) = line.take() {
        line.finish_and_clear();
    }
}

fn new_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {wide_msg}");
    line.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

/// What to say of those who wait; `None` while nobody has waited for long.
fn text(waits: &[Wait], now: Instant) -> Option<String> {
    let longest = waits.iter().min_by_key(|wait| wait.since)?;
    let waited = now.saturating_duration_since(longest.since);
    if waited < PATIENCE {
        return None;
    }
    let others = match waits.len() - 1 {
        0 => String::new(),
        n => format!(", {n} more wait"),
    };
    Some(format!("cudaway: compiling {} ({} s{others})", longest.what, waited.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_longest_is_named_after_a_second() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let wait = |number, what: &str, ms| Wait { number, what: what.to_owned(), since: after(ms) };
        let waits = [wait(1, "late, block 1x1x1", 500), wait(2, "early, block 32x1x1", 0)];
        assert_eq!(text(&waits, after(900)), None);
        let said = text(&waits, after(2100)).unwrap();
        assert_eq!(said, "cudaway: compiling early, block 32x1x1 (2 s, 1 more wait)");
        assert_eq!(text(&waits[..1], after(1600)).unwrap(), "cudaway: compiling late, block 1x1x1 (1 s)");
        assert_eq!(text(&[], after(9000)), None);
    }
}
