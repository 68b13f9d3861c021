// SPDX-License-Identifier: Apache-2.0
// The words of a command line, NAME=VALUE, for a program that only the benchmarks call. Knows nothing of what
// the names mean.
#pragma once
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

class Words {
 public:
  Words(int count, char** words) {
    for (int i = 0; i < count; ++i) {
      std::string word = words[i];
      auto equals = word.find('=');
      if (equals == std::string::npos) throw std::runtime_error("'" + word + "' is not NAME=VALUE");
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }

  std::string text(const std::string& name) const {
    auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error(name + "= is missing");
    return found->second;
  }
  std::uint64_t number(const std::string& name) const { return std::stoull(text(name)); }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    return values_.contains(name) ? number(name) : otherwise;
  }
  double real(const std::string& name) const { return std::stod(text(name)); }

  std::vector<std::string> list(const std::string& name) const {  // separated by commas; none: empty
    std::vector<std::string> found;
    if (!values_.contains(name)) return found;
    std::string rest = text(name);
    for (std::size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
      found.push_back(rest.substr(0, comma));
      rest.erase(0, comma + 1);
    }
    found.push_back(rest);
    return found;
  }
  std::vector<std::uint16_t> ports(const std::string& name) const {
    std::vector<std::uint16_t> found;
    for (const std::string& word : list(name)) found.push_back(static_cast<std::uint16_t>(std::stoul(word)));
    return found;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace bench
