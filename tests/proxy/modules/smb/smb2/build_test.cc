// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb2/build.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/smb2/records.h"
#include "tests/proxy/modules/smb/smb2/ids.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

const FileId kFile{0x1122334455667788, 0x99aabbccddeeff00};
constexpr RequestHead kHead{
    .message_id = 77_message, .credit_charge = 3, .credit_request = 9, .tree_id = 5, .session_id = 6};

// One message, checked for what every one has. The frame has to outlive it.
Element only_element(const Slice& frame) {
  FrameSplitter splitter(Framing::direct_tcp);
  splitter.push(frame);
  const auto whole = splitter.next().value();
  REQUIRE(whole);
  CHECK(splitter.held_bytes() == 0);
  CHECK(whole->kind == FrameKind::smb2);
  const auto elements = parse_elements(frame.bytes().subspan(kFrameHeadBytes)).value();
  REQUIRE(elements.size() == 1);
  CHECK(elements[0].bytes.size() == frame.size() - kFrameHeadBytes);
  return elements[0];
}

Element our_request(const Slice& frame, Command command) {
  const Element element = only_element(frame);
  CHECK(element.header.command == command);
  CHECK_FALSE(element.header.is_response());
  CHECK(element.header.message_id == 77_message);
  CHECK(element.header.credit_charge == 3);
  CHECK(element.header.credits == 9);
  CHECK(element.header.tree_id == 5);
  CHECK(element.header.session_id == 6);
  CHECK(element.header.flags == 0);
  return element;
}

Header answer_head(Command command, Status status = Status::success) {
  Header request;
  request.command = command;
  request.credit_charge = 2;
  request.credits = 500;
  request.message_id = 41_message;
  request.process_id = 42;
  request.tree_id = 43;
  request.session_id = 44;
  request.flags = header_flags::dfs | 0x30;
  request.channel_sequence = 7;
  return answer_to(request, status);
}
Element our_answer(const Slice& frame, Command command, Status status = Status::success) {
  const Element element = only_element(frame);
  const Header& header = element.header;
  CHECK(header.command == command);
  CHECK(header.is_response());
  CHECK(header.status == status);
  CHECK(header.message_id == 41_message);
  CHECK(header.credit_charge == 2);
  CHECK(header.credits == 2);  // as many as were used
  CHECK(header.process_id == 42);
  CHECK(header.tree_id == 43);
  CHECK(header.session_id == 44);
  CHECK(header.flags == (header_flags::response | 0x30));
  return element;
}

constexpr std::string_view kName("a\0.\0t\0x\0t\0", 10);

}  // namespace

TEST_CASE("our own requests are parsed as intended") {
  {
    const Slice frame = build_read_request(
        kHead,
        {.padding = 0x50, .length = 1 << 20, .offset = 0x123456789a, .file = kFile, .minimum_count = 1});
    const auto read = parse_read_request(our_request(frame, Command::read).bytes).value();
    CHECK(read.padding == 0x50);
    CHECK(read.length == 1 << 20);
    CHECK(read.offset == 0x123456789a);
    CHECK(read.file == kFile);
    CHECK(read.minimum_count == 1);
    CHECK(read.channel == 0);
  }
  {
    const Slice frame = build_close_request(kHead, {.flags = kClosePostQueryAttributes, .file = kFile});
    const auto close = parse_close_request(our_request(frame, Command::close).bytes).value();
    CHECK(close.flags == kClosePostQueryAttributes);
    CHECK(close.file == kFile);
  }
  for (const std::string_view pattern : {std::string_view(), kName}) {
    const Slice frame = build_query_directory_request(kHead, {.info_class = file_info::id_both_directory,
                                                              .flags = query_directory_flags::restart_scans,
                                                              .file_index = 8,
                                                              .file = kFile,
                                                              .pattern = as_bytes(pattern),
                                                              .output_bytes = 65536});
    const auto query =
        parse_query_directory_request(our_request(frame, Command::query_directory).bytes).value();
    CHECK(query.info_class == file_info::id_both_directory);
    CHECK(query.flags == query_directory_flags::restart_scans);
    CHECK(query.file_index == 8);
    CHECK(query.file == kFile);
    CHECK(as_text(query.pattern) == pattern);
    CHECK(query.output_bytes == 65536);
  }
  for (const std::string_view input : {std::string_view(), kName}) {
    const Slice frame = build_query_info_request(kHead, {.type = InfoType::security,
                                                         .info_class = 1,
                                                         .output_bytes = 4096,
                                                         .additional = 7,
                                                         .flags = 2,
                                                         .file = kFile,
                                                         .input = as_bytes(input)});
    const auto query = parse_query_info_request(our_request(frame, Command::query_info).bytes).value();
    CHECK(query.type == InfoType::security);
    CHECK(query.info_class == 1);
    CHECK(query.output_bytes == 4096);
    CHECK(query.additional == 7);
    CHECK(query.flags == 2);
    CHECK(query.file == kFile);
    CHECK(as_text(query.input) == input);
  }
  {
    const Slice frame = build_echo_request(kHead);
    CHECK(parse_empty(our_request(frame, Command::echo).bytes).has_value());
  }
  {
    const Slice frame = build_oplock_acknowledgement(kHead, {.level = OplockLevel::level_ii, .file = kFile});
    const AnyBreak any = parse_break(our_request(frame, Command::oplock_break).bytes).value();
    CHECK(std::get<OplockBreak>(any).level == OplockLevel::level_ii);
    CHECK(std::get<OplockBreak>(any).file == kFile);
  }
  {
    LeaseKey key{};
    key[3] = std::byte{9};
    const Slice frame = build_lease_acknowledgement(kHead, {.key = key, .state = lease_state::read});
    const AnyBreak any = parse_break(our_request(frame, Command::oplock_break).bytes).value();
    CHECK(std::get<LeaseBreakAcknowledgement>(any).key == key);
    CHECK(std::get<LeaseBreakAcknowledgement>(any).state == lease_state::read);
  }
}

