//! What a library says in the log. A line's target has to be written where the line is, so [`voice!`](crate::voice) makes a
//! library's lines where its name is written, and all else calls those.

use core::fmt;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How a library's log is begun and written to.
pub struct Voice {
    /// Before the first line; each further time it does nothing.
    pub start: fn(),
    /// Enters the span that stands for a call of this name, where a library has such spans.
    pub enter: Option<fn(&'static str) -> Guard>,
    pub say: fn(Level, fmt::Arguments<'_>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Leaves a call's span when it is dropped.
pub type Guard = Box<dyn core::any::Any>;

/// A library's [`Voice`]: `voice!("cudaway::driver", "cu")` with spans of this name, `voice!("cudaway::cpu")` without.
///
/// All that a span takes stands in one cold function: exports are thousands, and each would have it in its own code.
#[macro_export]
macro_rules! voice {
    ($target:literal $(, $span:literal)?) => {{
        fn start() {
            $crate::start_logging!($target);
        }
        fn say(level: $crate::Level, text: core::fmt::Arguments<'_>) {
            match level {
                $crate::Level::Error => ::tracing::error!(target: $target, "{text}"),
                $crate::Level::Warn => ::tracing::warn!(target: $target, "{text}"),
                $crate::Level::Info => ::tracing::info!(target: $target, "{text}"),
                $crate::Level::Debug => ::tracing::debug!(target: $target, "{text}"),
            }
        }
        $crate::Voice { start, enter: $crate::voice!(@enter $target $($span)?), say }
    }};
    (@enter $target:literal) => { None };
    (@enter $target:literal $span:literal) => {{
        #[cold]
        #[inline(never)]
        fn enter(name: &'static str) -> $crate::Guard {
            Box::new(::tracing::trace_span!(target: $target, $span, call = name).entered())
        }
        Some(enter)
    }};
}

/// Whether somebody may listen to spans.
#[inline]
pub fn may_hear_spans() -> bool {
    tracing::level_filters::LevelFilter::current() >= tracing::level_filters::LevelFilter::TRACE
}

/// Whether this is the first time that this library says so of `call`: programs repeat what does not work.
pub fn is_news(call: &'static str, what: &'static str) -> bool {
    static SAID: Mutex<BTreeSet<(&str, &str)>> = Mutex::new(BTreeSet::new());
    SAID.lock().unwrap_or_else(PoisonError::into_inner).insert((call, what))
}

#[cfg(test)]
mod tests {
    use super::is_news;

    #[test]
    fn a_call_is_news_once_for_each_reason() {
        assert!(is_news("cuTest", "here"));
        assert!(!is_news("cuTest", "here"));
        assert!(is_news("cuTest", "there"));
    }
}
