// SPDX-License-Identifier: Apache-2.0
// The file: what it is and the number of the daemon that wrote it, then lines that make a mark ("+") or end
// one ("-"), each with a checksum of its own, so that what a power cut tore damages nothing else.
#include "proxy/modules/promises/marks.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <tuple>
#include <utility>

#include "codecs/work.h"
#include "proxy/modules/promises/lost_book.h"

namespace longhaul::promises {
namespace {

constexpr std::uint64_t kWorkPerMark = 5'000;
constexpr std::string_view kMarksTitle = "longhaul promised-files 2 ";
constexpr std::string_view kMarksTitleBefore = "longhaul promised-files 1 ";  // names are not spelled
static_assert(kMarksTitle.size() == kMarksTitleBefore.size());
constexpr std::size_t kSumDigits = 16;
// So much of the file may be out of date before it is written anew.
constexpr std::size_t kLeastWaste = 64 << 10;

std::string sum_of(std::string_view text) {
  char digits[kSumDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return digits;
}

std::string with_sum(std::string text) {
  text += ' ';
  const std::string sum = sum_of(text);
  return std::move(text) + sum + '\n';
}

// The next line without its checksum; empty: it is damaged.
std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.size() <= kSumDigits) return {};
  const auto summed = line.substr(0, line.size() - kSumDigits);
  if (line.substr(summed.size()) != sum_of(summed)) return {};
  return summed.substr(0, summed.size() - 1);
}

}  // namespace

bool Marks::Before::operator()(const File& a, const File& b) const {
  const auto key = [](const File& file) { return std::tie(file.share, file.path); };
  const auto ends_a = any_port(a.ends), ends_b = any_port(b.ends);
  return ends_a != ends_b ? ends_a < ends_b : key(a) < key(b);
}

// ---- marks

bool Marks::has_room(const File& file) const {
  const auto client = of_client_.find(file.ends.client);
  return marks_.size() + lost_.waiting() < LostRecords::kMost &&
         name_bytes_ + lost_.name_bytes() + file.name_bytes() <= LostRecords::kMostNameBytes &&
         (client == of_client_.end() || client->second < kMostOfClient);
}

std::optional<Marks::All::iterator> Marks::add(const File& file, const OpenKey& open, std::uint64_t near,
                                               OpenMarks& owner) {
  count_work(kWorkPerMark);
  if (!has_room(file)) return std::nullopt;
  const auto mark =
      marks_.emplace(file, Mark{.near = near, .owner = &owner, .open = open, .durable = !on_new_});
  name_bytes_ += file.name_bytes();
  ++of_client_[file.ends.client];
  put(file, mark->second);
  if (on_new_) pending_.emplace(mark->second.number, mark);
  return mark;
}

void Marks::put(const File& file, Mark& mark) {
  mark.number = ++last_number_;
  const std::string text = line(file, mark);
  live_bytes_ += text.size();
  if (!on_new_) return;
  new_text_ += text;
  new_marks_ = true;
  something_new();
}

void Marks::drop(const File& file, const Mark& mark) {
  live_bytes_ -= line(file, mark).size();
  if (!on_new_) return;
  new_text_ += with_sum(mark_text({.number = mark.number}));
  something_new();
}

// Its open is over, or nothing is promised through it any more. What was lost is on record: the mark stays
// until the client was told, since the record may not be on disk yet.
void Marks::release(All::iterator mark) {
  mark->second.owner = nullptr;
  if (!lost_.has_record(mark->first)) erase(mark);
}

void Marks::erase(All::iterator mark) {
  count_work(kWorkPerMark);
  pending_.erase(mark->second.number);
  drop(mark->first, mark->second);
  name_bytes_ -= mark->first.name_bytes();
  const auto client = of_client_.find(mark->first.ends.client);
  if (--client->second == 0) of_client_.erase(client);
  marks_.erase(mark);
}

void Marks::record_gone(const File& file) {
  for (auto [each, end] = marks_.equal_range(file); each != end;) {
    const auto mark = each++;
    if (!mark->second.owner && mark->first.is_exactly(file)) erase(mark);
  }
}

void Marks::moved(const File& file, const File& to) {
  std::vector<All::iterator> all;
  for (auto [each, end] = marks_.equal_range(file); each != end; ++each) all.push_back(each);
  File below = file;
  below.path += u'\\';
  for (auto each = marks_.lower_bound(below); each != marks_.end() && name_after(each->first, file, to);
       ++each)
    all.push_back(each);
  for (const auto& each : all) {
    const Mark before = each->second;
    const File from = each->first;
    const File target = *name_after(from, file, to);
    if (name_bytes_ + lost_.name_bytes() + target.name_bytes() >
        LostRecords::kMostNameBytes + from.name_bytes()) {
      if (OpenMarks* owner = before.owner) owner->refuse(before.open);
      erase(each);
      continue;
    }
    pending_.erase(before.number);
    auto node = marks_.extract(each);
    name_bytes_ += target.name_bytes() - from.name_bytes();
    node.key() = target;
    const auto mark = marks_.insert(std::move(node));
    put(target, mark->second);  // first, so that at any time one of the two names is there
    drop(from, before);
    mark->second.durable = !on_new_;
    if (on_new_) pending_.emplace(mark->second.number, mark);
    if (OpenMarks* owner = mark->second.owner) {
      owner->marks_.at(before.open) = mark;
      owner->at_twin_.erase(before.open);
      if (mark->second.durable) owner->untold_.insert(before.open);
    }
  }
}

