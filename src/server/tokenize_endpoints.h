// POST /tokenize and /detokenize, GET /tokenizer_info.
//
// Network thread only.
#pragma once

#include "server/core.h"
#include "server/router.h"

namespace fulgur::server {

void Tokenize(Core& core, Call call);
void Detokenize(Core& core, Call call);
void ShowTokenizer(Core& core, const Call& call);

}  // namespace fulgur::server
