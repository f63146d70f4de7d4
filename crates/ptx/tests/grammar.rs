//! The grammar, construct by construct.

use ptx::ast::{
    ExpressionKind, FunctionKind, Initializer, Item, Linkage, Operand, OperandKind, Space, Statement, Type,
};
use ptx::{Constant, Module, NotConstant, parse};

/// Parses text that must be free of diagnostics.
fn clean(text: &str) -> Module<'_> {
    let parsed = parse(text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    parsed.module
}

/// The only instruction of a body.
fn instruction(text: &str) -> ptx::ast::Instruction<'static> {
    let text: &'static str = format!(".entry k() {{ {text} }}").leak();
    let module = clean(text);
    let body = module.functions().next().unwrap().body.clone().unwrap();
    let [Statement::Instruction(instruction)] = body.statements.as_slice() else {
        panic!("{:?}", body.statements)
    };
    instruction.clone()
}

fn operand(text: &str) -> Operand<'static> {
    let mut instruction = instruction(&format!("mov.b32 {text};"));
    assert_eq!(instruction.operands.len(), 1, "{:?}", instruction.operands);
    instruction.operands.remove(0)
}

fn constant(text: &str) -> Result<Constant, NotConstant> {
    match operand(text).kind {
        OperandKind::Expression(expression) => expression.constant(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_head_of_a_module() {
    let module = clean(".version 9.5\r\n.target sm_90a, debug\r\n.address_size 64\r\n");
    assert_eq!(module.version.unwrap().value, (9, 5));
    assert_eq!(module.targets.iter().map(|it| it.value).collect::<Vec<_>>(), ["sm_90a", "debug"]);
    assert_eq!(module.address_size.unwrap().value, 64);
}

#[test]
fn variables_keep_everything_that_was_said() {
    let module = clean(
        ".visible .global .attribute(.managed) .align 8 .v2 .f32 a[2][3] = {{1.0, 2}, {0f3f800000}};\n\
         .extern .shared .align 16 .b8 dynamic[];\n\
         .const .b64 table[2] = {generic(a)+8, f};\n\
         .global .u8 bytes[2] = {0xff(a), 0xff00(a)};\n\
         .common .global .u32 c, d;",
    );
    let variables: Vec<_> = module.variables().collect();
    let a = variables[0];
    assert_eq!((a.linkage, a.space.value, a.ty.value), (Linkage::Visible, Space::Global, Type::F32));
    assert_eq!((a.align.unwrap().value, a.vector), (8, Some(2)));
    assert_eq!(a.attributes[0].name.value, "managed");
    assert_eq!(a.names[0].dimensions.len(), 2);
    assert!(matches!(&a.names[0].initializer, Some(Initializer::List(list, _)) if list.len() == 2));
    assert_eq!(variables[1].linkage, Linkage::Extern);
    assert!(variables[1].names[0].dimensions[0].is_none());
    let Some(Initializer::List(list, _)) = &variables[3].names[0].initializer else { panic!() };
    let Initializer::Value(value) = &list[1] else { panic!() };
    assert!(matches!(&value.kind, ExpressionKind::Mask(0xff00, _)));
    assert_eq!(variables[4].names.len(), 2);
}

#[test]
fn functions_prototypes_and_directives() {
    let module = clean(
        ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n\
         .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 4 .b8 s[12])\n\
         .maxntid 256, 1, 1\n.minnctapersm 2\n.pragma \"nounroll\";\n{ ret; }\n\
         .func .attribute(.unified(1,2)) (.reg .u32 r) f(.reg .pred p) .noreturn;\n\
         .alias g, f;",
    );
    let functions: Vec<_> = module.functions().collect();
    assert_eq!(functions.len(), 3);
    assert_eq!(functions[0].linkage, Linkage::Extern);
    assert_eq!(functions[1].kind, FunctionKind::Entry);
    assert_eq!(functions[1].directive("maxntid").unwrap().arguments.len(), 3);
    assert_eq!(functions[1].parameters[0].pointer.unwrap().align, Some(16));
    assert_eq!(functions[2].returns[0].space.value, Space::Register);
    assert!(functions[2].directive("noreturn").is_some());
    assert!(matches!(module.items.last(), Some(Item::Alias(alias)) if alias.target.value == "f"));
}

#[test]
fn statements_of_a_body() {
    let module = clean(
        ".entry k() {\n.reg .b32 %r<10>, %x;\n.reg .v4 .f32 v;\n.loc 1 2 3, function_name $L__i+4, inlined_at 1 5 6\n\
         L: { .reg .pred p; @!p bra L; }\nproto: .callprototype (.param .b32 _) _ (.param .b64 _);\n\
         ts: .branchtargets L, L;\ncs: .calltargets f;\n.pragma \"nounroll\"; ;\n}",
    );
    let body = module.functions().next().unwrap().body.as_ref().unwrap();
    let kinds: Vec<_> = body
        .statements
        .iter()
        .map(|it| match it {
            Statement::Variable(_) => "variable",
            Statement::Label(_) => "label",
            Statement::Instruction(_) => "instruction",
            Statement::Block(_) => "block",
            Statement::CallPrototype(_) => "prototype",
            Statement::CallTargets(_) => "calls",
            Statement::BranchTargets(_) => "branches",
            Statement::Location(_) => "loc",
            Statement::Pragma(_) => "pragma",
            Statement::Invalid(_) => "invalid",
        })
        .collect();
    let expected =
        ["variable", "variable", "loc", "label", "block", "prototype", "branches", "calls", "pragma"];
    assert_eq!(kinds, expected);
}

#[test]
fn an_unknown_instruction_is_kept_as_written() {
    let it = instruction("@%p frobnicate.wild::card.2d.x4 {%a, _}|%q, [%rd1+8, {1, 2}].unified, !%p, -%r;");
    assert_eq!(it.full_name(), "frobnicate.wild::card.2d.x4");
    assert_eq!(it.guard.unwrap().register.value, "%p");
    assert!(
        matches!(&it.operands[0].kind, OperandKind::Pair(a, _) if matches!(a.kind, OperandKind::Vector(_)))
    );
    let OperandKind::Address(address) = &it.operands[1].kind else { panic!() };
    assert_eq!((address.more.len(), address.suffix.unwrap().value), (1, "unified"));
    assert!(matches!(it.operands[2].kind, OperandKind::Not(_)));
    assert!(matches!(it.operands[3].kind, OperandKind::Negate(_)));
}

#[test]
fn calls_have_lists() {
    let it = instruction("call.uni (%r1), f, (%r2, 7), proto;");
    assert_eq!(it.operands.len(), 4);
    assert!(matches!(&it.operands[0].kind, OperandKind::List(list) if list.len() == 1));
    assert!(matches!(&it.operands[2].kind, OperandKind::List(list) if list.len() == 2));
    assert!(
        matches!(&instruction("call f, ();").operands[1].kind, OperandKind::List(list) if list.is_empty())
    );
}

#[test]
fn members_and_elements() {
    assert!(matches!(operand("%tid.x").kind, OperandKind::Member("%tid", "x")));
    assert!(matches!(operand("a[3]").kind, OperandKind::Element("a", _)));
    assert!(matches!(operand("_").kind, OperandKind::Sink));
    assert!(matches!(operand("p|q").kind, OperandKind::Pair(..)));
}

#[test]
fn numbers_of_every_kind() {
    assert_eq!(constant("42"), Ok(Constant::Signed(42)));
    assert_eq!(constant("0x1fU"), Ok(Constant::Unsigned(31)));
    assert_eq!(constant("017"), Ok(Constant::Signed(15)));
    assert_eq!(constant("0b101"), Ok(Constant::Signed(5)));
    assert_eq!(constant("0xffffffffffffffff"), Ok(Constant::Unsigned(u64::MAX)));
    assert_eq!(constant("0f3F800000"), Ok(Constant::Single(0x3f80_0000)));
    assert_eq!(constant("0d3FF0000000000000"), Ok(Constant::Double(1.0)));
    assert_eq!(constant("1.5e-1"), Ok(Constant::Double(0.15)));
    assert_eq!(constant("-0f00000000"), Ok(Constant::Single(0x8000_0000)));
}

#[test]
fn constant_expressions_follow_c() {
    assert_eq!(constant("1+2*3"), Ok(Constant::Signed(7)));
    assert_eq!(constant("(1+2)*3"), Ok(Constant::Signed(9)));
    assert_eq!(constant("-7/2"), Ok(Constant::Signed(-3)));
    assert_eq!(constant("7 %2"), Ok(Constant::Signed(1)));
    assert_eq!(constant("1 ? 2 : 3"), Ok(Constant::Signed(2)));
    assert_eq!(constant("1<<4|1"), Ok(Constant::Signed(17)));
    assert_eq!(constant("(.u64)-1 > 0"), Ok(Constant::Signed(1)));
    assert_eq!(constant("1/0"), Err(NotConstant::DivisionByZero));
    assert_eq!(constant("0x8000000000000000 / -1"), Ok(Constant::Unsigned(0)));
    assert_eq!(constant("~0"), Ok(Constant::Signed(-1)));
    assert_eq!(constant("sym+4"), Err(NotConstant::Name));
}

#[test]
fn debug_data_is_skipped_whole() {
    let module = clean(
        ".file 1 \"a b.cu\", 1700000000, 12\n.section .debug_str\n{\n$L__info: .b8 1,2\n.b32 a-b\n{ }\n}\n@@DWARF anything (\n\
         .section .debug_loc { }",
    );
    assert_eq!(module.items.len(), 3);
}

#[test]
fn a_number_in_the_text_allocates_nothing() {
    let module = clean(".entry k() { .reg .b32 %r<4294967295>; ret; }");
    assert_eq!(module.functions().count(), 1);
}

#[test]
fn positions_count_lines_and_characters() {
    let text = "a\r\n\tµb\n";
    let lines = ptx::LineIndex::new(text);
    let at = |offset| {
        let position = lines.position(offset);
        (position.line, position.column)
    };
    assert_eq!(at(0), (1, 1));
    assert_eq!(at(3), (2, 1));
    assert_eq!(at(6), (2, 3));
    assert_eq!(at(1000), (3, 1));
}

#[test]
fn parentheses_hold_a_list_in_calls_and_a_constant_elsewhere() {
    let call = instruction("call (r), f, ((1+2)*2, -1, (3));");
    let [result, function, arguments] = call.operands.as_slice() else { panic!("{:?}", call.operands) };
    assert!(matches!(&result.kind, OperandKind::List(list) if list.len() == 1));
    assert!(matches!(function.kind, OperandKind::Name("f")));
    let OperandKind::List(list) = &arguments.kind else { panic!("{arguments:?}") };
    let values: Vec<_> = list
        .iter()
        .map(|it| match &it.kind {
            OperandKind::Expression(expression) => expression.constant(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, [Ok(Constant::Signed(6)), Ok(Constant::Signed(-1)), Ok(Constant::Signed(3))]);
    assert_eq!(constant("(5)"), Ok(Constant::Signed(5)));
    assert!(matches!(instruction("call f, (-1);").operands[1].kind, OperandKind::List(_)));
}
