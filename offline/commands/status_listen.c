/* status_listen.c: see status_listen.h. */
#include "offline/commands/status_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS = 32, REQUEST_BYTES = 4096, PATIENCE_MS = 5000 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct client {
    int fd; /* -1: none */
    int64_t until_ms;
    size_t got, to_send, sent;
    char *answer; /* NULL: the request is not whole yet */
    char request[REQUEST_BYTES + 1];
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- where -------------------------------------------------------------------------------------------------------------- */

static int parse(const char *where, union address *a, socklen_t *len)
{
    const char *colon = strrchr(where, ':'), *digits = colon ? colon + 1 : where;
    char host[64] = "127.0.0.1";
    memset(a, 0, sizeof *a);
    if (!*digits || strlen(digits) > 5 || digits[strspn(digits, "0123456789")] || atol(digits) > 65535)
        return -EINVAL;
    const in_port_t port = htons((uint16_t)atol(digits));
    if (colon) {
        size_t n = (size_t)(colon - where);
        const bool bracketed = n >= 2 && where[0] == '[' && where[n - 1] == ']';
        if (n >= sizeof host || (!bracketed && memchr(where, ':', n)))
            return -EINVAL;
        snprintf(host, sizeof host, "%.*s", (int)(bracketed ? n - 2 : n), where + bracketed);
        if (!n)
            strcpy(host, "0.0.0.0");
    }
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = port;
        *len = sizeof a->v4;
        return 0;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) != 1)
        return -EINVAL;
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = port;
    *len = sizeof a->v6;
    return 0;
}

int status_listen_at(const char *where, char *said, size_t room)
{
    union address a;
    socklen_t len;
    char host[INET6_ADDRSTRLEN] = "";
    const int yes = 1;
    int rc = parse(where, &a, &len);
    if (rc)
        return rc;
    const int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, &a.any, len) || listen(fd, CLIENTS) || getsockname(fd, &a.any, &len)) {
        rc = -errno;
        close(fd);
        return rc;
    }
    const bool is_v6 = a.any.sa_family == AF_INET6;
    inet_ntop(a.any.sa_family, is_v6 ? (void *)&a.v6.sin6_addr : (void *)&a.v4.sin_addr, host, sizeof host);
    snprintf(said, room, is_v6 ? "[%s]:%u" : "%s:%u", host, ntohs(is_v6 ? a.v6.sin6_port : a.v4.sin_port));
    return fd;
}

/* ---- one client --------------------------------------------------------------------------------------------------------- */

static void part(struct client *c)
{
    free(c->answer);
    close(c->fd);
    *c = (struct client){.fd = -1};
}

/* The whole answer, in memory of its own. Without memory the client gets none. */
static void answer(struct client *c, const char *status, const char *type, const char *more, const char *body, size_t n, bool with_body)
{
    FILE *f = open_memstream(&c->answer, &c->to_send);
    if (!f)
        return;
    fprintf(f, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n%s\r\n", status, type, n, more);
    if (with_body)
        fwrite(body, 1, n, f);
    fclose(f);
}

static void answer_text(struct client *c, const char *status, const char *more, const char *text, bool with_body)
{
    answer(c, status, "text/plain; charset=utf-8", more, text, strlen(text), with_body);
}

static void answer_metrics(struct client *c, int (*metrics)(FILE *), bool with_body)
{
    char *body = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&body, &n);
    int rc = f ? metrics(f) : -ENOMEM;
    if (f && fclose(f))
        rc = -ENOMEM;
    if (rc)
        answer_text(c, "500 Internal Server Error", "", "out of memory\n", with_body);
    else
        answer(c, "200 OK", "text/plain; version=0.0.4; charset=utf-8", "", body, n, with_body);
    free(body);
}

