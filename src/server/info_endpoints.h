// Endpoints that answer at once: models, health, version, load, metrics.
//
// Network thread only.
#pragma once

#include "server/core.h"
#include "server/router.h"

namespace fulgur::server {

void ListModels(Core& core, Call call);                          // GET /v1/models
void ShowModel(Core& core, const std::string& name, Call call);  // GET /v1/models/NAME
void ShowHealth(Core& core, Call call);   // /health, /ping: 200, or 503 if it cannot serve
void ShowVersion(Core& core, Call call);  // GET /version
void ShowLoad(Core& core, int64_t in_flight, Call call);  // GET /load
void ShowMetrics(Core& core, Call call);                  // GET /metrics

}  // namespace fulgur::server
