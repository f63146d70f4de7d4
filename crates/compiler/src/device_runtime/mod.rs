//! CUDA's device runtime: what kernels call by the names of libcudadevrt, as functions of ours in PTX.
//!
//! Grids that meet (cooperative groups) do it in PTX alone. All else is the host's: launches, streams, events, copies, memory,
//! queries. Each of those functions puts its arguments behind each other in local memory and asks by one system call, which a device of the CPU answers by a service and code for AMD GPUs by itself ([`crate::gcn::children`]).
//! Source: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism", with its part on launches from PTX.

pub mod answer;
pub mod graphs;
pub mod order;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::ir::{Inst, Op, Syscall, Value};
pub use crate::lower::kernel_of_address;
use crate::program::{Program, Source};

/// The system call: arguments and number to result.
pub const SYSCALL: &str = "__cudaway_device_runtime";

/// The name of our source. What it defines goes before what other sources have under the same names, which is NVIDIA's own
/// library over a driver's system calls.
pub const SOURCE: &str = "<device runtime>";

/// One argument.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arg {
    Word,
    Long,
    /// A structure of so many bytes and alignment.
    Bytes(usize, usize),
}

use Arg::{Long, Word};

/// `dim3`
const DIM: Arg = Arg::Bytes(12, 4);

impl Arg {
    /// Bytes among the arguments.
    fn room(self) -> usize {
        match self {
            Word | Long => 8,
            Arg::Bytes(bytes, _) => bytes.next_multiple_of(8),
        }
    }
}

/// What names of CUDA 12's headers begin with.
const SECOND_PREFIX: &str = "__cudaCDP2";

/// Added to the numbers of calls by names of CUDA 12's headers.
const SECOND: u64 = 1 << 16;

/// Bytes in front of the arguments: the numbers of the block in the grid and of the thread in the block, as 64 bits each.
pub const WHO_BYTES: usize = 16;

/// What `cudaRuntimeGetVersion` says in kernels: libcudadevrt has not counted on since it came, from CUDA 11.8 to 13.5 it is this.
pub const RUNTIME_VERSION: i32 = 6000;
/// Bytes of a kernel's parameters.
pub const MOST_PARAMETERS: usize = 32764;
/// A kernel's streams are `cudaStreamNonBlocking`, or have no flag, which the manual refuses and an H200 does not; its events are
/// `cudaEventDisableTiming`.
pub const STREAM_FLAGS: std::ops::RangeInclusive<u32> = 0..=1;
pub const DISABLE_TIMING: u32 = 2;
/// Handles that are no handles: the block's own stream by its three names, and two that end with the grid.
pub const OWN_STREAMS: std::ops::RangeInclusive<u64> = 0..=2;
pub const TAIL: u64 = 3;
pub const FIRE_AND_FORGET: u64 = 4;
/// Of the handles of streams and events, which count on from here.
pub const FIRST_HANDLE: u64 = 0x100;

macro_rules! calls {
    ($($name:ident($($arg:expr),*) -> $result:ident $(, $twin:ident)?;)*) => {
        /// What kernels may ask of the host, without the prefix of its name. Arguments follow `WHO_BYTES` in the order of the
        /// C function, those of 4 bytes in 8, structures padded to a multiple of 8.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Call {
            $($name,)*
        }

        impl Call {
            pub const ALL: &[Call] = &[$(Call::$name,)*];

            fn name(self) -> &'static str {
                match self {
                    $(Call::$name => stringify!($name),)*
                }
            }

            fn signature(self) -> (&'static [Arg], Arg, bool) {
                match self {
                    $(Call::$name => (&[$($arg),*], $result, false $(|| stringify!($twin) == "ptsz")?),)*
                }
            }
        }
    };
}

