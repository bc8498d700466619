// Utilisation summaries as JSON, in comparisons and reference files.
#pragma once

#include "bench/results/json_fields.h"
#include "bench/results/utilisation.h"
#include "nlohmann/json_fwd.hpp"

namespace fulgur::bench {

nlohmann::ordered_json UtilisationToJson(const UtilisationSummary& summary);
UtilisationSummary UtilisationFromJson(const JsonObject& object);

}  // namespace fulgur::bench
