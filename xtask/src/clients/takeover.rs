//! What the log says of the static runtimes in a client's modules.

use anyhow::{Result, ensure};

use super::list::Client;

/// Every static runtime was taken over whole, and those in the modules that the list names are among them.
pub fn check(client: &Client, log: &str) -> Result<()> {
    let taken: Vec<&str> = log.lines().filter(|line| line.contains("runtime taken over, ")).collect();
    for module in client.taken_over {
        ensure!(
            taken.iter().any(|line| line.contains(module)),
            "the log does not say that the runtime in {module}so was taken over:\n{}",
            taken.join("\n")
        );
    }
    for line in taken {
        ensure!(is_whole(line), "a runtime was not taken over whole: {line}");
    }
    Ok(())
}

/// `… 452 of 452 functions redirected …`
fn is_whole(line: &str) -> bool {
    let counts =
        line.split_once("taken over, ").and_then(|(_, rest)| rest.split_once(" functions redirected"));
    counts
        .and_then(|(counts, _)| counts.split_once(" of "))
        .is_some_and(|(done, all)| done == all && all != "0")
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn a_runtime_with_a_function_left_alone_is_not_whole() {
        let line = |counts: &str| {
            format!("a.so: CUDA 13 runtime taken over, {counts} functions redirected (0 too short)")
        };
        assert!(is_whole(&line("452 of 452")));
        assert!(!is_whole(&line("451 of 452")));
        assert!(!is_whole(&line("0 of 0")));
        assert!(!is_whole("a.so: CUDA 13 runtime taken over"));
    }
}
