//! Textures, samplers and surfaces by name: bound through the module, given as parameters, reached through pointers.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;

use super::support::*;

use border::Out;
use hip_cpu::api::*;
use hip_sys::*;

const MODULE: &str = "
.version 8.5
.target sm_80
.address_size 64
.global .texref image = { normalized_coords = 1, addr_mode_0 = wrap, addr_mode_1 = mirror, filter_mode = linear };
.visible .global .texref list[2];
.global .surfref target;
.visible .global .u64 pointer = image;
.visible .entry fetch(.param .u64 o, .param .f32 x, .param .f32 y) {
  .reg .b64 %o; .reg .f32 %f<8>; .reg .b64 %p;
  ld.param.u64 %o, [o]; ld.param.f32 %f4, [x]; ld.param.f32 %f5, [y];
  tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [image, {%f4,%f5}];
  st.global.f32 [%o], %f0;
  ld.global.u64 %p, [pointer];
  tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%p, {%f4,%f5}];
  st.global.f32 [%o+4], %f0;
  mov.u64 %p, image;
  tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%p, {%f4,%f5}];
  st.global.f32 [%o+8], %f0;
  ret;
}
.visible .entry given(.param .texref t, .param .u64 o, .param .f32 x, .param .f32 y) {
  .reg .b64 %o; .reg .f32 %f<8>;
  ld.param.u64 %o, [o]; ld.param.f32 %f4, [x]; ld.param.f32 %f5, [y];
  tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [t, {%f4,%f5}];
  st.global.f32 [%o], %f0;
  ret;
}
.visible .entry put(.param .u32 x, .param .u32 v) {
  .reg .b32 %r<4>;
  ld.param.u32 %r0, [x]; ld.param.u32 %r1, [v];
  sust.b.2d.b32.trap [target, {%r0, 0}], %r1;
  ret;
}
.visible .entry kinds(.param .u64 o) {
  .reg .b64 %o; .reg .b64 %p; .reg .pred %q; .reg .b32 %r<4>;
  ld.param.u64 %o, [o];
  mov.u64 %p, image; istypep.texref %q, %p; selp.u32 %r0, 1, 0, %q;
  istypep.surfref %q, %p; selp.u32 %r1, 1, 0, %q;
  mov.u64 %p, target; istypep.surfref %q, %p; selp.u32 %r2, 1, 0, %q;
  istypep.texref %q, %o; selp.u32 %r3, 1, 0, %q;
  st.global.v4.u32 [%o], {%r0,%r1,%r2,%r3};
  ret;
}
";

fn module(text: &str) -> hipModule_t {
    let text = CString::new(text).unwrap();
    let mut module = null_mut();
    // SAFETY: PTX text that ends with a NUL.
    unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
    module
}

/// Launches one thread and waits.
fn launch(module: hipModule_t, name: &str, args: &[&[u8]]) {
    let name = CString::new(name).unwrap();
    let mut function = null_mut();
    hipModuleGetFunction(Out::from(&mut function), module, &name).unwrap();
    let mut params: Vec<*mut c_void> = args.iter().map(|it| it.as_ptr().cast_mut().cast()).collect();
    hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), params.as_mut_ptr(), null_mut())
        .unwrap();
    hipStreamSynchronize(null_mut()).unwrap();
}

struct Output(*mut c_void);

impl Output {
    fn new() -> Output {
        let mut at = null_mut();
        hipMalloc(Out::from(&mut at), 64).unwrap();
        Output(at)
    }

    fn bytes(&self) -> [u8; 8] {
        (self.0 as u64).to_le_bytes()
    }

    fn words(&self) -> [u32; 4] {
        let mut words = [0u32; 4];
        hipMemcpy(words.as_mut_ptr().cast(), self.0, 16, hipMemcpyDeviceToHost).unwrap();
        words
    }

    fn floats(&self) -> [f32; 4] {
        self.words().map(f32::from_bits)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        hipFree(self.0).unwrap();
    }
}

fn texref(module: hipModule_t, name: &str) -> *mut textureReference {
    let name = CString::new(name).unwrap();
    let mut texref = null_mut();
    hipModuleGetTexRef(Out::from(&mut texref), module, &name).unwrap();
    texref
}

const ROWS: [[f32; 4]; 2] = [[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]];

fn rows() -> Vec<u8> {
    ROWS.iter().flatten().flat_map(|it| it.to_le_bytes()).collect()
}

const FLOAT: Format = Format(HIP_AD_FORMAT_FLOAT, 1);

