//! cuLink: which inputs make an image together, and what CUDA answers when they do not.

mod null;

use core::ffi::{CStr, c_char, c_void};
use std::ffi::CString;

use cuda_abi::*;
use driver::Error;
use driver::api::{context, link, module};

const CALLER: &CStr = c".version 7.8\n.target sm_80\n.address_size 64\n\
    .extern .func (.param .b32 r) helper (.param .b32 a);\n\
    .visible .entry caller(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<2>;\n\
    ld.param.u64 %rd1, [p];\n\
    { .param .b32 a; .param .b32 r; st.param.b32 [a], 1; call.uni (r), helper, (a); ld.param.b32 %r1, [r]; }\n\
    st.global.u32 [%rd1], %r1; ret; }\n";
const HELPER: &CStr = c".version 7.8\n.target sm_80\n.address_size 64\n\
    .visible .func (.param .b32 r) helper (.param .b32 a) { .reg .b32 %r<3>;\n\
    ld.param.b32 %r1, [a]; add.s32 %r2, %r1, 41; st.param.b32 [r], %r2; ret; }\n";
/// What a kernel of a program with libcudadevrt comes down to.
const LAUNCHER: &CStr = c".version 7.8\n.target sm_80\n.address_size 64\n\
    .extern .func (.param .b32 r) __cuda_syscall_cnpv2GetDeviceCount (.param .b64 a);\n\
    .visible .entry asks() { .reg .b64 %rd<2>; mov.u64 %rd1, 0;\n\
    { .param .b64 a; .param .b32 r; st.param.b64 [a], %rd1;\n\
    call.uni (r), __cuda_syscall_cnpv2GetDeviceCount, (a); } ret; }\n\
    .visible .entry plain() { ret; }\n\
    .global .align 8 .u64 table[2] = {asks, plain};\n";

struct Link(CUlinkState);

impl Link {
    fn new(options: &mut [CUjit_option], values: &mut [*mut c_void]) -> Link {
        let mut state: CUlinkState = core::ptr::null_mut();
        let n = options.len() as u32;
        // SAFETY: what the arguments point to is this test's.
        unsafe { link::cuLinkCreate_v2(n, options.as_mut_ptr(), values.as_mut_ptr(), (&mut state).into()) }
            .unwrap();
        Link(state)
    }

    fn add(&self, kind: CUjitInputType, bytes: &[u8]) -> driver::Result {
        let (data, none) = (bytes.as_ptr().cast_mut().cast(), core::ptr::null_mut());
        // SAFETY: what the arguments point to is this test's.
        unsafe {
            link::cuLinkAddData_v2(self.0, kind, data, bytes.len(), c"part".as_ptr(), 0, none, none.cast())
        }
    }

    fn ptx(&self, text: &CStr) -> driver::Result {
        self.add(CUjitInputType::CU_JIT_INPUT_PTX, text.to_bytes_with_nul())
    }

    fn complete(&self) -> Result<CUmodule, Error> {
        let (mut image, mut size) = (core::ptr::null_mut::<c_void>(), 0usize);
        link::cuLinkComplete(self.0, (&mut image).into(), Some(&mut size).into())?;
        assert!(!image.is_null() && size > 0);
        let mut loaded: CUmodule = core::ptr::null_mut();
        // SAFETY: an image, which lives as long as the test.
        unsafe { module::cuModuleLoadData((&mut loaded).into(), image) }?;
        Ok(loaded)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = link::cuLinkDestroy(self.0);
    }
}

fn function(module: CUmodule, name: &CStr) -> Result<CUfunction, Error> {
    let mut function: CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut function).into(), module, name)?;
    Ok(function)
}

fn with_context(test: impl FnOnce()) {
    null::start();
    let mut context: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut context).into(), 0, 0).unwrap();
    test();
    context::cuCtxDestroy_v2(context).unwrap();
}

/// A container with one PTX text, uncompressed: 16 bytes of header, 64 of entry header.
fn container(text: &CStr) -> Vec<u8> {
    container_for(80, text)
}

