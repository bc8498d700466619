// Compares short mathematical answers without a computer algebra system: text forms are brought to
// one spelling, then compared as text, as numbers and as simple fractions.
#pragma once

#include <string>
#include <string_view>

namespace fulgur::bench {

// One spelling for what is written in many ways: spaces, \left and \right, \dfrac, \text{...},
// degree signs, percent signs, dollar signs, a leading "x =", trailing dots, thousands commas.
std::string NormalizeMath(std::string_view text);

bool SameMath(std::string_view a, std::string_view b);

}  // namespace fulgur::bench
