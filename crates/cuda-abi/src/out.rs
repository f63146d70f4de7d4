//! Pointers that a C caller hands us, checked for NULL once, at the border.
//!
//! Rule: holding one of these means that somebody promised the pointer is good; safe code can use it without another check.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

/// The caller passed NULL where CUDA wants a pointer; holds the parameter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullPointer(pub &'static str);

impl fmt::Display for NullPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is NULL", self.0)
    }
}

impl core::error::Error for NullPointer {}

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
    pub unsafe fn new(pointer: *mut T, name: &'static str) -> Result<Self, NullPointer> {
        match NonNull::new(pointer) {
            Some(target) => Ok(Self { target, caller: PhantomData }),
            None => Err(NullPointer(name)),
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

/// Borrows a structure that CUDA only reads.
///
/// # Safety
/// If it is not NULL, `pointer` is aligned and points to a valid `T` that nobody writes during `'a`.
pub unsafe fn borrow<'a, T>(pointer: *const T, name: &'static str) -> Result<&'a T, NullPointer> {
    // SAFETY: our caller's promise.
    unsafe { pointer.as_ref() }.ok_or(NullPointer(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_names_the_parameter() {
        // SAFETY: NULL is allowed.
        let missing = unsafe { Out::<u32>::new(core::ptr::null_mut(), "dptr") };
        assert_eq!(missing.unwrap_err(), NullPointer("dptr"));
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
}
