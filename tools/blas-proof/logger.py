"""The loggers. Lines begin as NVIDIA's do, which programs that read them rely on; the rest of a line is ours."""

import os
import re
from ctypes import CFUNCTYPE, byref, c_char_p, c_int, c_void_p

from calls import INVALID_VALUE, NOT_INITIALIZED, SUCCESS, after, case, equal, holds

CALLBACK = CFUNCTYPE(None, c_char_p)
LT_CALLBACK = CFUNCTYPE(None, c_int, c_char_p, c_char_p)
LT_LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]\[cublasLt\]\[(\d+)\]\[(Error|Trace|Hint|Info|Api)\]\[(\w+)\] (.*)")
BLAS_LINE = re.compile(r"([IE])! cuBLAS \(v\d+\.\d+\) function (\w+) (.*)\n(i|e)! Time: .*")

ERROR, TRACE, API = 1, 2, 5


def _read(folder, name):
    with open(os.path.join(folder, name)) as file:
        return file.read()


@case()
def nothing_is_logged_unless_asked_for(libraries):
    libraries.version(libraries.handle())
    libraries.lt_handle()
    equal(libraries.blas.cublasGetVersion_v2(None, byref(c_int())), NOT_INITIALIZED)


@case(CUBLAS_LOGINFO_DBG="1", CUBLAS_LOGDEST_DBG="stdout")
def cublas_logs_to_stdout_by_its_variables(libraries):
    libraries.version(libraries.handle())


@after(cublas_logs_to_stdout_by_its_variables)
def _(stdout, stderr, _folder):
    called = [match[1] for match in BLAS_LINE.findall(stdout)]
    equal(called, ["cublasCreate_v2", "cublasGetVersion_v2"], "the calls logged")
    equal(stderr, "", "stderr")


@case(CUBLAS_LOGINFO_DBG="1", CUBLAS_LOGDEST_DBG="FOLDER/log")
def cublas_logs_failures_to_the_file_of_its_variable(libraries):
    equal(libraries.blas.cublasGetVersion_v2(None, byref(c_int())), NOT_INITIALIZED)


@after(cublas_logs_failures_to_the_file_of_its_variable)
def _(stdout, stderr, folder):
    equal(stdout + stderr, "", "what is printed")
    lines = BLAS_LINE.findall(_read(folder, "log"))
    equal([line[0] for line in lines], ["I", "E"], "the kinds of messages")
    holds(lines[0][2].startswith("called: handle="), f"the parameters are not told: {lines[0]}")


@case()
def cublas_logs_where_it_is_configured_and_stops(libraries):
    handle = libraries.handle()
    path = os.path.join(libraries.folder, "log").encode()
    equal(libraries.blas.cublasLoggerConfigure(1, 0, 1, path), SUCCESS)
    libraries.version(handle)
    equal(libraries.blas.cublasLoggerConfigure(0, 0, 1, None), SUCCESS)
    libraries.version(handle)


@after(cublas_logs_where_it_is_configured_and_stops)
def _(stdout, stderr, folder):
    equal(stdout, "", "stdout")
    for text in (stderr, _read(folder, "log")):
        called = [match[1] for match in BLAS_LINE.findall(text)]
        equal([name for name in called if name != "cublasLoggerConfigure"], ["cublasGetVersion_v2"], "the calls logged")


@case()
def a_callback_turns_cublas_logging_on(libraries):
    messages = []
    callback = CALLBACK(lambda message: messages.append(message.decode()))
    handle, found = libraries.handle(), c_void_p(1)
    equal(libraries.blas.cublasGetLoggerCallback(byref(found)), SUCCESS)
    equal(found.value, None, "the callback before one is set")
    equal(libraries.blas.cublasSetLoggerCallback(callback), SUCCESS)
    libraries.version(handle)
    equal(libraries.blas.cublasGetLoggerCallback(byref(found)), SUCCESS)
    holds(found.value is not None, "the callback is not given back")
    equal(libraries.blas.cublasSetLoggerCallback(CALLBACK()), SUCCESS)
    n = len(messages)
    libraries.version(handle)
    equal(len(messages), n, "messages without a callback")
    holds(BLAS_LINE.fullmatch(messages[0])[2] == "cublasGetVersion_v2", f"the first message is {messages[0]!r}")


@case(CUBLASLT_LOG_LEVEL="5")
def cublaslt_logs_calls_to_stdout_by_its_level(libraries):
    handle = libraries.lt_handle()
    equal(libraries.lt.cublasLtDestroy(handle), SUCCESS)
    equal(libraries.lt.cublasLtDestroy(handle), NOT_INITIALIZED)


