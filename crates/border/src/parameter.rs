//! Pointers that a C caller hands us, looked at once, at the border: a place for an answer is not NULL and may lie anywhere, a
//! structure that is read lies where its type may.
//!
//! Rule: holding one of these means that somebody promised the pointer is good; safe code can use it without another check.

use core::ffi::{CStr, c_char};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// The caller passed NULL where a pointer is wanted, or a place where no such structure can lie; holds the parameter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPointer(pub &'static str);

impl fmt::Display for BadPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is NULL or not aligned", self.0)
    }
}

impl core::error::Error for BadPointer {}

/// Where an answer goes. Writing uses it up: results are written once, last.
#[derive(Debug)]
pub struct Out<'a, T> {
    target: NonNull<T>,
    caller: PhantomData<&'a mut T>,
}

impl<'a, T> Out<'a, T> {
    /// Fails when `pointer` is NULL, naming the parameter.
    ///
    /// # Safety
    /// If it is not NULL, `pointer` is writable for one `T` during `'a`. It need not be aligned.
    pub unsafe fn new(pointer: *mut T, name: &'static str) -> Result<Self, BadPointer> {
        match NonNull::new(pointer) {
            Some(target) => Ok(Self { target, caller: PhantomData }),
            None => Err(BadPointer(name)),
        }
    }

    /// Stores the answer. What was there before is not looked at and not dropped.
    pub fn write(self, value: T) {
        // SAFETY: `new` saw that it is not NULL; its caller promised the rest.
        unsafe { self.target.write_unaligned(value) }
    }

    /// The place itself, for the few calls that read it first.
    pub fn as_ptr(&self) -> *mut T {
        self.target.as_ptr()
    }
}

impl<'a, T> From<&'a mut T> for Out<'a, T> {
    fn from(target: &'a mut T) -> Self {
        Self { target: NonNull::from(target), caller: PhantomData }
    }
}

/// Where an answer goes if the caller wants it: NULL is legal.
#[derive(Debug)]
pub struct OptOut<'a, T>(Option<Out<'a, T>>);

impl<'a, T> OptOut<'a, T> {
    /// # Safety
    /// As [`Out::new`].
    pub unsafe fn new(pointer: *mut T) -> Self {
        // SAFETY: passed on to our caller.
        Self(unsafe { Out::new(pointer, "") }.ok())
    }

    /// Stores the answer, or drops it when nobody asked.
    pub fn write(self, value: T) {
        if let Some(out) = self.0 {
            out.write(value);
        }
    }

    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// The checked pointer, if the caller passed one.
    pub fn wanted(self) -> Option<Out<'a, T>> {
        self.0
    }
}

impl<'a, T> From<Option<&'a mut T>> for OptOut<'a, T> {
    fn from(target: Option<&'a mut T>) -> Self {
        Self(target.map(Out::from))
    }
}

impl<'a, T> From<&'a mut T> for OptOut<'a, T> {
    fn from(target: &'a mut T) -> Self {
        Some(target).into()
    }
}

/// Borrows a structure that is only read.
///
/// # Safety
/// If it is neither NULL nor misaligned, `pointer` points to a valid `T` that nobody writes during `'a`.
#[inline]
pub unsafe fn borrow<'a, T>(pointer: *const T, name: &'static str) -> Result<&'a T, BadPointer> {
    if !pointer.is_aligned() {
        return Err(BadPointer(name));
    }
    // SAFETY: our caller's promise.
    unsafe { pointer.as_ref() }.ok_or(BadPointer(name))
}

/// As [`borrow`], of a structure that may be left out.
///
/// # Safety
/// As for [`borrow`].
#[inline]
pub unsafe fn borrow_opt<'a, T>(pointer: *const T, name: &'static str) -> Result<Option<&'a T>, BadPointer> {
    // SAFETY: our caller's promise.
    if pointer.is_null() { Ok(None) } else { unsafe { borrow(pointer, name) }.map(Some) }
}

/// Borrows a C string, which may lie anywhere.
///
/// # Safety
/// If it is not NULL, `pointer` is a string with its zero that nobody writes during `'a`.
#[inline]
pub unsafe fn c_string<'a>(pointer: *const c_char, name: &'static str) -> Result<&'a CStr, BadPointer> {
    // SAFETY: our caller's promise.
    if pointer.is_null() { Err(BadPointer(name)) } else { Ok(unsafe { CStr::from_ptr(pointer) }) }
}

/// How a body takes what C gives, told by the type of its parameter: most things as they are, places for answers and structures
/// looked at before anything else happens.
pub trait Parameter<C>: Sized {
    /// # Safety
    /// The contract of the parameter: a place for an answer is writable until the call returns, a structure readable.
    unsafe fn of(given: C, name: &'static str) -> Result<Self, BadPointer>;
}

impl<T> Parameter<T> for T {
    unsafe fn of(given: T, _name: &'static str) -> Result<Self, BadPointer> {
        Ok(given)
    }
}

impl<T> Parameter<*mut T> for Out<'_, T> {
    unsafe fn of(given: *mut T, name: &'static str) -> Result<Self, BadPointer> {
        // SAFETY: the caller's promise.
        unsafe { Out::new(given, name) }
    }
}