fn container_for(arch: u32, text: &CStr) -> Vec<u8> {
    let mut payload = text.to_bytes_with_nul().to_vec();
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut entry = vec![0u8; 64];
    entry[..2].copy_from_slice(&1u16.to_le_bytes());
    entry[2..4].copy_from_slice(&0x101u16.to_le_bytes());
    entry[4..8].copy_from_slice(&64u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry[28..32].copy_from_slice(&arch.to_le_bytes());
    let mut bytes = fatbin::CONTAINER_MAGIC.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend(((entry.len() + payload.len()) as u64).to_le_bytes());
    bytes.extend(entry);
    bytes.extend(payload);
    bytes
}

/// A host object with one section of device code, as `nvcc -rdc=true -c` makes it.
fn host_object(container: &[u8]) -> Vec<u8> {
    let names = b"\0__nv_relfatbin\0.shstrtab\0";
    let (code_at, names_at) = (64, 64 + container.len());
    let sections_at = (names_at + names.len()).next_multiple_of(8);
    let mut bytes = vec![0u8; sections_at + 3 * 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18] = 62;
    bytes[40..48].copy_from_slice(&(sections_at as u64).to_le_bytes());
    bytes[58..64].copy_from_slice(&[64, 0, 3, 0, 2, 0]);
    bytes[code_at..names_at].copy_from_slice(container);
    bytes[names_at..names_at + names.len()].copy_from_slice(names);
    for (index, name, kind, at, len) in
        [(1, 1u32, 1u32, code_at, container.len()), (2, 16, 3, names_at, names.len())]
    {
        let header = sections_at + index * 64;
        bytes[header..header + 4].copy_from_slice(&name.to_le_bytes());
        bytes[header + 4..header + 8].copy_from_slice(&kind.to_le_bytes());
        bytes[header + 24..header + 32].copy_from_slice(&(at as u64).to_le_bytes());
        bytes[header + 32..header + 40].copy_from_slice(&(len as u64).to_le_bytes());
    }
    bytes
}

fn archive(member: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    bytes.extend(format!("{:<16}{:<32}{:<10}`\n", "part.o/", 0, member.len()).into_bytes());
    bytes.extend(member);
    bytes
}

#[test]
fn a_function_of_one_source_is_called_from_another_in_any_order() {
    with_context(|| {
        for parts in [[CALLER, HELPER], [HELPER, CALLER]] {
            let link = Link::new(&mut [], &mut []);
            parts.iter().for_each(|part| link.ptx(part).unwrap());
            function(link.complete().unwrap(), c"caller").unwrap();
        }
    });
}

#[test]
fn containers_host_objects_and_libraries_are_inputs() {
    with_context(|| {
        let object = host_object(&container(HELPER));
        for (kind, bytes) in [
            (CUjitInputType::CU_JIT_INPUT_FATBINARY, container(HELPER)),
            (CUjitInputType::CU_JIT_INPUT_OBJECT, object.clone()),
            (CUjitInputType::CU_JIT_INPUT_LIBRARY, archive(&object)),
        ] {
            let link = Link::new(&mut [], &mut []);
            link.ptx(CALLER).unwrap();
            link.add(kind, &bytes).unwrap();
            function(link.complete().unwrap(), c"caller").unwrap();
        }
        let link = Link::new(&mut [], &mut []);
        let empty = host_object(&[]);
        assert_eq!(link.add(CUjitInputType::CU_JIT_INPUT_OBJECT, &empty), Err(Error::InvalidImage));
    });
}

/// The device says 9.0. `libcudadevrt.a` of CUDA 13.5 has members whose only PTX is for 12.1.
#[test]
fn a_librarys_member_that_does_not_fit_is_left_out_until_its_names_are_needed() {
    let newer = HELPER.to_str().unwrap().replace("7.8", "8.6").replace("sm_80", "sm_100");
    let newer = CString::new(newer).unwrap();
    let library = archive(&host_object(&container_for(100, &newer)));
    // A kernel that a program with launches from kernels has, and one that needs nobody.
    let launches = CALLER.to_str().unwrap().replace("helper", "cnpGetParameterBufferV2");
    let launches = CString::new(launches + ".visible .entry plain() { ret; }\n").unwrap();
    with_context(|| {
        let link_with = |text: &CStr| {
            let link = Link::new(&mut [], &mut []);
            link.ptx(text).unwrap();
            link.add(CUjitInputType::CU_JIT_INPUT_LIBRARY, &library).unwrap();
            link.complete()
        };
        function(
            link_with(c".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry plain() { ret; }\n")
                .unwrap(),
            c"plain",
        )
        .unwrap();
        assert_eq!(link_with(CALLER), Err(Error::NoBinaryForGpu));
        let module = link_with(&launches).unwrap();
        function(module, c"plain").unwrap();
        let refused = function(module, c"caller").unwrap_err();
        assert_eq!(refused.result(), CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED);
        // Elsewhere it is what was asked for, and does not fit.
        let link = Link::new(&mut [], &mut []);
        let object = host_object(&container_for(100, &newer));
        assert_eq!(link.add(CUjitInputType::CU_JIT_INPUT_OBJECT, &object), Err(Error::NoBinaryForGpu));
    });
}

/// The device says 9.0.
#[test]
fn ptx_for_a_newer_device_is_invalid_and_a_fat_binary_of_it_has_none() {
    let text = |arch: &str| {
        format!(".version 8.6\n.target {arch}\n.address_size 64\n.visible .entry k() {{ ret; }}\n\0")
    };
    let [fits, newer] = ["sm_90", "sm_100"].map(text);
    let [fits, newer] = [&fits, &newer].map(|text| CStr::from_bytes_with_nul(text.as_bytes()).unwrap());
    with_context(|| {
        let load = |image: &[u8]| {
            let mut module: CUmodule = core::ptr::null_mut();
            // SAFETY: an image, which lives as long as the test.
            unsafe { module::cuModuleLoadData((&mut module).into(), image.as_ptr().cast()) }
        };
        load(fits.to_bytes_with_nul()).unwrap();
        load(&container_for(90, fits)).unwrap();
        assert_eq!(load(newer.to_bytes_with_nul()), Err(Error::InvalidPtx));
        assert_eq!(load(&container_for(100, newer)), Err(Error::NoBinaryForGpu));
        let link = Link::new(&mut [], &mut []);
        assert_eq!(link.ptx(newer), Err(Error::InvalidPtx));
    });
}

/// Measured with NVIDIA's driver (SourceryTools/nvptx-tools issue 48): the second input is refused with code 300.
#[test]
fn a_name_defined_twice_is_refused_with_the_input_that_brings_it_again() {
    with_context(|| {
        let mut log = [0 as c_char; 256];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), core::ptr::without_provenance_mut(256)];
        let link = Link::new(&mut options, &mut values);
        link.ptx(HELPER).unwrap();
        let refused = link.ptx(HELPER).unwrap_err();
        assert_eq!(refused.result(), CUresult::CUDA_ERROR_INVALID_SOURCE);
        // SAFETY: the log is NUL-terminated.
        let text = unsafe { CStr::from_ptr(log.as_ptr()) }.to_string_lossy().into_owned();
        assert!(text.contains("'helper' is defined in more than one source"), "{text}");
        assert_eq!(values[1].addr(), text.len() + 1);
        // Nor does it give an image any more (driver 580).
        assert_eq!(link.complete().unwrap_err(), refused);
    });
}

