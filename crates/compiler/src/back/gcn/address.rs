//! Address spaces. IR addresses are 64-bit numbers; LLVM's pointers know their space, which decides the instruction.
//!
//! Shared addresses are LDS's own, from 0; local ones count from the start of the kernel's part of scratch; generic
//! ones are flat addresses.

use super::code::{Code, Result, kernarg};
use super::launch::field;
use crate::back::llvm::{Builder, Type, Unsupported, Val, memory};
use crate::ir::{Op, Space};

/// LLVM's numbers.
const GLOBAL: u32 = 1;
const LDS: u32 = 3;
const CONSTANT: u32 = 4;
const SCRATCH: u32 = 5;

impl Code<'_> {
    /// What a variable's address is.
    pub fn address_of(&mut self, op: &Op, to: Type) -> Result<Val> {
        let wide = Type::int(64, 1);
        let address = match op {
            Op::GlobalAddr(id) => {
                let base = self.launch(field::VARIABLES, wide);
                self.b.bin_int("add", &base, i128::from(self.unit.variables.offset(*id)))
            }
            Op::SharedAddr(id) => {
                let offset = self.unit.kernel.shared.offsets.iter().find(|(shared, _)| shared == id);
                let (_, offset) = offset.ok_or_else(|| {
                    Unsupported(format!("shared variable {id} outside the kernel's layout"))
                })?;
                Builder::int(wide, i128::from(self.unit.shared.first() + offset))
            }
            Op::LocalAddr(id) => {
                let (part, offset) = self.local(id.index());
                if part == "%window" {
                    Builder::int(wide, i128::from(offset))
                } else {
                    let frame =
                        self.b.cast("ptrtoint", &Val::new(Type::space(SCRATCH), part), Type::int(32, 1));
                    let window = self.window();
                    let distance = self.b.sub(&frame, &window);
                    let at = self.b.bin_int("add", &distance, i128::from(offset));
                    self.b.resize(&at, 64, true)
                }
            }
            Op::ParamAddr(offset) => Builder::int(wide, i128::from(*offset)),
            _ => return Err(Unsupported(String::new())),
        };
        Ok(self.b.resize(&address, to.bits(), false))
    }

    /// Where the kernel's part of scratch begins, as a number.
    fn window(&mut self) -> Val {
        self.b.cast("ptrtoint", &Val::new(Type::space(SCRATCH), "%window"), Type::int(32, 1))
    }

    pub fn pointer(&mut self, space: Space, address: &Val, offset: i64) -> Val {
        let at = match space {
            Space::Generic | Space::Global | Space::Const => {
                let address = self.b.resize(address, 64, false);
                let ty = match space {
                    Space::Global => Type::space(GLOBAL),
                    // Nobody writes it while the kernel runs.
                    Space::Const => Type::space(CONSTANT),
                    _ => Type::ptr(),
                };
                self.b.cast("inttoptr", &address, ty)
            }
            Space::Shared => {
                let address = self.b.resize(address, 32, false);
                self.b.cast("inttoptr", &address, Type::space(LDS))
            }
            Space::Local => {
                let address = self.b.resize(address, 32, false);
                let at = format!("getelementptr i8, ptr addrspace(5) %window, {}", address.typed());
                self.b.assign(Type::space(SCRATCH), at)
            }
            Space::Param => {
                let address = self.b.resize(address, 64, false);
                let at = format!("getelementptr i8, {}, {}", kernarg().typed(), address.typed());
                self.b.assign(Type::space(CONSTANT), at)
            }
        };
        memory::offset_pointer(&mut self.b, &at, offset)
    }

    pub fn convert_address(&mut self, space: Space, to_generic: bool, address: &Val, to: Type) -> Val {
        let wide = Type::int(64, 1);
        let converted = match (space, to_generic) {
            (Space::Generic | Space::Global | Space::Const, _) => self.b.resize(address, 64, false),
            (_, true) => {
                let at = self.pointer(space, address, 0);
                let flat = match space {
                    Space::Param => at,
                    _ => self.b.cast("addrspacecast", &at, Type::ptr()),
                };
                self.b.cast("ptrtoint", &flat, wide)
            }
            (Space::Shared, false) => {
                // The low half of a flat address is LDS's own.
                let low = self.b.resize(address, 32, false);
                self.b.resize(&low, 64, false)
            }
            (Space::Local, false) => {
                let low = self.b.resize(address, 32, false);
                let window = self.window();
                let distance = self.b.sub(&low, &window);
                self.b.resize(&distance, 64, false)
            }
            (Space::Param, false) => {
                let address = self.b.resize(address, 64, false);
                let base = self.b.cast("ptrtoint", &kernarg(), wide);
                self.b.sub(&address, &base)
            }
        };
        self.b.resize(&converted, to.bits(), false)
    }

    /// Whether a generic address lies in the space.
    pub fn is_space(&mut self, space: Space, address: &Val) -> Val {
        let wide = Type::int(64, 1);
        let pred = Type::int(1, 1);
        let address = self.b.resize(address, 64, false);
        match space {
            Space::Generic => Builder::int(pred, 1),
            Space::Shared | Space::Local => {
                let at = self.b.cast("inttoptr", &address, Type::ptr());
                let test = if space == Space::Shared { "amdgcn.is.shared" } else { "amdgcn.is.private" };
                self.b.intrinsic(test, &[], pred, &[&at])
            }
            Space::Param => {
                let base = self.b.cast("ptrtoint", &kernarg(), wide);
                let distance = self.b.sub(&address, &base);
                self.b.icmp_int("ult", &distance, i128::from(self.unit.kernel.params_bytes))
            }
            Space::Const => {
                let base = self.launch(field::VARIABLES, wide);
                let distance = self.b.sub(&address, &base);
                self.b.icmp_int("ult", &distance, i128::from(self.unit.variables.const_bytes()))
            }
            // The parameters lie in the global window.
            Space::Global => {
                let mut elsewhere = self.is_space(Space::Const, &address);
                for other in [Space::Shared, Space::Local] {
                    let inside = self.is_space(other, &address);
                    elsewhere = self.b.or(&elsewhere, &inside);
                }
                self.b.not(&elsewhere)
            }
        }
    }
}