impl<T> Parameter<*mut T> for OptOut<'_, T> {
    unsafe fn of(given: *mut T, _name: &'static str) -> Result<Self, BadPointer> {
        // SAFETY: the caller's promise.
        Ok(unsafe { OptOut::new(given) })
    }
}

impl<T> Parameter<*const T> for &T {
    unsafe fn of(given: *const T, name: &'static str) -> Result<Self, BadPointer> {
        // SAFETY: the caller's promise.
        unsafe { borrow(given, name) }
    }
}

impl<T> Parameter<*mut T> for &T {
    unsafe fn of(given: *mut T, name: &'static str) -> Result<Self, BadPointer> {
        // SAFETY: the caller's promise.
        unsafe { borrow(given, name) }
    }
}

impl Parameter<*const c_char> for &CStr {
    unsafe fn of(given: *const c_char, name: &'static str) -> Result<Self, BadPointer> {
        // SAFETY: the caller's promise.
        unsafe { c_string(given, name) }
    }
}

impl<T> Parameter<*const T> for Option<&T> {
    unsafe fn of(given: *const T, name: &'static str) -> Result<Self, BadPointer> {
        // SAFETY: the caller's promise.
        unsafe { borrow_opt(given, name) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_names_the_parameter() {
        // SAFETY: NULL is allowed.
        let missing = unsafe { Out::<u32>::new(core::ptr::null_mut(), "dptr") };
        assert_eq!(missing.unwrap_err(), BadPointer("dptr"));
    }

    #[test]
    fn an_answer_reaches_the_caller() {
        let mut value = 0u64;
        // SAFETY: `value` lives past the call.
        unsafe { Out::new(&raw mut value, "value") }.unwrap().write(7);
        assert_eq!(value, 7);
        OptOut::from(Some(&mut value)).write(8);
        assert_eq!(value, 8);
    }

    #[test]
    fn an_unwanted_answer_is_dropped() {
        // SAFETY: NULL is allowed.
        let nobody = unsafe { OptOut::<u32>::new(core::ptr::null_mut()) };
        assert!(!nobody.is_wanted());
        nobody.write(1);
    }

    #[test]
    fn places_for_answers_may_lie_anywhere_but_at_null() {
        let mut bytes = [0u8; 9];
        // SAFETY: eight bytes from there on are the array's.
        let place =
            unsafe { <Out<'_, u64> as Parameter<*mut u64>>::of(bytes[1..].as_mut_ptr().cast(), "place") };
        place.unwrap().write(u64::MAX);
        assert_eq!(bytes, [0, 255, 255, 255, 255, 255, 255, 255, 255]);
        // SAFETY: NULL is looked for.
        let nowhere = unsafe { <Out<'_, u64> as Parameter<*mut u64>>::of(core::ptr::null_mut(), "place") };
        assert_eq!(nowhere.err(), Some(BadPointer("place")));
        // SAFETY: as above.
        let not_wanted =
            unsafe { <OptOut<'_, u64> as Parameter<*mut u64>>::of(core::ptr::null_mut(), "place") };
        assert!(!not_wanted.unwrap().is_wanted());
    }

    #[test]
    fn a_string_is_looked_for_null() {
        // SAFETY: a string with its zero; NULL is looked for.
        unsafe {
            assert_eq!(<&CStr as Parameter<*const c_char>>::of(c"text".as_ptr(), "name"), Ok(c"text"));
            let nowhere = <&CStr as Parameter<*const c_char>>::of(core::ptr::null(), "name");
            assert_eq!(nowhere, Err(BadPointer("name")));
        }
    }

    #[test]
    fn structures_are_read_where_their_type_may_lie() {
        let words = [7u64, 8];
        let bad = BadPointer("words");
        // SAFETY: the first is aligned and readable; the others are looked at, not read.
        unsafe {
            assert_eq!(<&u64 as Parameter<*const u64>>::of(&words[0], "words"), Ok(&7));
            let between = (&raw const words[0]).byte_add(1);
            assert_eq!(<&u64 as Parameter<*const u64>>::of(between, "words"), Err(bad));
            assert_eq!(<&u64 as Parameter<*const u64>>::of(core::ptr::null(), "words"), Err(bad));
            assert_eq!(<Option<&u64> as Parameter<*const u64>>::of(core::ptr::null(), "words"), Ok(None));
            assert_eq!(<Option<&u64> as Parameter<*const u64>>::of(between, "words"), Err(bad));
        }
    }
}
