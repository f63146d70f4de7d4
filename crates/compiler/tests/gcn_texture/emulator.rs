//! Launches on the instruction emulator (tools/amd-emu), with textures as HIP lays them out for gfx1100.

use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::Module;
use compiler::gcn::services::CAPACITY;
use compiler::gcn::{Code, Launch, Variables};
use compiler::texture::REFERENCE_OBJECT;

use super::forms::{IN, OUT};
use super::gcn_batch::{code_object, merged};
use super::support::Format;
use hip_sys::*;

/// What a launch may write: services, results, the image. Then what it reads.
const BASE: u64 = 0x1100_0000_0000;
const RESULTS: u64 = 4096;
const HANDLES: u64 = 0x1200_0000_0000;
const INPUTS: u64 = 0x1300_0000_0000;
const VARIABLES: u64 = 0x1400_0000_0000;
/// Where an object behind the first is.
pub const NEXT_HANDLE: usize = 256;

/// An image and how it is sampled.
#[derive(Clone)]
pub struct Object {
    /// Elements one behind the other.
    pub bytes: Vec<u8>,
    pub format: Format,
    pub size: [usize; 3],
    pub kind: Kind,
    pub desc: HIP_TEXTURE_DESC,
}

/// The ISA's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Linear = 0,
    D1 = 8,
    D2 = 9,
    D3 = 10,
    Layered1 = 12,
    Layered2 = 13,
}

impl Kind {
    pub fn of(geometry: &str) -> Kind {
        match geometry {
            "1d" => Kind::D1,
            "2d" => Kind::D2,
            "3d" => Kind::D3,
            "a1d" => Kind::Layered1,
            _ => Kind::Layered2,
        }
    }

    fn has_slices(self) -> bool {
        matches!(self, Kind::D3 | Kind::Layered1 | Kind::Layered2)
    }
}

impl Object {
    fn is(&self, flag: u32) -> bool {
        self.desc.flags & flag != 0
    }

    fn is_element(&self) -> bool {
        self.is(HIP_TRSF_READ_AS_INTEGER)
            || matches!(self.format.0, HIP_AD_FORMAT_UNSIGNED_INT32 | HIP_AD_FORMAT_SIGNED_INT32)
    }

    /// The ISA's number of the image format.
    fn number(&self) -> u32 {
        // Of one channel, two, four.
        let nth = self.format.1.ilog2() as usize;
        let [norm, snorm, uint, sint, float] = match self.format.channel_bytes() {
            1 => [[1, 14, 42], [2, 15, 43], [5, 18, 46], [6, 19, 47], [0; 3]],
            2 => [[7, 23, 51], [8, 24, 52], [11, 27, 55], [12, 28, 56], [13, 29, 57]],
            _ => [[0; 3], [0; 3], [20, 48, 61], [21, 49, 62], [22, 50, 63]],
        };
        let of = match self.format.0 {
            HIP_AD_FORMAT_FLOAT | HIP_AD_FORMAT_HALF => float,
            HIP_AD_FORMAT_UNSIGNED_INT8 if self.is(HIP_TRSF_SRGB) => [0, 0, 66],
            HIP_AD_FORMAT_UNSIGNED_INT8 | HIP_AD_FORMAT_UNSIGNED_INT16 | HIP_AD_FORMAT_UNSIGNED_INT32 => {
                if self.is_element() {
                    uint
                } else {
                    norm
                }
            }
            _ if self.is_element() => sint,
            _ => snorm,
        };
        assert_ne!(of[nth], 0, "{:?} is no format", self.format);
        of[nth]
    }

    /// HSA's number of the channel type.
    fn channel_type(&self) -> u32 {
        let element = self.is_element();
        match self.format.0 {
            HIP_AD_FORMAT_SIGNED_INT8 => {
                if element {
                    8
                } else {
                    0
                }
            }
            HIP_AD_FORMAT_SIGNED_INT16 => {
                if element {
                    9
                } else {
                    1
                }
            }
            HIP_AD_FORMAT_UNSIGNED_INT8 => {
                if element {
                    11
                } else {
                    2
                }
            }
            HIP_AD_FORMAT_UNSIGNED_INT16 => {
                if element {
                    12
                } else {
                    3
                }
            }
            HIP_AD_FORMAT_SIGNED_INT32 => 10,
            HIP_AD_FORMAT_UNSIGNED_INT32 => 13,
            HIP_AD_FORMAT_HALF => 14,
            _ => 15,
        }
    }