#[test]
fn what_is_defined_nowhere_fails_the_link_and_text_that_is_no_ptx_its_input() {
    with_context(|| {
        let link = Link::new(&mut [], &mut []);
        link.ptx(CALLER).unwrap();
        // As driver 580 does, each time, and it takes no more.
        for _ in 0..2 {
            assert_eq!(link.complete().unwrap_err().result(), CUresult::CUDA_ERROR_INVALID_SOURCE);
            assert!(matches!(link.ptx(HELPER), Err(Error::InvalidValue(_))));
        }
        let link = Link::new(&mut [], &mut []);
        assert_eq!(link.ptx(c"hello").unwrap_err().result(), CUresult::CUDA_ERROR_INVALID_IMAGE);
        let nvvm = link.add(CUjitInputType::CU_JIT_INPUT_NVVM, b"BC").unwrap_err();
        assert_eq!(nvvm.result(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
        assert_eq!(link.add(CUjitInputType(77), b"x"), Err(Error::InvalidValue("type")));
    });
}

#[test]
fn a_kernel_that_needs_the_device_runtime_fails_alone() {
    // Both layers below libcudadevrt.
    let first = LAUNCHER.to_str().unwrap().replace("__cuda_syscall_cnpv2", "cnp");
    let first = CString::new(first).unwrap();
    with_context(|| {
        for text in [LAUNCHER, &first] {
            let link = Link::new(&mut [], &mut []);
            link.ptx(text).unwrap();
            let module = link.complete().unwrap();
            function(module, c"plain").unwrap();
            let refused = function(module, c"asks").unwrap_err();
            assert_eq!(refused.result(), CUresult::CUDA_ERROR_CDP_NOT_SUPPORTED);
        }
    });
}

#[test]
fn a_link_that_is_complete_takes_no_more_and_a_destroyed_one_nothing() {
    with_context(|| {
        let link = Link::new(&mut [], &mut []);
        link.ptx(HELPER).unwrap();
        link.complete().unwrap();
        assert!(matches!(link.ptx(CALLER), Err(Error::InvalidValue(_))));
        link::cuLinkDestroy(link.0).unwrap();
        assert!(matches!(link.ptx(CALLER), Err(Error::InvalidHandle(_))));
        assert!(matches!(link::cuLinkDestroy(link.0), Err(Error::InvalidHandle(_))));
    });
}
