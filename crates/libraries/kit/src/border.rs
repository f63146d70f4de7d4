//! The border of a library's exports.

/// Makes `entry`, `entry_value` and `missing`, which the generated exports call, over `crates/border`.
///
/// `variable` is the field of the configuration that has the library's variable, such as `blas`.
///
/// The library's `Error` has the variants `NotSupported(&'static str)` and `Internal(&'static str)`, and `code`, which gives its
/// status. `failed` hears of each call that fails, before the log does.
#[macro_export]
macro_rules! border {
    (target: $target:literal, span: $span:literal, variable: $variable:ident, status: $status:ty, success: $success:expr, error: $error:ident, failed: $failed:expr $(,)?) => {
        struct Border;

        impl ::border::Library for Border {
            type Status = $status;
            type Error = $error;

            const VOICE: ::border::Voice = ::border::voice!($target, $span);
            const SUCCESS: $status = $success;

            fn start(&self) {
                static START: std::sync::Once = std::sync::Once::new();
                START.call_once(|| {
                    (Self::VOICE.start)();
                    // Our shell has no log: what it did not open is told of here.
                    for choice in &config::get().$variable {
                        _ = choice.library();
                    }
                });
            }

            fn sort<'a>(&self, error: &'a $error) -> ::border::Sort<'a> {
                match error {
                    $error::NotSupported(what) => ::border::Sort::Unsupported { news: what, why: what },
                    $error::Internal(_) => ::border::Sort::Internal,
                    _ => ::border::Sort::Failure,
                }
            }

            fn failed(&self, name: &'static str, error: &$error) -> $status {
                $failed(name, error);
                error.code()
            }

            fn broken(&self, name: &'static str) -> $status {
                self.failed(name, &$error::Internal(name))
            }
        }

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
            let status = ::border::call(&Border, name, body);
            $crate::far::end();
            status
        }

        /// As [`entry`], for a body that gives the C value itself.
        pub fn entry_value<T>(name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
            let value = ::border::value(&Border, name, otherwise, body);
            $crate::far::end();
            value
        }

        /// The answer of a name that has no body.
        #[cold]
        pub fn missing(name: &'static str) -> $status {
            entry(name, || Err($error::NotSupported(::border::NO_BODY)))
        }
    };
}
