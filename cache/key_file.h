// SPDX-License-Identifier: Apache-2.0
// Stores the dictionary's key: in a file that only its owner can read and, if there is one, in a credential
// from the service manager that this process cannot change. dictionary_key.h has its use.
#pragma once
#include <string>

#include "cache/dictionary_key.h"

namespace longhaul::cache {

// Throws std::runtime_error if the credential cannot be read, or has fewer than 32 bytes.
class KeyFile {
 public:
  // With a credential the key is derived from both: a stolen disk is useless without the credential, and
  // destroying the file is enough to make the data unreadable even with it.
  explicit KeyFile(std::string path, const std::string& credential_path = {});

  // Reads the key. If there is none, or one that others may know or have chosen (another owner, readable by
  // others, a link), it is replaced by a new one; `note` receives the reason, unless it was just missing.
  Result<DictionaryKey> load_or_make(std::string& note) const;
  // Overwrites the file, removes it, and returns when that is on the disk. Does nothing if there is no file.
  Result<void> destroy() const;

 private:
  Result<DictionaryKey> make() const;
  DictionaryKey key_from(const Secret<DictionaryKey::kBytes>& stored) const;

  std::string path_;
  SecretBytes credential_;  // empty if there is none
};

}  // namespace longhaul::cache
