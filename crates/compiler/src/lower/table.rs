//! The opcode table: every instruction that is lowered, who lowers it, and what a guard on it means.
//!
//! What is not here becomes the diagnostic `instruction 'foo.bar' is not supported`. A family's own function takes the
//! modifiers one by one, so the table needs no list of them.

use super::function::Lowerer;
use super::instruction::{Instr, Lower};
use super::{
    atomic, barrier, bulk, call, cluster, compare, control, convert, copy, float, integer, launch_control,
    logic, matrix, mbarrier, memory, mma, special, stack, tcgen05, tensor, texture, video, video_simd, warp,
    wgmma, wmma,
};

/// What a guard predicate does to an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Its results are selected.
    Pure,
    /// It is jumped around.
    Impure,
    /// It is the condition of the branch.
    Branch,
}

type Handler = for<'x, 'l, 'i, 'a> fn(&'x mut Lowerer<'l, 'i, 'a>, &'x mut Instr<'i, 'a>) -> Lower;

#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) opcode: &'static str,
    pub(crate) effect: Effect,
    pub(crate) lower: Handler,
}

/// The row of an opcode, by its place in the table.
pub(crate) fn place(opcode: &str) -> Option<usize> {
    TABLE.binary_search_by(|row| row.opcode.cmp(opcode)).ok()
}

macro_rules! table {
    ($($opcode:literal $effect:ident $lower:path,)*) => {
        /// Sorted by opcode; a test says so.
        pub(crate) static TABLE: &[Row] =
            &[$(Row { opcode: $opcode, effect: Effect::$effect, lower: $lower },)*];
    };
}

