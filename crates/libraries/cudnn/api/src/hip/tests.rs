//! What reaches MIOpen, looked at from its side: a library in C that has the functions of a release of ROCm (tools/data/hip/miopen.json) and
//! writes down each call, tensors as what their descriptors were told, factors as numbers.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use cudnn_cpu::activation::Activation;
use cudnn_cpu::lrn::Lrn;
use cudnn_cpu::pooling::Pooling;
use testkit::recorder::{BEGINNING, Recorder, compile, exports, facts};

use super::activation::Softmax;
use super::convolution::{Area, Direction, Problem, Window};
use super::elements::Reduction;
use super::library::Library;
use super::norm::Norm;
use super::{HipCall, HipHandle, convert, pooling};
use crate::Error;
use crate::tensor::{Argument, Tensor};
use crate::types::*;

mod graph;

const RELEASES: [&str; 5] = ["5.2", "5.7", "6.2", "6.4", "7.2"];

const NCHW: cudnnTensorFormat_t = cudnnTensorFormat_t::CUDNN_TENSOR_NCHW;
const NHWC: cudnnTensorFormat_t = cudnnTensorFormat_t::CUDNN_TENSOR_NHWC;
const HALF: cudnnDataType_t = cudnnDataType_t::CUDNN_DATA_HALF;
const FLOAT: cudnnDataType_t = cudnnDataType_t::CUDNN_DATA_FLOAT;
const DOUBLE: cudnnDataType_t = cudnnDataType_t::CUDNN_DATA_DOUBLE;
const BFLOAT16: cudnnDataType_t = cudnnDataType_t::CUDNN_DATA_BFLOAT16;

/// A tensor is written down as what it was told; a search finds what the work area is enough for.
const OBJECTS: &str = r#"
struct tensor { int kind, count, sizes[8], strides[8]; };
static struct tensor tensors[256];
static int next;
static void *make_tensor(void) { return &tensors[next++ % 256]; }
static void set(struct tensor *t, int kind, int count, const int *sizes, const int *strides) {
    t->kind = kind;
    t->count = count;
    for (int i = 0; i < count; i++) t->sizes[i] = sizes[i], t->strides[i] = strides[i];
}
static void tensor(struct tensor *t) {
    PUT(" %d:", t->kind);
    for (int i = 0; i < t->count; i++) PUT("%s%d", i ? "x" : "", t->sizes[i]);
    if (t->strides[t->count - 1] != 1) PUT("/last");
}
static void list(const int *values, int count) {
    PUT(" ");
    for (int i = 0; i < count; i++) PUT("%s%d", i ? "," : "", values[i]);
}
struct perf { int algorithm; float time; unsigned long memory; };
static int search(struct perf *to, unsigned long bytes) {
    static const struct perf all[] = {{1, 3, 0}, {5, 1, 1000}, {3, 2, 500}};
    int count = 0;
    for (int i = 0; i < 3; i++) if (all[i].memory <= bytes) to[count++] = all[i];
    return count;
}
"#;

/// The number that is the descriptor, by its kind.
fn descriptor(ty: &str) -> i64 {
    match ty.trim_start_matches("*mut ") {
        "miopenHandle_t" => 0x51,
        "miopenConvolutionDescriptor_t" => 0x52,
        "miopenActivationDescriptor_t" => 0x53,
        "miopenPoolingDescriptor_t" => 0x54,
        "miopenLRNDescriptor_t" => 0x55,
        "miopenReduceTensorDescriptor_t" => 0x56,
        other => panic!("what is {other}?"),
    }
}

/// A parameter's C type, and what is written down of it.
fn parameter(place: usize, name: &str, ty: &str, counts: &str) -> (String, String) {
    let a = format!("a{place}");
    let (c_type, does) = match ty {
        "c_int" | "c_uint" | "bool" => ("int", format!("PUT(\" %d\", {a});")),
        "usize" => ("unsigned long", format!("PUT(\" %lu\", {a});")),
        "f64" => ("double", format!("PUT(\" %g\", {a});")),
        "*mut usize" => ("unsigned long *", format!("*{a} = 1000;")),
        "*mut miopenConvAlgoPerf_t" => ("struct perf *", format!("*found = search({a}, bytes);")),
        "*mut c_int" if name == "returnedAlgoCount" => ("int *", format!("found = {a};")),
        "*mut c_int" | "*const c_int" => ("const int *", format!("list({a}, {counts});")),
        "miopenTensorDescriptor_t" => ("void *", format!("tensor({a});")),
        "*mut miopenTensorDescriptor_t" => ("void **", format!("*{a} = make_tensor();")),
        "miopenAcceleratorQueue_t" => ("void *", format!("PUT(\" %ld\", (long){a});")),
        _ if ty.starts_with("*mut miopen") => ("void **", format!("*{a} = (void *){}L;", descriptor(ty))),
        _ if ty.ends_with("Descriptor_t") || ty == "miopenHandle_t" => {
            ("void *", format!("if ((long){a} != {}L) PUT(\" another object!\");", descriptor(ty)))
        }
        "*const c_void" | "*mut c_void" if name.starts_with("alpha") || name.starts_with("beta") => {
            ("const float *", format!("PUT(\" %g\", {a} ? *{a} : -1);"))
        }
        "*const c_void" | "*mut c_void" => ("void *", format!("PUT(\" %lx\", (long){a});")),
        // Enumerations.
        _ => ("int", format!("PUT(\" %d\", {a});")),
    };
    (format!("{c_type} {a}"), does)
}

