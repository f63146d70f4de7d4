//! Transforms of all kinds beside the definition: values, and memory that is not theirs. Each run draws new ones; a
//! failure prints the smallest case that fails.

#[path = "case/mod.rs"]
mod case;
#[path = "reference/mod.rs"]
mod reference;

use case::{Case, Side};
use cufft_cpu::{Kind, Precision};
use proptest::prelude::*;

/// Lengths of all methods, with their products small enough for the definition.
fn lengths() -> impl Strategy<Value = Vec<i64>> {
    let many = prop_oneof![
        4 => 1..=64i64,
        2 => prop::sample::select(vec![128i64, 256, 512, 1024, 100, 120, 243, 343, 360, 720, 1000]),
        1 => 65..=700i64,
    ];
    prop_oneof![
        many.prop_map(|n| vec![n]),
        (1..=40i64, 1..=80i64).prop_map(|(x, y)| vec![x, y]),
        (1..=17i64, 1..=17i64, 1..=33i64).prop_map(|(x, y, z)| vec![x, y, z]),
        Just(vec![1, 1, 1]),
    ]
}

/// How much larger than necessary a side is.
type Padding = (Vec<i64>, i64, i64, bool);

fn padding() -> impl Strategy<Value = Padding> {
    (prop::collection::vec(0..4i64, 3), 1..=4i64, 0..6i64, prop::bool::weighted(0.2))
}

fn side(counts: &[i64], batch: i64, (pads, stride, gap, interleaved): Padding) -> Side {
    let embed: Vec<i64> = counts.iter().zip(pads).map(|(count, pad)| count + pad).collect();
    if interleaved {
        // Transforms whose elements alternate.
        return Side { embed, stride: batch * stride, distance: 1 };
    }
    let distance = embed.iter().product::<i64>() * stride + gap;
    Side { embed, stride, distance }
}

fn cases() -> impl Strategy<Value = Case> {
    let kinds = prop::sample::select(vec![Kind::C2C, Kind::R2C, Kind::C2R]);
    let precisions = prop::sample::select(vec![
        Precision::Single,
        Precision::Single,
        Precision::Double,
        Precision::Double,
        Precision::Half,
        Precision::Bfloat,
    ]);
    let batches = prop_oneof![3 => 1..=3i64, 2 => 4..=20i64];
    let layout = prop::option::of((padding(), padding(), any::<bool>()));
    (lengths(), kinds, precisions, any::<bool>(), batches, layout, any::<bool>(), any::<bool>(), any::<u64>())
        .prop_map(|(n, kind, precision, inverse, batch, layout, in_place, alone, seed)| {
            let batch = if n.iter().product::<i64>() > 3000 { batch.min(2) } else { batch };
            let mut half = n.clone();
            let last = half.last_mut().unwrap();
            *last = *last / 2 + 1;
            let sides = layout.map(|(input, output, same)| {
                let output = if same { input.clone() } else { output };
                let (read, written) = match kind {
                    Kind::C2C => (&n, &n),
                    Kind::R2C => (&n, &half),
                    Kind::C2R => (&half, &n),
                };
                [side(read, batch, input), side(written, batch, output)]
            });
            Case { n, kind, precision, inverse, batch, sides, in_place, alone, seed }
        })
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let error = case.run().map_err(TestCaseError::fail)?;
    prop_assert!(error <= case.bound(), "relative error {error:e}, allowed {:e}", case.bound());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_gives_the_definition_and_touches_nothing_else(case in cases()) {
        check(&case)?;
    }
}

/// Each length up to here, and some longer ones of each method.
#[test]
fn every_small_length_and_some_long_ones_are_right() {
    let long = [1009, 1021, 1024, 1155, 1200, 1331, 1536, 1792, 2048, 2187, 2310, 2401];
    for n in (1..=200).chain(long) {
        for precision in [Precision::Single, Precision::Double] {
            for kind in [Kind::C2C, Kind::R2C, Kind::C2R] {
                let batch = if n > 200 { 1 } else { 1 + n % 3 };
                let (n, inverse, seed) = (vec![n], n % 2 == 0, n as u64);
                let in_place = seed % 3 == 0;
                let case =
                    Case { n, kind, precision, inverse, batch, sides: None, in_place, alone: true, seed };
                let error = case.run().unwrap_or_else(|error| panic!("{error}: {case:?}"));
                assert!(error <= case.bound(), "{error:e}: {case:?}");
            }
        }
    }
}
