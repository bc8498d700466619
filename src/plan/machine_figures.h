// What a machine can do, as far as the speed of a model depends on it: measured, or read from a
// small file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/linear.h"

namespace fulgur::plan {

// How fast the kernels of one weight format are when nothing has to come from memory. All cores
// together.
struct ProductRate {
  double unpack = 0.0;  // bytes of packed weights per second for one row
  double ops = 0.0;     // multiplications and additions per second for every further row
};

struct MachineFigures {
  std::string name;
  int cores = 1;
  int64_t memory_bytes = 0;     // for the model and its sequences
  double read_rate = 0.0;       // bytes per second from memory, all cores, each from its own node
  double core_read_rate = 0.0;  // of one core alone
  int numa_nodes = 1;
  double link_rate = 0.0;        // bytes per second into one node from the other nodes
  double barrier_seconds = 0.0;  // for all cores to meet
  // By kernels::WeightFormat.
  std::array<ProductRate, 6> products = {};

  const ProductRate& Of(kernels::WeightFormat format) const {
    return products[static_cast<size_t>(format)];
  }
};

// Bytes per second that all cores read when memory is spread evenly over the nodes: a share of
// (nodes - 1) / nodes crosses a link.
double SpreadReadRate(const MachineFigures& machine);

// A YAML (or JSON) map; other keys than these are an error:
//   name            text, for the reader
//   cores           required; worker threads, one per core
//   memory_gb       required; 10^9 bytes
//   read_gbps       required; memory read by all cores together, 10^9 bytes per second
//   core_read_gbps  one core alone (default 12, at most read_gbps)
//   int8_tops, bf16_tflops, fp32_tflops  peaks of all cores; 10^12 multiplications and additions
//                   per second (default: a core with AVX-512 VNNI and BF16 at 3 GHz)
//   barrier_us      default 0.2 + 0.1 per core
//   numa_nodes, numa_link_gbps  default 1; the link is required from 2 nodes on
// The error names the source and the key.
absl::StatusOr<MachineFigures> ParseMachine(const std::string& text, std::string_view source);
absl::StatusOr<MachineFigures> ReadMachineFile(const std::string& path);

// One line, such as "AMD EPYC: 2 cores, 51 GB/s (30 one core), 24 GB memory, barrier 1.2 us".
std::string DescribeFigures(const MachineFigures& machine);

}  // namespace fulgur::plan
