// The rows on an OpenCL device: the only CPU of the one platform that OCL_ICD_VENDORS names.
// `opencl --platform` prints which that is.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <fstream>
#include <sstream>

#include "bench.h"

namespace {

void must(cl_int error, const char *call)
{
    if (error != CL_SUCCESS)
        bench::fail(std::string(call) + ": " + std::to_string(error));
}
#define MUST(call) must((call), #call)

struct OpenCl {
    struct Handle {
        cl_mem at;
        size_t bytes;
    };

    cl_device_id device = nullptr;
    cl_context context = nullptr;
    cl_command_queue queue = nullptr;
    cl_kernel kernel = nullptr;

    OpenCl()
    {
        cl_platform_id platform;
        MUST(clGetPlatformIDs(1, &platform, nullptr));
        MUST(clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, nullptr));
        cl_int error;
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        must(error, "clCreateContext");
        queue = clCreateCommandQueue(context, device, 0, &error);
        must(error, "clCreateCommandQueue");
    }

    std::string text(cl_device_info what)
    {
        size_t bytes = 0;
        MUST(clGetDeviceInfo(device, what, 0, nullptr, &bytes));
        std::string value(bytes, '\0');
        MUST(clGetDeviceInfo(device, what, bytes, &value[0], nullptr));
        return value.c_str();
    }

    const char *refuses(const std::string &row)
    {
        if (row == "hgemm_mma")
            return "OpenCL C has no matrix instructions";
        if (row == "segmented_sort" || row == "sort_pairs" || row == "histogram_even" || row == "topk")
            return "OpenCL has no library of such algorithms";
        if (row.rfind("tex_", 0) == 0 && !has_images(row))
            return "this runtime has no such images";
        if (row == "reduce_shuffle" && text(CL_DEVICE_EXTENSIONS).find("cl_intel_subgroups") == std::string::npos)
            return "this runtime has no shuffles";
        build(row);
        return nullptr;
    }

    static cl_image_format format(const std::string &row)
    {
        return row == "tex_point" ? cl_image_format{CL_RGBA, CL_UNSIGNED_INT8} : cl_image_format{CL_R, CL_FLOAT};
    }

    static cl_mem_object_type shape(const std::string &row)
    {
        return row == "tex_trilinear" ? CL_MEM_OBJECT_IMAGE3D : CL_MEM_OBJECT_IMAGE2D;
    }

