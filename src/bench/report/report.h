// Makes the report of a comparison: one list of blocks per language, from the same facts.
#pragma once

#include <string>
#include <vector>

#include "bench/report/document.h"
#include "bench/report/report_input.h"
#include "bench/report/text.h"

namespace fulgur::bench {

// Sections 0 to 14, in the order of headings. Pictures are not drawn yet.
Document MakeReport(const ReportInput& input, Language language);

// Draws the pictures of a document. Those that cannot be drawn stay empty; the sentences say why,
// each once.
std::vector<std::string> DrawPictures(Document& document);

}  // namespace fulgur::bench
