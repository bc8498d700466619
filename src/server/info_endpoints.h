// Endpoints that answer at once: models, health, version, load, metrics.
//
// Network thread only.
#pragma once

#include "server/core.h"
#include "server/router.h"

namespace fulgur::server {

void ListModels(Core& core, const Call& call);   // GET /v1/models
void ShowModel(Core& core, const Call& call);    // GET /v1/models/NAME
void ShowHealth(Core& core, const Call& call);   // /health, /ping: 200, or 503 if it cannot serve
void ShowVersion(Core& core, const Call& call);  // GET /version
void ShowLoad(Core& core, int64_t in_flight, const Call& call);  // GET /load
void ShowMetrics(Core& core, const Call& call);                  // GET /metrics

}  // namespace fulgur::server
