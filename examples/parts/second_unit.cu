// Half of constant_and_globals. With -rdc=true this is a translation unit of its own and the device linker joins the
// two; otherwise the other half includes it.
__device__ int second_unit_calls = 0;

__device__ int cube(int value)
{
    atomicAdd(&second_unit_calls, 1);
    return value * value * value;
}
