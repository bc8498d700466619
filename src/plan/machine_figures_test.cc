#include "plan/machine_figures.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>

namespace fulgur::plan {
namespace {

using ::testing::HasSubstr;

TEST(MachineFigures, ReadsWhatIsGivenAndFillsInTheRest) {
  const auto machine = ParseMachine(
      "name: two sockets\ncores: 96\nmemory_gb: 768\nread_gbps: 600\nnuma_nodes: 2\n"
      "numa_link_gbps: 100\n",
      "test");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->name, "two sockets");
  EXPECT_EQ(machine->cores, 96);
  EXPECT_EQ(machine->memory_bytes, 768'000'000'000);
  EXPECT_DOUBLE_EQ(machine->core_read_rate, 12e9);
  EXPECT_GT(machine->barrier_seconds, 1e-6);
  // A core's int8 peak is 768 G; FP4 kernels come near it, FP8 ones near half of it.
  EXPECT_NEAR(machine->Of(kernels::WeightFormat::kFp4).ops / 96, 700e9, 100e9);
  EXPECT_NEAR(machine->Of(kernels::WeightFormat::kFp8Block).ops / 96, 350e9, 50e9);
}

TEST(MachineFigures, ReadsJsonAndPeaks) {
  const auto machine = ParseMachine(
      R"({"cores": 1, "memory_gb": 16, "read_gbps": 20, "int8_tops": 4, "bf16_tflops": 1})",
      "test");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->name, "test");
  EXPECT_EQ(machine->barrier_seconds, 0.0);  // nobody to meet
  EXPECT_NEAR(machine->Of(kernels::WeightFormat::kBf16).ops, 0.9e12, 0.1e12);
}

TEST(MachineFigures, SpreadsMemoryOverNodes) {
  MachineFigures machine;
  machine.read_rate = 600e9;
  EXPECT_DOUBLE_EQ(SpreadReadRate(machine), 600e9);
  machine.numa_nodes = 2;
  machine.link_rate = 100e9;  // takes half of what a node reads: 200 GB/s for each of the two
  EXPECT_DOUBLE_EQ(SpreadReadRate(machine), 400e9);
  machine.link_rate = 1e12;
  EXPECT_DOUBLE_EQ(SpreadReadRate(machine), 600e9);
}

TEST(MachineFigures, SaysWhatIsWrong) {
  const std::string good = "cores: 4\nmemory_gb: 64\nread_gbps: 50\n";
  ASSERT_TRUE(ParseMachine(good, "m.yaml").ok());
  const std::pair<std::string, std::string> mistakes[] = {
      {"cores: 4\nmemory_gb: 64\n", "m.yaml: read_gbps is missing; it must be a number above 0"},
      {"cores: 1.5\nmemory_gb: 64\nread_gbps: 5\n", "cores must be a whole number, not 1.5"},
      {"cores: -2\nmemory_gb: 64\nread_gbps: 5\n", "cores must be a number above 0, not '-2'"},
      {"cores: [1]\nmemory_gb: 64\nread_gbps: 5\n", "not 'a list or map'"},
      {"cores: .inf\nmemory_gb: 64\nread_gbps: 5\n", "cores must be a number above 0"},
      {good + "bandwidth: 3\n", "unknown key 'bandwidth'; there are barrier_us, bf16_tflops"},
      {good + "core_read_gbps: 60\n", "core_read_gbps 60 is above read_gbps 50"},
      {good + "numa_nodes: 2\n", "numa_link_gbps is missing"},
      {"48", "a machine is a map"},
      {"", "a machine is a map"},
      {"a: [", "is not YAML"},
  };
  for (const auto& [text, sentence] : mistakes) {
    const auto machine = ParseMachine(text, "m.yaml");
    ASSERT_FALSE(machine.ok()) << text;
    EXPECT_THAT(std::string(machine.status().message()), HasSubstr(sentence)) << text;
  }
  EXPECT_THAT(std::string(ReadMachineFile("/nowhere.yaml").status().message()),
              HasSubstr("cannot read the machine file /nowhere.yaml"));
}

TEST(MachineFigures, MachinesOfTheDocsAreWellFormed) {
  for (const char* name : {"100gbps", "300gbps", "600gbps", "2x300gbps"}) {
    const auto machine = ReadMachineFile(std::string("docs/machines/") + name + ".yaml");
    ASSERT_TRUE(machine.ok()) << machine.status();
    EXPECT_THAT(DescribeFigures(*machine), HasSubstr("cores, reads"));
  }
}

}  // namespace
}  // namespace fulgur::plan
