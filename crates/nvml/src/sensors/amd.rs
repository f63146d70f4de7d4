//! An AMD GPU: the files of the kernel's amdgpu driver, which ROCm-SMI and amd-smi read too. So no library has to be found,
//! and none of their layouts, which differ between ROCm's releases, matters.

use std::path::{Path, PathBuf};

use super::{Bound, Clock, Process, Sensors, Spot, file, process};
use crate::identity::Pci;

pub struct Gpu {
    root: PathBuf,
    /// The PCI device's folder.
    device: PathBuf,
    hwmon: Option<PathBuf>,
    /// KFD's number for it.
    kfd: Option<u32>,
}

const AMD: u32 = 0x1002;

impl Gpu {
    pub fn at(root: &Path, pci: Pci) -> Option<Gpu> {
        let name = format!("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
        let device = root.join("sys/bus/pci/devices").join(name);
        if file::hexadecimal(device.join("vendor")) != Some(AMD) {
            return None;
        }
        let hwmon = file::entries(device.join("hwmon")).into_iter().next();
        Some(Gpu { root: root.to_path_buf(), hwmon, kfd: kfd(root, pci), device })
    }

    fn hwmon<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        file::number(self.hwmon.as_ref()?.join(name))
    }

    /// The temperature sensor with the first of these labels that there is, else the one with this number.
    fn spot(&self, labels: &[&str], otherwise: Option<u32>) -> Option<u32> {
        let hwmon = self.hwmon.as_ref()?;
        let label = |n: u32| file::text(hwmon.join(format!("temp{n}_label")));
        let labelled = |wanted: &&str| (1..8).find(|n| label(*n).as_deref() == Some(*wanted));
        labels.iter().find_map(labelled).or(otherwise)
    }
}

/// The node of KFD's topology at this address: `location_id` is bus << 8 | device << 3 | function.
fn kfd(root: &Path, pci: Pci) -> Option<u32> {
    let nodes = file::entries(root.join("sys/class/kfd/kfd/topology/nodes"));
    nodes.iter().find_map(|node| {
        let properties = file::text(node.join("properties"))?;
        let property = |key: &str| -> Option<u32> {
            properties.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
        };
        let is_it = property("location_id")? == pci.bus << 8 | pci.device << 3
            && property("domain").unwrap_or(0) == pci.domain;
        is_it.then(|| file::number(node.join("gpu_id"))).flatten().filter(|&id| id != 0)
    })
}

