// SPDX-License-Identifier: Apache-2.0
// Metadata of all segments, so that a start need not open every file (FORMAT.md, section 5). An interface:
// implemented with RocksDB, and by fakes in tests.
#pragma once
#include <functional>

#include "cache/segment_file.h"

namespace longhaul::cache {

struct Record {
  std::uint64_t number = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t stamp = 0;  // of the last use; 0: none
  SegmentName name;
  std::vector<Hook> hooks;
};

// After an error the catalogue is closed and opened again.
class Catalogue {
 public:
  virtual ~Catalogue() = default;
  // All records, in the order of numbers.
  virtual Result<void> read(const std::function<void(Record&&)>& visit) = 0;
  virtual Result<void> add(const Record& record) = 0;
  virtual Result<void> use(std::uint64_t number, std::uint64_t stamp) = 0;
  virtual Result<void> remove(std::uint64_t number) = 0;
};

// Opens the catalogue in `folder`, or creates it. Its records are encrypted with `key`. `why` receives the
// reason of a failure.
using CatalogueOpener = std::function<Result<std::unique_ptr<Catalogue>>(
    const std::string& folder, const DictionaryKey& key, std::string& why)>;
Result<std::unique_ptr<Catalogue>> open_rocksdb_catalogue(const std::string& folder, const DictionaryKey& key,
                                                          std::string& why);

// The value of a record, encrypted; it does not contain number and stamp. `salt` comes from draw_salt(), for
// this call alone. Returns nullopt if OpenSSL failed.
std::optional<Buffer> encode_record(const DictionaryKey& key, const Salt& salt, const Record& record);
// Returns nullopt if it is damaged, encrypted with another key, or belongs to another number.
std::optional<Record> decode_record(const DictionaryKey& key, std::uint64_t number, Bytes value);

}  // namespace longhaul::cache
