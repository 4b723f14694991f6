#ifndef POSTBELL_CLINUX_H
#define POSTBELL_CLINUX_H
// What the module Glibc does not export: epoll and eventfd, and a signal handler that is safe to run at any moment.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>

// From now on every arrival of `signal` adds 1 to the eventfd `descriptor`; -1 restores the default action.
// Returns 0, or -1 with errno set.
int clinux_signal_to_eventfd(int signal, int descriptor);

// Names the calling thread for ps and debuggers (cut to 15 bytes).
void clinux_name_thread(const char *name);

// The process's environment: an array of NAME=value that ends with NULL. Read it before other threads may change it.
char *const *clinux_environment(void);

#endif
