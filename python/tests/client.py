"""Runs a script of examples/clients in a process that took our libraries by cudaway.activate(), before anything else was imported."""

import os
import runpy
import sys

import cudaway

notes = cudaway.activate()
assert notes == (), notes
sys.argv = sys.argv[1:]
# Where Python has it for a script that it is given.
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
