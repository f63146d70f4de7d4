//! What plans refuse, what callbacks see, and lengths beyond the caches.

#[path = "reference/mod.rs"]
mod reference;

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use cufft_cpu::{
    Complex, Description, Direction, Element, Embedding, Error, Kind, Plan, Precision, Rayon, bf16, f16,
};

fn describe(n: &[i64], kind: Kind, precision: Precision) -> Description<'_> {
    Description { n, input: None, output: None, kind, precision, batch: 1 }
}

fn refusal(description: &Description) -> Error {
    Plan::new(description).err().expect("a refusal")
}

#[test]
fn sizes_that_mean_nothing_are_refused() {
    let single = |n| describe(n, Kind::C2C, Precision::Single);
    assert_eq!(refusal(&single(&[])), Error::InvalidValue("rank"));
    assert_eq!(refusal(&single(&[2, 2, 2, 2])), Error::InvalidValue("rank"));
    assert!(matches!(refusal(&single(&[0])), Error::InvalidSize(_)));
    assert!(matches!(refusal(&single(&[8, -1])), Error::InvalidSize(_)));
    assert!(matches!(refusal(&Description { batch: 0, ..single(&[8]) }), Error::InvalidSize(_)));
    // More elements than can be addressed, by lengths, by the batch and by strides.
    assert!(matches!(refusal(&single(&[1 << 31, 1 << 31, 1 << 31])), Error::InvalidSize(_)));
    assert!(matches!(refusal(&Description { batch: i64::MAX, ..single(&[8]) }), Error::InvalidSize(_)));
    let far = Some(Embedding { embed: &[8, i64::MAX], stride: i64::MAX, distance: 1 });
    assert!(matches!(
        refusal(&Description { input: far, output: far, ..single(&[8, 8]) }),
        Error::InvalidSize(_)
    ));
    let backwards = Some(Embedding { embed: &[8], stride: -1, distance: 8 });
    assert!(matches!(
        refusal(&Description { input: backwards, output: backwards, ..single(&[8]) }),
        Error::InvalidValue(_)
    ));
}

#[test]
fn types_go_together_or_are_refused() {
    let complex = |precision| Element { complex: true, precision };
    let real = |precision| Element { complex: false, precision };
    for precision in [Precision::Half, Precision::Bfloat, Precision::Single, Precision::Double] {
        let (c, r) = (complex(precision), real(precision));
        assert_eq!(Kind::of(c, c, c), Ok((Kind::C2C, precision)));
        assert_eq!(Kind::of(r, c, c), Ok((Kind::R2C, precision)));
        assert_eq!(Kind::of(c, r, c), Ok((Kind::C2R, precision)));
        assert_eq!(Kind::of(r, r, c), Err(Error::InvalidType));
        assert_eq!(Kind::of(c, c, r), Err(Error::InvalidType));
    }
    let (single, double) = (complex(Precision::Single), complex(Precision::Double));
    assert_eq!(Kind::of(single, double, single), Err(Error::InvalidType));
}

/// The manual: without embeddings on either side, strides and distances are not looked at.
#[test]
fn one_missing_embedding_makes_the_layout_basic() {
    let strange = Some(Embedding { embed: &[100], stride: 3, distance: 1000 });
    let description =
        Description { input: strange, batch: 2, ..describe(&[4], Kind::C2C, Precision::Double) };
    let plan = Plan::new(&description).unwrap();
    assert_eq!((plan.input_extent(), plan.output_extent()), (8, 8));
}

#[test]
fn a_direction_that_a_real_transform_has_not_is_refused() {
    let plan = Plan::new(&describe(&[8], Kind::R2C, Precision::Single)).unwrap();
    let mut output = [Complex::new(0f32, 0.0); 5];
    let result = plan.transform(&[0f32; 8], &mut output, Direction::Inverse);
    assert_eq!(result, Err(Error::InvalidValue("direction")));
}

#[test]
fn slices_are_checked() {
    let plan = Plan::new(&describe(&[8], Kind::C2C, Precision::Half)).unwrap();
    let input = [Complex::new(f16::ONE, f16::ZERO); 8];
    let mut short = [Complex::new(f16::ONE, f16::ZERO); 7];
    assert!(matches!(plan.transform(&input, &mut short, Direction::Forward), Err(Error::InvalidSize(_))));
    let mut strange = [Complex::new(bf16::ONE, bf16::ZERO); 8];
    assert_eq!(plan.transform(&input, &mut strange, Direction::Forward), Err(Error::InvalidType));
    let mut output = input;
    plan.transform(&input, &mut output, Direction::Forward).unwrap();
    assert_eq!(output[0], Complex::new(f16::from_f32(8.0), f16::ZERO));
    assert!(output[1..].iter().all(|x| *x == Complex::new(f16::ZERO, f16::ZERO)));
}