@after(cublaslt_logs_calls_to_stdout_by_its_level)
def _(stdout, stderr, _folder):
    lines = [(kind, name) for _, kind, name, _ in LT_LINE.findall(stdout)]
    destroyed = ("Api", "cublasLtDestroy")
    equal(lines, [("Api", "cublasLtCreate"), destroyed, destroyed, ("Error", "cublasLtDestroy")], "the log")
    equal(stderr, "", "stderr")


@case(CUBLASLT_LOG_MASK="1", CUBLASLT_LOG_FILE="FOLDER/log.%i")
def cublaslt_logs_what_its_mask_has_to_a_file_of_the_process(libraries):
    handle = libraries.lt_handle()
    equal(libraries.lt.cublasLtDestroy(handle), SUCCESS)
    equal(libraries.lt.cublasLtDestroy(handle), NOT_INITIALIZED)


@after(cublaslt_logs_what_its_mask_has_to_a_file_of_the_process)
def _(stdout, stderr, folder):
    equal(stdout + stderr, "", "what is printed")
    [name] = os.listdir(folder)
    lines = LT_LINE.findall(_read(folder, name))
    equal([(kind, call) for _, kind, call, _ in lines], [("Error", "cublasLtDestroy")], "the log")
    equal(name, f"log.{lines[0][0]}", "the file's name")


@case()
def cublaslt_logs_to_callbacks_and_files_as_it_is_told(libraries):
    lt, messages = libraries.lt, []
    callback = LT_CALLBACK(lambda level, name, message: messages.append((level, name.decode(), message.decode())))
    equal(lt.cublasLtLoggerSetCallback(callback), SUCCESS)
    libraries.lt_handle()
    equal(messages, [], "messages before there is a level")
    equal(lt.cublasLtLoggerSetLevel(6), INVALID_VALUE, "a level that is none")
    equal(lt.cublasLtLoggerSetLevel(-1), INVALID_VALUE, "a level that is none")
    equal(lt.cublasLtLoggerSetLevel(API), SUCCESS)
    libraries.lt_handle()
    equal(lt.cublasLtDestroy(c_void_p(1)), NOT_INITIALIZED)
    equal([message[:2] for message in messages], [(API, "cublasLtCreate"), (API, "cublasLtDestroy"), (ERROR, "cublasLtDestroy")], "the messages")
    equal(messages[1][2], "lightHandle=0x1", "the parameters")
    equal(lt.cublasLtLoggerSetMask(0), SUCCESS)
    n = len(messages)
    libraries.lt_handle()
    equal(len(messages), n, "messages with an empty mask")
    path = os.path.join(libraries.folder, "log").encode()
    equal(lt.cublasLtLoggerOpenFile(path), SUCCESS)
    equal(lt.cublasLtLoggerOpenFile(b"/dev/null/log"), INVALID_VALUE, "a folder that is not there")
    equal(lt.cublasLtLoggerSetMask(1 << (API - 1)), SUCCESS)
    libraries.lt_handle()
    equal(messages[-1][:2], (API, "cublasLtCreate"), "the last message")
    equal(lt.cublasLtLoggerForceDisable(), SUCCESS)
    equal(lt.cublasLtLoggerSetLevel(API), SUCCESS)
    n = len(messages)
    libraries.lt_handle()
    equal(len(messages), n, "messages of a logger that is disabled")


@after(cublaslt_logs_to_callbacks_and_files_as_it_is_told)
def _(stdout, stderr, folder):
    equal(stdout + stderr, "", "what is printed")
    lines = [(kind, name) for _, kind, name, _ in LT_LINE.findall(_read(folder, "log"))]
    equal(lines[0], ("Api", "cublasLtCreate"), "the first line of the file")


@case()
def cublaslt_logs_to_a_file_of_the_programs(libraries):
    libraries.cuda.fopen.restype = c_void_p
    file = c_void_p(libraries.cuda.fopen(os.path.join(libraries.folder, "log").encode(), b"w"))
    equal(libraries.lt.cublasLtLoggerSetFile(file), SUCCESS)
    equal(libraries.lt.cublasLtLoggerSetLevel(API), SUCCESS)
    libraries.lt_handle()
    holds("[Api][cublasLtCreate]" in _read(libraries.folder, "log"), "the file has no line")


@case()
def xerbla_names_the_routine_and_the_parameter(libraries):
    libraries.blas.cublasXerbla(b"DGEMM ", 4)


@after(xerbla_names_the_routine_and_the_parameter)
def _(stdout, stderr, _folder):
    equal(stdout, "", "stdout")
    equal(stderr, " ** On entry to DGEMM  parameter number  4 had an illegal value\n", "stderr")
