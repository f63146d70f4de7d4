//! Special registers.

use super::dialect::Need;
use super::function::Lowerer;
use super::instruction::{Instr, Lower};
use crate::ir::{Special, Ty};

/// The special register of that name, if there is one.
pub(super) fn find(name: &str, member: Option<&str>) -> Option<Special> {
    let name = name.strip_prefix('%')?;
    if let Some(member) = member {
        let axis = match member {
            "x" | "r" => 0,
            "y" | "g" => 1,
            "z" | "b" => 2,
            _ => return None,
        };
        return Some(match name {
            "tid" => Special::Tid(axis),
            "ntid" => Special::Ntid(axis),
            "ctaid" => Special::Ctaid(axis),
            "nctaid" => Special::Nctaid(axis),
            "clusterid" => Special::ClusterId(axis),
            "nclusterid" => Special::NClusterId(axis),
            "cluster_ctaid" => Special::ClusterCtaid(axis),
            "cluster_nctaid" => Special::ClusterNctaid(axis),
            _ => return None,
        });
    }
    Some(match name {
        "laneid" => Special::LaneId,
        "warpid" => Special::WarpId,
        "smid" => Special::SmId,
        "nsmid" => Special::NSmId,
        "gridid" => Special::GridId,
        "current_graph_exec" => Special::CurrentGraph,
        "lanemask_eq" => Special::LaneMaskEq,
        "lanemask_le" => Special::LaneMaskLe,
        "lanemask_lt" => Special::LaneMaskLt,
        "lanemask_ge" => Special::LaneMaskGe,
        "lanemask_gt" => Special::LaneMaskGt,
        "clock" => Special::Clock,
        "clock_hi" => Special::ClockHi,
        "clock64" => Special::Clock64,
        "globaltimer" => Special::GlobalTimer,
        "globaltimer_lo" => Special::GlobalTimerLo,
        "globaltimer_hi" => Special::GlobalTimerHi,
        "dynamic_smem_size" => Special::DynamicSmemSize,
        "total_smem_size" => Special::TotalSmemSize,
        "aggr_smem_size" => Special::AggrSmemSize,
        "cluster_ctarank" => Special::ClusterCtaRank,
        "cluster_nctarank" => Special::ClusterNctaRank,
        "is_explicit_cluster" => Special::IsExplicitCluster,
        _ => {
            let number = name.strip_prefix("envreg")?.parse().ok().filter(|&number| number < 32)?;
            Special::EnvReg(number)
        }
    })
}

/// Whether it is a vector, as `%tid` is. Its fourth element is zero.
pub(super) fn is_vector(name: &str) -> bool {
    find(name, Some("x")).is_some()
}

/// Registers that have one value here. `%nwarpid`: how many warps a multiprocessor holds, whose 2,048 threads
/// CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR tells. Zero: performance counters, whose contents the manual leaves undefined, and
/// the shared memory that the system keeps for itself, of which there is none.
pub(super) fn constant(name: &str) -> Option<u128> {
    if name == "%nwarpid" {
        return Some(2048 / 32);
    }
    let counter = name.strip_prefix("%pm").map(|it| it.strip_suffix("_64").unwrap_or(it));
    let is_counter =
        counter.is_some_and(|number| matches!(number, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7"));
    (is_counter || name.starts_with("%reserved_smem_offset_")).then_some(0)
}

/// What a source needs to read it, where that is more than any source has.
pub(super) fn need(special: Special) -> Option<&'static Need> {
    static CLUSTERS: Need = Need::new("7.8", "90");
    static AGGREGATE: Need = Need::new("8.1", "90");
    static CLOCK_HI: Need = Need::new("5.0", "0");
    static GRAPH: Need = Need::new("8.0", "50");
    static SIZES: Need = Need::new("4.1", "0");
    match special {
        Special::ClusterId(_)
        | Special::NClusterId(_)
        | Special::ClusterCtaid(_)
        | Special::ClusterNctaid(_)
        | Special::ClusterCtaRank
        | Special::ClusterNctaRank
        | Special::IsExplicitCluster => Some(&CLUSTERS),
        Special::AggrSmemSize => Some(&AGGREGATE),
        Special::ClockHi => Some(&CLOCK_HI),
        Special::CurrentGraph => Some(&GRAPH),
        Special::TotalSmemSize | Special::DynamicSmemSize => Some(&SIZES),
        _ => None,
    }
}

/// The same for one that has one value here.
pub(super) fn need_of_constant(name: &str) -> Option<&'static Need> {
    static RESERVED: Need = Need::new("7.6", "80");
    name.starts_with("%reserved_smem_offset_").then_some(&RESERVED)
}

/// The type of a special register.
pub(super) fn ty(special: Special) -> Ty {
    match special {
        Special::GridId | Special::CurrentGraph | Special::Clock64 | Special::GlobalTimer => Ty::B64,
        Special::IsExplicitCluster => Ty::Pred,
        _ => Ty::B32,
    }
}

/// `pmevent`: triggers a performance monitor, of which there is none.
pub(super) fn pmevent<'i, 'a>(_: &mut Lowerer<'_, 'i, 'a>, i: &mut Instr<'i, 'a>) -> Lower {
    i.take("mask");
    i.done()?;
    i.operand(0).map(|_| ())
}
