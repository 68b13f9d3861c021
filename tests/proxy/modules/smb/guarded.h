// SPDX-License-Identifier: Apache-2.0
// A connection that bypasses the link through a guard, for tests of both dialects.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "proxy/modules/smb/guard.h"
#include "proxy/modules/smb/smb2/connection.h"

namespace longhaul::smb::test {

inline constexpr LostWrites::Ends kEnds{
    .client = {std::byte{1}}, .server = {std::byte{2}}, .server_port = 445};

inline LostWrites::File lost_file(std::u16string path, std::u16string share = u"DATA") {
  return {.ends = kEnds, .share = std::move(share), .path = std::move(path)};
}

// A connection through a guard: what each side has received, as text.
struct Guarded {
  std::shared_ptr<LostWrites> lost = std::make_shared<LostWrites>();
  std::unique_ptr<Guard> guard;
  std::size_t piece = ~std::size_t{0};  // bytes at a time
  std::string at_client, at_server;
  bool is_reset = false;
  bool client_acknowledges = true;  // what is sent to the client's host is known to have arrived there

  explicit Guarded(std::initializer_list<std::u16string> paths, LostWrites::Ends ends = kEnds) {
    for (const std::u16string& path : paths) lost->add(lost_file(path), {});
    guard = std::make_unique<Guard>(ends, lost);
  }
  void collect(const modules::Guard::Out& out) {
    is_reset |= out.reset;
    if (client_acknowledges) guard->arrived(guard->awaited());
    for (const Slice& slice : out.to_client) at_client += as_text(slice.bytes());
    for (const Slice& slice : out.to_server) at_server += as_text(slice.bytes());
  }
  void say(Bytes bytes, bool is_client) {
    while (!bytes.empty()) {
      const std::size_t size = std::min(piece, bytes.size());
      modules::Guard::Out out;
      if (is_client)
        guard->from_client(Slice::copy_of(bytes.first(size)), out);
      else
        guard->from_server(Slice::copy_of(bytes.first(size)), out);
      collect(out);
      bytes = bytes.subspan(size);
    }
  }
  void client(const Slice& frame) { say(frame.bytes(), true); }
  void server(const Slice& frame) { say(frame.bytes(), false); }
  void client(const smb2::Message& message) { client(message.frame.bytes); }
  void server(const smb2::Message& message) { server(message.frame.bytes); }
  std::string take_client() { return std::exchange(at_client, {}); }
  std::string take_server() { return std::exchange(at_server, {}); }
};

inline std::string text(const Slice& frame) { return std::string(as_text(frame.bytes())); }
inline std::string text(const smb2::Message& message) { return text(message.frame.bytes); }

}  // namespace longhaul::smb::test