#[test]
fn a_reference_reads_what_is_bound_to_it_as_its_state_says() {
    let module = module(MODULE);
    let (image, output) = (texref(module, "image"), Output::new());
    assert_eq!(texref(module, "image"), image);
    // As the initialiser says.
    let mut mode = 0;
    hipTexRefGetAddressMode(Out::from(&mut mode), image, 1).unwrap();
    assert_eq!(mode, hipAddressModeMirror);
    let mut flags = 0;
    hipTexRefGetFlags(Out::from(&mut flags), image).unwrap();
    assert_eq!(flags, HIP_TRSF_NORMALIZED_COORDINATES);
    let array = array([4, 2, 0], FLOAT, 0);
    upload(array, &rows(), 16, 2, 1);
    hipTexRefSetArray(image, array, HIP_TRSA_OVERRIDE_FORMAT).unwrap();
    let fetch = |x: f32, y: f32| {
        launch(module, "fetch", &[&output.bytes(), &x.to_le_bytes(), &y.to_le_bytes()]);
        let [named, stored, moved, _] = output.floats();
        assert_eq!((named, named), (stored, moved), "one texture by name, from memory, and by its address");
        named
    };
    // Normalised, linear: x 0.5 lies between elements 1 and 2, and -0.5 too, since it wraps; y 1.25 is mirrored to 0.75.
    assert_eq!(fetch(0.5, 0.25), 2.5);
    assert_eq!(fetch(-0.5, 0.25), 2.5);
    assert_eq!(fetch(0.5, 1.25), 25.0);
    hipTexRefSetFilterMode(image, hipFilterModePoint).unwrap();
    assert_eq!(fetch(0.6, 0.25), 3.0);
    hipTexRefSetFlags(image, 0).unwrap();
    assert_eq!(fetch(3.5, 1.5), 40.0);
    // Repeating needs normalised coordinates.
    assert_eq!(fetch(9.0, -3.0), 4.0);
    hipTexRefSetAddressMode(image, 0, hipAddressModeBorder).unwrap();
    assert_eq!(fetch(9.0, 0.0), 0.0);
    hipTexRefSetBorderColor(image, &[7.0, 0.0, 0.0, 0.0]).unwrap();
    assert_eq!(fetch(9.0, 0.0), 7.0);
    let mut back = null_mut();
    hipTexRefGetArray(Out::from(&mut back), image).unwrap();
    assert_eq!(back, array);
    // Another array takes its place; the first may go.
    let other = super::support::array([4, 2, 0], FLOAT, 0);
    upload(other, &[0x3f; 32], 16, 2, 1);
    hipTexRefSetArray(image, other, HIP_TRSA_OVERRIDE_FORMAT).unwrap();
    hipArrayDestroy(array).unwrap();
    assert_eq!(fetch(0.5, 0.5), f32::from_bits(0x3f3f_3f3f));
    assert_eq!(hipTexRefSetAddressMode(image, 3, hipAddressModeWrap), Err(hipErrorInvalidValue));
    assert_eq!(hipTexRefSetFilterMode(image, 9), Err(hipErrorInvalidValue));
    let mut none = null_mut();
    assert_eq!(hipModuleGetTexRef(Out::from(&mut none), module, c"target"), Err(hipErrorNotFound));
    hipModuleUnload(module).unwrap();
    assert_eq!(hipTexRefSetFlags(image, 0), Err(hipErrorInvalidValue), "gone with its module");
    hipArrayDestroy(other).unwrap();
}

#[test]
fn a_reference_reads_linear_and_pitched_memory() {
    let module = module(MODULE);
    let (image, output) = (texref(module, "image"), Output::new());
    let mut memory = null_mut();
    hipMalloc(Out::from(&mut memory), 1024).unwrap();
    hipMemcpy(memory, rows().as_ptr().cast(), 32, hipMemcpyHostToDevice).unwrap();
    hipTexRefSetFlags(image, 0).unwrap();
    hipTexRefSetFilterMode(image, hipFilterModePoint).unwrap();
    let desc = HIP_ARRAY_DESCRIPTOR { Width: 4, Height: 1, Format: HIP_AD_FORMAT_FLOAT, NumChannels: 1 };
    hipTexRefSetAddress2D(image, &desc, memory, 32).unwrap();
    launch(module, "fetch", &[&output.bytes(), &2.5f32.to_le_bytes(), &0f32.to_le_bytes()]);
    assert_eq!(output.floats()[0], 3.0);
    hipTexRefSetFormat(image, HIP_AD_FORMAT_UNSIGNED_INT8, 1).unwrap();
    let mut offset = 1;
    let inside = memory.wrapping_byte_add(16);
    hipTexRefSetAddress((&mut offset).into(), image, inside, 16).unwrap();
    assert_eq!(offset, 16);
    assert_eq!(hipTexRefSetAddress(None.into(), image, inside, 16), Err(hipErrorInvalidValue));
    // Byte 18 as a fraction: 10.0 is 0x41200000.
    launch(module, "fetch", &[&output.bytes(), &18.5f32.to_le_bytes(), &0f32.to_le_bytes()]);
    assert_eq!(output.floats()[0], 32.0 / 255.0);
    let mut address = null_mut();
    hipTexRefGetAddress(Out::from(&mut address), image).unwrap();
    assert_eq!(address, memory);
    hipModuleUnload(module).unwrap();
    hipFree(memory).unwrap();
}

