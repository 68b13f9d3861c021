// SPDX-License-Identifier: Apache-2.0
// The screen of `longhaul top`: the verdict, links, and the largest users of the line, with rates between two
// responses of the daemon. Pure.
#pragma once
#include <boost/json/value.hpp>
#include <map>
#include <string>

namespace longhaul::cli {

class Top {
 public:
  // The key of the last table's rows: client, server, port or peer.
  std::string by = "client";
  bool has_colour = false;

  // `seconds`: time since the previous call.
  std::string frame(const boost::json::value& status, const boost::json::value& talkers, double seconds);

 private:
  using Sums = std::map<std::string, std::uint64_t>;  // bytes by kind
  std::string rate(const std::string& of, std::uint64_t bytes, double seconds);

  Sums before_, now_;
};

}  // namespace longhaul::cli
