// Any text as a plan of trials: a plan whose variants all differ from the base, or one sentence
// that names the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "bench/trial/trial_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto plan = fulgur::bench::ParseTrialPlan(text, "plan.json");
  if (!plan.ok()) {
    CHECK(plan.status().message().find("plan.json") != absl::string_view::npos);
    return 0;
  }
  CHECK(!plan->variants.empty() && plan->Rounds() >= 1);
  for (const auto& variant : plan->variants) {
    const auto settings = plan->SettingsOf(&variant);
    CHECK(settings.size() == plan->base.size());
    CHECK(settings != plan->base);
  }
  return 0;
}
