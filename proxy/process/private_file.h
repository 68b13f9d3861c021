// SPDX-License-Identifier: Apache-2.0
// Small files that only the daemon may read or change. Symbolic links and special files are refused, so that a
// planted one cannot redirect the daemon to another file.
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

// A new file with mode 0600, whatever the umask; file_exists if the name is taken. A file that could not be
// written whole is removed again. Durable covers the content: the name may be lost.
Result<void> make_private_file(const std::filesystem::path& file, std::string_view text, Durable durable = Durable::no);

// Writes it under another name (with ".new" appended) and renames it, so that a crash leaves the old file or
// the new one. Durable: after the call returns, a power cut leaves the new one.
Result<void> replace_private_file(const std::filesystem::path& file, std::string_view text,
                                  Durable durable = Durable::no);

// Behind what is in the file, which is there. After an error its end may hold a part of the text.
Result<void> append_private_file(const std::filesystem::path& file, std::string_view text, Durable durable);

// For messages: such an error in the operator's terms.
std::string reason_of(const boost::system::error_code& error);

}  // namespace longhaul::process
