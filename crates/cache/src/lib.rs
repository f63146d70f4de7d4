//! The disk cache: what a program compiled once is read back by the next.
//!
//! Entries are named by the BLAKE3 hash of everything that their content depends on, and carry their own checksum.
//! An entry is written under a temporary name and renamed, so readers see all of it or nothing. A cache that is
//! damaged, full or not writable costs time, never correctness: every failure reads as "not there".
//!
//! Bound: the configured number of bytes; the entries used longest ago (by modification time, renewed on each hit)
//! go first.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What an entry is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    fn file_name(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Collects everything that a content depends on. Fields are told apart, so `ab`+`c` is not `a`+`bc`.
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// `kind` separates users of the cache; `version` is the producer's own.
    pub fn new(kind: &str, version: &str) -> KeyBuilder {
        KeyBuilder(blake3::Hasher::new()).field(kind.as_bytes()).field(version.as_bytes())
    }

    #[must_use]
    pub fn field(mut self, bytes: &[u8]) -> KeyBuilder {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub fn finish(self) -> Key {
        Key(*self.0.finalize().as_bytes())
    }
}

/// BLAKE3 of `bytes`, for keys built of large parts that are hashed once.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

/// As [`digest`], of several parts that are told apart.
pub fn digest_of<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> [u8; 32] {
    parts.into_iter().fold(KeyBuilder::new("parts", ""), KeyBuilder::field).finish().0
}

/// A folder of entries.
pub struct Cache {
    folder: Option<PathBuf>,
    max_bytes: u64,
    /// Bytes in the folder as far as this process knows; `u64::MAX` before it looked.
    known_bytes: AtomicU64,
    complained: AtomicBool,
}

const MAGIC: [u8; 8] = *b"CUDAWAYC";
const FORMAT: u32 = 1;
/// Magic, format, 4 bytes of 0, key, payload length, BLAKE3 of the payload.
const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 8 + 32;
const SUFFIX: &str = "entry";

#[derive(Debug, PartialEq, Eq)]
enum Damage {
    Header,
    Length,
    Checksum,
}

impl Cache {
    /// The cache the environment asks for; one per shared object.
    pub fn global() -> &'static Cache {
        static CACHE: OnceLock<Cache> = OnceLock::new();
        CACHE.get_or_init(|| {
            let config = config::get();
            Cache::new(config.cache_dir.clone(), config.cache_max_bytes)
        })
    }

    /// A cache in `folder`, made when first written to; without a folder, or with 0 bytes, it keeps nothing.
    pub fn new(folder: Option<PathBuf>, max_bytes: u64) -> Cache {
        Cache {
            folder: folder.filter(|_| max_bytes > 0),
            max_bytes,
            known_bytes: AtomicU64::new(u64::MAX),
            complained: AtomicBool::new(false),
        }
    }

    /// The content stored under `key`. `what` names it in the log.
    pub fn get(&self, key: &Key, what: &str) -> Option<Vec<u8>> {
        let path = self.path(key)?;
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.complain(&path, &error);
                }
                tracing::info!(target: "cudaway::cache", "cache miss {what}");
                return None;
            }
        };
        let mut bytes = Vec::new();
        if let Err(error) = file.read_to_end(&mut bytes) {
            self.complain(&path, &error);
            return None;
        }
        match payload(&bytes, key) {
            Ok(payload) => {
                let payload = payload.to_vec();
                // Least recently used goes first, so a hit makes it recent. Read-only caches stay as they are.
                let _ = file.set_modified(SystemTime::now());
                tracing::debug!(target: "cudaway::cache", "cache hit {what}");
                Some(payload)
            }
            Err(damage) => {
                tracing::warn!(
                    target: "cudaway::cache",
                    "cache entry damaged ({damage:?}), rebuilding {what}: {}", path.display()
                );
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Stores `payload` under `key`.
    pub fn put(&self, key: &Key, payload: &[u8]) {
        let Some(path) = self.path(key) else { return };
        if (HEADER_BYTES + payload.len()) as u64 > self.max_bytes {
            return;
        }
        match write(&path, key, payload) {
            Ok(bytes) => self.bound(bytes),
            Err(error) => self.complain(&path, &error),
        }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        let name = key.file_name();
        Some(self.folder.as_ref()?.join(&name[..2]).join(&name[2..]).with_extension(SUFFIX))
    }

    /// Said once: a cache that cannot be used is no news the second time.
    fn complain(&self, path: &Path, error: &io::Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(target: "cudaway::cache", "the cache cannot be used: {}: {error}", path.display());
        }
    }

    /// Removes the oldest entries when the folder has grown beyond its bound.
    fn bound(&self, added: u64) {
        let known = self.known_bytes.load(Ordering::Relaxed);
        if known != u64::MAX && known + added <= self.max_bytes {
            self.known_bytes.fetch_add(added, Ordering::Relaxed);
            return;
        }
        let Some(folder) = &self.folder else { return };
        let mut entries = entries(folder);
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        if total > self.max_bytes {
            // Down to 7/8, so that not every write has to look again.
            let goal = self.max_bytes - self.max_bytes / 8;
            entries.sort_by_key(|entry| entry.used);
            let mut n_removed = 0;
            for entry in &entries {
                if total <= goal {
                    break;
                }
                if fs::remove_file(&entry.path).is_ok() {
                    total -= entry.bytes;
                    n_removed += 1;
                }
            }
            tracing::debug!(target: "cudaway::cache", "cache full: {n_removed} oldest entries removed");
        }
        self.known_bytes.store(total, Ordering::Relaxed);
    }
}

