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

// The first `most` bytes. Errors: too_many_symbolic_link_levels for a symbolic link, not_supported for what is no
// file, no_such_file_or_directory, and what else the system says. Never waits.
Result<PrivateFile> read_private_file(const std::filesystem::path& file, std::size_t most);

// Durable: what was written survives a power cut; it waits for the device.
enum class Durable : bool { no, yes };

// A new file with mode 0600, whatever the umask; file_exists where there is something already. A file that could
// not be written whole is removed again. Durable means its content: its name may be lost.
Result<void> make_private_file(const std::filesystem::path& file, std::string_view text, Durable durable = Durable::no);

// Writes it under another name (with ".new" after it) and renames it, so that a crash leaves the old file or the
// new one. Durable: so does a power cut, after this has returned the new one.
Result<void> replace_private_file(const std::filesystem::path& file, std::string_view text,
                                  Durable durable = Durable::no);

// For messages: what an operator has to know about one of those errors.
std::string reason_of(const boost::system::error_code& error);

}  // namespace longhaul::process
