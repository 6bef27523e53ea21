/* SPDX-License-Identifier: MIT */
struct line {
    char text[80];
};
struct reply {
    char text[80];
};
extern FILE *file;
extern bool is_request(const void *line, void *arg);
extern int answer(const void *line, void *reply, void *arg);
extern int print(void *reply, void *arg);
