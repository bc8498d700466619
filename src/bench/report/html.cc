#include "bench/report/html.h"

#include "absl/strings/str_cat.h"
#include "bench/report/report_texts.h"

namespace fulgur::bench {
namespace {

constexpr char kStyle[] = R"css(
:root { --ink: #1d2330; --soft: #5b6475; --line: #d8dde6; --head: #4472c4; --label: #eef2f9;
  --good: #c6efce; --bad: #ffc7ce; --warning: #fff2cc; }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: #fff; line-height: 1.55;
  font: 16px/1.55 "Noto Sans", "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC",
  "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 1rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 1rem 0 .5rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 2px solid var(--head); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, li { overflow-wrap: anywhere; }
nav ol { columns: 2; column-gap: 2rem; margin: .5rem 0 1rem; padding-left: 1.6rem;
  font-size: .92rem; }
a { color: #1f5fae; }
.note { background: var(--label); border-left: 4px solid var(--head); padding: .5rem .8rem; }
.note.warning { background: var(--warning); border-color: #d9a400; }
.note.bad { background: var(--bad); border-color: #b3202c; }
.note.good { background: var(--good); border-color: #2c7a3f; }
.scroll { overflow-x: auto; margin: .8rem 0 1.2rem; }
table { border-collapse: collapse; font-size: .88rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { border: 1px solid var(--line); padding: .3rem .55rem; vertical-align: top; }
th { background: var(--head); color: #fff; text-align: left; font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.label { background: var(--label); max-width: 26rem; overflow-wrap: break-word; }
table.numbers td.label { white-space: nowrap; }
table.numbers th.number { min-width: 4rem; white-space: normal; }
td.good { background: var(--good); } td.bad { background: var(--bad); }
td.warning { background: var(--warning); }
figure { margin: 1rem 0 1.6rem; }
figure svg { display: block; width: 100%; min-width: 760px; height: auto; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .3rem; overflow-wrap: anywhere; }
pre { background: #f5f6f8; border: 1px solid var(--line); padding: .6rem .8rem; overflow-x: auto;
  font-size: .82rem; line-height: 1.4; }
.switch { position: absolute; opacity: 0; pointer-events: none; }
.tabs { max-width: 1080px; margin: 0 auto; padding: .8rem 1.25rem 0; text-align: right; }
.tabs label { display: inline-block; padding: .2rem .8rem; border: 1px solid var(--head);
  cursor: pointer; color: var(--head); }
#show-en:checked ~ .tabs label[for=show-en], #show-zh:checked ~ .tabs label[for=show-zh] {
  background: var(--head); color: #fff; }
#show-en:focus-visible ~ .tabs label[for=show-en],
#show-zh:focus-visible ~ .tabs label[for=show-zh] { outline: 3px solid #e69f00; }
#show-en:checked ~ main article[lang=zh-CN], #show-zh:checked ~ main article[lang=en] {
  display: none; }
@media (max-width: 640px) { body { font-size: 15px; } nav ol { columns: 1; }
  main, .tabs { padding-left: .8rem; padding-right: .8rem; } }
@media print { .tabs, nav { display: none; } .scroll { overflow: visible; }
  figure svg { min-width: 0; } h2, h3 { break-after: avoid; } figure, tr { break-inside: avoid; }
  table { font-size: .7rem; } }
)css";

const char* Shorthand(Language language) { return language == Language::kEnglish ? "en" : "zh"; }

const char* HtmlLanguage(Language language) {
  return language == Language::kEnglish ? "en" : "zh-CN";
}

const char* ToneName(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "good";
    case Tone::kBad:
      return "bad";
    case Tone::kWarning:
      return "warning";
    case Tone::kPlain:
      break;
  }
  return "";
}

class HtmlWriter {
 public:
  explicit HtmlWriter(const Document& document)
      : say_(document.language), prefix_(Shorthand(document.language)) {}

  void operator()(const Heading& heading) {
    absl::StrAppend(&html_, "<h", heading.level, " id=\"", prefix_, "-", heading.anchor, "\">",
                    EscapeHtml(heading.text), "</h", heading.level, ">\n");
  }

  void operator()(const Paragraph& paragraph) {
    const std::string tone = ToneName(paragraph.tone);
    const std::string start = tone.empty() ? "<p>" : absl::StrCat("<p class=\"note ", tone, "\">");
    absl::StrAppend(&html_, start, EscapeHtml(paragraph.text), "</p>\n");
  }

  void operator()(const BulletList& list) {
    html_ += "<ul>\n";
    for (const std::string& item : list.items) {
      absl::StrAppend(&html_, "<li>", EscapeHtml(item), "</li>\n");
    }
    html_ += "</ul>\n";
  }

  void operator()(const CodeBlock& code) {
    absl::StrAppend(&html_, "<pre><code>", EscapeHtml(code.text), "</code></pre>\n");
  }

  void operator()(const Table& table) {
    const bool numbers = table.text_columns < table.header.size();
    absl::StrAppend(&html_, "<div class=\"scroll\" tabindex=\"0\"><table",
                    numbers ? " class=\"numbers\">" : ">");
    if (!table.caption.empty()) {
      absl::StrAppend(&html_, "<caption>", EscapeHtml(table.caption), "</caption>");
    }
    html_ += "\n<thead><tr>";
    for (size_t i = 0; i < table.header.size(); ++i) {
      absl::StrAppend(&html_, i < table.text_columns ? "<th>" : "<th class=\"number\">",
                      EscapeHtml(table.header[i]), "</th>");
    }
    html_ += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) Row(row, table.text_columns);
    html_ += "</tbody></table></div>\n";
  }

  void operator()(const Picture& picture) {
    if (picture.svg.empty()) return;
    const Figure& figure = picture.figure;
    absl::StrAppend(&html_, "<figure id=\"", prefix_, "-", figure.id, "\"><div class=\"scroll\">",
                    picture.svg, "</div><figcaption><b>", figure.id, "</b> ",
                    EscapeHtml(say_(report::kFigureLine,
                                    {{"title", figure.title}, {"caption", figure.caption}})),
                    "</figcaption></figure>\n");
  }

  const std::string& html() const { return html_; }

 private:
  void Row(const std::vector<TableCell>& row, size_t text_columns) {
    html_ += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      std::string classes = i < text_columns ? "label" : "number";
      if (const std::string tone = ToneName(row[i].tone); !tone.empty()) {
        classes = i < text_columns ? tone : absl::StrCat(classes, " ", tone);
      }
      absl::StrAppend(&html_, "<td class=\"", classes, "\">", EscapeHtml(row[i].text), "</td>");
    }
    html_ += "</tr>\n";
  }

  Voice say_;
  std::string prefix_;
  std::string html_;
};

std::string Contents(const Document& document) {
  const std::string prefix = Shorthand(document.language);
  std::string html = "<nav><ol start=\"0\">\n";
  for (const Block& block : document.blocks) {
    const Heading* heading = std::get_if<Heading>(&block);
    if (heading == nullptr || heading->level != 2) continue;
    absl::StrAppend(&html, "<li><a href=\"#", prefix, "-", heading->anchor, "\">",
                    EscapeHtml(heading->text), "</a></li>\n");
  }
  return absl::StrCat(html, "</ol></nav>\n");
}

std::string Article(const Document& document) {
  HtmlWriter writer(document);
  for (const Block& block : document.blocks) std::visit(writer, block);
  return absl::StrCat("<article lang=\"", HtmlLanguage(document.language), "\">\n<h1>",
                      EscapeHtml(document.title), "</h1>\n", Contents(document), writer.html(),
                      "</article>\n");
}

// Radio buttons choose the language without a script.
std::string Switch(const std::vector<Document>& documents) {
  std::string buttons, labels;
  for (const Document& document : documents) {
    const std::string id = absl::StrCat("show-", Shorthand(document.language));
    const bool first = &document == &documents.front();
    absl::StrAppend(&buttons, "<input class=\"switch\" type=\"radio\" name=\"language\" id=\"", id,
                    first ? "\" checked>\n" : "\">\n");
    const bool english = document.language == Language::kEnglish;
    absl::StrAppend(&labels, "<label for=\"", id, "\">", english ? "English" : "中文", "</label>");
  }
  return absl::StrCat(buttons, "<div class=\"tabs\">", labels, "</div>\n");
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        // Control characters may not stand in HTML.
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

std::string HtmlPage(const std::vector<Document>& documents) {
  const Document& first = documents.front();
  std::string html = absl::StrCat("<!DOCTYPE html>\n<html lang=\"", HtmlLanguage(first.language),
                                  "\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                                  "content=\"width=device-width, "
                                  "initial-scale=1\">\n<title>",
                                  EscapeHtml(first.title), "</title>\n<style>", kStyle,
                                  "</style>\n</head>\n<body>\n");
  if (documents.size() > 1) html += Switch(documents);
  html += "<main>\n";
  for (const Document& document : documents) html += Article(document);
  return html + "</main>\n</body>\n</html>\n";
}

}  // namespace fulgur::bench