    bool has_images(const std::string &row)
    {
        cl_bool any = CL_FALSE;
        MUST(clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof any, &any, nullptr));
        if (!any)
            return false;
        cl_uint count = 0;
        MUST(clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, shape(row), 0, nullptr, &count));
        std::vector<cl_image_format> formats(count);
        MUST(clGetSupportedImageFormats(context, CL_MEM_READ_ONLY, shape(row), count, formats.data(), nullptr));
        const cl_image_format wanted = format(row);
        return std::any_of(formats.begin(), formats.end(), [&](const cl_image_format &each) {
            return each.image_channel_order == wanted.image_channel_order && each.image_channel_data_type == wanted.image_channel_data_type;
        });
    }

    // The image of a row's first array, made at its first launch.
    Handle image(const std::string &row, const Handle &from)
    {
        static Handle made{nullptr, 0};
        if (made.at)
            return made;
        const bool volume = row == "tex_trilinear";
        const size_t side = volume ? VOLUME_N : IMAGE_N;
        cl_image_desc of = {};
        of.image_type = shape(row);
        of.image_width = of.image_height = side;
        of.image_depth = volume ? side : 0;
        const cl_image_format element = format(row);
        cl_int error;
        made = {clCreateImage(context, CL_MEM_READ_ONLY, &element, &of, nullptr, &error), from.bytes};
        must(error, "clCreateImage");
        const size_t origin[3] = {}, region[3] = {side, side, volume ? side : 1};
        MUST(clEnqueueCopyBufferToImage(queue, from.at, made.at, 0, origin, region, 0, nullptr, nullptr));
        return made;
    }

    void build(const std::string &row)
    {
        std::ifstream file(PEERS_DIR "/kernels.cl");
        std::stringstream source;
        source << file.rdbuf();
        const std::string body = source.str();
        const char *start = body.c_str();
        cl_int error;
        cl_program program = clCreateProgramWithSource(context, 1, &start, nullptr, &error);
        must(error, "clCreateProgramWithSource");
        std::string options = "-I" PEERS_DIR " -DROW_" + row;
        // Shuffles came with OpenCL C 2.0's sub-groups.
        if (row == "reduce_shuffle")
            options += " -cl-std=CL2.0 -DWARP=32";
        error = clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
        if (error != CL_SUCCESS) {
            char log[4000] = "";
            clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, nullptr);
            bench::fail("clBuildProgram: " + std::to_string(error) + " " + log);
        }
        kernel = clCreateKernel(program, row.c_str(), &error);
        must(error, "clCreateKernel");
    }

    Handle put(const std::vector<uint32_t> &words)
    {
        cl_int error;
        const size_t bytes = words.size() * 4;
        Handle made{clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &error), bytes};
        must(error, "clCreateBuffer");
        MUST(clEnqueueWriteBuffer(queue, made.at, CL_TRUE, 0, bytes, words.data(), 0, nullptr, nullptr));
        return made;
    }

    void get(Handle from, std::vector<uint32_t> &words)
    {
        MUST(clEnqueueReadBuffer(queue, from.at, CL_TRUE, 0, from.bytes, words.data(), 0, nullptr, nullptr));
    }

    void finish() { MUST(clFinish(queue)); }

    void clear(Handle array)
    {
        const cl_uint zero = 0;
        MUST(clEnqueueFillBuffer(queue, array.at, &zero, sizeof zero, 0, array.bytes, 0, nullptr, nullptr));
    }

    cl_uint next = 0;
    void pass(const Handle &array) { MUST(clSetKernelArg(kernel, next++, sizeof array.at, &array.at)); }
    void pass(const float &value) { MUST(clSetKernelArg(kernel, next++, sizeof value, &value)); }
    void pass(const int &value) { MUST(clSetKernelArg(kernel, next++, sizeof value, &value)); }

    // One launch: work-items in all and in a group, then the arguments.
    template <typename... Arguments>
    void start(size_t all, size_t group, const Arguments &...arguments)
    {
        plane({all, 1}, {group, 1}, arguments...);
    }

    struct Extent {
        size_t x, y;
    };

    template <typename... Arguments>
    void plane(Extent all, Extent group, const Arguments &...arguments)
    {
        next = 0;
        (pass(arguments), ...);
        MUST(clEnqueueNDRangeKernel(queue, kernel, all.y == 1 ? 1 : 2, nullptr, &all.x, &group.x, 0, nullptr, nullptr));
    }

    void launch(const std::string &row, const std::vector<Handle> &a)
    {
        const Extent tile{16, 16}, flat{32, 8};
        if (row == "vecadd") start(STREAM_N, BLOCK, a[0], a[1], a[2], STREAM_N);
        else if (row == "saxpy") start(STREAM_N, BLOCK, SAXPY_A, a[0], a[1], STREAM_N);
        else if (row == "sgemm_tiled") plane({GEMM_N, GEMM_N}, tile, a[0], a[1], a[2], GEMM_N);
        else if (row == "sgemm_blocked") plane({GEMM_N / 4, GEMM_N / 4}, tile, a[0], a[1], a[2], GEMM_N);
        else if (row == "reduce_barrier" || row == "reduce_shuffle") start(STREAM_N, BLOCK, a[0], a[1], STREAM_N);
        else if (row == "nbody") start(BODIES, BLOCK, a[0], a[1], BODIES);
        else if (row == "black_scholes") start(OPTIONS, BLOCK, a[0], a[1], a[2], a[3], a[4], OPTIONS);
        else if (row == "stencil") plane({GRID_N, GRID_N}, flat, a[0], a[1], GRID_N);
        else if (row == "histogram") {
            clear(a[1]);
            start(HISTOGRAM_BLOCKS * 256, 256, a[0], a[1], HISTOGRAM_BYTES / 4);
        }
        else if (row == "mandelbrot") plane({MANDELBROT_N, MANDELBROT_N}, tile, a[0], MANDELBROT_N, MANDELBROT_LIMIT);
        else if (row == "transpose") plane({GRID_N, GRID_N / 4}, flat, a[0], a[1], GRID_N);
        else if (row == "scan") {
            clear(a[2]);
            start(STREAM_N / SCAN_ITEMS, BLOCK, a[0], a[1], a[2]);
        }
        else if (row == "sort") start(SORT_N / 2, SORT_CHUNK / 2, a[0], a[1]);
        else if (row == "spmv") start(SPMV_ROWS, BLOCK, a[0], a[1], a[2], a[3], a[4], SPMV_ROWS);
        else if (row == "tex_bilinear" || row == "tex_point") plane({IMAGE_N, IMAGE_N}, flat, image(row, a[0]), a[1], IMAGE_N);
        else if (row == "tex_trilinear") start(VOLUME_SAMPLES, BLOCK, image(row, a[0]), a[1], VOLUME_SAMPLES);
        else if (row == "md5") start(MD5_N, BLOCK, a[0], MD5_N);
        else if (row == "sha256") start(SHA256_N, BLOCK, a[0], SHA256_N);
        else if (row == "sha512") start(SHA512_N, BLOCK, a[0], SHA512_N);
        else if (row == "matvec_half") start(MATVEC_N * BLOCK, BLOCK, a[0], a[1], a[2], MATVEC_N / 2);
        else if (row == "matvec_q4") start(MATVEC_N * 128, 128, a[0], a[1], a[2], MATVEC_N / 32);
        else if (row == "matvec_q4k") start(MATVEC_N * 128, 128, a[0], a[1], a[2], MATVEC_N / 256);
        else if (row == "softmax") start(SOFTMAX_ROWS * BLOCK, BLOCK, a[0], a[1], SOFTMAX_COLUMNS, SOFTMAX_SCALE);
        else if (row == "attention")
            start(ATTENTION_HEADS * ATTENTION_WIDTH, ATTENTION_WIDTH, a[0], a[1], a[2], a[3], ATTENTION_KEYS, ATTENTION_SCALE);
        else start(32, 32);
    }
};

}  // namespace

int main(int argc, char **argv)
{
    OpenCl open_cl;
    if (argc == 2 && std::string(argv[1]) == "--platform") {
        std::printf("%s\n", open_cl.text(CL_DRIVER_VERSION).c_str());
        return 0;
    }
    return bench::run(open_cl, argc, argv);
}
