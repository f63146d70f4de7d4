//! `cudaway-comgr`: the process in which AMD's compiler runs. The driver starts it, keeps it for some requests, and lives on
//! when the compiler ends it. Standard input is the socket to the client; what the compiler prints goes to its output.

mod serve;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some(comgr::protocol::ARGUMENT) {
        let _ =
            writeln!(std::io::stderr(), "cudaway-comgr compiles for AMD GPUs; CUDAway starts it, not you");
        return ExitCode::FAILURE;
    }
    serve::settle();
    serve::run()
}
