// SPDX-License-Identifier: Apache-2.0
// A model of an SMB2 server that keeps what is written, runs out of space, lists and breaks oplocks: requests
// are done at any later time, in any order. requester.h sends them; a server whose bytes tell their
// version, for readers, is model_server.h.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "codecs/little_endian.h"
#include "proxy/modules/smb/frames.h"
#include "proxy/modules/smb/smb2/build.h"
#include "proxy/modules/smb/smb2/connection.h"
#include "proxy/modules/smb/smb2/records.h"

namespace longhaul::smb::smb2::model {

inline constexpr SessionId kSession = 0x1234;
inline constexpr TreeId kTree = 7;

inline Slice message_of(const Header& header, const std::function<void(LittleEndianWriter&)>& body) {
  Buffer bytes;
  LittleEndianWriter writer(bytes);
  body(writer);
  return build_message(header, bytes);
}
inline void put(LittleEndianWriter& writer, const FileId& file) {
  writer.u64(file.persistent_part);
  writer.u64(file.volatile_part);
}
inline std::string utf16(std::string_view ascii) {
  std::string wide;
  for (char c : ascii) wide += c, wide += '\0';
  return wide;
}

// One user's share. A request is done and answered when step() picks it.
class Server {
 public:
  explicit Server(std::uint32_t seed) : random_(seed) {}

  std::map<std::string, std::string> files;
  std::map<std::string, std::uint64_t> written;  // times that were set
  std::uint64_t available_bytes = 1ull << 40;
  int fail_write = -1;  // the n-th WRITE that is done fails, and all after it
  Status failure = Status::disk_full;
  bool oplocks = true;
  bool keeps_data = true;  // false: files of any size take no memory
  std::uint16_t dialect = 0x0210;
  std::uint32_t server_capabilities = capabilities::large_mtu;
  Buffer interfaces;  // as FSCTL_QUERY_NETWORK_INTERFACE_INFO tells them
  std::uint64_t most_free_ids = 512;
  std::vector<Durable> durable_asked;  // by each CREATE
  bool grants_durable = true;          // with batch oplocks
  bool refuses_room = false;
  bool joins_answers = false;       // of a compound: they are one, too
  std::optional<Command> puts_off;  // does no such request
  std::uint32_t times_asked_for_room = 0;
  std::vector<std::string> listing;  // names, for QUERY_DIRECTORY
  bool confirms_watches = true;      // but reports no changes
  std::map<Command, int> done;
  std::map<std::string, int> reads;  // of each file
  std::map<Command, Status> failing;
  std::map<Command, Status> failing_alone;  // outside compounds
  std::vector<MessageId> cancelled;
  std::function<bool(MessageId)> believed_done = [](MessageId) { return true; };
  std::uint64_t early_breaks = 0;  // acknowledgements that came while writes were not done

  void receive(const Slice& bytes) {
    splitter_.push(bytes);
    for (;;) {
      auto frame = splitter_.next();
      REQUIRE(frame.has_value());
      if (!*frame) return;
      if ((*frame)->kind == FrameKind::smb2_transform) continue;  // it has no keys
      auto message = parse_message(**frame);
      REQUIRE(message.has_value());
      if (message->header().command == Command::cancel) {
        cancelled.push_back(message->header().message_id);
        continue;
      }
      for (const Element& element : message->elements) {
        const Header& header = element.header;
        for (std::uint64_t id = header.message_id.number(), end = id + header.charge(); id < end; ++id) {
          REQUIRE(id < window_);
          REQUIRE(used_.insert(id).second);
        }
      }
      if (message->single())
        pending_.push_back(*message);
      else
        perform_compound(*message);
    }
  }
  bool busy() const {
    return std::any_of(pending_.begin(), pending_.end(), [&](const Message& each) { return does(each); });
  }
  bool has_output() const { return !out_.empty(); }
  Slice take_output() {
    Slice first = out_.front();
    out_.pop_front();
    return first;
  }

  // Does one of the requests. The first ones are never done out of order: no client pipelines those.
  void step() {
    std::size_t which = random_() % pending_.size();
    if (pending_.front().header().command < Command::create) which = 0;
    while (!does(pending_[which])) which = (which + 1) % pending_.size();
    const Message message = pending_[which];
    came_before_ = which;
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
    if (message.header().command == Command::write && random_() % 8 == 0) interim(message.header());
    perform(message);
  }

