#include "probes.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <ctime>

namespace fulgur::bench_kernels {
namespace {

constexpr int kAccumulators = 24;
constexpr int kRounds = 4000;

volatile int sink;

template <typename Step>
double OpsPerSecond(double ops_per_step, Step step) {
  __m512i acc[kAccumulators];
#pragma GCC unroll 24
  for (int i = 0; i < kAccumulators; ++i) acc[i] = _mm512_setzero_si512();
  const double start = Now();
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kAccumulators; ++i) {
      acc[i] = step(acc[i]);
      asm volatile("" : "+v"(acc[i]));
    }
  }
  const double seconds = Now() - start;
  __m512i sum = acc[0];
#pragma GCC unroll 24
  for (int i = 1; i < kAccumulators; ++i) sum = _mm512_xor_si512(sum, acc[i]);
  sink = _mm512_cvtsi512_si32(sum);
  return ops_per_step * kAccumulators * kRounds / seconds;
}

}  // namespace

double Now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

HugeMemory::HugeMemory(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) std::abort();
  madvise(data, size, MADV_HUGEPAGE);
  memset(data, 1, size);
  data_ = {static_cast<std::byte*>(data), size};
}

HugeMemory::~HugeMemory() { munmap(data_.data(), data_.size()); }

double ReadSeconds(const std::byte* data, int64_t bytes) {
  const double start = Now();
  __m512i sum[8];
  for (auto& s : sum) s = _mm512_setzero_si512();
  int64_t i = 0;
  for (; i + 512 <= bytes; i += 512) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      sum[j] = _mm512_xor_si512(sum[j], _mm512_loadu_si512(data + i + 64 * j));
    }
  }
  for (int j = 1; j < 8; ++j) sum[0] = _mm512_xor_si512(sum[0], sum[j]);
  sink = _mm512_cvtsi512_si32(sum[0]);
  return Now() - start;
}

double Int8PeakOps() {
  const __m512i a = _mm512_set1_epi8(3);
  return OpsPerSecond(128, [a](__m512i acc) { return _mm512_dpbusd_epi32(acc, a, a); });
}

double Bf16PeakOps() {
  const auto a = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  return OpsPerSecond(64, [a](__m512i acc) {
    return _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(acc), a, a));
  });
}

}  // namespace fulgur::bench_kernels