/// `0: 500Mhz`, `1: 2475Mhz *`: the levels, and the one with the star.
fn levels(text: &str) -> (Vec<u32>, Option<u32>) {
    let level = |line: &str| {
        let (_, value) = line.split_once(':')?;
        let digits: String = value.trim().chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let all: Vec<u32> = text.lines().filter_map(level).collect();
    let now = text.lines().find(|line| line.trim_end().ends_with('*')).and_then(level);
    (all, now)
}

/// `16.0 GT/s PCIe` → 4
fn generation(speed: &str) -> Option<u32> {
    let speeds =
        [("2.5", 1), ("5", 2), ("5.0", 2), ("8", 3), ("8.0", 3), ("16.0", 4), ("32.0", 5), ("64.0", 6)];
    let word = speed.split_whitespace().next()?;
    speeds.iter().find(|(known, _)| *known == word).map(|(_, generation)| *generation)
}

/// Microwatts as milliwatts.
fn milliwatts(microwatts: u64) -> Option<u32> {
    u32::try_from(microwatts / 1000).ok()
}

impl Sensors for Gpu {
    fn memory_used_bytes(&self) -> Option<u64> {
        file::number(self.device.join("mem_info_vram_used"))
    }

    fn busy_percent(&self) -> (Option<u32>, Option<u32>) {
        (
            file::number(self.device.join("gpu_busy_percent")),
            file::number(self.device.join("mem_busy_percent")),
        )
    }

    fn temperature_celsius(&self, spot: Spot) -> Option<u32> {
        let (sensor, file) = match spot {
            Spot::Device => (self.spot(&["edge", "junction"], Some(1))?, "input"),
            Spot::Memory => (self.spot(&["mem"], None)?, "input"),
            Spot::Slowdown => (self.spot(&["junction", "edge"], Some(1))?, "crit"),
            Spot::Shutdown => (self.spot(&["junction", "edge"], Some(1))?, "emergency"),
        };
        let thousandths: i64 = self.hwmon(&format!("temp{sensor}_{file}"))?;
        u32::try_from(thousandths / 1000).ok()
    }

    fn power_milliwatts(&self) -> Option<u32> {
        // Which of the two there is depends on the GPU.
        self.hwmon("power1_average").or_else(|| self.hwmon("power1_input")).and_then(milliwatts)
    }

    fn power_limit_milliwatts(&self, bound: Bound) -> Option<u32> {
        let name = match bound {
            Bound::Now => "power1_cap",
            Bound::Least => "power1_cap_min",
            Bound::Most => "power1_cap_max",
            Bound::Default => "power1_cap_default",
        };
        self.hwmon(name).and_then(milliwatts)
    }

    fn clock_mhz(&self, clock: Clock, bound: Bound) -> Option<u32> {
        let (table, sensor) = match clock {
            Clock::Compute => ("pp_dpm_sclk", "freq1_input"),
            Clock::Memory => ("pp_dpm_mclk", "freq2_input"),
        };
        let (all, now) = file::text(self.device.join(table)).map(|text| levels(&text)).unwrap_or_default();
        match bound {
            // hwmon's is measured, the table's is asked for.
            Bound::Now => {
                self.hwmon(sensor).and_then(|hertz: u64| u32::try_from(hertz / 1_000_000).ok()).or(now)
            }
            Bound::Least => all.into_iter().min(),
            Bound::Most => all.into_iter().max(),
            Bound::Default => None,
        }
    }

    fn fan_percent(&self) -> Option<u32> {
        let most: u32 = self.hwmon("pwm1_max").unwrap_or(255);
        let now: u32 = self.hwmon("pwm1")?;
        (now * 100 + most / 2).checked_div(most)
    }

    fn fan_rpm(&self) -> Option<u32> {
        self.hwmon("fan1_input")
    }

    fn pcie_link(&self, bound: Bound) -> Option<(u32, u32)> {
        let which = if bound == Bound::Now { "current" } else { "max" };
        let speed = file::text(self.device.join(format!("{which}_link_speed")))?;
        Some((generation(&speed)?, file::number(self.device.join(format!("{which}_link_width")))?))
    }

    fn pcie_replays(&self) -> Option<u32> {
        file::number(self.device.join("pcie_replay_count"))
    }

    /// `received sent largest`: packets in the last second, and the bytes that one can have. ROCm-SMI multiplies them too.
    fn pcie_bytes_per_second(&self) -> Option<(u64, u64)> {
        let text = file::text(self.device.join("pcie_bw"))?;
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [received, sent, largest] => Some((sent * largest, received * largest)),
            _ => None,
        }
    }

    fn window_bytes(&self) -> Option<(u64, u64)> {
        let bytes = |name| file::number(self.device.join(name));
        Some((bytes("mem_info_vis_vram_total")?, bytes("mem_info_vis_vram_used")?))
    }

    fn video_percent(&self) -> Option<u32> {
        file::number(self.device.join("vcn_busy_percent"))
    }

    fn minor(&self) -> Option<u32> {
        let nodes = file::entries(self.device.join("drm"));
        nodes.iter().find_map(|node| file::name(node).strip_prefix("card")?.parse().ok())
    }

    fn vbios(&self) -> Option<String> {
        file::text(self.device.join("vbios_version"))
    }

    fn serial(&self) -> Option<String> {
        file::text(self.device.join("serial_number"))
    }

    fn pci_ids(&self) -> Option<(u32, u32)> {
        let id = |name: &str| file::hexadecimal(self.device.join(name));
        let pair = |device: &str, vendor: &str| Some(id(device)? << 16 | id(vendor)?);
        Some((pair("device", "vendor")?, pair("subsystem_device", "subsystem_vendor")?))
    }

    fn numa_node(&self) -> Option<u32> {
        file::number(self.device.join("numa_node"))
    }

    fn processes(&self) -> Option<Vec<Process>> {
        Some(process::of_kfd(&self.root, self.kfd?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Radeon as kernel 6.8 shows it.
    const FILES: &[(&str, &str)] = &[
        ("vendor", "0x1002\n"),
        ("device", "0x744c\n"),
        ("subsystem_vendor", "0x1da2\n"),
        ("subsystem_device", "0xe471\n"),
        ("gpu_busy_percent", "37\n"),
        ("mem_busy_percent", "12\n"),
        ("mem_info_vram_used", "1073741824\n"),
        ("pp_dpm_sclk", "0: 500Mhz\n1: 1500Mhz *\n2: 2526Mhz\n"),
        ("pp_dpm_mclk", "0: 96Mhz *\n1: 1249Mhz\n"),
        ("current_link_speed", "16.0 GT/s PCIe\n"),
        ("current_link_width", "16\n"),
        ("max_link_speed", "16.0 GT/s PCIe\n"),
        ("max_link_width", "16\n"),
        ("mem_info_vis_vram_total", "268435456\n"),
        ("mem_info_vis_vram_used", "4194304\n"),
        ("pcie_bw", "1000 2500 256\n"),
        ("vcn_busy_percent", "9\n"),
        ("drm/card1/dev", "226:1\n"),
        ("drm/renderD129/dev", "226:129\n"),
        ("hwmon/hwmon3/temp1_label", "edge\n"),
        ("hwmon/hwmon3/temp1_input", "48000\n"),
        ("hwmon/hwmon3/temp2_label", "junction\n"),
        ("hwmon/hwmon3/temp2_crit", "110000\n"),
        ("hwmon/hwmon3/temp2_emergency", "115000\n"),
        ("hwmon/hwmon3/temp3_label", "mem\n"),
        ("hwmon/hwmon3/temp3_input", "62000\n"),
        ("hwmon/hwmon3/power1_average", "87000000\n"),
        ("hwmon/hwmon3/power1_cap", "339000000\n"),
        ("hwmon/hwmon3/pwm1", "51\n"),
        ("hwmon/hwmon3/pwm1_max", "255\n"),
        ("hwmon/hwmon3/freq1_input", "1487000000\n"),
    ];

    #[test]
    fn a_radeon_tells_what_its_driver_tells() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for (name, text) in FILES {
            write(root.path().join("sys/bus/pci/devices/0000:03:00.0").join(name), text);
        }
        let kfd = root.path().join("sys/class/kfd/kfd");
        write(kfd.join("topology/nodes/0/properties"), "location_id 0\ndomain 0\n");
        write(kfd.join("topology/nodes/0/gpu_id"), "0\n");
        write(kfd.join("topology/nodes/1/properties"), "simd_count 192\nlocation_id 768\ndomain 0\n");
        write(kfd.join("topology/nodes/1/gpu_id"), "26720\n");
        write(kfd.join("proc/77/vram_26720"), "4096\n");
        write(kfd.join("proc/78/vram_1"), "4096\n");

        assert!(Gpu::at(root.path(), Pci { domain: 0, bus: 4, device: 0 }).is_none());
        let gpu = Gpu::at(root.path(), Pci { domain: 0, bus: 3, device: 0 }).unwrap();
        assert_eq!(gpu.busy_percent(), (Some(37), Some(12)));
        assert_eq!(gpu.memory_used_bytes(), Some(1 << 30));
        assert_eq!(gpu.temperature_celsius(Spot::Device), Some(48));
        assert_eq!(gpu.temperature_celsius(Spot::Memory), Some(62));
        assert_eq!(gpu.temperature_celsius(Spot::Slowdown), Some(110));
        assert_eq!(gpu.temperature_celsius(Spot::Shutdown), Some(115));
        assert_eq!(gpu.power_milliwatts(), Some(87_000));
        assert_eq!(gpu.power_limit_milliwatts(Bound::Now), Some(339_000));
        assert_eq!(gpu.power_limit_milliwatts(Bound::Most), None);
        assert_eq!(gpu.clock_mhz(Clock::Compute, Bound::Now), Some(1487));
        assert_eq!(gpu.clock_mhz(Clock::Compute, Bound::Most), Some(2526));
        assert_eq!(gpu.clock_mhz(Clock::Memory, Bound::Now), Some(96));
        assert_eq!(gpu.fan_percent(), Some(20));
        assert_eq!(gpu.pcie_link(Bound::Now), Some((4, 16)));
        assert_eq!(gpu.window_bytes(), Some((256 << 20, 4 << 20)));
        assert_eq!(gpu.pcie_bytes_per_second(), Some((640_000, 256_000)));
        assert_eq!(gpu.video_percent(), Some(9));
        assert_eq!(gpu.minor(), Some(1));
        assert_eq!(gpu.pci_ids(), Some((0x744c_1002, 0xe471_1da2)));
        assert_eq!(gpu.processes().unwrap(), [Process { pid: 77, memory_bytes: Some(4096) }]);
    }
}
