"""ctransformers from PyPI on its CUDA library: linked to libcudart.so.12 and libcublas.so.12, kernels as PTX of sm_52. A small
llama with random weights, written on the spot, goes through it and through the CPU library of the same wheel: the same
tokens, and logits within 0.01 of each other (the CPU rounds what it multiplies to 16 bits, 2^-11 of sizes about 3)."""

import os
import tempfile

import gguf
import numpy as np
from ctransformers import LLM, Config

FAILED = []
VOCABULARY, WIDTH, HEADS, LAYERS, INNER, CONTEXT = 320, 128, 4, 2, 256, 256


def write_model(path):
    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    # The tokenizer asks for the byte of a line's end.
    known = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    words = [chr(0x4E00 + i) for i in range(VOCABULARY - len(known))]
    writer.add_token_list(known + words)
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_token_types([2, 3, 3] + [6] * 256 + [1] * len(words))

    def matrix(name, rows, columns):
        writer.add_tensor(name, random.normal(0, columns**-0.5, (rows, columns)).astype(np.float16))

    def gains(name):
        writer.add_tensor(name, random.normal(1, 0.1, WIDTH).astype(np.float32))

    matrix("token_embd.weight", VOCABULARY, WIDTH)
    gains("output_norm.weight")
    matrix("output.weight", VOCABULARY, WIDTH)
    for layer in range(LAYERS):
        gains(f"blk.{layer}.attn_norm.weight")
        gains(f"blk.{layer}.ffn_norm.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        matrix(f"blk.{layer}.ffn_gate.weight", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_up.weight", INNER, WIDTH)
        matrix(f"blk.{layer}.ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    # ctransformers knows GGUF up to version 2; version 3 added big-endian files and is the same otherwise.
    with open(path, "r+b") as file:
        file.seek(4)
        file.write((2).to_bytes(4, "little"))


def generate(path, library, gpu_layers):
    """The logits after the prompt, the tokens that follow, and the logits after them."""
    config = Config(gpu_layers=gpu_layers, context_length=CONTEXT, threads=2, batch_size=64)
    model = LLM(path, model_type="gguf", lib=library, config=config)
    # Long enough that products of whole matrices go to cuBLAS.
    model.eval([1] + [3 + (7 * i) % 90 for i in range(40)])
    first, tokens = np.array(model.logits), []
    for _ in range(24):
        tokens.append(int(np.argmax(model.logits)))
        model.eval(tokens[-1:])
    return first, tokens, np.array(model.logits)


def check(what, holds):
    print(what, "ok" if holds else "FAILED", flush=True)
    if not holds:
        FAILED.append(what)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "random.gguf")
        write_model(path)
        first, tokens, last = generate(path, "avx2", 0)
        first_on_gpu, tokens_on_gpu, last_on_gpu = generate(path, "cuda", 99)
    check("logits_of_the_prompt", np.abs(first - first_on_gpu).max() < 0.01)
    check("tokens", len(set(tokens)) > 5 and tokens == tokens_on_gpu)
    check("logits_of_the_last_token", np.abs(last - last_on_gpu).max() < 0.01)
    print("FAILED" if FAILED else "PASSED")
    raise SystemExit(bool(FAILED))


main()
