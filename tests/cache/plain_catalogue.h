// SPDX-License-Identifier: Apache-2.0
// A catalogue that keeps its promises without RocksDB: records in memory, as long as its folder is there. For
// tests that open thousands of stores to see what those do.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "cache/catalogue.h"
#include "cache/error.h"

namespace longhaul::cache::test {

class PlainCatalogue final : public Catalogue {
 public:
  using Records = std::map<std::uint64_t, Record>;
  explicit PlainCatalogue(std::shared_ptr<Records> records) : records_(std::move(records)) {}

  Result<void> read(const std::function<void(Record&&)>& visit) override {
    for (const auto& [number, record] : *records_) visit(Record(record));
    return {};
  }
  Result<void> add(const Record& record) override {
    (*records_)[record.number] = record;
    return {};
  }
  Result<void> use(std::uint64_t number, std::uint64_t stamp) override {
    if (auto found = records_->find(number); found != records_->end()) found->second.stamp = stamp;
    return {};
  }
  Result<void> remove(std::uint64_t number) override {
    records_->erase(number);
    return {};
  }

 private:
  std::shared_ptr<Records> records_;
};

// What was in a folder is there again when it is opened again, unless the folder was emptied meanwhile.
inline CatalogueOpener plain_catalogues() {
  auto all = std::make_shared<std::map<std::string, std::shared_ptr<PlainCatalogue::Records>>>();
  return [all](const std::string& folder, const DictionaryKey&,
               std::string& why) -> Result<std::unique_ptr<Catalogue>> {
    auto& records = (*all)[folder];
    const auto mark = std::filesystem::path(folder) / "CURRENT";
    if (!records || !std::filesystem::exists(mark)) records = std::make_shared<PlainCatalogue::Records>();
    if (!std::ofstream(mark)) {
      why = "the folder is not there";
      return make_error_code(StoreError::catalogue);
    }
    return std::unique_ptr<Catalogue>(std::make_unique<PlainCatalogue>(records));
  };
}

}  // namespace longhaul::cache::test
