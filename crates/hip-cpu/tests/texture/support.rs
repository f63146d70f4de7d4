//! Kernels of one instruction each, run in every setting; arrays and objects by the HIP calls.

use std::collections::HashMap;
use std::ptr::null_mut;

use border::Out;
use compiler::Program;
use hip_cpu::api::*;
use hip_cpu::exec::{Fault, Kernel};
use hip_cpu::harness::{Arg, Error, Globals, How, code, emit, load, run_code};
use hip_sys::*;

/// Words each thread reads and writes.
pub const IN: usize = 16;
pub const OUT: usize = 8;

/// A module with one kernel per instruction. An instruction finds its handle in `%t`, a sampler in `%s`, its words in
/// `%c0` … `%c15` and leaves its results in `%o0` … `%o7`.
pub struct Bench {
    program: Program,
    codes: HashMap<(String, u32, usize), Kernel>,
    globals: Globals,
    /// How many of `lane`, `warp`, `simd` to run.
    settings: usize,
}

fn kernel(name: &str, instruction: &str) -> String {
    // A line for each: the list of forms that tests show is read from the lines.
    let instruction = instruction.replace("; ", ";\n");
    format!(
        ".visible .entry {name}(.param .u64 t, .param .u64 s, .param .u64 i, .param .u64 o) {{
         .reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %c<16>; .reg .b32 %o<8>; .reg .b32 %x<4>;
         .reg .b64 %t; .reg .b64 %s; .reg .b64 %i; .reg .b64 %out; .reg .b64 %w; .reg .b64 %d<8>;
         ld.param.u64 %t, [t]; ld.param.u64 %s, [s]; ld.param.u64 %i, [i]; ld.param.u64 %out, [o];
         mov.u32 %x0, %tid.x; mov.u32 %x1, %ctaid.x; mad.lo.u32 %x0, %x1, 32, %x0;
         mul.wide.u32 %w, %x0, 64; add.u64 %i, %i, %w; mul.wide.u32 %w, %x0, 32; add.u64 %out, %out, %w;
         ld.global.v4.u32 {{%c0,%c1,%c2,%c3}}, [%i]; ld.global.v4.u32 {{%c4,%c5,%c6,%c7}}, [%i+16];
         ld.global.v4.u32 {{%c8,%c9,%c10,%c11}}, [%i+32]; ld.global.v4.u32 {{%c12,%c13,%c14,%c15}}, [%i+48];
         mov.u32 %o0, 0; mov.u32 %o1, 0; mov.u32 %o2, 0; mov.u32 %o3, 0;
         mov.u32 %o4, 0; mov.u32 %o5, 0; mov.u32 %o6, 0; mov.u32 %o7, 0;
         {instruction}
         st.global.v4.u32 [%out], {{%o0,%o1,%o2,%o3}}; st.global.v4.u32 [%out+16], {{%o4,%o5,%o6,%o7}};
         ret; }}\n"
    )
}

impl Bench {
    /// `variables` stand in front of the kernels.
    pub fn new(mode: &str, variables: &str, instructions: &[(&str, &str)]) -> Bench {
        let kernels: String = instructions.iter().map(|(name, text)| kernel(name, text)).collect();
        let text = format!(".version 8.5\n.target sm_80{mode}\n.address_size 64\n{variables}\n{kernels}");
        let program = load(&text).unwrap();
        for kernel in &program.kernels {
            if let Err(diagnostics) = &kernel.body {
                panic!("{}: {}", kernel.name, diagnostics[0]);
            }
        }
        let globals = Globals::place(&program);
        Bench { program, codes: HashMap::new(), globals, settings: 3 }
    }

    /// Runs in setting `lane` only: for what differs in the host's part alone.
    pub fn in_lanes(mut self) -> Bench {
        self.settings = 1;
        self
    }

    /// Runs the kernel in `lane`, `warp` and `simd`; all give the same bits.
    pub fn run(
        &mut self,
        name: &str,
        handle: u64,
        sampler: u64,
        inputs: &[[u32; IN]],
    ) -> Result<Vec<[u32; OUT]>, Fault> {
        // No thread too many: they would store, too.
        let threads = inputs.len().min(32) as u32;
        let blocks = inputs.len().div_ceil(32);
        assert!(blocks == 1 || inputs.len().is_multiple_of(32));
        let mut answers = vec![];
        for setting in 0..self.settings {
            let how = How::new(blocks as u32, threads);
            let how = [how.clone().lane(), how.clone().warp(), how.simd(8)][setting].clone();
            let key = (name.to_owned(), threads, setting);
            if !self.codes.contains_key(&key) {
                let compiled = emit(&self.program, name, &how).unwrap_or_else(|e| panic!("{name}: {e}"));
                self.codes.insert(key.clone(), code(name, &compiled, &how).unwrap());
            }
            let mut words: Vec<u8> = inputs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
            words.resize(blocks * 32 * IN * 4, 0);
            let mut results = vec![0xeeu8; blocks * 32 * OUT * 4];
            let mut args =
                [Arg::u64(handle), Arg::u64(sampler), Arg::Buffer(&mut words), Arg::Buffer(&mut results)];
            let ran = run_code(&self.program, name, &self.codes[&key], &how, &mut args, &mut self.globals);
            match ran {
                Ok(()) => {}
                Err(Error::Fault(fault)) => {
                    answers.push(Err(fault));
                    continue;
                }
                Err(error) => panic!("{name}: {error}"),
            }
            let words: Vec<u32> =
                results.chunks(4).map(|it| u32::from_le_bytes(it.try_into().unwrap())).collect();
            let rows: Vec<[u32; OUT]> = words.chunks(OUT).map(|it| it.try_into().unwrap()).collect();
            answers.push(Ok(rows[..inputs.len()].to_vec()));
        }
        for (other, setting) in answers.iter().zip(["lane", "warp", "simd"]) {
            assert_eq!(answers[0], *other, "{name}: lane and {setting}");
        }
        answers.swap_remove(0)
    }

