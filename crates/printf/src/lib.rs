//! `printf` of device code: formats arguments that a kernel packed. Strings lie in the device's memory, so the caller reads them.

use std::ffi::{CString, c_char, c_int};

struct Arguments<'s> {
    at: *const u8,
    string: &'s mut dyn FnMut(usize) -> *const c_char,
    offset: usize,
    taken: c_int,
}

impl Arguments<'_> {
    /// The next argument of type `T`.
    ///
    /// # Safety
    /// The buffer has one more argument, of that type.
    unsafe fn next<T: Copy>(&mut self) -> T {
        self.offset = self.offset.next_multiple_of(size_of::<T>());
        // SAFETY: the caller's promise.
        let value = unsafe { self.at.add(self.offset).cast::<T>().read_unaligned() };
        self.offset += size_of::<T>();
        self.taken += 1;
        value
    }
}

/// Formats into `out`; answers how many arguments were used. `string` says where the string of an argument can be read.
///
/// # Safety
/// `arguments` holds what `format` asks for, packed at natural alignment (varargs promotion as in C); what `string` gives is a
/// string until it is asked for the next one.
pub unsafe fn format(
    format: &[u8],
    arguments: *const u8,
    string: &mut dyn FnMut(usize) -> *const c_char,
    out: &mut Vec<u8>,
) -> c_int {
    let mut arguments = Arguments { at: arguments, string, offset: 0, taken: 0 };
    let mut rest = format;
    while let Some(at) = rest.iter().position(|&b| b == b'%') {
        out.extend(&rest[..at]);
        let start = &rest[at..];
        // SAFETY: the caller's promise about the arguments.
        match unsafe { conversion(start, &mut arguments, out) } {
            Some(length) => rest = &start[length..],
            // CUDA shows what it does not know as it stands.
            None => {
                out.push(b'%');
                rest = &start[1..];
            }
        }
    }
    out.extend(rest);
    arguments.taken
}

/// One `%…`: appends its text and gives its length, or `None` when it is no conversion.
unsafe fn conversion(start: &[u8], arguments: &mut Arguments, out: &mut Vec<u8>) -> Option<usize> {
    let mut i = 1;
    let mut spec = String::from("%");
    while let Some(&flag @ (b'-' | b'+' | b' ' | b'#' | b'0')) = start.get(i) {
        spec.push(char::from(flag));
        i += 1;
    }
    let number = |i: &mut usize, spec: &mut String, arguments: &mut Arguments| {
        if start.get(*i) == Some(&b'*') {
            *i += 1;
            // SAFETY: `*` stands for one `int` argument.
            spec.push_str(&unsafe { arguments.next::<i32>() }.to_string());
        }
        while let Some(&digit @ b'0'..=b'9') = start.get(*i) {
            spec.push(char::from(digit));
            *i += 1;
        }
    };
    number(&mut i, &mut spec, arguments);
    if start.get(i) == Some(&b'.') {
        i += 1;
        let mut precision = String::new();
        number(&mut i, &mut precision, arguments);
        // A negative precision counts as none.
        if !precision.starts_with('-') {
            spec.push('.');
            spec.push_str(&precision);
        }
    }
    let mut size = "";
    for name in ["hh", "h", "ll", "l", "z", "j", "t"] {
        if start[i..].starts_with(name.as_bytes()) {
            (size, i) = (name, i + name.len());
            break;
        }
    }
    let kind = *start.get(i)?;
    let length = i + 1;
    let long = matches!(size, "ll" | "l" | "z" | "j" | "t");
    // SAFETY: (all) the format's conversion names the argument's type; `c_format` gets a matching one.
    unsafe {
        match kind {
            b'%' if length == 2 => out.push(b'%'),
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' if long => {
                let value = arguments.next::<i64>();
                c_format(&format!("{spec}ll{}", char::from(kind)), out, |b, n, f| {
                    libc::snprintf(b, n, f, value)
                });
            }
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' => {
                let value = arguments.next::<i32>();
                c_format(&format!("{spec}{size}{}", char::from(kind)), out, |b, n, f| {
                    libc::snprintf(b, n, f, value)
                });
            }
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                let value = arguments.next::<f64>();
                c_format(&format!("{spec}{}", char::from(kind)), out, |b, n, f| {
                    libc::snprintf(b, n, f, value)
                });
            }
            b'p' => {
                let value = arguments.next::<usize>() as *const libc::c_void;
                c_format(&format!("{spec}p"), out, |b, n, f| libc::snprintf(b, n, f, value));
            }
            b's' => {
                let value = match arguments.next::<usize>() {
                    0 => c"(null)".as_ptr(),
                    address => (arguments.string)(address),
                };
                c_format(&format!("{spec}s"), out, |b, n, f| libc::snprintf(b, n, f, value));
            }
            _ => return None,
        }
    }
    Some(length)
}

/// Runs C's formatter with room for whatever it needs.
fn c_format(spec: &str, out: &mut Vec<u8>, snprintf: impl Fn(*mut c_char, usize, *const c_char) -> c_int) {
    let Ok(spec) = CString::new(spec) else { return };
    let mut small = [0u8; 128];
    let needed = snprintf(small.as_mut_ptr().cast(), small.len(), spec.as_ptr());
    let Ok(needed) = usize::try_from(needed) else { return };
    if needed < small.len() {
        out.extend(&small[..needed]);
        return;
    }
    let mut large = vec![0u8; needed + 1];
    snprintf(large.as_mut_ptr().cast(), large.len(), spec.as_ptr());
    out.extend(&large[..needed]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(address: usize) -> *const c_char {
        core::ptr::with_exposed_provenance(address)
    }

    fn formatted(text: &str, arguments: &[u8]) -> (String, c_int) {
        let mut out = vec![];
        // SAFETY: the tests below pack what they name.
        let n = unsafe { format(text.as_bytes(), arguments.as_ptr(), &mut here, &mut out) };
        (String::from_utf8(out).unwrap(), n)
    }

    #[test]
    fn arguments_are_read_at_their_own_alignment() {
        let mut buffer = vec![];
        buffer.extend(7i32.to_le_bytes());
        buffer.extend([0; 4]);
        buffer.extend(2.5f64.to_le_bytes());
        buffer.extend((-1i32).to_le_bytes());
        buffer.extend([0; 4]);
        buffer.extend((1i64 << 40).to_le_bytes());
        assert_eq!(
            formatted("%d %.2f %u %lld%%\n", &buffer),
            ("7 2.50 4294967295 1099511627776%\n".to_owned(), 4)
        );
    }

    #[test]
    fn widths_may_be_arguments_and_strings_are_read() {
        let text = c"abc";
        let mut buffer = vec![];
        buffer.extend(6i32.to_le_bytes());
        buffer.extend([0; 4]);
        buffer.extend(text.as_ptr().expose_provenance().to_le_bytes());
        assert_eq!(formatted("[%*s]", &buffer), ("[   abc]".to_owned(), 2));
    }

    #[test]
    fn what_is_no_conversion_stays() {
        assert_eq!(formatted("100%y", &[0; 8]).0, "100%y");
        assert_eq!(formatted("%", &[]).0, "%");
    }
}
