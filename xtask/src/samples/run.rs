//! Runs a built sample as a user would, by `cudaway run`, with a cache of its own that is empty: what it takes is what the
//! first run takes.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use testkit::{Ended, Run};

use super::build::without_folders;
use super::readme;
use super::results::{How, Sample};

/// The arguments that the samples' own runner gives: test_args.json of the checkout.
pub struct Arguments(HashMap<String, Listed>);

#[derive(Deserialize)]
struct Listed {
    args: Option<Vec<String>>,
    runs: Option<Vec<Listed>>,
}

impl Arguments {
    /// A collection without the file gives none.
    pub fn read(checkout: &Path) -> Result<Arguments> {
        if !checkout.join("test_args.json").exists() {
            return Ok(Arguments(HashMap::new()));
        }
        let text = fs::read_to_string(checkout.join("test_args.json")).context("test_args.json")?;
        Ok(Arguments(serde_json::from_str(&text).context("test_args.json")?))
    }

    /// One list for each run.
    pub fn of(&self, program: &Path) -> Vec<Vec<String>> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let lists = match self.0.get(name.as_ref()) {
            Some(Listed { runs: Some(runs), .. }) => runs.iter().map(|run| run.args.clone()).collect(),
            Some(listed) => vec![listed.args.clone()],
            None => vec![None],
        };
        lists.into_iter().map(Option::unwrap_or_default).collect()
    }
}

/// What is asked of a sample.
pub struct Asked<'a> {
    /// Its arguments, run by run.
    pub runs: &'a [Vec<String>],
    pub limit: Duration,
    pub must_launch: bool,
    /// What it prints on NVIDIA's GPUs, where that is told.
    pub shown: Option<String>,
    /// `CUDAWAY_DEVICE`
    pub devices: &'a str,
}

/// All runs of a sample; the first that does not pass decides.
pub fn all(program: &Path, lib: &Path, asked: &Asked, sample: &mut Sample) -> Result<()> {
    let limit = asked.limit;
    sample.how = How::Passed;
    for arguments in asked.runs {
        let before = processor()?;
        let dir = program.parent().context("a program lies in a folder")?;
        let ended = once(program, arguments, lib, dir, limit, &[("CUDAWAY_DEVICE", asked.devices)])?;
        let cpu = processor()? - before;
        let (text, profile) = (format!("{}\n{}", ended.stdout, ended.stderr), profile(&ended.stderr));
        fs::write(program.with_file_name(format!("run{}.txt", sample.runs)), &text)?;
        sample.runs += 1;
        sample.wall += tenths(ended.took.as_secs_f64());
        sample.cpu += tenths(cpu);
        sample.kernels += tenths(profile.kernels);
        sample.compile += tenths(profile.compile);
        sample.launches += profile.launches;
        let other = asked.shown.as_ref().and_then(|shown| readme::difference(&ended.stdout, shown));
        let (how, said) = match (judge(&ended, limit), refused(program), other) {
            // Some samples do not look at the error that the launch gets.
            ((How::Passed, _), Some(refused), _) => (How::Failed, format!("ends well, but {refused}")),
            ((How::Passed, _), _, Some(other)) => (How::Failed, other),
            (judged, ..) => judged,
        };
        if how != How::Passed {
            (sample.how, sample.said) = (how, without_folders(&said));
            break;
        }
    }
    if sample.how == How::Passed && asked.must_launch && sample.launches == 0 {
        (sample.how, sample.said) = (How::Failed, "ends well, but no kernel was launched".to_owned());
    }
    for number in [&mut sample.wall, &mut sample.cpu, &mut sample.kernels, &mut sample.compile] {
        *number = tenths(*number);
    }
    Ok(())
}