    /// Bytes from a row to the next.
    fn pitch(&self) -> usize {
        let row = self.size[0] * self.format.bytes();
        // Of linear images.
        if self.kind == Kind::Linear { row } else { row.next_multiple_of(256) }
    }

    fn rows(&self) -> usize {
        self.size[1] * self.size[2]
    }

    /// The image as it lies in memory.
    fn laid_out(&self) -> Vec<u8> {
        let row = self.size[0] * self.format.bytes();
        let mut memory = vec![0xcc; self.pitch() * self.rows()];
        for (to, from) in memory.chunks_mut(self.pitch()).zip(self.bytes.chunks(row)) {
            to[..row].copy_from_slice(from);
        }
        memory
    }

    /// Its elements one behind the other again.
    pub fn read_back(&self, memory: &[u8]) -> Vec<u8> {
        let row = self.size[0] * self.format.bytes();
        memory.chunks(self.pitch()).flat_map(|from| from[..row].to_vec()).collect()
    }

    /// What HIP's handle points to, for an image at `address`.
    fn descriptor(&self, address: u64) -> Vec<u8> {
        let [width, height, depth] = self.size.map(|it| it as u32 - 1);
        let order =
            [4 | 1 << 9, 4 | 5 << 3 | 1 << 9, 4 | 5 << 3 | 6 << 6 | 7 << 9][self.format.1.ilog2() as usize];
        let mut words = [0u32; 20];
        if self.kind == Kind::Linear {
            let bytes = self.format.bytes() as u32;
            words[0] = address as u32;
            words[1] = (address >> 32) as u32 | bytes << 16;
            words[2] = (width + 1) * bytes;
            words[3] = order | self.number() << 12;
        } else {
            words[0] = (address >> 8) as u32;
            words[1] = (address >> 40) as u32 | self.number() << 20 | (width & 3) << 30;
            words[2] = width >> 2 | height << 14;
            words[3] = order | (self.kind as u32) << 28;
            words[4] =
                if self.kind.has_slices() { depth } else { (self.pitch() / self.format.bytes()) as u32 - 1 };
        }
        words[8] = self.channel_type();
        words[9] = [1, 3, 8][self.format.1.ilog2() as usize];
        words[10] = width + 1;
        // HIP takes the first axis' mode for all, and clamps coordinates that count elements.
        let normalized = self.is(HIP_TRSF_NORMALIZED_COORDINATES);
        let mode = match self.desc.addressMode[0] {
            hipAddressModeWrap if normalized => 0,
            hipAddressModeMirror if normalized => 1,
            hipAddressModeBorder => 6,
            _ => 2,
        };
        words[12] = mode | mode << 3 | mode << 6 | u32::from(!normalized) << 15;
        words[13] = 4095 << 12;
        let filter = u32::from(self.desc.filterMode == hipFilterModeLinear);
        words[14] = filter << 20 | filter << 22;
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// What a launch left: the first fault, a row of words for each thread, the first image.
pub struct Outcome {
    pub fault: u32,
    pub results: Vec<[u32; OUT]>,
    pub image: Vec<u8>,
}

/// What a test without a [`Batch`] skips for.
pub const NO_EMULATOR: &str = "TINYGRAD does not name a checkout of tinygrad";

type Check = Box<dyn Fn(&Outcome)>;

/// Launches that wait, and what is to be seen of them.
pub struct Batch {
    codes: Vec<Code>,
    object: PathBuf,
    /// The module's variables, with the first object bound to its references.
    variables: String,
    lines: String,
    checks: Vec<(usize, Object, Check)>,
}

impl Batch {
    /// `None` without an emulator, which the test then skips for.
    pub fn new(name: &str, module: &Module, wanted: impl Fn(&str) -> bool) -> Option<Batch> {
        std::env::var_os("TINYGRAD")?;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("texture-emulated");
        std::fs::create_dir_all(&folder).unwrap();
        let target = "gfx1100".parse().unwrap();
        let kernels = module.kernels().iter().enumerate().filter(|(_, kernel)| wanted(&kernel.name));
        let codes: Vec<Code> =
            kernels.map(|(kernel, _)| compiler::gcn::compile(module, kernel, &target).unwrap()).collect();
        let object = code_object(&folder, name, &merged(&codes.iter().collect::<Vec<_>>()), "gfx1100");
        let variables = Variables::of(module.globals());
        let mut pieces = variables.initial(module.globals(), VARIABLES);
        for global in module.globals().iter().filter(|global| global.opaque.is_some()) {
            let (id, _) = module.global(&global.name).unwrap();
            pieces.push((variables.offset(id) + REFERENCE_OBJECT, HANDLES.to_le_bytes().to_vec()));
        }
        let variables = block(VARIABLES, variables.bytes(), &pieces);
        Some(Batch { codes, object, variables, lines: String::new(), checks: vec![] })
    }

    /// A thread for each input; `objects` are the textures that handles in a row name.
    pub fn add(
        &mut self,
        kernel: &str,
        objects: &[&Object],
        inputs: &[[u32; IN]],
        check: impl Fn(&Outcome) + 'static,
    ) {
        let number = self.codes.iter().position(|code| code.symbol == kernel).expect(kernel);
        let code = &self.codes[number];
        assert!(inputs.len() <= 32 || inputs.len().is_multiple_of(32));
        let (blocks, threads) = (inputs.len().div_ceil(32) as u32, inputs.len().min(32) as u32);
        let launch = Launch {
            variables: VARIABLES,
            services: BASE,
            grid: [blocks, 1, 1],
            block: [threads, 1, 1],
            grid_id: 1,
            ..Launch::default()
        };
        let params: Vec<u8> =
            [BASE + RESULTS, HANDLES, INPUTS].iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        let mut at = (RESULTS + (inputs.len() * OUT * 4) as u64).next_multiple_of(256);
        let (mut pieces, mut handles) = (vec![(CAPACITY, 1024u64.to_le_bytes().to_vec())], vec![]);
        for (nth, object) in objects.iter().enumerate() {
            let memory = object.laid_out();
            handles.push(((NEXT_HANDLE * nth) as u64, object.descriptor(BASE + at)));
            let bytes = memory.len() as u64;
            pieces.push((at, memory));
            at = (at + bytes).next_multiple_of(256);
        }
        let words: Vec<u8> = inputs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let blocks = [
            block(BASE, at, &pieces),
            block(HANDLES, 4096, &handles),
            block(INPUTS, words.len() as u64, &[(0, words)]),
            self.variables.clone(),
        ];
        self.lines += &format!(
            "{{\"object\": {:?}, \"kernel\": \"k{number}\", \"grid\": {:?}, \"block\": {:?}, \"shared\": 0, \
             \"kernarg\": \"{}\", \"memory\": [{}], \"read\": [{BASE}, {at}]}}\n",
            self.object.to_str().unwrap(),
            launch.grid,
            launch.block,
            hex(&code.kernarg.fill(&params, &launch)),
            blocks.join(", ")
        );
        self.checks.push((inputs.len(), objects[0].clone(), Box::new(check)));
    }

    /// Runs them all.
    pub fn run(self) {
        let list = self.object.with_extension("json");
        std::fs::write(&list, &self.lines).unwrap();
        let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/amd-emu/run_rows.py");
        let ran = Command::new("python3").arg(runner).arg(&list).arg("0").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        for (number, (threads, object, check)) in self.checks.iter().enumerate() {
            let answer = said.lines().find_map(|line| line.strip_prefix(&format!("{number} ")));
            let text = answer.unwrap_or_else(|| panic!("{said}\n{}", String::from_utf8_lossy(&ran.stderr)));
            let bytes: Vec<u8> = (0..text.len() / 2)
                .map(|at| {
                    u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap_or_else(|_| panic!("{text}"))
                })
                .collect();
            let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let first = RESULTS as usize;
            let row = |thread: usize| std::array::from_fn(|nth| word(first + (thread * OUT + nth) * 4));
            let image = (first + threads * OUT * 4).next_multiple_of(256);
            check(&Outcome {
                fault: word(0),
                results: (0..*threads).map(row).collect(),
                image: object.read_back(&bytes[image..image + object.pitch() * object.rows()]),
            });
        }
        println!("{} launches", self.checks.len());
    }
}

fn block(address: u64, bytes: u64, pieces: &[(u64, Vec<u8>)]) -> String {
    let pieces: Vec<String> =
        pieces.iter().map(|(offset, content)| format!("[{offset}, \"{}\"]", hex(content))).collect();
    format!("{{\"address\": {address}, \"bytes\": {bytes}, \"pieces\": [{}]}}", pieces.join(", "))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
