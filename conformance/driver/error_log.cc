// CUDA Driver API, "Error Log Management Functions".
#include "../check.h"

static int heard = 0;

static void hear(void *data, CUlogLevel level, char *message, size_t length)
{
    TRUE(data == &heard);
    SAME(level, CU_LOG_LEVEL_ERROR);
    SAME(std::strlen(message), length);
    heard++;
}

static void fail_once()
{
    CUdevice device;
    IS(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(a_callback_hears_of_errors_until_it_is_unregistered)
{
    OK(cuInit(0));
    CUlogsCallbackHandle handle;
    IS(cuLogsRegisterCallback(nullptr, nullptr, &handle), CUDA_ERROR_INVALID_VALUE);
    OK(cuLogsRegisterCallback(hear, &heard, &handle));
    fail_once();
    TRUE(heard >= 1);
    OK(cuLogsUnregisterCallback(handle));
    const int before = heard;
    fail_once();
    SAME(heard, before);
}

PROMISE(an_iterator_moves_behind_what_was_dumped)
{
    OK(cuInit(0));
    CUlogIterator place;
    OK(cuLogsCurrent(&place, 0));
    char text[4000];
    size_t size = sizeof text;
    OK(cuLogsDumpToMemory(&place, text, &size, 0));
    SAME(size, 0u);
    fail_once();
    size = sizeof text;
    OK(cuLogsDumpToMemory(&place, text, &size, 0));
    TRUE(size > 0 && size == std::strlen(text));
    SAME(text[size - 1], '\n');
    size = sizeof text;
    OK(cuLogsDumpToMemory(&place, text, &size, 0));
    SAME(size, 0u);
}

PROMISE(a_buffer_for_no_message_is_an_error)
{
    OK(cuInit(0));
    fail_once();
    char text[4];
    size_t size = sizeof text;
    IS(cuLogsDumpToMemory(nullptr, text, &size, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(size, 0u);
}

PROMISE(where_the_log_is_has_no_flags_and_takes_any)
{
    OK(cuInit(0));
    CUlogIterator place;
    OK(cuLogsCurrent(&place, 1));
}

PROMISE(flags_of_dumps_are_reserved)
{
    OK(cuInit(0));
    IS(cuLogsDumpToFile(nullptr, "/tmp/never", 1), CUDA_ERROR_INVALID_VALUE);
    char text[100];
    size_t size = sizeof text;
    IS(cuLogsDumpToMemory(nullptr, text, &size, 1), CUDA_ERROR_INVALID_VALUE);
}
