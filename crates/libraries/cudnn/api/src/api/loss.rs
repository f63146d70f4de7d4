//! CTC loss. Source: cuDNN manual, "cudnn_adv library", `cudnnCTCLoss` and `cudnnCTCLoss_v8`.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use border::{OptOut, Out};
use cudnn_cpu::ctc::{Sample, loss};
use cudnn_cpu::{Value, View};
use kit::Address;

use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{Context, compute, computing};
use crate::tensor::{Tensor, at, list, tensor};
use crate::types::*;
use crate::{Result, memory};

#[derive(Clone, Copy, Default)]
struct Settings {
    computed: cudnnDataType_t,
    normalization: cudnnLossNormalizationMode_t,
    /// What becomes of gradients where labels do not fit into the steps.
    gradients: cudnnCTCGradMode_t,
    most: c_int,
}

static LOSSES: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreateCTCLossDescriptor(ctcLossDesc: Out<'_, cudnnCTCLossDescriptor_t>) -> Result {
    ctcLossDesc.write(LOSSES.add());
    Ok(())
}

pub fn cudnnDestroyCTCLossDescriptor(ctcLossDesc: cudnnCTCLossDescriptor_t) -> Result {
    LOSSES.remove(ctcLossDesc)
}

/// The modes are looked at when they are used, as NVIDIA's library does.
fn set(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    computed: cudnnDataType_t,
    normalization: cudnnLossNormalizationMode_t,
    gradients: cudnnCTCGradMode_t,
    most: c_int,
) -> Result {
    LOSSES.get(ctcLossDesc)?;
    let is_float = matches!(computed, cudnnDataType_t::CUDNN_DATA_FLOAT | cudnnDataType_t::CUDNN_DATA_DOUBLE);
    supports(is_float, "a loss computed in this type")?;
    LOSSES.set(ctcLossDesc, Settings { computed, normalization, gradients, most })
}

/// NaNs that propagate are gradients that are not written.
fn gradients(of: cudnnNanPropagation_t) -> cudnnCTCGradMode_t {
    match of {
        cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN => cudnnCTCGradMode_t::CUDNN_CTC_ZERO_OOB_GRADIENTS,
        _ => cudnnCTCGradMode_t::CUDNN_CTC_SKIP_OOB_GRADIENTS,
    }
}

fn propagation(of: cudnnCTCGradMode_t) -> cudnnNanPropagation_t {
    match of {
        cudnnCTCGradMode_t::CUDNN_CTC_ZERO_OOB_GRADIENTS => cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN,
        _ => cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN,
    }
}

pub fn cudnnSetCTCLossDescriptor(ctcLossDesc: cudnnCTCLossDescriptor_t, compType: cudnnDataType_t) -> Result {
    let plain = cudnnLossNormalizationMode_t::CUDNN_LOSS_NORMALIZATION_NONE;
    set(ctcLossDesc, compType, plain, cudnnCTCGradMode_t::CUDNN_CTC_ZERO_OOB_GRADIENTS, 0)
}

pub fn cudnnSetCTCLossDescriptorEx(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: cudnnDataType_t,
    normMode: cudnnLossNormalizationMode_t,
    gradMode: cudnnNanPropagation_t,
) -> Result {
    set(ctcLossDesc, compType, normMode, gradients(gradMode), 0)
}

pub fn cudnnSetCTCLossDescriptor_v8(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: cudnnDataType_t,
    normMode: cudnnLossNormalizationMode_t,
    gradMode: cudnnNanPropagation_t,
    maxLabelLength: c_int,
) -> Result {
    set(ctcLossDesc, compType, normMode, gradients(gradMode), maxLabelLength)
}

pub fn cudnnSetCTCLossDescriptor_v9(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: cudnnDataType_t,
    normMode: cudnnLossNormalizationMode_t,
    ctcGradMode: cudnnCTCGradMode_t,
    maxLabelLength: c_int,
) -> Result {
    set(ctcLossDesc, compType, normMode, ctcGradMode, maxLabelLength)
}

pub fn cudnnGetCTCLossDescriptor(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: OptOut<'_, cudnnDataType_t>,
) -> Result {
    compType.write(LOSSES.get(ctcLossDesc)?.computed);
    Ok(())
}

