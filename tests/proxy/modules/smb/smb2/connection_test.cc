// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/connection.h"

#include <catch2/catch.hpp>
#include <set>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

constexpr std::uint32_t R = lease_state::read, W = lease_state::write, H = lease_state::handle;

FileId file(std::uint64_t number) { return {number, number << 32}; }

std::set<const Open*> which(const Changes& changes, Change::Kind kind) {
  std::set<const Open*> opens;
  for (const Change& change : changes)
    if (change.kind == kind) opens.insert(change.open);
  return opens;
}

// Whether what was read from this open holds no more.
bool voids(const Changes& changes, const Open& open) {
  return std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
    return change.kind == Change::Kind::voided && may_be_same_file(*change.file, *open.group);
  });
}

}  // namespace

TEST_CASE("a connection records the result of NEGOTIATE") {
  Connection connection;
  CHECK(connection.negotiated().dialect() == Dialect::none);
  connection.on_request(request(Command::negotiate, 0, negotiate_request_body(), {.session = 0, .tree = 0}));
  CHECK(connection.pending(0_message));
  connection.on_response(answer(Command::negotiate, 0, negotiate_answer_body(Dialect::smb_3_1_1)));
  CHECK_FALSE(connection.pending(0_message));
  CHECK(connection.negotiated().dialect() == Dialect::smb_3_1_1);
  CHECK(connection.negotiated().multi_credit());
  CHECK(connection.negotiated().max_read_bytes() == 1 << 20);
  CHECK(connection.negotiated().max_write_bytes() == 1 << 20);
  CHECK_FALSE(connection.sessions().any_untouchable());

  Connection old;
  connect(old, Dialect::smb_2_0_2);
  CHECK_FALSE(old.negotiated().multi_credit());
}

