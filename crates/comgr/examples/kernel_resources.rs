//! What each kernel of a code object takes, a line each: its name, VGPRs, SGPRs, bytes of LDS, and of scratch for a lane.
//!
//! `cargo run -p comgr --example kernel_resources -- FILE`

use comgr::CodeObject;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("a code object is missing")?;
    for kernel in CodeObject::read(std::fs::read(path)?)?.kernels {
        let comgr::code_object::Kernel { name, vgprs, sgprs, lds_bytes, scratch_bytes, .. } = kernel;
        println!("{name} {vgprs} {sgprs} {lds_bytes} {scratch_bytes}");
    }
    Ok(())
}
