/* status_listen.h: `remat status --listen`: an HTTP server that answers GET /metrics, for Prometheus to scrape.
 *
 * Nothing that a client sends goes anywhere but into a comparison with the paths that there are. A client has five seconds from its connection to the end of
 * the answer, 4 KiB for its request, and is one of 32: whoever says nothing keeps nobody out for longer than that.
 *
 * Threads: the main thread, which stays in here. Errors: a negative errno.
 */
#ifndef REMAT_OFFLINE_STATUS_LISTEN_H
#define REMAT_OFFLINE_STATUS_LISTEN_H

#include <stddef.h>
#include <stdio.h>

/* A socket that listens at PORT (of 127.0.0.1), ADDRESS:PORT, [ADDRESS]:PORT, or :PORT (of every address); numbers, no names. Port 0: one that is free. What it
 * became is left in `said`, as ADDRESS:PORT. -EINVAL: no such address; others the kernel's. */
int status_listen_at(const char *where, char *said, size_t room);
/* Answers on that socket until SIGINT or SIGTERM, which end the process with status 0. `metrics` writes the page: 0 or a negative errno. */
int status_listen(int fd, int (*metrics)(FILE *to));

#endif
