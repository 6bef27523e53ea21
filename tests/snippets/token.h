/* SPDX-License-Identifier: MIT */
extern weft_op query;
