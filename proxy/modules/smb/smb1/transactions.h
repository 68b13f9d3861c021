// SPDX-License-Identifier: Apache-2.0
// TRANS2 and NT_TRANSACT: their common form (parameters and data, possibly in several messages), and the
// subcommands about files and searches. Parsers only.
#pragma once
#include <optional>

#include "codecs/byte_writer.h"
#include "proxy/modules/smb/smb1/message.h"

namespace longhaul::smb::smb1 {

enum class Trans2 : std::uint16_t {  // [MS-CIFS] 2.2.6
  open2 = 0,
  find_first2 = 1,
  find_next2 = 2,
  query_fs_information = 3,
  set_fs_information = 4,
  query_path_information = 5,
  set_path_information = 6,
  query_file_information = 7,
  set_file_information = 8,
  create_directory = 0xD,
  get_dfs_referral = 0x10,
};
enum class NtTransact : std::uint16_t {  // [MS-CIFS] 2.2.7, [MS-SMB] 2.2.7
  create = 1,
  ioctl = 2,
  set_security_descriptor = 3,
  notify_change = 4,
  rename = 5,
  query_security_descriptor = 6,
  query_quota = 7,
  set_quota = 8,
};

// One message's part of a transaction, request or response, primary or secondary ([MS-CIFS] 2.2.4.46,
// 2.2.4.47, 2.2.4.62, 2.2.4.63). An interim response has no words: do not parse it with parse_transaction().
struct Transaction {
  std::uint16_t function = 0;  // a Trans2 or an NtTransact; only in primary requests
  std::uint32_t total_parameters = 0, total_data = 0;
  std::uint32_t max_parameters = 0, max_data = 0;  // only in primary requests
  std::uint32_t parameters_at = 0, data_at = 0;    // offset of this part in the whole
  Bytes parameters, data;
  Bytes setup;  // after the function if there is one
  bool is_whole() const { return parameters.size() == total_parameters && data.size() == total_data; }
};
Result<Transaction> parse_transaction(const Message& message, const Block& block);

// Joins the parts of one transaction.
class Assembly {
 public:
  static constexpr std::size_t kMaxBytes = 1 << 20;  // of parameters and data; TRANS2 has 128 KiB at most

  // Returns false if the parts do not fit together, or are too large.
  bool add(const Transaction& part);
  bool is_complete() const { return started_ && missing_ == 0; }
  const Buffer& parameters() const { return parameters_; }
  const Buffer& data() const { return data_; }

 private:
  Buffer parameters_, data_;
  std::size_t total_ = 0, missing_ = 0;
  bool started_ = false;
};

// [MS-CIFS] 2.2.6.2.1
inline constexpr std::size_t kPatternAt = 12;  // in the parameters of FIND_FIRST2
inline constexpr std::uint16_t kCloseAfter = 0x1, kCloseAtEnd = 0x2, kResumeKeys = 0x4,
                               kContinueFromLast = 0x8;
struct FindFirst {
  std::uint16_t count = 0;
  std::uint16_t flags = 0;
  std::uint16_t level = 0;
};
Result<FindFirst> parse_find_first(Bytes parameters);
// [MS-CIFS] 2.2.6.2.2, 2.2.6.3.2
struct FindReply {
  std::uint16_t sid = 0;  // only set in FIND_FIRST2
  std::uint16_t count = 0;
  bool end_of_search = false;
  std::uint16_t last_name_at = 0;  // in the data
};
Result<FindReply> parse_find_first_reply(Bytes parameters);
Result<FindReply> parse_find_next_reply(Bytes parameters);
// [MS-CIFS] 2.2.6.3.1
struct FindNext {
  std::uint16_t sid = 0;
  std::uint16_t count = 0;
  std::uint16_t level = 0;
  std::uint32_t resume_key = 0;
  std::uint16_t flags = 0;
  Bytes name;
};
Result<FindNext> parse_find_next(Bytes parameters);

// The last entry of a response to a search: where the next one continues. Returns nullopt for unsupported
// levels.
struct LastEntry {
  std::uint32_t resume_key = 0;
  Bytes name;  // without a terminating zero
};
std::optional<LastEntry> last_entry(std::uint16_t level, Bytes data, bool unicode);

// [MS-CIFS] 2.2.6.8.1, 2.2.6.9.1: the parameters of QUERY_FILE and SET_FILE_INFORMATION begin with the FID
// and the level.
struct FileInformation {
  std::uint16_t fid = 0;
  std::uint16_t level = 0;
};
Result<FileInformation> parse_file_information(Bytes parameters);

// The file that an NT_TRANSACT refers to ([MS-CIFS] 2.2.7.2.1, 2.2.7.4.1, 2.2.7.3.1, 2.2.7.6.1).
std::optional<std::uint16_t> fid_of(NtTransact function, const Transaction& part);

}  // namespace longhaul::smb::smb1
