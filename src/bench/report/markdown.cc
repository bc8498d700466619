#include "bench/report/markdown.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bench/report/report_texts.h"

namespace fulgur::bench {
namespace {

// Plain text as Markdown: what would be markup is not, and it stays on its line.
std::string Escape(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      escaped += ' ';
    } else if (std::string_view("\\`*_[]|#~").find(c) != std::string_view::npos) {
      escaped += {'\\', c};
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '&') {
      escaped += "&amp;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

class MarkdownWriter {
 public:
  MarkdownWriter(Language language, std::string figure_folder)
      : say_(language), figure_folder_(std::move(figure_folder)) {}

  void operator()(const Heading& heading) {
    Line(absl::StrCat(std::string(static_cast<size_t>(heading.level), '#'), " ",
                      Escape(heading.text)));
  }

  void operator()(const Paragraph& paragraph) {
    const bool marked = paragraph.tone == Tone::kWarning || paragraph.tone == Tone::kBad;
    Line(absl::StrCat(marked ? "> " : "", Escape(paragraph.text)));
  }

  void operator()(const BulletList& list) {
    for (const std::string& item : list.items) {
      absl::StrAppend(&text_, "- ", Escape(item), "\n");
    }
    text_ += "\n";
  }

  void operator()(const CodeBlock& code) {
    // A longer fence than any inside.
    std::string fence = "```";
    while (code.text.find(fence) != std::string::npos) fence += "`";
    absl::StrAppend(&text_, fence, "\n", code.text, "\n", fence, "\n\n");
  }

  void operator()(const Table& table) {
    if (!table.caption.empty()) Line(absl::StrCat("**", Escape(table.caption), "**"));
    text_ += "|";
    for (const std::string& name : table.header) absl::StrAppend(&text_, " ", Escape(name), " |");
    text_ += "\n|";
    for (size_t i = 0; i < table.header.size(); ++i) {
      text_ += i < table.text_columns ? " --- |" : " ---: |";
    }
    text_ += "\n";
    for (const auto& row : table.rows) {
      text_ += "|";
      for (const TableCell& cell : row) {
        const bool bold = cell.tone == Tone::kBad && !cell.text.empty();
        absl::StrAppend(&text_, bold ? " **" : " ", Escape(cell.text), bold ? "** |" : " |");
      }
      text_ += "\n";
    }
    text_ += "\n";
  }

  void operator()(const Picture& picture) {
    if (picture.svg.empty() || figure_folder_.empty()) return;
    Line(absl::StrCat("![", Escape(picture.figure.title), "](",
                      absl::StrReplaceAll(figure_folder_, {{" ", "%20"}, {")", "%29"}}), "/",
                      picture.figure.id, ".svg)"));
    Line(absl::StrCat("**", picture.figure.id, "** ",
                      Escape(say_(report::kFigureLine, {{"title", picture.figure.title},
                                                        {"caption", picture.figure.caption}}))));
  }

  void Line(const std::string& line) { absl::StrAppend(&text_, line, "\n\n"); }
  std::string& text() { return text_; }

 private:
  Voice say_;
  std::string figure_folder_;
  std::string text_;
};

}  // namespace

std::string MarkdownText(const Document& document, const std::string& figure_folder) {
  MarkdownWriter writer(document.language, figure_folder);
  writer.Line(absl::StrCat("# ", Escape(document.title)));
  for (const Block& block : document.blocks) std::visit(writer, block);
  while (writer.text().ends_with("\n\n")) writer.text().pop_back();
  return writer.text();
}

}  // namespace fulgur::bench
