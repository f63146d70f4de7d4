//! The driver's version in words. Programs read its first number as the branch (Ollama wants 570 and more for CUDA 12.8,
//! 580 for CUDA 13), so it goes with the CUDA version that the driver reports.

/// CUDA release → the driver branch that came with it. From 13.2 on the pairs are the order of NVIDIA's branches (R595, R610,
/// R615), not the word of a release note; programs compare only with older ones.
const BRANCHES: [(u32, u32); 15] = [
    (11080, 520),
    (12000, 525),
    (12010, 530),
    (12020, 535),
    (12030, 545),
    (12040, 550),
    (12050, 555),
    (12060, 560),
    (12080, 570),
    (12090, 575),
    (13000, 580),
    (13010, 590),
    (13020, 595),
    (13040, 610),
    (13050, 615),
];

/// `615.00` for CUDA 13.5. A release that is not known has the branch of the last one before it.
pub fn driver(cuda: u32) -> String {
    let branch =
        BRANCHES.iter().rev().find(|(since, _)| *since <= cuda).map_or(BRANCHES[0].1, |(_, branch)| *branch);
    format!("{branch}.00")
}

/// NVML puts CUDA's major before the driver's.
pub fn nvml(cuda: u32) -> String {
    format!("{}.{}", cuda / 1000, driver(cuda))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_goes_with_the_cuda_release() {
        assert_eq!(driver(12080), "570.00");
        assert_eq!(driver(13000), "580.00");
        assert_eq!(driver(13990), "615.00");
        assert_eq!(driver(10020), "520.00");
        assert_eq!(nvml(13000), "13.580.00");
    }

    /// What Ollama asks before it takes a CUDA 13 back end.
    #[test]
    fn what_we_report_by_default_passes_the_gates_of_today() {
        let text = driver(config::DEFAULT_DRIVER_VERSION);
        assert!(text.split('.').next().unwrap().parse::<u32>().unwrap() >= 580);
    }
}
