// Two processes, one memory: allocations, a pool and events that a child opens and its parent sees change.
#include "example.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void fill(unsigned *to, unsigned first, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = first + i;
}

__global__ void twice(unsigned *values, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        values[i] *= 2;
}

// One allocation smaller than a page, one of many, one of a pool.
const unsigned small = 100, large = 1 << 20, pooled = 3000;

struct FromParent {
    cudaIpcMemHandle_t small_memory, large_memory;
    cudaIpcEventHandle_t filled;
    cudaMemPoolPtrExportData pooled_memory;
};

// A message, with a descriptor where there is one.
static void post(int socket, const void *bytes, size_t size, int descriptor = -1)
{
    iovec part = {const_cast<void *>(bytes), size};
    char room[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = room;
        message.msg_controllen = sizeof room;
        cmsghdr *const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    if (sendmsg(socket, &message, 0) != static_cast<ssize_t>(size))
        fail("sending a message");
}

static int receive(int socket, void *bytes, size_t size)
{
    iovec part = {bytes, size};
    int descriptor = -1;
    char room[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    if (recvmsg(socket, &message, MSG_WAITALL) != static_cast<ssize_t>(size))
        fail("the other process sent no message");
    if (cmsghdr *const header = CMSG_FIRSTHDR(&message))
        std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

static int child(int socket)
{
    FromParent from;
    const int descriptor = receive(socket, &from, sizeof from);
    unsigned *a, *b, *c;
    cudaEvent_t filled, doubled;
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&a), from.small_memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void **>(&b), from.large_memory, cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaIpcOpenEventHandle(&filled, from.filled));
    cudaMemPool_t pool;
    CHECK(cudaMemPoolImportFromShareableHandle(&pool, reinterpret_cast<void *>(static_cast<uintptr_t>(descriptor)),
                                               cudaMemHandleTypePosixFileDescriptor, 0));
    close(descriptor);
    CHECK(cudaMemPoolImportPointer(reinterpret_cast<void **>(&c), pool, &from.pooled_memory));
    void *none;
    if (cudaMallocFromPoolAsync(&none, 100, pool, stream) == cudaSuccess)
        fail("an imported pool gave memory");

    CHECK(cudaStreamWaitEvent(stream, filled, 0));
    twice<<<1, 64, 0, stream>>>(a, small);
    twice<<<16, 128, 0, stream>>>(b, large);
    twice<<<4, 64, 0, stream>>>(c, pooled);
    CHECK(cudaEventCreateWithFlags(&doubled, cudaEventDisableTiming | cudaEventInterprocess));
    CHECK(cudaEventRecord(doubled, stream));
    cudaIpcEventHandle_t to_parent;
    CHECK(cudaIpcGetEventHandle(&to_parent, doubled));
    post(socket, &to_parent, sizeof to_parent);

    char done;
    receive(socket, &done, 1);
    CHECK(cudaIpcCloseMemHandle(a));
    CHECK(cudaIpcCloseMemHandle(b));
    if (cudaIpcCloseMemHandle(b) == cudaSuccess)
        fail("closing a handle twice");
    CHECK(cudaFreeAsync(c, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemPoolDestroy(pool));
    CHECK(cudaEventDestroy(filled));
    CHECK(cudaEventDestroy(doubled));
    return 0;
}

static void expect_doubled(const char *what, const unsigned *from, unsigned first, unsigned n)
{
    std::vector<unsigned> got(n), expected(n);
    CHECK(cudaMemcpy(got.data(), from, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < n; i++)
        expected[i] = 2 * (first + i);
    expect_equal(what, got, expected);
}

int main()
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        fail("socketpair");
    // Before the first CUDA call: a child of a process that uses CUDA has none.
    const pid_t other = fork();
    if (other == 0)
        std::_Exit(child(sockets[1]));
    close(sockets[1]);

    FromParent to_child;
    unsigned *a, *b, *c;
    CHECK(cudaMalloc(&a, small * sizeof(unsigned)));
    CHECK(cudaMalloc(&b, large * sizeof(unsigned)));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    properties.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool;
    CHECK(cudaMemPoolCreate(&pool, &properties));
    CHECK(cudaMallocFromPoolAsync(&c, pooled * sizeof(unsigned), pool, 0));
    fill<<<1, 64>>>(a, 5, small);
    CHECK(cudaIpcGetMemHandle(&to_child.small_memory, a));
    CHECK(cudaIpcGetMemHandle(&to_child.large_memory, b));
    void *own;
    if (cudaIpcOpenMemHandle(&own, to_child.large_memory, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
        fail("a process opened its own handle");
    // Filled after it became shared.
    fill<<<16, 128>>>(b, 1000, large);
    fill<<<4, 64>>>(c, 77, pooled);
    cudaEvent_t filled, doubled;
    CHECK(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming | cudaEventInterprocess));
    CHECK(cudaEventRecord(filled, 0));
    CHECK(cudaIpcGetEventHandle(&to_child.filled, filled));
    int descriptor = -1;
    expect_equal("a pointer before its pool", cudaMemPoolExportPointer(&to_child.pooled_memory, c), cudaErrorInvalidValue);
    CHECK(cudaMemPoolExportToShareableHandle(&descriptor, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    CHECK(cudaMemPoolExportPointer(&to_child.pooled_memory, c));
    post(sockets[0], &to_child, sizeof to_child, descriptor);
    close(descriptor);

    cudaIpcEventHandle_t from_child;
    receive(sockets[0], &from_child, sizeof from_child);
    CHECK(cudaIpcOpenEventHandle(&doubled, from_child));
    CHECK(cudaEventSynchronize(doubled));
    CHECK(cudaEventQuery(doubled));
    expect_doubled("a small allocation", a, 5, small);
    expect_doubled("a large allocation", b, 1000, large);
    expect_doubled("memory of a pool", c, 77, pooled);
    post(sockets[0], "", 1);
    int status = -1;
    waitpid(other, &status, 0);
    expect_equal("the child's end", status, 0);

    CHECK(cudaEventDestroy(doubled));
    CHECK(cudaEventDestroy(filled));
    CHECK(cudaFreeAsync(c, 0));
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaMemPoolDestroy(pool));
    std::puts("between_processes: 3 memories, 2 events, 1 pool");
    std::puts("PASSED");
    return 0;
}
