// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_oplocks.h"

#include "proxy/modules/smb/smb1/builders.h"

namespace longhaul::smb::smb1 {

FarOplocks::Request FarOplocks::request(const Frame& frame, const Message& message,
                                        const Features& features) {
  const Header& header = message.header;
  const Request unchanged{frame.bytes, {}};
  if (header.command != Command::nt_create_andx || message.is_chained() || !connection_.is_ready() ||
      !(features.read_ahead || features.write_behind || features.metadata))
    return unchanged;
  const auto create = parse_nt_create_request(message.first(), header);
  constexpr std::uint32_t kData =
      kReadData | kWriteData | kAppendData | kGenericRead | kGenericWrite | kGenericAll;
  if (!create || (create->flags & kOpenTargetDirectory) != 0 || create->root_fid != 0 ||
      (create->access & kData) == 0 || (create->options & kOptionDirectory) != 0 ||
      !connection_.is_disk(header.tid))
    return unchanged;
  const FileName name = file_name(header.tid, create->name, header.is_unicode());
  if (name.path.empty()) return unchanged;
  // It may still read from the server, and must then see what others change.
  if ((create->flags & (kRequestOplock | kRequestBatch)) != 0) return {frame.bytes, name};
  if (name.stream || taken_back_.contains(name.path) || taken_back_.size() >= kMostRemembered ||
      !connection_.opens().has_room_for(asked_.size() + 1))
    return unchanged;
  for (const auto& [fid, open] : connection_.opens().all())
    if (open.name.path == name.path && !open.looks && !open.closing) return unchanged;
  asked_.insert(number_of(header));
  return {with_create_flags(frame.bytes, create->flags | kRequestOplock | kRequestBatch), name};
}

Slice FarOplocks::hidden(const Frame& frame, const Message& answer) {
  const bool has_oplock = answer.header.status == 0 && answer.first().word_count() >= 34;
  return has_oplock ? with_oplock(frame.bytes, Oplock::none) : frame.bytes;
}

}  // namespace longhaul::smb::smb1
