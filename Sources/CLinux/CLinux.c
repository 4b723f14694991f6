#include "CLinux.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Plain ints written before the handler is installed and read by it; sig_atomic_t is what POSIX allows here.
static volatile sig_atomic_t descriptors[NSIG];

static void forward(int signal) {
    int saved = errno;
    uint64_t one = 1;
    // A full counter (EAGAIN) loses nothing: the reader is already due to wake.
    ssize_t written = write(descriptors[signal], &one, sizeof one);
    (void)written;
    errno = saved;
}

int clinux_signal_to_eventfd(int signal, int descriptor) {
    if (signal <= 0 || signal >= NSIG) {
        errno = EINVAL;
        return -1;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = descriptor < 0 ? SIG_DFL : forward;
    if (descriptor >= 0) descriptors[signal] = descriptor;
    if (sigaction(signal, &action, NULL) != 0) return -1;
    // Whoever started us may have blocked it (threads of a dispatch pool do), and a mask survives exec.
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    return descriptor < 0 ? 0 : pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

void clinux_name_thread(const char *name) {
    prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}

int clinux_keep_memory_private(void) {
    // The limit stops core files. It does not stop a core_pattern that is a pipe; the second does (core(5)).
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0) return -1;
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return -1;
    // Those that Swift's runtime may have taken for its backtracer, which prints what registers point to.
    static const int crashes[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        if (signal(crashes[i], SIG_DFL) == SIG_ERR) return -1;
    }
    return 0;
}

void clinux_erase_and_free(void *memory) {
    if (memory == NULL) return;
    explicit_bzero(memory, malloc_usable_size(memory));
    free(memory);
}

void *clinux_erasing_realloc(void *memory, size_t size) {
    if (memory == NULL) return malloc(size);
    size_t old = malloc_usable_size(memory);
    if (size != 0 && size <= old) return memory;
    void *moved = size == 0 ? NULL : malloc(size);
    if (moved == NULL && size != 0) return NULL;
    if (moved != NULL) memcpy(moved, memory, old);
    clinux_erase_and_free(memory);
    return moved;
}

extern char **environ;

char *const *clinux_environment(void) {
    return environ;
}
