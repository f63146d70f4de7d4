//! The driver's side: asks the cache, then a helper, the compilers in their order.

mod helper;
mod pool;
mod spawn;

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use cache::{Cache, Key, KeyBuilder};
use parking_lot::Mutex;

use crate::find::{Backend, backends};
use crate::protocol::{self, Reply};
use crate::{CodeObject, Error, Request};
use helper::End;
use pool::Pools;

/// What a [`Compiler`] works with.
pub struct Setup {
    /// The program `cudaway-comgr`, or where it was looked for in vain.
    pub helper: Result<PathBuf, String>,
    /// Asked in this order.
    pub backends: Vec<Backend>,
    pub cache: &'static Cache,
    /// Helpers that may run at once.
    pub n_helpers: usize,
    /// Seconds that a kernel's compilation may take.
    pub limit_s: u32,
}

/// Compiles for AMD GPUs, from any number of threads.
pub struct Compiler {
    setup: Setup,
    pools: Pools,
    /// (compiler, target) that do not go together, and why.
    strangers: Mutex<HashMap<(usize, String), String>>,
}

impl Setup {
    /// What the environment asks for.
    #[must_use]
    pub fn of_environment() -> Setup {
        let config = config::get();
        let helper = match &config.comgr_helper {
            Some(path) => {
                let may_run = config::named::program(path);
                may_run.map(|()| path.clone()).map_err(|why| format!("{}: {why}", path.display()))
            }
            None => beside_us(),
        };
        let n_helpers = std::thread::available_parallelism().map_or(1, usize::from);
        Setup {
            helper,
            backends: backends(config),
            cache: Cache::global(),
            n_helpers,
            limit_s: protocol::LIMIT_S,
        }
    }
}

const HELPER: &CStr = c"cudaway-comgr";

/// The helper lies beside the library or program that this code is linked into, or in `../lib` beside its `bin`.
fn beside_us() -> Result<PathBuf, String> {
    let here = beside_us as fn() -> Result<PathBuf, String> as *const c_void;
    let mut path = [0; loader::place::PATH_BYTES];
    loader::place::join(here, HELPER, &mut path).ok_or("the directory of this library is not known")?;
    // SAFETY: `join` ends it with a zero.
    let first = unsafe { CStr::from_ptr(path.as_ptr()) };
    let first = PathBuf::from(OsStr::from_bytes(first.to_bytes()));
    let name = OsStr::from_bytes(HELPER.to_bytes());
    let in_lib = first.parent().and_then(|folder| folder.parent()).map(|root| root.join("lib").join(name));
    // Loaded through a symbolic link in a folder that has only the link.
    let own =
        loader::place::file_name(here).map(|own| first.with_file_name(OsStr::from_bytes(own.to_bytes())));
    let real = own.and_then(|own| own.canonicalize().ok()).map(|own| own.with_file_name(name));
    let places = [Some(first.clone()), in_lib, real];
    places.into_iter().flatten().find(|path| path.exists()).ok_or(format!("no {}", first.display()))
}

