// SPDX-License-Identifier: Apache-2.0
// The client's requests that wait for promises or for earlier waiting requests, in order: those of one file
// after each other, and those that wait for everything. Only the first of each file is ever examined, when
// something that it waits for is completed. Pure.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "codecs/keyed_hash.h"
#include "proxy/modules/smb/smb2/unfinished_promises.h"

namespace longhaul::smb::smb2 {

class HeldRequests {
 public:
  using Sequence = UnfinishedPromises::Sequence;
  struct Held {
    Message message;
    OrderScope scope;
    Sequence sequence = 0;
  };

  bool empty() const { return held_.empty(); }
  std::size_t bytes() const { return bytes_; }  // of frames
  // Whether a request of this scope must wait because others do.
  bool hold_up(const OrderScope& scope) const;
  // The scope of a request that waits, for its CANCEL.
  const OrderScope* find(MessageId request) const;
  void hold(Held held);

  // A promise of this file is completed: returns requests that need not wait any more, in order. `any_file`:
  // the group of names that may match any file.
  std::vector<Message> release(const FileGroupRef& file, const UnfinishedPromises& promises,
                               const FileGroup& any_file);

 private:
  struct OfFile {
    FileGroupRef file;
    std::deque<Held> held;
  };
  using Heads = std::map<Sequence, FileGroupRef>;  // by the sequence of the first waiting one

  void release_first(OfFile& waiting, const UnfinishedPromises& promises, const FileGroup& any_file,
                     std::vector<Message>& released);
  void take_first(std::deque<Held>& held, std::vector<Message>& released);
  static void move_before(Heads& heads, std::optional<Sequence> end, std::vector<FileGroupRef>& to);

  std::unordered_map<const FileGroup*, OfFile> files_;
  std::deque<Held> barriers_;  // requests that wait for all earlier ones, and delay all later ones
  std::set<Sequence> held_;    // all waiting requests
  KeyedMap<MessageId, OrderScope> scopes_;  // of waiting requests, for CANCELs
  Heads behind_barrier_, behind_any_;       // the latter: behind promises of inexact names
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
