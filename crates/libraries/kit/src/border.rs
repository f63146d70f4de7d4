//! The border of a library's exports.

/// Makes `entry`, `entry_value` and `missing`, which the generated exports call: no panic crosses them, every call has a span
/// with its C name, and what is not supported logs itself once.
///
/// `variable` is the field of the configuration that has the library's variable, such as `blas`.
///
/// The library's `Error` has the variants `NotSupported(&'static str)` and `Internal(&'static str)`, and `code`, which gives its
/// status. `failed` hears of each call that fails, before the log does.
#[macro_export]
macro_rules! border {
    (target: $target:literal, span: $span:literal, variable: $variable:ident, status: $status:ty, success: $success:expr, error: $error:ident, failed: $failed:expr $(,)?) => {
        /// Runs one call's body and gives its answer in C's terms.
        pub fn entry(
            name: &'static str,
            mut body: impl FnMut() -> core::result::Result<(), $error>,
        ) -> $status {
            guarded(name, &mut body)
        }

        /// [`entry`], once for all bodies, of which there are thousands.
        fn guarded(
            name: &'static str,
            body: &mut dyn FnMut() -> core::result::Result<(), $error>,
        ) -> $status {
            start();
            let _inside = config::call_span!($target, $span, name);
            match std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
                Ok(Ok(())) => $success,
                Ok(Err(error)) => failed(name, error),
                Err(_) => failed(name, $error::Internal(name)),
            }
        }

        /// As [`entry`], for a body that gives the C value itself.
        pub fn entry_value<T>(name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
            start();
            let _inside = config::call_span!($target, $span, name);
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(otherwise)
        }

        #[cold]
        fn failed(name: &'static str, error: $error) -> $status {
            $failed(name, &error);
            match error {
                $error::NotSupported(what) if config::logging::is_news(name, what) => {
                    tracing::warn!(target: $target, "{name} is not supported: {what}")
                }
                $error::Internal(_) => tracing::error!(target: $target, "{name}: internal error"),
                _ => tracing::info!(target: $target, "{name}: {error}"),
            }
            error.code()
        }

        /// The answer of a name that has no body.
        #[cold]
        pub fn missing(name: &'static str) -> $status {
            entry(name, || Err($error::NotSupported("it has no body yet")))
        }

        /// Not part of the generic bodies above, which there are many of.
        fn start() {
            static START: std::sync::Once = std::sync::Once::new();
            START.call_once(|| {
                config::start_logging!($target);
                // Our shell has no log: what it did not open is told of here.
                for choice in &config::get().$variable {
                    _ = choice.library();
                }
            });
        }
    };
}
