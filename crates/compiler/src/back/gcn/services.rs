//! What kernel code says to the host: faults, failed assertions, `printf`. It writes into the services buffer, which the
//! host sees ([`super::Launch::services`]), and whoever launched reads it when the grid has ended.
//!
//! Little-endian:
//!
//! | offset | type | what |
//! |---|---|---|
//! | 0 | u32 | the first fault ([`Fault`]), 0 while there is none |
//! | 8 | u64 | bytes for records, from [`RECORDS`] on; whoever launches writes it |
//! | 16 | u64 | bytes that records took; may be more than there are: what did not fit is lost |
//! | 64 | … | records, one behind the other, each from a multiple of 8 |
//!
//! A record begins with u32 its bytes and u32 its kind; 0 bytes: it was not finished.

use super::code::{Code, Result};
use super::launch::field;
use crate::back::llvm::{Builder, Type, Unsupported, Val, memory};
use crate::ir::{Special, Syscall};

/// Where the first record begins.
pub const RECORDS: u64 = 64;
pub const CAPACITY: u64 = 8;
pub const TAKEN: u64 = 16;

/// What a kernel did wrong; ends the thread. The grid's other threads go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `trap`, `brkpt`.
    Trap = 1,
    /// A failed `assert`; its record says which.
    Assertion = 2,
    /// The stack is used up.
    Stack = 3,
    /// A call through a pointer to no function.
    InvalidPc = 4,
}

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// u64 address of the format, then the arguments as `vprintf` has them: as many words of 8 bytes as the format can ask
    /// for.
    Printf = 1,
    /// u64 addresses of message, file and function; u32 line; u32 × 3 block; u32 × 3 thread; u32 0.
    Assertion = 2,
}

/// Bytes of an assertion's record.
const ASSERTION_BYTES: u64 = 8 + 24 + 32;

