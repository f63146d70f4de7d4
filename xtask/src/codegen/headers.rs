//! `cargo xtask codegen --headers`: NVIDIA's public headers → facts of ours.
//!
//! Rule: only names, signatures, layouts and values leave this file; no header text and no vendor comment does.
//! The headers come from PyPI wheels into `.cache/headers` and stay there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use bindgen::callbacks::{DeriveTrait, ImplementsTrait, ParseCallbacks};
use quote::ToTokens;
use syn::{ForeignItem, Item, Type};

use super::facts::{Param, Signature, Signatures};
use crate::setup::root;

/// What is read: (PyPI requirement, folder of the headers inside the wheel).
const WHEELS: &[(&str, &str)] = &[
    ("nvidia-cuda-runtime==13.5.*", "13"),
    ("nvidia-cuda-crt==13.5.*", "13"),
    ("nvidia-cuda-profiler-api==13.5.*", "13"),
    ("nvidia-cuda-runtime-cu12==12.9.*", "12"),
    ("nvidia-cuda-runtime-cu11==11.8.*", "11"),
    ("nvidia-nvml-dev==13.4.*", "nvml"),
    // 444 MB, nearly all of it the library, which is not looked at.
    ("nvidia-cublas==13.10.*", "13"),
];

/// What CUDA's headers take from other projects' headers: of the types of GL, EGL and VDPAU only the widths matter here.
const FOREIGN_HEADERS: &[(&str, &str)] = &[
    // CCCL's, asked for by cuda_fp16.h for bodies that nobody reads here.
    (
        "nv/target",
        "#define NV_IF_TARGET(...)\n#define NV_IF_ELSE_TARGET(...)\n#define NV_DISPATCH_TARGET(...)\n",
    ),
    ("GL/gl.h", "typedef unsigned int GLuint; typedef unsigned int GLenum;\n"),
    (
        "EGL/egl.h",
        "#pragma once\ntypedef int EGLint; typedef unsigned int EGLBoolean; typedef void *EGLDisplay;\n",
    ),
    (
        "EGL/eglext.h",
        "#pragma once\ntypedef void *EGLStreamKHR; typedef void *EGLImageKHR; typedef void *EGLSyncKHR;\n",
    ),
    (
        "vdpau/vdpau.h",
        "#pragma once\n#include <stdint.h>\ntypedef uint32_t VdpDevice; typedef int VdpStatus; typedef uint32_t VdpFuncId;\n\
         typedef uint32_t VdpVideoSurface; typedef uint32_t VdpOutputSurface;\n\
         typedef VdpStatus VdpGetProcAddress(VdpDevice, VdpFuncId, void **);\n",
    ),
];

/// Reads the headers and rewrites `crates/cuda-abi/src/generated` and the signatures under `tools/data/cuda`.
pub fn run() -> Result<()> {
    let include = fetch_headers()?;

    let driver = parse(&bind(
        Language::C,
        "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <cudaProfiler.h>\n#include <cudaGL.h>\n\
         #include <cudaEGL.h>\n#include <vdpau/vdpau.h>\n#include <cudaVDPAU.h>\n",
        &include["13"],
        &["CU.*", "cu.*", "CUDA_.*"],
        &[],
    )?)?;
    super::facts::write_driver_signatures(&driver.signatures)?;
    write_module(
        "crates/cuda-abi/src/generated/driver.rs",
        "CUDA driver types of cuda.h 13.5, old spellings included.",
        "",
        &driver.items,
    )?;

    // With this macro the header declares the first spelling of each call beside the later ones.
    let nvml = parse(&bind(
        Language::C,
        "#define NVML_NO_UNVERSIONED_FUNC_DEFS\n#include <nvml.h>\n",
        &include["nvml"],
        &["nvml.*", "NVML.*"],
        &[],
    )?)?;
    super::facts::write_nvml_signatures(&nvml.signatures)?;
    write_module("crates/nvml/src/generated/types.rs", "NVML types of nvml.h 13.4.", "", &nvml.items)?;

    // cublas.h has the names of the first API; cublasXt.h would bring the second API's macros, which cublas.h refuses.
    let blas = parse(&bind(
        Language::Cpp,
        "#include <cublas.h>\n#include <cublasLt.h>\n#define CUBLAS_V2_H_\n#include <cublasXt.h>\n",
        &include["13"],
        &["cublas.*", "CUBLAS.*"],
        &[
            "cudaStream_t",
            "CUstream_st",
            "cudaDataType.*",
            "cublasDataType_t",
            "float2",
            "double2",
            "cu.*Complex",
            "__half",
            "__nv_bfloat16",
            "FILE",
            "_IO_.*",
            "__off.*",
        ],
    )?)?;
    super::facts::write_blas_signatures(&blas.signatures)?;
    write_module(
        "crates/libraries/cublas/api/src/generated/types.rs",
        "cuBLAS and cuBLASLt types of 13.10.",
        "",
        &blas.items,
    )?;

    // A runtime stream is a driver stream: what both headers name is the driver's.
    let driver_names: Vec<&str> = driver.items.iter().map(|(name, _)| name.as_str()).collect();
    let mut majors = BTreeMap::new();
    for major in ["11", "12", "13"] {
        let header = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>\n\
             #include <cuda_gl_interop.h>\n#include <cuda_egl_interop.h>\n#include <cuda_vdpau_interop.h>\n";
        let bound = bind(
            Language::C,
            header,
            &include[major],
            &["cuda.*", "CUDA.*", "CUDART.*", "dim3", "u?int[1-4]", "texture.*", "surface.*"],
            &driver_names,
        )?;
        majors.insert(major, parse(&bound)?);
    }
    super::facts::write_runtime_signatures(
        &majors.iter().map(|(major, parsed)| ((*major).to_owned(), parsed.signatures.clone())).collect(),
    )?;
    write_runtime_modules(majors)
}