/// MIOpen of one release, which does nothing but write down.
fn recorder(release: &str) -> Recorder<Library> {
    let mut text = format!("{BEGINNING}{OBJECTS}");
    for (name, params) in exports("miopen", release) {
        let place = |wanted: &[&str]| params.iter().position(|param| wanted.contains(&param.name.as_str()));
        let counts = place(&["nbDims", "spatialDim"]).map_or(String::new(), |i| format!("a{i}"));
        let (typed, mut does): (Vec<String>, String) =
            params.iter().enumerate().map(|(i, param)| parameter(i, &param.name, &param.ty, &counts)).unzip();
        let area = params.iter().position(|param| param.name == "workSpaceSize" && param.ty == "usize");
        if name.starts_with("miopenFind") {
            does = format!("int *found; unsigned long bytes = a{}; {does}", area.unwrap());
        }
        if name == "miopenSetTensorDescriptor" {
            "set(a0, a1, a2, a3, a4);".clone_into(&mut does);
        }
        // What ROCm 5.2 does not know.
        let last = if name == "miopenSetConvolutionAttribute" && release == "5.2" {
            "return a1 ? 3 : 0;"
        } else {
            "return answer(__func__);"
        };
        let typed = typed.join(", ");
        writeln!(text, "int {name}({typed}) {{ PUT(\"{name}\"); {does} PUT(\"\\n\"); {last} }}").unwrap();
    }
    Recorder::of("libMIOpen.so.1", &text, Library::open)
}

fn call_of(recorder: &Recorder<Library>) -> HipCall {
    let handle = Arc::new(HipHandle::of(recorder.library).unwrap());
    recorder.recorded();
    HipCall { handle, stream: cudaStream_t::default() }
}

/// What was called since the last time, without tensors that were made and what was ended.
fn work_of(recorder: &Recorder<Library>) -> Vec<String> {
    let is_work = |line: &&str| {
        !["miopenDestroy", "miopenCreate", "miopenSetTensorDescriptor"].iter().any(|of| line.starts_with(of))
    };
    recorder.recorded().lines().filter(is_work).map(str::to_owned).collect()
}

/// An address that nobody follows.
fn memory(at: usize) -> *mut c_void {
    ptr::without_provenance_mut(at)
}

fn tensor(kind: cudnnDataType_t, format: cudnnTensorFormat_t, sizes: &[c_int]) -> Tensor {
    Tensor::of_format(format, kind, sizes).unwrap()
}

/// A tensor by channels.
fn images(kind: cudnnDataType_t, sizes: &[c_int], at: usize) -> Argument {
    Argument::new(tensor(kind, NCHW, sizes), memory(at))
}

/// Of images of two channels, 5 x 6, with filters of 3 x 3.
fn problem(direction: Direction, kind: cudnnDataType_t, format: cudnnTensorFormat_t) -> Option<Problem> {
    let x = tensor(kind, format, &[1, 2, 5, 6]);
    let w = tensor(kind, format, &[4, 1, 3, 3]);
    let y = tensor(kind, format, &[1, 4, 3, 2]);
    let (padding, stride, dilation) = (&[1, 0][..], &[2, 3][..], &[1, 1][..]);
    Problem::new(direction, &Window { padding, stride, dilation, groups: 2 }, &x, &w, &y)
}

const AT: [usize; 3] = [0x100, 0x200, 0x300];

fn at() -> [*mut c_void; 3] {
    AT.map(memory)
}

fn area(bytes: usize) -> Area {
    Area::new(memory(0x1000), bytes)
}

