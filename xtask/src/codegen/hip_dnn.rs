//! cuDNN on AMD GPUs: which of its calls MIOpen does, which our own kernels, and what of them is left to our own code on copies. Bodies ask
//! both by hand.

use std::collections::BTreeMap;

use anyhow::Result;

use super::facts::{self, Signatures};

const SIGNATURES: &str = "tools/data/cudnn/cudnn.json";

/// Calls with what MIOpen does of them.
const BY_MIOPEN: [(&[&str], &str); 13] = [
    (
        &["cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"],
        "alpha 1, beta 0, no filters turned round, `float`, half and bfloat16 computed in `float`, all tensors by channels or all with channels last, results apart from what is read",
    ),
    (
        &["cudnnConvolutionBiasActivationForward"],
        "a convolution as it makes them, then sums and an activation: alpha1 1, `float` and half by channels",
    ),
    (&["cudnnConvolutionBackwardBias"], "alpha 1, beta 0, by channels"),
    (
        &[
            "cudnnGetConvolutionForwardWorkspaceSize",
            "cudnnGetConvolutionBackwardDataWorkspaceSize",
            "cudnnGetConvolutionBackwardFilterWorkspaceSize",
            "cudnnGetConvolutionForwardAlgorithm_v7",
            "cudnnGetConvolutionBackwardDataAlgorithm_v7",
            "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
            "cudnnFindConvolutionForwardAlgorithm",
            "cudnnFindConvolutionForwardAlgorithmEx",
            "cudnnFindConvolutionBackwardDataAlgorithm",
            "cudnnFindConvolutionBackwardDataAlgorithmEx",
            "cudnnFindConvolutionBackwardFilterAlgorithm",
            "cudnnFindConvolutionBackwardFilterAlgorithmEx",
        ],
        "of convolutions that it makes",
    ),
    (
        &["cudnnActivationForward", "cudnnActivationBackward"],
        "alpha 1, beta 0, sigmoid, tanh, ELU, and ReLU and clipped ReLU that keep no NaN",
    ),
    (&["cudnnSoftmaxForward", "cudnnSoftmaxBackward"], "four sizes, by channels"),
    (
        &["cudnnPoolingForward", "cudnnPoolingBackward"],
        "alpha 1, beta 0, by channels, and of the largest those that keep no NaN",
    ),
    (
        &["cudnnLRNCrossChannelForward", "cudnnLRNCrossChannelBackward"],
        "alpha 1, beta 0, four sizes, by channels",
    ),
    (
        &[
            "cudnnBatchNormalizationForwardInference",
            "cudnnBatchNormalizationForwardTraining",
            "cudnnBatchNormalizationForwardTrainingEx",
            "cudnnBatchNormalizationBackward",
            "cudnnBatchNormalizationBackwardEx",
            "cudnnNormalizationForwardInference",
            "cudnnNormalizationForwardTraining",
            "cudnnNormalizationBackward",
        ],
        "alphas 1, betas 0, by channels, with nothing behind it",
    ),
    (
        &["cudnnAddTensor", "cudnnOpTensor"],
        "sums, products, least and largest in `float` that keep no NaN, by channels, four or five sizes; half where factors are half's numbers; beta of sums of two is not 0",
    ),
    (
        &["cudnnSetTensor", "cudnnScaleTensor"],
        "by channels, up to five sizes; bfloat16 is set alone, half too",
    ),
    (
        &["cudnnReduceTensor", "cudnnGetReductionWorkspaceSize"],
        "computed in `float`, without places, by channels, up to six sizes, not `MUL_NO_ZEROS`",
    ),
    (
        &["cudnnBackendExecute"],
        "operation by operation, as the calls above take them: convolutions in three directions; resampling, and its gradient of the largest without places; pointwise sums, differences and products of tensors, tanh, sigmoid, ELU, and ReLU and clipped ReLU that keep no NaN and have no slope below, and their gradients that are told by arguments; reductions of whole sizes; softmax without statistics and sinks; batch norms with a bias that are trained on, and their gradients; all tensors of an operation of one type, factors 1",
    ),
];

