"""A pytest plugin for FlagGems's own tests. They make their tensors by PyTorch's operators, which are machine code here: random ones
come from the CPU, so that a test without kernels has something to be wrong about, and for all else FlagGems's are there from the start;
products outside of what is tested are cuBLAS's, as docs/pytorch.md has it."""

import flag_gems
import torch

LIBRARY = torch.library.Library("aten", "IMPL")


def randn(size, dtype=None, layout=None, device=None, pin_memory=None):
    return torch.randn(size, dtype=dtype).to(device)


def randn_like(tensor, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return torch.randn(tensor.shape, dtype=dtype or tensor.dtype).to(device or tensor.device)


def randint(high, size, **kind):
    return randint_from(0, high, size, **kind)


def randint_from(low, high, size, dtype=None, layout=None, device=None, pin_memory=None):
    return torch.randint(low, high, size, dtype=dtype).to(device)


def pytest_configure():
    functions = {"randn": randn, "randn_like": randn_like, "randint": randint, "randint.low": randint_from}
    for name, function in functions.items():
        LIBRARY.impl(name, function, "CUDA")
    flag_gems.enable(unused="mm addmm bmm baddbmm mv addmv dot vdot randn randn_like".split())
