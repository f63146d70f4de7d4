//! The first instructions of a function, moved to another place, so that the function can still be called once a jump lies over them.
//! The rule: an instruction that is not known here for what it is, or that would mean something else in the other place, is not moved.

use crate::patch;

/// Room for what is moved, what grows by it, and the jump behind it.
pub const MOVED_BYTES: usize = 64;

/// Code for `to` that does what at least the first `least` bytes of `code` do, which lies at `from`, and goes on behind them.
pub fn moved(code: &[u8], from: usize, to: usize, least: usize) -> Option<[u8; MOVED_BYTES]> {
    let mut out = Out { code: [0xcc; MOVED_BYTES], len_bytes: 0, at: to };
    let mut done = 0;
    while done < least {
        let rest = code.get(done..)?;
        let instruction = Instruction::decode(rest)?;
        let bytes = rest.get(..instruction.len_bytes)?;
        done += instruction.len_bytes;
        // What an address in the instruction is counted from.
        let next = from.wrapping_add(done);
        match instruction.relative {
            None => out.push(bytes)?,
            Some(Relative::Data { at }) => {
                let (before, rest) = bytes.split_at_checked(at)?;
                let (distance, after) = rest.split_first_chunk()?;
                let target = next.wrapping_add_signed(i32::from_le_bytes(*distance) as isize);
                out.push(before)?;
                out.push_distance(target, after.len())?;
                out.push(after)?;
            }
            Some(Relative::Branch { condition, distance }) => {
                let target = next.wrapping_add_signed(distance as isize);
                // A loop over what is moved would come back to the jump.
                if (from..from.wrapping_add(least)).contains(&target) {
                    return None;
                }
                out.push(&[0x0f, 0x80 | condition])?;
                out.push_distance(target, 0)?;
            }
        }
    }
    let back = patch::absolute_stub(from.wrapping_add(done));
    out.push(back.get(..patch::ABSOLUTE_JUMP_BYTES)?)?;
    Some(out.code)
}

struct Out {
    code: [u8; MOVED_BYTES],
    len_bytes: usize,
    at: usize,
}

impl Out {
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len_bytes + bytes.len();
        self.code.get_mut(self.len_bytes..end)?.copy_from_slice(bytes);
        self.len_bytes = end;
        Some(())
    }

    /// Four bytes that lead to `target` from an instruction that ends `behind` bytes after them.
    fn push_distance(&mut self, target: usize, behind: usize) -> Option<()> {
        let next = self.at.wrapping_add(self.len_bytes + 4 + behind);
        let distance = i32::try_from(target.wrapping_sub(next).cast_signed()).ok()?;
        self.push(&distance.to_le_bytes())
    }
}

struct Instruction {
    len_bytes: usize,
    relative: Option<Relative>,
}

/// What in an instruction is counted from its own place.
enum Relative {
    /// The address of its operand, in four bytes from this one on.
    Data {
        at: usize,
    },
    Branch {
        condition: u8,
        distance: i32,
    },
}

