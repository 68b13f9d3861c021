// SPDX-License-Identifier: Apache-2.0
// See near_questions.h.
#include "proxy/modules/smb/smb1/near_questions.h"

#include <algorithm>

#include "proxy/modules/smb/smb1/builders.h"
#include "proxy/modules/smb/smb1/questions.h"
#include "proxy/modules/smb/smb1/volumes.h"
#include "proxy/modules/smb/volume_looks.h"

namespace longhaul::smb::smb1 {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxAnswers = 16;  // of one open, or of all volumes
constexpr std::size_t kMaxAnswerBytes = 16 * 1024;
// A snapshot is valid for as long as it would have been under way.
constexpr modules::Duration kLeastSnapshotLife = 100ms;
// As long as clients cache names without an oplock on their folder.
constexpr modules::Duration kPathLife = 1s, kRelaxedLife = 2s;

std::uint32_t volume_of(const Header& header) { return std::uint32_t{header.uid} << 16 | header.tid; }

QuestionHabits::Kind kind_of(const Message& message) {
  const auto create = parse_nt_create_request(message.first(), message.header);
  if (message.header.command != Command::nt_create_andx || !create) return QuestionHabits::Kind::data;
  if (create->options & kOptionDirectory) return QuestionHabits::Kind::directory;
  if (only_looks(*create)) return QuestionHabits::Kind::attributes;
  const auto disposition = static_cast<Disposition>(create->disposition);
  const bool keeps = disposition == Disposition::open || disposition == Disposition::open_if;
  return keeps ? QuestionHabits::Kind::data : QuestionHabits::Kind::emptied;
}

// A server compares names case-sensitively if the client asks for it.
bool means(const Header& request, const FileName& name, const Open& open) {
  return name.exact && !name.stream && open.uid == request.uid && open.name == name &&
         (request.ignores_case() || open.name.spelled == name.spelled);
}

// Linux's client identifies a file that it has created by the server's number ([MS-FSCC] 2.4.22), and queries
// that by path.
std::string usual_question() {
  constexpr std::uint16_t kFscInternal = 1006, kMostParameters = 2, kMostData = 4000;
  Buffer question;
  for (const std::uint16_t field :
       {static_cast<std::uint16_t>(Trans2::query_path_information), kFscInternal, kMostParameters, kMostData})
    append_field(question, field);
  return std::string(as_text(question));
}

}  // namespace

NearQuestions::NearQuestions(Outputs& out, Connection& connection, const Promises& promises,
                             modules::Counters& counters)
    : out_(out), connection_(connection), promises_(promises), counters_(counters) {
  habits_.asked(QuestionHabits::Kind::emptied, usual_question());
}

// ---- what is asked with the open

void NearQuestions::opening(const Message& message, Answers answers) {
  const MessageNumber number = number_of(message.header);
  const Pending* pending = connection_.pending(number);
  if (!pending || !pending->opening || message.is_chained() || opening_.size() >= kMostOpening) return;
  Opening opening{kind_of(message), {}};
  if (answers == Answers::yes) {
    for (std::string& question : habits_.likely(opening.kind)) {
      // The free space depends on promised writes, and a query sent with the open does not wait for those.
      if (function_of(question) == Trans2::query_fs_information &&
          (promises_.waiting() != 0 || !features_.metadata_relaxed))
        continue;
      out_.tell(
          Expect{number, static_cast<std::uint16_t>(Command::trans2), Slice::copy_of(as_bytes(question))});
      opening.questions.push_back(std::move(question));
    }
  }
  opening_.insert_or_assign(number, std::move(opening));
}

void NearQuestions::opened(const Open* open, MessageNumber by) {
  auto opening = opening_.extract(by);
  if (!open) return;
  forget(open->key);
  File file{.generation = ++generations_};
  if (opening) {
    file.kind = opening.mapped().kind;
    file.pushed = std::move(opening.mapped().questions);
  }
  for (const std::string& question : file.pushed) file.coming.emplace(question, Coming{});
  files_.insert_or_assign(open->key, std::move(file));
}

