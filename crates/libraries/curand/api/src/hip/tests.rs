//! What reaches hipRAND, looked at from its side: a library in C, with hiprand.h's signatures, that writes down each call.

use std::process::Command;

use libloading::os::unix::Library;

use super::*;

/// As of ROCm 5.3, whose hipRAND has neither orderings nor words of 64 bits; with `NEWER` as of 6.2.
const RECORDER: &str = r#"
#include <stdarg.h>
#include <stdio.h>
static char text[1 << 14];
static unsigned long used;
static int answer;
const char *said(void) { text[used] = 0; used = 0; return text; }
void next(int code) { answer = code; }
static int note(const char *form, ...)
{
    va_list list;
    va_start(list, form);
    used += vsnprintf(text + used, sizeof text - used, form, list);
    va_end(list);
    int code = answer;
    answer = 0;
    return code;
}
typedef void *G;
typedef unsigned long long W;
typedef unsigned long S;
int hiprandCreateGenerator(G *g, int type) { *g = (G)0x77; return note("create %d\n", type); }
int hiprandDestroyGenerator(G g) { return note("destroy %p\n", g); }
int hiprandSetStream(G g, void *s) { return note("stream %p %p\n", g, s); }
int hiprandSetPseudoRandomGeneratorSeed(G g, W seed) { return note("seed %p %llu\n", g, seed); }
int hiprandSetGeneratorOffset(G g, W offset) { return note("offset %p %llu\n", g, offset); }
int hiprandSetQuasiRandomGeneratorDimensions(G g, unsigned n) { return note("dimensions %p %u\n", g, n); }
int hiprandGenerateSeeds(G g) { return note("seeds %p\n", g); }
int hiprandGenerate(G g, unsigned *at, S n) { return note("gen %p %p %lu\n", g, at, n); }
int hiprandGenerateUniform(G g, float *at, S n) { return note("uniform %p %p %lu\n", g, at, n); }
int hiprandGenerateUniformDouble(G g, double *at, S n) { return note("uniform-double %p %p %lu\n", g, at, n); }
int hiprandGenerateNormal(G g, float *at, S n, float m, float d) { return note("normal %p %p %lu %g %g\n", g, at, n, m, d); }
int hiprandGenerateNormalDouble(G g, double *at, S n, double m, double d)
{
    return note("normal-double %p %p %lu %g %g\n", g, at, n, m, d);
}
int hiprandGenerateLogNormal(G g, float *at, S n, float m, float d) { return note("log-normal %p %p %lu %g %g\n", g, at, n, m, d); }
int hiprandGenerateLogNormalDouble(G g, double *at, S n, double m, double d)
{
    return note("log-normal-double %p %p %lu %g %g\n", g, at, n, m, d);
}
int hiprandGeneratePoisson(G g, unsigned *at, S n, double l) { return note("poisson %p %p %lu %g\n", g, at, n, l); }
#ifdef NEWER
int hiprandSetGeneratorOrdering(G g, int order) { return note("order %p %d\n", g, order); }
int hiprandGenerateLongLong(G g, W *at, S n) { return note("wide %p %p %lu\n", g, at, n); }
#endif
"#;

struct Recorder {
    functions: &'static Functions,
    library: Library,
    _folder: tempfile::TempDir,
}

impl Recorder {
    fn new(flags: &[&str]) -> Recorder {
        let folder = tempfile::tempdir().unwrap();
        let (source, path) = (folder.path().join("hiprand.c"), folder.path().join("libhiprand.so.1"));
        std::fs::write(&source, RECORDER).unwrap();
        let cc = Command::new("cc")
            .args(["-shared", "-fPIC", "-w"])
            .args(flags)
            .arg("-o")
            .arg(&path)
            .arg(&source)
            .status();
        assert!(cc.expect("a C compiler, `cc`").success());
        // SAFETY: a library without constructors.
        let library = unsafe { Library::new(&path) }.unwrap();
        let functions = Box::leak(Box::new(Functions::open(path.as_os_str()).unwrap()));
        Recorder { functions, library, _folder: folder }
    }

    fn said(&self) -> String {
        // SAFETY: the function's signature; its text is there until the next call.
        unsafe {
            let said: libloading::os::unix::Symbol<unsafe extern "C" fn() -> *const core::ffi::c_char> =
                self.library.get(b"said\0").unwrap();
            core::ffi::CStr::from_ptr(said()).to_str().unwrap().to_owned()
        }
    }

    /// What the next call answers.
    fn next(&self, code: c_int) {
        // SAFETY: the function's signature.
        unsafe {
            let next: libloading::os::unix::Symbol<unsafe extern "C" fn(c_int)> =
                self.library.get(b"next\0").unwrap();
            next(code);
        }
    }
}

const AT: *mut c_void = ptr::without_provenance_mut(0x500);
const STREAM: *mut c_void = ptr::without_provenance_mut(0x9);

