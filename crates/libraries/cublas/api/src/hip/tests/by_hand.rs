//! Every routine of `by_hand` in both widths of integers, on hipBLAS of ROCm 7.2: one call, its arguments in hipBLAS's order.

use core::ffi::c_int;

use super::*;

const N: cublasOperation_t = cublasOperation_t::CUBLAS_OP_N;
const T: cublasOperation_t = cublasOperation_t::CUBLAS_OP_T;
const C: cublasOperation_t = cublasOperation_t::CUBLAS_OP_C;
const FLOAT: cudaDataType = cudaDataType::CUDA_R_32F;
const DOUBLE: cudaDataType = cudaDataType::CUDA_R_64F;
const HALF: cudaDataType = cudaDataType::CUDA_R_16F;
const COMPLEX: cudaDataType = cudaDataType::CUDA_C_32F;

/// Calls each routine with the same arguments, and holds what hipBLAS has seen against one text.
macro_rules! all_say {
    ($recorder:expr, [$($name:ident)*], $arguments:tt, $said:expr) => {
        $( all_say!(@ $recorder, $name, $arguments, $said); )*
    };
    (@ $recorder:expr, $name:ident, ($($argument:expr),* $(,)?), $said:expr) => {
        // SAFETY: the recorder follows no pointer; arrays that are the host's are here.
        let answer = unsafe { by_hand::$name(&call_of(&$recorder), $($argument),*) };
        assert!(answer.is_ok(), stringify!($name));
        assert_eq!($recorder.recorded(), $said, stringify!($name));
    };
}

/// As [`all_say`], with the answer that hipBLAS lacks it, and no call.
macro_rules! all_refuse {
    ($recorder:expr, [$($name:ident)*], $arguments:tt) => { $( all_refuse!(@ $recorder, $name, $arguments); )* };
    (@ $recorder:expr, $name:ident, ($($argument:expr),* $(,)?)) => {
        // SAFETY: as above.
        let answer = unsafe { by_hand::$name(&call_of(&$recorder), $($argument),*) };
        assert!(matches!(answer, Err(Error::NotSupported(_))), stringify!($name));
        assert_eq!($recorder.recorded(), "", stringify!($name));
    };
}

#[test]
fn products_in_single_precision_are_general_ones() {
    let recorder = recorder("7.2");
    all_say!(
        recorder,
        [cublasSgemmEx cublasSgemmEx_64],
        (N, T, 3, 4, 5, at(16), at(32), HALF, 6, at(48), HALF, 7, at(64), place(80), FLOAT, 8),
        "hipblasGemmEx_64 45477 111 112 3 4 5 16 32 2 6 48 2 7 64 80 0 8 2 160\n"
    );
    all_say!(
        recorder,
        [cublasCgemmEx cublasCgemmEx_64 cublasCgemm3mEx cublasCgemm3mEx_64],
        (C, N, 3, 4, 5, at(16), at(32), COMPLEX, 6, at(48), COMPLEX, 7, at(64), place(80), COMPLEX, 8),
        "hipblasGemmEx_64 45477 113 111 3 4 5 16 32 4 6 48 4 7 64 80 4 8 2 160\n"
    );
}

#[test]
fn updates_of_a_triangle_are_those_of_their_type() {
    let (recorder, lower) = (recorder("7.2"), cublasFillMode_t::CUBLAS_FILL_MODE_LOWER);
    all_say!(
        recorder,
        [cublasCsyrkEx cublasCsyrkEx_64 cublasCsyrk3mEx cublasCsyrk3mEx_64],
        (lower, T, 3, 4, at(16), at(32), COMPLEX, 5, at(48), place(64), COMPLEX, 6),
        "hipblasCsyrk_64 45477 122 112 3 4 16 32 5 48 64 6\n"
    );
    all_say!(
        recorder,
        [cublasCherkEx cublasCherkEx_64 cublasCherk3mEx cublasCherk3mEx_64],
        (lower, C, 3, 4, at(16), at(32), COMPLEX, 5, at(48), place(64), COMPLEX, 6),
        "hipblasCherk_64 45477 122 113 3 4 16 32 5 48 64 6\n"
    );
    let bytes = cudaDataType::CUDA_C_8I;
    all_refuse!(
        recorder,
        [cublasCsyrkEx cublasCherkEx],
        (lower, C, 3, 4, at(16), at(32), bytes, 5, at(48), place(64), COMPLEX, 6)
    );
}

