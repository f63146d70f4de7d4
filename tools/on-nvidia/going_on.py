"""A proof of tools/*-proof whose assertions and failures tell what is wrong and go on: NVIDIA's library may differ in the first thing that
is tried.

going_on.py PROOF ARGUMENTS…

A line is `differs PLACE < WHO CALLED IT … | what`, at most four of each place; where the call before was refused, ` (after it)` ends it,
since what that was to compute is not there.
"""

import ast
import collections
import importlib.abc
import importlib.util
import os
import sys
import traceback

TELL = "tell_and_go_on"
MOST = 4

proof = os.path.abspath(sys.argv[1])
sys.argv = sys.argv[1:]
folders = [os.path.dirname(proof), os.path.join(os.path.dirname(os.path.dirname(proof)), "proof")]
told = collections.Counter()
refused = False


def tell(what):
    frames = [frame for frame in traceback.extract_stack() if os.path.dirname(frame.filename) in folders]
    place = " < ".join(f"{os.path.basename(frame.filename)}:{frame.lineno}" for frame in reversed(frames[-4:]))
    told[place, refused] += 1
    if told[place, refused] <= MOST:
        print(f"differs {place} | {str(what)[:500]}{' (after it)' if refused else ''}", flush=True)


class Assertions(ast.NodeTransformer):
    """`assert test, what` becomes `if not test: tell_and_go_on(what)`, and `raise Failure(what)` becomes `tell_and_go_on(what)`."""

    def visit_Assert(self, node):
        what = node.msg or ast.Constant(ast.unparse(node.test)[:200])
        call = ast.Expr(ast.Call(ast.Name(TELL, ast.Load()), [what], []))
        return ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), node.test), [call], []), node)

    def visit_FunctionDef(self, node):
        # After an error of the runtime's nothing is as it should be.
        return node if node.name == "runtime" else self.generic_visit(node)

    def visit_Raise(self, node):
        if not (isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name) and node.exc.func.id == "Failure"):
            return node
        return ast.copy_location(ast.Expr(ast.Call(ast.Name(TELL, ast.Load()), node.exc.args, [])), node)


def compiled(path):
    with open(path) as file:
        tree = Assertions().visit(ast.parse(file.read(), path))
    return compile(ast.fix_missing_locations(tree), path, "exec")


class Loader(importlib.abc.Loader):
    def __init__(self, path):
        self.path = path

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        setattr(module, TELL, tell)
        exec(compiled(self.path), vars(module))


class Finder(importlib.abc.MetaPathFinder):
    """The modules of the proof's folder and of tools/proof."""

    def find_spec(self, name, path, target=None):
        for folder in folders:
            file = os.path.join(folder, name + ".py")
            if os.path.exists(file):
                return importlib.util.spec_from_file_location(name, file, loader=Loader(file))
        return None


sys.meta_path.insert(0, Finder())
import device  # noqa: E402


def call(self, name, *arguments):
    global refused
    status, refused = self.status(name, *arguments), False
    if status != 0:
        tell(f"{name}: {status}")
        refused = True


device.Library.__call__ = call
exec(compiled(proof), {"__name__": "__main__", "__file__": proof, TELL: tell})
