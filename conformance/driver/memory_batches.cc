// CUDA Driver API, "Memory Management", copies in batches.
#include "../device.h"

struct Batch {
    CUstream stream = nullptr;
    CUdeviceptr to[3], from[3];
    size_t sizes[3] = {4, 4, 4}, first[3] = {0, 1, 2};
    CUmemcpyAttributes how[3]{};
    size_t n_how = 1;

    Batch()
    {
        start();
        stream = create_stream();
        for (unsigned i = 0; i < 3; i++) {
            to[i] = allocate(4);
            from[i] = allocate(4);
            OK(cuMemsetD32(to[i], 0, 1));
            OK(cuMemsetD32(from[i], i + 1, 1));
            how[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        }
        OK(cuCtxSynchronize());
    }

    CUresult copy() { return cuMemcpyBatchAsync(to, from, sizes, 3, how, first, n_how, stream); }
};

PROMISE(a_batch_copies_everything_in_the_streams_order)
{
    Batch batch;
    launch(kernel("store"), batch.from[1], 20, batch.stream);
    OK(batch.copy());
    OK(cuStreamSynchronize(batch.stream));
    SAME(word_at(batch.to[0]), 1);
    SAME(word_at(batch.to[1]), 20);
    SAME(word_at(batch.to[2]), 3);
}

PROMISE(attributes_begin_at_the_first_copy_and_go_up)
{
    Batch batch;
    batch.n_how = 3;
    OK(batch.copy());
    batch.first[0] = 1;
    IS(batch.copy(), CUDA_ERROR_INVALID_VALUE);
    batch.first[0] = 0;
    batch.first[2] = 1;
    IS(batch.copy(), CUDA_ERROR_INVALID_VALUE);
    batch.first[2] = 3;
    IS(batch.copy(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(every_copy_has_an_order_of_access)
{
    Batch batch;
    batch.how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    IS(batch.copy(), CUDA_ERROR_INVALID_VALUE);
    batch.n_how = 0;
    IS(batch.copy(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_batch_is_not_for_the_legacy_stream)
{
    Batch batch;
    batch.stream = nullptr;
    IS(batch.copy(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(what_is_read_during_the_call_may_change_behind_it)
{
    Batch batch;
    unsigned words[3] = {7, 8, 9};
    for (unsigned i = 0; i < 3; i++)
        batch.from[i] = reinterpret_cast<CUdeviceptr>(&words[i]);
    batch.how[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    OK(batch.copy());
    words[0] = words[1] = words[2] = 0;
    OK(cuStreamSynchronize(batch.stream));
    SAME(word_at(batch.to[0]) * 100 + word_at(batch.to[1]) * 10 + word_at(batch.to[2]), 789);
}

PROMISE(a_batch_of_boxes_copies_each)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr from = allocate(64), to = allocate(64);
    for (unsigned i = 0; i < 16; i++)
        OK(cuMemsetD32(from + 4 * i, i, 1));
    OK(cuMemsetD8(to, 0, 64));
    OK(cuCtxSynchronize());
    CUDA_MEMCPY3D_BATCH_OP op{};
    op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op.src.op.ptr.ptr = from + 20;
    op.src.op.ptr.rowLength = 16;
    op.dst.op.ptr.ptr = to;
    op.extent = {8, 2, 1};
    op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    OK(cuMemcpy3DBatchAsync(1, &op, 0, stream));
    OK(cuStreamSynchronize(stream));
    SAME(word_at(to), 5);
    SAME(word_at(to + 4), 6);
    SAME(word_at(to + 8), 9);
    SAME(word_at(to + 12), 10);
    IS(cuMemcpy3DBatchAsync(1, &op, 1, stream), CUDA_ERROR_INVALID_VALUE);
    op.extent.width = 0;
    IS(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_ERROR_INVALID_VALUE);
}
