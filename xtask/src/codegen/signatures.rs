//! `cargo xtask codegen --signatures`: NVIDIA's static runtimes → what the public functions in them are told by.
//!
//! Rule: lengths, places and hashes leave this file; no code does. The archives stay in `.cache/static-runtimes`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::{facts, write};
use crate::setup::{self, root};
use crate::toolchain;

const LIST: &str = "tools/data/cuda/static_runtimes.txt";
const TABLE: &str = "crates/interpose/src/generated/signatures.rs";
const ARCHIVE: &str = "libcudart_static.a";
const ELF: &[u8] = b"\x7fELF";

/// A release of NVIDIA's archive, or a library with names that such an archive was linked into.
struct Source {
    version: String,
    sha256: String,
    /// `pypi`, `apt` or `linked`, and what that is asked for.
    from: Vec<String>,
}

pub fn run() -> Result<()> {
    let mut table = Table::default();
    for source in sources()? {
        let file = source.get()?;
        let runtime = Runtime::read(&source.version, &file).with_context(|| source.version.clone())?;
        table.add(&source.version, runtime)?;
    }
    write(TABLE, &table.text()?)
}

/// The releases whose archives are known, oldest first.
pub fn versions() -> Result<Vec<String>> {
    let archives = sources()?.into_iter().filter(|source| source.file() == ARCHIVE);
    Ok(archives.map(|source| source.version).collect())
}

/// The archive of one release, from the cache or by download.
pub fn archive(version: &str) -> Result<PathBuf> {
    source(version)?.get()
}

/// The same, unless it is to be downloaded in a package of hundreds of megabytes.
pub fn archive_at_hand(version: &str) -> Result<Option<PathBuf>> {
    let source = source(version)?;
    let is_small = source.from.first().is_some_and(|from| from == "pypi");
    if is_small || source.folder().join(ARCHIVE).exists() { source.get().map(Some) } else { Ok(None) }
}

/// Functions in which a linker changes bytes, by the archive's relocations, that a library with that archive in it does not tell.
pub fn untold(version: &str, linked: &Path) -> Result<Vec<String>> {
    let functions = |file: &Path| -> Result<Vec<Function>> {
        let blocks = Runtime::read(version, file)?.blocks.into_iter();
        Ok(blocks.flat_map(|block| block.functions).map(|(_, function)| function).collect())
    };
    let (of_archive, of_linked) = (functions(&archive(version)?)?, functions(linked)?);
    let names =
        |functions: &[Function]| -> Vec<String> { functions.iter().map(|it| it.name.clone()).collect() };
    ensure!(names(&of_archive) == names(&of_linked), "not the same functions");
    let untold = of_archive.iter().zip(&of_linked).filter(|(archive, linked)| {
        let told = linked.changed();
        !archive.changed().is_subset(&told)
    });
    Ok(untold.map(|(function, _)| function.name.clone()).collect())
}

fn source(version: &str) -> Result<Source> {
    let source = sources()?.into_iter().find(|source| source.version == version);
    source.with_context(|| format!("{LIST} does not name {version}"))
}

fn sources() -> Result<Vec<Source>> {
    let list = facts::read(LIST)?;
    let rows = list.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().with_context(|| format!("{LIST}: {line}"));
        Ok(Source { version: word()?, sha256: word()?, from: words.collect() })
    })
    .collect()
}

impl Source {
    fn folder(&self) -> PathBuf {
        root().join(".cache/static-runtimes").join(&self.version)
    }

    fn file(&self) -> &str {
        match &self.from[..] {
            [from, _, part] if from == "linked" => part,
            _ => ARCHIVE,
        }
    }

    fn get(&self) -> Result<PathBuf> {
        let dir = self.folder();
        let archive = dir.join(self.file());
        if !archive.exists() {
            fs::create_dir_all(&dir)?;
            let from: Vec<&str> = self.from.iter().map(String::as_str).collect();
            match from[..] {
                ["pypi", pin] => setup::files_of_wheel(pin, ARCHIVE, &dir)?,
                ["linked", pin, part] => setup::files_of_wheel(pin, &format!("/{part}"), &dir)?,
                ["apt", mirror, suite, component, pin] => {
                    from_package(&format!("{mirror} {suite} {component}"), pin, &dir)?;
                }
                _ => anyhow::bail!("{LIST}: {} is from {}", self.version, from.join(" ")),
            }
        }
        let found = setup::said(Command::new("sha256sum").arg(&archive))?;
        ensure!(
            found.starts_with(&self.sha256),
            "{} is not the file that {LIST} means: {found}",
            archive.display()
        );
        Ok(archive)
    }
}

