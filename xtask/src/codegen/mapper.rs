//! `tools/data/cuda-mapper.json`: CUDA call → HIP call(s), and whether a body exists.
//!
//! Where a driver body exists, the HIP functions are those that its source reaches (`calls.rs`) and its `HIP:` line names.
//! Where there is none, and for the runtime (which sits on the driver), the HIP function of the same name is the likely way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;

use super::bodies::Bodies;
use super::calls;
use super::facts::{DriverExport, RuntimeExport, read, without_flavour};
use super::shells::has_body;

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
    let reached = calls::hip_of_bodies("crates/driver")?;
    let mut rows = Vec::new();
    for (name, export) in driver {
        let own = driver_bodies
            .get_key_value(name)
            .or_else(|| driver_bodies.get_key_value(without_flavour(name)?));
        let status = if has_body(driver_bodies, name, None) { "implemented" } else { "not-supported" };
        let calls = match own {
            Some((name, body)) => {
                let mut calls = body.hip.clone();
                calls.extend(reached.get(name).into_iter().flatten().filter(|call| !body.hip.contains(call)).cloned());
                calls
            }
            None => likely(&export.base, "cu", &hip),
        };
        rows.push(row(name, &calls, own.is_none(), status)?);
    }
    for (name, export) in runtime {
        let have: Vec<&str> = ["11", "12", "13"]
            .into_iter()
            .filter(|major| export.has(major) && has_body(runtime_bodies, name, Some(major)))
            .collect();
        let all = ["11", "12", "13"].into_iter().filter(|major| export.has(major)).count();
        let status = match have.len() {
            0 => "not-supported",
            n if n == all => "implemented",
            _ => "partly",
        };
        let base = without_flavour(name).unwrap_or(name);
        rows.push(row(name, &likely(base, "cuda", &hip), true, status)?);
    }
    Ok(format!("{{\n{}\n}}\n", rows.join(",\n")))
}

/// `guessed`: the HIP names come from the spelling, not from a body.
fn row(name: &str, calls: &[String], guessed: bool, status: &str) -> Result<String> {
    let mut text = String::new();
    let from = if guessed { "spelling" } else { "body" };
    write!(
        text,
        "{}: {}",
        serde_json::to_string(name)?,
        serde_json::json!({ "hip": calls, "from": from, "status": status })
    )?;
    Ok(text)
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
