// SPDX-License-Identifier: Apache-2.0
// Answers that the far half fetches with an open, on their way to the near half, and the client's queries
// that wait for them there. near_questions.h decides which queries wait, and what becomes of the answers.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb1/message.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::smb::smb1 {

class ComingAnswers {
 public:
  struct Held {
    Header header;
    Slice frame;
  };
  struct Coming {
    bool is_void = false;  // for queries that are sent from now on
    std::vector<Held> held;
  };

  // These queries were sent with this open; none of an earlier one of that key waits (forget()).
  void expect(const OpenKey& open, std::span<const std::string> questions);
  // The client's query waits for the answer, if it comes and there is room.
  bool hold(const OpenKey& open, const std::string& question, const Header& header, const Frame& frame);
  // The same through any open of this user in this tree, as a query about its volume may.
  bool hold_in_tree(const Header& header, const std::string& question, const Frame& frame);
  // It has come; none: it was not expected.
  std::optional<Coming> take(const OpenKey& open, const std::string& question);

  // No query waits for it from here on: of an open, of all opens, of those that are about volumes.
  void drop(const OpenKey& open);
  void drop_all();
  void drop_volumes();
  // The open has ended: its queries, which the server has to answer.
  std::vector<Held> forget(const OpenKey& open);

  std::size_t held() const { return held_; }

  // Limits of waiting queries, of all opens; longer ones do not wait.
  static constexpr std::size_t kMostHeld = 256, kMostHeldFrame = 1024;

 private:
  using OfOpen = std::map<std::string, Coming>;
  bool hold(OfOpen& open, const std::string& question, const Header& header, const Frame& frame);

  std::unordered_map<OpenKey, OfOpen, OpenKeyHash> opens_;
  std::size_t held_ = 0;
};

}  // namespace longhaul::smb::smb1
