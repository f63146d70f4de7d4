//! `CUDAWAY_TRACE=PREFIX`: every call of a program, as a line of JSON in `PREFIX.PID`, written when the call returns.
//! `cudaway trace` sets it, reads the lines and makes sense of them.
//!
//! Off, it costs a call one relaxed load. The generated exports wrap each body in [`call!`].

mod arguments;
mod line;
mod out;
mod switch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

pub use arguments::Arguments;
use line::Line;
pub use out::nanoseconds;
pub use switch::Switch;

/// What a call gives its caller, as a number.
pub trait Answer {
    fn code(&self) -> i64;
}

impl Answer for cuda_abi::CUresult {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

impl Answer for cuda_abi::runtime::cudaError_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

static SWITCH: Switch = Switch::new();

/// Whether calls are written down; the environment is read at the first call.
#[inline]
pub fn is_on() -> bool {
    SWITCH.is_on(|| unless_it_panics(|| config::get().trace.is_some()).unwrap_or(false))
}

/// What is written down is ours: a defect there costs a line, never the call. Exports of C are no place for a panic.
fn unless_it_panics<R>(run: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

/// Runs a body, the call of this name, and writes it down when asked to: `call!("cuX", (value a, out b), body)`. The
/// parameters are looked at before for what goes in, and once the call has succeeded for what came out.
///
/// Exports are thousands: the body is compiled once for both branches, and is moved into the one that is taken, so that nothing is
/// kept in memory for the other one while nobody listens.
#[macro_export]
macro_rules! call {
    ($name:literal, ($($shown:tt)*), $body:expr) => {{
        let body = move || $body;
        if $crate::is_on() { $crate::status($name, &$crate::shown!($($shown)*), &mut { body }) } else { body() }
    }};
}

/// As [`call`], of a call that answers with something else than a status.
#[macro_export]
macro_rules! call_value {
    ($name:literal, ($($shown:tt)*), $body:expr) => {{
        let body = move || $body;
        if $crate::is_on() { $crate::value($name, &$crate::shown!($($shown)*), &mut { body }) } else { body() }
    }};
}

/// [`call`] when somebody listens. One for all calls, hence no type of its own for each body.
#[cold]
pub fn status<R: Answer>(
    name: &'static str,
    arguments: &dyn Fn(&mut Arguments),
    body: &mut dyn FnMut() -> R,
) -> R {
    written(name, arguments, body, |answer| Some(answer.code()))
}

/// [`call_value`] when somebody listens.
#[cold]
pub fn value<R>(name: &'static str, arguments: &dyn Fn(&mut Arguments), body: &mut dyn FnMut() -> R) -> R {
    written(name, arguments, body, |_| None)
}

fn written<R>(
    name: &'static str,
    arguments: &dyn Fn(&mut Arguments),
    body: &mut dyn FnMut() -> R,
    code: impl Fn(&R) -> Option<i64>,
) -> R {
    let given = unless_it_panics(|| {
        let mut given = Arguments::before();
        arguments(&mut given);
        given.text()
    });
    let start = out::nanoseconds();
    let answer = body();
    let nanoseconds = out::nanoseconds().saturating_sub(start);
    let code = code(&answer);
    let _ = unless_it_panics(|| {
        let mut got = Arguments::after();
        if code == Some(0) {
            arguments(&mut got);
        }
        let given = given.unwrap_or_default();
        out::write(&Line { name, start, nanoseconds, code, given, got: got.text() }.json());
    });
    answer
}

/// What goes into a call, for people: `name=value`, with blanks between.
pub fn plain(arguments: &dyn Fn(&mut Arguments)) -> String {
    let mut given = Arguments::plain();
    arguments(&mut given);
    given.text()
}

/// The system's number of the calling thread.
pub fn thread() -> core::ffi::c_long {
    // SAFETY: it has no parameters and cannot fail. glibc's function for it is newer (2.30) than the glibc that we need.
    unsafe { libc::syscall(libc::SYS_gettid) }
}

/// A kernel has run on the CPU device until now, and for so long.
pub fn kernel(name: &str, plain: &str, took: Duration) {
    let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    kernel_at(name, plain, out::nanoseconds().saturating_sub(nanoseconds), nanoseconds);
}

/// A kernel ran from then on, and for so long.
pub fn kernel_at(name: &str, plain: &str, start: u64, nanoseconds: u64) {
    out::write(&line::kernel(name, plain, start, nanoseconds));
}

/// Code for a kernel was made until now, and for so long: of this tier, for such a block.
pub fn compiled(name: &str, plain: &str, tier: &str, block: &str, took: Duration) {
    let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let start = out::nanoseconds().saturating_sub(nanoseconds);
    out::write(&line::compiled(name, plain, tier, block, start, nanoseconds));
}

/// The closure that shows a call's parameters: `value` as they are, `text` as C strings, `out` what the call wrote there.
#[macro_export]
macro_rules! shown {
    ($($kind:ident $name:ident),* $(,)?) => {
        move |_shown: &mut $crate::Arguments| {
            $($crate::shown!(@ _shown $kind $name);)*
        }
    };
    (@ $shown:ident value $name:ident) => {
        $shown.value(stringify!($name), &$name)
    };
    (@ $shown:ident text $name:ident) => {
        // SAFETY: CUDA's contract makes it NULL or a C string.
        unsafe { $shown.c_text(stringify!($name), $name) }
    };
    (@ $shown:ident out $name:ident) => {
        // SAFETY: NULL, or the call that has succeeded wrote a value there.
        unsafe { $shown.out(stringify!($name), $name) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_is_shown_to_people_without_quotes() {
        let (n, name) = (3, c"a kernel".as_ptr());
        assert_eq!(plain(&shown!(value n, text name)), "n=3 name=a kernel");
    }

    #[test]
    fn what_goes_in_is_shown_before_and_what_comes_out_after() {
        let mut bytes = 7usize;
        let place: *mut usize = &mut bytes;
        let name = c"a \"kernel\"".as_ptr();
        let arguments = shown!(out place, value bytes, text name);
        let mut before = Arguments::before();
        arguments(&mut before);
        let mut after = Arguments::after();
        arguments(&mut after);
        let line = Line {
            name: "cuX",
            start: 5,
            nanoseconds: 9,
            code: Some(0),
            given: before.text(),
            got: after.text(),
        };
        let line: serde_json::Value = serde_json::from_str(&line.json()).unwrap();
        assert_eq!(line["call"], "cuX");
        assert_eq!(
            (line["start"].as_u64(), line["ns"].as_u64(), line["result"].as_i64()),
            (Some(5), Some(9), Some(0))
        );
        assert_eq!(line["in"]["bytes"], "7");
        assert_eq!(line["in"]["name"], "a \"kernel\"");
        assert_eq!(line["in"]["place"], format!("{place:?}"));
        assert_eq!(line["out"]["place"], "7");
    }

    #[derive(Clone, Copy)]
    struct Unshowable;
    impl core::fmt::Debug for Unshowable {
        fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            panic!("asked")
        }
    }

    #[test]
    fn a_parameter_that_cannot_be_shown_costs_its_line_and_not_the_call() {
        let parameter = Unshowable;
        let mut n_calls = 0;
        let answer = status("cuX", &shown!(value parameter), &mut || {
            n_calls += 1;
            cuda_abi::CUresult::CUDA_SUCCESS
        });
        assert_eq!((answer.code(), n_calls), (0, 1));
    }

    #[test]
    fn nothing_is_asked_when_nobody_listens() {
        let parameter = Unshowable;
        let answer = call!("cuX", (value parameter), cuda_abi::CUresult::CUDA_SUCCESS);
        assert_eq!(answer.code(), 0);
    }
}
