//! One run of one program: bounded in time, output captured whole.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// A program to be run.
pub struct Run {
    program: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: Option<PathBuf>,
    limit: Duration,
}

/// What a program did.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    /// It was still running at its limit, and was ended.
    pub timed_out: bool,
}

impl Run {
    /// `program` by itself, with none of our objects.
    pub fn new(program: impl AsRef<Path>) -> Run {
        Run {
            program: program.as_ref().to_path_buf(),
            args: Vec::new(),
            env: Vec::new(),
            dir: None,
            limit: Duration::from_secs(120),
        }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Run {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
        args.into_iter().fold(self, Run::arg)
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Where it runs; else where this process does.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Run {
        self.dir = Some(dir.into());
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Run {
        self.limit = limit;
        self
    }

    /// The line a person would type for this run.
    pub fn command_line(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        words.extend(
            self.env
                .iter()
                .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy())),
        );
        words.push(self.program.display().to_string());
        words.extend(self.args.iter().map(|arg| arg.to_string_lossy().into_owned()));
        words.join(" ")
    }

    pub fn run(self) -> Result<Ended> {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            // The tester's own settings must not decide a test; Cargo's library path names no library of ours.
            if name.to_string_lossy().starts_with("CUDAWAY_")
                || name == "LD_LIBRARY_PATH"
                || name == "LD_PRELOAD"
            {
                command.env_remove(name);
            }
        }
        // Nor may what this machine has for all users.
        command.env("CUDAWAY_CACHE_PATH", ":");
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let started = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?;
        let stdout = collect(child.stdout.take());
        let stderr = collect(child.stderr.take());
        let mut timed_out = false;
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if started.elapsed() > self.limit {
                timed_out = true;
                child.kill()?;
                break child.wait()?;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        let took = started.elapsed();
        let text = |handle: thread::JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&handle.join().unwrap_or_default()).into_owned()
        };
        Ok(Ended { status, stdout: text(stdout), stderr: text(stderr), took, timed_out })
    }
}

impl Ended {
    /// The program ran to its end and said so itself.
    pub fn passed(&self) -> bool {
        self.status.success() && self.stdout.lines().last() == Some("PASSED")
    }

    /// It was ended by a signal, such as SIGSEGV or SIGABRT.
    pub fn crashed(&self) -> bool {
        !self.timed_out && self.status.signal().is_some()
    }

    /// How it ended, and what it said, for a person.
    pub fn describe(&self) -> String {
        let how = match (self.timed_out, self.status.code(), self.status.signal()) {
            (true, ..) => format!("still running after {:.0} s", self.took.as_secs_f64()),
            (_, Some(code), _) => format!("exit code {code}"),
            (_, _, Some(signal)) => format!("ended by signal {signal}"),
            _ => "ended".to_owned(),
        };
        let mut text = how;
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            let lines: Vec<&str> = stream.lines().collect();
            let from = lines.len().saturating_sub(6);
            for line in &lines[from..] {
                text.push_str(&format!("\n        {name}: {}", line.chars().take(300).collect::<String>()));
            }
        }
        text
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // A broken pipe ends the reading; what came before it is kept.
            let _ = stream.read_to_end(&mut bytes);
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Run {
        Run::new("/bin/sh").arg("-c").arg(script)
    }

    #[test]
    fn a_program_passes_only_when_it_says_so_and_exits_with_0() {
        assert!(shell("echo hello; echo PASSED").run().unwrap().passed());
        assert!(!shell("echo PASSED; echo more").run().unwrap().passed());
        assert!(!shell("echo PASSED; exit 1").run().unwrap().passed());
    }

    #[test]
    fn a_signal_is_a_crash_and_a_time_out_is_not() {
        let killed = shell("kill -SEGV $$").run().unwrap();
        assert!(killed.crashed());
        assert!(killed.describe().contains("signal 11"));
        let slow = shell("exec sleep 30").limit(Duration::from_millis(100)).run().unwrap();
        assert!(slow.timed_out && !slow.crashed() && !slow.passed());
    }

    #[test]
    fn both_streams_are_captured_whole() {
        let ended = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo oops >&2")
            .run()
            .unwrap();
        assert_eq!(ended.stdout.lines().count(), 20000);
        assert_eq!(ended.stderr, "oops\n");
    }
}
