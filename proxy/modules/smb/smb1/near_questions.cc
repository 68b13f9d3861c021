// SPDX-License-Identifier: Apache-2.0
// See near_questions.h.
#include "proxy/modules/smb/smb1/near_questions.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/questions.h"

namespace longhaul::smb::smb1 {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxAnswers = 16;  // of one open
constexpr std::size_t kMaxAnswerBytes = 16 * 1024;
// As long as clients cache names without an oplock on their folder.
constexpr modules::Duration kPathLife = 1s, kRelaxedLife = 2s;

// A server compares names case-sensitively if the client requests it.
bool means(const Header& request, const FileName& name, const Open& open) {
  return name.exact && !name.stream && open.uid == request.uid && open.name == name &&
         (request.ignores_case() || open.name.spelled == name.spelled);
}

}  // namespace

// ---- queries sent with the open

void NearQuestions::opening(const Message& message, Answers answers) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  if (!pending || !pending->opening || message.is_chained()) return;
  using Ask = OpeningQuestions::Ask;
  // The free space depends on promised writes, and a query sent with the open does not wait for those.
  const bool volumes = promises_.waiting() == 0 && features_.metadata_relaxed;
  const Ask what = answers == Answers::no ? Ask::nothing
                   : volumes              ? Ask::also_about_volumes
                                          : Ask::about_files;
  for (const std::string& question : openings_.opening(message, what))
    out_.tell(
        Expect{number, static_cast<std::uint16_t>(Command::trans2), Slice::copy_of(as_bytes(question))});
}

void NearQuestions::opened(const Open* open, MessageNumber by) {
  auto opening = openings_.opened(by);
  if (!open) return;
  forget(open->key);
  File file{.generation = ++generations_};
  if (opening) {
    file.kind = opening->kind;
    file.pushed = std::move(opening->questions);
  }
  coming_.expect(open->key, file.pushed);
  files_.insert_or_assign(open->key, std::move(file));
}

bool NearQuestions::pushed(TimePoint now, const Answer& answer, const Slice& attached) {
  if (answer.command != static_cast<std::uint16_t>(Command::trans2) ||
      answer.request.size() != kQuestionBytes)
    return false;
  counters_.ahead_bytes += attached.size();
  if (NearVolumes::is_look(answer)) {
    volumes_.looked(answer, attached);
    return true;
  }
  const auto found = files_.find(answer.open);
  if (found == files_.end()) return true;
  const std::string question(as_text(answer.request.bytes()));
  const auto coming = coming_.take(answer.open, question);
  if (!coming) return true;
  const auto split = split_answer(attached.bytes());
  const bool good = answer.status == 0 && split;
  KnownAnswer known;
  if (good) known = known_answer(split->parameters, split->data, now);
  for (const ComingAnswers::Held& each : coming->held) {
    if (good) {
      give(each.header, known);
    } else {
      out_.pass_on(each.frame);
    }
  }
  const Open* open = connection_.open(answer.open);
  if (!good || coming->is_void || !open) return true;
  if (function_of(question) == Trans2::query_fs_information) {
    volumes_.fetched(*open, question, std::move(known));
  } else if (open->may_cache_writes() || coming->held.empty()) {
    found->second.answers.insert_or_assign(question, std::move(known));
  }
  return true;
}

// ---- queries of the client

bool NearQuestions::request(TimePoint now, const Frame& frame, const Message& message, Answers answers) {
  const auto part = parse_transaction(message, message.first());
  if (!part || message.is_chained()) return false;
  const auto question = question_of(*part);
  if (!question) return false;
  const auto function = static_cast<Trans2>(part->function);
  const bool by_path = function == Trans2::query_path_information;
  const FileName name =
      by_path ? file_name(message.header.tid, part->parameters.subspan(kPathAt), message.header.is_unicode())
              : FileName{};
  learn(message, *part, name, *question);  // in any case
  if (answers == Answers::no) return false;
  switch (function) {
    case Trans2::query_file_information:
      return about_file(now, frame, message, *question);
    case Trans2::query_path_information:
      return about_path(now, frame, message, name, *question);
    default:
      return about_volume(now, frame, message, *question);
  }
}

void NearQuestions::learn(const Message& message, const Transaction& part, const FileName& name,
                          const std::string& question) {
  const Header& header = message.header;
  const auto is_meant = [&](const OpenKey& key) {
    switch (function_of(question)) {
      case Trans2::query_file_information:
        return key == key_of(header.uid, header.tid, fid_of_question(part));
      case Trans2::query_path_information: {
        const Open* open = connection_.open(key);
        return open && is_of_file(level_of(question)) && means(header, name, *open);
      }
      default:
        return key.tree == header.tid;
    }
  };
  for (auto& [key, file] : files_)
    if (is_meant(key) && file.asked.size() < kMostAsked && file.asked.insert(question).second)
      openings_.asked(file.kind, question);
}

