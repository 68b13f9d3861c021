// SPDX-License-Identifier: Apache-2.0
#include "cache/segment_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cache/error.h"

namespace longhaul::cache {
namespace {

constexpr std::uint64_t kTryCatalogueEvery = 64;  // writes; there is no clock here
constexpr std::size_t kTryStuckAtOnce = 4;

// The number in a segment file's name; nothing for other names.
std::optional<std::uint64_t> number_of(const std::string& file) {
  std::uint64_t number = 0;
  auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), number, 16);
  if (file.size() != 16 || error != std::errc() || end != file.data() + file.size()) return std::nullopt;
  return number;
}

std::string file_of(std::uint64_t number) {
  char digits[16];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, 16);
  auto size = static_cast<std::size_t>(end - digits);
  return std::string(sizeof digits - size, '0') + std::string(digits, size);
}

KeyFile open_key_file(const SegmentFolder::Options& options) {
  try {
    return KeyFile(options.key_file.empty() ? options.path + "/key" : options.key_file, options.credential);
  } catch (const std::runtime_error& error) {
    throw StoreUnusable(error.what());
  }
}

bool is_missing(const boost::system::error_code& error) {
  return error == boost::system::errc::no_such_file_or_directory;
}

}  // namespace

SegmentFolder::SegmentFolder(Options options)
    : options_(std::move(options)),
      segments_path_(options_.path + "/segments"),
      catalogue_path_(options_.path + "/catalogue"),
      key_file_(open_key_file(options_)) {
  std::error_code ignored;  // a failure shows when the lock is made
  std::filesystem::create_directories(std::filesystem::path(options_.path).parent_path(), ignored);
  (void)options_.files->make_folder(options_.path);
  std::string taken_by;
  auto taken = DirectoryLock::take(options_.path + "/lock", taken_by);
  if (!taken && !taken_by.empty())
    throw StoreInUse("the dictionary's directory " + options_.path + " is used by another process (pid " +
                     taken_by + "): each daemon needs its own");
  if (!taken)
    throw StoreUnusable("the dictionary's directory " + options_.path +
                        " cannot be used: " + taken.error().message());
  lock_.emplace(std::move(*taken));
}

std::string SegmentFolder::path_of(std::uint64_t number) const {
  return segments_path_ + "/" + file_of(number);
}

bool SegmentFolder::lock() {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(options_.path).parent_path(), ignored);
  (void)options_.files->make_folder(options_.path);
  std::string taken_by;
  auto taken = DirectoryLock::take(options_.path + "/lock", taken_by);
  if (!taken) return false;
  lock_.emplace(std::move(*taken));
  return true;
}

bool SegmentFolder::load_key() {
  std::string replaced;
  auto loaded = key_file_.load_or_make(replaced);
  if (!replaced.empty()) note(replaced);
  if (!loaded) note("the dictionary's key can be neither read nor created: " + loaded.error().message());
  std::lock_guard lock(key_mutex_);
  key_ = loaded ? std::make_shared<const DictionaryKey>(*loaded) : nullptr;
  return key_ != nullptr;
}

std::shared_ptr<const DictionaryKey> SegmentFolder::key() const {
  std::lock_guard lock(key_mutex_);
  return key_;
}

bool SegmentFolder::start(const std::function<void(Record&&)>& found) {
  usable_ = false;
  catalogue_.reset();
  stuck_.clear();
  stuck_bytes_ = 0;
  if ((!lock_ && !lock()) || !options_.files->make_folder(segments_path_) ||
      !options_.files->make_folder(catalogue_path_)) {
    note("the directory " + options_.path + " cannot be used");
    return false;
  }
  if (!load_key()) return false;
  auto listed = options_.files->list(segments_path_);
  if (!listed) {
    note("the segments in " + options_.path + " cannot be listed: " + listed.error().message());
    return false;
  }
  std::unordered_map<std::uint64_t, std::uint64_t> files;
  for (const FileEntry& entry : *listed)
    if (auto number = number_of(entry.name)) files[*number] = entry.bytes;

  std::vector<Record> records;
  if (!open_catalogue() || !read_catalogue(records)) {
    // The catalogue contains nothing that the files do not.
    records.clear();
    make_catalogue_anew();
  }
  std::size_t gone = 0, torn = 0, adopted = 0;
  std::erase_if(records, [&](const Record& record) {
    auto file = files.find(record.number);
    if (file != files.end() && file->second == record.file_bytes) {
      files.erase(file);
      return false;
    }
    ++gone;
    if (catalogue_ && !catalogue_->remove(record.number)) close_catalogue("a record cannot be removed");
    return true;
  });
  for (auto [number, bytes] : files) {
    auto description = read_description(*options_.files, path_of(number), *key_, bytes);
    if (!description) {
      ++torn;
      remove_file(number, bytes);
      continue;
    }
    ++adopted;
    records.push_back({.number = number,
                       .file_bytes = bytes,
                       .name = description->name,
                       .hooks = std::move(description->hooks)});
    if (catalogue_ && !catalogue_->add(records.back())) close_catalogue("a record cannot be written");
  }
  if (gone + torn + adopted > 0)
    note("at the start: " + std::to_string(gone) +
         " segments without a file were removed from the catalogue, " + std::to_string(torn) +
         " files that are incomplete or encrypted with another key were deleted, " + std::to_string(adopted) +
         " files that were not in the catalogue were added to it");
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.number < b.number; });
  usable_ = true;
  measure();
  for (Record& record : records) found(std::move(record));
  return true;
}

