// SPDX-License-Identifier: Apache-2.0
// See far_paths.h.
#include "proxy/modules/smb/smb2/far_paths.h"

#include <algorithm>

#include "codecs/little_endian.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kInterfaceBytes = 152, kAddressAt = 24;
constexpr std::uint16_t kIpv4 = 2, kIpv6 = 23;  // as Windows numbers families

// Returns nullopt for a family that no client uses.
std::optional<modules::Address> address_of(Bytes storage) {
  modules::Address address{};
  switch (load_le<std::uint16_t>(storage, 0)) {
    case kIpv4: {
      const Bytes v4 = storage.subspan(4, 4);
      address[10] = address[11] = std::byte{0xFF};
      std::ranges::copy(v4, address.begin() + 12);
      return address;
    }
    case kIpv6:
      std::ranges::copy(storage.subspan(8, 16), address.begin());
      return address;
    default:
      return std::nullopt;
  }
}

// RFC 4291, RFC 3927.
bool is_local(const modules::Address& address) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(address[i]); };
  const auto is_zero = [](std::byte each) { return each == std::byte{0}; };
  const bool zero_front = std::all_of(address.begin(), address.begin() + 10, is_zero);
  if (zero_front && at(10) == 0xFF && at(11) == 0xFF)
    return at(12) == 127 || at(12) == 0 || (at(12) == 169 && at(13) == 254);
  if (at(0) == 0xFE && (at(1) & 0xC0) == 0x80) return true;
  return zero_front && at(10) == 0 && at(11) == 0 && at(12) == 0 && at(13) == 0 && at(14) == 0 && at(15) <= 1;
}

}  // namespace

Result<bool> lists_other_addresses(Bytes network_interfaces, const modules::Address& known) {
  for (Bytes rest = network_interfaces; !rest.empty();) {
    if (rest.size() < kInterfaceBytes) return Error::malformed_record;
    const auto next = load_le<std::uint32_t>(rest, 0);
    const auto address = address_of(rest.subspan(kAddressAt, kInterfaceBytes - kAddressAt));
    if (address && *address != known && !is_local(*address)) return true;
    if (next == 0) break;
    if (next < kInterfaceBytes || next >= rest.size()) return Error::malformed_record;
    rest = rest.subspan(next);
  }
  return false;
}

bool FarPaths::has_only_path(const Open& open) {
  if (!side_.connection().negotiated().multi_channel()) return true;
  if (sessions_.size() >= Connection::kMostSessions && !sessions_.contains(open.session)) return false;
  State& state = sessions_[open.session];
  if (state != State::unknown || !side_.server().can_inject(1)) return state == State::only_path;
  const bool sent =
      side_.server().inject(open.session, open.tree, 1, build_query_interfaces_request,
                            [this, key = open.key](TimePoint then, const Frame&, const Element& answer) {
                              settle(key.session, others_in(answer).value_or(true));
                              if (const Open* waiting = side_.connection().open(key))
                                side_.path_is_known(then, *waiting);
                            });
  if (sent) state = State::asked;
  return false;
}

void FarPaths::before_request(TimePoint, const Message& message, const Changes&) {
  if (!side_.connection().negotiated().multi_channel()) return;
  for (const Element& element : message.elements)
    if (asks_for_interfaces(element) && questions_.size() < Connection::kMostPending)
      questions_.insert(element.header.message_id);
}

void FarPaths::on_outcome(TimePoint, const Connection::Outcome& outcome) {
  if (questions_.empty()) return;
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || questions_.erase(each.request.id) == 0 || !each.element) continue;
    if (const auto others = others_in(*each.element)) {
      settle(each.request.session, *others);
    } else {
      tell(each.request.session);
    }
  }
}

std::optional<bool> FarPaths::others_in(const Element& answer) const {
  const auto response = parse_ioctl_response(answer.bytes);
  if (answer.header.status != Status::success || !response) return std::nullopt;
  const auto others = lists_other_addresses(response->output, server_);
  return others ? std::optional(*others) : std::nullopt;
}

// The client does not forget other addresses.
void FarPaths::settle(SessionId session, bool others) {
  if (sessions_.size() >= Connection::kMostSessions && !sessions_.contains(session)) return;
  State& state = sessions_[session];
  if (state != State::others) state = others ? State::others : State::only_path;
  tell(session);
}

void FarPaths::tell(SessionId session) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second < State::only_path) return;
  side_.out().tell(Paths{.session = session, .others = found->second == State::others});
}

}  // namespace longhaul::smb::smb2