TEST_CASE("a CREATE that we build carries its name and its contexts") {
  std::string lease(52, '\0');
  lease[0] = 'k';
  lease[16] = 7;
  for (const std::string_view name : {std::string_view(), kName}) {
    for (const int contexts : {0, 1, 3}) {
      INFO(name.size() << " bytes of name, " << contexts << " contexts");
      CreateRequest request{.oplock = OplockLevel::batch,
                            .desired_access = access::read_data,
                            .file_attributes = 0x80,
                            .share_access = 7,
                            .disposition = Disposition::open_if,
                            .options = create_options::non_directory_file,
                            .name = as_bytes(name)};
      if (contexts > 0) request.contexts.push_back({as_bytes(create_context::lease), as_bytes(lease)});
      if (contexts > 1) {
        request.contexts.push_back({as_bytes(create_context::maximal_access), {}});
        request.contexts.push_back({as_bytes("sixteen byte name"), as_bytes("odd")});
      }
      const Slice frame = build_create_request(kHead, request);
      const auto read = parse_create_request(our_request(frame, Command::create).bytes).value();
      CHECK(read.oplock == OplockLevel::batch);
      CHECK(read.impersonation == 2);
      CHECK(read.desired_access == access::read_data);
      CHECK(read.file_attributes == 0x80);
      CHECK(read.share_access == 7);
      CHECK(read.disposition == Disposition::open_if);
      CHECK(read.options == create_options::non_directory_file);
      CHECK(as_text(read.name) == name);
      REQUIRE(read.contexts.size() == static_cast<std::size_t>(contexts));
      CHECK(read.lease.has_value() == (contexts > 0));
      if (contexts > 0) {
        CHECK(read.lease->version == 2);
        CHECK(read.lease->state == 7);
        CHECK(read.lease->key[0] == std::byte{'k'});
      }
      if (contexts > 1) {
        CHECK(find_context(read.contexts, create_context::maximal_access)->empty());
        CHECK(as_text(*find_context(read.contexts, "sixteen byte name")) == "odd");
      }
      CHECK_FALSE(find_context(read.contexts, create_context::durable));
      CHECK(read.durable == Durable::none);
    }
  }
}