/// Downloads and unpacks the wheels once; gives the include path of each major.
fn fetch_headers() -> Result<BTreeMap<&'static str, Vec<PathBuf>>> {
    let cache = root().join(".cache/headers");
    let wheels = cache.join("wheels");
    std::fs::create_dir_all(&wheels)?;
    let python = crate::setup::venv()?;
    let mut include: BTreeMap<&'static str, Vec<PathBuf>> = BTreeMap::new();
    for (requirement, major) in WHEELS {
        let name = requirement.split("==").next().unwrap_or(requirement);
        let unpacked = cache.join(name);
        if !unpacked.join("unpacked").exists() {
            eprintln!("codegen: downloading {requirement} from PyPI (headers are read, never committed)");
            let downloads = wheels.join(name);
            run_command(
                Command::new(&python)
                    .args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"])
                    .arg(&downloads)
                    .arg(requirement),
            )?;
            let wheel = std::fs::read_dir(&downloads)?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
                .with_context(|| format!("pip brought no wheel for {requirement}"))?;
            run_command(Command::new(&python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
            std::fs::write(unpacked.join("unpacked"), "")?;
        }
        let mut folders = Vec::new();
        find_include(&unpacked, &mut folders)?;
        include.entry(major).or_default().extend(folders);
    }
    let foreign = cache.join("foreign");
    for (path, text) in FOREIGN_HEADERS {
        let path = foreign.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(&foreign))?;
        std::fs::write(path, text)?;
    }
    // The macros of crt/host_defines.h, and the profiler's two calls, are the same in every major.
    for folders in include.values_mut() {
        folders.push(foreign.clone());
        for wheel in ["nvidia-cuda-crt", "nvidia-cuda-profiler-api"] {
            find_include(&cache.join(wheel), folders)?;
        }
    }
    Ok(include)
}

fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("could not start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn find_include(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name == "include") {
                found.push(path);
            } else {
                find_include(&path, found)?;
            }
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Callbacks;

impl ParseCallbacks for Callbacks {
    /// The driver's types are plain data wherever the runtime embeds one.
    fn blocklisted_type_implements_trait(&self, _name: &str, derive: DeriveTrait) -> Option<ImplementsTrait> {
        match derive {
            DeriveTrait::Copy | DeriveTrait::Debug => Some(ImplementsTrait::Yes),
            _ => Some(ImplementsTrait::No),
        }
    }
}

/// Functions that take half precision are declared for C++ only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Cpp,
}

