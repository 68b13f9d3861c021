// SPDX-License-Identifier: Apache-2.0
// A server of SMB2 to test against: files whose bytes tell their version, oplocks and their breaks, a window
// of MessageIds that is watched. Answers in any order it is told to; knows no more than the tests need.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proxy/modules/smb/frames.h"
#include "tests/proxy/modules/smb/smb2/conversation.h"

namespace longhaul::smb::smb2::test {

// A byte of a file's version.
inline char byte_of(unsigned version, std::uint64_t offset) {
  return static_cast<char>((offset * 7 + (offset >> 8) * 3 + version * 101) & 0xff);
}
inline std::string bytes_of(unsigned version, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = byte_of(version, offset + i);
  return text;
}

class ModelServer {
 public:
  struct File {
    unsigned version = 0;
    std::uint64_t size = 0;
  };
  std::map<std::string, File> files;
  std::vector<std::string> violations;  // what would have ended the connection
  std::size_t most_credits = 600;
  std::size_t most_ids = 8192;  // from the lowest that is unused: no more are granted, as smbd does
  Dialect dialect = Dialect::smb_2_1;
  std::size_t requests = 0;
  bool watches = false;   // its directories can be opened and watched
  bool reports = true;    // and changes in them are reported
  std::size_t looks = 0;  // at a file's attributes
  std::set<FileId> used;  // handles that a request has named
  std::vector<FileId> closed;  // in this order
  std::size_t open_handles() const { return opens_.size(); }

  void receive(Slice bytes) {
    splitter_.push(std::move(bytes));
    while (auto frame = splitter_.next().value()) {
      ++requests;
      Message message = parse_message(*frame).value();
      for (const Element& element : message.elements) take_ids(element.header, message.frame);
      if (message.header().command == Command::cancel) continue;
      waiting_.push_back(std::move(message));
    }
  }
  bool has_work() const { return !waiting_.empty(); }
  std::size_t waiting() const { return waiting_.size(); }

  // Does the n-th request that waits. What changes a file is done in the order in which it came.
  void serve(std::size_t n) {
    Message message = std::move(waiting_[n]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(n));
    answer(message);
  }
  bool may_overtake(std::size_t n) const { return waiting_[n].header().command == Command::read || n == 0; }

  std::deque<Slice> out;

  // Another client rewrites the file, as soon as the client that caches writes has given that up.
  void write_from_outside(const std::string& name) {
    ++outside_[name];
    break_oplocks(name);
  }
  // The same beside the server: no oplock is broken. Clients that watch the folder are notified.
  void change_beside(const std::string& name) {
    ++files[name].version;
    if (!reports) return;
    for (auto& [id, folder] : folders_) {
      folder.changed.insert(name);
      tell_changes(folder);
    }
  }
  void remove_beside(const std::string& name) {
    files.erase(name);
    removed_.insert(name);
    for (auto& [id, folder] : folders_) {
      folder.changed.insert(name);
      tell_changes(folder);
    }
  }
  std::size_t watched_folders() const { return folders_.size(); }
  bool outside_waits() const { return !outside_.empty(); }
  unsigned version(const std::string& name) const { return files.at(name).version; }
  // A break of level II is told after the fact: up to which version is everybody known to have been told?
  unsigned settled(const std::string& name) const {
    auto found = settled_.find(name);
    return found == settled_.end() ? 0 : found->second;
  }
  void settle_all() {
    for (const auto& [name, file] : files) settled_[name] = file.version;
  }

 private:
  struct Opened {
    std::string name;
    OplockLevel level = OplockLevel::none;
    bool breaking = false;
    std::optional<LeaseKey> lease = {};
  };

  struct Folder {
    std::optional<Message> asks;  // CHANGE_NOTIFY
    bool listens = false;         // since the first of those
    std::set<std::string> changed;
  };

