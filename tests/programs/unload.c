/* SPDX-License-Identifier: MIT */
/*
 * unload.c - a program that loads the shared library, uses it and unloads it.
 *
 * usage: unload LIBRARY
 *
 * A thread opens the library, runs a fiber, sets a fiber-local value (so that the library has
 * something to clean up when the thread ends), and closes the library before it ends. Then the
 * main thread causes a fault, which must have the same effect as before the library was loaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft.h>

enum {
    OWN_HANDLER_CODE = 7
};

static const char *library_path;

static void must(int holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "unload: %s\n", what);
        _exit(1);
    }
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    must(found != NULL, name);
    return found;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return 0;
}

static void *use_and_unload(void *arg)
{
    (void)arg;
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    must(library != NULL, "dlopen");
    int (*run)(const weft_config *config, int (*function)(void *arg), void *arg);
    int (*create)(weft_local * key, void (*destructor)(void *value));
    int (*set)(weft_local key, void *value);
    *(void **)&run = symbol(library, "weft_run");
    *(void **)&create = symbol(library, "weft_local_create");
    *(void **)&set = symbol(library, "weft_local_set");
    weft_config config = WEFT_CONFIG_INIT;
    config.workers = 2;
    weft_local key;
    must(run(&config, do_nothing, NULL) == 0, "weft_run");
    must(create(&key, NULL) == 0, "weft_local_create");
    must(set(key, &key) == 0, "weft_local_set");
    must(dlclose(library) == 0, "dlclose");
    return NULL;
}

static void handle(int number)
{
    (void)number;
    _exit(OWN_HANDLER_CODE);
}

static char *volatile near_null = (char *)8;

/* Shared with the children. */
static volatile int *thread_has_ended;

static void child(void (*handler)(int number))
{
    const struct rlimit no_core = { 0, 0 };
    struct sigaction action = { .sa_handler = handler };
    struct sigaction after;
    must(setrlimit(RLIMIT_CORE, &no_core) == 0, "setrlimit");
    must(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    pthread_t thread;
    must(pthread_create(&thread, NULL, use_and_unload, NULL) == 0, "pthread_create");
    must(pthread_join(thread, NULL) == 0, "pthread_join");
    must(sigaction(SIGSEGV, NULL, &after) == 0, "sigaction");
    must(after.sa_handler == handler, "the handler was not restored");
    *thread_has_ended = 1;
    *(volatile char *)near_null = 1;
    must(0, "the fault had no effect");
}

/* Returns the status with which a child that has this handler ends. */
static int status_with(void (*handler)(int number))
{
    *thread_has_ended = 0;
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        child(handler);
    }
    int status;
    must(waitpid(pid, &status, 0) == pid, "waitpid");
    must(*thread_has_ended, "the thread that used the library did not end");
    return status;
}

int main(int argc, char **argv)
{
    must(argc == 2, "usage: unload LIBRARY");
    library_path = argv[1];
    void *shared =
        mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    thread_has_ended = shared;
    int by_default = status_with(SIG_DFL);
    must(WIFSIGNALED(by_default) && WTERMSIG(by_default) == SIGSEGV,
         "the fault did not end the process");
    int handled = status_with(handle);
    must(WIFEXITED(handled) && WEXITSTATUS(handled) == OWN_HANDLER_CODE,
         "the fault did not reach the program's handler");
    return 0;
}
