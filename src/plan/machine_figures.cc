#include "plan/machine_figures.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "base/status_macros.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "yaml-cpp/yaml.h"

namespace fulgur::plan {
namespace {

using kernels::WeightFormat;

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;
constexpr double kMicro = 1e-6;

// One core: two 64-byte multiply instructions per cycle at 3 GHz; 128 operations each for int8,
// half of that for bf16, a quarter for fp32.
constexpr double kCoreInt8Tops = 2 * 128 * 3e9 / kTera;
constexpr double kCoreReadGbps = 12.0;

// What the kernels reach of a peak with many rows, and bytes of weights that they unpack for one
// row per operation of the peak; as measured with the AVX-512 kernels on the Zen 4 machine of
// docs/en/performance.md.
struct Share {
  WeightFormat format;
  double ops;
  double unpack;
};
constexpr Share kInt8Shares[] = {{WeightFormat::kInt8, 0.90, 0.14},
                                 {WeightFormat::kInt4, 0.85, 0.055},
                                 {WeightFormat::kFp4, 0.83, 0.050}};
constexpr Share kBf16Shares[] = {{WeightFormat::kBf16, 0.90, 0.28},
                                 {WeightFormat::kFp8Block, 0.88, 0.105}};
constexpr Share kFp32Shares[] = {{WeightFormat::kF32, 0.70, 0.50}};

void SetRates(MachineFigures& machine, double peak, std::span<const Share> shares) {
  for (const Share& share : shares) {
    machine.products[static_cast<size_t>(share.format)] = {share.unpack * peak, share.ops * peak};
  }
}

// The numbers of a map, each asked for once.
class Numbers {
 public:
  Numbers(const YAML::Node& map, std::string_view source) : map_(map), source_(source) {}

  // Above 0; no value means that the key may not be missing.
  absl::StatusOr<double> Get(const std::string& key, std::optional<double> missing = std::nullopt) {
    known_.insert(key);
    const YAML::Node node = map_[key];
    if (!node) {
      if (missing) return *missing;
      return Error(fmt::format("{} is missing; it must be a number above 0", key));
    }
    double value = 0.0;
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) ||
        value <= 0.0) {
      return Error(fmt::format("{} must be a number above 0, not '{}'", key,
                               node.IsScalar() ? node.Scalar() : "a list or map"));
    }
    return value;
  }

  absl::StatusOr<int> GetWhole(const std::string& key, std::optional<double> missing) {
    constexpr double kMost = 1 << 16;
    ASSIGN_OR_RETURN(const double value, Get(key, missing));
    if (value == std::floor(value) && value <= kMost) return static_cast<int>(value);
    return Error(fmt::format("{} must be a whole number, not {}", key, value));
  }

  // That the map has no keys but those asked for, and `text`.
  absl::Status CheckKeys(const std::string& text) {
    known_.insert(text);
    for (const auto& entry : map_) {
      if (!entry.first.IsScalar() || known_.contains(entry.first.Scalar())) continue;
      return Error(fmt::format("unknown key '{}'; there are {}", entry.first.Scalar(),
                               fmt::join(known_, ", ")));
    }
    return absl::OkStatus();
  }

  absl::Status Error(const std::string& sentence) const {
    return absl::InvalidArgumentError(fmt::format("{}: {}", source_, sentence));
  }

 private:
  const YAML::Node map_;
  const std::string_view source_;
  std::set<std::string> known_;
};

absl::Status ReadRates(Numbers& numbers, MachineFigures& machine) {
  ASSIGN_OR_RETURN(const double memory, numbers.Get("memory_gb"));
  ASSIGN_OR_RETURN(const double read, numbers.Get("read_gbps"));
  ASSIGN_OR_RETURN(const double core_read,
                   numbers.Get("core_read_gbps", std::min(kCoreReadGbps, read)));
  ASSIGN_OR_RETURN(const double barrier, numbers.Get("barrier_us", 0.2 + 0.1 * machine.cores));
  machine.memory_bytes = static_cast<int64_t>(memory * kGiga);
  machine.read_rate = read * kGiga;
  machine.core_read_rate = core_read * kGiga;
  machine.barrier_seconds = machine.cores > 1 ? barrier * kMicro : 0.0;
  if (core_read <= read) return absl::OkStatus();
  return numbers.Error(fmt::format("core_read_gbps {} is above read_gbps {}", core_read, read));
}

