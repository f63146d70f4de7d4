//! What follows from the libraries' descriptions (`tools/data/<library>/library.toml`): shells, exports, the objects that are
//! preloaded, and who knows which files.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};

use super::bodies::{self, Bodies, Body};
use super::facts::{self, Signature, Signatures};
use super::shells::{self, HEAD, PROMISE};
use super::{NODES, blas, hip_solver, hip_sparse};
use crate::libraries::{self, Library, Object};

/// The names and the node of the shell with this file name.
pub fn shell(file: &str) -> Result<Option<(Vec<String>, String)>> {
    let object = libraries::objects().map(|(_, object)| object).find(|object| object.file() == file);
    object.map(|object| Ok((object.names()?, object.node()))).transpose()
}

/// Every name of a library's objects.
pub fn names(library: &Library) -> Result<BTreeSet<String>> {
    let lists = library.objects.iter().map(Object::names).collect::<Result<Vec<_>>>()?;
    Ok(lists.into_iter().flatten().collect())
}

/// The names that the library's backend exports.
pub fn exported(implementation: &str) -> Result<Option<BTreeSet<String>>> {
    let Some(library) = libraries::all().iter().find(|library| library.implementation == implementation)
    else {
        return Ok(None);
    };
    if library.name == "cuBLAS" {
        return blas::all_exports().map(Some);
    }
    if library.faces.is_empty() {
        return names(library).map(Some);
    }
    let faced = library.faces.iter().map(|face| {
        Ok(names_of_face(library, *face)?.into_iter().map(|name| faced(&name, *face)).collect::<Vec<_>>())
    });
    Ok(Some(faced.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()))
}

/// The names of the objects with this number in their SONAMEs.
fn names_of_face(library: &Library, face: u32) -> Result<BTreeSet<String>> {
    let objects = library.objects.iter().filter(|object| object.soname == face.to_string());
    let lists = objects.map(Object::names).collect::<Result<Vec<_>>>()?;
    Ok(lists.into_iter().flatten().collect())
}

/// What the backend calls a name that differs by SONAME, as `trampoline::with_major` spells it.
fn faced(name: &str, face: u32) -> String {
    format!("{name}_v{face:02}")
}

/// Every generated file: (path, text).
pub fn files(
    blas_signatures: &Signatures,
    blas_bodies: &Bodies,
    solver: &hip_solver::OnHip,
    sparse: &hip_sparse::OnHip,
) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for (library, object) in libraries::objects() {
        let names = object.names()?;
        // Of the others every function has one body.
        let is_blas = library.name == "cuBLAS";
        let signatures = signatures_of(library)?;
        let answer = |name: &str| match signatures.get(name) {
            _ if is_blas => blas::answer(blas_signatures, name),
            Some(signature) if signature.returns != library.status => "Zero",
            _ => "Status",
        };
        let of_major = match library.faces.is_empty() {
            _ if is_blas => blas::of_major(blas_bodies, &names, &object.soname),
            true => Vec::new(),
            false => names.iter().enumerate().collect(),
        };
        let node = object.node();
        let text = shells::names_file(&object.names, &object.key(), &node, &names, answer, of_major)?;
        files.push((format!("{}/src/generated/names.rs", object.shell), text));
        files.extend(shell_crate(library, object));
        files.push((
            format!("cmake/exports/{}", object.version_script()),
            shells::node_script(&node, &object.names, names.len()),
        ));
    }
    for library in libraries::all() {
        if let (Some(signatures), Some(exports)) = (&library.signatures, &library.exports) {
            let signatures: Signatures = facts::read_json(signatures)?;
            let bodies = bodies::scan(&library.api)?;
            files.push((
                format!("{exports}/src/generated/exports.rs"),
                exports_file(library, &signatures, &bodies, solver, sparse)?,
            ));
            if !library.releases.is_empty() {
                files.push((format!("{}/src/generated/release.rs", library.api), release_file(library)?));
            }
        }
    }
    for (major, runtime) in NODES {
        files.push((format!("crates/trampoline/preload/v{major}/src/lib.rs"), preloaded(major, runtime)?));
    }
    files.push(("crates/loader/src/generated/libraries.rs".to_owned(), known()?));
    Ok(files)
}

/// None where the generator is not the one of all libraries.
fn signatures_of(library: &Library) -> Result<Signatures> {
    library.signatures.as_deref().map_or_else(|| Ok(Signatures::default()), facts::read_json)
}

