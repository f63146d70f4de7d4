//! What goes wrong, as `HIP_RECORDER_SCRIPT` says: `hipMalloc@3=2;hipFree~500;hipStreamSynchronize=719` lets the third
//! `hipMalloc` answer 2 (out of memory), every `hipFree` take 500 microseconds longer, and every
//! `hipStreamSynchronize` answer 719. A call that answers so does nothing else.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hip_sys::hipError_t;

#[derive(Debug)]
struct Line {
    name: String,
    /// Which call it is, from 1 on; none is every one.
    number: Option<u32>,
    what: What,
    seen: AtomicU32,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Answer(hipError_t),
    Delay(Duration),
}

/// The script's answer to this call, after its delay.
pub fn answer(name: &str) -> Option<hipError_t> {
    static SCRIPT: OnceLock<Vec<Line>> = OnceLock::new();
    let script = SCRIPT.get_or_init(|| {
        let text = std::env::var("HIP_RECORDER_SCRIPT").unwrap_or_default();
        text.split(';')
            .filter(|line| !line.is_empty())
            .map(|line| {
                parse(line).unwrap_or_else(|| crate::refuse(&format!("HIP_RECORDER_SCRIPT: {line:?}")))
            })
            .collect()
    });
    due(script, name)
}

fn due(script: &[Line], name: &str) -> Option<hipError_t> {
    let mut answer = None;
    for line in script.iter().filter(|line| line.name == name) {
        let number = line.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if line.number.is_some_and(|wanted| wanted != number) {
            continue;
        }
        match line.what {
            What::Answer(code) => answer = Some(code),
            What::Delay(time) => std::thread::sleep(time),
        }
    }
    answer
}

fn parse(line: &str) -> Option<Line> {
    let (call, what) = match (line.split_once('='), line.split_once('~')) {
        (Some((call, code)), None) => (call, What::Answer(hipError_t(code.parse().ok()?))),
        (None, Some((call, micros))) => (call, What::Delay(Duration::from_micros(micros.parse().ok()?))),
        _ => return None,
    };
    let (name, number) = match call.split_once('@') {
        Some((name, number)) => (name, Some(number.parse().ok()?)),
        None => (call, None),
    };
    Some(Line { name: name.to_owned(), number, what, seen: AtomicU32::new(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_that_the_line_counts_answers_and_no_other() {
        let script = [parse("hipMalloc@2=2").unwrap(), parse("hipFree=719").unwrap()];
        let answers: Vec<_> = (0..3).map(|_| due(&script, "hipMalloc")).collect();
        assert_eq!(answers, [None, Some(hipError_t(2)), None]);
        assert_eq!(
            [due(&script, "hipFree"), due(&script, "hipFree"), due(&script, "hipInit")],
            [Some(hipError_t(719)), Some(hipError_t(719)), None]
        );
    }

    #[test]
    fn a_delay_is_in_microseconds_and_other_lines_are_refused() {
        assert_eq!(parse("hipFree~1500").unwrap().what, What::Delay(Duration::from_micros(1500)));
        for wrong in ["hipFree", "hipFree=x", "hipFree@=2", "a=1~2"] {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
    }
}