absl::Status ReadPeaks(Numbers& numbers, MachineFigures& machine) {
  ASSIGN_OR_RETURN(const double int8, numbers.Get("int8_tops", kCoreInt8Tops * machine.cores));
  ASSIGN_OR_RETURN(const double bf16, numbers.Get("bf16_tflops", int8 / 2));
  ASSIGN_OR_RETURN(const double fp32, numbers.Get("fp32_tflops", int8 / 4));
  SetRates(machine, int8 * kTera, kInt8Shares);
  SetRates(machine, bf16 * kTera, kBf16Shares);
  SetRates(machine, fp32 * kTera, kFp32Shares);
  return absl::OkStatus();
}

absl::Status ReadNodes(Numbers& numbers, MachineFigures& machine) {
  ASSIGN_OR_RETURN(machine.numa_nodes, numbers.GetWhole("numa_nodes", 1));
  const bool several = machine.numa_nodes > 1;
  ASSIGN_OR_RETURN(
      const double link,
      numbers.Get("numa_link_gbps", several ? std::nullopt : std::optional<double>(1)));
  machine.link_rate = link * kGiga;
  return absl::OkStatus();
}

}  // namespace

double SpreadReadRate(const MachineFigures& machine) {
  if (machine.numa_nodes < 2) return machine.read_rate;
  const double nodes = machine.numa_nodes;
  return std::min(machine.read_rate, machine.link_rate * nodes * nodes / (nodes - 1));
}

absl::StatusOr<MachineFigures> ParseMachine(const std::string& text, std::string_view source) {
  YAML::Node map;
  try {
    map = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(fmt::format("{} is not YAML: {}", source, error.what()));
  }
  Numbers numbers(map, source);
  if (!map.IsMap()) return numbers.Error("a machine is a map such as {cores: 48, memory_gb: 768}");
  MachineFigures machine;
  machine.name = map["name"] && map["name"].IsScalar() ? map["name"].Scalar() : std::string(source);
  ASSIGN_OR_RETURN(machine.cores, numbers.GetWhole("cores", std::nullopt));
  RETURN_IF_ERROR(ReadRates(numbers, machine));
  RETURN_IF_ERROR(ReadPeaks(numbers, machine));
  RETURN_IF_ERROR(ReadNodes(numbers, machine));
  RETURN_IF_ERROR(numbers.CheckKeys("name"));
  return machine;
}

absl::StatusOr<MachineFigures> ReadMachineFile(const std::string& path) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) return absl::NotFoundError(fmt::format("cannot read the machine file {}", path));
  return ParseMachine(text, path);
}

std::string DescribeFigures(const MachineFigures& machine) {
  std::string text = fmt::format(
      "{}: {} {}, reads {:.0f} GB/s ({:.0f} by one core), {:.0f} GB memory", machine.name,
      machine.cores, machine.cores == 1 ? "core" : "cores", machine.read_rate / kGiga,
      machine.core_read_rate / kGiga, static_cast<double>(machine.memory_bytes) / kGiga);
  if (machine.numa_nodes > 1) {
    text += fmt::format(", {} NUMA nodes ({:.0f} GB/s with memory spread over them)",
                        machine.numa_nodes, SpreadReadRate(machine) / kGiga);
  }
  return text + fmt::format("; FP4 kernels {:.2f}, FP8 {:.2f} Tops/s",
                            machine.Of(WeightFormat::kFp4).ops / kTera,
                            machine.Of(WeightFormat::kFp8Block).ops / kTera);
}

}  // namespace fulgur::plan
