// SPDX-License-Identifier: Apache-2.0
// A request's path and parameters, and the queries read from the parameters. Each mistake is refused with a
// sentence. api.cc has the paths.
#pragma once
#include <boost/system/result.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/control/answers.h"
#include "proxy/control/flow_queries.h"
#include "proxy/control/talkers.h"

namespace longhaul::control {

struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> parameters;
};

// Returns nullopt if the text is not a path.
std::optional<Target> parse_target(std::string_view text);

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [read, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || read != text.data() + text.size()) return std::nullopt;
  return number;
}

Answer unknown_parameter(std::string_view name, std::string_view known);

boost::system::result<FlowQuery, Answer> read_flow_query(const Target& target);
boost::system::result<TalkersQuery, Answer> read_talkers_query(const Target& target);

}  // namespace longhaul::control
