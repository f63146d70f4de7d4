//! What a launch costs on the CPU provider: an empty kernel, enqueued, and enqueued and waited for.

use std::ffi::{CString, c_void};

use border::Out;
use criterion::{Criterion, criterion_group, criterion_main};
use hip_cpu::api::*;
use hip_sys::*;

const EMPTY: &str =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry empty(.param .u64 p)\n{\n ret;\n}\n";

struct Launcher {
    function: hipFunction_t,
    stream: hipStream_t,
}

impl Launcher {
    fn new(flags: u32) -> Launcher {
        let text = CString::new(EMPTY).unwrap();
        let (mut module, mut function, mut stream) =
            (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: PTX text that ends with a NUL.
        unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
        hipModuleGetFunction(Out::from(&mut function), module, c"empty").unwrap();
        hipStreamCreateWithFlags(Out::from(&mut stream), flags).unwrap();
        Launcher { function, stream }
    }

    fn launch(&self, grid: u32) {
        let mut argument = 0u64;
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        hipModuleLaunchKernel(
            self.function,
            grid,
            1,
            1,
            32,
            1,
            1,
            0,
            self.stream,
            arguments.as_mut_ptr(),
            std::ptr::null_mut(),
        )
        .unwrap();
    }

    fn wait(&self) {
        hipStreamSynchronize(self.stream).unwrap();
    }
}

fn launches(c: &mut Criterion) {
    for (name, flags) in
        [("blocking stream", hipStreamDefault), ("non-blocking stream", hipStreamNonBlocking)]
    {
        let own = Launcher::new(flags);
        own.launch(1);
        own.wait();
        c.bench_function(&format!("launch and wait, 1 block, {name}"), |b| {
            b.iter(|| {
                own.launch(1);
                own.wait();
            });
        });
        c.bench_function(&format!("launch and wait, 1000 blocks, {name}"), |b| {
            b.iter(|| {
                own.launch(1000);
                own.wait();
            });
        });
        c.bench_function(&format!("100 launches, then wait, {name}"), |b| {
            b.iter(|| {
                for _ in 0..100 {
                    own.launch(1);
                }
                own.wait();
            });
        });
    }
}

criterion_group!(benches, launches);
criterion_main!(benches);
