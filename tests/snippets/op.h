/* SPDX-License-Identifier: MIT */
extern weft_mutex mutex;
