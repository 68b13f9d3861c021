// SPDX-License-Identifier: Apache-2.0
// Tests the reason table: complete, usable as labels, and the same in docs/troubleshooting.md.
#include "proxy/flows/reason.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

using namespace longhaul::flows;

namespace {

// No default: a new enumerator that nobody adds here is a compiler's error, and the test then asks for its
// row.
bool named(Reason reason) {
  switch (reason) {
    case Reason::optimised:
    case Reason::transport_off:
    case Reason::no_peer_for_network:
    case Reason::link_never_up:
    case Reason::link_down:
    case Reason::link_silent:
    case Reason::peer_refused:
    case Reason::client_not_in_networks:
    case Reason::destination_refused:
    case Reason::flow_limit:
    case Reason::source_limit:
    case Reason::memory_limit:
    case Reason::source_fallback:
    case Reason::module_not_at_peer:
    case Reason::smb_signed:
    case Reason::smb_encrypted:
    case Reason::smb_multichannel:
    case Reason::smb_session:
    case Reason::smb_not_understood:
    case Reason::lost_writes:
    case Reason::smb_client_caches:
    case Reason::smb_other_paths:
    case Reason::smb_hides_errors:
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every reason has one row with a code, a sentence and a remedy") {
  std::set<std::string_view> codes;
  for (std::size_t row = 0; row < kReasonTable.size(); ++row) {
    const auto reason = static_cast<Reason>(row);
    CHECK(named(reason));
    CHECK(explain(reason).reason == reason);
    CHECK(codes.insert(explain(reason).code).second);
    CHECK(explain(reason).sentence.ends_with('.'));
    CHECK_FALSE(explain(reason).remedy.empty());
    CHECK(explain(reason).code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(reason_of(explain(reason).code) == reason);
  }
  CHECK_FALSE(named(static_cast<Reason>(kReasonTable.size())));
  CHECK_FALSE(reason_of("no such code"));
}

TEST_CASE("the troubleshooting page shows the reason table as it is") {
  std::ifstream file(LONGHAUL_SOURCE_DIR "/docs/troubleshooting.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  constexpr std::string_view open = "<!-- reasons -->", close = "<!-- /reasons -->";
  const auto begin = page.find(open);
  REQUIRE(begin != std::string::npos);
  const auto end = page.find(close, begin);
  REQUIRE(end != std::string::npos);
  auto shown = page.substr(begin + open.size(), end - begin - open.size());
  shown.erase(0, shown.find_first_not_of('\n'));
  while (shown.ends_with("\n\n")) shown.pop_back();
  CHECK(shown == reason_table_markdown());
}