/// Calls with what our own kernels do of them.
const BY_KERNELS: [(&[&str], &str); 9] = [
    (
        &["cudnnConvolutionForward", "cudnnConvolutionBackwardData", "cudnnConvolutionBackwardFilter"],
        "`float`, half and bfloat16, results apart from what is read",
    ),
    (
        &[
            "cudnnActivationForward",
            "cudnnActivationBackward",
            "cudnnSoftmaxForward",
            "cudnnSoftmaxBackward",
            "cudnnTransformTensor",
            "cudnnAddTensor",
            "cudnnOpTensor",
            "cudnnSetTensor",
            "cudnnScaleTensor",
        ],
        "`float`, half and bfloat16, any strides",
    ),
    (
        &["cudnnConvolutionBackwardBias", "cudnnReduceTensor"],
        "the same types and strides, without places, results apart from what is read",
    ),
    (
        &[
            "cudnnBatchNormalizationForwardInference",
            "cudnnBatchNormalizationForwardTraining",
            "cudnnBatchNormalizationForwardTrainingEx",
            "cudnnBatchNormalizationBackward",
            "cudnnBatchNormalizationBackwardEx",
            "cudnnNormalizationForwardInference",
            "cudnnNormalizationForwardTraining",
            "cudnnNormalizationBackward",
        ],
        "`float`, half and bfloat16, any strides, with sums and activations behind them too",
    ),
    (
        &["cudnnConvolutionBiasActivationForward"],
        "`float`, half and bfloat16, whose sums stay `float` until the activation is done",
    ),
    (
        &["cudnnPoolingForward", "cudnnPoolingBackward"],
        "`float`, half and bfloat16, any strides, results apart from what is read",
    ),
    (
        &[
            "cudnnRNNForward",
            "cudnnRNNForwardInference",
            "cudnnRNNForwardInferenceEx",
            "cudnnRNNForwardTraining",
            "cudnnRNNForwardTrainingEx",
            "cudnnRNNBackwardData",
            "cudnnRNNBackwardDataEx",
            "cudnnRNNBackwardData_v8",
            "cudnnRNNBackwardWeights",
            "cudnnRNNBackwardWeightsEx",
            "cudnnRNNBackwardWeights_v8",
        ],
        "`float`, half and bfloat16, computed in `float`",
    ),
    (
        &["cudnnBackendExecute"],
        "operation by operation, where tensors lie by strides: convolutions in three directions; products of matrices, with limits too; pointwise operations of every mode; reductions; softmax with statistics and sinks; normalizations of every mode and their gradients, also in parts; pooling and its gradients, with places too; joined, parted, reshaped and transposed tensors, rows gathered from pages; rotary positions; random numbers; masks along a diagonal; attention as one operation and its gradient, with lengths, sinks, graphs for scores and, on the way forward, dropout",
    ),
    (
        &["cudnnBackendPopulateCudaGraph", "cudnnBackendUpdateCudaGraph"],
        "plans of which they have each operation, a node for each launch",
    ),
];

/// Who answers on an AMD GPU.
pub struct OnHip {
    signatures: Signatures,
    by_miopen: BTreeMap<&'static str, &'static str>,
    by_kernels: BTreeMap<&'static str, &'static str>,
}

/// Each name with what is said of it.
fn by_name(table: &[(&'static [&'static str], &'static str)]) -> BTreeMap<&'static str, &'static str> {
    table.iter().flat_map(|(names, what)| names.iter().map(move |name| (*name, *what))).collect()
}

impl OnHip {
    pub fn read() -> Result<OnHip> {
        let (by_miopen, by_kernels) = (by_name(&BY_MIOPEN), by_name(&BY_KERNELS));
        Ok(OnHip { signatures: facts::read_json(SIGNATURES)?, by_miopen, by_kernels })
    }

    /// What stands in the table for a name that is answered so on the CPU device.
    pub fn answer(&self, name: &str, on_cpu: &str) -> String {
        let takes_handle = self
            .signatures
            .get(name)
            .is_some_and(|signature| signature.params.iter().any(|param| param.ty == "cudnnHandle_t"));
        let kernels = self.by_kernels.get(name).map(|what| format!("kernels of ours ({what})"));
        let miopen = self.by_miopen.get(name).map(|what| format!("MIOpen ({what})"));
        match [miopen, kernels].into_iter().flatten().reduce(|first, then| format!("{first}; else {then}")) {
            // What our own code does on copies cannot be captured.
            Some(what) if name.ends_with("CudaGraph") => format!("{what}; else no"),
            Some(what) => format!("{what}; else our own code, on copies"),
            None if on_cpu != "yes" => "no".to_owned(),
            None if takes_handle && computes(name) => "our own code, on copies".to_owned(),
            None => "ours".to_owned(),
        }
    }
}

/// Whether a call with a handle has more to do than to look at it, at descriptors or at sizes.
fn computes(name: &str) -> bool {
    let asks = [
        "cudnnGet",
        "cudnnSetStream",
        "cudnnSetRNN",
        "cudnnDestroy",
        "cudnnQuery",
        "cudnnDropoutGet",
        "cudnnBuildRNN",
    ];
    !asks.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_cudnns_and_each_stands_in_one_row() {
        let on_hip = OnHip::read().unwrap();
        let n_names = |table: &[(&[&str], &str)]| table.iter().map(|(names, _)| names.len()).sum::<usize>();
        assert_eq!(on_hip.by_miopen.len(), n_names(&BY_MIOPEN));
        assert_eq!(on_hip.by_kernels.len(), n_names(&BY_KERNELS));
        for name in on_hip.by_miopen.keys().chain(on_hip.by_kernels.keys()) {
            assert!(on_hip.signatures.contains_key(*name), "{name}");
        }
    }

    #[test]
    fn bodies_that_ask_miopen_or_kernels_are_those_of_the_tables() {
        let api = crate::setup::root().join("crates/libraries/cudnn/api/src/api");
        let (mut asks, by_miopen) = (Vec::new(), OnHip::read().unwrap().by_miopen);
        for entry in std::fs::read_dir(api).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for body in text.replace("\npub unsafe fn ", "\npub fn ").split("\npub fn ").skip(1) {
                let (name, body) = body.split_once('(').unwrap();
                let body = body.split("\n}\n").next().unwrap();
                // The last three are what bodies have in common that search for algorithms.
                let asking = ["on_hip", "on_kernels", ".hip(", " tried(", "tried_apart(", "asked("];
                if asking.iter().any(|word| body.contains(word)) {
                    asks.push(name.to_owned());
                }
            }
        }
        assert!(asks.len() >= 28, "{asks:?}");
        let by_kernels = by_name(&BY_KERNELS);
        let is_known =
            |name: &&String| by_miopen.contains_key(name.as_str()) || by_kernels.contains_key(name.as_str());
        let unknown: Vec<_> = asks.iter().filter(|name| !is_known(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
