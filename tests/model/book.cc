// SPDX-License-Identifier: Apache-2.0
// See book.h: to the product's records and back.
#include "tests/model/book.h"

#include "proxy/modules/smb/module.h"

namespace longhaul::model {
namespace {

using smb::LostWrites;

LostWrites::File file_of(std::uint8_t client) {
  LostWrites::File file{.share = u"SHARE", .path = u"FILE"};
  file.ends.client[15] = std::byte{client};
  file.ends.server_port = 445;
  return file;
}

LostWrites::Loss loss_of(std::uint8_t suspected) {
  if (suspected == 0) return {.cause = smb::Cause::server_gone};
  return {.cause = smb::Cause::near_vanished, .near = suspected};
}

struct Loaded : LostWrites {
  explicit Loaded(const Book& book) {
    if (book.client != 0) restore({{.file = file_of(book.client), .loss = loss_of(book.about)}});
  }
};

Book store(const LostWrites& lost) {
  const auto records = lost.records();
  if (records.empty()) return {};
  const LostWrites::Record& record = records.back();
  const bool suspected = record.loss.cause == smb::Cause::near_vanished;
  return {std::to_integer<std::uint8_t>(record.file.ends.client[15]),
          suspected ? static_cast<std::uint8_t>(record.loss.near) : std::uint8_t{0}};
}

}  // namespace

void Book::add(std::uint8_t of_client, std::uint8_t suspected) {
  Loaded lost(*this);
  lost.add(file_of(of_client), loss_of(suspected));
  *this = store(lost);
}

bool Book::has(std::uint8_t of_client) const {
  return client != 0 && Loaded(*this).has(file_of(of_client), LostWrites::Use::writes);
}

void Book::known_to(std::uint8_t near_run, std::uint8_t of_client) {
  Loaded lost(*this);
  lost.known_to(near_run, file_of(of_client));
  *this = store(lost);
}

void Book::told(std::uint8_t of_client) {
  Loaded lost(*this);
  (void)lost.take(file_of(of_client), LostWrites::Use::writes);
  *this = store(lost);
}

void Book::replaced(std::uint8_t of_client) {
  Loaded lost(*this);
  lost.forget(file_of(of_client));
  *this = store(lost);
}

}  // namespace longhaul::model