bool SegmentFolder::open_catalogue() {
  std::string why;
  auto opened = options_.open_catalogue(catalogue_path_, *key_, why);
  if (!opened) {
    note("the catalogue in " + catalogue_path_ + " cannot be opened: " + why);
    return false;
  }
  catalogue_ = std::move(*opened);
  writes_without_catalogue_ = 0;
  return true;
}

void SegmentFolder::make_catalogue_anew() {
  std::error_code ignored;
  catalogue_.reset();
  std::filesystem::remove_all(catalogue_path_, ignored);
  (void)options_.files->make_folder(catalogue_path_);
  (void)open_catalogue();
}

// The store continues without the catalogue: the files have everything for the next start.
void SegmentFolder::close_catalogue(const std::string& why) {
  note("the catalogue in " + catalogue_path_ + " failed (" + why + "); segments are stored without it");
  catalogue_.reset();
  writes_without_catalogue_ = 0;
}

bool SegmentFolder::read_catalogue(std::vector<Record>& records) {
  auto read = catalogue_->read([&](Record&& record) { records.push_back(std::move(record)); });
  if (!read)
    note("the catalogue in " + catalogue_path_ +
         " is damaged or encrypted with another key: it is rebuilt from the files");
  return read.has_value();
}

void SegmentFolder::reopen_catalogue_at_times() {
  if (catalogue_ || ++writes_without_catalogue_ % kTryCatalogueEvery != 0) return;
  (void)open_catalogue();
}

SegmentFolder::Written SegmentFolder::write(const Record& record, std::span<const Slice> parts) {
  if (!usable_) return Written::lost;
  remove_stuck();
  reopen_catalogue_at_times();
  const auto salt = draw_salt();
  auto written = salt ? write_segment(*options_.files, path_of(record.number), *key_, *salt, record.name,
                                      parts, record.hooks)
                      : Result<void>(salt.error());
  if (!written && written.error() == make_error_code(StoreError::wrong_digest)) {
    note("a segment was refused: " + written.error().message());
    remove_file(record.number, record.file_bytes);
    return Written::wrong_digest;
  }
  if (!written && is_missing(written.error())) {
    note("the directory " + options_.path + " has disappeared: its segments are lost");
    usable_ = false;
    catalogue_.reset();
    lock_.reset();  // of a file that no other process can find any more
    return Written::lost;
  }
  if (!written) {
    if (!write_failed_)
      note("a segment cannot be written to " + segments_path_ + ": " + written.error().message());
    write_failed_ = true;
    remove_file(record.number, record.file_bytes);
    measure();
    return Written::failed;
  }
  if (write_failed_) note("segments can be written to " + segments_path_ + " again");
  write_failed_ = false;
  if (catalogue_ && !catalogue_->add(record)) close_catalogue("a record cannot be written");
  measure();
  return Written::done;
}

void SegmentFolder::remove(std::uint64_t number, std::uint64_t file_bytes) {
  if (!usable_) return;
  remove_stuck();
  remove_file(number, file_bytes);
  if (catalogue_ && !catalogue_->remove(number)) close_catalogue("a record cannot be removed");
  measure();
}

void SegmentFolder::use(std::uint64_t number, std::uint64_t stamp) {
  if (!usable_ || !catalogue_) return;
  if (!catalogue_->use(number, stamp)) close_catalogue("a use cannot be recorded");
}

bool SegmentFolder::clear() {
  auto destroyed = key_file_.destroy();
  if (!destroyed)
    note("the dictionary's key cannot be destroyed (" + destroyed.error().message() +
         "): copies of the files can still be decrypted with it");
  if (!usable_) return destroyed.has_value();
  if (auto listed = options_.files->list(segments_path_))
    for (const FileEntry& entry : *listed)
      if (auto number = number_of(entry.name)) remove_file(*number, entry.bytes);
  usable_ = load_key();
  if (usable_) make_catalogue_anew();
  measure();
  return destroyed.has_value();
}

Result<Slice> SegmentFolder::read(std::uint64_t number, const SegmentName& name, std::uint32_t offset,
                                  std::uint32_t size) const {
  const auto used = key();
  if (!used) return make_error_code(StoreError::damaged);
  return read_segment(*options_.files, path_of(number), *used, name, offset, size);
}

// A file that cannot be removed counts as long as it stays.
void SegmentFolder::remove_file(std::uint64_t number, std::uint64_t file_bytes) {
  auto removed = options_.files->remove(path_of(number));
  if (removed || is_missing(removed.error())) return;
  if (stuck_.empty())
    note("a segment cannot be removed from " + segments_path_ + ": " + removed.error().message());
  if (stuck_.emplace(number, file_bytes).second) stuck_bytes_ += disk_bytes(file_bytes);
}

void SegmentFolder::remove_stuck() {
  std::size_t tries = 0;
  for (auto at = stuck_.begin(); at != stuck_.end() && tries < kTryStuckAtOnce; ++tries) {
    auto removed = options_.files->remove(path_of(at->first));
    if (!removed && !is_missing(removed.error())) return;
    stuck_bytes_ -= disk_bytes(at->second);
    at = stuck_.erase(at);
  }
}

void SegmentFolder::measure() {
  auto listed = options_.files->list(catalogue_path_);
  if (!listed) return;  // the last measurement is the best estimate
  catalogue_bytes_ = 0;
  for (const FileEntry& entry : *listed) catalogue_bytes_ += disk_bytes(entry.bytes);
}

}  // namespace longhaul::cache
