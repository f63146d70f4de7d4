//! The border between C and us, the same for every library that we stand in for: what a call is surrounded with (`call`), what
//! the log hears of it (`voice`), and what C's pointers become before a body sees them (`parameter`).
//!
//! The rule: no panic crosses it, no call is silent that is not supported, and a body gets no pointer that nobody looked at
//! where it is read or written on its own terms. What only one library knows (what the driver settles behind a call, whose the
//! last error is) stays with that library.

mod call;
mod parameter;
mod voice;

pub use call::{Library, NO_BODY, Sort, call, refuse, value};
pub use parameter::{BadPointer, OptOut, Out, Parameter, borrow, borrow_opt, c_string};
pub use voice::{Guard, Level, Voice, is_news, may_hear_spans};

#[doc(hidden)]
pub use config::start_logging;
