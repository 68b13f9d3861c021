// SPDX-License-Identifier: Apache-2.0
// The modules that this version has: by which name and version two proxies agree on one, which flows it is
// for, and how its halves are made. What a module does is its own folder's business.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "proxy/modules/module.h"

namespace longhaul::modules {

struct Listed {
  std::string_view name;      // in OPEN and HELLO; at most 32 bytes
  std::uint64_t version = 1;  // of what the halves say to each other: another one is another module
  std::span<const std::uint16_t> ports;  // of servers
  bool config::Features::*feature = nullptr;
  std::unique_ptr<Module> (*make_near)() = nullptr;  // before the client
  std::unique_ptr<Module> (*make_far)() = nullptr;   // before the server
};
using List = std::span<const Listed>;

// Good for as long as the program runs.
List all();

// None: nobody here speaks what is spoken there.
const Listed* for_port(List list, std::uint16_t port);
const Listed* find(List list, std::string_view name, std::uint64_t version);

}  // namespace longhaul::modules