#[test]
fn a_convolution_is_searched_for_once_and_then_run() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let forward = problem(Direction::Forward, FLOAT, NCHW).unwrap();
        assert!(hip.convolve(&forward, at(), area(1000)).unwrap());
        let (x, w, y) = ("1:1x2x5x6", "1:4x1x3x3", "1:1x4x3x2");
        assert_eq!(
            work_of(&recorder),
            [
                "miopenInitConvolutionNdDescriptor 2 1,0 2,3 1,1 0".to_owned(),
                "miopenSetConvolutionGroupCount 2".to_owned(),
                "miopenSetConvolutionAttribute 1 1".to_owned(),
                format!("miopenConvolutionForwardGetWorkSpaceSize {w} {x} {y}"),
                format!("miopenFindConvolutionForwardAlgorithm {x} 100 {w} 200 {y} 300 16 1000 1000 0"),
                format!("miopenConvolutionForward 1 {x} 100 {w} 200 5 0 {y} 300 1000 1000"),
            ],
            "ROCm {release}"
        );
        // The same again, with other memory.
        assert!(hip.convolve(&forward, [0x110, 0x210, 0x310].map(memory), area(2000)).unwrap());
        assert_eq!(
            work_of(&recorder),
            [format!("miopenConvolutionForward 1 {x} 110 {w} 210 5 0 {y} 310 1000 1000")]
        );
        // With less memory another algorithm, and none is of use to MIOpen without an address.
        assert!(hip.convolve(&forward, at(), area(600)).unwrap());
        assert_eq!(
            work_of(&recorder),
            [format!("miopenConvolutionForward 1 {x} 100 {w} 200 3 0 {y} 300 1000 500")]
        );
        assert!(hip.convolve(&forward, at(), Area::new(ptr::null_mut(), 600)).unwrap());
        assert_eq!(
            work_of(&recorder),
            [format!("miopenConvolutionForward 1 {x} 100 {w} 200 1 0 {y} 300 0 0")]
        );
        assert_eq!(hip.workspace(Some(&forward)).unwrap(), 1000);
        assert_eq!(work_of(&recorder), <[String; 0]>::default());
    }
}

#[test]
fn gradients_of_convolutions_have_the_order_of_miopen() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let data = problem(Direction::Data, HALF, NHWC).unwrap();
    assert!(hip.convolve(&data, at(), area(0)).unwrap());
    let (x, w, y) = ("0:1x2x5x6/last", "0:4x1x3x3", "0:1x4x3x2/last");
    assert_eq!(
        work_of(&recorder)[3..],
        [
            format!("miopenConvolutionBackwardDataGetWorkSpaceSize {y} {w} {x}"),
            format!("miopenFindConvolutionBackwardDataAlgorithm {y} 300 {w} 200 {x} 100 16 0 0 0"),
            format!("miopenConvolutionBackwardData 1 {y} 300 {w} 200 1 0 {x} 100 0 0"),
        ]
    );
    // More memory than in the search before, and less than a search takes.
    assert!(hip.convolve(&data, at(), area(700)).unwrap());
    assert_eq!(
        work_of(&recorder),
        [
            format!("miopenFindConvolutionBackwardDataAlgorithm {y} 300 {w} 200 {x} 100 16 1000 700 0"),
            format!("miopenConvolutionBackwardData 1 {y} 300 {w} 200 3 0 {x} 100 1000 500"),
        ]
    );
    let filter = problem(Direction::Filter, BFLOAT16, NCHW).unwrap();
    assert!(hip.convolve(&filter, at(), area(500)).unwrap());
    let (x, w, y) = ("5:1x2x5x6", "5:4x1x3x3", "5:1x4x3x2");
    assert_eq!(
        work_of(&recorder)[3..],
        [
            format!("miopenConvolutionBackwardWeightsGetWorkSpaceSize {y} {x} {w}"),
            format!("miopenFindConvolutionBackwardWeightsAlgorithm {y} 300 {x} 100 {w} 200 16 1000 500 0"),
            format!("miopenConvolutionBackwardWeights 1 {y} 300 {x} 100 3 0 {w} 200 1000 500"),
        ]
    );
    let (dy, db) = (images(FLOAT, &[2, 3, 4, 5], 0x100), images(FLOAT, &[1, 3, 1, 1], 0x200));
    assert!(hip.bias_gradient(&dy, &db).unwrap());
    assert_eq!(work_of(&recorder), ["miopenConvolutionBackwardBias 1 1:2x3x4x5 100 0 1:1x3x1x1 200"]);
}

