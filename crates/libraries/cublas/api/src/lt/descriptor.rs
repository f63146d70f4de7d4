//! Descriptors. A program may hold one on its own stack (`…Init`), in as many bytes as its release's header has, so what it
//! sets lies in the descriptor itself: every attribute at an offset of its own, within the smallest release's size. Attributes
//! that came later lie behind it, in descriptors that say they are wide enough.

use core::ffi::c_void;

use crate::{Error, Result, require};

/// An attribute: its number, where it lies, its bytes.
pub struct Field {
    pub number: u32,
    at: usize,
    bytes: usize,
}

/// A kind of descriptor.
pub struct Kind {
    fields: &'static [Field],
    /// What all have.
    bytes: usize,
    /// Behind the smallest release's descriptor.
    wide: &'static [Field],
    /// The manual's, where they are not 0.
    defaults: &'static [(u32, i64)],
}

/// Fields one after the other, the long ones first, so that all are aligned.
const fn fields<const N: usize>(list: [(u32, usize); N], mut at: usize) -> [Field; N] {
    let mut fields = [const { Field { number: 0, at: 0, bytes: 0 } }; N];
    let mut i = 0;
    while i < N {
        fields[i] = Field { number: list[i].0, at, bytes: list[i].1 };
        at += list[i].1;
        i += 1;
    }
    fields
}

const fn kind<const N: usize>(
    fields: &'static [Field; N],
    least: usize,
    defaults: &'static [(u32, i64)],
) -> Kind {
    let bytes = fields[N - 1].at + fields[N - 1].bytes;
    assert!(bytes <= least, "it lies in the smallest release's descriptor");
    Kind { fields, bytes, wide: &[], defaults }
}

/// As [`kind`], with attributes behind the smallest release's descriptor, whose last byte says whether they are there.
const fn wide_kind<const N: usize, const W: usize>(
    fields: &'static [Field; N],
    wide: &'static [Field; W],
    defaults: &'static [(u32, i64)],
) -> Kind {
    let least = wide[0].at;
    let kind = kind(fields, least - 1, defaults);
    Kind { wide, ..kind }
}

/// rows, columns, ld, batch offset, plane offset, type, order, batch count, batch mode
const LAYOUT_FIELDS: [Field; 9] =
    fields([(2, 8), (3, 8), (4, 8), (6, 8), (7, 8), (0, 4), (1, 4), (5, 4), (8, 4)], 0);
/// arrays of rows, columns and leading dimensions; how wide their integers are
const LAYOUT_WIDE: [Field; 5] = fields([(9, 8), (10, 8), (11, 8), (12, 4), (13, 4)], 64);
/// Pointers and strides; then types, modes, operations, epilogue; last fast accumulation.
const MATMUL_FIELDS: [Field; 32] = fields(
    [
        (8, 8),
        (11, 8),
        (17, 8),
        (18, 8),
        (19, 8),
        (20, 8),
        (21, 8),
        (23, 8),
        (24, 8),
        (36, 8),
        (10, 8),
        (12, 8),
        (13, 8),
        (14, 8),
        (0, 4),
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
        (5, 4),
        (6, 4),
        (7, 4),
        (15, 4),
        (22, 4),
        (26, 4),
        (31, 4),
        (32, 4),
        (33, 4),
        (34, 4),
        (35, 4),
        (37, 4),
        (25, 1),
    ],
    0,
);
/// The descriptor of emulation.
const MATMUL_WIDE: [Field; 1] = fields([(38, 8)], 184);
/// workspace, numerical implementations, search mode, reductions, four alignments, waves, averages of groups
const PREFERENCE_FIELDS: [Field; 12] = fields(
    [(1, 8), (12, 8), (0, 4), (3, 4), (5, 4), (6, 4), (7, 4), (8, 4), (9, 4), (13, 4), (14, 4), (15, 4)],
    0,
);
/// where the number of bits goes, strategy, special values, control, most bits, offset
const EMULATION_FIELDS: [Field; 6] = fields([(5, 8), (0, 4), (1, 4), (2, 4), (3, 4), (4, 4)], 0);
/// scale type, pointer mode, two operations
const TRANSFORM_FIELDS: [Field; 4] = fields([(0, 4), (1, 4), (2, 4), (3, 4)], 0);

