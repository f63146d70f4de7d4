//! Address spaces: windows, generic addresses, and which space one is in.

use super::code::Code;
use super::layout::{launch, worker};
use super::special;
use crate::back::llvm::{Builder, Type, Val, memory};
use crate::ir::{CLUSTER_SHIFT, Space, Special};
use crate::program::GlobalSpace;

impl Code<'_> {
    /// The window's start; `None` for spaces whose addresses are the host's.
    fn base(&self, space: Space) -> Option<Val> {
        let bases = self.bases.as_ref()?;
        match space {
            Space::Shared => Some(bases.shared.clone()),
            Space::Local => Some(bases.local.clone()),
            Space::Param => Some(bases.params.clone()),
            Space::Generic | Space::Global | Space::Const => None,
        }
    }

    pub fn pointer(&mut self, space: Space, address: &Val, offset: i64) -> Val {
        let key = (space, address.text.clone());
        if let Some(at) = self.at_hand().pointers.get(&key) {
            let at = at.clone();
            return memory::offset_pointer(&mut self.b, &at, offset);
        }
        let address = self.b.resize(address, 64, false);
        let at = match self.base(space) {
            Some(base) => self
                .b
                .assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", base.typed(), address.typed())),
            None => self.b.cast("inttoptr", &address, Type::ptr()),
        };
        self.at_hand().pointers.insert(key, at.clone());
        memory::offset_pointer(&mut self.b, &at, offset)
    }

    pub fn convert_address(&mut self, space: Space, to_generic: bool, address: &Val, to: Type) -> Val {
        let wide = match address.ty.is_int() {
            true => self.b.resize(address, 64, false),
            false => self.b.cast("ptrtoint", address, Type::int(64, 1)),
        };
        let converted = match self.base(space) {
            None => wide,
            Some(base) => {
                let base = self.b.cast("ptrtoint", &base, Type::int(64, 1));
                if to_generic { self.b.add(&base, &wide) } else { self.b.sub(&wide, &base) }
            }
        };
        self.b.resize(&converted, to.bits(), false)
    }

    /// Whether a generic address lies in `start .. start + bytes`.
    fn within(&mut self, address: &Val, start: &Val, bytes: &Val) -> Val {
        let start = self.b.cast("ptrtoint", start, Type::int(64, 1));
        let distance = self.b.sub(address, &start);
        self.b.icmp("ult", &distance, bytes)
    }

    /// Whether a generic address lies in the shared memory of any block of the cluster.
    fn is_cluster_shared(&mut self, address: &Val) -> Val {
        let start = self.load_field("%worker", worker::SHARED, Type::ptr());
        let n_blocks = special::read(self, Special::ClusterNctaRank, Type::int(64, 1));
        let bytes = self.b.bin_int("shl", &n_blocks, i128::from(CLUSTER_SHIFT));
        self.within(address, &start, &bytes)
    }

    pub fn is_space(&mut self, space: Space, address: &Val) -> Val {
        let address = self.b.resize(address, 64, false);
        let wide = Type::int(64, 1);
        match space {
            Space::Generic => Builder::int(Type::int(1, 1), 1),
            Space::Shared => {
                let mut start = self.load_field("%worker", worker::SHARED, Type::ptr());
                if self.options.clustered {
                    let first = self.shared_first();
                    let at = format!("getelementptr i8, {}, {}", start.typed(), first.typed());
                    start = self.b.assign(Type::ptr(), at);
                }
                let bytes = self.load_field("%worker", worker::SHARED_BYTES, Type::int(32, 1));
                let bytes = self.b.resize(&bytes, 64, false);
                self.within(&address, &start, &bytes)
            }
            Space::Local => {
                let start = self.load_field("%worker", worker::LOCALS, Type::ptr());
                let bytes = self.load_field("%worker", worker::LOCALS_BYTES, wide);
                self.within(&address, &start, &bytes)
            }
            Space::Param => {
                let start = self.load_field("%launch", launch::PARAMS, Type::ptr());
                let bytes = Builder::int(wide, i128::from(self.kernel.params_bytes));
                self.within(&address, &start, &bytes)
            }
            Space::Const => {
                let program = self.program;
                let mut any = Builder::int(Type::int(1, 1), 0);
                for (index, global) in program.globals.iter().enumerate() {
                    if global.space == GlobalSpace::Const {
                        let start = self.table_entry(launch::GLOBALS, index as u32, wide);
                        let distance = self.b.sub(&address, &start);
                        let inside = self.b.icmp_int("ult", &distance, i128::from(global.bytes.max(1)));
                        any = self.b.or(&any, &inside);
                    }
                }
                any
            }
            // The parameters lie in the global window.
            Space::Global => {
                let mut elsewhere = self.is_space(Space::Const, &address);
                for other in [Space::Shared, Space::Local] {
                    let inside = match other {
                        Space::Shared if self.options.clustered => self.is_cluster_shared(&address),
                        _ => self.is_space(other, &address),
                    };
                    elsewhere = self.b.or(&elsewhere, &inside);
                }
                self.b.not(&elsewhere)
            }
        }
    }
}