/// Takes the archive out of a package of a distribution, which is some 800 MB.
fn from_package(source: &str, pin: &str, dir: &Path) -> Result<()> {
    println!("setup: apt-get download {pin}, for {ARCHIVE}");
    ensure!(!setup::offline(), "--offline, and {ARCHIVE} of {pin} is not in {}", dir.display());
    let state = setup::download_cache()?.join("apt-static-runtimes");
    // The file's hash is known, whoever hands it out.
    let apt = toolchain::apt_state(&state, &format!("deb [arch=amd64 trusted=yes] {source}\n"))?;
    let package = dir.join("package");
    let _ = fs::remove_dir_all(&package);
    fs::create_dir_all(&package)?;
    setup::run(
        Command::new("apt-get")
            .env("APT_CONFIG", &apt)
            .args(["-q", "download", "--allow-unauthenticated", pin])
            .current_dir(&package),
    )?;
    let file = fs::read_dir(&package)?.next().context("apt-get downloaded nothing")??.path();
    let mut unpacked =
        Command::new("dpkg-deb").arg("--fsys-tarfile").arg(file).stdout(Stdio::piped()).spawn()?;
    let tar = unpacked.stdout.take().context("dpkg-deb has no output")?;
    let pick = ["--wildcards", "--transform=s,.*/,,", "*/libcudart_static.a"];
    setup::run(Command::new("tar").arg("-x").arg("-C").arg(dir).args(pick).stdin(tar))?;
    ensure!(unpacked.wait()?.success(), "dpkg-deb failed on {pin}");
    Ok(fs::remove_dir_all(&package)?)
}

/// What is known of a public function: its name, its length, and the hash of its code with a mask of what a linker changes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    name: String,
    len_bytes: u16,
    mask: Vec<[u8; 2]>,
    hash: u128,
}

impl Function {
    /// Places of the bytes that a linker changes.
    fn changed(&self) -> BTreeSet<usize> {
        let mut at = 0;
        let mut changed = BTreeSet::new();
        for &[kept, n_changed] in &self.mask {
            at += usize::from(kept);
            changed.extend(at..at + usize::from(n_changed));
            at += usize::from(n_changed);
        }
        changed
    }
}

/// Public functions that lie close together: where each lies in the block, and which it is.
#[derive(Clone, PartialEq, Eq)]
struct Block {
    functions: Vec<(u32, Function)>,
    anchor: u32,
    gaps: [u32; 2],
}

#[derive(PartialEq, Eq)]
struct Runtime {
    major: u32,
    blocks: Vec<Block>,
}

impl Runtime {
    fn read(version: &str, file: &Path) -> Result<Runtime> {
        /// A gap that is wider is no gap between functions of one block.
        const WIDEST_GAP: u64 = 1 << 14;
        let major = version.split('.').next().unwrap_or_default();
        let public: BTreeSet<String> = facts::runtime_names(major)?.into_iter().collect();
        let bytes = fs::read(file)?;
        let object = if bytes.starts_with(ELF) {
            Object::linked(&bytes, file)
        } else {
            Object::read(only_member(&bytes)?)
        }?;
        let mut functions: Vec<&Symbol> =
            object.functions.iter().filter(|function| public.contains(&function.name)).collect();
        functions.sort_by_key(|function| (function.at, &function.name));
        let mut groups: Vec<Vec<&Symbol>> = Vec::new();
        for function in functions {
            match groups.last_mut() {
                Some(group) if group.last().is_some_and(|last| function.at - last.at < WIDEST_GAP) => {
                    group.push(function);
                }
                _ => groups.push(vec![function]),
            }
        }
        let blocks = groups.iter().map(|group| object.block(group)).collect::<Result<_>>()?;
        Ok(Runtime { major: major.parse()?, blocks })
    }
}