#[test]
fn what_no_search_finds_is_our_own_codes_from_there_on() {
    let recorder = recorder("7.2");
    let hip = call_of(&recorder);
    let forward = problem(Direction::Forward, FLOAT, NCHW).unwrap();
    recorder.answer_to(c"miopenFindConvolutionForwardAlgorithm", 7);
    assert!(!hip.convolve(&forward, at(), area(400)).unwrap());
    recorder.recorded();
    assert!(!hip.convolve(&forward, at(), area(300)).unwrap());
    assert_eq!(work_of(&recorder), <[String; 0]>::default());
    // With more there may be one.
    assert!(hip.convolve(&forward, at(), area(500)).unwrap());
    assert_eq!(work_of(&recorder).len(), 2);
    let none = |kind, format| problem(Direction::Forward, kind, format).is_none();
    assert!(none(DOUBLE, NCHW));
    let (x, y) = (tensor(FLOAT, NCHW, &[1, 2, 5, 6]), tensor(FLOAT, NCHW, &[1, 4, 5, 6]));
    let w = tensor(FLOAT, NHWC, &[4, 2, 3, 3]);
    let (padding, stride) = (&[1, 1][..], &[1, 1][..]);
    let window = Window { padding, stride, dilation: stride, groups: 1 };
    assert!(Problem::new(Direction::Forward, &window, &x, &w, &y).is_none(), "layouts differ");
    assert_eq!(hip.workspace(None).unwrap(), 0);
}

#[test]
fn a_convolution_with_a_bias_is_three_calls() {
    let recorder = recorder("5.7");
    let hip = call_of(&recorder);
    let forward = problem(Direction::Forward, FLOAT, NCHW).unwrap();
    let [y, z] = [0x300, 0x400].map(|at| images(FLOAT, &[1, 4, 3, 2], at));
    let bias = images(FLOAT, &[1, 4, 1, 1], 0x500);
    let behind = (&y, Some((0.5, &z)), &bias, Activation::Relu(false));
    assert!(hip.convolve_and_finish(&forward, at(), area(0), behind).unwrap());
    let is = "1:1x4x3x2";
    assert_eq!(
        work_of(&recorder)[5..],
        [
            format!("miopenConvolutionForward 1 1:1x2x5x6 100 1:4x1x3x3 200 1 0 {is} 300 0 0"),
            format!("miopenOpTensor 0 1 {is} 300 0.5 {is} 400 0 {is} 300"),
            format!("miopenOpTensor 0 1 {is} 300 1 1:1x4x1x1 500 0 {is} 300"),
            "miopenSetActivationDescriptor 3 0 0 0".to_owned(),
            "miopenActivationForward 1 1:1x24x1x1 300 0 1:1x24x1x1 300".to_owned(),
        ]
    );
    // Our own code begins anew where one of them is refused, though it has no way back.
    recorder.answer_to(c"miopenActivationForward", 7);
    assert!(!hip.convolve_and_finish(&forward, at(), area(0), behind).unwrap());
}

