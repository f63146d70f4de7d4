//! `tools/data/cuda-mapper.json`: CUDA call → HIP call(s), and whether a body exists.
//!
//! Where a body exists, the functions are those that its source reaches (`calls.rs`) and its `HIP:` line names; the
//! runtime's go through the driver's. Where there is none, the HIP function of the same name is the likely way.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde_json::json;

use super::bodies::Bodies;
use super::calls::{self, Below};
use super::facts::{DriverExport, MAJORS, RuntimeExport, read, without_flavour};
use super::shells::{body_name, has_body};

pub fn json(
    driver: &BTreeMap<String, DriverExport>,
    runtime: &BTreeMap<String, RuntimeExport>,
    driver_bodies: &Bodies,
    runtime_bodies: &Bodies,
) -> Result<String> {
    let hip: BTreeSet<String> = read("tools/data/hip/hip_exports_6.4.txt")?
        .lines()
        .filter_map(|line| Some(line.split(' ').next()?.to_owned()))
        .collect();
    let reached_hip = calls::reached_by_bodies("crates/driver", Below::Hip)?;
    let reached_driver = calls::reached_by_bodies("crates/runtime", Below::Driver)?;

    let mut hip_of: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut rows = Vec::new();
    for (name, export) in driver {
        let own =
            driver_bodies.get_key_value(name).or_else(|| driver_bodies.get_key_value(without_flavour(name)?));
        let status = if has_body(driver_bodies, name, None) { "implemented" } else { "not-supported" };
        let calls = match own {
            Some((name, body)) => union([&body.hip, reached_hip.get(name).unwrap_or(&Vec::new())]),
            None => likely(&export.base, "cu", &hip),
        };
        let from = if own.is_some() { "body" } else { "spelling" };
        rows.push(row(name, json!({ "hip": calls, "from": from, "status": status }))?);
        hip_of.insert(name, calls);
    }
    for (name, export) in runtime {
        let plain = without_flavour(name).unwrap_or(name);
        let bodies: Vec<&str> = MAJORS
            .into_iter()
            .filter(|major| export.has(major))
            .filter_map(|major| body_name(runtime_bodies, name, Some(major)))
            .collect();
        let majors = MAJORS.into_iter().filter(|major| export.has(major)).count();
        let status = match bodies.len() {
            0 => "not-supported",
            n if n == majors => "implemented",
            _ => "partly",
        };
        if bodies.is_empty() {
            let calls = likely(plain, "cuda", &hip);
            rows.push(row(name, json!({ "hip": calls, "from": "spelling", "status": status }))?);
            continue;
        }
        let driver_calls = union(bodies.iter().filter_map(|name| reached_driver.get(*name)));
        let calls = union(driver_calls.iter().filter_map(|name| hip_of.get(name.as_str())));
        rows.push(row(
            name,
            json!({ "driver": driver_calls, "hip": calls, "from": "body", "status": status }),
        )?);
    }
    Ok(format!("{{\n{}\n}}\n", rows.join(",\n")))
}

fn union<'a>(lists: impl IntoIterator<Item = &'a Vec<String>>) -> Vec<String> {
    lists.into_iter().flatten().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

/// `from`: whether the names come from a body's source or from the spelling.
fn row(name: &str, value: serde_json::Value) -> Result<String> {
    Ok(format!("{}: {value}", serde_json::to_string(name)?))
}

/// Driver names that HIP spells differently, by base name.
const RENAMED: &[(&str, &[&str])] = &[
    ("cuMemAlloc", &["hipMalloc"]),
    ("cuMemFree", &["hipFree"]),
    ("cuMemAllocHost", &["hipHostMalloc"]),
    ("cuMemHostAlloc", &["hipHostMalloc"]),
    ("cuMemFreeHost", &["hipHostFree"]),
    ("cuMemHostGetDevicePointer", &["hipHostGetDevicePointer"]),
    ("cuMemHostRegister", &["hipHostRegister"]),
    ("cuMemHostUnregister", &["hipHostUnregister"]),
    ("cuMemAllocManaged", &["hipMallocManaged"]),
    ("cuMemAllocAsync", &["hipMallocAsync"]),
    ("cuMemFreeAsync", &["hipFreeAsync"]),
    ("cuLaunchKernel", &["hipModuleLaunchKernel"]),
    ("cuLaunchCooperativeKernel", &["hipModuleLaunchCooperativeKernel"]),
    ("cuStreamCreate", &["hipStreamCreateWithFlags"]),
    ("cuEventCreate", &["hipEventCreateWithFlags"]),
    ("cuDeviceGetCount", &["hipGetDeviceCount"]),
    ("cuMemcpyHtoD", &["hipMemcpyHtoD"]),
    ("cuMemcpyDtoH", &["hipMemcpyDtoH"]),
    ("cuMemcpy2D", &["hipMemcpyParam2D"]),
    ("cuMemcpy3D", &["hipDrvMemcpy3D"]),
    ("cuFuncGetAttribute", &["hipFuncGetAttribute"]),
    ("cuDeviceGetByPCIBusId", &["hipDeviceGetByPCIBusId"]),
];

fn likely(base: &str, prefix: &str, hip: &BTreeSet<String>) -> Vec<String> {
    if let Some((_, names)) = RENAMED.iter().find(|(name, _)| *name == base) {
        return names.iter().map(|name| (*name).to_owned()).collect();
    }
    let Some(rest) = base.strip_prefix(prefix) else { return Vec::new() };
    ["hip", "hipModule", "hipDrv"]
        .iter()
        .map(|start| format!("{start}{rest}"))
        .filter(|name| hip.contains(name))
        .take(1)
        .collect()
}
