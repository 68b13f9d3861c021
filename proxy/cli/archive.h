// SPDX-License-Identifier: Apache-2.0
// A .tar.gz of a few texts, built in memory, without temporary files.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace longhaul::cli {

class Archive {
 public:
  // `folder` is put in front of each name; all entries get the time `now`, mode 0600 and the owner root.
  Archive(std::string folder, std::chrono::system_clock::time_point now);
  // `name` has at most 60 characters.
  void add(std::string_view name, std::string_view text);
  // Returns the compressed archive. Throws std::runtime_error if memory runs out.
  std::string finish();

 private:
  std::string folder_;
  std::chrono::system_clock::time_point now_;
  std::string tar_;
};

}  // namespace longhaul::cli
