//! The disk cache: what a program compiled once is read back by the next.
//!
//! Entries are named by the BLAKE3 hash of everything that their content depends on, and carry their own checksum.
//! An entry is written under a temporary name and renamed, so readers see all of it or nothing. A cache that is
//! damaged, full or not writable costs time, never correctness: every failure reads as "not there". It holds machine code, so what
//! somebody else could have written is neither read nor added to ([`trusted`] has the rule).
//!
//! Bound: the configured number of bytes; the entries used longest ago (by modification time, renewed on each hit)
//! go first.

#![forbid(unsafe_code)]

pub mod dump;
pub mod trusted;

use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use trusted::{Error, Folder, Readers};

/// What an entry is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    /// The names of the folder and of the file in it.
    fn names(&self) -> (String, String) {
        let mut folder: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let file = format!("{}.{SUFFIX}", folder.split_off(FOLDER_DIGITS));
        (folder, file)
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

/// Texts of so many bytes together the driver looks into when it loads them, which takes about 2 ms. Programs that make PTX while they
/// run make short texts, one or a few kernels each, and expect the load to say what is wrong with them.
pub const SHORT_BYTES: usize = 64 << 10;

/// What texts are found by in which nothing is wrong: the driver then need not look into them.
pub fn nothing_wrong<'t>(translator: &str, texts: impl IntoIterator<Item = &'t [u8]>) -> Key {
    texts.into_iter().fold(KeyBuilder::new("nothing wrong", translator), KeyBuilder::field).finish()
}

/// A folder of entries that this process adds to, and others behind it that it only reads.
pub struct Cache {
    own: Option<Place>,
    /// In the order in which they are asked.
    others: Vec<Place>,
    max_bytes: u64,
    /// Bytes in the own folder as far as this process knows; `u64::MAX` before it looked.
    known_bytes: AtomicU64,
}

/// A folder of entries.
struct Place {
    path: PathBuf,
    /// Entries are added, renewed and removed there.
    is_own: bool,
    /// Of what is made there.
    readers: Readers,
    complained: AtomicBool,
}

const MAGIC: [u8; 8] = *b"CUDAWAYC";
const FORMAT: u32 = 1;
/// Magic, format, 4 bytes of 0, key, payload length, BLAKE3 of the payload.
const HEADER_BYTES: usize = 8 + 4 + 4 + 32 + 8 + 32;
const SUFFIX: &str = "entry";
const TEMPORARY: &str = "tmp";
/// Hexadecimal digits of a key that name its folder.
const FOLDER_DIGITS: usize = 2;

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
            Cache::new(config.cache_dir.clone(), config.cache_max_bytes).with_others(&config.cache_path)
        })
    }

    /// A cache in `folder`, made when first written to; without a folder, or with 0 bytes, it keeps nothing.
    pub fn new(folder: Option<PathBuf>, max_bytes: u64) -> Cache {
        let own = folder.filter(|_| max_bytes > 0).map(|path| Place::new(path, true, Readers::User));
        Cache { own, others: vec![], max_bytes, known_bytes: AtomicU64::new(u64::MAX) }
    }

    /// One without a bound that all users may read, to be put where others look for one.
    pub fn to_ship(folder: PathBuf) -> Cache {
        let own = Some(Place::new(folder, true, Readers::All));
        Cache { own, ..Cache::new(None, u64::MAX) }
    }

    /// With these behind it, which are only read: nothing in them is added, renewed or removed.
    #[must_use]
    pub fn with_others(mut self, folders: &[PathBuf]) -> Cache {
        let others = folders.iter().map(|path| Place::new(path.clone(), false, Readers::User));
        self.others.extend(others);
        self
    }

    /// The content stored under `key`. `what` names it in the log.
    pub fn get(&self, key: &Key, what: &str) -> Option<Vec<u8>> {
        self.get_first(&[*key], what).map(|(_, payload)| payload)
    }

    /// As [`Cache::get`], of what is no news when it is not there.
    pub fn get_quietly(&self, key: &Key, what: &str) -> Option<Vec<u8>> {
        self.own.iter().chain(&self.others).find_map(|place| place.get(key, what))
    }

    /// The content stored under the first of these keys that any of the folders has something under, and which key that is.
    pub fn get_first(&self, keys: &[Key], what: &str) -> Option<(usize, Vec<u8>)> {
        let places = || self.own.iter().chain(&self.others);
        let found = keys.iter().enumerate().find_map(|(index, key)| {
            places().find_map(|place| place.get(key, what)).map(|payload| (index, payload))
        });
        if found.is_none() && places().next().is_some() {
            tracing::info!(target: "cudaway::cache", "cache miss {what}");
        }
        found
    }

    /// Stores `payload` under `key`; where that cannot be done the log says so.
    pub fn put(&self, key: &Key, payload: &[u8]) {
        if let (Err(error), Some(own)) = (self.store(key, payload), &self.own) {
            own.complain(&error);
        }
    }

    /// As [`Cache::put`], for whoever wants to know.
    ///
    /// # Errors
    /// The folder cannot be written to, or is not to be trusted.
    pub fn store(&self, key: &Key, payload: &[u8]) -> Result<(), Error> {
        let Some(own) = &self.own else { return Ok(()) };
        if (HEADER_BYTES + payload.len()) as u64 > self.max_bytes {
            return Ok(());
        }
        let folder = Folder::create_for(&own.path, own.readers)?;
        let bytes = write(&folder, key, payload)?;
        self.bound(&folder, bytes);
        Ok(())
    }

    /// Nobody will ask for `key` any more. What another folder than the user's own has stays.
    pub fn forget(&self, key: &Key) {
        let Some(own) = &self.own else { return };
        let (sub, name) = key.names();
        if let Ok(folder) = Folder::open(&own.path).and_then(|folder| folder.folder(&sub)) {
            let _ = folder.remove_file(&name);
        }
    }

    /// Removes the oldest entries when the folder has grown beyond its bound.
    fn bound(&self, folder: &Folder, added: u64) {
        let known = self.known_bytes.load(Ordering::Relaxed);
        if known != u64::MAX && known + added <= self.max_bytes {
            self.known_bytes.fetch_add(added, Ordering::Relaxed);
            return;
        }
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
                if entry.folder.remove_file(&entry.name).is_ok() {
                    total -= entry.bytes;
                    n_removed += 1;
                }
            }
            tracing::debug!(target: "cudaway::cache", "cache full: {n_removed} oldest entries removed");
        }
        self.known_bytes.store(total, Ordering::Relaxed);
    }
}

