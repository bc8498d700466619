// Turns a plan into the files that an operator copies to the nodes.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/plan.h"

namespace fulgur::deploy {

// Text by relative path. Scripts end in .sh.
using RenderedFiles = std::map<std::filesystem::path, std::string>;

RenderedFiles Render(const DeployPlan& plan);

// Writes them below `folder`, scripts executable. ALREADY_EXISTS if the folder holds anything.
absl::Status WriteFiles(const RenderedFiles& files, const std::filesystem::path& folder);

// `text` with every @NAME@ replaced; all names in it must be given.
std::string FillTemplate(std::string_view text, const std::map<std::string, std::string>& values);

}  // namespace fulgur::deploy
