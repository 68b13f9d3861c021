// SPDX-License-Identifier: Apache-2.0
// Input from the client's side that waits, in order, while opens are made at the server that the near half
// has already answered (far_aliases.h).
#pragma once
#include <cstddef>
#include <deque>
#include <utility>
#include <variant>

#include "proxy/modules/smb/half.h"

namespace longhaul::smb::smb2 {

class HeldInputs {
 public:
  struct Told {
    TwinMessage message;
    Slice attached;
  };
  struct Opaque {
    bool of_server = false;  // if not, of the client
  };
  using Input = std::variant<Frame, Told, modules::Ending, Opaque>;

  void push(Input input) {
    bytes_ += bytes_of(input);
    inputs_.push_back(std::move(input));
  }
  Input pop() {
    Input input = std::move(inputs_.front());
    inputs_.pop_front();
    bytes_ -= bytes_of(input);
    return input;
  }
  bool empty() const { return inputs_.empty(); }
  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t bytes_of(const Input& input) {
    if (const auto* frame = std::get_if<Frame>(&input)) return frame->bytes.size();
    if (const auto* told = std::get_if<Told>(&input)) return sizeof(TwinMessage) + told->attached.size();
    return 0;
  }

  std::deque<Input> inputs_;
  std::size_t bytes_ = 0;
};

}  // namespace longhaul::smb::smb2