impl Compiler {
    /// The one that the environment asks for; one per shared object.
    pub fn global() -> &'static Compiler {
        static COMPILER: OnceLock<Compiler> = OnceLock::new();
        COMPILER.get_or_init(|| Compiler::new(Setup::of_environment()))
    }

    #[must_use]
    pub fn new(setup: Setup) -> Compiler {
        Compiler { pools: Pools::new(setup.n_helpers.max(1)), setup, strangers: Mutex::default() }
    }

    /// The code object of `request`, from the cache or made now. Blocks for as long as the compiler takes.
    pub fn compile(&self, request: &Request) -> Result<CodeObject, Error> {
        let what = format!("{} for {}", request.name, request.target);
        let mut tried = Vec::new();
        for (index, backend) in self.setup.backends.iter().enumerate() {
            if let Some(why) = self.is_stranger(index, backend, request.target) {
                tried.push(why);
                continue;
            }
            let key = key(backend, request);
            let kept = self.setup.cache.get(&key, &what).map(CodeObject::read);
            if let Some(Ok(code)) = kept {
                return Ok(code);
            }
            let begun = Instant::now();
            match self.ask(backend, request)? {
                Reply::Done { code, log } => {
                    let code = CodeObject::read(code)?;
                    let took = begun.elapsed();
                    tracing::info!(
                        target: "cudaway::comgr",
                        "{what}: {} bytes from {backend} in {took:.1?}{}", code.bytes.len(), trailing(&log)
                    );
                    self.setup.cache.put(&key, &code.bytes);
                    return Ok(code);
                }
                Reply::Unavailable(why) => {
                    tracing::info!(target: "cudaway::comgr", "{backend} does not compile for {}: {why}", request.target);
                    self.remember_stranger(index, backend, request.target, &why);
                    tried.push(format!("{backend}: {why}"));
                }
                Reply::Refused(log) => {
                    return Err(Error::Refused { compiler: backend.to_string(), log: log.trim().to_owned() });
                }
            }
        }
        let tried = if tried.is_empty() {
            "no libamd_comgr, no clang with ld.lld".to_owned()
        } else {
            tried.join("; ")
        };
        Err(Error::NoCompiler { target: request.target.to_owned(), tried })
    }

    /// Asks a helper. One that waited for long may have ended in the moment it was asked, so an end without an answer counts
    /// only of a new one.
    fn ask(&self, backend: &Backend, request: &Request) -> Result<Reply, Error> {
        let program = self.setup.helper.as_ref().map_err(|why| Error::NoHelper(why.clone()))?;
        let sent = protocol::Request {
            compiler: backend.compiler.clone(),
            target: request.target.to_owned(),
            text: request.text.to_owned(),
            limit_s: self.setup.limit_s,
        };
        let sent = sent.encode().map_err(|error| Error::Damaged(error.to_string()))?;
        let pool = self.pools.own();
        loop {
            let mut helper = pool
                .take(program)
                .map_err(|error| Error::NoHelper(format!("{}: {error}", program.display())))?;
            let was_used = helper.was_used();
            let begun = Instant::now();
            match helper.exchange(&sent) {
                Ok(reply) => {
                    helper.keep();
                    return Ok(reply);
                }
                Err(End::Form(why)) => return Err(Error::NoHelper(format!("{}: {why}", program.display()))),
                Err(End::Gone) if was_used && begun.elapsed().as_secs() < 1 && helper.words().is_empty() => {}
                Err(End::Gone | End::Late) => {
                    let compiler = backend.to_string();
                    let limit = self.setup.limit_s;
                    if begun.elapsed().as_secs() >= u64::from(limit) {
                        return Err(Error::TimedOut { compiler, seconds: limit.into() });
                    }
                    let words = helper.words();
                    let words = if words.is_empty() { "it ended without a word".to_owned() } else { words };
                    return Err(Error::Crashed { compiler, words });
                }
            }
        }
    }

    /// Why this compiler is not asked for this target, if it said so before, to this process or to another.
    fn is_stranger(&self, index: usize, backend: &Backend, target: &str) -> Option<String> {
        let asked = (index, target.to_owned());
        let known = self.strangers.lock().get(&asked).cloned();
        let why = match known {
            Some(why) => why,
            None => {
                let kept =
                    self.setup.cache.get(&stranger_key(backend, target), "what a compiler does not know")?;
                let why = String::from_utf8_lossy(&kept).into_owned();
                self.strangers.lock().insert(asked, why.clone());
                why
            }
        };
        Some(format!("{backend}: {why}"))
    }

    fn remember_stranger(&self, index: usize, backend: &Backend, target: &str, why: &str) {
        self.strangers.lock().insert((index, target.to_owned()), why.to_owned());
        self.setup.cache.put(&stranger_key(backend, target), why.as_bytes());
    }
}

fn key(backend: &Backend, request: &Request) -> Key {
    KeyBuilder::new("gfx code object", protocol::VERSION)
        .field(request.translator.as_bytes())
        .field(backend.fingerprint().as_bytes())
        .field(request.target.as_bytes())
        .field(request.text.as_bytes())
        .finish()
}

fn stranger_key(backend: &Backend, target: &str) -> Key {
    let key = KeyBuilder::new("why a gfx target is not known", protocol::VERSION);
    key.field(backend.fingerprint().as_bytes()).field(target.as_bytes()).finish()
}

fn trailing(log: &str) -> String {
    let log = log.trim();
    if log.is_empty() { String::new() } else { format!("\n{log}") }
}
