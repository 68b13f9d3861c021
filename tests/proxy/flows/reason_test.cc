// SPDX-License-Identifier: Apache-2.0
// Tests the reason table: complete, usable as labels, and the same in docs/troubleshooting.md.
#include "proxy/flows/reason.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <set>

#include "proxy/modules/modules.h"

using namespace longhaul::flows;

TEST_CASE("every reason has a code of its own, a sentence and a remedy") {
  std::set<std::string_view> codes;
  for (const Reason reason : all_reasons()) {
    CHECK(codes.insert(reason->code).second);
    CHECK(reason->sentence.ends_with('.'));
    CHECK_FALSE(reason->remedy.empty());
    CHECK(reason->code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
    CHECK(reason_of(reason->code) == reason);
  }
  CHECK_FALSE(reason_of("no such code"));
}

TEST_CASE("a module's reasons follow the general reasons in the table") {
  const auto all = all_reasons();
  CHECK(all.front() == Reason{});
  CHECK(all[longhaul::flows::reasons::kOwn.size() - 1] == longhaul::flows::reasons::module_not_at_peer);
  for (const longhaul::modules::Descriptor* module : longhaul::modules::descriptors())
    for (const ReasonText* row : module->reasons) CHECK(reason_of(row->code) == Reason(*row));
}

TEST_CASE("the troubleshooting page contains the reason table") {
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
