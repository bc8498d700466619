#!/usr/bin/env python3
"""Checks that every test named in docs/en/lessons.md exists, and that the Chinese page names the same ones."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CXX_TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP)\(\s*(\w+),\s*(\w+)", re.MULTILINE)


def cxx_tests():
    return {f"{suite}.{test}" for path in ROOT.glob("src/**/*_test.cc")
            for suite, test in CXX_TEST.findall(path.read_text())}


def exists(name, known):
    if "::" not in name:
        return name in known
    file, test = name.split("::")
    path = ROOT / file
    return path.is_file() and re.search(rf"^\s*def {test}\(", path.read_text(), re.MULTILINE) is not None


def rows(language):
    """Per row of the tables: the links and the tests."""
    for line in (ROOT / "docs" / language / "lessons.md").read_text().splitlines():
        cells = line.split(" | ")
        if len(cells) == 3 and "](" in cells[1]:
            yield re.findall(r"\((https://[^)]*)\)", cells[1]), re.findall(r"`([^`]+)`", cells[2])


def main():
    known = cxx_tests()
    english = list(rows("en"))
    mistakes = [f"there is no test {name}" for _, names in english for name in names if not exists(name, known)]
    mistakes += [f"no test for {links[0]}" for links, names in english if not names]
    if english != list(rows("zh")):
        mistakes.append("docs/zh/lessons.md names other reports or tests than docs/en/lessons.md")
    print("\n".join(mistakes) if mistakes else f"lessons: {len(english)} kinds of failure, every test exists")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
