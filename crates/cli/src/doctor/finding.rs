//! What was found, for people and for scripts.

use std::fmt::Write as _;

use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Fine,
    Warning,
    Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable, for scripts: `files.soname`.
    pub id: &'static str,
    pub level: Level,
    pub seen: String,
    /// Why it matters; empty when all is well.
    pub why: String,
    /// What mends it.
    pub fix: String,
}

impl Finding {
    pub fn fine(id: &'static str, seen: impl Into<String>) -> Finding {
        Finding { id, level: Level::Fine, seen: seen.into(), why: String::new(), fix: String::new() }
    }

    pub fn warning(
        id: &'static str,
        seen: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { id, level: Level::Warning, seen: seen.into(), why: why.into(), fix: fix.into() }
    }

    pub fn fault(
        id: &'static str,
        seen: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { id, level: Level::Fault, seen: seen.into(), why: why.into(), fix: fix.into() }
    }
}

pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let mark = match finding.level {
            Level::Fine => "ok   ",
            Level::Warning => "warn ",
            Level::Fault => "FAULT",
        };
        _ = writeln!(text, "{mark} {:<18} {}", finding.id, finding.seen);
        for (head, said) in [("why", &finding.why), ("fix", &finding.fix)] {
            if !said.is_empty() {
                _ = writeln!(text, "      {head}: {said}");
            }
        }
    }
    let n = |level| findings.iter().filter(|finding| finding.level == level).count();
    _ = writeln!(text, "{}, {}", counted(n(Level::Fault), "fault"), counted(n(Level::Warning), "warning"));
    text
}

/// `1 fault`, `2 faults`.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

pub fn json(findings: &[Finding]) -> serde_json::Value {
    let level = |finding: &Finding| match finding.level {
        Level::Fine => "ok",
        Level::Warning => "warning",
        Level::Fault => "fault",
    };
    let rows = findings
        .iter()
        .map(|it| json!({ "id": it.id, "level": level(it), "seen": it.seen, "why": it.why, "fix": it.fix }));
    json!({ "findings": rows.collect::<Vec<_>>() })
}
