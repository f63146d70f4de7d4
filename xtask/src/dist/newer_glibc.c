// What Debian 12's LLVM and libstdc++, which libcudaway_cpu.so contains, take from a newer glibc than it is to need.
// Hidden: nobody else is given these.
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

// 2.36: LLVM names its temporary files with it.
uint32_t arc4random(void)
{
    uint32_t number;
    if (syscall(SYS_getrandom, &number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}

// 2.33: LLVM's statistics of its own memory.
struct sizes { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost; };

struct sizes sizes_of_malloc(void) __asm__("mallinfo2");
struct sizes sizes_of_malloc(void)
{
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo is = mallinfo();
    // ints there: right below 2 GiB, and wrapped around above.
    return (struct sizes){ (unsigned)is.arena, (unsigned)is.ordblks, (unsigned)is.smblks, (unsigned)is.hblks,
        (unsigned)is.hblkhd, (unsigned)is.usmblks, (unsigned)is.fsmblks, (unsigned)is.uordblks,
        (unsigned)is.fordblks, (unsigned)is.keepcost };
}

// 2.32: whether libstdc++ may count references without atomic operations. Never.
char __libc_single_threaded = 0;