/// The crate of a shell, but for its names.
fn shell_crate(library: &Library, object: &Object) -> [(String, String); 3] {
    let (status, status_name) = &object.not_supported;
    let file = object.file();
    let forward = if library.forwards { "trampoline::forward_exports!(shell::LIBRARY);\n" } else { "" };
    [
        (
            format!("{}/Cargo.toml", object.shell),
            format!(
                "# {HEAD}; do not edit.\n[package]\nname = \"{}\"\nversion.workspace = true\nedition.workspace = true\n\
                 rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n\n[lib]\ntest = false\ndoctest = false\n\n[lints]\nworkspace = true\n\n\
                 [dependencies]\ntrampoline.workspace = true\n",
                object.package()
            ),
        ),
        (
            format!("{}/src/lib.rs", object.shell),
            format!(
                "//! `{file}`: its names on their version node, each a jump into the backend that has it. {HEAD}; do not edit.\n\
                 //! The rule: no state of its own but the slots, nothing runs until the first call.\n\n\
                 #![cfg_attr(not(test), no_std)]\n\nmod shell;\n\ntrampoline::end_at_panic!();\n{forward}"
            ),
        ),
        (
            format!("{}/src/shell.rs", object.shell),
            format!(
                "//! The library but for what an object has once; crates/trampoline/preload has it too. {HEAD}; do not edit.\n\n\
                 #[rustfmt::skip]\n#[path = \"generated/names.rs\"]\nmod generated;\n\n// {status_name}\n\
                 trampoline::shell!(c\"{}\", c\"{}\", major: {}, not_supported: {status});\n",
                library.implementation, library.variable, object.soname
            ),
        ),
    ]
}

/// A name's body. FFTW's names of single precision have those of double precision, which are for both: pointers say which.
pub fn body<'b>(bodies: &'b Bodies, name: &str) -> Option<&'b Body> {
    let both = || bodies.get(&format!("fftw_{}", name.strip_prefix("fftwf_")?));
    let typed = || bodies.get(&of_any_type(name)?);
    bodies.get(name).or_else(both).or_else(typed)
}

/// The name of the body that is for all types of values, where a letter says the type: `cusparseTgtsv2` of `cusparseSgtsv2`.
pub fn of_any_type(name: &str) -> Option<String> {
    // cuSOLVER's names have the part of the library before the letter: `cusolverDnSgetrf`.
    let start = name.find(|c: char| c.is_ascii_uppercase())?;
    let part = if name.starts_with("cusolver") { 2 } else { 0 };
    let (library, rest) = name.split_at_checked(start + part)?;
    let routine = rest.strip_prefix(['S', 'D', 'C', 'Z', 'H'])?;
    routine.starts_with(|c: char| c.is_ascii_lowercase()).then(|| format!("{library}T{routine}"))
}

/// The C functions of a library whose bodies all stand under their C names.
fn exports_file(
    library: &Library,
    signatures: &Signatures,
    bodies: &Bodies,
    solver: &hip_solver::OnHip,
    sparse: &hip_sparse::OnHip,
) -> Result<String> {
    let names = names(library)?;
    let krate = format!("::{}", library.api.rsplit('/').nth(1).context("a crate below a library's folder")?);
    let of_any_type: BTreeSet<String> = names.iter().filter_map(|name| of_any_type(name)).collect();
    let is_used = |name: &&String| names.contains(*name) || of_any_type.contains(*name);
    let unused: Vec<_> = bodies.keys().filter(|name| !is_used(name)).collect();
    ensure!(
        unused.is_empty(),
        "no export of {} has this name, so nobody could call it: {unused:?}",
        library.name
    );
    let mut text = format!(
        "//! The {} exports of {}. {HEAD} from tools/data\n//! and {}/src/api; do not edit.\n\n{PROMISE}\n\
         use core::ffi::*;\n\nuse border::{{OptOut, Out, borrow, borrow_opt, c_string}};\nuse {}::types::*;\n",
        names.len(),
        library.implementation,
        library.api,
        krate.trim_start_matches(':')
    );
    let unknown = Signature { params: Vec::new(), returns: library.status.clone() };
    for name in &names {
        let signature = signatures.get(name).unwrap_or(&unknown);
        let body = self::body(bodies, name).map(|body| (body, false));
        let mut statement = shells::statement(&krate, &library.status, name, signature, body)?;
        let line = match library.name.as_str() {
            "cuSOLVER" => solver.line(&krate, name),
            "cuSPARSE" => sparse.line(&krate, name),
            _ => None,
        };
        if let Some(line) = line {
            statement = with_line(&krate, name, &statement, &line)?;
        }
        if library.faces.is_empty() {
            text += &shells::exported(name, signature, body.is_some(), &statement);
        }
        for &face in &library.faces {
            if names_of_face(library, face)?.contains(name) {
                let statement = with_face(&krate, &statement, face);
                text += &shells::exported(&faced(name, face), signature, body.is_some(), &statement);
            }
        }
    }
    Ok(text)
}

