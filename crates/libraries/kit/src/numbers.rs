//! C's enumerations of a library: a number each, since a program may pass any.

/// Makes a type for each enumeration, with the values that its header has.
#[macro_export]
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident { $($value:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub core::ffi::c_uint);

        impl $name {
            $(pub const $value: $name = $name($number);)*
        }
    )*};
}
