//! `CUDAWAY_HOOKS`, read without the help of anything that may not be there yet.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU8, Ordering};

pub const DLSYM: u8 = 1;
pub const DLOPEN: u8 = 2;
pub const LOG: u8 = 4;
const KNOWN: u8 = 0x80;

static OPTIONS: AtomicU8 = AtomicU8::new(0);

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Whether all of `wanted` is on.
pub fn has(wanted: u8) -> bool {
    let mut options = OPTIONS.load(Ordering::Relaxed);
    if options & KNOWN == 0 {
        // SAFETY: libc's own variable; null until libc has been set up, when nothing can be known.
        if unsafe { environ }.is_null() {
            return false;
        }
        options = KNOWN | secure::variable(c"CUDAWAY_HOOKS").map_or(0, |value| parse(value.to_bytes()));
        OPTIONS.store(options, Ordering::Relaxed);
    }
    options & wanted == wanted
}

/// A word that is none of ours switches nothing on.
fn parse(words: &[u8]) -> u8 {
    words.split(|&byte| byte == b',').fold(0, |options, word| {
        options
            | match word {
                b"dlsym" => DLSYM,
                b"dlopen" => DLOPEN,
                b"log" => LOG,
                _ => 0,
            }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_switch_hooks_on() {
        assert_eq!(parse(b"dlsym,dlopen"), DLSYM | DLOPEN);
        assert_eq!(parse(b"log,dlsym"), DLSYM | LOG);
        assert_eq!(parse(b"1,dlsymx,"), 0);
    }
}
