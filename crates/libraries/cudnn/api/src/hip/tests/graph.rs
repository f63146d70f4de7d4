//! Which operations of a graph reach MIOpen, and as what; what needs memory of the device's is xtask/src/test/miopen's.

use core::ops::Range;

use kit::Address;
use parking_lot::Mutex;

use super::*;
use crate::graph::descriptor::{Attribute, Descriptor, Node};
use crate::graph::device::Device;
use crate::graph::plan::{Given, Graph};

type Name = cudnnBackendAttributeName_t;
type Of = cudnnBackendDescriptorType_t;

/// What a descriptor is told.
enum Told<'t> {
    Integers(&'t [i64]),
    /// Of an enumeration, or a truth.
    Number(u32),
    Real(f64),
    Nodes(Vec<Arc<Node>>),
}

use Told::{Integers, Number, Real};

fn one(node: &Arc<Node>) -> Told<'static> {
    Told::Nodes(vec![Arc::clone(node)])
}

fn node(kind: Of, told: Vec<(Name, Told)>) -> Arc<Node> {
    let mut descriptor = Descriptor::new(kind);
    for (name, told) in told {
        let (ty, count, bytes, held) = match told {
            Integers(list) => {
                let bytes = list.iter().flat_map(|one| one.to_ne_bytes()).collect();
                (cudnnBackendAttributeType_t::CUDNN_TYPE_INT64, list.len(), bytes, vec![])
            }
            Number(number) => {
                (cudnnBackendAttributeType_t::CUDNN_TYPE_DATA_TYPE, 1, number.to_ne_bytes().to_vec(), vec![])
            }
            Real(real) => {
                (cudnnBackendAttributeType_t::CUDNN_TYPE_DOUBLE, 1, real.to_ne_bytes().to_vec(), vec![])
            }
            Told::Nodes(held) => {
                (cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR, held.len(), vec![], held)
            }
        };
        descriptor.put(name.0, Attribute::read(ty, count, bytes, held).unwrap());
    }
    descriptor.is_final = true;
    Arc::new(Mutex::new(descriptor))
}

/// A tensor of the format; it lies at 256 times its number.
fn of(uid: i64, kind: cudnnDataType_t, format: cudnnTensorFormat_t, sizes: &[c_int]) -> Arc<Node> {
    let strides = super::tensor(kind, format, sizes).strides;
    let [sizes, strides] =
        [sizes.to_vec(), strides].map(|list| list.into_iter().map(i64::from).collect::<Vec<_>>());
    let told = vec![
        (Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Integers(core::slice::from_ref(&uid))),
        (Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Number(kind.0)),
        (Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Integers(&sizes)),
        (Name::CUDNN_ATTR_TENSOR_STRIDES, Integers(&strides)),
    ];
    node(Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR, told)
}

/// By channels, in single precision.
fn plain(uid: i64, sizes: &[c_int]) -> Arc<Node> {
    of(uid, FLOAT, NCHW, sizes)
}

/// A number of the host's.
fn value(uid: i64) -> Arc<Node> {
    let told = vec![
        (Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, Integers(core::slice::from_ref(&uid))),
        (Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Number(FLOAT.0)),
        (Name::CUDNN_ATTR_TENSOR_DIMENSIONS, Integers(&[1, 1, 1, 1])),
        (Name::CUDNN_ATTR_TENSOR_STRIDES, Integers(&[1, 1, 1, 1])),
        (Name::CUDNN_ATTR_TENSOR_IS_BY_VALUE, Number(1)),
    ];
    node(Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR, told)
}

/// The value of each number of the host's.
const VALUE: f64 = 0.125;

/// Runs a graph of one operation; from which to which operation our own code is asked for.
fn run(hip: &HipCall, operation: Arc<Node>) -> Result<(bool, Vec<[usize; 2]>), Error> {
    let graph = Graph::new(&[operation]).unwrap();
    let given = |(uid, is_value)| {
        let at = memory(uid as usize * 0x100).cast::<u8>();
        (uid, if is_value { Given::Value(VALUE) } else { Given::Memory(Address(at)) })
    };
    let (given, mut asked) = (graph.wanted().map(given).collect(), vec![]);
    let ours = |operations: Range<usize>, _: &BTreeMap<i64, Given>| {
        asked.push([operations.start, operations.end]);
        Ok(())
    };
    let device = Device { hip: Some(hip), kernels: None, stream: hip.stream };
    // SAFETY: nobody follows the addresses.
    let is_run = unsafe { graph.run_on_device(&device, &given, ours) }?;
    Ok((is_run, asked))
}