pub fn tenths(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

/// What our libraries say of a run, beside the program.
const LOG: &str = "cudaway.log";

/// The kernel of the last run that the driver could not translate.
fn refused(program: &Path) -> Option<String> {
    let log = fs::read_to_string(program.with_file_name(LOG)).ok()?;
    let line = log.lines().find(|line| line.contains("cannot be translated"))?;
    let (_, said) = line.split_once("cudaway::driver: ")?;
    Some(said.trim_end_matches(':').to_owned())
}

/// One run in the folder `dir`, where its log is kept, with these variables. `timeout` ends the children of a program too.
pub fn once(
    program: &Path,
    arguments: &[String],
    lib: &Path,
    dir: &Path,
    limit: Duration,
    variables: &[(&str, &str)],
) -> Result<Ended> {
    let cache = dir.join(".cudaway");
    let _ = fs::remove_dir_all(&cache);
    let log = dir.join(LOG);
    let _ = fs::remove_file(&log);
    let mut run = Run::new("timeout")
        .arg("--kill-after=5")
        .arg(limit.as_secs().to_string())
        .arg("nice")
        .arg(lib.with_file_name("bin").join("cudaway"))
        .args(["run", "--"])
        .arg(program)
        .args(arguments)
        .dir(dir)
        .env("CUDAWAY_CACHE_DIR", &cache)
        .env("CUDAWAY_PROFILE", "1")
        .env("CUDAWAY_LOG", "error")
        .env("CUDAWAY_LOG_FILE", &log)
        .limit(limit + Duration::from_secs(30));
    for (name, value) in variables {
        run = run.env(name, value);
    }
    let ended = run.run()?;
    let _ = fs::remove_dir_all(&cache);
    Ok(ended)
}

/// Seconds of the processor that our ended children have used.
pub fn processor() -> Result<f64> {
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
    let after = stat.rsplit_once(')').context("/proc/self/stat")?.1;
    // cutime and cstime are the 16th and 17th field; the name is the second.
    let ticks = after.split_whitespace().skip(13).take(2).filter_map(|it| it.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS)
}

/// What the samples' own exit codes and words mean: 0 and no word of a failure is a pass, 2 a waiver.
pub fn judge(ended: &Ended, limit: Duration) -> (How, String) {
    const WAIVED: i32 = 2;
    let text = format!("{}\n{}", ended.stdout, ended.stderr);
    // What `timeout` says of a program that it ended, at the second attempt at last.
    if ended.timed_out || matches!(ended.status.code(), Some(124 | 137)) || ended.took >= limit {
        return (How::Failed, format!("still running after {} s", limit.as_secs()));
    }
    let last = |words: &[&str]| {
        let has = |line: &&str| words.iter().any(|word| line.contains(word));
        text.lines().rfind(has).map(|line| line.trim().chars().take(160).collect::<String>())
    };
    let failed = last(&["FAILED", "Result = FAIL", "Test failed", "error", "Error"]);
    match ended.status.code() {
        Some(0) => match last(&["FAILED", "Result = FAIL", "Test failed"]) {
            None => (How::Passed, String::new()),
            Some(said) => (How::Failed, said),
        },
        Some(WAIVED) => {
            let line = last(&["aiv", "not support", "require", "needs", "need"]);
            (How::Waived, line.unwrap_or_else(|| "exit code 2".to_owned()))
        }
        Some(code) => {
            let end = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            (How::Failed, format!("exit code {code}: {}", failed.unwrap_or_else(|| end.to_owned())))
        }
        None => (How::Failed, ended.describe().lines().next().unwrap_or_default().to_owned()),
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct Profile {
    pub kernels: f64,
    pub compile: f64,
    pub launches: u64,
}

/// The sums of what `CUDAWAY_PROFILE` printed, of all processes of a run.
pub fn profile(stderr: &str) -> Profile {
    let mut sum = Profile::default();
    for line in stderr.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [percent, total, launches, _, _, _, compile, ..] = fields[..] else { continue };
        let numbers =
            (percent.parse::<f64>(), total.parse::<f64>(), launches.parse::<u64>(), compile.parse::<f64>());
        let (Ok(_), Ok(total), Ok(launches), Ok(compile)) = numbers else { continue };
        sum.kernels += total / 1e3;
        sum.compile += compile / 1e3;
        sum.launches += launches;
    }
    sum
}

pub fn today() -> String {
    let said = std::process::Command::new("date").args(["-u", "+%F"]).output();
    said.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str) -> Ended {
        Run::new("sh").args(["-c", script]).run().unwrap()
    }

    #[test]
    fn exit_codes_and_words_decide() {
        let how = |script| judge(&ended(script), Duration::from_secs(100)).0;
        assert_eq!(how("echo Test passed"), How::Passed);
        assert_eq!(how("echo 'k.cu:3: Assertion `i < N` failed.'"), How::Passed);
        assert_eq!(how("echo Test FAILED"), How::Failed);
        assert_eq!(how("echo it is not supported; exit 2"), How::Waived);
        assert_eq!(how("exit 1"), How::Failed);
        assert_eq!(how("timeout 0.1 sleep 5"), How::Failed);
        assert_eq!(how("kill -SEGV $$"), How::Failed);
    }

    #[test]
    fn a_profile_is_summed_over_processes() {
        let line = " 100.0     103.000         2      102.78      102.78      102.78        44.0  simd, 32 256x1x1      k(float const*)";
        let text = format!("words of its own 1 2 3\n{line}\n{line}\n");
        let sum = Profile { kernels: 0.206, compile: 0.088, launches: 4 };
        assert_eq!(profile(&text), sum);
    }
}