impl Place {
    fn new(path: PathBuf, is_own: bool, readers: Readers) -> Place {
        Place { path, is_own, readers, complained: AtomicBool::new(false) }
    }

    fn get(&self, key: &Key, what: &str) -> Option<Vec<u8>> {
        let (sub, name) = key.names();
        let folder = Folder::open(&self.path).and_then(|folder| folder.folder(&sub));
        let found = folder.and_then(|folder| {
            let mut file = folder.file(&name)?;
            let mut bytes = Vec::new();
            match file.read_to_end(&mut bytes) {
                Ok(_) => Ok((folder, file, bytes)),
                Err(error) => Err(Error::Io { path: folder.path().join(&name), error }),
            }
        });
        let (folder, file, bytes) = match found {
            Ok(found) => found,
            Err(error) => {
                if !error.is_absence() {
                    self.complain(&error);
                }
                return None;
            }
        };
        let path = || folder.path().join(&name);
        match payload(&bytes, key) {
            Ok(payload) => {
                if self.is_own {
                    // Least recently used goes first, so a hit makes it recent. One of root's stays as it is.
                    let _ = file.set_modified(SystemTime::now());
                }
                tracing::debug!(target: "cudaway::cache", "cache hit {what}: {}", path().display());
                Some(payload.to_vec())
            }
            Err(damage) if self.is_own => {
                tracing::warn!(
                    target: "cudaway::cache",
                    "cache entry damaged ({damage:?}), rebuilding {what}: {}", path().display()
                );
                let _ = folder.remove_file(&name);
                None
            }
            Err(damage) => {
                tracing::warn!(
                    target: "cudaway::cache",
                    "cache entry damaged ({damage:?}), not used for {what}: {}", path().display()
                );
                None
            }
        }
    }

    /// Said once: a cache that cannot be used is no news the second time.
    fn complain(&self, error: &Error) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            if error.is_distrust() {
                tracing::warn!(
                    target: "cudaway::cache",
                    "the cache is not used, since somebody else could have put code there: {error}"
                );
            } else {
                tracing::warn!(target: "cudaway::cache", "the cache cannot be used: {error}");
            }
        }
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

