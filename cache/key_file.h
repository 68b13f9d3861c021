// SPDX-License-Identifier: Apache-2.0
// Where the dictionary's key is kept: a file that its owner alone can read and, if there is one, a credential
// that the service manager gave and that this process cannot change. Leaves what it encrypts to
// dictionary_key.h.
#pragma once
#include <string>

#include "cache/dictionary_key.h"

namespace longhaul::cache {

// Throws std::runtime_error: the credential cannot be read, or has fewer than 32 bytes.
class KeyFile {
 public:
  // With a credential both are needed: the key is derived from the file's bytes and the credential's. So a
  // disk is of no use without the credential, and destroying the file is enough to make it useless with it.
  explicit KeyFile(std::string path, const std::string& credential_path = {});

  // Reads the key. Where there is none, or one that others may know or have chosen (another owner, readable
  // by others, a link), a new one takes its place; `note` then says why, unless it was just missing.
  Result<DictionaryKey> load_or_make(std::string& note) const;
  // Overwrites the file, removes it, and returns when the disk has done so. Nothing happens where there is
  // none.
  Result<void> destroy() const;

 private:
  Result<DictionaryKey> make() const;
  DictionaryKey key_from(const Secret<DictionaryKey::kBytes>& stored) const;

  std::string path_;
  SecretBytes credential_;  // empty: none
};

}  // namespace longhaul::cache
