//! A library of ROCm's as tests need it: C text of the functions of a release (tools/data/hip), each of which writes down its call, and
//! C functions that call ours.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use libloading::os::unix::Library;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// What each recorder's text begins with. A function says what it writes down by `PUT`, as printf does, and ends with
/// `return answer(__func__);`.
pub const BEGINNING: &str = r#"
#include <stdio.h>
static char text[1 << 16];
static unsigned long used;
#define PUT(...) (used += snprintf(text + used, sizeof text - used, __VA_ARGS__))
const char *recorded(void) { text[used] = 0; used = 0; return text; }
const char *next_function;
int next_answer;
static int answer(const char *name) {
    int now = next_answer;
    if (next_function && __builtin_strcmp(name, next_function)) return 0;
    next_function = 0;
    next_answer = 0;
    return now;
}
"#;

/// A file of tools/data.
///
/// # Panics
/// It is not there, or of another form.
#[must_use]
pub fn facts<T: DeserializeOwned>(path: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/data").join(path);
    serde_json::from_str(&std::fs::read_to_string(&path).expect("a file of tools/data")).expect("its form")
}

/// A function of NVIDIA's, as tools/data has it.
#[derive(Debug, Deserialize)]
pub struct Signature {
    pub params: Vec<Param>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Param {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
}

/// Name → parameters, of what a release of a library of ROCm's exports.
///
/// # Panics
/// tools/data has no such library, or in another form.
#[must_use]
pub fn exports(library: &str, release: &str) -> BTreeMap<String, Vec<Param>> {
    let functions: BTreeMap<String, BTreeMap<String, String>> = facts(&format!("hip/{library}.json"));
    let of = |forms: BTreeMap<String, String>| {
        let form = forms.into_iter().find(|(releases, _)| releases.split(' ').any(|one| one == release))?.1;
        // What it returns is not looked at.
        Some(form.split(" -> ").next()?.split(", ").map(param).collect())
    };
    functions.into_iter().filter_map(|(name, forms)| Some((name, of(forms)?))).collect()
}

fn param(text: &str) -> Param {
    let (name, ty) = text.split_once(": ").expect("a name and its type");
    Param { name: name.to_owned(), ty: ty.to_owned() }
}

/// Compiles a library from C text.
///
/// # Panics
/// There is no C compiler, or it refuses the text.
#[must_use]
pub fn compile(dir: &Path, name: &str, text: &str) -> PathBuf {
    let (source, out) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&source, text).expect("a file in the test's folder");
    let status =
        Command::new("cc").args(["-shared", "-fPIC", "-O0", "-w", "-o"]).arg(&out).arg(&source).status();
    assert!(status.expect("a C compiler, `cc`").success());
    out
}

/// What the compiler makes of the text, once for all tests of the process: each loads a copy, with variables of its own.
fn once_compiled(text: &str) -> Arc<Vec<u8>> {
    type Made = Arc<OnceLock<Arc<Vec<u8>>>>;
    static MADE: Mutex<BTreeMap<String, Made>> = Mutex::new(BTreeMap::new());
    let made = MADE.lock().expect("no panic").entry(text.to_owned()).or_default().clone();
    let compiled = || {
        let dir = crate::temporary().expect("a folder");
        Arc::new(std::fs::read(compile(dir.path(), "recorder.so", text)).expect("what was compiled"))
    };
    made.get_or_init(compiled).clone()
}

/// Such a library, opened by what is tested and by the test.
pub struct Recorder<L: 'static> {
    pub library: &'static L,
    object: Library,
    _dir: TempDir,
}

impl<L> Recorder<L> {
    /// # Panics
    /// The text is none of a library, or `open` refuses it.
    pub fn of(file: &str, text: &str, open: impl FnOnce(&OsStr) -> Result<L, String>) -> Recorder<L> {
        let dir = crate::temporary().expect("a folder");
        let path = dir.path().join(file);
        std::fs::write(&path, &*once_compiled(text)).expect("a file in the test's folder");
        let library = Box::leak(Box::new(open(path.as_os_str()).expect("what the text lacks")));
        // SAFETY: a library without constructors; the same once more.
        let object = unsafe { Library::new(&path) }.expect("a library");
        Recorder { library, object, _dir: dir }
    }

    /// What was called since the last time, a line each.
    ///
    /// # Panics
    /// Its text does not begin with [`BEGINNING`].
    pub fn recorded(&self) -> String {
        // SAFETY: the function is BEGINNING's, and so is the string.
        unsafe {
            let recorded = self.object.get::<extern "C" fn() -> *const c_char>(b"recorded\0").expect("it");
            CStr::from_ptr(recorded()).to_string_lossy().into_owned()
        }
    }

    /// What the next call answers, whichever it is.
    pub fn answer_next(&self, status: c_int) {
        self.answer(core::ptr::null(), status);
    }

    /// What the next call of the function answers.
    pub fn answer_to(&self, function: &'static CStr, status: c_int) {
        self.answer(function.as_ptr(), status);
    }

    fn answer(&self, function: *const c_char, status: c_int) {
        // SAFETY: variables of BEGINNING's, of these types; a name that it reads is there for good.
        unsafe {
            **self.object.get::<*mut *const c_char>(b"next_function\0").expect("it") = function;
            **self.object.get::<*mut c_int>(b"next_answer\0").expect("it") = status;
        }
    }
}

/// C functions that call functions of ours with arguments.
#[derive(Default)]
pub struct Callers {
    text: String,
}

impl Callers {
    /// `text`: types of C that the arguments have.
    #[must_use]
    pub fn with(text: &str) -> Callers {
        Callers { text: text.to_owned() }
    }

    /// One by its name, with each argument's type of C and value; a struct has the value as its first number.
    pub fn add(&mut self, name: &str, arguments: &[(&str, i64)]) {
        let types: String = arguments.iter().map(|(ty, _)| format!(", {ty}")).collect();
        let value = |(ty, value): &(&str, i64)| {
            let is_struct = ty.starts_with("struct");
            if is_struct { format!(", ({ty}){{{value}, 0}}") } else { format!(", ({ty}){value}LL") }
        };
        let values: String = arguments.iter().map(value).collect();
        self.text += &format!(
            "int {name}(void *first, void *f) {{ return ((int (*)(void *{types}))f)(first{values}); }}\n"
        );
    }

    /// # Panics
    /// What was added is no C text.
    #[must_use]
    pub fn compiled(self) -> Caller {
        let dir = crate::temporary().expect("a folder");
        let path = compile(dir.path(), "caller.so", &self.text);
        // SAFETY: functions of this file, without constructors.
        Caller { object: unsafe { Library::new(path) }.expect("a library"), _dir: dir }
    }
}

/// The same, compiled.
pub struct Caller {
    object: Library,
    _dir: TempDir,
}

impl Caller {
    /// What the function answers.
    ///
    /// # Panics
    /// There is no caller of the name.
    ///
    /// # Safety
    /// The function takes the first argument and then those that the name was added with.
    pub unsafe fn call<T>(&self, name: &str, first: &T, function: *const c_void) -> c_int {
        type Call<T> = unsafe extern "C" fn(*const T, *const c_void) -> c_int;
        // SAFETY: the caller's word.
        unsafe {
            let call = self.object.get::<Call<T>>(format!("{name}\0").as_bytes()).expect("a caller");
            call(first, function)
        }
    }
}