#[test]
fn layers_without_parameters_hand_over_what_they_were_given() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let sizes = [2, 3, 4, 5];
        let [x, y, dy, dx] = [0x100, 0x200, 0x300, 0x400].map(|at| images(FLOAT, &sizes, at));
        let is = "1:2x3x4x5";
        for (function, line) in [
            (Activation::Sigmoid, "1 0 0 0"),
            (Activation::Tanh, "2 1 1 0"),
            (Activation::Relu(false), "3 0 0 0"),
            (Activation::ClippedRelu(6.0, false), "7 6 0 0"),
            (Activation::Elu(0.25), "9 0.25 0 0"),
        ] {
            assert!(hip.activate(function, &x, &y, true).unwrap());
            assert!(hip.activation_gradient(function, [&x, &y, &dy], &dx).unwrap());
            let set = format!("miopenSetActivationDescriptor {line}");
            let flat = "1:2x60x1x1";
            assert_eq!(
                work_of(&recorder),
                [
                    set.clone(),
                    format!("miopenActivationForward 1 {flat} 100 0 {flat} 200"),
                    set,
                    format!("miopenActivationBackward 1 {flat} 200 {flat} 300 {flat} 100 0 {flat} 400"),
                ]
            );
        }
        let how = Softmax {
            algorithm: cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG,
            mode: cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL,
        };
        assert!(hip.softmax(&how, (2.0, &x), (0.5, &y)).unwrap());
        assert!(hip.softmax_gradient(&how, (2.0, [&y, &dy]), (0.5, &dx)).unwrap());
        assert!(hip.lrn(Lrn { n: 5, alpha: 1e-4, beta: 0.75, k: 2.0 }, &x, &y).unwrap());
        assert_eq!(
            work_of(&recorder),
            [
                format!("miopenSoftmaxForward_V2 2 {is} 100 0.5 {is} 200 2 1"),
                format!("miopenSoftmaxBackward_V2 2 {is} 200 {is} 300 0.5 {is} 400 2 1"),
                "miopenSetLRNDescriptor 1 5 0.0001 0.75 2".to_owned(),
                format!("miopenLRNForward 1 {is} 100 0 {is} 200 0 0"),
            ]
        );
        let small = images(FLOAT, &[2, 3, 2, 2], 0x200);
        let [d_small, d_x] = [images(FLOAT, &[2, 3, 2, 2], 0x300), images(FLOAT, &sizes, 0x400)];
        for (mode, number) in [(Pooling::MeanOfInside, 1), (Pooling::MeanOfAll, 2)] {
            let window = pooling::Window { mode, window: &[2, 3], padding: &[0, 1], stride: &[2, 3] };
            assert!(hip.pool(&window, &x, &small).unwrap());
            assert!(hip.pooling_gradient(&window, &x, Some(&small), &d_small, &d_x).unwrap());
            let ready = [
                format!("miopenSetNdPoolingDescriptor {number} 2 2,3 0,1 2,3"),
                "miopenSetPoolingIndexType 2".to_owned(),
                "miopenSetPoolingWorkSpaceIndexMode 1".to_owned(),
            ];
            let to = "1:2x3x2x2";
            let forward = format!("miopenPoolingForward 1 {is} 100 0 {to} 200 0 0 0");
            let backward = format!("miopenPoolingBackward 1 {to} 200 {to} 300 {is} 100 0 {is} 400 0");
            let wanted = [&ready[..], &[forward], &ready[..], &[backward]].concat();
            assert_eq!(work_of(&recorder), wanted);
        }
        let max =
            pooling::Window { mode: Pooling::Max(false), window: &[2, 3], padding: &[0, 1], stride: &[2, 3] };
        assert!(hip.pool(&max, &x, &small).unwrap());
        assert!(work_of(&recorder)[0].starts_with("miopenSetNdPoolingDescriptor 0 2 "));
    }
}

#[test]
fn norms_hand_over_what_they_were_given() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let [x, y, dx] = [0x100, 0x200, 0x300].map(|at| images(HALF, &[2, 3, 4, 5], at));
        let parameters = tensor(FLOAT, NCHW, &[1, 3, 1, 1]);
        let how = Norm { of_channels: true, parameters: &parameters, epsilon: 0.125 };
        let pair = |at: usize| [memory(at), memory(at + 0x10)];
        let none = [ptr::null_mut(); 2];
        assert!(
            hip.normalize_training(&how, [&x, &y], pair(0x400), (0.5, pair(0x500)), pair(0x600)).unwrap()
        );
        assert!(hip.normalize_training(&how, [&x, &y], pair(0x400), (0.5, none), none).unwrap());
        assert!(hip.normalize(&how, [&x, &y], pair(0x400), pair(0x500)).unwrap());
        let each = tensor(FLOAT, NCHW, &[1, 3, 4, 5]);
        let how = Norm { of_channels: false, parameters: &each, epsilon: 0.125 };
        let (scale, gradients) = (memory(0x400), pair(0x500));
        assert!(hip.normalization_gradient(&how, [&x, &y, &dx], scale, gradients, pair(0x600)).unwrap());
        let (is, one) = ("0:2x3x4x5", "1:1x3x1x1");
        assert_eq!(
            work_of(&recorder),
            [
                format!(
                    "miopenBatchNormalizationForwardTraining 1 1 0 {is} 100 {is} 200 {one} 400 410 0.5 500 510 0.125 600 610"
                ),
                format!(
                    "miopenBatchNormalizationForwardTraining 1 1 0 {is} 100 {is} 200 {one} 400 410 0.5 0 0 0.125 0 0"
                ),
                format!(
                    "miopenBatchNormalizationForwardInference 1 1 0 {is} 100 {is} 200 {one} 400 410 500 510 0.125"
                ),
                format!(
                    "miopenBatchNormalizationBackward 0 1 0 1 0 {is} 100 {is} 200 {is} 300 1:1x3x4x5 400 500 510 0.125 600 610"
                ),
            ],
            "ROCm {release}"
        );
    }
}

