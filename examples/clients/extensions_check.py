"""Python extensions from PyPI that carry a static CUDA runtime, opened by an unmodified Python: the runtime is taken over
before the module's constructors, so each sees the device; XGBoost trains on it, and its trees are those of its CPU code."""

import catboost.utils
import ctranslate2
import numpy as np
import xgboost

FAILED = []


def equal(got, expected, what):
    if got != expected:
        FAILED.append(f"{what}: {got}, not {expected}")


def ctranslate2_sees_the_device():
    equal(ctranslate2.get_cuda_device_count(), 1, "devices")
    equal("float32" in ctranslate2.get_supported_compute_types("cuda"), True, "float32 is a type of the device")


def catboost_sees_the_device():
    equal(catboost.utils.get_gpu_device_count(), 1, "devices")


def xgboost_trains_on_the_device():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(500, 6)).astype(np.float32)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0).astype(np.float32)
    predicted = {}
    # With a limit on leaves the two differ anywhere: the GPU code asks for it only of the best split of each feature.
    for device in ("cpu", "cuda"):
        settings = {"device": device, "tree_method": "hist", "objective": "binary:logistic"}
        settings |= {"max_depth": 3, "min_child_weight": 0}
        data = xgboost.DMatrix(x, y)
        model = xgboost.train(settings, data, num_boost_round=5)
        equal(f'"device":"{device}' in model.save_config(), True, f"the model is of {device}")
        predicted[device] = model.predict(data)
    # Sums of gradients are rounded in another order there.
    np.testing.assert_allclose(predicted["cuda"], predicted["cpu"], atol=1e-5)
    wrong = np.mean((predicted["cuda"] > 0.5) != (y > 0.5))
    equal(bool(wrong < 0.1), True, f"wrong for {wrong:.0%} of what it was trained with")


CHECKS = (ctranslate2_sees_the_device, catboost_sees_the_device, xgboost_trains_on_the_device)


def main():
    for check in CHECKS:
        before = len(FAILED)
        try:
            check()
        except Exception as error:
            FAILED.append(f"{check.__name__}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        print(check.__name__, "ok" if len(FAILED) == before else "FAILED", flush=True)
    for line in FAILED:
        print("FAILED:", line)
    print("FAILED" if FAILED else "PASSED")
    raise SystemExit(bool(FAILED))


main()
