// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/open_guard.h"

#include "proxy/modules/smb/lost_names.h"
#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/lost_files.h"
#include "proxy/modules/smb/smb1/raw_transfer.h"
#include "proxy/modules/smb/status.h"

namespace longhaul::smb::smb1 {
namespace {

constexpr std::size_t kMostReplacing = 1024;

}  // namespace

bool OpenGuard::request(const Frame& frame, Out& out) {
  const auto message = parse_message(frame.message());
  // The data of a raw transfer has no header by which it could be recognised.
  if (!message || is_raw(*message)) return false;
  const Header& header = message->header;
  if (auto share = share_connected_by(*message)) shares_.connecting(number_of(header), std::move(*share));
  const Verdict verdict = judge(*message, out);
  if (out.reset) return true;
  if (verdict == Verdict::refused)
    out.to_client.push_back(empty_reply(header, static_cast<std::uint32_t>(Status::lost_writebehind_data)));
  else
    out.to_server.push_back(frame.bytes);
  return true;
}

// A request that is not the first of its chain passes, because the earlier commands must be carried out. The
// error ends a chain.
OpenGuard::Verdict OpenGuard::judge(const Message& message, Out& out) {
  const Header& header = message.header;
  const auto wanted = wanted_by(message);
  if (!wanted) return Verdict::passes;
  std::u16string share = shares_.of(0, header.tid);
  // Late errors are NT status codes.
  if (share.empty() || !header.has_nt_status()) return Verdict::passes;
  LostWrites::File file = file_of(ends_, std::move(share), wanted->name);
  telling_.end_live(file);
  if (!telling_.has(file, wanted->use)) return Verdict::passes;
  if (wanted->use == LostWrites::Use::replaces) {
    if (replacing_.size() < kMostReplacing) replacing_.emplace(number_of(header), std::move(file));
    return Verdict::passes;
  }
  out.reset = header.is_signed();
  if (out.reset)
    telling_.told_by_reset(file);
  else
    telling_.told(std::move(file), wanted->use);
  return Verdict::refused;
}

bool OpenGuard::answer(const Frame& frame, Out& out) {
  const auto message = parse_message(frame.message());
  if (!message) return false;
  const Header& header = message->header;
  if (header.is_reply()) {
    if (header.status == 0)
      shares_.connected(number_of(header), 0, tree_connected_by(*message));
    else
      shares_.refused(number_of(header));
    if (const auto replaced = replacing_.extract(number_of(header)); !replaced.empty() && header.status == 0)
      telling_.replaced(replaced.mapped());
  }
  out.to_client.push_back(frame.bytes);
  return true;
}

}  // namespace longhaul::smb::smb1
