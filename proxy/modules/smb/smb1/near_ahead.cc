// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/near_ahead.h"

#include <algorithm>

namespace longhaul::smb::smb1 {
namespace {

// A name that a listing must contain, and that is not related to open files.
bool may_create(const Message& message) {
  return std::any_of(message.blocks.begin(), message.blocks.end(), [&](const Block& block) {
    if (block.command != Command::nt_create_andx) return block.command == Command::open_andx;
    const auto create = parse_nt_create_request(block, message.header);
    return !create || create->disposition != static_cast<std::uint32_t>(Disposition::open);
  });
}

}  // namespace

void NearAhead::on_surroundings() {
  questions_.on_surroundings(local_.surroundings());
  searches_.on_surroundings(local_.surroundings());
  reads_.on_surroundings();
}

bool NearAhead::read(TimePoint now, const Frame& frame, const Message& message) {
  const auto read = parse_read_request(message.first());
  if (!read) return false;
  const Header& header = message.header;
  const Open* open = connection_.open(key_of(header.uid, header.tid, read->fid));
  if (!open) return false;
  // A snapshot may be older than the data of this READ, for example in the end of the file.
  if (!open->may_cache_writes()) questions_.drop_same_file(*open);
  return reads_.request(now, frame, header, *read, *open);
}

bool NearAhead::search_or_query(TimePoint now, const Frame& frame, const Message& message) {
  if (message.header.command == Command::trans2 &&
      questions_.request(now, frame, message, questions_may_be_answered()))
    return true;
  return searches_.request(now, message, frame.bytes);
}

std::optional<Slice> NearAhead::look(TimePoint now, const Message& message) {
  if (!local_.may(&Features::metadata)) return std::nullopt;
  auto answer = looks_.take(now, message);
  if (!answer) return std::nullopt;
  ++counters_.round_trips_saved;
  ++counters_.metadata_answers;
  return answer;
}

void NearAhead::closing(const Open& open) {
  if (!open.looks) looks_.drop();
}

// The effect of a passing request on cached data. The server protects the data of files under exclusive
// oplocks: it breaks them before another handle changes the data. Attributes may be changed by any client.
void NearAhead::passes(const Message& message) {
  const Effect effect = effect_of(message);
  if (effect == Effect::file || effect == Effect::names || may_create(message)) searches_.changed();
  if (effect == Effect::none) return;
  looks_.drop();
  const Open* meant = connection_.open_of(message);
  questions_changed(message.is_chained() ? nullptr : meant);
  for (auto& [fid, open] : connection_.opens().all()) {
    const bool may_be_meant = meant == &open || message.is_chained();
    if (may_be_meant || open.oplock == Oplock::level2) reads_.drop(open);
  }
}

void NearAhead::written(const Open& open) {
  reads_.drop(open);
  questions_.changed(open);
  searches_.changed();
  looks_.drop();
}

void NearAhead::before_answer(TimePoint now, const Message& answer, const Pending* request) {
  searches_.answered(answer, request);
  if (request) questions_.answered(now, answer, *request);
}

// A response that crossed a change may be older than the change.
void NearAhead::after_answer(const Pending& request) {
  questions_.after_answer(number_of(request.header));
  if (request.effect == Effect::none) return;
  looks_.drop();
  searches_.changed();
  questions_changed(request.serial ? connection_.opens().find_serial(*request.serial) : nullptr);
}

// Null: it may have been any file.
void NearAhead::questions_changed(const Open* meant) {
  if (meant) {
    questions_.changed(*meant);
  } else {
    questions_.changed();
  }
}

void NearAhead::opened(const Open* open, MessageNumber by) {
  if (open) reads_.opened(open->key);
  questions_.opened(open, by);
}

void NearAhead::forget(const OpenKey& open) {
  reads_.forget(open);
  questions_.forget(open);
}

void NearAhead::given_up(const Open& open) {
  reads_.drop(open);
  changed_by_others(open.key);
}

void NearAhead::changed_by_others(const OpenKey& open) {
  questions_.drop(open);
  looks_.drop();
}

// The far half's information about watched opens is void.
void NearAhead::unheard() {
  looks_.drop();
  searches_.changed();
  questions_.unheard();
  for (auto& [fid, open] : connection_.opens().all()) {
    if (!open.watched) continue;
    reads_.drop(open);
    questions_.drop(open.key);
  }
}

void NearAhead::pushed(TimePoint now, const Answer& answer, const Slice& attached) {
  if (!searches_.pushed(now, answer, attached) && !looks_.pushed(now, answer, attached) &&
      !questions_.pushed(now, answer, attached))
    reads_.read_through(answer, attached);
}

void NearAhead::far_dropped(const Drop& drop) {
  reads_.far_dropped(drop);
  questions_.drop(drop.open);
  searches_.far_dropped(drop.open);
  looks_.drop();
}

}  // namespace longhaul::smb::smb1
