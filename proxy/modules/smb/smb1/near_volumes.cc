// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_volumes.h"

#include "proxy/modules/smb/smb1/questions.h"
#include "proxy/modules/smb/smb1/volumes.h"
#include "proxy/modules/smb/volume_looks.h"

namespace longhaul::smb::smb1 {
namespace {

std::uint32_t volume_number(std::uint16_t uid, std::uint16_t tid) { return std::uint32_t{uid} << 16 | tid; }

}  // namespace

const KnownAnswer* NearVolumes::find(TimePoint now, const Header& query, const std::string& question) const {
  const auto found = known_.find(Volume{volume_number(query.uid, query.tid), question});
  if (found == known_.end()) return nullptr;
  const Known& known = found->second;
  const bool holds = features_.metadata_relaxed ? is_recent(now, known.answer, round_trip_)
                                                : known.watched && now - known.answer.came <= kVolumeAnswers;
  return holds ? &known.answer : nullptr;
}

void NearVolumes::answered(const Header& query, const std::string& question, TimePoint sent,
                           std::uint64_t generation, KnownAnswer known) {
  if (generation != generation_) return;
  if (!features_.metadata_relaxed) known.came = sent;
  if (known_.size() >= kMostAnswers) known_.clear();
  known_.insert_or_assign(Volume{volume_number(query.uid, query.tid), question}, Known{std::move(known)});
}

void NearVolumes::fetched(const Open& open, const std::string& question, KnownAnswer known) {
  if (known_.size() < kMostAnswers)
    known_.insert_or_assign(Volume{volume_number(open.uid, open.tid), question}, Known{std::move(known)});
}

bool NearVolumes::is_look(const Answer& answer) {
  return answer.open == volume_key(static_cast<std::uint16_t>(answer.open.session),
                                   static_cast<std::uint16_t>(answer.open.tree));
}

// Only what the server has answered to the client since the last change is watched: reports from before that
// change have all arrived by then.
void NearVolumes::looked(const Answer& answer, const Slice& attached) {
  const auto uid = static_cast<std::uint16_t>(answer.open.session);
  const auto tid = static_cast<std::uint16_t>(answer.open.tree);
  const auto found =
      known_.find(Volume{volume_number(uid, tid), std::string(as_text(answer.request.bytes()))});
  if (found == known_.end() || features_.metadata_relaxed) return;
  const auto split = split_answer(attached.bytes());
  if (answer.status != 0 || !split) {
    known_.erase(found);
    return;
  }
  KnownAnswer& known = found->second.answer;
  known = known_answer(split->parameters, split->data, known.came);
  found->second.watched = true;
}

bool NearVolumes::on_request(const Message& request, Connection& connection) {
  if (!may_change_space(request, connection)) return false;
  if (changing_.size() < kMostChanging) changing_.insert(number_of(request.header));
  drop();
  return true;
}

bool NearVolumes::on_answer(MessageNumber number) {
  if (changing_.erase(number) == 0) return false;
  drop();
  return true;
}

void NearVolumes::drop() {
  known_.clear();
  ++generation_;
}

}  // namespace longhaul::smb::smb1
