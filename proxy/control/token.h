// SPDX-License-Identifier: Apache-2.0
// The secret that allows changes: created once, kept in a file that only its owner can read, compared in
// constant time. api.h decides which requests need it.
#pragma once
#include <boost/system/result.hpp>
#include <filesystem>
#include <string>
#include <string_view>

namespace longhaul::control {

// Reads the token, or creates one (and `state_dir`, mode 0700, before it) if there is none. `token_file` is
// relative to `state_dir`. Throws std::runtime_error with one clear sentence: without a token the daemon does
// not start.
std::string load_or_make_token(const std::filesystem::path& state_dir,
                               const std::filesystem::path& token_file);

struct TokenError {
  std::string sentence;
  bool missing = false;  // the file or the directory does not exist
};
boost::system::result<std::string, TokenError> read_token(const std::filesystem::path& file);

// Takes as long for a wrong token as for the right one.
bool same_token(std::string_view presented, std::string_view token);

}  // namespace longhaul::control
