// The Mandelbrot set: neighbouring threads leave their loops after very different numbers of turns.
#include <cmath>

#include "example.h"

const int LIMIT = 400;

// The same arithmetic on both sides: fused multiply-adds where written, nowhere else.
#if DEVICE_CODE
#define BOTH_SIDES __host__ __device__
#else
#define BOTH_SIDES
#endif

BOTH_SIDES inline float times(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);  // never contracted
#else
    return a * b;
#endif
}

BOTH_SIDES inline int escape(float x0, float y0)
{
    float x = 0.0f, y = 0.0f;
    for (int turn = 0; turn < LIMIT; turn++) {
        const float xx = times(x, x), yy = times(y, y);
        if (xx + yy > 4.0f)
            return turn;
        y = fmaf(2.0f * x, y, y0);
        x = (xx - yy) + x0;
    }
    return LIMIT;
}

#if DEVICE_CODE
KERNEL mandelbrot(unsigned short *image, int width, int height, float left, float top, float step)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    image[row * width + column] = static_cast<unsigned short>(escape(fmaf(column, step, left), fmaf(row, step, top)));
}
#endif

int main()
{
    const int width = 300, height = 210;
    const float left = -2.2f, top = -1.05f, step = 0.01f;
    std::vector<unsigned short> image(width * height), expected(width * height);
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++)
            expected[row * width + column] = static_cast<unsigned short>(
                escape(fmaf(static_cast<float>(column), step, left), fmaf(static_cast<float>(row), step, top)));

    unsigned short *device_image;
    const size_t bytes = image.size() * sizeof image[0];
    CHECK(cudaMalloc(&device_image, bytes));
    CHECK(cudaMemset(device_image, 0xee, bytes));
    const dim3 block(32, 4), grid((width + 31) / 32, (height + 3) / 4);
    LAUNCH(mandelbrot, grid, block)(device_image, width, height, left, top, step);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(image.data(), device_image, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_image));

    // A look at the picture, every fifth point of every fourteenth row; the set itself is '@'.
    for (int row = 0; row < height; row += 14) {
        for (int column = 0; column < width; column += 5)
            std::putchar(image[row * width + column] == LIMIT ? '@' : " .:-=+*#%"[image[row * width + column] % 9]);
        std::putchar('\n');
    }
    expect_equal("image", image, expected);
    return passed();
}
