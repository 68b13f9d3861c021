// SPDX-License-Identifier: Apache-2.0
// Handles of our own, through which the first blocks of a file are read while no request may use the client's
// handle: a client that requested a durable handle of version 2, as Windows always does, may replay its
// CREATE on another connection until it has used the handle, and a server refuses the replay after any
// request on it ([MS-SMB2] 3.3.5.9, Open.IsReplayEligible).
//
// Such a handle is opened under the client's lease key, so it breaks no lease (3.3.5.9.11), requests no
// caching except for reading, and shares everything. It is open for a few milliseconds: the READs are sent at
// once, and the CLOSE when they are answered. The client's requests for the file wait that long, so the
// server never receives it next to a later CLOSE, rename or open.
#pragma once
#include <functional>
#include <unordered_map>

#include "proxy/modules/smb/smb2/parts.h"

namespace longhaul::smb::smb2 {

class SecondHandles {
 public:
  // The handle for this open can be used until the function returns.
  using Use = std::function<void(TimePoint now, const OpenKey& open)>;
  SecondHandles(FarSide& side, Use use) : side_(side), use_(std::move(use)) {}

  // Requests a handle if the open needs it and permits it.
  void open(const Open& open);
  // Whether read() is possible: only within `use`.
  bool usable(const OpenKey& open) const { return used_ && *used_ == open; }
  // As OwnRequests::inject().
  bool read(const OpenKey& open, Interval range, std::uint16_t charge, OwnRequests::Reply reply);
  // For CLOSEs that waited for free ids, or no longer wait because the connection must pass unchanged.
  void close_unsent(TimePoint now);
  std::size_t size() const { return handles_.size(); }

 private:
  using Number = std::uint64_t;  // as in FarSide::hold_behind()
  struct Handle {
    OpenKey open;  // the client's
    SessionId session = 0;
    TreeId tree = 0;
    FileId file;
    std::size_t reads = 0;  // unanswered
    enum class State : std::uint8_t { opening, open, to_close, closing } state = State::opening;
  };
  void opened(TimePoint now, Number number, const Element& answer);
  void close_when_read(TimePoint now, Number number);
  void forget(TimePoint now, Number number);

  static constexpr std::size_t kMost = 64;  // at a time
  // On a shorter line the client's own READ costs less than the requests of a second handle.
  static constexpr modules::Duration kLeastRoundTrip = std::chrono::milliseconds(5);
  static constexpr Number kFirst = Number{1} << 61;  // far from those of far_opens.h and far_times.h

  FarSide& side_;
  Use use_;
  Number next_ = kFirst, use_number_ = 0;
  std::unordered_map<Number, Handle> handles_;
  const OpenKey* used_ = nullptr;  // within `use`
};

}  // namespace longhaul::smb::smb2