pub fn cudnnGetCTCLossDescriptorEx(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: OptOut<'_, cudnnDataType_t>,
    normMode: OptOut<'_, cudnnLossNormalizationMode_t>,
    gradMode: OptOut<'_, cudnnNanPropagation_t>,
) -> Result {
    let settings = LOSSES.get(ctcLossDesc)?;
    compType.write(settings.computed);
    normMode.write(settings.normalization);
    gradMode.write(propagation(settings.gradients));
    Ok(())
}

pub fn cudnnGetCTCLossDescriptor_v8(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: OptOut<'_, cudnnDataType_t>,
    normMode: OptOut<'_, cudnnLossNormalizationMode_t>,
    gradMode: OptOut<'_, cudnnNanPropagation_t>,
    maxLabelLength: OptOut<'_, c_int>,
) -> Result {
    maxLabelLength.write(LOSSES.get(ctcLossDesc)?.most);
    cudnnGetCTCLossDescriptorEx(ctcLossDesc, compType, normMode, gradMode)
}

pub fn cudnnGetCTCLossDescriptor_v9(
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    compType: OptOut<'_, cudnnDataType_t>,
    normMode: OptOut<'_, cudnnLossNormalizationMode_t>,
    ctcGradMode: OptOut<'_, cudnnCTCGradMode_t>,
    maxLabelLength: OptOut<'_, c_int>,
) -> Result {
    let settings = LOSSES.get(ctcLossDesc)?;
    compType.write(settings.computed);
    normMode.write(settings.normalization);
    ctcGradMode.write(settings.gradients);
    maxLabelLength.write(settings.most);
    Ok(())
}

/// Both algorithms are the deterministic one.
fn settings(of: cudnnCTCLossDescriptor_t, algo: cudnnCTCLossAlgo_t) -> Result<Settings> {
    let settings = LOSSES.get(of)?;
    supports((0..2).contains(&algo.0), "there is no such algorithm")?;
    require((0..2).contains(&settings.normalization.0), "there is no such normalization")?;
    require((0..2).contains(&settings.gradients.0), "there is no such mode of gradients")?;
    Ok(settings)
}

/// Steps, samples and letters of both tensors.
fn looked_at(settings: &Settings, probabilities: &Tensor, gradients: Option<&Tensor>) -> Result {
    require(probabilities.sizes.len() == 3, "probabilities have three sizes")?;
    supports(probabilities.kind == settings.computed, "a loss computed in another type than its tensor's")?;
    let fits = |other: &Tensor| other.sizes == probabilities.sizes && other.kind == probabilities.kind;
    require(gradients.is_none_or(fits), "the tensors' sizes or types differ")
}

fn optional(of: cudnnTensorDescriptor_t) -> Result<Option<Tensor>> {
    if of.is_null() { Ok(None) } else { tensor(of).map(Some) }
}

/// Why lengths and labels do not go with the tensor, if they do not.
fn wrong(lists: &Lists, [steps, _, letters]: [usize; 3]) -> Option<&'static str> {
    let is_in = |at: &c_int, most: usize| usize::try_from(*at).is_ok_and(|at| at <= most);
    if !lists.steps.iter().all(|count| is_in(count, steps)) {
        return Some("an input's length is not one of the steps");
    }
    if !lists.labels.iter().all(|label| *label > 0 && is_in(label, letters - 1)) {
        return Some("a label is not one of the alphabet's letters behind the blank");
    }
    None
}

/// Labels of all samples behind each other, how many each has, and how many steps.
struct Lists {
    labels: Vec<c_int>,
    counts: Vec<c_int>,
    steps: Vec<c_int>,
}

impl Lists {
    /// `None` where a number of labels is negative; in the work.
    ///
    /// # Safety
    /// There are so many counts and steps, and as many labels as the counts say.
    unsafe fn read(
        labels: *const c_int,
        counts: *const c_int,
        steps: *const c_int,
        samples: usize,
    ) -> Option<Lists> {
        let [counts, steps] = [counts, steps].map(|list| memory::array_in_work(list, samples));
        // SAFETY: the caller's word.
        let (counts, steps) = unsafe {
            (core::slice::from_raw_parts(counts, samples), core::slice::from_raw_parts(steps, samples))
        };
        let mut all = 0_usize;
        for count in counts {
            all = all.checked_add(usize::try_from(*count).ok()?)?;
        }
        let labels = memory::array_in_work(labels, all);
        // SAFETY: the caller's word.
        let labels = if all == 0 { &[] } else { unsafe { core::slice::from_raw_parts(labels, all) } };
        Some(Lists { labels: labels.to_vec(), counts: counts.to_vec(), steps: steps.to_vec() })
    }
}

