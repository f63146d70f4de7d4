//! `tcgen05`: tensor memory and what works on it. What is expected follows from the manual's layouts, which are written down
//! here a second time, as places of single elements.

mod columns;
mod copy;
#[path = "../elements/mod.rs"]
mod elements;
mod product;
mod transfer;

use elements::{Random, seed};
use hip_cpu::harness::{self, Arg, Draw, Error, How};

/// A kernel of these parameters and instructions; `registers` are declared besides the usual ones.
fn kernel(parameters: &str, body: &str) -> String {
    format!(
        ".version 9.1\n.target sm_100a\n.address_size 64\n\
         .visible .entry kernel({parameters})\n{{\n.shared .align 1024 .b8 tile[1024];\n\
         .reg .pred %p<10>;\n.reg .b16 %h<10>;\n.reg .b32 %r<300>, %t, %w, %at;\n.reg .f32 %f<300>;\n.reg .b64 %rd<20>;\n\
         mov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\n{body}\nret;\n}}\n"
    )
}

fn refusal(instruction: &str) -> Option<String> {
    // Not of every target that has the others.
    let target = if instruction.contains("ld.red") { "sm_110a" } else { "sm_100a" };
    let text = kernel("", instruction).replace("sm_100a", target);
    let made = harness::load(&text)
        .and_then(|program| harness::emit(&program, "kernel", &How::new(1, 128)).map(|_| ()));
    made.err().map(|error| error.to_string())
}

/// Runs the kernel as `how` says in `lane` and in settings that are drawn, and gives the words that each leaves in a buffer of so many, which is its
/// first parameter; the others are `more`.
fn in_settings(text: &str, how: &How, words: usize, more: &[Vec<u8>]) -> Vec<Vec<u32>> {
    let program = harness::load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if std::env::var_os("SHOW").is_some() {
        return vec![];
    }
    let hows =
        [how.clone().lane(), how.clone().baseline(), how.clone().warp(), how.clone(), how.clone().simd(8)];
    let (mut given, mut refused) = (vec![], 0);
    for how in Draw::now().ways(text, hows) {
        let mut to = vec![0xaa; 4 * words];
        let mut others = more.to_vec();
        let mut args = vec![Arg::Buffer(&mut to)];
        args.extend(others.iter_mut().map(|bytes| Arg::Buffer(bytes)));
        match harness::run(&program, "kernel", &how, &mut args) {
            Err(Error::Refused { .. }) => {
                refused += 1;
                continue;
            }
            other => other.unwrap_or_else(|error| panic!("{:?}: {error}\n{text}", how.setting)),
        }
        given.push(to.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect());
    }
    assert!(refused <= 1, "{refused} settings do not run it");
    given
}
