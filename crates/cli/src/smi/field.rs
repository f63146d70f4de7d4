//! The fields that scripts ask for, by nvidia-smi's names.

use core::ffi::c_uint;
use core::mem::MaybeUninit;
use std::time::SystemTime;

use nvml::types::{nvmlEnableState_t, nvmlMemory_t, nvmlPciInfo_t, nvmlProcessInfo_t, nvmlUtilization_t};

use super::library::{Answer, Device, Nvml};

/// What stands where NVML has no answer.
pub const NOTHING: &str = "[N/A]";

/// A field of a device.
pub struct Gpu {
    pub name: &'static str,
    /// Another name of it.
    also: &'static str,
    pub unit: &'static str,
    value: fn(&Device) -> Answer<String>,
}

impl Gpu {
    pub fn named(name: &str) -> Option<&'static Gpu> {
        Gpu::ALL.iter().find(|field| field.name == name || field.also == name)
    }

    /// With its unit.
    pub fn shown(&self, device: &Device) -> String {
        match (self.value)(device) {
            Ok(value) if self.unit.is_empty() => value,
            Ok(value) => format!("{value} {}", self.unit),
            Err(_) => NOTHING.to_owned(),
        }
    }

    pub fn plain(&self, device: &Device) -> String {
        (self.value)(device).unwrap_or_else(|_| NOTHING.to_owned())
    }

    pub const ALL: &'static [Gpu] = &[
        field("timestamp", "", "", |_| Ok(now())),
        field("index", "", "", |it| number(it, "nvmlDeviceGetIndex")),
        field("name", "gpu_name", "", |it| it.text("nvmlDeviceGetName")),
        field("uuid", "gpu_uuid", "", |it| it.text("nvmlDeviceGetUUID")),
        field("serial", "gpu_serial", "", |it| it.text("nvmlDeviceGetSerial")),
        field("pci.bus_id", "gpu_bus_id", "", |it| Ok(chars(&pci(it)?.busId))),
        field("pci.domain", "", "", |it| Ok(format!("0x{:04X}", pci(it)?.domain))),
        field("pci.bus", "", "", |it| Ok(format!("0x{:02X}", pci(it)?.bus))),
        field("pci.device", "", "", |it| Ok(format!("0x{:02X}", pci(it)?.device))),
        field("pci.device_id", "", "", |it| Ok(format!("0x{:08X}", pci(it)?.pciDeviceId))),
        field("pci.sub_device_id", "", "", |it| Ok(format!("0x{:08X}", pci(it)?.pciSubSystemId))),
        field("compute_cap", "", "", |it| {
            it.pair::<c_uint>("nvmlDeviceGetCudaComputeCapability").map(|(x, y)| format!("{x}.{y}"))
        }),
        field("driver_version", "", "", |it| it.system("nvmlSystemGetDriverVersion")),
        field("vbios_version", "", "", |it| it.text("nvmlDeviceGetVbiosVersion")),
        field("count", "", "", |it| it.count()),
        field("memory.total", "", "MiB", |it| Ok(mib(memory(it)?.total))),
        field("memory.used", "", "MiB", |it| Ok(mib(memory(it)?.used))),
        field("memory.free", "", "MiB", |it| Ok(mib(memory(it)?.free))),
        field("memory.reserved", "", "MiB", |it| memory(it).map(|_| "0".to_owned())),
        field("utilization.gpu", "", "%", |it| Ok(busy(it)?.gpu.to_string())),
        field("utilization.memory", "", "%", |it| Ok(busy(it)?.memory.to_string())),
        field("temperature.gpu", "", "", |it| it.of("nvmlDeviceGetTemperature", 0).map(|n| n.to_string())),
        field("fan.speed", "", "%", |it| number(it, "nvmlDeviceGetFanSpeed")),
        field("power.draw", "", "W", |it| watts(it, "nvmlDeviceGetPowerUsage")),
        field("power.limit", "", "W", |it| watts(it, "nvmlDeviceGetPowerManagementLimit")),
        field("power.default_limit", "", "W", |it| watts(it, "nvmlDeviceGetPowerManagementDefaultLimit")),
        field("enforced.power.limit", "", "W", |it| watts(it, "nvmlDeviceGetEnforcedPowerLimit")),
        field("clocks.current.graphics", "clocks.gr", "MHz", |it| clock(it, "nvmlDeviceGetClockInfo", 0)),
        field("clocks.current.sm", "clocks.sm", "MHz", |it| clock(it, "nvmlDeviceGetClockInfo", 1)),
        field("clocks.current.memory", "clocks.mem", "MHz", |it| clock(it, "nvmlDeviceGetClockInfo", 2)),
        field("clocks.max.graphics", "clocks.max.gr", "MHz", |it| clock(it, "nvmlDeviceGetMaxClockInfo", 0)),
        field("clocks.max.sm", "", "MHz", |it| clock(it, "nvmlDeviceGetMaxClockInfo", 1)),
        field("clocks.max.memory", "clocks.max.mem", "MHz", |it| clock(it, "nvmlDeviceGetMaxClockInfo", 2)),
        field("pcie.link.gen.current", "pcie.link.gen.gpucurrent", "", |it| {
            number(it, "nvmlDeviceGetCurrPcieLinkGeneration")
        }),
        field("pcie.link.gen.max", "", "", |it| number(it, "nvmlDeviceGetMaxPcieLinkGeneration")),
        field("pcie.link.width.current", "", "", |it| number(it, "nvmlDeviceGetCurrPcieLinkWidth")),
        field("pcie.link.width.max", "", "", |it| number(it, "nvmlDeviceGetMaxPcieLinkWidth")),
        field("pstate", "", "", |it| match it.get::<c_uint>("nvmlDeviceGetPerformanceState")? {
            state @ 0..=15 => Ok(format!("P{state}")),
            _ => Err(nvml::types::nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED),
        }),
        field("persistence_mode", "", "", |it| state(it.get("nvmlDeviceGetPersistenceMode")?)),
        field("compute_mode", "", "", |it| {
            Ok(match it.get::<c_uint>("nvmlDeviceGetComputeMode")? {
                0 => "Default",
                1 => "Exclusive_Thread",
                2 => "Prohibited",
                _ => "Exclusive_Process",
            }
            .to_owned())
        }),
        field("ecc.mode.current", "", "", |it| state(it.pair("nvmlDeviceGetEccMode")?.0)),
        field("mig.mode.current", "", "", |it| state(it.pair("nvmlDeviceGetMigMode")?.0)),
    ];
}

