// SPDX-License-Identifier: Apache-2.0
#include "cache/object_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "cache/error.h"
#include "cache/unusable.h"

namespace longhaul::cache {
namespace {

std::optional<std::uint64_t> object_number_of(const std::string& file) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(file.data(), file.data() + file.size(), number, 16);
  if (file.size() != 16 || error != std::errc() || end != file.data() + file.size()) return std::nullopt;
  return number;
}

KeyFile open_object_key(const ObjectFolder::Options& options) {
  try {
    return KeyFile(options.key_file.empty() ? options.path + "/key" : options.key_file, options.credential);
  } catch (const std::runtime_error& error) {
    throw StoreUnusable(error.what());
  }
}

bool is_absent(const boost::system::error_code& error) {
  return error == boost::system::errc::no_such_file_or_directory;
}

}  // namespace

ObjectFolder::ObjectFolder(Options options)
    : options_(std::move(options)), key_file_(open_object_key(options_)) {
  std::error_code ignored;  // a failure shows when the lock is made
  const auto parent = std::filesystem::path(options_.path).parent_path();
  std::filesystem::create_directories(parent.parent_path(), ignored);
  (void)options_.files->make_folder(parent.string());
  (void)options_.files->make_folder(options_.path);
  std::string taken_by;
  auto taken = DirectoryLock::take(options_.path + "/lock", taken_by);
  if (!taken && !taken_by.empty())
    throw StoreInUse("the directory " + options_.path + " is used by another process (pid " + taken_by +
                     "): each daemon needs its own");
  if (!taken)
    throw StoreUnusable("the directory " + options_.path + " cannot be used: " + taken.error().message());
  lock_.emplace(std::move(*taken));
}

std::string ObjectFolder::path_of(std::uint64_t number) const {
  char digits[16];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, 16);
  const auto size = static_cast<std::size_t>(end - digits);
  return options_.path + "/" + std::string(sizeof digits - size, '0') + std::string(digits, size);
}

std::string ObjectFolder::list_path() const {
  return options_.list_file.empty() ? options_.path + "/list" : options_.list_file;
}

bool ObjectFolder::load_key() {
  std::string replaced;
  auto loaded = key_file_.load_or_make(replaced);
  if (!replaced.empty()) note(replaced);
  if (!loaded) note("the key of stored objects can be neither read nor created: " + loaded.error().message());
  std::lock_guard lock(key_mutex_);
  key_ = loaded ? std::make_shared<const DictionaryKey>(*loaded) : nullptr;
  return key_ != nullptr;
}

std::shared_ptr<const DictionaryKey> ObjectFolder::key() const {
  std::lock_guard lock(key_mutex_);
  return key_;
}

// Reads the list and removes it before anything else happens, so that a daemon that is killed leaves none. No
// sync: a list is valid only until the system starts again, and until then its removal holds.
bool ObjectFolder::take_list(std::vector<ListedObject>& listed) {
  const std::filesystem::path path = list_path();
  const auto files = options_.files->list(path.parent_path().string());
  const auto entry = files ? std::ranges::find(*files, path.filename().string(), &FileEntry::name)
                           : decltype(files->begin()){};
  if (files && entry != files->end())
    if (auto list = read_list(*options_.files, path.string(), *key_, entry->bytes);
        list && !options_.boot.empty() && list->boot == options_.boot)
      listed = std::move(list->objects);
  const auto removed = options_.files->remove(path.string());
  if (removed || is_absent(removed.error())) return true;
  note("the list of stored objects " + path.string() + " cannot be removed (" + removed.error().message() +
       "): objects are neither stored nor used");
  remove_all();
  return false;
}

