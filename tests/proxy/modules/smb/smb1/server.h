// SPDX-License-Identifier: Apache-2.0
// A small SMB1 file server in memory, which the tests of the halves speak to. Written from the specification
// apart from the code under test, but for the constants.
#pragma once
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <optional>

#include "proxy/modules/smb/smb1/responses.h"

namespace longhaul::smb::smb1::testing {

class Server {
 public:
  std::map<std::string, std::string> files;
  std::map<std::string, unsigned> written;  // when, as QUERY_INFORMATION2 tells it
  static constexpr unsigned local_time(unsigned day, unsigned hour, unsigned second) {
    return (40u << 9 | 1u << 5 | day) | (hour << 11 | second / 2) << 16;
  }
  bool keeps_data = true;                                 // false: files of any size take no memory
  std::map<std::uint64_t, std::uint32_t> failing_writes;  // by offset: status
  std::map<std::uint8_t, std::uint32_t> refused;          // by command: status
  std::uint64_t free_bytes = 1ull << 40;
  std::size_t page_entries = 10;  // of one answer to a search
  bool signing = false;
  std::uint16_t max_mpx = 50;  // unanswered requests at a time
  bool refuses_oplocks = false;
  bool refuses_folders = false;       // to be opened
  std::size_t folders_at_rename = 0;  // that were open

  struct Handle {
    std::string name;
    int oplock = 0;
    bool breaking = false;
    bool looks = false;
    bool folder = false;
  };
  std::map<std::uint16_t, Handle> handles;
  std::deque<Slice> out;             // answers in order
  std::deque<Slice> deferred;        // opens by others that wait for a break are the test's business
  std::map<std::uint8_t, int> seen;  // commands
  std::uint16_t last_mid = 0;

  // Another client wants the file: the holders' oplocks are broken.
  void break_oplock(const std::string& name, std::uint8_t to_level = 0) {
    for (auto& [fid, handle] : handles) {
      if (handle.name != name || handle.oplock == 0) continue;
      if (handle.breaking) continue;
      handle.breaking = handle.oplock != 3;
      if (!handle.breaking) handle.oplock = 0;
      out.push_back(oplock_break(fid, to_level));
    }
  }
  bool is_broken(const std::string& name) const {
    for (const auto& [fid, handle] : handles)
      if (handle.name == name && (handle.breaking || handle.oplock == 1 || handle.oplock == 2)) return false;
    return true;
  }

  // Something is done to a file in a folder that is listened to.
  void notify(const std::string& name, unsigned action = 3) {
    for (const auto& [fid, head] : std::exchange(listening_, {}))
      out.push_back(notify_response(head, name, action));
  }
  bool listens() const { return !listening_.empty(); }
  std::size_t folders() const {
    return static_cast<std::size_t>(
        std::count_if(handles.begin(), handles.end(), [](const auto& each) { return each.second.folder; }));
  }

  // The next frame is the data of a WRITE_RAW, whatever it looks like.
  bool expects_data() const { return raw_write_.has_value(); }
  void receive_data(Bytes data) {
    RawWrite write = *std::exchange(raw_write_, std::nullopt);
    std::string& file = files[handles.at(write.fid).name];
    if (file.size() < write.offset + data.size()) file.resize(write.offset + data.size());
    file.replace(write.offset, data.size(), as_text(data));
    write.head.command = 0x20;
    if (write.through) answer(write.head, Fields{}.u16(static_cast<unsigned>(data.size())).bytes);
  }

