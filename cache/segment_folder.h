// SPDX-License-Identifier: Apache-2.0
// The directory: segment files and their catalogue, reconciled at a start, and kept consistent despite any
// disk error (FORMAT.md, sections 2 to 6). Used by one thread, except read(), which any thread may call.
// disk_store.h decides which segments are kept.
#pragma once
#include <mutex>
#include <unordered_map>

#include "cache/catalogue.h"
#include "cache/key_file.h"
#include "cache/unusable.h"

namespace longhaul::cache {

class SegmentFolder {
 public:
  struct Options {
    std::string path;
    std::string key_file;    // empty: `key` in the directory
    std::string credential;  // a file that is required in addition; empty: none
    Files* files = &system_files();
    CatalogueOpener open_catalogue = open_rocksdb_catalogue;
    std::function<void(std::string)> note;  // logs one line; called by the thread that uses the folder
  };

  // Creates the directory and locks it; throws StoreUnusable.
  explicit SegmentFolder(Options options);

  // Reads everything, in the order of numbers, and removes incomplete files. Returns false if the directory
  // cannot be used now. To be called again after the directory was lost.
  bool start(const std::function<void(Record&&)>& found);

  enum class Written { done, failed, wrong_digest, lost };
  // Lost: the directory disappeared with all its files. Nothing is stored until start() is called again.
  Written write(const Record& record, std::span<const Slice> parts);
  void remove(std::uint64_t number, std::uint64_t file_bytes);
  void use(std::uint64_t number, std::uint64_t stamp);
  // Destroys the key, so that no file can be decrypted any more, makes a new one, and removes all files.
  // Returns false if the key still exists, which is logged; the files are removed nevertheless.
  bool clear();

  Result<Slice> read(std::uint64_t number, const SegmentName& name, std::uint32_t offset,
                     std::uint32_t size) const;

  // The size of everything in the directory except known segments, as last measured: the catalogue, and files
  // that could not be removed.
  std::uint64_t overhead_bytes() const { return catalogue_bytes_ + stuck_bytes_; }

 private:
  std::string path_of(std::uint64_t number) const;
  bool lock();
  bool load_key();
  std::shared_ptr<const DictionaryKey> key() const;
  bool open_catalogue();
  void make_catalogue_anew();
  void close_catalogue(const std::string& why);
  bool read_catalogue(std::vector<Record>& records);
  void reopen_catalogue_at_times();
  void remove_file(std::uint64_t number, std::uint64_t file_bytes);
  void remove_stuck();
  void measure();
  void note(std::string text) const {
    if (options_.note) options_.note(std::move(text));
  }

  Options options_;
  std::string segments_path_, catalogue_path_;
  std::optional<DirectoryLock> lock_;
  KeyFile key_file_;
  mutable std::mutex key_mutex_;
  std::shared_ptr<const DictionaryKey> key_;  // set while the folder is usable
  std::unique_ptr<Catalogue> catalogue_;
  std::unordered_map<std::uint64_t, std::uint64_t> stuck_;  // number and size
  std::uint64_t catalogue_bytes_ = 0;
  std::uint64_t stuck_bytes_ = 0;
  std::uint64_t writes_without_catalogue_ = 0;
  bool usable_ = false;
  bool write_failed_ = false;  // whether the last one failed; logged once
};

}  // namespace longhaul::cache