TEST_CASE("the selected contexts are removed from a CREATE, and nothing else") {
  std::string lease(52, '\0');
  lease[0] = 'k';
  lease[16] = 7;
  const std::string durable(32, 'd');
  const std::array names{create_context::durable, create_context::durable_v2};
  for (const std::string_view name : {std::string_view(), kName}) {
    for (const bool others : {false, true}) {
      INFO(name.size() << " bytes of name, " << (others ? "with" : "without") << " other contexts");
      CreateRequest request{.oplock = OplockLevel::lease,
                            .desired_access = access::write_data,
                            .share_access = 5,
                            .disposition = Disposition::overwrite_if,
                            .options = create_options::non_directory_file,
                            .name = as_bytes(name)};
      request.contexts.push_back({as_bytes(create_context::durable_v2), as_bytes(durable)});
      if (others) {
        request.contexts.push_back({as_bytes(create_context::maximal_access), {}});
        request.contexts.push_back({as_bytes(create_context::lease), as_bytes(lease)});
      }
      request.contexts.push_back({as_bytes(create_context::durable), as_bytes(durable).first(16)});
      const Slice asked = build_create_request(kHead, request);
      const Slice frame = without_contexts(our_request(asked, Command::create).bytes, names);
      // As if it had never been asked for.
      request.contexts.erase(request.contexts.begin());
      request.contexts.pop_back();
      CHECK(as_text(frame.bytes()) == as_text(build_create_request(kHead, request).bytes()));
      const auto read = parse_create_request(our_request(frame, Command::create).bytes).value();
      CHECK(read.durable == Durable::none);
      REQUIRE(read.lease.has_value() == others);
      if (others) CHECK(read.lease->version == 2);
    }
  }
}

