/* SPDX-License-Identifier: MIT */
struct request {
    int number;
};
extern struct request *request;
extern void serve(struct request *request, weft_token *token);
