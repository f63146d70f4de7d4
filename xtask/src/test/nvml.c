// What a program compiled with NVIDIA's nvml.h sees: structures and their versions, null arguments, room that is too small, events,
// fields, and devices that CUDA_VISIBLE_DEVICES hides. The CPU is the device. Arguments: how many devices NVML has, how many
// CUDA has, and which of NVML's is CUDA's first.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nvml.h>

static int n_wrong;

#define CHECK(condition)                                         \
    do {                                                         \
        if (!(condition)) {                                      \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            n_wrong++;                                           \
        }                                                        \
    } while (0)
#define GIVES(call, wanted)                                                         \
    do {                                                                            \
        nvmlReturn_t answer_ = (call);                                              \
        if (answer_ != (wanted)) {                                                  \
            fprintf(stderr, "line %d: %s gives %s\n", __LINE__, #call, nvmlErrorString(answer_)); \
            n_wrong++;                                                              \
        }                                                                           \
    } while (0)

// A structure with bytes behind it that nobody may write.
#define GUARDED(type, name)                   \
    struct {                                  \
        type it;                              \
        unsigned char behind[64];             \
    } name;                                   \
    memset(&name, 0xa5, sizeof name)
#define UNTOUCHED(name) CHECK(all(name.behind, sizeof name.behind, 0xa5))

static int all(const unsigned char *bytes, size_t n, unsigned char value) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != value)
            return 0;
    return 1;
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static void names(nvmlDevice_t device) {
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    GIVES(nvmlDeviceGetName(device, text, sizeof text), NVML_SUCCESS);
    CHECK(strlen(text) > 0);
    GIVES(nvmlDeviceGetName(device, NULL, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
    unsigned exact = strlen(text) + 1;
    GIVES(nvmlDeviceGetName(device, text, exact - 1), NVML_ERROR_INSUFFICIENT_SIZE);
    GIVES(nvmlDeviceGetName(device, text, exact), NVML_SUCCESS);
    GIVES(nvmlDeviceGetName(device, text, 0), NVML_ERROR_INSUFFICIENT_SIZE);
    GIVES(nvmlDeviceGetUUID(device, text, 8), NVML_ERROR_INSUFFICIENT_SIZE);
    GIVES(nvmlDeviceGetUUID(device, text, sizeof text), NVML_SUCCESS);
    nvmlDevice_t again = NULL;
    GIVES(nvmlDeviceGetHandleByUUID(text, &again), NVML_SUCCESS);
    CHECK(again == device);
    GIVES(nvmlDeviceGetHandleByUUID(NULL, &again), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetHandleByUUID("GPU-none", &again), NVML_ERROR_NOT_FOUND);
    nvmlUUID_t uuid = {.version = nvmlUUID_v1, .type = NVML_UUID_TYPE_ASCII};
    CHECK(strlen(text) < sizeof uuid.value.str);
    memcpy(uuid.value.str, text, sizeof uuid.value.str);
    GIVES(nvmlDeviceGetHandleByUUIDV(&uuid, &again), NVML_SUCCESS);
    uuid.version = 0;
    GIVES(nvmlDeviceGetHandleByUUIDV(&uuid, &again), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    GIVES(nvmlDeviceGetName((nvmlDevice_t)0x7fff, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetName(NULL, text, sizeof text), NVML_ERROR_INVALID_ARGUMENT);
}

static void structures(nvmlDevice_t device) {
    CHECK((nvmlMemory_v2 & 0xffffff) == sizeof(nvmlMemory_v2_t) && nvmlMemory_v2 >> 24 == 2);
    GUARDED(nvmlMemory_t, one);
    GUARDED(nvmlMemory_v2_t, two);
    two.it.version = nvmlMemory_v2;
    GIVES(nvmlDeviceGetMemoryInfo(device, &one.it), NVML_SUCCESS);
    GIVES(nvmlDeviceGetMemoryInfo_v2(device, &two.it), NVML_SUCCESS);
    UNTOUCHED(one);
    UNTOUCHED(two);
    CHECK(one.it.total == two.it.total && one.it.free + one.it.used == one.it.total);
    CHECK(two.it.version == nvmlMemory_v2);
    two.it.version = nvmlMemory_v2 + 1;
    GIVES(nvmlDeviceGetMemoryInfo_v2(device, &two.it), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    GIVES(nvmlDeviceGetMemoryInfo(device, NULL), NVML_ERROR_INVALID_ARGUMENT);

    GUARDED(nvmlPciInfo_t, pci);
    GIVES(nvmlDeviceGetPciInfo(device, &pci.it), NVML_SUCCESS);
    UNTOUCHED(pci);
    unsigned domain, bus, slot;
    CHECK(sscanf(pci.it.busId, "%x:%x:%x.0", &domain, &bus, &slot) == 3);
    CHECK(domain == pci.it.domain && bus == pci.it.bus && slot == pci.it.device);
    CHECK(strlen(pci.it.busId) < sizeof pci.it.busId && strlen(pci.it.busIdLegacy) < sizeof pci.it.busIdLegacy);
    GUARDED(nvmlPciInfoExt_t, wide);
    wide.it.version = nvmlPciInfoExt_v1;
    GIVES(nvmlDeviceGetPciInfoExt(device, &wide.it), NVML_SUCCESS);
    UNTOUCHED(wide);
    CHECK(wide.it.bus == pci.it.bus);
    wide.it.version = 7;
    GIVES(nvmlDeviceGetPciInfoExt(device, &wide.it), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);

    GUARDED(nvmlUtilization_t, load);
    GIVES(nvmlDeviceGetUtilizationRates(device, &load.it), NVML_SUCCESS);
    UNTOUCHED(load);
    CHECK(load.it.gpu <= 100 && load.it.memory <= 100);
}

static void processes(nvmlDevice_t device) {
    unsigned count = 0;
    GIVES(nvmlDeviceGetComputeRunningProcesses(device, NULL, NULL), NVML_ERROR_INVALID_ARGUMENT);
    nvmlReturn_t answer = nvmlDeviceGetComputeRunningProcesses(device, &count, NULL);
    CHECK(answer == (count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS));
    unsigned room = count + 16;
    nvmlProcessInfo_t *list = calloc(room + 1, sizeof *list);
    memset(&list[room], 0xa5, sizeof *list);
    count = room;
    GIVES(nvmlDeviceGetComputeRunningProcesses(device, &count, list), NVML_SUCCESS);
    CHECK(count <= room && all((unsigned char *)&list[room], sizeof *list, 0xa5));
    for (unsigned i = 0; i < count; i++)
        CHECK(list[i].pid > 0);
    free(list);
}

static void fields(nvmlDevice_t device) {
    nvmlFieldValue_t values[5];
    memset(values, 0xa5, sizeof values);
    unsigned ids[] = {NVML_FI_DEV_NVLINK_LINK_COUNT, NVML_FI_DEV_RETIRED_DBE, NVML_FI_MAX, 0};
    for (int i = 0; i < 4; i++)
        values[i].fieldId = ids[i], values[i].scopeId = 0;
    double before = now_ms();
    GIVES(nvmlDeviceGetFieldValues(device, 4, values), NVML_SUCCESS);
    CHECK(now_ms() >= before);
    CHECK(values[0].nvmlReturn == NVML_SUCCESS && values[0].valueType == NVML_VALUE_TYPE_UNSIGNED_INT && values[0].value.uiVal == 0);
    CHECK(values[1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED);
    CHECK(values[2].nvmlReturn == NVML_ERROR_INVALID_ARGUMENT && values[3].nvmlReturn == NVML_ERROR_INVALID_ARGUMENT);
    // Microseconds since 1970: not more than a minute ago.
    CHECK(llabs(values[0].timestamp / 1000000 - (long long)time(NULL)) < 60);
    CHECK(all((unsigned char *)&values[4], sizeof values[4], 0xa5));
    GIVES(nvmlDeviceGetFieldValues(device, 1, NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetFieldValues(device, 0, values), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetFieldValues(device, -1, values), NVML_ERROR_INVALID_ARGUMENT);
}

static void events(nvmlDevice_t device) {
    nvmlEventSet_t set = NULL, other = NULL;
    GIVES(nvmlEventSetCreate(NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlEventSetCreate(&set), NVML_SUCCESS);
    GIVES(nvmlEventSetCreate(&other), NVML_SUCCESS);
    CHECK(set && other && set != other);
    unsigned long long types = ~0ull;
    GIVES(nvmlDeviceGetSupportedEventTypes(device, &types), NVML_SUCCESS);
    GIVES(nvmlDeviceGetSupportedEventTypes(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    CHECK((types & ~nvmlEventTypeAll) == 0);
    // What is not among the supported ones is refused, and said to be.
    unsigned long long missing = nvmlEventTypeAll & ~types;
    GIVES(nvmlDeviceRegisterEvents(device, missing, set), NVML_ERROR_NOT_SUPPORTED);
    GIVES(nvmlDeviceRegisterEvents(device, 1ull << 40, set), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceRegisterEvents(device, types, NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceRegisterEvents(device, types, set), NVML_SUCCESS);
    nvmlEventData_t data;
    double before = now_ms();
    GIVES(nvmlEventSetWait(set, &data, 50), NVML_ERROR_TIMEOUT);
    CHECK(now_ms() - before >= 49);
    GIVES(nvmlEventSetWait(set, NULL, 0), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlEventSetFree(set), NVML_SUCCESS);
    GIVES(nvmlEventSetWait(set, &data, 0), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlEventSetFree(other), NVML_SUCCESS);
    GIVES(nvmlEventSetFree(NULL), NVML_ERROR_INVALID_ARGUMENT);
}

// On no bus, no encoder, and in one piece.
static void absent(nvmlDevice_t device) {
    unsigned a = 0, b = 0;
    nvmlBAR1Memory_t window;
    GIVES(nvmlDeviceGetMinorNumber(device, &a), NVML_ERROR_NOT_SUPPORTED);
    GIVES(nvmlDeviceGetBAR1MemoryInfo(device, &window), NVML_ERROR_NOT_SUPPORTED);
    GIVES(nvmlDeviceGetBAR1MemoryInfo(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetPcieThroughput(device, NVML_PCIE_UTIL_TX_BYTES, &a), NVML_ERROR_NOT_SUPPORTED);
    GIVES(nvmlDeviceGetPcieThroughput(device, (nvmlPcieUtilCounter_t)9, &a), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetEncoderUtilization(device, &a, &b), NVML_ERROR_NOT_SUPPORTED);
    GIVES(nvmlDeviceGetDecoderUtilization(device, &a, NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetMigMode(device, &a, &b), NVML_ERROR_NOT_SUPPORTED);
    GIVES(nvmlDeviceGetMigMode(NULL, &a, &b), NVML_ERROR_INVALID_ARGUMENT);
    a = 9;
    GIVES(nvmlDeviceIsMigDeviceHandle(device, &a), NVML_SUCCESS);
    CHECK(a == 0);
}

typedef struct {
    unsigned char bytes[16];
} uuid_t;

// CUDA sees what CUDA_VISIBLE_DEVICES shows, NVML all.
static void hidden(unsigned n_cuda, unsigned first) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*count)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
    int (*uuid)(uuid_t *, int) = (int (*)(uuid_t *, int))dlsym(cuda, "cuDeviceGetUuid");
    int n = -1, answer = init(0);
    // CUDA_ERROR_NO_DEVICE.
    CHECK(answer == (n_cuda ? 0 : 100));
    if (!n_cuda)
        return;
    CHECK(count(&n) == 0 && n == (int)n_cuda);
    nvmlDevice_t device;
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE], wanted[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
    GIVES(nvmlDeviceGetHandleByIndex(first, &device), NVML_SUCCESS);
    GIVES(nvmlDeviceGetUUID(device, text, sizeof text), NVML_SUCCESS);
    uuid_t found;
    CHECK(uuid(&found, 0) == 0);
    int at = snprintf(wanted, sizeof wanted, "GPU-");
    for (int i = 0; i < 16; i++)
        at += snprintf(wanted + at, sizeof wanted - at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", found.bytes[i]);
    CHECK(strcmp(text, wanted) == 0);
}

int main(int n, char **words) {
    unsigned count = 0;
    if (n != 4)
        return 2;
    GIVES(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
    GIVES(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    GIVES(nvmlInit(), NVML_SUCCESS);
    GIVES(nvmlDeviceGetCount(NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetCount(&count), NVML_SUCCESS);
    CHECK(count == (unsigned)atoi(words[1]));
    nvmlDevice_t device = NULL;
    GIVES(nvmlDeviceGetHandleByIndex(0, NULL), NVML_ERROR_INVALID_ARGUMENT);
    GIVES(nvmlDeviceGetHandleByIndex(count, &device), NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < count; i++) {
        GIVES(nvmlDeviceGetHandleByIndex(i, &device), NVML_SUCCESS);
        unsigned index = 99;
        GIVES(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
        CHECK(index == i);
        names(device);
        structures(device);
        processes(device);
        fields(device);
        events(device);
        absent(device);
    }
    hidden(atoi(words[2]), atoi(words[3]));
    // Sessions are counted.
    GIVES(nvmlInit(), NVML_SUCCESS);
    GIVES(nvmlShutdown(), NVML_SUCCESS);
    GIVES(nvmlDeviceGetCount(&count), NVML_SUCCESS);
    GIVES(nvmlShutdown(), NVML_SUCCESS);
    GIVES(nvmlDeviceGetCount(&count), NVML_ERROR_UNINITIALIZED);
    if (!n_wrong)
        puts("PASSED");
    return n_wrong != 0;
}