bool ObjectFolder::start(const std::function<void(Found&&)>& found, const std::atomic<bool>& ending) {
  usable_ = false;
  stuck_bytes_ = 0;
  (void)options_.files->make_folder(std::filesystem::path(options_.path).parent_path().string());
  if (!options_.files->make_folder(options_.path)) {
    note("the directory " + options_.path + " cannot be used");
    return false;
  }
  std::vector<ListedObject> listed;
  if (!load_key() || !take_list(listed)) return false;
  const auto files = options_.files->list(options_.path);
  if (!files) {
    note("the objects in " + options_.path + " cannot be listed: " + files.error().message());
    return false;
  }
  std::map<std::uint64_t, std::uint64_t> sizes;
  for (const FileEntry& entry : *files)
    if (const auto number = object_number_of(entry.name)) sizes[*number] = entry.bytes;
  usable_ = true;
  // By use: first those whose use is unknown, in the order in which they were written.
  std::vector<std::uint64_t> order;
  std::map<std::uint64_t, const Salt*> salts;
  for (const ListedObject& object : listed) salts[object.number] = &object.salt;
  for (const auto& [number, bytes] : sizes)
    if (!salts.contains(number)) order.push_back(number);
  for (const ListedObject& object : listed)
    if (sizes.contains(object.number)) order.push_back(object.number);
  std::size_t torn = 0, unsure = 0;
  for (const std::uint64_t number : order) {
    if (ending) return true;
    auto label = read_label(*options_.files, path_of(number), *key_, number, sizes[number]);
    if (!label) {
      ++torn;
      remove(number, sizes[number]);
      continue;
    }
    const auto salt = salts.find(number);
    const bool is_sure = salt != salts.end() && *salt->second == label->salt;
    unsure += is_sure ? 0 : 1;
    found({.number = number, .object = *std::move(label), .is_sure = is_sure});
  }
  if (torn > 0)
    note("removed at the start: " + std::to_string(torn) +
         " objects that are incomplete or encrypted with another key");
  if (unsure > 0)
    note(std::to_string(unsure) +
         " objects from a daemon that was killed, or from before the last boot of this system, are used only "
         "after "
         "their server has confirmed them");
  return true;
}

bool ObjectFolder::write(std::uint64_t number, const SaltedLabel& object, std::span<const Slice> parts) {
  if (!usable_) return false;
  if (write_failed_) (void)options_.files->make_folder(options_.path);
  const auto written =
      write_object(*options_.files, path_of(number), *key_, object.salt, number, object.label, parts);
  if (!written) {
    if (!std::exchange(write_failed_, true))
      note("an object cannot be written to " + options_.path + ": " + written.error().message());
    // A file that existed before must not be removed.
    if (written.error() != boost::system::errc::file_exists)
      remove(number, object_file_bytes(object.label.bytes));
    return false;
  }
  if (std::exchange(write_failed_, false)) note("objects can be written to " + options_.path + " again");
  return true;
}

// A file that cannot be removed counts until the next start.
void ObjectFolder::remove(std::uint64_t number, std::uint64_t file_bytes) {
  const auto removed = options_.files->remove(path_of(number));
  if (removed || is_absent(removed.error())) return;
  stuck_bytes_ += disk_bytes(file_bytes);
  if (!std::exchange(remove_failed_, true))
    note("an object cannot be removed from " + options_.path + ": " + removed.error().message());
}

void ObjectFolder::remove_all() {
  if (const auto files = options_.files->list(options_.path))
    for (const FileEntry& entry : *files)
      if (const auto number = object_number_of(entry.name)) remove(*number, entry.bytes);
}

bool ObjectFolder::clear() {
  const auto destroyed = key_file_.destroy();
  if (!destroyed)
    note("the key of stored objects cannot be destroyed (" + destroyed.error().message() +
         "): copies of the files can still be decrypted with it");
  if (!usable_) return destroyed.has_value();
  stuck_bytes_ = 0;
  remove_all();
  usable_ = load_key();
  return destroyed.has_value();
}

void ObjectFolder::leave(std::vector<ListedObject> objects) {
  if (!usable_ || options_.boot.empty()) return;
  if (!write_list(*options_.files, list_path(), *key_,
                  {.boot = options_.boot, .objects = std::move(objects)}))
    (void)options_.files->remove(list_path());
}

Result<Slice> ObjectFolder::read(std::uint64_t number, const SaltedLabel& object) const {
  const auto used = key();
  if (!used) return make_error_code(StoreError::damaged);
  return read_object(*options_.files, path_of(number), *used, number, object);
}

}  // namespace longhaul::cache
