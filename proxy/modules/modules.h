// SPDX-License-Identifier: Apache-2.0
// The list of modules: the name and version by which two proxies agree on one, the flows it is for, and how its
// halves are created.
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
  std::uint64_t version = 1;         // of the messages between the halves; another version is another module
  std::vector<std::uint16_t> ports;  // of servers
  bool config::Features::*feature = nullptr;
  Maker make_near;  // before the client
  Maker make_far;   // before the server
  // For a flow outside the link; null: the module has nothing to report to its client.
  std::function<std::unique_ptr<Guard>(const Ends& ends)> make_guard;
  // Clients for which make_guard() has something to report, and a callback for changes of this set.
  std::function<std::vector<Ends>()> guarded = [] { return std::vector<Ends>{}; };
  std::function<void(std::function<void()>)> on_guarded = [](std::function<void()>) {};
  // What is to be called when a guard has ended promises of near halves, which are to run for that.
  std::function<void(std::function<void()>)> on_given_up = [](std::function<void()>) {};
  // Memory of its flows; by default without a limit.
  std::shared_ptr<Memory> memory = std::make_shared<Memory>(~std::uint64_t{0});
  // In addition, memory of data read ahead of client requests.
  std::function<std::uint64_t()> ahead_bytes = [] { return std::uint64_t{0}; };
};
using List = std::span<const Listed>;

// For one site: what its flows share lives as long as the list and the halves. `memory` is all modules',
// `ahead_bytes` what may be held for clients before they ask.
// `lost_writes` is also used for flows outside the link.
std::vector<Listed> all(std::shared_ptr<Memory> memory, std::uint64_t ahead_bytes,
                        std::shared_ptr<smb::LostWrites> lost_writes);

// None if no module handles that port.
const Listed* for_port(List list, std::uint16_t port);
const Listed* find(List list, std::string_view name, std::uint64_t version);

}  // namespace longhaul::modules
