//! One CUDA thread: its frames, and control flow.

use ptx::ast::{Instruction, Operand, OperandKind, Type};

use super::memory::{Memory, Region};
use super::program::{Entity, FUNCTIONS, Function, Program};
use super::{Block, Result, Value, meet, semantics};

/// What a thread is up to.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    Runs,
    /// The instruction is done when [`Thread::resume`] brings its results.
    Waits(meet::Request),
    Ended,
}

/// One call of a function.
pub struct Frame<'p, 'a> {
    pub function: &'p Function<'a>,
    pc: usize,
    pub registers: Vec<Value>,
    /// Parameters, results, and those of the calls it makes.
    pub params: Region,
    pub local_base: u64,
    /// Where the caller wants the results.
    returns: Vec<Operand<'a>>,
}

impl<'p, 'a> Frame<'p, 'a> {
    /// The one that runs or waits.
    pub fn instruction(&self) -> &'p Instruction<'a> {
        &self.function.steps[self.pc].instruction
    }

    pub fn scope(&self) -> usize {
        self.function.steps.get(self.pc).map_or(0, |step| step.scope)
    }
}

pub struct Thread<'p, 'a> {
    pub program: &'p Program<'a>,
    /// Index in the block, x fastest.
    pub linear: u32,
    pub status: Status,
    frames: Vec<Frame<'p, 'a>>,
    pub local: Region,
    /// The condition code's carry, which `.cc` writes.
    carry: Value,
}

/// Where an instruction leads.
pub enum Flow {
    Next,
    Jump(usize),
    Wait(meet::Request),
    /// The frames have changed.
    Elsewhere,
    End,
}

impl<'p, 'a> Thread<'p, 'a> {
    pub fn new(
        program: &'p Program<'a>,
        kernel: &'p Function<'a>,
        arguments: &[u8],
        linear: u32,
    ) -> Thread<'p, 'a> {
        let mut thread = Thread {
            program,
            linear,
            status: Status::Runs,
            frames: vec![],
            local: Region::undefined(0, 0),
            carry: None,
        };
        thread.enter(kernel, vec![]);
        for (at, byte) in arguments.iter().enumerate() {
            let written = thread.frame_mut().params.write(at as u64, 1, Some(u128::from(*byte)));
            written.expect("the arguments were laid out as the parameters");
        }
        thread
    }

    pub fn frame(&self) -> &Frame<'p, 'a> {
        self.frames.last().expect("a thread that has ended is not asked")
    }

    pub fn frame_mut(&mut self) -> &mut Frame<'p, 'a> {
        self.frames.last_mut().expect("a thread that has ended is not asked")
    }

    fn enter(&mut self, function: &'p Function<'a>, returns: Vec<Operand<'a>>) {
        let local_base = self.local.len().next_multiple_of(16);
        self.local.resize(local_base + function.local_bytes);
        self.frames.push(Frame {
            function,
            pc: 0,
            registers: vec![None; function.registers.len()],
            params: Region::undefined(0, function.param_bytes),
            local_base,
            returns,
        });
    }

    /// Runs one instruction.
    pub fn step(&mut self, block: &mut Block<'_>, memory: &mut Memory) -> Result<()> {
        let function = self.frame().function;
        let Some(step) = function.steps.get(self.frame().pc) else {
            // The end of the body is a return.
            return self.leave();
        };
        let instruction = &step.instruction;
        let at = || format!("{} {}", function.name, instruction.full_name());
        if let Some(guard) = &instruction.guard {
            let operand = Operand { kind: OperandKind::Name(guard.register.value), span: instruction.span };
            let holds =
                self.known(block, &operand, Some(Type::Pred)).map_err(|e| format!("{}: {e}", at()))? != 0;
            if holds == guard.negated {
                self.frame_mut().pc += 1;
                return Ok(());
            }
        }
        match self.execute(instruction, block, memory).map_err(|e| format!("{}: {e}", at()))? {
            Flow::Next => self.frame_mut().pc += 1,
            Flow::Jump(to) => self.frame_mut().pc = to,
            Flow::Wait(request) => self.status = Status::Waits(request),
            Flow::Elsewhere => {}
            Flow::End => self.status = Status::Ended,
        }
        Ok(())
    }

