/* A stand-in for cuDNN, of which there is none here yet: it hands out a handle, which XLA wants before it compiles anything, and
 * has nothing that could be done with it. */
#include <stddef.h>

enum { SUCCESS = 0, BAD_PARAM = 2000 };
static const int VERSION[] = {9, 19, 0};
static int handle;

size_t cudnnGetVersion(void) { return 91900; }
size_t cudnnGetCudartVersion(void) { return 12090; }
const char *cudnnGetErrorString(int code) { return code == SUCCESS ? "success" : "a stand-in refuses"; }

int cudnnGetProperty(int type, int *value)
{
    if (type < 0 || type > 2 || !value)
        return BAD_PARAM;
    *value = VERSION[type];
    return SUCCESS;
}

int cudnnCreate(void **to)
{
    *to = &handle;
    return SUCCESS;
}

int cudnnDestroy(void *it) { return it == &handle ? SUCCESS : BAD_PARAM; }
int cudnnSetStream(void *it, void *stream) { (void)stream; return it == &handle ? SUCCESS : BAD_PARAM; }
