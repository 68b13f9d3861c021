// SPDX-License-Identifier: Apache-2.0
#include "proxy/cli/verdict_lines.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>
#include <cstdlib>

#include "proxy/cli/table.h"
#include "proxy/cli/wrap.h"

namespace longhaul::cli {
namespace {

namespace json = boost::json;

std::string savings(const json::value& verdict) {
  const auto& share = verdict.at("saved_share");
  if (share.is_null()) return "no traffic yet";
  const auto saved = verdict.at("saved_bytes").to_number<std::int64_t>();
  const auto bytes = bytes_text(static_cast<std::uint64_t>(std::llabs(saved)));
  if (saved < 0) return "the WAN carried " + bytes + " more than the LAN";
  return "saved " + bytes + " (" + share_text(share.to_number<double>()) + ")";
}

// A daemon of an earlier version does not report it.
std::string wan_now(const json::value& status) {
  const auto* now = status.as_object().if_contains("throughput");
  if (now == nullptr || now->is_null()) return "";
  const auto rate = [&](std::string_view of) { return rate_text(now->at(of).to_number<std::uint64_t>()); };
  return "; WAN now " + rate("wan_out_bits") + " out, " + rate("wan_in_bits") + " in";
}

}  // namespace

std::string share_text(double share) {
  std::array<char, 32> text;
  const int length = std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string verdict_lines(const json::value& status, bool colour) {
  const auto& verdict = status.at("verdict");
  const bool ok = verdict.at("ok").as_bool();
  const auto& problems = verdict.at("problems").as_array();
  bool serious = false;
  for (const auto& problem : problems) serious |= problem.at("serious").as_bool();
  std::string lines = colour ? (ok ? "\x1b[32m" : serious ? "\x1b[31m" : "\x1b[33m") : "";
  if (problems.size() == 1) {
    lines += problems[0].at("sentence").as_string();
    if (lines.ends_with('.')) lines.pop_back();
  } else {
    lines += ok ? "OK" : std::to_string(problems.size()) + " problems";
  }
  lines += (colour ? "\x1b[0m; " : "; ") + savings(verdict) + wan_now(status);
  lines = wrapped(lines);
  for (const auto& problem : problems)
    lines += (problems.size() == 1 ? "" : titled("  problem:", problem.at("sentence").as_string())) +
             titled("  remedy:", problem.at("remedy").as_string());
  return lines;
}

}  // namespace longhaul::cli
