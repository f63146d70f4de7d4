// A HIP library with ROCm 6's ABI whose one GPU is emulated, instruction by instruction (tools/amd-emu). Everything happens in
// the call that asks for it, so streams are always idle. Memory is a file that the emulator maps at the same address.
//
// HIP_EMULATED_GPU: the GPU, such as gfx1100. HIP_EMULATED_SERVER: tools/amd-emu/serve.py; TINYGRAD as that wants it.
// HIP_EMULATED_RECORD: a file that gets a line for each code object and launch.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_IMAGE = 200, INVALID_HANDLE = 400, NOT_FOUND = 500, LAUNCH_FAILURE = 719 };
typedef int status;

static char *const MEMORY = (char *)0x600000000000;
static const size_t MEMORY_BYTES = (size_t)1 << 30, GRAIN = 256;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int memory_file = -1;

// Blocks in the order of their addresses, free ones among them.
static struct block { size_t at, bytes; int used; } blocks[65536];
static int n_blocks;

static int ready(void)
{
    if (memory_file >= 0)
        return 1;
    memory_file = memfd_create("hip_emulated", 0);
    void *at = MAP_FAILED;
    if (memory_file >= 0 && ftruncate(memory_file, MEMORY_BYTES) == 0)
        at = mmap(MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, memory_file, 0);
    if (at != MEMORY)
        return 0;
    blocks[n_blocks++] = (struct block){0, MEMORY_BYTES, 0};
    return 1;
}

static void record(const char *text)
{
    const char *path = getenv("HIP_EMULATED_RECORD");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

status hipMalloc(void **to, size_t bytes)
{
    bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    status answer = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    for (int i = 0; ready() && i < n_blocks; i++) {
        struct block *it = &blocks[i];
        if (it->used || it->bytes < bytes || bytes == 0)
            continue;
        if (it->bytes > bytes && n_blocks < 65536) {
            memmove(it + 2, it + 1, (n_blocks - i - 1) * sizeof *it);
            it[1] = (struct block){it->at + bytes, it->bytes - bytes, 0};
            it->bytes = bytes;
            n_blocks++;
        }
        it->used = 1;
        *to = MEMORY + it->at;
        // As on a GPU nobody promises zeros.
        memset(*to, 0xd5, bytes);
        answer = SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return answer;
}

status hipFree(void *at)
{
    status answer = at ? INVALID_VALUE : SUCCESS;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_blocks; i++) {
        struct block *it = &blocks[i];
        if (!it->used || MEMORY + it->at != (char *)at)
            continue;
        it->used = 0;
        int first = i > 0 && !blocks[i - 1].used ? i - 1 : i;
        int last = i + 1 < n_blocks && !blocks[i + 1].used ? i + 1 : i;
        blocks[first].bytes = blocks[last].at + blocks[last].bytes - blocks[first].at;
        memmove(&blocks[first + 1], &blocks[last + 1], (n_blocks - last - 1) * sizeof *it);
        n_blocks -= last - first;
        answer = SUCCESS;
        break;
    }
    pthread_mutex_unlock(&lock);
    return answer;
}

status hipMallocManaged(void **to, size_t bytes, unsigned flags) { return hipMalloc(to, bytes); }
status hipHostMalloc(void **to, size_t bytes, unsigned flags) { return hipMalloc(to, bytes); }
status hipHostFree(void *at) { return hipFree(at); }
status hipMallocAsync(void **to, size_t bytes, void *stream) { return hipMalloc(to, bytes); }
status hipFreeAsync(void *at, void *stream) { return hipFree(at); }
status hipHostGetDevicePointer(void **device, void *host, unsigned flags) { *device = host; return SUCCESS; }

status hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    *total = *free_bytes = MEMORY_BYTES;
    for (int i = 0; i < n_blocks; i++)
        *free_bytes -= blocks[i].used ? blocks[i].bytes : 0;
    return SUCCESS;
}

status hipInit(unsigned flags) { return SUCCESS; }
status hipRuntimeGetVersion(int *version) { *version = 60443484; return SUCCESS; }
status hipGetDeviceCount(int *count) { *count = 1; return SUCCESS; }
status hipSetDevice(int device) { return SUCCESS; }
status hipDeviceSynchronize(void) { return SUCCESS; }

static const char *gpu(void)
{
    const char *name = getenv("HIP_EMULATED_GPU");
    return name ? name : "gfx1100";
}

