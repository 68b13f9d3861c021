// SPDX-License-Identifier: Apache-2.0
// Commands to a running emulator over a Unix socket: one line each way per connection. Leaves their meaning
// to forwarder.h.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/wan/descriptor.h"

namespace longhaul::wan {

class ControlServer {
 public:
  using Handler = std::function<std::string(std::string_view command)>;

  // The path is taken over from a dead emulator, not from a running one; only the owner may connect.
  explicit ControlServer(std::string path);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  int descriptor() const { return epoll_.get(); }  // readable when serve() has something to do
  void serve(const Handler& handler);              // never blocks

 private:
  struct Client {
    Descriptor socket;
    std::string request;
  };
  void accept_one();
  bool finished(Client& client, const Handler& handler);

  std::string path_;
  Descriptor epoll_;
  Descriptor listener_;
  std::vector<Client> clients_;
};

// Throws std::runtime_error with a sentence if the emulator does not answer. Waits up to `patience` for the
// socket to appear.
std::string ask(const std::string& path, std::string_view command, std::chrono::milliseconds patience);

}  // namespace longhaul::wan
