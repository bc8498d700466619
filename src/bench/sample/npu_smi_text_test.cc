#include "bench/sample/npu_smi_text.h"

#include <gtest/gtest.h>

#include "bench/sample/text_scan.h"

namespace fulgur::bench {
namespace {

std::vector<DeviceRow> Table(const std::string& name) {
  const std::string text = FileText("src/bench/sample/testdata/npu_smi_" + name + ".txt");
  EXPECT_FALSE(text.empty());
  return ParseNpuSmiTable(text);
}

TEST(NpuSmiTable, TwoDiesACardWithGluedDigitsAndPowerOnTheFirstDie) {
  const auto rows = Table("a3");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].device.card, 0);
  EXPECT_EQ(rows[0].device.chip, 0);
  EXPECT_EQ(rows[0].device.bus, "0000:9D:00.0");
  EXPECT_EQ(rows[0].device.name, "Ascend910");
  EXPECT_EQ(rows[0].reading.utilisation_percent, 83);
  EXPECT_EQ(rows[0].reading.memory_used_mb, 60342);
  EXPECT_EQ(rows[0].device.memory_total_mb, 65536);
  EXPECT_EQ(rows[0].reading.power_w, 182.0);
  EXPECT_EQ(rows[0].reading.temperature_c, 36);
  EXPECT_EQ(rows[1].device.chip, 1);
  EXPECT_EQ(rows[1].reading.power_w, std::nullopt);
  EXPECT_EQ(rows[1].reading.temperature_c, 35);
  EXPECT_EQ(rows[1].reading.memory_used_mb, 60110);
  EXPECT_EQ(rows[2].device.id, 2);  // "Warning" is a state like others
  EXPECT_EQ(rows[3].device.physical, 3);
}

TEST(NpuSmiTable, OneMemoryPairAndNoPhysicalNumber) {
  const auto rows = Table("910b");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].reading.utilisation_percent, 12);
  EXPECT_EQ(rows[0].reading.memory_used_mb, 4431);
  EXPECT_EQ(rows[0].device.memory_total_mb, 311295);
  EXPECT_EQ(rows[0].device.physical, std::nullopt);
  EXPECT_EQ(rows[1].device.id, 1);
  EXPECT_EQ(rows[1].device.card, 1);
}

TEST(NpuSmiTable, ADieListedTwiceInAContainerCountsOnce) {
  const auto rows = Table("910b4");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].device.card, 2);
  EXPECT_EQ(rows[0].reading.memory_used_mb, 3451);
  EXPECT_EQ(rows[0].reading.power_w, 92.3);
}

TEST(NpuSmiTable, TwoChipsOnOneBusWithoutPower) {
  const auto rows = Table("310p");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].reading.memory_used_mb, 1074);
  EXPECT_EQ(rows[1].reading.utilisation_percent, 33);
  EXPECT_EQ(rows[1].reading.power_w, std::nullopt);
  EXPECT_EQ(rows[1].reading.temperature_c, 44);
}

TEST(NpuSmiTable, FiveColumnsWithoutBus) {
  const auto rows = Table("950");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].device.name, "Ascend950DT");
  EXPECT_EQ(rows[0].device.bus, "");
  EXPECT_EQ(rows[0].reading.utilisation_percent, 42);
  EXPECT_EQ(rows[0].reading.memory_used_mb, 91000);
  EXPECT_EQ(rows[0].device.memory_total_mb, 98304);
  EXPECT_EQ(rows[0].reading.power_w, 398.6);
  EXPECT_EQ(rows[1].device.id, 1);
  EXPECT_EQ(rows[1].reading.utilisation_percent, 97);
}

TEST(NpuSmiTable, ForeignAndBrokenTextGivesNothing) {
  EXPECT_TRUE(ParseNpuSmiTable("").empty());
  EXPECT_TRUE(ParseNpuSmiTable("bash: npu-smi: command not found").empty());
  EXPECT_TRUE(ParseNpuSmiTable("| 0 | OK | 1 |\n| | | |\n| / |\n||\n|").empty());
  const std::string whole = FileText("src/bench/sample/testdata/npu_smi_a3.txt");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_LE(ParseNpuSmiTable(whole.substr(0, size)).size(), 4U);
  }
}

TEST(NpuWatch, ColumnsAreFoundByTheirNames) {
  NpuWatchParser parser;
  EXPECT_FALSE(parser.ParseLine("0  0  1.0  2  3"));  // before any header
  EXPECT_FALSE(
      parser.ParseLine("NpuID(Idx)  ChipId(Idx) Pwr(W)      Temp(C)     AI Core(%)  "
                       "AI Cpu(%)   Ctrl Cpu(%) Memory(%)   Memory BW(%)"));
  const auto row = parser.ParseLine(
      "2           1           90.1        34          17          "
      "0           2           95          14         \r");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->card, 2);
  EXPECT_EQ(row->chip, 1);
  EXPECT_EQ(row->reading.power_w, 90.1);
  EXPECT_EQ(row->reading.temperature_c, 34);
  EXPECT_EQ(row->reading.utilisation_percent, 17);
  EXPECT_EQ(row->memory_percent, 95);
  EXPECT_FALSE(parser.ParseLine("2  1  90.1"));
}

TEST(NpuWatch, NewerToolsHaveNoChipAndMoreColumns) {
  NpuWatchParser parser;
  parser.ParseLine(
      "NpuID(Idx)  Pwr(W)      Temp(C)     AI Core(%)  AI Cpu(%)   Ctrl Cpu(%) "
      "Memory(%)   Memory BW(%)   NPU Util(%)    AI Cube(%)");
  const auto row = parser.ParseLine("5  289.5  50  7  0  3  4  0  NA  0");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->card, 5);
  EXPECT_EQ(row->chip, 0);
  EXPECT_EQ(row->reading.utilisation_percent, 7);
  EXPECT_EQ(row->memory_percent, 4);
}

TEST(NpuWatch, UnknownValuesAreAbsent) {
  NpuWatchParser parser;
  parser.ParseLine("NpuID(Idx)  ChipId(Idx) Pwr(W) Temp(C) AI Core(%)");
  const auto row = parser.ParseLine("0 1 NA 35 -");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->reading.power_w, std::nullopt);
  EXPECT_EQ(row->reading.utilisation_percent, std::nullopt);
  EXPECT_EQ(row->reading.temperature_c, 35);
}

TEST(NvidiaSmi, LineOfValues) {
  const auto row = ParseNvidiaSmiLine("1, GPU-5d3c, 87, 120345, 143771, 612.33, 64, NVIDIA H200\r");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->device.id, 1);
  EXPECT_EQ(row->device.name, "NVIDIA H200");
  EXPECT_EQ(row->device.memory_total_mb, 143771);
  EXPECT_EQ(row->reading.utilisation_percent, 87);
  EXPECT_EQ(row->reading.power_w, 612.33);
  const auto vague = ParseNvidiaSmiLine("0, GPU-1, [N/A], 10, 20, [N/A], 40, T4");
  ASSERT_TRUE(vague);
  EXPECT_EQ(vague->reading.utilisation_percent, std::nullopt);
  EXPECT_EQ(vague->reading.memory_used_mb, 10);
  EXPECT_FALSE(ParseNvidiaSmiLine("No devices were found"));
}

}  // namespace
}  // namespace fulgur::bench
