// A report as a list of blocks in one language, before it is Markdown or HTML.
//
// Texts are plain: whatever a result file said, the writers escape it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "bench/report/figure.h"
#include "bench/report/text.h"

namespace fulgur::bench {

enum class Tone { kPlain, kGood, kBad, kWarning };

struct Heading {
  int level = 2;
  std::string anchor;  // letters and hyphens
  std::string text;
};

struct Paragraph {
  std::string text;
  Tone tone = Tone::kPlain;
};

struct BulletList {
  std::vector<std::string> items;
};

struct CodeBlock {
  std::string text;
};

struct TableCell {
  std::string text;
  Tone tone = Tone::kPlain;
};

struct Table {
  std::string caption;
  std::vector<std::string> header;
  std::vector<std::vector<TableCell>> rows;  // each as long as the header
  size_t text_columns = 1;                   // from the left; numbers, set to the right, follow
};

struct Picture {
  Figure figure;
  std::string svg;  // empty until drawn; a picture that could not be drawn is left out
};

using Block = std::variant<Heading, Paragraph, BulletList, CodeBlock, Table, Picture>;

struct Document {
  Language language = Language::kEnglish;
  std::string title;
  std::vector<Block> blocks;

  template <typename T>
  void Add(T block) {
    blocks.emplace_back(std::move(block));
  }
};

}  // namespace fulgur::bench
