//! Calls: of device functions, and of the host's services.

use super::code::{Code, Result, block_label};
use super::layout::{launch, service, status, thread, worker};
use crate::back::llvm::{Builder, Type, Unsupported, Val, memory, texture};
use crate::ir::{BlockId, CopyAsync, FuncId, Space, Syscall, TensorCopy, Value};
use crate::texture::Access;

/// Bytes of the OS thread's stack that recursion may take.
const STACK_LIMIT: i128 = 512 << 10;

impl Code<'_> {
    /// `i32 (launch, worker, thread, ptr stack base, ptr results, arguments…)`: [`status::RETURNED`], or what the step
    /// is to return.
    pub fn device_function(&mut self, id: FuncId) -> Result {
        let function = self.function;
        let entry_params = &function.block(BlockId(0)).params;
        let mut params = String::new();
        let mut args = vec![];
        for param in entry_params {
            let arg = Val::new(Type::of(function.ty(*param), 1), self.b.fresh());
            params += &format!(", {}", arg.typed());
            args.push(arg);
        }
        self.b.line(format_args!(
            "define internal i32 @f{}(ptr %launch, ptr %worker, ptr %thread, ptr %stack, ptr %results{params}) nounwind \"probe-stack\"=\"inline-asm\" {{",
            id.0
        ));
        self.b.start_block("entry");
        self.entry()?;
        for (param, arg) in entry_params.iter().zip(&args) {
            self.set(*param, arg);
        }
        self.b.br(&block_label(BlockId(0)));
        self.blocks()?;
        self.b.line("}");
        Ok(())
    }

    pub fn returns(&mut self, values: &[Value]) -> Result {
        for (place, value) in values.iter().enumerate() {
            let value = self.get(*value)?;
            let bits = self.b.to_bits(&value);
            let wide = self.b.resize(&bits, 128, false);
            let results = Val::new(Type::ptr(), "%results");
            let at = memory::offset_pointer(&mut self.b, &results, 16 * place as i64);
            self.b.inst(format_args!("store {}, {}, align 16", wide.typed(), at.typed()));
        }
        self.leave(status::RETURNED);
        Ok(())
    }

    pub fn call(&mut self, id: FuncId, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        let (Some(base), Some(buffer)) = (self.stack_base.clone(), self.call_results.clone()) else {
            return Err(Unsupported("a call in an unreachable block".to_owned()));
        };
        if self.recursive.contains(&id) {
            self.bound_stack(&base, &buffer);
        }
        let arguments: String = args.iter().map(|arg| format!(", {}", arg.typed())).collect();
        let line = format!(
            "call i32 @f{}(ptr %launch, ptr %worker, ptr %thread, {}, {}{arguments})",
            id.0,
            base.typed(),
            buffer.typed()
        );
        let status = self.b.assign(Type::int(32, 1), line);
        let normal = self.b.icmp_int("eq", &status, i128::from(status::RETURNED));
        let [stop, returned] = ["stop", "returned"].map(|hint| self.b.label(hint));
        self.b.cond_br(&normal, &returned, &stop);
        self.b.start_block(&stop);
        self.b.inst(format_args!("ret {}", status.typed()));
        self.b.start_block(&returned);
        let mut values = vec![];
        for (place, to) in results.iter().enumerate() {
            let at = memory::offset_pointer(&mut self.b, &buffer, 16 * place as i64);
            let raw = self.b.assign(Type::int(128, 1), format_args!("load i128, {}, align 16", at.typed()));
            let bits = self.b.resize(&raw, to.bits(), false);
            values.push(self.b.bitcast(&bits, *to));
        }
        Ok(values)
    }

    /// Leaves where the frames since the step's entry are too large.
    fn bound_stack(&mut self, base: &Val, here: &Val) {
        // The stack grows down.
        let wide = Type::int(64, 1);
        let (top, here) = (self.b.cast("ptrtoint", base, wide), self.b.cast("ptrtoint", here, wide));
        let depth = self.b.sub(&top, &here);
        let fits = self.b.icmp_int("ult", &depth, STACK_LIMIT);
        let [deep, call] = ["deep", "call"].map(|hint| self.b.label(hint));
        self.b.cond_br(&fits, &call, &deep);
        self.b.start_block(&deep);
        self.leave(status::NO_MEMORY);
        self.b.start_block(&call);
    }

    /// The function in a slot of the services table.
    pub fn service(&mut self, slot: i64) -> Val {
        let table = self.load_field("%launch", launch::SERVICES, Type::ptr());
        let at = memory::offset_pointer(&mut self.b, &table, slot * 8);
        self.b.assign(Type::ptr(), format_args!("load ptr, {}, align 8", at.typed()))
    }

    fn host_pointer(&mut self, address: &Val) -> Val {
        let address = self.b.resize(address, 64, false);
        self.b.cast("inttoptr", &address, Type::ptr())
    }

    /// A map that does not fit the instruction traps.
    pub fn copy_async(&mut self, copy: &CopyAsync, args: &[Val]) {
        let to = self.pointer(Space::Shared, &args[0], copy.to);
        let from = self.pointer(Space::Global, &args[1], copy.from);
        let bytes = if copy.is_ignored {
            let [none, all] = [0, copy.size].map(|bytes| Builder::int(Type::int(32, 1), bytes.into()));
            self.b.select(&args[2], &none, &all)
        } else {
            args[2].clone()
        };
        memory::copy_async(&mut self.b, copy.size, &to, &from, &bytes);
    }

    pub fn tensor_copy(&mut self, copy: TensorCopy, args: &[Val]) -> Val {
        let function = self.service(service::TENSOR).text;
        let mut words = vec![self.host_pointer(&args[0]).typed(), self.host_pointer(&args[1]).typed()];
        words.extend(args[2..].iter().map(Val::typed));
        words.push(format!("i32 {}", copy.flags()));
        let list = words.join(", ");
        let bytes = self.b.assign(Type::int(32, 1), format_args!("call i32 {function}({list})"));
        let fits = self.b.icmp_int("sge", &bytes, 0);
        let [stop, on] = ["stop", "on"].map(|hint| self.b.label(hint));
        self.b.cond_br(&fits, &on, &stop);
        self.b.start_block(&stop);
        self.leave(status::TRAP);
        self.b.start_block(&on);
        bytes
    }

    /// What a service answers to the launch and these.
    fn answer_of(&mut self, service: i64, to: Type, args: &[Val]) -> Val {
        let function = self.service(service).text;
        let args: String = args.iter().map(|arg| format!(", {}", arg.typed())).collect();
        self.b.assign(to, format_args!("call {to} {function}(ptr %launch{args})"))
    }

    pub fn syscall(&mut self, syscall: Syscall, args: &[Val]) -> Result<Vec<Val>> {
        let (wanted, name) = match syscall {
            Syscall::Vprintf => (2, "vprintf"),
            Syscall::Malloc => (1, "malloc"),
            Syscall::Free => (1, "free"),
            Syscall::DeviceRuntime => (2, "the device runtime"),
            Syscall::TensorMemory => (10, "tensor memory"),
            Syscall::CancelCluster => (0, "clusterlaunchcontrol"),
            Syscall::AssertFail => (5, "__assertfail"),
        };
        if args.len() != wanted {
            return Err(Unsupported(format!("{name} with {} arguments", args.len())));
        }
        Ok(match syscall {
            Syscall::Vprintf => {
                let given = [self.host_pointer(&args[0]), self.host_pointer(&args[1])];
                vec![self.answer_of(service::VPRINTF, Type::int(32, 1), &given)]
            }
            Syscall::Malloc => {
                let bytes = self.b.resize(&args[0], 64, false);
                let pointer = self.answer_of(service::MALLOC, Type::ptr(), &[bytes]);
                vec![self.b.cast("ptrtoint", &pointer, Type::int(64, 1))]
            }
            Syscall::Free => {
                let function = self.service(service::FREE);
                let pointer = self.host_pointer(&args[0]);
                self.b.inst(format_args!("call void {}(ptr %launch, {})", function.text, pointer.typed()));
                vec![]
            }
            Syscall::DeviceRuntime => {
                let given = [self.host_pointer(&args[0]), self.b.resize(&args[1], 64, false)];
                vec![self.answer_of(service::DEVICE_RUNTIME, Type::int(64, 1), &given)]
            }
            Syscall::TensorMemory => {
                let mut given = args.to_vec();
                given[0] = self.host_pointer(&args[0]);
                vec![self.answer_of(service::TENSOR_MEMORY, Type::int(32, 1), &given)]
            }
            Syscall::CancelCluster => {
                vec![self.answer_of(service::CANCEL_CLUSTER, Type::int(64, 1), &[])]
            }
            Syscall::AssertFail => {
                let texts = [0, 1, 3].map(|i| self.host_pointer(&args[i]).typed());
                let [message, file, function_name] = texts;
                let line = self.b.resize(&args[2], 32, false).typed();
                let char_bytes = self.b.resize(&args[4], 64, false).typed();
                let function = self.service(service::ASSERT_FAIL).text;
                let word = Type::int(32, 1);
                let [x, y, z] =
                    [0, 4, 8].map(|axis| self.load_field("%worker", worker::BLOCK + axis, word).typed());
                let thread = self.load_field("%thread", thread::LINEAR, word).typed();
                self.b.inst(format_args!(
                    "call void {function}(ptr %launch, {message}, {file}, {line}, {function_name}, {char_bytes}, \
                     {x}, {y}, {z}, {thread})"
                ));
                self.stop(status::ASSERTION);
                vec![]
            }
        })
    }

    pub fn texture(&mut self, access: Access, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        let Some(words) = self.texture_words.clone() else {
            return Err(Unsupported("a texture in an unreachable block".to_owned()));
        };
        let service = self.service(service::TEXTURE).text;
        texture::call(&mut self.b, &service, &words, access, args);
        let read = |(nth, to): (usize, &Type)| texture::result(&mut self.b, &words, nth, *to);
        Ok(results.iter().enumerate().map(read).collect())
    }
}