  void change_notify(const Message& message) {
    auto folder = folders_.find(parse_change_notify_request(message.first().bytes).value().file);
    if (folder == folders_.end()) return fail(message, Status::file_closed);
    Header header = answer_to(message.header(), Status::pending);
    header.flags |= header_flags::async;
    header.async_id = message.header().message_id.number();
    header.credits = grant(message.header());
    header.session_id = kSession;
    out.push_back(build_error_response(header));
    if (!folder->second.listens) folder->second.changed.clear();
    folder->second.listens = true;
    folder->second.asks = message;
    tell_changes(folder->second);
  }
  void tell_changes(Folder& folder) {
    if (!folder.asks || folder.changed.empty()) return;
    std::string told;
    for (const std::string& name : folder.changed) {
      const bool last = name == *folder.changed.rbegin();
      std::string entry(12, '\0');
      for (const char letter : name) entry += {letter, '\0'};
      entry.resize((entry.size() + 3) / 4 * 4);
      entry[0] = last ? '\0' : static_cast<char>(entry.size());
      entry[4] = removed_.contains(name) ? 2 : 3;  // 2.7.1
      entry[8] = static_cast<char>(2 * name.size());
      told += entry;
    }
    folder.changed.clear();
    Header header = answer_to(folder.asks->header(), Status::success);
    header.flags |= header_flags::async;
    header.async_id = folder.asks->header().message_id.number();
    header.credits = 0;
    header.session_id = kSession;
    folder.asks.reset();
    out.push_back(build_buffer_response(header, as_bytes(told)));
  }

  void take_ids(const Header& header, const Frame& frame) {
    if (header.command == Command::cancel) return;
    for (std::uint64_t id = header.message_id.number(), end = id + header.charge(); id < end; ++id)
      if (free_.erase(id) == 0)
        violations.push_back("id " + std::to_string(id) + (id < top_ ? " twice: " : " not granted: ") +
                             describe(frame));
  }
  std::uint16_t grant(const Header& request) {
    std::size_t credits = std::max<std::size_t>(1, request.credits);
    credits = std::min(credits, most_credits - std::min(most_credits, free_.size()));
    const std::size_t open = free_.empty() ? 0 : top_ - *free_.begin();
    credits = std::min(credits, most_ids - std::min(most_ids, open));
    if (free_.empty()) credits = std::max<std::size_t>(1, credits);
    for (std::size_t i = 0; i < credits; ++i) free_.insert(top_++);
    return static_cast<std::uint16_t>(credits);
  }
  void send(const Message& request, const Body& body, Status status = Status::success, TreeId tree = kTree) {
    Header header = answer_to(request.header(), status);
    header.credits = grant(request.header());
    header.session_id = kSession;
    header.tree_id = tree;
    out.push_back(build_message(header, body.bytes));
  }
  void fail(const Message& request, Status status) { send(request, error_body(), status); }

  void answer(const Message& message) {
    const Element& element = message.first();
    if (const auto file = named_file(element)) used.insert(*file);
    switch (message.header().command) {
      case Command::negotiate:
        return send(message, negotiate_answer_body(dialect));
      case Command::session_setup:
        return send(message, session_setup_answer_body());
      case Command::tree_connect:
        return send(message, tree_connect_answer_body());
      case Command::echo:
      case Command::flush:
        return send(message, empty_body());
      case Command::create:
        return create(message);
      case Command::close: {
        auto close = parse_close_request(element.bytes).value();
        if (folders_.erase(close.file) != 0) return send(message, close_answer_body());
        if (auto look = looks_.extract(close.file); !look.empty()) {
          const File& file = files[look.mapped()];
          return send(message, close_answer_body(file.version, file.size));
        }
        if (opens_.erase(close.file) == 0) return fail(message, Status::file_closed);
        closed.push_back(close.file);
        send(message, close_answer_body());
        return settle();
      }
      case Command::change_notify:
        return change_notify(message);
      case Command::read: {
        auto read = parse_read_request(element.bytes).value();
        auto open = opens_.find(read.file);
        if (open == opens_.end()) return fail(message, Status::file_closed);
        const File& file = files[open->second.name];
        if (read.offset >= file.size) return fail(message, Status::end_of_file);
        auto size = std::min<std::uint64_t>(read.length, file.size - read.offset);
        return send(message,
                    read_answer_body(bytes_of(file.version, read.offset, static_cast<std::size_t>(size))));
      }
      case Command::write: {  // the whole file, in its next version
        auto write = parse_write_request(element.bytes);
        if (!write) return fail(message, Status::invalid_parameter);
        auto open = opens_.find(write->file);
        if (open == opens_.end()) return fail(message, Status::file_closed);
        ++files[open->second.name].version;
        for (auto& [id, other] : opens_)
          if (id != write->file && other.name == open->second.name && other.level == OplockLevel::level_ii)
            tell_break(id, other, OplockLevel::none);
        return send(message, write_answer_body(static_cast<std::uint32_t>(write->data.size())));
      }
      case Command::oplock_break: {
        auto acknowledged = std::get<OplockBreak>(parse_break(element.bytes).value());
        auto open = opens_.find(acknowledged.file);
        if (open == opens_.end()) return fail(message, Status::file_closed);
        if (!open->second.breaking) return fail(message, Status::invalid_oplock_protocol);
        open->second.breaking = false;
        open->second.level = acknowledged.level;
        send(message, Body([&](auto& body) {
               body.u16(24), body.u8(static_cast<std::uint8_t>(acknowledged.level)), body.zeros(5);
               put(body, acknowledged.file);
             }));
        return settle();
      }
      default:
        return fail(message, Status::not_supported);
    }
  }

