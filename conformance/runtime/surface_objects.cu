// CUDA Runtime API, "Surface Object Management".
#include "../check.h"

__global__ void shift(cudaSurfaceObject_t from, cudaSurfaceObject_t to)
{
    const int value = surf2Dread<int>(from, threadIdx.x * sizeof(int), threadIdx.y);
    surf2Dwrite(value + 100, to, threadIdx.x * sizeof(int), threadIdx.y);
}
__global__ void outside(cudaSurfaceObject_t from, int *to)
{
    to[0] = surf2Dread<int>(from, 100 * sizeof(int), 0, cudaBoundaryModeZero);
    to[1] = surf2Dread<int>(from, 100 * sizeof(int), 0, cudaBoundaryModeClamp);
    surf2Dwrite(55, from, 100 * sizeof(int), 0, cudaBoundaryModeZero);
}

static cudaArray_t array(unsigned flags = cudaArraySurfaceLoadStore)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    cudaArray_t made = nullptr;
    OK(cudaMallocArray(&made, &format, 4, 2, flags));
    const int sent[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    OK(cudaMemcpy2DToArray(made, 0, 0, sent, 16, 16, 2, cudaMemcpyHostToDevice));
    return made;
}

static cudaResourceDesc description(cudaArray_t of)
{
    cudaResourceDesc what = {};
    what.resType = cudaResourceTypeArray;
    what.res.array.array = of;
    return what;
}

static cudaSurfaceObject_t surface(cudaArray_t of)
{
    const cudaResourceDesc what = description(of);
    cudaSurfaceObject_t made = 0;
    OK(cudaCreateSurfaceObject(&made, &what));
    return made;
}

PROMISE(surfaces_are_read_and_written)
{
    const cudaArray_t from = array(), to = array();
    shift<<<1, dim3(4, 2)>>>(surface(from), surface(to));
    OK(cudaDeviceSynchronize());
    int got[8];
    OK(cudaMemcpy2DFromArray(got, 16, to, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        SAME(got[i], 101 + i);
}

PROMISE(boundaries_are_as_asked)
{
    const cudaArray_t from = array();
    int *to = nullptr;
    OK(cudaMallocManaged(&to, 8));
    outside<<<1, 1>>>(surface(from), to);
    OK(cudaDeviceSynchronize());
    SAME(to[0], 0);
    SAME(to[1], 4);
    int got[8];
    OK(cudaMemcpy2DFromArray(got, 16, from, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        SAME(got[i], 1 + i);
}

PROMISE(surfaces_tell_what_they_were_made_of)
{
    const cudaArray_t of = array();
    const cudaSurfaceObject_t made = surface(of);
    cudaResourceDesc what = {};
    OK(cudaGetSurfaceObjectResourceDesc(&what, made));
    SAME(what.resType, cudaResourceTypeArray);
    SAME(what.res.array.array, of);
    OK(cudaDestroySurfaceObject(made));
}

PROMISE(any_array_is_made_a_surface)
{
    cudaSurfaceObject_t made = 0;
    const cudaResourceDesc what = description(array(cudaArrayDefault));
    OK(cudaCreateSurfaceObject(&made, &what));
    OK(cudaDestroySurfaceObject(made));
}

PROMISE(surfaces_that_cannot_be_are_refused)
{
    cudaSurfaceObject_t made = 0;
    cudaResourceDesc what = description(array());
    IS(cudaCreateSurfaceObject(nullptr, &what), cudaErrorInvalidValue);
    IS(cudaCreateSurfaceObject(&made, nullptr), cudaErrorInvalidValue);
}