fn bind(
    language: Language,
    header: &str,
    include: &[PathBuf],
    allow: &[&str],
    block: &[&str],
) -> Result<String> {
    if std::env::var_os("LIBCLANG_PATH").is_none() {
        // SAFETY: xtask has one thread, and nothing read the environment through libc yet.
        unsafe { std::env::set_var("LIBCLANG_PATH", "/usr/lib/llvm-19/lib") };
    }
    let mut builder = bindgen::Builder::default()
        .header_contents("cudaway_headers.h", header)
        .clang_arg("--target=x86_64-unknown-linux-gnu")
        .use_core()
        .generate_comments(false)
        .layout_tests(true)
        .derive_default(true)
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: false })
        .formatter(bindgen::Formatter::None)
        .allowlist_recursively(true)
        .parse_callbacks(Box::new(Callbacks));
    if language == Language::Cpp {
        builder = builder.clang_args(["-xc++", "-Wno-return-type"]);
    }
    for folder in include {
        builder = builder.clang_arg(format!("-I{}", folder.display()));
    }
    for pattern in allow {
        builder = builder.allowlist_item(pattern);
    }
    for pattern in block {
        builder = builder.blocklist_item(pattern);
    }
    Ok(builder.generate().context("bindgen could not read the headers")?.to_string())
}

/// One header set as bindgen saw it: the items of one name, in order, and the functions apart.
struct Parsed {
    items: Vec<(String, Vec<Item>)>,
    signatures: Signatures,
}

fn parse(text: &str) -> Result<Parsed> {
    let file = syn::parse_file(text)?;
    let mut items: Vec<(String, Vec<Item>)> = Vec::new();
    let mut signatures = Signatures::new();
    for item in file.items {
        if let Item::ForeignMod(block) = &item {
            for foreign in &block.items {
                if let ForeignItem::Fn(function) = foreign {
                    signatures.insert(function.sig.ident.to_string(), signature(&function.sig));
                }
            }
            continue;
        }
        let name = owner(&item).with_context(|| format!("unexpected item: {}", item.to_token_stream()))?;
        match items.iter_mut().find(|(known, _)| *known == name) {
            Some((_, parts)) => parts.push(item),
            None => items.push((name, vec![item])),
        }
    }
    Ok(Parsed { items, signatures })
}

/// The C name an item belongs to: `impl X`, `struct X` and the layout asserts of X travel together.
fn owner(item: &Item) -> Option<String> {
    Some(match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Const(item) if item.ident == "_" => {
            let text = item.to_token_stream().to_string();
            text.split("Size of ").nth(1)?.split('"').next()?.to_owned()
        }
        Item::Const(item) => item.ident.to_string(),
        Item::Impl(item) => item.self_ty.to_token_stream().to_string().split(' ').next()?.to_owned(),
        Item::Use(item) => {
            let text = item.to_token_stream().to_string();
            text.trim_end_matches([';', ' ']).rsplit(' ').next()?.to_owned()
        }
        _ => return None,
    })
}

fn signature(function: &syn::Signature) -> Signature {
    let mut params = Vec::new();
    for (index, input) in function.inputs.iter().enumerate() {
        if let syn::FnArg::Typed(typed) = input {
            let name = typed.pat.to_token_stream().to_string();
            let name = if name == "_" { format!("arg{index}") } else { name };
            params.push(Param { name, ty: type_text(&typed.ty), flow: None });
        }
    }
    let returns = match &function.output {
        syn::ReturnType::Default => "()".to_owned(),
        syn::ReturnType::Type(_, ty) => type_text(ty),
    };
    Signature { params, returns }
}

/// `* mut :: core :: ffi :: c_void` as a person writes it: `*mut c_void`.
pub fn type_text(ty: &Type) -> String {
    let mut text = ty.to_token_stream().to_string();
    for (from, to) in [
        (":: core :: ffi :: ", ""),
        (":: core :: option :: ", ""),
        ("* mut ", "*mut "),
        ("* const ", "*const "),
        (" [", "["),
        (" ; ", "; "),
        (" < ", "<"),
        (" >", ">"),
        ("fn (", "fn("),
        (" : ", ": "),
        (" , ", ", "),
        (" ,", ","),
        (", )", ")"),
        (",)", ")"),
    ] {
        text = text.replace(from, to);
    }
    text
}

fn write_module(path: &str, about: &str, uses: &str, items: &[(String, Vec<Item>)]) -> Result<()> {
    let file = syn::File {
        shebang: None,
        attrs: Vec::new(),
        items: items.iter().flat_map(|(_, parts)| parts.clone()).collect(),
    };
    let text = format!(
        "//! {about}\n//! Generated by `cargo xtask codegen --headers`; do not edit.\n\n{uses}{}",
        prettyplease::unparse(&file)
    );
    let path = root().join(path);
    std::fs::create_dir_all(path.parent().context("a path has a folder")?)?;
    std::fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
}

