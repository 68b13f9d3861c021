// SPDX-License-Identifier: Apache-2.0
// How a client opens the files of a listed folder one after the other: in which order (next_files.h), with
// which options, and with which queries. From this follows which it will open next, and how many are worth
// opening ahead. Pure; far_opens.h acts on it.
#pragma once
#include <deque>
#include <optional>
#include <vector>

#include "proxy/modules/ahead/next_files.h"
#include "proxy/modules/smb/smb2/plain_open.h"

namespace longhaul::smb::smb2 {

class OpeningRow {
 public:
  struct Opened {  // a CREATE of the client that may be part of a row
    PlainOpen open;
    SessionId session = 0;
    TreeId tree = 0;
    FileName name;
  };
  static constexpr std::size_t kMostAhead = 128;

  explicit OpeningRow(std::size_t most_ahead = kMostAhead) : most_ahead_(most_ahead) {}

  // Entries of a directory from the server. `listing` is a new number each time that it begins again.
  void listed(const Open& directory, MessageId listing, std::uint8_t info_class, Bytes entries);

  // The client opens this file, whichever side answers. In the order of its requests.
  void opened(const Opened& opened);
  void read() { unread_ = 0; }  // the client reads a file
  void read_beside(const FileName& file);  // the same, if it is in the folder of the last opened one
  // The client sends this query about the file that it opened last, although it was not expected.
  void asked(const QueryInfoRequest& query);
  // The client is expected to send these queries about the next files.
  void expects(std::vector<Slice> questions) { questions_ = std::move(questions); }

  // The last opened file of a listed folder.
  const std::optional<Opened>& last() const { return last_; }
  const std::vector<Slice>& questions() const { return questions_; }
  // Whether it was opened like the one before, and the opened files are read and available: so the next ones
  // may be, too.
  bool goes_on() const { return alike_ && unread_ <= kMostUnread && refused_ < kMostRefused; }
  // The next file that was not given out. given_out(): marks it as given out. none_given_out(): all may be
  // given out again.
  const NextFiles::File* next();
  void given_out();
  void none_given_out();

  // The result of an open made ahead: whether an oplock was granted, and whether the client used it.
  void granted() { refused_ = 0; }
  void refused() { ++refused_; }
  void used();
  void wasted();

  std::size_t state_bytes() const;  // approximate, of the listed names

  static constexpr std::size_t kMostQuestions = 4;

 private:
  struct Folder {
    SessionId session = 0;
    TreeId tree = 0;
    std::u16string path;
    MessageId listing{};
    NextFiles files;
    std::size_t bytes = 0;
  };
  Folder* folder_of(const Opened& opened);

  static constexpr std::size_t kFirstOpens = 4;
  static constexpr std::size_t kMostFolders = 4, kMostNames = 1 << 14;
  // A client that reads none of this many files that it opens does not read.
  static constexpr unsigned kMostUnread = 4;
  static constexpr unsigned kMostRefused = 3;

  std::size_t most_ahead_;
  std::deque<Folder> folders_;  // the last used first
  std::optional<Opened> last_;
  bool alike_ = false;
  std::vector<Slice> questions_;
  unsigned unread_ = kMostUnread;  // opened since the last READ
  unsigned refused_ = 0;           // consecutive
  std::size_t depth_ = kFirstOpens;
  std::size_t used_since_ = 0;  // since depth_ last grew, after some had been wasted
  bool careful_ = false;
};

}  // namespace longhaul::smb::smb2
