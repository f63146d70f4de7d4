//! Addresses that go to another thread: with a routine that runs in stream order, or with the pieces it is done in.

use crate::{Result, far};

/// Addresses and numbers. They say nothing of who may use what lies there: that is for the code that follows them.
///
/// # Safety
/// No value of the type owns or borrows anything.
pub unsafe trait Addresses: Copy {
    /// The same where the host can follow it ([`far`]). An address alone says nothing of how much lies there: a type that knows it
    /// names it.
    fn near(self) -> Result<Self>;
}

// SAFETY: an address.
unsafe impl<T> Addresses for *const T {
    fn near(self) -> Result<Self> {
        Ok(far::near_all(self.cast_mut())?.cast_const())
    }
}
// SAFETY: as above.
unsafe impl<T> Addresses for *mut T {
    fn near(self) -> Result<Self> {
        far::near_all(self)
    }
}
// SAFETY: nothing at all.
unsafe impl Addresses for () {
    fn near(self) -> Result<Self> {
        Ok(())
    }
}
// SAFETY: as its thing, if it is there.
unsafe impl<A: Addresses> Addresses for Option<A> {
    fn near(self) -> Result<Self> {
        self.map(A::near).transpose()
    }
}
// SAFETY: as its elements.
unsafe impl<A: Addresses, const N: usize> Addresses for [A; N] {
    fn near(mut self) -> Result<Self> {
        for element in &mut self {
            *element = element.near()?;
        }
        Ok(self)
    }
}

macro_rules! tuples {
    ($($($name:ident)*;)*) => {$(
        // SAFETY: each member is such a thing.
        unsafe impl<$($name: Addresses),*> Addresses for ($($name,)*) {
            fn near(self) -> Result<Self> {
                let ($($name,)*) = self;
                Ok(($($name.near()?,)*))
            }
        }
    )*};
}

tuples! { A; A B; A B C; A B C D; A B C D E; }

/// [`Addresses`] of a structure whose named members have addresses in them, and whose others have none.
///
/// No value of it may own or borrow anything.
#[macro_export]
macro_rules! addresses {
    ($($name:ident $(<$T:ident>)? { $($member:ident),* })*) => {$(
        // SAFETY: addresses and numbers, by the promise above.
        unsafe impl $(<$T: Copy>)? $crate::Addresses for $name $(<$T>)? {
            fn near(mut self) -> $crate::Result<Self> {
                $(self.$member = $crate::Addresses::near(self.$member)?;)*
                Ok(self)
            }
        }
    )*};
}

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
