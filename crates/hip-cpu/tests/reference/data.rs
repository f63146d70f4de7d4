//! Data movement and atomics.

use ptx::ast::{Instruction, OperandKind, Type};

use super::memory::{LOCAL_WINDOW, Memory, Region, SHARED_WINDOW, in_window};
use super::operand::{signed, truncate};
use super::thread::Thread;
use super::{Block, Result, Value, semantics};

/// State space of an access, by its modifiers.
#[derive(Clone, Copy, PartialEq)]
enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Param,
}

fn space(instruction: &Instruction<'_>) -> Space {
    instruction
        .modifiers
        .iter()
        .find_map(|it| match it.value {
            "global" | "const" => Some(Space::Global),
            "shared" | "shared::cta" => Some(Space::Shared),
            "local" => Some(Space::Local),
            "param" | "param::func" | "param::entry" => Some(Space::Param),
            _ => None,
        })
        .unwrap_or(Space::Generic)
}

/// The last type: that of the data.
fn data_type(instruction: &Instruction<'_>) -> Result<Type> {
    instruction.modifiers.iter().rev().find_map(|it| Type::parse(it.value)).ok_or("no type".to_owned())
}

fn lanes(instruction: &Instruction<'_>) -> u64 {
    [("v2", 2), ("v4", 4), ("v8", 8)].iter().find(|it| instruction.has(it.0)).map_or(1, |it| it.1)
}