static void answer_request(struct client *c, int (*metrics)(FILE *))
{
    char *line = c->request, *end = line + strcspn(line, "\r\n");
    *end = '\0';
    char *path = strchr(line, ' '), *version = path ? strchr(path + 1, ' ') : NULL;
    if (!version || strncmp(version + 1, "HTTP/1.", 7) != 0 || path[1] != '/') {
        answer_text(c, "400 Bad Request", "", "no request of HTTP/1\n", true);
        return;
    }
    *path++ = *version = '\0';
    path[strcspn(path, "?")] = '\0';
    const bool is_head = !strcmp(line, "HEAD");
    if (!is_head && strcmp(line, "GET") != 0)
        answer_text(c, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET and HEAD\n", true);
    else if (!strcmp(path, "/metrics"))
        answer_metrics(c, metrics, !is_head);
    else if (!strcmp(path, "/"))
        answer_text(c, "200 OK", "", "remat: /metrics\n", !is_head);
    else
        answer_text(c, "404 Not Found", "", "there is /metrics\n", !is_head);
}

static bool is_whole(const char *request) { return strstr(request, "\r\n\r\n") || strstr(request, "\n\n"); }

static void hear(struct client *c, int (*metrics)(FILE *))
{
    const ssize_t n = recv(c->fd, c->request + c->got, REQUEST_BYTES - c->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        part(c);
        return;
    }
    c->got += (size_t)n;
    c->request[c->got] = '\0';
    if (is_whole(c->request))
        answer_request(c, metrics);
    else if (c->got == REQUEST_BYTES || strlen(c->request) < c->got) /* too long, or with a NUL in it, behind which nothing is looked for */
        answer_text(c, "431 Request Header Fields Too Large", "", "too long a request\n", true);
    else
        return;
    if (!c->answer)
        part(c);
}

static void tell(struct client *c)
{
    const ssize_t n = send(c->fd, c->answer + c->sent, c->to_send - c->sent, MSG_NOSIGNAL);
    if (n > 0)
        c->sent += (size_t)n;
    if ((n < 0 && errno != EAGAIN && errno != EINTR) || c->sent == c->to_send)
        part(c);
}

/* ---- all of them -------------------------------------------------------------------------------------------------------- */

/* A process with number 1 (a container's) is ended by no signal that it does not take. */
static void end(int signal)
{
    (void)signal;
    _exit(0);
}

static void welcome(int fd, struct client *clients)
{
    struct client *c = clients;
    while (c < clients + CLIENTS && c->fd >= 0)
        c++;
    if (c == clients + CLIENTS)
        return;
    c->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    c->until_ms = now_ms() + PATIENCE_MS;
}

int status_listen(int fd, int (*metrics)(FILE *))
{
    static struct client clients[CLIENTS];
    const struct sigaction ends = {.sa_handler = end};
    sigaction(SIGTERM, &ends, NULL);
    sigaction(SIGINT, &ends, NULL);
    for (int i = 0; i < CLIENTS; i++)
        clients[i].fd = -1;
    for (;;) {
        struct pollfd wait[CLIENTS + 1];
        int64_t next_ms = -1;
        int n = 0, of[CLIENTS + 1];
        for (int i = 0; i < CLIENTS; i++)
            if (clients[i].fd >= 0) {
                of[n] = i;
                wait[n++] = (struct pollfd){.fd = clients[i].fd, .events = clients[i].answer ? POLLOUT : POLLIN};
                next_ms = next_ms < 0 || clients[i].until_ms < next_ms ? clients[i].until_ms : next_ms;
            }
        const int listening = n;
        if (n < CLIENTS)
            wait[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
        const int64_t left_ms = next_ms - now_ms();
        if (poll(wait, (nfds_t)n, next_ms < 0 ? -1 : left_ms > 0 ? (int)left_ms : 0) < 0 && errno != EINTR)
            return -errno;
        for (int k = 0; k < listening; k++) {
            struct client *c = &clients[of[k]];
            if (now_ms() >= c->until_ms)
                part(c);
            else if (wait[k].revents && c->answer)
                tell(c);
            else if (wait[k].revents)
                hear(c, metrics);
        }
        if (n > listening && wait[listening].revents)
            welcome(fd, clients);
    }
}
