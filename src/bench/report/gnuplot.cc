#include "bench/report/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace fulgur::bench {
namespace {

constexpr char kFonts[] =
    "'Noto Sans', 'Noto Sans CJK SC', 'Noto Sans SC', 'PingFang SC', 'Microsoft YaHei', "
    "'WenQuanYi Micro Hei', 'WenQuanYi Zen Hei', 'DejaVu Sans', sans-serif";

// A folder of its own that goes with its owner.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "fulgur-figure-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string ReadAll(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

absl::Status RunGnuplot(const std::filesystem::path& folder) {
  const std::string script = folder / "script";
  const std::string output = folder / "svg";
  const std::string complaints = folder / "complaints";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, script.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, complaints.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::string name = "gnuplot";
  std::string no_user_settings = "-d";
  char* const arguments[] = {name.data(), no_user_settings.data(), nullptr};
  pid_t pid = 0;
  const int refused = posix_spawnp(&pid, name.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) {
    return absl::UnavailableError(
        "gnuplot is not there, so no figure can be drawn; install the package gnuplot-nox");
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("gnuplot failed: ", ReadAll(complaints)));
}

// Makes gnuplot's file an element of a page: no XML declaration, ids of its own, fonts that hold
// Chinese, a name for screen readers.
std::string Embeddable(std::string svg, const Figure& figure, const std::string& id_prefix) {
  const size_t start = svg.find("<svg");
  if (start == std::string::npos) return "";
  svg.erase(0, start);
  const std::string title = absl::StrReplaceAll(absl::StrCat(figure.id, ": ", figure.title),
                                                {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
  const auto Id = [&](const char* name) { return absl::StrCat(id_prefix, name); };
  return absl::StrReplaceAll(
      svg, {{"<title>Gnuplot</title>", absl::StrCat("<title>", title, "</title>")},
            {"<svg ", absl::StrCat("<svg role=\"img\" font-family=\"", kFonts, "\" ")},
            {" font-family=\"FULGUR_FONT\" ", " "},
            {"gpPt", Id("mark")},
            {"gpDot", Id("dot")},
            {"'textbox'", absl::StrCat("'", Id("textbox"), "'")},
            {"'greybox'", absl::StrCat("'", Id("greybox"), "'")},
            {"gnuplot_canvas", Id("canvas")},
            {"gnuplot_plot_", Id("plot")}});
}

}  // namespace

absl::StatusOr<std::string> DrawFigure(const Figure& figure, const std::string& id_prefix) {
  const ScratchFolder folder;
  if (folder.path().empty()) {
    return absl::UnavailableError(
        "no figure can be drawn: the folder for temporary files cannot "
        "be written");
  }
  std::ofstream(folder.path() / "script", std::ios::binary) << GnuplotScript(figure);
  RETURN_IF_ERROR(RunGnuplot(folder.path()));
  std::string svg = Embeddable(ReadAll(folder.path() / "svg"), figure, id_prefix);
  if (svg.empty()) return absl::InternalError(absl::StrCat("gnuplot drew nothing for ", figure.id));
  return svg;
}

}  // namespace fulgur::bench