/// With the bytes of `cublasLt….data` in the release that has fewest.
pub const LAYOUT: Kind = wide_kind(&LAYOUT_FIELDS, &LAYOUT_WIDE, &[(5, 1)]);
/// No epilogue, a full matrix, types that follow from D's.
pub const MATMUL: Kind = wide_kind(&MATMUL_FIELDS, &MATMUL_WIDE, &[(6, 2), (7, 1), (22, -1), (26, -1)]);
/// Any reduction, any implementation, alignments of 256 bytes, no workspace.
pub const PREFERENCE: Kind =
    kind(&PREFERENCE_FIELDS, 64, &[(3, -1), (12, -1), (5, 256), (6, 256), (7, 256), (8, 256)]);
pub const TRANSFORM: Kind = kind(&TRANSFORM_FIELDS, 64, &[]);
/// All special values.
pub const EMULATION: Kind = kind(&EMULATION_FIELDS, 64, &[(1, 0xffff)]);

/// What every `…GetAttribute` does with a value: with 0 bytes only its size is told.
///
/// # Safety
/// `to` has `bytes` writable bytes; `written` is NULL or writable.
pub unsafe fn copy_out(value: &[u8], to: *mut c_void, bytes: usize, written: *mut usize) -> Result {
    require(bytes > 0 || !written.is_null(), "nothing is asked for")?;
    if bytes > 0 {
        require(bytes == value.len() && !to.is_null(), "the attribute has another size")?;
        // SAFETY: the caller's promise.
        unsafe { value.as_ptr().copy_to(to.cast(), bytes) };
    }
    if !written.is_null() {
        // SAFETY: the caller's promise.
        unsafe { written.write(value.len()) };
    }
    Ok(())
}

/// Room for any kind in any release, as `…Create` makes it.
type Room = [u64; 32];

/// A descriptor of the program's, of one kind.
#[derive(Clone, Copy)]
pub struct Descriptor<'k> {
    kind: &'k Kind,
    at: *mut u8,
}

impl<'k> Descriptor<'k> {
    /// # Safety
    /// NULL, or a descriptor of that kind.
    pub unsafe fn of<T>(at: *const T, kind: &'k Kind) -> Result<Descriptor<'k>> {
        require(!at.is_null(), "a descriptor is NULL")?;
        Ok(Descriptor { kind, at: at.cast_mut().cast() })
    }

    /// One in memory of its own, with the defaults.
    pub fn create(kind: &'k Kind) -> Descriptor<'k> {
        let room: Box<Room> = Box::new([0; 32]);
        Descriptor { kind, at: Box::into_raw(room).cast() }.with_defaults(size_of::<Room>())
    }

    /// One in the program's memory, with the defaults.
    ///
    /// # Safety
    /// NULL, or `bytes` writable bytes.
    pub unsafe fn init<T>(at: *mut T, bytes: usize, kind: &'k Kind) -> Result<Descriptor<'k>> {
        require(bytes >= kind.bytes, "the descriptor is too small for its kind")?;
        // SAFETY: the caller's promise.
        let made = unsafe { Descriptor::of(at, kind)? };
        // SAFETY: as above.
        unsafe { made.at.write_bytes(0, bytes) };
        Ok(made.with_defaults(bytes))
    }

    fn with_defaults(self, bytes: usize) -> Self {
        if let (Some(at), Some(last)) = (self.wide_mark(), self.kind.wide.last()) {
            // SAFETY: within every descriptor of the kind.
            unsafe { at.write((last.at + last.bytes <= bytes).into()) };
        }
        self.kind.defaults.iter().for_each(|&(number, value)| self.put(number, value));
        self
    }

    pub fn raw<T>(self) -> *mut T {
        self.at.cast()
    }

    /// # Safety
    /// NULL, or what [`Self::create`] gave, once.
    pub unsafe fn destroy<T>(at: *mut T) -> Result {
        require(!at.is_null(), "a descriptor is NULL")?;
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(at.cast::<Room>()) });
        Ok(())
    }

    /// The byte that says whether there are wide fields.
    fn wide_mark(self) -> Option<*mut u8> {
        // SAFETY: the byte before them lies in the smallest descriptor.
        self.kind.wide.first().map(|field| unsafe { self.at.add(field.at - 1) })
    }

    fn fields(self) -> impl Iterator<Item = &'static Field> + use<> {
        // SAFETY: as above.
        let is_wide = self.wide_mark().is_some_and(|at| unsafe { at.read() } != 0);
        self.kind.fields.iter().chain(if is_wide { self.kind.wide } else { &[] })
    }

