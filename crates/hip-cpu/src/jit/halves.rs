//! What LLVM's passes make of halves and its code generator takes apart lane by lane.
//!
//! The text computes with halves as floats. InstCombine turns comparisons and roundings of widened halves into those of the halves
//! themselves, which LLVM 19 has no vectors for without AVX512-FP16: groups of 32 become some 430 instructions where 9 do, and CUB's
//! merge sort of `__half`, which compares 438 groups, took 9.1 s in the code generator for 0.7. Behind the passes they are widened
//! again; that is exact, so the bits are the same.

use llvm_sys::core::*;
use llvm_sys::prelude::*;
use llvm_sys::{LLVMOpcode, LLVMTypeKind};

use super::Owned;

/// Intrinsics that InstCombine narrows.
const ROUNDINGS: [&str; 7] = ["ceil", "floor", "nearbyint", "rint", "round", "roundeven", "trunc"];

/// Has vectors of halves compared and rounded as floats.
///
/// # Safety
/// The module is the caller's alone, and `context` is its.
pub unsafe fn widen(context: LLVMContextRef, module: LLVMModuleRef) {
    // SAFETY: the walk reads an instruction's follower before it erases the instruction.
    unsafe {
        let builder = Owned(LLVMCreateBuilderInContext(context), LLVMDisposeBuilder);
        let roundings = ROUNDINGS.map(|name| {
            let name = format!("llvm.{name}");
            LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len())
        });
        let wide = Wide { context, module, builder: builder.0, roundings };
        let mut function = LLVMGetFirstFunction(module);
        while !function.is_null() {
            let mut block = LLVMGetFirstBasicBlock(function);
            while !block.is_null() {
                let mut inst = LLVMGetFirstInstruction(block);
                while !inst.is_null() {
                    let next = LLVMGetNextInstruction(inst);
                    if let Some(value) = wide.instead_of(inst) {
                        LLVMReplaceAllUsesWith(inst, value);
                        LLVMInstructionEraseFromParent(inst);
                    }
                    inst = next;
                }
                block = LLVMGetNextBasicBlock(block);
            }
            function = LLVMGetNextFunction(function);
        }
    }
}

struct Wide {
    context: LLVMContextRef,
    module: LLVMModuleRef,
    builder: LLVMBuilderRef,
    roundings: [std::ffi::c_uint; ROUNDINGS.len()],
}

impl Wide {
    /// The same value by way of floats, written in front of the instruction.
    unsafe fn instead_of(&self, inst: LLVMValueRef) -> Option<LLVMValueRef> {
        // SAFETY: an instruction of the module; operands are asked for as its opcode has them.
        unsafe {
            match LLVMGetInstructionOpcode(inst) {
                LLVMOpcode::LLVMFCmp => {
                    let floats = self.floats_for(LLVMGetOperand(inst, 0))?;
                    let [x, y] = [0, 1].map(|nth| self.extended(inst, nth, floats));
                    let predicate = LLVMGetFCmpPredicate(inst);
                    Some(LLVMBuildFCmp(self.builder, predicate, x, y, c"".as_ptr()))
                }
                LLVMOpcode::LLVMCall => {
                    let callee = LLVMIsAFunction(LLVMGetCalledValue(inst));
                    if callee.is_null() {
                        return None;
                    }
                    let id = LLVMGetIntrinsicID(callee);
                    let floats = self.floats_for(inst).filter(|_| self.roundings.contains(&id))?;
                    let mut x = self.extended(inst, 0, floats);
                    let mut overload = floats;
                    let callee = LLVMGetIntrinsicDeclaration(self.module, id, &mut overload, 1);
                    let ty = LLVMGlobalGetValueType(callee);
                    let rounded = LLVMBuildCall2(self.builder, ty, callee, &mut x, 1, c"".as_ptr());
                    Some(LLVMBuildFPTrunc(self.builder, rounded, LLVMTypeOf(inst), c"".as_ptr()))
                }
                _ => None,
            }
        }
    }

    /// The type of floats for a vector of halves.
    unsafe fn floats_for(&self, value: LLVMValueRef) -> Option<LLVMTypeRef> {
        // SAFETY: a value of the module.
        unsafe {
            let ty = LLVMTypeOf(value);
            let is_vector = LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMVectorTypeKind;
            let is_it =
                is_vector && LLVMGetTypeKind(LLVMGetElementType(ty)) == LLVMTypeKind::LLVMHalfTypeKind;
            is_it.then(|| LLVMVectorType(LLVMFloatTypeInContext(self.context), LLVMGetVectorSize(ty)))
        }
    }