calls! {
    GetParameterBuffer(Long, Long) -> Long;
    GetParameterBufferV2(Long, DIM, DIM, Word) -> Long;
    LaunchDevice(Long, Long, DIM, DIM, Word, Long) -> Word, ptsz;
    LaunchDeviceV2(Long, Long) -> Word, ptsz;
    DeviceSynchronize() -> Word;
    GetLastError() -> Word;
    PeekAtLastError() -> Word;
    GetErrorString(Word) -> Long;
    GetErrorName(Word) -> Long;
    GetDeviceCount(Long) -> Word;
    GetDevice(Long) -> Word;
    StreamCreateWithFlags(Long, Word) -> Word;
    StreamDestroy(Long) -> Word;
    StreamWaitEvent(Long, Long, Word) -> Word, ptsz;
    EventCreateWithFlags(Long, Word) -> Word;
    EventRecord(Long, Long) -> Word, ptsz;
    EventRecordWithFlags(Long, Long, Word) -> Word, ptsz;
    EventDestroy(Long) -> Word;
    DeviceGetAttribute(Long, Word, Word) -> Word;
    DeviceGetLimit(Long, Word) -> Word;
    DeviceGetCacheConfig(Long) -> Word;
    DeviceGetSharedMemConfig(Long) -> Word;
    FuncGetAttributes(Long, Long) -> Word;
    Malloc(Long, Long) -> Word;
    Free(Long) -> Word;
    MemcpyAsync(Long, Long, Long, Word, Long) -> Word, ptsz;
    Memcpy2DAsync(Long, Long, Long, Long, Long, Long, Word, Long) -> Word, ptsz;
    Memcpy3DAsync(Long, Long) -> Word, ptsz;
    MemsetAsync(Long, Word, Long, Long) -> Word, ptsz;
    Memset2DAsync(Long, Long, Word, Long, Long, Long) -> Word, ptsz;
    Memset3DAsync(Arg::Bytes(32, 8), Word, Arg::Bytes(24, 8), Long) -> Word, ptsz;
    RuntimeGetVersion(Long) -> Word;
    GraphLaunch(Long, Long) -> Word;
    OccupancyMaxActiveBlocksPerMultiprocessor(Long, Long, Word, Long) -> Word;
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Long, Long, Word, Long, Word) -> Word;
    GraphKernelNodeSetParam(Long, Long, Long, Long) -> Word;
    GraphKernelNodeSetEnabled(Long, Word) -> Word;
    GraphKernelNodeSetGridDim(Long, DIM) -> Word;
    GraphKernelNodeUpdatesApply(Long, Long) -> Word;
}

/// Whether a program asks for work of its own from a kernel: grids, copies, fills, and the streams and events for them (CUDA Dynamic
/// Parallelism). Launches of graphs are not that.
pub fn launches(program: &Program) -> bool {
    let kernels = program.kernels.iter().filter_map(|kernel| kernel.body.as_ref().ok());
    kernels.chain(&program.functions).any(|function| {
        let insts = || function.blocks.iter().flat_map(|block| &block.insts);
        let constant = |inst: &Inst| match inst.op {
            Op::Const(number) => Some((*inst.results.first()?, u64::try_from(number).ok()?)),
            _ => None,
        };
        let numbers: HashMap<Value, u64> = insts().filter_map(constant).collect();
        let asks = |inst: &&Inst| inst.op == Op::Syscall(Syscall::DeviceRuntime);
        insts().filter(asks).any(|asked| {
            let number = asked.args.get(1).and_then(|number| numbers.get(number));
            // What cannot be told is asked for by nobody but a text that calls by no name.
            number.and_then(|&number| Call::of(number)).is_none_or(Call::is_work)
        })
    })
}

impl Call {
    /// Whether it is part of CUDA Dynamic Parallelism, and no mere question.
    fn is_work(self) -> bool {
        use Call::*;
        matches!(
            self,
            GetParameterBuffer
                | GetParameterBufferV2
                | LaunchDevice
                | LaunchDeviceV2
                | DeviceSynchronize
                | StreamCreateWithFlags
                | StreamDestroy
                | StreamWaitEvent
                | EventCreateWithFlags
                | EventRecord
                | EventRecordWithFlags
                | EventDestroy
                | MemcpyAsync
                | Memcpy2DAsync
                | Memcpy3DAsync
                | MemsetAsync
                | Memset2DAsync
                | Memset3DAsync
        )
    }

    pub fn of(number: u64) -> Option<Call> {
        Call::ALL.get(usize::try_from(number & !SECOND).ok()?).copied()
    }

    /// Whether the call of that number came by a name of CUDA 12's headers, whose structures are larger.
    pub fn is_second(number: u64) -> bool {
        number & SECOND != 0
    }

    /// Words of 8 bytes that its arguments take.
    pub(crate) fn n_longs(self) -> usize {
        self.signature().0.iter().map(|arg| arg.room() / 8).sum()
    }

    /// The names by which PTX has it: CUDA 11's, and those that CUDA 12's headers lead to.
    fn names(self) -> Vec<String> {
        let (_, _, has_twin) = self.signature();
        let mut names: Vec<String> =
            ["cuda", SECOND_PREFIX].iter().map(|prefix| format!("{prefix}{}", self.name())).collect();
        if has_twin {
            names.extend(names.clone().iter().map(|name| format!("{name}_ptsz")));
        }
        if self == Call::DeviceSynchronize {
            names.push("__cudaDeviceSynchronizeDeprecationAvoidance".to_owned());
        }
        names
    }

