//! A plan as JSON, and the plan of such a text: there is nothing compiled in a plan of ours, so that it is the descriptors of its graph.
//!
//! `{"cudaway": 1, "descriptors": [...], "operations": [...]}`: each descriptor is its kind, its constant or null, and its attributes; an attribute is
//! a name, a type, how many elements, and their bytes in hexadecimal digits or the places of the descriptors that they are, which come before.
//! Handles and addresses of the program are left out.

use std::fmt::Write as _;
use std::sync::Arc;

use parking_lot::Mutex;

use super::descriptor::{Attribute, Descriptor, Node};
use super::plan::Graph;
use crate::types::*;
use crate::{Error, Result};

const VERSION: i64 = 1;

/// Most descriptors of a text, and bytes of an attribute: more is no plan of ours.
const MOST: usize = 1 << 16;

fn wrong() -> Error {
    Error::Bad(
        cudnnStatus_t::CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH,
        "the plan was not written by this release of CUDAway",
    )
}

/// The place of a descriptor in the list, which it is put into behind those that it has.
fn place(node: &Arc<Node>, list: &mut Vec<(*const Node, String)>) -> usize {
    if let Some(at) = list.iter().position(|(known, _)| *known == Arc::as_ptr(node)) {
        return at;
    }
    let descriptor = node.lock();
    let mut text = String::new();
    let constant =
        descriptor.constant.map_or("null".to_owned(), |value| format!("\"{:016x}\"", value.to_bits()));
    let _ = write!(text, "[{}, {constant}, [", descriptor.kind.0);
    let mut between = "";
    for (name, attribute) in descriptor.attributes() {
        let is_of_process = matches!(
            attribute.ty,
            cudnnBackendAttributeType_t::CUDNN_TYPE_HANDLE | cudnnBackendAttributeType_t::CUDNN_TYPE_VOID_PTR
        );
        if is_of_process {
            continue;
        }
        let _ = write!(text, "{between}[{name}, {}, {}, ", attribute.ty.0, attribute.count);
        between = ", ";
        if attribute.held.is_empty() {
            let _ = write!(text, "\"");
            attribute.bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
            let _ = write!(text, "\"]");
        } else {
            let places: Vec<String> =
                attribute.held.iter().map(|held| place(held, list).to_string()).collect();
            let _ = write!(text, "[{}]]", places.join(", "));
        }
    }
    drop(descriptor);
    text.push_str("]]");
    list.push((Arc::as_ptr(node), text));
    list.len() - 1
}

/// The graph as a text.
pub fn write(graph: &Graph) -> String {
    let mut list = Vec::new();
    let operations: Vec<String> = graph.nodes.iter().map(|node| place(node, &mut list).to_string()).collect();
    let descriptors: Vec<String> = list.into_iter().map(|(_, text)| text).collect();
    format!(
        "{{\"cudaway\": {VERSION}, \"descriptors\": [{}], \"operations\": [{}]}}",
        descriptors.join(", "),
        operations.join(", ")
    )
}

/// What is left of a text.
struct Reader<'t>(&'t [u8]);

impl<'t> Reader<'t> {
    fn skip(&mut self) {
        let blank = self.0.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.0 = &self.0[blank..];
    }

    /// Whether the text goes on so, which is then behind us.
    fn is(&mut self, word: &str) -> bool {
        self.skip();
        let rest = self.0.strip_prefix(word.as_bytes());
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, word: &str) -> Result {
        if self.is(word) { Ok(()) } else { Err(wrong()) }
    }

    fn number(&mut self) -> Result<i64> {
        self.skip();
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).ok_or_else(wrong)
    }

    /// A string of hexadecimal digits.
    fn digits(&mut self) -> Result<Vec<u8>> {
        self.expect("\"")?;
        let count = self.0.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        self.expect("\"")?;
        let value = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
        if count % 2 != 0 || count > 2 * MOST {
            return Err(wrong());
        }
        Ok(digits.chunks(2).map(|pair| value(pair[0]) << 4 | value(pair[1])).collect())
    }

    /// A list whose elements `read` reads.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Reader<'t>) -> Result<T>) -> Result<Vec<T>> {
        self.expect("[")?;
        let mut list = Vec::new();
        if self.is("]") {
            return Ok(list);
        }
        loop {
            list.push(read(self)?);
            if self.is("]") {
                return Ok(list);
            }
            self.expect(",")?;
            if list.len() > MOST {
                return Err(wrong());
            }
        }
    }
}

fn descriptor(text: &mut Reader, before: &[Arc<Node>]) -> Result<Descriptor> {
    text.expect("[")?;
    let kind = u32::try_from(text.number()?).map_err(|_| wrong())?;
    let mut descriptor = Descriptor::new(cudnnBackendDescriptorType_t(kind));
    text.expect(",")?;
    if !text.is("null") {
        let bytes = <[u8; 8]>::try_from(&text.digits()?[..]).map_err(|_| wrong())?;
        descriptor.constant = Some(f64::from_bits(u64::from_be_bytes(bytes)));
    }
    text.expect(",")?;
    let attributes = text.list(|text| {
        text.expect("[")?;
        let name = text.number()?;
        text.expect(",")?;
        let ty = text.number()?;
        text.expect(",")?;
        let count = text.number()?;
        text.expect(",")?;
        text.skip();
        let (mut bytes, mut held) = (Vec::new(), Vec::new());
        if text.0.first() == Some(&b'[') {
            let places = text.list(Reader::number)?;
            let at = |place: &i64| before.get(usize::try_from(*place).ok()?).cloned();
            held = places.iter().map(|place| at(place).ok_or_else(wrong)).collect::<Result<Vec<_>>>()?;
        } else {
            bytes = text.digits()?;
        }
        text.expect("]")?;
        let part = |number: i64| u32::try_from(number).map_err(|_| wrong());
        let ty = cudnnBackendAttributeType_t(part(ty)?);
        let attribute = Attribute::read(ty, count as usize, bytes, held).ok_or_else(wrong)?;
        Ok((part(name)?, attribute))
    })?;
    text.expect("]")?;
    attributes.into_iter().for_each(|(name, attribute)| descriptor.put(name, attribute));
    descriptor.is_final = true;
    // A part of a graph is looked at as it was when it was finalized.
    if descriptor.kind == cudnnBackendDescriptorType_t::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR {
        let nodes = descriptor.nodes(cudnnBackendAttributeName_t::CUDNN_ATTR_OPERATIONGRAPH_OPS);
        descriptor.graph = Some(Arc::new(Graph::new(&nodes)?));
    }
    Ok(descriptor)
}

/// The graph of a text.
pub fn read(text: &[u8]) -> Result<Graph> {
    let mut text = Reader(text);
    text.expect("{")?;
    text.expect("\"cudaway\"")?;
    text.expect(":")?;
    if text.number()? != VERSION {
        return Err(wrong());
    }
    text.expect(",")?;
    text.expect("\"descriptors\"")?;
    text.expect(":")?;
    let mut nodes: Vec<Arc<Node>> = Vec::new();
    text.list(|text| {
        let made = descriptor(text, &nodes)?;
        nodes.push(Arc::new(Mutex::new(made)));
        Ok(())
    })?;
    text.expect(",")?;
    text.expect("\"operations\"")?;
    text.expect(":")?;
    let places = text.list(Reader::number)?;
    text.expect("}")?;
    let at = |place: &i64| nodes.get(usize::try_from(*place).ok()?).cloned();
    let operations = places.iter().map(|place| at(place).ok_or_else(wrong)).collect::<Result<Vec<_>>>()?;
    Graph::new(&operations)
}