impl Instruction {
    /// What compilers begin functions with, in 64-bit code.
    fn decode(code: &[u8]) -> Option<Instruction> {
        const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        if code.starts_with(&ENDBR64) {
            return Some(Instruction::plain(ENDBR64.len()));
        }
        let rex = code.first().copied().filter(|byte| byte & 0xf0 == 0x40);
        let is_wide = rex.is_some_and(|rex| rex & 8 != 0);
        let opcode_at = usize::from(rex.is_some());
        let operands_at = opcode_at + 1;
        let operands = |immediate| Instruction::with_operands(code, operands_at, immediate);
        match *code.get(opcode_at..)? {
            // push, pop
            [0x50..=0x5f, ..] | [0x90, ..] => Some(Instruction::plain(operands_at)),
            // mov to a register
            [0xb8..=0xbf, ..] => Some(Instruction::plain(operands_at + if is_wide { 8 } else { 4 })),
            // jcc
            [opcode @ 0x70..=0x7f, distance, ..] => Some(Instruction {
                len_bytes: operands_at + 1,
                relative: Some(Relative::Branch {
                    condition: opcode & 0xf,
                    distance: i32::from(distance.cast_signed()),
                }),
            }),
            [0x0f, opcode @ 0x80..=0x8f, a, b, c, d, ..] => Some(Instruction {
                len_bytes: operands_at + 5,
                relative: Some(Relative::Branch {
                    condition: opcode & 0xf,
                    distance: i32::from_le_bytes([a, b, c, d]),
                }),
            }),
            // cmov, set, movzx, movsx, nop
            [0x0f, 0x40..=0x4f | 0x90..=0x9f | 0xb6 | 0xb7 | 0xbe | 0xbf | 0x1f, ..] => {
                Instruction::with_operands(code, operands_at + 1, 0)
            }
            // add, or, adc, sbb, and, sub, xor, cmp: of a register and what may be memory, of the accumulator and a number
            [opcode @ 0x00..=0x3f, ..] => match opcode & 7 {
                0..=3 => operands(0),
                4 => Some(Instruction::plain(operands_at + 1)),
                5 => Some(Instruction::plain(operands_at + 4)),
                _ => None,
            },
            // movsxd, test, mov, lea
            [0x63 | 0x84 | 0x85 | 0x88..=0x8b | 0x8d, ..] => operands(0),
            // The same with a number.
            [0x80 | 0x83 | 0xc6, ..] => operands(1),
            [0x81 | 0xc7, ..] => operands(4),
            [0xa8, ..] => Some(Instruction::plain(operands_at + 1)),
            [0xa9, ..] => Some(Instruction::plain(operands_at + 4)),
            // test, and others of the group that have no number
            [opcode @ 0xf6..=0xf7, operand, ..] => match (operand >> 3) & 7 {
                0 => operands(if opcode == 0xf6 { 1 } else { 4 }),
                2..=3 => operands(0),
                _ => None,
            },
            _ => None,
        }
    }

    fn plain(len_bytes: usize) -> Instruction {
        Instruction { len_bytes, relative: None }
    }

