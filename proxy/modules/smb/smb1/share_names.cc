// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/share_names.h"

#include "proxy/modules/smb/lost_names.h"

namespace longhaul::smb::smb1 {
namespace {

constexpr std::size_t kMostShares = 4096, kMostConnecting = 64;

}  // namespace

void ShareNames::on_request(const Message& request) {
  for (const Block& block : request.blocks) {
    if (block.command != Command::tree_connect_andx || connecting_.size() >= kMostConnecting) continue;
    if (const auto connect = parse_tree_connect_request(block, request.header))
      connecting_[number_of(request.header)] =
          share_of(file_name(0, connect->path, request.header.is_unicode()).path);
  }
}

void ShareNames::on_reply(const Message& reply) {
  auto share = connecting_.extract(number_of(reply.header));
  if (!share.empty() && reply.header.status == 0 && shares_.size() < kMostShares)
    shares_.insert_or_assign(reply.header.tid, std::move(share.mapped()));
}

std::u16string ShareNames::of(std::uint16_t tid) const {
  const auto share = shares_.find(tid);
  return share == shares_.end() ? std::u16string{} : share->second;
}

}  // namespace longhaul::smb::smb1
