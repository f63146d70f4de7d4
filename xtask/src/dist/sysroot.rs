//! The linker's view of an older glibc, so that what is built here starts on systems of that time: stub libraries and start
//! files from Zig's compiler, which can make those of every release (a Python wheel, used for nothing else).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::setup::{self, root};

const ZIG: &str = "ziglang==0.17.1";

#[derive(Clone)]
pub struct Sysroot {
    /// `2.17`
    pub glibc: &'static str,
}

impl Sysroot {
    /// A C compiler that links against it, before whatever libraries it is told of.
    pub fn linker(&self) -> Result<PathBuf> {
        Ok(self.folder()?.join("cc"))
    }

    /// What an object of this machine's static libraries needs besides.
    pub fn newer_glibc(&self) -> Result<PathBuf> {
        Ok(self.folder()?.join("newer_glibc.o"))
    }

    /// Its libraries and start files, made if they are not there.
    pub fn folder(&self) -> Result<PathBuf> {
        let dir = root().join("target/sysroot").join(format!("glibc-{}", self.glibc));
        if dir.exists() {
            return Ok(dir);
        }
        setup::wheels(&[ZIG])?;
        println!("setup: stub libraries of glibc {} into {}", self.glibc, dir.display());
        let aside = dir.with_extension(std::process::id().to_string());
        fs::create_dir_all(&aside)?;
        self.fill(&aside)?;
        add_compiler(&aside, &dir)?;
        fs::rename(&aside, &dir)?;
        Ok(dir)
    }

    /// Has Zig link a program and takes the libraries and the start files that it linked with.
    fn fill(&self, dir: &Path) -> Result<()> {
        let source = dir.join("main.c");
        fs::write(&source, "int main(void) { return 0; }\n")?;
        let cache = root().join("target/sysroot/zig");
        let mut zig = Command::new(setup::venv()?);
        zig.args(["-m", "ziglang", "cc", "-v", "-pie", "-target"]);
        zig.arg(format!("x86_64-linux-gnu.{}", self.glibc)).arg(&source).arg("-o").arg(dir.join("main"));
        zig.args(["-lm", "-lpthread", "-ldl", "-lrt", "-lutil"]);
        let said = zig.env("ZIG_GLOBAL_CACHE_DIR", &cache).env("ZIG_LOCAL_CACHE_DIR", &cache).output();
        let said = said.context("could not start Zig")?;
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        let linked = |name: &str| {
            let wanted = format!("/{name}");
            let path = said.split_whitespace().find(|word| word.ends_with(&wanted));
            path.map(PathBuf::from).with_context(|| format!("Zig did not link {name}:\n{said}"))
        };
        for name in ["Scrt1.o", "libc_nonshared.a"] {
            fs::copy(linked(name)?, dir.join(name))?;
        }
        let stubs = linked("libc.so.6")?;
        for stub in fs::read_dir(stubs.parent().context("a folder")?)? {
            let stub = stub?;
            let name = stub.file_name().to_string_lossy().into_owned();
            let Some((short, _)) = name.split_once(".so.") else { continue };
            fs::copy(stub.path(), dir.join(&name))?;
            // What is not in the shared library of that time is linked in, as the system's own script has it.
            let more = if short == "libc" { " libc_nonshared.a AS_NEEDED ( libld.so.2 )" } else { "" };
            fs::write(dir.join(format!("{short}.so")), format!("GROUP ( {name}{more} )\n"))?;
        }
        ensure!(dir.join("libc.so").exists(), "Zig made no libc.so.6 in {}", stubs.display());
        Ok(())
    }
}

/// The start files of `dir` and its libraries come first. This machine's libgcc_s.so.1 wants this machine's glibc; where the
/// objects will run there is another of both.
fn add_compiler(aside: &Path, dir: &Path) -> Result<()> {
    let dir = dir.display();
    let script = format!("#!/bin/sh\nexec cc '-B{dir}' '-L{dir}' -Wl,--allow-shlib-undefined \"$@\"\n");
    fs::write(aside.join("cc"), script)?;
    fs::set_permissions(aside.join("cc"), fs::Permissions::from_mode(0o755))?;
    compile_newer_glibc(&aside.join("newer_glibc.o"))
}

/// What objects that run with an older glibc have in place of newer functions.
pub fn compile_newer_glibc(at: &Path) -> Result<()> {
    let mut compile = Command::new("cc");
    compile.args(["-c", "-O2", "-fPIC", "-x", "c"]).arg(root().join("xtask/src/dist/newer_glibc.c"));
    setup::run(compile.arg("-o").arg(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prints how many frames each of five calls adds, and that there are some below them.
    const COUNTS_FRAMES: &str = r#"
        #include <stdio.h>
        #include <unwind.h>
        static _Unwind_Reason_Code count(struct _Unwind_Context *context, void *n)
        {
            ++*(int *)n;
            return _URC_NO_REASON;
        }
        __attribute__((noinline)) int frames(int more)
        {
            int n = 0;
            if (more)
                n = frames(more - 1);
            else
                _Unwind_Backtrace(count, &n);
            __asm__ volatile("" : "+r"(n));
            return n;
        }
        int main(void)
        {
            int n = frames(0);
            printf("%d %s\n", frames(5) - n, n > 2 ? "in main and who called it" : "nothing below");
        }"#;

    #[test]
    fn what_stands_for_a_newer_glibc_finds_the_frames_of_a_program() {
        let folder = testkit::temporary().unwrap();
        let [source, newer, program] =
            ["frames.c", "newer_glibc.o", "frames"].map(|name| folder.path().join(name));
        fs::write(&source, COUNTS_FRAMES).unwrap();
        compile_newer_glibc(&newer).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-static-libgcc"]).arg(&source).arg(&newer).arg("-o").arg(&program);
        setup::run(&mut compile).unwrap();
        assert_eq!(setup::said(&mut Command::new(&program)).unwrap(), "5 in main and who called it");
        let symbols = setup::said(Command::new("nm").arg(&program)).unwrap();
        assert!(symbols.lines().any(|line| line.ends_with(" t _dl_find_object")), "{symbols}");
    }
}
