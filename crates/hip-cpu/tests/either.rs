//! Two arrays that are read one behind the other: each lane selects the address in the first or in the second. Groups lie wholly in one, or
//! across the border. Expected values are counted here.

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, Error, How, load, run};

const THREADS: usize = 192;

/// Reads a word, and a pair of words, by the thread's number from `first` up to `border` and from `second` from there on.
const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry either(.param .u64 first, .param .u64 second, .param .u64 out, .param .u32 border) {
.reg .pred %p;
.reg .b32 %i, %border, %rest, %x, %y, %z, %r<9>;
.reg .b64 %first, %second, %out, %wide, %a, %b, %from;
ld.param.u64 %first, [first];
ld.param.u64 %second, [second];
ld.param.u64 %out, [out];
ld.param.u32 %border, [border];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %i, %tid.x;
mad.lo.s32 %i, %r1, %r2, %i;
sub.s32 %rest, %i, %border;
setp.lt.s32 %p, %i, %border;
mul.wide.s32 %wide, %i, 4;
add.s64 %a, %first, %wide;
mul.wide.s32 %wide, %rest, 4;
add.s64 %b, %second, %wide;
selp.b64 %from, %a, %b, %p;
ld.global.u32 %x, [%from];
mul.wide.s32 %wide, %i, 8;
add.s64 %a, %first, %wide;
mul.wide.s32 %wide, %rest, 8;
add.s64 %b, %second, %wide;
selp.b64 %from, %a, %b, %p;
ld.global.v2.u32 {%y, %z}, [%from];
mad.lo.u32 %x, %y, 3, %x;
mad.lo.u32 %x, %z, 5, %x;
mul.wide.s32 %wide, %i, 4;
add.s64 %out, %out, %wide;
st.global.u32 [%out], %x;
ret;
}
";

#[test]
fn arrays_one_behind_the_other_are_read_up_to_their_border() {
    let program = load(TEXT).unwrap();
    let words =
        |first: u32| (0..2 * THREADS as u32).map(|i| i.wrapping_mul(0x9e37_79b9) ^ first).collect::<Vec<_>>();
    let (first, second) = (words(1), words(0x5555));
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    for border in [0, 1, 31, 32, 33, 64, 100, 128, THREADS - 1, THREADS] {
        let expected: Vec<u32> = (0..THREADS)
            .map(|i| {
                let (array, i) = if i < border { (&first, i) } else { (&second, i - border) };
                let pair = array[2 * i].wrapping_mul(3).wrapping_add(array[2 * i + 1].wrapping_mul(5));
                array[i].wrapping_add(pair)
            })
            .collect();
        for how in How::new(3, (THREADS / 3) as u32).in_each_setting() {
            let (mut first, mut second, mut out) = (bytes(&first), bytes(&second), vec![0; THREADS * 4]);
            let mut args = [
                Arg::Buffer(&mut first),
                Arg::Buffer(&mut second),
                Arg::Buffer(&mut out),
                Arg::u32(border as u32),
            ];
            match run(&program, "either", &how, &mut args) {
                Ok(_) => {}
                Err(Error::Refused { .. }) if how.setting == Some(Setting::Warp) => continue,
                Err(error) => panic!("{how:?}: {error}"),
            }
            let found: Vec<u32> =
                out.chunks(4).map(|it| u32::from_le_bytes(it.try_into().unwrap())).collect();
            assert_eq!(found, expected, "border {border} {how:?}");
        }
    }
}