#[test]
fn elements_and_reductions_hand_over_what_they_were_given() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let [a, c] = [0x100, 0x300].map(|at| images(FLOAT, &[2, 3, 4, 5], at));
        let b = images(FLOAT, &[1, 3, 1, 1], 0x200);
        assert!(hip.mix(3, [(0.5, &a), (2.0, &b)], (0.25, &c), false).unwrap());
        let value = 7.0_f32;
        assert!(hip.fill(&c, (&raw const value).cast()).unwrap());
        assert!(hip.scale(&c, 0.1).unwrap());
        let how = Reduction {
            op: cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_NORM2,
            nan: cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN,
        };
        assert_eq!(hip.reduction_workspace(Some(&how), &a, &b).unwrap(), 1000);
        assert!(hip.reduce(&how, (2.0, &a), (0.5, &b), (memory(0x900), 1000)).unwrap());
        let (is, one) = ("1:2x3x4x5", "1:1x3x1x1");
        let ready = "miopenSetReduceTensorDescriptor 7 1 1 0 0".to_owned();
        assert_eq!(
            work_of(&recorder),
            [
                format!("miopenOpTensor 3 0.5 {is} 100 2 {one} 200 0.25 {is} 300"),
                format!("miopenSetTensor {is} 300 7"),
                format!("miopenScaleTensor {is} 300 0.1"),
                ready.clone(),
                format!("miopenGetReductionWorkspaceSize {is} {one}"),
                ready,
                format!("miopenReduceTensor 0 0 900 1000 2 {is} 100 0.5 {one} 200"),
            ],
            "ROCm {release}"
        );
    }
}

#[test]
fn what_miopen_computes_by_other_rules_does_not_reach_it() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let sizes = [2, 3, 4, 5];
    let of = |kind, at| images(kind, &sizes, at);
    let last = |at| Argument::new(tensor(FLOAT, NHWC, &sizes), memory(at));
    let (x, y) = (of(FLOAT, 0x100), of(FLOAT, 0x200));
    let window = |mode| pooling::Window { mode, window: &[1, 1], padding: &[0, 0], stride: &[1, 1] };
    let parameters = tensor(FLOAT, NCHW, &[1, 3, 1, 1]);
    let how = Norm { of_channels: true, parameters: &parameters, epsilon: 0.125 };
    let pair = [memory(0x400), memory(0x500)];
    let mode = cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL;
    let softmax = Softmax { algorithm: cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_FAST, mode };
    let no_zeros = Reduction {
        op: cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
        nan: cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN,
    };
    for (what, answer) in [
        ("a NaN that is kept", hip.activate(Activation::Relu(true), &x, &y, true)),
        ("swish", hip.activate(Activation::Swish(1.0), &x, &y, true)),
        ("bfloat16", hip.activate(Activation::Tanh, &of(BFLOAT16, 0x100), &of(BFLOAT16, 0x200), true)),
        ("double", hip.activate(Activation::Tanh, &of(DOUBLE, 0x100), &of(DOUBLE, 0x200), true)),
        ("two layouts", hip.activate(Activation::Tanh, &x, &last(0x200), true)),
        ("no memory", hip.activate(Activation::Tanh, &x, &of(FLOAT, 0), true)),
        ("memory at an odd place", hip.activate(Activation::Tanh, &x, &of(FLOAT, 0x201), true)),
        ("channels last", hip.pool(&window(Pooling::MeanOfAll), &last(0x100), &last(0x200))),
        ("the largest, which may be NaN", hip.pool(&window(Pooling::Max(true)), &x, &y)),
        ("a softmax of three sizes", {
            let [x, y] = [0x100, 0x200].map(|at| images(FLOAT, &[2, 3, 4], at));
            hip.softmax(&softmax, (1.0, &x), (0.0, &y))
        }),
        ("norms with channels last", hip.normalize(&how, [&last(0x100), &last(0x200)], pair, pair)),
        ("no mean", hip.normalize(&how, [&x, &y], pair, [ptr::null_mut(); 2])),
        ("a factor that is none in half", {
            let [x, y] = [0x100, 0x200].map(|at| of(HALF, at));
            hip.mix(convert::ADD, [(0.1, &x), (1.0, &y)], (0.0, &y), false)
        }),
        ("half times a float", hip.scale(&of(HALF, 0x100), 0.1)),
        ("products without zeros", {
            hip.reduce(
                &no_zeros,
                (1.0, &x),
                (0.0, &images(FLOAT, &[1, 3, 1, 1], 0x200)),
                (ptr::null_mut(), 0),
            )
        }),
    ] {
        assert!(!answer.unwrap(), "{what}");
        assert_eq!(work_of(&recorder), <[String; 0]>::default(), "{what}");
    }
}