// hipDeviceProp_tR0600, measured on ROCm 6.4: the name at 0, memory at 288, the architecture at 1160, 1472 bytes.
status hipGetDevicePropertiesR0600(char *properties, int device)
{
    memset(properties, 0, 1472);
    snprintf(properties, 256, "Emulated %s", gpu());
    memcpy(properties + 288, &MEMORY_BYTES, 8);
    snprintf(properties + 1160, 256, "%s", gpu());
    return SUCCESS;
}

status hipDeviceGetAttribute(int *value, int attribute, int device)
{
    switch (attribute) {
    case 26: case 27: case 28: case 56: *value = 1024; return SUCCESS; // block
    case 29: *value = 0x7fffffff; return SUCCESS;                      // grid
    case 30: case 31: *value = 65535; return SUCCESS;
    case 57: *value = 2048; return SUCCESS;
    case 63: *value = 4; return SUCCESS;                               // multiprocessors
    case 10: case 24: case 85: *value = 1; return SUCCESS;             // cooperative, managed, unified addresses
    case 74: case 75: case 76: *value = 65536; return SUCCESS;         // shared memory
    case 81: case 82: *value = 256; return SUCCESS;                    // beginnings of textures, and of their rows
    case 87: *value = strncmp(gpu(), "gfx9", 4) ? 32 : 64; return SUCCESS;
    case 10017: *value = 100000; return SUCCESS;                       // constant clock, kHz
    default: return INVALID_VALUE;
    }
}

status hipMemcpy(void *to, const void *from, size_t bytes, int kind) { memmove(to, from, bytes); return SUCCESS; }
status hipMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream) { memmove(to, from, bytes); return SUCCESS; }
status hipMemcpy2DAsync(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width, size_t height, int kind, void *stream)
{
    for (size_t y = 0; y < height; y++)
        memmove(to + y * to_pitch, from + y * from_pitch, width);
    return SUCCESS;
}

status hipMemsetAsync(void *to, int value, size_t bytes, void *stream) { memset(to, value, bytes); return SUCCESS; }
status hipMemset2DAsync(char *to, size_t pitch, int value, size_t width, size_t height, void *stream)
{
    for (size_t y = 0; y < height; y++)
        memset(to + y * pitch, value, width);
    return SUCCESS;
}
status hipMemsetD8Async(void *to, unsigned char value, size_t n, void *stream) { memset(to, value, n); return SUCCESS; }
status hipMemsetD16Async(uint16_t *to, uint16_t value, size_t n, void *stream)
{
    while (n--)
        *to++ = value;
    return SUCCESS;
}
status hipMemsetD32Async(uint32_t *to, uint32_t value, size_t n, void *stream)
{
    while (n--)
        *to++ = value;
    return SUCCESS;
}

// Streams and events: names only.
static status name(void **to) { *to = malloc(1); return SUCCESS; }
status hipStreamCreateWithFlags(void **stream, unsigned flags) { return name(stream); }
status hipStreamCreateWithPriority(void **stream, unsigned flags, int priority) { return name(stream); }
status hipDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = *greatest = 0; return SUCCESS; }
status hipStreamDestroy(void *stream) { free(stream); return SUCCESS; }
status hipStreamSynchronize(void *stream) { return SUCCESS; }
status hipStreamQuery(void *stream) { return SUCCESS; }
status hipStreamWaitEvent(void *stream, void *event, unsigned flags) { return SUCCESS; }
status hipLaunchHostFunc(void *stream, void (*call)(void *), void *data) { call(data); return SUCCESS; }
status hipStreamAddCallback(void *stream, void (*call)(void *, status, void *), void *data, unsigned flags)
{
    call(stream, SUCCESS, data);
    return SUCCESS;
}
status hipEventCreateWithFlags(void **event, unsigned flags) { return name(event); }
status hipEventDestroy(void *event) { free(event); return SUCCESS; }
status hipEventRecord(void *event, void *stream) { return SUCCESS; }
status hipEventQuery(void *event) { return SUCCESS; }
status hipEventSynchronize(void *event) { return SUCCESS; }
status hipEventElapsedTime(float *ms, void *start, void *stop) { *ms = 1; return SUCCESS; }

// A module is a file with its code object, a function that file and a name.
static struct module { char path[64]; size_t lds; struct module *next; } *modules;
struct function { struct module *module; char name[1024]; };