/// The statement with a line before the body's call.
fn with_line(krate: &str, name: &str, statement: &str, line: &str) -> Result<String> {
    let entry = format!("{krate}::entry(\"{name}\", || ");
    let (head, rest) = statement.split_once(&entry).with_context(|| format!("{name} has no body"))?;
    let indent = "            ";
    if let Some(rest) = rest.strip_prefix("{\n") {
        return Ok(format!("{head}{entry}{{\n{indent}{line}\n{rest}"));
    }
    let (call, end) = rest.split_once(")\n").with_context(|| statement.to_owned())?;
    Ok(format!("{head}{entry}{{\n{indent}{line}\n{indent}{call}\n        }})\n{end}"))
}

/// The statement, whose border learns which face is called.
fn with_face(krate: &str, statement: &str, face: u32) -> String {
    ["entry", "entry_value", "missing"].iter().fold(statement.to_owned(), |statement, border| {
        let call = format!("{krate}::{border}(");
        statement.replace(&call, &format!("{call}{face}, "))
    })
}

/// What a library says its version is.
fn release_file(library: &Library) -> Result<String> {
    let mut text = format!(
        "//! What {} says its version is, by CUDA's major. {HEAD} from its library.toml; do not edit.\n\n\
         /// (CUDA's major, major, minor, patch), the newest first.\npub const RELEASES: [(u32, [i32; 3]); {}] = [\n",
        library.name,
        library.releases.len()
    );
    for (major, release) in library.releases.iter().rev() {
        let numbers: Vec<i32> = release.split('.').map(str::parse).collect::<std::result::Result<_, _>>()?;
        let [a, b, c] = numbers[..] else {
            anyhow::bail!("{release} of {} is not three numbers", library.name)
        };
        writeln!(text, "    ({major}, [{a}, {b}, {c}]),")?;
    }
    Ok(text + "];\n")
}

/// `crates/trampoline/preload/vN/src/lib.rs`
fn preloaded(major: &str, runtime: &str) -> Result<String> {
    let mut text = format!(
        "//! `preload/{runtime}`: all libraries of CUDA {major} that have an object each beside it, in one. {HEAD}; do not edit.\n\
         //!\n\
         //! Each object that is preloaded costs every program that starts; this one is called as the runtime is, and has the other names\n\
         //! because it \"needs\" them, where they are links to itself (xtask/src/build). A library of several majors is in the newest's.\n\n\
         // With std, the tests in its parts compile (`cargo clippy --all-targets`).\n\
         #![cfg_attr(not(test), no_std)]\n\n"
    );
    let number: u32 = major.parse()?;
    let mut mods = vec![("cudart".to_owned(), format!("crates/libcudart/forward/v{major}"))];
    let mut forwarding = Vec::new();
    for (library, object) in libraries::objects().filter(|(_, object)| object.preloaded_in() == Some(number))
    {
        let name = object.stem.trim_start_matches("lib").to_lowercase();
        if library.forwards {
            forwarding.push(format!("{name}::LIBRARY"));
        }
        mods.push((name, object.shell.clone()));
    }
    mods.sort();
    for (name, shell) in &mods {
        let shell = shell.strip_prefix("crates/").context("a crate's folder")?;
        write!(text, "#[path = \"../../../../{shell}/src/shell.rs\"]\nmod {name};\n")?;
    }
    let line = format!("trampoline::forward_exports!({});\n", forwarding.join(", "));
    // As rustfmt would have it.
    let line = match line.len() {
        length if length <= shells::WIDTH => line,
        _ => format!("trampoline::forward_exports!(\n    {}\n);\n", forwarding.join(",\n    ")),
    };
    write!(text, "\ntrampoline::end_at_panic!();\n{line}")?;
    Ok(text)
}

