//! Any bytes: the container parser comes back, and so does unpacking what it found.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some(wrapper) = bytes.first_chunk() {
        let _ = fatbin::Wrapper::parse(wrapper);
    }
    if let Ok(entries) = fatbin::parse(bytes) {
        fatbin::choose_ptx(&entries, 90);
        for entry in &entries {
            let _ = entry.bytes();
            let _ = entry.text();
        }
    }
});
