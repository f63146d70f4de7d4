//! One call as a line of JSON.

use std::fmt::Write as _;

pub struct Line {
    pub name: &'static str,
    pub start: u64,
    pub nanoseconds: u64,
    pub code: Option<i64>,
    /// Members of objects.
    pub given: String,
    pub got: String,
}

impl Line {
    pub fn json(&self) -> String {
        let mut text = String::with_capacity(128 + self.given.len() + self.got.len());
        let thread = crate::thread();
        _ = write!(
            text,
            "{{\"call\":\"{}\",\"thread\":{thread},\"start\":{},\"ns\":{}",
            self.name, self.start, self.nanoseconds
        );
        if let Some(code) = self.code {
            _ = write!(text, ",\"result\":{code}");
        }
        _ = writeln!(text, ",\"in\":{{{}}},\"out\":{{{}}}}}", self.given, self.got);
        text
    }
}

/// A kernel, by its name in the module and in its source.
pub fn kernel(name: &str, plain: &str, start: u64, nanoseconds: u64) -> String {
    let mut text = "{\"kernel\":".to_owned();
    string(&mut text, name);
    text.push_str(",\"plain\":");
    string(&mut text, plain);
    _ = writeln!(text, ",\"start\":{start},\"ns\":{nanoseconds}}}");
    text
}

/// Code for a kernel.
pub fn compiled(name: &str, plain: &str, tier: &str, block: &str, start: u64, nanoseconds: u64) -> String {
    let mut text = String::new();
    for (key, value) in
        [("{\"compiled\":", name), (",\"plain\":", plain), (",\"tier\":", tier), (",\"block\":", block)]
    {
        text.push_str(key);
        string(&mut text, value);
    }
    _ = writeln!(text, ",\"start\":{start},\"ns\":{nanoseconds}}}");
    text
}

/// Appends `value` as a JSON string.
pub fn string(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => _ = write!(text, "\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push('"');
}
