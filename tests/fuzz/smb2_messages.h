// SPDX-License-Identifier: Apache-2.0
// SMB2 messages, and what the halves tell each other, with contents that an input chooses; small numbers, so
// that messages meet, and now and then sizes as large as the protocol allows. In which order they come is the
// fuzz targets'.
#pragma once
#include <string>
#include <utility>

#include "fuzz/choices.h"
#include "proxy/modules/smb/smb2/conversation.h"
#include "proxy/modules/smb/twin_messages.h"

namespace longhaul::fuzz {

using namespace longhaul::smb;
using namespace longhaul::smb::smb2;
using namespace longhaul::smb::smb2::test;

inline FileId some_file(Choices& choices) {
  const unsigned n = choices.below(6);
  return n == 5 ? kPreviousFile : FileId{n, 100 + n};
}

// ---- the client

inline Body query_directory_body(Choices& choices, const FileId& file) {
  return Body([&](auto& out) {
    out.u16(33), out.u8(file_info::id_both_directory), out.u8(choices.below(2) ? 1 : 0), out.u32(0);
    put(out, file), out.u16(kHeaderBytes + 32), out.u16(2), out.u32(choices.byte() * 300u), out.u16('*');
  });
}
inline Body create_body(Choices& choices) {
  static constexpr OplockLevel levels[] = {OplockLevel::none, OplockLevel::none, OplockLevel::level_ii,
                                           OplockLevel::exclusive, OplockLevel::batch};
  static constexpr std::string_view names[] = {"a", "b", "A", "folder\\a", "a:stream", ""};
  std::string name = utf16(names[choices.below(6)]);
  if (choices.below(32) == 31) name.append(std::min<std::size_t>(some_size(choices), 60'000) / 2 * 2, 'n');
  CreateRequest create{.oplock = levels[choices.below(5)],
                       .desired_access = choices.below(4)   ? 0x12019fu
                                         : choices.below(2) ? 0x80u
                                                            : 0x120089u,
                       .share_access = 7,
                       .disposition = static_cast<Disposition>(choices.below(8) ? 1 : choices.below(7)),
                       .options = choices.below(8) ? 0u : 1u << choices.below(14),
                       .name = as_bytes(name)};
  const std::string zeros(40, '\0');
  if (choices.below(8) == 7)
    create.contexts.push_back({as_bytes(create_context::durable), as_bytes(zeros).first(16)});
  if (choices.below(64) == 63)
    create.contexts.assign(20'000, {as_bytes(create_context::maximal_access), Bytes{}});
  const Slice frame = build_create_request({}, create);
  return Body([&](auto& out) { out.bytes(frame.bytes().subspan(kFrameHeadBytes + kHeaderBytes)); });
}

inline std::pair<Command, Body> some_request(Choices& choices) {
  const FileId file = some_file(choices);
  switch (choices.below(16)) {
    case 0:
    case 1:
    case 2:
      return {Command::read,
              read_request_body(file, choices.number() % (1ull << 60), choices.below(40) * 1000u)};
    case 3:
    case 4:
      return {Command::write, write_request_body(file, choices.byte() * 100u, as_text(choices.some(40)),
                                                 choices.below(16) == 15)};
    case 5:
      return {Command::close, close_request_body(file)};
    case 6:
      return {Command::flush, flush_request_body(file)};
    case 7:
      return {Command::lock, lock_request_body(file)};
    case 8:
      return {Command::query_info,
              query_info_request_body(file, static_cast<std::uint8_t>(choices.below(40)))};
    case 9:
      return {Command::set_info, set_info_request_body(file, static_cast<std::uint8_t>(choices.below(40)))};
    case 10:
      return {Command::query_directory, query_directory_body(choices, file)};
    case 11:
      return {Command::ioctl,
              ioctl_request_body(choices.below(2) ? fsctl::copychunk : fsctl::pipe_peek, file)};
    case 12:
      return {Command::oplock_break, Body([&](auto& out) {
                out.u16(24), out.u8(static_cast<std::uint8_t>(choices.below(2))), out.zeros(5),
                    put(out, file);
              })};
    case 13: {
      static constexpr Command commands[] = {Command::echo, Command::cancel, Command::tree_disconnect,
                                             Command::logoff};
      return {commands[choices.below(4)], empty_body()};
    }
    default:
      return {Command::create, create_body(choices)};
  }
}

// ---- the server

// [MS-FSCC] 2.4.8: some entries.
inline std::string listing(Choices& choices) {
  std::string text;
  for (unsigned entries = 1 + choices.below(4); entries > 0; --entries) {
    std::string entry(104, '\0');
    entry[60] = 2;
    entry += std::string("n\0", 2);
    if (entries > 1) {
      entry.resize(112, '\0');
      entry[0] = 112;
    }
    text += entry;
  }
  return text;
}

inline Body answer_body(Choices& choices, Command command) {
  switch (command) {
    case Command::negotiate:
      return negotiate_answer_body(Dialect::smb_2_1);
    case Command::session_setup:
      return session_setup_answer_body();
    case Command::tree_connect:
      return tree_connect_answer_body();
    case Command::create: {
      static constexpr OplockLevel levels[] = {OplockLevel::none, OplockLevel::level_ii,
                                               OplockLevel::exclusive, OplockLevel::batch};
      Granted granted{.file = some_file(choices), .oplock = levels[choices.below(4)]};
      granted.end_of_file = choices.number();
      if (choices.below(4) == 3) granted.attributes = file_attributes::directory;
      return create_answer_body(granted);
    }
    case Command::close:
      return close_answer_body();
    case Command::read:
      return read_answer_body(as_text(choices.some(200)));
    case Command::write:
      return write_answer_body(choices.byte());
    case Command::query_info:
    case Command::query_directory:
    case Command::change_notify:
      return buffer_answer_body(choices.below(4) ? listing(choices)
                                                 : std::string(as_text(choices.some(120))));
    case Command::oplock_break:
      return Body([&](auto& out) { out.u16(24), out.zeros(6), put(out, some_file(choices)); });
    default:
      return empty_body();
  }
}

// ---- the twin

inline constexpr std::size_t kQuestionBytesOfOne = 14;

inline TwinMessage twin_message(Choices& choices) {
  const OpenKey key = key_of(kSession, kTree, some_file(choices));
  const Stamp stamp{choices.below(2), choices.below(2)};
  const std::uint64_t number = choices.below(12), offset = choices.number();
  const MessageNumber id{number};
  const auto length = static_cast<std::uint32_t>(choices.below(200));
  switch (choices.below(25)) {
    case 16:
      return Offer{number, key, Slice::copy_of(Buffer(some_size(choices) % 200'000)),
                   Slice::copy_of(Buffer(choices.below(3) * kQuestionBytesOfOne)), length};
    case 17:
      return Revoke{number};
    case 18:
      return Took{number};
    case 19:
      return GaveUp{number};
    case 20: {
      const Body create = create_body(choices);
      const Slice frame = build_message(request_header(Command::create, number), create.bytes);
      return MakeReal{key, frame.from(kFrameHeadBytes)};
    }
    case 21:
      return Allowance{choices.number()};
    case 22:
      return Remembers{choices.number(), choices.number()};
    case 23:
      return Settled{key};
    case 24:
      return Marked{key, choices.below(3)};
    case 0:
      return Ahead{key, stamp, offset, length,
                   choices.below(2) ? std::optional(choices.number()) : std::nullopt};
    case 1:
      return Used{key, offset, length, id, static_cast<std::uint16_t>(choices.below(4)), choices.below(4)};
    case 2:
      return Asked{key, stamp, id, offset, choices.number(), choices.below(4)};
    case 3:
      return Forwarded{id};
    case 4:
      return Drop{key, choices.below(4)};
    case 5:
      return Promised{key, id};
    case 6:
      return Kept{id, choices.byte(), length, static_cast<std::uint16_t>(choices.below(4))};
    case 7:
      return Held{key, static_cast<std::uint8_t>(choices.below(10))};
    case 8:
      return Break{key, static_cast<std::uint8_t>(choices.below(10))};
    case 9:
      return Broken{key};
    case 10:
      return Answer{key, static_cast<std::uint16_t>(choices.below(19)), choices.byte(),
                    Slice::copy_of(choices.some(20)), length};
    case 11:
      return Room{kSession, kTree, choices.number(), choices.number()};
    case 12:
      return Expect{id, static_cast<std::uint16_t>(choices.below(19)),
                    choices.below(8) == 7 ? Slice::copy_of(Buffer(some_size(choices) % 200'000))
                                          : Slice::copy_of(choices.some(20))};
    case 13: {
      const bool all = choices.below(2);
      return Enumerate{choices.below(2) ? key : OpenKey{},
                       id,
                       all,
                       choices.number(),
                       static_cast<std::uint8_t>(choices.below(40)),
                       Slice::copy_of(choices.some(4))};
    }
    case 14:
      return More{key, choices.number()};
    default:
      return Local{id, static_cast<std::uint16_t>(choices.below(4))};
  }
}

}  // namespace longhaul::fuzz