fn write(folder: &Folder, key: &Key, payload: &[u8]) -> Result<u64, Error> {
    static N_WRITES: AtomicU64 = AtomicU64::new(0);
    let (sub, name) = key.names();
    let folder = folder.create_folder(&sub)?;
    let number = N_WRITES.fetch_add(1, Ordering::Relaxed);
    // Processes of several containers may have the same number and one cache.
    let time = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_nanos());
    let temporary = format!("{}-{number}-{time}.{TEMPORARY}", std::process::id());
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend(MAGIC);
    header.extend(FORMAT.to_le_bytes());
    header.extend(0u32.to_le_bytes());
    header.extend(key.0);
    header.extend((payload.len() as u64).to_le_bytes());
    header.extend(digest(payload));
    let fill = |mut file: File| file.write_all(&header).and_then(|()| file.write_all(payload));
    let io = |error| Error::Io { path: folder.path().join(&temporary), error };
    let file = folder.create_file(&temporary)?;
    let written = fill(file).map_err(io).and_then(|()| folder.rename(&temporary, &name));
    if written.is_err() {
        let _ = folder.remove_file(&temporary);
    }
    written.map(|()| (HEADER_BYTES + payload.len()) as u64)
}

struct Entry {
    folder: Rc<Folder>,
    name: String,
    bytes: u64,
    used: SystemTime,
}