    /// An instruction with a ModRM byte at `at` and `immediate` bytes of a number at its end.
    fn with_operands(code: &[u8], at: usize, immediate: usize) -> Option<Instruction> {
        let operand = *code.get(at)?;
        let (mode, register) = (operand >> 6, operand & 7);
        let has_index = mode != 3 && register == 4;
        let displacement_at = at + 1 + usize::from(has_index);
        let base = if has_index { *code.get(at + 1)? & 7 } else { register };
        let displacement = match (mode, base) {
            (0, 5) | (2, _) => 4,
            (1, _) => 1,
            _ => 0,
        };
        let is_relative = mode == 0 && register == 5;
        Some(Instruction {
            len_bytes: displacement_at + displacement + immediate,
            relative: is_relative.then_some(Relative::Data { at: displacement_at }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: usize = 0x10_0000;
    const TO: usize = 0x20_0000;

    /// The instructions without the jump that ends them, and where that leads.
    fn split(code: [u8; MOVED_BYTES]) -> (Vec<u8>, usize) {
        let at = code.windows(6).position(|bytes| bytes == [0xff, 0x25, 0, 0, 0, 0]).unwrap();
        let target = code[at + 6..at + 14].try_into().unwrap();
        (code[..at].to_vec(), usize::from_le_bytes(target))
    }

    fn move_it(code: &[u8]) -> Option<(Vec<u8>, usize)> {
        moved(code, FROM, TO, patch::JUMP_BYTES).map(split)
    }

    /// As NVIDIA's libraries of 11.8 to 13.5 begin.
    #[test]
    fn beginnings_that_have_no_place_are_copied_whole() {
        for (code, len_bytes) in [
            // push rbp; mov rbp, rsp; push r13
            (&[0x55, 0x48, 0x89, 0xe5, 0x41, 0x55, 0x41, 0x54][..], 6),
            // push r13; push r12; push rbp
            (&[0x41, 0x55, 0x41, 0x54, 0x55, 0x53], 5),
            // push rbp; mov eax, 1; mov rbp, rsp
            (&[0x55, 0xb8, 1, 0, 0, 0, 0x48, 0x89, 0xe5], 6),
            // push rbp; test rdi, rdi; mov eax, 1
            (&[0x55, 0x48, 0x85, 0xff, 0xb8, 1, 0, 0, 0], 9),
            // push rbx; sub rsp, 0x110
            (&[0x53, 0x48, 0x81, 0xec, 0x10, 1, 0, 0], 8),
            // mov [rsp + 8], rdi
            (&[0x48, 0x89, 0x7c, 0x24, 8], 5),
            // test rdx, rdx; sete al
            (&[0x48, 0x85, 0xd2, 0x0f, 0x94, 0xc0, 0x48], 6),
            // movabs rax, …
            (&[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8], 10),
            // endbr64; push rbp
            (&[0xf3, 0x0f, 0x1e, 0xfa, 0x55], 5),
        ] {
            assert_eq!(move_it(code), Some((code[..len_bytes].to_vec(), FROM + len_bytes)), "{code:x?}");
        }
    }

    #[test]
    fn an_address_counted_from_the_instruction_stays_the_same_address() {
        // cmp byte [rip + 0x3ac23d1], 0
        let (code, back) = move_it(&[0x80, 0x3d, 0xd1, 0x23, 0xac, 3, 0]).unwrap();
        assert_eq!(code[..2], [0x80, 0x3d]);
        let distance = i32::from_le_bytes(code[2..6].try_into().unwrap());
        assert_eq!((TO + 7).wrapping_add_signed(distance as isize), FROM + 7 + 0x3ac_23d1);
        assert_eq!((code[6], back), (0, FROM + 7));
    }

    #[test]
    fn a_branch_leads_where_it_led() {
        // test rdi, rdi; je +0x1b
        for branch in [&[0x74, 0x1b][..], &[0x0f, 0x84, 0x1b, 0, 0, 0]] {
            let from = [&[0x48, 0x85, 0xff], branch].concat();
            let (code, back) = move_it(&from).unwrap();
            assert_eq!(code[..5], [0x48, 0x85, 0xff, 0x0f, 0x84]);
            let distance = i32::from_le_bytes(code[5..9].try_into().unwrap());
            assert_eq!((TO + 9).wrapping_add_signed(distance as isize), FROM + from.len() + 0x1b);
            assert_eq!(back, FROM + from.len());
        }
        // The function itself is reached through the jump.
        assert!(move_it(&[0x48, 0x85, 0xff, 0x74, 0xfb]).is_none(), "to its own start");
    }

    #[test]
    fn what_is_not_known_is_not_moved() {
        for code in [
            &[0xe9, 1, 0, 0, 0][..],         // a jump: somebody else's
            &[0xcc, 0x55, 0x55, 0x55, 0x55], // a debugger's breakpoint
            &[0xe8, 1, 0, 0, 0],             // call
            &[0xff, 0x25, 1, 0, 0, 0],       // jmp [rip + 1]
            &[0xc3, 0x90, 0x90, 0x90, 0x90], // ret
            &[0x0f, 0x05, 0x90, 0x90, 0x90], // syscall
            &[0x26, 0x90, 0x90, 0x90, 0x90], // a prefix
            &[0x55, 0x48, 0x89],             // ends too early
        ] {
            assert_eq!(move_it(code), None, "{code:x?}");
        }
        // Too far away for an address of 32 bits.
        assert!(moved(&[0x80, 0x3d, 1, 0, 0, 0, 0], FROM, FROM + (5 << 30), 5).is_none());
    }

    /// The compiler's own functions, moved and called.
    #[test]
    fn a_function_does_the_same_after_it_was_moved() {
        #[inline(never)]
        extern "C" fn sum(numbers: *const i32, n: usize) -> i32 {
            // SAFETY: the test passes so many.
            (0..n).fold(7, |sum, at| sum.wrapping_mul(31) + unsafe { *numbers.add(at) })
        }
        let from = sum as extern "C" fn(*const i32, usize) -> i32 as usize;
        // SAFETY: the function's own code.
        let code = unsafe { core::slice::from_raw_parts(from as *const u8, 24) };
        let mut copied = false;
        let island = patch::Island::near(from, from + 24, MOVED_BYTES, |bytes| {
            if let Some(code) = moved(code, from, bytes.as_ptr() as usize, patch::JUMP_BYTES) {
                bytes[..MOVED_BYTES].copy_from_slice(&code);
                copied = true;
            }
        })
        .unwrap();
        assert!(copied, "{code:x?}");
        // SAFETY: written as a function of this type.
        let call: extern "C" fn(*const i32, usize) -> i32 = unsafe { core::mem::transmute(island.at) };
        let numbers = [3, 1, 4, 1, 5, 9];
        for n in 0..=numbers.len() {
            assert_eq!(call(numbers.as_ptr(), n), sum(numbers.as_ptr(), n));
        }
    }
}
