//! Transforms beside FFTW 3's: `cargo bench -p cufft-cpu --bench fft [-- WORD…]` prints a table, of the rows whose name
//! has all words. Debian's `libfftw3-double3` and `libfftw3-single3` are opened where they are installed; without them
//! there are our numbers only.
//!
//! Both do each row by turns, several times, and the fastest turn counts. On one thread time is the thread's own
//! (other programs do not count), on two it is the clock's. FFTW plans by measuring (`FFTW=patient`: patiently), and takes
//! the best that it has found after `FFTW_SECONDS` (20) of each plan.

use std::ffi::{c_int, c_uint, c_void};
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use cufft_cpu::{Alone, Cores, Description, Direction, Kind, Plan, Precision};
use libloading::os::unix::Library;

/// How long each side is measured for, by turns.
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(25);

const MEASURE: c_uint = 0;
const PATIENT: c_uint = 1 << 5;

struct Row {
    n: Vec<i64>,
    batch: i64,
    kind: Kind,
    precision: Precision,
}

impl Row {
    fn name(&self) -> String {
        let n: Vec<String> = self.n.iter().map(i64::to_string).collect();
        let precision = if self.precision == Precision::Single { "f32" } else { "f64" };
        format!("{precision} {:?} {}D {} * {}", self.kind, n.len(), n.join(" x "), self.batch)
    }

    fn half(&self) -> usize {
        let (last, outer) = self.n.split_last().unwrap();
        outer.iter().product::<i64>() as usize * (*last as usize / 2 + 1)
    }

    fn volume(&self) -> usize {
        self.n.iter().product::<i64>() as usize
    }

    /// Real numbers of both sides.
    fn sizes(&self) -> [usize; 2] {
        let complex = 2 * if self.kind == Kind::C2C { self.volume() } else { self.half() };
        let sizes = match self.kind {
            Kind::C2C => [complex, complex],
            Kind::R2C => [self.volume(), complex],
            Kind::C2R => [complex, self.volume()],
        };
        sizes.map(|size| size * self.batch as usize)
    }

    /// The usual count of operations.
    fn flops(&self) -> f64 {
        let volume = self.volume() as f64;
        let whole = 5.0 * volume * volume.log2().max(1.0) * self.batch as f64;
        if self.kind == Kind::C2C { whole } else { whole / 2.0 }
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |kind, n: &[i64], batch| {
        for precision in [Precision::Single, Precision::Double] {
            rows.push(Row { n: n.to_vec(), batch, kind, precision });
        }
    };
    for (n, batch) in [
        (8, 4096),
        (16, 4096),
        (64, 1024),
        (256, 256),
        (1024, 1),
        (1024, 64),
        (4096, 16),
        (16384, 4),
        (65536, 1),
        (1 << 18, 1),
        (1 << 20, 1),
        (1 << 22, 1),
        // Smooth lengths.
        (12, 4096),
        (60, 1024),
        (100, 512),
        (360, 128),
        (1000, 64),
        (1155, 64),
        (2187, 32),
        (5000, 16),
        (6000, 1),
        (100_000, 1),
        (1_000_000, 1),
        // Primes.
        (17, 2048),
        (101, 512),
        (1009, 64),
        (10_007, 4),
        (65_537, 1),
        (1_000_003, 1),
    ] {
        add(Kind::C2C, &[n], batch);
    }
    for (n, batch) in [(64, 1024), (1024, 64), (65536, 1), (1 << 20, 1), (1000, 64), (105, 512), (1009, 64)] {
        add(Kind::R2C, &[n], batch);
        add(Kind::C2R, &[n], batch);
    }
    for n in
        [[64, 64], [256, 256], [1024, 1024], [2048, 2048], [100, 100], [480, 640], [1000, 1000], [101, 103]]
    {
        add(Kind::C2C, &n, 1);
    }
    add(Kind::C2C, &[64, 64], 64);
    for n in [[512, 512], [1080, 1920]] {
        add(Kind::R2C, &n, 1);
        add(Kind::C2R, &n, 1);
    }
    for n in [
        [32, 32, 32],
        [64, 64, 64],
        [128, 128, 128],
        [256, 256, 256],
        [60, 60, 60],
        [100, 100, 100],
        [48, 80, 120],
    ] {
        add(Kind::C2C, &n, 1);
    }
    for n in [[64, 64, 64], [128, 128, 128], [90, 90, 90]] {
        add(Kind::R2C, &n, 1);
        add(Kind::C2R, &n, 1);
    }
    rows
}

/// FFTW's functions for one precision; plans and arrays are opaque.
struct Fftw {
    library: Library,
    prefix: &'static str,
    threads: Option<Library>,
}

type Many = unsafe extern "C" fn(
    c_int,
    *const c_int,
    c_int,
    *mut c_void,
    *const c_int,
    c_int,
    c_int,
    *mut c_void,
    *const c_int,
    c_int,
    c_int,
    c_int,
    c_uint,
) -> *mut c_void;
type ManyReal = unsafe extern "C" fn(
    c_int,
    *const c_int,
    c_int,
    *mut c_void,
    *const c_int,
    c_int,
    c_int,
    *mut c_void,
    *const c_int,
    c_int,
    c_int,
    c_uint,
) -> *mut c_void;

impl Fftw {
    fn open(precision: Precision) -> Option<Self> {
        let (prefix, name) =
            if precision == Precision::Single { ("fftwf", "fftw3f") } else { ("fftw", "fftw3") };
        // SAFETY: FFTW's initialisers ask for nothing.
        let library = unsafe { Library::new(format!("lib{name}.so.3")) };
        // SAFETY: as above.
        let threads = unsafe { Library::new(format!("lib{name}_threads.so.3")) }.ok();
        let library =
            library.inspect_err(|error| eprintln!("skipped: FFTW's numbers, since {error}")).ok()?;
        let this = Self { library, prefix, threads };
        if let Some(threads) = &this.threads {
            // SAFETY: `int fftw_init_threads(void)`.
            unsafe { threads.get::<unsafe extern "C" fn() -> c_int>(this.name("init_threads")).unwrap()() };
        }
        Some(this)
    }

