// SPDX-License-Identifier: Apache-2.0
// See files.h.
#include "proxy/modules/smb/smb2/files.h"

#include <xxhash.h>

#include "codecs/byte_writer.h"

namespace longhaul::smb::smb2 {
namespace {

constexpr char16_t kBeyondAscii = 0xFFFF;

// Only for these four letters beyond ASCII do Unicode's simple case mappings lead to ASCII letters.
char16_t folded(char16_t letter) {
  switch (letter) {
    case 0x0130:  // capital I with a dot
    case 0x0131:  // small i without one
      return u'I';
    case 0x017F:  // long s
      return u'S';
    case 0x212A:  // the sign of Kelvin
      return u'K';
    default:
      return letter > 0x7f ? kBeyondAscii : letter;
  }
}

std::u16string last_part(const FileName& name) {
  std::u16string last = name.path.substr(name.path.rfind(u'\\') + 1);
  for (char16_t& letter : last) letter = folded(letter);
  return last;
}

}  // namespace

Slice utf16_of(const std::u16string& text) {
  Buffer bytes;
  for (const char16_t letter : text) {
    bytes.push_back(std::byte(letter & 0xff));
    bytes.push_back(std::byte(letter >> 8));
  }
  return Slice::copy_of(bytes);
}

bool may_be_same_file(const FileName& a, const FileName& b) {
  return !a.exact || !b.exact || last_part(a) == last_part(b);
}

std::size_t FileGroup::Shared::NameHash::operator()(const std::u16string& name) const {
  const auto seed = static_cast<std::uint64_t>(HashSecret::of_process().summand);
  return XXH3_64bits_withSeed(name.data(), name.size() * sizeof(char16_t), seed);
}

std::uint64_t FileGroup::count(FileCount which) const {
  return is_any_ ? shared_->all.*which : own_.*which + shared_->any.*which;
}

void FileGroup::add(FileCount which, std::uint64_t more) {
  FileCounts& own = is_any_ ? shared_->any : own_;
  own.*which += more;
  shared_->all.*which += more;
}

void FileGroup::remove(FileCount which) {
  FileCounts& own = is_any_ ? shared_->any : own_;
  own.*which -= 1;
  shared_->all.*which -= 1;
  // Its group never ends: locks end only with the opens by which they may have been set.
  if (is_any_ && which == &FileCounts::opens && shared_->any.opens == 0)
    shared_->all.locks -= std::exchange(shared_->any.locks, 0);
}

FileGroup::~FileGroup() {
  if (is_any_) return;
  shared_->all.locks -= own_.locks;
  shared_->groups.erase(key_);
}

Files::Files()
    : shared_(std::make_shared<FileGroup::Shared>()), any_(new FileGroup(shared_, {}, /*is_any=*/true)) {}

FileGroupRef Files::group_of(const FileName& name) {
  if (!name.exact) return any_;
  std::u16string key = last_part(name);
  std::weak_ptr<FileGroup>& known = shared_->groups[key];
  FileGroupRef group = known.lock();
  if (!group) {
    group.reset(new FileGroup(shared_, std::move(key), /*is_any=*/false));
    known = group;
  }
  return group;
}

}  // namespace longhaul::smb::smb2