/// What is the same in all three majors goes to `shared`; a module per major holds the rest.
fn write_runtime_modules(mut majors: BTreeMap<&str, Parsed>) -> Result<()> {
    let text =
        |parts: &[Item]| parts.iter().map(|item| item.to_token_stream().to_string()).collect::<String>();

    // An enum never renumbers a name (facts/abi.md §3), so the union of the majors' names serves all.
    let mut constants: BTreeMap<String, Vec<syn::ImplItem>> = BTreeMap::new();
    for major in ["13", "12", "11"] {
        for (name, parts) in &majors[major].items {
            for part in parts {
                let Item::Impl(block) = part else { continue };
                if block.trait_.is_some()
                    || !block.items.iter().all(|item| matches!(item, syn::ImplItem::Const(_)))
                {
                    continue;
                }
                let known = constants.entry(name.clone()).or_default();
                for item in &block.items {
                    let syn::ImplItem::Const(constant) = item else { continue };
                    let same_name = known.iter().any(
                        |other| matches!(other, syn::ImplItem::Const(other) if other.ident == constant.ident),
                    );
                    if !same_name {
                        known.push(item.clone());
                    }
                }
            }
        }
    }
    // An enum that has a negative value in one major is signed in all: the width is the same.
    let is_constants = |part: &Item| {
        matches!(part, Item::Impl(block) if block.trait_.is_none()
        && block.items.iter().all(|item| matches!(item, syn::ImplItem::Const(_))))
    };
    for (name, constants) in constants {
        let variants: Vec<Vec<Item>> = ["13", "12", "11"]
            .iter()
            .filter_map(|major| majors[major].items.iter().find(|(known, _)| *known == name))
            .map(|(_, parts)| parts.clone())
            .collect();
        let mut chosen =
            variants.iter().find(|parts| text(parts).contains("c_int )")).unwrap_or(&variants[0]).clone();
        let mut seen = false;
        chosen.retain_mut(|part| match part {
            Item::Impl(block) if is_constants(&Item::Impl(block.clone())) => {
                block.items = constants.clone();
                !std::mem::replace(&mut seen, true)
            }
            _ => true,
        });
        for parsed in majors.values_mut() {
            if let Some((_, parts)) = parsed.items.iter_mut().find(|(known, _)| *known == name) {
                parts.clone_from(&chosen);
            }
        }
    }

    // The name → text of each major; shared when every major that has the name agrees, closed over references.
    let texts: BTreeMap<&str, BTreeMap<String, String>> = majors
        .iter()
        .map(|(major, parsed)| {
            (*major, parsed.items.iter().map(|(name, parts)| (name.clone(), text(parts))).collect())
        })
        .collect();
    let names: BTreeSet<String> = texts.values().flat_map(|items| items.keys().cloned()).collect();
    let mut shared: BTreeSet<String> = names
        .iter()
        .filter(|name| {
            let variants: BTreeSet<&String> = texts.values().filter_map(|items| items.get(*name)).collect();
            variants.len() == 1
        })
        .cloned()
        .collect();
    loop {
        let separate: BTreeSet<&String> = names.difference(&shared).collect();
        let falls: Vec<String> = shared
            .iter()
            .filter(|name| {
                texts.values().filter_map(|items| items.get(*name)).any(|text| {
                    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                        .any(|word| word != name.as_str() && separate.contains(&word.to_owned()))
                })
            })
            .cloned()
            .collect();
        if falls.is_empty() {
            break;
        }
        for name in falls {
            shared.remove(&name);
        }
    }

    let mut common: Vec<(String, Vec<Item>)> = Vec::new();
    for major in ["13", "12", "11"] {
        for (name, parts) in &majors[major].items {
            if shared.contains(name) && !common.iter().any(|(known, _)| known == name) {
                common.push((name.clone(), parts.clone()));
            }
        }
    }
    let folder = "crates/cuda-abi/src/generated/runtime";
    write_module(
        &format!("{folder}/shared.rs"),
        "CUDA runtime types that are the same in 11.8, 12.9 and 13.5; an enum has the names of all three.",
        "use crate::driver::*;\n\n",
        &common,
    )?;
    for (major, parsed) in &majors {
        let own: Vec<_> = parsed.items.iter().filter(|(name, _)| !shared.contains(name)).cloned().collect();
        if own.is_empty() {
            bail!("runtime {major} has nothing of its own: the comparison is broken");
        }
        write_module(
            &format!("{folder}/v{major}.rs"),
            &format!(
                "CUDA runtime {major} types that differ between the majors; the rest comes from `shared`."
            ),
            "pub use super::shared::*;\n\n",
            &own,
        )?;
    }
    Ok(())
}