    /// A function of that name.
    fn write(self, text: &mut String, name: &str) {
        let (args, result, _) = self.signature();
        let kind = |arg: Arg, name: &str| match arg {
            Word => format!(".param .b32 {name}"),
            Long => format!(".param .b64 {name}"),
            Arg::Bytes(bytes, align) => format!(".param .align {align} .b8 {name}[{bytes}]"),
        };
        let list: Vec<String> =
            args.iter().enumerate().map(|(nth, arg)| kind(*arg, &format!("a{nth}"))).collect();
        let room = WHO_BYTES + args.iter().map(|arg| arg.room()).sum::<usize>();
        let _ = write!(
            text,
            ".visible .func ({}) {name}({})\n{{\n.local .align 8 .b8 given[{room}];\n\
             .reg .b32 %w, %x;\n.reg .b64 %l, %at, %who;\n{WHO}",
            kind(result, "result"),
            list.join(", "),
        );
        let mut to = WHO_BYTES;
        for (nth, arg) in args.iter().enumerate() {
            match arg {
                Word => {
                    let _ = writeln!(text, "ld.param.b32 %w, [a{nth}];\nst.local.b32 [given+{to}], %w;");
                }
                Long => {
                    let _ = writeln!(text, "ld.param.b64 %l, [a{nth}];\nst.local.b64 [given+{to}], %l;");
                }
                Arg::Bytes(bytes, _) => {
                    for at in (0..*bytes).step_by(4) {
                        let place = to + at;
                        let _ = writeln!(
                            text,
                            "ld.param.b32 %w, [a{nth}+{at}];\nst.local.b32 [given+{place}], %w;"
                        );
                    }
                }
            }
            to += arg.room();
        }
        let _ = write!(
            text,
            "mov.u64 %at, given;\ncvta.local.u64 %at, %at;\n{{\n.param .b64 arguments;\n.param .b32 number;\n\
             .param .b64 told;\nst.param.b64 [arguments], %at;\nst.param.b32 [number], {};\n\
             call.uni (told), {SYSCALL}, (arguments, number);\nld.param.b64 %l, [told];\n}}\n{}ret;\n}}\n",
            u64::from(self as u32) + if name.starts_with(SECOND_PREFIX) { SECOND } else { 0 },
            match result {
                Long => "st.param.b64 [result], %l;\n",
                _ => "cvt.u32.u64 %w, %l;\nst.param.b32 [result], %w;\n",
            },
        );
    }
}

/// Writes who asks.
const WHO: &str = "\
mov.u32 %w, %ctaid.z;
mov.u32 %x, %nctaid.y;
mul.wide.u32 %who, %w, %x;
mov.u32 %w, %ctaid.y;
cvt.u64.u32 %l, %w;
add.u64 %who, %who, %l;
mov.u32 %w, %nctaid.x;
cvt.u64.u32 %l, %w;
mul.lo.u64 %who, %who, %l;
mov.u32 %w, %ctaid.x;
cvt.u64.u32 %l, %w;
add.u64 %who, %who, %l;
st.local.b64 [given], %who;
mov.u32 %w, %tid.z;
mov.u32 %x, %ntid.y;
mul.lo.u32 %w, %w, %x;
mov.u32 %x, %tid.y;
add.u32 %w, %w, %x;
mov.u32 %x, %ntid.x;
mul.lo.u32 %w, %w, %x;
mov.u32 %x, %tid.x;
add.u32 %w, %w, %x;
cvt.u64.u32 %who, %w;
st.local.b64 [given+8], %who;
";

/// All functions that ask the host.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = format!(
            ".version 7.0\n.target sm_70\n.address_size 64\n\
             .extern .func (.param .b64 told) {SYSCALL}(.param .b64 arguments, .param .b32 number);\n"
        );
        for call in Call::ALL {
            for name in call.names() {
                call.write(&mut text, &name);
            }
        }
        text
    })
}

/// Adds what a source asks of the device runtime and does not bring.
pub fn with(mut sources: Vec<Source>) -> Vec<Source> {
    let (mut meets, mut asks) = (false, false);
    for rest in sources.iter().flat_map(|source| names(&source.text)) {
        meets = meets || rest.starts_with("_syscall_CGS_");
        asks = asks || is_of_the_host(rest);
        if meets && asks {
            break;
        }
    }
    let mut add = |name: &str, text: &str| {
        if !sources.iter().any(|source| source.name == name) {
            sources.push(Source { name: name.to_owned(), text: text.to_owned() });
        }
    };
    if meets {
        add("device_runtime.ptx", include_str!("cooperative.ptx"));
    }
    if asks {
        add(SOURCE, text());
    }
    sources
}

