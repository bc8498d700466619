// Names of tensors in checkpoints.
#pragma once

#include <string>
#include <string_view>

namespace fulgur::model {

// The official name of a tensor that some tools publish as "model.layers.0.self_attn...": drops the
// prefix "model." and replaces the parts self_attn (attn), mlp (ffn), weight_scale_inv (scale) and
// e_score_correction_bias (bias). Official names stay as they are.
std::string CanonicalName(std::string_view name);

// The sibling of a linear's weight: SiblingName("a.wq_a.weight", "scale") is "a.wq_a.scale".
std::string SiblingName(std::string_view weight, std::string_view part);

}  // namespace fulgur::model
