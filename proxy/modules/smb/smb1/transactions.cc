// SPDX-License-Identifier: Apache-2.0
#include "proxy/modules/smb/smb1/transactions.h"

#include <algorithm>
#include <optional>

#include "proxy/modules/smb/smb1/fields.h"

namespace longhaul::smb::smb1 {

namespace {

struct Place {
  std::uint32_t count = 0, offset = 0;
};

// The offset of an empty field may have any value.
Result<Bytes> part_of(const Message& message, Place place) {
  if (place.count == 0) return Bytes{};
  return message.range(place.offset, place.count);
}

Result<Transaction> with_parts(Transaction part, const Message& message, Place parameters, Place data) {
  const auto first = part_of(message, parameters);
  if (!first) return first.error();
  const auto second = part_of(message, data);
  if (!second) return second.error();
  part.parameters = *first;
  part.data = *second;
  return part;
}

Result<Transaction> trans2_request(const Message& message, const Block& block) {
  const Bytes words = block.words;
  if (words.size() < 28) return make_error_code(Error::malformed_record);
  const std::size_t setup = 2u * u8_at(words, 26);
  if (words.size() < 28 + setup) return make_error_code(Error::malformed_record);
  Transaction part;
  part.total_parameters = u16_at(words, 0);
  part.total_data = u16_at(words, 2);
  part.max_parameters = u16_at(words, 4);
  part.max_data = u16_at(words, 6);
  part.setup = words.subspan(28, setup);
  if (setup >= 2) {
    part.function = u16_at(words, 28);
    part.setup = part.setup.subspan(2);
  }
  return with_parts(part, message, {u16_at(words, 18), u16_at(words, 20)},
                    {u16_at(words, 22), u16_at(words, 24)});
}

Result<Transaction> trans2_secondary(const Message& message, const Block& block) {
  const Bytes words = block.words;
  if (words.size() < 16) return make_error_code(Error::malformed_record);
  Transaction part;
  part.total_parameters = u16_at(words, 0);
  part.total_data = u16_at(words, 2);
  part.parameters_at = u16_at(words, 8);
  part.data_at = u16_at(words, 14);
  return with_parts(part, message, {u16_at(words, 4), u16_at(words, 6)},
                    {u16_at(words, 10), u16_at(words, 12)});
}

Result<Transaction> trans2_reply(const Message& message, const Block& block) {
  const Bytes words = block.words;
  if (words.size() < 20) return make_error_code(Error::malformed_record);
  Transaction part;
  part.total_parameters = u16_at(words, 0);
  part.total_data = u16_at(words, 2);
  part.parameters_at = u16_at(words, 10);
  part.data_at = u16_at(words, 16);
  part.setup = words.subspan(20);
  return with_parts(part, message, {u16_at(words, 6), u16_at(words, 8)},
                    {u16_at(words, 12), u16_at(words, 14)});
}

Result<Transaction> nt_request(const Message& message, const Block& block) {
  const Bytes words = block.words;
  if (words.size() < 38) return make_error_code(Error::malformed_record);
  const std::size_t setup = 2u * u8_at(words, 35);
  if (words.size() < 38 + setup) return make_error_code(Error::malformed_record);
  Transaction part;
  part.total_parameters = u32_at(words, 3);
  part.total_data = u32_at(words, 7);
  part.max_parameters = u32_at(words, 11);
  part.max_data = u32_at(words, 15);
  part.function = u16_at(words, 36);
  part.setup = words.subspan(38, setup);
  return with_parts(part, message, {u32_at(words, 19), u32_at(words, 23)},
                    {u32_at(words, 27), u32_at(words, 31)});
}

// The secondary request and the answer have the same words ([MS-CIFS] 2.2.4.63.1, 2.2.4.62.2).
Result<Transaction> nt_rest(const Message& message, const Block& block) {
  const Bytes words = block.words;
  if (words.size() < 35) return make_error_code(Error::malformed_record);
  Transaction part;
  part.total_parameters = u32_at(words, 3);
  part.total_data = u32_at(words, 7);
  part.parameters_at = u32_at(words, 19);
  part.data_at = u32_at(words, 31);
  return with_parts(part, message, {u32_at(words, 11), u32_at(words, 15)},
                    {u32_at(words, 23), u32_at(words, 27)});
}

// [MS-CIFS] 2.2.8.1.4 to 2.2.8.1.7 and [MS-FSCC] 2.4: where an entry's name is and which field has its
// length.
struct Shape {
  std::size_t name_length_at, name_at;
};
std::optional<Shape> shape_of(std::uint16_t level) {
  switch (level) {
    case 0x0101:  // SMB_FIND_FILE_DIRECTORY_INFO
      return Shape{60, 64};
    case 0x0102:  // SMB_FIND_FILE_FULL_DIRECTORY_INFO
      return Shape{60, 68};
    case 0x0103:  // SMB_FIND_FILE_NAMES_INFO
      return Shape{8, 12};
    case 0x0104:  // SMB_FIND_FILE_BOTH_DIRECTORY_INFO
      return Shape{60, 94};
    case 0x0105:  // SMB_FIND_FILE_ID_FULL_DIRECTORY_INFO
      return Shape{60, 80};
    case 0x0106:  // SMB_FIND_FILE_ID_BOTH_DIRECTORY_INFO
      return Shape{60, 104};
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<Transaction> parse_transaction(const Message& message, const Block& block) {
  switch (block.command) {
    case Command::trans2:
    case Command::transaction:  // the same words, [MS-CIFS] 2.2.4.33
      return message.header.is_reply() ? trans2_reply(message, block) : trans2_request(message, block);
    case Command::trans2_secondary:
    case Command::transaction_secondary:
      return trans2_secondary(message, block);
    case Command::nt_transact:
      return message.header.is_reply() ? nt_rest(message, block) : nt_request(message, block);
    case Command::nt_transact_secondary:
      return nt_rest(message, block);
    default:
      return make_error_code(Error::malformed_record);
  }
}

bool Assembly::add(const Transaction& part) {
  if (!started_) {
    total_ = std::size_t{part.total_parameters} + part.total_data;
    if (total_ > kMaxBytes) return false;
    started_ = true;
    missing_ = total_;
    parameters_.resize(part.total_parameters);
    data_.resize(part.total_data);
  }
  // The totals may shrink later ([MS-CIFS] 2.2.4.46.2); no implementation is known to do that, so it is not
  // supported.
  if (part.total_parameters != parameters_.size() || part.total_data != data_.size()) return false;
  const std::size_t size = part.parameters.size() + part.data.size();
  if (size > missing_ || part.parameters_at > parameters_.size() || part.data_at > data_.size() ||
      part.parameters.size() > parameters_.size() - part.parameters_at ||
      part.data.size() > data_.size() - part.data_at)
    return false;
  std::copy(part.parameters.begin(), part.parameters.end(), parameters_.begin() + part.parameters_at);
  std::copy(part.data.begin(), part.data.end(), data_.begin() + part.data_at);
  missing_ -= size;
  return true;
}

Result<FindFirst> parse_find_first(Bytes parameters) {
  if (parameters.size() < kPatternAt) return make_error_code(Error::malformed_record);
  return FindFirst{u16_at(parameters, 2), u16_at(parameters, 4), u16_at(parameters, 6)};
}

Result<FindReply> parse_find_first_reply(Bytes parameters) {
  if (parameters.size() < 10) return make_error_code(Error::malformed_record);
  return FindReply{u16_at(parameters, 0), u16_at(parameters, 2), u16_at(parameters, 4) != 0,
                   u16_at(parameters, 8)};
}

Result<FindReply> parse_find_next_reply(Bytes parameters) {
  if (parameters.size() < 8) return make_error_code(Error::malformed_record);
  return FindReply{0, u16_at(parameters, 0), u16_at(parameters, 2) != 0, u16_at(parameters, 6)};
}

Result<FindNext> parse_find_next(Bytes parameters) {
  if (parameters.size() < 12) return make_error_code(Error::malformed_record);
  return FindNext{u16_at(parameters, 0), u16_at(parameters, 2),  u16_at(parameters, 4),
                  u32_at(parameters, 6), u16_at(parameters, 10), parameters.subspan(12)};
}

std::optional<LastEntry> last_entry(std::uint16_t level, Bytes data, bool unicode) {
  const auto shape = shape_of(level);
  if (!shape) return std::nullopt;
  for (;;) {
    if (data.size() < shape->name_at) return std::nullopt;
    const std::uint32_t next = u32_at(data, 0);
    // The last entry has 0, or points to the end of the data.
    if (next != 0 && next < data.size() && data.size() - next >= shape->name_at) {
      data = data.subspan(next);
      continue;
    }
    std::size_t length = u32_at(data, shape->name_length_at);
    if (length > data.size() - shape->name_at) return std::nullopt;
    Bytes name = data.subspan(shape->name_at, length);
    // Some servers count the terminator.
    if (unicode && name.size() >= 2 && u16_at(name, name.size() - 2) == 0) name = name.first(name.size() - 2);
    if (!unicode && !name.empty() && u8_at(name, name.size() - 1) == 0) name = name.first(name.size() - 1);
    return LastEntry{u32_at(data, 4), name};
  }
}

Result<FileInformation> parse_file_information(Bytes parameters) {
  if (parameters.size() < 4) return make_error_code(Error::malformed_record);
  return FileInformation{u16_at(parameters, 0), u16_at(parameters, 2)};
}

std::optional<std::uint16_t> fid_of(NtTransact function, const Transaction& part) {
  switch (function) {
    case NtTransact::ioctl:
    case NtTransact::notify_change:
      if (part.setup.size() < 6) return std::nullopt;
      return u16_at(part.setup, 4);
    case NtTransact::set_security_descriptor:
    case NtTransact::query_security_descriptor:
    case NtTransact::rename:
      if (part.parameters.size() < 2) return std::nullopt;
      return u16_at(part.parameters, 0);
    default:
      return std::nullopt;
  }
}

}  // namespace longhaul::smb::smb1