table! {
    "abs"            Pure   integer::abs,
    "activemask"     Impure warp::activemask,
    "add"            Pure   integer::add,
    "addc"           Pure   integer::addc,
    "alloca"         Impure stack::alloca,
    "and"            Pure   logic::and,
    "applypriority"  Impure memory::hint,
    "atom"           Impure atomic::atom,
    "bar"            Impure barrier::bar,
    "barrier"        Impure barrier::barrier,
    "bfe"            Pure   integer::bfe,
    "bfi"            Pure   integer::bfi,
    "bfind"          Pure   integer::bfind,
    "bmsk"           Pure   integer::bmsk,
    "bra"            Branch control::bra,
    "brev"           Pure   integer::brev,
    "brkpt"          Impure control::brkpt,
    "brx"            Impure control::brx,
    "call"           Impure call::call,
    "clusterlaunchcontrol" Impure launch_control::clusterlaunchcontrol,
    "clz"            Pure   integer::clz,
    "cnot"           Pure   logic::cnot,
    "copysign"       Pure   float::copysign,
    "cos"            Pure   float::cos,
    "cp"             Impure copy::cp,
    "createpolicy"   Pure   memory::createpolicy,
    "cvt"            Pure   convert::cvt,
    "cvta"           Pure   memory::cvta,
    "discard"        Impure memory::hint,
    "div"            Pure   integer::div,
    "dp2a"           Pure   integer::dp2a,
    "dp4a"           Pure   integer::dp4a,
    "elect"          Impure warp::elect,
    "ex2"            Pure   float::ex2,
    "exit"           Impure control::exit,
    "fence"          Impure barrier::fence,
    "fma"            Pure   float::fma,
    "fns"            Pure   integer::fns,
    "getctarank"     Pure   cluster::getctarank,
    "griddepcontrol" Impure control::griddepcontrol,
    "isspacep"       Pure   memory::isspacep,
    "istypep"        Impure texture::istypep,
    "ld"             Impure memory::ld,
    "ldmatrix"       Impure matrix::ldmatrix,
    "ldu"            Impure memory::ld,
    "lg2"            Pure   float::lg2,
    "lop3"           Pure   logic::lop3,
    "mad"            Pure   integer::mad,
    "mad24"          Pure   integer::mad24,
    "madc"           Pure   integer::madc,
    "mapa"           Pure   cluster::mapa,
    "match"          Impure warp::match_,
    "max"            Pure   integer::max,
    "mbarrier"       Impure mbarrier::mbarrier,
    "membar"         Impure barrier::membar,
    "min"            Pure   integer::min,
    "mma"            Impure mma::mma,
    "mov"            Pure   memory::mov,
    "movmatrix"      Impure matrix::movmatrix,
    "mul"            Pure   integer::mul,
    "mul24"          Pure   integer::mul24,
    "multimem"       Impure bulk::multimem,
    "nanosleep"      Impure control::nanosleep,
    "neg"            Pure   integer::neg,
    "not"            Pure   logic::not,
    "or"             Pure   logic::or,
    "pmevent"        Impure special::pmevent,
    "popc"           Pure   integer::popc,
    "prefetch"       Impure memory::hint,
    "prefetchu"      Impure memory::hint,
    "prmt"           Pure   logic::prmt,
    "rcp"            Pure   float::rcp,
    "red"            Impure atomic::red,
    "redux"          Impure warp::redux,
    "rem"            Pure   integer::rem,
    "ret"            Impure control::ret,
    "rsqrt"          Pure   float::rsqrt,
    "sad"            Pure   integer::sad,
    "selp"           Pure   compare::selp,
    "set"            Pure   compare::set,
    "setmaxnreg"     Impure wgmma::setmaxnreg,
    "setp"           Pure   compare::setp,
    "shf"            Pure   logic::shf,
    "shfl"           Impure warp::shfl,
    "shl"            Pure   logic::shl,
    "shr"            Pure   logic::shr,
    "sin"            Pure   float::sin,
    "slct"           Pure   compare::slct,
    "sqrt"           Pure   float::sqrt,
    "st"             Impure memory::st,
    "stackrestore"   Impure stack::stackrestore,
    "stacksave"      Impure stack::stacksave,
    "stmatrix"       Impure matrix::stmatrix,
    "sub"            Pure   integer::sub,
    "subc"           Pure   integer::subc,
    "suld"           Impure texture::suld,
    "suq"            Impure texture::suq,
    "sured"          Impure texture::sured,
    "sust"           Impure texture::sust,
    "szext"          Pure   integer::szext,
    "tanh"           Pure   float::tanh,
    "tcgen05"        Impure tcgen05::tcgen05,
    "tensormap"      Impure tensor::tensormap,
    "testp"          Pure   float::testp,
    "tex"            Impure texture::tex,
    "tld4"           Impure texture::tld4,
    "trap"           Impure control::trap,
    "txq"            Impure texture::txq,
    "vabsdiff"       Pure   video::vabsdiff,
    "vabsdiff2"      Pure   video_simd::simd,
    "vabsdiff4"      Pure   video_simd::simd,
    "vadd"           Pure   video::vadd,
    "vadd2"          Pure   video_simd::simd,
    "vadd4"          Pure   video_simd::simd,
    "vavrg2"         Pure   video_simd::simd,
    "vavrg4"         Pure   video_simd::simd,
    "vmad"           Pure   video::vmad,
    "vmax"           Pure   video::vmax,
    "vmax2"          Pure   video_simd::simd,
    "vmax4"          Pure   video_simd::simd,
    "vmin"           Pure   video::vmin,
    "vmin2"          Pure   video_simd::simd,
    "vmin4"          Pure   video_simd::simd,
    "vote"           Impure warp::vote,
    "vset"           Pure   video::vset,
    "vset2"          Pure   video_simd::simd,
    "vset4"          Pure   video_simd::simd,
    "vshl"           Pure   video::vshl,
    "vshr"           Pure   video::vshr,
    "vsub"           Pure   video::vsub,
    "vsub2"          Pure   video_simd::simd,
    "vsub4"          Pure   video_simd::simd,
    "wgmma"          Impure wgmma::wgmma,
    "wmma"           Impure wmma::wmma,
    "xor"            Pure   logic::xor,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_every_row_is_found() {
        for row in TABLE {
            assert!(place(row.opcode).is_some(), "'{}' is out of order", row.opcode);
        }
    }
}
