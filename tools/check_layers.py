#!/usr/bin/env python3
"""Checks that a source file includes only its own folder and lower layers. The order is that of CMakeLists.txt."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def layer_order():
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"set\(FULGUR_LAYERS ([^)]*)\)", text).group(1).split()


def violations(order):
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        folder = path.relative_to(ROOT / "src").parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'#include "([a-z_]+)/', line)
            if not match:
                continue
            target = match.group(1)
            if target not in order or folder not in order:
                continue
            if order.index(target) > order.index(folder):
                yield f"{path.relative_to(ROOT)}:{number}: {folder} must not include {target}"


def main():
    found = list(violations(layer_order()))
    print("\n".join(found) if found else "layers: every include points downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
