// SPDX-License-Identifier: Apache-2.0
// See next_files.h.
#include "proxy/modules/ahead/next_files.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace longhaul::ahead {
namespace {

char16_t upper(char16_t letter) {
  return letter >= u'a' && letter <= u'z' ? static_cast<char16_t>(letter - u'a' + u'A') : letter;
}
bool is_digit(char16_t letter) { return letter >= u'0' && letter <= u'9'; }

bool less_folded(const std::u16string& a, const std::u16string& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char16_t l, char16_t r) { return upper(l) < upper(r); });
}

// Runs of digits compare by their value, as Explorer and file managers sort.
bool less_natural(const std::u16string& a, const std::u16string& b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      while (i < a.size() && a[i] == u'0') ++i;
      while (j < b.size() && b[j] == u'0') ++j;
      std::size_t m = i, n = j;
      while (m < a.size() && is_digit(a[m])) ++m;
      while (n < b.size() && is_digit(b[n])) ++n;
      if (m - i != n - j) return m - i < n - j;
      for (; i < m; ++i, ++j)
        if (a[i] != b[j]) return a[i] < b[j];
      continue;
    }
    if (upper(a[i]) != upper(b[j])) return upper(a[i]) < upper(b[j]);
    ++i, ++j;
  }
  return a.size() - i < b.size() - j;
}

}  // namespace

void NextFiles::add(std::u16string name, std::uint64_t size) {
  files_.push_back({.name = std::move(name), .size = size});
}

void NextFiles::clear() { *this = NextFiles(); }

bool NextFiles::is_worth_sorting() const {
  const std::size_t added = files_.size() - sorted_;
  return added != 0 && (files_.size() <= kFewFiles || added >= sorted_ / 8 ||
                        opened_since_ * kFilesForEachOpen >= files_.size());
}

void NextFiles::sort() {
  ++opened_since_;
  if (!is_worth_sorting()) return;
  sorted_ = files_.size();
  opened_since_ = 0;
  ahead_ = 0;
  for (Order& order : orders_) {
    order = Order{};
    order.files.resize(files_.size());
    std::iota(order.files.begin(), order.files.end(), 0u);
  }
  const auto by = [&](auto&& less) {
    return [&, less](std::uint32_t a, std::uint32_t b) { return less(files_[a].name, files_[b].name); };
  };
  const auto arrange = [](Order& order, auto&& less) {
    std::stable_sort(order.files.begin(), order.files.end(), less);
  };
  arrange(orders_[kByUnits], by(std::less<std::u16string>()));
  arrange(orders_[2], by(less_folded));
  arrange(orders_[3], by(less_natural));
  for (Order& order : orders_) {
    order.at.resize(files_.size());
    for (std::uint32_t i = 0; i < order.files.size(); ++i) order.at[order.files[i]] = i;
  }
}

std::optional<std::uint32_t> NextFiles::find(const std::u16string& name) const {
  const std::vector<std::uint32_t>& files = orders_[kByUnits].files;
  const auto found = std::lower_bound(
      files.begin(), files.end(), name,
      [&](std::uint32_t file, const std::u16string& wanted) { return files_[file].name < wanted; });
  if (found == files.end() || files_[*found].name != name) return std::nullopt;
  return *found;
}

void NextFiles::follow(Order& order, std::uint32_t file) {
  if (order.last) {
    // Where it is expected, or slightly after that.
    const std::size_t end = std::min(order.files.size(), *order.last + 2 + kMostSkipped);
    for (std::size_t at = *order.last; at < end; ++at) {
      if (order.files[at] != file) continue;
      if (at == *order.last + 1) ++order.run;
      if (at > *order.last + 1 && order.run == 0) break;
      order.last = at;
      return;
    }
  }
  order.last = order.at[file];
  order.run = 0;
}

std::size_t NextFiles::best() const {
  const auto most = std::max_element(orders_.begin(), orders_.end(),
                                     [](const Order& a, const Order& b) { return a.run < b.run; });
  return static_cast<std::size_t>(most - orders_.begin());
}

bool NextFiles::opened(const std::u16string& name) {
  sort();
  const auto file = find(name);
  if (!file) return false;
  const std::size_t before = orders_[followed_].last.value_or(0);
  for (Order& order : orders_) follow(order, *file);
  const Order& order = orders_[followed_];
  const std::size_t now = order.last.value_or(0);
  // A file already given out follows the last opened one while the client keeps that direction.
  const bool on_its_way = order.run != 0 && now >= before && followed_ == best();
  ahead_ = on_its_way ? ahead_ - std::min(ahead_, now - before) : 0;
  followed_ = best();
  return true;
}

bool NextFiles::in_order() const { return sorted_ != 0 && orders_[followed_].run != 0; }

const NextFiles::File* NextFiles::next(std::size_t most) {
  if (!in_order() || ahead_ >= most) return nullptr;
  const Order& order = orders_[followed_];
  const std::size_t at = *order.last + 1 + ahead_;
  return at < order.files.size() ? &files_[order.files[at]] : nullptr;
}

}  // namespace longhaul::ahead
