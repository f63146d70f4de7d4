"""ONNX's own tests of nodes and of models (onnx.backend.test), by ONNX Runtime's CUDA provider alone.

A test whose nodes are not all on the CUDA provider is skipped, and so is one that ONNX Runtime's CPU provider does not take: then
what passes has been computed on the device."""

import onnx.backend.base
import onnx.backend.test
import onnxruntime
import pytest


def session(model, provider):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # Else it puts the nodes that CUDA's provider lacks on the CPU's, and says nothing.
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1" if provider.startswith("CUDA") else "0")
    return onnxruntime.InferenceSession(model, options, providers=[provider])


class Prepared(onnx.backend.base.BackendRep):
    def __init__(self, on_device, on_cpu):
        self.on_device, self.on_cpu = on_device, on_cpu

    def run(self, inputs, **_):
        given = dict(zip((it.name for it in self.on_device.get_inputs()), inputs))
        try:
            self.on_cpu.run(None, given)
        except Exception as error:
            pytest.skip(f"the CPU provider does not run it: {type(error).__name__}")
        return self.on_device.run(None, given)


class Backend(onnx.backend.base.Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **_):
        text = model.SerializeToString()
        try:
            on_cpu = session(text, "CPUExecutionProvider")
        except Exception as error:
            pytest.skip(f"the CPU provider does not take it: {type(error).__name__}")
        try:
            return Prepared(session(text, "CUDAExecutionProvider"), on_cpu)
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail as error:
            if "assigned to the default CPU EP" in str(error):
                pytest.skip("the CUDA provider has not all of its nodes")
            raise

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **_):
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def supports_device(cls, device):
        # The tests' name for where arrays are given and taken, which is the host.
        return device == "CPU"


assert "CUDAExecutionProvider" in onnxruntime.get_available_providers()
TESTS = onnx.backend.test.BackendTest(Backend, __name__)
TESTS.exclude("_cuda$")
globals().update(TESTS.enable_report().test_cases)