    /// Ends the instruction that waits: `results` go to its first operand.
    pub fn resume(&mut self, results: &[Value]) -> Result<()> {
        let instruction = self.frame().instruction();
        if !results.is_empty() {
            self.write_results(&instruction.operands[0], results)?;
        }
        self.frame_mut().pc += 1;
        self.status = Status::Runs;
        Ok(())
    }

    /// `d` takes the first, `d|p` both.
    fn write_results(&mut self, destination: &Operand<'a>, results: &[Value]) -> Result<()> {
        match &destination.kind {
            OperandKind::Pair(d, p) => {
                let [first, second] = *results else { return Err("there is no second result".to_owned()) };
                self.write(d, first, 128, false)?;
                self.write(p, second, 128, false)
            }
            _ => self.write(destination, results[0], 128, false),
        }
    }

    fn execute(
        &mut self,
        instruction: &Instruction<'a>,
        block: &mut Block<'_>,
        memory: &mut Memory,
    ) -> Result<Flow> {
        let operands = &instruction.operands;
        match instruction.opcode.value {
            "bra" => Ok(Flow::Jump(self.label(&operands[0])?)),
            "brx" => self.brx(block, operands),
            "call" => self.call(block, operands),
            "ret" => self.leave().map(|()| Flow::Elsewhere),
            "exit" => Ok(Flow::End),
            "trap" => Err("trap".to_owned()),
            // One thread runs at a time, so memory is in order without fences.
            "fence" | "membar" | "nanosleep" | "prefetch" | "prefetchu" | "discard" | "applypriority" => {
                Ok(Flow::Next)
            }
            "bar" | "barrier" | "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => {
                self.request(block, instruction).map(Flow::Wait)
            }
            "ld" | "ldu" | "st" | "atom" | "red" | "mov" | "cvta" | "isspacep" => {
                self.data(instruction, block, memory)?;
                Ok(Flow::Next)
            }
            _ => {
                self.compute(instruction, block)?;
                Ok(Flow::Next)
            }
        }
    }

    /// A pure instruction: the oracle knows it.
    fn compute(&mut self, instruction: &Instruction<'a>, block: &Block<'_>) -> Result<()> {
        let [destination, sources @ ..] = instruction.operands.as_slice() else {
            return Err("no operands".to_owned());
        };
        let form = semantics::Form::of(instruction)?;
        let mut values = vec![];
        for (nth, source) in sources.iter().enumerate() {
            values.push(self.source(block, source, form.source_type(nth))?);
        }
        let mut results = form.compute(values, self.carry)?;
        if form.writes_carry() {
            self.carry = results.pop().ok_or("no carry")?;
        }
        if let ([result], Some((bits, signed))) = (results.as_slice(), form.extends()) {
            // The register may be wider than the type.
            return self.write(destination, *result, bits, signed);
        }
        self.write_results(destination, &results)
    }

    fn label(&self, operand: &Operand<'a>) -> Result<usize> {
        let OperandKind::Name(name) = &operand.kind else { return Err("not a label".to_owned()) };
        self.label_of(name)
    }

    fn label_of(&self, name: &str) -> Result<usize> {
        let frame = self.frame();
        match self.program.lookup(frame.function, frame.scope(), name) {
            Some(Entity::Label(to)) => Ok(*to),
            _ => Err(format!("{name} is not a label")),
        }
    }

    fn brx(&self, block: &Block<'_>, operands: &[Operand<'a>]) -> Result<Flow> {
        let index = self.known(block, &operands[0], Some(Type::U32))? as usize;
        let OperandKind::Name(name) = &operands[1].kind else { return Err("not a list".to_owned()) };
        let frame = self.frame();
        let Some(Entity::Targets(list)) = self.program.lookup(frame.function, frame.scope(), name) else {
            return Err(format!("{name} is not a list"));
        };
        let target = list.get(index).ok_or("the index is beyond the list")?;
        Ok(Flow::Jump(self.label_of(target)?))
    }

    /// `call (returns), f, (arguments)`, `call (returns), register, (arguments), prototype`
    fn call(&mut self, block: &Block<'_>, operands: &[Operand<'a>]) -> Result<Flow> {
        let list = |operand: Option<&Operand<'a>>| match operand.map(|it| &it.kind) {
            Some(OperandKind::List(list)) => Some(list.clone()),
            _ => None,
        };
        let returns = list(operands.first());
        let operands = if returns.is_some() { &operands[1..] } else { operands };
        let arguments = list(operands.get(1)).unwrap_or_default();
        let program = self.program;
        let OperandKind::Name(name) = &operands[0].kind else { return Err("not a function".to_owned()) };
        let callee = match program.function(name) {
            Ok(function) => function,
            Err(_) => {
                let address = self.known(block, &operands[0], Some(Type::U64))? as u64;
                let index = address.wrapping_sub(FUNCTIONS) / 16;
                program.functions.get(index as usize).ok_or("a call to no function")?
            }
        };
        if arguments.len() != callee.parameters.len() {
            return Err("another number of arguments".to_owned());
        }
        let mut values = vec![];
        for argument in &arguments {
            values.push(self.argument(block, argument)?);
        }
        if self.frames.len() > 1000 {
            return Err("calls nest too deeply".to_owned());
        }
        self.frame_mut().pc += 1;
        self.enter(callee, returns.unwrap_or_default());
        for (value, parameter) in values.into_iter().zip(&callee.parameters) {
            self.give(parameter, value)?;
        }
        Ok(Flow::Elsewhere)
    }

    /// The bytes of a `.param` variable, or a register's or constant's value.
    fn argument(&self, block: &Block<'_>, operand: &Operand<'a>) -> Result<Value> {
        if let OperandKind::Name(name) = &operand.kind {
            let frame = self.frame();
            if let Some(Entity::Param { offset, bytes }) =
                self.program.lookup(frame.function, frame.scope(), name)
            {
                return frame.params.read(*offset, *bytes as usize);
            }
        }
        self.source(block, operand, None)
    }

    /// Puts a value in a place of the topmost frame.
    fn give(&mut self, place: &Entity, value: Value) -> Result<()> {
        let frame = self.frame_mut();
        match place {
            Entity::Param { offset, bytes } => frame.params.write(*offset, *bytes as usize, value),
            Entity::Register { slot, .. } => {
                frame.registers[*slot] =
                    value.map(|it| super::operand::truncate(it, frame.function.registers[*slot]));
                Ok(())
            }
            other => Err(format!("{other:?} is no parameter")),
        }
    }

    /// Back to the caller, with the results.
    fn leave(&mut self) -> Result<()> {
        if self.frames.len() == 1 {
            self.status = Status::Ended;
            return Ok(());
        }
        let frame = self.frames.pop().expect("there are two");
        self.local.resize(frame.local_base);
        for (place, operand) in frame.function.returns.iter().zip(&frame.returns) {
            let value = match place {
                Entity::Param { offset, bytes } => frame.params.read(*offset, *bytes as usize)?,
                Entity::Register { slot, .. } => frame.registers[*slot],
                other => return Err(format!("{other:?} is no result")),
            };
            let OperandKind::Name(name) = &operand.kind else { return Err("not a place".to_owned()) };
            // The scope is that of the call, which lies before the next instruction.
            let caller = self.frames.last().expect("there is one");
            let scope = caller.function.steps[caller.pc - 1].scope;
            let place = self.program.lookup(caller.function, scope, name).ok_or("not declared")?.clone();
            self.give(&place, value)?;
        }
        Ok(())
    }
}