fn payload<'b>(bytes: &'b [u8], key: &Key) -> Result<&'b [u8], Damage> {
    let (header, payload) = bytes.split_at_checked(HEADER_BYTES).ok_or(Damage::Header)?;
    if header[..8] != MAGIC || header[8..12] != FORMAT.to_le_bytes() || header[16..48] != key.0 {
        return Err(Damage::Header);
    }
    if header[48..56] != (payload.len() as u64).to_le_bytes() {
        return Err(Damage::Length);
    }
    if header[56..] != digest(payload) {
        return Err(Damage::Checksum);
    }
    Ok(payload)
}

fn write(path: &Path, key: &Key, payload: &[u8]) -> io::Result<u64> {
    static N_WRITES: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let number = N_WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!("{}-{number}.tmp", std::process::id()));
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    header.extend(FORMAT.to_le_bytes());
    header.extend(0u32.to_le_bytes());
    header.extend(key.0);
    header.extend((payload.len() as u64).to_le_bytes());
    header.extend(digest(payload));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(&header).and_then(|()| file.write_all(payload)))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written.map(|()| (HEADER_BYTES + payload.len()) as u64)
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Every entry in the folder; temporary files that a crash left behind are removed on the way.
fn entries(folder: &Path) -> Vec<Entry> {
    let list = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut entries = vec![];
    for file in list(folder).flat_map(|sub| list(&sub.path()).collect::<Vec<_>>()) {
        let path = file.path();
        let Ok(data) = file.metadata() else { continue };
        let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        match path.extension().and_then(|e| e.to_str()) {
            Some(SUFFIX) => entries.push(Entry { path, bytes: data.len(), used }),
            Some("tmp") if used.elapsed().is_ok_and(|age| age > Duration::from_secs(3600)) => {
                let _ = fs::remove_file(path);
            }
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        KeyBuilder::new("test", "1").field(name.as_bytes()).finish()
    }

    fn cache(max_bytes: u64) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().join("deep/er")), max_bytes);
        (folder, cache)
    }

    #[test]
    fn what_is_put_comes_back_in_another_process_too() {
        let (folder, cache) = cache(1 << 20);
        cache.put(&key("a"), b"object code");
        assert_eq!(cache.get(&key("a"), "a").as_deref(), Some(&b"object code"[..]));
        let other = Cache::new(Some(folder.path().join("deep/er")), 1 << 20);
        assert_eq!(other.get(&key("a"), "a").as_deref(), Some(&b"object code"[..]));
        assert_eq!(other.get(&key("b"), "b"), None);
    }

    #[test]
    fn fields_are_told_apart() {
        let one = KeyBuilder::new("test", "1").field(b"ab").field(b"c").finish();
        let two = KeyBuilder::new("test", "1").field(b"a").field(b"bc").finish();
        assert_ne!(one, two);
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed_and_the_entry_goes() {
        let (_folder, cache) = cache(1 << 20);
        cache.put(&key("a"), b"0123456789");
        let path = cache.path(&key("a")).unwrap();
        let good = fs::read(&path).unwrap();
        for i in (0..good.len()).filter(|i| !(12..16).contains(i)) {
            let mut bad = good.clone();
            bad[i] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            assert_eq!(cache.get(&key("a"), "a"), None, "byte {i}");
            assert!(!path.exists());
        }
        for len in 0..good.len() {
            fs::write(&path, &good[..len]).unwrap();
            assert_eq!(cache.get(&key("a"), "a"), None, "{len} bytes");
        }
        cache.put(&key("a"), b"again");
        assert_eq!(cache.get(&key("a"), "a").as_deref(), Some(&b"again"[..]));
    }

    #[test]
    fn an_entry_under_the_wrong_name_is_not_taken() {
        let (_folder, cache) = cache(1 << 20);
        cache.put(&key("a"), b"a's");
        let wrong = cache.path(&key("b")).unwrap();
        fs::create_dir_all(wrong.parent().unwrap()).unwrap();
        fs::copy(cache.path(&key("a")).unwrap(), wrong).unwrap();
        assert_eq!(cache.get(&key("b"), "b"), None);
    }

    #[test]
    fn the_bound_holds_and_the_least_recently_used_goes_first() {
        let (_folder, cache) = cache(10_000);
        let old = SystemTime::now() - Duration::from_secs(1000);
        for i in 0..8 {
            cache.put(&key(&i.to_string()), &[i; 1000]);
            let file = File::open(cache.path(&key(&i.to_string())).unwrap()).unwrap();
            file.set_modified(old + Duration::from_secs(u64::from(i))).unwrap();
        }
        assert!(cache.get(&key("0"), "0").is_some(), "the hit makes it the newest");
        for i in 8..11 {
            cache.put(&key(&i.to_string()), &[i; 1000]);
        }
        assert!(cache.get(&key("0"), "0").is_some());
        assert!(cache.get(&key("1"), "1").is_none());
        assert!(cache.get(&key("10"), "10").is_some());
        let total: u64 = entries(cache.folder.as_ref().unwrap()).iter().map(|e| e.bytes).sum();
        assert!(total <= 10_000, "{total}");
    }

    #[test]
    fn a_cache_that_cannot_be_written_keeps_nothing_and_says_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, b"").unwrap();
        let cache = Cache::new(Some(file.join("below a file")), 1 << 20);
        cache.put(&key("a"), b"lost");
        assert_eq!(cache.get(&key("a"), "a"), None);
        assert_eq!(Cache::new(None, 1 << 20).get(&key("a"), "a"), None);
    }
}
