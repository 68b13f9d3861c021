// SPDX-License-Identifier: Apache-2.0
// A disk of which any operation can be made to fail: files and catalogue count together.
#pragma once
#include <atomic>
#include <utility>

#include "cache/catalogue.h"
#include "cache/error.h"

namespace longhaul::cache::test {

struct Faults {
  std::atomic<std::int64_t> calls = 0;
  std::int64_t first = -1, last = -1;  // of the calls that fail, the first one is 0
  std::atomic<std::int64_t> failed = 0;
  int error = 28;  // ENOSPC

  void let_fail(std::int64_t from, std::int64_t to) {
    calls = failed = 0;
    first = from;
    last = to;
  }
  bool fails() {
    std::int64_t call = calls++;
    if (call < first || call > last) return false;
    ++failed;
    return true;
  }
  boost::system::error_code reason() const { return {error, boost::system::system_category()}; }
};

class FaultyFiles final : public Files {
 public:
  explicit FaultyFiles(Faults& faults) : faults_(faults) {}

  // A write that fails leaves half of the file.
  Result<void> write(const std::string& path, const FileContent& content) override {
    if (!faults_.fails()) return system_files().write(path, content);
    Buffer all;
    for (auto part = content(); part && !part->empty(); part = content()) append(all, *part);
    bool given = false;
    (void)system_files().write(path, [&]() -> Result<Bytes> {
      return std::exchange(given, true) ? Bytes() : Bytes(all).first(all.size() / 2);
    });
    return faults_.reason();
  }
  Result<void> read(const std::string& path, std::uint64_t offset,
                    std::span<const MutableBytes> into) override {
    if (faults_.fails()) return faults_.reason();
    return system_files().read(path, offset, into);
  }
  Result<void> remove(const std::string& path) override {
    if (faults_.fails()) return faults_.reason();
    return system_files().remove(path);
  }
  Result<std::vector<FileEntry>> list(const std::string& folder) override {
    if (faults_.fails()) return faults_.reason();
    return system_files().list(folder);
  }
  Result<void> make_folder(const std::string& path) override {
    if (faults_.fails()) return faults_.reason();
    return system_files().make_folder(path);
  }

 private:
  Faults& faults_;
};

class FaultyCatalogue final : public Catalogue {
 public:
  FaultyCatalogue(std::unique_ptr<Catalogue> inner, Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}

  Result<void> read(const std::function<void(Record&&)>& visit) override {
    if (!faults_.fails()) return inner_->read(visit);
    // It breaks off in the middle.
    int before = 2;
    (void)inner_->read([&](Record&& record) {
      if (before-- > 0) visit(std::move(record));
    });
    return make_error_code(StoreError::catalogue);
  }
  Result<void> add(const Record& record) override {
    return faults_.fails() ? failure() : inner_->add(record);
  }
  Result<void> use(std::uint64_t number, std::uint64_t stamp) override {
    return faults_.fails() ? failure() : inner_->use(number, stamp);
  }
  Result<void> remove(std::uint64_t number) override {
    return faults_.fails() ? failure() : inner_->remove(number);
  }

 private:
  static Result<void> failure() { return make_error_code(StoreError::catalogue); }
  std::unique_ptr<Catalogue> inner_;
  Faults& faults_;
};

inline CatalogueOpener faulty_catalogue(Faults& faults, CatalogueOpener open) {
  return [&faults, open = std::move(open)](const std::string& folder, const DictionaryKey& key,
                                           std::string& why) -> Result<std::unique_ptr<Catalogue>> {
    if (faults.fails()) {
      why = "the test says so";
      return make_error_code(StoreError::catalogue);
    }
    auto opened = open(folder, key, why);
    if (!opened) return opened.error();
    return std::unique_ptr<Catalogue>(std::make_unique<FaultyCatalogue>(std::move(*opened), faults));
  };
}

}  // namespace longhaul::cache::test
