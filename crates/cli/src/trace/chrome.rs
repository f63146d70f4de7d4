//! The trace event format that chrome://tracing and Perfetto read: a track for each thread, and as many for the device as
//! kernels ran beside each other.

use serde_json::{Value, json};

use super::read::Process;

/// Numbers of the device's tracks; Linux's threads have smaller ones.
const FIRST_TRACK: u64 = 1 << 32;

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
        let mut ends: Vec<u64> = Vec::new();
        for run in &process.runs {
            let free = ends.iter().position(|&end| end <= run.start).unwrap_or(ends.len());
            if free == ends.len() {
                ends.push(0);
                events.push(json!({
                    "name": "thread_name", "ph": "M", "pid": pid, "tid": FIRST_TRACK + free as u64,
                    "args": { "name": format!("device {free}") },
                }));
            }
            ends[free] = run.start + run.nanoseconds;
            events.push(json!({
                "name": run.name, "cat": "kernel", "ph": "X", "pid": pid, "tid": FIRST_TRACK + free as u64,
                "ts": time(run.start), "dur": time(run.nanoseconds),
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
}
