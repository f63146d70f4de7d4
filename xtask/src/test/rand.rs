//! cuRAND beside NVIDIA's own library, whose host generators work without a GPU: the same commands for both, drawn anew in each
//! run, by a program in C (tools/rand-proof/client.c). All numbers are equal to the bit,
//! and so are the statuses of calls that are refused; of the kernels for AMD GPUs, which run on the CPU device here, normal numbers
//! in double precision and exponentials are equal within the rounding of their logarithms and sines.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::Installed;

use super::kernels;
use super::report::{Outcome, Report};
use crate::setup;
use crate::toolchain::{CURAND_13_5, Release};

pub fn run(installed: &Installed, report: &mut Report) {
    let made = match Proof::new(installed) {
        Ok(made) => made,
        Err(error) => {
            let reason = format!("NVIDIA's libcurand cannot be had: {error:#}");
            return report.note("cuRAND beside NVIDIA's", Outcome::Skipped(reason));
        }
    };
    report.note("cuRAND refuses what NVIDIA's refuses", made.refusals());
    report.note("a device's MT19937 has a best ordering", made.best_twister());
    let seed = super::seed("RAND_SEED");
    for kind in KINDS {
        let numbers = made.numbers(kind, seed).with_context(|| format!("again: RAND_SEED={seed}"));
        let what =
            if kind.differs { "as many numbers as NVIDIA's gives" } else { "the numbers are NVIDIA's" };
        report.note(&format!("{}, on host and device: {what}", kind.name), numbers);
        // Half of them in each run: their kernels are compiled for it.
        if Dice(seed ^ u64::from(kind.number) << 32 | 1).below(2) == 0 {
            let numbers = made.kernels(kind, seed).with_context(|| format!("again: RAND_SEED={seed}"));
            let whose = if kind.differs { "the host's" } else { "NVIDIA's" };
            report.note(&format!("{}, by kernels: the numbers are {whose}", kind.name), numbers);
        }
    }
    let of_source = kernels::are_of_their_source("crates/libraries/curand/api/kernels", &["rand"]);
    let of_source = of_source.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
    report.note("cuRAND's kernels are what nvcc makes of their source", of_source);
}

/// A kind of generator, and the orderings that a host's has.
struct Kind {
    name: &'static str,
    number: u32,
    orderings: &'static [u32],
    /// Its numbers are others than NVIDIA's, as docs/libraries.md says: counts and statuses alone are compared.
    differs: bool,
}

const fn kind(name: &'static str, number: u32, orderings: &'static [u32]) -> Kind {
    Kind { name, number, orderings, differs: matches!(number, 202 | 204) }
}

const KINDS: &[Kind] = &[
    kind("XORWOW", 101, &[100, 101, 102, 103]),
    kind("MRG32k3a", 121, &[100, 101, 103]),
    kind("MTGP32", 141, &[100, 101, 103]),
    kind("MT19937", 142, &[101, 103]),
    kind("Philox4x32-10", 161, &[100, 101, 103]),
    kind("Sobol32", 201, &[201]),
    kind("scrambled Sobol32", 202, &[201]),
    kind("Sobol64", 203, &[201]),
    kind("scrambled Sobol64", 204, &[201]),
];

impl Kind {
    fn is_quasi(&self) -> bool {
        self.number > 200
    }

    fn is_wide(&self) -> bool {
        self.number > 202
    }

    /// Words that its states have, all of which change at once then; no other kind has more than are drawn anyway.
    fn words_of_states(&self) -> Option<u64> {
        (self.number == 142).then_some(8192 * 624)
    }

    fn has_offset(&self) -> bool {
        !matches!(self.number, 141 | 142)
    }
}

/// xorshift64*: what is drawn here needs no quality, and nothing of ours.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.roll() >> 11) % n
    }

    /// Small numbers as often as those of many digits.
    fn any(&mut self) -> u64 {
        let digits = self.below(63);
        self.roll() >> digits >> 1
    }

    fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