#[test]
fn matrices_with_vectors_of_mixed_types_are_products_with_one_row() {
    let recorder = recorder("7.2");
    macro_rules! batches {
        ($($batched:ident $batched_wide:ident $strided:ident $strided_wide:ident $x:literal $y:literal;)*) => { $(
            all_say!(
                recorder,
                [$batched $batched_wide],
                (T, 3, 4, at(16), at(32), 5, at(48), 7, at(64), at(80), 2, 9),
                format!("hipblasGemmBatchedEx_64 45477 111 111 1 4 3 16 48 {} 7 32 {} 5 64 80 {} 2 9 2 160\n", $x, $x, $y)
            );
            all_say!(
                recorder,
                [$strided $strided_wide],
                (N, 3, 4, at(16), at(32), 5, 60, at(48), 7, 70, at(64), place(80), 2, 90, 9),
                format!(
                    "hipblasGemmStridedBatchedEx_64 45477 111 112 1 3 4 16 48 {} 7 70 32 {} 5 60 64 80 {} 2 90 9 2 160\n",
                    $x, $x, $y
                )
            );
        )* };
    }
    // 2 is a half, 14 a bfloat16, 0 a float.
    batches! {
        cublasHSHgemvBatched cublasHSHgemvBatched_64 cublasHSHgemvStridedBatched cublasHSHgemvStridedBatched_64 2 2;
        cublasHSSgemvBatched cublasHSSgemvBatched_64 cublasHSSgemvStridedBatched cublasHSSgemvStridedBatched_64 2 0;
        cublasTSTgemvBatched cublasTSTgemvBatched_64 cublasTSTgemvStridedBatched cublasTSTgemvStridedBatched_64 14 14;
        cublasTSSgemvBatched cublasTSSgemvBatched_64 cublasTSSgemvStridedBatched cublasTSSgemvStridedBatched_64 14 0;
    }
}

#[test]
fn groups_of_each_type_are_batches() {
    let recorder = recorder("7.2");
    /// Two groups, of one and of two products.
    fn said(factors: [usize; 2], data: u32, compute: u32) -> String {
        let [first, second] = factors;
        format!(
            "hipblasGemmBatchedEx_64 45477 111 112 1 4 7 {first} 4096 {data} 10 8192 {data} 13 {first} 12288 {data} 16 1 {compute} 160\n\
             hipblasGemmBatchedEx_64 45477 112 111 2 5 8 {second} 4104 {data} 11 8200 {data} 14 {second} 12296 {data} 17 2 {compute} 160\n"
        )
    }
    let (singles, doubles) = ([1f32, 2.], [1f64, 2.]);
    let (of_single, of_double) = (singles.as_ptr().addr(), doubles.as_ptr().addr());
    macro_rules! grouped {
        ($($name:ident $int:ty, $factors:ident, $said:expr;)*) => { $(
            let ints = |pair: [$int; 2]| Box::leak(Box::new(pair)).as_ptr();
            all_say!(
                recorder,
                [$name],
                (
                    [N, T].as_ptr(), [T, N].as_ptr(), ints([1, 2]), ints([4, 5]), ints([7, 8]), $factors.as_ptr(),
                    at(0x1000), ints([10, 11]), at(0x2000), ints([13, 14]), $factors.as_ptr(), at(0x3000),
                    ints([16, 17]), 2, ints([1, 2])
                ),
                $said
            );
        )* };
    }
    grouped! {
        cublasSgemmGroupedBatched c_int, singles, said([of_single, of_single + 4], 0, 2);
        cublasSgemmGroupedBatched_64 i64, singles, said([of_single, of_single + 4], 0, 2);
        cublasDgemmGroupedBatched c_int, doubles, said([of_double, of_double + 8], 1, 7);
        cublasDgemmGroupedBatched_64 i64, doubles, said([of_double, of_double + 8], 1, 7);
    }
    let bfloat16 = cudaDataType::CUDA_R_16BF;
    let single = cublasComputeType_t::CUBLAS_COMPUTE_32F;
    macro_rules! grouped_ex {
        ($($name:ident $int:ty;)*) => { $(
            let ints = |pair: [$int; 2]| Box::leak(Box::new(pair)).as_ptr();
            all_say!(
                recorder,
                [$name],
                (
                    [N, T].as_ptr(), [T, N].as_ptr(), ints([1, 2]), ints([4, 5]), ints([7, 8]),
                    singles.as_ptr().cast(), at(0x1000), bfloat16, ints([10, 11]), at(0x2000), bfloat16,
                    ints([13, 14]), singles.as_ptr().cast(), at(0x3000), bfloat16, ints([16, 17]), 2, ints([1, 2]), single
                ),
                said([of_single, of_single + 4], 14, 2)
            );
        )* };
    }
    grouped_ex! { cublasGemmGroupedBatchedEx c_int; cublasGemmGroupedBatchedEx_64 i64; }
}

