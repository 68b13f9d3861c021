// SPDX-License-Identifier: Apache-2.0
// Small files that only the daemon may read or change. Symbolic links and special files are refused, so that
// a planted one cannot redirect the daemon to another file.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "codecs/result.h"

namespace longhaul::process {

struct PrivateFile {
  std::string text;
  mode_t mode = 0;
};

// The first `most` bytes. Errors: too_many_symbolic_link_levels for a symbolic link, not_supported for
// anything but a regular file, no_such_file_or_directory, and other system errors. Never waits.
Result<PrivateFile> read_private_file(const std::filesystem::path& file, std::size_t most);

// Durable: the content survives a power cut; the call waits for the device.
enum class Durable : bool { no, yes };

// Creates a new file with mode 0600, independent of the umask; fails with file_exists if the name is in use.
// A file that could not be written completely is removed again. Durable covers the content: the name may be
// lost.
Result<void> make_private_file(const std::filesystem::path& file, std::string_view text, Durable durable = Durable::no);

// Writes it under another name (with ".new" appended) and renames it, so that a crash leaves the old file or
// the new one. Durable: after the call returns, a power cut leaves the new one.
Result<void> replace_private_file(const std::filesystem::path& file, std::string_view text,
                                  Durable durable = Durable::no);

// Appends to an existing file. After an error it may end with a part of the text.
Result<void> append_private_file(const std::filesystem::path& file, std::string_view text, Durable durable);

// The text of such an error, for messages to the operator.
std::string reason_of(const boost::system::error_code& error);

}  // namespace longhaul::process
