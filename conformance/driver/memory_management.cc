// CUDA Driver API, "Memory Management": allocation, page-locked and managed memory, copies, fills.
#include "../device.h"

#include <numeric>

static std::vector<unsigned char> counted(size_t n_bytes)
{
    std::vector<unsigned char> bytes(n_bytes);
    std::iota(bytes.begin(), bytes.end(), 1);
    return bytes;
}

static CUdeviceptr upload(const std::vector<unsigned char> &bytes)
{
    CUdeviceptr memory = allocate(bytes.size());
    OK(cuMemcpyHtoD(memory, bytes.data(), bytes.size()));
    return memory;
}

static std::vector<unsigned char> download(CUdeviceptr memory, size_t n_bytes)
{
    std::vector<unsigned char> bytes(n_bytes);
    OK(cuMemcpyDtoH(bytes.data(), memory, n_bytes));
    return bytes;
}

PROMISE(allocations_are_aligned_to_256_bytes)
{
    start();
    for (size_t n_bytes : {1, 3, 100, 5000})
        SAME(allocate(n_bytes) % 256, 0);
}

PROMISE(no_bytes_and_no_place_are_invalid_values)
{
    start();
    CUdeviceptr memory;
    IS(cuMemAlloc(&memory, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(more_than_there_is_is_out_of_memory)
{
    start();
    CUdeviceptr memory;
    IS(cuMemAlloc(&memory, size_t(1) << 50), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(allocate(16)));
}

PROMISE(only_what_was_allocated_is_freed_and_once)
{
    start();
    CUdeviceptr memory = allocate(64);
    IS(cuMemFree(memory + 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(memory));
    IS(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(0));
}

PROMISE(rows_of_pitched_memory_hold_their_width)
{
    start();
    CUdeviceptr memory;
    size_t pitch = 0;
    OK(cuMemAllocPitch(&memory, &pitch, 100, 8, 4));
    TRUE(pitch >= 100);
    SAME(pitch % attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT), 0);
    OK(cuMemsetD8(memory, 1, pitch * 8));
    IS(cuMemAllocPitch(&memory, &pitch, 100, 8, 3), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAllocPitch(&memory, nullptr, 100, 8, 4), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(an_address_leads_to_its_allocation)
{
    start();
    CUdeviceptr memory = allocate(4096), base = 0;
    size_t size = 0;
    OK(cuMemGetAddressRange(&base, &size, memory + 1000));
    SAME(base, memory);
    SAME(size, 4096);
    OK(cuMemGetAddressRange(nullptr, &size, memory));
    OK(cuMemGetAddressRange(&base, nullptr, memory));
    IS(cuMemGetAddressRange(&base, &size, 16), CUDA_ERROR_NOT_FOUND);
}

PROMISE(bytes_go_there_and_back)
{
    start();
    auto bytes = counted(1000);
    CUdeviceptr first = upload(bytes), second = allocate(1000);
    OK(cuMemcpyDtoD(second, first, 1000));
    TRUE(download(second, 1000) == bytes);
}

PROMISE(unified_copies_find_the_direction)
{
    start();
    auto bytes = counted(256);
    std::vector<unsigned char> back(256), host(256);
    auto address = [](std::vector<unsigned char> &of) { return reinterpret_cast<CUdeviceptr>(of.data()); };
    CUdeviceptr first = allocate(256), second = allocate(256);
    OK(cuMemcpy(first, address(bytes), 256));
    OK(cuMemcpy(second, first, 256));
    OK(cuMemcpy(address(back), second, 256));
    OK(cuMemcpy(address(host), address(back), 256));
    TRUE(host == bytes);
}

PROMISE(a_copy_beyond_an_allocation_is_an_invalid_value)
{
    start();
    std::vector<unsigned char> bytes(1 << 22);
    CUdeviceptr memory = allocate(1 << 21);
    IS(cuMemcpyHtoD(memory, bytes.data(), bytes.size()), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemcpyDtoH(bytes.data(), memory, bytes.size()), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemcpyDtoH(nullptr, memory, 16), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyHtoD(memory, bytes.data(), 0));
}

PROMISE(fills_write_their_elements_and_no_more)
{
    start();
    CUdeviceptr memory = upload(std::vector<unsigned char>(16, 0xee));
    OK(cuMemsetD8(memory, 0x11, 3));
    OK(cuMemsetD16(memory + 4, 0x2233, 2));
    OK(cuMemsetD32(memory + 8, 0x44556677, 1));
    std::vector<unsigned char> wanted = {0x11, 0x11, 0x11, 0xee, 0x33, 0x22, 0x33, 0x22,
                                         0x77, 0x66, 0x55, 0x44, 0xee, 0xee, 0xee, 0xee};
    TRUE(download(memory, 16) == wanted);
}

PROMISE(fills_of_wide_elements_are_aligned)
{
    start();
    CUdeviceptr memory = allocate(64);
    IS(cuMemsetD16(memory + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD32(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemsetD8(memory, 0, size_t(1) << 40), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(fills_of_two_dimensions_leave_the_gaps)
{
    start();
    CUdeviceptr memory = upload(std::vector<unsigned char>(32, 0));
    OK(cuMemsetD2D8(memory, 16, 5, 3, 2));
    std::vector<unsigned char> wanted(32, 0);
    for (int x = 0; x < 3; x++)
        wanted[x] = wanted[16 + x] = 5;
    TRUE(download(memory, 32) == wanted);
    OK(cuMemsetD2D32(memory, 16, 0x01020304, 1, 2));
    for (int x = 0; x < 4; x++)
        wanted[x] = wanted[16 + x] = 4 - x;
    TRUE(download(memory, 32) == wanted);
}

PROMISE(fills_on_a_stream_keep_its_order)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory = allocate(4);
    OK(cuMemsetD32Async(memory, 1, 1, stream));
    OK(cuMemsetD16Async(memory, 2, 2, stream));
    OK(cuMemsetD8Async(memory, 3, 1, stream));
    OK(cuStreamSynchronize(stream));
    SAME(word_at(memory), 0x00020003);
}

PROMISE(a_copy_of_two_dimensions_takes_a_window)
{
    start();
    auto bytes = counted(64);
    CUdeviceptr memory = upload(bytes);
    unsigned char window[6] = {};
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory;
    copy.srcPitch = 8;
    copy.srcXInBytes = 2;
    copy.srcY = 3;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = window;
    copy.dstPitch = 3;
    copy.WidthInBytes = 3;
    copy.Height = 2;
    OK(cuMemcpy2D(&copy));
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++)
            SAME(int(window[3 * y + x]), int(bytes[8 * (3 + y) + 2 + x]));
    OK(cuMemcpy2DUnaligned(&copy));
    copy.srcPitch = 4;
    IS(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemcpy2D(nullptr), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_copy_of_three_dimensions_takes_a_box)
{
    start();
    auto bytes = counted(4 * 4 * 4);
    CUdeviceptr memory = allocate(64);
    OK(cuMemsetD8(memory, 0, 64));
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes.data();
    copy.srcPitch = copy.srcHeight = 4;
    copy.srcXInBytes = copy.srcY = copy.srcZ = 1;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.dstPitch = copy.dstHeight = 4;
    copy.WidthInBytes = 3;
    copy.Height = 2;
    copy.Depth = 2;
    OK(cuMemcpy3D(&copy));
    auto got = download(memory, 64);
    std::vector<unsigned char> wanted(64, 0);
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 3; x++)
                wanted[16 * z + 4 * y + x] = bytes[16 * (z + 1) + 4 * (y + 1) + x + 1];
    TRUE(got == wanted);
    copy.srcHeight = 2;
    IS(cuMemcpy3D(&copy), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(arrays_take_and_give_elements)
{
    start();
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = 64;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    shape.NumChannels = 1;
    CUarray first, second;
    OK(cuArrayCreate(&first, &shape));
    OK(cuArrayCreate(&second, &shape));
    auto bytes = counted(64);
    OK(cuMemcpyHtoA(first, 0, bytes.data(), 64));
    OK(cuMemcpyAtoA(second, 0, first, 0, 64));
    std::vector<unsigned char> back(64);
    OK(cuMemcpyAtoH(back.data(), second, 0, 64));
    TRUE(back == bytes);
    CUdeviceptr memory = allocate(32);
    OK(cuMemcpyAtoD(memory, first, 32, 32));
    SAME(int(download(memory, 32)[0]), 33);
    OK(cuMemcpyDtoA(second, 0, memory, 32));
    OK(cuMemcpyAtoH(back.data(), second, 0, 64));
    SAME(int(back[0]), 33);
    OK(cuArrayDestroy(first));
}

PROMISE(arrays_keep_their_description)
{
    start();
    CUDA_ARRAY3D_DESCRIPTOR shape{}, kept{};
    shape.Width = 8;
    shape.Height = 4;
    shape.Depth = 3;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 2;
    shape.Flags = CUDA_ARRAY3D_LAYERED;
    CUarray array;
    OK(cuArray3DCreate(&array, &shape));
    OK(cuArray3DGetDescriptor(&kept, array));
    SAME(kept.Width, 8);
    SAME(kept.Height, 4);
    SAME(kept.Depth, 3);
    SAME(kept.Format, CU_AD_FORMAT_FLOAT);
    SAME(kept.NumChannels, 2);
    SAME(kept.Flags, CUDA_ARRAY3D_LAYERED);
    shape.NumChannels = 3;
    IS(cuArray3DCreate(&array, &shape), CUDA_ERROR_INVALID_VALUE);
    shape.NumChannels = 1;
    shape.Width = 0;
    IS(cuArray3DCreate(&array, &shape), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(levels_of_a_mipmapped_array_halve)
{
    start();
    CUDA_ARRAY3D_DESCRIPTOR shape{}, kept{};
    shape.Width = 16;
    shape.Height = 8;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    CUmipmappedArray mipmapped;
    OK(cuMipmappedArrayCreate(&mipmapped, &shape, 3));
    CUarray level;
    OK(cuMipmappedArrayGetLevel(&level, mipmapped, 2));
    OK(cuArray3DGetDescriptor(&kept, level));
    SAME(kept.Width, 4);
    SAME(kept.Height, 2);
    IS(cuMipmappedArrayGetLevel(&level, mipmapped, 3), CUDA_ERROR_INVALID_VALUE);
    OK(cuMipmappedArrayDestroy(mipmapped));
}

PROMISE(page_locked_memory_is_the_devices_too)
{
    start();
    void *host = nullptr;
    OK(cuMemHostAlloc(&host, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    CUdeviceptr device = 0;
    OK(cuMemHostGetDevicePointer(&device, host, 0));
    launch(kernel("store"), device, 77);
    OK(cuCtxSynchronize());
    SAME(*static_cast<unsigned *>(host), 77);
    IS(cuMemHostGetDevicePointer(&device, host, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeHost(host));
}

PROMISE(flags_of_page_locked_memory_are_kept)
{
    start();
    void *host = nullptr;
    unsigned flags = 0;
    OK(cuMemHostAlloc(&host, 64, CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_PORTABLE));
    OK(cuMemHostGetFlags(&flags, host));
    TRUE((flags & CU_MEMHOSTALLOC_WRITECOMBINED) != 0);
    TRUE((flags & CU_MEMHOSTALLOC_PORTABLE) != 0);
    int pageable = 0;
    IS(cuMemHostGetFlags(&flags, &pageable), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemHostAlloc(&host, 64, 0x100), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(only_page_locked_memory_is_freed_as_such)
{
    start();
    int own = 0;
    IS(cuMemFreeHost(&own), CUDA_ERROR_INVALID_VALUE);
    void *host = nullptr;
    OK(cuMemAllocHost(&host, 64));
    OK(cuMemFreeHost(host));
    IS(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(memory_is_registered_once)
{
    start();
    static unsigned words[4096] __attribute__((aligned(4096)));
    OK(cuMemHostRegister(words, sizeof words, CU_MEMHOSTREGISTER_DEVICEMAP));
    IS(cuMemHostRegister(words, sizeof words, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CUdeviceptr device = 0;
    OK(cuMemHostGetDevicePointer(&device, words + 5, 0));
    launch(kernel("store"), device, 88);
    OK(cuCtxSynchronize());
    SAME(words[5], 88);
    OK(cuMemHostUnregister(words));
    IS(cuMemHostUnregister(words), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostRegister(words, sizeof words, 0));
    IS(cuMemHostRegister(nullptr, 64, 0), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(managed_memory_has_one_address)
{
    start();
    CUdeviceptr memory = 0;
    OK(cuMemAllocManaged(&memory, 4, CU_MEM_ATTACH_GLOBAL));
    auto *host = reinterpret_cast<unsigned *>(memory);
    *host = 5;
    launch(kernel("add"), memory, 6);
    OK(cuCtxSynchronize());
    SAME(*host, 11);
    OK(cuMemFree(memory));
    IS(cuMemAllocManaged(&memory, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAllocManaged(&memory, 4, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAllocManaged(&memory, 4, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(advice_about_managed_memory_is_read_back)
{
    start();
    if (!attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS))
        SKIP("no concurrent managed access");
    CUdeviceptr memory = 0;
    OK(cuMemAllocManaged(&memory, 1 << 21, CU_MEM_ATTACH_GLOBAL));
    CUmemLocation device{};
    device.type = CU_MEM_LOCATION_TYPE_DEVICE;
    device.id = first_device();
    int answer = -1;
    OK(cuMemRangeGetAttribute(&answer, sizeof answer, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 1 << 21));
    SAME(answer, 0);
    OK(cuMemAdvise(memory, 1 << 21, CU_MEM_ADVISE_SET_READ_MOSTLY, device));
    OK(cuMemRangeGetAttribute(&answer, sizeof answer, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 1 << 21));
    SAME(answer, 1);
    OK(cuMemRangeGetAttribute(&answer, sizeof answer, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 1 << 21));
    SAME(answer, CU_DEVICE_INVALID);
    OK(cuMemAdvise(memory, 1 << 21, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
    OK(cuMemRangeGetAttribute(&answer, sizeof answer, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, memory, 1 << 21));
    SAME(answer, first_device());
    OK(cuMemPrefetchAsync(memory, 1 << 21, device, 0, nullptr));
    OK(cuCtxSynchronize());
    OK(cuMemRangeGetAttribute(&answer, sizeof answer, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, memory, 1 << 21));
    SAME(answer, first_device());
}

PROMISE(advice_and_prefetches_are_for_managed_memory)
{
    start();
    CUmemLocation device{};
    device.type = CU_MEM_LOCATION_TYPE_DEVICE;
    device.id = first_device();
    CUdeviceptr plain = allocate(4096), memory;
    IS(cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemPrefetchAsync(plain, 4096, device, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAllocManaged(&memory, 4096, CU_MEM_ATTACH_GLOBAL));
    IS(cuMemPrefetchAsync(memory, 0, device, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
    device.id = 1000;
    IS(cuMemPrefetchAsync(memory, 4096, device, 0, nullptr), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(free_memory_is_given_with_the_total)
{
    start();
    size_t free = 0, total = 0;
    OK(cuMemGetInfo(&free, &total));
    TRUE(free > 0);
    TRUE(free <= total);
}

PROMISE(a_copy_of_two_dimensions_fills_pitched_memory)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory;
    size_t pitch = 0;
    OK(cuMemAllocPitch(&memory, &pitch, 6, 3, 4));
    auto bytes = counted(18);
    std::vector<unsigned char> back(18);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes.data();
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice = memory;
    copy.dstPitch = pitch;
    copy.WidthInBytes = 6;
    copy.Height = 3;
    OK(cuMemcpy2DAsync(&copy, stream));
    CUDA_MEMCPY2D out{};
    out.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    out.srcDevice = memory;
    out.srcPitch = pitch;
    out.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    out.dstDevice = reinterpret_cast<CUdeviceptr>(back.data());
    out.WidthInBytes = 6;
    out.Height = 3;
    OK(cuMemcpy2DAsync(&out, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(back == bytes);
    SAME(int(download(memory + pitch, 1)[0]), 7);
}

PROMISE(a_copy_of_two_dimensions_reaches_arrays)
{
    start();
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = 4;
    shape.Height = 4;
    shape.Format = CU_AD_FORMAT_UNSIGNED_INT8;
    shape.NumChannels = 1;
    CUarray array;
    OK(cuArrayCreate(&array, &shape));
    auto bytes = counted(4);
    std::vector<unsigned char> back(4);
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = bytes.data();
    copy.srcPitch = 2;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.dstXInBytes = 2;
    copy.dstY = 1;
    copy.WidthInBytes = 2;
    copy.Height = 2;
    OK(cuMemcpy2D(&copy));
    CUDA_MEMCPY2D out{};
    out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    out.srcArray = array;
    out.srcXInBytes = 2;
    out.srcY = 1;
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = back.data();
    out.dstPitch = 2;
    out.WidthInBytes = 2;
    out.Height = 2;
    OK(cuMemcpy2D(&out));
    TRUE(back == bytes);
    out.srcXInBytes = 3;
    IS(cuMemcpy2D(&out), CUDA_ERROR_INVALID_VALUE);
}
