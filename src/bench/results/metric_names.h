// Names of metrics for people, as aiperf prints them.
#pragma once

#include <string>
#include <string_view>

namespace fulgur::bench {

// "Time to First Token" for "time_to_first_token"; tags that aiperf does not have are split at '_'.
std::string MetricName(std::string_view tag);

// The name with its unit behind it, as in the first column of aiperf's CSV file.
std::string MetricNameWithUnit(std::string_view tag, std::string_view unit);

}  // namespace fulgur::bench