#[test]
fn each_type_has_hiprands_number() {
    let recorder = Recorder::new(&[]);
    // hiprand.h's enumeration.
    for (kind, number) in [
        (Kind::Xorwow, 401),
        (Kind::Mrg32k3a, 402),
        (Kind::Mtgp32, 403),
        (Kind::Mt19937, 404),
        (Kind::Philox4x32, 405),
        (Kind::Sobol32, 501),
        (Kind::ScrambledSobol32, 502),
        (Kind::Sobol64, 503),
        (Kind::ScrambledSobol64, 504),
    ] {
        drop(Handle::of(recorder.functions, kind).unwrap());
        assert_eq!(recorder.said(), format!("create {number}\ndestroy 0x77\n"));
    }
}

#[test]
fn hiprand_gets_settings_and_draws() {
    let recorder = Recorder::new(&["-DNEWER"]);
    let handle = Handle::of(recorder.functions, Kind::Philox4x32).unwrap();
    recorder.said();
    for (setting, said) in [
        (Setting::Seed(u64::MAX), "seed 0x77 18446744073709551615\n"),
        (Setting::Offset(1 << 40), "offset 0x77 1099511627776\n"),
        (Setting::Dimensions(20_000), "dimensions 0x77 20000\n"),
        (Setting::Seeds, "seeds 0x77\n"),
        (Setting::Ordering(Ordering::Best), "order 0x77 100\n"),
        (Setting::Ordering(Ordering::Default), "order 0x77 101\n"),
        (Setting::Ordering(Ordering::Seeded), "order 0x77 102\n"),
        (Setting::Ordering(Ordering::Legacy), "order 0x77 103\n"),
        (Setting::Ordering(Ordering::Dynamic), "order 0x77 104\n"),
        (Setting::Ordering(Ordering::Quasi), "order 0x77 201\n"),
    ] {
        handle.set(setting).unwrap();
        assert_eq!(recorder.said(), said);
    }
    let (normal, exponential) = (Normal::of(0.5f32, 2.0f32, false), Normal::of(0.25, 3.0, true));
    for (draw, said) in [
        (Draw::Bits, "gen 0x77 0x500 12\n"),
        (Draw::UniformSingle, "uniform 0x77 0x500 12\n"),
        (Draw::UniformDouble, "uniform-double 0x77 0x500 12\n"),
        (Draw::NormalSingle(normal), "normal 0x77 0x500 12 0.5 2\n"),
        (Draw::NormalSingle(exponential), "log-normal 0x77 0x500 12 0.25 3\n"),
        (Draw::NormalDouble(normal), "normal-double 0x77 0x500 12 0.5 2\n"),
        (Draw::NormalDouble(exponential), "log-normal-double 0x77 0x500 12 0.25 3\n"),
        (Draw::Poisson { mean: 7.5 }, "poisson 0x77 0x500 12 7.5\n"),
    ] {
        handle.write(STREAM, draw, AT, 12).unwrap();
        assert_eq!(recorder.said(), format!("stream 0x77 0x9\n{said}"));
    }
    let wide = Handle::of(recorder.functions, Kind::Sobol64).unwrap();
    recorder.said();
    wide.write(STREAM, Draw::Bits, AT, 12).unwrap();
    assert_eq!(recorder.said(), "stream 0x77 0x9\nwide 0x77 0x500 12\n");
}

/// cuRAND has hipRAND's numbers but one, and an older release lacks functions.
#[test]
fn what_hiprand_lacks_is_refused() {
    let recorder = Recorder::new(&[]);
    recorder.next(NOT_IMPLEMENTED);
    let error = Handle::of(recorder.functions, Kind::Mt19937).err().unwrap();
    assert!(matches!(error, Error::NotSupported(_)), "{error}");
    assert_eq!(error.code(), curandStatus_t::CURAND_STATUS_INTERNAL_ERROR);
    for code in [100, 101, 102, 103, 104, 105, 106, 201, 202, 203, 204, 999] {
        recorder.next(code);
        let error = Handle::of(recorder.functions, Kind::Xorwow).err().unwrap();
        assert_eq!(error.code(), curandStatus_t(code as u32));
    }
    let handle = Handle::of(recorder.functions, Kind::Sobol64).unwrap();
    recorder.said();
    handle.set(Setting::Ordering(Ordering::Quasi)).unwrap();
    let error = handle.set(Setting::Ordering(Ordering::Legacy)).unwrap_err();
    assert_eq!(error, Error::NotSupported("this release of ROCm has no hiprandSetGeneratorOrdering"));
    let error = handle.write(STREAM, Draw::Bits, AT, 1).unwrap_err();
    assert_eq!(error, Error::NotSupported("this release of ROCm has no hiprandGenerateLongLong"));
    assert_eq!(recorder.said(), "stream 0x77 0x9\n");
}
