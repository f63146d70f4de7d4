//! What reaches hipFFT, looked at from its side: a library in C, with hipfft.h's signatures, that writes down each call.

use testkit::recorder::{BEGINNING, Recorder};

use super::*;

const FUNCTIONS: &str = r#"
#define note(...) (PUT(__VA_ARGS__), answer(__func__))
static const char *list(char *to, int rank, const long long *numbers)
{
    if (!numbers)
        return "NULL";
    int at = 0;
    for (int i = 0; i < rank; i++)
        at += sprintf(to + at, i ? ",%lld" : "%lld", numbers[i]);
    return to;
}
typedef void *H;
typedef long long L;
int hipfftCreate(H *h) { *h = (H)0x77; return note("create\n"); }
int hipfftDestroy(H h) { return note("destroy %p\n", h); }
int hipfftSetStream(H h, void *s) { return note("stream %p %p\n", h, s); }
int hipfftSetAutoAllocation(H h, int on) { return note("auto %p %d\n", h, on); }
int hipfftSetWorkArea(H h, void *at) { return note("area %p %p\n", h, at); }
int hipfftMakePlanMany64(H h, int rank, L *n, L *ie, L is, L id, L *oe, L os, L od, int type, L batch, unsigned long *size)
{
    char a[99], b[99], c[99];
    *size = 4096;
    return note("make %p [%s] [%s] %lld %lld [%s] %lld %lld type %x batch %lld\n", h, list(a, rank, n), list(b, rank, ie),
                is, id, list(c, rank, oe), os, od, type, batch);
}
int hipfftGetSizeMany64(H h, int rank, L *n, L *ie, L is, L id, L *oe, L os, L od, int type, L batch, unsigned long *size)
{
    char a[99];
    *size = 8192;
    return note("size %p [%s] type %x batch %lld\n", h, list(a, rank, n), type, batch);
}
int hipfftXtMakePlanMany(H h, int rank, L *n, L *ie, L is, L id, int it, L *oe, L os, L od, int ot, L batch,
                         unsigned long *size, int et)
{
    char a[99], b[99], c[99];
    *size = 64;
    return note("xt %p [%s] [%s] %lld %lld [%s] %lld %lld types %d %d %d batch %lld\n", h, list(a, rank, n),
                list(b, rank, ie), is, id, list(c, rank, oe), os, od, it, ot, et, batch);
}
int hipfftExecC2C(H h, void *i, void *o, int d) { return note("C2C %p %p %p %d\n", h, i, o, d); }
int hipfftExecR2C(H h, void *i, void *o) { return note("R2C %p %p %p\n", h, i, o); }
int hipfftExecC2R(H h, void *i, void *o) { return note("C2R %p %p %p\n", h, i, o); }
int hipfftExecZ2Z(H h, void *i, void *o, int d) { return note("Z2Z %p %p %p %d\n", h, i, o, d); }
int hipfftExecD2Z(H h, void *i, void *o) { return note("D2Z %p %p %p\n", h, i, o); }
int hipfftExecZ2D(H h, void *i, void *o) { return note("Z2D %p %p %p\n", h, i, o); }
int hipfftXtExec(H h, void *i, void *o, int d) { return note("any %p %p %p %d\n", h, i, o, d); }
"#;

#[test]
fn hipfft_gets_the_plan_and_the_executions_of_each_type() {
    let recorder = Recorder::of("libhipfft.so.0", &format!("{BEGINNING}{FUNCTIONS}"), Functions::open);
    let handle = Handle::of(recorder.library).unwrap();
    handle.set_auto_allocation(false).unwrap();
    let (embed, other) = ([6, 12], [6, 7]);
    let description = Description {
        n: &[6, 10],
        input: Some(Embedding { embed: &embed, stride: 2, distance: 200 }),
        output: Some(Embedding { embed: &other, stride: 3, distance: 300 }),
        kind: Kind::R2C,
        precision: Precision::Double,
        batch: 5,
    };
    assert_eq!(handle.size(&description).unwrap(), 8192);
    assert_eq!(handle.make(&description).unwrap(), 4096);
    handle.set_work_area(ptr::without_provenance_mut(0x50)).unwrap();
    assert_eq!(
        recorder.recorded(),
        "create\nauto 0x77 0\nsize 0x77 [6,10] type 6a batch 5\n\
         make 0x77 [6,10] [6,12] 2 200 [6,7] 3 300 type 6a batch 5\narea 0x77 0x50\n"
    );
    let basic = Description { input: None, output: None, ..description };
    for (kind, precision, types) in [
        (Kind::C2C, Precision::Half, "6 6 6"),
        (Kind::R2C, Precision::Half, "2 6 6"),
        (Kind::C2R, Precision::Bfloat, "15 14 15"),
    ] {
        assert_eq!(handle.make(&Description { kind, precision, ..basic }).unwrap(), 64);
        assert_eq!(
            recorder.recorded(),
            format!("xt 0x77 [6,10] [NULL] 1 0 [NULL] 1 0 types {types} batch 5\n")
        );
    }
    // It has no hipfftXtGetSizeMany.
    let half = Description { kind: Kind::C2C, precision: Precision::Half, ..basic };
    assert!(matches!(handle.size(&half), Err(Error::NotSupported(_))));

    let (input, output) = (ptr::without_provenance(0x100), ptr::without_provenance_mut(0x200));
    let stream = ptr::without_provenance_mut(0x9);
    for (kind, precision, direction, call) in [
        (Kind::C2C, Precision::Single, Direction::Forward, "C2C 0x77 0x100 0x200 -1"),
        (Kind::C2C, Precision::Single, Direction::Inverse, "C2C 0x77 0x100 0x200 1"),
        (Kind::R2C, Precision::Single, Direction::Forward, "R2C 0x77 0x100 0x200"),
        (Kind::C2R, Precision::Single, Direction::Inverse, "C2R 0x77 0x100 0x200"),
        (Kind::C2C, Precision::Double, Direction::Inverse, "Z2Z 0x77 0x100 0x200 1"),
        (Kind::R2C, Precision::Double, Direction::Forward, "D2Z 0x77 0x100 0x200"),
        (Kind::C2R, Precision::Double, Direction::Inverse, "Z2D 0x77 0x100 0x200"),
        (Kind::C2C, Precision::Bfloat, Direction::Forward, "any 0x77 0x100 0x200 -1"),
        (Kind::C2R, Precision::Half, Direction::Inverse, "any 0x77 0x100 0x200 1"),
    ] {
        handle.execute(stream, (kind, precision), input, output, direction).unwrap();
        assert_eq!(recorder.recorded(), format!("stream 0x77 0x9\n{call}\n"));
    }

    // Its statuses are cuFFT's.
    recorder.answer_next(8);
    assert_eq!(handle.make(&description).unwrap_err().code(), cufftResult::CUFFT_INVALID_SIZE);
    recorder.recorded();
    drop(handle);
    assert_eq!(recorder.recorded(), "destroy 0x77\n");
}