bool NearQuestions::about_file(TimePoint now, const Frame& frame, const Message& message,
                               const std::string& question) {
  const Open* open = connection_.open_of(message);
  const auto found = open ? files_.find(open->key) : files_.end();
  if (found == files_.end() || promises_.waiting(open->key) != 0) return false;
  File& file = found->second;
  if (coming_.hold(open->key, question, message.header, frame)) return true;
  const auto known = file.answers.find(question);
  if (known != file.answers.end()) {
    // Relaxed: changes that break no oplock of ours are not detected.
    const bool is_unseen = features_.metadata_relaxed && open->on_behalf;
    const bool holds = open->may_cache_writes() && open->is_guarded(features_) &&
                       (!is_unseen || now - known->second.came <= kRelaxedLife);
    const bool good = holds || (features_.metadata_relaxed && !open->break_pending &&
                                is_recent(now, known->second, round_trip_));
    if (good) give(message.header, known->second);
    if (!good || !holds) file.answers.erase(known);
    if (good) return true;
  }
  go(now, message.header, open->key, file.generation, question);
  return false;
}

bool NearQuestions::about_path(TimePoint now, const Frame& frame, const Message& message,
                               const FileName& name, const std::string& question) {
  const Header& header = message.header;
  for (const auto& [fid, open] : connection_.opens().all()) {
    if (!means(header, name, open) || !open.may_cache_writes() || !open.is_guarded(features_) ||
        promises_.waiting(open.key) != 0)
      continue;
    const auto file = files_.find(open.key);
    if (file == files_.end()) continue;
    if (coming_.hold(open.key, question, header, frame)) return true;
    const auto known = file->second.answers.find(question);
    if (known != file->second.answers.end() &&
        now - known->second.came <= (features_.metadata_relaxed ? kRelaxedLife : kPathLife)) {
      give(header, known->second);
      return true;
    }
    go(now, header, open.key, file->second.generation, question);
    return false;
  }
  return false;
}

bool NearQuestions::about_volume(TimePoint now, const Frame& frame, const Message& message,
                                 const std::string& question) {
  if (promises_.waiting() != 0) return false;
  const Header& header = message.header;
  if (const KnownAnswer* known = volumes_.find(now, header, question)) {
    give(header, *known);
    return true;
  }
  if (coming_.hold_in_tree(header, question, frame)) return true;
  go(now, header, std::nullopt, volumes_.generation(), question);
  return false;
}

void NearQuestions::go(TimePoint now, const Header& header, std::optional<OpenKey> open,
                       std::uint64_t generation, const std::string& question) {
  if (asked_.size() >= kMostQueries) return;
  asked_.insert_or_assign(number_of(header), Asked{open, generation, question, now});
}

void NearQuestions::give(const Header& header, const KnownAnswer& known) {
  for (Slice& frame : trans2_reply(header, 0, known.parameters.bytes(), known.data.bytes(),
                                   connection_.negotiated().max_answer_bytes()))
    out_.to_lan(std::move(frame));
  connection_.answered_here(number_of(header));
  counters_.ahead_used_bytes += known.data.size();
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
}

// ---- responses of the server

void NearQuestions::answered(TimePoint now, const Message& answer, const Pending& request) {
  auto asked = asked_.extract(number_of(request.header));
  if (!asked) return;
  const Asked& about = asked.mapped();
  const auto part = parse_transaction(answer, answer.first());
  if (answer.header.status != 0 || !part || !part->is_whole() || part->data.size() > kMaxAnswerBytes) return;
  KnownAnswer known = known_answer(part->parameters, part->data, now);
  if (!about.open) {
    if (promises_.waiting() == 0)
      volumes_.answered(request.header, about.question, about.sent, about.generation, std::move(known));
    return;
  }
  const auto file = files_.find(*about.open);
  const Open* open = connection_.open(*about.open);
  // Of another generation: stored responses became void meanwhile.
  if (file == files_.end() || !open || file->second.generation != about.generation ||
      !open->may_cache_writes() || file->second.answers.size() >= kMaxAnswers)
    return;
  file->second.answers.insert_or_assign(about.question, std::move(known));
}

// ---- invalidation

void NearQuestions::before_request(const Message& message) {
  if (volumes_.on_request(message, connection_)) coming_.drop_volumes();
}

void NearQuestions::after_answer(MessageNumber number) {
  if (volumes_.on_answer(number)) coming_.drop_volumes();
}

void NearQuestions::unheard() {
  if (!features_.metadata_relaxed) drop_volumes();
}

void NearQuestions::forget_answers(File& file) {
  file.answers.clear();
  file.generation = ++generations_;
}

void NearQuestions::drop_volumes() {
  volumes_.drop();
  coming_.drop_volumes();
}

void NearQuestions::drop(const OpenKey& key) {
  if (const auto found = files_.find(key); found != files_.end()) forget_answers(found->second);
  coming_.drop(key);
}

void NearQuestions::drop_same_file(const Open& open) {
  for (auto& [fid, other] : connection_.opens().all())
    if (may_be_same_file(open.name, other.name)) drop(other.key);
}

void NearQuestions::changed(const Open& open) {
  drop_same_file(open);
  drop_volumes();
}

void NearQuestions::changed() {
  for (auto& [key, file] : files_) forget_answers(file);
  coming_.drop_all();
  drop_volumes();
}

void NearQuestions::forget(const OpenKey& key) {
  auto found = files_.extract(key);
  if (!found) return;
  File& file = found.mapped();
  for (const std::string& question : file.pushed)
    if (!file.asked.contains(question)) openings_.in_vain(file.kind, question);
  for (const ComingAnswers::Held& each : coming_.forget(key)) out_.pass_on(each.frame);  // the server decides
}

}  // namespace longhaul::smb::smb1
