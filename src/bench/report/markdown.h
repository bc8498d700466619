// Writes a document as Markdown (GitHub's, with tables).
#pragma once

#include <string>

#include "bench/report/document.h"

namespace fulgur::bench {

// Pictures are linked as `figure_folder`/F1.svg; without a folder they are left out.
std::string MarkdownText(const Document& document, const std::string& figure_folder);

}  // namespace fulgur::bench
