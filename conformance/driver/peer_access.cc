// CUDA Driver API, "Peer Context Memory Access".
#include "../device.h"

PROMISE(a_device_is_no_peer_of_itself)
{
    int can = -1;
    OK(cuDeviceCanAccessPeer(&can, first_device(), first_device()));
    SAME(can, 0);
    IS(cuDeviceCanAccessPeer(&can, first_device(), 1000), CUDA_ERROR_INVALID_DEVICE);
    int value;
    IS(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, first_device(), first_device()),
       CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(a_context_is_no_peer_of_itself)
{
    CUcontext context = create_context();
    IS(cuCtxEnablePeerAccess(context, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

PROMISE(access_that_was_not_enabled_is_not_disabled)
{
    CUcontext other = create_context();
    create_context();
    IS(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}

PROMISE(copies_between_contexts_of_one_device)
{
    CUcontext first = create_context();
    CUdeviceptr from = allocate(4);
    OK(cuMemsetD32(from, 31, 1));
    OK(cuCtxSynchronize());
    CUcontext second = create_context();
    CUdeviceptr to = allocate(4);
    OK(cuMemcpyPeer(to, second, from, first, 4));
    SAME(word_at(to), 31);
    CUstream stream = create_stream();
    OK(cuMemsetD32(to, 0, 1));
    OK(cuCtxSynchronize());
    OK(cuMemcpyPeerAsync(to, second, from, first, 4, stream));
    OK(cuStreamSynchronize(stream));
    SAME(word_at(to), 31);
}
