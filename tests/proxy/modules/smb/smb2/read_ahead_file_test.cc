// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/read_ahead_file.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"
#include "tests/proxy/modules/twin/numbers.h"

namespace longhaul::smb::smb2::test {
namespace {

constexpr std::uint64_t kFileBytes = 300'000;

Open open_to_read() {
  Open open;
  open.file = {1, 2};
  open.key = key_of(kSession, kTree, open.file);
  open.end_of_file = kFileBytes;
  return open;
}

struct FileAhead {
  ReadAheadFile::Came came(std::uint64_t number, std::string_view data, Status status = Status::success) {
    const Message message = status == Status::success ? answer(Command::read, 9, read_answer_body(data))
                                                      : error(Command::read, 9, status);
    return file.fetched(number, message.frame, message.first(), out);
  }
  std::vector<TwinMessage> told() {
    std::vector<TwinMessage> messages;
    while (auto output = out.poll())
      if (auto* message = std::get_if<modules::ToTwin>(&*output))
        messages.push_back(decode(message->message.bytes()).value());
    return messages;
  }
  Asked asked(std::uint64_t from, std::uint64_t to) const {
    return {.open = file.key(), .stamp = {}, .message = 5_number, .missing_from = from, .missing_to = to};
  }
  void swallow(test::AnyId id, const Asked& asked) {
    file.swallow(request(Command::read, id, read_request_body({1, 2}, asked.missing_from, 100)),
                 file.missing_of(asked));
  }
  ReadAheadFile::Sums sums;
  ReadAheadFile file{open_to_read(), {}, sums};
  Outputs out;
};

}  // namespace

TEST_CASE("fetched data goes to the near half in pieces and is missing no more") {
  FileAhead ahead;
  const std::string data(100'000, 'x');
  ahead.file.fetch(1, {0, data.size()});
  CHECK(ahead.came(1, data) == ReadAheadFile::Came::in_full);
  std::uint64_t end = 0;
  for (const TwinMessage& message : ahead.told()) {
    const auto& piece = std::get<Ahead>(message);
    CHECK(piece.offset == end);
    CHECK(piece.length <= 64 << 10);
    end += piece.length;
  }
  CHECK(end == data.size());
  CHECK(ahead.file.missing_of(ahead.asked(0, 100'000)).empty());
  CHECK_FALSE(ahead.file.missing_of(ahead.asked(0, 100'001)).empty());
}

TEST_CASE("an answer that was given up, or comes twice, is not pushed") {
  FileAhead ahead;
  ahead.file.fetch(1, {0, 4});
  CHECK(ahead.file.void_fetched().empty());
  CHECK(ahead.came(1, "data") == ReadAheadFile::Came::unexpected);
  CHECK(ahead.told().empty());
  CHECK(ahead.sums.ahead_bytes == 0);
}

TEST_CASE("a swallowed READ waits for what is fetched and is stranded without it") {
  FileAhead ahead;
  ahead.file.fetch(1, {0, 1000});
  ahead.file.fetch(2, {1000, 2000});
  const Asked asked = ahead.asked(500, 1500);
  CHECK(ahead.file.holes_in(ahead.file.missing_of(asked)).empty());
  CHECK_FALSE(ahead.file.holes_in(ahead.file.missing_of(ahead.asked(500, 2001))).empty());
  ahead.swallow(7, asked);
  CHECK(ahead.sums.swallowed == 1);
  CHECK(ahead.came(1, std::string(1000, 'x')) == ReadAheadFile::Came::in_full);
  CHECK(ahead.file.take_stranded().empty());  // the rest is on its way
  CHECK(ahead.came(2, {}, Status::file_lock_conflict) == ReadAheadFile::Came::in_part);
  const auto stranded = ahead.file.take_stranded();
  REQUIRE(stranded.size() == 1);
  CHECK(stranded[0].header().message_id == 7_message);
  CHECK(ahead.sums.swallowed == 0);
  CHECK_FALSE(ahead.file.is_usable());  // the client must get that error itself
}

TEST_CASE("a short answer is the end of the file, and answers the READs beyond it") {
  FileAhead ahead;
  ahead.file.fetch(1, {0, 1000});
  ahead.swallow(7, ahead.asked(0, 1000));
  CHECK(ahead.came(1, "data") == ReadAheadFile::Came::in_part);
  CHECK(ahead.file.take_stranded().empty());
  CHECK(ahead.sums.swallowed == 0);
  const auto told = ahead.told();
  REQUIRE(told.size() == 1);
  CHECK(std::get<Ahead>(told[0]).end_of_file == 4);
  CHECK(ahead.file.is_usable());
}

TEST_CASE("a file that is shorter than at its open is not read ahead any more") {
  FileAhead ahead;
  ahead.file.fetch(1, {1000, 2000});
  CHECK(ahead.came(1, {}, Status::end_of_file) == ReadAheadFile::Came::in_part);
  CHECK_FALSE(ahead.file.is_usable());

  FileAhead behind_the_end;
  behind_the_end.file.fetch(1, {kFileBytes, kFileBytes + 1000});
  CHECK(behind_the_end.came(1, {}, Status::end_of_file) == ReadAheadFile::Came::in_part);
  CHECK(behind_the_end.file.is_usable());
}

TEST_CASE("more data than was asked for is not passed on") {
  FileAhead ahead;
  ahead.file.fetch(1, {0, 3});
  CHECK(ahead.came(1, "data") == ReadAheadFile::Came::in_part);
  CHECK(ahead.told().empty());
  CHECK_FALSE(ahead.file.is_usable());
}

TEST_CASE("a READ at the server is announced before data that could answer it, once") {
  FileAhead ahead;
  ahead.file.sent_on(7_message);
  ahead.file.sent_on(8_message);
  ahead.file.answered_by_server(8_message);
  for (const std::uint64_t number : {1, 2}) {
    ahead.file.fetch(number, {0, 4});
    ahead.came(number, "data");
  }
  const auto told = ahead.told();
  REQUIRE(told.size() == 3);
  CHECK(std::get<Forwarded>(told[0]).message == 7_number);
  CHECK(std::holds_alternative<Ahead>(told[1]));
  CHECK(std::holds_alternative<Ahead>(told[2]));
}

TEST_CASE("data and READs of another stamp do not meet") {
  FileAhead ahead;
  ahead.file.fetch(1, {0, 4});
  ahead.came(1, "data");
  CHECK(ahead.file.may_swallow({}));
  CHECK(ahead.file.drop().epoch == 1);
  CHECK_FALSE(ahead.file.may_swallow({}));
  Asked asked = ahead.asked(0, 4);
  asked.stamp = {.far = 1};
  CHECK(ahead.file.may_swallow(asked.stamp));
  CHECK_FALSE(ahead.file.missing_of(asked).empty());
  ahead.file.near_dropped(3);
  CHECK_FALSE(ahead.file.may_swallow(asked.stamp));
}

TEST_CASE("what was fetched in vain is known when the file is closed") {
  FileAhead ahead;
  const auto range = ahead.file.next({});
  REQUIRE(range);
  ahead.file.fetch(1, *range);
  ahead.came(1, std::string(range->size(), 'x'));
  CHECK(ahead.file.closed().was_pushed);
  CHECK(ahead.file.closed().unread_bytes == range->size());
  CHECK(ahead.file.closed().size == kFileBytes);
  ahead.file.on_read(0, range->size(), {});
  CHECK(ahead.file.closed().unread_bytes == 0);
}

}  // namespace longhaul::smb::smb2::test
