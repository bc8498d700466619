// Writes documents as one HTML page that needs nothing else: no script, no font, no picture from
// elsewhere.
#pragma once

#include <string>
#include <vector>

#include "bench/report/document.h"

namespace fulgur::bench {

// With two documents the page has a switch between their languages; the first is shown at first.
std::string HtmlPage(const std::vector<Document>& documents);

std::string EscapeHtml(std::string_view text);

}  // namespace fulgur::bench
