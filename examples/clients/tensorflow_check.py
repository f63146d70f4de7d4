"""TensorFlow as it comes from PyPI: its kernels are PTX in the wheel or made while it runs, products are our cuBLAS's, convolutions our
cuDNN's. Results are compared to those of its own CPU device, from the same source."""

import numpy as np
import tensorflow as tf
from beside import FAILED, compare, run

# Unasked, TensorFlow has a device that can multiply in TF32 do that.
tf.config.experimental.enable_tensor_float_32_execution(False)

GPU, CPU = "/GPU:0", "/CPU:0"
RANDOM = np.random.default_rng(5)
PICTURES = RANDOM.standard_normal((4, 32, 32, 3)).astype(np.float32)


def close(name, function, *arguments, bound):
    """The same source on both, off by no more than `bound` of the largest result."""
    results = []
    for device in (GPU, CPU):
        with tf.device(device):
            result = function(*(tf.constant(argument) for argument in arguments))
            if not result.device.endswith(device[1:]):
                FAILED.append(f"{name}: it is on {result.device}")
            results.append(result.numpy())
    compare(name, *results, bound)


def elementwise():
    close("sum", lambda a: a + a, PICTURES, bound=0)
    close("tanh", tf.tanh, PICTURES, bound=1e-6)
    close("rsqrt", lambda a: tf.math.rsqrt(tf.abs(a) + 1), PICTURES, bound=1e-6)
    close("remainders", lambda a: tf.math.floormod(a * 3, 7), np.arange(10_000, dtype=np.int64), bound=0)


def products():
    matrix = PICTURES.reshape(96, 128)
    close("product", lambda a: tf.matmul(a, a, transpose_b=True), matrix, bound=1e-5)
    close("softmax", tf.nn.softmax, matrix, bound=1e-6)
    close("sums", lambda a: tf.reduce_sum(a, axis=1), matrix, bound=1e-5)


def convolutions():
    filters = RANDOM.standard_normal((3, 3, 3, 8)).astype(np.float32)
    close("convolution", lambda a, b: tf.nn.conv2d(a, b, 1, "SAME"), PICTURES, filters, bound=1e-5)
    close("strided", lambda a, b: tf.nn.conv2d(a, b, 2, "VALID"), PICTURES, filters, bound=1e-5)
    close("dilated", lambda a, b: tf.nn.conv2d(a, b, 1, "SAME", dilations=2), PICTURES, filters, bound=1e-5)
    close("by depth", lambda a, b: tf.nn.depthwise_conv2d(a, b, [1, 1, 1, 1], "SAME"), PICTURES, filters, bound=1e-5)
    close("largest", lambda a: tf.nn.max_pool2d(a, 3, 2, "SAME"), PICTURES, bound=0)
    close("means", lambda a: tf.nn.avg_pool2d(a, 2, 2, "VALID"), PICTURES, bound=1e-6)


def recurrent():
    """Keras has cuDNN run these networks on a GPU, and a loop of its own on the CPU."""
    sequences = RANDOM.standard_normal((4, 20, 8)).astype(np.float32)

    def outputs_and_slopes(kind, **how):
        def run(x):
            layer = kind(16, return_sequences=True, **how)
            layer.build(x.shape)
            drawn = np.random.default_rng(2)
            for weights in layer.trainable_variables:
                weights.assign(drawn.standard_normal(weights.shape) / 4)
            with tf.GradientTape() as tape:
                tape.watch(x)
                outputs = layer(x)
                loss = tf.reduce_sum(tf.sin(outputs))
            slopes = tape.gradient(loss, [x, *layer.trainable_variables])
            return tf.concat([tf.reshape(part, [-1]) for part in (outputs, *slopes)], 0)

        return run

    close("LSTM", outputs_and_slopes(tf.keras.layers.LSTM), sequences, bound=1e-5)
    close("GRU", outputs_and_slopes(tf.keras.layers.GRU, reset_after=True), sequences, bound=1e-5)


def transforms():
    close("fft", lambda a: tf.abs(tf.signal.rfft2d(tf.transpose(a, [0, 3, 1, 2]))), PICTURES, bound=1e-5)


def training():
    """A network of two convolutions, a normalization and a product learns by ten steps which of four places is bright."""
    pictures = RANDOM.standard_normal((64, 16, 16, 3)).astype(np.float32)
    labels = np.arange(64) % 4
    for picture, label in zip(pictures, labels):
        picture[8 * (label // 2) :, 8 * (label % 2) :][:8, :8] += 1
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def losses(x):
        layers = [
            tf.keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.MaxPool2D(),
            tf.keras.layers.Conv2D(16, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(4),
        ]
        model = tf.keras.Sequential([tf.keras.Input(x.shape[1:]), *layers])
        drawn = np.random.default_rng(1)
        for weights in model.trainable_variables:
            if len(weights.shape) > 1:
                fan_in = np.prod(weights.shape[:-1])
                weights.assign(drawn.standard_normal(weights.shape) / np.sqrt(fan_in))
        found = []
        for _ in range(10):
            with tf.GradientTape() as tape:
                loss = cross_entropy(labels, model(x, training=True))
            slopes = tape.gradient(loss, model.trainable_variables)
            for weights, slope in zip(model.trainable_variables, slopes):
                weights.assign_sub(0.02 * slope)
            found.append(loss)
        if not found[-1] < found[0] / 2:
            FAILED.append(f"training: it does not learn: {found}")
        return tf.stack(found)

    close("losses", losses, pictures, bound=1e-4)


if not tf.config.list_physical_devices("GPU"):
    FAILED.append("there is no GPU")
run(elementwise, products, convolutions, recurrent, transforms, training)
