// Small question sets that this program makes itself: to try an evaluation where no published data
// is at hand, and to see at once whether a server answers sensibly.
#pragma once

#include "bench/eval/eval_item.h"

namespace fulgur::bench {

// 40 multiple-choice questions about numbers, letters and words, the right letters spread evenly.
void MakeChoiceItems(EvalData& data);

// 60 sums of small numbers, told in a sentence.
void MakeSumItems(EvalData& data);

}  // namespace fulgur::bench
