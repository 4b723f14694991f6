#ifndef POSTBELL_CLINUX_H
#define POSTBELL_CLINUX_H
// What the module Glibc does not export: epoll and eventfd, and a signal handler that is safe to run at any moment.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>

// From now on every arrival of `signal` adds 1 to the eventfd `descriptor`; -1 restores the default action.
// Returns 0, or -1 with errno set.
int clinux_signal_to_eventfd(int signal, int descriptor);

// Names the calling thread for ps and debuggers (cut to 15 bytes).
void clinux_name_thread(const char *name);

// Lets nothing of this process's memory out when it dies: no core file, no dump to a handler, no reader but root, and
// no handler of ours for the signals of a crash. Returns 0, or -1 with errno set.
int clinux_keep_memory_private(void);

// free() and realloc() that overwrite what they give back; NULL is allowed.
void clinux_erase_and_free(void *memory);
void *clinux_erasing_realloc(void *memory, size_t size);

// The process's environment: an array of NAME=value that ends with NULL. Read it before other threads may change it.
char *const *clinux_environment(void);

#endif