/// Each element is loaded and stored once, by its place in the program's array; the result is the transform's of what
/// the load callback gave.
#[test]
fn callbacks_stand_for_the_elements() {
    let n = [6, 10];
    let side = |embed| Some(Embedding { embed, stride: 2, distance: 200 });
    let description = Description {
        n: &n,
        input: side(&[6, 12]),
        output: side(&[6, 6]),
        kind: Kind::R2C,
        precision: Precision::Double,
        batch: 3,
    };
    let plan = Plan::new(&description).unwrap();
    let loads: Vec<AtomicUsize> = (0..plan.input_extent()).map(|_| AtomicUsize::new(0)).collect();
    let load = |at: usize| {
        loads[at].fetch_add(1, Ordering::Relaxed);
        Complex::new((at * at % 13) as f64, 0.0)
    };
    let mut output = vec![Complex::new(f64::NAN, 0.0); plan.output_extent()];
    let start: *mut c_void = output.as_mut_ptr().cast();
    // SAFETY: nothing is loaded from memory, and the output is as long as the plan says.
    unsafe {
        let callbacks = (Some(&load as cufft_cpu::Load<f64>), None);
        plan.execute_with(std::ptr::null(), start, Direction::Forward, &Rayon, callbacks).unwrap();
    }
    let places = |b: usize, row: usize, stride: usize| {
        (0..6).flat_map(move |x| (0..row).map(move |y| b * 200 + (x * stride + y) * 2))
    };
    for b in 0..3 {
        let mut expected: Vec<reference::Number> =
            places(b, 10, 12).map(|at| reference::Number::new((at * at % 13) as f64, 0.0)).collect();
        reference::transform(&mut expected, &[6, 10], false);
        for (i, at) in places(b, 6, 6).enumerate() {
            let expected = expected[i / 6 * 10 + i % 6];
            let off = (output[at].re - expected.re.high).hypot(output[at].im - expected.im.high);
            assert!(off < 1e-11, "{at}: {}", output[at]);
        }
        for at in places(b, 10, 12) {
            assert_eq!(loads[at].load(Ordering::Relaxed), 1, "loads of {at}");
        }
    }
    assert_eq!(loads.iter().map(|count| count.load(Ordering::Relaxed)).sum::<usize>(), 180);

    // Stores, in place of memory.
    let stored: Vec<AtomicUsize> = (0..plan.output_extent()).map(|_| AtomicUsize::new(0)).collect();
    let store = |at: usize, value: Complex<f64>| {
        let same = value == output[at];
        stored[at].fetch_add(if same { 1 } else { 1000 }, Ordering::Relaxed);
    };
    // SAFETY: no memory is used.
    unsafe {
        let callbacks = (Some(&load as cufft_cpu::Load<f64>), Some(&store as cufft_cpu::Store<f64>));
        plan.execute_with(std::ptr::null(), std::ptr::null_mut(), Direction::Forward, &Rayon, callbacks)
            .unwrap();
    }
    assert_eq!(stored.iter().map(|count| count.load(Ordering::Relaxed)).sum::<usize>(), 3 * 36);
}

/// Lengths that memory is gone through twice for, primes among those that rustfft does, and large arrays: an impulse at
/// a random place has a transform that is known without computing one, and there and back again is `n` times the same.
#[test]
fn long_lengths_are_right() {
    let cases: [&[i64]; 8] = [
        &[1 << 17],
        &[1 << 20],
        &[600_000],
        &[65_537],
        &[100_003],
        &[512, 1024],
        &[64, 80, 96],
        &[3, 200_000],
    ];
    for n in cases {
        let volume = n.iter().product::<i64>() as usize;
        let plan = Plan::new(&describe(n, Kind::C2C, Precision::Double)).unwrap();
        let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as usize;
        let mut index: Vec<usize> = n.iter().map(|&n| seed % n as usize).collect();
        index[0] = seed / 7 % n[0] as usize;
        let place = index.iter().zip(n).fold(0, |sum, (i, n)| sum * *n as usize + i);
        let zero = Complex::new(0.0, 0.0);
        let mut input = vec![zero; volume];
        input[place] = Complex::new(1.0, 0.0);
        let mut output = vec![zero; volume];
        plan.transform(&input, &mut output, Direction::Forward).unwrap();
        let mut square = 0.0;
        for (at, got) in output.iter().enumerate() {
            let (mut rest, mut turns) = (at, 0.0);
            for (i, &n) in index.iter().zip(n).rev() {
                let k = rest % n as usize;
                rest /= n as usize;
                turns += (k * i % n as usize) as f64 / n as f64;
            }
            square += (got - Complex::cis(-std::f64::consts::TAU * turns)).norm_sqr();
        }
        // The definition's angles are themselves rounded.
        let error = (square / volume as f64).sqrt();
        let bits = (volume as f64).log2();
        assert!(error < 1e-15 * bits, "{n:?}, impulse at {index:?}: {error:e}");

        let numbers: Vec<Complex<f64>> = (0..volume)
            .map(|i| Complex::new((i * 7919 % 1013) as f64 / 1013.0, (i % 17) as f64 / 17.0))
            .collect();
        let mut both = numbers.clone();
        plan.transform_in_place(&mut both, Direction::Forward).unwrap();
        plan.transform_in_place(&mut both, Direction::Inverse).unwrap();
        let off: f64 = both.iter().zip(&numbers).map(|(a, b)| (a / volume as f64 - b).norm_sqr()).sum();
        let size: f64 = numbers.iter().map(Complex::norm_sqr).sum();
        assert!((off / size).sqrt() < 2e-15 * bits, "{n:?}: {:e}", (off / size).sqrt());
    }
}
