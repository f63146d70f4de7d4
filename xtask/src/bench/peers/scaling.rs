//! What a second thread brings: the rows that compute, with one thread and with two, ours and native code's by turns.

use std::fmt::Write as _;
use std::time::Duration;

use super::Reading;
use super::programs::{Peer, Program};
use super::rows::Row;

/// How many times the speed of one thread two threads should have.
const GOAL: f64 = 1.9;
/// Rounds at least: two quiet cores at once are rarer than one.
const LEAST_ROUNDS: u32 = 6;

/// Microseconds of the clock on the wall with one thread and with two, the smallest of all rounds.
#[derive(Clone, Copy)]
struct Times([f64; 2]);

impl Times {
    fn speedup(self) -> f64 {
        self.0[0] / self.0[1]
    }
}

/// One row's times: ours, and native code's for what this machine's second core is worth.
pub struct Scaled {
    row: &'static Row,
    ours: Option<Times>,
    native: Option<Times>,
}

/// Measures the rows of `wanted` that compute.
pub fn measure(programs: &[Program], wanted: &[&'static Row], rounds: u32, seconds: f64) -> Vec<Scaled> {
    let rows = wanted.iter().filter(|row| row.computes());
    rows.map(|&row| {
        let mut scaled = Scaled { row, ours: None, native: None };
        for _ in 0..rounds.max(LEAST_ROUNDS) {
            for program in programs {
                let kept = match program.peer {
                    Peer::Ours => &mut scaled.ours,
                    Peer::Native => &mut scaled.native,
                    Peer::Pocl | Peer::Intel => continue,
                };
                *kept = best(*kept, times(program, row.name, seconds));
            }
        }
        println!("two threads: {}", scaled.line());
        scaled
    })
    .collect()
}

fn times(program: &Program, row: &str, seconds: f64) -> Option<Times> {
    let wall = |threads| match program.measure_on(threads, row, seconds, Duration::from_secs(120)) {
        Reading::Measured { wall, .. } => Some(wall),
        _ => None,
    };
    Some(Times([wall(1)?, wall(2)?]))
}

fn best(so_far: Option<Times>, new: Option<Times>) -> Option<Times> {
    match (so_far, new) {
        (Some(a), Some(b)) => Some(Times([a.0[0].min(b.0[0]), a.0[1].min(b.0[1])])),
        (a, b) => a.or(b),
    }
}

impl Scaled {
    /// The row of the table.
    fn line(&self) -> String {
        let speedup =
            |times: Option<Times>| times.map_or("–".to_owned(), |times| format!("{:.2}", times.speedup()));
        let goal = match self.ours {
            Some(times) if times.speedup() >= GOAL => "met",
            Some(_) => "**missed**",
            None => "**no right result**",
        };
        format!("| `{}` | {} | {} | {goal} |", self.row.name, speedup(self.ours), speedup(self.native))
    }
}

/// Speed with two threads in that with one, as Markdown.
pub fn table(all: &[Scaled]) -> String {
    let mut text = String::new();
    if all.is_empty() {
        return text;
    }
    let _ = writeln!(
        text,
        "Two threads in times of one's speed, by the clock on the wall (goal: at least {GOAL}). Native code's figure says what the\n\
         machine's second core was worth during the run.\n\n| row | CUDAway | native C | goal |\n|---|--:|--:|---|"
    );
    for scaled in all {
        let _ = writeln!(text, "{}", scaled.line());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    #[test]
    fn the_smallest_times_of_all_rounds_are_compared() {
        let row = ROWS.iter().find(|row| row.computes()).expect("a row that computes");
        let ours = best(Some(Times([20.0, 12.0])), Some(Times([22.0, 10.0])));
        let scaled = Scaled { row, ours, native: None };
        assert_eq!(scaled.line(), format!("| `{}` | 2.00 | – | met |", row.name));
        let slow = Scaled { row, ours: Some(Times([18.0, 10.0])), native: ours };
        assert_eq!(slow.line(), format!("| `{}` | 1.80 | 2.00 | **missed** |", row.name));
    }
}
