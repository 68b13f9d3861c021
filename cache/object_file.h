// SPDX-License-Identifier: Apache-2.0
// The files of whole objects: one object, and the list of objects that a clean shutdown writes (FORMAT.md,
// sections 11 to 13). object_folder.h decides where they are, disk_objects.h which are kept.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cache/dictionary_key.h"
#include "cache/files.h"
#include "codecs/byte_writer.h"
#include "codecs/slice.h"

namespace longhaul::cache {

inline constexpr std::size_t kMostTagBytes = 256;
inline constexpr std::uint32_t kMostObjectBytes = 64u << 20;
inline constexpr std::size_t kMostBootBytes = 64;
inline constexpr std::uint32_t kMostListed = 1u << 20;

// The owner's name of an object, as SHA-256: names may have any length.
using ObjectName = std::array<std::byte, 32>;
ObjectName object_name(std::string_view name);

// The store's description of an object, without its content. Objects with the same name differ by their tags,
// which only the owner interprets.
struct ObjectLabel {
  ObjectName name{};
  Buffer tag;
  std::uint32_t bytes = 0;
  bool operator==(const ObjectLabel&) const = default;
};

std::uint64_t object_file_bytes(std::uint32_t bytes);

// `salt` comes from draw_salt(), for this call alone. The parts together have label.bytes. After an error
// part of the file may exist.
Result<void> write_object(Files& files, const std::string& path, const DictionaryKey& key, const Salt& salt,
                          std::uint64_t number, const ObjectLabel& label, std::span<const Slice> parts);

// Returns an error if the file is truncated, foreign, of another number, or encrypted with another key. The
// content is not read.
struct SaltedLabel {
  Salt salt{};
  ObjectLabel label;
};
Result<SaltedLabel> read_label(Files& files, const std::string& path, const DictionaryKey& key,
                               std::uint64_t number, std::uint64_t file_bytes);
// All of the content is authenticated, as that of this file and of no other.
Result<Slice> read_object(Files& files, const std::string& path, const DictionaryKey& key,
                          std::uint64_t number, const SaltedLabel& expected);

struct ListedObject {
  std::uint64_t number = 0;
  Salt salt{};
  bool operator==(const ListedObject&) const = default;
};
// What a daemon that shut down cleanly had stored, the least recently used first; `boot` identifies the start
// of the system in which it ran.
struct ObjectList {
  std::string boot;
  std::vector<ListedObject> objects;
};
Result<void> write_list(Files& files, const std::string& path, const DictionaryKey& key,
                        const ObjectList& list);
Result<ObjectList> read_list(Files& files, const std::string& path, const DictionaryKey& key,
                             std::uint64_t file_bytes);

// Parse a decrypted description or list. Return nullopt if it is invalid.
std::optional<ObjectLabel> parse_label(Bytes text);
std::optional<ObjectList> parse_list(Bytes text);

}  // namespace longhaul::cache