/// What follows each "cuda".
fn names(text: &str) -> impl Iterator<Item = &str> {
    const WORD: &str = "cuda";
    memchr::memmem::find_iter(text.as_bytes(), WORD).map(|at| &text[at + WORD.len()..])
}

fn is_of_the_host(rest: &str) -> bool {
    let rest = rest.strip_prefix("CDP2").unwrap_or(rest);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    rest.starts_with(|c: char| c.is_ascii_uppercase())
        && Call::ALL.iter().any(|call| call.name() == &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn all_of_it_can_be_read_and_linked() {
        let mut kernel = ".version 8.0\n.target sm_80\n.address_size 64\n\
                          .extern .func (.param .b32 r) cudaGetDevice(.param .b64 a);\n.visible .entry k()\n{\n.reg .b64 %a;\n\
                          mov.u64 %a, 0;\n{\n.param .b64 a;\n.param .b32 r;\nst.param.b64 [a], %a;\n\
                          call.uni (r), cudaGetDevice, (a);\n}\n"
            .to_owned();
        kernel += "ret;\n}\n";
        let module = Module::link(vec![Source { name: "k".to_owned(), text: kernel }]).unwrap();
        assert_eq!(module.sources().len(), 2);
        let program = module.lower(0);
        assert!(program.kernels[0].body.is_ok());
        // What was linked may be linked again.
        assert_eq!(Module::link(module.sources().to_vec()).unwrap().sources().len(), 2);
    }

    /// Of a kernel that calls a function with so many 64-bit arguments, by way of one that is called indirectly if `is_far`.
    fn is_launching(call: &str, longs: usize, is_far: bool) -> bool {
        let list = |what: &str| (0..longs).map(|n| what.replace('#', &n.to_string())).collect::<Vec<_>>();
        let body = format!(
            ".reg .b64 %l;\n.reg .b32 %w;\nmov.u64 %l, 0;\n{{\n.param .b32 r;\n{}\n{}\ncall.uni (r), {call}, ({});\n}}\nret;",
            list(".param .b64 a#;").join("\n"),
            list("st.param.b64 [a#], %l;").join("\n"),
            list("a#").join(", "),
        );
        let declared =
            format!(".extern .func (.param .b32 r) {call}({});\n", list(".param .b64 a#").join(", "));
        let kernel = if is_far {
            format!(
                ".func far()\n{{\n{body}\n}}\n.visible .entry k()\n{{\n.reg .b64 %f;\nmov.u64 %f, far;\n\
                 P: .callprototype _ ();\ncall %f, (), P;\nret;\n}}\n"
            )
        } else {
            format!(".visible .entry k()\n{{\n{body}\n}}\n")
        };
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{declared}{kernel}");
        let module = Module::link(vec![Source { name: "k".to_owned(), text }]).unwrap();
        let program = module.lower(0);
        assert!(program.kernels[0].body.is_ok(), "{:?}", program.kernels[0].body);
        launches(&program)
    }

    #[test]
    fn launches_of_graphs_and_questions_are_no_dynamic_parallelism() {
        for is_far in [false, true] {
            assert!(is_launching("cudaLaunchDeviceV2", 2, is_far));
            assert!(is_launching("__cudaCDP2LaunchDeviceV2", 2, is_far));
            assert!(is_launching("cudaDeviceSynchronize", 0, is_far));
            assert!(!is_launching("cudaGraphLaunch", 2, is_far));
            assert!(!is_launching("__cudaCDP2GetDevice", 1, is_far));
        }
    }

    #[test]
    fn it_goes_before_the_librarys_own() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
                    .visible .func (.param .b32 r) cudaGetDevice(.param .b64 a)\n{\nst.param.b32 [r], 77;\nret;\n}\n\
                    .visible .entry k()\n{\n.reg .b64 %a;\nmov.u64 %a, 0;\n{\n.param .b64 a;\n.param .b32 r;\n\
                    st.param.b64 [a], %a;\ncall.uni (r), cudaGetDevice, (a);\n}\nret;\n}\n";
        let module = Module::link(vec![Source { name: "k".to_owned(), text: text.to_owned() }]).unwrap();
        let program = module.lower(0);
        let insts = program.kernels[0].body.as_ref().unwrap().blocks.iter().flat_map(|block| &block.insts);
        let is_asked = |op: &crate::ir::Op| *op == crate::ir::Op::Syscall(crate::ir::Syscall::DeviceRuntime);
        assert_eq!(insts.filter(|inst| is_asked(&inst.op)).count(), 1);
    }
}
