// SPDX-License-Identifier: Apache-2.0
// The directory of whole objects: their files, their key, and the list of those that a later daemon may trust
// (FORMAT.md, sections 11 to 13). Used by one thread, except read(), which any thread may call.
// disk_objects.h decides which are kept.
#pragma once
#include <atomic>
#include <map>
#include <mutex>

#include "cache/key_file.h"
#include "cache/object_file.h"

namespace longhaul::cache {

class ObjectFolder {
 public:
  struct Options {
    std::string path;
    std::string key_file;    // empty: `key` in the directory
    std::string credential;  // a file that is required in addition; empty: none
    std::string list_file;   // empty: `list` in the directory
    std::string boot;  // identifies the start of this system; empty: unknown, so that nothing can be trusted
    Files* files = &system_files();
    std::function<void(std::string)> note;  // logs one line; called by the thread that uses the folder
  };
  struct Found {
    std::uint64_t number = 0;
    SaltedLabel object;
    bool is_sure = false;  // on the list: every daemon since it was written has shut down cleanly
  };

  // Creates the directory and locks it; throws StoreUnusable.
  explicit ObjectFolder(Options options);

  // Reads the labels of all files, the least recently used first, and removes files that are incomplete or
  // foreign. Ends early once `ending` is set. Returns false if the directory cannot be used now.
  bool start(const std::function<void(Found&&)>& found, const std::atomic<bool>& ending);
  bool write(std::uint64_t number, const SaltedLabel& object, std::span<const Slice> parts);
  void remove(std::uint64_t number, std::uint64_t file_bytes);
  // Destroys the key, so that no file can be decrypted any more, makes a new one, and removes all files.
  // Returns false if the key still exists, which is logged; the files are removed nevertheless.
  bool clear();
  // The last call: writes the list of objects that the next daemon may trust.
  void leave(std::vector<ListedObject> objects);

  Result<Slice> read(std::uint64_t number, const SaltedLabel& object) const;

  // Size of files that could not be removed.
  std::uint64_t stuck_bytes() const { return stuck_bytes_; }

 private:
  std::string path_of(std::uint64_t number) const;
  std::string list_path() const;
  bool load_key();
  std::shared_ptr<const DictionaryKey> key() const;
  bool take_list(std::vector<ListedObject>& listed);
  void remove_all();
  void note(std::string text) const {
    if (options_.note) options_.note(std::move(text));
  }

  Options options_;
  std::optional<DirectoryLock> lock_;
  KeyFile key_file_;
  mutable std::mutex key_mutex_;
  std::shared_ptr<const DictionaryKey> key_;  // set while the folder is usable
  std::uint64_t stuck_bytes_ = 0;
  bool usable_ = false, write_failed_ = false, remove_failed_ = false;  // whether the last one failed
};

}  // namespace longhaul::cache
