// SPDX-License-Identifier: Apache-2.0
// A page, a style sheet, a script or a manifest that says anything, in pieces: what is found does not depend
// on the pieces, has an end, and what it is resolved to is the target of a request that can be sent.
#include <string_view>

#include "fuzz/target.h"
#include "proxy/modules/http/head.h"
#include "proxy/modules/http/prefetch/gunzip.h"
#include "proxy/modules/http/prefetch/links.h"
#include "proxy/modules/http/prefetch/manifest_links.h"
#include "proxy/modules/http/prefetch/reference.h"

namespace longhaul::fuzz::http_links_target {
namespace {

template <class Links>
void read(std::string_view text, std::size_t cut) {
  Links whole, pieces;
  whole.feed(text);
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(cut, rest.size()))) pieces.feed(rest.substr(0, cut));
  const auto found = whole.take();
  require(found == pieces.take());
  require(found.size() <= http::kMostLinks);
  const http::Origin origin{.scheme = "http://", .authority = "x"};
  for (const std::string& each : found) {
    const auto target = http::resolve(origin, "/page/of?a=b", each);
    if (!target) continue;
    require(target->size() <= http::kMostTargetBytes && target->starts_with('/') && !target->starts_with("//"));
    const std::string head = "GET " + *target + " HTTP/1.1\r\n\r\n";
    const auto request = http::read_request(std::as_bytes(std::span(head)));
    require(request && request->target == *target);
    // A target means itself.
    require(http::resolve(origin, "/", *target) == target);
  }
}

}  // namespace

FUZZ_TARGET(http_links) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = 1 + data[0] / 2;
  read<http::PageLinks>(text, cut);
  read<http::StyleLinks>(text, cut);
  read<http::ModuleLinks>(text, cut);
  read<http::ManifestLinks>(text, cut);
  constexpr std::size_t kMost = 1 << 16;
  require(http::Gunzip(kMost).take(std::as_bytes(std::span(text))).size() <= kMost);
  return 0;
}

}  // namespace longhaul::fuzz::http_links_target
