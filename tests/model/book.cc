// SPDX-License-Identifier: Apache-2.0
// See book.h: to the product's records and back.
#include "tests/model/book.h"

#include <utility>
#include <vector>

#include "proxy/modules/promises/lost_writes.h"

namespace longhaul::model {
namespace {

using promises::Cause;
using promises::LostWrites;

LostWrites::File file_of(std::uint8_t client, std::uint8_t name) {
  LostWrites::File file{.share = u"SHARE", .path = name == 0 ? u"FILE" : u"OTHER"};
  file.ends.client[15] = std::byte{client};
  file.ends.server_port = 445;
  return file;
}

LostWrites::Loss loss_of(std::uint8_t suspected) {
  if (suspected == 0) return {.cause = Cause::server_gone};
  return {.cause = Cause::near_vanished, .near = suspected};
}

struct Loaded : LostWrites {
  explicit Loaded(const Book& book) {
    std::vector<Record> all;
    for (std::uint8_t name = 0; name < kNames; ++name)
      if (book.client[name] != 0)
        all.push_back({.file = file_of(book.client[name], name), .loss = loss_of(book.about[name])});
    if (!all.empty()) restore(std::move(all));
  }
};

Book store(const LostWrites& lost) {
  Book book;
  for (const LostWrites::Record& record : lost.records()) {
    const bool suspected = record.loss.cause == Cause::near_vanished;
    const unsigned name = record.file.path == u"FILE" ? 0 : 1;
    book.client[name] = std::to_integer<std::uint8_t>(record.file.ends.client[15]);
    book.about[name] = suspected ? static_cast<std::uint8_t>(record.loss.near) : std::uint8_t{0};
  }
  return book;
}

}  // namespace

void Book::add(std::uint8_t of_client, std::uint8_t suspected, std::uint8_t name) {
  Loaded lost(*this);
  lost.add(file_of(of_client, name), loss_of(suspected));
  *this = store(lost);
}

bool Book::has(std::uint8_t of_client, std::uint8_t name) const {
  return client[name] != 0 && Loaded(*this).has(file_of(of_client, name), LostWrites::Use::writes);
}

bool Book::has_any(std::uint8_t of_client) const {
  return *this != Book{} && Loaded(*this).has_records(file_of(of_client, 0).ends);
}

void Book::known_to(std::uint8_t near_run, std::uint8_t of_client, std::uint8_t name) {
  if (client[name] == 0) return;
  Loaded lost(*this);
  lost.known_to(near_run, file_of(of_client, name));
  *this = store(lost);
}

void Book::told(std::uint8_t of_client, std::uint8_t name) {
  if (client[name] == 0) return;
  Loaded lost(*this);
  (void)lost.take(file_of(of_client, name), LostWrites::Use::writes);
  *this = store(lost);
}

void Book::replaced(std::uint8_t of_client, std::uint8_t name) {
  if (client[name] == 0) return;
  Loaded lost(*this);
  lost.forget(file_of(of_client, name));
  *this = store(lost);
}

void Book::moved(std::uint8_t of_client) {
  if (*this == Book{}) return;
  Loaded lost(*this);
  lost.moved(file_of(of_client, 0), file_of(of_client, 1));
  *this = store(lost);
}

}  // namespace longhaul::model
