//! What the samples' CMakeLists ask for, read as CMake reads them: the part of its language that they use. A package or a
//! library that is not there is noted, so that a sample which is not built has its reason from its own build script.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// A program that the scripts ask for.
#[derive(Clone, Debug, Default)]
pub struct Target {
    pub name: String,
    pub sources: Vec<PathBuf>,
    /// Of those, what is CUDA C++ under another ending.
    pub as_cuda: Vec<PathBuf>,
    pub includes: Vec<String>,
    /// As they are named: `CUDA::cublas`, `dl`, a path.
    pub libraries: Vec<String>,
    pub cuda_options: Vec<String>,
    /// For every compiler, and for the linker.
    pub compile_flags: Vec<String>,
    pub link_flags: Vec<String>,
    /// `CUDA_SEPARABLE_COMPILATION`
    pub is_relocatable: bool,
}

/// One folder with a CMakeLists of its own, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    pub source: PathBuf,
    pub binary: PathBuf,
    pub targets: Vec<Target>,
    /// Of custom commands, in their order: copies and further compilations.
    pub commands: Vec<Vec<String>>,
    /// `CMAKE_CUDA_ARCHITECTURES`
    pub architectures: Vec<u32>,
    /// Packages and libraries that were looked for in vain.
    pub missing: Vec<String>,
    /// It only names other folders.
    pub is_parent: bool,
    /// No folder above leads to it here.
    pub is_left_out: bool,
}

/// What the scripts are told of this machine.
pub struct Machine {
    pub toolkit: PathBuf,
    /// Our objects, among which cuBLAS and the like are looked for.
    pub lib: PathBuf,
}

/// Packages that CMake would find.
const PACKAGES: &[&str] = &["CUDAToolkit", "OpenMP"];

#[derive(Clone, Debug)]
struct Argument {
    text: String,
    is_quoted: bool,
}

#[derive(Clone, Debug)]
struct Command {
    name: String,
    arguments: Vec<Argument>,
}

/// The variables of a folder and its own, which folders below begin with.
#[derive(Clone, Default)]
struct Scope {
    variables: HashMap<String, String>,
    includes: Vec<String>,
    definitions: Vec<String>,
    functions: HashMap<String, Function>,
}

/// `function()`: the names of its arguments, and what it does.
#[derive(Clone)]
struct Function {
    parameters: Vec<String>,
    body: Vec<Command>,
}

/// Reads the CMakeLists of `source` and of all folders that it adds.
pub fn read(source: &Path, binary: &Path, machine: &Machine) -> Result<Vec<Folder>> {
    let toolkit = machine.toolkit.display().to_string();
    let lib = machine.lib.display().to_string();
    let known = [
        ("UNIX", "1"),
        ("CMAKE_SYSTEM_NAME", "Linux"),
        ("CMAKE_SYSTEM_PROCESSOR", "x86_64"),
        ("CMAKE_CXX_COMPILER_ID", "GNU"),
        ("CMAKE_VERSION", "3.31.0"),
        ("CMAKE_COMMAND", "cmake"),
        ("CMAKE_CUDA_COMPILER", "nvcc"),
        ("CMAKE_CUDA_COMPILER_VERSION", "13.5"),
        ("CUDAToolkit_INCLUDE_DIRS", &format!("{toolkit}/include")),
        ("CUDAToolkit_LIBRARY_DIR", &format!("{toolkit}/lib")),
        ("CUDAToolkit_BIN_DIR", &format!("{toolkit}/bin")),
        ("CUDA_cuda_driver_LIBRARY", &format!("{lib}/libcuda.so")),
        ("CMAKE_SOURCE_DIR", &source.display().to_string()),
        ("CMAKE_BINARY_DIR", &binary.display().to_string()),
    ];
    let variables = known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut folders = Vec::new();
    let scope = Scope { variables, ..Scope::default() };
    Reader::folder(source, binary, machine, scope, &mut folders)?;
    Ok(folders)
}

struct Reader<'a> {
    machine: &'a Machine,
    scope: Scope,
    folder: Folder,
    /// Sources of any target that are CUDA C++.
    as_cuda: Vec<PathBuf>,
    folders: &'a mut Vec<Folder>,
}

/// Whether a script goes on after a command.
#[derive(PartialEq, Eq)]
enum Flow {
    On,
    Return,
}