TEST_CASE("our own answers are parsed as intended") {
  const std::string data(100'000, 'd');
  {
    const Slice frame = build_read_response(answer_head(Command::read), as_bytes(data));
    CHECK(as_text(parse_read_response(our_answer(frame, Command::read).bytes).value().data) == data);
    // The head alone is the beginning of the same frame.
    const Slice head =
        build_read_response_head(answer_head(Command::read), static_cast<std::uint32_t>(data.size()));
    CHECK(as_text(head.bytes()) == as_text(frame.bytes()).substr(0, head.size()));
    CHECK(head.size() + data.size() == frame.size());
  }
  {
    const Slice frame = build_write_response(answer_head(Command::write), 4096);
    CHECK(parse_write_response(our_answer(frame, Command::write).bytes).value().count == 4096);
  }
  {
    const Slice frame = build_close_response(
        answer_head(Command::close),
        {.flags = 1, .times = {1, 2, 3, 4}, .allocation_bytes = 5, .end_of_file = 6, .file_attributes = 7});
    const auto close = parse_close_response(our_answer(frame, Command::close).bytes).value();
    CHECK(close.flags == 1);
    CHECK(close.times.creation == 1);
    CHECK(close.times.last_access == 2);
    CHECK(close.times.last_write == 3);
    CHECK(close.times.change == 4);
    CHECK(close.allocation_bytes == 5);
    CHECK(close.end_of_file == 6);
    CHECK(close.file_attributes == 7);
  }
  for (const std::string_view listing : {std::string_view(), std::string_view("listing")}) {
    const Slice frame = build_buffer_response(answer_head(Command::query_info), as_bytes(listing));
    CHECK(as_text(parse_buffer_response(our_answer(frame, Command::query_info).bytes).value().buffer) ==
          listing);
  }
  {
    const Slice frame = build_empty_response(answer_head(Command::flush));
    CHECK(parse_empty(our_answer(frame, Command::flush).bytes).has_value());
  }
  {
    const Slice frame = build_error_response(answer_head(Command::read, Status::end_of_file));
    const Element element = our_answer(frame, Command::read, Status::end_of_file);
    CHECK_FALSE(has_answer(element));
    CHECK(parse_error_response(element.bytes).value().data.empty());
    CHECK_FALSE(parse_read_response(element.bytes).has_value());
  }
}

TEST_CASE("a stored answer can be sent under another id") {
  const Slice stored = build_close_response(answer_head(Command::close), {.end_of_file = 12});
  const Bytes body = only_element(stored).body();
  Header header = answer_head(Command::close);
  header.message_id = 99_message;
  const Slice again = build_message(header, body);
  CHECK(only_element(again).header.message_id == 99_message);
  CHECK(parse_close_response(only_element(again).bytes).value().end_of_file == 12);
}

TEST_CASE("a request without multi-credit is granted one credit") {
  Header request;
  CHECK(answer_to(request, Status::success).credits == 1);
  request.command = Command::cancel;
  CHECK(request.charge() == 0);
  CHECK(charge_for(0) == 1);
  CHECK(charge_for(1) == 1);
  CHECK(charge_for(65536) == 1);
  CHECK(charge_for(65537) == 2);
  CHECK(charge_for(8 << 20) == 128);
}

TEST_CASE("a copy of a frame is changed only at the selected place") {
  for (const std::size_t data_bytes : {10u, 3'000u, 100'000u}) {
    const Slice frame =
        build_read_response(answer_head(Command::read), as_bytes(std::string(data_bytes, 'd')));
    const std::string before(as_text(frame.bytes()));
    const auto edited = [&] {
      EditedFrame edit(frame);
      edit.set_message_id(0x0102030405060708_message);
      edit.set_credits(0x1112);
      edit.set_status(Status::disk_full);
      return std::move(edit).take();
    }();
    CHECK(as_text(frame.bytes()) == before);
    CHECK(edited.back.empty() == (data_bytes == 10));
    std::string expected = before;
    expected.replace(4 + 24, 8, "\x08\x07\x06\x05\x04\x03\x02\x01");
    expected.replace(4 + 14, 2, "\x12\x11");
    expected.replace(4 + 8, 4, std::string("\x7F\x00\x00\xC0", 4));
    CHECK(std::string(as_text(edited.front.bytes())).append(as_text(edited.back.bytes())) == expected);
    if (!edited.back.empty())  // shared, not copied
      CHECK(edited.back.bytes().data() == frame.bytes().data() + edited.front.size());
    CHECK(as_text(EditedFrame(frame).whole().bytes()) == before);
  }
}

TEST_CASE("oplock levels are changed in requests and answers of CREATE, also late in a compound") {
  Slice request = build_create_request(kHead, {.oplock = OplockLevel::none, .name = as_bytes(kName)});
  EditedFrame ask(request);
  ask.set_requested_oplock(OplockLevel::batch);
  const Slice asked = std::move(ask).whole();
  CHECK(parse_create_request(only_element(asked).bytes).value().oplock == OplockLevel::batch);

  // A compound of a long WRITE and a CREATE answer: bytes suffice, for edits look at none of them.
  const std::string text(50'000, 'w');
  const Slice frame = Slice::copy_of(as_bytes(text));
  const std::size_t element = 40'000;
  EditedFrame edit(frame);
  edit.set_granted_oplock(OplockLevel::none, element);
  edit.set_message_id(0_message, 0);
  std::string expected = text;
  expected[kFrameHeadBytes + element + kHeaderBytes + 2] = 0;
  expected.replace(kFrameHeadBytes + 24, 8, std::string(8, '\0'));
  CHECK(as_text(std::move(edit).whole().bytes()) == expected);
}

TEST_CASE("compound elements are separated by NextCommand, and padding belongs to the element before it") {
  Buffer message;
  const auto add = [&](Header header, std::size_t body_bytes, bool last) {
    const std::size_t padded = (kHeaderBytes + body_bytes + 7) / 8 * 8;
    header.next_command = last ? 0 : static_cast<std::uint32_t>(padded);
    const std::size_t begin = message.size();
    write_header(header, message);
    message.resize(begin + (last ? kHeaderBytes + body_bytes : padded), std::byte{0});
  };
  add({.command = Command::create, .message_id = 1_message}, 57, false);
  add({.command = Command::query_info, .flags = header_flags::related, .message_id = 2_message}, 41, false);
  add({.command = Command::close, .flags = header_flags::related, .message_id = 3_message}, 24, true);
  const auto elements = parse_elements(message).value();
  REQUIRE(elements.size() == 3);
  CHECK(elements[0].offset == 0);
  CHECK(elements[0].bytes.size() == 128);
  CHECK_FALSE(elements[0].header.is_related());
  CHECK(elements[1].offset == 128);
  CHECK(elements[1].bytes.size() == 112);
  CHECK(elements[1].header.is_related());
  CHECK(elements[2].offset == 240);
  CHECK(elements[2].bytes.size() == 88);
  CHECK(elements[2].header.message_id == 3_message);

  // Cut short, or with a NextCommand that cannot be, it is no message.
  for (std::size_t bytes = 0; bytes < 240 + kHeaderBytes; ++bytes)
    CHECK_FALSE(parse_elements(Bytes(message).first(bytes)).has_value());
  for (const std::uint32_t next : {1u, 8u, 63u, 65u, 132u, 328u, 0xfffffff8u}) {
    Buffer wrong = message;
    store_le(wrong.data() + 20, next);
    CHECK(parse_elements(wrong).error() == Error::malformed_header);
  }
  // An unknown command is its receiver's to refuse.
  Buffer unknown = message;
  store_le(unknown.data() + 240 + 12, std::uint16_t{20});
  CHECK(parse_elements(unknown).has_value());
}