struct Proof<'i> {
    installed: &'i Installed,
    client: PathBuf,
    theirs: PathBuf,
    /// Where NVIDIA's runtime lies, which their library needs.
    runtime: PathBuf,
}

impl<'i> Proof<'i> {
    fn new(installed: &'i Installed) -> Result<Proof<'i>> {
        let folder = setup::root().join("target/rand-proof");
        std::fs::create_dir_all(&folder)?;
        let client = folder.join("client");
        let source = setup::root().join("tools/rand-proof/client.c");
        setup::run(Command::new("cc").args(["-O1", "-Wall", "-o"]).arg(&client).arg(source).arg("-ldl"))?;
        let theirs = setup::download_cache()?.join("libcurand");
        std::fs::create_dir_all(&theirs)?;
        setup::files_of_wheel(CURAND_13_5, "lib/libcurand.so", &theirs)?;
        let runtime = Release::V13_5.get()?.dir.join("lib");
        Ok(Proof { installed, client, theirs: theirs.join("libcurand.so.10"), runtime })
    }

    /// What the client says of each command.
    fn said(&self, library: &Path, device: bool, commands: &[String]) -> Result<Vec<String>> {
        self.said_by("auto", library, device, commands)
    }

    /// The same with `CUDAWAY_RAND`.
    fn said_by(&self, maker: &str, library: &Path, device: bool, commands: &[String]) -> Result<Vec<String>> {
        let input = self.client.with_extension("commands");
        std::fs::write(&input, commands.join("\n") + "\n")?;
        let mut client = Command::new(&self.client);
        client.arg(library).stdin(std::fs::File::open(&input)?).stderr(Stdio::inherit());
        client.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_RAND", maker);
        if library == self.theirs {
            client.env("LD_LIBRARY_PATH", &self.runtime);
        }
        if device {
            client.arg(self.installed.lib().join("libcudart.so.13"));
        }
        let output = client.output().context("the client")?;
        let lines: Vec<_> = String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect();
        let at = commands.get(lines.len()).map_or("its end", String::as_str);
        ensure!(
            output.status.success() && lines.len() == commands.len(),
            "{}: {} at `{at}`",
            library.display(),
            output.status
        );
        Ok(lines)
    }

    fn ours(&self) -> PathBuf {
        self.installed.lib().join("libcurand.so.10")
    }

    fn refusals(&self) -> Result<()> {
        let mut commands: Vec<String> = Vec::new();
        let mut say = |lines: &[&str]| commands.extend(lines.iter().map(|line| (*line).to_owned()));
        say(&[
            "version",
            "property 0",
            "property 1",
            "property 2",
            "property 3",
            "create-null 101",
            "create-null 7",
        ]);
        for line in [
            "seed 1",
            "offset 1",
            "order 101",
            "dimensions 1",
            "seeds",
            "stream 0",
            "gen 1",
            "wide 1",
            "uniform 1",
            "uniform-double 1",
            "normal 2 0 1",
            "normal-double 2 0 1",
            "log-normal 2 0 1",
            "log-normal-double 2 0 1",
            "poisson 1 3",
            "poisson-method 1 3 0",
            "destroy",
            "destroy-distribution 0",
            "directions32 0",
            "directions32 103",
            "directions64 101",
            "directions64 105",
            "directions32 101",
            "directions64 103",
        ] {
            say(&[line]);
        }
        for number in [1, 99, 100, 101, 102, 121, 141, 142, 161, 200, 201, 202, 203, 204, 205] {
            say(&[&format!("create {number}")]);
            for order in [99, 100, 101, 102, 103, 104, 105, 200, 201, 202] {
                say(&[&format!("order {order}")]);
            }
            say(&[
                "seed 5",
                "offset 5",
                "dimensions 0",
                "dimensions 20001",
                "dimensions 3",
                "stream 0",
                "gen 0",
                "wide 0",
                "uniform 0 null",
                "uniform 4",
                "uniform-double 4",
                "normal 3 0 1",
                "normal-double 3 0 1",
                "log-normal 3 0 1",
                "log-normal-double 3 0 1",
                "poisson 4 0",
                "poisson 4 -1",
                "poisson 3 400001",
                "destroy",
                "destroy",
            ]);
        }
        let (theirs, ours) =
            (self.said(&self.theirs, false, &commands)?, self.said(&self.ours(), false, &commands)?);
        for ((command, theirs), ours) in commands.iter().zip(&theirs).zip(&ours) {
            // Numbers are another test's.
            let is_table = ["directions", "version", "property"].iter().any(|word| command.starts_with(word));
            let status = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
            let same = if is_table { theirs == ours } else { status(theirs) == status(ours) };
            ensure!(same, "{command}: NVIDIA's says {:.80}, ours {:.80}", theirs, ours);
        }
        Ok(())
    }

    /// A device's MT19937 takes the best ordering, which is its default one, and the host's does not: on an H200 (cuRAND 10.4).
    fn best_twister(&self) -> Result<()> {
        let drawn = |order: &str| {
            let commands = ["create 142", order, "gen 20000", "destroy"].map(str::to_owned);
            self.said(&self.ours(), true, &commands)
        };
        let (best, default) = (drawn("order 100")?, drawn("order 101")?);
        ensure!(best[1] == "0" && best == default, "the best ordering says {:.80}", best[1]);
        Ok(())
    }

    fn numbers(&self, kind: &Kind, seed: u64) -> Result<()> {
        let mut dice = Dice(seed ^ u64::from(kind.number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let commands: Vec<String> =
            kind.orderings.iter().flat_map(|order| session(kind, *order, &mut dice)).collect();
        let theirs = self.said(&self.theirs, false, &commands)?;
        for (device, name) in [(false, "host"), (true, "device")] {
            let ours = self.said(&self.ours(), device, &commands)?;
            for (at, command) in commands.iter().enumerate() {
                let before =
                    commands[..at].iter().rposition(|command| command.starts_with("create")).unwrap_or(0);
                compare(command, &theirs[at], &ours[at], kind.differs)
                    .with_context(|| format!("on the {name}, after {}", commands[before..=at].join("; ")))?;
            }
        }
        Ok(())
    }
}

impl Proof<'_> {
    /// One of the generator's orderings, beside NVIDIA's numbers or, where those differ, beside the host's of ours.
    fn kernels(&self, kind: &Kind, seed: u64) -> Result<()> {
        let mut dice = Dice(seed ^ u64::from(kind.number).wrapping_mul(0xd1b5_4a32_d192_ed03) | 1);
        let order = *dice.one_of(kind.orderings);
        let commands = session(kind, order, &mut dice);
        let other = if kind.differs { self.ours() } else { self.theirs.clone() };
        let theirs = self.said(&other, false, &commands)?;
        let ours = self.said_by("kernels", &self.ours(), true, &commands)?;
        for (at, command) in commands.iter().enumerate() {
            near(command, &theirs[at], &ours[at])
                .with_context(|| format!("after {}", commands[..=at].join("; ")))?;
        }
        Ok(())
    }
}

/// A generator of this ordering, set and asked for numbers of each distribution.
fn session(kind: &Kind, order: u32, dice: &mut Dice) -> Vec<String> {
    let mut commands = vec![format!("create {}", kind.number), format!("order {order}")];
    let set = |commands: &mut Vec<String>, dice: &mut Dice| match dice.below(3) {
        0 if !kind.is_quasi() => commands.push(format!("seed {}", dice.any())),
        1 if kind.has_offset() => {
            commands.push(format!("offset {}", if kind.is_wide() { dice.any() } else { dice.any() >> 32 }))
        }
        _ if kind.is_quasi() => {
            let most = *dice.one_of(&[3, 100, 20_000]);
            let dimensions = 1 + dice.below(most);
            commands.push(format!("dimensions {dimensions}"));
        }
        _ => {}
    };
    set(&mut commands, dice);
    set(&mut commands, dice);
    let bits = if kind.is_wide() { "wide" } else { "gen" };
    let draws = [
        bits,
        "uniform",
        bits,
        "runs",
        "uniform-double",
        "normal",
        "normal-double",
        "log-normal",
        "log-normal-double",
        "poisson",
        "poisson-method",
        bits,
        "uniform",
    ];
    let mut listed = Vec::new();
    for (index, draw) in draws.into_iter().enumerate() {
        let most = match draw {
            _ if draw == bits && index == 2 => 200_000,
            "poisson" | "poisson-method" => 2_000,
            _ => 6_000,
        };
        listed.push((draw, 1 + dice.below(most)));
    }
    if let Some(words) = kind.words_of_states() {
        commands.push(format!("sum {}", words - 100_000 + dice.below(400_000)));
    }
    for (draw, count) in listed {
        if dice.below(6) == 0 {
            set(&mut commands, dice);
        }
        let dimensions = commands
            .iter()
            .rev()
            .find_map(|command| command.strip_prefix("dimensions ")?.parse::<u64>().ok())
            .unwrap_or(1);
        // A pair of normal numbers for each dimension fits every kind.
        let unit = if draw.contains("normal") { 2 * dimensions } else { dimensions };
        let count = count.next_multiple_of(unit);
        let number = |dice: &mut Dice| dice.below(4_000) as f64 / 1_000.0 - 1.0;
        commands.push(match draw {
            "poisson" | "poisson-method" => {
                let lambda = dice.one_of(&[0.5, 3.0, 60.0, 900.0, 5_000.0]) * (1.0 + number(dice).abs());
                format!("{draw} {count} {lambda} 0")
            }
            _ if draw.contains("normal") => {
                let (mean, deviation) = match dice.below(3) {
                    0 => (0.0, 1.0),
                    _ => (number(dice), number(dice).abs()),
                };
                format!("{draw} {count} {mean} {deviation}")
            }
            "runs" => format!("runs {count} {}", 1 + dice.below(3)),
            _ => format!("{draw} {count}"),
        });
        // Kernels do not count a graph's runs where another seed goes on at the place that calls have come to.
        if draw == "runs" && kind.has_offset() {
            commands.push(format!("offset {}", dice.any() >> 32));
        }
    }
    commands.push("destroy".to_owned());
    commands
}

/// Fails where the two answers differ.
fn compare(command: &str, theirs: &str, ours: &str, only_counts: bool) -> Result<()> {
    let (theirs, ours): (Vec<&str>, Vec<&str>) = (theirs.split(' ').collect(), ours.split(' ').collect());
    ensure!(theirs[0] == ours[0], "{command}: NVIDIA's answers {}, ours {}", theirs[0], ours[0]);
    ensure!(
        theirs.len() == ours.len(),
        "{command}: NVIDIA's has {} numbers, ours {}",
        theirs.len() - 1,
        ours.len() - 1
    );
    if only_counts {
        return Ok(());
    }
    for (at, (theirs, ours)) in theirs[1..].iter().zip(&ours[1..]).enumerate() {
        if theirs != ours {
            bail!("{command}: number {at} is {theirs} of NVIDIA's, {ours} of ours");
        }
    }
    Ok(())
}

/// As [`compare`], but for what depends on logarithms, exponentials, sines and cosines in double precision. NVIDIA's host
/// generators have the C library's, which has others for processors without fused products; the kernels have theirs. In single
/// precision exponentials alone may differ, by 1 ulp.
fn near(command: &str, theirs: &str, ours: &str) -> Result<()> {
    let [draw, _, mean, deviation] = command.split(' ').collect::<Vec<_>>()[..] else {
        return compare(command, theirs, ours, false);
    };
    if !draw.starts_with("log-normal") && draw != "normal-double" {
        return compare(command, theirs, ours, false);
    }
    compare(command, theirs, ours, true)?;
    let numbers = theirs.split(' ').zip(ours.split(' ')).skip(1);
    let read = |word: &str| Ok::<_, anyhow::Error>(f64::from_bits(u64::from_str_radix(word, 16)?));
    let (mean, deviation) = (mean.parse::<f64>()?, deviation.parse::<f64>()?);
    for (at, (theirs, ours)) in numbers.enumerate() {
        let (is_near, said) = if draw == "log-normal" {
            let (theirs, ours) = (u32::from_str_radix(theirs, 16)?, u32::from_str_radix(ours, 16)?);
            (theirs.abs_diff(ours) <= 1, (f32::from_bits(theirs).into(), f32::from_bits(ours).into()))
        } else if draw == "log-normal-double" && (mean, deviation) == (0.0, 1.0) {
            let (theirs, ours) = (read(theirs)?, read(ours)?);
            (theirs.to_bits().abs_diff(ours.to_bits()) <= 4, (theirs, ours))
        } else {
            let (theirs, ours) = (read(theirs)?, read(ours)?);
            let is_log = draw.starts_with("log");
            let sum = if is_log { theirs.ln() } else { theirs };
            // What the sum was rounded to, of the larger of its two parts: 4 ulp of what was drawn.
            let most = 4.0 * f64::EPSILON * (sum - mean).abs().max(sum.abs()).max(mean.abs());
            // An exponential differs by as much as its exponent, relatively, and its own rounding.
            let most = if is_log { (most + 4.0 * f64::EPSILON) * theirs } else { most };
            ((theirs - ours).abs() <= most, (theirs, ours))
        };
        ensure!(is_near, "{command}: number {at} is {:e} of theirs, {:e} of ours", said.0, said.1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_by_nothing() {
        assert!(compare("normal 1 0 1", "0 3f800000", "0 3f800000", false).is_ok());
        assert!(compare("normal 1 0 1", "0 3f800000", "0 3f800001", false).is_err());
        assert!(compare("uniform 1", "0 3f800000", "0 3f800001", false).is_err());
        assert!(compare("gen 2", "0 1 2", "0 1", false).is_err());
        assert!(compare("gen 2", "105", "0 1 2", true).is_err());
    }

    #[test]
    fn normal_numbers_of_kernels_are_near() {
        assert!(near("normal 1 0 1", "0 3f800000", "0 3f800000").is_ok());
        assert!(near("normal 1 0 1", "0 3f800000", "0 3f800001").is_err());
        assert!(near("normal-double 1 0 1", "0 3ff0000000000000", "0 3ff0000000000004").is_ok());
        assert!(near("normal-double 1 0 1", "0 3ff0000000000000", "0 3ff0000000000005").is_err());
        // A mean of 100 leaves a number near 0 that much less of its digits.
        assert!(near("normal-double 1 100 50", "0 3ff0000000000000", "0 3ff0000000000080").is_ok());
        // e^1 and what follows it.
        assert!(near("log-normal 1 0 1", "0 402df854", "0 402df855").is_ok());
        assert!(near("log-normal 1 0 1", "0 402df854", "0 402df856").is_err());
        assert!(near("log-normal-double 1 0 1", "0 4005bf0a8b145769", "0 4005bf0a8b14576d").is_ok());
        assert!(near("log-normal-double 1 0 1", "0 4005bf0a8b145769", "0 4005bf0a8b14576e").is_err());
        // Of a deviation of 3, an exponent whose last digits are that much larger.
        assert!(near("log-normal-double 1 0 3", "0 4005bf0a8b145769", "0 4005bf0a8b14576e").is_ok());
        assert!(near("log-normal-double 1 0 3", "0 4005bf0a8b145769", "0 4005bf0a8b145779").is_err());
        assert!(near("poisson 1 5000 0", "0 00001388", "0 00001389").is_err());
        assert!(near("uniform 1", "0 3f800000", "0 3f800001").is_err());
        assert!(near("normal-double 1 0 1", "0 3ff0000000000000", "105").is_err());
    }

    #[test]
    fn every_distribution_is_asked_for() {
        let commands = session(&KINDS[0], 101, &mut Dice(7)).join("\n");
        for draw in
            ["gen", "uniform ", "uniform-double", "\nnormal ", "normal-double", "log-normal ", "poisson "]
        {
            assert!(commands.contains(draw), "{draw}");
        }
    }
}
