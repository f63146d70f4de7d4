//! Textures and surfaces: every instruction in every setting, against a sampler of the tests' own.
// SAFETY of every block here: HIP's contract; out-pointers are to locals.
#![allow(clippy::undocumented_unsafe_blocks, reason = "said once above")]
#![allow(non_upper_case_globals, reason = "constants are HIP's")]

mod model;
mod support;

use model::Model;
use support::*;

use hip_cpu::api::*;
use hip_sys::*;

const MODES: [hipTextureAddressMode; 4] =
    [hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder];

fn bits(words: &[u32], floats: bool, signed: bool) -> [f64; 4] {
    std::array::from_fn(|nth| match (floats, signed) {
        (true, _) => f64::from(f32::from_bits(words[nth])),
        (false, true) => f64::from(words[nth].cast_signed()),
        (false, false) => f64::from(words[nth]),
    })
}

fn is_signed(format: Format) -> bool {
    matches!(format.0, HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT32)
}

/// Contents of `n` elements: small finite numbers for floats, all values for integers.
fn contents(format: Format, n: usize) -> Vec<u8> {
    let mut numbers = Numbers(7 + n as u64);
    let mut bytes = vec![];
    for _ in 0..n * format.1 as usize {
        let number = numbers.next();
        match format.0 {
            HIP_AD_FORMAT_FLOAT => {
                bytes.extend((number as f32 / (1u32 << 28) as f32 - 4.0).to_le_bytes());
            }
            // Exponents below infinity's.
            HIP_AD_FORMAT_HALF => bytes.extend((number as u16 & 0xbbff).to_le_bytes()),
            _ => bytes.extend(
                &(number as u32 ^ number.rotate_left(9) as u32).to_le_bytes()[..format.channel_bytes()],
            ),
        }
    }
    bytes
}

fn agree(got: [f64; 4], want: [f64; 4], exact: bool, what: &dyn Fn() -> String) {
    for nth in 0..4 {
        let near = if exact {
            got[nth] == want[nth] || got[nth] == f64::from(want[nth] as f32)
        } else {
            (got[nth] - want[nth]).abs() <= 1e-6 * want[nth].abs().max(1.0)
        };
        assert!(near, "{}: {got:?}, not {want:?}", what());
    }
}

struct Case {
    model: Model,
    object: hipTextureObject_t,
    array: hipArray_t,
}

impl Case {
    /// A texture over a new array; `size` as arrays have it, 0 for a dimension that is not there.
    fn new(size: [usize; 3], format: Format, flags: u32, desc: HIP_TEXTURE_DESC) -> Case {
        let full = size.map(|it| it.max(1));
        let bytes = contents(format, full.iter().product());
        let array = array(size, format, flags);
        upload(array, &bytes, full[0] * format.bytes(), full[1], full[2]);
        let object = texture(&of_array(array), &desc);
        let layered = flags & (hipArrayLayered | hipArrayCubemap) != 0;
        let dimensions = size.iter().filter(|&&it| it > 0).count() - usize::from(layered);
        let dimensions = if flags & hipArrayCubemap != 0 { 2 } else { dimensions };
        Case { model: Model { bytes, format, size: full, dimensions, desc }, object, array }
    }

    fn handle(&self) -> u64 {
        self.object as u64
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        hipTexObjectDestroy(self.object).unwrap();
        hipArrayDestroy(self.array).unwrap();
    }
}

fn sampler(mode: hipTextureAddressMode, filter: hipTextureFilterMode, flags: u32) -> HIP_TEXTURE_DESC {
    HIP_TEXTURE_DESC {
        addressMode: [mode; 3],
        filterMode: filter,
        flags,
        borderColor: [0.25, -0.5, 3.0, 0.75],
        ..HIP_TEXTURE_DESC::default()
    }
}

/// Coordinates in and around a texture, with the exact boundaries among them.
fn coordinates(size: [usize; 3], normalized: bool, n: usize) -> Vec<[f32; 3]> {
    let mut numbers = Numbers(99);
    (0..n)
        .map(|_| {
            std::array::from_fn(|nth| {
                if normalized {
                    numbers.between(-2.5, 2.5)
                } else {
                    numbers.between(-2.0, size[nth] as f32 + 2.0)
                }
            })
        })
        .collect()
}

