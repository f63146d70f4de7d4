//! A module's `.global` and `.const` variables: one block of device memory for all code objects of the module.

use crate::ir::GlobalId;
use crate::program::{Global, GlobalSpace, Target};

/// Where each variable lies in the block. The layout is the module's: every kernel has the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variables {
    offsets: Vec<u64>,
    const_bytes: u64,
    bytes: u64,
}

/// What device memory is aligned to, and the block with it.
pub const ALIGN: u64 = 256;

impl Variables {
    pub fn of(globals: &[Global]) -> Variables {
        let mut variables = Variables { offsets: vec![0; globals.len()], const_bytes: 0, bytes: 0 };
        // `.const` first, so that one comparison tells whether an address is one of it.
        for space in [GlobalSpace::Const, GlobalSpace::Global] {
            for (global, offset) in globals.iter().zip(&mut variables.offsets) {
                if global.space == space {
                    // Each begins on an own word, so that neighbours never share one that an atomic access replaces.
                    let align = global.align.clamp(8, ALIGN);
                    *offset = variables.bytes.checked_next_multiple_of(align).unwrap_or(variables.bytes);
                    variables.bytes = offset.saturating_add(global.bytes.max(1));
                }
            }
            if space == GlobalSpace::Const {
                variables.const_bytes = variables.bytes;
            }
        }
        variables.bytes = variables.bytes.checked_next_multiple_of(ALIGN).unwrap_or(variables.bytes);
        variables
    }

    /// Of the `.const` variables, which the block begins with.
    pub(crate) fn const_bytes(&self) -> u64 {
        self.const_bytes
    }

    /// Of the whole block; 0 when there are no variables.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the variable begins in it.
    pub fn offset(&self, id: GlobalId) -> u64 {
        self.offsets.get(id.index()).copied().unwrap_or(0)
    }

    /// What is written to the block before the first launch when it lies at `base`: bytes of each variable at its offset
    /// in the block, addresses of variables among them. What no piece covers is zero.
    pub fn initial(&self, globals: &[Global], base: u64) -> Vec<(u64, Vec<u8>)> {
        let mut pieces = vec![];
        for (global, &offset) in globals.iter().zip(&self.offsets) {
            let size = usize::try_from(global.bytes).unwrap_or(usize::MAX);
            let end =
                global.relocations.iter().map(|it| it.offset.saturating_add(u64::from(it.bytes.min(8))));
            let needed = end.max().unwrap_or(0).max(global.init.len() as u64).min(global.bytes);
            let mut bytes = global.init.get(..size).unwrap_or(&global.init).to_vec();
            bytes.resize(usize::try_from(needed).unwrap_or(bytes.len()).max(bytes.len()), 0);
            for relocation in &global.relocations {
                // Numbers of functions are bytes of the initialiser already.
                let Target::Global(id) = relocation.target else { continue };
                let value = base.wrapping_add(self.offset(id)).wrapping_add_signed(relocation.addend);
                let value = (value >> relocation.shift).to_le_bytes();
                let at = relocation.offset as usize;
                let count = usize::from(relocation.bytes).min(8);
                if let Some(place) = at.checked_add(count).and_then(|end| bytes.get_mut(at..end)) {
                    place.copy_from_slice(&value[..count]);
                }
            }
            if !bytes.is_empty() {
                pieces.push((offset, bytes));
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Module, Source};

    #[test]
    fn variables_lie_apart_and_hold_each_others_addresses() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
            .visible .global .u8 a = 7;\n.visible .const .align 16 .b8 b[20] = {1, 2, 3};\n\
            .visible .global .u64 c[2] = {5, b + 4};\n.visible .global .u32 d;\n";
        let module = Module::link(vec![Source { name: "v".to_owned(), text: text.to_owned() }]).unwrap();
        let variables = Variables::of(module.globals());
        let at = |name: &str| variables.offset(module.global(name).unwrap().0);
        assert_eq!([at("a"), at("b"), at("c"), at("d"), variables.bytes()], [24, 0, 32, 48, 256]);
        assert_eq!(variables.const_bytes(), 20);
        let pieces = variables.initial(module.globals(), 0x1000);
        assert_eq!(pieces[0], (24, vec![7]));
        assert_eq!(pieces[1].0, 0);
        assert!(pieces[1].1.starts_with(&[1, 2, 3]));
        let mut c = 5u64.to_le_bytes().to_vec();
        c.extend((0x1000u64 + 4).to_le_bytes());
        assert_eq!(pieces[2], (32, c));
        assert_eq!(pieces.len(), 3);
    }
}
