//! `cuTensorMapEncode*`: what NVIDIA's manual demands of the arguments, and what the map holds.

use std::ffi::c_void;
use std::ptr::null;

use border::Out;
use compiler::tensor_map::{Element, Swizzle, TensorMap};
use cuda_abi::{
    CUtensorMap, CUtensorMapDataType as Type, CUtensorMapFloatOOBfill as Fill,
    CUtensorMapInterleave as Interleave, CUtensorMapL2promotion as Promotion,
    CUtensorMapSwizzle as Swizzling,
};
use driver::Error;
use driver::api::tensor_map::{cuTensorMapEncodeIm2col, cuTensorMapEncodeTiled, cuTensorMapReplaceAddress};

#[derive(Clone)]
struct Given {
    ty: u32,
    address: u64,
    dims: Vec<u64>,
    strides: Vec<u64>,
    boxed: Vec<u32>,
    steps: Vec<u32>,
    interleave: u32,
    swizzle: u32,
    fill: u32,
}

/// A good one: 100 × 50 floats in rows of 512 bytes, boxes of 32 × 8.
fn given() -> Given {
    Given {
        ty: 7,
        address: 0x1000,
        dims: vec![100, 50],
        strides: vec![512],
        boxed: vec![32, 8],
        steps: vec![1, 1],
        interleave: 0,
        swizzle: 3,
        fill: 0,
    }
}

fn bytes(map: &CUtensorMap) -> [u8; 128] {
    let words: Vec<u8> = map.opaque.iter().flat_map(|word| word.to_le_bytes()).collect();
    words.try_into().unwrap()
}

fn encode(given: &Given) -> Result<TensorMap, Error> {
    let mut map = CUtensorMap::default();
    // SAFETY: as many elements as are told, or NULL.
    unsafe {
        cuTensorMapEncodeTiled(
            Out::from(&mut map),
            Type(given.ty),
            given.dims.len() as u32,
            given.address as *mut c_void,
            given.dims.as_ptr(),
            if given.strides.is_empty() { null() } else { given.strides.as_ptr() },
            given.boxed.as_ptr(),
            given.steps.as_ptr(),
            Interleave(given.interleave),
            Swizzling(given.swizzle),
            Promotion(0),
            Fill(given.fill),
        )
    }?;
    Ok(TensorMap::decode(&bytes(&map)).unwrap())
}

#[test]
fn a_tiled_map_holds_what_was_said() {
    let map = encode(&given()).unwrap();
    assert_eq!(
        (map.address, map.rank, map.element, map.swizzle),
        (0x1000, 2, Element::F32, Swizzle::Bytes128)
    );
    assert_eq!((&map.dims[..2], map.strides[0], &map.box_dims[..2]), (&[100, 50][..], 512, &[32, 8][..]));
    // One dimension has no strides, which may be a null pointer.
    let line = Given { dims: vec![100], strides: vec![], boxed: vec![4], steps: vec![3], ..given() };
    assert_eq!(encode(&line).unwrap().steps[0], 1, "dimension 0 has no step");
}

/// Groups of products encode maps of nothing, whose address and sizes kernels replace.
#[test]
fn a_map_may_have_no_address_yet() {
    let nothing = Given { address: 0, dims: vec![1, 1], strides: vec![0], ..given() };
    assert_eq!(encode(&nothing).unwrap().address, 0);
}

#[test]
fn what_the_manual_forbids_is_an_invalid_value() {
    let wrong: &[(&str, Given)] = &[
        ("no dimension", Given { dims: vec![], strides: vec![], ..given() }),
        (
            "six dimensions",
            Given { dims: vec![1; 6], strides: vec![16; 5], boxed: vec![4; 6], steps: vec![1; 6], ..given() },
        ),
        ("address of 8", Given { address: 0x1008, ..given() }),
        ("dimension 0", Given { dims: vec![0, 50], ..given() }),
        ("dimension above 2^32", Given { dims: vec![100, (1 << 32) + 1], ..given() }),
        ("stride of 8", Given { strides: vec![520], ..given() }),
        ("stride of 2^40", Given { strides: vec![1 << 40], ..given() }),
        ("box of 0", Given { boxed: vec![32, 0], ..given() }),
        ("box of 257", Given { boxed: vec![32, 257], ..given() }),
        ("row of 12 bytes", Given { boxed: vec![3, 8], ..given() }),
        ("row longer than the swizzle", Given { boxed: vec![64, 8], ..given() }),
        ("step 0", Given { steps: vec![1, 0], ..given() }),
        ("step 9", Given { steps: vec![1, 9], ..given() }),
        ("NaN in integers", Given { ty: 2, fill: 1, ..given() }),
        ("interleaved, two dimensions", Given { interleave: 1, swizzle: 0, ..given() }),
        ("type 16", Given { ty: 16, ..given() }),
        ("swizzle 7", Given { swizzle: 7, ..given() }),
    ];
    for (what, given) in wrong {
        assert!(matches!(encode(given), Err(Error::InvalidValue(_))), "{what}");
    }
}

