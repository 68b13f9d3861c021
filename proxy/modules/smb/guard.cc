// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/guard.h"

#include <utility>

namespace longhaul::smb {

Guard::Guard(const LostWrites::Ends& ends, std::shared_ptr<LostWrites> lost)
    : ends_(ends),
      lost_(std::move(lost)),
      client_(framing_of_port(ends.server_port)),
      server_(framing_of_port(ends.server_port)),
      telling_(*lost_),
      smb1_(ends, telling_),
      smb2_(ends, telling_) {}

Guard::~Guard() {
  if (client_passes_) lost_->live().leave_unguarded(ends_);
}

void Guard::from_client(Slice bytes, Out& out) {
  if (client_passes_) return out.to_server.push_back(std::move(bytes));
  client_.push(std::move(bytes));
  take_frames(From::client, out);
  review(out);
}

void Guard::from_server(Slice bytes, Out& out) {
  if (server_passes_) return out.to_client.push_back(std::move(bytes));
  server_.push(std::move(bytes));
  take_frames(From::server, out);
  review(out);
}

void Guard::take_frames(From from, Out& out) {
  FrameSplitter& splitter = from == From::client ? client_ : server_;
  for (;;) {
    auto next = splitter.next();
    if (!next) return pass(from, out);
    if (!*next) return;
    const Frame& frame = **next;
    if (understands(from, frame, out)) {
      if (out.reset) return;
      continue;
    }
    (from == From::client ? out.to_server : out.to_client).push_back(frame.bytes);
    return pass(from, out);
  }
}

// Returns false, without output, if the following bytes cannot be parsed.
bool Guard::understands(From from, const Frame& frame, Out& out) {
  const bool asks = from == From::client;
  if (asks) (void)telling_.client_goes_on();
  switch (frame.kind) {
    case FrameKind::smb1:
      return asks ? smb1_.request(frame, out) : smb1_.answer(frame, out);
    case FrameKind::smb2:
      return asks ? smb2_.request(frame, out) : smb2_.answer(frame, out);
    case FrameKind::smb2_transform:
    case FrameKind::smb2_compressed:
      // It may open any of the files, and cannot be answered.
      out.reset = asks && lost_->told_by_reset(ends_);
      if (out.reset) return true;
      [[fallthrough]];
    default:
      (asks ? out.to_server : out.to_client).push_back(frame.bytes);
      return true;
  }
}

void Guard::pass(From from, Out& out) {
  const bool asks = from == From::client;
  if (std::exchange(asks ? client_passes_ : server_passes_, true)) return;
  if (asks) lost_->live().enter_unguarded(ends_);
  for (Slice& rest : (asks ? client_ : server_).take_rest())
    (asks ? out.to_server : out.to_client).push_back(std::move(rest));
}

// The server's answers are parsed while one of them must be changed, or an open may still come.
void Guard::review(Out& out) {
  if (server_passes_) pass(From::client, out);
  if (!client_passes_ && !owes() && !lost_->may_lose(ends_)) pass(From::client, out);
  if (client_passes_ && !owes()) pass(From::server, out);
}

void Guard::client_ended(Out& out) {
  (void)telling_.client_goes_on();
  pass(From::client, out);
  review(out);
}

// If writes are outstanding or lost it must go on parsing; from now on nothing is promised to this client.
bool Guard::give_up(Out& out) {
  if (lost_->any(ends_)) return false;
  pass(From::client, out);
  review(out);
  return true;
}

// No response may be sent for a server that has ended.
void Guard::server_ended(Out& out) {
  pass(From::server, out);
  review(out);
}

}  // namespace longhaul::smb
