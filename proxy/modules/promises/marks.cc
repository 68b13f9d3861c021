// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/promises/marks.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "codecs/work.h"

namespace longhaul::promises {
namespace {

constexpr std::uint64_t kWorkPerMark = 5'000;
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
  text_.add(line(file, mark));
  something_new();
}

void Marks::drop(const File& file, const Mark& mark) {
  text_.end(line(file, mark));
  something_new();
}

// Its open has ended, or no more of its writes are promised. Losses are on record: the mark stays until the
// client was informed, because the record may not be on disk yet.
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
    put(target, mark->second);  // first, so that one of the two names is there at any time
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

void Marks::on_new(std::function<void()> call) {
  on_new_ = std::move(call);
  text_.keep(on_new_ != nullptr);
}

MarkLine Marks::line(const File& file, const Mark& mark) {
  return {.number = mark.number, .near = mark.near, .file = file};
}

modules::Journal::Batch Marks::take() {
  Batch batch = text_.take();
  on_its_way_ = last_number_;
  if (!text_.must_replace()) return batch;
  std::string all;
  for (const auto& [file, mark] : marks_) all += mark_line(line(file, mark));
  return text_.replace(lost_.number(), all);
}

void Marks::stored(bool done) {
  is_failing_ = !done;
  if (!done) text_.failed();
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
    if (const auto call = owner->on_news_) call();  // may end flows
  }
}

// Each remaining mark is a file of which it is unknown how many promised bytes have arrived.
bool Marks::restore(std::string_view text) {
  const auto left = read_marks(text);
  if (!left) return false;
  before_ = left->daemon;
  for (const auto& [number, mark] : left->marks) {
    const File& file = *mark.file;
    if (!lost_.has_record(file)) lost_.add(file, {.cause = Cause::interrupted, .near = mark.near});
    if (!lost_.has_record(file)) continue;  // too many
    const auto kept = marks_.emplace(file, Mark{.near = mark.near});
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
