// Memory, CPU time and descriptors of this process, read from /proc.
#pragma once

#include "server/prometheus.h"

namespace fulgur::server {

void WriteProcessMetrics(Exposition* out);

}  // namespace fulgur::server
