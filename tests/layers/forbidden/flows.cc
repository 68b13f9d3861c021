// SPDX-License-Identifier: Apache-2.0
#include "proxy/flows/reason.h"

std::string all_of_them() { return longhaul::flows::reason_table_markdown(); }