/// What reaches MIOpen of a graph of one operation; none where our own code runs all of it, without MIOpen having been asked.
fn reaches(recorder: &Recorder<Library>, hip: &HipCall, operation: Arc<Node>) -> Option<Vec<String>> {
    let (is_run, asked) = run(hip, operation).unwrap();
    let work = work_of(recorder);
    assert_eq!((asked.len(), is_run), (0, !work.is_empty()));
    is_run.then_some(work)
}

/// Of the images, filters and results of [`super::problem`].
fn convolution(direction: Direction, kind: cudnnDataType_t, other: Vec<(Name, Told)>) -> Arc<Node> {
    let mut told = vec![
        (Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Integers(&[2][..])),
        (Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Number(1)),
        (Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Integers(&[1, 0])),
        (Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Integers(&[1, 0])),
        (Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Integers(&[2, 3])),
    ];
    let (mut behind, mut kinds) = (vec![], [kind; 3]);
    for (name, other) in other {
        match other {
            // Of the result.
            Number(number) if name == Name::CUDNN_ATTR_TENSOR_DATA_TYPE => kinds[2] = cudnnDataType_t(number),
            Real(_) => behind.push((name, other)),
            _ => told.push((name, other)),
        }
    }
    let by = node(Of::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, told);
    let [x, w, y] = [(1, [1, 2, 5, 6]), (2, [4, 1, 3, 3]), (3, [1, 4, 3, 2])]
        .map(|(uid, sizes)| of(uid, kinds[uid as usize - 1], NHWC, &sizes));
    let (kind, names) = match direction {
        Direction::Forward => (
            Of::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            ],
        ),
        Direction::Data => (
            Of::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            ],
        ),
        Direction::Filter => (
            Of::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            ],
        ),
    };
    behind.extend(names.into_iter().zip([&x, &w, &y, &by]).map(|(name, of)| (name, one(of))));
    node(kind, behind)
}

#[test]
fn convolutions_of_graphs_are_those_of_the_legacy_calls() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let reaches =
            |direction, kind| reaches(&recorder, &hip, convolution(direction, kind, vec![])).unwrap();
        let (x, w, y) = ("0:1x2x5x6/last", "0:4x1x3x3", "0:1x4x3x2/last");
        // Without a driver there is no memory for a work area.
        assert_eq!(
            reaches(Direction::Forward, HALF),
            [
                "miopenInitConvolutionNdDescriptor 2 1,0 2,3 1,1 0".to_owned(),
                "miopenSetConvolutionGroupCount 2".to_owned(),
                "miopenSetConvolutionAttribute 1 1".to_owned(),
                format!("miopenConvolutionForwardGetWorkSpaceSize {w} {x} {y}"),
                format!("miopenFindConvolutionForwardAlgorithm {x} 100 {w} 200 {y} 300 16 0 0 0"),
                format!("miopenConvolutionForward 1 {x} 100 {w} 200 1 0 {y} 300 0 0"),
            ],
            "ROCm {release}"
        );
        assert_eq!(
            reaches(Direction::Data, HALF)[5],
            format!("miopenConvolutionBackwardData 1 {y} 300 {w} 200 1 0 {x} 100 0 0")
        );
        let (x, w, y) = ("5:1x2x5x6/last", "5:4x1x3x3", "5:1x4x3x2/last");
        assert_eq!(
            reaches(Direction::Filter, BFLOAT16)[5],
            format!("miopenConvolutionBackwardWeights 1 {y} 300 {x} 100 1 0 {w} 200 0 0")
        );
    }
}

#[test]
fn convolutions_that_miopen_would_make_otherwise_are_our_own_codes() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let forward = |other| convolution(Direction::Forward, FLOAT, vec![other]);
    for (what, other) in [
        ("turned filters", (Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Number(0))),
        ("a factor", (Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, Real(2.0))),
        ("a sum", (Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, Real(1.0))),
        ("more padding in front", (Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Integers(&[2, 0][..]))),
        ("a result of another type", (Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Number(HALF.0))),
    ] {
        let operation = match other.0 {
            // With less behind it, so that there are as many places.
            Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS => convolution(
                Direction::Forward,
                FLOAT,
                vec![other, (Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Integers(&[0, 0]))],
            ),
            _ => forward(other),
        };
        assert_eq!(reaches(&recorder, &hip, operation), None, "{what}");
    }
    let double = convolution(Direction::Forward, DOUBLE, vec![]);
    assert_eq!(reaches(&recorder, &hip, double), None, "double");
}

