// SPDX-License-Identifier: Apache-2.0
// What a related element of a compound inherits from the previous one ([MS-SMB2] section 3.3.5.2.7.2): the
// session, the tree and the file, or the CREATE whose response will show the file.
#pragma once
#include <optional>

#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

class Chain {
 public:
  // The next element of the message begins.
  void begin(const Header& header);
  // The element names this file, or that of the previous element (kPreviousFile).
  void names(const FileId& file);
  // The element is a CREATE: the following ones refer to the file that it opens.
  void creates(MessageId id);

  SessionId session() const { return session_; }
  TreeId tree() const { return tree_; }
  // Nullopt if the file is not known, or not yet.
  const std::optional<FileId>& file() const { return file_; }
  const std::optional<MessageId>& create() const { return create_; }

 private:
  SessionId session_ = 0;
  TreeId tree_ = 0;
  std::optional<FileId> file_;
  std::optional<MessageId> create_;
};

}  // namespace longhaul::smb::smb2
