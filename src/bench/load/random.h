// Random numbers that are the same on every platform for one seed: the distributions of the C++
// library are not.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fulgur::bench {

// xoshiro256** (Blackman and Vigna), seeded through SplitMix64. One stream a purpose ("lengths",
// "arrivals" ...), so that a change of one does not move the others. One thread.
class RandomStream {
 public:
  RandomStream(int64_t seed, std::string_view purpose);

  uint64_t Next();

  double Uniform();                // [0, 1)
  uint64_t Below(uint64_t limit);  // [0, limit), limit > 0
  double Exponential();            // mean 1
  double Normal();                 // mean 0, deviation 1
  double Gamma(double shape);      // scale 1, shape > 0

 private:
  std::array<uint64_t, 4> state_;
  double spare_normal_ = 0.0;
  bool has_spare_ = false;
};

}  // namespace fulgur::bench