    fn field(self, number: u32) -> Result<&'static Field> {
        let found = self.fields().find(|field| field.number == number);
        found.ok_or(Error::InvalidValue(
            "there is no such attribute, or nothing here could do what it asks for",
        ))
    }

    /// # Safety
    /// `from` has `bytes` bytes.
    pub unsafe fn set(self, number: u32, from: *const c_void, bytes: usize) -> Result {
        let field = self.field(number)?;
        require(bytes == field.bytes && !from.is_null(), "the attribute has another size")?;
        // SAFETY: the caller's promise; the field lies in the descriptor.
        unsafe { from.cast::<u8>().copy_to(self.at.add(field.at), field.bytes) };
        Ok(())
    }

    /// # Safety
    /// `to` has `bytes` writable bytes; `written` is NULL or writable. With 0 bytes only the size is told.
    pub unsafe fn get(self, number: u32, to: *mut c_void, bytes: usize, written: *mut usize) -> Result {
        let field = self.field(number)?;
        // SAFETY: the field lies in the descriptor.
        let value = unsafe { std::slice::from_raw_parts(self.at.add(field.at), field.bytes) };
        // SAFETY: the caller's promise.
        unsafe { copy_out(value, to, bytes, written) }
    }

    /// An attribute as a number; the descriptor has it.
    pub fn number(self, number: u32) -> i64 {
        let Ok(field) = self.field(number) else { return 0 };
        // SAFETY: the field lies in the descriptor.
        unsafe {
            let at = self.at.add(field.at);
            match field.bytes {
                8 => at.cast::<i64>().read_unaligned(),
                4 => at.cast::<i32>().read_unaligned().into(),
                _ => at.cast::<i8>().read().into(),
            }
        }
    }

    pub fn pointer<T>(self, number: u32) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.number(number) as usize)
    }

    pub fn put(self, number: u32, value: i64) {
        let Ok(field) = self.field(number) else { return };
        let value = value.to_le_bytes();
        // SAFETY: the field lies in the descriptor.
        unsafe { value.as_ptr().copy_to(self.at.add(field.at), field.bytes) };
    }

    /// Some attributes for a log, by these names.
    pub fn shown(self, names: &[(u32, &str)]) -> String {
        let shown = names.iter().map(|&(number, name)| format!("{name}={}", self.number(number)));
        format!("[{}]", shown.collect::<Vec<_>>().join(" "))
    }

    /// What the program has set, for hipBLASLt: numbers and bytes.
    pub fn attributes(&self) -> Vec<(u32, &[u8])> {
        let default = |number: u32| {
            self.kind.defaults.iter().find(|default| default.0 == number).map_or(0, |default| default.1)
        };
        let set = self.fields().filter(|field| self.number(field.number) != default(field.number));
        set.map(|field| {
            // SAFETY: the field lies in the descriptor.
            (field.number, unsafe { std::slice::from_raw_parts(self.at.add(field.at), field.bytes) })
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_apart_and_aligned() {
        for kind in [&LAYOUT, &MATMUL, &PREFERENCE, &TRANSFORM, &EMULATION] {
            let mut end = 0;
            for field in kind.fields.iter().chain(kind.wide) {
                assert!(
                    field.at >= end && field.at.is_multiple_of(field.bytes),
                    "attribute {}",
                    field.number
                );
                end = field.at + field.bytes;
            }
        }
    }

    #[test]
    fn a_descriptor_of_an_old_release_has_no_new_attributes() {
        let (mut old, mut new, value) = ([0u64; 8], [0u64; 14], 5u64);
        // SAFETY: places of these sizes.
        unsafe {
            let old = Descriptor::init(&raw mut old, 64, &LAYOUT).unwrap();
            let new = Descriptor::init(&raw mut new, 112, &LAYOUT).unwrap();
            assert!(old.set(9, (&raw const value).cast(), 8).is_err());
            assert!(new.set(9, (&raw const value).cast(), 8).is_ok());
            assert_eq!((old.number(9), new.number(9), new.number(5)), (0, 5, 1));
        }
    }

    #[test]
    fn attributes_come_back_with_their_sizes() {
        let made = Descriptor::create(&MATMUL);
        let (value, mut back, mut written) = (-7i64, 0i64, 0usize);
        // SAFETY: places of these sizes.
        unsafe {
            made.set(10, (&raw const value).cast(), 8).unwrap();
            made.get(10, (&raw mut back).cast(), 8, &mut written).unwrap();
            assert!(made.set(10, (&raw const value).cast(), 4).is_err());
            assert!(made.set(9999, (&raw const value).cast(), 8).is_err());
        }
        assert_eq!((back, written, made.number(10)), (-7, 8, -7));
        assert_eq!(made.attributes(), [(10, &(-7i64).to_le_bytes()[..])]);
        // SAFETY: made above.
        unsafe { Descriptor::destroy(made.raw::<u64>()).unwrap() };
    }
}
