"""What the tests of `pytest --cudaway` run: what it says, a pass and a failure."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(__file__)))
import launch

# As long as pytest is collecting, its streams are held back.
print("collected")


def test_launches():
    print("said and not shown")
    launch.run()


def test_fails():
    assert "this test" == "a failure"