#[test]
fn triangles_of_each_type_are_copied_column_by_column() {
    let (recorder, upper) = (recorder("7.2"), cublasFillMode_t::CUBLAS_FILL_MODE_UPPER);
    macro_rules! packed {
        ($($unpack:ident $pack:ident $copy:literal $bytes:literal;)*) => { $(
            // a12 is the second packed one, and stands at the fifth place of the matrix.
            let (in_a_row, in_the_matrix) = (64 + $bytes, 1024 + 4 * $bytes);
            all_say!(
                recorder,
                [$unpack],
                (upper, 2, at(64), place(1024), 4),
                format!("{} 45477 1 64 1 1024 1\n{} 45477 2 {in_a_row} 1 {in_the_matrix} 1\n", $copy, $copy)
            );
            all_say!(
                recorder,
                [$pack],
                (upper, 2, at(1024), 4, place(64)),
                format!("{} 45477 1 1024 1 64 1\n{} 45477 2 {in_the_matrix} 1 {in_a_row} 1\n", $copy, $copy)
            );
        )* };
    }
    packed! {
        cublasStpttr cublasStrttp "hipblasScopy_64" 4;
        cublasDtpttr cublasDtrttp "hipblasDcopy_64" 8;
        cublasCtpttr cublasCtrttp "hipblasCcopy_64" 8;
        cublasZtpttr cublasZtrttp "hipblasZcopy_64" 16;
    }
}

#[test]
fn level_1_of_any_type_is_that_of_the_type() {
    let recorder = recorder("7.2");
    all_say!(
        recorder,
        [cublasAsumEx cublasAsumEx_64],
        (9, at(64), COMPLEX, 2, place(80), FLOAT, FLOAT),
        "hipblasScasum_64 45477 9 64 2 80\n"
    );
    all_say!(
        recorder,
        [cublasCopyEx cublasCopyEx_64],
        (9, at(64), DOUBLE, 2, place(80), DOUBLE, 3),
        "hipblasDcopy_64 45477 9 64 2 80 3\n"
    );
    all_say!(
        recorder,
        [cublasSwapEx cublasSwapEx_64],
        (9, place(64), FLOAT, 2, place(80), FLOAT, 3),
        "hipblasSswap_64 45477 9 64 2 80 3\n"
    );
    all_say!(
        recorder,
        [cublasRotmEx cublasRotmEx_64],
        (9, place(64), FLOAT, 2, place(80), FLOAT, 3, at(96), FLOAT, FLOAT),
        "hipblasSrotm_64 45477 9 64 2 80 3 96\n"
    );
    all_say!(recorder, [cublasIamaxEx], (9, at(64), DOUBLE, 2, place(80)), "hipblasIdamax 45477 9 64 2 80\n");
    all_say!(
        recorder,
        [cublasIamaxEx_64],
        (9, at(64), DOUBLE, 2, place(80)),
        "hipblasIdamax_64 45477 9 64 2 80\n"
    );
    all_say!(
        recorder,
        [cublasIaminEx],
        (9, at(64), COMPLEX, 2, place(80)),
        "hipblasIcamin 45477 9 64 2 80\n"
    );
    all_say!(
        recorder,
        [cublasIaminEx_64],
        (9, at(64), COMPLEX, 2, place(80)),
        "hipblasIcamin_64 45477 9 64 2 80\n"
    );
    all_say!(
        recorder,
        [cublasRotgEx],
        (place(64), place(80), DOUBLE, place(96), place(112), DOUBLE, DOUBLE),
        "hipblasDrotg 45477 64 80 96 112\n"
    );
    all_say!(
        recorder,
        [cublasRotmgEx],
        (place(64), FLOAT, place(80), FLOAT, place(96), FLOAT, at(112), FLOAT, place(128), FLOAT, FLOAT),
        "hipblasSrotmg 45477 64 80 96 112 128\n"
    );
    all_refuse!(recorder, [cublasCopyEx cublasCopyEx_64], (9, at(64), HALF, 2, place(80), HALF, 3));
    all_refuse!(recorder, [cublasIamaxEx cublasIaminEx], (9, at(64), HALF, 2, place(80)));
    all_refuse!(
        recorder,
        [cublasRotmEx],
        (9, place(64), FLOAT, 2, place(80), FLOAT, 3, at(96), DOUBLE, FLOAT)
    );
}

