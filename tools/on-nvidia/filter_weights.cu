// The weights of linear filtering, in parts of 2^20: the manuals say "9-bit fixed point format with 8 bits of fractional value" and not how
// those of two and three axes are made. A line is `axes fractions… weights…`, fractions in parts of 4096, of drawn points between the
// texels of a texture of two to each side, of which one is 1 and the others 0.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                               \
    do {                                                                          \
        const cudaError_t error = call;                                           \
        if (error != cudaSuccess) {                                               \
            std::printf("%s: %s\n", #call, cudaGetErrorName(error));              \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

struct Point {
    float x, y, z;
};

__global__ void fetch(cudaTextureObject_t texture, int axes, const Point *at, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (axes == 1)
        out[i] = tex1D<float>(texture, at[i].x);
    else if (axes == 2)
        out[i] = tex2D<float>(texture, at[i].x, at[i].y);
    else
        out[i] = tex3D<float>(texture, at[i].x, at[i].y, at[i].z);
}

int main()
{
    const int n = 4096;
    for (int axes = 1; axes <= 3; axes++) {
        std::vector<Point> points(n);
        std::vector<int> fractions(3 * n);
        for (int i = 0; i < n; i++) {
            // All of one axis; of several, steps of 1/256 first.
            for (int d = 0; d < 3; d++)
                fractions[3 * i + d] = axes == 1 ? i : i < n / 2 ? std::rand() % 256 * 16 : std::rand() % 4096;
            float *const to[3] = {&points[i].x, &points[i].y, &points[i].z};
            for (int d = 0; d < 3; d++)
                *to[d] = 0.5f + fractions[3 * i + d] / 4096.0f;
        }
        Point *at;
        float *out;
        CHECK(cudaMalloc(&at, n * sizeof(Point)));
        CHECK(cudaMalloc(&out, n * sizeof(float)));
        CHECK(cudaMemcpy(at, points.data(), n * sizeof(Point), cudaMemcpyHostToDevice));
        const int corners = 1 << axes;
        std::vector<std::vector<float>> weights(corners, std::vector<float>(n));
        for (int corner = 0; corner < corners; corner++) {
            float texels[8] = {};
            texels[corner] = 1;
            const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
            const cudaExtent extent = make_cudaExtent(2, axes > 1 ? 2 : 0, axes > 2 ? 2 : 0);
            cudaArray_t array;
            CHECK(cudaMalloc3DArray(&array, &format, extent));
            cudaMemcpy3DParms copy = {};
            copy.srcPtr = make_cudaPitchedPtr(texels, 2 * sizeof(float), 2, 2);
            copy.dstArray = array;
            copy.extent = make_cudaExtent(2, axes > 1 ? 2 : 1, axes > 2 ? 2 : 1);
            copy.kind = cudaMemcpyHostToDevice;
            CHECK(cudaMemcpy3D(&copy));
            cudaResourceDesc resource = {};
            resource.resType = cudaResourceTypeArray;
            resource.res.array.array = array;
            cudaTextureDesc how = {};
            how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
            how.filterMode = cudaFilterModeLinear;
            cudaTextureObject_t texture;
            CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
            fetch<<<n / 128, 128>>>(texture, axes, at, out, n);
            CHECK(cudaMemcpy(weights[corner].data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
            CHECK(cudaDestroyTextureObject(texture));
            CHECK(cudaFreeArray(array));
        }
        for (int i = 0; i < n; i++) {
            std::printf("%d", axes);
            for (int d = 0; d < axes; d++)
                std::printf(" %d", fractions[3 * i + d]);
            for (int corner = 0; corner < corners; corner++)
                std::printf(" %.0f", weights[corner][i] * 1048576.0);
            std::printf("\n");
        }
        CHECK(cudaFree(at));
        CHECK(cudaFree(out));
    }
    return 0;
}
