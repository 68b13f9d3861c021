// SPDX-License-Identifier: Apache-2.0
// See far_volumes.h.
#include "proxy/modules/smb/smb1/far_volumes.h"

#include "proxy/modules/smb/smb1/questions.h"
#include "proxy/modules/smb/smb1/volumes.h"
#include "proxy/modules/smb/status.h"

namespace longhaul::smb::smb1 {

// The near half's stored responses become void, too, when it receives a change.
void FarVolumes::request(const Message& message) {
  const MessageNumber number = number_of(message.header);
  if (may_change_space(message, connection_)) {
    if (changing_.size() < kMostChanging) changing_.insert(number);
    looks_.forget();
  }
  if (message.header.command != Command::trans2 || message.is_chained() || !features_.metadata ||
      features_.metadata_relaxed || stopped_ || !connection_.is_ready() || asked_.size() >= kMostAsked)
    return;
  const auto part = parse_transaction(message, message.first());
  auto question = part ? question_of(*part) : std::nullopt;
  if (!question || function_of(*question) != Trans2::query_fs_information) return;
  flags2_ = message.header.flags2;
  asked_.insert_or_assign(number, std::move(*question));
}

void FarVolumes::answered(TimePoint now, const Message& answer, bool is_last) {
  const MessageNumber number = number_of(answer.header);
  if (is_last && changing_.erase(number) != 0) looks_.forget();
  const auto asked = asked_.extract(number);
  if (!asked || answer.header.status != 0 || stopped_) return;
  const auto part = parse_transaction(answer, answer.first());
  if (!part || !part->is_whole()) return;
  looks_.begin(now, volume_key(answer.header.uid, answer.header.tid),
               Slice::copy_of(as_bytes(asked.mapped())), joined_answer(part->parameters, part->data));
}

bool FarVolumes::ask(const VolumeLooks::Volume& volume, std::uint64_t number) {
  if (!leg_.has_room() || leg_.raw().under_way()) return false;
  const Bytes question = volume.question.bytes();
  ++counters_.injected;
  leg_.inject(
      static_cast<std::uint16_t>(volume.open.session), static_cast<std::uint16_t>(volume.open.tree), flags2_,
      std::nullopt,
      [&](const Ids& ids) {
        return trans2_request(ids, static_cast<std::uint16_t>(Trans2::query_fs_information),
                              question.subspan(2, 2), u16_at(question, 4), u16_at(question, 6));
      },
      [this, number](const Message& answer) {
        const auto part = parse_transaction(answer, answer.first());
        const bool good = answer.header.status == 0 && part && part->is_whole();
        looks_.answered(number,
                        good ? std::optional(joined_answer(part->parameters, part->data)) : std::nullopt);
        return ServerLeg::Parts::last;
      });
  return true;
}

void FarVolumes::tell(const VolumeLooks::Volume& volume, VolumeLooks::Answer answer) {
  const bool known = answer == VolumeLooks::Answer::known;
  const Slice attached = known ? volume.told : Slice{};
  counters_.ahead_bytes += attached.size();
  out_.tell(Answer{.open = volume.open,
                   .command = static_cast<std::uint16_t>(Command::trans2),
                   .status = known ? 0 : static_cast<std::uint32_t>(Status::pending),
                   .request = volume.question,
                   .response_bytes = static_cast<std::uint32_t>(attached.size())},
            attached);
}

}  // namespace longhaul::smb::smb1
