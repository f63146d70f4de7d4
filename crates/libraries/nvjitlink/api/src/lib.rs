//! What nvJitLink's calls mean: PTX texts are linked as `cuLink*` does it, and what NVIDIA's would give as machine code is the image
//! that `cuModuleLoadData` takes. LTO IR is NVIDIA's own form of LLVM's bitcode, which nothing here reads: an error that says so.
//!
//! Who calls which name is generated into crates/libraries/nvjitlink/exports. No device is asked for anything.

mod api;
mod input;
mod link;
mod options;
mod result;

pub use api::{
    add_data, add_file, complete, create, destroy, error_log, error_log_size, info_log, info_log_size,
    linked_cubin, linked_cubin_size, not_linked, not_linked_size, version,
};
pub use result::Release;