  // Another client opens the file, or any: true if there was an oplock to break.
  bool take_oplock(OplockLevel to, std::string_view name = {}) {
    for (auto& [id, open] : opens_) {
      if (open.oplock != OplockLevel::batch || (!name.empty() && open.name != name)) continue;
      open.oplock = to;
      open.breaking = true;
      Header header{
          .command = Command::oplock_break, .flags = header_flags::response, .message_id = kUnsolicited};
      out_.push_back(message_of(header, [&](LittleEndianWriter& w) {
        w.u16(24);
        w.u8(static_cast<std::uint8_t>(to));
        w.zeros(5);
        put(w, {id, id});
      }));
      return true;
    }
    return false;
  }
  int opens_of(std::string_view name) const {
    return static_cast<int>(std::count_if(opens_.begin(), opens_.end(),
                                          [&](const auto& each) { return each.second.name == name; }));
  }
  std::size_t open_files() const { return opens_.size(); }
  // The names in CREATEs that have come and were not done.
  std::vector<std::string> waiting_creates() const {
    std::vector<std::string> names;
    for (const Message& message : pending_) {
      if (message.header().command != Command::create) continue;
      std::string& name = names.emplace_back();
      const auto create = parse_create_request(message.first().bytes);
      for (std::size_t i = 0; i < create->name.size(); i += 2) name += static_cast<char>(create->name[i]);
    }
    return names;
  }
  // CREATEs and renames that found an oplock of this connection's in their way.
  int met_oplocks = 0;
  bool breaking() const {
    for (const auto& [id, open] : opens_)
      if (open.breaking) return true;
    return false;
  }

 private:
  struct Open {
    std::string name;
    OplockLevel oplock = OplockLevel::none;
    bool breaking = false;
    std::size_t listed = 0;
  };

  bool does(const Message& message) const { return message.header().command != puts_off; }

  std::uint16_t grant(const Header& request) {
    const std::uint64_t room =
        used_.size() + most_free_ids > window_ ? used_.size() + most_free_ids - window_ : 0;
    const auto granted = static_cast<std::uint16_t>(
        std::min<std::uint64_t>(std::max<std::uint16_t>(request.credits, 1), room));
    window_ += granted;
    return granted;
  }
  Header head(const Header& request, Status status) {
    Header header = answer_to(request, status);
    header.credits = grant(request);
    return header;
  }
  void interim(const Header& request) {
    Header header = answer_to(request, Status::pending);
    header.flags |= header_flags::async;
    header.async_id = request.message_id.number();
    header.credits = grant(request);
    out_.push_back(build_error_response(header));
    async_.insert(request.message_id);
  }
  void fail(const Header& request, Status status) {
    out_.push_back(build_error_response(head(request, status)));
  }
  Open* open(const FileId& file) {
    auto found = opens_.find(file.volatile_part);
    return found == opens_.end() ? nullptr : &found->second;
  }
  // Writes that came before the request that is being done, and of which the client believes that they are
  // done.
  bool writes_pending(const FileId& file) const {
    for (std::size_t i = 0; i < came_before_; ++i) {
      const Message& message = pending_[i];
      if (message.header().command != Command::write) continue;
      if (parse_write_request(message.first().bytes)->file == file &&
          believed_done(message.header().message_id)) {
        return true;
      }
    }
    return false;
  }

  // Of a CREATE and what is to be done with its file: at once, each answered by itself, as servers may
  // (3.3.4.1.3), or all together.
  void perform_compound(const Message& message) {
    std::deque<Slice> before = std::exchange(out_, {});
    in_compound_ = true;
    perform_elements(message);
    in_compound_ = false;
    if (joins_answers) {
      Buffer joined;
      for (std::size_t i = 0; i < out_.size(); ++i) {
        Buffer one;
        append(one, out_[i].bytes().subspan(kFrameHeadBytes));
        while (i + 1 < out_.size() && one.size() % 8 != 0) one.push_back({});
        if (i + 1 < out_.size()) store_le(one.data() + 20, static_cast<std::uint32_t>(one.size()));
        append(joined, one);
      }
      std::byte front[kFrameHeadBytes];
      write_frame_head(joined.size(), front);
      out_ = {Slice::joined(front, joined)};
    }
    out_.insert(out_.begin(), before.begin(), before.end());
  }

  void perform_elements(const Message& message) {
    for (const Element& element : message.elements) {
      Header header = element.header;
      header.flags &= ~header_flags::related;
      header.next_command = 0;
      Buffer body;
      append(body, element.body());
      if (const auto at = header.command == Command::create ? std::nullopt : file_id_at(header.command)) {
        store_le(body.data() + *at - kHeaderBytes, next_file_ - 1);
        store_le(body.data() + *at - kHeaderBytes + 8, next_file_ - 1);
      }
      const auto single = parse_message({FrameKind::smb2, build_message(header, body)});
      REQUIRE(single.has_value());
      perform(*single);
    }
  }

