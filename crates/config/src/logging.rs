//! `CUDAWAY_LOG`: silent unless asked. Each shared object installs its own subscriber on its first call.

use std::fs::OpenOptions;
use std::sync::{Mutex, Once};

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::prelude::*;

/// Starts logging as `CUDAWAY_LOG` and `CUDAWAY_LOG_FILE` say; does nothing when `CUDAWAY_LOG` is unset.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let config = crate::get();
        let Some(text) = &config.log else { return };
        let (filter, complaint) = match parse(text) {
            Some(filter) => (filter, None),
            None => (Targets::new().with_default(tracing::Level::WARN), Some(text)),
        };
        // At `trace` every CUDA call is a line when it returns, with its time.
        let layer = fmt::layer().with_ansi(false).with_target(true).with_span_events(FmtSpan::CLOSE);
        let file = config.log_file.as_ref().map(|path| (path, OpenOptions::new().create(true).append(true).open(path)));
        let (file, file_error) = match file {
            Some((_, Ok(file))) => (Some(file), None),
            Some((path, Err(error))) => (None, Some((path, error))),
            None => (None, None),
        };
        let installed = match file {
            Some(file) => tracing_subscriber::registry()
                .with(layer.with_writer(Mutex::new(file)).with_filter(filter))
                .with(WhileThreadLives)
                .try_init(),
            None => tracing_subscriber::registry()
                .with(layer.with_writer(std::io::stderr).with_filter(filter))
                .with(WhileThreadLives)
                .try_init(),
        };
        if installed.is_err() {
            return;
        }
        if let Some(text) = complaint {
            tracing::warn!(target: "cudaway::config", "CUDAWAY_LOG={text} is not a level nor area=level; using warn");
        }
        if let Some((path, error)) = file_error {
            tracing::warn!(target: "cudaway::config", "CUDAWAY_LOG_FILE={}: {error}; logging to stderr", path.display());
        }
        for complaint in &config.complaints {
            tracing::warn!(target: "cudaway::config", "{complaint}; using the default");
        }
    });
}

/// What a library of ours does at its first call, once: [`init`], and panics become lines of the log at this target.
/// The default hook writes to stderr, which is the program's. Each library has its own copy of std, so the hook is ours alone.
#[macro_export]
macro_rules! start_logging {
    ($target:literal) => {{
        static START: std::sync::Once = std::sync::Once::new();
        START.call_once(|| {
            $crate::logging::init();
            std::panic::set_hook(Box::new(|panic| ::tracing::error!(target: $target, "internal error: {panic}")));
        });
    }};
}

/// Silences a thread whose thread-local values are gone. A program may call CUDA from an exit handler or a static
/// destructor, which run after them, and `tracing` would panic there.
struct WhileThreadLives;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for WhileThreadLives {
    fn register_callsite(&self, _: &'static tracing::Metadata<'static>) -> tracing::subscriber::Interest {
        // Asked anew each time: the answer changes.
        tracing::subscriber::Interest::sometimes()
    }

    fn enabled(&self, _: &tracing::Metadata<'_>, _: tracing_subscriber::layer::Context<'_, S>) -> bool {
        thread_lives()
    }
}

fn thread_lives() -> bool {
    struct Noticed;
    impl Drop for Noticed {
        // Having a destructor is what makes the value go away with the thread.
        fn drop(&mut self) {}
    }
    thread_local! {
        static LIVES: Noticed = const { Noticed };
    }
    LIVES.try_with(|_| ()).is_ok()
}

/// `debug`, or `driver=debug,cpu=trace`: an area is the part behind `cudaway::`.
fn parse(text: &str) -> Option<Targets> {
    let mut targets = Targets::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        targets = match entry.split_once('=') {
            None => targets.with_default(entry.parse::<tracing::level_filters::LevelFilter>().ok()?),
            Some((area, level)) => {
                let area =
                    if area.starts_with("cudaway") { area.to_owned() } else { format!("cudaway::{area}") };
                targets.with_target(area, level.parse::<tracing::level_filters::LevelFilter>().ok()?)
            }
        };
    }
    Some(targets)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use tracing::Level;

    #[test]
    fn a_bare_level_holds_for_every_area() {
        assert!(parse("debug").unwrap().would_enable("cudaway::driver", &Level::DEBUG));
        assert!(!parse("info").unwrap().would_enable("cudaway::driver", &Level::DEBUG));
    }

    #[test]
    fn an_area_may_be_named_without_its_prefix() {
        let filter = parse("warn,cpu=trace").unwrap();
        assert!(filter.would_enable("cudaway::cpu", &Level::TRACE));
        assert!(!filter.would_enable("cudaway::driver", &Level::TRACE));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(parse("driver=loud").is_none());
    }
}
