// printf and malloc on the device; the text is checked by the test that runs this.
#include "example.h"

struct Node {
    int value;
    Node *next;
};

__global__ void lists(int *out)
{
    Node *head = nullptr;
    for (int i = 0; i <= threadIdx.x; i++) {
        Node *node = static_cast<Node *>(malloc(sizeof(Node)));
        if (!node)
            return;
        *node = Node{i, head};
        head = node;
    }
    int sum = 0;
    while (head) {
        Node *next = head->next;
        sum += head->value;
        free(head);
        head = next;
    }
    out[threadIdx.x] = sum;
}

__global__ void speak()
{
    const double d = 1.5 * threadIdx.x;
    printf("thread %d of %u: %s %c %5.2f %-4d| %x %llu %%\n", threadIdx.x, blockDim.x, "text", 'c', d, -7, 255, 1ull << 40);
}

int main()
{
    const int threads = 40;
    int *device;
    std::vector<int> got(threads), wanted(threads);
    CHECK(cudaMalloc(&device, threads * sizeof(int)));
    lists<<<1, threads>>>(device);
    CHECK(cudaMemcpy(got.data(), device, threads * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++)
        wanted[i] = i * (i + 1) / 2;
    expect_equal("lists", got, wanted);
    speak<<<1, 2>>>();
    CHECK(cudaDeviceSynchronize());
    return passed();
}
