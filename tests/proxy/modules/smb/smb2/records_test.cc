// SPDX-License-Identifier: Apache-2.0
// Messages that Samba 4.17, impacket and smbprotocol sent, in golden/, and what each of them says.
#include "proxy/modules/smb/smb2/records.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "codecs/little_endian.h"
#include "tests/proxy/modules/smb/smb2/ids.h"

using namespace longhaul;
using namespace longhaul::smb;
using namespace longhaul::smb::smb2;

namespace {

// A message of one element, unless a test asks for more.
class Golden {
 public:
  explicit Golden(std::string_view name) {
    const auto folder = std::filesystem::path(LONGHAUL_SOURCE_DIR) / "tests/proxy/modules/smb/smb2/golden";
    std::ifstream file(folder / name, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    REQUIRE_FALSE(text_.empty());
  }
  Bytes bytes() const { return as_bytes(text_); }
  Element element(std::size_t index = 0) const { return parse_elements(bytes()).value().at(index); }
  std::string described() const { return describe(bytes()); }

 private:
  std::string text_;
};

std::string ascii(Bytes utf16) {
  std::string text;
  for (std::size_t i = 0; i < utf16.size(); i += 2) text += std::to_integer<char>(utf16[i]);
  return text;
}

}  // namespace

TEST_CASE("NEGOTIATE offers and selects a dialect, with contexts in 3.1.1") {
  const Golden ask("negotiate"), answer("negotiate_answer");
  const auto request = parse_negotiate_request(ask.element().bytes).value();
  REQUIRE(request.dialects.size() == 1);
  CHECK(request.dialects[0] == Dialect::smb_3_1_1);
  CHECK(request.capabilities == capabilities::encryption);
  CHECK(as_text(request.client_guid) == "nsKchfeyTKiapPLr");
  REQUIRE(request.contexts.size() == 2);
  CHECK(request.contexts[0].type == negotiate_context::preauth_integrity);
  CHECK(request.contexts[0].data.size() == 38);
  CHECK(request.contexts[1].type == negotiate_context::encryption);
  CHECK(as_text(request.contexts[1].data) == std::string_view("\1\0\1\0", 4));

  const auto response = parse_negotiate_response(answer.element().bytes).value();
  CHECK(response.dialect == Dialect::smb_3_1_1);
  CHECK(response.max_read_bytes == 8 << 20);
  CHECK(response.max_write_bytes == 8 << 20);
  CHECK(response.max_transact_bytes == 8 << 20);
  CHECK(response.multi_credit());
  CHECK_FALSE(response.signing_required());
  CHECK(as_text(response.server_guid).substr(0, 9) == "labserver");
  CHECK(response.security.size() == 74);
  REQUIRE(response.contexts.size() == 2);
  CHECK(response.contexts[1].type == negotiate_context::encryption);
  CHECK(response.contexts[1].data.size() == 4);
}

TEST_CASE("an SMB1 NEGOTIATE shows which dialects may follow") {
  const Golden smb1("negotiate_smb1");
  auto offered = parse_multi_protocol_negotiate(smb1.bytes()).value();
  CHECK(offered.smb1);
  CHECK_FALSE(offered.smb2_002);
  CHECK_FALSE(offered.smb2_any);

  const auto with = [&](std::string_view dialects) {
    std::string text(as_text(smb1.bytes().first(33)));
    text += static_cast<char>(dialects.size());
    text += '\0';
    return parse_multi_protocol_negotiate(as_bytes(text.append(dialects)));
  };
  offered = with(std::string_view("\2SMB 2.002\0\2SMB 2.???\0", 22)).value();
  CHECK_FALSE(offered.smb1);
  CHECK(offered.smb2_002);
  CHECK(offered.smb2_any);
  CHECK(with(std::string_view("\2NT LM 0.12\0\2SMB 2.002\0", 23)).value().smb1);
  CHECK(with("\2SMB 2.002").error() == Error::malformed_record);  // its end is missing
  CHECK(with(std::string_view("\3SMB 2.002\0", 11)).error() == Error::malformed_record);
  CHECK(describe(Frame{FrameKind::smb1, Slice::joined(as_bytes("head"), smb1.bytes())}) ==
        "SMB1 command=0x72 (62 bytes)");
}

TEST_CASE("a CREATE's leases, durable handles and other contexts are parsed") {
  const Golden durable("create_leased_durable"), many("create_leased");
  CHECK(durable.described() ==
        "CREATE mid=9 credits=1/1 signed 'leased.bin' lease=RWH access=0x12019f share=7 disposition=3 "
        "options=0x40 "
        "RqLs DH2Q (280 bytes)");
  const auto request = parse_create_request(durable.element().bytes).value();
  CHECK(request.oplock == OplockLevel::lease);
  CHECK(ascii(request.name) == "leased.bin");
  CHECK(request.disposition == Disposition::open_if);
  CHECK(request.options == create_options::non_directory_file);
  REQUIRE(request.lease);
  CHECK(request.lease->version == 2);
  CHECK(request.lease->key[0] == std::byte{0xea});
  CHECK(request.lease->state == (lease_state::read | lease_state::handle | lease_state::write));
  CHECK(request.durable == Durable::request_v2);
  CHECK_FALSE(request.persistent);
  CHECK(request.create_guid[0] == std::byte{0xf8});
  CHECK_FALSE(request.allocation_bytes);

  const auto with_more = parse_create_request(many.element().bytes).value();
  REQUIRE(with_more.contexts.size() == 4);
  CHECK(with_more.lease->version == 1);
  CHECK(with_more.allocation_bytes == 4096u);
  CHECK(with_more.durable == Durable::none);
  CHECK(find_context(with_more.contexts, create_context::maximal_access)->empty());
  CHECK_FALSE(find_context(with_more.contexts, create_context::timewarp));
  CHECK_FALSE(with_more.snapshot);
}

TEST_CASE("an answer to CREATE shows the granted rights") {
  const Golden durable("create_leased_durable_answer"), many("create_leased_answer");
  const auto response = parse_create_response(durable.element().bytes).value();
  CHECK(response.oplock == OplockLevel::lease);
  CHECK(response.action == CreateAction::opened);
  CHECK(response.file == FileId{0xe9e0525e, 0xfcf855ca});
  CHECK(response.allocation_bytes == 4096);
  CHECK(response.end_of_file == 0);
  CHECK(response.file_attributes == 0x20);
  CHECK(response.times.creation == 0x01dd799ff017a493);
  CHECK(response.durable);
  CHECK_FALSE(response.persistent);
  REQUIRE(response.lease);
  CHECK(response.lease->version == 2);
  CHECK(response.lease->epoch == 1);
  CHECK(response.caching() == (lease_state::read | lease_state::handle | lease_state::write));
  CHECK_FALSE(response.maximal_access);

  const auto with_more = parse_create_response(many.element().bytes).value();
  CHECK(with_more.maximal_access == 0x001f01ffu);
  REQUIRE(with_more.on_disk_id);
  CHECK(load_le<std::uint64_t>(*with_more.on_disk_id, 0) == 0x98c38c);
  CHECK(with_more.lease->version == 1);
  CHECK_FALSE(with_more.durable);
  // The lease is the one that was asked for (Golden "create_leased"), and that is broken (Golden
  // "lease_break").
  CHECK(with_more.lease->key ==
        parse_create_request(Golden("create_leased").element().bytes).value().lease->key);
}

TEST_CASE("an oplock's caching is expressed as a lease state") {
  using namespace lease_state;
  CreateResponse response;
  CHECK(response.caching() == none);
  response.oplock = OplockLevel::level_ii;
  CHECK(response.caching() == lease_state::read);
  response.oplock = OplockLevel::exclusive;
  CHECK(response.caching() == (lease_state::read | lease_state::write));
  response.oplock = OplockLevel::batch;
  CHECK(response.caching() == (lease_state::read | lease_state::write | handle));
  response.oplock = OplockLevel::lease;
  CHECK(response.caching() == none);
  response.lease = Lease{.state = lease_state::read | handle};
  CHECK(response.caching() == (lease_state::read | handle));
}

TEST_CASE("breaks of oplocks and leases, and their acknowledgements, are distinguished by size") {
  const Golden oplock("oplock_break"), oplock_ack("oplock_acknowledgement"), lease("lease_break"),
      lease_ack("lease_acknowledgement");
  CHECK(oplock.element().header.is_unsolicited());
  CHECK(oplock.described() ==
        "OPLOCK_BREAK unsolicited credits=0/0 file=3507084e.e2ad6bfd oplock=II (88 bytes)");
  AnyBreak any = parse_break(oplock.element().bytes).value();
  CHECK(std::get<OplockBreak>(any).level == OplockLevel::level_ii);
  CHECK(std::get<OplockBreak>(any).file == FileId{0x3507084e, 0xe2ad6bfd});
  any = parse_break(oplock_ack.element().bytes).value();
  CHECK(std::get<OplockBreak>(any).file == FileId{0x3507084e, 0xe2ad6bfd});
  CHECK_FALSE(oplock_ack.element().header.is_response());

  CHECK(lease.element().header.is_unsolicited());
  CHECK(lease.element().header.session_id == 0);
  any = parse_break(lease.element().bytes).value();
  const auto notification = std::get<LeaseBreakNotification>(any);
  CHECK(notification.needs_acknowledgement);
  CHECK(notification.current_state == 7);
  CHECK(notification.new_state == (lease_state::read | lease_state::handle));
  CHECK(notification.key ==
        parse_create_response(Golden("create_leased_answer").element().bytes).value().lease->key);
  any = parse_break(lease_ack.element().bytes).value();
  CHECK(std::get<LeaseBreakAcknowledgement>(any).key == notification.key);
  CHECK(std::get<LeaseBreakAcknowledgement>(any).state == (lease_state::read | lease_state::handle));
}

TEST_CASE("a compound is parsed element by element") {
  const Golden ask("compound"), answer("compound_answer");
  CHECK(ask.described() ==
        "CREATE mid=11 credits=1/1 signed 'protocol.bin' oplock=none access=0x12019f share=7 disposition=1 "
        "options=0x40 "
        "| READ mid=12 credits=1/1 signed related file=previous offset=0 length=12 "
        "| CLOSE mid=13 credits=1/1 signed related file=previous flags=1 (352 bytes)");
  CHECK(parse_read_request(ask.element(1).bytes).value().file == kPreviousFile);
  CHECK(as_text(parse_read_response(answer.element(1).bytes).value().data) == "golden bytes");
  CHECK(parse_close_response(answer.element(2).bytes).value().end_of_file == 12);
  CHECK(parse_close_request(ask.element(2).bytes).value().flags == kClosePostQueryAttributes);
}

TEST_CASE("WRITE, LOCK, SET_INFO and IOCTL are parsed") {
  const Golden write("write"), lock("lock"), set("set_end_of_file"), validate("validate_answer");
  const auto written = parse_write_request(write.element().bytes).value();
  CHECK(as_text(written.data) == "golden bytes");
  CHECK(written.offset == 0);
  CHECK(written.flags == 0);
  const auto locked = parse_lock_request(lock.element().bytes).value();
  CHECK(locked.file == written.file);
  REQUIRE(locked.ranges.size() == 1);
  CHECK(locked.ranges[0].offset == 0);
  CHECK(locked.ranges[0].length == 10);
  CHECK(locked.ranges[0].flags == (lock_flags::exclusive | lock_flags::fail_immediately));
  const auto end = parse_set_info_request(set.element().bytes).value();
  CHECK(end.type == InfoType::file);
  CHECK(end.info_class == file_info::end_of_file);
  CHECK(end.file == written.file);
  CHECK(load_le<std::uint64_t>(end.buffer, 0) == 5);
  const auto validated = parse_ioctl_response(validate.element().bytes).value();
  CHECK(validated.code == fsctl::validate_negotiate_info);
  CHECK(validated.file == kPreviousFile);
  CHECK(validated.output.size() == 24);
  CHECK(validate.element().header.is_signed());
}

TEST_CASE("a final answer may be async: it has no tree, and its credits were granted earlier") {
  const Golden flush("flush_answer_async");
  const Header header = flush.element().header;
  CHECK(header.is_async());
  CHECK_FALSE(header.is_interim());
  CHECK(header.async_id == 8);
  CHECK(header.message_id == 8_message);
  CHECK(header.tree_id == 0);
  CHECK(header.credits == 0);
  CHECK(parse_empty(flush.element().bytes).has_value());
}

TEST_CASE("a listing is parsed entry by entry, in the requested class") {
  const Golden listing("listing");
  Bytes rest = parse_buffer_response(listing.element().bytes).value().buffer;
  auto entry = take_directory_entry(file_info::id_both_directory, rest).value();
  REQUIRE(entry);
  CHECK(ascii(entry->name) == ".");
  CHECK(entry->file_attributes == file_attributes::directory);
  CHECK(entry->file_id == 0x98c0a1);
  CHECK(entry->creation == 0x01dd799fea4cba12);
  CHECK(entry->change == 0x01dd799fea4cff76);
  entry = take_directory_entry(file_info::id_both_directory, rest).value();
  REQUIRE(entry);
  CHECK(ascii(entry->name) == "..");
  CHECK(entry->file_id == 0x98c03b);
  CHECK(rest.empty());
  CHECK_FALSE(take_directory_entry(file_info::id_both_directory, rest).value());
  // A class whose layout we do not know is an error: never a guess.
  rest = parse_buffer_response(listing.element().bytes).value().buffer;
  CHECK(take_directory_entry(100, rest).error() == Error::malformed_record);
}

TEST_CASE("the statuses that come with a regular answer are known") {
  const Golden answer("change_notify_answer");
  Element element = answer.element();
  CHECK(element.header.status == Status::success);
  CHECK(has_answer(element));
  element.header.status = Status::notify_enum_dir;
  CHECK(has_answer(element));
  for (const Status status : {Status::pending, Status::notify_cleanup, Status::no_more_files,
                              Status::end_of_file, Status::access_denied, Status::buffer_overflow,
                              Status::more_processing_required, Status::invalid_parameter}) {
    element.header.status = status;
    CHECK_FALSE(has_answer(element));
  }
  const Golden validated("validate_answer");
  element = validated.element();
  for (const Status status :
       {Status::buffer_overflow, Status::invalid_parameter, Status::object_name_not_found}) {
    element.header.status = status;
    CHECK(has_answer(element));
  }
}

TEST_CASE("encrypted and compressed messages are recognised") {
  const Golden encrypted("encrypted");
  const auto header = parse_transform_header(encrypted.bytes()).value();
  CHECK(header.original_message_bytes + 52 == encrypted.bytes().size());
  CHECK(header.session_id == load_le<std::uint64_t>(encrypted.bytes(), 44));
  CHECK(encrypted.described().starts_with("encrypted session="));
  CHECK(parse_elements(encrypted.bytes()).error() == Error::malformed_header);

  // [MS-SMB2] 2.2.42.1: 4,096 bytes, LZ77, not chained, the compressed part begins 80 bytes behind this
  // header.
  const std::string_view compressed("\xFCSMB\0\x10\0\0\2\0\0\0\x50\0\0\0", 16);
  const auto unchained = parse_compression_header(as_bytes(compressed)).value();
  CHECK(unchained.original_bytes == 4096);
  CHECK(unchained.algorithm == 2);
  CHECK_FALSE(unchained.chained);
  CHECK(unchained.offset_or_length == 80);
  CHECK(parse_compression_header(as_bytes(compressed).first(15)).error() == Error::malformed_header);
}

TEST_CASE("lengths and offsets that point outside of the message are refused") {
  const Golden golden("write");
  const auto with = [&](std::size_t at, auto value) {
    Buffer message(golden.bytes().begin(), golden.bytes().end());
    store_le(message.data() + at, value);
    return parse_write_request(message);
  };
  CHECK(with(kHeaderBytes + 2, std::uint16_t{112}).has_value());
  CHECK(with(kHeaderBytes + 2, std::uint16_t{113}).error() == Error::malformed_record);
  CHECK(with(kHeaderBytes + 2, std::uint16_t{63}).error() == Error::malformed_record);
  CHECK(with(kHeaderBytes + 2, std::uint16_t{0xffff}).error() == Error::malformed_record);
  CHECK(with(kHeaderBytes + 4, std::uint32_t{13}).error() == Error::malformed_record);
  CHECK(with(kHeaderBytes + 4, ~std::uint32_t{0}).error() == Error::malformed_record);
  CHECK(with(kHeaderBytes + 4, std::uint32_t{0}).value().data.empty());
  CHECK(with(kHeaderBytes, std::uint16_t{48}).error() == Error::malformed_record);  // another structure size
}

TEST_CASE("contexts that point outside of their list make a CREATE invalid") {
  const Golden golden("create_leased");
  const auto with = [&](std::size_t at, auto value) {
    Buffer message(golden.bytes().begin(), golden.bytes().end());
    store_le(message.data() + at, value);
    return parse_create_request(message);
  };
  constexpr std::size_t kFirst = 0x90;
  CHECK(with(kFirst, std::uint32_t{0}).value().contexts.size() == 1);
  CHECK(with(kFirst, std::uint32_t{8}).error() == Error::malformed_record);
  CHECK(with(kFirst, std::uint32_t{0x1000}).error() == Error::malformed_record);
  CHECK(with(kFirst + 4, std::uint16_t{15}).error() == Error::malformed_record);
  CHECK(with(kFirst + 6, std::uint16_t{41}).error() == Error::malformed_record);
  CHECK(with(kFirst + 10, std::uint16_t{25}).error() == Error::malformed_record);
  CHECK(with(kFirst + 12, std::uint32_t{33}).error() == Error::malformed_record);
  // A lease of neither version is left to the server.
  CHECK_FALSE(with(kFirst + 12, std::uint32_t{31}).value().lease);
  CHECK(with(kHeaderBytes + 52, std::uint32_t{0x89}).error() == Error::malformed_record);  // the whole list
}
