// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/order_scope.h"

#include <catch2/catch.hpp>

#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {
namespace {

using ScopeKind = OrderScope::Kind;

struct ScopedConnection {
  ScopedConnection() {
    connect(connection);
    open_file(connection, 3, "f", {.file = {1, 2}});
  }
  OrderScope of(const Message& message) {
    connection.on_request(message);
    return order_scope_of(message, connection);
  }
  const FileGroup* file() { return connection.open(FileId{1, 2})->group.get(); }
  Connection connection;
  FileId id{1, 2};
};

}  // namespace

TEST_CASE("a WRITE waits for promises in its range, a READ also for those before it ends") {
  ScopedConnection scoped;
  const OrderScope write = scoped.of(request(Command::write, 10, write_request_body({1, 2}, 100, "data")));
  CHECK(write.kind == ScopeKind::range);
  CHECK(write.file.get() == scoped.file());
  CHECK(write.offset == 100);
  CHECK(write.length == 4);
  CHECK_FALSE(write.is_barrier());
  const OrderScope read = scoped.of(request(Command::read, 11, read_request_body({1, 2}, 100, 4)));
  CHECK(read.kind == ScopeKind::range);
  CHECK(read.offset == 100);
  CHECK(read.length > std::uint64_t{1} << 62);  // a WRITE behind it may move the end of the file
}

TEST_CASE("requests on a file wait for its promises alone") {
  ScopedConnection scoped;
  const Message requests[] = {
      request(Command::close, 10, close_request_body({1, 2})),
      request(Command::flush, 11, flush_request_body({1, 2})),
      request(Command::lock, 12, lock_request_body({1, 2})),
      request(Command::query_info, 13, query_info_request_body({1, 2}, file_info::standard)),
      request(Command::set_info, 14, set_info_request_body({1, 2}, file_info::end_of_file)),
      create_request(15, "F")};
  for (const Message& message : requests) {
    const OrderScope scope = scoped.of(message);
    CHECK(scope.kind == ScopeKind::file);
    CHECK(scope.file.get() == scoped.file());
  }
}

TEST_CASE("renames, other IOCTLs, ends of sessions and compounds wait for everything") {
  ScopedConnection scoped;
  const Message requests[] = {
      request(Command::set_info, 10, set_info_request_body({1, 2}, file_info::rename)),
      request(Command::ioctl, 11, ioctl_request_body(fsctl::copychunk, {1, 2})),
      request(Command::logoff, 12, empty_body()),
      compound({{request_header(Command::flush, 13), flush_request_body({1, 2})},
                {request_header(Command::flush, 14), flush_request_body({1, 2})}})};
  for (const Message& message : requests) CHECK(scoped.of(message).is_barrier());
  // A file that is not known may be any.
  CHECK(scoped.of(request(Command::flush, 20, flush_request_body({7, 7}))).is_barrier());
}

TEST_CASE("a look waits for the promises of its file alone") {
  ScopedConnection scoped;
  CreateRequest create;
  create.desired_access = access::read_attributes;
  create.disposition = Disposition::open;
  const Slice opens = create_request(10, "file", create).frame.bytes;
  const Of related{.flags = header_flags::related};
  const OrderScope scope = scoped.of(
      compound({{request_header(Command::create, 10),
                 Body([&](auto& out) { out.bytes(opens.bytes().subspan(kFrameHeadBytes + kHeaderBytes)); })},
                {request_header(Command::query_info, 11, related),
                 query_info_request_body(kPreviousFile, file_info::all)},
                {request_header(Command::close, 12, related), close_request_body(kPreviousFile)}}));
  CHECK(scope.kind == ScopeKind::file);
  CHECK_FALSE(scope.is_barrier());
  CHECK(scope.file.get() == scoped.connection.pending(10_message)->opening->group.get());
}

TEST_CASE("requests about no file wait for nothing") {
  ScopedConnection scoped;
  CHECK(scoped.of(request(Command::echo, 10, empty_body())).kind == ScopeKind::nothing);
  CHECK(scoped.of(request(Command::tree_connect, 11, tree_connect_request_body())).kind ==
        ScopeKind::nothing);
}

}  // namespace longhaul::smb::smb2::test
