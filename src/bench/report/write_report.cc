#include "bench/report/write_report.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "bench/report/gnuplot.h"
#include "bench/report/html.h"
#include "bench/report/markdown.h"
#include "bench/report/report.h"
#include "bench/report/workbook.h"

namespace fulgur::bench {
namespace {

namespace fs = std::filesystem;

class ReportWriter {
 public:
  ReportWriter(const ReportInput& input, const ReportFiles& files) : input_(input), files_(files) {}

  WrittenReport Write() {
    if (!files_.workbook.empty()) WriteBook();
    if (files_.markdown.empty() && files_.html.empty()) return std::move(written_);
    std::vector<Document> documents;
    for (Language language : files_.languages) {
      documents.push_back(MakeReport(input_, language));
      for (std::string& problem : DrawPictures(documents.back())) Tell(std::move(problem));
    }
    if (!files_.html.empty()) WriteFile(files_.html, HtmlPage(documents));
    if (!files_.markdown.empty()) {
      for (const Document& document : documents) {
        WriteMarkdown(document, &document == &documents.front());
      }
    }
    return std::move(written_);
  }

 private:
  void Tell(std::string problem) {
    auto& problems = written_.problems;
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
      problems.push_back(std::move(problem));
    }
  }

  void WriteBook() {
    if (const absl::Status made = MakeFolderOf(files_.workbook); !made.ok()) {
      Tell(std::string(made.message()));
      return;
    }
    const absl::Status status = WriteWorkbook(input_.comparison, files_.languages, files_.workbook,
                                              {files_.extra_sheets, &input_.slices});
    if (status.ok()) {
      written_.files.push_back(files_.workbook);
    } else {
      Tell(std::string(status.message()));
    }
  }

  static absl::Status MakeFolderOf(const fs::path& file) {
    std::error_code error;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
    if (!error) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the folder of ", file.string(), " could not be made: ", error.message()));
  }

  bool WriteFile(const fs::path& file, const std::string& text) {
    if (const absl::Status made = MakeFolderOf(file); !made.ok()) {
      Tell(std::string(made.message()));
      return false;
    }
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream << text;
    stream.close();
    if (!stream) {
      Tell(absl::StrCat("the file ", file.string(), " could not be written"));
      return false;
    }
    written_.files.push_back(file);
    return true;
  }

  // report.md in the first language, report.zh.md in another.
  fs::path MarkdownPath(Language language, bool first) const {
    if (first) return files_.markdown;
    fs::path path = files_.markdown;
    const char* suffix = language == Language::kEnglish ? ".en" : ".zh";
    path.replace_filename(absl::StrCat(files_.markdown.stem().string(), suffix,
                                       files_.markdown.extension().string()));
    return path;
  }

  // Pictures and their numbers lie in a folder beside the text.
  void WriteMarkdown(const Document& document, bool first) {
    const fs::path path = MarkdownPath(document.language, first);
    const std::string folder = absl::StrCat(path.stem().string(), "_files");
    if (!WriteFile(path, MarkdownText(document, folder))) return;
    for (const Block& block : document.blocks) {
      const Picture* picture = std::get_if<Picture>(&block);
      if (picture == nullptr || picture->svg.empty()) continue;
      const fs::path figure = path.parent_path() / folder / picture->figure.id;
      WriteFile(fs::path(figure).concat(".svg"), picture->svg);
      WriteFile(fs::path(figure).concat(".csv"), FigureCsv(picture->figure));
    }
  }

  const ReportInput& input_;
  const ReportFiles& files_;
  WrittenReport written_;
};

}  // namespace

WrittenReport WriteReport(const ReportInput& input, const ReportFiles& files) {
  return ReportWriter(input, files).Write();
}

}  // namespace fulgur::bench
