// CUDA Driver API, "Stream Memory Operations".
#include "../device.h"

PROMISE(a_write_happens_in_the_streams_order)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr words = allocate(16);
    OK(cuMemsetD32Async(words, 0, 4, stream));
    OK(cuStreamWriteValue32(stream, words, 5, CU_STREAM_WRITE_VALUE_DEFAULT));
    OK(cuStreamWriteValue32(stream, words + 4, 6, CU_STREAM_WRITE_VALUE_DEFAULT));
    OK(cuStreamSynchronize(stream));
    SAME(word_at(words), 5);
    SAME(word_at(words + 4), 6);
    SAME(word_at(words + 8), 0);
}

PROMISE(a_write_has_no_flags)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr words = allocate(16);
    // The header: "not supported in the v2 API", which this is.
    IS(cuStreamWriteValue32(stream, words, 6, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWriteValue64(stream, words, 6, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER), CUDA_ERROR_INVALID_VALUE);
}

// The flag is set by the host in page-locked memory; the stream sees it there.
static void waits(unsigned flags, unsigned before, unsigned value, unsigned after)
{
    start();
    CUstream stream = create_stream();
    void *host;
    OK(cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    auto *word = static_cast<volatile unsigned *>(host);
    *word = before;
    CUdeviceptr device;
    OK(cuMemHostGetDevicePointer(&device, host, 0));
    OK(cuStreamWaitValue32(stream, device, value, flags));
    usleep(20000);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    *word = after;
    OK(cuStreamSynchronize(stream));
}

PROMISE(a_wait_for_at_least_a_value)
{
    waits(CU_STREAM_WAIT_VALUE_GEQ, 1, 2, 3);
}

PROMISE(at_least_is_counted_cyclically)
{
    waits(CU_STREAM_WAIT_VALUE_GEQ, 0xfffffff0u, 0xfffffffeu, 1);
}

PROMISE(a_wait_for_a_value)
{
    waits(CU_STREAM_WAIT_VALUE_EQ, 3, 2, 2);
}

PROMISE(a_wait_for_any_common_bit)
{
    waits(CU_STREAM_WAIT_VALUE_AND, 1, 6, 4);
}

PROMISE(a_wait_for_a_bit_that_neither_has)
{
    start();
    if (!attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR))
        SKIP("the device has no such wait");
    waits(CU_STREAM_WAIT_VALUE_NOR, 0xfffffff0u, 0xf, 0);
}

PROMISE(one_stream_releases_another)
{
    start();
    CUstream waiting = create_stream(), writing = create_stream();
    CUfunction store = kernel("store");
    CUdeviceptr words = allocate(8);
    // Fills are asynchronous, and these streams do not wait for the legacy stream.
    OK(cuMemsetD32(words, 0, 2));
    OK(cuCtxSynchronize());
    OK(cuStreamWaitValue32(waiting, words, 1, CU_STREAM_WAIT_VALUE_EQ));
    launch(store, words + 4, 9, waiting);
    OK(cuStreamWriteValue32(writing, words, 1, 0));
    OK(cuStreamSynchronize(waiting));
    SAME(word_at(words + 4), 9);
}

PROMISE(values_of_64_bits)
{
    start();
    if (!attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS))
        SKIP("the device has 32 bits only");
    CUstream stream = create_stream();
    CUdeviceptr memory = allocate(8);
    OK(cuStreamWriteValue64(stream, memory, 0x0102030405060708, 0));
    OK(cuStreamWaitValue64(stream, memory, 0x0102030405060708, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamSynchronize(stream));
    unsigned long long got = 0;
    OK(cuMemcpyDtoH(&got, memory, 8));
    TRUE(got == 0x0102030405060708);
}

PROMISE(a_batch_is_one_after_the_other)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr words = allocate(8);
    CUstreamBatchMemOpParams batch[3]{};
    batch[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    batch[0].writeValue.address = words;
    batch[0].writeValue.value = 7;
    batch[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    batch[1].waitValue.address = words;
    batch[1].waitValue.value = 7;
    batch[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    batch[2] = batch[0];
    batch[2].writeValue.address = words + 4;
    batch[2].writeValue.value = 8;
    OK(cuStreamBatchMemOp(stream, 3, batch, 0));
    OK(cuStreamSynchronize(stream));
    SAME(word_at(words), 7);
    SAME(word_at(words + 4), 8);
    IS(cuStreamBatchMemOp(stream, 257, batch, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamBatchMemOp(stream, 3, batch, 1), CUDA_ERROR_INVALID_VALUE);
}
