//! A mark that other processes can see: this one uses the CPU device. NVML lists processes by it.
//!
//! Threads of ours will not do: small kernels run on the program's own. And that this library is mapped says little: a monitor
//! maps it too, to ask who the device is.

use std::sync::Once;

/// What the mark is called in `/proc/PID/maps`, behind `/memfd:`; crates/nvml looks for it.
const NAME: &std::ffi::CStr = c"cudaway-device";

/// Maps one page of a file that has the name and nothing else. A forked child, which cannot use the device, does not have it.
pub fn announce() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the name is a C string.
        let descriptor = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return;
        }
        // SAFETY: a mapping of its own that nobody touches; the descriptor is ours and not used afterwards.
        unsafe {
            let page = libc::mmap(std::ptr::null_mut(), 1, libc::PROT_NONE, libc::MAP_PRIVATE, descriptor, 0);
            if page != libc::MAP_FAILED {
                libc::madvise(page, 1, libc::MADV_DONTFORK);
            }
            libc::close(descriptor);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_in_the_processs_map() {
        announce();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        assert!(maps.lines().any(|line| line.contains("/memfd:cudaway-device")));
    }
}
