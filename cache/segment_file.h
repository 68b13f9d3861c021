// SPDX-License-Identifier: Apache-2.0
// One segment in one file (FORMAT.md, section 4): encrypted and written from front to back, read in verified
// parts. segment_folder.h has the files, dictionary_key.h the key.
#pragma once
#include "cache/dictionary_key.h"
#include "cache/files.h"
#include "cache/sealed_file.h"
#include "codecs/reduction/segments.h"

namespace longhaul::cache {

using reduction::Hook;
using reduction::SegmentName;

// The header of a file.
struct Description {
  SegmentName name;
  std::vector<Hook> hooks;
};

constexpr std::size_t max_hooks(std::uint32_t length) { return length / 2048 + 8; }
std::uint64_t segment_file_bytes(std::uint32_t length, std::size_t hooks);

// `salt` comes from draw_salt(), for this call alone. After an error part of the file may exist; parts that
// do not match the name's length and digest are an error too.
Result<void> write_segment(Files& files, const std::string& path, const DictionaryKey& key, const Salt& salt,
                           const SegmentName& name, std::span<const Slice> parts,
                           std::span<const Hook> hooks);

// The range must not be empty and must be in the segment. Every piece that it touches is authenticated, for
// this segment and this position.
Result<Slice> read_segment(Files& files, const std::string& path, const DictionaryKey& key,
                           const SegmentName& name, std::uint32_t offset, std::uint32_t size);

// Reads the description from a file of `file_bytes`; returns an error if the file is truncated, foreign, or
// encrypted with another key. Pieces are not read.
Result<Description> read_description(Files& files, const std::string& path, const DictionaryKey& key,
                                     std::uint64_t file_bytes);

// Hooks as stored in files and in the catalogue. Reading checks each offset against `length`.
void write_hooks(std::span<const Hook> hooks, ByteWriter& writer);
bool read_hooks(ByteReader& reader, std::size_t count, std::uint32_t length, std::vector<Hook>& hooks);

}  // namespace longhaul::cache
