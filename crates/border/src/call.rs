//! What surrounds the body of every call.
//!
//! Bodies are thousands, so a library has one function of its own that takes them as `&mut dyn FnMut` and calls [`call`], which
//! becomes part of it.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::voice::{Level, Voice, is_news, may_hear_spans};

/// What is not supported where a name has no body.
pub const NO_BODY: &str = "it has no body yet";

/// One library's border: its statuses, its errors, its place in the log, and what else it does when a call fails.
pub trait Library {
    type Status;
    type Error: fmt::Display;

    const VOICE: Voice;
    const SUCCESS: Self::Status;
    /// Whether the log hears again, more quietly, of what is not supported each time that it is asked for.
    const REPEATS: bool = true;

    /// Before every call.
    #[inline]
    fn start(&self) {
        (Self::VOICE.start)();
    }

    /// What the log is told of a failure.
    fn sort<'a>(&self, error: &'a Self::Error) -> Sort<'a>;

    /// The status of a failure, which the library may keep; before the log is told.
    fn failed(&self, name: &'static str, error: &Self::Error) -> Self::Status;

    /// The status of a body that panicked.
    fn broken(&self, name: &'static str) -> Self::Status;
}

/// What a failure is to whoever reads the log.
pub enum Sort<'a> {
    /// No failure at all, such as "not ready".
    Answer,
    /// A warning the first time that `news` is said of this call.
    Unsupported { news: &'static str, why: &'a dyn fmt::Display },
    /// What a program did wrong, or the machine.
    Failure,
    /// What somebody above tells of in better words.
    Detail,
    /// A defect of ours.
    Internal,
}

/// Runs one call's body and gives its answer in C's terms.
#[inline]
pub fn call<L: Library>(
    library: &L,
    name: &'static str,
    body: impl FnMut() -> Result<(), L::Error>,
) -> L::Status {
    library.start();
    let _inside = inside::<L>(name);
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => L::SUCCESS,
        Ok(Err(error)) => refuse(library, name, &error),
        Err(_) => broken(library, name),
    }
}

/// A call that answers with something else than a status; `otherwise` is the answer when its body breaks.
pub fn value<L: Library, T>(library: &L, name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
    library.start();
    let _inside = inside::<L>(name);
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        tell_broken::<L>(name);
        otherwise
    })
}

/// The answer of a call that fails, and what the log hears of it.
#[cold]
pub fn refuse<L: Library>(library: &L, name: &'static str, error: &L::Error) -> L::Status {
    let status = library.failed(name, error);
    let say = L::VOICE.say;
    match library.sort(error) {
        Sort::Answer => {}
        Sort::Unsupported { news, why } if is_news(name, news) => {
            say(Level::Warn, format_args!("{name} is not supported: {why}"));
        }
        Sort::Unsupported { .. } if !L::REPEATS => {}
        Sort::Unsupported { .. } | Sort::Failure => say(Level::Info, format_args!("{name}: {error}")),
        Sort::Detail => say(Level::Debug, format_args!("{name}: {error}")),
        Sort::Internal => tell_broken::<L>(name),
    }
    status
}

#[inline]
fn inside<L: Library>(name: &'static str) -> Option<crate::Guard> {
    match L::VOICE.enter {
        Some(enter) if may_hear_spans() => Some(enter(name)),
        _ => None,
    }
}

/// The answer of a body that panicked; the hook of [`config::start_logging!`] has said where.
#[cold]
fn broken<L: Library>(library: &L, name: &'static str) -> L::Status {
    tell_broken::<L>(name);
    library.broken(name)
}

#[cold]
fn tell_broken<L: Library>(name: &'static str) {
    (L::VOICE.say)(Level::Error, format_args!("{name}: internal error"));
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    thread_local! {
        static HEARD: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
    }

    fn heard() -> Vec<(Level, String)> {
        HEARD.take()
    }

    /// A library whose log is kept, and whose calls that fail are counted.
    #[derive(Default)]
    struct Kept<const REPEATS: bool> {
        failed: RefCell<Vec<&'static str>>,
    }

    impl<const REPEATS: bool> Library for Kept<REPEATS> {
        type Status = i32;
        type Error = String;

        const VOICE: Voice = Voice {
            start: || (),
            enter: None,
            say: |level, text| HEARD.with_borrow_mut(|heard| heard.push((level, text.to_string()))),
        };
        const SUCCESS: i32 = 0;
        const REPEATS: bool = REPEATS;

        fn sort<'a>(&self, error: &'a String) -> Sort<'a> {
            match error.as_str() {
                "not ready" => Sort::Answer,
                "textures" => Sort::Unsupported { news: "textures", why: error },
                "below" => Sort::Detail,
                "ours" => Sort::Internal,
                _ => Sort::Failure,
            }
        }

        fn failed(&self, name: &'static str, _error: &String) -> i32 {
            self.failed.borrow_mut().push(name);
            1
        }

        fn broken(&self, _name: &'static str) -> i32 {
            999
        }
    }

    #[test]
    fn a_panic_becomes_a_status_and_one_line() {
        let library = Kept::<true>::default();
        assert_eq!(call(&library, "cuTest", || panic!("on purpose")), 999);
        assert_eq!(heard(), [(Level::Error, "cuTest: internal error".to_owned())]);
        assert_eq!(value(&library, "cuTest", 7, || panic!("on purpose")), 7);
        assert_eq!(heard().len(), 1);
        assert!(library.failed.borrow().is_empty());
    }

    #[test]
    fn a_failure_is_kept_and_said_as_loudly_as_it_matters() {
        let library = Kept::<true>::default();
        let fail = |why: &str| call(&library, "cuTestFails", || Err(why.to_owned()));
        assert_eq!((call(&library, "cuTestFails", || Ok(())), heard()), (0, vec![]));
        assert_eq!((fail("not ready"), heard()), (1, vec![]));
        assert_eq!((fail("NULL"), heard()), (1, vec![(Level::Info, "cuTestFails: NULL".to_owned())]));
        assert_eq!((fail("below"), heard()), (1, vec![(Level::Debug, "cuTestFails: below".to_owned())]));
        assert_eq!(
            (fail("ours"), heard()),
            (1, vec![(Level::Error, "cuTestFails: internal error".to_owned())])
        );
        assert_eq!(*library.failed.borrow(), ["cuTestFails"; 4]);
    }

    #[test]
    fn what_is_not_supported_is_a_warning_once() {
        let (loud, quiet) = (Kept::<true>::default(), Kept::<false>::default());
        let fail = || -> Result<(), String> { Err("textures".to_owned()) };
        call(&loud, "cuTestLoud", fail);
        assert_eq!(heard(), [(Level::Warn, "cuTestLoud is not supported: textures".to_owned())]);
        call(&loud, "cuTestLoud", fail);
        assert_eq!(heard(), [(Level::Info, "cuTestLoud: textures".to_owned())]);
        call(&quiet, "cuTestQuiet", fail);
        assert_eq!(heard().len(), 1);
        call(&quiet, "cuTestQuiet", fail);
        assert_eq!(heard(), []);
    }
}