const SIZES: [c_int; 4] = [2, 3, 4, 5];

fn pointwise(mode: u32, told: Vec<(Name, Told)>, tensors: Vec<(Name, Arc<Node>)>) -> Arc<Node> {
    let mut by = vec![(Name::CUDNN_ATTR_POINTWISE_MODE, Number(mode))];
    let mut operation: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, one(tensor))).collect();
    for (name, told) in told {
        let of = if (750..770).contains(&name.0) { &mut operation } else { &mut by };
        of.push((name, told));
    }
    let by = node(Of::CUDNN_BACKEND_POINTWISE_DESCRIPTOR, by);
    operation.push((Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, one(&by)));
    node(Of::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, operation)
}

fn unary(mode: cudnnPointwiseMode_t, told: Vec<(Name, Told)>) -> Arc<Node> {
    unary_of(mode, told, [NCHW; 2])
}

fn unary_of(
    mode: cudnnPointwiseMode_t,
    told: Vec<(Name, Told)>,
    formats: [cudnnTensorFormat_t; 2],
) -> Arc<Node> {
    let [x, y] = [(1, formats[0]), (2, formats[1])].map(|(uid, format)| of(uid, FLOAT, format, &SIZES));
    let names = [Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC];
    pointwise(mode.0, told, names.into_iter().zip([x, y]).collect())
}

fn binary(mode: cudnnPointwiseMode_t, [x, b]: [Arc<Node>; 2]) -> Arc<Node> {
    let names = [
        Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
        Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
        Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
    ];
    let factors = [
        (Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, Real(0.5)),
        (Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, Real(2.0)),
    ];
    pointwise(mode.0, factors.into(), names.into_iter().zip([x, b, plain(3, &SIZES)]).collect())
}

#[test]
fn pointwise_operations_are_activations_and_sums_of_tensors() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let flat = "1:2x60x1x1";
    let clipped = (Name::CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, Real(6.0));
    let alpha = (Name::CUDNN_ATTR_POINTWISE_ELU_ALPHA, Real(0.25));
    for (mode, told, line) in [
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD, vec![], "3 0 0 0"),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD, vec![clipped], "7 6 0 0"),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_TANH_FWD, vec![], "2 1 1 0"),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_SIGMOID_FWD, vec![], "1 0 0 0"),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_ELU_FWD, vec![alpha], "9 0.25 0 0"),
    ] {
        let set = format!("miopenSetActivationDescriptor {line}");
        let forward = format!("miopenActivationForward 1 {flat} 100 0 {flat} 200");
        assert_eq!(reaches(&recorder, &hip, unary(mode, told)).unwrap(), [set, forward]);
    }
    let tanh = |formats| unary_of(cudnnPointwiseMode_t::CUDNN_POINTWISE_TANH_FWD, vec![], formats);
    assert!(reaches(&recorder, &hip, tanh([NHWC; 2])).is_some());
    assert_eq!(reaches(&recorder, &hip, tanh([NHWC, NCHW])), None, "two layouts");
    let (is, channels) = ("1:2x3x4x5", "1:1x3x1x1");
    for (mode, b_first, line) in [
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, false, format!("0 0.5 {is} 100 2 {channels} 200")),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, true, format!("0 2 {is} 100 0.5 {channels} 200")),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_MUL, false, format!("1 0.5 {is} 100 2 {channels} 200")),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_SUB, false, format!("0 0.5 {is} 100 -2 {channels} 200")),
        (cudnnPointwiseMode_t::CUDNN_POINTWISE_SUB, true, format!("0 -2 {is} 100 0.5 {channels} 200")),
    ] {
        let mut both = [plain(1, &SIZES), plain(2, &[1, 3, 1, 1])];
        if b_first {
            both.reverse();
        }
        let wanted = [format!("miopenOpTensor {line} 0 {is} 300")];
        assert_eq!(reaches(&recorder, &hip, binary(mode, both)).unwrap(), wanted);
    }
    for (what, operation) in [
        ("the largest, which may be NaN", {
            binary(cudnnPointwiseMode_t::CUDNN_POINTWISE_MAX, [plain(1, &SIZES), plain(2, &SIZES)])
        }),
        ("both repeated", {
            binary(
                cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD,
                [[2, 1, 4, 5], [1, 3, 1, 1]].map(|sizes| plain(sizes[0].into(), &sizes)),
            )
        }),
        ("channels last", {
            binary(cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, [plain(1, &SIZES), of(2, FLOAT, NHWC, &SIZES)])
        }),
        ("a number of the host's", {
            binary(cudnnPointwiseMode_t::CUDNN_POINTWISE_MUL, [plain(1, &SIZES), value(2)])
        }),
        ("a NaN that is kept", {
            let keeps = (Name::CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, Number(1));
            unary(cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD, vec![keeps])
        }),
        ("a slope below", {
            let slope = (Name::CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, Real(0.1));
            unary(cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD, vec![slope])
        }),
        ("a factor", {
            let factor = (Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, Real(2.0));
            unary(cudnnPointwiseMode_t::CUDNN_POINTWISE_TANH_FWD, vec![factor])
        }),
        ("a root", unary(cudnnPointwiseMode_t::CUDNN_POINTWISE_SQRT, vec![])),
    ] {
        assert_eq!(reaches(&recorder, &hip, operation), None, "{what}");
    }
}

