// SPDX-License-Identifier: Apache-2.0
// Finds the icon that Chromium loads with the manifest of a web application (W3C, Web Application Manifest).
// It loads one on each visit of a page from a secure origin, if the page could be installed. The
// choice follows what Chromium 156 was seen to do: an icon with `sizes` "any", otherwise the smallest square
// of at least 144 pixels.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace boost::json {
class stream_parser;
}

namespace longhaul::http {

class ManifestLinks {
 public:
  // Larger manifests are not used.
  static constexpr std::size_t kMostBytes = 16 * 1024;

  ManifestLinks();
  ~ManifestLinks();
  ManifestLinks(ManifestLinks&&) noexcept;
  ManifestLinks& operator=(ManifestLinks&&) noexcept;

  void feed(std::string_view text);
  // At most one reference, as written.
  std::vector<std::string> take() { return std::exchange(found_, {}); }
  // Nothing more will be found.
  bool is_over() const { return !parser_; }

 private:
  std::unique_ptr<boost::json::stream_parser> parser_;
  std::size_t read_ = 0;
  std::vector<std::string> found_;
};

}  // namespace longhaul::http
