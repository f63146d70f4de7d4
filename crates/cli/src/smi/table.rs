//! The table: a box for the devices, one for who uses them.

use std::fmt::Write as _;

use super::field::{Apps, Gpu};
use super::library::{Device, Nvml};

const WIDTH: usize = 96;

pub fn draw(nvml: &Nvml, devices: &[Device]) -> String {
    let mut text = String::new();
    let rule = |text: &mut String| _ = writeln!(text, "+{}+", "-".repeat(WIDTH - 2));
    let row = |text: &mut String, content: &str| _ = writeln!(text, "| {} |", fit(content, WIDTH - 4));
    let driver = nvml.text("nvmlSystemGetDriverVersion").unwrap_or_default();
    let cuda: i32 = nvml.number("nvmlSystemGetCudaDriverVersion_v2").unwrap_or_default();
    rule(&mut text);
    let head = format!(
        "CUDAway {}    Driver Version: {driver}    CUDA Version: {}.{}",
        env!("CARGO_PKG_VERSION"),
        cuda / 1000,
        cuda % 1000 / 10
    );
    row(&mut text, &head);
    rule(&mut text);
    row(&mut text, &columns("GPU  Name", "Bus-Id", "Temp  Power", "Memory-Usage", "GPU-Util"));
    rule(&mut text);
    for device in devices {
        let shown =
            |name: &str| Gpu::named(name).map_or_else(String::new, |field| short(field.shown(device)));
        row(
            &mut text,
            &columns(
                &format!("{:>3}  {}", shown("index"), shown("name")),
                &shown("pci.bus_id"),
                &format!("{}  {}", degrees(shown("temperature.gpu")), shown("power.draw")),
                &format!("{} / {}", shown("memory.used"), shown("memory.total")),
                &shown("utilization.gpu"),
            ),
        );
    }
    rule(&mut text);
    row(&mut text, "Processes");
    row(&mut text, "GPU       PID  Memory      Name");
    let mut n_processes = 0;
    for device in devices {
        for process in device.processes() {
            n_processes += 1;
            let shown = |name: &str| {
                Apps::named(name).map_or_else(String::new, |it| short(it.shown(nvml, device, &process, true)))
            };
            let index = Gpu::named("index").map_or_else(String::new, |it| it.shown(device));
            row(
                &mut text,
                &format!(
                    "{index:>3}  {:>8}  {:<10}  {}",
                    process.pid,
                    shown("used_gpu_memory"),
                    shown("process_name")
                ),
            );
        }
    }
    if n_processes == 0 {
        row(&mut text, "none that this user may see");
    }
    rule(&mut text);
    text
}

fn columns(name: &str, bus: &str, heat: &str, memory: &str, busy: &str) -> String {
    format!("{}  {}  {}  {}  {busy:>8}", fit(name, 28), fit(bus, 16), fit(heat, 12), fit(memory, 21))
}

/// Exactly so many characters.
fn fit(text: &str, width: usize) -> String {
    let n = text.chars().count();
    if n <= width {
        return format!("{text:<width$}");
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn short(text: String) -> String {
    if text == super::field::NOTHING { "-".to_owned() } else { text }
}

fn degrees(text: String) -> String {
    if text == "-" { text } else { text + "C" }
}

#[cfg(test)]
mod tests {
    use super::fit;

    #[test]
    fn a_cell_has_its_width() {
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(fit("abcdef", 4), "abc…");
    }
}
