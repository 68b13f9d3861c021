// SPDX-License-Identifier: Apache-2.0
// The files of the status page (page/), which are compiled into the program. They are the same for every
// daemon; the page reads its data from the API.
#pragma once
#include <string_view>

namespace longhaul::control {

struct PageFile {
  std::string_view path, content_type, text;
};

// Null if there is no such file.
const PageFile* find_page_file(std::string_view path);

}  // namespace longhaul::control