  void receive(Bytes message) {
    Head head;
    head.command = load_le<std::uint8_t>(message, 4);
    head.flags = 0x80;
    head.flags2 = load_le<std::uint16_t>(message, 10);
    head.pid = std::uint32_t{load_le<std::uint16_t>(message, 12)} << 16 | load_le<std::uint16_t>(message, 26);
    head.tid = load_le<std::uint16_t>(message, 24);
    head.uid = load_le<std::uint16_t>(message, 28);
    head.mid = load_le<std::uint16_t>(message, 30);
    ++seen[head.command];
    last_mid = head.mid;
    const Bytes words = message.subspan(33, 2u * load_le<std::uint8_t>(message, 32));
    if (const auto found = refused.find(head.command); found != refused.end()) {
      head.status = found->second;
      return answer(head, {});
    }
    switch (head.command) {
      case 0x72:
        out.push_back(negotiate_response(head, signing, max_mpx));
        return;
      case 0x73:
        head.uid = kUid;
        return answer(head, Fields{}.andx().u16(0).bytes);
      case 0x75:
        head.tid = kTid;
        return answer(head, Fields{}.andx().u16(1).bytes, Fields{}.text("A:").u8(0).text("NTFS").u8(0).bytes);
      case 0xA2:
        return open(head, message, words);
      case 0x2E:
        return do_read(head, words);
      case 0x2F:
        return do_write(head, message, words);
      case 0x1A: {
        const auto handle = handles.find(load_le<std::uint16_t>(words, 0));
        const std::string file = handle == handles.end() ? std::string() : files[handle->second.name];
        const std::size_t at = std::min<std::size_t>(load_le<std::uint32_t>(words, 2), file.size());
        out.push_back(bare(file.substr(at, load_le<std::uint16_t>(words, 6))));
        return;
      }
      case 0x1D:
        if (!handles.contains(load_le<std::uint16_t>(words, 0))) {
          head.command = 0x20;
          head.status = 0xC0000008;
          return answer(head, {});
        }
        raw_write_ = RawWrite{head, load_le<std::uint16_t>(words, 0), load_le<std::uint32_t>(words, 6),
                              (load_le<std::uint16_t>(words, 14) & 1) != 0};
        head.flags = 0;  // as Samba sends it
        return answer(head, Fields{}.u16(0xFFFF).bytes);
      case 0xA0:
        listening_.insert_or_assign(load_le<std::uint16_t>(words, 42), head);
        return;
      case 0x04:
        if (const auto listens = listening_.extract(load_le<std::uint16_t>(words, 0)); !listens.empty()) {
          Head cancelled = listens.mapped();
          cancelled.status = 0xC0000120;
          answer(cancelled, {});
        }
        if (!handles.erase(load_le<std::uint16_t>(words, 0))) head.status = 0xC0000008;
        answer(head, {});
        return go_on_with_deferred();
      case 0x2C: {  // WRITE_AND_CLOSE: the data do not matter here
        if (!handles.erase(load_le<std::uint16_t>(words, 0))) head.status = 0xC0000008;
        return answer(head, Fields{}.u16(load_le<std::uint16_t>(words, 2)).bytes);
      }
      case 0x11:
      case 0x71:
      case 0x74:
        handles.clear();
        return answer(head, head.command == 0x74 ? Fields{}.andx().bytes : Buffer{});
      case 0x02:
      case 0x03:
      case 0xA5:
        return answer(head, {});
      case 0x23: {
        const auto handle = handles.find(load_le<std::uint16_t>(words, 0));
        if (handle == handles.end()) {
          head.status = 0xC0000008;
          return answer(head, {});
        }
        const unsigned size = static_cast<unsigned>(files[handle->second.name].size());
        return answer(
            head,
            Fields{}.u32(1).u32(1).u32(written[handle->second.name]).u32(size).u32(size).u16(0x20).bytes);
      }
      case 0x06:
      case 0x07:  // names: nothing that matters here
        folders_at_rename = folders();
        return answer(head, {});
      case 0x05:
      case 0x34:
        return answer(head, {});
      case 0x24: {
        if (load_le<std::uint32_t>(words, 12) != 0)
          return answer(head, Fields{}.andx().bytes);  // byte ranges
        auto handle = handles.find(load_le<std::uint16_t>(words, 4));
        if (handle != handles.end()) {
          handle->second.oplock = load_le<std::uint8_t>(words, 7) == 1 ? 3 : 0;
          handle->second.breaking = false;
        }
        return go_on_with_deferred();
      }
      case 0x32:
        return transaction(head, message, words);
      default:
        head.status = 0xC00000BB;
        return answer(head, {});
    }
  }

 private:
  void go_on_with_deferred() {
    for (const Slice& request : std::exchange(deferred, {})) receive(request.bytes());
  }
  // Up to its end; letters beyond ASCII do not occur.
  static std::string text_of(const Head& head, Bytes bytes) {
    std::string text;
    const std::size_t width = head.flags2 & kUnicodeFlag ? 2 : 1;
    for (std::size_t at = 0; at < bytes.size() && bytes[at] != std::byte{0}; at += width)
      text.push_back(static_cast<char>(bytes[at]));
    return text;
  }
  void answer(const Head& head, const Buffer& words, const Buffer& bytes = {}) {
    out.push_back(make_frame(head, words, bytes));
  }

  void open(Head head, Bytes message, Bytes words) {
    const std::size_t size = load_le<std::uint16_t>(words, 5);
    const std::size_t pad = head.flags2 & kUnicodeFlag ? 1 : 0;
    std::string name = text_of(head, message.subspan(33 + 48 + 2 + pad, size));
    for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    const std::uint32_t flags = load_le<std::uint32_t>(words, 7);
    const bool looks = (load_le<std::uint32_t>(words, 15) & ~0x100180u) == 0;  // at attributes only
    if (!looks && !is_broken(name)) {
      deferred.push_back(Slice::copy_of(message));
      return break_oplock(name);
    }
    const std::uint32_t disposition = load_le<std::uint32_t>(words, 35);
    const bool folder = (load_le<std::uint32_t>(words, 39) & 1) != 0;
    if (folder && refuses_folders) {
      head.status = 0xC0000022;
      return answer(head, {});
    }
    if (!folder && !files.contains(name) && disposition == 1) {
      head.status = 0xC0000034;
      return answer(head, {});
    }
    if (disposition != 1) files[name];
    if (disposition == 5) files[name].clear();
    std::uint16_t fid = 0x4000;
    while (handles.contains(fid)) ++fid;
    bool alone = true;
    for (const auto& [other, handle] : handles) alone = alone && (handle.name != name || handle.looks);
    const int oplock = refuses_oplocks || folder || !alone || looks ? 0 : flags & 4 ? 2 : flags & 2 ? 1 : 0;
    handles[fid] = {name, oplock, false, looks, folder};
    const std::uint64_t end = folder ? 0 : files[name].size();
    out.push_back(open_response(head, oplock, fid, end));
  }