fn resample(mode: cudnnResampleMode_t, behind: i64) -> Arc<Node> {
    let told = vec![
        (Name::CUDNN_ATTR_RESAMPLE_MODE, Number(mode.0)),
        (Name::CUDNN_ATTR_RESAMPLE_PADDING_MODE, Number(cudnnPaddingMode_t::CUDNN_NEG_INF_PAD.0)),
        (Name::CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, Integers(&[2, 3][..])),
        (Name::CUDNN_ATTR_RESAMPLE_STRIDES, Integers(&[2, 3])),
        (Name::CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, Integers(&[0, 1])),
        (Name::CUDNN_ATTR_RESAMPLE_POST_PADDINGS, Integers(&[0, 1])),
    ];
    let by = node(Of::CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, told);
    let (x, y) = (plain(1, &SIZES), plain(2, &[2, 3, 2, 2 + behind as c_int]));
    let told = vec![
        (Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, one(&x)),
        (Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, one(&y)),
        (Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, one(&by)),
    ];
    node(Of::CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, told)
}

/// Of a tensor's last size; with statistics or without.
fn softmax(has_statistics: bool) -> Arc<Node> {
    let mut told = vec![
        (Name::CUDNN_ATTR_OPERATION_SOFTMAX_XDESC, one(&plain(1, &SIZES))),
        (Name::CUDNN_ATTR_OPERATION_SOFTMAX_YDESC, one(&plain(2, &SIZES))),
    ];
    if has_statistics {
        told.push((Name::CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, one(&plain(3, &[2, 3, 4, 1]))));
    }
    node(Of::CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, told)
}

#[test]
fn windows_and_softmax_of_graphs_are_those_of_the_legacy_calls() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    for (mode, number) in [
        (cudnnResampleMode_t::CUDNN_RESAMPLE_MAXPOOL, 0),
        (cudnnResampleMode_t::CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, 1),
        (cudnnResampleMode_t::CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, 2),
    ] {
        assert_eq!(
            reaches(&recorder, &hip, resample(mode, 0)).unwrap(),
            [
                format!("miopenSetNdPoolingDescriptor {number} 2 2,3 0,1 2,3"),
                "miopenSetPoolingIndexType 2".to_owned(),
                "miopenSetPoolingWorkSpaceIndexMode 1".to_owned(),
                "miopenPoolingForward 1 1:2x3x4x5 100 0 1:2x3x2x2 200 0 0 0".to_owned(),
            ]
        );
        assert_eq!(reaches(&recorder, &hip, resample(mode, 1)), None, "more places than the formula gives");
    }
    // Rows of five.
    let is = "1:24x5x1x1";
    let wanted = [format!("miopenSoftmaxForward_V2 1 {is} 100 0 {is} 200 1 1")];
    assert_eq!(reaches(&recorder, &hip, softmax(false)).unwrap(), wanted);
    assert_eq!(reaches(&recorder, &hip, softmax(true)), None);
}