    fn name(&self, function: &str) -> String {
        format!("{}_{function}", self.prefix)
    }

    /// `F` is fftw3.h's signature of that name.
    fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: as said.
        *unsafe { self.library.get::<F>(self.name(name)) }.unwrap()
    }

    fn plan(&self, row: &Row, input: *mut c_void, output: *mut c_void, threads: usize) -> *mut c_void {
        if let Some(library) = &self.threads {
            // SAFETY: `void fftw_plan_with_nthreads(int)`.
            unsafe {
                library.get::<unsafe extern "C" fn(c_int)>(self.name("plan_with_nthreads")).unwrap()(
                    threads as c_int,
                )
            };
        }
        let n: Vec<c_int> = row.n.iter().map(|&n| n as c_int).collect();
        let (rank, howmany) = (n.len() as c_int, row.batch as c_int);
        let patient = std::env::var("FFTW").is_ok_and(|how| how == "patient");
        let flags = if patient { PATIENT } else { MEASURE };
        let [from, to] = row.sizes().map(|size| (size / row.batch as usize) as c_int);
        let null = std::ptr::null();
        let complex = |reals: c_int| reals / 2;
        let seconds =
            std::env::var("FFTW_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(20.0);
        // SAFETY: fftw3.h's signatures, and memory of the sizes that they take.
        unsafe {
            self.function::<unsafe extern "C" fn(f64)>("set_timelimit")(seconds);
            match row.kind {
                Kind::C2C => self.function::<Many>("plan_many_dft")(
                    rank,
                    n.as_ptr(),
                    howmany,
                    input,
                    null,
                    1,
                    complex(from),
                    output,
                    null,
                    1,
                    complex(to),
                    -1,
                    flags,
                ),
                Kind::R2C => self.function::<ManyReal>("plan_many_dft_r2c")(
                    rank,
                    n.as_ptr(),
                    howmany,
                    input,
                    null,
                    1,
                    from,
                    output,
                    null,
                    1,
                    complex(to),
                    flags,
                ),
                Kind::C2R => self.function::<ManyReal>("plan_many_dft_c2r")(
                    rank,
                    n.as_ptr(),
                    howmany,
                    input,
                    null,
                    1,
                    complex(from),
                    output,
                    null,
                    1,
                    to,
                    flags,
                ),
            }
        }
    }
}

/// Time of this thread, or by the clock where there are several.
fn time(alone: bool, work: &mut dyn FnMut()) -> Duration {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: it writes the time.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    if alone {
        let start = now();
        work();
        now() - start
    } else {
        let start = Instant::now();
        work();
        start.elapsed()
    }
}

/// Seconds of each one's fastest turn.
fn measure(alone: bool, works: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let repeats: Vec<u32> = works
        .iter_mut()
        .map(|work| {
            work();
            let once = time(alone, work).max(Duration::from_nanos(50));
            (ROUND.as_secs_f64() / once.as_secs_f64()).clamp(1.0, 1e6) as u32
        })
        .collect();
    let mut best = vec![f64::INFINITY; works.len()];
    for _ in 0..ROUNDS {
        for ((work, repeats), best) in works.iter_mut().zip(&repeats).zip(&mut best) {
            let took = time(alone, &mut || (0..*repeats).for_each(|_| work()));
            *best = best.min(took.as_secs_f64() / f64::from(*repeats));
        }
    }
    best
}

/// Memory like `fftw_malloc`'s and the CPU device's: at the beginning of a line of the caches.
fn memory(bytes: usize) -> *mut c_void {
    let layout = std::alloc::Layout::from_size_align(bytes.max(64), 256).unwrap();
    // SAFETY: not empty; it stays until the process ends its row (`free`).
    unsafe { std::alloc::alloc_zeroed(layout).cast() }
}

fn free(memory: *mut c_void, bytes: usize) {
    // SAFETY: as `memory` made it.
    unsafe {
        std::alloc::dealloc(memory.cast(), std::alloc::Layout::from_size_align_unchecked(bytes.max(64), 256))
    };
}

struct Pool(rayon::ThreadPool);

impl Cores for Pool {
    fn count(&self) -> usize {
        self.0.current_num_threads()
    }

