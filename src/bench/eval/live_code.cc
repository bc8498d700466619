#include "bench/eval/live_code.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace fulgur::bench {
namespace {

using Json = nlohmann::json;

// Runs SOLUTION on every test. PACKED holds further tests as the data set packs them: base64 of
// zlib of a pickled JSON text; it is unpacked inside the sandbox only.
constexpr const char* kRunner = R"PY(
import base64, io, json, pickle, sys, zlib

PRELUDE = """
import bisect, collections, functools, heapq, itertools, math, random, re, string, sys
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import *
from typing import *
"""
if PACKED:
    TESTS += json.loads(pickle.loads(zlib.decompress(base64.b64decode(PACKED))))
PROGRAM = compile(PRELUDE + SOLUTION, "solution", "exec")


def printed(text):
    output = io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    sys.stdout = io.TextIOWrapper(output, write_through=True)
    try:
        exec(PROGRAM, {"__name__": "__main__"})
    except SystemExit:
        pass
    return output.getvalue().decode()


def returned(text):
    scope = {"__name__": "solution"}
    exec(PROGRAM, scope)
    target = getattr(scope["Solution"](), METHOD) if "Solution" in scope else scope[METHOD]
    result = target(*(json.loads(line) for line in text.split("\n") if line.strip()))
    return list(result) if isinstance(result, tuple) else result


def equal(got, wanted):
    got = [line.split() for line in got.strip().split("\n")]
    wanted = [line.split() for line in wanted.strip().split("\n")]
    if got == wanted:
        return True
    try:
        return [[float(word) for word in line] for line in got] == [
            [float(word) for word in line] for line in wanted]
    except ValueError:
        return False


for test in TESTS:
    if METHOD:
        assert returned(test["input"]) == json.loads(test["output"])
    else:
        assert equal(printed(test["input"]), test["output"])
)PY";

std::string TextAt(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

// A field that is a list, or the text of one.
Json ListAt(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end()) return Json::array();
  const Json value =
      found->is_string() ? Json::parse(found->get<std::string>(), nullptr, false) : *found;
  return value.is_array() ? value : Json::array();
}

bool IsTest(const Json& test) {
  return test.is_object() && test.contains("input") && test["input"].is_string() &&
         test.contains("output") && test["output"].is_string();
}

std::string MethodOf(const Json& row) {
  const auto found = row.find("metadata");
  if (found == row.end()) return "";
  const Json metadata =
      found->is_string() ? Json::parse(found->get<std::string>(), nullptr, false) : *found;
  return metadata.is_object() ? TextAt(metadata, "func_name") : "";
}

// JSON text without escapes beyond ASCII is a literal of Python too.
std::string Literal(const Json& value) { return value.dump(); }

}  // namespace

std::optional<EvalItem> LiveCodeRow(const Json& row) {
  EvalItem item{.id = TextAt(row, "question_id"),
                .subset = TextAt(row, "difficulty"),
                .question = TextAt(row, "question_content"),
                .entry_point = MethodOf(row)};
  const std::string starter = TextAt(row, "starter_code");
  Json tests = Json::array();
  const Json hidden = ListAt(row, "private_test_cases");
  for (const Json& list : {ListAt(row, "public_test_cases"), hidden}) {
    for (const Json& test : list) {
      if (IsTest(test)) tests.push_back(test);
    }
  }
  const std::string packed = hidden.empty() ? TextAt(row, "private_test_cases") : "";
  const bool list = packed.find_first_of("[{") != std::string::npos;  // an empty list, no base64
  if (item.question.empty() || (tests.empty() && (packed.empty() || list))) return std::nullopt;
  if (!starter.empty()) {
    absl::StrAppend(&item.question, "\n\nComplete this code:\n```python\n", starter, "\n```");
  } else {
    item.question += "\n\nRead from standard input and write to standard output.";
  }
  absl::StrAppend(&item.code_runner, "METHOD = ", Literal(item.entry_point),
                  "\nPACKED = ", Literal(list ? "" : packed), "\nTESTS = ", Literal(tests), "\n",
                  kRunner);
  return item;
}

}  // namespace fulgur::bench