/// Of 4 bits as they lie, and of 4 and 6 bits that a copy pads: 16 of them to 16 bytes of shared memory.
#[test]
fn elements_of_less_than_a_byte_have_rules_of_their_own() {
    let packed = Given { ty: 13, dims: vec![100, 50], strides: vec![64], boxed: vec![64, 8], ..given() };
    let padded = |ty: u32, stride: u64| Given {
        ty,
        dims: vec![256, 50],
        strides: vec![stride],
        boxed: vec![128, 8],
        ..given()
    };
    for (given, element) in [
        (&packed, Element::U4),
        (&padded(14, 128), Element::U4Padded),
        (&padded(15, 192), Element::U6Padded),
        (&Given { swizzle: 0, ..padded(14, 128) }, Element::U4Padded),
    ] {
        assert_eq!(encode(given).unwrap().element, element);
    }
    for (what, given) in [
        ("half a byte of a row", Given { dims: vec![101, 50], ..packed.clone() }),
        ("a box of half a byte more", Given { boxed: vec![63, 8], ..packed.clone() }),
        ("a box of 24 bytes", Given { boxed: vec![48, 8], ..packed.clone() }),
        ("NaN in integers", Given { fill: 1, ..packed.clone() }),
        ("padded, address of 16", Given { address: 0x1010, ..padded(14, 128) }),
        ("padded, stride of 16", Given { strides: vec![144], ..padded(14, 128) }),
        ("padded, a box of half a row", Given { boxed: vec![64, 8], ..padded(14, 128) }),
        ("padded, a dimension of less than a box", Given { dims: vec![192, 50], ..padded(15, 192) }),
        ("padded, swizzled by 64 bytes", Given { swizzle: 2, ..padded(14, 128) }),
        ("padded, swizzled by halves of 16 bytes", Given { swizzle: 5, ..padded(14, 128) }),
        ("padded of 6 bits, swizzled by 32", Given { swizzle: 4, ..padded(15, 192) }),
    ] {
        assert!(matches!(encode(&given), Err(Error::InvalidValue(_))), "{what}");
    }
}

#[test]
fn patterns_of_larger_pieces_are_kept() {
    for (swizzle, kept) in
        [(4, Swizzle::Bytes128By32), (5, Swizzle::Bytes128By32Flipped), (6, Swizzle::Bytes128By64)]
    {
        assert_eq!(encode(&Given { swizzle, ..given() }).unwrap().swizzle, kept);
    }
}

#[test]
fn an_address_is_replaced_in_a_map_of_ours_only() {
    let mut map = CUtensorMap::default();
    // SAFETY: a map that may be read.
    assert!(unsafe { cuTensorMapReplaceAddress(Out::from(&mut map), 0x2000 as *mut c_void) }.is_err());
    let first = encode(&given()).unwrap();
    for (word, chunk) in map.opaque.iter_mut().zip(first.encode().chunks(8)) {
        *word = u64::from_le_bytes(chunk.try_into().unwrap());
    }
    // SAFETY: a map that may be read.
    assert!(unsafe { cuTensorMapReplaceAddress(Out::from(&mut map), 0x2008 as *mut c_void) }.is_err());
    // SAFETY: a map that may be read.
    unsafe { cuTensorMapReplaceAddress(Out::from(&mut map), 0x2000 as *mut c_void) }.unwrap();
    assert_eq!(TensorMap::decode(&bytes(&map)), Some(TensorMap { address: 0x2000, ..first }));
}

#[test]
fn an_im2col_map_has_a_box_of_pixels_that_is_not_empty() {
    let encode = |lower: &[i32], upper: &[i32], channels: u32, pixels: u32| {
        let mut map = CUtensorMap::default();
        let (dims, strides, steps) = ([64u64, 10, 12, 2], [128u64, 1280, 15360], [1u32, 1, 2, 1]);
        // SAFETY: as many elements as are told, or NULL.
        unsafe {
            cuTensorMapEncodeIm2col(
                Out::from(&mut map),
                Type(6),
                4,
                0x1000 as *mut c_void,
                dims.as_ptr(),
                strides.as_ptr(),
                lower.as_ptr(),
                upper.as_ptr(),
                channels,
                pixels,
                steps.as_ptr(),
                Interleave(0),
                Swizzling(0),
                Promotion(0),
                Fill(1),
            )
        }?;
        Ok::<_, Error>(TensorMap::decode(&bytes(&map)).unwrap())
    };
    let im2col = encode(&[-1, -1], &[-1, -1], 32, 128).unwrap().im2col.unwrap();
    assert_eq!((im2col.lower[..2].to_vec(), im2col.upper[..2].to_vec()), (vec![-1, -1], vec![-1, -1]));
    assert_eq!((im2col.channels_per_pixel, im2col.pixels_per_column), (32, 128));
    for (what, result) in [
        ("offsets have 8 bits with two dimensions", encode(&[-129, 0], &[0, 0], 32, 128)),
        ("the box is empty", encode(&[5, 0], &[-5, 0], 32, 128)),
        ("257 channels", encode(&[0, 0], &[0, 0], 257, 128)),
        ("1025 pixels", encode(&[0, 0], &[0, 0], 32, 1025)),
    ] {
        assert!(matches!(result, Err(Error::InvalidValue(_))), "{what}");
    }
}