impl Code<'_> {
    fn services(&mut self) -> Val {
        self.unit.uses_services.set(true);
        let address = self.launch(field::SERVICES, Type::int(64, 1));
        self.b.cast("inttoptr", &address, Type::space(1))
    }

    /// Notes the fault and ends the thread. What is written behind it is never reached.
    pub fn fault(&mut self, fault: Fault) {
        let services = self.services();
        let address = self.b.cast("ptrtoint", &services, Type::int(64, 1));
        let is_there = self.b.icmp_int("ne", &address, 0);
        let [note, bare, end, never] = ["note", "bare", "end", "never"].map(|hint| self.b.label(hint));
        self.b.cond_br(&is_there, &note, &bare);
        self.b.start_block(&note);
        let pair =
            format!("cmpxchg {}, i32 0, i32 {} monotonic monotonic, align 4", services.typed(), fault as u32);
        self.b.assign(Type::int(32, 1), pair);
        self.b.br(&end);
        // Nobody listens: the queue is to fail.
        self.b.start_block(&bare);
        self.b.call_void("llvm.trap", "", &[]);
        self.b.br(&end);
        self.b.start_block(&end);
        self.exit();
        self.b.start_block(&never);
    }

    /// Takes room for a record, whose bytes are a multiple of 8, and hands `write` its place. Gives whether there was room.
    fn record(&mut self, kind: Kind, bytes: &Val, write: impl FnOnce(&mut Self, &Val)) -> Val {
        let wide = Type::int(64, 1);
        let before = self.b.current_block().to_owned();
        let services = self.services();
        let address = self.b.cast("ptrtoint", &services, wide);
        let is_there = self.b.icmp_int("ne", &address, 0);
        let [take, fill, done] = ["take", "fill", "done"].map(|hint| self.b.label(hint));
        self.b.cond_br(&is_there, &take, &done);

        self.b.start_block(&take);
        let capacity = memory::offset_pointer(&mut self.b, &services, CAPACITY as i64);
        let capacity = self.b.assign(wide, format_args!("load i64, {}, align 8", capacity.typed()));
        let taken = memory::offset_pointer(&mut self.b, &services, TAKEN as i64);
        let update = format!("atomicrmw add {}, {} monotonic, align 8", taken.typed(), bytes.typed());
        let start = self.b.assign(wide, update);
        let end = self.b.add(&start, bytes);
        let fits = self.b.icmp("ule", &end, &capacity);
        self.b.cond_br(&fits, &fill, &done);

        self.b.start_block(&fill);
        let first = memory::offset_pointer(&mut self.b, &services, RECORDS as i64);
        let at =
            self.b.assign(first.ty, format_args!("getelementptr i8, {}, {}", first.typed(), start.typed()));
        let place = memory::offset_pointer(&mut self.b, &at, 4);
        self.b.inst(format_args!("store i32 {}, {}, align 4", kind as u32, place.typed()));
        write(self, &at);
        let bytes = self.b.resize(bytes, 32, false);
        self.b.inst(format_args!("store atomic {}, {} release, align 8", bytes.typed(), at.typed()));
        let filled = self.b.current_block().to_owned();
        self.b.br(&done);

        self.b.start_block(&done);
        let phi = format!("phi i1 [ false, %{before} ], [ false, %{take} ], [ true, %{filled} ]");
        self.b.assign(Type::int(1, 1), phi)
    }

    fn store_at(&mut self, record: &Val, offset: i64, value: &Val) {
        let place = memory::offset_pointer(&mut self.b, record, offset);
        let bytes = value.ty.bits() / 8;
        self.b.inst(format_args!("store {}, {}, align {bytes}", value.typed(), place.typed()));
    }

    pub fn syscall(&mut self, syscall: Syscall, args: &[Val]) -> Result<Vec<Val>> {
        match (syscall, args) {
            (Syscall::AssertFail, [message, file, line, function, _]) => {
                self.assertion([message, file, function], line)?;
                Ok(vec![])
            }
            (Syscall::Vprintf, [format, values]) => Ok(vec![self.printf(format, values)]),
            (Syscall::Malloc, [bytes]) => Ok(vec![self.malloc(bytes)]),
            (Syscall::Free, [address]) => {
                self.free(address);
                Ok(vec![])
            }
            // HIP differs: nothing hands out blocks while a grid runs that could be asked, so that none is cancelled; PTX
            // allows a request to fail.
            (Syscall::CancelCluster, []) => Ok(vec![Builder::int(Type::int(64, 1), 0)]),
            (Syscall::DeviceRuntime, [arguments, number]) => Ok(vec![self.ask(arguments, number)?]),
            _ => Err(Unsupported(String::new())),
        }
    }

    fn assertion(&mut self, texts: [&Val; 3], line: &Val) -> Result {
        let word = Type::int(32, 1);
        let mut words = vec![self.b.resize(line, 32, false)];
        let places = [Special::Ctaid, Special::Tid].into_iter().flat_map(|of| (0..3).map(of));
        for special in places.collect::<Vec<Special>>() {
            words.push(self.special(special, word)?);
        }
        words.push(Builder::int(word, 0));
        let texts: Vec<Val> = texts.into_iter().map(|text| self.b.resize(text, 64, false)).collect();
        let bytes = Builder::int(Type::int(64, 1), i128::from(ASSERTION_BYTES));
        self.record(Kind::Assertion, &bytes, |code, at| {
            for (nth, text) in texts.iter().enumerate() {
                code.store_at(at, 8 + 8 * nth as i64, text);
            }
            for (nth, word) in words.iter().enumerate() {
                code.store_at(at, 32 + 4 * nth as i64, word);
            }
        });
        self.fault(Fault::Assertion);
        Ok(())
    }

    /// Every `%` and every `*` of the format asks for 8 bytes of arguments at most.
    fn printf(&mut self, format: &Val, values: &Val) -> Val {
        let (word, wide) = (Type::int(32, 1), Type::int(64, 1));
        let format = self.b.resize(format, 64, false);
        let values = self.b.resize(values, 64, false);
        let count = self.count_arguments(&format);
        let bytes = self.b.bin_int("shl", &count, 3);
        let bytes = self.b.bin_int("add", &bytes, 16);
        let written = self.record(Kind::Printf, &bytes, |code, at| {
            code.store_at(at, 8, &format);
            code.copy_words(&values, at, &count);
        });
        // As `printf` counts: the arguments; -1 where there was no room.
        let count = self.b.resize(&count, word.bits(), false);
        debug_assert_eq!(bytes.ty, wide);
        self.b.select(&written, &count, &Builder::int(word, -1))
    }

    fn count_arguments(&mut self, format: &Val) -> Val {
        let (byte, wide) = (Type::int(8, 1), Type::int(64, 1));
        let [head, body, done] = ["format", "letter", "counted"].map(|hint| self.b.label(hint));
        let before = self.b.current_block().to_owned();
        self.b.br(&head);
        self.b.start_block(&head);
        let [at, count, next, more] = std::array::from_fn(|_| self.b.fresh());
        self.b.inst(format_args!("{at} = phi i64 [ {}, %{before} ], [ {next}, %{body} ]", format.text));
        self.b.inst(format_args!("{count} = phi i64 [ 0, %{before} ], [ {more}, %{body} ]"));
        let place = self.b.cast("inttoptr", &Val::new(wide, at.clone()), Type::ptr());
        let letter = self.b.assign(byte, format_args!("load i8, {}, align 1", place.typed()));
        let ends = self.b.icmp_int("eq", &letter, 0);
        self.b.cond_br(&ends, &done, &body);
        self.b.start_block(&body);
        let asks = [b'%', b'*'].map(|it| self.b.icmp_int("eq", &letter, i128::from(it)));
        let asks = self.b.or(&asks[0], &asks[1]);
        let one = self.b.cast("zext", &asks, wide);
        self.b.inst(format_args!("{more} = add i64 {count}, {}", one.text));
        self.b.inst(format_args!("{next} = add i64 {at}, 1"));
        self.b.br(&head);
        self.b.start_block(&done);
        Val::new(wide, count)
    }

    /// Copies `count` words of 8 bytes from a generic address into the record, behind the format.
    fn copy_words(&mut self, from: &Val, record: &Val, count: &Val) {
        let wide = Type::int(64, 1);
        let [head, body, done] = ["words", "word", "copied"].map(|hint| self.b.label(hint));
        let before = self.b.current_block().to_owned();
        self.b.br(&head);
        self.b.start_block(&head);
        let [nth, next] = std::array::from_fn(|_| self.b.fresh());
        self.b.inst(format_args!("{nth} = phi i64 [ 0, %{before} ], [ {next}, %{body} ]"));
        let nth = Val::new(wide, nth);
        let ends = self.b.icmp("uge", &nth, count);
        self.b.cond_br(&ends, &done, &body);
        self.b.start_block(&body);
        let offset = self.b.bin_int("shl", &nth, 3);
        let at = self.b.add(from, &offset);
        let at = self.b.cast("inttoptr", &at, Type::ptr());
        // The last argument may be a word of 4 bytes and the end of what there is.
        let value = self.b.assign(wide, format_args!("load i64, {}, align 4", at.typed()));
        let to = self
            .b
            .assign(record.ty, format_args!("getelementptr i8, {}, {}", record.typed(), offset.typed()));
        self.store_at(&to, 16, &value);
        self.b.inst(format_args!("{next} = add i64 {}, 1", nth.text));
        self.b.br(&head);
        self.b.start_block(&done);
    }
}