/// The one object that the archive has.
fn only_member(archive: &[u8]) -> Result<&[u8]> {
    let mut rest = archive.strip_prefix(b"!<arch>\n").context("not an archive")?;
    let mut objects = Vec::new();
    while let Some((head, behind)) = rest.split_at_checked(60) {
        let len: usize = str::from_utf8(&head[48..58])?.trim().parse()?;
        let body = behind.get(..len).context("the archive ends early")?;
        if body.starts_with(ELF) {
            objects.push(body);
        }
        rest = behind.get(len.next_multiple_of(2)..).unwrap_or_default();
    }
    ensure!(objects.len() == 1, "the archive has {} objects", objects.len());
    Ok(objects[0])
}

struct Symbol {
    name: String,
    at: u64,
    len_bytes: u64,
}

/// What this needs of an object file: `.text`, the functions in it, and what a linker changes in it.
struct Object<'a> {
    text: &'a [u8],
    functions: Vec<Symbol>,
    /// Where functions begin for unwinders.
    starts: BTreeSet<u64>,
    /// Bytes that a linker changes: from and to.
    changed: Vec<[u64; 2]>,
}

struct Section<'a> {
    name: &'a str,
    kind: u32,
    link: usize,
    /// What a section of relocations is about.
    about: usize,
    address: u64,
    bytes: &'a [u8],
}

/// A symbol's name, kind, section, value and size.
type Entry<'a> = (&'a str, u8, usize, u64, u64);

const STT_FUNC: u8 = 2;

fn symbols<'a>(sections: &[Section<'a>]) -> Result<Vec<Entry<'a>>> {
    const SHT_SYMTAB: u32 = 2;
    let table = sections.iter().find(|section| section.kind == SHT_SYMTAB).context("no symbols")?;
    let entry = |entry: &[u8]| {
        let name = string(sections[table.link].bytes, number(entry, 0, 4)? as usize)?;
        let section = number(entry, 6, 2)? as usize;
        Ok((name, entry[4] & 15, section, number(entry, 8, 8)?, number(entry, 16, 8)?))
    };
    table.bytes.chunks_exact(24).map(entry).collect()
}

