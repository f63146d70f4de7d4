"""A notebook's cell in the kernel `cudaway`, as Jupyter starts it."""

import os
import sys

from jupyter_client.manager import start_new_kernel

CELL = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import launch
launch.run()
print("the kernel's numbers are right")
"""

said = []


def hear(message):
    kind, content = message["header"]["msg_type"], message["content"]
    if kind == "stream":
        said.append(content["text"])
    elif kind == "error":
        said.append("\n".join(content["traceback"]))


manager, client = start_new_kernel(startup_timeout=120, kernel_name="cudaway")
try:
    assert manager.kernel_spec.display_name == "Python (CUDAway)"
    reply = client.execute_interactive(CELL, timeout=120, output_hook=hear)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
assert reply["content"]["status"] == "ok", "".join(said)
assert "".join(said) == "the kernel's numbers are right\n", said
print("PASSED")
