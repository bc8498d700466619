// How exactly the model computes.
#pragma once

namespace fulgur::model {

enum class Precision {
  kNative,     // bf16 between modules, int8 activations before integer weights, bf16 cache rows
  kReference,  // fp32 everywhere, nothing rounded; needs weights that were loaded as fp32
};

}  // namespace fulgur::model
