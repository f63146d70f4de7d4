//! A primitive with what rearranges arrays for it.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::layers::Layer;
use super::{Argument, Dims, Object, OneDnn};

/// An object of oneDNN's, which goes with its owner.
pub(super) struct Owned {
    at: Object,
    destroy: unsafe extern "C" fn(Object) -> c_int,
}

// SAFETY: oneDNN's objects are not tied to threads; what changes one (a memory's address) has it for itself.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    pub(super) fn at(&self) -> Object {
        self.at
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it was made, and nobody else has it.
        unsafe { (self.destroy)(self.at) };
    }
}

const F32: c_int = 3;
/// `dnnl_format_tag_any`
const ANY: c_int = 1;
/// `dnnl_query_exec_arg_md`
const ARGUMENT: c_int = 255;
const SOURCE: c_int = 1;
const TARGET: c_int = 17;
const ROOM: c_int = 80;

pub(super) fn dims(of: &[usize]) -> Dims {
    let mut all = [0; 12];
    all.iter_mut().zip(of).for_each(|(to, from)| *to = *from as i64);
    all
}

impl OneDnn {
    pub(super) fn engine(&self) -> Object {
        self.engine
    }

    pub(super) fn functions(&self) -> &super::Functions {
        &self.functions
    }

    pub(super) fn attributes(&self) -> Object {
        self.attributes
    }

    fn made(
        &self,
        make: impl FnOnce(*mut Object) -> c_int,
        destroy: unsafe extern "C" fn(Object) -> c_int,
    ) -> Option<Owned> {
        let mut at = null_mut();
        (make(&raw mut at) == 0 && !at.is_null()).then_some(Owned { at, destroy })
    }

    /// An array of `f32` as it lies in memory.
    pub(super) fn lying(&self, sizes: &[usize], strides: &[usize]) -> Option<Owned> {
        let (sizes_at, strides) = (dims(sizes), dims(strides));
        let make = self.functions.memory_desc_create_with_strides;
        let count = sizes.len() as c_int;
        // SAFETY: as many sizes and strides as are said.
        self.made(
            |at| unsafe { make(at, count, sizes_at.as_ptr(), F32, strides.as_ptr()) },
            self.functions.memory_desc_destroy,
        )
    }

    /// One whose elements lie behind each other.
    pub(super) fn dense(&self, sizes: &[usize]) -> Option<Owned> {
        let strides: Vec<usize> = (1..=sizes.len()).map(|at| sizes[at..].iter().product()).collect();
        self.lying(sizes, &strides)
    }

    /// One that lies as the primitive wants it.
    pub(super) fn any(&self, sizes: &[usize]) -> Option<Owned> {
        let (sizes_at, make) = (dims(sizes), self.functions.memory_desc_create_with_tag);
        let count = sizes.len() as c_int;
        // SAFETY: as many sizes as are said.
        self.made(
            |at| unsafe { make(at, count, sizes_at.as_ptr(), F32, ANY) },
            self.functions.memory_desc_destroy,
        )
    }

    pub(super) fn described(&self, make: impl FnOnce(*mut Object) -> c_int) -> Option<Owned> {
        self.made(make, self.functions.primitive_desc_destroy)
    }

    fn primitive(&self, description: &Owned) -> Option<Owned> {
        // SAFETY: the description was made.
        self.made(
            |at| unsafe { (self.functions.primitive_create)(at, description.at) },
            self.functions.primitive_destroy,
        )
    }

    /// As the primitive has an argument; it belongs to the description.
    fn wanted(&self, description: &Owned, number: c_int) -> Object {
        // SAFETY: the description was made.
        unsafe { (self.functions.primitive_desc_query_md)(description.at, ARGUMENT, number) }
    }

    fn bytes(&self, description: Object) -> usize {
        if description.is_null() {
            return 0;
        }
        // SAFETY: it describes an array.
        unsafe { (self.functions.memory_desc_get_size)(description) }
    }

    fn reorder(&self, from: Object, to: Object) -> Option<Owned> {
        let (make, engine) = (self.functions.reorder_primitive_desc_create, self.engine);
        // SAFETY: both describe arrays, and this engine has them.
        self.described(|at| unsafe { make(at, from, engine, to, engine, self.attributes) })
    }

    fn memory(&self, description: Object, at: *mut c_void) -> Option<Owned> {
        // SAFETY: the description is there; what lies at the address is used when a primitive is executed.
        self.made(
            |to| unsafe { (self.functions.memory_create)(to, description, self.engine, at) },
            self.functions.memory_destroy,
        )
    }
}

/// Where an argument of a step lies.
#[derive(Clone, Copy)]
enum Side {
    /// In the caller's array of this number.
    Given(usize),
    /// In memory of the program's own.
    Own(usize),
}

struct Step {
    primitive: Owned,
    /// Kept for what it says of arrays.
    _description: Arc<Owned>,
    arguments: Vec<(c_int, Side, Object)>,
}

// SAFETY: descriptions are read only.
unsafe impl Send for Step {}
// SAFETY: as above.
unsafe impl Sync for Step {}

/// An argument of the primitive: its number, how the caller's array lies, and whether it is read.
pub(super) struct Given {
    pub number: c_int,
    pub lies: Owned,
    pub is_read: bool,
}

pub(crate) struct Program {
    steps: Vec<Step>,
    /// Bytes of its own arrays.
    own: Vec<usize>,
    _lies: Vec<Owned>,
    /// What is free for an execution: as many as have been under way at once.
    rooms: Mutex<Vec<Room>>,
}