// Bytes of LDS of the one kernel, as the code object's notes have it: a number of MessagePack behind its name.
static size_t lds_of(const unsigned char *image, size_t bytes)
{
    const char key[] = ".group_segment_fixed_size";
    const unsigned char *at = memmem(image, bytes, key, sizeof key - 1);
    if (!at)
        return 0;
    at += sizeof key - 1;
    const int n = *at == 0xcc ? 1 : *at == 0xcd ? 2 : *at == 0xce ? 4 : 0;
    size_t value = n ? 0 : *at;
    for (int i = 1; i <= n; i++)
        value = value << 8 | at[i];
    return value;
}

status hipModuleLoadData(struct module **to, const unsigned char *image)
{
    uint64_t sections;
    uint16_t machine, size, n;
    memcpy(&machine, image + 18, 2);
    // EM_AMDGPU, 64 bits, ELFOSABI_AMDGPU_HSA, code object version 4.
    if (memcmp(image, "\x7f" "ELF\x02\x01\x01\x40\x02", 9) != 0 || machine != 224)
        return INVALID_IMAGE;
    memcpy(&sections, image + 40, 8);
    memcpy(&size, image + 58, 2);
    memcpy(&n, image + 60, 2);
    struct module *module = calloc(1, sizeof *module);
    strcpy(module->path, "/tmp/hip_emulated.XXXXXX");
    int file = mkostemp(module->path, O_CLOEXEC);
    size_t bytes = sections + (size_t)size * n;
    if (file < 0 || write(file, image, bytes) != (ssize_t)bytes)
        return OUT_OF_MEMORY;
    close(file);
    module->lds = lds_of(image, bytes);
    pthread_mutex_lock(&lock);
    module->next = modules;
    modules = module;
    pthread_mutex_unlock(&lock);
    *to = module;
    char text[128];
    snprintf(text, sizeof text, "object %zu\n", bytes);
    record(text);
    return SUCCESS;
}

status hipModuleUnload(struct module *module)
{
    unlink(module->path);
    pthread_mutex_lock(&lock);
    struct module **at = &modules;
    while (*at && *at != module)
        at = &(*at)->next;
    if (*at)
        *at = module->next;
    pthread_mutex_unlock(&lock);
    free(module);
    return SUCCESS;
}

status hipModuleGetFunction(struct function **to, struct module *module, const char *name)
{
    struct function *function = calloc(1, sizeof *function);
    if (strlen(name) >= sizeof function->name)
        return NOT_FOUND;
    function->module = module;
    strcpy(function->name, name);
    *to = function;
    return SUCCESS;
}

status hipFuncGetAttribute(int *value, int attribute, struct function *function) { *value = 0; return SUCCESS; }
status hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *n, struct function *function, int threads, size_t shared)
{
    // As many as registers and LDS have room for.
    const size_t lds = function->module->lds + shared, most = 2048 / threads;
    *n = lds && (64 << 10) / lds < most ? (64 << 10) / lds : most;
    return SUCCESS;
}

static FILE *requests, *replies;
static pid_t server_process;

__attribute__((destructor)) static void leave(void)
{
    if (server_process > 0) {
        fclose(requests);
        waitpid(server_process, NULL, 0);
    }
    for (; modules; modules = modules->next)
        unlink(modules->path);
}

