// mixed_units.cu's other half, compiled to machine code only.
__global__ void of_other_unit(int *out)
{
    *out = 6;
}

__device__ int helper_of_other_unit(int value)
{
    return value + 1;
}
