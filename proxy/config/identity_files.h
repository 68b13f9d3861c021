// SPDX-License-Identifier: Apache-2.0
// Checks that the configured files with a site's certificate and key can be read, and suggests a remedy if
// not. proxy/identity reads their content.
#pragma once
#include <filesystem>
#include <string>

namespace longhaul::config {

// The end of a sentence that begins with the file's path; empty if the file can be read.
std::string problem_of_file(const std::filesystem::path& path, const std::string& site);

}  // namespace longhaul::config
