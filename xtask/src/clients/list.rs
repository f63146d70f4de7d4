//! The clients: what is installed, which of its own tests run, and why some of them cannot pass here.

use testkit::known::Known;

/// A program of others that uses CUDA.
pub struct Client {
    /// Its folder, and what `--only` takes.
    pub name: &'static str,
    pub title: &'static str,
    /// Exact pins; pip adds what they need.
    pub wheels: &'static [&'static str],
    pub source: Source,
    /// Started by `cudaway run`, which sets what the client needs to find us and to be content with PTX.
    pub by_run: bool,
    /// `{lib}`: our objects, `{wheels}`: where its wheels lie, `{cuda}`: NVIDIA's among them, `{toolkit}`: NVIDIA's compiler,
    /// `{files}`: what a wheel of [`Source::Files`] holds, `{dir}`: a folder of this run's own.
    pub environment: &'static [(&'static str, &'static str)],
    /// Modules of its wheels with a static runtime, which must be taken over.
    pub taken_over: &'static [&'static str],
    pub suites: &'static [Suite],
    /// What a reader of the page should know besides.
    pub note: &'static str,
}

impl Client {
    pub fn suite(&self, name: &str) -> Option<&Suite> {
        self.suites.iter().find(|suite| suite.name == name)
    }
}