    /// Without a handle that matters.
    pub fn one(&mut self, name: &str, handle: u64, words: &[u32]) -> [u32; OUT] {
        let mut input = [0; IN];
        input[..words.len()].copy_from_slice(words);
        self.run(name, handle, 0, &[input]).unwrap()[0]
    }
}

pub fn words(values: &[f32]) -> [u32; IN] {
    std::array::from_fn(|nth| values.get(nth).map_or(0, |it| it.to_bits()))
}

// ---- arrays and objects ----

#[derive(Clone, Copy, Debug)]
pub struct Format(pub hipArray_Format, pub u32);

impl Format {
    pub fn channel_bytes(self) -> usize {
        match self.0 {
            HIP_AD_FORMAT_UNSIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT8 => 1,
            HIP_AD_FORMAT_UNSIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_HALF => 2,
            _ => 4,
        }
    }

    pub fn bytes(self) -> usize {
        self.channel_bytes() * self.1 as usize
    }
}

pub fn array(size: [usize; 3], format: Format, flags: u32) -> hipArray_t {
    let desc = HIP_ARRAY3D_DESCRIPTOR {
        Width: size[0],
        Height: size[1],
        Depth: size[2],
        Format: format.0,
        NumChannels: format.1,
        Flags: flags,
    };
    let mut array = null_mut();
    hipArray3DCreate(Out::from(&mut array), &desc).unwrap();
    array
}

fn nothing() -> HIP_MEMCPY3D {
    // SAFETY: integers and pointers.
    unsafe { std::mem::zeroed() }
}

pub fn upload(array: hipArray_t, bytes: &[u8], row: usize, rows: usize, slices: usize) {
    assert_eq!(bytes.len(), row * rows * slices);
    let copy = HIP_MEMCPY3D {
        srcMemoryType: hipMemoryTypeHost,
        srcHost: bytes.as_ptr().cast(),
        dstMemoryType: hipMemoryTypeArray,
        dstArray: array,
        WidthInBytes: row,
        Height: rows,
        Depth: slices,
        ..nothing()
    };
    hipDrvMemcpy3D(&copy).unwrap();
}

pub fn download(array: hipArray_t, row: usize, rows: usize, slices: usize) -> Vec<u8> {
    let mut bytes = vec![0; row * rows * slices];
    let copy = HIP_MEMCPY3D {
        srcMemoryType: hipMemoryTypeArray,
        srcArray: array,
        dstMemoryType: hipMemoryTypeHost,
        dstHost: bytes.as_mut_ptr().cast(),
        WidthInBytes: row,
        Height: rows,
        Depth: slices,
        ..nothing()
    };
    hipDrvMemcpy3D(&copy).unwrap();
    bytes
}

pub fn of_array(array: hipArray_t) -> HIP_RESOURCE_DESC {
    let mut res = HIP_RESOURCE_UNION { reserved: [0; 32] };
    res.array = array;
    HIP_RESOURCE_DESC { resType: hipResourceTypeArray, res, flags: 0 }
}

pub fn texture(resource: &HIP_RESOURCE_DESC, desc: &HIP_TEXTURE_DESC) -> hipTextureObject_t {
    let mut object = null_mut();
    hipTexObjectCreate(Out::from(&mut object), resource, desc, None).unwrap();
    object
}

pub fn surface(array: hipArray_t) -> hipSurfaceObject_t {
    let desc = hipResourceDesc { resType: hipResourceTypeArray, res: hipResourceUnion { array } };
    let mut object = null_mut();
    hipCreateSurfaceObject(Out::from(&mut object), &desc).unwrap();
    object
}

/// A small generator: the tests' numbers are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// In [low, high), often on a 16th.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        let x = low + (high - low) * (self.next() as f32 / (1u64 << 31) as f32);
        if self.next() & 1 == 0 { x } else { (x * 16.0).floor() / 16.0 }
    }
}
