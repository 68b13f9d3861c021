// SPDX-License-Identifier: Apache-2.0
// Which icon of a manifest is found: the one that Chromium was seen to load.
#include <catch2/catch.hpp>

#include "proxy/modules/http/prefetch/manifest_links.h"

using longhaul::http::ManifestLinks;

namespace {

std::string found_in(std::string_view text) {
  ManifestLinks whole, bytewise;
  whole.feed(text);
  for (const char c : text) bytewise.feed({&c, 1});
  const auto found = whole.take();
  CHECK(bytewise.take() == found);
  CHECK(found.size() <= 1);
  return found.empty() ? "none" : found[0];
}
std::string with_icons(std::string_view icons) {
  const std::string text =
      R"({"name": "n", "start_url": "/", "display": "standalone", "icons": [)" + std::string(icons) + "]}";
  return found_in(text);
}

}  // namespace

TEST_CASE("http manifest links: one of any size, otherwise the smallest square that is large enough") {
  CHECK(
      with_icons(
          R"({"src": "a", "sizes": "512x512"}, {"src": "b", "sizes": "192X192"}, {"src": "c", "sizes": "96x96"})") ==
      "b");
  CHECK(with_icons(R"({"src": "a", "sizes": "192x192"}, {"src": "b", "sizes": "any"})") == "b");
  CHECK(with_icons(R"({"src": "a", "sizes": "48x48 256x256"}, {"src": "b"})") == "a");
  CHECK(
      with_icons(
          R"({"src": "a", "sizes": "144x144", "purpose": "maskable"}, {"src": "b", "sizes": "192x192", "purpose": "maskable any"})") ==
      "b");
  CHECK(
      with_icons(
          R"({"src": "a", "sizes": "144x144", "type": "text/plain"}, {"src": "b", "sizes": "150x150", "type": "image/png"})") ==
      "b");
}

TEST_CASE("http manifest links: nothing where Chromium loads none, and nothing in what is not a manifest") {
  for (const char* icons :
       {"", R"({"src": "a", "sizes": "143x143"})", R"({"src": "a", "sizes": "200x300"})",
        R"({"sizes": "192x192"})", R"({"src": "", "sizes": "any"})", R"({"src": 5, "sizes": "any"})",
        R"({"src": "a", "sizes": 192})", R"({"src": "a", "sizes": "99999999999x99999999999"})",
        R"({"src": "a", "sizes": "-1x-1 0x0 x 192x"})", "7, [], null"})
    CHECK(with_icons(icons) == "none");
  for (const char* text :
       {R"({"start_url": "/", "display": "standalone", "icons": [{"src": "a", "sizes": "any"}]})",
        R"({"name": "n", "start_url": "/", "icons": [{"src": "a", "sizes": "any"}]})",
        R"({"name": "n", "display": "standalone", "icons": [{"src": "a", "sizes": "any"}]})",
        R"({"name": "n", "start_url": "/", "display": "browser", "icons": [{"src": "a", "sizes": "any"}]})",
        R"({"name": "n", "start_url": "/", "display": "standalone", "icons": {"src": "a"}})",
        R"({"name": "n")", "[]", "", "\xff", "<html>"})
    CHECK(found_in(text) == "none");
}

TEST_CASE("http manifest links: a hostile manifest ends soon") {
  CHECK(found_in(std::string(100'000, '[')) == "none");
  const std::string long_reference(3000, 'a');
  CHECK(with_icons(R"({"sizes": "any", "src": ")" + long_reference + "\"}") == "none");
  const std::string space(ManifestLinks::kMostBytes, ' ');
  CHECK(with_icons(R"({"src": "a", "sizes": "any"})" + space) == "none");
  CHECK(
      found_in(
          R"({"name": "n", "start_url": "/", "display": "tabbed", "icons": [{"src": "a", "sizes": "any"}]})" +
          space) == "a");
  ManifestLinks links;
  links.feed(R"({"name": "n")");
  CHECK_FALSE(links.is_over());
  links.feed(space);
  CHECK(links.is_over());
  links.feed("}");
  CHECK(links.take().empty());
}