/// What a call computes.
#[derive(Clone, Copy)]
struct Work {
    settings: Settings,
    probabilities: View,
    gradients: Option<View>,
    costs: Address<*mut u8>,
    sizes: [usize; 3],
}

impl Work {
    /// # Safety
    /// As [`cudnnCTCLoss`].
    unsafe fn of(
        settings: Settings,
        (probsDesc, probs): (cudnnTensorDescriptor_t, *const c_void),
        (gradientsDesc, gradients): (cudnnTensorDescriptor_t, *mut c_void),
        costs: *mut c_void,
    ) -> Result<Work> {
        // SAFETY: the caller's promise.
        let (probabilities, view) = unsafe { at(probsDesc, probs) }?;
        looked_at(&settings, &probabilities, optional(gradientsDesc)?.as_ref())?;
        require(!costs.is_null(), "costs")?;
        require(gradients.is_null() || !gradientsDesc.is_null(), "gradientsDesc")?;
        // SAFETY: the caller's promise.
        let gradients =
            (!gradients.is_null()).then(|| unsafe { at(gradientsDesc, gradients) }).transpose()?;
        let sizes = core::array::from_fn(|at| probabilities.sizes[at] as usize);
        let costs = memory::array(costs.cast::<u8>(), sizes[1] * probabilities.element()?.bytes())?;
        Ok(Work { settings, probabilities: view, gradients: gradients.map(|(_, view)| view), costs, sizes })
    }

    fn enqueue(
        self,
        context: &Context,
        lists: impl Fn() -> Option<Arc<Lists>> + Send + Sync + 'static,
    ) -> Result {
        let is_double = self.settings.computed == cudnnDataType_t::CUDNN_DATA_DOUBLE;
        compute!(context, is_double, V => {
            let lists = lists();
            let why = lists.as_ref().map_or(Some("a number of labels is negative"), |lists| wrong(lists, self.sizes));
            match (lists, why) {
                (Some(lists), None) => self.run::<V>(&lists),
                (_, why) => tracing::error!(target: "cudaway::dnn", "CTC loss: {}; nothing is computed", why.unwrap_or_default()),
            }
        })
    }

    fn run<V: Value>(&self, lists: &Lists) {
        let [steps, samples, letters] = self.sizes;
        let is_normalized =
            self.settings.normalization == cudnnLossNormalizationMode_t::CUDNN_LOSS_NORMALIZATION_NONE;
        let zeroes = self.settings.gradients == cudnnCTCGradMode_t::CUDNN_CTC_ZERO_OOB_GRADIENTS;
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        let rows = unsafe { self.probabilities.dense::<V>() };
        let ends: Vec<usize> = lists
            .counts
            .iter()
            .scan(0, |end, count| {
                *end += *count as usize;
                Some(*end)
            })
            .collect();
        let results: Vec<parking_lot::Mutex<(f64, Option<Vec<V>>)>> =
            (0..samples).map(|_| parking_lot::Mutex::new((0.0, None))).collect();
        cudnn_cpu::parallel(samples, 16 * steps * letters, |number| {
            let first = ends[number] - lists.counts[number] as usize;
            let labels: Vec<usize> =
                lists.labels[first..ends[number]].iter().map(|&label| label as usize).collect();
            let sample = Sample { steps: lists.steps[number] as usize, labels: &labels };
            let row = |step: usize| rows[(step * samples + number) * letters..][..letters].iter().copied();
            let own: Vec<V> = (0..sample.steps).flat_map(row).collect();
            let mut gradient = vec![V::of(0.0); steps * letters];
            let wanted = self.gradients.map(|_| &mut gradient[..]);
            let cost = loss(sample, letters, &own, is_normalized, wanted);
            *results[number].lock() = (cost, (zeroes || sample.fits()).then_some(gradient));
        });
        for (number, result) in results.into_iter().enumerate() {
            let (cost, gradient) = result.into_inner();
            // SAFETY: as above: a cost for each sample.
            unsafe { self.costs.get().cast::<V>().add(number).write(V::of(cost)) };
            if let (Some(view), Some(gradient)) = (self.gradients, gradient) {
                // SAFETY: as above.
                unsafe { view.part(1, number).store(&gradient, V::of(1.0), V::of(0.0)) };
            }
        }
    }
}

