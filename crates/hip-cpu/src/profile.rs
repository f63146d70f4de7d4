//! `CUDAWAY_PROFILE=1`: what every kernel took, and how long launches waited for code, printed when the process ends.
//! `CUDAWAY_TRACE` gets every launch and every compile as it ends.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::fmt::Write as _;
use std::sync::Once;
use std::time::{Duration, Instant};

use compiler::back::cpu::Setting;
use parking_lot::Mutex;

use crate::at_exit;
use crate::exec::Kernel;

/// Code: a kernel's name, the block it was made for, and how that runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Code {
    name: String,
    block: [u32; 3],
    setting: &'static str,
    width: u32,
    why_not: [Option<String>; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// To compile, or to load from the cache.
    made: Duration,
    launches: u64,
    total: Duration,
    shortest: Duration,
    longest: Duration,
}

/// Which code it is that somebody waited for: the name that who made it gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Of another run, or made ahead of all.
    Cache,
    /// Code that is there sooner than the best (`cpu::emit_baseline`).
    Baseline,
    /// What is there sooner than the best where that takes long, and nearly as fast (`kernel::make_soon`).
    Soon,
    /// What stays.
    Best,
    /// What is tried beside the best: nobody waits for it.
    Rival,
}

impl Tier {
    pub fn name(self) -> &'static str {
        match self {
            Tier::Cache => "cache",
            Tier::Baseline => "baseline",
            Tier::Soon => "soon",
            Tier::Best => "best",
            Tier::Rival => "rival",
        }
    }
}

/// From a launch that found no code to the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waited {
    /// When the first launch began to wait; `None` where code was there before.
    asked: Option<Instant>,
    first: Option<(&'static str, Duration)>,
    /// The last that was made: each is better than the one before.
    best: Option<(&'static str, Duration)>,
}

/// By the kernel's name, and the block of the launch.
type Waits = HashMap<(String, [u32; 3]), Waited>;

static TAKEN: Mutex<Option<HashMap<Code, Taken>>> = Mutex::new(None);
static WAITS: Mutex<Option<Waits>> = Mutex::new(None);

fn print_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit::register(print));
}

fn note(name: &str, block: [u32; 3], kernel: &Kernel, change: impl FnOnce(&mut Taken)) {
    print_at_exit();
    let code = Code {
        name: name.to_owned(),
        block,
        setting: kernel.setting.name(),
        width: if kernel.setting == Setting::Simd { kernel.width } else { 0 },
        why_not: kernel.why_not.clone(),
    };
    change(TAKEN.lock().get_or_insert_default().entry(code).or_default());
}

/// A launch with such a block begins to wait for code.
pub fn asked(name: &str, block: [u32; 3]) {
    if config::get().profile {
        print_at_exit();
        let now = Instant::now();
        let mut waits = WAITS.lock();
        let waited = waits.get_or_insert_default().entry((name.to_owned(), block)).or_default();
        waited.asked.get_or_insert(now);
    }
}

/// Code was compiled or came from the cache, which took so long until now.
pub fn made(name: &str, block: [u32; 3], kernel: &Kernel, tier: Tier, took: Duration) {
    if trace::is_on() {
        let [x, y, z] = block;
        trace::compiled(name, &at_exit::demangled(name), tier.name(), &format!("{x}x{y}x{z}"), took);
    }
    if !config::get().profile {
        return;
    }
    note(name, block, kernel, |taken| taken.made += took);
    if tier != Tier::Rival {
        let now = Instant::now();
        let mut waits = WAITS.lock();
        waits.get_or_insert_default().entry((name.to_owned(), block)).or_default().made(tier, now);
    }
}

impl Waited {
    fn made(&mut self, tier: Tier, now: Instant) {
        // What was there before any launch was not waited for.
        let since = self.asked.map_or(Duration::ZERO, |asked| now.saturating_duration_since(asked));
        self.first.get_or_insert((tier.name(), since));
        if tier != Tier::Baseline {
            self.best = Some((tier.name(), since));
        }
    }
}

/// Whether launches are to be timed.
pub fn is_wanted() -> bool {
    config::get().profile || trace::is_on()
}

/// A launch ran on the device for so long, from its first block to its last.
pub fn ran(name: &str, block: [u32; 3], kernel: &Kernel, took: Duration) {
    if trace::is_on() {
        trace::kernel(name, &at_exit::demangled(name), took);
    }
    if !config::get().profile {
        return;
    }
    note(name, block, kernel, |taken| {
        taken.shortest = if taken.launches == 0 { took } else { taken.shortest.min(took) };
        taken.longest = taken.longest.max(took);
        taken.total += took;
        taken.launches += 1;
    });
}

extern "C" fn print(_: c_int, _: *mut c_void) {
    // A thread that launches while the process ends may hold it.
    let Some(mut taken) = TAKEN.try_lock() else { return };
    at_exit::say(&table(taken.take().unwrap_or_default()));
    let Some(mut waits) = WAITS.try_lock() else { return };
    at_exit::say(&waits_table(waits.take().unwrap_or_default()));
}

