#include "CLinux.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
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

extern char **environ;

char *const *clinux_environment(void) {
    return environ;
}
