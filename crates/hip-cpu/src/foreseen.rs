//! Launches that are foreseen: those of the last time, of which the disk cache has a list for each module, and those of graphs. Cores
//! that have nothing to do get their code ready.
//!
//! A launch that comes sooner than the code waits for it if somebody is making it, else it makes it itself.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cache::{Cache, Key, KeyBuilder};
use parking_lot::Mutex;

use crate::exec::{Heat, pool};
use crate::module::{self, Function, Module};
use crate::pending;

/// A kernel of a module, by its name, and how it is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    pub kernel: String,
    pub block: [u32; 3],
    pub is_clustered: bool,
}

/// Entries of a list. The oldest goes first.
const MOST: usize = 128;

/// Of a module: what it was launched with before, and now.
pub struct List(Mutex<Vec<Launched>>);

impl List {
    /// What the cache says of a module of these texts.
    pub fn of(digest: &[u8; 32]) -> List {
        let bytes = Cache::global().get_quietly(&key(digest), "a list");
        List(Mutex::new(bytes.and_then(|bytes| unpack(&bytes)).unwrap_or_default()))
    }

    /// The cache has it from now on.
    pub fn add(&self, digest: &[u8; 32], launched: Launched) {
        let packed = {
            let mut all = self.0.lock();
            if !enter(&mut all, launched) {
                return;
            }
            pack(&all)
        };
        Cache::global().put(&key(digest), &packed);
    }
}

/// Whether it is new.
fn enter(all: &mut Vec<Launched>, launched: Launched) -> bool {
    if all.contains(&launched) {
        return false;
    }
    if all.len() >= MOST {
        all.remove(0);
    }
    all.push(launched);
    true
}

/// Neither the translator nor the processor is in it: code that is not there for these is made before it is asked for.
fn key(digest: &[u8; 32]) -> Key {
    KeyBuilder::new("cpu launches", "1").field(digest).finish()
}

/// Three sides, whether it is clustered, the length of the name, the name.
fn pack(all: &[Launched]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Launched { kernel, block, is_clustered } in all {
        let [x, y, z] = *block;
        for number in [x, y, z, u32::from(*is_clustered), kernel.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(kernel.as_bytes());
    }
    bytes
}

fn unpack(mut bytes: &[u8]) -> Option<Vec<Launched>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut number = || {
            let (first, rest) = bytes.split_first_chunk()?;
            bytes = rest;
            Some(u32::from_le_bytes(*first))
        };
        let (block, is_clustered) = ([number()?, number()?, number()?], number()? != 0);
        let n_bytes = number()? as usize;
        let (name, rest) = bytes.split_at_checked(n_bytes)?;
        bytes = rest;
        all.push(Launched { kernel: std::str::from_utf8(name).ok()?.to_owned(), block, is_clustered });
    }
    Some(all)
}

/// The module was loaded: what was launched the last time is got ready. A process that has one core to itself needs that for the
/// program.
pub fn loaded(module: &Arc<Module>) {
    if pool::workers() < 2 || config::get().sanitize {
        return;
    }
    let before = module.launches().0.lock().clone();
    for launched in before {
        get_ready(module, launched, 0);
    }
}

/// The function will be launched with such blocks, sooner than what is only likely to be.
pub fn prepare(function: &Arc<Function>, block: [u32; 3], is_clustered: bool) {
    if config::get().sanitize || function.has_code(block, is_clustered) {
        return;
    }
    let launched = Launched { kernel: function.header().name.clone(), block, is_clustered };
    get_ready(&function.module, launched, 1);
}

fn get_ready(module: &Arc<Module>, launched: Launched, heat: u64) {
    let wish = Heat { ns: AtomicU64::new(heat), ..Heat::default() };
    let module = Arc::downgrade(module);
    pending::ask_idly(launched.kernel.clone(), Arc::new(wish), move || {
        // It may have been unloaded meanwhile.
        let Some(module) = module.upgrade() else { return };
        let function = module.function(&launched.kernel).and_then(module::function_of_handle);
        if let Ok(function) = function {
            function.get_ready(launched.block, launched.is_clustered);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launched(kernel: &str, side: u32) -> Launched {
        Launched { kernel: kernel.to_owned(), block: [side, 2, 1], is_clustered: side == 7 }
    }

    #[test]
    fn what_is_packed_comes_back_and_what_is_damaged_does_not() {
        let all = vec![launched("k", 32), launched("", 1), launched("ä", 7)];
        let bytes = pack(&all);
        assert_eq!(unpack(&bytes), Some(all));
        assert_eq!(unpack(&bytes[..bytes.len() - 1]), None);
        assert_eq!(unpack(&[]), Some(vec![]));
    }

    #[test]
    fn a_list_has_each_launch_once_and_is_bounded() {
        let mut all = vec![];
        let entered: Vec<bool> = [1, 2, 1].map(|side| enter(&mut all, launched("k", side))).to_vec();
        assert_eq!((entered, &all), (vec![true, true, false], &vec![launched("k", 1), launched("k", 2)]));
        for side in 3..=MOST as u32 + 1 {
            enter(&mut all, launched("k", side));
        }
        assert_eq!((all.len(), &all[0]), (MOST, &launched("k", 2)));
    }
}
