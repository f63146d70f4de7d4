// CUDA Runtime API, "Peer Device Memory Access".
#include "../check.h"

PROMISE(a_device_is_no_peer_of_its_own)
{
    int can = 1;
    OK(cudaDeviceCanAccessPeer(&can, 0, 0));
    SAME(can, 0);
    IS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported);
}

PROMISE(devices_that_do_not_exist_are_refused)
{
    int can = 1;
    IS(cudaDeviceCanAccessPeer(&can, 0, 1000), cudaErrorInvalidDevice);
    IS(cudaDeviceCanAccessPeer(&can, 1000, 0), cudaErrorInvalidDevice);
    IS(cudaDeviceEnablePeerAccess(1000, 0), cudaErrorInvalidDevice);
    IS(cudaDeviceDisablePeerAccess(1000), cudaErrorInvalidDevice);
}

PROMISE(access_that_is_not_on_cannot_be_ended)
{
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    if (count < 2)
        SKIP("one device");
    IS(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
}

PROMISE(memory_is_copied_between_devices)
{
    int *from = nullptr, *to = nullptr;
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    const int other = count > 1 ? 1 : 0;
    OK(cudaMalloc(&from, 64));
    OK(cudaSetDevice(other));
    OK(cudaMalloc(&to, 64));
    const int sent[4] = {1, 2, 3, 4};
    int got[4] = {};
    OK(cudaMemcpy(from, sent, sizeof sent, cudaMemcpyHostToDevice));
    OK(cudaMemcpyPeer(to, other, from, 0, sizeof sent));
    OK(cudaMemcpy(got, to, sizeof got, cudaMemcpyDeviceToHost));
    SAME(std::memcmp(sent, got, sizeof got), 0);
    OK(cudaMemset(to, 0, sizeof sent));
    OK(cudaMemcpyPeerAsync(to, other, from, 0, sizeof sent, nullptr));
    OK(cudaMemcpy(got, to, sizeof got, cudaMemcpyDeviceToHost));
    SAME(std::memcmp(sent, got, sizeof got), 0);
}