  void create(const Message& message) {
    auto create = parse_create_request(message.first().bytes).value();
    std::string name;
    for (std::size_t i = 0; i < create.name.size(); i += 2) name.push_back(static_cast<char>(create.name[i]));
    if (create.options & create_options::directory_file) {
      if (!watches) return fail(message, Status::access_denied);
      const FileId folder{1000 + ++numbers_, 2000 + numbers_};
      folders_[folder];
      return send(message, create_answer_body({.file = folder, .attributes = 0x10}));
    }
    if (!files.contains(name)) return fail(message, Status::object_name_not_found);
    if (create.desired_access == access::read_attributes) {
      ++looks;
      const FileId look{1000 + ++numbers_, 2000 + numbers_};
      looks_[look] = name;
      return send(message, create_answer_body({.file = look}));
    }
    bool alone = true;
    for (auto& [id, other] : opens_)
      alone = alone && (other.name != name || (create.lease && other.lease == create.lease->key));
    if (!alone) {
      // Another open ends whatever one holder had to itself; it is answered when that is acknowledged.
      if (break_to(name, OplockLevel::level_ii)) return creates_.push_back(message);
    }
    FileId file{1000 + ++numbers_, 2000 + numbers_};
    if (create.lease) {  // is never broken here
      opens_[file] = {.name = name, .lease = create.lease->key};
      return send(message, create_answer_body({.file = file,
                                               .oplock = OplockLevel::lease,
                                               .end_of_file = files[name].size,
                                               .lease = create.lease,
                                               .written = files[name].version}));
    }
    OplockLevel level = create.oplock;
    if (!alone && level != OplockLevel::none) level = OplockLevel::level_ii;
    if (outside_.contains(name)) level = OplockLevel::none;
    opens_[file] = {name, level};
    send(message, create_answer_body({.file = file,
                                      .oplock = level,
                                      .end_of_file = files[name].size,
                                      .written = files[name].version}));
  }

  // Whether a client must acknowledge first.
  bool break_to(const std::string& name, OplockLevel level) {
    bool wait = false;
    for (auto& [id, open] : opens_) {
      if (open.name != name || caching_of(open.level) <= caching_of(level)) continue;
      bool acknowledged = open.level != OplockLevel::level_ii;
      if (!open.breaking) tell_break(id, open, level);
      open.breaking = acknowledged;
      if (acknowledged)
        wait = true;
      else
        open.level = level;
    }
    return wait;
  }
  void tell_break(const FileId& file, Opened& open, OplockLevel level) {
    if (open.level == OplockLevel::level_ii) open.level = level;
    out.push_back(oplock_break(file, level).frame.bytes);
  }

  void break_oplocks(const std::string& name) {
    if (break_to(name, OplockLevel::level_ii)) return;
    // Level II is told after the fact.
    files[name].version += 1;
    if (auto left = outside_.find(name); --left->second == 0) outside_.erase(left);
    break_to(name, OplockLevel::none);
  }

  void settle() {
    auto names = outside_;
    for (const auto& [name, left] : names) break_oplocks(name);
    std::vector<Message> again = std::move(creates_);
    creates_.clear();
    for (const Message& message : again) create(message);
  }

  FrameSplitter splitter_{Framing::direct_tcp};
  std::vector<Message> waiting_;
  std::vector<Message> creates_;
  std::map<FileId, Opened> opens_;
  std::map<FileId, Folder> folders_;
  std::map<FileId, std::string> looks_;
  std::map<std::string, int> outside_;
  std::set<std::string> removed_;
  std::map<std::string, unsigned> settled_;
  std::set<std::uint64_t> free_{0};
  std::uint64_t top_ = 1;
  std::uint64_t numbers_ = 0;
};

}  // namespace longhaul::smb::smb2::test