bool Marks::any(const modules::Ends& ends) const {
  const auto first = marks_.lower_bound(File{.ends = any_port(ends), .share = {}, .path = {}});
  return first != marks_.end() && any_port(first->first.ends) == any_port(ends);
}

// ---- the file

void Marks::something_new() {
  if (on_new_) on_new_();
}

void Marks::on_new(std::function<void()> call) { on_new_ = std::move(call); }

std::string Marks::line(const File& file, const Mark& mark) const {
  return with_sum(mark_text({.number = mark.number, .near = mark.near, .file = file}));
}

modules::Journal::Batch Marks::take() {
  Batch batch{.text = std::exchange(new_text_, {}), .durable = std::exchange(new_marks_, false)};
  on_its_way_ = last_number_;
  file_bytes_ += batch.text.size();
  if (!replace_ && file_bytes_ <= kLeastWaste + 2 * live_bytes_) return batch;
  replace_ = false;
  batch.place = Batch::Place::instead;
  batch.durable = true;
  batch.text = with_sum(std::string(kMarksTitle) + std::to_string(lost_.number()));
  for (const auto& [file, mark] : marks_) batch.text += line(file, mark);
  file_bytes_ = batch.text.size();
  return batch;
}

void Marks::stored(bool done) {
  is_failing_ = !done;
  replace_ |= !done;
  while (!pending_.empty() && pending_.begin()->first <= on_its_way_) {
    const auto mark = pending_.begin()->second;
    pending_.erase(pending_.begin());
    OpenMarks* owner = mark->second.owner;
    if (owner && std::ranges::find(to_wake_, owner) == to_wake_.end()) to_wake_.push_back(owner);
    if (done) {
      mark->second.durable = true;
      if (owner) owner->untold_.insert(mark->second.open);
    } else if (owner) {
      owner->refuse(mark->second.open);
      release(mark);
    }
  }
  while (!to_wake_.empty()) {
    OpenMarks* owner = to_wake_.back();
    to_wake_.pop_back();
    if (const auto call = owner->on_news_) call();  // which may end flows
  }
}

// Each mark that is left is a file of which nobody knows how much of what was promised has come.
bool Marks::restore(std::string_view text) {
  const std::string_view title = next_line(text);
  if (!title.starts_with(kMarksTitle) && !title.starts_with(kMarksTitleBefore)) return false;
  std::map<std::uint64_t, std::pair<File, std::uint64_t>> left;
  while (!text.empty()) {
    const auto found = parse_mark(next_line(text));
    if (!found) continue;
    // All of them: what ends a mark is behind others, and of a mark that moved to another name behind that.
    if (!found->file)
      left.erase(found->number);
    else
      left.emplace(found->number, std::pair(*found->file, found->near));
  }
  const auto digits = title.substr(kMarksTitle.size());
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), before_);
  for (const auto& [number, mark] : left) {
    const auto& [file, near] = mark;
    if (!lost_.has_record(file)) lost_.add(file, {.cause = Cause::interrupted, .near = near});
    if (!lost_.has_record(file)) continue;  // too many
    const auto kept = marks_.emplace(file, Mark{.near = near});
    name_bytes_ += file.name_bytes();
    ++of_client_[file.ends.client];
    put(file, kept->second);
  }
  return true;
}

// ---- one flow's

OpenMarks::~OpenMarks() {
  for (const auto& [open, mark] : std::exchange(marks_, {})) lost_->marks().release(mark);
  std::erase(lost_->marks().to_wake_, this);
}

void OpenMarks::mark(const OpenKey& open, const LostWrites::File& file, std::uint64_t near) {
  if (marks_.contains(open)) return;
  const auto mark = lost_->marks().add(file, open, near, *this);
  if (!mark) return refuse(open);
  refused_.erase(open);
  marks_.emplace(open, *mark);
  if ((*mark)->second.durable) untold_.insert(open);
}

void OpenMarks::unmark(const OpenKey& open) {
  at_twin_.erase(open);
  refused_at_twin_.erase(open);
  untold_.erase(open);
  refused_.erase(open);
  const auto found = marks_.extract(open);
  if (!found.empty()) lost_->marks().release(found.mapped());
}

void OpenMarks::refuse(const OpenKey& open) {
  marks_.erase(open);
  if (refused_.insert(open).second) untold_.insert(open);
}

OpenMarks::State OpenMarks::state(const OpenKey& open) const {
  const auto found = marks_.find(open);
  if (found == marks_.end()) return State::refused;
  if (found->second->second.durable) return State::durable;
  return lost_->marks().is_failing_ ? State::refused : State::pending;
}

std::vector<OpenMarks::News> OpenMarks::poll() {
  std::vector<News> news;
  for (const OpenKey& open : std::exchange(untold_, {}))
    if (const State now = state(open); now == State::durable || refused_.contains(open))
      news.push_back({.open = open, .is_marked = now == State::durable});
  return news;
}

}  // namespace longhaul::promises
