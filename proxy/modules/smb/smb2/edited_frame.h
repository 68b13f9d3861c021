// SPDX-License-Identifier: Apache-2.0
// Copies of received frames in which a few fields are changed, and where in a message these fields are.
#pragma once
#include <optional>

#include "codecs/slice.h"
#include "proxy/modules/smb/smb2/header.h"

namespace longhaul::smb::smb2 {

// The position of the FileId in a request of this command, counted from the element's first byte; nullopt if
// it has no FileId.
std::optional<std::size_t> file_id_at(Command command);
// The file that a request names; nullopt if the request is too short for it.
std::optional<FileId> named_file(const Element& request);

// A copy of a frame that may be changed before it is sent. Only the start of a long frame is copied, so it is
// sent as two slices.
class EditedFrame {
 public:
  // `frame` includes its head of four bytes. `element` below: Element::offset of the element to change.
  explicit EditedFrame(const Slice& frame);
  EditedFrame(const EditedFrame&) = delete;  // two would write to the same memory
  EditedFrame& operator=(const EditedFrame&) = delete;

  void set_message_id(MessageId id, std::size_t element = 0);
  void set_credits(std::uint16_t credits, std::size_t element = 0);  // CreditRequest or CreditResponse
  void set_status(Status status, std::size_t element = 0);
  // RequestedOplockLevel of a CREATE request, OplockLevel of a CREATE response.
  void set_requested_oplock(OplockLevel level, std::size_t element = 0);
  void set_granted_oplock(OplockLevel level, std::size_t element = 0);
  // `at`: from file_id_at().
  void set_file_id(const FileId& file, std::size_t at, std::size_t element = 0);

  struct Parts {
    Slice front;
    Slice back;  // empty unless the frame is long
  };
  Parts take() &&;
  Slice whole() &&;  // in one piece: copies a long frame

 private:
  std::byte* at(std::size_t element, std::size_t offset, std::size_t bytes);

  Slice front_;
  Slice back_;
  std::byte* memory_ = nullptr;  // of front_, which is not shared yet
};

}  // namespace longhaul::smb::smb2