impl<'a> Object<'a> {
    fn read(bytes: &'a [u8]) -> Result<Object<'a>> {
        const SHT_RELA: u32 = 4;
        let sections = sections(bytes)?;
        let named = |name: &str| sections.iter().position(|section| section.name == name);
        let text_at = named(".text").context("no .text")?;
        let unwinding_at = named(".eh_frame").context("no .eh_frame")?;
        let symbols = symbols(&sections)?;
        let in_text = symbols.iter().filter(|symbol| symbol.1 == STT_FUNC && symbol.2 == text_at);
        let functions = in_text
            .map(|&(name, .., at, len_bytes)| Symbol { name: name.to_owned(), at, len_bytes })
            .collect();
        let (mut changed, mut starts) = (Vec::new(), BTreeSet::new());
        for section in sections.iter().filter(|section| section.kind == SHT_RELA) {
            for entry in section.bytes.chunks_exact(24) {
                let (at, info, addend) = (number(entry, 0, 8)?, number(entry, 8, 8)?, number(entry, 16, 8)?);
                let (kind, symbol) = (info as u32, symbols[(info >> 32) as usize]);
                if section.about == text_at {
                    changed.push(changed_by(kind, at)?);
                } else if section.about == unwinding_at && symbol.2 == text_at {
                    starts.insert(symbol.3.wrapping_add(addend));
                }
            }
        }
        changed.sort_unstable();
        Ok(Object { text: sections[text_at].bytes, functions, starts, changed })
    }

    /// A library or program with names: what its linker wrote is told by its instructions.
    fn linked(bytes: &'a [u8], file: &Path) -> Result<Object<'a>> {
        let sections = sections(bytes)?;
        let named =
            |name: &str| sections.iter().position(|section| section.name == name).context(name.to_owned());
        let (text_at, table_at) = (named(".text")?, named(".eh_frame_hdr")?);
        let (text, table) = (&sections[text_at], &sections[table_at]);
        let in_text =
            symbols(&sections)?.into_iter().filter(|symbol| symbol.1 == STT_FUNC && symbol.2 == text_at);
        let functions: Vec<Symbol> = in_text
            .map(|(name, .., at, len_bytes)| Symbol {
                name: name.to_owned(),
                at: at - text.address,
                len_bytes,
            })
            .collect();
        let mut starts = BTreeSet::new();
        for entry in table.bytes.get(12..).unwrap_or_default().chunks_exact(8) {
            let distance = number(entry, 0, 4)? as u32 as i32;
            starts.insert(table.address.wrapping_add_signed(distance.into()).wrapping_sub(text.address));
        }
        starts.retain(|&start| start < text.bytes.len() as u64);
        let mut changed = written_by_linker(file, text.address, &functions)?;
        changed.sort_unstable();
        Ok(Object { text: text.bytes, functions, starts, changed })
    }

    fn block(&self, functions: &[&Symbol]) -> Result<Block> {
        let first = functions.first().context("an empty block")?.at;
        let known =
            functions.iter().map(|symbol| Ok((u32::try_from(symbol.at - first)?, self.function(symbol)?)));
        let gaps = |symbol: &&&Symbol| {
            let mut behind = self.starts.range(symbol.at..);
            let [start, next, third] = [behind.next()?, behind.next()?, behind.next()?];
            (*start == symbol.at).then_some([next - start, third - next])
        };
        let anchor = functions.iter().max_by_key(gaps).context("an empty block")?;
        let [gap, next_gap] = gaps(&anchor).context("no function begins where unwinders know it")?;
        Ok(Block {
            functions: known.collect::<Result<_>>()?,
            anchor: u32::try_from(anchor.at - first)?,
            gaps: [u32::try_from(gap)?, u32::try_from(next_gap)?],
        })
    }

    fn function(&self, symbol: &Symbol) -> Result<Function> {
        let (from, to) = (symbol.at, symbol.at + symbol.len_bytes);
        let code = self
            .text
            .get(usize::try_from(from)?..usize::try_from(to)?)
            .context("a function ends behind .text")?;
        // Bytes of the function that are changed, as pairs of how many are not and how many are.
        let mut mask = Vec::new();
        let mut done = from;
        let first = self.changed.partition_point(|&[_, end]| end <= from);
        for &[start, end] in &self.changed[first..] {
            let (start, end) = (start.max(done), end.min(to));
            if start >= to {
                break;
            }
            if start >= end {
                continue;
            }
            let mut kept = start - done;
            while kept > 255 {
                mask.push([255, 0]);
                kept -= 255;
            }
            mask.push([u8::try_from(kept)?, u8::try_from(end - start)?]);
            done = end;
        }
        Ok(Function {
            name: symbol.name.clone(),
            len_bytes: u16::try_from(symbol.len_bytes).with_context(|| symbol.name.clone())?,
            hash: interpose::masked_hash(code, &mask),
            mask,
        })
    }
}

/// Distances to what lies outside of a function, in the instructions of a linked file, as places in `.text`; with the bytes in
/// front where the instruction may be what a linker made of another one.
fn written_by_linker(file: &Path, text: u64, functions: &[Symbol]) -> Result<Vec<[u64; 2]>> {
    let mut ranges: Vec<[u64; 2]> = functions.iter().map(|it| [it.at, it.at + it.len_bytes]).collect();
    ranges.sort_unstable();
    let mut found = Vec::new();
    let said =
        setup::said(Command::new("objdump").args(["-dw", "-j", ".text"]).arg(file).env("LC_ALL", "C"))?;
    for line in said.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [at, bytes, meaning] = fields[..] else { continue };
        let Ok(at) = u64::from_str_radix(at.trim().trim_end_matches(':'), 16) else { continue };
        let at = at - text;
        let bytes: Vec<u8> =
            bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16)).collect::<Result<_, _>>()?;
        let next = at + bytes.len() as u64;
        let leads_to = |place: usize| {
            let distance = number(&bytes, place, 4)? as u32 as i32;
            anyhow::Ok(next.wrapping_add_signed(distance.into()))
        };
        let n_prefixes = bytes.iter().take_while(|byte| matches!(byte, 0x66 | 0x67 | 0x2e | 0xf2)).count();
        let (place, before) = match &bytes[n_prefixes..] {
            [0xe8 | 0xe9, _, _, _, _] => {
                // `call *x(%rip)` has become `addr32 call x`.
                (n_prefixes + 1, if n_prefixes > 0 { n_prefixes + 1 } else { 0 })
            }
            [0x0f, 0x80..=0x8f, _, _, _, _] => (n_prefixes + 2, 0),
            _ if meaning.contains("(%rip)") => {
                let target = meaning.split_once("# ").and_then(|(_, target)| target.split(' ').next());
                let target = u64::from_str_radix(target.context(meaning.to_owned())?, 16)?.wrapping_sub(text);
                let is_it = |&place: &usize| leads_to(place).is_ok_and(|found| found == target);
                let mut places = (1..bytes.len().saturating_sub(3)).filter(is_it);
                let place = places.next().with_context(|| line.to_owned())?;
                ensure!(places.next().is_none(), "two distances: {line}");
                (place, if place <= 3 { place } else { 0 })
            }
            _ => continue,
        };
        let inside = ranges.partition_point(|range| range[0] <= at).checked_sub(1).map(|index| ranges[index]);
        let target = leads_to(place)?;
        if !inside.is_some_and(|[from, to]| at < to && from <= target && target < to) {
            let place = at + place as u64;
            found.push([place - before as u64, place + 4]);
        }
    }
    Ok(found)
}