TEST_CASE("an answered CREATE makes an open file with the granted rights") {
  Connection connection;
  connect(connection);
  Open& open = open_file(connection, 3, "folder\\File.TXT",
                         {.file = file(1), .oplock = OplockLevel::batch, .end_of_file = 12'345},
                         {.oplock = OplockLevel::batch, .desired_access = access::read_data});
  CHECK(open.session == kSession);
  CHECK(open.tree == kTree);
  CHECK(open.caching == (R | W | H));
  CHECK(open.disk_file);
  CHECK_FALSE(open.directory);
  CHECK(open.end_of_file == 12'345);
  CHECK(open.may_read());
  CHECK_FALSE(open.may_write());
  CHECK_FALSE(open.write_through());
  CHECK(open.name.path == u"FOLDER\\FILE.TXT");
  CHECK(open.name.exact);
  CHECK(connection.open(key_of(kSession, kTree, file(1))) == &open);
  CHECK(file_of(open.key) == file(1));
  CHECK_FALSE(connection.open(file(2)));
  CHECK(connection.pending_count() == 0);
}

TEST_CASE("a failed CREATE leaves no open") {
  Connection connection;
  connect(connection);
  connection.on_request(create_request(3, "file"));
  const FileGroupRef file = connection.group_of({kTree, u"FILE"});
  CHECK(connection.being_opened(*file, 99_message));
  CHECK_FALSE(connection.being_opened(*file, 3_message));
  const auto outcome = connection.on_response(error(Command::create, 3, Status::object_name_not_found));
  CHECK(outcome.changes.empty());
  REQUIRE(outcome.answered.size() == 1);
  CHECK(outcome.answered[0].request.id == 3_message);
  CHECK(connection.opens().empty());
  CHECK_FALSE(connection.being_opened(*file, 99_message));
}

TEST_CASE("pipes, directories and reparse points are not disk files") {
  for (const ShareType type : {ShareType::pipe, ShareType::print}) {
    Connection connection;
    connect(connection, Dialect::smb_2_1, type);
    CHECK_FALSE(open_file(connection, 3, "srvsvc", {.file = file(1)}).disk_file);
  }
  Connection connection;
  connect(connection);
  Open& directory =
      open_file(connection, 3, "d", {.file = file(1), .attributes = file_attributes::directory});
  CHECK(directory.directory);
  CHECK_FALSE(directory.disk_file);
  CHECK_FALSE(open_file(connection, 4, "r", {.file = file(2), .attributes = file_attributes::reparse_point})
                  .disk_file);
  CHECK(open_file(connection, 5, "f", {.file = file(3)}).disk_file);
}

TEST_CASE("a break withdraws caching as soon as it is seen") {
  struct Sample {
    OplockLevel had, left;
    std::uint32_t caching;
    bool asks;
  };
  for (const auto& [had, left, caching, asks] :
       {Sample{OplockLevel::batch, OplockLevel::level_ii, R, true},
        Sample{OplockLevel::batch, OplockLevel::none, 0, true},
        Sample{OplockLevel::exclusive, OplockLevel::level_ii, R, true},
        Sample{OplockLevel::level_ii, OplockLevel::none, 0, false}}) {
    Connection connection;
    connect(connection);
    Open& open = open_file(connection, 3, "file", {.file = file(1), .oplock = had});
    Open& other = open_file(connection, 4, "other", {.file = file(2), .oplock = OplockLevel::batch});
    const auto outcome = connection.on_response(oplock_break(file(1), left));
    CHECK(which(outcome.changes, Change::Kind::broken) == std::set<const Open*>{&open});
    CHECK(open.caching == caching);
    CHECK(open.break_pending == asks);
    CHECK(other.caching == (R | W | H));
    CHECK_FALSE(other.break_pending);
    // A break of a file that was not opened here has no effect.
    CHECK(connection.on_response(oplock_break(file(9), OplockLevel::none)).changes.empty());
  }
}

TEST_CASE("a break ends when the server has answered its acknowledgement") {
  Connection connection;
  connect(connection);
  Open& open = open_file(connection, 3, "file", {.file = file(1), .oplock = OplockLevel::batch});
  connection.on_response(oplock_break(file(1), OplockLevel::level_ii));
  const OplockBreak acknowledgement{OplockLevel::level_ii, file(1)};
  connection.on_request(message_of(build_oplock_acknowledgement(
      {.message_id = 4_message, .tree_id = kTree, .session_id = kSession}, acknowledgement)));
  CHECK(open.break_pending);
  Body body([&](auto& out) { out.u16(24), out.u8(1), out.zeros(5), put(out, file(1)); });
  connection.on_response(answer(Command::oplock_break, 4, body));
  CHECK_FALSE(open.break_pending);
  CHECK(open.caching == R);
}

TEST_CASE("a lease is shared by all opens under its key, and a break affects all of them") {
  Connection connection;
  connect(connection);
  Lease lease{.state = R};
  lease.key[0] = std::byte{7};
  Open& first =
      open_file(connection, 3, "file", {.file = file(1), .oplock = OplockLevel::lease, .lease = lease});
  CHECK(first.caching == R);
  lease.state = R | W | H;
  Open& second =
      open_file(connection, 4, "file", {.file = file(2), .oplock = OplockLevel::lease, .lease = lease});
  CHECK(second.caching == (R | W | H));
  CHECK(first.caching == (R | W | H));
  CHECK(connection.is_shared(lease.key));
  const auto outcome = connection.on_response(lease_break(lease.key, R | W | H, R | H));
  CHECK(which(outcome.changes, Change::Kind::broken) == std::set<const Open*>{&first, &second});
  CHECK(first.caching == (R | H));
  CHECK(second.caching == (R | H));
  CHECK(first.break_pending);
  LeaseKey another{};
  CHECK(connection.on_response(lease_break(another, R | W, R)).changes.empty());
}

TEST_CASE("files are closed by CLOSE, TREE_DISCONNECT and LOGOFF, once the server confirms") {
  for (const Command command : {Command::close, Command::tree_disconnect, Command::logoff}) {
    Connection connection;
    connect(connection);
    const Open* open = &open_file(connection, 3, "file", {.file = file(1)});
    const Body body = command == Command::close ? close_request_body(file(1)) : empty_body();
    CHECK(which(connection.on_request(request(command, 4, body)), Change::Kind::closed).empty());
    REQUIRE(connection.open(file(1)));
    CHECK(connection.open(file(1))->closing);
    connection.on_response(error(command, 4, Status::insufficient_resources));
    REQUIRE(connection.open(file(1)));
    // A tree or session that could not be left is not worth anything new either.
    CHECK(connection.open(file(1))->closing == (command != Command::close));
    connection.on_request(request(command, 5, body));
    const auto outcome = connection.on_response(
        answer(command, 5, command == Command::close ? close_answer_body() : empty_body()));
    CHECK(which(outcome.changes, Change::Kind::closed) == std::set{open});
    CHECK(open->file == file(1));  // still good to look at
    CHECK(connection.opens().empty());
  }
}

TEST_CASE("a locally answered CLOSE closes the file") {
  Connection connection;
  connect(connection);
  const Open* open = &open_file(connection, 3, "file", {.file = file(1)});
  connection.on_request(request(Command::close, 4, close_request_body(file(1))));
  const auto outcome = connection.answered_here(4_message);
  CHECK(which(outcome.changes, Change::Kind::closed) == std::set{open});
  CHECK(connection.pending_count() == 0);
  CHECK(connection.opens().empty());
}

TEST_CASE("a logoff closes the files of its own session only") {
  Connection connection;
  connect(connection);
  open_file(connection, 3, "file", {.file = file(1)});
  const Of other{.session = 0x99, .tree = 5};
  connection.on_request(create_request(4, "file", {}, other));
  connection.on_response(
      answer(Command::create, 4, create_answer_body({.file = file(2)}), Status::success, other));
  connection.on_request(request(Command::logoff, 5, empty_body(), other));
  connection.on_response(answer(Command::logoff, 5, empty_body(), Status::success, other));
  CHECK(connection.open(file(1)));
  CHECK_FALSE(connection.open(file(2)));
}

TEST_CASE("a compound that opens, queries and closes leaves nothing open, and its elements know their file") {
  Connection connection;
  connect(connection);
  const Message create = create_request(3, "file");
  Body create_body([&](auto& out) { out.bytes(create.first().body()); });
  const Of related{.session = ~0ull, .tree = ~0u, .flags = header_flags::related};
  connection.on_request(
      compound({{request_header(Command::create, 3), create_body},
                {request_header(Command::query_info, 4, related),
                 query_info_request_body(kPreviousFile, file_info::all)},
                {request_header(Command::close, 5, related), close_request_body(kPreviousFile)}}));
  CHECK(connection.pending_count() == 3);
  REQUIRE(connection.pending(4_message));
  CHECK(connection.pending(4_message)->session == kSession);
  CHECK(connection.pending(4_message)->tree == kTree);
  CHECK(connection.pending(4_message)->in_compound);
  CHECK(connection.pending(3_message)->closed_in_compound);

  const auto outcome = connection.on_response(compound(
      {{answer_to(request_header(Command::create, 3), Status::success),
        create_answer_body({.file = file(1)})},
       {answer_to(request_header(Command::query_info, 4), Status::success), buffer_answer_body("all of it")},
       {answer_to(request_header(Command::close, 5), Status::success), close_answer_body()}}));
  REQUIRE(outcome.answered.size() == 3);
  CHECK(outcome.answered[1].request.file == file(1));
  REQUIRE(outcome.changes.size() == 2);
  CHECK(outcome.changes[0].kind == Change::Kind::opened);
  CHECK(outcome.changes[1].kind == Change::Kind::closed);
  CHECK(connection.opens().empty());
  CHECK(connection.pending_count() == 0);
}

TEST_CASE("a related element after one with its own file refers to that file") {
  Connection connection;
  connect(connection);
  open_file(connection, 3, "file", {.file = file(1)});
  const Of related{.session = ~0ull, .tree = ~0u, .flags = header_flags::related};
  connection.on_request(
      compound({{request_header(Command::write, 4), write_request_body(file(1), 0, "data")},
                {request_header(Command::flush, 5, related), flush_request_body(kPreviousFile)}}));
  REQUIRE(connection.pending(5_message));
  CHECK(connection.pending(5_message)->file == file(1));
}

TEST_CASE("a change to a file voids what was read of it, through each of its opens and no other file's") {
  struct Sample {
    Command command;
    Body body;
    bool voids;
  };
  const FileId f = file(1);
  const Sample samples[] = {
      {Command::write, write_request_body(f, 0, "x"), true},
      {Command::lock, lock_request_body(f), true},
      {Command::set_info, set_info_request_body(f, file_info::end_of_file), true},
      {Command::set_info, set_info_request_body(f, file_info::basic), true},
      {Command::ioctl, ioctl_request_body(0x000980C8, f), true},  // FSCTL_SET_ZERO_DATA
      {Command::ioctl, ioctl_request_body(fsctl::copychunk_write, f), true},
      {Command::ioctl, ioctl_request_body(fsctl::request_resume_key, f), false},
      {Command::flush, flush_request_body(f), false},
      {Command::read, read_request_body(f, 0, 10), false},
      {Command::query_info, query_info_request_body(f, file_info::standard), false},
  };
  for (const Sample& sample : samples) {
    INFO(name_of(sample.command));
    Connection connection;
    connect(connection);
    Open& open = open_file(connection, 3, "file", {.file = f});
    Open& again = open_file(connection, 4, "FILE:stream", {.file = file(2)});
    const Open& other = open_file(connection, 5, "another", {.file = file(3)});
    const Changes changes = connection.on_request(request(sample.command, 6, sample.body));
    CHECK(changes.size() == (sample.voids ? 1u : 0u));
    CHECK(voids(changes, open) == sample.voids);
    CHECK(voids(changes, again) == sample.voids);
    CHECK_FALSE(voids(changes, other));
    CHECK(open.is_locked() == (sample.command == Command::lock));
    CHECK(again.is_locked() == (sample.command == Command::lock));
    CHECK_FALSE(other.is_locked());
  }
}

TEST_CASE(
    "a CREATE that truncates voids what was read, and a change through an unknown file voids everything") {
  for (const Disposition disposition :
       {Disposition::supersede, Disposition::open, Disposition::create, Disposition::open_if,
        Disposition::overwrite, Disposition::overwrite_if}) {
    Connection connection;
    connect(connection);
    open_file(connection, 3, "file", {.file = file(1)});
    const Changes changes = connection.on_request(create_request(4, "File", {.disposition = disposition}));
    const bool truncates = disposition == Disposition::supersede || disposition == Disposition::overwrite ||
                           disposition == Disposition::overwrite_if;
    CHECK(changes.size() == (truncates ? 1u : 0u));
    CHECK(voids(changes, *connection.open(file(1))) == truncates);
  }
  Connection connection;
  connect(connection);
  open_file(connection, 3, "file", {.file = file(1)});
  open_file(connection, 4, "another", {.file = file(2)});
  const Changes changes =
      connection.on_request(request(Command::write, 5, write_request_body(file(77), 0, "x")));
  CHECK(voids(changes, *connection.open(file(1))));
  CHECK(voids(changes, *connection.open(file(2))));
}

TEST_CASE("a request is pending until its final answer, also after an interim one") {
  Connection connection;
  connect(connection);
  open_file(connection, 3, "file", {.file = file(1)});
  connection.on_request(request(Command::read, 4, read_request_body(file(1), 4096, 512), {.charge = 3}));
  const auto between = connection.on_response(interim(Command::read, 4, 88));
  REQUIRE(between.answered.size() == 1);
  CHECK(between.answered[0].interim);
  REQUIRE(connection.pending(4_message));
  CHECK(connection.pending(4_message)->async);
  CHECK(connection.pending(4_message)->async_id == 88);
  CHECK(connection.pending(4_message)->offset == 4096);
  CHECK(connection.pending(4_message)->length == 512);
  CHECK(connection.pending(4_message)->charge == 3);
  connection.on_request(request(Command::cancel, 4, empty_body()));  // takes no id of its own
  CHECK(connection.pending_count() == 1);
  const auto last = connection.on_response(error(Command::read, 4, Status::cancelled));
  REQUIRE(last.answered.size() == 1);
  CHECK_FALSE(last.answered[0].interim);
  CHECK(connection.pending_count() == 0);
  CHECK(connection.on_response(error(Command::read, 4, Status::cancelled)).answered.empty());
}

TEST_CASE("durable, reconnected and replayed handles are recognised") {
  Connection connection;
  connect(connection);
  const std::string zeros(48, '\0');
  const auto with_context = [&](std::string_view name, std::size_t bytes) {
    CreateRequest create;
    create.contexts.push_back({as_bytes(name), as_bytes(zeros).first(bytes)});
    return create;
  };
  const auto durable = with_context(create_context::durable, 16);
  CHECK_FALSE(open_file(connection, 3, "a", {.file = file(1)}).durable);
  CHECK_FALSE(open_file(connection, 4, "b", {.file = file(2)}, durable).durable);
  CHECK(open_file(connection, 5, "c", {.file = file(3), .durable = true}, durable).durable);
  Open& back =
      open_file(connection, 6, "d", {.file = file(4)}, with_context(create_context::durable_reconnect, 16));
  CHECK(back.reconnected);
  CHECK_FALSE(back.name.exact);
  connection.on_request(create_request(7, "e", {}, {.flags = header_flags::replay}));
  connection.on_response(answer(Command::create, 7, create_answer_body({.file = file(5)})));
  CHECK(connection.open(file(5))->replayed);
}

TEST_CASE("names that servers may treat as the same file are treated as the same") {
  const auto name = [](std::string_view text, TreeId tree = kTree) {
    const Message message = create_request(0, text);
    return file_name_of(tree, parse_create_request(message.first().bytes).value(), message.header());
  };
  CHECK(may_be_same_file(name("a\\b.txt"), name("A\\B.TXT")));
  CHECK(may_be_same_file(name("a\\b.txt"), name("a\\b.txt:stream")));
  CHECK_FALSE(may_be_same_file(name("a\\b.txt"), name("a\\c.txt")));
  CHECK_FALSE(may_be_same_file(name("a\\b.txt"), name("a\\b.txt2")));
  CHECK(may_be_same_file(name("LONGNA~1.TXT"), name("long name.txt")));
  CHECK(may_be_same_file(name("deep\\file", 1), name("file", 2)));
  CHECK_FALSE(may_be_same_file(name("file", 1), name("other", 2)));

  FileName upper{kTree, u"\u00C4"}, lower{kTree, u"\u00E4"}, ascii{kTree, u"A"};
  CHECK(may_be_same_file(upper, lower));
}

TEST_CASE("after a rename a file may have any name") {
  Connection connection;
  connect(connection);
  Open& open = open_file(connection, 3, "file", {.file = file(1)});
  Open& other = open_file(connection, 4, "target", {.file = file(2)});
  CHECK(other.group->count(&FileCounts::opens) == 1);
  connection.on_request(request(Command::set_info, 5, set_info_request_body(file(1), file_info::rename)));
  CHECK_FALSE(open.name.exact);
  CHECK(other.group->count(&FileCounts::opens) == 2);
}
