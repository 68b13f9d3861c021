// SPDX-License-Identifier: Apache-2.0
// See second_handles.h.
#include "proxy/modules/smb/smb2/second_handles.h"

#include <algorithm>
#include <array>
#include <vector>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

// With these the client may delete or rename the file, which our handle would delay.
constexpr std::uint32_t kMayDelete = access::delete_file | access::generic_all | access::maximum_allowed;
constexpr std::uint32_t kShareAll = share_access::read | share_access::write | share_access::delete_file;

// 2.2.13.2.10
std::array<std::byte, 52> lease_context(const LeaseKey& key) {
  std::array<std::byte, 52> context{};
  std::copy(key.begin(), key.end(), context.begin());
  store_le<std::uint32_t>(context.data() + 16, lease_state::read);
  return context;
}

bool needs_second_handle(const Open& open) {
  return open.may_be_replayed && open.lease && (open.caching & lease_state::read) && !open.break_pending &&
         !open.spelled.empty() && open.moved_to.empty() && !open.unnamed && !open.dfs &&
         !(open.access & kMayDelete) && !(open.options & create_options::delete_on_close) &&
         open.end_of_file > 0;
}

}  // namespace

void SecondHandles::open(const Open& open) {
  if (!needs_second_handle(open) || handles_.size() >= kMost ||
      side_.surroundings().round_trip < kLeastRoundTrip)
    return;
  const Number number = next_++;
  auto build = [&](const RequestHead& head) {
    const Slice name = utf16_of(open.spelled);
    const auto lease = lease_context(*open.lease);
    CreateRequest create{.oplock = OplockLevel::lease,
                         .desired_access = access::read_data | access::read_attributes,
                         .share_access = kShareAll,
                         .options = create_options::non_directory_file,
                         .name = name.bytes()};
    create.contexts.push_back({as_bytes(create_context::lease), lease});
    return build_create_request(head, create);
  };
  auto reply = [this, number](TimePoint then, const Frame&, const Element& answer) {
    opened(then, number, answer);
  };
  if (!side_.server().inject(open.session, open.tree, 1, build, reply)) return;
  handles_.emplace(number, Handle{.open = open.key, .session = open.session, .tree = open.tree});
  side_.hold_behind(number, open.name);
}

void SecondHandles::opened(TimePoint now, Number number, const Element& answer) {
  const auto found = handles_.find(number);
  if (found == handles_.end()) return;
  const Result<CreateResponse> response = parse_create_response(answer.bytes);
  // The client is not notified: its own READ is sent to the server.
  if (answer.header.status != Status::success || !response) return forget(now, number);
  Handle& handle = found->second;
  handle.file = response->file;
  handle.state = Handle::State::open;
  const OpenKey open = handle.open;
  used_ = &open;
  use_number_ = number;
  use_(now, open);
  used_ = nullptr;
  close_when_read(now, number);
}

bool SecondHandles::read(const OpenKey& open, Interval range, std::uint16_t charge,
                         OwnRequests::Reply reply) {
  if (!usable(open)) return false;
  const Number number = use_number_;
  Handle& handle = handles_.at(number);
  auto build = [&](const RequestHead& head) {
    ReadRequest read;
    read.length = static_cast<std::uint32_t>(range.size());
    read.offset = range.begin;
    read.file = handle.file;
    return build_read_request(widening(head), read);
  };
  auto counted = [this, number, reply = std::move(reply)](TimePoint then, const Frame& frame,
                                                          const Element& answer) {
    --handles_.at(number).reads;
    close_when_read(then, number);
    reply(then, frame, answer);
  };
  if (!side_.server().inject(handle.session, handle.tree, charge, build, counted)) return false;
  ++handle.reads;
  return true;
}

void SecondHandles::close_when_read(TimePoint now, Number number) {
  Handle& handle = handles_.at(number);
  if (used_ || handle.reads > 0 || handle.state == Handle::State::closing) return;
  const CloseRequest request{.file = handle.file};
  // The server closes it with the connection.
  if (side_.connection().sessions().any_untouchable()) return forget(now, number);
  const bool sent = side_.server().inject_awaited(
      handle.session, handle.tree,
      [request](const RequestHead& head) { return build_close_request(head, request); },
      [this, number](TimePoint then, const Frame&, const Element&) { forget(then, number); });
  handle.state = sent ? Handle::State::closing : Handle::State::to_close;
}

void SecondHandles::forget(TimePoint now, Number number) {
  handles_.erase(number);
  side_.let_go(now, number);
}

void SecondHandles::close_unsent(TimePoint now) {
  std::vector<Number> unsent;
  for (const auto& [number, handle] : handles_)
    if (handle.state == Handle::State::to_close) unsent.push_back(number);
  for (const Number number : unsent) close_when_read(now, number);
}

}  // namespace longhaul::smb::smb2
