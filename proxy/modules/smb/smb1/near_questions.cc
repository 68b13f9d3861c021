// SPDX-License-Identifier: Apache-2.0
// The near half's answers to repeated QUERY_FILE_INFORMATION: while the client's or our exclusive oplock
// stands and nothing was changed through the handle, what the server said once holds.
#include "proxy/modules/smb/smb1/near.h"

namespace longhaul::smb::smb1 {

namespace {

constexpr std::size_t kMaxAnswers = 16;  // of one open

std::vector<std::byte> owned(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

bool Near::question(const Message& message) {
  const auto part = parse_transaction(message, message.first());
  if (!part || !part->is_whole() || static_cast<Trans2>(part->function) != Trans2::query_file_information ||
      !part->data.empty() || !features(&config::Features::smb_metadata))
    return false;
  const auto asked = parse_file_information(part->parameters);
  const Open* open = asked ? connection_.open_of(message) : nullptr;
  if (!open || !open->may_cache_writes() || promises_.waiting(open->key) != 0) return false;
  const MessageNumber number = number_of(message.header);
  const auto known = questions_.find(open->key);
  if (known != questions_.end()) {
    const auto found = known->second.answers.find(owned(part->parameters));
    if (found != known->second.answers.end() && found->second.second.size() <= part->max_data) {
      const auto& [parameters, data] = found->second;
      for (Slice& frame :
           trans2_reply(message.header, 0, parameters.bytes(), data.bytes(), connection_.max_answer_bytes()))
        out_.to_lan(std::move(frame));
      connection_.answered_here(number);
      ++counters_.round_trips_saved;
      ++counters_.metadata_answers;
      return true;
    }
  }
  // Of another generation when the answer comes: what is known was made void meanwhile.
  Questions& questions = questions_[open->key];
  if (questions.generation == 0) questions.generation = ++generation_;
  asked_.insert_or_assign(number, Question{open->key, questions.generation, owned(part->parameters)});
  return false;
}

void Near::remember(const Message& answer, const Pending& request) {
  const auto found = asked_.find(number_of(request.header));
  if (found == asked_.end()) return;
  Question asked = std::move(found->second);
  asked_.erase(found);
  const auto known = questions_.find(asked.open);
  const auto part = parse_transaction(answer, answer.first());
  if (known == questions_.end() || known->second.generation != asked.generation ||
      answer.header.status != 0 || !part || !part->is_whole() || part->data.size() > 0x4000 ||
      known->second.answers.size() >= kMaxAnswers)
    return;
  known->second.answers.insert_or_assign(
      std::move(asked.parameters), std::pair(Slice::copy_of(part->parameters), Slice::copy_of(part->data)));
}

}  // namespace longhaul::smb::smb1