const fn field(
    name: &'static str,
    also: &'static str,
    unit: &'static str,
    value: fn(&Device) -> Answer<String>,
) -> Gpu {
    Gpu { name, also, unit, value }
}

fn number(device: &Device, name: &str) -> Answer<String> {
    device.get::<c_uint>(name).map(|number| number.to_string())
}

fn pci(device: &Device) -> Answer<nvmlPciInfo_t> {
    device.get("nvmlDeviceGetPciInfo_v3")
}

pub fn memory(device: &Device) -> Answer<nvmlMemory_t> {
    device.get("nvmlDeviceGetMemoryInfo")
}

fn busy(device: &Device) -> Answer<nvmlUtilization_t> {
    device.get("nvmlDeviceGetUtilizationRates")
}

fn mib(bytes: u64) -> String {
    (bytes >> 20).to_string()
}

fn watts(device: &Device, name: &str) -> Answer<String> {
    device.get::<c_uint>(name).map(|milliwatts| format!("{:.2}", f64::from(milliwatts) / 1000.0))
}

fn clock(device: &Device, name: &str, kind: i32) -> Answer<String> {
    device.of(name, kind).map(|number| number.to_string())
}

fn state(state: c_uint) -> Answer<String> {
    let is_on = state == nvmlEnableState_t::NVML_FEATURE_ENABLED.0;
    Ok(if is_on { "Enabled" } else { "Disabled" }.to_owned())
}

/// The local time, as `2026/11/23 08:34:29.123`.
fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = libc::time_t::try_from(since.as_secs()).unwrap_or(0);
    let mut parts = MaybeUninit::zeroed();
    // SAFETY: both are this function's own; all zero bytes are a tm, should the year not fit into one.
    let tm: libc::tm = unsafe {
        libc::localtime_r(&seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    format!(
        "{:04}/{:02}/{:02} {:02}:{:02}:{:02}.{:03}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec,
        since.subsec_millis()
    )
}

fn chars(text: &[core::ffi::c_char]) -> String {
    text.iter().map(|c| char::from(c.cast_unsigned())).take_while(|&c| c != '\0').collect()
}

/// A field of a process.
pub struct Apps {
    pub name: &'static str,
    pub unit: &'static str,
    value: fn(&Nvml, &Device, &nvmlProcessInfo_t) -> Answer<String>,
}

impl Apps {
    pub fn named(name: &str) -> Option<&'static Apps> {
        let name = match name {
            "name" => "process_name",
            "used_memory" => "used_gpu_memory",
            other => other,
        };
        Apps::ALL.iter().find(|field| field.name == name)
    }

    pub fn shown(&self, nvml: &Nvml, device: &Device, process: &nvmlProcessInfo_t, units: bool) -> String {
        match (self.value)(nvml, device, process) {
            Ok(value) if self.unit.is_empty() || !units => value,
            Ok(value) => format!("{value} {}", self.unit),
            Err(_) => NOTHING.to_owned(),
        }
    }

    const ALL: &'static [Apps] = &[
        Apps { name: "gpu_uuid", unit: "", value: |_, device, _| device.text("nvmlDeviceGetUUID") },
        Apps { name: "gpu_name", unit: "", value: |_, device, _| device.text("nvmlDeviceGetName") },
        Apps { name: "pid", unit: "", value: |_, _, process| Ok(process.pid.to_string()) },
        Apps { name: "process_name", unit: "", value: |nvml, _, process| nvml.process_name(process.pid) },
        Apps {
            name: "used_gpu_memory",
            unit: "MiB",
            value: |_, _, process| match process.usedGpuMemory {
                u64::MAX => Err(nvml::types::nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED),
                bytes => Ok(mib(bytes)),
            },
        },
    ];
}