    fn each(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        self.0.install(|| cufft_cpu::Rayon.each(pieces, work));
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let threads: usize = std::env::var("THREADS").ok().and_then(|count| count.parse().ok()).unwrap_or(1);
    let cores: Box<dyn Cores> = if threads == 1 {
        Box::new(Alone)
    } else {
        Box::new(Pool(rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()))
    };
    let libraries = [Precision::Single, Precision::Double].map(Fftw::open);
    println!("{threads} thread(s); Gflop/s of 5 n log2 n, half of it for real transforms");
    println!("{:<36}{:>9}{:>9}{:>9}", "", "ours", "FFTW", "ours/FFTW");
    let (mut logarithms, mut count, mut worst) = (0.0, 0, (f64::INFINITY, String::new()));
    for row in rows() {
        let name = row.name();
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let width = row.precision.bytes();
        let [from, to] = row.sizes().map(|size| size * width);
        let [input, output] = [from, to].map(memory);
        let theirs = libraries[usize::from(row.precision == Precision::Double)].as_ref();
        let their_plan = theirs.map_or(null_mut(), |fftw| fftw.plan(&row, input, output, threads));
        let execute = theirs.map(|fftw| fftw.function::<unsafe extern "C" fn(*mut c_void)>("execute"));
        // SAFETY: numbers of that precision; what a plan measured is overwritten.
        unsafe {
            for i in 0..from / width {
                let value = (i as f64 * 0.618).fract() - 0.5;
                match row.precision {
                    Precision::Single => input.cast::<f32>().add(i).write(value as f32),
                    _ => input.cast::<f64>().add(i).write(value),
                }
            }
        }
        let (kind, precision, batch) = (row.kind, row.precision, row.batch);
        let description = Description { n: &row.n, input: None, output: None, kind, precision, batch };
        let plan = Plan::new(&description).unwrap();
        let direction = if kind == Kind::C2R { Direction::Inverse } else { Direction::Forward };
        // SAFETY: the memory is as large as the plan says.
        let mut ours = || unsafe { plan.execute(black_box(input), output, direction, &*cores).unwrap() };
        // SAFETY: the plan is of this memory.
        let mut theirs = || unsafe { execute.unwrap()(black_box(their_plan)) };
        let mut works: Vec<&mut dyn FnMut()> = vec![&mut ours];
        if execute.is_some() {
            works.push(&mut theirs);
        }
        let speeds: Vec<f64> =
            measure(threads == 1, &mut works).iter().map(|time| row.flops() / time / 1e9).collect();
        if let [ours, theirs] = speeds[..] {
            let ratio = ours / theirs;
            println!("{name:<36}{ours:>9.2}{theirs:>9.2}{ratio:>9.2}");
            logarithms += ratio.ln();
            count += 1;
            if ratio < worst.0 {
                worst = (ratio, name);
            }
        } else {
            println!("{name:<36}{:>9.2}", speeds[0]);
        }
        [(input, from), (output, to)].into_iter().for_each(|(memory, bytes)| free(memory, bytes));
    }
    if count > 0 {
        let mean = f64::exp(logarithms / f64::from(count));
        println!("geometric mean {mean:.2}, the least {:.2} ({})", worst.0, worst.1);
    }
}
