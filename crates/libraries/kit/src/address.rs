//! Addresses that go to another thread: with a routine that runs in stream order, or with the pieces it is done in.

/// Addresses and numbers. They say nothing of who may use what lies there: that is for the code that follows them.
///
/// # Safety
/// No value of the type owns or borrows anything.
pub unsafe trait Addresses: Copy {}

// SAFETY: an address.
unsafe impl<T> Addresses for *const T {}
// SAFETY: as above.
unsafe impl<T> Addresses for *mut T {}
// SAFETY: nothing at all.
unsafe impl Addresses for () {}
// SAFETY: as its thing, if it is there.
unsafe impl<A: Addresses> Addresses for Option<A> {}
// SAFETY: as its elements.
unsafe impl<A: Addresses, const N: usize> Addresses for [A; N] {}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        // SAFETY: each member is such a thing.
        unsafe impl<$($name: Addresses),*> Addresses for ($($name,)*) {}
    )*};
}

tuples! { A; A B; A B C; A B C D; A B C D E; }

/// What may be sent to another thread with addresses in it.
#[derive(Clone, Copy, Debug)]
pub struct Address<T: Addresses>(pub T);

// SAFETY: an address is a number until it is followed.
unsafe impl<T: Addresses> Send for Address<T> {}
// SAFETY: as above.
unsafe impl<T: Addresses> Sync for Address<T> {}

impl<T: Addresses> Address<T> {
    pub fn get(&self) -> T {
        self.0
    }
}
