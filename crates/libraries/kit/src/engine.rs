//! Who computes for the calling thread's device.

use config::LibraryChoice;
use cuda_abi::{CUcontext, CUstream};

use crate::{Error, Result, driver, hip};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Our own code, on the CPU device: its memory is the CPU's, and of no other.
    Cpu,
    /// A library of ROCm's, or our own code for AMD GPUs.
    Hip,
}

/// Whether a library's variable leaves an engine in. A path adds a library to the choice and leaves out nothing; kernels, and our
/// own code instead of ROCm's, are another way for each.
pub fn wants(choices: &[LibraryChoice], engine: &LibraryChoice) -> bool {
    let names_none = |choice: &&LibraryChoice| {
        use LibraryChoice::{Copies, Kernels, Own, Path};
        matches!(choice, Path(_) | Kernels | Copies | Own)
    };
    let mut engines = choices.iter().filter(|choice| !names_none(choice)).peekable();
    engines.peek().is_none() || engines.any(|choice| choice == engine || *choice == LibraryChoice::Auto)
}

/// What the calling thread's device is, if the variable leaves it in.
pub fn of_current_device(choices: &[LibraryChoice]) -> Result<Engine> {
    driver::context(None)?;
    // NULL is the default stream of the current device.
    let is_cpu = hip::stream(CUstream::default(), false)?.is_cpu != 0;
    match is_cpu {
        true if wants(choices, &LibraryChoice::Cpu) => Ok(Engine::Cpu),
        true => Err(Error::NoDevice("the library's variable leaves out the CPU, which this device is")),
        false if wants(choices, &LibraryChoice::Hip) => Ok(Engine::Hip),
        false => Err(Error::NoDevice("the library's variable leaves out HIP, and this device is a GPU")),
    }
}

/// What an object is for that is made now: the calling thread's context, and who computes there. What of the driver fails here is
/// that there is no device.
pub fn of_new_object(choices: &[LibraryChoice]) -> Result<(CUcontext, Engine)> {
    let found = || Ok((driver::context(None)?, of_current_device(choices)?));
    found().map_err(|error| match error {
        Error::NoDevice(_) => error,
        _ => Error::NoDevice("the driver has none that works"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leaves_nothing_out_and_an_engine_leaves_out_the_other() {
        let path = LibraryChoice::Path("/x/liby.so".into());
        for (choices, cpu, hip) in [
            (vec![], true, true),
            (vec![path.clone()], true, true),
            (vec![LibraryChoice::Auto], true, true),
            (vec![LibraryChoice::Kernels], true, true),
            (vec![LibraryChoice::Own], true, true),
            (vec![LibraryChoice::Copies], true, true),
            (vec![LibraryChoice::Kernels, LibraryChoice::Cpu], true, false),
            (vec![LibraryChoice::Cpu], true, false),
            (vec![path, LibraryChoice::Hip], false, true),
        ] {
            let found = (wants(&choices, &LibraryChoice::Cpu), wants(&choices, &LibraryChoice::Hip));
            assert_eq!(found, (cpu, hip), "{choices:?}");
        }
    }
}
