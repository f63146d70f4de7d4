"""Runs a script of examples/clients in a process that took our libraries by cudaway.activate(), before anything else was imported."""

import runpy
import sys

import cudaway

notes = cudaway.activate()
assert notes == (), notes
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
