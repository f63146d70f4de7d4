"""ONNX Runtime's wheel with CUDA runs models that a wheel of PyPI ships (RapidOCR's: text found, turned and read). Results are compared
to those of its own CPU provider, from the same file."""

import os
from pathlib import Path

import numpy as np
import onnxruntime
from beside import FAILED, compare, run

MODELS = Path(os.environ["RAPIDOCR"]) / "rapidocr_onnxruntime/models"
RANDOM = np.random.default_rng(3)


def session(name, provider):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    it = onnxruntime.InferenceSession(MODELS / f"{name}.onnx", options, providers=[provider])
    # Without its libraries, the provider would be left out and said nothing of.
    if it.get_providers()[0] != provider:
        FAILED.append(f"{name}: {provider} did not load")
    return it


# Letters, seven rows of five dots each.
LETTERS = {
    "A": "01110 10001 10001 11111 10001 10001 10001",
    "C": "01110 10001 10000 10000 10000 10001 01110",
    "D": "11110 10001 10001 10001 10001 10001 11110",
    "U": "10001 10001 10001 10001 10001 10001 01110",
}


def page(shape, text="CUDA", scale=4):
    """Black lines of text on white, between -1 and 1."""
    image = np.ones(shape[2:], np.float32)
    for top in range(8, shape[2] - 7 * scale, 12 * scale):
        for number, letter in enumerate(text):
            dots = np.array([[int(dot) for dot in row] for row in LETTERS[letter].split()])
            left = 12 + number * 6 * scale
            image[top : top + 7 * scale, left : left + 5 * scale] -= np.kron(dots, np.ones((scale, scale)))
    return np.broadcast_to(2 * image - 1, shape).copy()


def close(name, *shapes, bound, drawn=RANDOM.standard_normal):
    on_device, on_cpu = session(name, "CUDAExecutionProvider"), session(name, "CPUExecutionProvider")
    for shape in shapes:
        given = {on_device.get_inputs()[0].name: drawn(shape).astype(np.float32)}
        got, expected = on_device.run(None, given), on_cpu.run(None, given)
        for one, other in zip(got, expected, strict=True):
            compare(f"{name} of {shape}", one, other, bound)


def finds_text():
    # Where text is, its answers are next to 1, on random pictures next to 0. Between them they are as steep as fifty times the sum.
    close("ch_PP-OCRv4_det_infer", (1, 3, 320, 480), (1, 3, 96, 256), (2, 3, 64, 160), bound=5e-4, drawn=page)


def turns_text():
    close("ch_ppocr_mobile_v2.0_cls_infer", (4, 3, 48, 192), bound=1e-5)


def reads_text():
    close("ch_PP-OCRv4_rec_infer", (2, 3, 48, 320), (1, 3, 48, 96), bound=1e-4)
    close("ch_PP-OCRv4_rec_infer", (1, 3, 48, 144), bound=1e-4, drawn=page)


run(finds_text, turns_text, reads_text)