/// None is taken.
fn workspace(
    handle: cudnnHandle_t,
    (probsDesc, gradientsDesc): (cudnnTensorDescriptor_t, cudnnTensorDescriptor_t),
    algo: cudnnCTCLossAlgo_t,
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    looked_at(&settings(ctcLossDesc, algo)?, &tensor(probsDesc)?, optional(gradientsDesc)?.as_ref())?;
    sizeInBytes.write(0);
    Ok(())
}

pub fn cudnnGetCTCLossWorkspaceSize(
    handle: cudnnHandle_t,
    probsDesc: cudnnTensorDescriptor_t,
    gradientsDesc: cudnnTensorDescriptor_t,
    _labels: *const c_int,
    _labelLengths: *const c_int,
    _inputLengths: *const c_int,
    algo: cudnnCTCLossAlgo_t,
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    workspace(handle, (probsDesc, gradientsDesc), algo, ctcLossDesc, sizeInBytes)
}

pub fn cudnnGetCTCLossWorkspaceSize_v8(
    handle: cudnnHandle_t,
    algo: cudnnCTCLossAlgo_t,
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    probsDesc: cudnnTensorDescriptor_t,
    gradientsDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    workspace(handle, (probsDesc, gradientsDesc), algo, ctcLossDesc, sizeInBytes)
}

/// Labels and lengths are in the host's memory and read before the call returns. The gradient is that of the numbers in front of softmax,
/// also where probabilities are given.
///
/// # Safety
/// As [`cudnnCTCLoss_v8`].
pub unsafe fn cudnnCTCLoss(
    handle: cudnnHandle_t,
    probsDesc: cudnnTensorDescriptor_t,
    probs: *const c_void,
    hostLabels: *const c_int,
    hostLabelLengths: *const c_int,
    hostInputLengths: *const c_int,
    costs: *mut c_void,
    gradientsDesc: cudnnTensorDescriptor_t,
    gradients: *mut c_void,
    algo: cudnnCTCLossAlgo_t,
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    _workspace: *mut c_void,
    _workSpaceSizeInBytes: usize,
) -> Result {
    let context = computing(handle)?;
    let settings = settings(ctcLossDesc, algo)?;
    // SAFETY: the caller's promise.
    let work = unsafe { Work::of(settings, (probsDesc, probs), (gradientsDesc, gradients), costs) }?;
    let samples = work.sizes[1];
    let (counts, steps) =
        // SAFETY: the caller's promise.
        (unsafe { list(hostLabelLengths, samples as c_int) }?, unsafe { list(hostInputLengths, samples as c_int) }?);
    require(counts.iter().all(|count| (0..256).contains(count)), "a sample has more than 255 labels")?;
    // SAFETY: the caller's promise.
    let labels = unsafe { list(hostLabels, counts.iter().sum()) }?;
    let lists = Lists { labels: labels.to_vec(), counts: counts.to_vec(), steps: steps.to_vec() };
    if let Some(why) = wrong(&lists, work.sizes) {
        return require(false, why);
    }
    let lists = Arc::new(lists);
    work.enqueue(&context, move || Some(lists.clone()))
}

/// Labels and lengths are in the device's memory and read in stream order.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnCTCLoss_v8(
    handle: cudnnHandle_t,
    algo: cudnnCTCLossAlgo_t,
    ctcLossDesc: cudnnCTCLossDescriptor_t,
    probsDesc: cudnnTensorDescriptor_t,
    probs: *const c_void,
    labels: *const c_int,
    labelLengths: *const c_int,
    inputLengths: *const c_int,
    costs: *mut c_void,
    gradientsDesc: cudnnTensorDescriptor_t,
    gradients: *mut c_void,
    _workSpaceSizeInBytes: usize,
    _workspace: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let settings = settings(ctcLossDesc, algo)?;
    // SAFETY: the caller's promise.
    let work = unsafe { Work::of(settings, (probsDesc, probs), (gradientsDesc, gradients), costs) }?;
    let is_given = !labels.is_null() && !labelLengths.is_null() && !inputLengths.is_null();
    require(is_given, "labels or lengths are NULL")?;
    let samples = work.sizes[1];
    let lists = [labels, labelLengths, inputLengths].map(|list| Address(list.cast::<u8>().cast_mut()));
    work.enqueue(&context, move || {
        let [labels, counts, steps] = lists.each_ref().map(|list| list.get().cast::<c_int>().cast_const());
        // SAFETY: cuDNN's contract: lengths of each sample, and so many labels, until the stream has come here.
        unsafe { Lists::read(labels, counts, steps, samples) }.map(Arc::new)
    })
}
