//! `cudaway smi`: what NVML tells of the devices, under the options that scripts give to nvidia-smi. It asks the library
//! that programs get, so what they see is what it shows.

mod field;
mod library;
mod table;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use field::{Apps, Gpu};
use library::{Device, Nvml};

/// Shows the devices as monitors see them: a table, a list (-L), or fields for scripts (--query-gpu).
#[derive(clap::Args)]
pub struct Arguments {
    /// One line for each device: name and UUID.
    #[arg(short = 'L', long)]
    list_gpus: bool,
    /// Everything that is known of each device.
    #[arg(short, long)]
    query: bool,
    /// These fields of each device, comma separated; --help-query-gpu lists them.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    query_gpu: Vec<String>,
    /// These fields of each process that uses a device: gpu_uuid, gpu_name, pid, process_name, used_gpu_memory.
    #[arg(long, value_name = "FIELDS", value_delimiter = ',', conflicts_with = "query_gpu")]
    query_compute_apps: Vec<String>,
    /// csv, with noheader and nounits if wanted, comma separated.
    #[arg(long, value_delimiter = ',', default_value = "csv")]
    format: Vec<String>,
    /// Again and again, after so many seconds (5, if none are given), until it is interrupted.
    #[arg(short = 'l', long = "loop", value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5")]
    every_s: Option<u64>,
    /// The same in milliseconds.
    #[arg(long = "loop-ms", value_name = "MILLISECONDS", conflicts_with = "every_s")]
    every_ms: Option<u64>,
    /// Writes to this file instead of to the terminal.
    #[arg(short, long, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// Only this device: index, UUID or PCI address; may be repeated, comma separated.
    #[arg(short, long, value_delimiter = ',')]
    id: Vec<String>,
    /// Lists the fields of --query-gpu.
    #[arg(long)]
    help_query_gpu: bool,
    /// The folder of CUDAway's libraries, if it is not `lib` beside the folder of this program.
    #[arg(long)]
    lib: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.help_query_gpu {
        Gpu::ALL.iter().for_each(|field| println!("{}", field.name));
        return Ok(ExitCode::SUCCESS);
    }
    let nvml = Nvml::open(&crate::own::lib(arguments.lib.as_deref())?)?;
    let devices = chosen(&nvml, &arguments.id)?;
    let mut csv = Csv::of(&arguments.format)?;
    let mut out: Box<dyn Write> = match &arguments.filename {
        Some(path) => Box::new(File::create(path).with_context(|| path.display().to_string())?),
        None => Box::new(io::stdout()),
    };
    let pause = arguments.every_s.map(Duration::from_secs).or(arguments.every_ms.map(Duration::from_millis));
    loop {
        let text = shown(arguments, &csv, &nvml, &devices)?;
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // Who read it has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            written => written.context("could not write")?,
        }
        let Some(pause) = pause else { return Ok(ExitCode::SUCCESS) };
        thread::sleep(pause);
        // Once is enough for a table that goes on.
        csv.header = false;
    }
}

fn shown(arguments: &Arguments, csv: &Csv, nvml: &Nvml, devices: &[Device]) -> Result<String> {
    let mut text = String::new();
    if arguments.list_gpus {
        for device in devices {
            let [index, name, uuid] = ["index", "name", "uuid"]
                .map(|field| Gpu::named(field).map_or_else(String::new, |it| it.shown(device)));
            _ = writeln!(text, "GPU {index}: {name} (UUID: {uuid})");
        }
    } else if !arguments.query_gpu.is_empty() {
        text = csv.of_devices(&arguments.query_gpu, devices)?;
    } else if !arguments.query_compute_apps.is_empty() {
        text = csv.of_processes(&arguments.query_compute_apps, nvml, devices)?;
    } else if arguments.query {
        for device in devices {
            let bus = Gpu::named("pci.bus_id").map_or_else(String::new, |it| it.shown(device));
            _ = writeln!(text, "GPU {bus}");
            for field in Gpu::ALL {
                _ = writeln!(text, "    {:<30}: {}", field.name, field.shown(device));
            }
        }
    } else {
        text = table::draw(nvml, devices);
    }
    Ok(text)
}

/// The devices whose index, UUID or PCI address was given; all when none was.
fn chosen<'n>(nvml: &'n Nvml, ids: &[String]) -> Result<Vec<Device<'n>>> {
    let all = nvml.devices()?;
    let is = |device: &Device, id: &str| {
        let equals =
            |field: &str| Gpu::named(field).is_some_and(|it| it.shown(device).eq_ignore_ascii_case(id));
        equals("index") || equals("uuid") || equals("pci.bus_id")
    };
    if let Some(id) = ids.iter().find(|id| !all.iter().any(|device| is(device, id))) {
        bail!("there is no device {id}");
    }
    Ok(all.into_iter().filter(|device| ids.is_empty() || ids.iter().any(|id| is(device, id))).collect())
}

/// How fields are written.
struct Csv {
    header: bool,
    units: bool,
}

impl Csv {
    fn of(words: &[String]) -> Result<Csv> {
        let has = |word: &str| words.iter().any(|it| it.trim() == word);
        ensure!(has("csv"), "the only format is csv");
        for word in words.iter().map(|word| word.trim()) {
            ensure!(["csv", "noheader", "nounits"].contains(&word), "unknown format {word}");
        }
        Ok(Csv { header: !has("noheader"), units: !has("nounits") })
    }

    fn of_devices(&self, names: &[String], devices: &[Device]) -> Result<String> {
        let fields = names
            .iter()
            .map(|name| {
                Gpu::named(name.trim())
                    .with_context(|| format!("there is no field {name}; --help-query-gpu lists them"))
            })
            .collect::<Result<Vec<&Gpu>>>()?;
        let heads = fields.iter().map(|field| head(field.name, field.unit)).collect();
        let rows = devices.iter().map(|device| {
            fields
                .iter()
                .map(|field| if self.units { field.shown(device) } else { field.plain(device) })
                .collect()
        });
        Ok(self.lines(heads, rows.collect()))
    }

    fn of_processes(&self, names: &[String], nvml: &Nvml, devices: &[Device]) -> Result<String> {
        let fields = names
            .iter()
            .map(|name| Apps::named(name.trim()).with_context(|| format!("there is no field {name}")))
            .collect::<Result<Vec<&Apps>>>()?;
        let heads = fields.iter().map(|field| head(field.name, field.unit)).collect();
        let mut rows = Vec::new();
        for device in devices {
            for process in device.processes() {
                rows.push(
                    fields.iter().map(|field| field.shown(nvml, device, &process, self.units)).collect(),
                );
            }
        }
        Ok(self.lines(heads, rows))
    }

    fn lines(&self, head: Vec<String>, rows: Vec<Vec<String>>) -> String {
        let all = self.header.then_some(head).into_iter().chain(rows);
        all.map(|row| row.join(", ") + "\n").collect()
    }
}

fn head(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_csv_and_what_it_leaves_out() {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let csv = Csv::of(&words("csv,noheader")).unwrap();
        assert!(!csv.header && csv.units);
        assert_eq!(csv.lines(vec!["a".to_owned()], vec![words("1,2")]), "1, 2\n");
        assert!(Csv::of(&words("xml")).is_err());
        assert!(Csv::of(&words("csv,loud")).is_err());
    }
}
