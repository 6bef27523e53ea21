/* SPDX-License-Identifier: MIT */
extern weft_task *tasks[3];