/// A line of a processor's cache: what oneDNN's arrays are aligned to.
#[repr(C, align(64))]
struct Line([u8; 64]);

/// What one execution has for itself.
struct Room {
    stream: Owned,
    /// For each step one for each argument.
    memories: Vec<Vec<Owned>>,
    _own: Vec<Vec<core::mem::MaybeUninit<Line>>>,
}

impl Program {
    pub(super) fn new(one: &OneDnn, description: Owned, given: Vec<Given>) -> Option<Program> {
        let (mut own, mut before, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        let description = Arc::new(description);
        let mut arguments = Vec::new();
        let mut add = |bytes: usize| {
            own.push(bytes);
            Side::Own(own.len() - 1)
        };
        // A step whose room is an array of its own.
        let step = |description: &Arc<Owned>,
                    mut arguments: Vec<(c_int, Side, Object)>,
                    add: &mut dyn FnMut(usize) -> Side| {
            let room = one.wanted(description, ROOM);
            if one.bytes(room) > 0 {
                arguments.push((ROOM, add(one.bytes(room)), room));
            }
            Some(Step {
                primitive: one.primitive(description)?,
                _description: description.clone(),
                arguments,
            })
        };
        for (at, Given { number, lies, is_read }) in given.iter().enumerate() {
            let wanted = one.wanted(&description, *number);
            if wanted.is_null() {
                return None;
            }
            // SAFETY: both describe arrays.
            if unsafe { (one.functions.memory_desc_equal)(lies.at, wanted) } != 0 {
                arguments.push((*number, Side::Given(at), lies.at));
                continue;
            }
            let side = add(one.bytes(wanted));
            arguments.push((*number, side, wanted));
            if *is_read {
                let reorder = Arc::new(one.reorder(lies.at, wanted)?);
                let sides = vec![(SOURCE, Side::Given(at), lies.at), (TARGET, side, wanted)];
                before.push(step(&reorder, sides, &mut add)?);
            } else {
                let reorder = Arc::new(one.reorder(wanted, lies.at)?);
                let sides = vec![(SOURCE, side, wanted), (TARGET, Side::Given(at), lies.at)];
                behind.push(step(&reorder, sides, &mut add)?);
            }
        }
        before.push(step(&description, arguments, &mut add)?);
        before.extend(behind);
        let lies = given.into_iter().map(|given| given.lies).collect();
        Some(Program { steps: before, own, _lies: lies, rooms: Mutex::default() })
    }

    fn room(&self, one: &OneDnn) -> Option<Room> {
        let kept = self.rooms.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if kept.is_some() {
            return kept;
        }
        let mut own: Vec<Vec<core::mem::MaybeUninit<Line>>> = Vec::new();
        for bytes in &self.own {
            let mut lines = Vec::with_capacity(bytes.div_ceil(64));
            // SAFETY: what may be anything needs no value.
            unsafe { lines.set_len(bytes.div_ceil(64)) };
            own.push(lines);
        }
        let mut memories = Vec::new();
        for step in &self.steps {
            let memory = |&(_, side, lies): &(c_int, Side, Object)| match side {
                Side::Given(_) => one.memory(lies, null_mut()),
                Side::Own(number) => one.memory(lies, own[number].as_ptr().cast_mut().cast()),
            };
            memories.push(step.arguments.iter().map(memory).collect::<Option<Vec<_>>>()?);
        }
        // SAFETY: the engine was made.
        let stream = one.made(
            |at| unsafe { (one.functions.stream_create)(at, one.engine, 1) },
            one.functions.stream_destroy,
        )?;
        Some(Room { stream, memories, _own: own })
    }

    /// Whether all was done.
    ///
    /// # Safety
    /// The arrays are there as the layer says, and those that are written are nobody else's meanwhile.
    pub(super) unsafe fn run(&self, one: &OneDnn, arrays: &[*mut f32]) -> bool {
        let Some(room) = self.room(one) else { return false };
        let functions = &one.functions;
        for (step, memories) in self.steps.iter().zip(&room.memories) {
            let mut arguments = Vec::with_capacity(memories.len());
            for (&(number, side, _), memory) in step.arguments.iter().zip(memories) {
                if let Side::Given(at) = side {
                    // SAFETY: the memory is this execution's, and the caller's word.
                    if unsafe { (functions.memory_set_data_handle)(memory.at, arrays[at].cast()) } != 0 {
                        return false;
                    }
                }
                arguments.push(Argument { number, memory: memory.at });
            }
            let count = arguments.len() as c_int;
            // SAFETY: as many arguments as are said, which are those that the primitive has.
            let status = unsafe {
                (functions.primitive_execute)(step.primitive.at, room.stream.at, count, arguments.as_ptr())
            };
            if status != 0 {
                return false;
            }
        }
        // SAFETY: the stream was made.
        if unsafe { (functions.stream_wait)(room.stream.at) } != 0 {
            return false;
        }
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        true
    }
}

/// Programs that are kept: a network has some hundred layers. All go where there are more.
const MOST: usize = 512;

/// Those that were made, and what cannot be made.
#[derive(Default)]
pub(super) struct Programs(Mutex<HashMap<Layer, Option<Arc<Program>>>>);

impl Programs {
    pub(super) fn get(&self, layer: Layer, make: impl FnOnce() -> Option<Program>) -> Option<Arc<Program>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&layer) {
            all.clear();
        }
        all.entry(layer).or_insert_with(|| make().map(Arc::new)).clone()
    }
}
