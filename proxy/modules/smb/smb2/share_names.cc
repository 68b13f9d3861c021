// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/share_names.h"

#include <algorithm>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb2/records_session.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr std::size_t kMostShareBytes = 2048;  // names of real ones are shorter
constexpr std::size_t kMostConnecting = 64, kMostShares = 4096;

std::u16string share_text(Bytes utf16) {
  std::u16string text;
  utf16 = utf16.first(std::min(utf16.size(), kMostShareBytes));
  for (std::size_t i = 0; i + 2 <= utf16.size(); i += 2) text.push_back(load_le<char16_t>(utf16, i));
  return text;
}

}  // namespace

void ShareNames::on_request(const Message& message) {
  for (const Element& element : message.elements) {
    if (element.header.command != Command::tree_connect || connecting_.size() >= kMostConnecting) continue;
    if (const auto request = parse_tree_connect_request(element.bytes))
      connecting_[element.header.message_id] = share_of(share_text(request->path));
  }
}

void ShareNames::on_outcome(const Connection::Outcome& outcome) {
  for (const Connection::Answered& each : outcome.answered) {
    if (each.interim || each.request.command != Command::tree_connect) continue;
    auto share = connecting_.extract(each.request.id);
    if (!share.empty() && each.element && shares_.size() < kMostShares)
      shares_[{each.request.session, each.element->header.tree_id}] = std::move(share.mapped());
  }
}

std::u16string ShareNames::of(SessionId session, TreeId tree) const {
  const auto share = shares_.find({session, tree});
  return share == shares_.end() ? std::u16string{} : share->second;
}

LostWrites::Use use_of(const Open& open) {
  return smb::use_of(open.access, static_cast<std::uint32_t>(open.disposition));
}

}  // namespace longhaul::smb::smb2