/// The other names of a major's object in `preload`.
pub fn other_names(major: &str) -> Vec<String> {
    let objects = libraries::objects().map(|(_, object)| object);
    let is_of = |object: &&Object| object.preloaded_in().is_some_and(|number| number.to_string() == major);
    objects.filter(is_of).map(Object::file).collect()
}

/// The stems, each with its objects, the newest first.
fn stems() -> Vec<(&'static Library, Vec<&'static Object>)> {
    let mut stems: Vec<(&Library, Vec<&Object>)> = Vec::new();
    let ours =
        libraries::ours().flat_map(|library| library.objects.iter().map(move |object| (library, object)));
    for (library, object) in ours {
        match stems.iter_mut().find(|(_, objects)| objects[0].stem == object.stem) {
            Some((_, objects)) => objects.insert(0, object),
            None => stems.push((library, vec![object])),
        }
    }
    stems
}

/// `crates/loader/src/generated/libraries.rs`
fn known() -> Result<String> {
    let stems = stems();
    let mut text = format!(
        "//! The libraries that tools/data describes. {HEAD}; do not edit.\n\nuse crate::names::Family;\n\n\
         pub const FAMILIES: [Family; {}] = [\n",
        stems.len()
    );
    for (_, objects) in &stems {
        let files: Vec<String> = objects.iter().map(|object| format!("c\"{}\"", object.file())).collect();
        let (stem, own, plain) =
            (&objects[0].stem, &objects[0].own, objects.iter().any(|object| object.plain));
        writeln!(
            text,
            "    Family {{ stem: b\"{stem}.so\", files: &[{}], own: c\"{own}\", is_plain: {plain}, is_part: {} }},",
            files.join(", "),
            objects[0].part
        )?;
    }
    let count = libraries::ours().count();
    write!(text, "];\n\n/// What is behind them.\npub const IMPLEMENTATIONS: [&str; {count}] = [\n")?;
    libraries::ours().try_for_each(|library| writeln!(text, "    \"{}\",", library.implementation))?;
    text += "];\n\n/// The objects in `preload`, and what else each is.\npub const PRELOADED: [(&str, &[&str]); 3] = [\n";
    for (major, runtime) in NODES {
        let names: Vec<String> = other_names(major).iter().map(|name| format!("\"{name}\"")).collect();
        writeln!(text, "    (\"{runtime}\", &[{}]),", names.join(", "))?;
    }
    text += "];\n";
    let aside: Vec<&Library> = libraries::all().iter().filter(|it| !it.folder.is_empty()).collect();
    ensure!(aside.len() == 1, "crates/loader knows one library in a folder of its own");
    let Library { folder, objects, implementation, .. } = aside[0];
    write!(
        text,
        "\n/// The folder, below that of our objects, of the libraries that refuse every call, for programs that would not start without \
         them.\npub const REFUSED: &str = \"{folder}\";\n\n\
         /// Its shells, each with the version node of its names.\npub const REFUSING: [(&str, &str); {}] = [\n",
        objects.len()
    )?;
    objects.iter().try_for_each(|it| writeln!(text, "    (\"{}\", \"{}\"),", it.file(), it.node()))?;
    write!(
        text,
        "];\n\n/// What is behind them, in the same folder.\npub const REFUSING_IMPLEMENTATION: &str = \"{implementation}\";\n"
    )?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_name_has_the_body_of_all_types() {
        assert_eq!(of_any_type("cusparseSgtsv2").as_deref(), Some("cusparseTgtsv2"));
        assert_eq!(of_any_type("cusparseZcsrilu02_analysis").as_deref(), Some("cusparseTcsrilu02_analysis"));
        assert_eq!(of_any_type("cusparseHpruneCsr2csr").as_deref(), Some("cusparseTpruneCsr2csr"));
        assert_eq!(of_any_type("cusolverDnSgetrf").as_deref(), Some("cusolverDnTgetrf"));
        for name in ["cusolverDnXgetrf", "cusparseXcoo2csr", "cusparseSDDMM", "cufftw", "fftw_malloc"] {
            assert_eq!(of_any_type(name), None, "{name}");
        }
    }
}