#[test]
fn refusals_are_our_own_codes_and_failures_the_programs() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let [x, y] = [0x100, 0x200].map(|at| images(FLOAT, &[2, 3, 4, 5], at));
    for (status, apart, in_place) in [
        (2, Ok(false), Ok(false)),
        (3, Ok(false), Ok(false)),
        (6, Ok(false), Ok(false)),
        (8, Ok(false), Ok(false)),
        // What has begun may have changed what it reads.
        (5, Ok(false), Err(5)),
        (7, Ok(false), Err(7)),
        (4, Err(4), Err(4)),
        (1, Err(1), Err(1)),
    ] {
        for (apart, wanted) in [(true, apart), (false, in_place)] {
            recorder.answer_to(c"miopenActivationForward", status);
            let answer = hip.activate(Activation::Tanh, &x, &y, apart).map_err(|error| match error {
                Error::Hip { call: "miopenActivationForward", code } => code,
                other => panic!("{other}"),
            });
            assert_eq!(answer, wanted, "{status}, {apart}");
        }
    }
    let failed = |code| Error::Hip { call: "miopenOpTensor", code }.code();
    assert_eq!(failed(4), cudnnStatus_t::CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
    assert_eq!(failed(7), cudnnStatus_t::CUDNN_STATUS_EXECUTION_FAILED);
}

#[test]
fn a_library_that_lacks_functions_leaves_their_work_to_our_own_code() {
    let dir = tempfile::tempdir().unwrap();
    let text = "int miopenCreate(void **to) { *to = (void *)5; return 0; }";
    let path = compile(dir.path(), "libMIOpen.so", text);
    let library = Box::leak(Box::new(Library::open(path.as_os_str()).unwrap()));
    assert_eq!(
        library.functions.lacks().len(),
        facts::<BTreeMap<String, serde_json::Value>>("hip/miopen.json").len() - 1
    );
    let hip = HipCall { handle: Arc::new(HipHandle::of(library).unwrap()), stream: cudaStream_t::default() };
    let [x, y] = [0x100, 0x200].map(|at| images(FLOAT, &[2, 3, 4, 5], at));
    assert!(!hip.activate(Activation::Tanh, &x, &y, false).unwrap());
    let forward = problem(Direction::Forward, FLOAT, NCHW).unwrap();
    assert!(!hip.convolve(&forward, at(), area(0)).unwrap());
    assert_eq!(hip.workspace(Some(&forward)).unwrap(), 0);
    let other = compile(dir.path(), "libother.so", "int miopenVersion;");
    assert!(Library::open(other.as_os_str()).is_err());
}

type Numbers = BTreeMap<String, BTreeMap<String, BTreeMap<String, u32>>>;

