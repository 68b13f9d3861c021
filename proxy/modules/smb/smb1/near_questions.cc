// SPDX-License-Identifier: Apache-2.0
// The near half's answers to repeated QUERY_FILE_INFORMATION: while the client's or our exclusive oplock
// stands and nothing was changed through the handle, what the server said once holds.
#include "proxy/modules/smb/smb1/fields.h"
#include "proxy/modules/smb/smb1/near.h"

namespace longhaul::smb::smb1 {

namespace {

constexpr std::size_t kMaxAnswers = 16;  // of one open

std::vector<std::byte> owned(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// Level, and how much may come: what is told with Expect.
Slice without_file(const Transaction& part) {
  Buffer question;
  append(question, part.parameters.subspan(2, 2));
  append_field<std::uint16_t>(question, static_cast<std::uint16_t>(part.max_parameters));
  append_field<std::uint16_t>(question, static_cast<std::uint16_t>(part.max_data));
  return Slice::copy_of(question);
}

bool equal(const Slice& a, const Slice& b) { return as_text(a.bytes()) == as_text(b.bytes()); }

}  // namespace

// A client that asked something about the file it had opened last will ask it about the next one.
void Near::expect(const Message& message) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  if (habit_.empty() || !pending || !pending->opening || message.is_chained() ||
      !features(&config::Features::smb_metadata))
    return;
  expecting_.insert_or_assign(number, habit_);
  out_.tell(Expect{number, static_cast<std::uint16_t>(Command::trans2), habit_});
}

bool Near::expected(const Answer& answer, const Slice& attached) {
  if (answer.command != static_cast<std::uint16_t>(Command::trans2)) return false;
  std::vector<HeldBack> held;
  if (const auto waiting = held_.find(answer.open); waiting != held_.end()) {
    held = std::move(waiting->second);
    held_.erase(waiting);
  }
  const auto split = split_answer(attached.bytes());
  const bool good = answer.status == 0 && split && answer.request.size() == kQuestionBytes;
  const Slice parameters = good ? Slice::copy_of(split->parameters) : Slice{};
  const Slice data = good ? Slice::copy_of(split->data) : Slice{};
  if (const auto found = questions_.find(answer.open);
      found != questions_.end() && !found->second.coming.empty()) {
    found->second.coming = {};
    Buffer asked;
    append_field<std::uint16_t>(asked, smb1::fid_of(answer.open));
    if (good) {
      append(asked, answer.request.bytes().first(2));
      found->second.answers.insert_or_assign(owned(asked), std::pair(parameters, data));
    }
  }
  for (const HeldBack& each : held) {
    if (good) {
      give_answer(each.header, parameters, data);
    } else {
      out_.pass_on(each.frame);
    }
  }
  return true;
}

void Near::give_answer(const Header& header, const Slice& parameters, const Slice& data) {
  for (Slice& frame :
       trans2_reply(header, 0, parameters.bytes(), data.bytes(), connection_.max_answer_bytes()))
    out_.to_lan(std::move(frame));
  connection_.answered_here(number_of(header));
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
}

bool Near::question(const Frame& frame, const Message& message) {
  const auto part = parse_transaction(message, message.first());
  if (!part || !part->is_whole() || static_cast<Trans2>(part->function) != Trans2::query_file_information ||
      !part->data.empty() || !features(&config::Features::smb_metadata))
    return false;
  const auto asked = parse_file_information(part->parameters);
  const Open* open = asked ? connection_.open_of(message) : nullptr;
  if (!open || promises_.waiting(open->key) != 0) return false;
  const MessageNumber number = number_of(message.header);
  const Slice question = without_file(*part);
  habit_ = question;
  const auto known = questions_.find(open->key);
  if (known != questions_.end() && !known->second.coming.empty() && equal(known->second.coming, question)) {
    held_[open->key].push_back({message.header, frame.bytes});
    return true;
  }
  if (!open->may_cache_writes()) return false;
  if (known != questions_.end()) {
    const auto found = known->second.answers.find(owned(part->parameters));
    if (found != known->second.answers.end() && found->second.second.size() <= part->max_data) {
      give_answer(message.header, found->second.first, found->second.second);
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
