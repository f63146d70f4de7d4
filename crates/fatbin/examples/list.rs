//! `cargo run -p fatbin --example list [--extract DIR] FILE…`: what the containers of a file hold. FILE is a container,
//! a row of them (the section `.nv_fatbin`, cut out by `objcopy -O binary --only-section=.nv_fatbin`), and `--extract`
//! writes each PTX text to DIR.

use std::path::Path;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let extract = (args.first().is_some_and(|arg| arg == "--extract") && args.len() > 1)
        .then(|| args.drain(..2).nth(1))
        .flatten();
    for path in args {
        println!("{path}");
        match std::fs::read(&path) {
            Ok(bytes) => containers(&bytes, extract.as_deref().map(Path::new)),
            Err(error) => println!("  {error}"),
        }
    }
}

fn containers(mut bytes: &[u8], extract: Option<&Path>) {
    let mut n = 0;
    while let Some(header) = bytes.first_chunk() {
        let Ok(total) = fatbin::container_bytes(header) else {
            // Containers of a section are 8-byte aligned.
            bytes = &bytes[bytes.len().min(8)..];
            continue;
        };
        match fatbin::parse(bytes) {
            Ok(entries) => entries.iter().for_each(|entry| {
                describe(entry);
                if let (Some(dir), fatbin::Kind::Ptx, Ok(text)) = (extract, entry.kind, entry.text()) {
                    let file = dir.join(format!("{n:04}.sm_{}.ptx", entry.arch));
                    n += 1;
                    if let Err(error) = std::fs::write(&file, text) {
                        println!("  {}: {error}", file.display());
                    }
                }
            }),
            Err(error) => println!("  {error}"),
        }
        bytes = bytes.get(total..).unwrap_or_default();
    }
}

fn describe(entry: &fatbin::Entry) {
    let size = entry.bytes().map_or_else(|error| error.to_string(), |bytes| format!("{} bytes", bytes.len()));
    println!(
        "  {:?} {} isa {}.{} {size} name {:?} options {:?}",
        entry.kind, entry.arch, entry.isa.0, entry.isa.1, entry.name, entry.options
    );
}
