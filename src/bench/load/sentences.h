// Plain sentences and lines of code, made up from parts: text that reads naturally, that no model
// knows by heart and that nobody else holds rights in.
#pragma once

#include <string>

#include "bench/load/random.h"

namespace fulgur::bench {

// One sentence of English prose with a space in front.
std::string ProseSentence(RandomStream& random);

// One line of a program with its line end.
std::string CodeLine(RandomStream& random);

}  // namespace fulgur::bench