impl<'a> Reader<'a> {
    fn folder(
        source: &Path,
        binary: &Path,
        machine: &'a Machine,
        mut scope: Scope,
        folders: &'a mut Vec<Folder>,
    ) -> Result<()> {
        let path = source.join("CMakeLists.txt");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for (name, value) in [("SOURCE", source), ("BINARY", binary)] {
            scope.variables.insert(format!("CMAKE_CURRENT_{name}_DIR"), value.display().to_string());
        }
        let folder = Folder { source: source.to_owned(), binary: binary.to_owned(), ..Folder::default() };
        let mut reader = Reader { machine, scope, folder, as_cuda: vec![], folders };
        reader.run(&parse(&text)?).with_context(|| path.display().to_string())?;
        reader.finish();
        Ok(())
    }

    /// What holds for all targets of the folder is theirs.
    fn finish(mut self) {
        let flags = split(&self.value("CMAKE_EXE_LINKER_FLAGS"));
        let cuda = split(&self.value("CMAKE_CUDA_FLAGS"));
        for target in &mut self.folder.targets {
            target.as_cuda = self.as_cuda.iter().filter(|it| target.sources.contains(it)).cloned().collect();
            target.includes.extend(self.scope.includes.iter().cloned());
            target.compile_flags.extend(self.scope.definitions.iter().cloned());
            target.link_flags.extend(flags.iter().cloned());
            target.cuda_options.extend(cuda.iter().cloned());
        }
        let architectures = self.value("CMAKE_CUDA_ARCHITECTURES");
        self.folder.architectures = architectures.split(';').filter_map(|it| it.parse().ok()).collect();
        self.folders.push(self.folder);
    }

    fn value(&self, name: &str) -> String {
        self.scope.variables.get(name).cloned().unwrap_or_default()
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.scope.variables.insert(name.to_owned(), value.into());
    }

