//! What one process hands another so that both see the same file: where the file is open, and which file it must be.
//!
//! The handles of HIP's interprocess calls are 64 bytes that travel any way a program likes. Files without names are reached through
//! the descriptor table of the process that holds them open, which has to be alive and of the same user, as HIP asks too. Whoever
//! wrote the 64 bytes may be a stranger, so the rule: only memory that nobody can name, and that this user made, is opened.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use hip_sys::{hipErrorInvalidContext, hipErrorInvalidValue};

use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub kind: Kind,
    process: u32,
    descriptor: u32,
    device: u64,
    inode: u64,
    /// The part of the file that is meant.
    pub offset: u64,
    pub bytes: u64,
}

/// What lies in the file; a handle of one kind is none of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Memory,
    Event,
    PoolPointer,
}

impl Kind {
    fn mark(self) -> [u8; 8] {
        match self {
            Kind::Memory => *b"cudawayM",
            Kind::Event => *b"cudawayE",
            Kind::PoolPointer => *b"cudawayP",
        }
    }
}

impl Ticket {
    pub fn new(kind: Kind, file: &OwnedFd, offset: usize, bytes: usize) -> Result<Ticket> {
        let about = std::fs::metadata(format!("/proc/self/fd/{}", file.as_raw_fd()))
            .map_err(|_| hipErrorInvalidValue)?;
        Ok(Ticket {
            kind,
            process: std::process::id(),
            descriptor: file.as_raw_fd().cast_unsigned(),
            device: about.dev(),
            inode: about.ino(),
            offset: offset as u64,
            bytes: bytes as u64,
        })
    }

    pub fn write(&self) -> [u8; 64] {
        let mut out = [0; 64];
        let words = [
            self.kind.mark(),
            (u64::from(self.process) | u64::from(self.descriptor) << 32).to_le_bytes(),
            self.device.to_le_bytes(),
            self.inode.to_le_bytes(),
            self.offset.to_le_bytes(),
            self.bytes.to_le_bytes(),
        ];
        out[..48].copy_from_slice(words.as_flattened());
        out
    }

    /// A program's bytes, which may be anything.
    pub fn read(kind: Kind, bytes: &[u8; 64]) -> Result<Ticket> {
        let word =
            |index: usize| bytes[index * 8..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if bytes[..8] != kind.mark() {
            return Err(hipErrorInvalidValue);
        }
        Ok(Ticket {
            kind,
            process: word(1) as u32,
            descriptor: (word(1) >> 32) as u32,
            device: word(2),
            inode: word(3),
            offset: word(4),
            bytes: word(5),
        })
    }

    /// Whether it was written by this process.
    pub fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// The file, if it is still the one that was meant.
    pub fn open(&self) -> Result<OwnedFd> {
        // HIP: a handle is for other processes.
        if self.is_own() {
            return Err(hipErrorInvalidContext);
        }
        let wrong = |_| hipErrorInvalidValue;
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        // Looked at before it is opened: a process may hold open for reading what this one may write, or a device.
        let there = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path).map_err(wrong)?;
        let about = there.metadata().map_err(wrong)?;
        // SAFETY: it has no parameters and cannot fail.
        let user = unsafe { libc::geteuid() };
        if !about.is_file() || about.nlink() != 0 || about.uid() != user {
            return Err(hipErrorInvalidValue);
        }
        let path = format!("/proc/self/fd/{}", there.as_raw_fd());
        let file: File = OpenOptions::new().read(true).write(true).open(path).map_err(wrong)?;
        self.check(&file)?;
        Ok(file.into())
    }

    pub fn is_of(&self, file: &OwnedFd) -> bool {
        let file = file.try_clone().map(File::from);
        file.is_ok_and(|file| self.check(&file).is_ok())
    }

    fn check(&self, file: &File) -> Result {
        let about = file.metadata().map_err(|_| hipErrorInvalidValue)?;
        let is_inside = self.offset.checked_add(self.bytes).is_some_and(|end| end <= about.len());
        if (about.dev(), about.ino()) == (self.device, self.inode) && is_inside {
            Ok(())
        } else {
            Err(hipErrorInvalidValue)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mapped;

    #[test]
    fn a_ticket_survives_its_64_bytes_and_is_of_one_kind() {
        let file = mapped::file(8192).unwrap();
        let ticket = Ticket::new(Kind::Memory, &file, 4096, 100).unwrap();
        let bytes = ticket.write();
        assert_eq!(Ticket::read(Kind::Memory, &bytes), Ok(ticket));
        assert_eq!(Ticket::read(Kind::Event, &bytes), Err(hipErrorInvalidValue));
        assert!(ticket.is_of(&file) && !ticket.is_of(&mapped::file(8192).unwrap()));
        assert_eq!(ticket.open().unwrap_err(), hipErrorInvalidContext, "not in its own process");
    }

    /// As somebody would write it who wants a file of this user's overwritten.
    fn forged(process: &std::process::Child, descriptor: u32, file: &File) -> Ticket {
        let about = file.metadata().unwrap();
        let (device, inode) = (about.dev(), about.ino());
        let bytes = about.len();
        Ticket { kind: Kind::Memory, process: process.id(), descriptor, device, inode, offset: 0, bytes }
    }

    #[test]
    fn a_ticket_for_a_file_that_has_a_name_opens_nothing() {
        let memory = File::from(mapped::file(4096).unwrap());
        let path = std::env::temp_dir().join(format!("cudaway-ticket-{}", std::process::id()));
        std::fs::write(&path, [7; 4096]).unwrap();
        // Held open for reading alone: a ticket must not make more of it.
        let named = File::open(&path).unwrap();
        let output = memory.try_clone().unwrap();
        let mut holder = std::process::Command::new("sleep");
        let mut holder = holder.arg("60").stdin(named.try_clone().unwrap()).stdout(output).spawn().unwrap();
        let of_memory = forged(&holder, 1, &memory).open();
        let of_file = forged(&holder, 0, &named).open();
        holder.kill().unwrap();
        holder.wait().unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(of_memory.is_ok());
        assert_eq!(of_file.unwrap_err(), hipErrorInvalidValue);
    }

    #[test]
    fn a_ticket_that_leaves_its_file_opens_nothing() {
        let file = mapped::file(4096).unwrap();
        let ticket = Ticket::new(Kind::Memory, &file, 4000, 200).unwrap();
        assert!(!ticket.is_of(&file));
    }
}