  void perform(const Message& message) {
    const Header& request = message.header();
    const Bytes bytes = message.first().bytes;
    ++done[request.command];
    if (failing.contains(request.command)) return fail(request, failing.at(request.command));
    if (!in_compound_ && failing_alone.contains(request.command))
      return fail(request, failing_alone.at(request.command));
    switch (request.command) {
      case Command::negotiate:
        out_.push_back(message_of(head(request, Status::success), [this](LittleEndianWriter& w) {
          w.u16(65), w.u16(1), w.u16(dialect), w.u16(0), w.zeros(16), w.u32(server_capabilities);
          w.u32(1 << 20), w.u32(1 << 20), w.u32(1 << 20), w.u64(0), w.u64(0), w.u16(128), w.u16(0), w.u32(0);
        }));
        return;
      case Command::session_setup: {
        Header header = head(request, Status::success);
        header.session_id = kSession;
        out_.push_back(
            message_of(header, [](LittleEndianWriter& w) { w.u16(9), w.u16(0), w.u16(72), w.u16(0); }));
        return;
      }
      case Command::tree_connect: {
        Header header = head(request, Status::success);
        header.tree_id = kTree;
        out_.push_back(message_of(header, [](LittleEndianWriter& w) {
          w.u16(16), w.u8(1), w.u8(0), w.u32(0), w.u32(0), w.u32(0x1F01FF);
        }));
        return;
      }
      case Command::create: {
        auto create = parse_create_request(bytes);
        REQUIRE(create.has_value());
        std::string name;
        for (std::size_t i = 0; i < create->name.size(); i += 2) name += static_cast<char>(create->name[i]);
        const bool directory = create->options & create_options::directory_file;
        if (!directory && create->disposition == Disposition::open && !files.contains(name)) {
          return fail(request, Status::object_name_not_found);
        }
        if (create->disposition == Disposition::overwrite_if) files[name].clear();
        constexpr std::uint32_t kLook = access::read_attributes | access::synchronize;
        for (const auto& [other, held] : opens_)
          met_oplocks += held.name == name && held.oplock == OplockLevel::batch &&
                         (create->desired_access & ~kLook) != 0;
        const std::uint64_t id = next_file_++;
        Open& open = opens_[id];
        open.name = name;
        const bool alone = std::count_if(opens_.begin(), opens_.end(),
                                         [&](const auto& each) { return each.second.name == name; }) == 1;
        if (oplocks && alone && !directory && create->oplock == OplockLevel::batch)
          open.oplock = OplockLevel::batch;
        const std::uint64_t size = directory ? 0 : files[name].size();
        durable_asked.push_back(create->durable);
        const bool durable =
            grants_durable && create->durable != Durable::none && open.oplock == OplockLevel::batch;
        out_.push_back(message_of(head(request, Status::success), [&](LittleEndianWriter& w) {
          w.u16(89), w.u8(static_cast<std::uint8_t>(open.oplock)), w.u8(0), w.u32(1);
          w.zeros(16), w.u64(written[name]), w.u64(0), w.u64(size), w.u64(size),
              w.u32(directory ? 0x10 : 0x80), w.u32(0);
          put(w, {id, id});
          w.u32(durable ? 152 : 0), w.u32(durable ? 32 : 0);
          if (!durable) return;
          const bool second = create->durable == Durable::request_v2;
          w.u32(0), w.u16(16), w.u16(4), w.u16(0), w.u16(24), w.u32(8);
          w.bytes(as_bytes(second ? create_context::durable_v2 : create_context::durable));
          w.u32(0), w.u32(second ? 60'000 : 0), w.u32(create->persistent ? 2 : 0);
        }));
        return;
      }
      case Command::write: {
        auto write = parse_write_request(bytes);
        REQUIRE(write.has_value());
        if (!open(write->file)) return fail(request, Status::file_closed);
        if (fail_write >= 0 && writes_++ >= fail_write) return fail(request, failure);
        if (!keeps_data) {
          out_.push_back(build_write_response(head(request, Status::success),
                                              static_cast<std::uint32_t>(write->data.size())));
          return;
        }
        std::string& file = files[open(write->file)->name];
        const std::size_t end = write->offset + write->data.size();
        if (file.size() < end) file.resize(end);
        file.replace(write->offset, write->data.size(), as_text(write->data));
        out_.push_back(build_write_response(head(request, Status::success),
                                            static_cast<std::uint32_t>(write->data.size())));
        return;
      }
      case Command::read: {
        auto read = parse_read_request(bytes);
        REQUIRE(read.has_value());
        if (!open(read->file)) return fail(request, Status::file_closed);
        ++reads[open(read->file)->name];
        const std::string& file = files[open(read->file)->name];
        if (read->offset >= file.size()) return fail(request, Status::end_of_file);
        out_.push_back(
            build_read_response(head(request, Status::success),
                                as_bytes(std::string_view(file).substr(read->offset, read->length))));
        return;
      }
      case Command::flush: {
        auto flush = parse_flush_request(bytes);
        REQUIRE(flush.has_value());
        if (!open(flush->file)) return fail(request, Status::file_closed);
        out_.push_back(build_empty_response(head(request, Status::success)));
        return;
      }
      case Command::close: {
        auto close = parse_close_request(bytes);
        REQUIRE(close.has_value());
        if (!opens_.erase(close->file.volatile_part)) return fail(request, Status::file_closed);
        out_.push_back(build_close_response(head(request, Status::success), {}));
        return;
      }
      case Command::query_info: {
        auto query = parse_query_info_request(bytes);
        REQUIRE(query.has_value());
        if (!open(query->file)) return fail(request, Status::file_closed);
        Buffer answer;
        LittleEndianWriter w(answer);
        if (query->type == InfoType::file_system) {
          if (refuses_room) return fail(request, Status::not_supported);
          ++times_asked_for_room;
          w.u64(available_bytes), w.u64(available_bytes), w.u64(available_bytes), w.u32(1), w.u32(1);
        } else {
          const std::string& file = files[open(query->file)->name];
          w.u64(file.size()), w.u64(file.size()), w.u32(1), w.u8(0), w.u8(0), w.u16(0);
        }
        out_.push_back(build_buffer_response(head(request, Status::success), answer));
        return;
      }
      case Command::change_notify:
        if (confirms_watches) interim(request);
        return;
      case Command::query_directory: {
        auto query = parse_query_directory_request(bytes);
        REQUIRE(query.has_value());
        Open* directory = open(query->file);
        if (!directory) return fail(request, Status::file_closed);
        if (query->flags & query_directory_flags::restart_scans) directory->listed = 0;
        if (directory->listed >= listing.size()) {
          return fail(request, directory->listed ? Status::no_more_files : Status::no_such_file);
        }
        Buffer answer;
        std::size_t last = 0;
        for (int i = 0; i < 10 && directory->listed < listing.size(); ++i) {
          answer.insert(answer.end(), (8 - answer.size() % 8) % 8, std::byte{0});
          if (i) store_le(answer.data() + last, static_cast<std::uint32_t>(answer.size() - last));
          last = answer.size();
          const std::string name = utf16(listing[directory->listed++]);
          LittleEndianWriter w(answer);
          w.u32(0), w.u32(0), w.u32(static_cast<std::uint32_t>(name.size())),
              w.bytes(as_bytes(name));  // names
        }
        out_.push_back(build_buffer_response(head(request, Status::success), answer));
        return;
      }
      case Command::oplock_break: {
        auto parsed = parse_break(bytes);
        REQUIRE(parsed.has_value());
        const auto& oplock = std::get<OplockBreak>(*parsed);
        early_breaks += writes_pending(oplock.file);
        if (Open* broken = open(oplock.file)) broken->breaking = false;
        out_.push_back(message_of(head(request, Status::success), [&](LittleEndianWriter& w) {
          w.u16(24), w.u8(static_cast<std::uint8_t>(oplock.level)), w.zeros(5);
          put(w, oplock.file);
        }));
        return;
      }
      case Command::ioctl: {
        auto ioctl = parse_ioctl_request(bytes);
        REQUIRE(ioctl.has_value());
        out_.push_back(message_of(head(request, Status::success), [&](LittleEndianWriter& w) {
          w.u16(49), w.u16(0), w.u32(ioctl->code), w.u64(~0ull), w.u64(~0ull), w.u32(112), w.u32(0);
          w.u32(112), w.u32(static_cast<std::uint32_t>(interfaces.size())), w.u64(0), w.bytes(interfaces);
        }));
        return;
      }
      case Command::set_info: {
        auto set = parse_set_info_request(bytes);
        REQUIRE(set.has_value());
        if (set->info_class == file_info::rename)
          for (const auto& [other, held] : opens_) met_oplocks += held.oplock == OplockLevel::batch;
        if (set->info_class == file_info::end_of_file && open(set->file))
          files[open(set->file)->name].resize(load_le<std::uint64_t>(set->buffer, 0));
        if (set->info_class == file_info::basic && open(set->file))
          written[open(set->file)->name] = load_le<std::uint64_t>(set->buffer, 16);
        out_.push_back(message_of(head(request, Status::success), [](LittleEndianWriter& w) { w.u16(2); }));
        return;
      }
      default:
        out_.push_back(build_empty_response(head(request, Status::success)));
    }
  }

  std::mt19937 random_;
  bool in_compound_ = false;
  FrameSplitter splitter_{Framing::direct_tcp};
  std::vector<Message> pending_;  // in the order in which they came
  std::size_t came_before_ = 0;   // of these, the one that is being done
  std::deque<Slice> out_;
  std::map<std::uint64_t, Open> opens_;
  std::set<std::uint64_t> used_;
  std::set<MessageId> async_;
  std::uint64_t window_ = 1;
  std::uint64_t next_file_ = 100;
  int writes_ = 0;
};

}  // namespace longhaul::smb::smb2::model