/// One line per kernel and block that code was made for, the longest wait first.
fn waits_table(waits: Waits) -> String {
    let mut rows: Vec<_> = waits.into_iter().filter(|(_, waited)| waited.first.is_some()).collect();
    rows.sort_by(|((a, _), x), ((b, _), y)| {
        y.first.map(|it| it.1).cmp(&x.first.map(|it| it.1)).then_with(|| a.cmp(b))
    });
    let mut text = "CUDAWAY PROFILE: code, from the first launch that waited for it\n  \
        first code    ms      best code     ms  block        kernel\n"
        .to_owned();
    for ((name, [x, y, z]), waited) in rows {
        let column = |made: Option<(&str, Duration)>| match made {
            Some((tier, since)) => format!("{tier:8}  {:8.1}", since.as_secs_f64() * 1e3),
            None => format!("{:8}  {:>8}", "-", "-"),
        };
        let (first, best) = (column(waited.first), column(waited.best));
        let block = format!("{x}x{y}x{z}");
        let _ = writeln!(text, "  {first}  {best}  {block:11}  {}", at_exit::demangled(&name));
    }
    text
}

/// One line per code, the longest time first.
fn table(taken: HashMap<Code, Taken>) -> String {
    let mut rows: Vec<(Code, Taken)> = taken.into_iter().collect();
    rows.sort_by(|(a, x), (b, y)| y.total.cmp(&x.total).then_with(|| a.name.cmp(&b.name)));
    let all: Duration = rows.iter().map(|(_, taken)| taken.total).sum();
    let mut text = "CUDAWAY PROFILE: kernels on the CPU device\n\
        time %    total ms  launches     mean us      min us      max us  compile ms  setting   block        kernel\n"
        .to_owned();
    for (code, taken) in &rows {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let share = if all.is_zero() { 0.0 } else { taken.total.as_secs_f64() / all.as_secs_f64() * 100.0 };
        let mean = us(taken.total) / taken.launches.max(1) as f64;
        let [x, y, z] = code.block;
        let setting = if code.width > 0 {
            format!("{}, {}", code.setting, code.width)
        } else {
            code.setting.to_owned()
        };
        let _ = writeln!(
            text,
            "{share:6.1}  {:10.3}  {:8}  {mean:10.2}  {:10.2}  {:10.2}  {:10.1}  {setting:8}  {:11}  {}",
            us(taken.total) / 1e3,
            taken.launches,
            us(taken.shortest),
            us(taken.longest),
            us(taken.made) / 1e3,
            format!("{x}x{y}x{z}"),
            at_exit::demangled(&code.name),
        );
        for (setting, why) in ["simd", "warp"].iter().zip(&code.why_not) {
            if let Some(why) = why {
                let _ = writeln!(text, "        not in {setting}: {why}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_from_the_launch_to_the_first_and_to_the_best_code() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut slow = Waited { asked: Some(start), ..Waited::default() };
        slow.made(Tier::Baseline, after(30));
        let early = slow;
        slow.made(Tier::Best, after(200));
        let mut ready = Waited::default();
        ready.made(Tier::Cache, after(500));
        let block = [64, 2, 1];
        let text = waits_table(HashMap::from([
            (("slow".to_owned(), block), slow),
            (("early".to_owned(), block), early),
            (("ready".to_owned(), block), ready),
            (("failed".to_owned(), block), Waited { asked: Some(start), ..Waited::default() }),
        ]));
        let rows: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], ["baseline", "30.0", "-", "-", "64x2x1", "early"]);
        assert_eq!(rows[1], ["baseline", "30.0", "best", "200.0", "64x2x1", "slow"]);
        assert_eq!(rows[2], ["cache", "0.0", "cache", "0.0", "64x2x1", "ready"]);
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn the_table_has_a_line_per_code_longest_first() {
        let code = |name: &str, width, why: Option<&str>| Code {
            name: name.to_owned(),
            block: [256, 1, 1],
            setting: if width > 0 { "simd" } else { "lane" },
            width,
            why_not: [why.map(str::to_owned), None],
        };
        let taken = |launches, ms| Taken {
            made: Duration::from_millis(7),
            launches,
            total: Duration::from_millis(ms),
            shortest: Duration::from_micros(1),
            longest: Duration::from_micros(2500),
        };
        let text = table(HashMap::from([
            (code("_Z5shortPf", 16, None), taken(4, 10)),
            (code("long", 0, Some("a loop may wait for another thread")), taken(2, 30)),
        ]));
        let lines: Vec<&str> = text.lines().collect();
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let first = ["75.0", "30.000", "2", "15000.00", "1.00", "2500.00", "7.0", "lane", "256x1x1", "long"];
        assert_eq!(words(lines[2]), first);
        assert_eq!(lines[3].trim(), "not in simd: a loop may wait for another thread");
        assert!(lines[4].ends_with("256x1x1      short(float*)"), "{}", lines[4]);
        assert_eq!(lines.len(), 5);
    }
}
