//! The trace event format that chrome://tracing and Perfetto read: a track for each thread, as many for the device as kernels ran
//! beside each other, and as many for the compiler as it worked on at once.

use serde_json::{Value, json};

use super::read::Process;

/// Numbers of the device's tracks; Linux's threads have smaller ones.
const FIRST_TRACK: u64 = 1 << 32;
/// Numbers of the compiler's.
const FIRST_COMPILER: u64 = 2 << 32;

/// Tracks of one kind, of which each has one thing at a time.
struct Tracks {
    name: &'static str,
    first: u64,
    /// When each is free again.
    ends: Vec<u64>,
}

impl Tracks {
    fn new(name: &'static str, first: u64) -> Tracks {
        Tracks { name, first, ends: Vec::new() }
    }

    /// The number of a track that is free then; a new one is named.
    fn take(&mut self, pid: u32, start: u64, end: u64, events: &mut Vec<Value>) -> u64 {
        let free = self.ends.iter().position(|&end| end <= start).unwrap_or(self.ends.len());
        let track = self.first + free as u64;
        if free == self.ends.len() {
            self.ends.push(0);
            events.push(json!({
                "name": "thread_name", "ph": "M", "pid": pid, "tid": track,
                "args": { "name": format!("{} {free}", self.name) },
            }));
        }
        self.ends[free] = end;
        track
    }
}

pub fn json(processes: &[Process]) -> String {
    let mut events: Vec<Value> = Vec::new();
    // Microseconds.
    let time = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    for process in processes {
        let pid = process.pid;
        for call in &process.calls {
            let mut arguments = call.given.clone();
            arguments.extend(call.got.iter().map(|(name, value)| (format!("{name} (out)"), value.clone())));
            arguments.extend(call.result.map(|result| ("result".to_owned(), json!(result))));
            arguments.extend(call.kernel.as_ref().map(|kernel| ("kernel".to_owned(), json!(kernel))));
            let category = if call.is_nvml() {
                "nvml"
            } else if call.name.trim_start_matches('_').starts_with("cuda") {
                "runtime"
            } else {
                "driver"
            };
            events.push(json!({
                "name": call.name, "cat": category, "ph": "X", "pid": pid, "tid": call.thread,
                "ts": time(call.start), "dur": time(call.nanoseconds), "args": arguments,
            }));
        }
        let mut device = Tracks::new("device", FIRST_TRACK);
        for run in &process.runs {
            let track = device.take(pid, run.start, run.start + run.nanoseconds, &mut events);
            events.push(json!({
                "name": run.name, "cat": "kernel", "ph": "X", "pid": pid, "tid": track,
                "ts": time(run.start), "dur": time(run.nanoseconds),
            }));
        }
        let mut compiler = Tracks::new("compiler", FIRST_COMPILER);
        for it in &process.compiles {
            let track = compiler.take(pid, it.start, it.start + it.nanoseconds, &mut events);
            let what = if it.tier == "cache" { "load" } else { "compile" };
            events.push(json!({
                "name": format!("{what} {}", it.name), "cat": "compile", "ph": "X", "pid": pid, "tid": track,
                "ts": time(it.start), "dur": time(it.nanoseconds), "args": { "code": it.tier, "block": it.block },
            }));
        }
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::read::process;

    #[test]
    fn kernels_that_overlap_have_tracks_of_their_own() {
        let kernel = |start, ns| format!(r#"{{"kernel":"k","plain":"k","start":{start},"ns":{ns}}}"#);
        let lines = [kernel(0, 10_000), kernel(5_000, 10_000), kernel(12_000, 1_000)].join("\n");
        let trace: Value = serde_json::from_str(&json(&[process(4, &lines)])).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let tracks: Vec<u64> = events
            .iter()
            .filter(|it| it["ph"] == "X")
            .map(|it| it["tid"].as_u64().unwrap() - FIRST_TRACK)
            .collect();
        assert_eq!(tracks, [0, 1, 0]);
        assert_eq!(events.iter().filter(|it| it["ph"] == "M").count(), 2);
        assert_eq!(events.last().unwrap()["ts"], 12.0);
    }

    #[test]
    fn compiling_is_a_span_on_a_track_of_its_own() {
        let compile =
            r#"{"compiled":"_Z1kv","plain":"k()","tier":"best","block":"64x1x1","start":3000,"ns":9000}"#;
        let run = r#"{"kernel":"_Z1kv","plain":"k()","start":4000,"ns":1000}"#;
        let trace: Value =
            serde_json::from_str(&json(&[process(4, &format!("{compile}\n{run}\n"))])).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let span = events.iter().find(|it| it["cat"] == "compile").unwrap();
        assert_eq!(
            (&span["name"], &span["ts"], &span["dur"]),
            (&json!("compile k()"), &json!(3.0), &json!(9.0))
        );
        assert_eq!(span["args"], json!({ "code": "best", "block": "64x1x1" }));
        let named = events.iter().find(|it| it["ph"] == "M" && it["tid"] == span["tid"]).unwrap();
        assert_eq!(named["args"]["name"], "compiler 0");
        let kernel = events.iter().find(|it| it["cat"] == "kernel").unwrap();
        assert_ne!(kernel["tid"], span["tid"]);
    }
}
