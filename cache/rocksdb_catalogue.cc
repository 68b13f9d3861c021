// SPDX-License-Identifier: Apache-2.0
// The catalogue in RocksDB: the only file of the project that includes its headers.
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/table.h>

#include <cstring>
#include <unordered_map>

#include "cache/catalogue.h"
#include "cache/error.h"

namespace longhaul::cache {
namespace {

constexpr char kVersionKey = 'V', kSegmentKey = 'S', kUseKey = 'U';
constexpr char kVersion = 2;

// Small in memory and on disk, nothing preallocated: its size counts against the cap.
rocksdb::Options options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.compression = rocksdb::kNoCompression;  // encrypted data does not compress
  options.write_buffer_size = 2 << 20;
  options.max_write_buffer_number = 2;
  options.max_total_wal_size = 4 << 20;
  options.target_file_size_base = 8 << 20;
  options.max_bytes_for_level_base = 32 << 20;
  options.max_open_files = 64;
  options.max_background_jobs = 1;
  options.allow_fallocate = false;
  options.manifest_preallocation_size = 4096;
  options.max_manifest_file_size = 1 << 20;
  options.keep_log_file_num = 1;
  options.max_log_file_size = 256 << 10;
  options.info_log_level = rocksdb::FATAL_LEVEL;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.skip_stats_update_on_db_open = true;
  // Records lost in a crash are found by their files.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // read once, at a start, from beginning to end
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::string key(char kind, std::uint64_t number) {
  std::string key(1, kind);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(number >> shift & 0xff));
  return key;
}

std::uint64_t read_number(std::string_view bytes) {
  std::uint64_t number = 0;
  for (char byte : bytes.substr(0, 8)) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

class RocksdbCatalogue final : public Catalogue {
 public:
  RocksdbCatalogue(std::unique_ptr<rocksdb::DB> db, const DictionaryKey& key)
      : db_(std::move(db)), key_(key) {}

  Result<void> read(const std::function<void(Record&&)>& visit) override {
    rocksdb::ReadOptions reading;
    reading.readahead_size = 1 << 20;
    std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(reading));
    std::unordered_map<std::uint64_t, std::uint64_t> stamps;
    for (at->Seek(std::string(1, kUseKey)); at->Valid() && at->key()[0] == kUseKey; at->Next()) {
      if (at->key().size() != 9 || at->value().size() != 8) return make_error_code(StoreError::catalogue);
      stamps[read_number(view(at->key()).substr(1))] = read_number(view(at->value()));
    }
    if (!at->status().ok()) return make_error_code(StoreError::catalogue);
    for (at->Seek(std::string(1, kSegmentKey)); at->Valid() && at->key()[0] == kSegmentKey; at->Next()) {
      if (at->key().size() != 9) return make_error_code(StoreError::catalogue);
      std::uint64_t number = read_number(view(at->key()).substr(1));
      auto record = decode_record(key_, number, as_bytes(view(at->value())));
      if (!record) return make_error_code(StoreError::catalogue);
      if (auto stamp = stamps.find(number); stamp != stamps.end()) record->stamp = stamp->second;
      visit(std::move(*record));
    }
    if (!at->status().ok()) return make_error_code(StoreError::catalogue);
    return {};
  }

  Result<void> add(const Record& record) override {
    auto salt = draw_salt();
    if (!salt) return salt.error();
    auto value = encode_record(key_, *salt, record);
    if (!value) return make_error_code(StoreError::no_cipher);
    return answer(db_->Put(writing_, key(kSegmentKey, record.number),
                           {reinterpret_cast<const char*>(value->data()), value->size()}));
  }

  Result<void> use(std::uint64_t number, std::uint64_t stamp) override {
    return answer(db_->Put(writing_, key(kUseKey, number), key(kUseKey, stamp).substr(1)));
  }

  Result<void> remove(std::uint64_t number) override {
    rocksdb::WriteBatch batch;
    batch.Delete(key(kSegmentKey, number));
    batch.Delete(key(kUseKey, number));
    return answer(db_->Write(writing_, &batch));
  }

 private:
  static Result<void> answer(const rocksdb::Status& status) {
    if (!status.ok()) return make_error_code(StoreError::catalogue);
    return {};
  }

  std::unique_ptr<rocksdb::DB> db_;
  DictionaryKey key_;
  rocksdb::WriteOptions writing_;  // into the log, without waiting for the disk
};

}  // namespace

Result<std::unique_ptr<Catalogue>> open_rocksdb_catalogue(const std::string& folder, const DictionaryKey& key,
                                                          std::string& why) {
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status = rocksdb::DB::Open(options(), folder, &opened);
  std::unique_ptr<rocksdb::DB> db(opened);
  if (!status.ok()) {
    why = status.ToString();
    return make_error_code(StoreError::catalogue);
  }
  std::string version;
  const std::string ours(1, kVersion);
  status = db->Get(rocksdb::ReadOptions(), std::string(1, kVersionKey), &version);
  if (status.IsNotFound()) {
    version = ours;
    status = db->Put(rocksdb::WriteOptions(), std::string(1, kVersionKey), ours);
  }
  if (!status.ok() || version != ours) {
    why = status.ok() ? "it was written by another version" : status.ToString();
    return make_error_code(StoreError::catalogue);
  }
  return std::unique_ptr<Catalogue>(std::make_unique<RocksdbCatalogue>(std::move(db), key));
}

}  // namespace longhaul::cache
