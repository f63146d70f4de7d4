//! Functions of the module that the kernel calls for what takes many instructions at each of many places.

use std::fmt::Write;

use super::Emitter;
use crate::back::llvm::{Builder, Type, Val};

/// What stands before a function's type and behind its parameters.
type Convention = (&'static str, &'static str);

impl Emitter<'_> {
    /// Calls the function that `write` gives for parameters like `arguments`; it is written once per name and types.
    /// `write` sees no mask and must use nothing of the kernel but its parameters.
    pub(super) fn outlined(
        &mut self,
        name: &str,
        arguments: &[Val],
        results: &[Type],
        write: impl FnOnce(&mut Self, &[Val]) -> Vec<Val>,
    ) -> Vec<Val> {
        let mut full = name.to_owned();
        let types = || arguments.iter().map(|it| it.ty).chain(results.iter().copied());
        for ty in types() {
            let _ = write!(full, ".{}", ty.suffix());
        }
        let convention = self.convention(types().any(|ty| ty.lanes > 1));
        let returned = match results {
            [] => "void".to_owned(),
            [ty] => ty.to_string(),
            many => format!("{{ {} }}", many.iter().map(Type::to_string).collect::<Vec<_>>().join(", ")),
        };
        if !self.b.is_declared(&full) {
            self.define(&full, arguments, &returned, convention, write);
        }
        let list = arguments.iter().map(Val::typed).collect::<Vec<_>>().join(", ");
        let call = format!("call {}{returned} @{full}({list})", convention.0);
        match results {
            [] => {
                self.b.inst(call);
                vec![]
            }
            [ty] => vec![self.b.assign(*ty, call)],
            many => {
                let name = self.b.fresh();
                self.b.inst(format_args!("{name} = {call}"));
                let item = |(nth, ty): (usize, &Type)| {
                    self.b.assign(*ty, format_args!("extractvalue {returned} {name}, {nth}"))
                };
                many.iter().enumerate().map(item).collect()
            }
        }
    }

    /// The calling convention of such functions, and attributes that go with it. By C's, no vector stays in its register across a call;
    /// by that of Intel's OpenCL built-in functions, half of AVX-512's do, and four masks. It does not keep `rbp`, which a kernel with
    /// large values on its stack needs: a function with a frame pointer does. What works on memory alone, as a matrix product, has use
    /// for all registers.
    fn convention(&self, has_vectors: bool) -> Convention {
        match has_vectors && self.b.vector_bits() >= 512 {
            true => ("intel_ocl_bicc ", " \"frame-pointer\"=\"all\""),
            false => ("", ""),
        }
    }

    fn define(
        &mut self,
        name: &str,
        arguments: &[Val],
        returned: &str,
        (convention, attributes): Convention,
        write: impl FnOnce(&mut Self, &[Val]) -> Vec<Val>,
    ) {
        let inner = self.b.another();
        let outer = std::mem::replace(&mut self.b, inner);
        let (allocas, scratch) = (std::mem::take(&mut self.allocas), std::mem::take(&mut self.scratch));
        let mask = self.mask.take();
        let is_single = std::mem::take(&mut self.is_single);
        let params: Vec<Val> =
            arguments.iter().enumerate().map(|(nth, it)| Val::new(it.ty, format!("%p{nth}"))).collect();

        self.b.start_block("body");
        let values = write(self, &params);
        match values.as_slice() {
            [] => self.b.inst("ret void"),
            [value] => self.b.inst(format_args!("ret {}", value.typed())),
            many => {
                let mut whole = "poison".to_owned();
                for (nth, value) in many.iter().enumerate() {
                    let next = self.b.fresh();
                    self.b.inst(format_args!(
                        "{next} = insertvalue {returned} {whole}, {}, {nth}",
                        value.typed()
                    ));
                    whole = next;
                }
                self.b.inst(format_args!("ret {returned} {whole}"));
            }
        }

        let list = params.iter().map(Val::typed).collect::<Vec<_>>().join(", ");
        let header =
            format!("define internal {convention}{returned} @{name}({list}) noinline nounwind{attributes}");
        let inner: Builder = std::mem::replace(&mut self.b, outer);
        self.b.adopt(name, header, &self.allocas, inner);
        self.allocas = allocas;
        self.scratch = scratch;
        self.mask = mask;
        self.is_single = is_single;
    }
}
