//! A module of many kernels, as a library of templates has them.

use std::fmt::Write as _;

/// So many kernels `kernel_0` … of 28 to 60 lines, 2 KB each; `kernel_n` writes n at its first parameter.
pub fn text(n_kernels: usize) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .global .align 1 .b8 format[8] = {123, 32, 37, 100, 32, 125, 10, 0};\n\
         .func (.param .b32 r) scaled(.param .b32 a)\n{\n\t.reg .b32 %r<4>;\n\tld.param.u32 %r1, [a];\n\
         \tshl.b32 %r2, %r1, 1;\n\tst.param.b32 [r], %r2;\n\tret;\n}\n",
    );
    for n in 0..n_kernels {
        let _ = write!(
            text,
            "\n\t// .globl\tkernel_{n} // {{\n.visible .entry kernel_{n}(\n\t.param .u64 kernel_{n}_param_0,\n\
             \t.param .u32 kernel_{n}_param_1\n)\n.maxntid 256, 1, 1\n{{\n\t.reg .pred \t%p<3>;\n\
             \t.reg .b32 \t%r<64>;\n\t.reg .f32 \t%f<64>;\n\t.reg .b64 \t%rd<8>;\n\n\
             \tld.param.u64 \t%rd1, [kernel_{n}_param_0];\n\tld.param.u32 \t%r1, [kernel_{n}_param_1];\n\
             \tcvta.to.global.u64 \t%rd2, %rd1;\n\tmov.u32 \t%r2, %tid.x;\n\tcvt.rn.f32.u32 \t%f1, %r2;\n",
        );
        for i in 0..14 + n % 32 {
            let (a, b) = (2 + i % 30, 3 + i % 30);
            let _ = writeln!(
                text,
                "\tmad.lo.s32 \t%r{b}, %r{a}, %r1, {i}; /* }} */ add.f32 \t%f{b}, %f{a}, %f1;"
            );
        }
        let _ = write!(text, "\tmov.b32 \t%r60, {n};\n\tst.global.u32 \t[%rd2], %r60;\n\tret;\n\n}}\n",);
    }
    text
}
