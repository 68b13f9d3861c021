// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

int get() { return socket(AF_INET, SOCK_STREAM, 0); }
