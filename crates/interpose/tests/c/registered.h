// What nvcc's code has in a program with kernels: the segment, and a variable that registration fills before main.
#include "runtime.h"
__attribute__((section(".nvFatBinSegment"), used)) static const uint64_t wrapper[3] = {0x1466243b1, 0, 0};
__asm__(".local _ZL20__cudaFatCubinHandle\n.comm _ZL20__cudaFatCubinHandle,8,8\n.type _ZL20__cudaFatCubinHandle,@object\n.size _ZL20__cudaFatCubinHandle,8");
extern void **handle __asm__("_ZL20__cudaFatCubinHandle");
__attribute__((constructor)) static void register_all(void) { handle = __cudaRegisterFatBinary(wrapper); }
