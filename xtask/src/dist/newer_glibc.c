// What Debian 12's libgcc, which all objects contain, and its LLVM and libstdc++, which libcudaway_cpu.so does, take from a
// newer glibc than ours are to need. Hidden: nobody else is given these.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
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

#ifdef DLFO_EH_SEGMENT_TYPE
// 2.35: libgcc's unwinder asks whose code is at an address, and where the object's frames are described.
struct search { ElfW(Addr) address; struct dl_find_object *found; };

static int has_address(struct dl_phdr_info *object, size_t bytes, void *data)
{
    struct search *search = data;
    int is_inside = 0;
    *search->found = (struct dl_find_object){ 0 };
    for (int at = 0; at < object->dlpi_phnum; at++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[at];
        ElfW(Addr) start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD && search->address - start < segment->p_memsz) {
            is_inside = 1;
            search->found->dlfo_map_start = (void *)start;
            search->found->dlfo_map_end = (void *)(start + segment->p_memsz);
        }
        if (segment->p_type == DLFO_EH_SEGMENT_TYPE)
            search->found->dlfo_eh_frame = (void *)start;
    }
    return is_inside && search->found->dlfo_eh_frame;
}

int _dl_find_object(void *address, struct dl_find_object *found)
{
    struct search search = { (ElfW(Addr))address, found };
    return dl_iterate_phdr(has_address, &search) ? 0 : -1;
}
#endif

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
