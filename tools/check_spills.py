#!/usr/bin/env python3
"""Checks the compiled AVX2 and AVX-512 kernels.

1. The inner loops of the tile kernels keep their accumulators in registers: no move between a ymm
   or zmm register and the stack inside a loop.
2. No weak function is emitted by a file with instruction-set flags: the linker could pick that
   copy for code that runs on other machines.

usage: check_spills.py BUILD_FOLDER
"""
import pathlib
import re
import subprocess
import sys

HOT = re.compile(r"Tile|AttendHeads|ScoreKeys")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t[^\t]*\t(.*)$")
JUMP = re.compile(r"^j[a-z]+\s+([0-9a-f]+)")
SPILL = re.compile(r"[yz]mm.*\(%rsp|[yz]mm.*\(%rbp|\(%rsp.*[yz]mm|\(%rbp.*[yz]mm")


def functions(obj):
    """Yields (name, [(address, text)]) of the hot functions of an object file."""
    text = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", obj], check=True, capture_output=True,
                          text=True).stdout
    for part in re.split(r"\n(?=[0-9a-f]+ <)", text):
        head, _, body = part.partition("\n")
        name = head.partition("<")[2].rstrip(">:")
        if HOT.search(name):
            lines = [re.match(r"^\s*([0-9a-f]+):\t(.*)$", line) for line in body.splitlines()]
            yield name, [(int(m[1], 16), m[2]) for m in lines if m]


def spills_in_loops(code):
    """Stack moves inside the innermost loops: between a backward jump and its target."""
    loops = []
    for address, text in code:
        jump = JUMP.match(text)
        if jump and int(jump[1], 16) <= address:
            loops.append((int(jump[1], 16), address))
    innermost = [l for l in loops if not any(o != l and l[0] <= o[0] and o[1] <= l[1] for o in loops)]
    return sum(1 for address, text in code if SPILL.search(text)
               and any(first <= address <= last for first, last in innermost))


def weak_functions(obj):
    text = subprocess.run(["nm", "-C", obj], check=True, capture_output=True, text=True).stdout
    return [line.split(" W ", 1)[1] for line in text.splitlines() if " W " in line]


def main():
    objects = sorted(pathlib.Path(sys.argv[1]).glob("src/kernels/**/avx*/*.o"))
    if not objects:
        sys.exit("no compiled vector kernels below " + sys.argv[1])
    bad = 0
    checked = 0
    for obj in objects:
        for name in weak_functions(obj):
            bad += 1
            print(f"{obj.name}: weak function {name}")
        for name, code in functions(obj):
            checked += 1
            if count := spills_in_loops(code):
                bad += 1
                print(f"{obj.name}: {count} stack moves in the inner loop of {name}")
    print(f"{checked} kernels in {len(objects)} files checked, {bad} findings")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
