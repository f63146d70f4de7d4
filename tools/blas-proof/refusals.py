"""What is wrong with a call: the status that the manual names, and not one byte written.

A level 1 routine takes lengths below 1 and increments of 0; all others refuse them (manual; the reference BLAS's xerbla).
"""

from call import Prepared
from cases import PADDED, cases
from library import HOST, INVALID_VALUE, NOT_INITIALIZED, NOT_SUPPORTED, OK
from names import TYPES
from routines import ROUTINES

LEVEL_1 = {"axpy", "scal", "copy", "swap", "dot", "dotu", "dotc", "nrm2", "asum", "amax", "amin", "rot", "rotm", "rotg", "rotmg"}
SIZES = ("m", "n", "k", "kl", "ku", "batchCount")
CHOICES = ("trans", "transa", "transb", "uplo", "diag", "side", "mode")
NO_CHOICE = 99


def _wrong_calls(prepared):
    """(what is wrong, position, its value, status)"""
    names = [p["name"] for p in prepared.parameters]
    level_1 = prepared.name.routine in LEVEL_1
    for position, name in enumerate(names):
        if name == "handle":
            yield "no handle", position, None, NOT_INITIALIZED
        elif name in SIZES:
            yield f"{name} is -1", position, -1, OK if level_1 else INVALID_VALUE
        elif name in CHOICES:
            yield f"{name} is {NO_CHOICE}", position, NO_CHOICE, INVALID_VALUE
        elif name in ("alpha", "beta"):
            yield f"{name} is NULL", position, None, INVALID_VALUE
        elif name in prepared.steps and name.startswith("ld"):
            yield f"{name} is too small", position, prepared.steps[name] - PADDED.pad - 1, INVALID_VALUE
        elif name in prepared.steps and name.startswith("inc") and not level_1 and prepared.name.routine != "dgmm":
            yield f"{name} is 0", position, 0, INVALID_VALUE


def prove(library, name, parameters, family):
    types = TYPES.get(name.c.removesuffix("_64"), [{}])[0]
    case = next(case for case in cases(ROUTINES[name.routine], name, parameters) if case.layout is PADDED)
    prepared = Prepared(name, parameters, types, case)
    host, arguments = prepared.arguments(library, HOST)
    library.pointer_mode(HOST)
    for what, position, value, wanted in _wrong_calls(prepared):
        library.send(host)
        status = library.function(name.c)(*arguments[:position], value, *arguments[position + 1 :])
        if status == NOT_SUPPORTED and position == 0:
            return
        family.calls += 1
        if status != wanted:
            family.wrong.append(f"{name.c}: {what}: status {status}, not {wanted}")
            continue
        after = library.receive(host.size)
        writes = {} if wanted != OK else {key for key in prepared.routine.writes if key == "result"}
        if not writes and after.tobytes() != host.tobytes():
            family.wrong.append(f"{name.c}: {what}: something was written")
