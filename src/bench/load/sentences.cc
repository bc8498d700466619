#include "bench/load/sentences.h"

#include <array>
#include <span>
#include <string_view>

#include "fmt/format.h"

namespace fulgur::bench {
namespace {

constexpr std::array<std::string_view, 24> kSubjects = {
    "the harbour master",    "a careful engineer",  "the night train",     "her older brother",
    "the village school",    "an empty workshop",   "the second report",   "a retired teacher",
    "the small observatory", "every third visitor", "the copper kettle",   "a patient gardener",
    "the northern railway",  "our first customer",  "the weather station", "an honest merchant",
    "the city archive",      "a young violinist",   "the old bridge",      "the repair crew",
    "a passing cyclist",     "the river committee", "the quiet librarian", "a borrowed map"};
constexpr std::array<std::string_view, 20> kVerbs = {
    "described",  "measured", "had forgotten",    "carried",    "repaired", "would not accept",
    "explained",  "counted",  "reached",          "compared",   "kept",     "had painted",
    "questioned", "followed", "could hardly see", "discovered", "returned", "prepared",
    "ignored",    "studied"};
constexpr std::array<std::string_view, 24> kObjects = {
    "the broken clock",       "a list of stations",    "the price of timber",
    "seven wooden crates",    "the last paragraph",    "an unusual proposal",
    "the height of the tide", "a letter from abroad",  "the garden wall",
    "two different answers",  "the winter timetable",  "a bundle of drawings",
    "the lower valley",       "an exact copy",         "the cost of the journey",
    "a narrow staircase",     "the missing page",      "the colour of the glass",
    "a basket of apples",     "the depth of the well", "the names of the members",
    "a row of lamps",         "the second experiment", "some fresh bread"};
constexpr std::array<std::string_view, 16> kEndings = {"before the rain began",
                                                       "although nobody had asked",
                                                       "in less than an hour",
                                                       "because the road was closed",
                                                       "with great patience",
                                                       "on the following Monday",
                                                       "while the others were waiting",
                                                       "for the third time that year",
                                                       "without a single word",
                                                       "as the contract required",
                                                       "near the southern gate",
                                                       "when the market opened",
                                                       "since the figures did not agree",
                                                       "under a grey sky",
                                                       "to everyone's surprise",
                                                       "and wrote it down at once"};
constexpr std::array<std::string_view, 20> kNames = {
    "count",  "index",  "result", "buffer", "offset", "total",  "entry",
    "queue",  "limit",  "cursor", "record", "handle", "length", "weight",
    "parent", "window", "sample", "values", "state",  "node"};
constexpr std::array<std::string_view, 12> kCalls = {"load",   "update",    "find_next", "merge",
                                                     "append", "validate",  "split",     "resize",
                                                     "lookup", "normalize", "flush",     "compare"};
constexpr std::array<std::string_view, 8> kCodeForms = {
    "    {0} = {3}({1}, {2})\n",
    "    if {0} > {1}:\n        return {3}({2})\n",
    "    for {0} in range({4}):\n        {1} += {2}[{0}]\n",
    "def {3}_{0}({1}, {2}):\n    \"\"\"Returns the {0} of the {1}.\"\"\"\n",
    "    {0}.{3}({1} + {4})\n",
    "    while {0} < {4} and not {1}.{3}():\n        {0} += 1\n",
    "    return {{\"{0}\": {1}, \"{2}\": {4}}}\n",
    "    assert {0} is not None, \"no {1} at {{}}\".format({2})\n"};

std::string_view Pick(std::span<const std::string_view> list, RandomStream& random) {
  return list[random.Below(list.size())];
}

}  // namespace

std::string ProseSentence(RandomStream& random) {
  std::string subject(Pick(kSubjects, random));
  subject[0] = static_cast<char>(subject[0] - 'a' + 'A');
  return fmt::format(" {} {} {} {}.", subject, Pick(kVerbs, random), Pick(kObjects, random),
                     Pick(kEndings, random));
}

std::string CodeLine(RandomStream& random) {
  const std::string_view form = Pick(kCodeForms, random);
  return fmt::format(fmt::runtime(form), Pick(kNames, random), Pick(kNames, random),
                     Pick(kNames, random), Pick(kCalls, random), random.Below(512));
}

}  // namespace fulgur::bench
