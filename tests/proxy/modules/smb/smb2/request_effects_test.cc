// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/request_effects.h"

#include <catch2/catch.hpp>

#include "proxy/modules/smb/smb2/conversation.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

namespace {

constexpr FileId kSomeFile{3, 4};

RequestEffects effects_of_body(Command command, const Body& body) {
  const Message message = request(command, 1, body);
  return effects_of(message.first());
}

bool names_some_file(const RequestEffects& effects) {
  return effects.file && effects.file->has_value() && effects.file->value() == kSomeFile;
}

}  // namespace

TEST_CASE("a READ names a file and a range, and changes nothing") {
  const auto effects = effects_of_body(Command::read, read_request_body(kSomeFile, 70, 10));
  CHECK(names_some_file(effects));
  CHECK(effects.offset == 70);
  CHECK(effects.length == 10);
  CHECK_FALSE(effects.changes_file);
}

TEST_CASE("a WRITE changes the range of its data") {
  const auto effects = effects_of_body(Command::write, write_request_body(kSomeFile, 70, "data"));
  CHECK(names_some_file(effects));
  CHECK(effects.offset == 70);
  CHECK(effects.length == 4);
  CHECK(effects.changes_file);
  CHECK_FALSE(effects.locks);
}

TEST_CASE("a LOCK locks, and voids what was read before it") {
  const auto effects = effects_of_body(Command::lock, lock_request_body(kSomeFile));
  CHECK(names_some_file(effects));
  CHECK(effects.locks);
  CHECK(effects.changes_file);
}

TEST_CASE("CLOSE and FLUSH name a file and change nothing") {
  for (const Command command : {Command::close, Command::flush}) {
    const auto effects = effects_of_body(command, close_request_body(kSomeFile));
    CHECK(names_some_file(effects));
    CHECK_FALSE(effects.changes_file);
  }
}

TEST_CASE("an IOCTL changes its file unless it is known to be harmless") {
  const auto of = [](std::uint32_t code) {
    return effects_of_body(Command::ioctl, ioctl_request_body(code, kSomeFile));
  };
  CHECK_FALSE(of(fsctl::request_resume_key).changes_file);
  CHECK_FALSE(of(fsctl::pipe_transceive).changes_file);
  CHECK(of(0x98208).changes_file);
  CHECK_FALSE(of(0x98208).makes_durable);
  CHECK(of(fsctl::lmr_request_resiliency).makes_durable);
  // Not a FSCTL: its code means something else.
  const Body device([](auto& out) {
    out.u16(57), out.u16(0), out.u32(fsctl::request_resume_key), put(out, kSomeFile), out.zeros(32);
  });
  const auto effects = effects_of_body(Command::ioctl, device);
  CHECK(names_some_file(effects));
  CHECK(effects.changes_file);
}

TEST_CASE("a SET_INFO changes its file, and some classes give it a name") {
  const auto of = [](std::uint8_t info_class, InfoType type = InfoType::file) {
    Body body = set_info_request_body(kSomeFile, info_class);
    body.bytes[2] = std::byte(type);
    return effects_of_body(Command::set_info, body);
  };
  CHECK(names_some_file(of(file_info::basic)));
  CHECK(of(file_info::basic).changes_file);
  CHECK(of(file_info::basic).info_class == file_info::basic);
  CHECK_FALSE(of(file_info::basic).renames);
  CHECK(of(file_info::rename).renames);
  CHECK(of(file_info::rename_ex).renames);
  CHECK(of(file_info::link).renames);
  CHECK_FALSE(of(file_info::rename, InfoType::file_system).renames);
  CHECK(of(file_info::rename, InfoType::file_system).info_type == InfoType::file_system);
}

TEST_CASE("queries tell what they ask for") {
  const auto info = effects_of_body(Command::query_info, query_info_request_body(kSomeFile, 22));
  CHECK(names_some_file(info));
  CHECK(info.info_class == 22);
  CHECK_FALSE(info.changes_file);
  const auto lists = [](std::uint8_t flags) {
    const QueryDirectoryRequest query{.info_class = 37, .flags = flags, .file = kSomeFile};
    return effects_of(message_of(build_query_directory_request({}, query)).first());
  };
  CHECK(names_some_file(lists(0)));
  CHECK(lists(0).info_class == 37);
  CHECK_FALSE(lists(0).lists_afresh);
  CHECK_FALSE(lists(query_directory_flags::return_single_entry).lists_afresh);
  CHECK(lists(query_directory_flags::restart_scans).lists_afresh);
  CHECK(lists(query_directory_flags::reopen).lists_afresh);
}

TEST_CASE("a request that cannot be parsed is assumed to change its file if it may be one that does") {
  const Body nonsense([](auto& out) { out.u16(0), out.u16(0); });
  for (const Command command : {Command::close, Command::flush, Command::read, Command::query_directory,
                                Command::change_notify, Command::query_info}) {
    const auto effects = effects_of_body(command, nonsense);
    REQUIRE(effects.file);
    CHECK(effects.file->has_error());
    CHECK_FALSE(effects.changes_file);
  }
  for (const Command command : {Command::write, Command::lock, Command::ioctl, Command::set_info}) {
    const auto effects = effects_of_body(command, nonsense);
    REQUIRE(effects.file);
    CHECK(effects.file->has_error());
    CHECK(effects.changes_file);
    CHECK_FALSE(effects.renames);
  }
}

TEST_CASE("requests about sessions and trees name no file") {
  for (const Command command : {Command::negotiate, Command::session_setup, Command::logoff,
                                Command::tree_connect, Command::tree_disconnect, Command::echo}) {
    const auto effects = effects_of_body(command, empty_body());
    CHECK_FALSE(effects.file);
    CHECK_FALSE(effects.changes_file);
  }
}

TEST_CASE("what begins and validates sessions is signed whatever the session is like") {
  const auto ordinary = [](Command command, const Body& body) {
    const Message message = request(command, 1, body);
    return is_ordinary(message.first());
  };
  CHECK_FALSE(ordinary(Command::negotiate, negotiate_request_body()));
  CHECK_FALSE(ordinary(Command::session_setup, session_setup_request_body()));
  CHECK_FALSE(ordinary(Command::tree_connect, tree_connect_request_body()));
  CHECK_FALSE(ordinary(Command::logoff, empty_body()));
  CHECK_FALSE(ordinary(Command::ioctl, ioctl_request_body(fsctl::validate_negotiate_info)));
  CHECK(ordinary(Command::ioctl, ioctl_request_body(fsctl::request_resume_key)));
  CHECK(ordinary(Command::ioctl, empty_body()));
  CHECK(ordinary(Command::echo, empty_body()));
}
