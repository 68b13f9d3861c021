// SPDX-License-Identifier: Apache-2.0
// A .tar.gz of a few texts, made in memory: nothing is written anywhere that would have to be removed again.
#pragma once
#include <chrono>
#include <string>
#include <string_view>

namespace longhaul::cli {

class Archive {
 public:
  // `folder` stands before each name; all entries get the time `now`, mode 0600 and the owner root.
  Archive(std::string folder, std::chrono::system_clock::time_point now);
  // A name of at most 60 characters.
  void add(std::string_view name, std::string_view text);
  // The whole, compressed. Throws std::runtime_error without memory.
  std::string finish();

 private:
  std::string folder_;
  std::chrono::system_clock::time_point now_;
  std::string tar_;
};

}  // namespace longhaul::cli