#[test]
fn numbers_are_those_of_every_release() {
    let facts: Numbers = facts("hip/miopen_numbers.json");
    let activation = |of| convert::activation(of).unwrap().0;
    let of_op = |op| convert::number(op, &convert::OPERATIONS).unwrap();
    let of_reduction = |op| convert::number(cudnnReduceTensorOp_t(op), &convert::REDUCTIONS).unwrap();
    let of_type = |kind| convert::number(kind, &convert::DATA_TYPES).unwrap();
    let softmax = |of| convert::number(cudnnSoftmaxAlgorithm_t(of), &convert::SOFTMAX_ALGORITHMS).unwrap();
    let softmax_mode = |of| convert::number(cudnnSoftmaxMode_t(of), &convert::SOFTMAX_MODES).unwrap();
    let nan = |of| convert::number(cudnnNanPropagation_t(of), &convert::PROPAGATIONS).unwrap();
    let pooling = |of| convert::pooling(of).unwrap();
    let rows: Vec<(&str, &str, u32)> = vec![
        ("miopenDataType_t", "miopenHalf", of_type(HALF)),
        ("miopenDataType_t", "miopenFloat", of_type(FLOAT)),
        ("miopenDataType_t", "miopenFloat", convert::SINGLE),
        ("miopenDataType_t", "miopenBFloat16", of_type(BFLOAT16)),
        ("miopenActivationMode_t", "miopenActivationPASTHRU", activation(Activation::Identity)),
        ("miopenActivationMode_t", "miopenActivationLOGISTIC", activation(Activation::Sigmoid)),
        ("miopenActivationMode_t", "miopenActivationTANH", activation(Activation::Tanh)),
        ("miopenActivationMode_t", "miopenActivationRELU", activation(Activation::Relu(false))),
        (
            "miopenActivationMode_t",
            "miopenActivationCLIPPEDRELU",
            activation(Activation::ClippedRelu(1.0, false)),
        ),
        ("miopenActivationMode_t", "miopenActivationELU", activation(Activation::Elu(1.0))),
        ("miopenTensorOp_t", "miopenTensorOpAdd", of_op(cudnnOpTensorOp_t::CUDNN_OP_TENSOR_ADD)),
        ("miopenTensorOp_t", "miopenTensorOpAdd", convert::ADD),
        ("miopenTensorOp_t", "miopenTensorOpMul", convert::MUL),
        ("miopenTensorOp_t", "miopenTensorOpMul", of_op(cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MUL)),
        ("miopenTensorOp_t", "miopenTensorOpMin", of_op(cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MIN)),
        ("miopenTensorOp_t", "miopenTensorOpMax", of_op(cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MAX)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_ADD", of_reduction(0)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_MUL", of_reduction(1)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_MIN", of_reduction(2)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_MAX", of_reduction(3)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_AMAX", of_reduction(4)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_AVG", of_reduction(5)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_NORM1", of_reduction(6)),
        ("miopenReduceTensorOp_t", "MIOPEN_REDUCE_TENSOR_NORM2", of_reduction(7)),
        ("miopenNanPropagation_t", "MIOPEN_NOT_PROPAGATE_NAN", nan(0)),
        ("miopenNanPropagation_t", "MIOPEN_PROPAGATE_NAN", nan(1)),
        ("miopenSoftmaxAlgorithm_t", "MIOPEN_SOFTMAX_FAST", softmax(0)),
        ("miopenSoftmaxAlgorithm_t", "MIOPEN_SOFTMAX_ACCURATE", softmax(1)),
        ("miopenSoftmaxAlgorithm_t", "MIOPEN_SOFTMAX_LOG", softmax(2)),
        ("miopenSoftmaxMode_t", "MIOPEN_SOFTMAX_MODE_INSTANCE", softmax_mode(0)),
        ("miopenSoftmaxMode_t", "MIOPEN_SOFTMAX_MODE_CHANNEL", softmax_mode(1)),
        ("miopenPoolingMode_t", "miopenPoolingMax", pooling(Pooling::Max(false))),
        ("miopenPoolingMode_t", "miopenPoolingAverage", pooling(Pooling::MeanOfInside)),
        ("miopenPoolingMode_t", "miopenPoolingAverageInclusive", pooling(Pooling::MeanOfAll)),
        ("miopenPoolingWorkspaceIndexMode_t", "miopenPoolingWorkspaceIndexImage", convert::INDICES_OF_IMAGE),
        ("miopenIndexType_t", "miopenIndexUint32", convert::INDICES_OF_32),
        ("miopenLRNMode_t", "miopenLRNCrossChannel", convert::ACROSS_CHANNELS),
        ("miopenConvolutionMode_t", "miopenConvolution", convert::CROSS_CORRELATION),
        ("miopenReduceTensorIndices_t", "MIOPEN_REDUCE_TENSOR_NO_INDICES", convert::NO_INDICES[0]),
        ("miopenIndicesType_t", "MIOPEN_32BIT_INDICES", convert::NO_INDICES[1]),
        ("miopenBatchNormMode_t", "miopenBNPerActivation", convert::EACH_PLACE),
        ("miopenBatchNormMode_t", "miopenBNSpatial", convert::EACH_CHANNEL),
        ("miopenStatus_t", "miopenStatusInvalidValue", convert::REFUSALS[0] as u32),
        ("miopenStatus_t", "miopenStatusBadParm", convert::REFUSALS[1] as u32),
        ("miopenStatus_t", "miopenStatusNotImplemented", convert::REFUSALS[2] as u32),
        ("miopenStatus_t", "miopenStatusUnsupportedOp", convert::REFUSALS[3] as u32),
        ("miopenStatus_t", "miopenStatusInternalError", convert::UNCLEAR[0] as u32),
        ("miopenStatus_t", "miopenStatusUnknownError", convert::UNCLEAR[1] as u32),
        ("miopenStatus_t", "miopenStatusAllocFailed", convert::ALLOC_FAILED as u32),
    ];
    for (enumeration, name, ours) in rows {
        let values = &facts[enumeration][name];
        let (releases, theirs) = values.iter().next().unwrap();
        assert_eq!((values.len(), *theirs), (1, ours), "{name}");
        assert_eq!(releases.split(' ').collect::<Vec<_>>(), RELEASES, "{name}");
    }
    let deterministic = &facts["miopenConvolutionAttrib_t"]["MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC"];
    assert_eq!(deterministic.iter().next(), Some((&"5.7 6.2 6.4 7.2".to_owned(), &convert::DETERMINISTIC)));
}