    unsafe fn extended(&self, inst: LLVMValueRef, nth: u32, floats: LLVMTypeRef) -> LLVMValueRef {
        // SAFETY: an instruction that has the operand.
        unsafe {
            LLVMPositionBuilderBefore(self.builder, inst);
            LLVMBuildFPExt(self.builder, LLVMGetOperand(inst, nth), floats, c"".as_ptr())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::jit::{Code, Effort, Target, compile};

    const LANES: usize = 32;

    /// `write` from two vectors of halves, as the text has them: widened.
    fn built(write: &str) -> (Code, usize) {
        let text = format!(
            "declare <32 x float> @llvm.floor.v32f32(<32 x float>)\n\
             define void @f(ptr %a, ptr %b, ptr %out) {{\n\
             %h = load <32 x half>, ptr %a, align 2\n%k = load <32 x half>, ptr %b, align 2\n\
             %x = fpext <32 x half> %h to <32 x float>\n%y = fpext <32 x half> %k to <32 x float>\n\
             {write}ret void\n}}\n"
        );
        let object = compile("test", &text, Target::host(), Effort::Best).unwrap();
        (Code::load(&object).unwrap(), object.len())
    }

    fn run<T: Default + Copy, const N: usize>(code: &Code, x: [u16; LANES], y: [u16; LANES]) -> [T; N] {
        let f = code.function("f").unwrap();
        // SAFETY: the IR above has this signature, and writes as much as `N` of `T` are.
        let f: extern "C" fn(*const u16, *const u16, *mut T) = unsafe { std::mem::transmute(f) };
        let mut out = [T::default(); N];
        f(x.as_ptr(), y.as_ptr(), out.as_mut_ptr());
        out
    }

    /// IEEE 754 binary16.
    fn value(bits: u16) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
        let size = match exponent {
            0 => fraction * 2f64.powi(-24),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
        };
        if bits >> 15 == 1 { -size } else { size }
    }

    /// Bytes of an object whose lanes go one by one: 1,900 with a rounding, and more with a comparison.
    const LANE_BY_LANE: usize = 1500;

    #[test]
    fn halves_are_compared_together_and_in_their_order() {
        let (code, bytes) = built(
            "%less = fcmp olt <32 x float> %x, %y\n%unordered = fcmp uge <32 x float> %x, %y\n\
             store <32 x i1> %less, ptr %out\n%q = getelementptr i8, ptr %out, i64 4\nstore <32 x i1> %unordered, ptr %q\n",
        );
        assert!(bytes < LANE_BY_LANE, "{bytes} bytes");
        // Signed zeros, the least, a tie's neighbours, one, the greatest, infinities, NaNs.
        let special = [
            0u16, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3bff, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff, 0x7c00,
            0xfc00, 0x7e00, 0xfe01,
        ];
        for turn in 0..LANES {
            let x: [u16; LANES] = std::array::from_fn(|lane| special[lane % special.len()]);
            let y: [u16; LANES] = std::array::from_fn(|lane| special[(lane + turn) % special.len()]);
            let [less, unordered] = run::<u32, 2>(&code, x, y);
            for lane in 0..LANES {
                let (a, b) = (value(x[lane]), value(y[lane]));
                let is_less = a < b;
                assert_eq!(less >> lane & 1 == 1, is_less, "{a} < {b}");
                assert_eq!(unordered >> lane & 1 == 1, !is_less, "{a} >= {b} or unordered");
            }
        }
    }

    #[test]
    fn halves_are_rounded_together() {
        let (code, bytes) = built(
            "%r = call <32 x float> @llvm.floor.v32f32(<32 x float> %x)\n\
             %n = fptrunc <32 x float> %r to <32 x half>\nstore <32 x half> %n, ptr %out, align 2\n",
        );
        assert!(bytes < LANE_BY_LANE, "{bytes} bytes");
        for first in (0..0x1_0000u32).step_by(LANES) {
            let x: [u16; LANES] = std::array::from_fn(|lane| (first + lane as u32) as u16);
            let floors = run::<u16, LANES>(&code, x, x);
            for lane in 0..LANES {
                let (got, wanted) = (value(floors[lane]), value(x[lane]).floor());
                assert!(
                    got.to_bits() == wanted.to_bits() || got.is_nan() && wanted.is_nan(),
                    "floor of {:#x}",
                    x[lane]
                );
            }
        }
    }
}