bool NearQuestions::pushed(TimePoint now, const Answer& answer, const Slice& attached) {
  if (answer.command != static_cast<std::uint16_t>(Command::trans2) ||
      answer.request.size() != kQuestionBytes)
    return false;
  counters_.ahead_bytes += attached.size();
  if (answer.open == volume_key(static_cast<std::uint16_t>(answer.open.session),
                                static_cast<std::uint16_t>(answer.open.tree))) {
    volume_told(answer, attached);
    return true;
  }
  const auto found = files_.find(answer.open);
  if (found == files_.end()) return true;
  const std::string question(as_text(answer.request.bytes()));
  auto coming = found->second.coming.extract(question);
  if (!coming) return true;
  const auto split = split_answer(attached.bytes());
  const bool good = answer.status == 0 && split;
  Known known{.came = now};
  if (good) {
    known.parameters = Slice::copy_of(split->parameters);
    known.data = Slice::copy_of(split->data);
  }
  holds_ -= coming.mapped().held.size();
  for (const HeldBack& each : coming.mapped().held) {
    if (good) {
      give(each.header, known);
    } else {
      out_.pass_on(each.frame);
    }
  }
  const Open* open = connection_.open(answer.open);
  if (!good || coming.mapped().is_void || !open) return true;
  if (function_of(question) == Trans2::query_fs_information) {
    if (volumes_.size() < kMaxAnswers)
      volumes_.insert_or_assign(Volume{std::uint32_t{open->uid} << 16 | open->tid, question},
                                std::move(known));
  } else if (open->may_cache_writes() || coming.mapped().held.empty()) {
    found->second.answers.insert_or_assign(question, std::move(known));
  }
  return true;
}

// ---- what the client asks

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
      habits_.asked(file.kind, question);
}

