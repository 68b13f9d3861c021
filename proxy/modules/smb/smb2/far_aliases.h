// SPDX-License-Identifier: Apache-2.0
// The far half's part for opens that the near half answered itself (near_aliases.h): opens them at the server
// if they are needed there, and replaces their ids in the client's requests by the server's. Until the server
// has answered, all messages from the client's side wait (far.cc).
#pragma once
#include <deque>
#include <optional>
#include <unordered_map>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class FarAliases {
 public:
  explicit FarAliases(FarSide& side) : side_(side) {}

  void make_real(const MakeReal& wanted);
  // Whether the client's frames and the twin's messages must wait.
  bool busy() const { return asking_ != 0 || !waiting_.empty(); }
  // Whether some wait for ids.
  bool starved() const { return !waiting_.empty(); }
  void on_ids_freed();

  std::size_t held_bytes() const { return held_bytes_; }

  // A request of the client, with the server's ids.
  Message resolved(Message message);

 private:
  bool ask(const MakeReal& wanted);

  // At least as many as the near half ever has; those opened at the server stay until the client closes them.
  static constexpr std::size_t kMostWaiting = 1024, kMostReal = 1 << 14;

  FarSide& side_;
  std::size_t held_bytes_ = 0;  // of waiting messages
  std::deque<MakeReal> waiting_;
  std::size_t asking_ = 0;
  std::unordered_map<FileId, FileId, FileIdHash> real_;
};

}  // namespace longhaul::smb::smb2