/// All address modes × filters × normalised or not, for one shape and format.
fn sweep(bench: &mut Bench, name: &str, size: [usize; 3], flags: u32, format: Format, read: u32) {
    let layered = flags & hipArrayLayered != 0;
    for mode in MODES {
        for filter in [hipFilterModePoint, hipFilterModeLinear] {
            for normalized in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
                let integers = read & HIP_TRSF_READ_AS_INTEGER != 0;
                if integers && filter == hipFilterModeLinear {
                    continue;
                }
                let case = Case::new(size, format, flags, sampler(mode, filter, read | normalized));
                let points = coordinates(case.model.size, normalized != 0, 96);
                let layers = case.model.size[2] as u32;
                let asked = |nth: usize| [0, 1, layers - 1, layers, 77, u32::MAX][nth % 6];
                let inputs: Vec<[u32; IN]> = points
                    .iter()
                    .enumerate()
                    .map(|(nth, point)| {
                        let mut input = words(point);
                        if layered {
                            input.rotate_right(1);
                            input[0] = asked(nth);
                        }
                        input
                    })
                    .collect();
                let results = bench.run(name, case.handle(), 0, &inputs).unwrap();
                for (nth, (point, result)) in points.iter().zip(&results).enumerate() {
                    let slice = if layered { asked(nth).min(layers - 1) } else { 0 };
                    let want = case.model.fetch(point.map(f64::from), slice.into(), [0; 3]);
                    let floats = !case.model.reads_integers();
                    let got = bits(result, floats, is_signed(format));
                    // A border's bits are not numbers for integers.
                    if !floats && mode == hipAddressModeBorder && got != want {
                        let border = [0.25f32, -0.5, 3.0, 0.75];
                        for nth in 0..format.1 as usize {
                            assert_eq!(result[nth], border[nth].to_bits());
                        }
                        continue;
                    }
                    let exact = filter == hipFilterModePoint;
                    agree(got, want, exact, &|| {
                        format!(
                            "{name} {format:?} mode {mode} filter {filter} flags {normalized} {point:?} slice {slice}"
                        )
                    });
                }
            }
        }
    }
}

const FLOAT1: Format = Format(HIP_AD_FORMAT_FLOAT, 1);
const FLOAT4: Format = Format(HIP_AD_FORMAT_FLOAT, 4);

const TEX: &[(&str, &str)] = &[
    ("t1", "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0}];"),
    ("t2", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
    ("t3", "tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c3}];"),
    ("a1", "tex.a1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
    ("a2", "tex.a2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c3}];"),
];

#[test]
fn every_address_mode_filter_and_dimension_follows_the_guide() {
    let mut bench = Bench::new("", "", TEX);
    for format in [FLOAT1, FLOAT4] {
        sweep(&mut bench, "t1", [7, 0, 0], 0, format, 0);
        sweep(&mut bench, "t2", [5, 3, 0], 0, format, 0);
        sweep(&mut bench, "t3", [4, 3, 5], 0, format, 0);
        sweep(&mut bench, "a1", [6, 0, 4], hipArrayLayered, format, 0);
        sweep(&mut bench, "a2", [4, 5, 3], hipArrayLayered, format, 0);
    }
}

#[test]
fn every_format_is_read_as_elements_and_as_fractions() {
    let mut bench = Bench::new("", "", TEX);
    for channels in [1, 2, 4] {
        for format in [
            HIP_AD_FORMAT_UNSIGNED_INT8,
            HIP_AD_FORMAT_UNSIGNED_INT16,
            HIP_AD_FORMAT_SIGNED_INT8,
            HIP_AD_FORMAT_SIGNED_INT16,
            HIP_AD_FORMAT_UNSIGNED_INT32,
            HIP_AD_FORMAT_SIGNED_INT32,
        ] {
            sweep(&mut bench, "t2", [5, 3, 0], 0, Format(format, channels), HIP_TRSF_READ_AS_INTEGER);
        }
        for format in [
            HIP_AD_FORMAT_UNSIGNED_INT8,
            HIP_AD_FORMAT_UNSIGNED_INT16,
            HIP_AD_FORMAT_SIGNED_INT8,
            HIP_AD_FORMAT_SIGNED_INT16,
            HIP_AD_FORMAT_HALF,
        ] {
            sweep(&mut bench, "t2", [5, 3, 0], 0, Format(format, channels), 0);
        }
        sweep(&mut bench, "t2", [5, 3, 0], 0, Format(HIP_AD_FORMAT_UNSIGNED_INT8, channels), HIP_TRSF_SRGB);
    }
}
