// SPDX-License-Identifier: Apache-2.0
// The files with a site's certificate and key: what is wrong with one that the configuration names, and what
// to do about it. Their content is proxy/identity's.
#pragma once
#include <filesystem>
#include <string>

namespace longhaul::config {

// The end of a sentence that begins with the file's path; empty: it can be read.
std::string problem_of_file(const std::filesystem::path& path, const std::string& site);

}  // namespace longhaul::config