/// What cublasSmatinvBatched, cublasDmatinvBatched, cublasCmatinvBatched and cublasZmatinvBatched do when they have memory
/// for the copies.
#[test]
fn inverses_of_each_type_are_made_from_copies() {
    let recorder = recorder("7.2");
    macro_rules! inverses {
        ($($enqueue:ident $letter:literal;)*) => { $(
            let parts = by_hand::inverse::Parts::of(0x1000, 0x1090, 0x10a0, 184);
            // SAFETY: the recorder follows no pointer.
            unsafe { by_hand::inverse::$enqueue(&call_of(&recorder), parts, 3, at(64), 4, at(80), 5, place(96), 2) }
                .unwrap();
            let said = recorder.recorded();
            let lines: Vec<&str> = said.lines().collect();
            assert!(lines[1].starts_with(&format!("hipblas{}geamBatched 45477 111 111 3 3 ", $letter)), "{said}");
            assert!(lines[1].ends_with(" 64 4 4240 3 2"), "{said}");
            assert_eq!(
                [lines[0], lines[2], lines[3], lines[4]],
                [
                    "hipblasSetPointerMode 45477 0",
                    "hipblasSetPointerMode 45477 1",
                    &format!("hipblas{}getrfBatched 45477 3 4240 3 4256 96 2", $letter),
                    &format!("hipblas{}getriBatched 45477 3 4240 3 4256 80 5 96 2", $letter),
                ]
            );
        )* };
    }
    inverses! { enqueue_s "S"; enqueue_d "D"; enqueue_c "C"; enqueue_z "Z"; }
}

/// cublasLtMatrixTransform, and cublasLtDestroy when nobody has the handle any more.
#[test]
fn a_transform_of_cublaslt_is_told_in_the_numbers_of_hipblaslt() {
    let recorder = lt_recorder("7.2");
    let handle = LtHandle::of(recorder.library).unwrap();
    // CUBLASLT_MATRIX_TRANSFORM_DESC_: POINTER_MODE 1, TRANSA 2, TRANSB 3
    let (device, transposed, conjugated) = (1u32.to_ne_bytes(), 1u32.to_ne_bytes(), 2u32.to_ne_bytes());
    let attributes: [(u32, &[u8]); 3] = [(1, &device), (2, &transposed), (3, &conjugated)];
    let row = 1u32.to_ne_bytes();
    let of_b: [(u32, &[u8]); 1] = [(1, &row)];
    let layout = |data, rows, attributes| Layout { data, rows, cols: 20, ld: 30, attributes };
    let layouts = [layout(HALF, 11, &[]), layout(FLOAT, 12, &of_b), layout(HALF, 13, &[])];
    let operands = Operands { alpha: at(16), a: at(32), b: at(48), beta: at(64), c: at(80), d: place(96) };
    // SAFETY: the recorder follows none of these pointers.
    unsafe { handle.transform_on(FLOAT, &attributes, layouts, &operands, place(128)) }.unwrap();
    let said = lines(&recorder);
    assert_eq!(
        said[..9],
        [
            "hipblasLtCreate",
            "hipblasLtMatrixTransformDescCreate 0",
            "hipblasLtMatrixTransformDescSetAttribute 102 1 4 1",
            "hipblasLtMatrixTransformDescSetAttribute 102 2 4 112",
            "hipblasLtMatrixTransformDescSetAttribute 102 3 4 113",
            "hipblasLtMatrixLayoutCreate 2 11 20 30",
            "hipblasLtMatrixLayoutCreate 0 12 20 30",
            "hipblasLtMatrixLayoutSetAttribute 104 3 4 1",
            "hipblasLtMatrixLayoutCreate 2 13 20 30",
        ]
    );
    assert_eq!(said[9], "hipblasLtMatrixTransform 101 102 16 32 103 64 48 104 96 105 128");
    assert_eq!(said[10..].iter().filter(|line| line.contains("Destroy ")).count(), 4);
    drop(handle);
    assert_eq!(lines(&recorder), ["hipblasLtDestroy 101"]);
}