static int start(void)
{
    int in[2], out[2];
    const char *server = getenv("HIP_EMULATED_SERVER");
    if (requests)
        return 1;
    if (!server || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
        return 0;
    server_process = fork();
    if (server_process == 0) {
        char file[16], address[32], bytes[32];
        dup2(in[0], 0);
        dup2(out[1], 1);
        snprintf(file, sizeof file, "%d", memory_file);
        snprintf(address, sizeof address, "%p", (void *)MEMORY);
        snprintf(bytes, sizeof bytes, "%zu", MEMORY_BYTES);
        unsetenv("LD_PRELOAD");
        execlp("python3", "python3", server, file, address, bytes, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    requests = fdopen(in[1], "w");
    replies = fdopen(out[0], "r");
    return server_process > 0;
}

static status launch(struct function *function, const unsigned shape[6], unsigned shared, const unsigned char *segment, size_t bytes)
{
    char line[512] = "no server";
    char *hex = malloc(2 * bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        sprintf(hex + 2 * i, "%02x", segment[i]);
    char *text;
    if (asprintf(&text, "%s %s %u %u %u %u %u %u %u %s\n", function->module->path, function->name, shape[0], shape[1], shape[2],
                 shape[3], shape[4], shape[5], shared, hex) < 0)
        return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    if (ready() && start()) {
        fputs(text, requests);
        fflush(requests);
        if (!fgets(line, sizeof line, replies))
            strcpy(line, "the server ended\n");
    }
    record("launch ");
    record(text);
    pthread_mutex_unlock(&lock);
    free(text);
    free(hex);
    if (strcmp(line, "ok\n") == 0)
        return SUCCESS;
    fprintf(stderr, "hip_emulated: %s: %s", function->name, line);
    return LAUNCH_FAILURE;
}

status hipModuleLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared, void *stream, void **params, void **extra)
{
    // The list's tags: pointer 1, size 2, end 3.
    if (params || !extra || extra[0] != (void *)1 || extra[2] != (void *)2 || extra[4] != (void *)3)
        return INVALID_VALUE;
    return launch(function, (unsigned[]){gx, gy, gz, bx, by, bz}, shared, extra[1], *(size_t *)extra[3]);
}

// Arrays, textures and surfaces: descriptors of gfx11 by AMD's ISA document, with rows one behind the other.
struct array_description { size_t width, height, depth; int format; unsigned channels, flags; };
struct array { char *data; size_t size[3], element, pitch; int format; unsigned channels, is_layered; };
enum { LAYERED = 1, ARRAY = 0, MIPMAPPED = 1, LINEAR = 2, PITCHED = 3, AS_INTEGER = 1, NORMALIZED = 2, SRGB = 0x10 };

static size_t element_bytes(int format, unsigned channels)
{
    return channels * (format == 0x01 || format == 0x08 ? 1 : format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 4);
}

status hipArray3DCreate(struct array **to, const struct array_description *of)
{
    // As HIP: no cubemaps.
    if (of->flags & ~(LAYERED | 2u | 8u) || of->width == 0)
        return INVALID_VALUE;
    struct array *array = calloc(1, sizeof *array);
    *array = (struct array){NULL, {of->width, of->height, of->depth}, element_bytes(of->format, of->channels), 0, of->format, of->channels, of->flags & LAYERED};
    array->pitch = (of->width * array->element + 255) / 256 * 256;
    size_t rows = (of->height ? of->height : 1) * (of->depth ? of->depth : 1);
    *to = array;
    return hipMalloc((void **)&array->data, array->pitch * rows);
}

status hipArrayDestroy(struct array *array)
{
    status answer = hipFree(array->data);
    free(array);
    return answer;
}

struct copy_end { size_t x, y, z, level; int type; char *host, *device; struct array *array; size_t pitch, height; };
struct copy_3d { struct copy_end from, to; size_t width, height, depth; };

// ROCm 6: host memory is 1, the device's 2, an array 10.
static char *row(const struct copy_end *it, size_t y, size_t z)
{
    if (it->type == 10) {
        size_t height = it->array->size[1] ? it->array->size[1] : 1;
        return it->array->data + ((it->z + z) * height + it->y + y) * it->array->pitch + it->x;
    }
    return (it->type == 1 ? it->host : it->device) + ((it->z + z) * it->height + it->y + y) * it->pitch + it->x;
}

status hipDrvMemcpy3D(const struct copy_3d *copy)
{
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++)
            memmove(row(&copy->to, y, z), row(&copy->from, y, z), copy->width);
    return SUCCESS;
}
status hipDrvMemcpy3DAsync(const struct copy_3d *copy, void *stream) { return hipDrvMemcpy3D(copy); }

// The image format's number: fractions and elements without and with a sign, floats; of 1, 2 and 4 channels.
static unsigned format_number(int format, unsigned channels, unsigned flags)
{
    static const unsigned char of_8[4][3] = {{1, 14, 42}, {2, 15, 43}, {5, 18, 46}, {6, 19, 47}};
    static const unsigned char of_16[5][3] = {{7, 23, 51}, {8, 24, 52}, {11, 27, 55}, {12, 28, 56}, {13, 29, 57}};
    static const unsigned char of_32[3][3] = {{20, 48, 61}, {21, 49, 62}, {22, 50, 63}};
    unsigned nth = channels == 4 ? 2 : channels - 1, is_element = flags & AS_INTEGER ? 2 : 0;
    switch (format) {
    case 0x01: return flags & SRGB ? 66 : of_8[is_element][nth];
    case 0x08: return of_8[is_element + 1][nth];
    case 0x02: return of_16[is_element][nth];
    case 0x09: return of_16[is_element + 1][nth];
    case 0x10: return of_16[4][nth];
    case 0x03: return of_32[0][nth];
    case 0x0a: return of_32[1][nth];
    default: return of_32[2][nth];
    }
}

// The descriptors behind a handle; `kind` 0 is linear memory.
static status object(uint32_t **to, char *data, const size_t *size, size_t pitch, int format, unsigned channels, unsigned flags, unsigned kind)
{
    status answer = hipMalloc((void **)to, 256);
    if (answer != SUCCESS)
        return answer;
    uint32_t *words = *to, number = format_number(format, channels, flags), width = size[0] - 1;
    size_t bytes = element_bytes(format, channels);
    uint32_t order = channels == 1 ? 4 | 1 << 9 : channels == 2 ? 4 | 5 << 3 | 1 << 9 : 4 | 5 << 3 | 6 << 6 | 7 << 9;
    memset(words, 0, 256);
    if (kind == 0) {
        words[0] = (uint64_t)data;
        words[1] = (uint64_t)data >> 32 | bytes << 16;
        words[2] = size[0] * bytes;
        words[3] = order | number << 12;
    } else {
        words[0] = (uint64_t)data >> 8;
        words[1] = (uint64_t)data >> 40 | number << 20 | (width & 3) << 30;
        words[2] = width >> 2 | (size[1] ? size[1] - 1 : 0) << 14;
        words[3] = order | kind << 28;
        words[4] = kind == 8 || kind == 9 ? pitch / bytes - 1 : size[2] - 1;
    }
    words[10] = size[0];
    return SUCCESS;
}

static unsigned kind_of(const struct array *array)
{
    if (array->is_layered)
        return array->size[1] ? 13 : 12;
    return array->size[2] ? 10 : array->size[1] ? 9 : 8;
}

struct resource { int type; union { struct array *array; struct { char *at; int format; unsigned channels; size_t width, height, pitch; } memory; int room[32]; } of; unsigned flags; };
struct sampler { int modes[3], filter; unsigned flags, anisotropy; int level_filter; float bias, least, most, border[4]; int room[12]; };

status hipTexObjectCreate(uint32_t **to, const struct resource *of, const struct sampler *sampler, const void *view)
{
    // As HIP: what only levels need is not there.
    if (of->type == MIPMAPPED || sampler->anisotropy || sampler->bias != 0 || sampler->least != 0 || sampler->most != 0)
        return 801;
    status answer;
    if (of->type == ARRAY) {
        const struct array *it = of->of.array;
        answer = object(to, it->data, it->size, it->pitch, it->format, it->channels, sampler->flags, kind_of(it));
    } else if (of->type == LINEAR) {
        // What is a width elsewhere is bytes here.
        size_t size[3] = {of->of.memory.width / element_bytes(of->of.memory.format, of->of.memory.channels)};
        answer = object(to, of->of.memory.at, size, 0, of->of.memory.format, of->of.memory.channels, sampler->flags, 0);
    } else {
        size_t size[3] = {of->of.memory.width, of->of.memory.height};
        answer = object(to, of->of.memory.at, size, of->of.memory.pitch, of->of.memory.format, of->of.memory.channels, sampler->flags, 9);
    }
    if (answer != SUCCESS)
        return answer;
    // As HIP: the first axis' mode for all; what counts elements is not repeated.
    static const unsigned numbers[4] = {0, 2, 1, 6};
    int is_normalized = (sampler->flags & NORMALIZED) != 0;
    unsigned mode = is_normalized || sampler->modes[0] == 3 ? numbers[sampler->modes[0]] : 2;
    (*to)[12] = mode * 0111 | !is_normalized << 15;
    (*to)[14] = sampler->filter << 20 | sampler->filter << 22;
    return SUCCESS;
}
status hipTexObjectDestroy(void *at) { return hipFree(at); }

status hipCreateSurfaceObject(uint32_t **to, const struct resource *of)
{
    const struct array *it = of->of.array;
    return object(to, it->data, it->size, it->pitch, it->format, it->channels, AS_INTEGER, kind_of(it));
}
status hipDestroySurfaceObject(void *at) { return hipFree(at); }
