// SPDX-License-Identifier: Apache-2.0
// The modules that this version has: by which name and version two proxies agree on one, which flows it is
// for, and how its halves are made. What a module does is its own folder's business.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "proxy/modules/guard.h"
#include "proxy/modules/memory.h"
#include "proxy/modules/module.h"

namespace longhaul::smb {
class LostWrites;
}
namespace longhaul::modules {

// Makes a half for one flow.
using Maker = std::function<std::unique_ptr<Module>(const Ends& ends)>;

struct Listed {
  std::string_view name;             // in OPEN and HELLO; at most 32 bytes, lives as long as the program
  std::uint64_t version = 1;         // of what the halves say to each other: another one is another module
  std::vector<std::uint16_t> ports;  // of servers
  bool config::Features::*feature = nullptr;
  Maker make_near;  // before the client
  Maker make_far;   // before the server
  // For a flow that does not use the link; null: the module has nothing to tell its client.
  std::function<std::unique_ptr<Guard>(const Ends& ends)> make_guard;
  // Of whom make_guard() has something to tell; and what is to be called whenever that may have changed.
  std::function<std::vector<Ends>()> guarded = [] { return std::vector<Ends>{}; };
  std::function<void(std::function<void()>)> on_guarded = [](std::function<void()>) {};
  // What its flows hold; by default without a bound.
  std::shared_ptr<Memory> memory = std::make_shared<Memory>(~std::uint64_t{0});
  // What is held for clients before they ask for it, beside that.
  std::function<std::uint64_t()> ahead_bytes = [] { return std::uint64_t{0}; };
};
using List = std::span<const Listed>;

// For one site: what its flows share lives as long as the list and the halves. `memory` is all modules',
// `ahead_bytes` what may be held for clients before they ask.
// `lost_writes` is for what takes flows past the link, too.
std::vector<Listed> all(std::shared_ptr<Memory> memory, std::uint64_t ahead_bytes,
                        std::shared_ptr<smb::LostWrites> lost_writes);

// None: nobody here speaks what is spoken there.
const Listed* for_port(List list, std::uint16_t port);
const Listed* find(List list, std::string_view name, std::uint64_t version);

}  // namespace longhaul::modules
