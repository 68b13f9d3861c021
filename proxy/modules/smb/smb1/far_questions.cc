// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/far_questions.h"

#include "proxy/modules/smb/smb1/questions.h"
#include "proxy/modules/smb/status.h"

namespace longhaul::smb::smb1 {

namespace {

DiskTree disk_tree(const Open& open) { return DiskTree{std::uint64_t{open.uid} << 16 | open.tid}; }

// [MS-CIFS] 2.2.8.2.3: SMB_QUERY_FS_SIZE_INFO, in the units of the user's quota if there is one.
constexpr std::uint16_t kQueryFsSize = 0x0103;
std::optional<std::uint64_t> free_bytes(const Message& answer) {
  if (answer.header.status != 0) return std::nullopt;
  const auto part = parse_transaction(answer, answer.first());
  if (!part || part->data.size() < 24) return std::nullopt;
  const std::uint64_t units = u64_at(part->data, 8);
  const std::uint64_t unit = std::uint64_t{u32_at(part->data, 16)} * u32_at(part->data, 20);
  if (unit != 0 && units > (1ull << 62) / unit) return 1ull << 62;
  return units * unit;
}

}  // namespace

void FarQuestions::expect(const Expect& expect) {
  if (expect.command != static_cast<std::uint16_t>(Command::trans2) || expected_.size() >= kMostOpening ||
      expect.request.size() != kQuestionBytes)
    return;
  auto& questions = expected_[expect.message];
  if (questions.size() < kMostQuestions) questions.push_back(expect.request);
}

void FarQuestions::opened(const Open& open, MessageNumber by) {
  const auto found = expected_.find(by);
  if (found == expected_.end()) return;
  for (const Slice& question : found->second) ask(open, question);
}

void FarQuestions::opened_untracked(const OpenKey& open, MessageNumber by) {
  const auto found = expected_.find(by);
  if (found == expected_.end()) return;
  for (const Slice& question : found->second) out_.tell(not_asked(open, question));
}

Answer FarQuestions::not_asked(const OpenKey& open, const Slice& question) {
  return {.open = open,
          .command = static_cast<std::uint16_t>(Command::trans2),
          .status = static_cast<std::uint32_t>(Status::pending),
          .request = question};
}

void FarQuestions::ask(const Open& open, const Slice& question) {
  Answer told = not_asked(open.key, question);
  if (!leg_.has_room()) return out_.tell(told);
  auto function = static_cast<Trans2>(u16_at(question.bytes(), 0));
  // A response about something that others may change unnoticed is useless.
  const bool guarded =
      function != Trans2::query_fs_information && open.may_cache_writes() && open.is_guarded(features_);
  if (!guarded && !features_.metadata_relaxed) return out_.tell(told);
  // A query by path is sent for the file that the path named when it was opened.
  if (function == Trans2::query_path_information && is_of_file(u16_at(question.bytes(), 2)))
    function = Trans2::query_file_information;
  Buffer parameters;
  if (function == Trans2::query_file_information) {
    append_field<std::uint16_t>(parameters, open.fid);
  } else if (function != Trans2::query_fs_information) {
    return out_.tell(told);
  }
  append(parameters, question.bytes().subspan(2, 2));
  ++counters_.injected;
  leg_.inject(
      open.uid, open.tid, open.flags2, open.key,
      [&](const Ids& ids) {
        return trans2_request(ids, static_cast<std::uint16_t>(function), parameters,
                              u16_at(question.bytes(), 4), u16_at(question.bytes(), 6));
      },
      [this, told, serial = open.serial](const Message& answer) mutable {
        const auto part = parse_transaction(answer, answer.first());
        const Open* asked = connection_.open(told.open);
        if (answer.header.status != 0 || !part || !part->is_whole() || !asked || asked->serial != serial) {
          out_.tell(told);
          return ServerLeg::Parts::last;
        }
        const Slice attached = joined_answer(part->parameters, part->data);
        told.status = 0;
        told.response_bytes = static_cast<std::uint32_t>(attached.size());
        counters_.ahead_bytes += attached.size();
        out_.tell(told, attached);
        return ServerLeg::Parts::last;
      });
}

void FarQuestions::ask_room(TimePoint now, const Open& open) {
  const DiskTree tree = disk_tree(open);
  if (stopped_ || !room_.ask_for(tree, now)) return;
  Buffer parameters;
  append_field<std::uint16_t>(parameters, kQueryFsSize);
  ++counters_.injected;
  leg_.inject(
      open.uid, open.tid, open.flags2, open.key,
      [&](const Ids& ids) {
        return trans2_request(ids, static_cast<std::uint16_t>(Trans2::query_fs_information), parameters, 0,
                              64);
      },
      [this, tree, uid = open.uid, tid = open.tid](const Message& answer) {
        if (const auto told = room_.answered(tree, free_bytes(answer)))
          out_.tell(Room{uid, tid, told->available_bytes, told->counted_bytes});
        return ServerLeg::Parts::last;
      });
}

void FarQuestions::written(TimePoint now, const Open& open, std::uint64_t length) {
  room_.written(disk_tree(open), length);
  ask_room(now, open);
}

}  // namespace longhaul::smb::smb1