/// The bytes that a linker may change for a relocation: also those of instructions in front that it replaces by shorter ways.
fn changed_by(kind: u32, at: u64) -> Result<[u64; 2]> {
    let (before, after) = match kind {
        // R_X86_64_PC32, PLT32, 32, 32S, DTPOFF32
        2 | 4 | 10 | 11 | 21 => (0, 4),
        // R_X86_64_64, PC64
        1 | 24 => (0, 8),
        // R_X86_64_GOTPCREL, GOTTPOFF, REX_GOTPCRELX
        9 | 22 | 42 => (3, 4),
        // R_X86_64_GOTPCRELX
        41 => (2, 4),
        // R_X86_64_TLSGD and TLSLD, each with the call behind it
        19 => (4, 12),
        20 => (3, 9),
        _ => anyhow::bail!("a relocation of kind {kind}"),
    };
    Ok([at - before, at + after])
}

fn sections(bytes: &[u8]) -> Result<Vec<Section<'_>>> {
    const SHT_NOBITS: u32 = 8;
    let at = number(bytes, 0x28, 8)? as usize;
    let (n, names) = (number(bytes, 0x3c, 2)? as usize, number(bytes, 0x3e, 2)? as usize);
    let header = |index: usize| bytes.get(at + index * 64..).context("a section's header");
    let body = |head: &[u8]| -> Result<&[u8]> {
        let (from, len) = (number(head, 0x18, 8)? as usize, number(head, 0x20, 8)? as usize);
        bytes.get(from..from + len).context("a section's bytes")
    };
    let names = body(header(names)?)?;
    let read = |index| {
        let head = header(index)?;
        let kind = number(head, 4, 4)? as u32;
        Ok(Section {
            name: string(names, number(head, 0, 4)? as usize)?,
            kind,
            link: number(head, 0x28, 4)? as usize,
            about: number(head, 0x2c, 4)? as usize,
            address: number(head, 0x10, 8)?,
            bytes: if kind == SHT_NOBITS { &[] } else { body(head)? },
        })
    };
    (0..n).map(read).collect()
}

