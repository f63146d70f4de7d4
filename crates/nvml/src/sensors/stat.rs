//! How busy the cores were: `/proc/stat`, compared with what it said a moment ago.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::file;

/// NVML promises a sample period between a sixth of a second and a second.
const PERIOD: Duration = Duration::from_millis(167);

pub struct Busy {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    at: Instant,
    ticks: Option<Ticks>,
    percent: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
}

impl Busy {
    /// The first period begins now.
    pub fn since_now(path: PathBuf) -> Busy {
        let ticks = read(&path);
        Busy { path, state: Mutex::new(State { at: Instant::now(), ticks, percent: None }) }
    }

    /// The share of the last whole period. The first answer waits for the first period to end; later ones never wait.
    pub fn percent(&self) -> Option<u32> {
        let left = {
            let state = self.state.lock();
            if state.percent.is_some() { Duration::ZERO } else { PERIOD.saturating_sub(state.at.elapsed()) }
        };
        std::thread::sleep(left);
        let mut state = self.state.lock();
        if state.at.elapsed() >= PERIOD {
            let now = read(&self.path)?;
            state.percent = state.ticks.and_then(|before| share(before, now)).or(state.percent);
            state.ticks = Some(now);
            state.at = Instant::now();
        }
        state.percent
    }
}

/// The first line: user nice system idle iowait irq softirq steal, in ticks. Guests' ticks are in the user's already.
fn read(path: &PathBuf) -> Option<Ticks> {
    let text = file::text(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
    Some(Ticks { all: ticks.iter().sum(), idle: idle + waiting })
}

fn share(before: Ticks, now: Ticks) -> Option<u32> {
    let all = now.all.checked_sub(before.all).filter(|&all| all > 0)?;
    let idle = now.idle.saturating_sub(before.idle).min(all);
    u32::try_from(((all - idle) * 100 + all / 2) / all).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_of_four_at_work_is_a_quarter() {
        assert_eq!(share(Ticks { all: 1000, idle: 700 }, Ticks { all: 1400, idle: 1000 }), Some(25));
        assert_eq!(share(Ticks { all: 1000, idle: 700 }, Ticks { all: 1000, idle: 700 }), None);
    }

    #[test]
    fn the_machines_own_file_is_understood() {
        let ticks = read(&PathBuf::from("/proc/stat")).unwrap();
        assert!(ticks.all > ticks.idle && ticks.idle > 0);
    }
}
