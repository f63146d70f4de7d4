//! `ldmatrix` and `stmatrix` as a function over all lanes' registers, a loop that takes one register of one lane after the other.

use super::super::super::builder::{Builder, Val};
use super::super::super::ty::Type;
use super::Result;
use crate::matrix::{LANES, MatrixRows};

/// The name of a function `i32 (ptr in, ptr out, ptr shared)`, which is added to the module: `in` has the rows' addresses in the shared
/// window, what is added to them, and the registers that are stored, `out` those that are loaded, each as 32 lanes in a row.
pub fn exchange(b: &mut Builder, rows: &MatrixRows) -> Result<String> {
    let direction = if rows.stores { "store" } else { "load" };
    let turned = if rows.is_transposed { ".trans" } else { "" };
    let name = format!("@rows.{direction}.x{}{turned}", rows.count);
    b.define(&name, |b| {
        let params = "ptr %in, ptr %out, ptr %shared";
        b.line(format_args!("define internal i32 {name}({params}) nounwind noinline {{"));
        b.start_block("entry");
        b.inst("br label %next");
        b.start_block("next");
        let (long, word) = (Type::int(64, 1), Type::int(32, 1));
        b.inst("%at = phi i64 [ 0, %entry ], [ %then, %next ]");
        let at = Val::new(long, "%at");
        let element = |b: &mut Builder, base: &str, index: &Val| {
            b.assign(Type::ptr(), format_args!("getelementptr i32, ptr {base}, {}", index.typed()))
        };
        let read = |b: &mut Builder, index: &Val| {
            let at = element(b, "%in", index);
            b.assign(word, format_args!("load i32, {}, align 4", at.typed()))
        };
        // Where the register is: a row of lanes behind the others.
        let register = if rows.stores {
            let index = b.bin_int("add", &at, i128::from(2 * LANES));
            element(b, "%in", &index)
        } else {
            element(b, "%out", &at)
        };
        // The matrix's first row, the lane's row of eight, and the first of its two columns.
        let first = b.bin_int("and", &at, -i128::from(LANES));
        let first = b.bin_int("lshr", &first, 2);
        let lane = b.bin_int("and", &at, i128::from(LANES - 1));
        let group = b.bin_int("lshr", &lane, 2);
        let column = b.bin_int("and", &lane, 3);
        let column = b.bin_int("shl", &column, 1);
        let parts: &[(u32, u32)] = if rows.is_transposed { &[(0, 16), (1, 16)] } else { &[(0, 32)] };
        let mut loaded = vec![];
        for &(half, bits) in parts {
            let (row, column) = if rows.is_transposed {
                (b.bin_int("add", &column, half.into()), group.clone())
            } else {
                (group.clone(), column.clone())
            };
            let row = b.add(&first, &row);
            let address = read(b, &row);
            let address = b.resize(&address, 64, false);
            let behind = b.bin_int("add", &row, LANES.into());
            let behind = read(b, &behind);
            let behind = b.resize(&behind, 64, true);
            let address = b.add(&address, &behind);
            let bytes = b.bin_int("shl", &column, 1);
            let address = b.add(&address, &bytes);
            let place =
                b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %shared, {}", address.typed()));
            let ty = Type::int(bits, 1);
            if rows.stores {
                let value = b.assign(word, format_args!("load i32, {}, align 4", register.typed()));
                let value = b.bin_int("lshr", &value, i128::from(16 * half));
                let value = b.resize(&value, bits, false);
                b.inst(format_args!("store {}, {}, align {}", value.typed(), place.typed(), bits / 8));
            } else {
                let value = b.assign(ty, format_args!("load {ty}, {}, align {}", place.typed(), bits / 8));
                let value = b.resize(&value, 32, false);
                loaded.push(b.bin_int("shl", &value, i128::from(16 * half)));
            }
        }
        if let [first, rest @ ..] = &loaded[..] {
            let value = rest.iter().fold(first.clone(), |all, part| b.or(&all, part));
            b.inst(format_args!("store {}, {}, align 4", value.typed(), register.typed()));
        }
        b.inst("%then = add i64 %at, 1");
        let count = u32::from(rows.count) * LANES;
        b.inst(format_args!("%more = icmp ult i64 %then, {count}"));
        b.inst("br i1 %more, label %next, label %done");
        b.start_block("done");
        b.inst("ret i32 0");
        b.line("}");
        Result::Ok(())
    })?;
    Ok(name)
}
