// Draws figures with gnuplot (http://gnuplot.info) as SVG.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "bench/report/figure.h"

namespace fulgur::bench {

// The commands that draw a figure on gnuplot's svg terminal. Labels can hold anything: they are
// quoted such that gnuplot neither formats nor runs them.
std::string GnuplotScript(const Figure& figure);

// An <svg> element, without XML declaration, whose ids start with `id_prefix` so that several can
// stand in one page. Unavailable if gnuplot is not installed; Internal with gnuplot's words if it
// refuses.
absl::StatusOr<std::string> DrawFigure(const Figure& figure, const std::string& id_prefix);

}  // namespace fulgur::bench