fn norm(mode: cudnnBackendNormMode_t, told: Vec<(Name, i64)>, trains: bool) -> Arc<Node> {
    let phase = if trains {
        cudnnBackendNormFwdPhase_t::CUDNN_NORM_FWD_TRAINING
    } else {
        cudnnBackendNormFwdPhase_t::CUDNN_NORM_FWD_INFERENCE
    };
    let mut all = vec![
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_MODE, Number(mode.0)),
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, Number(phase.0)),
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, one(&of(1, HALF, NCHW, &SIZES))),
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, one(&of(2, HALF, NCHW, &SIZES))),
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, one(&value(3))),
    ];
    let channels = |uid| one(&plain(uid, &[1, 3, 1, 1]));
    all.extend(told.into_iter().map(|(name, uid)| {
        let is_factor = name == Name::CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC;
        (name, if is_factor { one(&value(uid)) } else { channels(uid) })
    }));
    node(Of::CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, all)
}

fn norm_gradient(statistics: Option<[i64; 2]>) -> Arc<Node> {
    let [images, channels] = [HALF, FLOAT].map(|kind| {
        let sizes = if kind == HALF { SIZES } else { [1, 3, 1, 1] };
        move |uid| one(&of(uid, kind, NCHW, &sizes))
    });
    let mode = cudnnBackendNormMode_t::CUDNN_BATCH_NORM;
    let mut told = vec![
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_MODE, Number(mode.0)),
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, images(1)),
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, images(2)),
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, images(3)),
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, channels(4)),
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, channels(5)),
        (Name::CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, channels(6)),
    ];
    match statistics {
        Some([mean, inverse]) => told.extend([
            (Name::CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, channels(mean)),
            (Name::CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, channels(inverse)),
        ]),
        None => told.push((Name::CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC, one(&value(9)))),
    }
    node(Of::CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, told)
}

#[test]
fn batch_norms_of_graphs_are_those_of_the_legacy_calls() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let batch = cudnnBackendNormMode_t::CUDNN_BATCH_NORM;
    let factors = vec![
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, 4),
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, 5),
    ];
    let saved = vec![
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, 6),
        (Name::CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, 7),
    ];
    let (is, channels) = ("0:2x3x4x5", "1:1x3x1x1");
    let training =
        format!("miopenBatchNormalizationForwardTraining 1 1 0 {is} 100 {is} 200 {channels} 400 500");
    let both = [&factors[..], &saved].concat();
    for (told, behind) in [(both.clone(), "0 0 0 0.125 600 700"), (factors.clone(), "0 0 0 0.125 0 0")] {
        let reached = reaches(&recorder, &hip, norm(batch, told, true)).unwrap();
        assert_eq!(reached, [format!("{training} {behind}")]);
    }
    for (what, operation) in [
        ("statistics that are given", norm(batch, both.clone(), false)),
        ("one of two statistics", norm(batch, both[..3].to_vec(), true)),
        ("no bias", norm(batch, [&factors[..1], &saved].concat(), true)),
        ("a layer", norm(cudnnBackendNormMode_t::CUDNN_LAYER_NORM, factors.clone(), true)),
    ] {
        assert_eq!(reaches(&recorder, &hip, operation), None, "{what}");
    }
    let backward = format!(
        "miopenBatchNormalizationBackward 1 1 0 1 0 {is} 100 {is} 200 {is} 300 {channels} 400 500 600"
    );
    for (statistics, behind) in [(Some([7, 8]), "0 700 800"), (None, "0.125 0 0")] {
        let reached = reaches(&recorder, &hip, norm_gradient(statistics)).unwrap();
        assert_eq!(reached, [format!("{backward} {behind}")]);
    }
}

#[test]
fn what_miopen_refuses_of_a_graph_is_our_own_codes() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let sum = || binary(cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, [1, 2].map(|uid| plain(uid, &SIZES)));
    recorder.answer_to(c"miopenOpTensor", 3);
    assert_eq!(run(&hip, sum()).unwrap(), (true, vec![[0, 1]]));
    recorder.answer_to(c"miopenOpTensor", 4);
    assert!(matches!(run(&hip, sum()), Err(Error::Hip { call: "miopenOpTensor", code: 4 })));
    assert_eq!(run(&hip, sum()).unwrap(), (true, vec![]));
}
