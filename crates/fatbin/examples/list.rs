//! `cargo run -p fatbin --example list FILE…`: what the containers hold.

fn main() {
    for path in std::env::args().skip(1) {
        println!("{path}");
        let entries = std::fs::read(&path).map_err(|e| e.to_string()).and_then(|b| fatbin::parse(&b).map_err(|e| e.to_string()));
        match entries {
            Err(error) => println!("  {error}"),
            Ok(entries) => entries.iter().for_each(|entry| {
                let bytes = entry.bytes().map_or_else(|error| error.to_string(), |bytes| format!("{} bytes", bytes.len()));
                let text = entry.text().map(|t| t.lines().filter(|l| l.contains(".target") || l.contains(".entry")).collect::<String>());
                println!(
                    "  {:?} {} isa {}.{} {bytes} name {:?} options {:?} {}",
                    entry.kind, entry.arch, entry.isa.0, entry.isa.1, entry.name, entry.options,
                    text.unwrap_or_default()
                );
            }),
        }
    }
}
