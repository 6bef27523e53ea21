/* SPDX-License-Identifier: MIT */
/*
 * own_network.c - runs a command in a network namespace of its own, whose loopback is up.
 *
 * A closed connection keeps its port for a minute. Tests that make thousands of connections would
 * use up the ports that other tests need at the same time. Without the right to create a
 * namespace, the command runs in the namespace of the caller.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int loopback_up(void)
{
    struct ifreq request = { .ifr_name = "lo" };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    int err = ioctl(fd, SIOCGIFFLAGS, &request) == 0 ? 0 : -errno;
    request.ifr_flags |= IFF_UP;
    if (err == 0 && ioctl(fd, SIOCSIFFLAGS, &request) != 0) {
        err = -errno;
    }
    (void)close(fd);
    return err;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: %s COMMAND [ARGUMENT...]\n", argv[0]);
        return 2;
    }
    int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (before >= 0 && unshare(CLONE_NEWNET) == 0 && loopback_up() != 0 &&
        setns(before, CLONE_NEWNET) != 0) {
        (void)fprintf(stderr, "%s: cannot return to the network: %s\n", argv[0], strerror(errno));
        return 1;
    }
    (void)execvp(argv[1], argv + 1);
    (void)fprintf(stderr, "%s: %s: %s\n", argv[0], argv[1], strerror(errno));
    return 1;
}
