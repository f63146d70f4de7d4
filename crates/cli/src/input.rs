//! What a file has for us: the PTX texts in it, those together that are linked together.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use compiler::Source;

/// Texts that are one program.
pub type Unit = Vec<Source>;

/// The units of PTX text, of a fat binary, or of a program or library with fat binaries inside.
pub fn read(path: &Path, capability: u32) -> Result<Vec<Unit>> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if bytes.starts_with(&fatbin::elf::MAGIC) {
        ensure!(
            fatbin::elf::machine(&bytes) != Some(fatbin::elf::EM_CUDA),
            "{name} is a cubin: machine code without PTX"
        );
        let units = fatbin::elf::units(&bytes);
        ensure!(!units.is_empty(), "{name} has no device code");
        return from_units(&units, &name, capability);
    }
    if bytes.starts_with(&fatbin::CONTAINER_MAGIC.to_le_bytes()) {
        return from_units(&[vec![&bytes]], &name, capability);
    }
    let text = String::from_utf8(bytes).ok().filter(|text| text.contains(".version"));
    let Some(text) = text else {
        bail!("{name} is neither PTX, a fat binary, nor a program with fat binaries")
    };
    // A text that a program hands over ends with a zero.
    let text = text.split('\0').next().unwrap_or_default().to_owned();
    Ok(vec![vec![Source { name, text }]])
}

/// The best text of each container; one without a text that fits is another's translation or cannot be used.
fn from_units(units: &[Vec<&[u8]>], name: &str, capability: u32) -> Result<Vec<Unit>> {
    let mut found = Vec::new();
    for containers in units {
        let mut unit = Unit::new();
        for container in containers {
            let entries = fatbin::parse(container)?;
            let Some(entry) = fatbin::choose_ptx(&entries, capability) else {
                // What a link of ours made.
                if let Some(linked) = fatbin::cubin::choose(&entries, capability)? {
                    unit.extend(compiler::image::decode(&linked)?);
                }
                continue;
            };
            let origin = entry.name.as_deref().unwrap_or(name);
            unit.push(Source { name: format!("{origin} (compute_{})", entry.arch), text: entry.text()? });
        }
        if !unit.is_empty() {
            found.push(unit);
        }
    }
    ensure!(
        !found.is_empty(),
        "{name} has no PTX for compute capability {}.{} or lower; \
         rebuild it with some (-gencode arch=compute_XX,code=compute_XX)",
        capability / 10,
        capability % 10
    );
    Ok(found)
}