/// `len` bytes at a place, as a number.
fn number(bytes: &[u8], at: usize, len: usize) -> Result<u64> {
    let bytes = bytes.get(at..at + len).context("the file ends early")?;
    Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

fn string(bytes: &[u8], at: usize) -> Result<&str> {
    let rest = bytes.get(at..).context("a name")?;
    Ok(str::from_utf8(rest.split(|&byte| byte == 0).next().unwrap_or_default())?)
}

/// The releases so far, those of the same public functions together.
#[derive(Default)]
struct Table {
    releases: Vec<(Vec<String>, Runtime)>,
}

impl Table {
    fn add(&mut self, version: &str, runtime: Runtime) -> Result<()> {
        let n: usize = runtime.blocks.iter().map(|block| block.functions.len()).sum();
        println!("{version}: {n} public functions in {} blocks", runtime.blocks.len());
        ensure!(runtime.blocks.len() <= 4 && n > 300, "{version}: not as the other releases are");
        match self.releases.iter_mut().find(|(_, known)| *known == runtime) {
            Some((versions, _)) => versions.push(version.to_owned()),
            None => self.releases.push((vec![version.to_owned()], runtime)),
        }
        Ok(())
    }

    /// The functions' names by major, each once, sorted.
    fn names(&self) -> BTreeMap<u32, Vec<&str>> {
        let mut names: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
        for (_, runtime) in &self.releases {
            let functions = runtime.blocks.iter().flat_map(|block| &block.functions);
            names.entry(runtime.major).or_default().extend(functions.map(|(_, function)| &*function.name));
        }
        names.into_iter().map(|(major, names)| (major, names.into_iter().collect())).collect()
    }

    fn text(&self) -> Result<String> {
        let (mut releases, mut blocks, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut signatures: Vec<String> = Vec::new();
        let mut known: BTreeMap<(u32, &Function), usize> = BTreeMap::new();
        let mut masks = Masks::default();
        let names = self.names();
        for (versions, runtime) in &self.releases {
            let (major, first_block) = (runtime.major, blocks.len());
            for block in &runtime.blocks {
                let first_place = places.len();
                let mut last = 0;
                for (at, function) in &block.functions {
                    ensure!(at % 16 == 0, "{} does not begin at a multiple of 16", function.name);
                    let next = signatures.len();
                    let signature = *known.entry((major, function)).or_insert(next);
                    if signature == next {
                        let Function { name, len_bytes, mask, hash } = function;
                        let mask = masks.place(mask);
                        let at = names[&major].iter().position(|known| *known == name).context("a name")?;
                        signatures.push(format!("v{major}({at}, {len_bytes}, {mask}, 0x{hash:032x})"));
                    }
                    places.push(format!("Place({}, {signature})", (at - last) / 16));
                    last = *at;
                }
                blocks.push(format!(
                    "Block {{ places: [{first_place}, {}], anchor: {}, gaps: {:?} }}",
                    places.len(),
                    block.anchor,
                    block.gaps
                ));
            }
            releases.push(format!(
                "Release {{ name: \"{}\", major: {major}, blocks: [{first_block}, {}] }}",
                versions.join(", "),
                blocks.len()
            ));
        }
        let masks: Vec<String> = masks.pairs.iter().map(|pair| format!("{pair:?}")).collect();
        let mut text = format!(
            "//! What the public functions of NVIDIA's static runtimes are told by: no code, only its lengths and hashes.\n\
             //! Generated by `cargo xtask codegen --signatures` from the archives that {LIST} names; do not edit.\n\n\
             use crate::names::{{V11, V12, V13, places}};\n\
             use crate::signature::{{Block, Place, Release, Signature, v11, v12, v13}};\n"
        );
        for (major, names) in &names {
            writeln!(text, "\npub const NAMES_{major}: [u16; {}] = places(&V{major}, [", names.len())?;
            for name in names {
                writeln!(text, "    \"{name}\",")?;
            }
            text += "]);\n";
        }
        for (name, kind, rows, per_line) in [
            ("RELEASES", "Release", &releases, 1),
            ("BLOCKS", "Block", &blocks, 1),
            ("SIGNATURES", "Signature", &signatures, 1),
            ("PLACES", "Place", &places, 12),
            ("MASKS", "[u8; 2]", &masks, 20),
        ] {
            write!(text, "\npub static {name}: [{kind}; {}] = [\n", rows.len())?;
            for line in rows.chunks(per_line) {
                writeln!(text, "    {},", line.join(", "))?;
            }
            text += "];\n";
        }
        Ok(text)
    }
}

/// All masks one after the other, each once, each with two zeros behind it.
#[derive(Default)]
struct Masks {
    pairs: Vec<[u8; 2]>,
    places: BTreeMap<Vec<[u8; 2]>, usize>,
}

impl Masks {
    fn place(&mut self, mask: &[[u8; 2]]) -> usize {
        if let Some(&place) = self.places.get(mask) {
            return place;
        }
        let place = self.pairs.len();
        self.pairs.extend(mask.iter().copied().chain([[0, 0]]));
        self.places.insert(mask.to_vec(), place);
        place
    }
}