impl<'a> Thread<'_, 'a> {
    pub fn data(
        &mut self,
        instruction: &Instruction<'a>,
        block: &mut Block<'_>,
        memory: &mut Memory,
    ) -> Result<()> {
        let operands = &instruction.operands;
        match instruction.opcode.value {
            "ld" | "ldu" => self.ld(instruction, block, memory),
            "st" => self.st(instruction, block, memory),
            "atom" | "red" => self.atomic(instruction, block, memory),
            "mov" => {
                let ty = data_type(instruction)?;
                let value = self.source(block, &operands[1], Some(ty))?;
                self.write(&operands[0], value.map(|it| truncate(it, ty.bits())), ty.bits(), false)
            }
            "cvta" => {
                let ty = data_type(instruction)?;
                let window = match space(instruction) {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    Space::Global => 0,
                    _ => return Err("cvta of this space is not known".to_owned()),
                };
                let value = self.known(block, &operands[1], Some(ty))? as u64;
                let value = if instruction.has("to") { value.wrapping_sub(window) } else { value + window };
                self.write(&operands[0], Some(u128::from(value)), 64, false)
            }
            _ => {
                let address = self.known(block, &operands[1], Some(Type::U64))? as u64;
                let shared = in_window(address, SHARED_WINDOW).is_some();
                let local = in_window(address, LOCAL_WINDOW).is_some();
                let is = match space(instruction) {
                    Space::Shared => shared,
                    Space::Local => local,
                    Space::Global => !shared && !local,
                    _ => return Err("isspacep of this space is not known".to_owned()),
                };
                self.write(&operands[0], Some(u128::from(is)), 1, false)
            }
        }
    }

    /// The memory that an address is in, and the address there.
    fn region<'m>(
        &'m mut self,
        space: Space,
        address: u64,
        bytes: u64,
        block: &'m mut Block<'_>,
        memory: &'m mut Memory,
    ) -> Result<(&'m mut Region, u64)> {
        if !address.is_multiple_of(bytes) {
            return Err(format!("{address:#x} is misaligned"));
        }
        let windowed = |window| if space == Space::Generic { in_window(address, window) } else { None };
        if let Some(offset) = windowed(SHARED_WINDOW) {
            return Ok((&mut block.shared, offset));
        }
        if let Some(offset) = windowed(LOCAL_WINDOW) {
            return Ok((&mut self.local, offset));
        }
        match space {
            Space::Generic | Space::Global => Ok((memory.region(address)?, address)),
            Space::Shared => Ok((&mut block.shared, address)),
            Space::Local => Ok((&mut self.local, address)),
            Space::Param => Ok((&mut self.frame_mut().params, address)),
        }
    }

    /// Space and address of an operand in brackets.
    fn place(
        &self,
        instruction: &Instruction<'a>,
        operand: &ptx::ast::Operand<'a>,
        block: &Block<'_>,
    ) -> Result<(Space, u64)> {
        if let Some(offset) = self.param(operand) {
            return Ok((Space::Param, offset));
        }
        let space = match space(instruction) {
            Space::Generic => self.space_of_symbol(operand),
            space => space,
        };
        Ok((space, self.address(block, operand)?))
    }

    /// A symbol without a written space stands for itself, not for a generic address.
    fn space_of_symbol(&self, operand: &ptx::ast::Operand<'a>) -> Space {
        use ptx::ast::ExpressionKind as Kind;
        let OperandKind::Address(address) = &operand.kind else { return Space::Generic };
        let name = match &address.base.kind {
            Kind::Name(name) => name,
            Kind::Binary(_, left, _) => match &left.kind {
                Kind::Name(name) => name,
                _ => return Space::Generic,
            },
            _ => return Space::Generic,
        };
        let frame = self.frame();
        match self.program.lookup(frame.function, frame.scope(), name) {
            Some(super::program::Entity::Shared(_)) => Space::Shared,
            Some(super::program::Entity::Local(_)) => Space::Local,
            _ => Space::Generic,
        }
    }

    fn ld(
        &mut self,
        instruction: &Instruction<'a>,
        block: &mut Block<'_>,
        memory: &mut Memory,
    ) -> Result<()> {
        let (ty, lanes) = (data_type(instruction)?, lanes(instruction));
        let bytes = u64::from(ty.bits() / 8);
        let [d, a, ..] = instruction.operands.as_slice() else { return Err("two operands".to_owned()) };
        let (space, address) = self.place(instruction, a, block)?;
        let (region, at) = self.region(space, address, bytes * lanes, block, memory)?;
        let values: Vec<Value> =
            (0..lanes).map(|nth| region.read(at + nth * bytes, bytes as usize)).collect::<Result<_>>()?;
        match &d.kind {
            OperandKind::Vector(list) if list.len() as u64 == lanes => {
                for (operand, value) in list.iter().zip(values) {
                    self.write(operand, value, ty.bits(), signed(ty))?;
                }
                Ok(())
            }
            _ => self.write(d, values[0], ty.bits(), signed(ty)),
        }
    }

    fn st(
        &mut self,
        instruction: &Instruction<'a>,
        block: &mut Block<'_>,
        memory: &mut Memory,
    ) -> Result<()> {
        let (ty, lanes) = (data_type(instruction)?, lanes(instruction));
        let bytes = u64::from(ty.bits() / 8);
        let [a, b, ..] = instruction.operands.as_slice() else { return Err("two operands".to_owned()) };
        let values = match &b.kind {
            OperandKind::Vector(list) if list.len() as u64 == lanes => {
                list.iter().map(|it| self.source(block, it, Some(ty))).collect::<Result<Vec<_>>>()?
            }
            _ => vec![self.source(block, b, Some(ty))?],
        };
        let (space, address) = self.place(instruction, a, block)?;
        let (region, at) = self.region(space, address, bytes * lanes, block, memory)?;
        for (nth, value) in values.into_iter().enumerate() {
            region.write(at + nth as u64 * bytes, bytes as usize, value)?;
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        instruction: &Instruction<'a>,
        block: &mut Block<'_>,
        memory: &mut Memory,
    ) -> Result<()> {
        if instruction.has("async") || lanes(instruction) > 1 {
            return Err("this form is not known here".to_owned());
        }
        let ty = data_type(instruction)?;
        let returns = instruction.opcode.value == "atom";
        let operands = &instruction.operands[usize::from(returns)..];
        let b = self.source(block, &operands[1], Some(ty))?.map(|it| truncate(it, ty.bits()));
        let c = match operands.get(2) {
            Some(operand) => Some(truncate(self.known(block, operand, Some(ty))?, ty.bits())),
            None => None,
        };
        let (space, address) = self.place(instruction, &operands[0], block)?;
        let bytes = (ty.bits() / 8) as usize;
        let (region, at) = self.region(space, address, bytes as u64, block, memory)?;
        let old = region.read(at, bytes)?;
        let operation = instruction
            .modifiers
            .iter()
            .map(|it| it.value)
            .find(|it| {
                matches!(*it, "add" | "min" | "max" | "and" | "or" | "xor" | "exch" | "cas" | "inc" | "dec")
            })
            .ok_or("no operation")?;
        let new = match (old, b) {
            (Some(old), Some(b)) => semantics::atomic(operation, ty, old, b, c)?,
            (_, b) if operation == "exch" => b,
            _ => None,
        };
        region.write(at, bytes, new)?;
        if returns {
            self.write(&instruction.operands[0], old, ty.bits(), false)?;
        }
        Ok(())
    }
}
