"""cuBLAS against NumPy, through the C ABI: every routine, type, option, layout, batch, pointer mode and integer width.

usage: proof.py SIGNATURES LIBCUBLAS LIBCUBLASLT LIBCUDART [--only WORD] [--found FILE] [--seed NUMBER]

With a seed, not all is tried: the cases of each routine's 32-bit name in its first types, and the first case of all others stay, and of the
rest every fourth is drawn.
"""

import argparse
import json
from collections import Counter, defaultdict

import numpy as np

import first
import grouped
import handles
import in_order
import lapack
import lt
import refusals
from call import Prepared, Wrong
from cases import cases
from family import Family
from library import DEVICE, HOST, NOT_SUPPORTED, Library
from names import TYPES, parse
from routines import ROUTINES
from without import reason


# Of the cases that may be left out, one of so many is tried.
DRAWN_OF = 4


def prove(library, name, parameters, family, rng):
    for place, types in enumerate(TYPES.get(name.c.removesuffix("_64"), [{}])):
        may_be_left = rng is not None and (place > 0 or name.c.endswith("_64"))
        for number, case in enumerate(cases(ROUTINES[name.routine], name, parameters)):
            if may_be_left and number > 0 and rng.integers(DRAWN_OF) > 0:
                continue
            prepared = Prepared(name, parameters, types, case)
            if not _prove_case(library, prepared, family):
                break


def _prove_case(library, prepared, family):
    """False once the library does not have the routine in these types."""
    name, expected, seen = prepared.name, None, None
    for mode in (HOST, DEVICE):
        if mode == DEVICE and not prepared.has_scalars:
            continue
        status, after = prepared.call(library, mode)
        if status == NOT_SUPPORTED:
            family.refused.setdefault(name.c, []).append(describe(prepared.types))
            return False
        family.calls += 1
        try:
            if status != 0:
                raise Wrong(f"status {status}")
            if seen is None:
                prepared.verify(after, prepared.expected())
                seen = after
            elif seen.tobytes() != after.tobytes():
                prepared.verify(after, prepared.expected())
        except Wrong as wrong:
            family.wrong.append(f"{name.c} {describe(prepared.types)}({prepared.case}) mode={mode}: {wrong}")
    return True


def describe(types):
    return " ".join(f"{key}={getattr(value, 'name', value)}" for key, value in types.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for argument in ("signatures", "cublas", "cublaslt", "cudart"):
        parser.add_argument(argument)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--found", help="a file for the names that were called and gave what they have to, by the part that shows it, as JSON")
    parser.add_argument("--seed", type=int, help="draws what is tried; without it all is")
    arguments = parser.parse_args()
    rng = None if arguments.seed is None else np.random.default_rng(arguments.seed)
    with open(arguments.signatures) as file:
        signatures = json.load(file)
    library = Library(arguments.cublas, arguments.cublaslt, arguments.cudart, signatures)
    families, unknown, without = defaultdict(Family), [], Counter()
    handles.prove(library, families, arguments.only)
    lapack.prove(library, families, arguments.only)
    grouped.prove(library, families, arguments.only)
    lt.prove(library, families, arguments.only)
    first.prove(library, families, signatures, arguments.only)
    shown = {c for family in families.values() for c in family.names}
    ordered = in_order.InOrder(library)
    for c, signature in sorted(signatures.items()):
        if arguments.only not in c or c in shown or not library.has(c):
            continue
        if why := reason(c):
            without[why] += 1
            continue
        name = parse(c)
        if name is None:
            # Some are shown together, whatever is asked for.
            unknown += [] if arguments.only else [c]
            continue
        family = families[name.family]
        family.names.add(c)
        prove(library, name, signature["params"], family, rng)
        ordered.prove(name, signature["params"], family)
        refusals.prove(library, name, signature["params"], family)
    for why, count in without.items():
        print(f"not in the table of routines: {count} names ({why})")
    report(families, unknown, arguments.found)


def report(families, unknown, found):
    for c in unknown:
        print(f"FAILED {c}: there is no reference for it")
    for title, family in sorted(families.items()):
        if not family.names:
            continue
        verdict = "FAILED" if family.wrong else "ok"
        print(f"{verdict} {title}: {len(family.names)} names, {family.calls} calls, {len(family.wrong)} wrong")
        by_name = Counter()
        for line in family.wrong:
            by_name[line.split()[0]] += 1
            if by_name[line.split()[0]] <= 2:
                print(f"    {line}")
        if family.declined:
            print(f"    not supported: {len(family.declined)} of them, such as {family.declined[0]}")
        for c, types in sorted(family.refused.items()):
            print(f"    not supported: {c}" + (f" in {len(types)} combinations of types, such as {types[0]}" if any(types) else ""))
    if found:
        shown = {title: sorted(family.names - family.refused.keys()) for title, family in sorted(families.items()) if not family.wrong}
        with open(found, "w") as file:
            json.dump({title: names for title, names in shown.items() if names}, file)
    if unknown or any(family.wrong for family in families.values()):
        raise SystemExit(1)
    print("PASSED")


if __name__ == "__main__":
    main()