/// Every entry in the folder; temporary files that a crash left behind are removed on the way.
fn entries(folder: &Folder) -> Vec<Entry> {
    let mut entries = vec![];
    let is_ours =
        |name: &String| name.len() == FOLDER_DIGITS && name.bytes().all(|digit| digit.is_ascii_hexdigit());
    for sub in folder.names().into_iter().filter(is_ours).filter_map(|name| folder.folder(&name).ok()) {
        let sub = Rc::new(sub);
        for name in sub.names() {
            let Some((bytes, used)) = sub.look(&name) else { continue };
            match name.rsplit_once('.') {
                Some((_, SUFFIX)) => entries.push(Entry { folder: sub.clone(), name, bytes, used }),
                Some((_, TEMPORARY)) if used.elapsed().is_ok_and(|age| age > Duration::from_secs(3600)) => {
                    let _ = sub.remove_file(&name);
                }
                _ => {}
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    impl Cache {
        fn folder(&self) -> &std::path::Path {
            &self.own.as_ref().unwrap().path
        }

        /// Where an entry lies.
        fn path(&self, key: &Key) -> PathBuf {
            let (sub, name) = key.names();
            self.folder().join(sub).join(name)
        }
    }

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
        let path = cache.path(&key("a"));
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
        let wrong = cache.path(&key("b"));
        fs::create_dir_all(wrong.parent().unwrap()).unwrap();
        fs::copy(cache.path(&key("a")), wrong).unwrap();
        assert_eq!(cache.get(&key("b"), "b"), None);
    }

    #[test]
    fn the_bound_holds_and_the_least_recently_used_goes_first() {
        let (_folder, cache) = cache(10_000);
        let old = SystemTime::now() - Duration::from_secs(1000);
        for i in 0..8 {
            cache.put(&key(&i.to_string()), &[i; 1000]);
            let file = File::open(cache.path(&key(&i.to_string()))).unwrap();
            file.set_modified(old + Duration::from_secs(u64::from(i))).unwrap();
        }
        assert!(cache.get(&key("0"), "0").is_some(), "the hit makes it the newest");
        for i in 8..11 {
            cache.put(&key(&i.to_string()), &[i; 1000]);
        }
        assert!(cache.get(&key("0"), "0").is_some());
        assert!(cache.get(&key("1"), "1").is_none());
        assert!(cache.get(&key("10"), "10").is_some());
        let total: u64 = entries(&Folder::open(cache.folder()).unwrap()).iter().map(|e| e.bytes).sum();
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

    /// A cache with an entry, and what an attacker does to it.
    fn attacked(attack: impl Fn(&Cache, &std::path::Path)) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let (_folder, cache) = cache(1 << 20);
        cache.put(&key("a"), b"ours");
        attack(&cache, cache.folder());
        let old = cache.get(&key("a"), "a");
        cache.put(&key("b"), b"new");
        (old, cache.get(&key("b"), "b"))
    }

    fn chmod(path: &std::path::Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_cache_that_others_may_write_is_neither_read_nor_written() {
        assert_eq!(attacked(|_, _| {}), (Some(b"ours".to_vec()), Some(b"new".to_vec())));
        for mode in [0o770, 0o707, 0o1777] {
            assert_eq!(attacked(|_, folder| chmod(folder, mode)), (None, None), "{mode:o}");
        }
    }

    #[test]
    fn a_cache_that_is_a_link_is_neither_read_nor_written() {
        let moved = |_: &Cache, folder: &std::path::Path| {
            let real = folder.with_file_name("moved");
            fs::rename(folder, &real).unwrap();
            symlink(&real, folder).unwrap();
        };
        assert_eq!(attacked(moved), (None, None));
    }

    #[test]
    fn an_entry_or_its_folder_that_others_may_write_is_not_read_and_the_others_are() {
        let new = Some(b"new".to_vec());
        assert_eq!(attacked(|cache, _| chmod(&cache.path(&key("a")), 0o666)), (None, new.clone()));
        let sub = |cache: &Cache, _: &std::path::Path| chmod(cache.path(&key("a")).parent().unwrap(), 0o777);
        assert_eq!(attacked(sub), (None, new.clone()));
        let link = |cache: &Cache, folder: &std::path::Path| {
            let (entry, elsewhere) = (cache.path(&key("a")), folder.join("elsewhere"));
            fs::rename(&entry, &elsewhere).unwrap();
            symlink(&elsewhere, &entry).unwrap();
        };
        assert_eq!(attacked(link), (None, new));
    }

    /// A cache of no folder of its own, with this one's folder behind it.
    fn behind(cache: &Cache) -> Cache {
        Cache::new(None, 1 << 20).with_others(&[cache.folder().to_path_buf()])
    }

    #[test]
    fn caches_behind_the_own_one_are_read_and_never_changed() {
        let (_shipped, shipped) = cache(1 << 20);
        let (_own, own) = cache(1 << 20);
        shipped.put(&key("a"), b"shipped");
        let entry = shipped.path(&key("a"));
        let old = SystemTime::now() - Duration::from_secs(1000);
        File::open(&entry).unwrap().set_modified(old).unwrap();
        let both = Cache::new(Some(own.folder().to_path_buf()), 1 << 20)
            .with_others(&["/nowhere".into(), shipped.folder().to_path_buf()]);
        assert_eq!(both.get(&key("a"), "a").as_deref(), Some(&b"shipped"[..]));
        both.put(&key("a"), b"own");
        assert_eq!(both.get(&key("a"), "a").as_deref(), Some(&b"own"[..]));
        assert_eq!(behind(&shipped).get(&key("a"), "a").as_deref(), Some(&b"shipped"[..]));
        assert_eq!(fs::metadata(&entry).unwrap().modified().unwrap(), old);
        // Damaged it is not used, and stays: it is somebody else's to mend.
        fs::write(&entry, b"damaged").unwrap();
        assert_eq!(behind(&shipped).get(&key("a"), "a"), None);
        assert!(entry.exists());
    }

    #[test]
    fn the_first_key_goes_before_the_first_folder() {
        let ((_a, own), (_b, shipped)) = (cache(1 << 20), cache(1 << 20));
        own.put(&key("plain"), b"plain");
        let both = Cache::new(Some(own.folder().to_path_buf()), 1 << 20)
            .with_others(&[shipped.folder().to_path_buf()]);
        let keys = [key("best"), key("plain")];
        assert_eq!(both.get_first(&keys, "a"), Some((1, b"plain".to_vec())));
        shipped.put(&key("best"), b"best");
        assert_eq!(both.get_first(&keys, "a"), Some((0, b"best".to_vec())));
    }

    #[test]
    fn a_cache_behind_the_own_one_that_others_may_write_is_not_read() {
        let (_folder, shipped) = cache(1 << 20);
        shipped.put(&key("a"), b"ours");
        assert!(behind(&shipped).get(&key("a"), "a").is_some());
        chmod(&shipped.path(&key("a")), 0o666);
        assert_eq!(behind(&shipped).get(&key("a"), "a"), None);
        chmod(&shipped.path(&key("a")), 0o644);
        chmod(shipped.folder(), 0o777);
        assert_eq!(behind(&shipped).get(&key("a"), "a"), None);
    }
}