bool NearQuestions::about_file(TimePoint now, const Frame& frame, const Message& message,
                               const std::string& question) {
  const Open* open = connection_.open_of(message);
  const auto found = open ? files_.find(open->key) : files_.end();
  if (found == files_.end() || promises_.waiting(open->key) != 0) return false;
  File& file = found->second;
  if (const auto coming = file.coming.find(question);
      coming != file.coming.end() && !coming->second.is_void && may_hold(frame)) {
    coming->second.held.push_back({message.header, Slice::copy_of(frame.bytes.bytes())});
    ++holds_;
    return true;
  }
  const auto known = file.answers.find(question);
  if (known != file.answers.end()) {
    // Relaxed, nobody looks at what an oplock of ours does not show.
    const bool is_unseen = features_.metadata_relaxed && open->on_behalf;
    const bool holds = open->may_cache_writes() && open->is_guarded(features_) &&
                       (!is_unseen || now - known->second.came <= kRelaxedLife);
    const bool good =
        holds || (features_.metadata_relaxed && !open->break_pending && is_recent(now, known->second));
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
    if (const auto coming = file->second.coming.find(question);
        coming != file->second.coming.end() && !coming->second.is_void && may_hold(frame)) {
      coming->second.held.push_back({header, Slice::copy_of(frame.bytes.bytes())});
      ++holds_;
      return true;
    }
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
  const auto known = volumes_.find(Volume{volume_of(header), question});
  if (known != volumes_.end() &&
      (features_.metadata_relaxed ? is_recent(now, known->second)
                                  : known->second.watched && now - known->second.came <= kVolumeAnswers)) {
    give(header, known->second);
    return true;
  }
  for (auto& [key, file] : files_) {
    const auto coming = file.coming.find(question);
    if (key.session != header.uid || key.tree != header.tid || coming == file.coming.end() ||
        coming->second.is_void || !may_hold(frame))
      continue;
    coming->second.held.push_back({header, Slice::copy_of(frame.bytes.bytes())});
    ++holds_;
    return true;
  }
  go(now, header, std::nullopt, volume_generation_, question);
  return false;
}

void NearQuestions::go(TimePoint now, const Header& header, std::optional<OpenKey> open,
                       std::uint64_t generation, const std::string& question) {
  if (asked_.size() >= kMostOpening) return;
  asked_.insert_or_assign(number_of(header), Asked{open, generation, question, now});
}

void NearQuestions::give(const Header& header, const Known& known) {
  for (Slice& frame : trans2_reply(header, 0, known.parameters.bytes(), known.data.bytes(),
                                   connection_.negotiated().max_answer_bytes()))
    out_.to_lan(std::move(frame));
  connection_.answered_here(number_of(header));
  counters_.ahead_used_bytes += known.data.size();
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
}

bool NearQuestions::is_recent(TimePoint now, const Known& known) const {
  return now - known.came <= std::max(kLeastSnapshotLife, 2 * round_trip_);
}

// ---- what the server answers

void NearQuestions::answered(TimePoint now, const Message& answer, const Pending& request) {
  auto asked = asked_.extract(number_of(request.header));
  if (!asked) return;
  const Asked& about = asked.mapped();
  const auto part = parse_transaction(answer, answer.first());
  if (answer.header.status != 0 || !part || !part->is_whole() || part->data.size() > kMaxAnswerBytes) return;
  Known known{
      .parameters = Slice::copy_of(part->parameters), .data = Slice::copy_of(part->data), .came = now};
  if (!about.open) {
    if (!features_.metadata_relaxed) known.came = about.sent;
    if (volumes_.size() >= kMaxAnswers) volumes_.clear();
    if (about.generation == volume_generation_ && promises_.waiting() == 0)
      volumes_.insert_or_assign(Volume{volume_of(request.header), about.question}, std::move(known));
    return;
  }
  const auto file = files_.find(*about.open);
  const Open* open = connection_.open(*about.open);
  // Of another generation: known answers were voided meanwhile.
  if (file == files_.end() || !open || file->second.generation != about.generation ||
      !open->may_cache_writes() || file->second.answers.size() >= kMaxAnswers)
    return;
  file->second.answers.insert_or_assign(about.question, std::move(known));
}

// Only what the server has answered to the client since the last change is watched: reports from before that
// change have all arrived by then.
void NearQuestions::volume_told(const Answer& answer, const Slice& attached) {
  const auto uid = static_cast<std::uint16_t>(answer.open.session);
  const auto tid = static_cast<std::uint16_t>(answer.open.tree);
  const auto known =
      volumes_.find(Volume{std::uint32_t{uid} << 16 | tid, std::string(as_text(answer.request.bytes()))});
  if (known == volumes_.end() || features_.metadata_relaxed) return;
  const auto split = split_answer(attached.bytes());
  if (answer.status != 0 || !split) {
    volumes_.erase(known);
    return;
  }
  known->second.parameters = Slice::copy_of(split->parameters);
  known->second.data = Slice::copy_of(split->data);
  known->second.watched = true;
}

// ---- what holds no more

void NearQuestions::before_request(const Message& message) {
  if (!may_change_space(message, connection_)) return;
  if (changing_.size() < kMostOpening) changing_.insert(number_of(message.header));
  drop_volumes();
}

void NearQuestions::after_answer(MessageNumber number) {
  if (changing_.erase(number) != 0) drop_volumes();
}

void NearQuestions::unheard() {
  if (!features_.metadata_relaxed) drop_volumes();
}

void NearQuestions::drop(File& file) {
  file.answers.clear();
  file.generation = ++generations_;
  for (auto& [question, coming] : file.coming) coming.is_void = true;
}

void NearQuestions::drop_volumes() {
  volumes_.clear();
  ++volume_generation_;
  for (auto& [key, file] : files_) {
    for (auto& [question, coming] : file.coming)
      if (function_of(question) == Trans2::query_fs_information) coming.is_void = true;
  }
}

void NearQuestions::drop(const OpenKey& key) {
  if (const auto found = files_.find(key); found != files_.end()) drop(found->second);
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
  for (auto& [key, file] : files_) drop(file);
  drop_volumes();
}

void NearQuestions::forget(const OpenKey& key) {
  auto found = files_.extract(key);
  if (!found) return;
  File& file = found.mapped();
  for (const std::string& question : file.pushed)
    if (!file.asked.contains(question)) habits_.in_vain(file.kind, question);
  for (auto& [question, coming] : file.coming) {
    holds_ -= coming.held.size();
    for (const HeldBack& each : coming.held) out_.pass_on(each.frame);  // the server decides
  }
}

}  // namespace longhaul::smb::smb1