  void do_read(Head head, Bytes words) {
    const auto handle = handles.find(load_le<std::uint16_t>(words, 4));
    if (handle == handles.end()) {
      head.status = 0xC0000008;
      return answer(head, {});
    }
    const std::string& file = files[handle->second.name];
    std::uint64_t offset = load_le<std::uint32_t>(words, 6);
    if (words.size() == 24) offset |= std::uint64_t{load_le<std::uint32_t>(words, 20)} << 32;
    const std::size_t length =
        load_le<std::uint16_t>(words, 10) | std::size_t{load_le<std::uint16_t>(words, 14)} << 16;
    out.push_back(read_response(head, offset < file.size() ? file.substr(offset, length) : std::string()));
  }

  void do_write(Head head, Bytes message, Bytes words) {
    const auto handle = handles.find(load_le<std::uint16_t>(words, 4));
    if (handle == handles.end()) {
      head.status = 0xC0000008;
      return answer(head, {});
    }
    std::uint64_t offset = load_le<std::uint32_t>(words, 6);
    if (words.size() == 28) offset |= std::uint64_t{load_le<std::uint32_t>(words, 24)} << 32;
    if (auto failing = failing_writes.find(offset); failing != failing_writes.end()) {
      head.status = failing->second;
      return answer(head, {});
    }
    const std::size_t length =
        load_le<std::uint16_t>(words, 20) | std::size_t{load_le<std::uint16_t>(words, 18)} << 16;
    const auto data = as_text(message.subspan(load_le<std::uint16_t>(words, 22), length));
    if (keeps_data) {
      std::string& file = files[handle->second.name];
      if (file.size() < offset + length) file.resize(offset + length);
      file.replace(offset, length, data);
    }
    out.push_back(write_response(head, length));
  }

  void transaction(Head head, Bytes message, Bytes words) {
    const Bytes parameters =
        message.subspan(load_le<std::uint16_t>(words, 20), load_le<std::uint16_t>(words, 18));
    switch (load_le<std::uint16_t>(words, 28)) {
      case 1:
        told_.reset();
        return page(head, kSearch);
      case 2:
        if (!(load_le<std::uint16_t>(parameters, 10) & 8)) {
          // By name: the one behind it. A name that is gone is found where it was told last, else nowhere.
          const std::string name = text_of(head, parameters.subspan(12));
          if (name != told_) told_ = files.contains(name) ? name : "\xFF";
        }
        return page(head, std::nullopt);
      case 3:
        out.push_back(
            trans2_response(head, {}, Fields{}.u64(1 << 30).u64(free_bytes / 4096).u32(8).u32(512).bytes));
        return;
      case 5: {
        std::string name(as_text(parameters.subspan(6)).data());
        if (!name.empty() && name[0] == '\\') name.erase(0, 1);
        for (char& letter : name)
          letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
        out.push_back(size_response(head, files.contains(name) ? files[name].size() : 0));
        return;
      }
      case 7: {
        const auto handle = handles.find(load_le<std::uint16_t>(parameters, 0));
        out.push_back(size_response(head, handle == handles.end() ? 0 : files[handle->second.name].size()));
        return;
      }
      case 8: {
        const auto handle = handles.find(load_le<std::uint16_t>(parameters, 0));
        const auto level = load_le<std::uint16_t>(parameters, 2);
        if (handle != handles.end() && (level == 0x104 || level == 1020))
          files[handle->second.name].resize(
              load_le<std::uint64_t>(message, load_le<std::uint16_t>(words, 24)));
        out.push_back(trans2_response(head, Fields{}.u16(0).bytes, {}));
        return;
      }
      default:
        head.status = 0xC00000BB;
        return answer(head, {});
    }
  }
  void page(const Head& head, std::optional<std::uint16_t> begun) {
    Page page(head);
    auto at = told_ ? files.upper_bound(*told_) : files.begin();
    for (; at != files.end() && page.count() < page_entries; ++at) {
      told_ = at->first;
      page.add(at->first, at->second.size());
    }
    out.push_back(page.response(begun, at == files.end()));
  }

  struct RawWrite {
    Head head;
    std::uint16_t fid = 0;
    std::uint32_t offset = 0;
    bool through = false;
  };
  std::optional<RawWrite> raw_write_;
  std::map<std::uint16_t, Head> listening_;  // by FID
  static constexpr std::uint16_t kSearch = 0x55;  // its id: there is one at a time
  std::optional<std::string> told_;               // by it, last
};

}  // namespace longhaul::smb::smb1::testing