#[test]
fn textures_are_parameters_and_surfaces_are_bound_by_their_variable() {
    let module = module(MODULE);
    let output = Output::new();
    let array = array([4, 2, 0], FLOAT, hipArraySurfaceLoadStore);
    upload(array, &rows(), 16, 2, 1);
    let object = texture(&of_array(array), &HIP_TEXTURE_DESC::default());
    let handle = (object as u64).to_le_bytes();
    launch(module, "given", &[&handle, &output.bytes(), &1f32.to_le_bytes(), &1f32.to_le_bytes()]);
    assert_eq!(output.floats()[0], 20.0);
    // What the driver does for cuSurfRefSetArray, since HIP has no surface references.
    let surface = surface(array);
    let (mut variable, mut bytes): (hipDeviceptr_t, usize) = (null_mut(), 0);
    hipModuleGetGlobal((&mut variable).into(), (&mut bytes).into(), module, c"target").unwrap();
    assert_eq!(bytes as u64, compiler::texture::REFERENCE_BYTES);
    let mut handle = surface as u64;
    let at = variable.wrapping_byte_add(compiler::texture::REFERENCE_OBJECT as usize);
    hipMemcpyHtoD(at, (&raw mut handle).cast(), 8).unwrap();
    launch(module, "put", &[&4u32.to_le_bytes(), &(-5f32).to_bits().to_le_bytes()]);
    let mut wanted = rows();
    wanted[4..8].copy_from_slice(&(-5f32).to_le_bytes());
    assert_eq!(download(array, 16, 2, 1), wanted);
    launch(module, "kinds", &[&output.bytes()]);
    assert_eq!(output.words(), [1, 0, 1, 0]);
    hipTexObjectDestroy(object).unwrap();
    hipDestroySurfaceObject(surface).unwrap();
    hipModuleUnload(module).unwrap();
    hipArrayDestroy(array).unwrap();
}

#[test]
fn independent_samplers_say_how_a_texture_is_read() {
    let mut bench = Bench::new(
        ", texmode_independent",
        ".global .samplerref near = { addr_mode_0 = clamp_to_border, addr_mode_1 = clamp_to_edge, filter_mode = nearest };
         .global .samplerref far = { addr_mode_0 = wrap, addr_mode_1 = mirror, filter_mode = linear };
         .global .samplerref plain = { addr_mode_0 = clamp_ogl, filter_mode = linear, force_unnormalized_coords = 1 };",
        &[
            ("by_near", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, near, {%c0,%c1}];"),
            ("by_far", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, far, {%c0,%c1}];"),
            ("by_plain", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, plain, {%c0,%c1}];"),
            ("handle", "mov.u64 %s, far; tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, %s, {%c0,%c1}];"),
            ("bad", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, %s, {%c0,%c1}];"),
            ("q", "txq.filter_mode.b32 %o0, [plain]; txq.addr_mode_0.b32 %o1, [plain]; \
                   txq.addr_mode_1.b32 %o2, [far]; txq.force_unnormalized_coords.b32 %o3, [plain]; \
                   txq.addr_mode_0.b32 %o4, [near]; txq.normalized_coords.b32 %o5, [%t];"),
        ],
    );
    let array = array([4, 2, 0], FLOAT, 0);
    upload(array, &rows(), 16, 2, 1);
    let desc = HIP_TEXTURE_DESC { flags: HIP_TRSF_NORMALIZED_COORDINATES, ..HIP_TEXTURE_DESC::default() };
    let object = texture(&of_array(array), &desc) as u64;
    let mut fetch = |name: &str, x: f32, y: f32| f32::from_bits(bench.one(name, object, &words(&[x, y]))[0]);
    assert_eq!(fetch("by_near", 0.6, 0.25), 3.0);
    assert_eq!(fetch("by_near", 1.1, 0.25), 0.0);
    assert_eq!(fetch("by_near", 0.1, 7.0), 10.0);
    for name in ["by_far", "handle"] {
        assert_eq!(fetch(name, 0.5, 0.25), 2.5);
        assert_eq!(fetch(name, 1.5, 1.25), 25.0);
    }
    // clamp_ogl: beyond the edge half of the border shines through.
    assert_eq!(fetch("by_plain", 1.0, 0.5), 1.5);
    assert_eq!(fetch("by_plain", 99.0, 0.5), 2.0);
    assert_eq!(bench.one("q", object, &[])[..6], [1, 2, 1, 1, 4, 1]);
    let ran = bench.run("bad", object, object, &[[0; IN]]);
    assert!(matches!(ran, Err(hip_cpu::exec::Fault::Address(_))), "a texture is no sampler: {ran:?}");
    hipTexObjectDestroy(object as hipTextureObject_t).unwrap();
    hipArrayDestroy(array).unwrap();
}
