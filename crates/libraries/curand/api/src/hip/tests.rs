//! What reaches hipRAND, looked at from its side: a library in C, with hiprand.h's signatures, that writes down each call.

use testkit::recorder::{BEGINNING, Recorder};

use super::*;

/// As of ROCm 5.3, whose hipRAND has neither orderings nor words of 64 bits; with `NEWER` as of 6.2.
const FUNCTIONS: &str = r#"
#define note(...) (PUT(__VA_ARGS__), answer(__func__))
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

fn recorder(beginning: &str) -> Recorder<Functions> {
    Recorder::of("libhiprand.so.1", &format!("{beginning}{BEGINNING}{FUNCTIONS}"), Functions::open)
}

const AT: *mut c_void = ptr::without_provenance_mut(0x500);
const STREAM: *mut c_void = ptr::without_provenance_mut(0x9);

#[test]
fn each_type_has_hiprands_number() {
    let recorder = recorder("");
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
        drop(Handle::of(recorder.library, kind).unwrap());
        assert_eq!(recorder.recorded(), format!("create {number}\ndestroy 0x77\n"));
    }
}

#[test]
fn hiprand_gets_settings_and_draws() {
    let recorder = recorder("#define NEWER");
    let handle = Handle::of(recorder.library, Kind::Philox4x32).unwrap();
    recorder.recorded();
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
        assert_eq!(recorder.recorded(), said);
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
        assert_eq!(recorder.recorded(), format!("stream 0x77 0x9\n{said}"));
    }
    let wide = Handle::of(recorder.library, Kind::Sobol64).unwrap();
    recorder.recorded();
    wide.write(STREAM, Draw::Bits, AT, 12).unwrap();
    assert_eq!(recorder.recorded(), "stream 0x77 0x9\nwide 0x77 0x500 12\n");
}

/// cuRAND has hipRAND's numbers but one, and an older release lacks functions.
#[test]
fn what_hiprand_lacks_is_refused() {
    let recorder = recorder("");
    recorder.answer_next(NOT_IMPLEMENTED);
    let error = Handle::of(recorder.library, Kind::Mt19937).err().unwrap();
    assert!(matches!(error, Error::NotSupported(_)), "{error}");
    assert_eq!(error.code(), curandStatus_t::CURAND_STATUS_INTERNAL_ERROR);
    for code in [100, 101, 102, 103, 104, 105, 106, 201, 202, 203, 204, 999] {
        recorder.answer_next(code);
        let error = Handle::of(recorder.library, Kind::Xorwow).err().unwrap();
        assert_eq!(error.code(), curandStatus_t(code as u32));
    }
    let handle = Handle::of(recorder.library, Kind::Sobol64).unwrap();
    recorder.recorded();
    handle.set(Setting::Ordering(Ordering::Quasi)).unwrap();
    let error = handle.set(Setting::Ordering(Ordering::Legacy)).unwrap_err();
    assert_eq!(error, Error::NotSupported("this release of ROCm has no hiprandSetGeneratorOrdering"));
    let error = handle.write(STREAM, Draw::Bits, AT, 1).unwrap_err();
    assert_eq!(error, Error::NotSupported("this release of ROCm has no hiprandGenerateLongLong"));
    assert_eq!(recorder.recorded(), "stream 0x77 0x9\n");
}
