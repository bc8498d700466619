#include "base/machine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fulgur::base {
namespace {

TEST(MachineTest, ValuesAreConsistent) {
  const Machine machine = DetectMachine();
  EXPECT_GE(machine.usable_cores, 1);
  EXPECT_GT(machine.memory_bytes, 0);
  EXPECT_LE(machine.available_bytes, machine.memory_bytes);
  EXPECT_TRUE(machine.isa.avx512 || !machine.isa.avx512_bf16);
}

TEST(MachineTest, DescriptionNamesTheInstructionSets) {
  Machine machine;
  machine.cpu_name = "Test CPU";
  machine.isa.avx2 = true;
  EXPECT_THAT(DescribeMachine(machine), testing::HasSubstr("Test CPU, 1 core,"));
  EXPECT_THAT(DescribeMachine(machine), testing::EndsWith("avx2"));
}

}  // namespace
}  // namespace fulgur::base