/// Where its tests come from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// Nowhere, or from the wheels.
    Wheels,
    /// From the wheels, whose tests lie where pytest does not look for them.
    Numba,
    /// The source distribution of this pin.
    Sdist(&'static str),
    /// Likewise, and the client itself is built from it.
    PyCuda(&'static str),
    /// Nowhere; files that they read are in the wheel of this pin, which is not installed: what it needs would take the client's place.
    Files(&'static str),
    /// This commit of a repository; these pins are installed without what they need, which is ours or among the client's wheels.
    Repository {
        url: &'static str,
        commit: &'static str,
        alone: &'static [&'static str],
    },
    Crate {
        name: &'static str,
        version: &'static str,
    },
}

pub struct Suite {
    pub name: &'static str,
    pub tests: Tests,
    /// How many tests a full run takes, in an order drawn by a fixed seed; 0 for all, in their own order.
    pub sample: usize,
    /// How many pass on a driver that runs no kernel, and so prove nothing; where that was measured.
    pub null_passes: Option<usize>,
    /// Tests that fail here today.
    pub known: &'static [Reason],
}

impl Suite {
    pub fn known(&self) -> Vec<Known> {
        let of = |reason: &Reason| {
            let Reason { why, wavers, tests } = *reason;
            let known = move |&(test, said): &(&str, &str)| Known {
                test: test.to_owned(),
                said: said.to_owned(),
                why: why.to_owned(),
                wavers,
            };
            tests.iter().map(known).collect::<Vec<_>>()
        };
        self.known.iter().flat_map(of).collect()
    }
}

#[derive(Clone, Copy)]
pub enum Tests {
    /// What pytest is given; `{examples}`: the checkout's examples/clients.
    Pytest(&'static [&'static str]),
    /// A crate's own, with these features.
    Cargo(&'static str),
    /// Ours, in examples/clients: it uses the client and compares results.
    Script(&'static str),
}

/// A script of ours; without kernels no check of it passes.
const fn script(name: &'static str) -> Suite {
    Suite { name, tests: Tests::Script(name), sample: 0, null_passes: Some(0), known: &[] }
}

/// Why some tests fail.
pub struct Reason {
    pub why: &'static str,
    /// They measure time: on some machines and days they pass.
    pub wavers: bool,
    /// All of each one's name, and all that it says, as `results::answer` has it. The run tells both.
    pub tests: &'static [(&'static str, &'static str)],
}

pub const CLIENTS: &[Client] = &[
    TINYGRAD,
    TINYGRAD_PTX,
    CUDARC,
    TAICHI,
    NUMBA,
    CUDA_CORE,
    PYCUDA,
    CUPY,
    TRITON,
    TORCH,
    JAX,
    OPENMM,
    WARP,
    MUJOCO,
    DRJIT,
    TENSORFLOW,
    ONNXRUNTIME,
    NVML,
    EXTENSIONS,
    CTRANSFORMERS,
];

/// A client that has it among its wheels is tested by as many processes as there are cores.
pub const XDIST: &str = "pytest-xdist==3.8.0";

const TINYGRAD: Client = Client {
    name: "tinygrad",
    title: "tinygrad 0.14.0",
    wheels: &[
        "tinygrad==0.14.0",
        "numpy==2.4.6",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-crt==13.5.37",
        "setuptools==84.2.1",
        "wheel==0.48.0",
    ],
    source: Source::Sdist("tinygrad==0.14.0"),
    by_run: false,
    environment: &[
        ("DEV", "CUDA"),
        ("CUDA", "1"),
        ("CUDA_PATH", "{cuda}"),
        ("LD_LIBRARY_PATH", "{lib}:{cuda}/lib"),
        // Constants are computed on its CPU device.
        ("CC", "clang-19"),
        ("CACHEDB", "{dir}/cache.db"),
    ],
    taken_over: &[],
    suites: &[Suite {
        name: "test_tiny.py",
        tests: Tests::Pytest(&["test/test_tiny.py"]),
        sample: 0,
        null_passes: Some(4),
        known: &[],
    }],
    note: "",
};

const TINYGRAD_PTX: Client = Client {
    name: "tinygrad-ptx",
    title: "tinygrad 0.14.0, with its own PTX",
    wheels: &["tinygrad==0.14.0", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: false,
    environment: &[("DEV", "CUDA:PTX"), ("LD_LIBRARY_PATH", "{lib}"), ("CACHEDB", "{dir}/cache.db")],
    taken_over: &[],
    suites: &[script("tinygrad_check.py")],
    note: "No compiler of NVIDIA's is installed: it writes the PTX itself, with `sin.approx` as it is, which is exact for small angles \
           only, on any GPU.",
};

const CUDARC: Client = Client {
    name: "cudarc",
    title: "cudarc 0.19.10",
    // It opens NVRTC.
    wheels: &["nvidia-cuda-nvrtc==13.5.37"],
    source: Source::Crate { name: "cudarc", version: "0.19.10" },
    by_run: false,
    environment: &[("LD_LIBRARY_PATH", "{lib}:{cuda}/lib")],
    taken_over: &[],
    suites: &[Suite {
        name: "cargo test --lib",
        tests: Tests::Cargo("std,driver,nvrtc,cuda-13010,dynamic-loading"),
        sample: 0,
        null_passes: Some(40),
        known: &[
            Reason {
                why: "asserts that write-combined memory is read slowly; there is none here",
                wavers: true,
                tests: &[(
                    "driver::safe::core::tests::test_default_pinned_host_reads_are_faster_than_write_combined",
                    "#.#ms vs #.#ms",
                )],
            },
            Reason {
                why: "asserts that copies from pinned memory are faster; here both are copies in memory",
                wavers: true,
                tests: &[("driver::safe::core::tests::test_pinned_copy_is_faster", "#.#µs vs #.#µs")],
            },
            Reason {
                why: "asserts that two kernels of one thread on two streams take half the time; needs two idle cores",
                wavers: true,
                tests: &[("driver::safe::launch::tests::test_par_launch", "par=#.# dbl=#.#")],
            },
        ],
    }],
    note: "",
};

const TAICHI: Client = Client {
    name: "taichi",
    title: "Taichi 1.7.4",
    wheels: &["taichi==1.7.4", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: false,
    environment: &[("LD_LIBRARY_PATH", "{lib}"), ("TI_OFFLINE_CACHE", "0"), ("TI_LOG_LEVEL", "warn")],
    taken_over: &[],
    suites: &[script("taichi_check.py")],
    note: "The wheel has no tests.",
};

const NUMBA: Client = Client {
    name: "numba",
    title: "Numba (numba-cuda 0.30.4)",
    wheels: &[
        "numba-cuda==0.30.4",
        // What its tests of IPC read of a handle is gone from 13.4.
        "cuda-bindings==13.1.1",
        "numpy==2.4.6",
        "nvidia-nvvm==13.5.37",
        // In front of which ours stands: NVIDIA's writes machine code.
        "nvidia-nvjitlink==13.5.37",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
        "cffi",
        "psutil",
        "filecheck",
        "ml_dtypes",
        XDIST,
    ],
    source: Source::Numba,
    by_run: true,
    environment: &[("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")],
    taken_over: &[],
    suites: &[
        Suite {
            name: "cudadrv and cudapy",
            tests: Tests::Pytest(&[
                "--import-mode=importlib",
                "--pyargs",
                "numba.cuda.tests.cudadrv",
                "numba.cuda.tests.cudapy",
            ]),
            sample: 0,
            null_passes: Some(1048),
            known: &[
                Reason {
                    why: "compares numbers of registers, which no CPU code has",
                    wavers: false,
                    tests: &[(
                        "venv/lib/python3.11/site-packages/numba_cuda/numba/cuda/tests/cudadrv/test_linker.py::TestLinker::test_set_registers_no_max",
                        "AssertionError: # not greater than #",
                    )],
                },
                Reason {
                    why: "its index of cached code and that of Numba's CPU half take each other for out of date; no driver is asked",
                    wavers: false,
                    tests: &[
                        (
                            "venv/lib/python3.11/site-packages/numba_cuda/numba/cuda/tests/cudapy/test_caching.py::CUDAAndCPUCachingTest::test_cpu_and_cuda_reuse",
                            "AssertionError: # != # : Counter()",
                        ),
                        (
                            "venv/lib/python3.11/site-packages/numba_cuda/numba/cuda/tests/cudapy/test_caching.py::CUDAAndCPUCachingTest::test_cpu_and_cuda_targets",
                            "AssertionError: # != # : ['cuda_and_cpu_caching_test_fodder.target_shared_assign-#.py#.#.nbc', 'cuda_and_cpu_caching_test_fodder.target_shared_assign-#.py#.nbi']",
                        ),
                    ],
                },
                Reason {
                    why: "finds its module under another name than its own, since the wheel lacks what pytest needs to see it in place",
                    wavers: false,
                    tests: &[(
                        "venv/lib/python3.11/site-packages/numba_cuda/numba/cuda/tests/cudapy/test_extending.py::TestIntrinsic::test_docstring",
                        "AssertionError: 'numba.cuda.tests.cudapy.test_extending' != 'cuda.tests.cudapy.test_extending' - numba.cuda.tests.cudapy.test_extending ? ------ + cuda.tests.cudapy.test_extending",
                    )],
                },
                Reason {
                    why: "looks at what another test of its file has left in Numba's registry, where that ran before it in the same process; no driver is asked",
                    wavers: true,
                    tests: &[(
                        "venv/lib/python3.11/site-packages/numba_cuda/numba/cuda/tests/cudapy/test_extending.py::TestNumbaInternalOverloads::test_signatures_match_overloaded_api",
                        "ValueError: <function TestExtendingLinkage.test_linked_called_through_overload.<locals>.bar_call at #x#f#b#b#> from module 'cuda.tests.cudapy.test_extending' has mismatched sig. - expected: (val) - got: (a) from _cuda/numba/cuda/tests/cudapy/test_extending.py:#",
                    )],
                },
            ],
        },
        script("numba_check.py"),
    ],
    note: "With `nvidia-nvjitlink`, in front of which `cudaway run` puts ours: Numba then makes PTX.",
};

const CUDA_CORE: Client = Client {
    name: "cuda-core",
    title: "cuda-core 1.2.2, cuda-bindings 13.5.0",
    wheels: &[
        "cuda-core==1.2.2",
        "cuda-bindings==13.5.0",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-nvjitlink==13.5.37",
        "numpy==2.4.6",
    ],
    source: Source::Wheels,
    by_run: true,
    environment: &[],
    taken_over: &[],
    suites: &[script("cuda_core_check.py")],
    note: "`cuda.bindings.runtime` carries a static runtime that is stripped of its names; it is told by its code and taken over.",
};

const PYCUDA: Client = Client {
    name: "pycuda",
    title: "PyCUDA 2026.1",
    wheels: &[
        "setuptools==84.2.1",
        "wheel==0.48.0",
        "numpy==2.4.6",
        "nvidia-curand==10.4.5.25",
        "nvidia-cuda-profiler-api==13.5.25",
        "pytools==2026.1.1",
        "mako==1.4.3",
        "platformdirs==4.14.7",
    ],
    source: Source::PyCuda("pycuda==2026.1"),
    by_run: true,
    environment: &[
        ("PATH", "{toolkit}/bin:{path}"),
        ("LD_LIBRARY_PATH", "{cuda}/lib"),
        ("XDG_CACHE_HOME", "{dir}/cache"),
        // cuRAND's headers.
        ("NVCC_APPEND_FLAGS", "-I{cuda}/include"),
        // Its largest tests would take all of the machine's memory.
        ("CUDAWAY_CPU_MEMORY_MB", "4000"),
    ],
    taken_over: &[],
    suites: &[Suite {
        name: "test",
        tests: Tests::Pytest(&["test/test_driver.py", "test/test_cumath.py", "test/test_gpuarray.py"]),
        sample: 0,
        null_passes: None,
        known: &[Reason {
            why: "links what launches kernels from a kernel, which is not there yet",
            wavers: false,
            tests: &[
                ("test/test_driver.py::TestDriver::test_jit_link_module", NO_LAUNCHES),
                ("test/test_driver.py::TestDriver::test_recursive_launch", NO_LAUNCHES),
            ],
        }],
    }],
    note: "Built here on our `libcuda.so.1`. The `nvcc` of `cudaway run` has NVIDIA's make PTX where PyCUDA asks for machine code.",
};

const NO_LAUNCHES: &str = "pycuda._driver.LogicError: cuModuleGetFunction failed: is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it";

const CUPY: Client = Client {
    name: "cupy",
    title: "CuPy (cupy-cuda13x 14.2.0)",
    wheels: &[
        "cupy-cuda13x==14.2.0",
        "numpy==2.4.6",
        // What its sparse matrices and decompositions are compared to.
        "scipy==1.17.1",
        "nvidia-cuda-nvrtc==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        // In whose places ours stand; callbacks of transforms are compiled with cuFFT's headers.
        "nvidia-cufft==12.5.0.14",
        "nvidia-curand==10.4.5.25",
        // Its source distribution is opened with these.
        "setuptools==84.2.1",
        "wheel==0.48.0",
        "Cython==3.1.6",
        XDIST,
    ],
    source: Source::Sdist("cupy==14.2.0"),
    by_run: true,
    environment: &[
        ("CUPY_CACHE_DIR", "{dir}/cache"),
        ("PATH", "{toolkit}/bin:{path}"),
        // Its tests of several devices run on two, and those of more are skipped.
        ("CUDAWAY_DEVICE", "cpu,cpu"),
        ("CUPY_TEST_GPU_LIMIT", "2"),
        // A process's first use of Jitify is NVRTC alone for some ten minutes: it compiles for the headers that CuPy has.
        ("PYTEST_TIMEOUT", "1800"),
    ],
    taken_over: &["cupy_backends/cuda/api/runtime.", "cupy/cuda/cub.", "cupy/cuda/thrust."],
    suites: &[
        Suite {
            name: "core, creation, indexing, math, logic, manipulation, sorting",
            tests: Tests::Pytest(&[
                "tests/cupy_tests/core_tests",
                "tests/cupy_tests/creation_tests",
                "tests/cupy_tests/indexing_tests",
                "tests/cupy_tests/math_tests",
                "tests/cupy_tests/logic_tests",
                "tests/cupy_tests/manipulation_tests",
                "tests/cupy_tests/sorting_tests",
            ]),
            // All of them, in an order by which what a time limit leaves is a sample too.
            sample: 20_000,
            null_passes: None,
            known: &[
                Reason {
                    why: "a machine of 23 GB, whose memory is the host's and the device's, has too little for it",
                    wavers: true,
                    tests: &[
                        (
                            "tests/cupy_tests/creation_tests/test_from_data.py::TestCudaArrayInterfaceBigArray::test_with_over_size_array",
                            "worker 'gw#' crashed while running 'tests/cupy_tests/creation_tests/test_from_data.py::TestCudaArrayInterfaceBigArray::test_with_over_size_array'",
                        ),
                        (
                            "tests/cupy_tests/math_tests/test_sumprod.py::TestNansumNanprodHuge::test_nansum_axis_huge",
                            "worker 'gw#' crashed while running 'tests/cupy_tests/math_tests/test_sumprod.py::TestNansumNanprodHuge::test_nansum_axis_huge'",
                        ),
                        (
                            "tests/cupy_tests/math_tests/test_sumprod.py::TestReductionSizeOverInt32Max::test_cumprod_size_over_int32_max[int8]",
                            "worker 'gw#' crashed while running 'tests/cupy_tests/math_tests/test_sumprod.py::TestReductionSizeOverInt#Max::test_cumprod_size_over_int#_max[int#]'",
                        ),
                        (
                            "tests/cupy_tests/math_tests/test_sumprod.py::TestReductionSizeOverInt32Max::test_reduce[shape3-1-int32-second_part]",
                            "worker 'gw#' crashed while running 'tests/cupy_tests/math_tests/test_sumprod.py::TestReductionSizeOverInt#Max::test_reduce[shape#-#-int#-second_part]'",
                        ),
                        (
                            "tests/cupy_tests/sorting_tests/test_search.py::TestSearch::test_argmin_int32_overflow",
                            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating # bytes (allocated so far: # bytes).",
                        ),
                        (
                            "tests/cupy_tests/sorting_tests/test_search.py::TestSearch::test_argmax_int32_overflow",
                            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating # bytes (allocated so far: # bytes).",
                        ),
                    ],
                },
                Reason {
                    why: "its operands overlap: it counts on a warp's lanes going in step, which baseline code does not",
                    wavers: true,
                    tests: &[(
                        "tests/cupy_tests/core_tests/fusion_tests/test_optimization.py::TestOptimizations::test_inplace_same_memory_space",
                        "AssertionError: Not equal to tolerance rtol=#.#, atol=#.# Mismatched elements: # / # (#.#%) First # mismatches are at indices: [#, #]: # (ACTUAL), # (DESIRED) [#, #]: # (ACTUAL), # (DESIRED) [#, #]: # (ACTUAL), # (DESIRED) [#, #]: # (ACTUAL), # (DESIRED) [#, #]: # (ACTUAL), # (DESIRED) Max absolute difference among violations: # Max relative difference among violations: #.# ACTUA",
                    )],
                },
                Reason {
                    why: "`nvcc --device-link` makes machine code of an object; ours stands in front of the compiler alone",
                    wavers: false,
                    tests: &[(
                        "tests/cupy_tests/core_tests/test_raw.py::TestRaw::test_dynamical_parallelism[NVCC (no-jitify)]",
                        "FileNotFoundError: [Errno #] No such file or directory: '/tmp/…'",
                    )],
                },
            ],
        },
        Suite {
            name: "statistics, functional",
            tests: Tests::Pytest(&["tests/cupy_tests/statistics_tests", "tests/cupy_tests/functional_tests"]),
            sample: 0,
            null_passes: None,
            known: &[],
        },
        Suite {
            name: "linalg",
            tests: Tests::Pytest(&[
                "tests/cupy_tests/linalg_tests",
                "tests/cupyx_tests/linalg_tests",
                "tests/cupyx_tests/test_cusolver.py",
                "tests/cupyx_tests/test_lapack.py",
            ]),
            sample: 20_000,
            null_passes: None,
            known: &[Reason {
                why: "it sorts two eigenvalues whose real parts are the same but for rounding, so the last bits say which is first",
                wavers: true,
                tests: &[
                    (
                        "tests/cupy_tests/linalg_tests/test_eigenvalue.py::TestEigenvalue::test_eig",
                        "AssertionError: Not equal to tolerance rtol=#.#, atol=#.# Mismatched elements: # / # (#.#%) Mismatch at indices: [#]: (#.#+#.#j) (ACTUAL), (#.#-#.#j) (DESIRED) [#]: (#.#-#.#j) (ACTUAL), (#.#+#.#j) (DESIRED) Max absolute difference among violations: #.# Max relative difference ",
                    ),
                    (
                        "tests/cupy_tests/linalg_tests/test_eigenvalue.py::TestEigenvalue::test_eigvals_complex",
                        "AssertionError: Not equal to tolerance rtol=#.#, atol=#.# Mismatched elements: # / # (#.#%) Mismatch at indices: [#]: (#.#+#.#j) (ACTUAL), (#.#-#.#j) (DESIRED) [#]: (#.#-#.#j) (ACTUAL), (#.#+#.#j) (DESIRED) Max absolute difference among violations: #.# Max relative difference ",
                    ),
                ],
            }],
        },
        Suite {
            name: "sparse",
            tests: Tests::Pytest(&[
                "tests/cupyx_tests/scipy_tests/sparse_tests",
                "tests/cupyx_tests/test_cusparse.py",
            ]),
            sample: 20_000,
            null_passes: None,
            known: &[Reason {
                why: "a product of 10,000,000,000 entries, which indices of 32 bits cannot number",
                wavers: false,
                tests: &[
                    (
                        "tests/cupyx_tests/test_cusparse.py::TestSpgemm::test_spgemm_ab[_param_2_{dtype=float32, shape=(100000, 100000, 50)}]",
                        "cupy_backends.cuda.libs.cusparse.CuSparseError: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES: insufficient resources",
                    ),
                    (
                        "tests/cupyx_tests/test_cusparse.py::TestSpgemm::test_spgemm_ab[_param_5_{dtype=float64, shape=(100000, 100000, 50)}]",
                        "cupy_backends.cuda.libs.cusparse.CuSparseError: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES: insufficient resources",
                    ),
                    (
                        "tests/cupyx_tests/test_cusparse.py::TestSpgemm::test_spgemm_ab[_param_8_{dtype=complex64, shape=(100000, 100000, 50)}]",
                        "cupy_backends.cuda.libs.cusparse.CuSparseError: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES: insufficient resources",
                    ),
                    (
                        "tests/cupyx_tests/test_cusparse.py::TestSpgemm::test_spgemm_ab[_param_11_{dtype=complex128, shape=(100000, 100000, 50)}]",
                        "cupy_backends.cuda.libs.cusparse.CuSparseError: CUSPARSE_STATUS_INSUFFICIENT_RESOURCES: insufficient resources",
                    ),
                ],
            }],
        },
        Suite {
            name: "scipy.special",
            tests: Tests::Pytest(&["tests/cupyx_tests/scipy_tests/special_tests"]),
            sample: 20_000,
            null_passes: None,
            known: &[],
        },
        Suite {
            name: "scipy.ndimage",
            tests: Tests::Pytest(&["tests/cupyx_tests/scipy_tests/ndimage_tests"]),
            sample: 20_000,
            null_passes: None,
            known: &[],
        },
        Suite {
            name: "scipy.signal",
            tests: Tests::Pytest(&[
                "tests/cupyx_tests/scipy_tests/signal_tests",
                "tests/cupyx_tests/signal_tests",
            ]),
            sample: 20_000,
            null_passes: None,
            known: &[],
        },
        Suite {
            name: "scipy.fft, linalg, stats, spatial, interpolate",
            tests: Tests::Pytest(&[
                "tests/cupyx_tests/scipy_tests/fft_tests",
                "tests/cupyx_tests/scipy_tests/fftpack_tests",
                "tests/cupyx_tests/scipy_tests/linalg_tests",
                "tests/cupyx_tests/scipy_tests/stats_tests",
                "tests/cupyx_tests/scipy_tests/spatial_tests",
                "tests/cupyx_tests/scipy_tests/interpolate_tests",
                "tests/cupyx_tests/scipy_tests/test_get_array_module.py",
            ]),
            sample: 20_000,
            null_passes: None,
            known: &[],
        },
        Suite {
            name: "cupyx: jit, tools, profiler and others",
            tests: Tests::Pytest(&[
                "tests/cupyx_tests/jit_tests",
                "tests/cupyx_tests/tools_tests",
                "tests/cupyx_tests/profiler_tests",
                "tests/cupyx_tests/test_cupyx.py",
                "tests/cupyx_tests/test_optimize.py",
                "tests/cupyx_tests/test_pinned_array.py",
                "tests/cupyx_tests/test_rsqrt.py",
                "tests/cupyx_tests/test_runtime.py",
                "tests/cupyx_tests/test_time.py",
            ]),
            sample: 20_000,
            null_passes: None,
            known: &[
                Reason {
                    why: "they ask NVIDIA's server, which is not reached from every machine",
                    wavers: true,
                    tests: &[
                        (
                            "tests/cupyx_tests/tools_tests/test_install_library.py::TestInstallLibrary::test_install_cutensor[12.x]",
                            "urllib.error.URLError: <urlopen error [Errno -#] Name or service not known>",
                        ),
                        (
                            "tests/cupyx_tests/tools_tests/test_install_library.py::TestInstallLibrary::test_install_cutensor[13.x]",
                            "urllib.error.URLError: <urlopen error [Errno -#] Name or service not known>",
                        ),
                        (
                            "tests/cupyx_tests/tools_tests/test_install_library.py::TestInstallLibrary::test_install_nccl[12.x]",
                            "urllib.error.URLError: <urlopen error [Errno -#] Name or service not known>",
                        ),
                        (
                            "tests/cupyx_tests/tools_tests/test_install_library.py::TestInstallLibrary::test_install_nccl[13.x]",
                            "urllib.error.URLError: <urlopen error [Errno -#] Name or service not known>",
                        ),
                        (
                            "tests/cupyx_tests/tools_tests/test_install_library.py::TestInstallLibrary::test_urls[cutensor]",
                            "urllib.error.URLError: <urlopen error [Errno -#] Name or service not known>",
                        ),
                        (
                            "tests/cupyx_tests/tools_tests/test_install_library.py::TestInstallLibrary::test_urls[nccl]",
                            "urllib.error.URLError: <urlopen error [Errno -#] Name or service not known>",
                        ),
                    ],
                },
                Reason {
                    why: "a grid that was not launched as a cooperative one is told to wait for itself, and traps",
                    wavers: false,
                    tests: &[(
                        "tests/cupyx_tests/jit_tests/test_cooperative_groups.py::TestCooperativeGroups::test_cg_sync",
                        "worker 'gw#' crashed while running 'tests/cupyx_tests/jit_tests/test_cooperative_groups.py::TestCooperativeGroups::test_cg_sync'",
                    )],
                },
            ],
        },
        Suite {
            name: "fft",
            tests: Tests::Pytest(&["tests/cupy_tests/fft_tests"]),
            sample: 0,
            null_passes: None,
            // What the other tests of callbacks say begins with where CuPy is installed, so the list would hold on one machine only.
            known: &[
                Reason {
                    why: "a plan of several devices takes no work area here",
                    wavers: false,
                    tests: &[
                        (
                            "tests/cupy_tests/fft_tests/test_cache.py::TestPlanCache::test_LRU_cache11",
                            "assert # > # + where # = key: (#, #, #, (#, #)), plan type: Plan#d, memory usage: #.memsize",
                        ),
                        (
                            "tests/cupy_tests/fft_tests/test_cache.py::TestPlanCache::test_LRU_cache12",
                            "Failed: DID NOT RAISE RuntimeError",
                        ),
                    ],
                },
                Reason {
                    why: "callbacks in LTO IR are refused",
                    wavers: false,
                    tests: &[
                        (
                            "tests/cupy_tests/fft_tests/test_callback.py::TestInputValidationWith1dCallbacks::test_fft_load_jit_no_name",
                            "cupy.cuda.cufft.CuFFTError: CUFFT_NOT_SUPPORTED",
                        ),
                        (
                            "tests/cupy_tests/fft_tests/test_callback.py::TestInputValidationWith1dCallbacks::test_fft_store_jit_no_name",
                            "cupy.cuda.cufft.CuFFTError: CUFFT_NOT_SUPPORTED",
                        ),
                    ],
                },
            ],
        },
        Suite {
            name: "random",
            tests: Tests::Pytest(&["tests/cupy_tests/random_tests"]),
            sample: 0,
            null_passes: None,
            known: &[],
        },
        script("cupy_check.py"),
    ],
    note: "NVIDIA's cuFFT and cuRAND are installed beside it, and ours stand in their places; there are two CPU devices. Of `fft` 538 tests want \
           callbacks in LTO IR (`cb_ver='jit'`), which our cuFFT refuses (`CUFFT_NOT_SUPPORTED`); 552 are of the callbacks before those \
           (`cb_ver='legacy'`), which they leave out under `LD_PRELOAD` and count as passed all the same: they prove nothing. Two tests of its cache \
           of plans want a plan of several devices to take a work area, and ours takes none.",
};

const TRITON: Client = Client {
    name: "triton",
    title: "Triton 3.9.0",
    // Without PyTorch, whose wheels have no PTX: 3.9 launches kernels by itself.
    wheels: &["triton==3.9.0", "numpy==2.4.6", "setuptools==84.2.1"],
    source: Source::Wheels,
    by_run: true,
    environment: &[("TRITON_CACHE_DIR", "{dir}/cache")],
    taken_over: &[],
    suites: &[script("triton_check.py"), script("triton_blackwell_check.py")],
    note: "Its own tests make their arrays with PyTorch. The `ptxas` of `cudaway run`, which hands the PTX on, takes the place of its own. \
           `triton_blackwell_check.py` are products of matrices at compute capability 9.0, for which Triton writes `wgmma`, and at 10.0 and \
           10.3, for which it and Gluon write `tcgen05`: f16, bf16, tf32 and 8-bit floats in many tiles, blocks that take many tiles each through tensor maps, warps with a \
           role each, attention, scales for blocks (mxfp8, mxfp4, nvfp4), clusters.",
};

const TORCH: Client = Client {
    name: "torch",
    title: "PyTorch 2.9.0 with FlagGems 5.0.2",
    wheels: &[
        // What PyTorch and FlagGems need, but for NVIDIA's libraries.
        "filelock==4.3.1",
        "fsspec==2026.9.0",
        "jinja2==3.1.6",
        "networkx==3.6.1",
        "sympy==1.14.0",
        "typing-extensions==4.16.0",
        "numpy==1.26.4",
        "packaging==26.0",
        "PyYAML==6.0.3",
        "sqlalchemy==2.0.48",
        "setuptools==84.2.1",
    ],
    source: Source::Repository {
        url: "https://github.com/flagos-ai/FlagGems",
        // v5.0.2
        commit: "30bfcc0735b8ebd48bd7339ef752ec64df69663f",
        alone: &["torch==2.9.0", "triton==3.5.0", "flag_gems==5.0.2"],
    },
    by_run: true,
    environment: &[
        ("TRITON_CACHE_DIR", "{dir}/cache"),
        ("TORCHINDUCTOR_CACHE_DIR", "{dir}/inductor"),
        ("TORCHINDUCTOR_COMPILE_THREADS", "1"),
        ("HOME", "{dir}"),
    ],
    taken_over: &[],
    suites: &[
        Suite {
            name: "FlagGems, --quick: mm, softmax, layer_norm, cat, sum",
            tests: Tests::Pytest(&[
                "-p",
                "flag_gems_tests",
                "--quick",
                "--ref",
                "cpu",
                "tests/test_mm.py",
                "tests/test_softmax.py",
                "tests/test_layer_norm.py",
                "tests/test_cat.py",
                "tests/test_sum.py",
            ]),
            sample: 0,
            // What has nothing to add up or to join, and a gradient of which nothing is left.
            null_passes: Some(16),
            known: &[],
        },
        Suite {
            name: "torch_check.py",
            tests: Tests::Script("torch_check.py"),
            sample: 0,
            // Copies, products by cuBLAS, and what is refused.
            null_passes: Some(4),
            known: &[],
        },
    ],
    note: "Its own kernels are machine code. What runs instead, and which way to take: docs/pytorch.md. FlagGems's tests of operators are \
           those of its repository, with the wheel. Random tensors come from the CPU, others are made by its operators, and results are held \
           against those of PyTorch's CPU.",
};

const JAX: Client = Client {
    name: "jax",
    title: "JAX 0.10.0 (jax-cuda12-plugin)",
    wheels: &[
        "jax==0.10.0",
        "jax-cuda12-plugin==0.10.0",
        "jax-cuda12-pjrt==0.10.0",
        // XLA takes NVIDIA's functions of mathematics from it.
        "nvidia-cuda-nvcc-cu12==12.9.86",
        "numpy==2.4.6",
    ],
    source: Source::Wheels,
    by_run: true,
    environment: &[("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1"), ("XLA_PYTHON_CLIENT_PREALLOCATE", "false")],
    taken_over: &[],
    suites: &[script("jax_check.py")],
    note: "Its results are held against those of its own CPU backend. XLA compiles PTX inside itself, for machines that are not there, and the driver \
           gets the PTX all the same. Convolutions, transforms and factorizations are our cuDNN's, cuFFT's and cuSOLVER's.",
};

const OPENMM: Client = Client {
    name: "openmm",
    title: "OpenMM 8.6.1",
    wheels: &["openmm==8.6.1", "OpenMM-CUDA-13==8.6.1", "nvidia-cuda-nvrtc==13.5.37", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: true,
    environment: &[],
    taken_over: &[],
    suites: &[script("openmm_check.py")],
    note: "Molecular dynamics: NVRTC compiles its kernels while it runs, and particle-mesh Ewald is on our cuFFT. Forces, energies and \
           steps are compared with those of its own Reference platform, of water, a peptide in it and without it, polarizable water (AMOEBA) and \
           forces given as formulas; energy is kept and a checkpoint goes on in the same bits.",
};

const WARP: Client = Client {
    name: "warp",
    title: "Warp 1.19.0 (warp-lang)",
    wheels: &["warp-lang==1.19.0", "numpy==2.4.6", "usd-core==26.11"],
    source: Source::Wheels,
    by_run: true,
    environment: &[
        ("WARP_CACHE_PATH", "{dir}/kernels"),
        // Whichever test of a file comes first waits until NVRTC has compiled all kernels of the file: minutes, in some.
        ("PYTEST_TIMEOUT", "1200"),
    ],
    taken_over: &["warp/bin/warp."],
    suites: &[
        Suite {
            name: "warp/tests, cuda_0",
            tests: Tests::Pytest(&[
                "--pyargs",
                "warp.tests",
                "-k",
                "cuda_0",
                // Whole programs of minutes each, and what draws on a screen.
                "--ignore-glob=*_examples.py",
                "--ignore-glob=*/test_render_opengl.py",
            ]),
            sample: 600,
            null_passes: None,
            known: &[Reason {
                why: "asks NVRTC for machine code (`cuda_output` is `cubin`), which only NVIDIA's GPUs run",
                wavers: false,
                tests: &[(
                    "venv/lib/python3.11/site-packages/warp/tests/cuda/test_texture.py::TestTexture::test_texture_sample_grad_moderate_cancellation_cuda_0",
                    "Exception: Failed to load CUDA module 'sample_grad_texture#d_array_#a#b#cb' (device='cuda:#', block_dim=#, module_hash=#a#b#c)",
                )],
            }],
        },
        script("warp_check.py"),
    ],
    note: "NVRTC, which its library carries, compiles its kernels while it runs. Of its tests those run that it makes once more for each \
           CUDA device. The check holds results against those of Warp's own CPU device, and against NumPy's where the CPU has none.",
};

const MUJOCO: Client = Client {
    name: "mujoco",
    title: "MuJoCo 4.0.0 (mujoco-warp)",
    wheels: &["mujoco-warp==4.0.0", "mujoco==4.0.0", "warp-lang==1.19.0", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: true,
    environment: &[("WARP_CACHE_PATH", "{dir}/kernels")],
    taken_over: &["warp/bin/warp."],
    suites: &[script("mujoco_check.py")],
    note: "Bodies that touch, on Warp. What a state leads to and where steps end are compared with MuJoCo's own C code, also of many \
           worlds at once by a graph that is replayed.",
};

const DRJIT: Client = Client {
    name: "drjit",
    title: "Dr.Jit 1.5.0",
    wheels: &["drjit==1.5.0", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: true,
    environment: &[],
    taken_over: &[],
    suites: &[script("drjit_check.py")],
    note: "It writes PTX while it runs, with loops, calls through tables of functions and derivatives in it. The wheel has no tests.",
};

const TENSORFLOW: Client = Client {
    name: "tensorflow",
    title: "TensorFlow 2.21.0",
    wheels: &[
        "tensorflow==2.21.0",
        // NVIDIA's functions of mathematics for the kernels that it makes while it runs.
        "nvidia-cuda-nvcc-cu12==12.5.82",
        "numpy==2.4.6",
    ],
    source: Source::Wheels,
    by_run: true,
    environment: &[("TF_CPP_MIN_LOG_LEVEL", "3")],
    taken_over: &[],
    suites: &[script("tensorflow_check.py")],
    note: "The wheel has all kernels as PTX; those that it makes while it runs go through the `ptxas` of `cudaway run`. Its results are \
           held against those of its own CPU device.",
};

const ONNXRUNTIME: Client = Client {
    name: "onnxruntime",
    title: "ONNX Runtime 1.22.0 (onnxruntime-gpu)",
    wheels: &[
        "onnxruntime-gpu==1.22.0",
        "onnx==1.17.0",
        "numpy==2.2.6",
        // Its CUDA provider is linked to this one.
        "nvidia-cuda-nvrtc-cu12==12.4.127",
    ],
    source: Source::Files("rapidocr-onnxruntime==1.4.4"),
    by_run: true,
    environment: &[("LD_LIBRARY_PATH", "{wheels}/nvidia/cuda_nvrtc/lib"), ("RAPIDOCR", "{files}")],
    taken_over: &[],
    suites: &[
        Suite {
            name: "onnx.backend.test",
            tests: Tests::Pytest(&["{examples}/onnxruntime_nodes.py"]),
            sample: 0,
            // Nodes that are not on the device skip their test.
            null_passes: None,
            known: &[
                Reason {
                    why: "ONNX Runtime's CUDA provider refuses to train by BatchNormalization",
                    wavers: false,
                    tests: &[
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_batchnorm_epsilon_training_mode_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Exception during initialization: /onnxruntime_src/onnxruntime/core/providers/cuda/nn/batch_norm.h:# onnxruntime::cuda::BatchNorm<T, NCHW>::BatchNorm(const onnxruntime::OpKernelInfo&) [with T = float; bool NCHW = false] !(is_training_mode_ && opset >= #) was false. Training mode does not sup",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_batchnorm_example_training_mode_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Exception during initialization: /onnxruntime_src/onnxruntime/core/providers/cuda/nn/batch_norm.h:# onnxruntime::cuda::BatchNorm<T, NCHW>::BatchNorm(const onnxruntime::OpKernelInfo&) [with T = float; bool NCHW = false] !(is_training_mode_ && opset >= #) was false. Training mode does not sup",
                        ),
                    ],
                },
                Reason {
                    why: "ONNX Runtime's CUDA provider has no quantization by blocks",
                    wavers: false,
                    tests: &[
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_dequantizelinear_blocked_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running DequantizeLinear node. Name:'' Status Message: Unsupported quantization type.",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_quantizelinear_blocked_asymmetric_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running QuantizeLinear node. Name:'' Status Message: Unsupported quantization type.",
                        ),
                    ],
                },
                Reason {
                    why: "ONNX Runtime's CUDA provider refuses to reduce along a size of 0",
                    wavers: false,
                    tests: &[
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_l1_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceL# node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prepa",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_l1_empty_set_expanded_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prep",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_l2_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceL# node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prepa",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_l2_empty_set_expanded_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prep",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_log_sum_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceLogSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, P",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_log_sum_empty_set_expanded_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prep",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_log_sum_exp_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceLogSumExp node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_log_sum_exp_empty_set_expanded_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prep",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_prod_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceProd node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Pre",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_sum_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prep",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_sum_square_empty_set_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSumSquare node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>",
                        ),
                        (
                            "onnxruntime_nodes.py::OnnxBackendNodeModelTest::test_reduce_sum_square_empty_set_expanded_cpu",
                            "onnxruntime.capi.onnxruntime_pybind#_state.RuntimeException: [ONNXRuntimeError] : # : RUNTIME_EXCEPTION : Non-zero status code returned while running ReduceSum node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cuda/reduction/reduction_ops.cc:# onnxruntime::common::Status onnxruntime::cuda::PrepareForReduce(const onnxruntime::Tensor*, bool, gsl::span<const long int>, Prep",
                        ),
                    ],
                },
            ],
        },
        script("onnxruntime_check.py"),
    ],
    note: "ONNX's tests of nodes and of models, all of whose nodes the CUDA provider has; a test that ONNX Runtime's own CPU provider \
           does not take is skipped. The models of onnxruntime_check.py are RapidOCR's, whose wheel has them; results are held against \
           those of the CPU provider.",
};

const NVML: Client = Client {
    name: "nvml",
    title: "nvidia-ml-py 13.615.71, nvitop 1.7.2, gpustat 1.1.1",
    wheels: &["nvidia-ml-py==13.615.71", "nvitop==1.7.2", "gpustat==1.1.1"],
    source: Source::Wheels,
    by_run: false,
    environment: &[("LD_LIBRARY_PATH", "{lib}")],
    taken_over: &[],
    suites: &[script("nvml_check.py")],
    note: "The monitors have no tests of their own that need a device.",
};

const EXTENSIONS: Client = Client {
    name: "extensions",
    title: "XGBoost 3.2.0, CatBoost 1.2.10, CTranslate2 4.8.5",
    wheels: &["xgboost==3.2.0", "catboost==1.2.10", "ctranslate2==4.8.5", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: true,
    environment: &[],
    taken_over: &["xgboost/lib/libxgboost.", "catboost/_catboost.", "ctranslate2.libs/libctranslate2-"],
    suites: &[Suite {
        name: "extensions_check.py",
        tests: Tests::Script("extensions_check.py"),
        sample: 0,
        // CatBoost and CTranslate2 are asked for the device only.
        null_passes: Some(2),
        known: &[],
    }],
    note: "Modules that carry a static runtime and are opened by `dlopen`. XGBoost trains, and its trees are those of its CPU code.",
};

const CTRANSFORMERS: Client = Client {
    name: "ctransformers",
    title: "ctransformers 0.2.27",
    wheels: &["ctransformers==0.2.27", "gguf==0.19.0", "numpy==2.4.6"],
    source: Source::Wheels,
    by_run: true,
    environment: &[],
    taken_over: &[],
    suites: &[script("ctransformers_check.py")],
    note: "llama.cpp as a wheel of 2023, linked to `libcudart.so.12` and `libcublas.so.12`: a model with random weights gives the tokens of its CPU library.",
};
