"""PyTorch's wheel of PyPI as it is, whose own kernels are machine code for NVIDIA's GPUs: what it does through NVIDIA's libraries
is done by ours, and what it has kernels for by FlagGems, which is Triton. Results are compared to those of PyTorch's own CPU."""

import copy
import os
import sys
import time

import torch
import torch._inductor.config
from torch import nn

FAILED = []
# Products stay with cuBLAS and convolutions with cuDNN: FlagGems tries each of its ways for them, which takes minutes here.
LIBRARIES = """mm mm_out addmm addmm_out addmm_dtype addmm_dtype_out bmm bmm_out baddbmm mv addmv addmv_out dot vdot addr
conv1d conv2d conv3d conv1d_padding conv2d_padding conv3d_padding _conv_depthwise2d thnn_conv2d""".split()


def close(name, got, expected, within=1e-4):
    got = got.detach().cpu()
    if got.shape != expected.shape or not torch.allclose(got, expected, rtol=within, atol=within):
        FAILED.append(f"{name}: {got.flatten()[:4].tolist()}…, expected {expected.flatten()[:4].tolist()}…")


def on_both(name, function, *arguments):
    close(name, function(*(it.cuda() for it in arguments)), function(*arguments))


def copies():
    here = torch.arange(1000, dtype=torch.float32)
    close("copies", here.cuda().clone(), here)
    close("copies", here.cuda()[10:20], here[10:20])


def products():
    a, b = torch.randn(33, 70), torch.randn(70, 19)
    on_both("products", lambda a, b: a @ b, a, b)
    on_both("products", torch.bmm, torch.randn(4, 9, 5), torch.randn(4, 5, 8))


def machine_code():
    """Without FlagGems an operator of PyTorch's own has nothing to run, and says so."""
    try:
        torch.ones(3).cuda().sigmoid_()
    except RuntimeError as error:
        if "no kernel image is available" not in str(error):
            FAILED.append(f"machine_code: {error}")
    else:
        FAILED.append("machine_code: an operator ran without code")


def refused():
    """NCCL is linked, and not there."""
    try:
        torch.cuda.nccl.unique_id()
    except RuntimeError as error:
        if "NCCL" not in str(error):
            FAILED.append(f"refused: {error}")
    else:
        FAILED.append("refused: a call of NCCL succeeded")


def elementwise():
    close("elementwise", torch.full((7, 3), 2.5, device="cuda"), torch.full((7, 3), 2.5))
    x, y = torch.randn(40, 30), torch.rand(40, 30) + 0.5
    for function in (torch.add, torch.mul, torch.div, torch.maximum):
        on_both("elementwise", function, x, y)
    for function in (torch.exp, torch.relu, torch.tanh, nn.functional.gelu, lambda x: x + 1):
        on_both("elementwise", function, x)


def reductions():
    x = torch.randn(40, 30)
    for function in (torch.sum, lambda x: x.sum(1), lambda x: x.mean(0), torch.amax):
        on_both("reductions", function, x)


def softmax():
    on_both("softmax", lambda x: x.softmax(-1), torch.randn(12, 50))


def layer_norm():
    on_both("layer_norm", lambda x, w, b: nn.functional.layer_norm(x, (64,), w, b), torch.randn(9, 64), torch.rand(64), torch.randn(64))


def cat():
    on_both("cat", lambda a, b: torch.cat([a, b], 1), torch.randn(5, 6), torch.randn(5, 7))


class Attention(nn.Module):
    """One layer of a transformer, of operators that are written out."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        # In rows: FlagGems 5.0.2 takes the first dimension for the number of rows on the way back, and writes past the weights' end.
        inner = self.before(x.reshape(-1, width)).view(batch, length, width)
        query, key, value = (
            it(inner).view(batch, length, self.heads, -1).transpose(1, 2) for it in (self.query, self.key, self.value)
        )
        weights = (query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5).softmax(-1)
        x = x + self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))
        return x + self.wide(self.between(x.reshape(-1, width)).view(batch, length, width))


def transformer():
    network = nn.Sequential(nn.Embedding(50, 32), Attention(), Attention(), nn.Linear(32, 50), nn.Flatten(0, 1))
    return network, torch.randint(50, (8, 16)), torch.randint(50, (128,))


def convolutional():
    # Strides in place of pooling, whose way back FlagGems does not have.
    network = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 49, 10)),
    )
    return network, torch.randn(16, 1, 28, 28), torch.randint(10, (16,))


def losses(network, x, y, device, compiled):
    network, x, y = copy.deepcopy(network).to(device), x.to(device), y.to(device)
    loss_of = nn.CrossEntropyLoss()
    step = lambda: loss_of(network(x), y)
    if compiled:
        step = torch.compile(step)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, foreach=False, fused=False)
    found = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = step()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def trains(name, network, compiled):
    network, x, y = network()
    expected = losses(network, x, y, "cpu", False)
    started = time.time()
    close(name, torch.tensor(losses(network, x, y, "cuda", compiled)), torch.tensor(expected), 1e-3)
    print(f"# {name}: {time.time() - started:.1f} s", flush=True)


def transformer_trains():
    trains("transformer_trains", transformer, False)


def transformer_compiled_trains():
    trains("transformer_compiled_trains", transformer, True)


def convolutional_trains():
    trains("convolutional_trains", convolutional, False)


def convolutional_compiled_trains():
    trains("convolutional_compiled_trains", convolutional, True)


ALONE = (copies, products, machine_code, refused)
WITH_FLAG_GEMS = (
    *(elementwise, reductions, softmax, layer_norm, cat),
    *(transformer_trains, convolutional_trains, transformer_compiled_trains, convolutional_compiled_trains),
)

# Minutes each; `cargo xtask clients --quick` and `cargo xtask test` leave them out.
LONG = (transformer_trains, transformer_compiled_trains, convolutional_compiled_trains)


def main():
    wanted, is_sample = sys.argv[1:], bool(os.environ.get("CUDAWAY_SAMPLE"))
    torch.manual_seed(7)
    torch.set_num_threads(1)
    # Attention that is one kernel is machine code; `torch.compile` finds it in what is written out, too.
    for enable in (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.enable_mem_efficient_sdp):
        enable(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    # `torch.compile` would try several ways for each of its kernels, and before a try clear the last cache a hundred times.
    torch._inductor.config.triton.autotune_pointwise = False
    for checks in (ALONE, WITH_FLAG_GEMS):
        if checks is WITH_FLAG_GEMS:
            import flag_gems

            flag_gems.enable(unused=LIBRARIES)
        for check in checks:
            if wanted and check.__name__ not in wanted or is_sample and check in LONG:
                continue
            before = len(FAILED)
            try:
                check()
            except Exception as error:
                FAILED.append(f"{check.__name__}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            print(check.__name__, "ok" if len(FAILED) == before else "FAILED", flush=True)
    for line in FAILED:
        print("FAILED:", line, flush=True)
    print("FAILED" if FAILED else "PASSED")
    raise SystemExit(bool(FAILED))


main()
