// Products of matrices by CUTLASS's device-wide templates, compiled to PTX only: `cargo xtask bench first` measures what their
// kernels cost before the first launch.

#include <cutlass/gemm/device/gemm.h>

namespace {

using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using cutlass::gemm::GemmShape;

template <class Element, class Accumulator, class Operators, class Arch, class Block, class Warp, class Instruction, int STAGES>
using Product = cutlass::gemm::device::Gemm<
    Element, Row, Element, Column, Accumulator, Row, Accumulator, Operators, Arch, Block, Warp, Instruction,
    cutlass::epilogue::thread::LinearCombination<Accumulator, 4, Accumulator, Accumulator>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, STAGES>;

using Tensor = cutlass::arch::OpClassTensorOp;

using Halves = Product<cutlass::half_t, float, Tensor, cutlass::arch::Sm80, GemmShape<128, 128, 32>,
                       GemmShape<64, 64, 32>, GemmShape<16, 8, 16>, 3>;
using Wide = Product<cutlass::half_t, float, Tensor, cutlass::arch::Sm80, GemmShape<256, 128, 64>,
                     GemmShape<64, 64, 64>, GemmShape<16, 8, 16>, 3>;
using Bfloats = Product<cutlass::bfloat16_t, float, Tensor, cutlass::arch::Sm80, GemmShape<128, 64, 64>,
                        GemmShape<64, 32, 64>, GemmShape<16, 8, 16>, 4>;
using Floats = Product<cutlass::tfloat32_t, float, Tensor, cutlass::arch::Sm80, GemmShape<128, 128, 16>,
                       GemmShape<64, 64, 16>, GemmShape<16, 8, 8>, 3>;
using Bytes = Product<int8_t, int32_t, Tensor, cutlass::arch::Sm80, GemmShape<128, 128, 64>,
                      GemmShape<64, 64, 64>, GemmShape<16, 8, 32>, 3>;
using Volta = Product<cutlass::half_t, float, Tensor, cutlass::arch::Sm75, GemmShape<128, 128, 32>,
                      GemmShape<64, 64, 32>, GemmShape<16, 8, 8>, 2>;

// Without matrix instructions.
using Plain = cutlass::gemm::device::Gemm<float, Row, float, Row, float, Row>;
using Doubles = cutlass::gemm::device::Gemm<double, Row, double, Column, double, Row>;

} // namespace

template __global__ void cutlass::Kernel<Halves::GemmKernel>(Halves::GemmKernel::Params);
template __global__ void cutlass::Kernel<Wide::GemmKernel>(Wide::GemmKernel::Params);
template __global__ void cutlass::Kernel<Bfloats::GemmKernel>(Bfloats::GemmKernel::Params);
template __global__ void cutlass::Kernel<Floats::GemmKernel>(Floats::GemmKernel::Params);
template __global__ void cutlass::Kernel<Bytes::GemmKernel>(Bytes::GemmKernel::Params);
template __global__ void cutlass::Kernel<Volta::GemmKernel>(Volta::GemmKernel::Params);
template __global__ void cutlass::Kernel<Plain::GemmKernel>(Plain::GemmKernel::Params);
template __global__ void cutlass::Kernel<Doubles::GemmKernel>(Doubles::GemmKernel::Params);
