//! Groups whose lanes do not all ask, or ask different objects: a lane gets what it gets alone.

use super::support::*;
use super::*;

/// `%c15` says whether a lane asks, and `%c13`, `%c14` are its object's handle.
const ASKED: &[(&str, &str)] = &[
    ("one", "setp.ne.u32 %p0, %c15, 0; @%p0 tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
    (
        "own",
        "setp.ne.u32 %p0, %c15, 0; mov.b64 %d0, {%c13,%c14};
         @%p0 tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%d0, {%c0,%c1}];",
    ),
    (
        "layer",
        "setp.ne.u32 %p0, %c15, 0; @%p0 tex.a2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c2,%c0,%c1,%c1}];",
    ),
    ("exact", "setp.ne.u32 %p0, %c15, 0; @%p0 tex.2d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%t, {%c4,%c5}];"),
];

fn inputs(objects: &[u64], seed: u64) -> Vec<[u32; IN]> {
    let mut numbers = Numbers(seed);
    (0..64)
        .map(|nth| {
            let mut input = words(&[numbers.between(-3.0, 12.0), numbers.between(-3.0, 12.0)]);
            match nth % 13 {
                3 => input[0] = f32::NAN.to_bits(),
                7 => input[1] = f32::INFINITY.to_bits(),
                11 => input[0] = 1e20f32.to_bits(),
                _ => {}
            }
            input[2] = numbers.next() as u32 % 6;
            (input[4], input[5]) = (numbers.next() as u32 % 12, (numbers.next() as u32 % 12).wrapping_sub(3));
            let object = objects[numbers.next() as usize % objects.len()];
            (input[13], input[14]) = (object as u32, (object >> 32) as u32);
            input[15] = u32::from(!numbers.next().is_multiple_of(3));
            input
        })
        .collect()
}

#[test]
fn a_lane_gets_the_same_whoever_else_asks() {
    let mut bench = Bench::new("", "", ASKED);
    let formats = [FLOAT1, FLOAT4, Format(HIP_AD_FORMAT_UNSIGNED_INT8, 4), Format(HIP_AD_FORMAT_HALF, 2)];
    for (nth, filter) in [hipFilterModePoint, hipFilterModeLinear].into_iter().enumerate() {
        for mode in MODES {
            let object = |format, normalized| {
                Case::new([7, 5, 4], format, hipArrayLayered, sampler(mode, filter, normalized))
            };
            let cases: Vec<Case> = formats
                .into_iter()
                .flat_map(|format| [0, HIP_TRSF_NORMALIZED_COORDINATES].map(|flags| object(format, flags)))
                .collect();
            let handles: Vec<u64> = cases.iter().map(Case::handle).collect();
            let inputs = inputs(&handles, 11 + nth as u64);
            for name in ["one", "own", "layer", "exact"] {
                let handle = handles[nth];
                let together = bench.run(name, handle, 0, &inputs).unwrap();
                for (input, got) in inputs.iter().zip(&together) {
                    let alone = bench.run(name, handle, 0, std::slice::from_ref(input)).unwrap()[0];
                    assert_eq!(*got, alone, "{name}, mode {mode}, filter {filter}: {input:x?}");
                    assert!(input[15] == 1 || got[..4] == [0; 4]);
                }
            }
        }
    }
}

#[test]
fn a_bad_handle_ends_the_grid_only_if_its_lane_asks() {
    let mut bench = Bench::new("", "", ASKED);
    let case = Case::new([7, 5, 0], FLOAT1, 0, sampler(hipAddressModeClamp, hipFilterModePoint, 0));
    let mut inputs = inputs(&[case.handle()], 5);
    let nothing = 0u64;
    let bad = (&raw const nothing) as u64;
    for input in inputs.iter_mut().filter(|input| input[15] == 0) {
        (input[13], input[14]) = (bad as u32, (bad >> 32) as u32);
    }
    let before = bench.run("own", 0, 0, &inputs).unwrap();
    assert!(before.iter().any(|words| words[0] != 0));
    let asks = inputs.iter().position(|input| input[15] == 1).unwrap();
    (inputs[asks][13], inputs[asks][14]) = (bad as u32, (bad >> 32) as u32);
    assert!(bench.run("own", 0, 0, &inputs).is_err());
}
