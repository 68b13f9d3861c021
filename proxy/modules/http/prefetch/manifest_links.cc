// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/http/prefetch/manifest_links.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <optional>
#include <system_error>

#include "proxy/modules/http/prefetch/reference.h"
#include "proxy/modules/http/prefetch/words.h"

namespace longhaul::http {
namespace {

namespace json = boost::json;

constexpr unsigned kLeastPixels = 144;

std::string_view text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

// Whether Chromium would offer to install it; otherwise it loads no icon.
bool is_installable(const json::object& manifest) {
  static constexpr std::array<std::string_view, 5> kDisplays{"standalone", "minimal-ui", "fullscreen",
                                                             "window-controls-overlay", "tabbed"};
  const bool has_name = !text_of(manifest, "name").empty() || !text_of(manifest, "short_name").empty();
  return has_name && !text_of(manifest, "start_url").empty() &&
         std::ranges::find(kDisplays, text_of(manifest, "display")) != kDisplays.end();
}

// "192x192": its side. No value for anything else.
std::optional<unsigned> side_of_square(std::string_view size) {
  const std::size_t middle = size.find_first_of("xX");
  const std::string_view width = size.substr(0, middle);
  if (middle == size.npos || size.substr(middle + 1) != width) return std::nullopt;
  unsigned side = 0;
  const auto [end, error] = std::from_chars(width.data(), width.data() + width.size(), side);
  if (error != std::errc() || end != width.data() + width.size()) return std::nullopt;
  return side;
}

std::string_view icon_of(const json::object& manifest) {
  const json::value* listed = manifest.if_contains("icons");
  const json::array* icons = listed ? listed->if_array() : nullptr;
  if (!icons || !is_installable(manifest)) return {};
  std::string_view best;
  unsigned best_side = 0;
  for (const json::value& each : *icons) {
    const json::object* icon = each.if_object();
    if (!icon) continue;
    const std::string_view source = text_of(*icon, "src"), type = text_of(*icon, "type"),
                           purpose = text_of(*icon, "purpose");
    const bool is_usual = words_of(purpose).empty() || has_word(purpose, "any");
    if (source.empty() || !is_usual || !(type.empty() || type.starts_with("image/"))) continue;
    for (const std::string_view size : words_of(text_of(*icon, "sizes"))) {
      if (size == "any") return source;
      const auto side = side_of_square(size);
      if (!side || *side < kLeastPixels || (best_side != 0 && *side >= best_side)) continue;
      best_side = *side;
      best = source;
    }
  }
  return best;
}

}  // namespace

ManifestLinks::ManifestLinks() : parser_(std::make_unique<json::stream_parser>()) {}
ManifestLinks::~ManifestLinks() = default;
ManifestLinks::ManifestLinks(ManifestLinks&&) noexcept = default;
ManifestLinks& ManifestLinks::operator=(ManifestLinks&&) noexcept = default;

void ManifestLinks::feed(std::string_view text) {
  if (!parser_) return;
  text = text.substr(0, kMostBytes - read_);
  read_ += text.size();
  boost::system::error_code error;
  parser_->write_some(text.data(), text.size(), error);
  if (!error && !parser_->done() && read_ < kMostBytes) return;
  const auto parser = std::exchange(parser_, nullptr);
  if (error || !parser->done()) return;
  const json::value manifest = parser->release();
  if (const json::object* object = manifest.if_object())
    if (const std::string_view icon = icon_of(*object); !icon.empty() && icon.size() <= kMostTargetBytes)
      found_.emplace_back(icon);
}

}  // namespace longhaul::http
