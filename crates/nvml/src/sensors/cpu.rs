//! The CPU device: the machine's own figures.

use std::path::{Path, PathBuf};

use super::stat::Busy;
use super::{Bound, Clock, Process, Sensors, Spot, file, process};

pub struct Machine {
    root: PathBuf,
    total_memory: u64,
    busy: Busy,
    /// The folder and the number of the processor's sensor below hwmon.
    sensor: Option<(PathBuf, u32)>,
}

/// hwmon's names for processors.
const PROCESSORS: [&str; 4] = ["coretemp", "k10temp", "zenpower", "cpu_thermal"];
/// The whole processor rather than one core.
const WHOLE: [&str; 3] = ["Package id 0", "Tctl", "Tdie"];

impl Machine {
    pub fn at(root: &Path, total_memory: u64) -> Machine {
        Machine {
            root: root.to_path_buf(),
            total_memory,
            busy: Busy::since_now(root.join("proc/stat")),
            sensor: sensor(root),
        }
    }

    fn meminfo(&self, key: &str) -> Option<u64> {
        let text = file::text(self.root.join("proc/meminfo"))?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// `cpuN/cpufreq/file` of every core, in kHz.
    fn frequencies(&self, name: &str) -> Vec<u64> {
        file::entries(self.root.join("sys/devices/system/cpu"))
            .iter()
            .filter_map(|core| file::number(core.join("cpufreq").join(name)))
            .collect()
    }
}

fn sensor(root: &Path) -> Option<(PathBuf, u32)> {
    let hwmon = file::entries(root.join("sys/class/hwmon"));
    let folder = hwmon.into_iter().find(|folder| {
        file::text(folder.join("name")).is_some_and(|name| PROCESSORS.contains(&name.as_str()))
    })?;
    let label = |number: &u32| file::text(folder.join(format!("temp{number}_label")));
    let number =
        (1..64).find(|number| label(number).is_some_and(|it| WHOLE.contains(&it.as_str()))).unwrap_or(1);
    Some((folder, number))
}

impl Sensors for Machine {
    /// What programs cannot have any more, as the kernel estimates it. The device may be told to show less than the
    /// machine has (`CUDAWAY_CPU_MEMORY_MB`).
    fn memory_used_bytes(&self) -> Option<u64> {
        let free = self.meminfo("MemAvailable")?;
        Some(self.total_memory.saturating_sub(free))
    }

    fn busy_percent(&self) -> (Option<u32>, Option<u32>) {
        (self.busy.percent(), None)
    }

    fn temperature_celsius(&self, spot: Spot) -> Option<u32> {
        let (folder, number) = self.sensor.as_ref()?;
        let file = match spot {
            Spot::Device => "input",
            Spot::Slowdown => "max",
            Spot::Shutdown => "crit",
            Spot::Memory => return None,
        };
        let thousandths: i64 = file::number(folder.join(format!("temp{number}_{file}")))?;
        u32::try_from(thousandths / 1000).ok()
    }

    fn clock_mhz(&self, clock: Clock, bound: Bound) -> Option<u32> {
        if clock != Clock::Compute {
            return None;
        }
        let kilohertz = match bound {
            Bound::Now => self.frequencies("scaling_cur_freq").into_iter().max(),
            Bound::Most => self.frequencies("cpuinfo_max_freq").into_iter().max(),
            Bound::Least => self.frequencies("cpuinfo_min_freq").into_iter().min(),
            Bound::Default => self.frequencies("base_frequency").into_iter().max(),
        };
        if let Some(kilohertz) = kilohertz {
            return u32::try_from(kilohertz / 1000).ok();
        }
        // A virtual machine has no cpufreq; x86's kernels still tell what they measured.
        (bound == Bound::Now).then(|| self.measured_mhz())?
    }

    fn processes(&self) -> Option<Vec<Process>> {
        Some(process::of_cpu_device(&self.root))
    }
}

impl Machine {
    fn measured_mhz(&self) -> Option<u32> {
        let text = file::text(self.root.join("proc/cpuinfo"))?;
        let megahertz = text.lines().filter_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "cpu MHz").then(|| value.trim().split('.').next()?.parse::<u32>().ok())?
        });
        megahertz.max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let machine = Machine::at(root.path(), 16 << 30);
        (root, machine)
    }

    #[test]
    fn the_processors_own_sensor_is_found_among_others() {
        let (_root, machine) = machine(&[
            ("sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "30000\n"),
            ("sys/class/hwmon/hwmon1/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon1/temp1_label", "Core 0\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "50000\n"),
            ("sys/class/hwmon/hwmon1/temp2_label", "Package id 0\n"),
            ("sys/class/hwmon/hwmon1/temp2_input", "61500\n"),
            ("sys/class/hwmon/hwmon1/temp2_crit", "100000\n"),
        ]);
        assert_eq!(machine.temperature_celsius(Spot::Device), Some(61));
        assert_eq!(machine.temperature_celsius(Spot::Shutdown), Some(100));
        assert_eq!(machine.temperature_celsius(Spot::Slowdown), None);
    }

    #[test]
    fn used_memory_is_what_nobody_can_have() {
        let (_root, machine) = machine(&[(
            "proc/meminfo",
            "MemTotal: 16777216 kB\nMemFree: 1000 kB\nMemAvailable:   12582912 kB\n",
        )]);
        assert_eq!(machine.memory_used_bytes(), Some(4 << 30));
    }

    #[test]
    fn the_fastest_core_counts_with_and_without_cpufreq() {
        let (_root, first) = machine(&[
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3600000\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/cpuinfo_max_freq", "4200000\n"),
        ]);
        assert_eq!(first.clock_mhz(Clock::Compute, Bound::Now), Some(3600));
        assert_eq!(first.clock_mhz(Clock::Compute, Bound::Most), Some(4200));
        assert_eq!(first.clock_mhz(Clock::Memory, Bound::Now), None);
        let (_root, second) = machine(&[("proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2596.120\n")]);
        assert_eq!(second.clock_mhz(Clock::Compute, Bound::Now), Some(2596));
        assert_eq!(second.clock_mhz(Clock::Compute, Bound::Most), None);
    }

    #[test]
    fn a_process_with_threads_or_the_mark_of_the_device_uses_it() {
        let (_root, machine) = machine(&[
            ("proc/41/task/41/comm", "python3\n"),
            ("proc/41/task/42/comm", "cudaway-0\n"),
            ("proc/41/status", "Name:\tpython3\nVmRSS:\t  2048 kB\n"),
            ("proc/50/task/50/comm", "cudaway-comgr\n"),
            ("proc/60/task/60/comm", "bash\n"),
            ("proc/60/maps", "7f00-7f01 r--p 0 00:01 9   /opt/lib/libcudaway_cpu.so\n"),
            ("proc/70/maps", "7f00-7f01 ---p 0 00:01 9   /memfd:cudaway-device (deleted)\n"),
        ]);
        let found = machine.processes().unwrap();
        let process = |pid, memory_bytes| Process { pid, memory_bytes };
        assert_eq!(found, [process(41, Some(2 << 20)), process(70, None)]);
    }
}