    /// `${NAME}` and `$ENV{NAME}` filled in; no variable of the environment is known.
    fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        while let Some(end) = text.find('}') {
            let Some(start) = text[..end].rfind("${").or_else(|| text[..end].rfind("$ENV{")) else { break };
            let inside = &text[start..end];
            let name = inside.strip_prefix("${").map(|name| self.value(name)).unwrap_or_default();
            text.replace_range(start..=end, &name);
        }
        text
    }

    /// The words of a command: variables filled in, lists taken apart, generator expressions decided.
    fn words(&self, arguments: &[Argument]) -> Vec<String> {
        let mut words = Vec::new();
        for argument in arguments {
            let text = self.generated(&self.expand(&argument.text));
            if argument.is_quoted {
                words.push(text);
            } else {
                words.extend(text.split(';').filter(|word| !word.is_empty()).map(str::to_owned));
            }
        }
        words
    }

    /// Of generator expressions the samples use three: a target's folder, the configuration (none), and CUDA's options.
    fn generated(&self, text: &str) -> String {
        let mut text = text.replace("$<CONFIGURATION>", "").replace("$<COMPILE_LANGUAGE:CUDA>", "1");
        if let Some(start) = text.find("$<TARGET_FILE_DIR:")
            && let Some(end) = text[start..].find('>')
        {
            text.replace_range(start..=start + end, &self.folder.binary.display().to_string());
        }
        match text.strip_prefix("$<1:").and_then(|rest| rest.strip_suffix('>')) {
            Some(option) => option.to_owned(),
            None => text,
        }
    }

    fn run(&mut self, commands: &[Command]) -> Result<Flow> {
        let mut at = 0;
        while at < commands.len() {
            let command = &commands[at];
            let flow = match command.name.as_str() {
                "if" => {
                    let end = end_of(commands, at, "if", "endif")?;
                    let flow = self.decide(&commands[at..end])?;
                    at = end;
                    flow
                }
                "foreach" => {
                    let end = end_of(commands, at, "foreach", "endforeach")?;
                    let words = self.words(&command.arguments);
                    let (name, values) = words.split_first().context("foreach without a variable")?;
                    for value in values {
                        self.set(name, value);
                        self.run(&commands[at + 1..end])?;
                    }
                    at = end;
                    Flow::On
                }
                "function" => {
                    let end = end_of(commands, at, "function", "endfunction")?;
                    let words = self.words(&command.arguments);
                    let (name, parameters) = words.split_first().context("function without a name")?;
                    let function =
                        Function { parameters: parameters.to_vec(), body: commands[at + 1..end].to_vec() };
                    self.scope.functions.insert(name.to_lowercase(), function);
                    at = end;
                    Flow::On
                }
                "return" => Flow::Return,
                _ => {
                    self.command(command)?;
                    Flow::On
                }
            };
            if flow == Flow::Return {
                return Ok(flow);
            }
            at += 1;
        }
        Ok(Flow::On)
    }

    /// `commands` are an `if` and what follows up to its `endif`.
    fn decide(&mut self, commands: &[Command]) -> Result<Flow> {
        let mut depth = 0;
        let mut chosen: Option<usize> = None;
        for (at, command) in commands.iter().enumerate() {
            match command.name.as_str() {
                "if" if at > 0 => depth += 1,
                "endif" => depth -= 1,
                "if" | "elseif" | "else" if depth == 0 => {
                    if let Some(start) = chosen {
                        return self.run(&commands[start..at]);
                    }
                    if command.name == "else" || self.holds(&command.arguments) {
                        chosen = Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        match chosen {
            Some(start) => self.run(&commands[start..]),
            None => Ok(Flow::On),
        }
    }

    fn holds(&self, arguments: &[Argument]) -> bool {
        let mut words = Vec::new();
        for argument in arguments {
            // An empty list leaves no word; an empty string is one.
            let text = self.expand(&argument.text);
            if argument.is_quoted || !text.is_empty() {
                words.push((text, argument.is_quoted));
            }
        }
        Condition { reader: self, words, at: 0 }.any()
    }

    /// What a function sets is its own.
    fn call(&mut self, function: Function, words: Vec<String>) -> Result<()> {
        let before = self.scope.variables.clone();
        for (name, word) in function.parameters.iter().zip(words) {
            self.set(name, word);
        }
        self.run(&function.body)?;
        self.scope.variables = before;
        Ok(())
    }

    fn command(&mut self, command: &Command) -> Result<()> {
        let words = self.words(&command.arguments);
        if let Some(function) = self.scope.functions.get(&command.name) {
            return self.call(function.clone(), words);
        }
        let first = words.first().cloned().unwrap_or_default();
        let rest = words.get(1..).unwrap_or_default();
        match command.name.as_str() {
            "project" => {
                self.set("PROJECT_NAME", first);
                let source = self.folder.source.display().to_string();
                self.set("PROJECT_SOURCE_DIR", source);
            }
            "include" => {
                // CMake's own modules are named without a path.
                let path = PathBuf::from(self.absolute(&first));
                if path.is_file() {
                    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                    self.run(&parse(&text)?).with_context(|| path.display().to_string())?;
                }
            }
            "set" => {
                let cache = rest.iter().position(|word| word == "CACHE").unwrap_or(rest.len());
                self.set(&first, rest[..cache].join(";"));
            }
            "list" if first == "APPEND" => {
                let (name, values) = rest.split_first().context("list without a variable")?;
                let old = self.value(name);
                let all = [old].into_iter().filter(|it| !it.is_empty()).chain(values.iter().cloned());
                let all: Vec<String> = all.collect();
                self.set(name, all.join(";"));
            }
            "list" => {
                if let ("GET", [name, at, result]) = (first.as_str(), rest)
                    && let Ok(at) = at.parse::<usize>()
                {
                    let value = self.value(name).split(';').nth(at).unwrap_or("NOTFOUND").to_owned();
                    self.set(result, value);
                }
            }
            "string" => match (first.as_str(), rest) {
                ("JOIN", [glue, name, values @ ..]) => self.set(name, values.join(glue)),
                ("FIND", [within, sought, name]) => {
                    let at = within.find(sought.as_str()).map_or("-1".to_owned(), |at| at.to_string());
                    self.set(name, at);
                }
                _ => {}
            },
            "file" => match (first.as_str(), rest) {
                ("GLOB", [name, patterns @ ..]) => {
                    let found: Vec<String> = patterns.iter().flat_map(|it| self.glob(it)).collect();
                    self.set(name, found.join(";"));
                }
                ("COPY", [paths @ .., word, to]) if word == "DESTINATION" => {
                    let mut copy = vec!["cmake".to_owned(), "-E".to_owned(), "copy".to_owned()];
                    copy.extend(paths.iter().map(|path| self.absolute(path)));
                    copy.push(to.clone());
                    self.folder.commands.push(copy);
                }
                _ => {}
            },
            "get_filename_component" => {
                if let [path, kind] = rest
                    && kind == "DIRECTORY"
                {
                    let parent = Path::new(path).parent().unwrap_or(Path::new(""));
                    self.set(&first, parent.display().to_string());
                }
            }
            "find_package" => self.package(&first),
            "find_library" | "find_file" | "find_path" => self.find(&command.name, &first, rest),
            "check_include_file" => self.folder.missing.extend(words.first().cloned()),
            "include_directories" => {
                let paths: Vec<String> = words.iter().map(|path| self.absolute(path)).collect();
                self.scope.includes.extend(paths);
            }
            "add_definitions" | "add_compile_definitions" => {
                let defined = words.iter().map(|word| match word.strip_prefix("-D") {
                    Some(_) => word.clone(),
                    None => format!("-D{word}"),
                });
                self.scope.definitions.extend(defined);
            }
            "add_subdirectory" => {
                self.folder.is_parent = true;
                let (source, binary) = (self.folder.source.join(&first), self.folder.binary.join(&first));
                Reader::folder(&source, &binary, self.machine, self.scope.clone(), self.folders)?;
            }
            "add_executable" => {
                let sources = rest.iter().map(|source| PathBuf::from(self.absolute(source))).collect();
                self.folder.targets.push(Target { name: first, sources, ..Target::default() });
            }
            "set_source_files_properties" if words.ends_with(&["LANGUAGE".to_owned(), "CUDA".to_owned()]) => {
                let files = words.iter().take_while(|word| *word != "PROPERTIES");
                let files: Vec<PathBuf> = files.map(|file| PathBuf::from(self.absolute(file))).collect();
                self.as_cuda.extend(files);
            }
            "set_property" => {
                if let Some(at) = words.iter().position(|word| word == "COMPILE_DEFINITIONS") {
                    let defined = words[at + 1..].iter().map(|word| format!("-D{word}"));
                    self.scope.definitions.extend(defined);
                }
            }
            "add_custom_command" => self.custom(&words),
            name if name.starts_with("target_") || name == "set_target_properties" => {
                let values: Vec<String> = rest
                    .iter()
                    .filter(|word| !matches!(word.as_str(), "PUBLIC" | "PRIVATE" | "INTERFACE"))
                    .cloned()
                    .collect();
                self.of_target(name, &first, &values);
            }
            _ => {}
        }
        Ok(())
    }

    fn of_target(&mut self, command: &str, name: &str, values: &[String]) {
        let paths: Vec<String> = values.iter().map(|path| self.absolute(path)).collect();
        let Some(target) = self.folder.targets.iter_mut().find(|it| it.name == name) else { return };
        match command {
            "target_sources" => target.sources.extend(paths.into_iter().map(PathBuf::from)),
            "target_include_directories" => target.includes.extend(paths),
            "target_link_libraries" => target.libraries.extend(values.iter().cloned()),
            "target_compile_options" => target.cuda_options.extend(values.iter().cloned()),
            "target_compile_definitions" => {
                target.compile_flags.extend(values.iter().map(|word| format!("-D{word}")));
            }
            "set_target_properties" => {
                for pair in values.get(1..).unwrap_or_default().chunks_exact(2) {
                    match (pair[0].as_str(), pair[1].as_str()) {
                        ("CUDA_SEPARABLE_COMPILATION", value) => target.is_relocatable = is_true(value),
                        ("COMPILE_FLAGS", value) => target.compile_flags.extend(split(value)),
                        ("LINK_FLAGS", value) => target.link_flags.extend(split(value)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn absolute(&self, path: &str) -> String {
        self.folder.source.join(path).display().to_string()
    }

    /// Files of the folder whose names begin as a pattern that ends in `*` says.
    fn glob(&self, pattern: &str) -> Vec<String> {
        let Some(start) = pattern.strip_suffix('*') else { return Vec::new() };
        let entries = fs::read_dir(&self.folder.source).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
        let mut found: Vec<String> = names.map(|entry| entry.path().display().to_string()).collect();
        found.sort();
        found
    }

    fn package(&mut self, name: &str) {
        let is_there = PACKAGES.contains(&name);
        let value = if is_there { "TRUE" } else { "FALSE" };
        for found in [format!("{name}_FOUND"), format!("{}_FOUND", name.to_uppercase())] {
            self.set(&found, value);
        }
        if is_there {
            self.set(&format!("{name}_CXX_FOUND"), "TRUE");
        } else if !self.folder.missing.iter().any(|it| it == name) {
            self.folder.missing.push(name.to_owned());
        }
    }

    /// `find_library`, `find_file`, `find_path`: in the folders given, then in the toolkit and among our objects.
    fn find(&mut self, command: &str, variable: &str, words: &[String]) {
        let is_key =
            |word: &String| ["NAME", "NAMES", "PATH", "PATHS", "PATH_SUFFIXES"].contains(&word.as_str());
        let split = words.iter().position(|word| word.starts_with("PATH")).unwrap_or(words.len());
        let names: Vec<&String> = words[..split].iter().filter(|word| !is_key(word)).collect();
        let toolkit = &self.machine.toolkit;
        let mut places: Vec<PathBuf> = words[split..]
            .iter()
            .filter(|word| !is_key(word) && !word.is_empty())
            .map(PathBuf::from)
            .collect();
        places.extend([self.machine.lib.clone(), toolkit.join("lib"), toolkit.join("include")]);
        for place in &places {
            for name in &names {
                let found = match command {
                    "find_library" => library(place, name),
                    _ => Some(place.join(name)).filter(|path| path.exists()),
                };
                if let Some(found) = found {
                    let found = if command == "find_path" { place.clone() } else { found };
                    self.set(variable, found.display().to_string());
                    return;
                }
            }
        }
        self.set(variable, format!("{variable}-NOTFOUND"));
        self.folder.missing.extend(names.first().map(|name| (*name).clone()));
    }

    /// The `COMMAND`s of a custom command.
    fn custom(&mut self, words: &[String]) {
        const KEYS: &[&str] = &[
            "OUTPUT",
            "TARGET",
            "POST_BUILD",
            "PRE_BUILD",
            "DEPENDS",
            "COMMENT",
            "WORKING_DIRECTORY",
            "VERBATIM",
        ];
        let mut is_command = false;
        for word in words {
            match word.as_str() {
                "COMMAND" => {
                    self.folder.commands.push(Vec::new());
                    is_command = true;
                }
                key if KEYS.contains(&key) => is_command = false,
                _ if is_command => {
                    if let Some(command) = self.folder.commands.last_mut() {
                        command.push(word.clone());
                    }
                }
                _ => {}
            }
        }
    }
}

/// A library of this name in a folder: shared, with or without a number, or static.
pub fn library(place: &Path, name: &str) -> Option<PathBuf> {
    let plain = [place.join(format!("lib{name}.so")), place.join(format!("lib{name}.a"))];
    if let Some(path) = plain.into_iter().find(|path| path.is_file()) {
        return Some(path);
    }
    let start = format!("lib{name}.so.");
    let mut numbered: Vec<PathBuf> = fs::read_dir(place)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&start)))
        .collect();
    numbered.sort();
    numbered.pop()
}

/// The words of a condition, with whether they stood in quotes.
struct Condition<'a, 'b> {
    reader: &'a Reader<'b>,
    words: Vec<(String, bool)>,
    at: usize,
}

impl Condition<'_, '_> {
    fn next_is(&mut self, word: &str) -> bool {
        let is = self.words.get(self.at).is_some_and(|(text, is_quoted)| !is_quoted && text == word);
        self.at += usize::from(is);
        is
    }

    fn any(&mut self) -> bool {
        let mut holds = self.all();
        while self.next_is("OR") {
            holds |= self.all();
        }
        holds
    }

    fn all(&mut self) -> bool {
        let mut holds = self.one();
        while self.next_is("AND") {
            holds &= self.one();
        }
        holds
    }

    fn one(&mut self) -> bool {
        if self.next_is("NOT") {
            return !self.one();
        }
        if self.next_is("(") {
            let holds = self.any();
            self.next_is(")");
            return holds;
        }
        if self.next_is("DEFINED") {
            let name = self.word();
            return self.reader.scope.variables.contains_key(&name);
        }
        let is_quoted = self.words.get(self.at).is_some_and(|it| it.1);
        let left = self.word();
        for operator in ["STREQUAL", "EQUAL", "LESS", "MATCHES", "VERSION_LESS", "VERSION_GREATER_EQUAL"] {
            if self.next_is(operator) {
                let (left, right) = (self.looked_up(&left), self.word());
                return match operator {
                    "STREQUAL" | "EQUAL" => left == right,
                    // Of what is no number nothing holds.
                    "LESS" => {
                        let number = |text: &str| text.parse::<i64>().ok();
                        number(&left).zip(number(&right)).is_some_and(|(left, right)| left < right)
                    }
                    "MATCHES" => left.contains(&right),
                    "VERSION_LESS" => version(&left) < version(&right),
                    _ => version(&left) >= version(&right),
                };
            }
        }
        is_true(&left) || !is_quoted && is_true_value(&self.reader.value(&left))
    }

    fn word(&mut self) -> String {
        self.at += 1;
        self.words.get(self.at - 1).map(|it| it.0.clone()).unwrap_or_default()
    }

    /// A name of a variable stands for its value.
    fn looked_up(&self, word: &str) -> String {
        self.reader.scope.variables.get(word).cloned().unwrap_or_else(|| word.to_owned())
    }
}

fn is_true(word: &str) -> bool {
    ["1", "ON", "YES", "TRUE", "Y"].contains(&word.to_uppercase().as_str())
}

/// A variable's value is true unless it says no.
fn is_true_value(value: &str) -> bool {
    let value = value.to_uppercase();
    !["", "0", "OFF", "NO", "FALSE", "N", "IGNORE"].contains(&value.as_str()) && !value.ends_with("NOTFOUND")
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Flags in one string, as a shell takes them apart.
fn split(flags: &str) -> Vec<String> {
    flags.split([' ', ';']).filter(|it| !it.is_empty()).map(|it| it.replace('"', "")).collect()
}

/// Where the block that begins at `at` ends.
fn end_of(commands: &[Command], at: usize, begin: &str, end: &str) -> Result<usize> {
    let mut depth = 0;
    for (place, command) in commands.iter().enumerate().skip(at) {
        if command.name == begin {
            depth += 1;
        } else if command.name == end {
            depth -= 1;
            if depth == 0 {
                return Ok(place);
            }
        }
    }
    bail!("{begin} without {end}")
}

fn parse(text: &str) -> Result<Vec<Command>> {
    let mut commands = Vec::new();
    let mut rest = text.chars().peekable();
    let mut name = String::new();
    while let Some(c) = rest.next() {
        match c {
            '#' => while rest.next().is_some_and(|c| c != '\n') {},
            '(' => {
                let arguments = arguments(&mut rest)
                    .with_context(|| format!("the parenthesis after {name} is not closed"))?;
                commands.push(Command { name: std::mem::take(&mut name).to_lowercase(), arguments });
            }
            c if c.is_whitespace() => {}
            c => name.push(c),
        }
    }
    Ok(commands)
}

/// Up to the closing parenthesis.
fn arguments(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Vec<Argument>> {
    let mut found = Vec::new();
    let mut depth = 0;
    let plain = |text: &str| Argument { text: text.to_owned(), is_quoted: false };
    loop {
        match rest.next()? {
            '#' => while rest.next().is_some_and(|c| c != '\n') {},
            '(' => {
                depth += 1;
                found.push(plain("("));
            }
            ')' if depth == 0 => return Some(found),
            ')' => {
                depth -= 1;
                found.push(plain(")"));
            }
            '"' => {
                let mut text = String::new();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => text.push(rest.next()?),
                        c => text.push(c),
                    }
                }
                found.push(Argument { text, is_quoted: true });
            }
            c if c.is_whitespace() => {}
            c => {
                let mut text = c.to_string();
                while let Some(c) = rest.next_if(|c| !c.is_whitespace() && !"()#".contains(*c)) {
                    text.push(c);
                }
                found.push(plain(&text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(files: &[(&str, &str)]) -> Vec<Folder> {
        let dir = testkit::temporary().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let machine = Machine { toolkit: "/toolkit".into(), lib: "/lib-of-ours".into() };
        read(dir.path(), Path::new("/out"), &machine).unwrap()
    }

    #[test]
    fn a_program_has_its_sources_flags_and_libraries() {
        let found = folders(&[(
            "CMakeLists.txt",
            "project(p LANGUAGES CUDA) # words\n\
             set(CMAKE_CUDA_ARCHITECTURES 75 90)\n\
             set(CMAKE_CUDA_FLAGS \"${CMAKE_CUDA_FLAGS} -lineinfo\")\n\
             include_directories(Common)\n\
             add_executable(${PROJECT_NAME} a.cu b.cpp)\n\
             target_compile_options(p PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda>)\n\
             set_target_properties(p PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n\
             if(UNIX AND NOT ${CMAKE_SYSTEM_NAME} STREQUAL \"QNX\")\n\
                 target_link_libraries(p PUBLIC CUDA::cublas pthread)\n\
             else()\n target_link_libraries(p socket)\n endif()\n\
             foreach(arch ${CMAKE_CUDA_ARCHITECTURES})\n list(APPEND CODE \"-gencode=arch=compute_${arch},code=sm_${arch}\")\n endforeach()\n\
             list(GET CODE 1 SECOND)\n\
             add_custom_command(OUTPUT x COMMAND ${CMAKE_CUDA_COMPILER} ${CODE} -fatbin k.cu DEPENDS k.cu COMMAND ${CMAKE_COMMAND} ${SECOND})\n",
        )]);
        let [folder] = &found[..] else { panic!("{found:?}") };
        let [target] = &folder.targets[..] else { panic!("{folder:?}") };
        assert_eq!(folder.architectures, [75, 90]);
        assert_eq!(target.sources, [folder.source.join("a.cu"), folder.source.join("b.cpp")]);
        assert_eq!(target.libraries, ["CUDA::cublas", "pthread"]);
        assert_eq!(target.cuda_options, ["--extended-lambda", "-lineinfo"]);
        assert_eq!(target.includes, [folder.source.join("Common").display().to_string()]);
        assert!(target.is_relocatable);
        let code = ["75", "90"].map(|it| format!("-gencode=arch=compute_{it},code=sm_{it}"));
        let [compile, second] = &folder.commands[..] else { panic!("{folder:?}") };
        assert_eq!(compile, &["nvcc", &code[0], &code[1], "-fatbin", "k.cu"]);
        assert_eq!(second, &["cmake", &code[1]]);
    }

    #[test]
    fn functions_of_other_files_add_programs() {
        let found = folders(&[
            (
                "CMakeLists.txt",
                "project(p)\ninclude(GNUInstallDirs)\nset(NAME kept)\nif(ARCHITECTURES LESS 75)\n add_executable(never a.cpp)\nendif()\n\
                 include(a/add.cmake)\nAdd_It(all one one.cpp)\nadd_it(all two two.cpp)\n\
                 set_source_files_properties(${NAME}.cpp PROPERTIES LANGUAGE CUDA)\nadd_executable(${NAME})\n\
                 target_sources(kept PRIVATE ${PROJECT_SOURCE_DIR}/kept.cpp)\n",
            ),
            (
                "a/add.cmake",
                "function(add_it GROUP NAME SOURCES)\nadd_executable(${NAME} ${SOURCES})\n\
                 target_link_libraries(${NAME} PUBLIC CUDA::curand)\nset(OTHER 1)\nendfunction()\n",
            ),
        ]);
        let [folder] = &found[..] else { panic!("{found:?}") };
        let names: Vec<&str> = folder.targets.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "kept"]);
        assert_eq!(folder.targets[1].sources, [folder.source.join("two.cpp")]);
        assert_eq!(folder.targets[1].libraries, ["CUDA::curand"]);
        assert!(folder.targets[1].as_cuda.is_empty());
        assert_eq!(folder.targets[2].as_cuda, [folder.source.join("kept.cpp")]);
    }

    #[test]
    fn what_is_not_there_is_named_and_folders_begin_with_what_is_above() {
        let found = folders(&[
            (
                "CMakeLists.txt",
                "set(HERE 1)\nadd_definitions(-DX=1)\nadd_subdirectory(a)\nadd_subdirectory(b)\n",
            ),
            (
                "a/CMakeLists.txt",
                "find_package(OpenGL)\nif(${OpenGL_FOUND})\n if (GLUT)\n endif()\n add_executable(a a.cu)\nelse()\n message(no)\nendif()",
            ),
            (
                "b/CMakeLists.txt",
                "if(DEFINED HERE AND NOT WIN32)\nadd_executable(b b.c)\nreturn()\nendif()\nadd_executable(c c.c)",
            ),
        ]);
        let [a, b, parent] = &found[..] else { panic!("{found:?}") };
        assert!(a.targets.is_empty() && a.missing == ["OpenGL"]);
        assert!(b.targets.len() == 1 && b.targets[0].compile_flags == ["-DX=1"]);
        assert!(parent.is_parent);
    }
}
