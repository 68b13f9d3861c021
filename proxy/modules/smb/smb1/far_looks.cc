// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_looks.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/looks.h"

namespace longhaul::smb::smb1 {

void FarLooks::request(const Message& message, const Slice& frame) {
  if (message.header.command != Command::nt_create_andx || message.is_chained() || stopped_ ||
      !features_.metadata || !connection_.is_ready() || creating_.size() >= kMostCreating)
    return;
  const auto create = parse_nt_create_request(message.first(), message.header);
  if (create && only_looks(*create) && create->disposition == static_cast<std::uint32_t>(Disposition::open))
    creating_.insert_or_assign(number_of(message.header), frame);
}

void FarLooks::answered(MessageNumber number, const Open* opened) {
  const auto request = creating_.extract(number);
  const Open* file = request && opened ? looked_at(connection_, *opened) : nullptr;
  if (!file || file->uid != opened->uid) return;
  if (!files_.contains(file->key) && files_.size() >= kMostFiles) return;
  File& looks = files_[file->key];
  if (looks.handles.empty() && looks.opening == 0) looks.frame = request.mapped();
  pump();
}

void FarLooks::pump() {
  for (auto& [key, file] : files_) {
    const Open* open = connection_.open(key);
    if (!open || open->closing || !open->may_cache_handle() || !open->is_guarded(features_) || stopped_)
      continue;
    while (file.handles.size() + file.opening < file.wanted && leg_.has_room()) this->open(key);
  }
}

void FarLooks::open(const OpenKey& key) {
  File& file = files_.at(key);
  ++file.opening;
  ++counters_.injected;
  leg_.send_renumbered(file.frame, {},
                       [this, key, epoch = epoch_, frame = file.frame](const Message& answer) {
                         opened(key, epoch, frame, answer);
                         return ServerLeg::Parts::last;
                       });
}

void FarLooks::opened(const OpenKey& key, std::uint32_t epoch, const Slice& frame, const Message& answer) {
  // It is an open of the connection like any other, but under ids of ours.
  auto request = parse_message(frame.bytes().subspan(kFrameHeadBytes));
  if (!request) return;
  const Slice asked = request_of_look(epoch, *request);
  request->header.pid = answer.header.pid;
  request->header.mid = answer.header.mid;
  connection_.on_request(*request);
  const auto answered = connection_.on_reply(answer);
  const auto found = epoch == epoch_ ? files_.find(key) : files_.end();
  if (found != files_.end()) --found->second.opening;
  if (!answered.opened) {
    if (found != files_.end()) found->second.wanted = 0;  // the server refuses, or it is one too many
    const Header& header = request->header;
    if (answered.untracked)
      close_at_server({kOwnPid, header.uid, header.tid, 0, header.flags2}, fid_of(*answered.untracked));
    return;
  }
  if (found == files_.end()) return close(answered.opened->key);
  found->second.handles.push_back(answered.opened->key);
  std::byte head[kFrameHeadBytes];
  write_frame_head(answer.all.size(), head);
  const Slice reply = Slice::joined(head, answer.all);
  counters_.ahead_bytes += reply.size();
  out_.tell(Answer{.open = key,
                   .command = static_cast<std::uint16_t>(Command::nt_create_andx),
                   .request = asked,
                   .response_bytes = static_cast<std::uint32_t>(reply.size())},
            reply);
}

// A handle is used: it now belongs to the client.
void FarLooks::taken(const Local& local) {
  for (auto& [key, file] : files_) {
    const auto handle = std::find_if(file.handles.begin(), file.handles.end(),
                                     [&](const OpenKey& each) { return smb1::fid_of(each) == local.charge; });
    if (handle == file.handles.end()) continue;
    file.handles.erase(handle);
    file.wanted = std::min(file.wanted * 2, kMostWanted);
    return pump();
  }
}

void FarLooks::near_dropped(std::uint32_t epoch) {
  epoch_ = epoch;
  const auto files = std::exchange(files_, {});
  for (const auto& [key, file] : files)
    for (const OpenKey& handle : file.handles) close(handle);
}

void FarLooks::close(const OpenKey& handle) {
  const auto open = connection_.close(handle);
  if (!open) return;  // with its tree or session
  close_at_server({kOwnPid, open->uid, open->tid, 0, open->flags2}, open->fid);
}

void FarLooks::close_at_server(const Ids& of, std::uint16_t fid) {
  leg_.send_renumbered(close_request(of, fid), {}, [](const Message&) { return ServerLeg::Parts::last; });
}

}  // namespace longhaul::smb::smb1
