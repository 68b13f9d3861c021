// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/verdict_lines.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>
#include <cstdlib>

#include "proxy/cli/table.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;

std::string savings(const json::value& verdict) {
  const auto& share = verdict.at("saved_share");
  if (share.is_null()) return "nothing carried yet";
  const auto saved = verdict.at("saved_bytes").to_number<std::int64_t>();
  const auto bytes = bytes_text(static_cast<std::uint64_t>(std::llabs(saved)));
  if (saved < 0) return "the WAN carried " + bytes + " more than the LAN";
  return "saved " + bytes + " (" + share_text(share.to_number<double>()) + ")";
}

}  // namespace

std::string share_text(double share) {
  std::array<char, 32> text;
  const int length = std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string verdict_lines(const json::value& verdict, bool colour) {
  const bool ok = verdict.at("ok").as_bool();
  const auto& problems = verdict.at("problems").as_array();
  bool serious = false;
  for (const auto& problem : problems) serious |= problem.at("serious").as_bool();
  std::string lines = colour ? (ok ? "\x1b[32m" : serious ? "\x1b[31m" : "\x1b[33m") : "";
  lines += ok ? "OK" : std::to_string(problems.size()) + (problems.size() == 1 ? " problem" : " problems");
  lines += (colour ? "\x1b[0m; " : "; ") + savings(verdict) + '\n';
  for (const auto& problem : problems)
    lines.append("  ").append(problem.at("sentence").as_string()).append("\n    remedy: ").append(problem.at("remedy").as_string()) +=
        '\n';
  return lines;
}

}  // namespace longhaul::cli
